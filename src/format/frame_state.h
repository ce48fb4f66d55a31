/*
 * format/frame_state.h - defines the encoding of a frame state's words, which
 * doc/exits-and-frames.md documents. src/llvm writes the words and src/frame reads them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_FRAME_STATE_H
#define FORMAT_FRAME_STATE_H

enum {
    FRAME_STATE_HEADER_WORDS = 2,
    FRAME_STATE_FRAME_WORDS = 3,
    FRAME_STATE_COUNT_MAX = 0xFFFF, /* maximum number of frames, values, locals, or stack entries */
    FRAME_STATE_COUNT_BITS = 16,
    FRAME_STATE_FLAGS_SHIFT = 32,
    FRAME_STATE_NAMED_SHIFT = 32, /* in the counts of the state: functions are IDs of names */
    FRAME_STATE_VERSION_MASK = 0xFF
};

enum frame_state_slot_kind {
    FRAME_STATE_STORED, /* dead if the type is void: then the slot is zero */
    FRAME_STATE_VALUE,
    FRAME_STATE_NUMBER,
    FRAME_STATE_BYTES
};

/* Fields of a slot: the position of the lowest bit, and the number of bits. */
enum {
    SLOT_KIND_BITS = 2,
    SLOT_TYPE_SHIFT = 2,
    SLOT_TYPE_BITS = 4,
    SLOT_PARAMETER_SHIFT = 6,
    SLOT_PARAMETER_BITS = 8,
    SLOT_NUMBER_SHIFT = 14, /* a small number has all bits from here on */
    SLOT_VALUE_SHIFT = 14,
    SLOT_VALUE_BITS = 16,
    SLOT_ELEMENTS_SHIFT = 30,
    SLOT_ELEMENTS_BITS = 7,
    SLOT_NAME_SHIFT = 37, /* of a slot of kind VALUE: the value is the ID of a name */
    SLOT_BITS = 38        /* total number of bits, except for small numbers */
};

#endif
