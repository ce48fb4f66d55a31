/*
 * The relocations of PPC64, for ELFv1 and ELFv2, which share their numbers.
 *
 * In the documents' words: `half16` is an integer of 2 bytes, `half16ds` its upper 14 bits; #hi and
 * #ha (adjusted) are the upper halves of 32 bits, and are checked, while "HIGH" and "HIGHA" are
 * not. The tables of slots and of the object's own TOC entries are one area; its base is 0x8000
 * past its start, so that signed offsets of 16 bits reach 64 KiB.
 *
 * Sources: 64-Bit ELF V2 ABI Specification, Power Architecture, "Relocation Types"; 64-bit PowerPC
 * ELF Application Binary Interface Supplement (ELFv1), "Relocation".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/relocation.h"

/* TYPE(number, name, target, origin, range, size): an integer of `size` bytes. */
#define TYPE(number, text, to, from, checked, size)                                                \
    {                                                                                              \
        .type = (number), .name = "R_PPC64_" text, .target = ARCH_TARGET_##to,                     \
        .origin = ARCH_ORIGIN_##from, .range = ARCH_RANGE_##checked, .bytes = (size),              \
        .bits = 8 * (size)                                                                         \
    }
/* HALF(number, name, target, origin, range, low): 16 bits of the value from bit `low` on. */
#define HALF(number, text, to, from, checked, first)                                               \
    {                                                                                              \
        .type = (number), .name = "R_PPC64_" text, .target = ARCH_TARGET_##to,                     \
        .origin = ARCH_ORIGIN_##from, .range = ARCH_RANGE_##checked, .bytes = 2, .low = (first),   \
        .bits = 16                                                                                 \
    }
/* The same, adjusted. */
#define ADJUSTED(number, text, to, from, checked, first)                                           \
    {                                                                                              \
        .type = (number), .name = "R_PPC64_" text, .target = ARCH_TARGET_##to,                     \
        .origin = ARCH_ORIGIN_##from, .range = ARCH_RANGE_##checked, .bytes = 2, .low = (first),   \
        .bits = 16, .is_adjusted = 1                                                               \
    }
/* CODE(number, name, target, origin, range, size, width, at): bits of the value from bit `at` on,
 * at `at` in an integer of `size` bytes; the lower bits of the value are 0. */
#define CODE(number, text, to, from, checked, size, width, at)                                     \
    {                                                                                              \
        .type = (number), .name = "R_PPC64_" text, .target = ARCH_TARGET_##to,                     \
        .origin = ARCH_ORIGIN_##from, .range = ARCH_RANGE_##checked, .bytes = (size), .low = (at), \
        .bits = (width), .position = (at), .aligned = (at)                                         \
    }
/* PREFIXED(number, name, target, origin, range): 34 bits in a prefixed instruction. */
#define PREFIXED(number, text, to, from, checked)                                                  \
    {                                                                                              \
        .type = (number), .name = "R_PPC64_" text, .target = ARCH_TARGET_##to,                     \
        .origin = ARCH_ORIGIN_##from, .range = ARCH_RANGE_##checked, .form = ARCH_FORM_PREFIXED,   \
        .bytes = 8, .bits = 34                                                                     \
    }
#define REFUSED(number, text, why)                                                                 \
    {                                                                                              \
        .type = (number), .name = "R_PPC64_" text, .reason = (why), .target = ARCH_TARGET_REFUSED  \
    }
#define TLS "thread-local storage is not supported"
#define DYNAMIC "only linked files have such relocations"
#define PLT "calls through linkage tables are not supported; compile without -mlongcall, -fno-plt"
#define SECTION "offsets in the section of a symbol are not supported"
#define UNUSED "no known compiler writes such relocations"
#define COLLECTED "the removal of unused virtual tables is not supported"

