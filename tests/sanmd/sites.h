/*
 * sanmd/sites.h - code that says where it is: between two labels there is one access, which is
 * atomic or is not. For tests/check_sanmd_programs.pl, which compiles it with clang as C and as
 * C++, in a program and in a library that it opens.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SANMD_SITES_H
#define SANMD_SITES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct site {
    const uint8_t *begin;
    const uint8_t *end;
    int64_t atomic_count; /* of the instructions between them */
};

/* The linker's names for the section that the labels are noted in; each file has its own. */
extern const struct site first_site[] __asm__("__start_test_sites")
    __attribute__((visibility("hidden")));
extern const struct site last_site[] __asm__("__stop_test_sites")
    __attribute__((visibility("hidden")));

/* Operands are in registers from the label on. */
#define SITE_BEGIN(pointer, value)                                                                 \
    __asm__ volatile("661:\n"                                                                      \
                     ".pushsection test_sites, \"aw\"\n"                                           \
                     ".balign 8\n"                                                                 \
                     ".quad 661b\n"                                                                \
                     ".popsection"                                                                 \
                     : "+r"(pointer), "+r"(value)                                                  \
                     :                                                                             \
                     : "memory")

#define SITE_END(count)                                                                            \
    __asm__ volatile("662:\n"                                                                      \
                     ".pushsection test_sites, \"aw\"\n"                                           \
                     ".quad 662b\n"                                                                \
                     ".quad " #count "\n"                                                          \
                     ".popsection"                                                                 \
                     :                                                                             \
                     :                                                                             \
                     : "memory")

#define NOT_INLINED __attribute__((noinline))
#define NOT_COVERED __attribute__((noinline, disable_sanitizer_instrumentation))

/* The host gives frames' addresses to it: they may be used after a return. */
void keep_address(void *address);

/* Functions of a file, and what is known about them. */
struct expected_function {
    uint64_t address;
    /* UINT32_MAX: not covered. Others may be there as well: to LLVM, a statement in assembly is a
     * call. */
    uint32_t features;
    uint32_t stack_argument_bytes;
};

/* What a file tells of itself. */
struct told {
    const struct site *sites;
    size_t site_count;
    struct expected_function functions[8];
    size_t function_count;
};

#define TELL_NAME "tell"
typedef void tell_function(struct told *told);

#ifdef __cplusplus
}
#endif
#endif
