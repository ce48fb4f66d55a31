/*
 * tools/run/call.h - a call whose arguments are parsed from words, and whose result is printed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_RUN_CALL_H
#define TOOLS_RUN_CALL_H

#include "tools/cli/output.h"
#include "tools/run/signature.h"

#include <cairn/status.h>

/* A scalar in memory, in the form of llvm/invocation.h. */
union call_slot {
    uint64_t words[2];
    uint8_t bytes[16];
} __attribute__((aligned(16)));

/* The functions `cairn.call.*`. */
typedef void calling_function(const union call_slot *arguments, union call_slot *results);

struct call {
    const struct signature *signature;
    union call_slot *arguments; /* all scalars of all arguments */
    char **texts;               /* texts that scalars point to, as many as there are scalars */
    uint32_t scalar_count;      /* number of scalars parsed so far */
    union call_slot *results;
};

/* Parses `words` by the types of the parameters. The caller releases `call`, also after an error.
 * Errors: ARGUMENT (wrong number of words, or a word that does not fit its type), MEMORY. */
enum cairn_status call_prepare(const struct signature *signature, char **words, uint32_t word_count,
                               struct call *call, struct cairn_error *error);

/* Makes the call. The called function may do anything, also end the process. */
void call_make(struct call *call, calling_function *function);

/* Writes the result by its type, and a newline; nothing for void. */
void call_write_result(const struct call *call, struct output *output);

void call_release(struct call *call);

#endif
