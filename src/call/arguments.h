/*
 * call/arguments.h - the places of a signature's arguments and results.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CALL_ARGUMENTS_H
#define CALL_ARGUMENTS_H

#include "arch/call.h"
#include "call/signature.h"

/* Assigns a place to each argument, and finds out whether there are registers for the results.
 * Kinds and types must be set. UNSUPPORTED if compilers disagree on the place of an argument. */
enum cairn_status arguments_place(cairn_signature *signature, struct cairn_error *error);

/* Writes the arguments to their places. signature_check must have accepted them. */
void arguments_write(const cairn_signature *signature, const struct cairn_value *values,
                     struct arch_call *call);

#endif
