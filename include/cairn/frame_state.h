/*
 * cairn/frame_state.h - reconstruction of interpreter frames from a frame of compiled code.
 *
 * A frame of compiled code may correspond to several frames of the interpreter: that of the
 * function itself, and those of the functions that were inlined into it. The code generator
 * describes their contents in the live values of each site at which compiled code may be left (with
 * LLVM: cairn_build_guard and cairn_frame_state_encode, cairn/llvm.h). Such a description is a
 * frame state. The handler of an exit fills the interpreter's frames from it:
 *
 *     static bool begin(const struct cairn_interpreter_frame *from, uint32_t index,
 *                       struct cairn_frame_slots *slots, void *interpreter)
 *     {
 *         struct frame *to = push_frame(interpreter, from->function, from->position);
 *         if (to == NULL)
 *             return false;
 *         *slots = (struct cairn_frame_slots){to->locals, to->stack};
 *         return true;
 *     }
 *
 *     const struct cairn_frame_writer writer = {.begin = begin, .user = interpreter};
 *     struct cairn_frame_state state;
 *     status = cairn_frame_state_read(&call->frame, call->record, 0, &state, &error);
 *     if (status == CAIRN_OK)
 *         status = cairn_frame_state_write(&state, &writer, &error);
 *
 * Frame states can be read at patch points, in the shadows of stack maps and at statepoints, and in
 * all frames of a stack whose values can be read (cairn/frame.h).
 *
 * COST. All that the code generator knows is a constant in the record: functions, positions,
 * counts, types, and values that are constants themselves. It takes no registers and no
 * instructions. A value that is in several slots is recorded once. A dead local, which the
 * interpreter writes before it reads it, takes one number. Each number and each value is one
 * location: 12 bytes in LLVM's section and 4 in Cairn's table; a number of more than 32 bits takes
 * 8 more, once in its module. A declaration takes 16 bytes for each.
 *
 * INLINING. A front end that inlines functions knows all frames, and writes them into one state.
 * LLVM's inliner does not know about frame states. It copies patch points and stack maps with their
 * states into the caller, but then no state describes the caller's frame; so functions with such
 * sites should be `noinline`. If it copies a call with a "deopt" bundle, it inserts the values of
 * the inlined call's "deopt" bundle at the start of the copy's bundle. So a statepoint may have
 * several states, one after the other, the outermost frames first. The next state begins at live
 * value number `next_live_value`, if that is less than cairn_record_live_value_count.
 *
 * All functions are async-signal-safe, take no locks, and allocate nothing; cairn_frame_state_write
 * is as async-signal-safe as the functions that it calls.
 *
 * ENCODING, for code generators that write states themselves. A state is a sequence of live values.
 * It may follow live values of the host. Its first live values are words: integer constants of 64
 * bits, or narrower ones, which are sign-extended. Bits are numbered from the lowest one, 0.
 *
 * | word | contents |
 * | --- | --- |
 * | 0 | 0xCA1201: CAIRN_FRAME_STATE_MAGIC with CAIRN_FRAME_STATE_VERSION in its lowest 8 bits |
 * | 1 | 16 bits: number of frames; 16 bits: number of values; 32 bits: zero |
 * | for each frame, the outermost first: | |
 * | 0 | the host's number of the function |
 * | 1 | the position in it |
 * | 2 | 16 bits: number of locals; 16 bits: height of the operand stack; 32 bits: host's flags |
 * | from 3 | a slot for each local, then for each entry of the operand stack, the lowest first |
 *
 * The words are followed by the values, of any types. Slots refer to values by number, from 0. The
 * words of a valid state determine its length, so any live values may follow it.
 *
 * | bits of a slot | contents |
 * | --- | --- |
 * | 0 to 1 | 0: dead, the whole slot is zero; 1: a value; 2: a small number; 3: bytes |
 * | 2 to 5 | the kind of its type, or of a vector's elements: enum cairn_type_kind |
 * | 6 to 13 | for an integer, its bits less 1 (1 to 256 bits); for a pointer, its address space |
 * | value, bytes: 14 to 29 | the number of the value, or of the first one that holds the bytes |
 * | value, bytes: 30 to 36 | the number of elements of a vector; 0: a scalar |
 * | value, bytes: 37 to 63 | zero |
 * | small number: 14 to 63 | the value's bits, sign-extended |
 *
 * Small numbers are integers, and other scalars of up to 64 bits.
 *
 * A value has the place that the record gives for it, and the type that the slot gives. So a scalar
 * constant of up to 64 bits, such as a double, can be an integer constant with the same bits, which
 * takes no register. Bytes are for larger constants: as many integer constants of 64 bits as are
 * needed. They hold the bytes of a struct cairn_value, the lowest byte first, except that each
 * element (or the scalar) begins with its least significant byte on machines of either byte order.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_FRAME_STATE_H
#define CAIRN_FRAME_STATE_H

#include <cairn/frame.h>
#include <cairn/status.h>
#include <cairn/table.h>
#include <cairn/value.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CAIRN_FRAME_STATE_MAGIC = 0xCA1200, CAIRN_FRAME_STATE_VERSION = 1 };

/**
 * A stack of interpreter frames in the live values of a record. A plain struct with a pointer to
 * the frame that it was read from: valid until that frame is changed to its caller, or no longer
 * exists.
 */
