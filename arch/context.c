/*
 * Contexts and exits: what is the same on all hosts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include "base/error.h"

#include <stdatomic.h>
#include <string.h>

/* ---- Signal frames ---- */

uint64_t arch_signal_pc(const void *ucontext)
{
    uint64_t pc = 0;
    if (arch_host_layout.pc_in_signal != 0)
        memcpy(&pc, (const char *)ucontext + arch_host_layout.pc_in_signal, sizeof pc);
    return pc;
}

void arch_set_signal_pc(void *ucontext, uint64_t pc)
{
    if (arch_host_layout.pc_in_signal != 0)
        memcpy((char *)ucontext + arch_host_layout.pc_in_signal, &pc, sizeof pc);
}

void arch_read_signal(struct cairn_context *context, const void *ucontext)
{
    const struct arch_context_layout *layout = &arch_host_layout;
    struct arch_context_head *head = (struct arch_context_head *)context;
    const char *frame = ucontext;
    for (size_t i = 0; i < ARCH_CONTEXT_REGISTERS; i++)
        if (layout->in_signal[i] != 0)
            memcpy(context->bytes + layout->offsets[i], frame + layout->in_signal[i],
                   sizeof(uint64_t));
    memcpy(&head->flags, frame + layout->flags_in_signal, sizeof head->flags);
    head->flags &= layout->flags_mask;
    head->pc = arch_signal_pc(ucontext);
}

void arch_write_signal(const struct cairn_context *context, void *ucontext)
{
    const struct arch_context_layout *layout = &arch_host_layout;
    const struct arch_context_head *head = (const struct arch_context_head *)context;
    char *frame = ucontext;
    uint64_t flags;
    for (uint16_t i = 0; i < (uint16_t)ARCH_CONTEXT_REGISTERS; i++)
        if (layout->in_signal[i] != 0 && arch_context_has(context, i))
            memcpy(frame + layout->in_signal[i], context->bytes + layout->offsets[i],
                   sizeof(uint64_t));
    memcpy(&flags, frame + layout->flags_in_signal, sizeof flags);
    flags = (flags & ~layout->flags_mask) | (head->flags & layout->flags_mask);
    memcpy(frame + layout->flags_in_signal, &flags, sizeof flags);
    arch_set_signal_pc(ucontext, head->pc);
}

/* ---- Exits ---- */

enum cairn_status arch_exit_init(struct arch_exit *data, arch_exit_handler *handler, void *user,
                                 const _Atomic uint32_t *level, struct cairn_error *error)
{
    if (atomic_load_explicit(level, memory_order_relaxed) == 0)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "Cairn cannot save all vector registers that this machine has");
    *data = (struct arch_exit){
        .entry = arch_exit_entry,
        .self = data,
        .handler = handler,
        .user = user,
        .level = level,
    };
    return CAIRN_OK;
}

void arch_exit_make_light(struct arch_light_exit *data, arch_light_handler *light)
{
    data->light = light;
    data->exit.entry = arch_light_entry;
}
