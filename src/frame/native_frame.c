/*
 * Steps over frames of native code, which no module contains, by the unwind tables of the program
 * and its libraries.
 *
 * Each step reads one entry of .eh_frame from the loaded table. Nothing is cached: the next step of
 * the same function reads the entry again.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/native_frame.h"

#include "base/error.h"
#include "frame/dwarf_expression.h"
#include "frame/frame.h"
#include "frame/registers.h"
#include "frame/step.h"
#include "unwind/call_frame.h"
#include "unwind/eh_frame.h"

#include <cairn/walk.h>

#include <dlfcn.h>
#include <link.h>

/* ---- Loaded objects ---- */

/* A loaded object: its memory, and the address of its sorted table of unwind entries
 * (.eh_frame_hdr; 0 if it has none). */
struct object_memory {
    uint64_t begin;
    uint64_t end;
    uint64_t header;
};

/* Finds the object whose memory contains `pc`; false if no object does. With glibc 2.35 or later it
 * uses _dl_find_object, and is async-signal-safe and lock-free. Elsewhere it uses dl_iterate_phdr,
 * which takes the dynamic linker's lock. glibc defines this macro, as 0 or 1, if it has
 * _dl_find_object. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE

static bool find_object(uint64_t pc, struct object_memory *object)
{
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)pc, &found) != 0)
        return false;
    object->begin = (uintptr_t)found.dlfo_map_start;
    object->end = (uintptr_t)found.dlfo_map_end;
    object->header = (uintptr_t)found.dlfo_eh_frame;
    return true;
}

#else

struct search {
    uint64_t pc;
    struct object_memory *object;
};

static int search_object(struct dl_phdr_info *info, size_t size, void *user)
{
    const struct search *search = user;
    struct object_memory *object = search->object;
    (void)size;
    *object = (struct object_memory){.begin = UINT64_MAX};
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t begin = info->dlpi_addr + segment->p_vaddr;
        uint64_t end = begin + segment->p_memsz;
        if (segment->p_type == PT_GNU_EH_FRAME)
            object->header = begin;
        if (segment->p_type == PT_LOAD) {
            object->begin = begin < object->begin ? begin : object->begin;
            object->end = end > object->end ? end : object->end;
        }
    }
    return search->pc >= object->begin && search->pc < object->end;
}

static bool find_object(uint64_t pc, struct object_memory *object)
{
    struct search search = {pc, object};
    return dl_iterate_phdr(search_object, &search) != 0;
}

#endif

/* ---- The entry of a function ---- */

struct entry {
    struct eh_frame section;
    struct eh_frame_description description;
};

static struct eh_frame section_of(uint64_t begin, uint64_t end)
{
    return (struct eh_frame){
        .section = {.bytes = (const uint8_t *)(uintptr_t)begin,
                    .size = (size_t)(end - begin),
                    .byte_order = CAIRN_BYTE_ORDER_NATIVE},
        .address = begin,
    };
}

static enum cairn_status say_no_entry(uint64_t pc, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_NOT_FOUND, pc,
                     "the function at 0x%llx has no unwind rules: compile it with "
                     "-fasynchronous-unwind-tables",
                     (unsigned long long)pc);
}

static bool holds(const struct object_memory *object, uint64_t address)
{
    return address >= object->begin && address < object->end;
}

static enum cairn_status find_entry(uint64_t pc, struct entry *entry, struct cairn_error *error)
{
    struct object_memory object;
    struct eh_frame_place place;
    bool found = false;
    if (!find_object(pc, &object))
        return error_set(error, CAIRN_ERROR_NOT_FOUND, pc,
                         "0x%llx is neither in a module nor in an object of the program",
                         (unsigned long long)pc);
    if (!holds(&object, object.header))
        return say_no_entry(pc, error);
    struct eh_frame header = section_of(object.header, object.end);
    enum cairn_status status = eh_frame_header_find(&header, pc, &place, &found, error);
    if (status != CAIRN_OK)
        return status;
    if (!found || !holds(&object, place.section) || !holds(&object, place.entry) ||
        place.entry < place.section)
        return say_no_entry(pc, error);
    size_t offset = (size_t)(place.entry - place.section);
    entry->section = section_of(place.section, object.end);
    entry->description = (struct eh_frame_description){0};
    status = eh_frame_next(&entry->section, &offset, &entry->description, &found, error);
    if (status != CAIRN_OK)
        return status;
    struct eh_frame_function function = entry->description.function;
    bool is_inside = found && pc >= function.address && pc - function.address < function.size;
    return is_inside ? CAIRN_OK : say_no_entry(pc, error);
}

