/*
 * SystemZ: names of DWARF register numbers.
 *
 * Source: ELF Application Binary Interface s390x Supplement, section "DWARF Register Number
 * Mapping".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/systemz/target.h"

static const char *const names[] = {
    [0] = "r0",   [1] = "r1",   [2] = "r2",   [3] = "r3",   [4] = "r4",   [5] = "r5",
    [6] = "r6",   [7] = "r7",   [8] = "r8",   [9] = "r9",   [10] = "r10", [11] = "r11",
    [12] = "r12", [13] = "r13", [14] = "r14", [15] = "r15", [16] = "f0",  [17] = "f2",
    [18] = "f4",  [19] = "f6",  [20] = "f1",  [21] = "f3",  [22] = "f5",  [23] = "f7",
    [24] = "f8",  [25] = "f10", [26] = "f12", [27] = "f14", [28] = "f9",  [29] = "f11",
    [30] = "f13", [31] = "f15", [68] = "v16", [69] = "v18", [70] = "v20", [71] = "v22",
    [72] = "v17", [73] = "v19", [74] = "v21", [75] = "v23", [76] = "v24", [77] = "v26",
    [78] = "v28", [79] = "v30", [80] = "v25", [81] = "v27", [82] = "v29", [83] = "v31",
};

const char *systemz_register_name(uint16_t dwarf)
{
    return dwarf < sizeof names / sizeof *names ? names[dwarf] : NULL;
}
