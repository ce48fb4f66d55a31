/*
 * llvm/build.h - what builders of patch points and of guards share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_BUILD_H
#define LLVM_BUILD_H

#include "format/frame_state.h"

#include <cairn/llvm.h>

/* Returns the function in which the builder is positioned; NULL with ARGUMENT. */
LLVMValueRef build_find_function(LLVMBuilderRef builder, struct cairn_error *error);

/* Checks that the value is of this function, or of none. `what` is built there. Errors: ARGUMENT;
 * the message names both functions. */
CAIRN_MUST_CHECK enum cairn_status build_check_owner(LLVMValueRef value, const char *part,
                                                     uint32_t index, LLVMValueRef function,
                                                     const char *what, struct cairn_error *error);

/* Returns the maximum number of live values that the frames need; 0 if their counts are rejected.
 */
uint32_t frame_state_capacity(const struct cairn_encoded_frame *frames, uint32_t frame_count);

/* Returns the slot of a type that refers to a value by its number. */
uint64_t frame_state_reference(enum frame_state_slot_kind kind, struct cairn_type type,
                               uint32_t value);

#endif
