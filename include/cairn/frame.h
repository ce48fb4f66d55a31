/*
 * cairn/frame.h - frames of compiled code on a stack: their live values, and their callers.
 *
 *     struct cairn_value value;
 *     status = cairn_frame_value(&call->frame, call->record, 0, &value, &error);
 *
 * The handler of an exit (cairn/exit.h) gets a frame and the record of the site. Elsewhere, the
 * host makes a frame from a context (cairn_frame_from_context), and moves it from caller to caller
 * (cairn_frame_caller). cairn/walk.h walks over a whole stack.
 *
 * A frame is plain data, and may be copied. It contains pointers to the context, to the stack and
 * to the module, and is valid until the thread of the stack resumes. Frames of a retired module are
 * like others until a grace period frees it (cairn/runtime.h).
 *
 * Threads: a thread may access its own frames, or the frames of a stopped thread. Every function is
 * async-signal-safe and lock-free, and allocates nothing. If `error` is not NULL, it formats a
 * message.
 *
 * See cairn-exits-and-frames(7) (doc/exits-and-frames.md): records of frames, values that can be
 * read.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_FRAME_H
#define CAIRN_FRAME_H

#include <cairn/context.h>
#include <cairn/module.h>
#include <cairn/status.h>
#include <cairn/table.h>
#include <cairn/value.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Size of the part of a frame that is Cairn's. */
enum { CAIRN_FRAME_PRIVATE_WORDS = 80 };

/** A frame. */
struct cairn_frame {
    const cairn_runtime *runtime;
    /** The module of the frame's code, which may be retired; NULL for a foreign frame. */
    cairn_module *module;
    uint64_t pc;       /**< the next instruction, or the return address of the pending call */
    uint64_t sp;       /**< the stack pointer at `pc` */
    bool is_calling;   /**< the frame waits for a call */
    bool is_innermost; /**< the frame is the context's, which has all its registers */
    struct cairn_context *context; /**< of the innermost frame */
    /** The places of the registers. Only Cairn's functions may access them. */
    void *private_words[CAIRN_FRAME_PRIVATE_WORDS];
};

/* ---- Making a frame, and walking ---- */

/**
 * Makes the frame of a thread from its context. If `is_calling` is true, the thread has made a
 * call, and the context's program counter is the call's return address, as in contexts of
 * cairn_context_save. Otherwise the thread was interrupted, and it is the next instruction. If that
 * is in code of Cairn's own (an entry, exit, closure, veneer or inline cache), the frame is the
 * caller's.
 *
 * `context` must stay valid as long as the frame; values are written to it. The frame is foreign if
 * the program counter is not in a module that was published and is still in memory. Errors:
 * NOT_FOUND if the context does not hold a stack pointer.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_from_context(const cairn_runtime *runtime,
                                                                      struct cairn_context *context,
                                                                      bool is_calling,
                                                                      struct cairn_frame *frame,
                                                                      struct cairn_error *error);

/**
 * Changes the frame to its caller, which may be a foreign frame.
 *
 * The caller of a module's frame is found by the unwind rules that LLVM generates for functions
 * with the attribute `uwtable`. The caller of a foreign frame is found by the unwind tables of the
 * program and its libraries (cairn/walk.h); after the outermost frame, `pc` is 0.
 *
 * Errors: NOT_FOUND if the function has no unwind rules (the message names the missing attribute),
 * if the code belongs neither to a module nor to a loaded file, or if the rules need a register
 * that is not known; UNSUPPORTED if Cairn does not support the rules; CORRUPT if the rules or the
 * stack are inconsistent. The frame is unchanged after an error.
 *
 * Threads: the frame's thread may call this, and any thread while that is stopped.
 * Async-signal-safe and lock-free; for a foreign frame, only if the C library has _dl_find_object
 * (glibc 2.35).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_caller(struct cairn_frame *frame,
                                                                struct cairn_error *error);

/* ---- Function, record and registers ---- */

/** Finds the function of the frame, as cairn_runtime_find_function does at `pc - is_calling`, also
 *  if its module is retired. Returns false for foreign frames, and between functions. */
CAIRN_API bool cairn_frame_function(const struct cairn_frame *frame,
                                    struct cairn_function *function);

/** Finds the first record of the frame. An interrupted frame has the record at its next
 *  instruction, a frame that waits for a call the record of that call (cairn-exits-and-frames(7)).
 *  Returns false if the frame has no record. */
CAIRN_API bool cairn_frame_record(const struct cairn_frame *frame, struct cairn_record *record);

/** Reads a register of the frame, or its part, by a number of cairn/context.h. Errors: as
 *  cairn_context_read; NOT_FOUND also if the register's value in this frame is not known. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_read(const struct cairn_frame *frame,
                                                              uint16_t number, void *value,
                                                              size_t size,
                                                              struct cairn_error *error);

/* ---- Live values ---- */

/** Returns the number of live values of a declared record; 0 if it is not declared. The live values
 *  of a statepoint are its deopt values. */
CAIRN_API uint32_t cairn_record_live_value_count(struct cairn_record record);

/**
 * Reads live value number `index` of the frame's record, with its declared type.
 *
 * Errors: RANGE if `index` is too large; NOT_FOUND if the record has no declaration, or if the
 * value is in a register whose value in this frame is not known; CORRUPT if the record does not
 * have the number of locations that its declaration needs; UNSUPPORTED if the location cannot hold
 * a value of this type (the message names both). `value` is unchanged after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_value(const struct cairn_frame *frame,
                                                               struct cairn_record record,
                                                               uint32_t index,
                                                               struct cairn_value *value,
                                                               struct cairn_error *error);

/**
 * Reads `count` live values, starting with number `first`: faster than a call of cairn_frame_value
 * for each. `values` may be NULL if `count` is 0.
 *
 * Errors: as cairn_frame_value. If the record has fewer values, `values` are unchanged after the
 * error; otherwise all of them are zero, of type void.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_values(const struct cairn_frame *frame,
                                                                struct cairn_record record,
                                                                uint32_t first, uint32_t count,
                                                                struct cairn_value *values,
                                                                struct cairn_error *error);

/** Changes a live value. Errors: ARGUMENT if `value` is not of the declared type (the message names
 *  both); UNSUPPORTED if the value is a constant or an address in the frame; others as
 *  cairn_frame_value. Nothing is changed after an error. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_set_value(struct cairn_frame *frame,
                                                                   struct cairn_record record,
                                                                   uint32_t index,
                                                                   const struct cairn_value *value,
                                                                   struct cairn_error *error);

/**
 * Reads the value at a location of the record, which the caller knows to be of this type: for
 * records without a declaration, and for the arguments of anyregcc patch points. The locations of
 * such a record are the result, if there is one, the arguments, and the live values.
 *
 * Errors: NOT_FOUND, UNSUPPORTED as cairn_frame_value.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_at_location(
    const struct cairn_frame *frame, struct cairn_location location, struct cairn_type type,
    struct cairn_value *value, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
