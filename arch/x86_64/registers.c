/*
 * x86-64: names of DWARF register numbers.
 *
 * Source: System V Application Binary Interface, AMD64 Architecture Processor Supplement, figure
 * "DWARF Register Number Mapping".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/registers.h"

static const char names[][ARCH_REGISTER_NAME_BYTES] = {
    [0] = "rax",    [1] = "rdx",      [2] = "rcx",      [3] = "rbx",    [4] = "rsi",
    [5] = "rdi",    [6] = "rbp",      [7] = "rsp",      [8] = "r8",     [9] = "r9",
    [10] = "r10",   [11] = "r11",     [12] = "r12",     [13] = "r13",   [14] = "r14",
    [15] = "r15",   [16] = "rip",     [17] = "xmm0",    [18] = "xmm1",  [19] = "xmm2",
    [20] = "xmm3",  [21] = "xmm4",    [22] = "xmm5",    [23] = "xmm6",  [24] = "xmm7",
    [25] = "xmm8",  [26] = "xmm9",    [27] = "xmm10",   [28] = "xmm11", [29] = "xmm12",
    [30] = "xmm13", [31] = "xmm14",   [32] = "xmm15",   [33] = "st0",   [34] = "st1",
    [35] = "st2",   [36] = "st3",     [37] = "st4",     [38] = "st5",   [39] = "st6",
    [40] = "st7",   [41] = "mm0",     [42] = "mm1",     [43] = "mm2",   [44] = "mm3",
    [45] = "mm4",   [46] = "mm5",     [47] = "mm6",     [48] = "mm7",   [49] = "rflags",
    [50] = "es",    [51] = "cs",      [52] = "ss",      [53] = "ds",    [54] = "fs",
    [55] = "gs",    [58] = "fs.base", [59] = "gs.base", [62] = "tr",    [63] = "ldtr",
    [64] = "mxcsr", [65] = "fcw",     [66] = "fsw",     [67] = "xmm16", [68] = "xmm17",
    [69] = "xmm18", [70] = "xmm19",   [71] = "xmm20",   [72] = "xmm21", [73] = "xmm22",
    [74] = "xmm23", [75] = "xmm24",   [76] = "xmm25",   [77] = "xmm26", [78] = "xmm27",
    [79] = "xmm28", [80] = "xmm29",   [81] = "xmm30",   [82] = "xmm31", [118] = "k0",
    [119] = "k1",   [120] = "k2",     [121] = "k3",     [122] = "k4",   [123] = "k5",
    [124] = "k6",   [125] = "k7",
};

const struct arch_registers x86_64_registers = {
    .names = names,
    .count = sizeof names / sizeof *names,
};
