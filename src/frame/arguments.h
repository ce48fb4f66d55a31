/*
 * frame/arguments.h - where the arguments of a signature are, and what is returned.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_ARGUMENTS_H
#define FRAME_ARGUMENTS_H

#include "arch/call.h"
#include "frame/signature.h"

/* Gives each argument its place, and says whether there are registers for the results. The kinds
 * and types are there. UNSUPPORTED if an argument's place is not the same to all compilers. */
enum cairn_status arguments_place(cairn_signature *signature, struct cairn_error *error);

/* Writes the arguments to where they are placed: those that signature_check has found good. */
void arguments_write(const cairn_signature *signature, const struct cairn_value *values,
                     struct arch_call *call);

/* What was returned, if there are registers for it. */
void arguments_read_results(const cairn_signature *signature, const struct arch_call *call,
                            struct cairn_value *results);

#endif