/* ---- A step ---- */

/* A step from a frame to its caller. */
struct step {
    const struct cairn_frame *from;
    const struct entry *entry;
    const struct call_frame_row *row;
    uint64_t cfa;
    struct cairn_frame to;
    struct cairn_error *error;
};

static enum cairn_status find_cfa(struct step *step)
{
    const struct call_frame_row *row = step->row;
    uint64_t base = 0;
    if (row->cfa == CALL_FRAME_CFA_EXPRESSION)
        return expression_evaluate(step->from, &step->entry->section, (size_t)row->cfa_value, NULL,
                                   &step->cfa, step->error);
    if (row->cfa != CALL_FRAME_CFA_REGISTER)
        return error_set(step->error, CAIRN_ERROR_UNSUPPORTED, step->from->pc,
                         "at 0x%llx no rule says where the frame begins (CFA)",
                         (unsigned long long)step->from->pc);
    enum cairn_status status = frame_base(step->from, row->cfa_register, &base, step->error);
    step->cfa = base + (uint64_t)row->cfa_value;
    return status;
}

static const struct arch_unwind_slot *slot_at(size_t slot)
{
    return &arch_host()->unwind_slots[slot];
}

/* Finds the place of the slot's 8 bytes by a rule. NULL if the value is lost, or is not in
 * memory. */
static enum cairn_status find_saved(const struct step *step, struct call_frame_rule rule,
                                    uint16_t byte, void **saved)
{
    uint64_t address = 0;
    enum cairn_status status = CAIRN_OK;
    *saved = NULL;
    switch (rule.kind) {
    case CALL_FRAME_SAVED:
        address = step->cfa + (uint64_t)rule.value;
        break;
    case CALL_FRAME_SAVED_EXPRESSION:
        status = expression_evaluate(step->from, &step->entry->section, (size_t)rule.value,
                                     &step->cfa, &address, step->error);
        break;
    case CALL_FRAME_REGISTER:
        for (size_t i = arch_host()->unwind_slot_count; i-- > ARCH_UNWIND_RETURN_ADDRESS;)
            if (slot_at(i)->dwarf == (uint64_t)rule.value && slot_at(i)->byte == byte)
                *saved = step->from->private_words[i];
        return CAIRN_OK;
    default:
        break;
    }
    if (address != 0)
        *saved = (void *)(uintptr_t)(address + byte);
    return status;
}

static bool stays(struct call_frame_rule rule)
{
    return rule.kind == CALL_FRAME_UNSPECIFIED || rule.kind == CALL_FRAME_SAME;
}

/* Finds the caller's stack pointer. It is the CFA, except that a signal frame saves the stack
 * pointer of the interrupted code. */
static enum cairn_status find_stack_pointer(struct step *step)
{
    struct call_frame_rule rule =
        call_frame_rule(step->row, slot_at(ARCH_UNWIND_STACK_POINTER)->dwarf);
    void *saved = NULL;
    bool is_cfa = stays(rule) || (rule.kind == CALL_FRAME_VALUE && rule.value == 0);
    bool is_signal_frame = step->entry->description.common.is_signal_frame;
    step->to.sp = step->cfa;
    /* On AArch64, Linux's trampoline has rules for the frame pointer and the PC only, and an
     * artificial CFA. That CFA is not the interrupted code's stack pointer. */
    if (is_cfa && (!is_signal_frame || step->row->cfa == CALL_FRAME_CFA_EXPRESSION))
        return CAIRN_OK;
    enum cairn_status status = find_saved(step, rule, 0, &saved);
    if (status == CAIRN_OK && saved == NULL)
        return error_set(step->error, CAIRN_ERROR_UNSUPPORTED, step->from->pc,
                         "at 0x%llx the caller's stack pointer is not where the frame begins (CFA)",
                         (unsigned long long)step->from->pc);
    if (status == CAIRN_OK)
        step->to.sp = step_load(saved);
    return status;
}

/* Moves past the outermost frame, where no register is known. */
static void leave_outermost(struct cairn_frame *frame)
{
    memset(frame->private_words, 0, sizeof frame->private_words);
    frame->pc = 0;
    frame->is_calling = true;
    frame->is_innermost = false;
    frame->module = NULL;
}

