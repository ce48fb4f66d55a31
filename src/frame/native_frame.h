/*
 * frame/native_frame.h - steps over frames of native code.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_NATIVE_FRAME_H
#define FRAME_NATIVE_FRAME_H

#include <cairn/frame.h>

/* Steps to the caller of a frame of native code. Errors: as cairn_frame_caller, and CORRUPT
 * if the frame would end above `stack_end`. */
enum cairn_status frame_step_native(struct cairn_frame *frame, uint64_t stack_end,
                                    struct cairn_error *error);

#endif
