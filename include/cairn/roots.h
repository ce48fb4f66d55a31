/*
 * cairn/roots.h - GC roots of frames: reading and relocating them.
 *
 *     if (cairn_frame_record(&frame, &record))
 *         status = cairn_frame_relocate(&frame, record, copy_object, heap, &error);
 *
 * The roots of a frame are the pointers that its statepoint records: pairs of a derived pointer and
 * its base pointer. Collectors that do not move objects need no statepoints: they visit the values
 * of frame states (cairn/frame_state.h).
 *
 * Threads: every function is async-signal-safe, takes no locks, and allocates nothing. The frame's
 * thread may call it, and any thread while that is stopped.
 *
 * Errors, after which nothing was changed:
 * ARGUMENT: the record is not a statepoint's, or an argument is NULL.
 * CORRUPT: the locations are not a statepoint's, or the place of a root is not part of a frame.
 * NOT_FOUND: a root is in a register whose place is not known for this frame.
 * UNSUPPORTED: the size of a root is not 8 bytes, such as a vector of pointers.
 *
 * See cairn-walks-and-roots(7) (doc/walks-and-roots.md): both kinds of collectors.
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