/* Finds the caller's PC. It is 0 past an outermost frame that its rules do not mark as such. */
static enum cairn_status find_return_address(struct step *step, uint64_t stack_end)
{
    const struct cairn_arch *arch = arch_host();
    const void *saved = step->to.private_words[ARCH_UNWIND_RETURN_ADDRESS];
    uint16_t dwarf = slot_at(ARCH_UNWIND_RETURN_ADDRESS)->dwarf;
    struct call_frame_rule rule = call_frame_rule(step->row, dwarf);
    if (step->entry->description.common.return_register != dwarf)
        return error_set(step->error, CAIRN_ERROR_UNSUPPORTED, step->from->pc,
                         "at 0x%llx the return address is in a column that is not this "
                         "architecture's",
                         (unsigned long long)step->from->pc);
    bool may_stay = arch->has_link_register && step->from->is_innermost;
    if ((stays(rule) && !may_stay) || saved == NULL ||
        (rule.kind == CALL_FRAME_SAVED && step_is_beyond(saved, stack_end)))
        return step_say_not_saved(step->from, step->error);
    step->to.pc = step_load(saved);
    if (step->row->signing != CALL_FRAME_NOT_SIGNED)
        step->to.pc = arch_host_strip_return_address(step->to.pc);
    return CAIRN_OK;
}

static enum cairn_status take(struct step *step, uint64_t stack_end)
{
    /* The rules of the first frame of a program or thread state that there is no return address,
     * and need not define a CFA. */
    uint16_t return_address = slot_at(ARCH_UNWIND_RETURN_ADDRESS)->dwarf;
    if (call_frame_rule(step->row, return_address).kind == CALL_FRAME_UNDEFINED) {
        leave_outermost(&step->to);
        return CAIRN_OK;
    }
    enum cairn_status status = find_cfa(step);
    /* A signal handler may have a separate stack. */
    if (status == CAIRN_OK && !step->entry->description.common.is_signal_frame &&
        !step_is_above(step->from, step->cfa, stack_end))
        return step_say_where_it_ends(step->from, step->cfa, step->error);
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS;
         status == CAIRN_OK && i < arch_host()->unwind_slot_count; i++) {
        struct call_frame_rule rule = call_frame_rule(step->row, slot_at(i)->dwarf);
        if (!stays(rule))
            status = find_saved(step, rule, slot_at(i)->byte, &step->to.private_words[i]);
    }
    if (status == CAIRN_OK)
        status = find_return_address(step, stack_end);
    if (status == CAIRN_OK)
        status = find_stack_pointer(step);
    if (status != CAIRN_OK)
        return status;
    step->to.is_calling = !step->entry->description.common.is_signal_frame;
    step->to.is_innermost = false;
    step->to.module = NULL;
    if (step->to.pc != 0)
        step_set_module(&step->to);
    /* A link register is not known after a signal frame, so its caller is not found. */
    if (!step->to.is_calling && !arch_host()->has_link_register)
        frame_leave_own_code(&step->to);
    return CAIRN_OK;
}

enum cairn_status frame_step_native(struct cairn_frame *frame, uint64_t stack_end,
                                    struct cairn_error *error)
{
    struct entry entry;
    struct call_frame_row row;
    struct call_frame rows;
    uint64_t pc = frame->pc - frame->is_calling;
    enum cairn_status status = find_entry(pc, &entry, error);
    /* With glibc on PPC64, threads begin in code without unwind rules. The back chain shows that
     * the frame is the first of its stack. */
    if (status == CAIRN_ERROR_NOT_FOUND && arch_host()->has_back_chain && frame->pc != 0 &&
        step_load((const void *)(uintptr_t)frame->sp) == 0) {
        leave_outermost(frame);
        return CAIRN_OK;
    }
    if (status != CAIRN_OK)
        return status;
    bool found = true;
    row.end = 0;
    call_frame_begin(&rows, &entry.section, &entry.description,
                     arch_host()->signs_return_addresses);
    while (found && row.end <= pc) {
        status = call_frame_next(&rows, &row, &found, error);
        if (status != CAIRN_OK)
            return status;
    }
    if (!found)
        return say_no_entry(pc, error);
    struct step step = {.from = frame, .entry = &entry, .row = &row, .to = *frame, .error = error};
    status = take(&step, stack_end);
    if (status == CAIRN_OK)
        *frame = step.to;
    return status;
}
