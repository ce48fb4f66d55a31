/*
 * frame/framed_veneer.h - leaving veneers that have a call frame.
 *
 * If a site has no space for the instructions that a call needs around it, the call goes through a
 * veneer with its own call frame (`encode_framed_veneer`). The callee then returns to the veneer,
 * but handlers and walks must see the site's frame. Contexts and frames that are not in such a
 * veneer stay unchanged. Both functions are async-signal-safe.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_FRAMED_VENEER_H
#define FRAME_FRAMED_VENEER_H

#include <cairn/frame.h>

/* Changes a context that returns to such a veneer into the context of the site's call, with the
 * registers that the veneer has saved. Resuming it has the same effect as returning through the
 * veneer. */
void frame_leave_veneer_context(const cairn_runtime *runtime, struct cairn_context *context);

/* Does the same for a frame that a walk has reached; its pc and sp must be set. */
void frame_leave_veneer(struct cairn_frame *frame);

#endif
