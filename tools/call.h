/*
 * tools/call.h - a call's arguments from words, and its result in words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CALL_H
#define TOOLS_CALL_H

#include "tools/output.h"
#include "llvm/invocation.h"

#include <cairn/status.h>

struct call {
    const struct invocation_signature *signature;
    struct invocation_scalar *scalars; /* of all arguments */
    char **texts;                      /* that scalars point to; as many as there are scalars */
    uint32_t scalar_count;             /* parsed so far */
    union invocation_slot *slots;      /* of the result */
};

/* Parses `words` by the types of the parameters. `call` is to be released whatever the result.
 * ARGUMENT (number of words, or a word is none of its type), MEMORY. */
enum cairn_status call_prepare(const struct invocation_signature *signature, char **words,
                               uint32_t word_count, struct call *call, struct cairn_error *error);

/* Calls; what the function does is up to it. */
void call_make(struct call *call, void *invocation);

/* The result by its type and a line's end; nothing for void. */
void call_write_result(const struct call *call, struct output *output);

void call_release(struct call *call);

#endif
