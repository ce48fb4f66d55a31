/*
 * tools/read/sanmd.h - reading all sanitizer metadata of an object.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_READ_SANMD_H
#define TOOLS_READ_SANMD_H

#include "tools/read/files.h"

#include <cairn/sanmd.h>

/* An address, and the index of the section that contains it in a relocatable object. */
struct sanmd_place {
    uint32_t section;
    uint64_t address;
};

struct sanmd_function {
    struct sanmd_place place;
    struct cairn_sanmd_entry covered;
};

struct sanmd_contents {
    struct list functions; /* items are struct sanmd_function, sorted by place and size */
    struct list atomics;   /* items are struct sanmd_place, sorted */
    size_t section_count;
};

/* Reads all sections, also after an invalid one. False if one is invalid, after an error message;
 * `contents` then has what precedes the invalid parts. The caller releases it in either case. */
bool sanmd_read(const struct input *input, struct sanmd_contents *contents);
void sanmd_release(struct sanmd_contents *contents);
/* Sorts the contents again, after places have changed. */
void sanmd_sort(struct sanmd_contents *contents);

/* All features, in the order in which they are printed. */
enum { SANMD_FEATURE_COUNT = 3 };
extern const uint32_t sanmd_features[SANMD_FEATURE_COUNT];
/* Writes the names of features as an array with the key "features". */
void write_json_features(struct json *json, uint32_t features);

int sanmd_compare_places(const void *left, const void *right);

#endif
