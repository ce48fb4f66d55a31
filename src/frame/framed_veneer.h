/*
 * frame/framed_veneer.h - veneers with a call frame, between a site and the function that it calls.
 *
 * If a site has no space for the instructions that a call needs around it, the call goes through a
 * veneer with its own call frame (`encode_framed_veneer`). The callee then returns to the veneer,
 * but handlers and walks must see the site's frame.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_FRAMED_VENEER_H
#define FRAME_FRAMED_VENEER_H

#include <cairn/frame.h>

/* Changes a context that returns to such a veneer into the context of the site's call, with the
 * registers that the veneer has saved. Resuming it has the same effect as returning through the
 * veneer. Other contexts stay unchanged. Async-signal-safe, as is between_leave_frame. */
void between_leave_context(const cairn_runtime *runtime, struct cairn_context *context);

/* Does the same for a frame that a walk has reached. Its pc and sp must be set. */
void between_leave_frame(struct cairn_frame *frame);

#endif