static const struct arch_relocation entries[] = {
    TYPE(0, "NONE", NONE, ZERO, ANY, 0),
    TYPE(1, "ADDR32", SYMBOL, ZERO, EITHER, 4),
    CODE(2, "ADDR24", SYMBOL, ZERO, SIGNED, 4, 24, 2),
    HALF(3, "ADDR16", SYMBOL, ZERO, EITHER, 0),
    HALF(4, "ADDR16_LO", SYMBOL, ZERO, ANY, 0),
    HALF(5, "ADDR16_HI", SYMBOL, ZERO, SIGNED, 16),
    ADJUSTED(6, "ADDR16_HA", SYMBOL, ZERO, SIGNED, 16),
    CODE(7, "ADDR14", SYMBOL, ZERO, SIGNED, 4, 14, 2),
    CODE(8, "ADDR14_BRTAKEN", SYMBOL, ZERO, SIGNED, 4, 14, 2),
    CODE(9, "ADDR14_BRNTAKEN", SYMBOL, ZERO, SIGNED, 4, 14, 2),
    CODE(10, "REL24", BRANCH, PLACE, SIGNED, 4, 24, 2),
    CODE(11, "REL14", SYMBOL, PLACE, SIGNED, 4, 14, 2),
    CODE(12, "REL14_BRTAKEN", SYMBOL, PLACE, SIGNED, 4, 14, 2),
    CODE(13, "REL14_BRNTAKEN", SYMBOL, PLACE, SIGNED, 4, 14, 2),
    HALF(14, "GOT16", SLOT, TABLE, SIGNED, 0),
    HALF(15, "GOT16_LO", SLOT, TABLE, ANY, 0),
    HALF(16, "GOT16_HI", SLOT, TABLE, SIGNED, 16),
    ADJUSTED(17, "GOT16_HA", SLOT, TABLE, SIGNED, 16),
    REFUSED(19, "COPY", DYNAMIC),
    REFUSED(20, "GLOB_DAT", DYNAMIC),
    REFUSED(21, "JMP_SLOT", DYNAMIC),
    REFUSED(22, "RELATIVE", DYNAMIC),
    TYPE(24, "UADDR32", SYMBOL, ZERO, EITHER, 4),
    HALF(25, "UADDR16", SYMBOL, ZERO, EITHER, 0),
    TYPE(26, "REL32", SYMBOL, PLACE, SIGNED, 4),
    REFUSED(27, "PLT32", PLT),
    REFUSED(28, "PLTREL32", PLT),
    REFUSED(29, "PLT16_LO", PLT),
    REFUSED(30, "PLT16_HI", PLT),
    REFUSED(31, "PLT16_HA", PLT),
    REFUSED(33, "SECTOFF", SECTION),
    REFUSED(34, "SECTOFF_LO", SECTION),
    REFUSED(35, "SECTOFF_HI", SECTION),
    REFUSED(36, "SECTOFF_HA", SECTION),
    REFUSED(37, "REL30", UNUSED),
    TYPE(38, "ADDR64", SYMBOL, ZERO, ANY, 8),
    HALF(39, "ADDR16_HIGHER", SYMBOL, ZERO, ANY, 32),
    ADJUSTED(40, "ADDR16_HIGHERA", SYMBOL, ZERO, ANY, 32),
    HALF(41, "ADDR16_HIGHEST", SYMBOL, ZERO, ANY, 48),
    ADJUSTED(42, "ADDR16_HIGHESTA", SYMBOL, ZERO, ANY, 48),
    TYPE(43, "UADDR64", SYMBOL, ZERO, ANY, 8),
    TYPE(44, "REL64", SYMBOL, PLACE, ANY, 8),
    REFUSED(45, "PLT64", PLT),
    REFUSED(46, "PLTREL64", PLT),
    HALF(47, "TOC16", SYMBOL, TABLE, SIGNED, 0),
    HALF(48, "TOC16_LO", SYMBOL, TABLE, ANY, 0),
    HALF(49, "TOC16_HI", SYMBOL, TABLE, SIGNED, 16),
    ADJUSTED(50, "TOC16_HA", SYMBOL, TABLE, SIGNED, 16),
    TYPE(51, "TOC", TABLE, ZERO, ANY, 8),
    REFUSED(52, "PLTGOT16", PLT),
    REFUSED(53, "PLTGOT16_LO", PLT),
    REFUSED(54, "PLTGOT16_HI", PLT),
    REFUSED(55, "PLTGOT16_HA", PLT),
    CODE(56, "ADDR16_DS", SYMBOL, ZERO, SIGNED, 2, 14, 2),
    CODE(57, "ADDR16_LO_DS", SYMBOL, ZERO, ANY, 2, 14, 2),
    CODE(58, "GOT16_DS", SLOT, TABLE, SIGNED, 2, 14, 2),
    CODE(59, "GOT16_LO_DS", SLOT, TABLE, ANY, 2, 14, 2),
    REFUSED(60, "PLT16_LO_DS", PLT),
    REFUSED(61, "SECTOFF_DS", SECTION),
    REFUSED(62, "SECTOFF_LO_DS", SECTION),
    CODE(63, "TOC16_DS", SYMBOL, TABLE, SIGNED, 2, 14, 2),
    CODE(64, "TOC16_LO_DS", SYMBOL, TABLE, ANY, 2, 14, 2),
    REFUSED(65, "PLTGOT16_DS", PLT),
    REFUSED(66, "PLTGOT16_LO_DS", PLT),
    REFUSED(67, "TLS", TLS),
    REFUSED(68, "DTPMOD64", TLS),
    REFUSED(69, "TPREL16", TLS),
    REFUSED(70, "TPREL16_LO", TLS),
    REFUSED(71, "TPREL16_HI", TLS),
    REFUSED(72, "TPREL16_HA", TLS),
    REFUSED(73, "TPREL64", TLS),
    REFUSED(74, "DTPREL16", TLS),
    REFUSED(75, "DTPREL16_LO", TLS),
    REFUSED(76, "DTPREL16_HI", TLS),
    REFUSED(77, "DTPREL16_HA", TLS),
    REFUSED(78, "DTPREL64", TLS),
    REFUSED(79, "GOT_TLSGD16", TLS),
    REFUSED(80, "GOT_TLSGD16_LO", TLS),
    REFUSED(81, "GOT_TLSGD16_HI", TLS),
    REFUSED(82, "GOT_TLSGD16_HA", TLS),
    REFUSED(83, "GOT_TLSLD16", TLS),
    REFUSED(84, "GOT_TLSLD16_LO", TLS),
    REFUSED(85, "GOT_TLSLD16_HI", TLS),
    REFUSED(86, "GOT_TLSLD16_HA", TLS),
    REFUSED(87, "GOT_TPREL16_DS", TLS),
    REFUSED(88, "GOT_TPREL16_LO_DS", TLS),
    REFUSED(89, "GOT_TPREL16_HI", TLS),
    REFUSED(90, "GOT_TPREL16_HA", TLS),
    REFUSED(91, "GOT_DTPREL16_DS", TLS),
    REFUSED(92, "GOT_DTPREL16_LO_DS", TLS),
    REFUSED(93, "GOT_DTPREL16_HI", TLS),
    REFUSED(94, "GOT_DTPREL16_HA", TLS),
    REFUSED(95, "TPREL16_DS", TLS),
    REFUSED(96, "TPREL16_LO_DS", TLS),
    REFUSED(97, "TPREL16_HIGHER", TLS),
    REFUSED(98, "TPREL16_HIGHERA", TLS),
    REFUSED(99, "TPREL16_HIGHEST", TLS),
    REFUSED(100, "TPREL16_HIGHESTA", TLS),
    REFUSED(101, "DTPREL16_DS", TLS),
    REFUSED(102, "DTPREL16_LO_DS", TLS),
    REFUSED(103, "DTPREL16_HIGHER", TLS),
    REFUSED(104, "DTPREL16_HIGHERA", TLS),
    REFUSED(105, "DTPREL16_HIGHEST", TLS),
    REFUSED(106, "DTPREL16_HIGHESTA", TLS),
    REFUSED(107, "TLSGD", TLS),
    REFUSED(108, "TLSLD", TLS),
    TYPE(109, "TOCSAVE", NONE, ZERO, ANY, 0),
    HALF(110, "ADDR16_HIGH", SYMBOL, ZERO, ANY, 16),
    ADJUSTED(111, "ADDR16_HIGHA", SYMBOL, ZERO, ANY, 16),
    REFUSED(112, "TPREL16_HIGH", TLS),
    REFUSED(113, "TPREL16_HIGHA", TLS),
    REFUSED(114, "DTPREL16_HIGH", TLS),
    REFUSED(115, "DTPREL16_HIGHA", TLS),
    CODE(116, "REL24_NOTOC", BRANCH_WITHOUT_TOC, PLACE, SIGNED, 4, 24, 2),
    REFUSED(117, "ADDR64_LOCAL", UNUSED),
    TYPE(118, "ENTRY", NONE, ZERO, ANY, 0),
    REFUSED(119, "PLTSEQ", PLT),
    REFUSED(120, "PLTCALL", PLT),
    REFUSED(121, "PLTSEQ_NOTOC", PLT),
    REFUSED(122, "PLTCALL_NOTOC", PLT),
    TYPE(123, "PCREL_OPT", NONE, ZERO, ANY, 0),
    CODE(124, "REL24_P9NOTOC", BRANCH_WITHOUT_TOC, PLACE, SIGNED, 4, 24, 2),
    PREFIXED(128, "D34", SYMBOL, ZERO, SIGNED),
    REFUSED(129, "D34_LO", UNUSED),
    REFUSED(130, "D34_HI30", UNUSED),
    REFUSED(131, "D34_HA30", UNUSED),
    PREFIXED(132, "PCREL34", SYMBOL, PLACE, SIGNED),
    PREFIXED(133, "GOT_PCREL34", SLOT, PLACE, SIGNED),
    REFUSED(134, "PLT_PCREL34", PLT),
    REFUSED(135, "PLT_PCREL34_NOTOC", PLT),
    REFUSED(136, "ADDR16_HIGHER34", UNUSED),
    REFUSED(137, "ADDR16_HIGHERA34", UNUSED),
    REFUSED(138, "ADDR16_HIGHEST34", UNUSED),
    REFUSED(139, "ADDR16_HIGHESTA34", UNUSED),
    REFUSED(140, "REL16_HIGHER34", UNUSED),
    REFUSED(141, "REL16_HIGHERA34", UNUSED),
    REFUSED(142, "REL16_HIGHEST34", UNUSED),
    REFUSED(143, "REL16_HIGHESTA34", UNUSED),
    REFUSED(144, "D28", UNUSED),
    REFUSED(145, "PCREL28", UNUSED),
    REFUSED(146, "TPREL34", TLS),
    REFUSED(147, "DTPREL34", TLS),
    REFUSED(148, "GOT_TLSGD_PCREL34", TLS),
    REFUSED(149, "GOT_TLSLD_PCREL34", TLS),
    REFUSED(150, "GOT_TPREL_PCREL34", TLS),
    REFUSED(151, "GOT_DTPREL_PCREL34", TLS),
    HALF(240, "REL16_HIGH", SYMBOL, PLACE, ANY, 16),
    ADJUSTED(241, "REL16_HIGHA", SYMBOL, PLACE, ANY, 16),
    HALF(242, "REL16_HIGHER", SYMBOL, PLACE, ANY, 32),
    ADJUSTED(243, "REL16_HIGHERA", SYMBOL, PLACE, ANY, 32),
    HALF(244, "REL16_HIGHEST", SYMBOL, PLACE, ANY, 48),
    ADJUSTED(245, "REL16_HIGHESTA", SYMBOL, PLACE, ANY, 48),
    REFUSED(246, "REL16DX_HA", UNUSED),
    REFUSED(247, "JMP_IREL", DYNAMIC),
    REFUSED(248, "IRELATIVE", DYNAMIC),
    HALF(249, "REL16", SYMBOL, PLACE, SIGNED, 0),
    HALF(250, "REL16_LO", SYMBOL, PLACE, ANY, 0),
    HALF(251, "REL16_HI", SYMBOL, PLACE, SIGNED, 16),
    ADJUSTED(252, "REL16_HA", SYMBOL, PLACE, SIGNED, 16),
    REFUSED(253, "GNU_VTINHERIT", COLLECTED),
    REFUSED(254, "GNU_VTENTRY", COLLECTED),
};

const struct arch_relocation_table ppc64_relocations = {.entries = entries,
                                                        .count = sizeof entries / sizeof *entries,
                                                        .table_bias = 0x8000,
                                                        .missing_is_next = true};
