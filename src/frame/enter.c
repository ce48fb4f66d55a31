/*
 * Entering a function in place of a frame: writes the arguments to the registers of the context
 * from which the thread resumes, and to the stack.
 *
 * Arguments on the stack, and PPC64's TOC pointer, need a frame between the entered function and
 * the caller. The entered function returns to code that removes that frame. All exits and inline
 * caches of a runtime share this code. It is in a separate module, which has its unwind rules, so
 * that walks can step from the entered function to its caller. The module exists as long as the
 * runtime, because frames that return to the code may be older than any exit.
 *
 * The arguments overwrite the old frame and may reach the end of the context, which is below the
 * old frame. The bytes of a context from `entered_bytes` of arch_host_layout on hold only registers
 * without a meaning at the entry of a function. All other data in use at that time (the exit's
 * frame and the handler's data) is at lower addresses than the arguments can reach.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "frame/exit.h"

#include "arch/arch.h"
#include "base/error.h"
#include "call/signature.h"
#include "frame/frame.h"
#include "record/declarations.h"
#include "runtime/loader.h"
#include "runtime/module.h"

#include <cairn/runtime.h>

#include <assert.h>
#include <string.h>

/* ---- Unwind rules ---- */

enum {
    VERSION_OF_GCC = 1,
    DATA_ALIGNMENT = 0x78,   /* -8, as SLEB128 */
    ADVANCE_LOCATION = 0x02, /* with a byte */
    SAME_VALUE = 0x08,
    DEFINE_CFA = 0x0C,
    OFFSET_EXTENDED_SF = 0x11,
    SLEB_MASK = 0x7F
};

static uint8_t *put(uint8_t *at, uint64_t value, size_t size)
{
    const uint32_t word = (uint32_t)value;
    memcpy(at, size == sizeof word ? (const void *)&word : &value, size);
    return at + size;
}

static uint8_t *put_u32(uint8_t *at, size_t value) { return put(at, value, sizeof(uint32_t)); }

/* Pads the entry to a multiple of 8 bytes with DW_CFA_nop, and writes its length. */
static uint8_t *end_entry(uint8_t *entry, uint8_t *at)
{
    while ((at - entry) % 8 != 0)
        *at++ = 0;
    put_u32(entry, (size_t)(at - entry) - sizeof(uint32_t));
    return at;
}

/* The rules from `left_offset` on. */
static uint8_t *put_left(uint8_t *at)
{
    const struct cairn_arch *arch = arch_host();
    const struct arch_entry_frame *frame = &arch->entry_frame;
    *at++ = ADVANCE_LOCATION;
    *at++ = frame->left_offset;
    *at++ = DEFINE_CFA;
    *at++ = (uint8_t)arch->unwind_slots[ARCH_UNWIND_STACK_POINTER].dwarf;
    *at++ = frame->left_cfa_offset;
    for (unsigned i = 0; i < frame->saved_count; i++)
        if (frame->saved[i].words * (int)sizeof(uint64_t) < -frame->left_cfa_offset) {
            *at++ = SAME_VALUE;
            *at++ = (uint8_t)frame->saved[i].dwarf;
        }
    return at;
}

enum { RULES_BYTES = 80 };

/* Writes the CIE and the FDE of the code. Source: DWARF 5, section 6.4; Linux Standard Base Core
 * Specification, "Exception Frames". */
static void write_rules(const uint8_t *code, uint8_t *rules)
{
    const struct cairn_arch *arch = arch_host();
    const struct arch_entry_frame *frame = &arch->entry_frame;
    uint8_t *at = put_u32(rules + sizeof(uint32_t), 0);
    *at++ = VERSION_OF_GCC;
    *at++ = 0; /* no augmentation */
    *at++ = 1; /* code alignment */
    *at++ = DATA_ALIGNMENT;
    *at++ = (uint8_t)arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf;
    *at++ = DEFINE_CFA;
    *at++ = (uint8_t)frame->frame_register;
    *at++ = frame->cfa_offset;
    for (unsigned i = 0; i < frame->saved_count; i++) {
        *at++ = OFFSET_EXTENDED_SF;
        *at++ = (uint8_t)frame->saved[i].dwarf;
        *at++ = (uint8_t)(-frame->saved[i].words & SLEB_MASK);
    }
    uint8_t *description = end_entry(rules, at);
    at = put_u32(description + sizeof(uint32_t), (size_t)(description + 4 - rules));
    at = put(at, (uintptr_t)code, sizeof(uint64_t));
    at = put_left(put(at, frame->code_bytes, sizeof(uint64_t)));
    at = end_entry(description, at);
    at = put_u32(at, 0);
    assert(at <= rules + RULES_BYTES);
    (void)at;
}

/* ---- The code ---- */

static uint64_t entry_code(const cairn_runtime *runtime)
{
    return atomic_load_explicit(&runtime->entry_code, memory_order_acquire);
}

/* Allocates the code and its rules, and writes them. */
static enum cairn_status fill_module(cairn_loader *loader, uint8_t **code,
                                     struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    struct cairn_error failure = {0};
    uint8_t *rules = NULL;
    loader_set_level(loader, 0);
    *code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, arch->entry_frame.code_bytes,
                                  arch->veneer_alignment, NULL, &failure);
    if (*code != NULL)
        rules = cairn_loader_allocate(loader, CAIRN_SECTION_UNWIND_TABLE, RULES_BYTES,
                                      _Alignof(uint64_t), NULL, &failure);
    if (rules == NULL)
        return error_set(error, failure.status, failure.offset, "%s", failure.message);
    arch->encode_entry(arch, *code);
    write_rules(*code, rules);
    return CAIRN_OK;
}

