/*
 * tests/landing_support.h - what a processor with IBT or BTI checks, for threads that tests stop at
 * each instruction: that indirect branches land on landing pads.
 *
 * Only code that Cairn makes is checked: stubs, veneers, caches, and the entries of exits. The
 * program and LLVM's code may have been compiled without landing pads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_LANDING_SUPPORT_H
#define TESTS_LANDING_SUPPORT_H

#include "arch/arch.h"
#include "runtime/runtime.h"

#include <string.h>

struct landing {
    bool branches;  /* whether the next instruction is reached by an indirect branch */
    unsigned count; /* of such instructions in Cairn's code */
    uint64_t wrong; /* the first of them that is not a landing pad; 0: all are */
};

/* Whether the instruction at `pc` is an indirect jump or call of x86-64, or an indirect branch of
 * AArch64 that is not a return. */
static inline bool landing_is_branch(uint64_t pc)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)pc;
    if (arch_host()->architecture == CAIRN_ARCHITECTURE_AARCH64) {
        uint32_t word;
        memcpy(&word, code, sizeof word);
        return (word & 0xFFDFFC1F) == 0xD61F0000;
    }
    while ((*code & 0xF0) == 0x40 || *code == 0x2E || *code == 0x66 || *code == 0x67)
        code++;
    unsigned extension = code[1] >> 3 & 7;
    return code[0] == 0xFF && (extension == 2 || extension == 4);
}

static inline bool landing_is_pad(const void *code)
{
    const struct arch_landing_pad *pad = &arch_host()->landing_pad;
    return memcmp(code, pad->code, pad->bytes) == 0;
}

static inline bool landing_is_checked(const cairn_runtime *owner, uint64_t pc)
{
    bool is_entry = pc == arch_exit_entry || pc == arch_light_entry;
    return is_entry ||
           (code_space_holds(owner->space, pc) && cairn_runtime_find_module(owner, pc) == NULL);
}

/* Notes that the thread is about to execute the instruction at `pc`, after the one of the last
 * call. */
static inline void landing_step(struct landing *landing, const cairn_runtime *owner, uint64_t pc)
{
    if (landing->branches && landing_is_checked(owner, pc)) {
        landing->count++;
        if (!landing_is_pad((const void *)(uintptr_t)pc) && landing->wrong == 0)
            landing->wrong = pc;
    }
    landing->branches = landing_is_branch(pc);
}

#endif
