/*
 * AArch64: names of DWARF register numbers.
 *
 * Source: DWARF for the Arm 64-bit Architecture (AArch64), section "DWARF register names".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/registers.h"

static const char names[][ARCH_REGISTER_NAME_BYTES] = {
    [0] = "x0", "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
    "x11",      "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
    "x22",      "x23", "x24", "x25", "x26", "x27", "x28", "fp",  "lr",  "sp",  [64] = "v0",
    "v1",       "v2",  "v3",  "v4",  "v5",  "v6",  "v7",  "v8",  "v9",  "v10", "v11",
    "v12",      "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
    "v23",      "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"};

const struct arch_registers aarch64_registers = {
    .names = names,
    .count = sizeof names / sizeof *names,
};
