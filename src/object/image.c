/*
 * The bytes of a file: mapped where that is possible, so that a large one costs only the pages
 * that are looked at.
 *
 * SPDX-License-Identifier: MIT
 */
#include "object/image.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES_FIRST = 1 << 16 };

static enum cairn_status map_file(int descriptor, size_t size, struct image *image,
                                  struct cairn_error *error)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED)
        return error_set_system(error, errno, "cannot be mapped");
    *image = (struct image){.bytes = bytes, .size = size, .origin = IMAGE_MAPPED};
    return CAIRN_OK;
}

static enum cairn_status grow(struct image *image, const struct cairn_allocator *allocator,
                              struct cairn_error *error)
{
    size_t capacity = image->capacity == 0 ? READ_BYTES_FIRST : image->capacity * 2;
    void *bytes =
        memory_resize(allocator, (void *)(uintptr_t)image->bytes, image->capacity, capacity);
    if (bytes == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu bytes of input",
                         capacity);
    image->bytes = bytes;
    image->capacity = capacity;
    return CAIRN_OK;
}

static enum cairn_status read_to_end(int descriptor, const struct cairn_allocator *allocator,
                                     struct image *image, struct cairn_error *error)
{
    *image = (struct image){.origin = IMAGE_READ};
    for (;;) {
        if (image->size == image->capacity && grow(image, allocator, error) != CAIRN_OK)
            return CAIRN_ERROR_MEMORY;
        uint8_t *free_bytes = (uint8_t *)(uintptr_t)image->bytes + image->size;
        ssize_t count = read(descriptor, free_bytes, image->capacity - image->size);
        if (count == 0)
            return CAIRN_OK;
        if (count > 0)
            image->size += (size_t)count;
        else if (errno != EINTR)
            return error_set_system(error, errno, "cannot be read");
    }
}

static enum cairn_status load(int descriptor, const struct cairn_allocator *allocator,
                              struct image *image, struct cairn_error *error)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return error_set_system(error, errno, "cannot be examined");
    if (S_ISDIR(status.st_mode))
        return error_set_system(error, EISDIR, "cannot be read");
    if (S_ISREG(status.st_mode) && status.st_size > 0)
        return map_file(descriptor, (size_t)status.st_size, image, error);
    return read_to_end(descriptor, allocator, image, error);
}

enum cairn_status image_open(const char *path, const struct cairn_allocator *allocator,
                             struct image *image, struct cairn_error *error)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return error_set_system(error, errno, "cannot be opened");
    struct image loaded = {0};
    enum cairn_status status = load(descriptor, allocator, &loaded, error);
    close(descriptor);
    if (status == CAIRN_OK)
        *image = loaded;
    else
        image_close(&loaded, allocator);
    return status;
}

void image_close(struct image *image, const struct cairn_allocator *allocator)
{
    if (image->origin == IMAGE_MAPPED)
        munmap((void *)(uintptr_t)image->bytes, image->size);
    else if (image->origin == IMAGE_READ)
        memory_free(allocator, (void *)(uintptr_t)image->bytes, image->capacity);
}
