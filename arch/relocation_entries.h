/*
 * arch/relocation_entries.h - entries of the tables of relocations. A table's file first defines
 * RELOCATION_PREFIX, with which the names of its architecture begin.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_RELOCATION_ENTRIES_H
#define ARCH_RELOCATION_ENTRIES_H

#include "arch/relocation.h"

/* ENTRY(number, name, target, origin, range, members ...) */
#define ENTRY(number, text, to, from, checked, ...)                                                \
    {                                                                                              \
        .type = (number), .name = RELOCATION_PREFIX text, .target = ARCH_TARGET_##to,              \
        .origin = ARCH_ORIGIN_##from, .range = ARCH_RANGE_##checked, __VA_ARGS__                   \
    }
/* TYPE(number, name, target, origin, range, size): an integer of `size` bytes. */
#define TYPE(number, text, to, from, checked, size)                                                \
    ENTRY(number, text, to, from, checked, .bytes = (size), .bits = 8 * (size))
#define REFUSED(number, text, why)                                                                 \
    {                                                                                              \
        .type = (number), .name = RELOCATION_PREFIX text, .reason = (why),                         \
        .target = ARCH_TARGET_REFUSED                                                              \
    }

/* Reasons that several architectures have. */
#define TLS "thread-local storage is not supported"
#define DYNAMIC "only linked files have such relocations"
#define COLLECTED "the removal of unused virtual tables is not supported"

#endif
