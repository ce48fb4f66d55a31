/*
 * The operands of an inline cache: their types and places, found once, when the cache is created:
 * with anyregcc from the record, otherwise from a signature of their types.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/call.h"
#include "base/error.h"
#include "base/type.h"
#include "ic/slow_path.h"
#include "runtime/runtime.h"

enum { TYPE_NAME_BYTES = 64, WORD_BYTES = 8 };

/* Source: llvm/IR/CallingConv.h. */
enum {
    CONVENTION_FAST = 8,
    CONVENTION_COLD = 9,
    CONVENTION_PRESERVE_MOST = 14,
    CONVENTION_PRESERVE_ALL = 15
};

/* ---- Places ---- */

static uint16_t register_of(struct cairn_location location)
{
    if (location.kind != CAIRN_LOCATION_REGISTER)
        return IC_NO_REGISTER;
    return arch_whole_register(arch_host(), location.dwarf);
}

static enum cairn_status say_operand(const cairn_ic *ic, uint32_t number, struct cairn_error *error)
{
    char name[TYPE_NAME_BYTES];
    cairn_type_format(ic->operands[number].type, name, sizeof name);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, number,
                     "site %llu: operand %u, of type %s, cannot be passed to an inline cache's "
                     "handler",
                     (unsigned long long)site_id(ic->site), number, name);
}

/* Takes the places from the record: first the result, if there is one, then the operands. No
 * operand may be in the link register, which a miss overwrites, because it is a call. */
static enum cairn_status place_by_record(cairn_ic *ic, struct cairn_error *error)
{
    uint16_t link = arch_host()->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf;
    struct slow_path *slow = ic->slow_path;
    uint32_t first = ic->result.type.kind == CAIRN_TYPE_VOID ? 0 : 1;
    uint32_t count = cairn_record_location_count(slow->record);
    uint32_t needed = first + ic->operand_count + slow->declaration->live_value_count;
    if (count != needed)
        return error_set(error, CAIRN_ERROR_CORRUPT, cairn_record_address(slow->record),
                         "record %llu at 0x%llx has %u locations; its declaration needs %u",
                         (unsigned long long)site_id(ic->site),
                         (unsigned long long)cairn_record_address(slow->record), count, needed);
    if (first == 1)
        ic->result.dwarf = register_of(cairn_record_location(slow->record, 0));
    for (uint32_t i = 0; i < ic->operand_count; i++) {
        slow->locations[i] = cairn_record_location(slow->record, first + i);
        ic->operands[i].dwarf = register_of(slow->locations[i]);
        if (ic->operands[i].dwarf == link)
            return error_set(error, CAIRN_ERROR_UNSUPPORTED, i,
                             "site %llu: LLVM has operand %u in %s, where no call finds it",
                             (unsigned long long)site_id(ic->site), i,
                             arch_register_name(arch_host(), link));
    }
    return CAIRN_OK;
}

static struct cairn_location in_register(uint16_t dwarf, size_t size)
{
    return (struct cairn_location){
        .kind = CAIRN_LOCATION_REGISTER, .size = (uint16_t)size, .dwarf = dwarf};
}

/* Converts an offset in struct arch_call to a location. Where there is a TOC, arguments on the
 * stack follow the area that every function has above its stack pointer, which ends with the TOC
 * pointer's place. */
static struct cairn_location location_at(size_t offset, size_t size)
{
    const struct arch_arguments *arguments = &arch_host()->arguments;
    size_t toc = arch_host()->toc_save_offset;
    if (offset >= CALL_STACK)
        return (struct cairn_location){
            .kind = CAIRN_LOCATION_INDIRECT,
            .size = (uint16_t)size,
            .dwarf = arch_host_layout.stack_pointer,
            .offset = (int32_t)(offset - CALL_STACK + (toc == 0 ? 0 : toc + WORD_BYTES))};
    if (offset >= CALL_VECTOR)
        return in_register(
            (uint16_t)(arguments->vector + (offset - CALL_VECTOR) / CALL_REGISTER_BYTES), size);
    if (offset >= CALL_FLOATING)
        return in_register(
            (uint16_t)(arguments->floating + (offset - CALL_FLOATING) / CALL_REGISTER_BYTES), size);
    return in_register(arguments->general[(offset - CALL_GENERAL) / WORD_BYTES], size);
}

