/* SPDX-License-Identifier: MIT */
#include "tools/cli/save.h"

#include "tools/cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes the contents and closes the file. False after an error message, or with an error number in
 * `*system_error`. */
static bool write_and_close(int descriptor, write_contents *write, void *user, int *system_error)
{
    static struct output output;
    output_open(&output, descriptor);
    bool is_written = write(&output, user);
    output_flush(&output);
    *system_error = output.system_error;
    mode_t mask = umask(0); /* the mode is the one that open would give a new file */
    umask(mask);
    struct stat status;
    bool is_regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    if (*system_error == 0 && is_regular && fchmod(descriptor, 0666 & ~mask) != 0)
        *system_error = errno;
    if (close(descriptor) != 0 && *system_error == 0)
        *system_error = errno;
    return is_written && *system_error == 0;
}

bool save_output(const char *path, write_contents *write, void *user)
{
    struct stat status;
    char *temporary = NULL;
    int system_error = 0;
    bool is_special = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    if (!is_special && asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return complain("%s: cannot be written: no memory", path);
    int descriptor = is_special ? open(path, O_WRONLY | O_CLOEXEC) : mkostemp(temporary, O_CLOEXEC);
    if (descriptor < 0) {
        complain("%s: cannot be written: %s", path, strerror(errno));
        free(temporary);
        return false;
    }
    bool is_good = write_and_close(descriptor, write, user, &system_error);
    if (is_good && !is_special && rename(temporary, path) != 0) {
        system_error = errno;
        is_good = false;
    }
    if (!is_special && !is_good)
        unlink(temporary);
    free(temporary);
    if (system_error != 0)
        complain("%s: cannot be written: %s", path, strerror(system_error));
    return is_good;
}
