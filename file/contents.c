/*
 * Reads the bytes of a file, part by part, into private memory of the file's size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/contents.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PART_BYTES = 1 << 16 };

static size_t part_count(size_t size) { return size / PART_BYTES + 1; }

static enum cairn_status check_regular(const struct stat *status, struct cairn_error *error)
{
    if (S_ISREG(status->st_mode))
        return CAIRN_OK;
    if (S_ISDIR(status->st_mode))
        return error_set_system(error, EISDIR, "cannot be read");
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "this is not a regular file");
}

/* Opens the file, and reserves address space for all of it, without using memory yet. */
static enum cairn_status open_file(const char *path, const struct cairn_allocator *allocator,
                                   struct image *image, struct cairn_error *error)
{
    struct stat status;
    /* Opening a FIFO waits for a writer, and opening a device can have side effects. */
    if (stat(path, &status) != 0)
        return error_set_system(error, errno, "cannot be opened");
    enum cairn_status checked = check_regular(&status, error);
    if (checked != CAIRN_OK)
        return checked;
    image->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (image->descriptor < 0)
        return error_set_system(error, errno, "cannot be opened");
    if (fstat(image->descriptor, &status) != 0)
        return error_set_system(error, errno, "cannot be examined");
    image->size = (size_t)status.st_size;
    image->device = status.st_dev;
    image->inode = status.st_ino;
    checked = check_regular(&status, error);
    if (checked != CAIRN_OK || image->size == 0)
        return checked;
    void *bytes = mmap(NULL, image->size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return error_set_system(error, errno, "no memory for %zu bytes of input", image->size);
    image->bytes = bytes;
    image->parts = memory_new(allocator, part_count(image->size), 1);
    if (image->parts == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a file of %zu bytes",
                         image->size);
    return CAIRN_OK;
}

enum cairn_status image_open(const char *path, const struct cairn_file_hook *hook,
                             const struct cairn_allocator *allocator, struct image *image,
                             struct cairn_error *error)
{
    struct cairn_file_bytes file = {0};
    struct image opened = {.origin = IMAGE_READ, .descriptor = -1};
    enum cairn_status status = CAIRN_OK;
    if (path == NULL)
        return CAIRN_OK;
    if (hook->open == NULL) {
        status = open_file(path, allocator, &opened, error);
    } else if (hook->open(hook->user, path, &file)) {
        opened = (struct image){.bytes = file.bytes,
                                .size = file.size,
                                .origin = IMAGE_HOOKED,
                                .hook = hook,
                                .hooked = file};
    } else {
        status = error_set_system(error, ENOENT, "cannot be opened");
    }
    if (status == CAIRN_OK)
        *image = opened;
    else
        image_close(&opened, allocator);
    return status;
}

enum cairn_status image_load(const struct image *image, size_t offset, size_t size,
                             struct cairn_error *error)
{
    if (image->origin != IMAGE_READ || size == 0)
        return CAIRN_OK;
    uint8_t *bytes = (uint8_t *)(uintptr_t)image->bytes;
    for (size_t part = offset / PART_BYTES; part <= (offset + size - 1) / PART_BYTES; part++) {
        size_t at = part * PART_BYTES;
        size_t end = image->size - at < PART_BYTES ? image->size : at + PART_BYTES;
        while (image->parts[part] == 0 && at < end) {
            ssize_t count = pread(image->descriptor, bytes + at, end - at, (off_t)at);
            if (count > 0)
                at += (size_t)count;
            else if (count == 0)
                return error_set(error, CAIRN_ERROR_TRUNCATED, at,
                                 "the file has become shorter since it was opened: it had %zu "
                                 "bytes, and has %zu",
                                 image->size, at);
            else if (errno != EINTR)
                return error_set_system(error, errno, "cannot be read");
        }
        image->parts[part] = 1;
    }
    return CAIRN_OK;
}

void image_close(struct image *image, const struct cairn_allocator *allocator)
{
    if (image->origin == IMAGE_HOOKED && image->hook->close != NULL)
        image->hook->close(image->hook->user, &image->hooked);
    if (image->origin != IMAGE_READ)
        return;
    memory_free(allocator, image->parts, part_count(image->size));
    if (image->bytes != NULL)
        munmap((void *)(uintptr_t)image->bytes, image->size);
    if (image->descriptor >= 0)
        close(image->descriptor);
}
