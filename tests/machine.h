/*
 * What tests of sites write in the host's own instructions: functions with a site in them, as LLVM
 * would emit them. One file for each architecture, machine_<architecture>.c, implements this;
 * functions that return constants come from the architecture's `encode_self_test`.
 *
 * Each function returns how many bytes it has written.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_MACHINE_H
#define TESTS_MACHINE_H

#include <stddef.h>
#include <stdint.h>

enum { MACHINE_ENTER_MAX = 16, MACHINE_PATCHPOINT_MAX = 32 };

/* A function's begin: it has a frame from which calls can be made, and 0 is its result so far. */
extern const uint32_t machine_enter_bytes;
size_t machine_enter(uint8_t *code);

/* What `machine_enter` made is gone; the result is still there. */
size_t machine_leave_frame(uint8_t *code);
size_t machine_return(uint8_t *code);

/* LLVM's call of a patch point, and the size of a patch point that has room for it. */
extern const uint32_t machine_patchpoint_bytes;
size_t machine_call(uint8_t *code, const void *target);

/* From which size on any region can be armed; a smaller size that none can, and why. */
extern const uint32_t machine_region_bytes;
extern const uint32_t machine_region_too_small;
extern const char *const machine_why_too_small;

/* One instruction each: the result becomes `value`, or 1 more. */
size_t machine_set(uint8_t *code, int value);
size_t machine_increment(uint8_t *code);

/* DWARF number of the register that the result is in. */
extern const uint16_t machine_result;

/* What LLVM puts into no patch point: to be written so far before a region's end. A site's reason
 * names it so. */
extern const uint32_t machine_odd_distance;
size_t machine_odd(uint8_t *code);
extern const char *const machine_odd_name;

/* A place to jump to out of a function that LLVM has made with a frame pointer, and with nothing
 * saved besides it and what a call needs: the function returns 77. */
extern const uint8_t machine_leave_llvm_function[] __attribute__((visibility("hidden")));

#endif
