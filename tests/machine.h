/*
 * Functions with a site, in the host's instructions, as LLVM would emit them, for the tests of
 * sites. Each architecture implements this file in machine_<architecture>.c. Functions that return
 * constants come from the architecture's `encode_self_test`.
 *
 * Each function returns the number of bytes that it has written.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_MACHINE_H
#define TESTS_MACHINE_H

#include <stddef.h>
#include <stdint.h>

enum { MACHINE_ENTER_MAX = 16, MACHINE_PATCHPOINT_MAX = 32 };

/* Writes the begin of a function: it makes a frame from which calls are possible, and sets the
 * result to 0. */
extern const uint32_t machine_enter_bytes;
size_t machine_enter(uint8_t *code);

/* Removes the frame of `machine_enter`. The result is unchanged. */
size_t machine_leave_frame(uint8_t *code);
size_t machine_return(uint8_t *code);

/* Writes LLVM's call of a patch point; and the size of a patch point that has space for it. */
extern const uint32_t machine_patchpoint_bytes;
size_t machine_call(uint8_t *code, const void *target);

/* Every region of at least the first size can be armed. No region of the second size can, for the
 * given reason. */
extern const uint32_t machine_region_bytes;
extern const uint32_t machine_region_too_small;
extern const char *const machine_why_too_small;

/* Write one instruction each: set the result to `value`, or add 1 to it. */
size_t machine_set(uint8_t *code, int value);
size_t machine_increment(uint8_t *code);

/* DWARF number of the result register. */
extern const uint16_t machine_result;

/* Writes an instruction that LLVM emits in no patch point. It must be written this many bytes
 * before the end of a region. The site's reason contains the name. */
extern const uint32_t machine_odd_distance;
size_t machine_odd(uint8_t *code);
extern const char *const machine_odd_name;

/* A jump target that leaves a function of LLVM's that has a frame pointer and has saved nothing
 * except the frame pointer and the return address. The function returns 77. */
extern const uint8_t machine_leave_llvm_function[] __attribute__((visibility("hidden")));

#endif
