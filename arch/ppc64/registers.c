/*
 * PPC64: names of DWARF register numbers.
 *
 * Source: 64-Bit ELF V2 ABI Specification, section "DWARF Register Number Mapping", and LLVM,
 * lib/Target/PowerPC/PPCRegisterInfo.td for 1200 and up.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/ppc64/target.h"

static const char *const names[] = {
    [0] = "r0",    [1] = "r1",    [2] = "r2",    [3] = "r3",    [4] = "r4",    [5] = "r5",
    [6] = "r6",    [7] = "r7",    [8] = "r8",    [9] = "r9",    [10] = "r10",  [11] = "r11",
    [12] = "r12",  [13] = "r13",  [14] = "r14",  [15] = "r15",  [16] = "r16",  [17] = "r17",
    [18] = "r18",  [19] = "r19",  [20] = "r20",  [21] = "r21",  [22] = "r22",  [23] = "r23",
    [24] = "r24",  [25] = "r25",  [26] = "r26",  [27] = "r27",  [28] = "r28",  [29] = "r29",
    [30] = "r30",  [31] = "r31",  [32] = "f0",   [33] = "f1",   [34] = "f2",   [35] = "f3",
    [36] = "f4",   [37] = "f5",   [38] = "f6",   [39] = "f7",   [40] = "f8",   [41] = "f9",
    [42] = "f10",  [43] = "f11",  [44] = "f12",  [45] = "f13",  [46] = "f14",  [47] = "f15",
    [48] = "f16",  [49] = "f17",  [50] = "f18",  [51] = "f19",  [52] = "f20",  [53] = "f21",
    [54] = "f22",  [55] = "f23",  [56] = "f24",  [57] = "f25",  [58] = "f26",  [59] = "f27",
    [60] = "f28",  [61] = "f29",  [62] = "f30",  [63] = "f31",  [64] = "cr",   [65] = "lr",
    [66] = "ctr",  [67] = "vscr", [68] = "cr0",  [69] = "cr1",  [70] = "cr2",  [71] = "cr3",
    [72] = "cr4",  [73] = "cr5",  [74] = "cr6",  [75] = "cr7",  [76] = "xer",  [77] = "v0",
    [78] = "v1",   [79] = "v2",   [80] = "v3",   [81] = "v4",   [82] = "v5",   [83] = "v6",
    [84] = "v7",   [85] = "v8",   [86] = "v9",   [87] = "v10",  [88] = "v11",  [89] = "v12",
    [90] = "v13",  [91] = "v14",  [92] = "v15",  [93] = "v16",  [94] = "v17",  [95] = "v18",
    [96] = "v19",  [97] = "v20",  [98] = "v21",  [99] = "v22",  [100] = "v23", [101] = "v24",
    [102] = "v25", [103] = "v26", [104] = "v27", [105] = "v28", [106] = "v29", [107] = "v30",
    [108] = "v31",
};

/* LLVM numbers the lower 32 bits of the general registers from 1200 on. */
enum { FIRST_LOWER_HALF = 1200, GENERAL_REGISTERS = 32 };

uint16_t ppc64_whole_register(uint16_t dwarf)
{
    bool is_half = dwarf >= FIRST_LOWER_HALF && dwarf < FIRST_LOWER_HALF + GENERAL_REGISTERS;
    return is_half ? (uint16_t)(dwarf - FIRST_LOWER_HALF) : dwarf;
}

const char *ppc64_register_name(uint16_t dwarf)
{
    dwarf = ppc64_whole_register(dwarf);
    return dwarf < sizeof names / sizeof *names ? names[dwarf] : NULL;
}
