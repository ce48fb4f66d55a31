/* SPDX-License-Identifier: MIT */
#include "tools/new_file.h"

#include "tools/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const char *path, int system_error)
{
    return complain("%s: cannot be written: %s", path, strerror(system_error));
}

static int open_temporary(struct new_file *file)
{
    if (asprintf(&file->temporary, "%s.XXXXXX", file->path) < 0) {
        file->temporary = NULL;
        errno = ENOMEM;
        return -1;
    }
    int descriptor = mkstemp(file->temporary);
    if (descriptor >= 0)
        return descriptor;
    free(file->temporary);
    file->temporary = NULL;
    return -1;
}

bool new_file_open(struct new_file *file, const char *path)
{
    file->path = path;
    file->temporary = NULL;
    struct stat status;
    bool is_special = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    int descriptor = is_special ? open(path, O_WRONLY | O_CLOEXEC) : open_temporary(file);
    if (descriptor < 0)
        return fail(path, errno);
    output_open(&file->output, descriptor);
    return true;
}

static void remove_temporary(struct new_file *file)
{
    if (file->temporary != NULL)
        unlink(file->temporary);
    free(file->temporary);
    file->temporary = NULL;
}

bool new_file_finish(struct new_file *file)
{
    output_flush(&file->output);
    int system_error = file->output.system_error;
    bool is_renamed = file->temporary != NULL;
    mode_t mask = umask(0); /* the mode is the one that open would give a new file */
    umask(mask);
    if (system_error == 0 && is_renamed && fchmod(file->output.descriptor, 0666 & ~mask) != 0)
        system_error = errno;
    if (close(file->output.descriptor) != 0 && system_error == 0)
        system_error = errno;
    if (system_error == 0 && is_renamed && rename(file->temporary, file->path) != 0)
        system_error = errno;
    if (system_error != 0) {
        remove_temporary(file);
        return fail(file->path, system_error);
    }
    free(file->temporary);
    file->temporary = NULL;
    return true;
}

void new_file_abandon(struct new_file *file)
{
    close(file->output.descriptor);
    remove_temporary(file);
}
