/*
 * Example inline caches of x86-64: one for each kind of guard, action, form and end, with the
 * disassembly that is expected of LLVM. check_cache_words.c has the examples of other
 * architectures.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_CACHE_EXAMPLES_H
#define TESTS_CACHE_EXAMPLES_H

#include "arch/arch.h"

enum cache_example {
    EXAMPLE_EMPTY,
    EXAMPLE_EMPTY_CALLED,
    EXAMPLE_EMPTY_WITH_TARGET,
    EXAMPLE_LOAD,
    EXAMPLE_LOAD_SIGNED,
    EXAMPLE_LOAD_OUT_OF_LINE,
    EXAMPLE_LOAD_VECTOR,
    EXAMPLE_STORE_BYTE,
    EXAMPLE_STORE_OUT_OF_LINE,
    EXAMPLE_STORE_VECTOR,
    EXAMPLE_CONSTANTS,
    EXAMPLE_CONSTANT_VECTOR,
    EXAMPLE_CALLED,
    EXAMPLE_JUMP_COUNTED,
    EXAMPLE_MASKS,
    EXAMPLE_WIDE_MASK,
    EXAMPLE_FAR_OFFSETS,
    EXAMPLE_EXIT,
    EXAMPLE_BASES,
    EXAMPLE_NEW_VECTORS,
    EXAMPLE_SELECTION,
    EXAMPLE_SELECTION_OUT_OF_LINE,
    EXAMPLE_SELECTION_WIDE,
    EXAMPLE_TABLE,
    EXAMPLE_TABLE_WIDE,
    EXAMPLE_COUNT
};

enum { EXAMPLE_CASES_MAX = 3 };

/* Address of the code. The sites continue 0x1000 bytes after it. */
#define EXAMPLE_ADDRESS UINT64_C(0x7F0000000000)
#define EXAMPLE_RETURN_ADDRESS (EXAMPLE_ADDRESS + 0x1000)

struct cache_example_code {
    struct arch_cache cache;
    struct arch_cache_case cases[EXAMPLE_CASES_MAX];
};

/* Makes the example. The cache points into the structure. */
void cache_example_get(enum cache_example example, struct cache_example_code *code);

/* The instructions, each followed by a newline, and the data words that follow the code. */
enum { EXAMPLE_DATA_MAX = 6 };

struct cache_example_lines {
    const char *lines;
    uint64_t data[EXAMPLE_DATA_MAX];
    size_t data_count;
    size_t data_bytes; /* size of each word; 0: 8 */
};

extern const struct cache_example_lines cache_example_lines[EXAMPLE_COUNT];

#endif
