/*
 * tools/lookup.h - what `cairn lookup` is asked for, and the two forms of its answers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LOOKUP_H
#define TOOLS_LOOKUP_H

#include "tools/facts.h"
#include "tools/json.h"
#include "tools/output.h"

/* An address that was asked for. */
struct target {
    uint64_t address; /* the layout's */
    uint64_t loaded;  /* as it was given, where --base was, too */
};

enum { TARGET_COMPLAINT_BYTES = 256 };

/* Finds what the word says: an address, SECTION:ADDRESS, SECTION+OFFSET, FUNCTION or
 * FUNCTION+OFFSET, numbers being hexadecimal. `base` is taken off addresses. False: `complaint` (of
 * TARGET_COMPLAINT_BYTES) says why. */
bool find_target(const struct facts *facts, uint64_t base, const char *word, struct target *target,
                 char *complaint);

/* The target of an address that stands alone. */
bool find_address_target(const struct facts *facts, uint64_t base, uint64_t address,
                         struct target *target, char *complaint);

/* An answer: the target, and its function, if it is known. */
struct answer {
    const struct facts *facts;
    struct target target;
    struct place place;
    bool has_base; /* --base was given */
    bool has_function;
    struct cairn_object_function function; /* its entry as `place` has it */
};

void write_answer_text(struct output *output, const struct answer *answer);
void write_answer_json(struct json *json, const struct answer *answer);

#endif
