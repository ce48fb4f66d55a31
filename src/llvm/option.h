/*
 * llvm/option.h - options of LLVM's that hold for the process.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_OPTION_H
#define LLVM_OPTION_H

#include <cairn/architecture.h>

/* Turns the liveness of patch points off; for PPC64 in little-endian order also a pass that moves
 * what records name, and one that has values where patch points change them. Only the first call
 * for an architecture does anything. Thread-safe. */
void option_turn_liveness_off(enum cairn_architecture architecture);

/* Only the first call does anything. Thread-safe. */
void option_turn_implicit_null_checks_on(void);

#endif
