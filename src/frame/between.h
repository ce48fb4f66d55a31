/*
 * frame/between.h - what stands between a site and the function that it calls.
 *
 * Where a site has no room for what a call needs around it, the call goes through a veneer with a
 * frame of its own (`encode_framed_veneer`). What was called returns into the veneer; but the frame
 * that a handler or a walk is to see is the site's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_BETWEEN_H
#define FRAME_BETWEEN_H

#include <cairn/frame.h>

/* A context that returns into such a veneer becomes that of the site's call, with all that the
 * veneer keeps: going on from it does what going back through the veneer would. Others stay as they
 * are. Async-signal-safe, like the next one. */
void between_leave_context(const cairn_runtime *runtime, struct cairn_context *context);

/* The same for a frame that was reached by walking, its pc and sp being set. */
void between_leave_frame(struct cairn_frame *frame);

#endif
