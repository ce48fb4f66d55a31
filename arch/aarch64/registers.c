/*
 * AArch64: names of DWARF register numbers.
 *
 * Source: DWARF for the Arm 64-bit Architecture (AArch64), section "DWARF register names".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/aarch64/target.h"

static const char *const names[] = {
    [0] = "x0",   [1] = "x1",   [2] = "x2",   [3] = "x3",   [4] = "x4",   [5] = "x5",
    [6] = "x6",   [7] = "x7",   [8] = "x8",   [9] = "x9",   [10] = "x10", [11] = "x11",
    [12] = "x12", [13] = "x13", [14] = "x14", [15] = "x15", [16] = "x16", [17] = "x17",
    [18] = "x18", [19] = "x19", [20] = "x20", [21] = "x21", [22] = "x22", [23] = "x23",
    [24] = "x24", [25] = "x25", [26] = "x26", [27] = "x27", [28] = "x28", [29] = "fp",
    [30] = "lr",  [31] = "sp",  [64] = "v0",  [65] = "v1",  [66] = "v2",  [67] = "v3",
    [68] = "v4",  [69] = "v5",  [70] = "v6",  [71] = "v7",  [72] = "v8",  [73] = "v9",
    [74] = "v10", [75] = "v11", [76] = "v12", [77] = "v13", [78] = "v14", [79] = "v15",
    [80] = "v16", [81] = "v17", [82] = "v18", [83] = "v19", [84] = "v20", [85] = "v21",
    [86] = "v22", [87] = "v23", [88] = "v24", [89] = "v25", [90] = "v26", [91] = "v27",
    [92] = "v28", [93] = "v29", [94] = "v30", [95] = "v31",
};

const char *aarch64_register_name(uint16_t dwarf)
{
    return dwarf < sizeof names / sizeof *names ? names[dwarf] : NULL;
}

/* LLVM has no separate numbers for parts of registers. */
uint16_t aarch64_whole_register(uint16_t dwarf) { return dwarf; }
