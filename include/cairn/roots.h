/*
 * cairn/roots.h - what a collector needs of frames that wait at a statepoint: the pointers into its
 * heap, and to change them.
 *
 * A collector begins with the frame that called it, and goes to the callers:
 *
 *     static void collect(struct cairn_deopt *deopt, void *user)
 *     {
 *         struct cairn_frame frame = deopt->frame;
 *         struct cairn_record record;
 *         do {
 *             if (cairn_frame_record(&frame, &record))
 *                 status = cairn_frame_relocate(&frame, record, copy_object, user, &error);
 *             status = cairn_frame_caller(&frame, &error);
 *         } while (status == CAIRN_OK && frame.module != NULL);
 *     }
 *
 * GETTING THERE. Let statepoints call an exit (cairn/deopt.h): declare a function, call it where
 * the code may be collected, and map it to the exit's target before the code is loaded:
 *
 *     cairn_exit_create(runtime, collect, heap, &exit, &error)
 *     LLVMAddGlobalMapping(llvm_engine, poll, (void *)(uintptr_t)cairn_exit_target(exit))
 *
 * The handler then has the frame at once. The functions need the attribute `uwtable`, for their
 * callers to be found, and each statepoint a declaration, from which Cairn knows that its call
 * returns to its record: so IDs of their own (cairn_number_statepoints in cairn/llvm.h). Where
 * compiled code has called C code that has called compiled code, the walk ends: a host keeps the
 * frame of each exit that it calls compiled code from, and goes on with that.
 *
 * BASE AND DERIVED. LLVM records pairs: a derived pointer may point into an object, and its base to
 * where the object begins. Often they are one place. The same base comes with several derived
 * pointers, and a place, or a pair, more than once. So the distance of a derived pointer has to be
 * taken before its base is changed, and no object may be moved twice. cairn_frame_relocate does it
 * right; a collector that does it himself with cairn_frame_roots has to, too.
 *
 * WHERE ROOTS ARE. On the stack; and, if LLVM was told so (-fixup-allow-gcptr-in-csr), in registers
 * that calls leave as they are: then they are changed where the frame's register lives. Constants,
 * such as null, are no roots. Deopt values that are pointers into the heap are roots too: LLVM
 * keeps them in the same places, so after cairn_frame_relocate they are what they should be.
 *
 * Source: LLVM, "Garbage Collection Safepoints in LLVM", sections Stack Map Format and Base &
 * Derived Pointers.
 *
 * All functions are async-signal-safe, take no lock and allocate nothing. They return
 *
 * - ARGUMENT: the record is not a statepoint's, or something is missing;
 * - CORRUPT: its locations are not a statepoint's, or a root is where no frame keeps one;
 * - NOT_FOUND: a root is in a register of which nobody knows where this frame has it;
 * - UNSUPPORTED: a root is not of 8 bytes, as vectors of pointers are;
 *
 * and then nothing was changed.
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

/** Places of two pointers, on the stack or in the frame's context: valid as the frame is. They may
 *  be the same place. */
struct cairn_root {
    void **base;
    void **derived;
};

/** What moves an object: gets its address, and returns its new one, which may be the same. */
typedef void *cairn_root_mover(void *object, void *user);

/**
 * Moves what the frame's statepoint keeps alive: calls `move` once for each different place of a
 * base pointer that is not null, in no particular order, and writes what it returns there; derived
 * pointers keep their distance to their base. Two places may have the same object: `move` has to
 * give the same answer for it again. `record` is the frame's (cairn_frame_record).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_relocate(struct cairn_frame *frame,
                                                                  struct cairn_record record,
                                                                  cairn_root_mover *move,
                                                                  void *user,
                                                                  struct cairn_error *error);

/** The pairs of which neither is a constant, in LLVM's order, with all that comes more than once:
 *  writes up to `capacity` of them to `roots` (may be NULL if `capacity` is 0), and to `count` how
 *  many there are in all. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_roots(const struct cairn_frame *frame,
                                                               struct cairn_record record,
                                                               struct cairn_root *roots,
                                                               size_t capacity, size_t *count,
                                                               struct cairn_error *error);

/** The addresses of the allocas that the statepoint was given ("gc-live" allocas), in LLVM's order.
 *  What is in them the host knows. Otherwise as cairn_frame_roots. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_allocas(const struct cairn_frame *frame,
                                                                 struct cairn_record record,
                                                                 void **addresses, size_t capacity,
                                                                 size_t *count,
                                                                 struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
