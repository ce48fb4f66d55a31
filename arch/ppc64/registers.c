/*
 * PPC64: names of DWARF register numbers.
 *
 * Source: 64-Bit ELF V2 ABI Specification, section "DWARF Register Number Mapping", and LLVM,
 * lib/Target/PowerPC/PPCRegisterInfo.td for 1200 and up.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/registers.h"

static const char names[][ARCH_REGISTER_NAME_BYTES] = {
    [0] = "r0", "r1",  "r2",   "r3",  "r4",  "r5",  "r6",  "r7",  "r8",  "r9",  "r10", "r11", "r12",
    "r13",      "r14", "r15",  "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25",
    "r26",      "r27", "r28",  "r29", "r30", "r31", "f0",  "f1",  "f2",  "f3",  "f4",  "f5",  "f6",
    "f7",       "f8",  "f9",   "f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19",
    "f20",      "f21", "f22",  "f23", "f24", "f25", "f26", "f27", "f28", "f29", "f30", "f31", "cr",
    "lr",       "ctr", "vscr", "cr0", "cr1", "cr2", "cr3", "cr4", "cr5", "cr6", "cr7", "xer", "v0",
    "v1",       "v2",  "v3",   "v4",  "v5",  "v6",  "v7",  "v8",  "v9",  "v10", "v11", "v12", "v13",
    "v14",      "v15", "v16",  "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
    "v27",      "v28", "v29",  "v30", "v31"};

const struct arch_registers ppc64_registers = {
    .names = names,
    .count = sizeof names / sizeof *names,
    .lower_halves = 1200,
    .lower_half_count = 32,
};
