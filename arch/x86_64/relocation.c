/*
 * The relocations of x86-64.
 *
 * Source: System V ABI, AMD64 supplement, "Relocation Types". A linker may replace the instructions
 * of GOTPCRELX and REX_GOTPCRELX; they are correct with a slot, too.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/relocation.h"

/* TYPE(number, name, target, origin, range, size): an integer of `size` bytes. */
#define TYPE(number, text, to, from, checked, size)                                                \
    {                                                                                              \
        .type = (number), .name = "R_X86_64_" text, .target = ARCH_TARGET_##to,                    \
        .origin = ARCH_ORIGIN_##from, .range = ARCH_RANGE_##checked, .bytes = (size),              \
        .bits = 8 * (size)                                                                         \
    }
#define REFUSED(number, text, why)                                                                 \
    {                                                                                              \
        .type = (number), .name = "R_X86_64_" text, .reason = (why), .target = ARCH_TARGET_REFUSED \
    }
#define TLS "thread-local storage is not supported"
#define DYNAMIC "only linked files have such relocations"
#define COLLECTED "the removal of unused virtual tables is not supported"

static const struct arch_relocation entries[] = {
    TYPE(0, "NONE", NONE, ZERO, ANY, 0),
    TYPE(1, "64", SYMBOL, ZERO, ANY, 8),
    TYPE(2, "PC32", SYMBOL, PLACE, SIGNED, 4),
    TYPE(3, "GOT32", SLOT, TABLE, SIGNED, 4),
    TYPE(4, "PLT32", BRANCH, PLACE, SIGNED, 4),
    REFUSED(5, "COPY", DYNAMIC),
    REFUSED(6, "GLOB_DAT", DYNAMIC),
    REFUSED(7, "JUMP_SLOT", DYNAMIC),
    REFUSED(8, "RELATIVE", DYNAMIC),
    TYPE(9, "GOTPCREL", SLOT, PLACE, SIGNED, 4),
    TYPE(10, "32", SYMBOL, ZERO, UNSIGNED, 4),
    TYPE(11, "32S", SYMBOL, ZERO, SIGNED, 4),
    TYPE(12, "16", SYMBOL, ZERO, EITHER, 2),
    TYPE(13, "PC16", SYMBOL, PLACE, SIGNED, 2),
    TYPE(14, "8", SYMBOL, ZERO, EITHER, 1),
    TYPE(15, "PC8", SYMBOL, PLACE, SIGNED, 1),
    REFUSED(16, "DTPMOD64", TLS),
    REFUSED(17, "DTPOFF64", TLS),
    REFUSED(18, "TPOFF64", TLS),
    REFUSED(19, "TLSGD", TLS),
    REFUSED(20, "TLSLD", TLS),
    REFUSED(21, "DTPOFF32", TLS),
    REFUSED(22, "GOTTPOFF", TLS),
    REFUSED(23, "TPOFF32", TLS),
    TYPE(24, "PC64", SYMBOL, PLACE, ANY, 8),
    TYPE(25, "GOTOFF64", SYMBOL, TABLE, ANY, 8),
    TYPE(26, "GOTPC32", TABLE, PLACE, SIGNED, 4),
    TYPE(27, "GOT64", SLOT, TABLE, ANY, 8),
    TYPE(28, "GOTPCREL64", SLOT, PLACE, ANY, 8),
    TYPE(29, "GOTPC64", TABLE, PLACE, ANY, 8),
    TYPE(30, "GOTPLT64", SLOT, TABLE, ANY, 8),
    TYPE(31, "PLTOFF64", BRANCH, TABLE, ANY, 8),
    TYPE(32, "SIZE32", SIZE, ZERO, UNSIGNED, 4),
    TYPE(33, "SIZE64", SIZE, ZERO, ANY, 8),
    REFUSED(34, "GOTPC32_TLSDESC", TLS),
    REFUSED(35, "TLSDESC_CALL", TLS),
    REFUSED(36, "TLSDESC", TLS),
    REFUSED(37, "IRELATIVE", DYNAMIC),
    REFUSED(38, "RELATIVE64", DYNAMIC),
    TYPE(39, "PC32_BND", SYMBOL, PLACE, SIGNED, 4),
    TYPE(40, "PLT32_BND", BRANCH, PLACE, SIGNED, 4),
    TYPE(41, "GOTPCRELX", SLOT, PLACE, SIGNED, 4),
    TYPE(42, "REX_GOTPCRELX", SLOT, PLACE, SIGNED, 4),
    TYPE(43, "CODE_4_GOTPCRELX", SLOT, PLACE, SIGNED, 4),
    REFUSED(44, "CODE_4_GOTTPOFF", TLS),
    REFUSED(45, "CODE_4_GOTPC32_TLSDESC", TLS),
    TYPE(46, "CODE_5_GOTPCRELX", SLOT, PLACE, SIGNED, 4),
    REFUSED(47, "CODE_5_GOTPC32_TLSDESC", TLS),
    REFUSED(48, "CODE_5_GOTTPOFF", TLS),
    TYPE(49, "CODE_6_GOTPCRELX", SLOT, PLACE, SIGNED, 4),
    REFUSED(50, "CODE_6_GOTTPOFF", TLS),
    REFUSED(51, "CODE_6_GOTPC32_TLSDESC", TLS),
    REFUSED(250, "GNU_VTINHERIT", COLLECTED),
    REFUSED(251, "GNU_VTENTRY", COLLECTED),
};

const struct arch_relocation_table x86_64_relocations = {.entries = entries,
                                                         .count = sizeof entries / sizeof *entries};
