/*
 * format/frame_state.h - how a frame state's words are made up: cairn/frame_state.h says it in
 * words. What src/llvm writes and src/frame reads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_FRAME_STATE_H
#define FORMAT_FRAME_STATE_H

enum {
    FRAME_STATE_HEADER_WORDS = 2,
    FRAME_STATE_FRAME_WORDS = 3,
    FRAME_STATE_COUNT_MAX = 0xFFFF, /* of frames, values, locals, entries of a stack */
    FRAME_STATE_COUNT_BITS = 16,
    FRAME_STATE_FLAGS_SHIFT = 32,
    FRAME_STATE_VERSION_MASK = 0xFF
};

enum frame_state_slot_kind {
    FRAME_STATE_DEAD,
    FRAME_STATE_VALUE,
    FRAME_STATE_NUMBER,
    FRAME_STATE_BYTES
};

/* Fields of a slot: the lowest bit of each, and how many there are. */
enum {
    SLOT_KIND_BITS = 2,
    SLOT_TYPE_SHIFT = 2,
    SLOT_TYPE_BITS = 4,
    SLOT_PARAMETER_SHIFT = 6,
    SLOT_PARAMETER_BITS = 8,
    SLOT_NUMBER_SHIFT = 14, /* a small number, up to the highest bit */
    SLOT_VALUE_SHIFT = 14,
    SLOT_VALUE_BITS = 16,
    SLOT_ELEMENTS_SHIFT = 30,
    SLOT_ELEMENTS_BITS = 7,
    SLOT_BITS = 37 /* all of them, but for a small number */
};

#endif
