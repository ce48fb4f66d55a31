/*
 * Frames: the places of their registers, and their callers.
 *
 * A frame contains no register's value except the stack pointer's. It contains the places of the
 * registers: in the context, or in the frame of a callee that has saved them. So writing a register
 * changes the value that the code will use, and a step to the caller changes only the places of
 * registers that the function has saved.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/frame.h"

#include "arch/arch.h"
#include "base/error.h"
#include "frame/native_frame.h"
#include "frame/step.h"
#include "frame/stub.h"
#include "runtime/runtime.h"
#include "site/inline.h"
#include "site/site.h"
#include "unwind/rules.h"

#include <cairn/runtime.h>
#include <string.h>

_Static_assert((int)FRAME_SLOTS >= (int)ARCH_UNWIND_SLOTS_MAX, "a place for each slot");

/* ---- Creating a frame ---- */

static __attribute__((noinline)) void *find_special(struct cairn_context *context,
                                                    const struct arch_unwind_slot *slot)
{
    struct arch_register place;
    bool is_big_endian = CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN;
    if (!arch_host_register(context, slot->dwarf, &place))
        return NULL;
    size_t saved = place.first_flag != 0 && is_big_endian ? place.bytes - SAVED_FLAGS_BYTES : 0;
    return context->bytes + place.offset + saved + slot->byte;
}

/* Returns the offset of the slot's 8 bytes in a context if the layout defines it; otherwise 0. */
static inline size_t slot_offset(const struct arch_unwind_slot *slot)
{
    size_t offset = arch_host_layout.offsets[slot->dwarf];
    return offset != 0 ? offset + slot->byte : 0;
}

/* Moves a frame in the code of an inline cache to the call of its site, because that code has no
 * call frame; false if the frame is elsewhere. Without a link register, the return address is at
 * the stack pointer if the code was called; if the code is about to branch to the handler, one more
 * word has been pushed. */
static bool leave_cache(struct cairn_frame *frame)
{
    enum { PUSHED_MAX = 2 };
    const cairn_site *site = code_space_find_stub_owner(frame->runtime->space, frame->pc);
    if (site == NULL)
        return false;
    const uint64_t end = site->address + site->byte_count;
    frame->pc = site->address + site->return_offset;
    if (inline_is_possible(site))
        frame->pc = end;
    frame->is_calling = true;
    frame->module = runtime_find_frame_module(frame->runtime, frame->pc - 1);
    if (arch_host()->has_link_register)
        return true;
    uint64_t words[PUSHED_MAX];
    memcpy(words, (const void *)(uintptr_t)frame->sp, sizeof words);
    for (size_t i = 0; i < PUSHED_MAX; i++)
        if (words[i] == frame->pc || (words[i] == end && site->has_inline_space)) {
            frame->pc = words[i];
            frame->sp += (i + 1) * sizeof *words;
            return true;
        }
    return true;
}

/* The same for a frame in the code of an inline cache in the site's own bytes, which pushes
 * nothing. */
static bool leave_inline_code(struct cairn_frame *frame)
{
    const cairn_site *site = site_table_with_inline_code(frame->module->sites, frame->pc);
    if (site == NULL)
        return false;
    frame->pc = site->address + site->byte_count;
    frame->is_calling = true;
    return true;
}

void frame_leave_own_code(struct cairn_frame *frame)
{
    if (!(frame->module == NULL ? leave_cache(frame) : leave_inline_code(frame)))
        frame_leave_stub(frame);
}

enum cairn_status cairn_frame_from_context(const cairn_runtime *runtime,
                                           struct cairn_context *context, bool is_calling,
                                           struct cairn_frame *frame, struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    uint64_t sp = arch == NULL ? 0 : context_sp(context);
    if (sp == 0)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "the context has no stack pointer");
    uint64_t pc = context_head(context)->pc;
    frame->runtime = runtime;
    frame->module = runtime_find_frame_module(runtime, pc - is_calling);
    frame->pc = pc;
    frame->sp = sp;
    frame->is_calling = is_calling;
    frame->is_innermost = true;
    frame->context = context;
    /* The places of all slots; NULL for registers that the context does not have. */
    const struct arch_unwind_slot *slots = arch->unwind_slots;
    size_t count = arch->unwind_slot_count;
    for (size_t i = 0; i < count; i++) {
        size_t offset = slot_offset(&slots[i]);
        void *place = context->bytes + offset;
        if (!arch_context_has(context, slots[i].dwarf))
            place = NULL;
        else if (offset == 0)
            place = find_special(context, &slots[i]);
        frame->private_words[i] = place;
    }
    if (!is_calling)
        frame_leave_own_code(frame);
    return CAIRN_OK;
}

