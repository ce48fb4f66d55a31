/*
 * file/contents.h - reads the bytes of a file.
 *
 * Files are read instead of mapped. If another process truncates a mapped file, an access raises
 * SIGBUS; if it overwrites the file, bytes that have already been checked change. A file is read
 * part by part, at the first use of each part, so that the cost of a large file depends only on the
 * parts in use.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_CONTENTS_H
#define FILE_CONTENTS_H

#include <cairn/object.h>
#include <stddef.h>
#include <stdint.h>

/* The origin of the bytes, which determines how they are released. */
enum image_origin { IMAGE_BORROWED, IMAGE_HOOKED, IMAGE_READ };

struct image {
    const uint8_t *bytes; /* of an IMAGE_READ, only bytes that image_load has read are valid */
    size_t size;
    enum image_origin origin;
    const struct cairn_file_hook *hook; /* for IMAGE_HOOKED */
    struct cairn_file_bytes hooked;
    int descriptor;  /* for IMAGE_READ */
    uint64_t device; /* for IMAGE_READ: what identifies the file, whatever its path */
    uint64_t inode;
    uint8_t *parts; /* for IMAGE_READ: 1 for each part that was read */
};

/* Opens the file at `path`; does nothing if that is NULL. It calls `hook` if that has a function;
 * `hook` must be valid until the image is closed. Errors: UNSUPPORTED (not a regular file), SYSTEM,
 * MEMORY. */
enum cairn_status image_open(const char *path, const struct cairn_file_hook *hook,
                             const struct cairn_allocator *allocator, struct image *image,
                             struct cairn_error *error);

/* Makes `size` bytes from `offset` on valid. They must be inside the file, and never change
 * afterwards. Errors: TRUNCATED (the file has become shorter), SYSTEM. */
enum cairn_status image_load(const struct image *image, size_t offset, size_t size,
                             struct cairn_error *error);

void image_close(struct image *image, const struct cairn_allocator *allocator);

#endif
