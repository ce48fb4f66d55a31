/*
 * tests/process_frames.h - this process's own stack: tables of unwind rules for the program and its
 * libraries, and the frames that the system's unwinder finds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_PROCESS_FRAMES_H
#define TESTS_PROCESS_FRAMES_H

#include "unwind_apply.h"

enum { PROCESS_FRAMES_MAX = 64 };

/* A frame that is suspended at a call. Slots of registers that the system's unwinder does not
 * report are 0. */
struct process_frame {
    uint64_t pc;
    uint64_t slots[ARCH_UNWIND_SLOTS_MAX];
};

/* Writes the frames that the system's unwinder finds, beginning with the caller's. Returns their
 * number. */
size_t process_frames_reference(struct process_frame *frames);

struct process_tables;
struct process_tables *process_tables_create(void);
void process_tables_destroy(struct process_tables *tables);

/* Replaces a frame by its caller's frame. Fails the test if there is no rule for it. */
void process_frame_step(const struct process_tables *tables, struct process_frame *frame);

/* Does the same by the rules of one table. */
void process_frame_step_by(const struct unwind *table, struct process_frame *frame);

/* Compares the values that the system's unwinder reports. Fails the test if they differ. */
void process_frame_assert_same(const struct process_frame *found,
                               const struct process_frame *expected);

#endif
