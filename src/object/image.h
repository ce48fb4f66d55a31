/*
 * object/image.h - the bytes of a file.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_IMAGE_H
#define OBJECT_IMAGE_H

#include <cairn/allocator.h>
#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>

/* How the bytes came here, and so how they go. */
enum image_origin { IMAGE_BORROWED, IMAGE_MAPPED, IMAGE_READ };

struct image {
    const uint8_t *bytes;
    size_t size;
    size_t capacity; /* of an IMAGE_READ */
    enum image_origin origin;
};

/* Maps a regular file and reads anything else to its end. SYSTEM, MEMORY. */
enum cairn_status image_open(const char *path, const struct cairn_allocator *allocator,
                             struct image *image, struct cairn_error *error);

void image_close(struct image *image, const struct cairn_allocator *allocator);

#endif
