/*
 * cairn/frame_state.h - the interpreter's frames, out of one frame of compiled code.
 *
 * Compiled code has one frame where the interpreter would have several: the function's own, and
 * those of the functions that were inlined into it. What they hold is written down by the code
 * generator, in the live values of the site at which compiled code may be left (with LLVM:
 * cairn_frame_state_encode, cairn/llvm.h), and read here:
 *
 *     struct cairn_frame_state state;
 *     struct cairn_interpreter_frame from;
 *     status = cairn_frame_state_read(&deopt->frame, deopt->record, 0, &state, &error);
 *     for (uint32_t i = 0; status == CAIRN_OK && i < state.frame_count; i++) {
 *         status = cairn_frame_state_frame(&state, i, &from, &error);
 *         struct frame *to = push_frame(interpreter, from.function, from.position);
 *         for (uint32_t j = 0; status == CAIRN_OK && j < from.local_count; j++)
 *             status = cairn_frame_state_local(&state, &from, j, &to->locals[j], &error);
 *         for (uint32_t j = 0; status == CAIRN_OK && j < from.stack_count; j++)
 *             status = cairn_frame_state_stack(&state, &from, j, &to->stack[j], &error);
 *     }
 *
 * A state works at patch points, in the shadows of stack maps and at statepoints, and in any frame
 * of a stack in which its values can be read: cairn/frame.h says which.
 *
 * WHAT IT COSTS. What the code generator knows is a constant in the record: functions, positions,
 * counts, types, and values that are constants themselves. It takes no register and no
 * instruction. A value that stands in several places is recorded once. A local that is dead, which
 * the interpreter will write before it reads it, costs the one number that says so. Each number
 * and each value is one location: 12 bytes in LLVM's section, and 4 in Cairn's table; a number of
 * more than 32 bits costs 8 more, once in its module. A declaration has 16 bytes for each.
 *
 * WHO INLINES. A front end that inlines knows all frames, and writes them into one state. LLVM's
 * inliner knows nothing of them: it copies patch points and stack maps with their states into the
 * caller, whose frame is then in none, so functions with such sites should be `noinline`. To the
 * "deopt" bundle of a call that it copies it adds that of the call which it inlines, in front: so
 * a statepoint may have several states, one behind the other, the outermost frames first. Read
 * the next one from `next_live_value` on, while that is below cairn_record_live_value_count.
 *
 * All functions here are async-signal-safe, take no lock, and allocate nothing.
 *
 * THE ENCODING, for code generators that write it themselves. A state is a run of live values,
 * behind those of the host's own if there are any, of which the first ones are its words: integer
 * constants, of 64 bits or extended by their sign to 64. Fields are given from bit 0 upwards.
 *
 * | word | what it is |
 * | --- | --- |
 * | 0 | 0xCA1201: CAIRN_FRAME_STATE_MAGIC with CAIRN_FRAME_STATE_VERSION in its lowest 8 bits |
 * | 1 | 16 bits: number of frames; 16 bits: number of values; 32 bits: zero |
 * | of each frame, the outermost first: | |
 * | 0 | the host's number of the function |
 * | 1 | the position in it |
 * | 2 | 16 bits: number of locals; 16 bits: height of the operand stack; 32 bits: host's flags |
 * | then | a slot for each local, and one for each entry of the operand stack, its lowest first |
 *
 * Behind the words stand the values, of any types; slots refer to them by number, from 0. The words
 * of a state that is well-formed say how many there are, so anything may follow.
 *
 * | bits of a slot | what it is |
 * | --- | --- |
 * | 0 to 1 | 0: dead, the whole slot is zero; 1: a value; 2: a small number; 3: bytes |
 * | 2 to 5 | the kind of its type: enum cairn_type_kind, of a scalar or of a vector's elements |
 * | 6 to 13 | of an integer its bits less 1 (1 to 256 bits); of a pointer its address space |
 * | value, bytes: 14 to 29 | the number of the value, or of the first one that holds the bytes |
 * | value, bytes: 30 to 36 | the elements of a vector; 0: a scalar |
 * | value, bytes: 37 to 63 | zero |
 * | small number: 14 to 63 | the value's bits, extended by their sign |
 *
 * Small numbers are integers, and other scalars of up to 64 bits.
 *
 * A value is what the record has at its place, taken for the slot's type. So a scalar constant of
 * up to 64 bits, such as a double, can be an integer constant of the same bits, which takes no
 * register. Bytes are for constants that are larger: as many integer constants of 64 bits as are
 * needed. They hold the bytes as a struct cairn_value has them, lowest first, but that each element
 * (or the scalar) begins with its least significant byte, whatever the byte order of the machine.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_FRAME_STATE_H
#define CAIRN_FRAME_STATE_H

#include <cairn/frame.h>
#include <cairn/status.h>
#include <cairn/table.h>
#include <cairn/value.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CAIRN_FRAME_STATE_MAGIC = 0xCA1200, CAIRN_FRAME_STATE_VERSION = 1 };

/** A stack of interpreter frames, found in the live values of a record. Plain memory, which points
 * to the frame that it was read from: valid until that frame is moved to its caller, or gone. */
struct cairn_frame_state {
    /** At least 1. Number 0 is the outermost, the last one the one that was being run. */
    uint32_t frame_count;
    /** The live value behind the state's last one. */
    uint32_t next_live_value;

    /* Cairn's own: numbers of locations of the record. */
    const struct cairn_frame *frame;
    struct cairn_record record;
    uint32_t first_word;
    uint32_t first_value;
    uint32_t value_count;
};

/** One of them. */
struct cairn_interpreter_frame {
    /** The host's own, as the code generator has given them. */
    uint64_t function;
    uint64_t position;
    uint32_t flags;
    uint32_t local_count;
    /** Entries of the operand stack. */
    uint32_t stack_count;

    /* Cairn's own: the location of the first local. */
    uint32_t first_slot;
};

/**
 * Finds the state in the live values of the frame's record, from number `first_live_value` on, and
 * checks all of its words. Of a record without a declaration, it is the number of a location.
 *
 * CORRUPT: what is there is no state, or one that is damaged; VERSION: a version that this Cairn
 * does not know; RANGE: there are no live values from that number on. The sentence says which live
 * value is wrong, and what it should be. `state` is then as it was.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_read(const struct cairn_frame *frame,
                                                                    struct cairn_record record,
                                                                    uint32_t first_live_value,
                                                                    struct cairn_frame_state *state,
                                                                    struct cairn_error *error);

/** Interpreter frame number `index`, the outermost being 0. RANGE: there is none. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_frame(
    const struct cairn_frame_state *state, uint32_t index, struct cairn_interpreter_frame *found,
    struct cairn_error *error);

/**
 * A local of an interpreter frame that cairn_frame_state_frame has found. One that is dead is of
 * type void (`value->type.kind` is CAIRN_TYPE_VOID).
 *
 * RANGE: there is none. NOT_FOUND: the value is in a register that the frame does not have any
 * more; UNSUPPORTED: it is not represented where it was recorded to be: both as cairn_frame_value
 * has it. `value` is then as it was.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_local(
    const struct cairn_frame_state *state, const struct cairn_interpreter_frame *in, uint32_t index,
    struct cairn_value *value, struct cairn_error *error);

/** An entry of its operand stack, the lowest being 0; as a local. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_stack(
    const struct cairn_frame_state *state, const struct cairn_interpreter_frame *in, uint32_t index,
    struct cairn_value *value, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
