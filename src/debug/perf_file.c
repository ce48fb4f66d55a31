/* SPDX-License-Identifier: MIT */
#include "debug/perf_file.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Returns the time since 1970 at which this process was started, in seconds, rounded up; 0 if it is
 * unknown. Source: proc(5), /proc/PID/stat, field 22. */
static time_t start_time(void)
{
    enum { FIELD = 22, AFTER_NAME = 2 };
    char text[1024];
    struct timespec now;
    struct timespec up;
    int descriptor = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    text[length < 0 ? 0 : length] = '\0';
    const char *at = strrchr(text, ')'); /* the name may contain anything */
    for (int field = AFTER_NAME; at != NULL && field < FIELD; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL || clock_gettime(CLOCK_REALTIME, &now) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &up) != 0)
        return 0;
    unsigned long long ticks = strtoull(at, NULL, 10);
    return now.tv_sec - up.tv_sec + (time_t)(ticks / (unsigned long long)sysconf(_SC_CLK_TCK));
}

/* Removes what an earlier process has left. */
static int remove_old(const char *path)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return errno == ENOENT ? 0 : errno;
    bool is_old = found.st_mtim.tv_sec + 1 < start_time();
    bool is_ours = S_ISREG(found.st_mode) && found.st_uid == geteuid() && found.st_nlink == 1;
    if (!is_ours)
        return EEXIST;
    return is_old && unlink(path) != 0 ? errno : 0;
}

enum cairn_status perf_file_open(const char *path, struct perf_file *file, bool *is_new,
                                 struct cairn_error *error)
{
    enum { MODE = 0644 };
    struct stat opened = {.st_mode = 0};
    int failure = remove_old(path);
    *file = (struct perf_file){.descriptor = -1};
    if (failure == 0) {
        file->descriptor =
            open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, MODE);
        failure = file->descriptor < 0 || fstat(file->descriptor, &opened) != 0 ? errno : 0;
    }
    if (failure == 0 && (!S_ISREG(opened.st_mode) || opened.st_uid != geteuid()))
        failure = EEXIST;
    if (failure == 0) {
        *is_new = opened.st_size == 0;
        file->size = (size_t)opened.st_size;
        return CAIRN_OK;
    }
    perf_file_close(file);
    if (failure == EEXIST)
        return error_set_system(error, failure, "%.100s is not a file of this user with one name",
                                path);
    return error_set_system(error, failure, "%.120s cannot be opened", path);
}

void perf_file_write(struct perf_file *file, const void *bytes, size_t size)
{
    if (file->descriptor < 0 || file->failure != 0)
        return;
    file->failure = file_write(file->descriptor, bytes, size);
    if (file->failure == 0)
        file->size += size;
    else
        (void)file_resize(file->descriptor, file->size);
}

void perf_file_close(struct perf_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
}
