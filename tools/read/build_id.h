/*
 * tools/read/build_id.h - build IDs: of a file, and in samples.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_READ_BUILD_ID_H
#define TOOLS_READ_BUILD_ID_H

#include <cairn/object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUILD_ID_BYTES_MAX = 64, BUILD_ID_DIGITS_LEAST = 16 };

struct build_id {
    uint8_t bytes[BUILD_ID_BYTES_MAX];
    size_t size; /* 0 if there is no build ID */
};

/* A build ID in hexadecimal, as text. */
struct build_id_text {
    char digits[2 * BUILD_ID_BYTES_MAX + 1];
};

/* Parses hexadecimal digits. False, and `id->size` is 0, if there is anything else, an odd number
 * of digits, or too many. */
bool build_id_parse(const char *digits, size_t length, struct build_id *id);

/* Whether the IDs are the same. Older versions of perf fill short IDs up with zeros. */
bool build_ids_agree(const struct build_id *left, const struct build_id *right);

struct build_id_text build_id_format(const struct build_id *id);

/* Reads the object's build ID from its sections of notes. `id->size` is 0 if it has none. */
void build_id_of_object(cairn_object *object, struct build_id *id);

#endif
