/*
 * frame/context.h - the stack pointer and the PC of a context, and which registers it holds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_CONTEXT_H
#define FRAME_CONTEXT_H

#include "arch/arch.h"

#include <cairn/context.h>
#include <string.h>

static inline struct arch_context_head *context_head(struct cairn_context *context)
{
    return (struct arch_context_head *)context;
}

/* Marks a register as one that the context holds. */
static inline void context_add(struct cairn_context *context, uint16_t dwarf)
{
    context_head(context)->present[dwarf / 64] |= UINT64_C(1) << dwarf % 64;
}

/* Returns the stack pointer; 0 if the context does not hold it. Only for hosts with contexts. */
static inline uint64_t context_sp(const struct cairn_context *context)
{
    uint64_t sp;
    memcpy(&sp, context->bytes + arch_host_layout.offsets[arch_host_layout.stack_pointer],
           sizeof sp);
    return sp;
}

static inline void context_set_pc_and_sp(struct cairn_context *context, uint64_t pc, uint64_t sp)
{
    const struct arch_context_layout *layout = &arch_host_layout;
    context_head(context)->pc = pc;
    memcpy(context->bytes + layout->offsets[layout->stack_pointer], &sp, sizeof sp);
    context_add(context, layout->stack_pointer);
}

#endif
