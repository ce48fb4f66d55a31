/*
 * cairn/frame.h - frames of compiled code on a stack: their live values, and their callers.
 *
 * A frame is made from a context (cairn/context.h) and moved to its caller, and so on, as long as
 * the callers are code that a runtime has loaded:
 *
 *     struct cairn_frame frame;
 *     status = cairn_frame_interrupted(runtime, &context, &frame, &error);
 *     while (status == CAIRN_OK && frame.module != NULL) {
 *         use(&frame);
 *         status = cairn_frame_caller(&frame, &error);
 *     }
 *
 * RECORDS. A frame that was interrupted has a record where the code generator has put one at the
 * instruction that comes next. A frame that waits for a call has one where a record has the call's
 * return address (cairn_record_return_address): that of the statepoint or patch point which makes
 * the call; otherwise a declared stack map that is at the address of the call instruction itself,
 * with nothing in between. So a stack map without a shadow, directly before a call, describes the
 * frame while that call runs. It does not if instructions that pass arguments or load the callee's
 * address are between the two, or if one of its values is in the register in which the call leaves
 * its return address. A stack map at the return address describes what follows the call, and is not
 * found for a frame that waits. What LLVM recorded holds at the record's address only.
 *
 * WHICH VALUES CAN BE READ. In the innermost frame all. In a frame that waits for a call, those in
 * memory, constants, and those in registers that calls leave as they are; of the others the callee
 * may have made anything, and reading them is refused. So the live values of a patch point whose
 * target has been called may be gone, while those of a statepoint survive its call: LLVM keeps them
 * where they do.
 *
 * Vectors that LLVM has spilled are read on PPC64 in little-endian order as code for POWER8 has
 * them, which is what LLVM's JIT makes. Where a function asks for POWER9 or later ("target-cpu"),
 * their halves are the other way round, and nothing in the record says so: such functions should
 * keep pointers to vectors live instead.
 *
 * WRITING. A value is written where LLVM's code will look for it: into the context of the innermost
 * frame, or into the stack, where some frame further in has saved the register for its caller.
 *
 * A frame is plain memory that points to the context, into the stack and to the module. It can be
 * copied, and is valid until the thread whose stack it is goes on. A thread reads its own frames,
 * or those of a thread that is stopped. All functions here are async-signal-safe, take no lock, and
 * allocate nothing; those that say why they refuse format a sentence, unless `error` is NULL.
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

enum { CAIRN_FRAME_SLOTS = 80 };

struct cairn_frame {
    const cairn_runtime *runtime;
    /** The module whose code it is; NULL for a frame of other code, where walking ends. */
    cairn_module *module;
    /** The instruction that comes next, or the address that the call returns to. */
    uint64_t pc;
    /** The stack pointer at `pc`. */
    uint64_t sp;
    /** The frame waits for a call. */
    bool is_calling;
    /** The frame is the context's: all of the context's registers are its own. */
    bool is_innermost;

    /* Cairn's own: where the registers are that calls leave as they are. NULL: nobody knows. */
    struct cairn_context *context;
    void *slots[CAIRN_FRAME_SLOTS];
};

/* ---- Making one ---- */

/** The frame of a thread that was interrupted: the context's program counter is the instruction
 *  that comes next. `context` stays the caller's, and is what values are written to. The frame's
 *  module is NULL if the program counter is in no published module. NOT_FOUND if the context has
 *  no stack pointer. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_interrupted(const cairn_runtime *runtime,
                                                                     struct cairn_context *context,
                                                                     struct cairn_frame *frame,
                                                                     struct cairn_error *error);

/** The same for a thread that has called: the program counter is where the call returns to. So it
 *  is in contexts of Cairn's exits and of cairn_context_capture. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_calling(const cairn_runtime *runtime,
                                                                 struct cairn_context *context,
                                                                 struct cairn_frame *frame,
                                                                 struct cairn_error *error);

/* ---- Walking ---- */

/**
 * Moves to the caller, whose module is NULL if it is not code of the runtime: its pc, sp and
 * registers are then known, and it is the end of the walk as far as Cairn knows. Needs the unwind
 * rules that LLVM writes for functions with the attribute `uwtable`.
 *
 * NOT_FOUND: the function has no unwind rules (the sentence says which attribute is missing), or
 * the frame is of other code. UNSUPPORTED: its rules are such as Cairn cannot follow; the sentence
 * says which. CORRUPT: the stack does not look like one. The frame stays as it was.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_caller(struct cairn_frame *frame,
                                                                struct cairn_error *error);

/* ---- What is known of it ---- */

/** The frame's first record (RECORDS above); false if it has no record. */
CAIRN_API bool cairn_frame_record(const struct cairn_frame *frame, struct cairn_record *record);

/** The function that the frame is of; false if nothing tells of it. */
CAIRN_API bool cairn_frame_function(const struct cairn_frame *frame,
                                    struct cairn_function *function);

/** A register of the frame, by DWARF number, or its part: as cairn_context_read. NOT_FOUND if its
 *  value in this frame is not known. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_read(const struct cairn_frame *frame,
                                                              uint16_t dwarf, void *value,
                                                              size_t size,
                                                              struct cairn_error *error);

/* ---- Live values ---- */

/** How many live values the record's declaration names; 0 if it has none. */
CAIRN_API uint32_t cairn_record_live_value_count(struct cairn_record record);

/**
 * Live value number `index` of the frame's record, of the type that was declared. Of a statepoint,
 * its deopt values.
 *
 * RANGE: there is no such value. NOT_FOUND: the record has no declaration, or the value is in a
 * register that this frame does not have any more. CORRUPT: the record has not as many locations
 * as the declaration says. UNSUPPORTED: a value of the type is not represented where LLVM put it;
 * the sentence names both. `value` is then as it was.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_value(const struct cairn_frame *frame,
                                                               struct cairn_record record,
                                                               uint32_t index,
                                                               struct cairn_value *value,
                                                               struct cairn_error *error);

/**
 * Live values number `first` to `first` + `count` - 1 into `values`: what as many calls of
 * cairn_frame_value give, in a fraction of their time. Where one of them cannot be read none is
 * given: `values` are then as they were if the record has not all of them, and otherwise all zero,
 * of type void. `values` may be NULL if `count` is 0.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_values(const struct cairn_frame *frame,
                                                                struct cairn_record record,
                                                                uint32_t first, uint32_t count,
                                                                struct cairn_value *values,
                                                                struct cairn_error *error);

/** Changes a live value, which has to be of the declared type (ARGUMENT; the sentence names both).
 *  UNSUPPORTED: LLVM's code has it as a constant, or as an address in the frame. Others as above;
 *  nothing was changed. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_set_value(struct cairn_frame *frame,
                                                                   struct cairn_record record,
                                                                   uint32_t index,
                                                                   const struct cairn_value *value,
                                                                   struct cairn_error *error);

/** Argument number `index` of an anyregcc patch point, whose record has them. As above; NOT_FOUND
 *  for other records: their arguments are where the calling convention says. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_argument(const struct cairn_frame *frame,
                                                                  struct cairn_record record,
                                                                  uint32_t index,
                                                                  struct cairn_value *value,
                                                                  struct cairn_error *error);

/** What is at any location of the record, taken for a value of `type`: for records without a
 *  declaration. NOT_FOUND, UNSUPPORTED as above. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_at_location(
    const struct cairn_frame *frame, struct cairn_location location, struct cairn_type type,
    struct cairn_value *value, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