static enum cairn_status place_by_signature(cairn_ic *ic, struct cairn_error *error)
{
    struct slow_path *slow = ic->slow_path;
    if (slow->signature == NULL)
        return error_set(error, slow->refused.status, slow->refused.offset, "%s",
                         slow->refused.message);
    for (uint32_t i = 0; i < ic->operand_count; i++) {
        const struct signature_argument *argument = &slow->signature->arguments[i];
        bool is_vector = argument->form == SIGNATURE_WHOLE;
        if (argument->form == SIGNATURE_HALVES)
            return say_operand(ic, i, error);
        slow->locations[i] =
            location_at(argument->offset, is_vector ? SIGNATURE_VECTOR_BYTES : WORD_BYTES);
        ic->operands[i].dwarf = register_of(slow->locations[i]);
    }
    const struct arch_results *results = &arch_host()->results;
    enum signature_kind kind = signature_kind(ic->result.type);
    if (kind == SIGNATURE_GENERAL)
        ic->result.dwarf = results->general[0];
    else if (kind == SIGNATURE_FLOATING)
        ic->result.dwarf = results->floating[0];
    else if (kind == SIGNATURE_VECTOR)
        ic->result.dwarf = results->vector[0];
    return CAIRN_OK;
}

/* Finds the places of operands and result. coldcc, preserve_mostcc and preserve_allcc pass
 * arguments as C does. fastcc does so, too, except where the C convention gives arguments in
 * registers a place in memory. */
static enum cairn_status place(cairn_ic *ic, struct cairn_error *error)
{
    const struct slow_path *slow = ic->slow_path;
    uint32_t convention = slow->declaration->calling_convention;
    switch (convention) {
    case CAIRN_CALLING_CONVENTION_ANYREG:
        return place_by_record(ic, error);
    case CONVENTION_FAST:
        if (arch_host()->arguments.has_places)
            break;
        return place_by_signature(ic, error);
    case CAIRN_CALLING_CONVENTION_C:
    case CONVENTION_COLD:
    case CONVENTION_PRESERVE_MOST:
    case CONVENTION_PRESERVE_ALL:
        return place_by_signature(ic, error);
    }
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, convention,
                     "site %llu has LLVM's calling convention number %u, of which inline caches do "
                     "not know where arguments are: use anyregcc or the C calling convention",
                     (unsigned long long)site_id(ic->site), convention);
}

/* ---- Types ---- */

/* Sets the types of operands and result, and creates the signature of the site's calls. A failure
 * to create it matters only if the operands are placed by it. */
static enum cairn_status take_types(cairn_ic *ic, struct slow_path *slow, struct cairn_error *error)
{
    const struct cairn_declaration *declaration = slow->declaration;
    if (declaration->argument_count > CAIRN_IC_OPERANDS_MAX)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, declaration->argument_count,
                         "site %llu has %u operands; inline caches take %d at most",
                         (unsigned long long)site_id(ic->site), declaration->argument_count,
                         CAIRN_IC_OPERANDS_MAX);
    ic->operand_count = declaration->argument_count;
    ic->result = (struct ic_value){declaration->result, IC_NO_REGISTER};
    for (uint32_t i = 0; i < ic->operand_count; i++) {
        ic->operands[i] = (struct ic_value){declaration->types[i], IC_NO_REGISTER};
        if (cairn_type_size(declaration->types[i]) == 0)
            return say_operand(ic, i, error);
    }
    uint32_t result_count = declaration->result.kind == CAIRN_TYPE_VOID ? 0 : 1;
    enum cairn_status status = cairn_signature_create(
        &slow->runtime->allocator, &declaration->result, result_count, declaration->types,
        declaration->argument_count, &slow->signature, &slow->refused);
    if (status == CAIRN_ERROR_MEMORY)
        return error_set(error, status, 0, "%s", slow->refused.message);
    if (slow->signature != NULL && slow->signature->results_refused.status != CAIRN_OK)
        slow->refused = slow->signature->results_refused;
    ic->calls_refused = slow->refused.status == CAIRN_OK ? NULL : &slow->refused;
    /* With other conventions, the site keeps values in registers that C functions may change. */
    ic->calls_straight = declaration->calling_convention == CAIRN_CALLING_CONVENTION_C ||
                         declaration->calling_convention == CONVENTION_FAST;
    return CAIRN_OK;
}

enum cairn_status ic_place_operands(cairn_ic *ic, struct slow_path *slow, struct cairn_error *error)
{
    enum cairn_status status = take_types(ic, slow, error);
    return status == CAIRN_OK ? place(ic, error) : status;
}