struct cairn_frame_state {
    uint32_t frame_count;     /**< at least 1; number 0 is the outermost frame */
    uint32_t next_live_value; /**< number of the live value that follows the state */

    /* Internal: numbers of locations of the record. */
    const struct cairn_frame *frame;
    struct cairn_record record;
    uint32_t first_word;
    uint32_t first_value;
    uint32_t value_count;
};

/** An interpreter frame. */
struct cairn_interpreter_frame {
    uint64_t function;    /**< the host's number of the function */
    uint64_t position;    /**< the position in it */
    uint32_t flags;       /**< the host's flags */
    uint32_t local_count; /**< number of locals */
    uint32_t stack_count; /**< number of entries of the operand stack */

    /* Internal: the location of the first local. */
    uint32_t first_slot;
};

/**
 * Reads the state that begins at live value number `first_live_value` of the frame's record, and
 * checks all of its words. If the record has no declaration, `first_live_value` is the number of a
 * location.
 *
 * Errors: CORRUPT (there is no state, or an invalid one), VERSION (this Cairn does not support its
 * version), RANGE (there are no live values from that number on). The message names the live value
 * and what was expected. `*state` is unchanged after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_read(const struct cairn_frame *frame,
                                                                    struct cairn_record record,
                                                                    uint32_t first_live_value,
                                                                    struct cairn_frame_state *state,
                                                                    struct cairn_error *error);

/** Returns interpreter frame number `index`; the outermost one is 0. Errors: RANGE if there is no
 *  such frame. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_frame(
    const struct cairn_frame_state *state, uint32_t index, struct cairn_interpreter_frame *found,
    struct cairn_error *error);

/**
 * Reads a slot of an interpreter frame from cairn_frame_state_frame: its locals have the numbers
 * from 0, and the entries of its operand stack the numbers from `local_count`, the lowest entry
 * first. A dead local has the type void (`value->type.kind` is CAIRN_TYPE_VOID).
 *
 * Errors: RANGE if there is no such slot; NOT_FOUND if the value is in a register that is not known
 * in this frame; UNSUPPORTED if the value cannot be read from its place. The last two are as for
 * cairn_frame_value. `*value` is unchanged after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_value(
    const struct cairn_frame_state *state, const struct cairn_interpreter_frame *in, uint32_t index,
    struct cairn_value *value, struct cairn_error *error);

/* ---- Filling the interpreter's frames ---- */

/** Where the slots of an interpreter's frame go, 64 bits each. */
struct cairn_frame_slots {
    uint64_t *locals; /**< space for `local_count` slots; NULL: `value` gets the locals */
    uint64_t *stack;  /**< space for `stack_count` slots; NULL: `value` gets the entries */
};

/** The host's part of cairn_frame_state_write. */
struct cairn_frame_writer {
    /** Makes frame number `index` of the interpreter; the outermost one is 0. Sets `*slots`, which
     *  is NULL before, if the frame's slots are raw: each gets cairn_value_bits of its value.
     *  Returns false to stop, for example if the interpreter has no space for the frame. */
    bool (*begin)(const struct cairn_interpreter_frame *frame, uint32_t index,
                  struct cairn_frame_slots *slots, void *user);
    /** Takes a slot with its type, numbered as for cairn_frame_state_value, after the call of
     *  `begin` for its frame. Returns false to stop. NULL if all frames have raw slots. */
    bool (*value)(const struct cairn_interpreter_frame *frame, uint32_t index,
                  const struct cairn_value *value, void *user);
    void *user; /**< argument of both */
    /** The raw slot of a dead local: a value that the interpreter's garbage collector accepts. */
    uint64_t dead;
};

/**
 * Fills the interpreter's frames with the values of a state: for each frame, the outermost first,
 * calls `begin`, then writes the locals and the operand stack. Takes O(slots) time.
 *
 * Errors: STATE if `begin` or `value` returned false; UNSUPPORTED if a value has more than 64 bits
 * or is a vector, and its slot is raw; ARGUMENT if a frame has slots, and neither space for them
 * nor a function that takes them; others as cairn_frame_state_value. After an error, the host
 * discards the frames that it has begun.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_write(
    const struct cairn_frame_state *state, const struct cairn_frame_writer *writer,
    struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
