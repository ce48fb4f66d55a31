/*
 * frame/deopt.h - a thread at an exit, from its arrival to what it goes on with.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_DEOPT_H
#define FRAME_DEOPT_H

#include <cairn/deopt.h>

/* `context` is what the thread goes on with, and has called. */
void deopt_begin(struct cairn_deopt *deopt, const cairn_runtime *runtime,
                 struct cairn_context *context);

/* Does what the handler has asked for to the context. */
void deopt_end(struct cairn_deopt *deopt);

#endif
