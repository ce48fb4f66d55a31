/*
 * tools/call.h - a call whose arguments are parsed from words, and whose result is printed.
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
    struct invocation_scalar *scalars; /* scalars of all arguments */
    char **texts;                 /* texts that scalars point to, as many as there are scalars */
    uint32_t scalar_count;        /* number of scalars parsed so far */
    union invocation_slot *slots; /* slots of the result */
};

/* Parses `words` by the types of the parameters. The caller releases `call`, also after an error.
 * Errors: ARGUMENT (wrong number of words, or a word that does not fit its type), MEMORY. */
enum cairn_status call_prepare(const struct invocation_signature *signature, char **words,
                               uint32_t word_count, struct call *call, struct cairn_error *error);

/* Makes the call. The called function may do anything, also end the process. */
void call_make(struct call *call, void *invocation);

/* Writes the result by its type, and a newline; nothing for void. */
void call_write_result(const struct call *call, struct output *output);

void call_release(struct call *call);

#endif
