/*
 * frame/stub.h - leaving code of Cairn's own that has no unwind rules: entries, veneers, exits,
 * closures, and the stubs of linked objects.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_STUB_H
#define FRAME_STUB_H

#include <cairn/frame.h>

/* Moves a frame that was interrupted in such code to the caller, or to the site that jumped to a
 * veneer. Other frames stay unchanged. Async-signal-safe. */
void frame_leave_stub(struct cairn_frame *frame);

#endif
