/*
 * Veneers with a call frame, between a site and the function that it calls.
 *
 * A return address is in such a veneer only if all of the following hold: the address is in code
 * memory and in no module; the frame there has the size of a veneer's frame; and the site to which
 * that frame would return has a veneer at exactly this address. Only frames of code in code memory
 * are examined, so the stack is read only where functions have written it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/framed_veneer.h"

#include "frame/context.h"
#include "frame/registers.h"
#include "runtime/module.h"

#include <cairn/runtime.h>

/* The call of a site. */
struct site_call {
    uint64_t pc; /* return address */
    uint64_t sp;
    cairn_module *module;
};

static uint64_t load(uint64_t address)
{
    uint64_t value;
    memcpy(&value, (const void *)(uintptr_t)address, sizeof value);
    return value;
}

/* Finds the site's call that went through the veneer at return address `pc`. False if `pc` is not
 * in such a veneer. */
static bool find_call(const cairn_runtime *runtime, uint64_t pc, uint64_t sp,
                      struct site_call *call)
{
    const struct arch_veneer_frame *frame = arch_host()->veneer_frame;
    if (frame == NULL || !code_space_holds(runtime->space, pc) || load(sp) != sp + frame->bytes)
        return false;
    call->sp = sp + frame->bytes;
    call->pc = load(call->sp + frame->return_address);
    call->module = runtime_find_frame_module(runtime, call->pc - 1);
    return call->module != NULL && site_table_calls_through(call->module->sites, call->pc, pc);
}

static void set(struct cairn_context *context, uint16_t dwarf, uint64_t value)
{
    enum cairn_status status = cairn_context_write(context, dwarf, &value, sizeof value, NULL);
    (void)status; /* every context has a place for a general register */
}

void frame_leave_veneer_context(const cairn_runtime *runtime, struct cairn_context *context)
{
    const struct cairn_arch *arch = arch_host();
    const struct arch_veneer_frame *frame = arch->veneer_frame;
    uint64_t sp = context_sp(context);
    struct site_call call;
    if (frame == NULL || !find_call(runtime, context_head(context)->pc, sp, &call))
        return;
    for (size_t i = 0; i < frame->register_count; i++)
        set(context, frame->registers[i].dwarf, load(sp + frame->registers[i].offset));
    set(context, arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf, call.pc);
    context_set_pc_and_sp(context, call.pc, call.sp);
}

void frame_leave_veneer(struct cairn_frame *frame)
{
    const struct cairn_arch *arch = arch_host();
    const struct arch_veneer_frame *veneer = arch->veneer_frame;
    struct site_call call;
    if (veneer == NULL || !find_call(frame->runtime, frame->pc, frame->sp, &call))
        return;
    /* Only callee-saved registers have slots. The values of others are unknown in a frame that has
     * made a call. */
    for (size_t i = 0; i < veneer->register_count; i++)
        for (size_t slot = 0; slot < arch->unwind_slot_count; slot++)
            if (arch->unwind_slots[slot].dwarf == veneer->registers[i].dwarf)
                frame->private_words[slot] =
                    (void *)(uintptr_t)(frame->sp + veneer->registers[i].offset);
    frame->private_words[ARCH_UNWIND_RETURN_ADDRESS] =
        (void *)(uintptr_t)(call.sp + veneer->return_address);
    frame->pc = call.pc;
    frame->sp = call.sp;
    frame->module = call.module;
}