/* ---- Walking ---- */

static const struct unwind_row *find_row(const struct cairn_frame *frame)
{
    return unwind_find_exact(frame->module->unwind, frame->pc - frame->is_calling);
}

enum cairn_status cairn_frame_caller(struct cairn_frame *frame, struct cairn_error *error)
{
    if (frame->module == NULL)
        return frame_step_native(frame, FRAME_STACK_END_UNKNOWN, error);
    return step_by(find_row(frame), frame, FRAME_STACK_END_UNKNOWN, error);
}

enum cairn_status frame_find_restorable_caller(const struct cairn_frame *frame,
                                               struct cairn_frame *caller,
                                               struct cairn_error *error)
{
    if (frame->module == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, frame->pc,
                         "0x%llx is not in a module, so its frame cannot be left",
                         (unsigned long long)frame->pc);
    const struct unwind_row *row = find_row(frame);
    if (!(row->problem == UNWIND_FINE))
        return unwind_explain(row, arch_host(), frame->pc, error);
    struct step_target target = {0};
    enum cairn_status status = step_find(row, frame, FRAME_STACK_END_UNKNOWN, &target, error);
    if (status != CAIRN_OK)
        return status;
    /* Copies the slots that the architecture has, word by word, because the words may have just
     * been stored, and a wider load would stall until the stores complete. */
    size_t count = arch_host()->unwind_slot_count;
    caller->runtime = frame->runtime;
    caller->module = frame->module;
    caller->pc = frame->pc;
    caller->sp = frame->sp;
    caller->is_calling = frame->is_calling;
    caller->is_innermost = frame->is_innermost;
    caller->context = frame->context;
    for (size_t i = 0; i < count; i++) {
        caller->private_words[i] = frame->private_words[i];
        __asm__("" ::: "memory");
    }
    step_move(row, &target, caller);
    return CAIRN_OK;
}

/* Restores a field of flags from the 8 bytes that a function has stored, which hold all flags in
 * the first 4 bytes. Only the flags of fields with a rule are valid there. */
static void restore_flags(struct cairn_context *context, uint16_t dwarf, uint64_t bytes)
{
    struct arch_context_head *head = context_head(context);
    struct arch_register place;
    uint32_t stored;
    memcpy(&stored, &bytes, sizeof stored);
    if (arch_host_register(context, dwarf, &place))
        head->flags = (head->flags & ~(uint64_t)place.saved_flags) | (stored & place.saved_flags);
}

/* Loads all values before it writes any, because slots may be in the context. */
void frame_restore(const struct cairn_frame *frame, struct cairn_context *context)
{
    const struct cairn_arch *arch = arch_host();
    const struct arch_unwind_slot *slots = arch->unwind_slots;
    size_t count = arch->unwind_slot_count;
    uint64_t values[ARCH_UNWIND_SLOTS_MAX];
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS + 1; i < count; i++)
        if (frame->private_words[i] != NULL)
            values[i] = step_load(frame->private_words[i]);
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS + 1; i < count; i++) {
        size_t offset = slot_offset(&slots[i]);
        if (frame->private_words[i] != NULL && offset != 0)
            memcpy(context->bytes + offset, &values[i], sizeof values[i]);
        else if (frame->private_words[i] != NULL)
            restore_flags(context, slots[i].dwarf, values[i]);
    }
    context_set_pc_and_sp(context, frame->pc, frame->sp);
}

/* ---- Functions and records ---- */

bool cairn_frame_function(const struct cairn_frame *frame, struct cairn_function *function)
{
    return frame->module != NULL &&
           module_search_function(frame->module, frame->pc - frame->is_calling, function);
}

bool cairn_frame_record(const struct cairn_frame *frame, struct cairn_record *record)
{
    if (frame->module == NULL)
        return false;
    const cairn_table *table = frame->module->table;
    if (!frame->is_calling)
        return cairn_table_find_address(table, frame->pc, record);
    if (cairn_table_find_return_address(table, frame->pc, record))
        return true;
    const cairn_site *site = site_table_ending_at(frame->module->sites, frame->pc);
    if (site != NULL)
        *record = (struct cairn_record){table, site->record};
    return site != NULL;
}
