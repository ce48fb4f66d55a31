/*
 * tools/call.h - calling a function of which the signature is known at run time only.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CALL_H
#define TOOLS_CALL_H

#include "tools/output.h"
#include "llvm/program.h"

#include <cairn/status.h>
#include <ffi.h>

union call_value {
    uint8_t integer8;
    uint16_t integer16;
    uint32_t integer32;
    uint64_t integer64;
    float single_float;
    double double_float;
    void *pointer;
    ffi_arg widened; /* an integer result of up to a register's width */
};

struct call {
    const struct program_signature *signature;
    ffi_cif interface;
    ffi_type **types;
    union call_value *values;
    void **places;  /* of the values */
    char **strings; /* that pointers point to */
    union call_value result;
};

/* Parses `words` by the types of the parameters. `call` is to be released whatever the result.
 * ARGUMENT (number of words, or a word is none of its type), UNSUPPORTED, MEMORY. */
enum cairn_status call_prepare(const struct program_signature *signature, char **words,
                               uint32_t word_count, struct call *call, struct cairn_error *error);

/* Calls; what the function does is up to it. */
void call_make(struct call *call, void *function);

/* The result by its type; nothing for void. */
void call_write_result(const struct call *call, struct output *output);

void call_release(struct call *call);

#endif