static enum cairn_status load_module(cairn_runtime *runtime, cairn_module **module, uint64_t *code,
                                     struct cairn_error *error)
{
    cairn_loader *loader;
    uint8_t *bytes;
    enum cairn_status status = cairn_loader_create(runtime, "entry", &loader, error);
    if (status != CAIRN_OK)
        return status;
    status = fill_module(loader, &bytes, error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, module, error);
    if (status != CAIRN_OK) {
        cairn_loader_destroy(loader);
        return status;
    }
    *code = (uintptr_t)bytes;
    status = cairn_module_publish(*module, error);
    if (status != CAIRN_OK)
        cairn_module_retire(*module);
    return status;
}

/* If two threads create the code at the same time, the second one to finish retires its own. */
enum cairn_status enter_prepare(cairn_runtime *runtime, struct cairn_error *error)
{
    uint64_t code;
    uint64_t none = 0;
    cairn_module *module;
    if (entry_code(runtime) != 0)
        return CAIRN_OK;
    enum cairn_status status = load_module(runtime, &module, &code, error);
    if (status == CAIRN_OK &&
        !atomic_compare_exchange_strong_explicit(&runtime->entry_code, &none, code,
                                                 memory_order_release, memory_order_relaxed))
        cairn_module_retire(module);
    return status;
}

/* ---- The caller ---- */

static bool is_entry_code(const struct cairn_frame *frame)
{
    return frame->pc == entry_code(frame->runtime) + arch_host()->entry_frame.return_offset;
}

/* Finds the caller, skipping frames of such code. Returning to such code has the same effect as
 * returning to its caller, and skipping it keeps the stack from growing when functions are entered
 * one after another. A veneer through which the frame was called is not skipped: the function must
 * return to it. */
static enum cairn_status find_caller(const struct cairn_frame *frame, struct cairn_frame *caller,
                                     struct cairn_error *error)
{
    enum cairn_status status = frame_find_restorable_caller(frame, caller, error);
    while (status == CAIRN_OK) {
        caller->module = runtime_find_frame_module(caller->runtime, caller->pc - 1);
        if (!is_entry_code(caller))
            return CAIRN_OK;
        const struct cairn_frame entry = *caller;
        status = frame_find_restorable_caller(&entry, caller, error);
    }
    return status;
}

/* ---- Registers ---- */

/* Writes a register that check_registers has found in the context. */
static void write_register(struct cairn_context *context, uint16_t dwarf, const void *bytes,
                           size_t size)
{
    enum cairn_status status = cairn_context_write(context, dwarf, bytes, size, NULL);
    (void)status;
}

static enum cairn_status check_registers(const struct cairn_context *context,
                                         const struct arch_call *call, struct cairn_error *error)
{
    const struct arch_arguments *arguments = &arch_host()->arguments;
    bool has_floating =
        call->floating_count == 0 || cairn_context_register_size(context, arguments->floating) > 0;
    bool has_vectors =
        call->vector_count == 0 ||
        cairn_context_register_size(context, arguments->vector) >= CALL_REGISTER_BYTES;
    if (has_floating && has_vectors)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "the machine has no registers for vectors, which the function takes");
}

/* ---- Requesting the entry ---- */

enum cairn_status cairn_exit_enter(struct cairn_exit_call *call, const cairn_signature *signature,
                                   const void *function, const struct cairn_value *arguments,
                                   uint32_t argument_count, struct cairn_error *error)
{
    struct exit_state *state = exit_state_of(call);
    struct arch_call entered;
    struct cairn_frame caller;
    if (signature == NULL || function == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_exit_enter: `%s` is NULL",
                         signature == NULL ? "signature" : "function");
    enum cairn_status status = signature_check(signature, arguments, argument_count, error);
    if (status == CAIRN_OK)
        status = declaration_check_results(exit_declaration(call), &signature->results, error);
    if (status == CAIRN_OK)
        status = find_caller(&call->frame, &caller, error);
    if (status != CAIRN_OK)
        return status;
    /* Registers without an argument are unspecified, but must not leak uninitialised memory. */
    memset(&entered, 0, sizeof entered);
    entered.function = function;
    signature_write(signature, arguments, &entered);
    status = check_registers(call->frame.context, &entered, error);
    if (status != CAIRN_OK)
        return status;
    state->caller = caller;
    state->entered = entered;
    state->action = EXIT_ENTER;
    return CAIRN_OK;
}

/* ---- Performing the entry ---- */

void enter_begin(struct exit_state *state)
{
    struct cairn_context *context = state->call.frame.context;
    const struct arch_call *entered = &state->entered;
    const struct arch_arguments *arguments = &arch_host()->arguments;
    const struct arch_entry entry = {
        .function = entered->function,
        .code = entry_code(state->call.frame.runtime),
        .stack = entered->stack,
        .stack_bytes = entered->stack_bytes,
        .floating_count = entered->floating_count,
    };
    /* Exits reserve the space that keeps the needed part of the context intact. */
    assert(context_sp(context) - arch_host_entry_reach(entered->stack_bytes) >=
           (uintptr_t)context + arch_host_layout.entered_bytes);
    /* On PPC64 a scalar is in the first doubleword only. */
    size_t floating_bytes = arguments->widens_floats ? sizeof(uint64_t) : CALL_REGISTER_BYTES;
    for (unsigned i = 0; i < arguments->general_count; i++)
        write_register(context, arguments->general[i], &entered->general[i], sizeof(uint64_t));
    for (unsigned i = 0; i < entered->floating_count; i++)
        write_register(context, (uint16_t)(arguments->floating + i), entered->floating[i],
                       floating_bytes);
    for (unsigned i = 0; i < entered->vector_count; i++)
        write_register(context, (uint16_t)(arguments->vector + i), entered->vector[i],
                       CALL_REGISTER_BYTES);
    arch_host_enter(context, &entry);
}
