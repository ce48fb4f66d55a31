/*
 * cairn/frame_state.h - reconstruction of interpreter frames from a frame of compiled code.
 *
 *     const struct cairn_frame_writer writer = {.begin = push_frame, .user = interpreter};
 *     struct cairn_frame_state state;
 *     status = cairn_frame_state_read(&call->frame, call->record, 0, &state, &error);
 *     if (status == CAIRN_OK)
 *         status = cairn_frame_state_write(&state, &writer, &error);
 *
 * A frame state is a sequence of live values at a site. It describes the interpreter's frames for
 * one compiled frame: the function's own, and one for each function that was inlined into it. With
 * LLVM, cairn_build_guard and cairn_frame_state_encode (cairn/llvm.h) make it. It can be read at
 * patch points, in the shadows of stack maps and at statepoints, and in all frames of a stack.
 *
 * Threads: every function is async-signal-safe, takes no locks, and allocates nothing. The frame's
 * thread may call it, and any thread while that is stopped.
 *
 * See cairn-exits-and-frames(7) (doc/exits-and-frames.md): size, inlining, and the encoding.
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

enum { CAIRN_FRAME_STATE_MAGIC = 0xCA1200, CAIRN_FRAME_STATE_VERSION = 2 };

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
 * Errors: CORRUPT (no state begins there, or it is invalid), VERSION (this Cairn does not support
 * its version), RANGE (`first_live_value` is too large). The message names the live value and what
 * was expected. `*state` is unchanged after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_read(const struct cairn_frame *frame,
                                                                    struct cairn_record record,
                                                                    uint32_t first_live_value,
                                                                    struct cairn_frame_state *state,
                                                                    struct cairn_error *error);

/** Returns interpreter frame number `index`; the outermost one is 0. Errors: RANGE if `index` is
 *  too large. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_frame(
    const struct cairn_frame_state *state, uint32_t index, struct cairn_interpreter_frame *found,
    struct cairn_error *error);

/**
 * Reads a slot of an interpreter frame from cairn_frame_state_frame: its locals have the numbers
 * from 0, and the entries of its operand stack the numbers from `local_count`, the lowest entry
 * first. A dead local has the type void (`value->type.kind` is CAIRN_TYPE_VOID).
 *
 * Errors: RANGE if `index` is too large; NOT_FOUND if the value is in a register that is not known
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
 *
 * Threads: as async-signal-safe as the functions that it calls. The frame's thread may call it, and
 * any thread while that is stopped.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_write(
    const struct cairn_frame_state *state, const struct cairn_frame_writer *writer,
    struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
