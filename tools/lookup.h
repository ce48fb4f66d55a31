/*
 * tools/lookup.h - the targets of `cairn lookup`, and the two forms of its answers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LOOKUP_H
#define TOOLS_LOOKUP_H

#include "tools/lookup_tables.h"

/* An address to look up. */
struct target {
    uint64_t address; /* the address in the layout */
    uint64_t loaded;  /* the address in the process, which is `address` plus --base */
};

enum { TARGET_COMPLAINT_BYTES = 256 };

/* Finds the target that a word names: an address, SECTION:ADDRESS, SECTION+OFFSET, FUNCTION or
 * FUNCTION+OFFSET, with hexadecimal numbers. `base` is subtracted from addresses. False with the
 * reason in `complaint`, which has TARGET_COMPLAINT_BYTES bytes. */
bool find_target(const struct tables *tables, uint64_t base, const char *word,
                 struct target *target, char *complaint);

/* The answer for a target, with its function if it is known. */
struct answer {
    const struct tables *tables;
    struct target target;
    struct place place;
    bool has_base; /* whether --base was given */
    bool has_function;
    struct cairn_object_function function; /* its `entry` is an address as in `place` */
};

/* How many records, handled faults and PC entries an answer has at most, each. Many questions may
 * be about one address, and all entries of a file, too. */
enum { LOOKUP_ITEMS_MAX = 64 };

/* How many locations, and how many live-outs, all records of an answer have together. */
enum { LOOKUP_VALUES_MAX = 256 };

/* What the records of an answer may still have. */
struct values_left {
    uint32_t locations;
    uint32_t liveouts;
};

/* Takes up to `count` of the values that an answer may still have. Returns how many. */
static inline uint32_t lookup_take_values(uint32_t *left, uint32_t count)
{
    uint32_t taken = count < *left ? count : *left;
    *left -= taken;
    return taken;
}

void write_answer_text(struct output *output, const struct answer *answer);
void write_answer_json(struct json *json, const struct answer *answer);

#endif
