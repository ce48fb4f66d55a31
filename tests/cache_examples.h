/*
 * Example inline caches for every architecture: one for each kind of guard, action, form and end.
 * Tests compare their code with the expected code.
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
    EXAMPLE_KEEPS_FLAGS,
    EXAMPLE_SELECTION,
    EXAMPLE_SELECTION_OUT_OF_LINE,
    EXAMPLE_SELECTION_WIDE,
    EXAMPLE_COUNT
};

enum { EXAMPLE_CASES_MAX = 3 };

/* The registers that the examples use on an architecture, by DWARF number. */
struct cache_example_registers {
    uint16_t receiver;
    uint16_t value;
    uint16_t vector;
};

/* Address of the code. The sites continue 0x1000 bytes after it. */
#define EXAMPLE_ADDRESS UINT64_C(0x7F0000000000)
#define EXAMPLE_RETURN_ADDRESS (EXAMPLE_ADDRESS + 0x1000)

struct cache_example_code {
    struct arch_cache cache;
    struct arch_cache_case cases[EXAMPLE_CASES_MAX];
};

/* Makes the example. The cache points into the structure. */
void cache_example_get(enum cache_example example, const struct cache_example_registers *registers,
                       struct cache_example_code *code);

/* The disassembly that is expected of LLVM: the instructions, each followed by a newline, and the
 * data words that follow the code. Each architecture has one file,
 * cache_examples_<architecture>.c. */
enum { EXAMPLE_DATA_MAX = 6 };

struct cache_example_lines {
    const char *lines;
    uint64_t data[EXAMPLE_DATA_MAX];
    size_t data_count;
    size_t data_bytes; /* size of each word; 0: 8 */
};

extern const struct cache_example_registers cache_registers_x86_64;
extern const struct cache_example_lines cache_examples_x86_64[EXAMPLE_COUNT];

#endif
