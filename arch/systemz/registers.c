/*
 * SystemZ: names of DWARF register numbers.
 *
 * Source: ELF Application Binary Interface s390x Supplement, section "DWARF Register Number
 * Mapping".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/registers.h"

static const char names[][ARCH_REGISTER_NAME_BYTES] = {
    [0] = "r0", "r1",  "r2",  "r3",  "r4",  "r5",  "r6",  "r7",  "r8",         "r9",  "r10", "r11",
    "r12",      "r13", "r14", "r15", "f0",  "f2",  "f4",  "f6",  "f1",         "f3",  "f5",  "f7",
    "f8",       "f10", "f12", "f14", "f9",  "f11", "f13", "f15", [68] = "v16", "v18", "v20", "v22",
    "v17",      "v19", "v21", "v23", "v24", "v26", "v28", "v30", "v25",        "v27", "v29", "v31"};

const struct arch_registers systemz_registers = {
    .names = names,
    .count = sizeof names / sizeof *names,
};
