/*
 * llvm/stored_states.h - moves the values of frame states from registers to the frame.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_STORED_STATES_H
#define LLVM_STORED_STATES_H

#include "llvm/site_call.h"

#include <stdbool.h>

/* Changes the frame states among the live values of a patch point or stack map: the function stores
 * their values in its frame before the call, and the call has their addresses instead, for which
 * LLVM needs no register. The number of live values stays the same. Values that LLVM records
 * without a register, or cannot store, are unchanged. Returns whether anything was changed. */
bool stored_states_make(const struct site_call *call);

#endif
