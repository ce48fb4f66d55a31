/*
 * object/image.h - the bytes of a file.
 *
 * Files are read, not mapped: a mapping of a file that another process shortens raises SIGBUS, and
 * one that is overwritten changes bytes that have been checked. So that a large file costs only
 * what is used of it, its parts are read when they are first used.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_IMAGE_H
#define OBJECT_IMAGE_H

#include <cairn/object.h>
#include <stddef.h>
#include <stdint.h>

/* How the bytes came here, and so how they are released. */
enum image_origin { IMAGE_BORROWED, IMAGE_HOOKED, IMAGE_READ };

struct image {
    const uint8_t *bytes; /* of an IMAGE_READ, only those that image_load has read are valid */
    size_t size;
    enum image_origin origin;
    const struct cairn_file_hook *hook; /* of an IMAGE_HOOKED */
    struct cairn_file_bytes hooked;
    int descriptor; /* of an IMAGE_READ */
    uint8_t *parts; /* of an IMAGE_READ: 1 for each part that has been read */
};

/* Opens the file at `path`, with `hook` if that has a function; `hook` must be valid until the
 * image is closed. UNSUPPORTED (not a regular file), SYSTEM, MEMORY. */
enum cairn_status image_open(const char *path, const struct cairn_file_hook *hook,
                             const struct cairn_allocator *allocator, struct image *image,
                             struct cairn_error *error);

/* Makes `size` bytes from `offset` on valid, which must be inside the file. They never change
 * afterwards. TRUNCATED (the file has become shorter), SYSTEM. */
enum cairn_status image_load(const struct image *image, size_t offset, size_t size,
                             struct cairn_error *error);

void image_close(struct image *image, const struct cairn_allocator *allocator);

#endif
