/*
 * llvm/option.h - sets LLVM's process-wide options.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_OPTION_H
#define LLVM_OPTION_H

#include <cairn/architecture.h>

/* Turns the liveness of patch points off. For little-endian PPC64 it also turns off a pass that
 * moves values of records, and a pass that keeps values in a register that patch points change.
 * Only the first call for an architecture has an effect. Thread-safe. */
void option_turn_liveness_off(enum cairn_architecture architecture);

/* Turns on LLVM's implicit null checks. Only the first call has an effect. Thread-safe. */
void option_turn_implicit_null_checks_on(void);

#endif
