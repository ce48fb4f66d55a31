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

static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static bool fail(const char *path, int system_error)
{
    complain("%s: cannot be written: %s", path, strerror(system_error));
    return false;
}

/* Returns the file mode that open would give a new file. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
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
    int descriptor = is_special(path) ? open(path, O_WRONLY | O_CLOEXEC) : open_temporary(file);
    if (descriptor < 0)
        return fail(path, errno);
    output_open(&file->output, descriptor);
    return true;
}

/* Closes the file. Returns the errno of the first error, or 0. */
static int close_written(struct new_file *file)
{
    output_flush(&file->output);
    int system_error = file->output.system_error;
    if (system_error == 0 && file->temporary != NULL &&
        fchmod(file->output.descriptor, usual_mode()) != 0)
        system_error = errno;
    if (close(file->output.descriptor) != 0 && system_error == 0)
        system_error = errno;
    return system_error;
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
    int system_error = close_written(file);
    if (system_error == 0 && file->temporary != NULL && rename(file->temporary, file->path) != 0)
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
