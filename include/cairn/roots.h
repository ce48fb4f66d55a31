/*
 * cairn/roots.h - GC roots of frames: reading and relocating them.
 *
 * HOSTS THAT MOVE OBJECTS need statepoints, because LLVM must load each reference again after a
 * collection. A collector begins with the frame that called it, and continues with the callers:
 *
 *     static void collect(struct cairn_exit_call *call, void *user)
 *     {
 *         struct cairn_frame frame = call->frame;
 *         struct cairn_record record;
 *         do {
 *             if (cairn_frame_record(&frame, &record))
 *                 status = cairn_frame_relocate(&frame, record, copy_object, user, &error);
 *             status = cairn_frame_caller(&frame, &error);
 *         } while (status == CAIRN_OK && frame.module != NULL);
 *     }
 *
 * CALLING THE COLLECTOR. Let statepoints call an exit (cairn/exit.h): declare a function, call it
 * at the places where a collection may happen, and map it to the exit's target before the code is
 * loaded:
 *
 *     cairn_exit_create(runtime, collect, heap, &exit, &error)
 *     LLVMAddGlobalMapping(llvm_engine, poll, (void *)(uintptr_t)cairn_exit_target(exit))
 *
 * The exit's handler then has the frame. Two conditions must hold. The functions need the attribute
 * `uwtable`, so that their callers can be found. Each statepoint needs a declaration, from which
 * Cairn knows that its call returns to its record, and thus a unique ID (cairn_number_statepoints
 * in cairn/llvm.h). The walk above ends where compiled code was called by C code that compiled code
 * has called. A host can keep the frame of each exit from which it calls compiled code, and
 * continue with that frame.
 *
 * HOSTS THAT DO NOT MOVE OBJECTS need no statepoints, and LLVM need not know which values are
 * references: they may be tagged integers. Compiled code keeps them in registers and spill slots,
 * and stores nothing for the collector before a call. The roots of a frame are the values in the
 * frame state (cairn/frame_state.h) of the call that it waits for. This works on all architectures:
 *
 * - Each call and each allocation is a patch point with a frame state (cairn_frame_state_encode),
 *   which has the caller's slots during the call: cairn_site_call binds it to the callee, and
 *   allocations and polls to an exit. A reference that the code uses after the call and that is in
 *   no slot, nor in an object that one leads to, needs a slot of its own.
 * - The exit's handler walks from its frame with cairn_walk_next, and reads the record and the
 *   state of each frame. cairn_frame_state_write calls the writer's function `value` for each slot,
 *   which marks the value:
 *
 *       static const struct cairn_frame_writer writer = {.begin = begin, .value = mark};
 *       if (cairn_frame_record(frame, &record))
 *           status = cairn_frame_state_read(frame, record, 0, &state, &error);
 *       if (status == CAIRN_OK)
 *           status = cairn_frame_state_write(&state, &writer, &error);
 *
 * - In the innermost frame, all values can be read. In frames that wait, the record may name a
 *   register that the callee may change (NOT_FOUND): for a value that is not used after the call,
 *   or for a second copy of one that is. What the code uses later is in the frame or in a
 *   callee-saved register. So after NOT_FOUND, the collector marks every word from the frame's `sp`
 *   to its caller's, and every general register that cairn_frame_read returns, that may be the
 *   address of an object.
 * - The interpreter's own frames, and C functions that hold references while they call, are the
 *   host's roots, as without compiled code.
 *
 * examples/mark_sweep.c is a complete program. With statepoints, frame states in "deopt" bundles
 * are read in the same way, and all values can be read: LLVM keeps them where calls do not change
 * them.
 *
 * BASE AND DERIVED POINTERS. LLVM records pairs: a derived pointer may point into an object, and
 * its base pointer points to the start of the object. Both are often in the same place. Several
 * derived pointers may have the same base, and a place, or a pair, may occur several times. So the
 * distance of a derived pointer must be computed before its base is changed, and each base must be
 * changed only once. cairn_frame_relocate ensures both; a collector that uses cairn_frame_roots
 * must ensure both itself.
 *
 * PLACES OF ROOTS. Roots are on the stack or, if LLVM's option -fixup-allow-gcptr-in-csr is used,
 * in callee-saved registers; a register is changed where its value for the frame was saved.
 * Constants, such as null, are not roots. Deopt values that are pointers into the heap are roots,
 * too: LLVM keeps them in the same places, so cairn_frame_relocate changes them as well. Cairn does
 * not know the contents of allocas that were passed to the statepoint ("gc-live" allocas). The
 * address of alloca `i` is the value of its location, for a struct cairn_statepoint `decoded`:
 *
 *     location = cairn_record_location(record, decoded.first_alloca + i);
 *     status = cairn_frame_at_location(&frame, location, CAIRN_POINTER, &address, &error);
 *
 * Source: LLVM, "Garbage Collection Safepoints in LLVM", sections Stack Map Format and Base &
 * Derived Pointers.
 *
 * All functions are async-signal-safe, take no locks, and allocate nothing.
 *
 * Errors of all functions, after which nothing was changed:
 *
 * - ARGUMENT: the record is not a statepoint's, or an argument is NULL;
 * - CORRUPT: the locations are not a statepoint's, or a root is at a place that is not part of a
 *   frame;
 * - NOT_FOUND: a root is in a register whose place is not known for this frame;
 * - UNSUPPORTED: the size of a root is not 8 bytes, such as a vector of pointers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_ROOTS_H
#define CAIRN_ROOTS_H

#include <cairn/frame.h>
#include <cairn/status.h>
#include <cairn/table.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The places of a pair of pointers, on the stack or in the frame's context: valid as long as the
 *  frame. Both may be the same place. */
struct cairn_root {
    void **base;
    void **derived;
};

/** Moves an object and returns its new address, which may be unchanged. */
typedef void *cairn_root_mover(void *object, void *user);

/**
 * Relocates the roots of the frame's statepoint. Calls `move` once for each different place of a
 * base pointer that is not null, in unspecified order, and writes the result to the place. Derived
 * pointers keep their distance from their base. If two places hold the same object, `move` is
 * called twice, and must return the same address. `record` is the record of the frame
 * (cairn_frame_record).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_relocate(struct cairn_frame *frame,
                                                                  struct cairn_record record,
                                                                  cairn_root_mover *move,
                                                                  void *user,
                                                                  struct cairn_error *error);

/**
 * Returns the pairs without constants, in LLVM's order, including duplicates. Writes up to
 * `capacity` of them to `roots`, which may be NULL if `capacity` is 0, and the number of all pairs
 * to `*count`.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_roots(const struct cairn_frame *frame,
                                                               struct cairn_record record,
                                                               struct cairn_root *roots,
                                                               size_t capacity, size_t *count,
                                                               struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
