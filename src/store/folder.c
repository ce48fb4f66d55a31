/* SPDX-License-Identifier: MIT */
#include "store/folder.h"

#include "base/array.h"
#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { FOLDER_MODE = 0700, FILE_MODE = 0600, NAME_BYTES = 40 };

#define HEX "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]"

/* ---- Opening ---- */

static enum cairn_status check_folder(const char *path, const struct stat *found,
                                      struct cairn_error *error)
{
    if (found->st_uid != geteuid())
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "folder %s belongs to user %u, not to user %u, who runs this process",
                         path, (unsigned)found->st_uid, (unsigned)geteuid());
    if ((found->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "folder %s has mode %04o: others than its user may write to it", path,
                         (unsigned)found->st_mode & 07777);
    return CAIRN_OK;
}

enum cairn_status folder_open(const char *path, int *folder, struct cairn_error *error)
{
    bool is_new = mkdir(path, FOLDER_MODE) == 0;
    if (!is_new && errno != EEXIST)
        return error_set_system(error, errno, "cannot create folder %s", path);
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0)
        return error_set_system(error, errno, "cannot open folder %s", path);
    struct stat found;
    enum cairn_status status;
    if ((is_new && fchmod(opened, FOLDER_MODE) != 0) || fstat(opened, &found) != 0)
        status = error_set_system(error, errno, "cannot check folder %s", path);
    else
        status = check_folder(path, &found, error);
    if (status == CAIRN_OK)
        *folder = opened;
    else
        close(opened);
    return status;
}

/* ---- The lock ---- */

int folder_lock(int folder, int *lock)
{
    int opened = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0)
        return errno;
    while (flock(opened, LOCK_EX) != 0) {
        int failure = errno;
        if (failure == EINTR)
            continue;
        close(opened);
        return failure;
    }
    *lock = opened;
    return 0;
}

void folder_unlock(int lock)
{
    /* A child that was forked meanwhile has the opening, too, so closing would not unlock it. */
    flock(lock, LOCK_UN);
    close(lock);
}

/* ---- Files ---- */

static const char *check_file(int file, struct stat *found)
{
    if (fstat(file, found) != 0)
        return "its permissions cannot be read";
    if (!S_ISREG(found->st_mode))
        return "it is not a regular file";
    if (found->st_uid != geteuid())
        return "it belongs to another user";
    if ((found->st_mode & 07777) != FILE_MODE)
        return "its mode is not 0600";
    return NULL;
}

/* Returns what is wrong with a file that cannot be opened, or NULL if the system is to blame. */
static const char *why_not_opened(int failure)
{
    switch (failure) {
    case ENOENT:
        return "";
    case ELOOP:
        return "it is a symbolic link";
    case EACCES:
        return "its mode is not 0600";
    case EISDIR:
    case ENXIO: /* a socket */
        return "it is not a regular file";
    default:
        return NULL;
    }
}

int folder_open_file(int folder, const char *name, int *file, struct stat *found,
                     const char **wrong)
{
    *file = -1;
    int opened = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0) {
        int failure = errno;
        *wrong = why_not_opened(failure);
        return *wrong == NULL ? failure : 0;
    }
    *wrong = check_file(opened, found);
    if (*wrong == NULL)
        *file = opened;
    else
        close(opened);
    return 0;
}

int folder_create_file(int folder, const char *name, int *file)
{
    unlinkat(folder, name, 0);
    int opened =
        openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (opened < 0)
        return errno;
    if (fchmod(opened, FILE_MODE) != 0) {
        int failure = errno;
        close(opened);
        return failure;
    }
    *file = opened;
    return 0;
}

int folder_is_store(const char *name)
{
    return fnmatch("cairn-" HEX HEX HEX HEX ".store", name, 0) == 0 ||
           fnmatch("cairn-" HEX HEX HEX HEX ".store.new", name, 0) == 0;
}

/* ---- Limiting ---- */

struct entry {
    char name[NAME_BYTES];
    struct timespec changed;
    uint64_t size;
};

struct entries {
    struct entry *items;
    size_t count;
    size_t capacity;
    uint64_t total;
};

static void add_entry(struct entries *entries, int folder, const char *name,
                      const struct cairn_allocator *allocator)
{
    struct stat found;
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    struct entry *items = array_reserve(allocator, entries->items, entries->count, 1,
                                        &entries->capacity, sizeof *items);
    if (items == NULL)
        return;
    entries->items = items;
    struct entry *entry = &items[entries->count++];
    memcpy(entry->name, name, strlen(name) + 1); /* folder_is_store: it fits */
    entry->changed = found.st_mtim;
    entry->size = (uint64_t)found.st_size;
    entries->total += entry->size;
}

static void read_entries(struct entries *entries, DIR *directory, const char *kept,
                         const struct cairn_allocator *allocator)
{
    const struct dirent *item;
    while ((item = readdir(directory)) != NULL)
        if (folder_is_store(item->d_name) && strcmp(item->d_name, kept) != 0)
            add_entry(entries, dirfd(directory), item->d_name, allocator);
}

static int compare_entries(const void *left, const void *right)
{
    const struct timespec *a = &((const struct entry *)left)->changed;
    const struct timespec *b = &((const struct entry *)right)->changed;
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return a->tv_nsec < b->tv_nsec ? -1 : a->tv_nsec > b->tv_nsec;
}

static void delete_oldest(struct entries *entries, int folder, uint64_t limit)
{
    if (entries->count > 0)
        qsort(entries->items, entries->count, sizeof *entries->items, compare_entries);
    for (size_t i = 0; i < entries->count && entries->total > limit; i++) {
        unlinkat(folder, entries->items[i].name, 0);
        entries->total -= entries->items[i].size;
    }
}

void folder_limit(int folder, const char *kept, uint64_t limit,
                  const struct cairn_allocator *allocator)
{
    int opened = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = opened < 0 ? NULL : fdopendir(opened);
    struct entries entries = {0};
    if (directory == NULL) {
        if (opened >= 0)
            close(opened);
        return;
    }
    read_entries(&entries, directory, kept, allocator);
    delete_oldest(&entries, folder, limit);
    memory_free(allocator, entries.items, entries.capacity * sizeof *entries.items);
    closedir(directory);
}
