/*
 * Exits: code that calls the host's handler with the thread's registers, and the actions by which
 * the handler selects how the thread continues.
 *
 * An exit is a separate module without records; the exit itself is in the module's data. So it is
 * protected, retired and freed like other code, and is valid as long as its stub.
 *
 * Actions are validated while the handler runs and performed after it has returned, because the
 * handler may read the frame until then.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/exit.h"

#include "arch/arch.h"
#include "base/error.h"
#include "call/result_registers.h"
#include "frame/frame.h"
#include "record/table.h"
#include "runtime/module.h"
#include "runtime/stub_module.h"

#include <cairn/runtime.h>

#include <stdio.h>
#include <string.h>

enum { TYPE_NAME_BYTES = 64, TYPE_NAMES_BYTES = 80 };

/* ---- Arriving at an exit ---- */

void exit_arrive(struct cairn_exit_call *call, const cairn_runtime *runtime,
                 struct cairn_context *context, uint64_t entry_code)
{
    call->action = EXIT_CONTINUE;
    call->result_count = 0;
    call->entry_code = entry_code;
    call->record = (struct cairn_record){0};
    frame_leave_veneer_context(runtime, context);
    /* This cannot fail: only a missing stack pointer is an error, and an exit's context has one. */
    enum cairn_status status = cairn_frame_from_context(runtime, context, true, &call->frame, NULL);
    (void)status;
    cairn_frame_record(&call->frame, &call->record);
}

/* ---- Continuing ---- */

static const struct cairn_declaration *declaration_of(const struct cairn_exit_call *call)
{
    return call->record.table == NULL ? NULL : cairn_record_declaration(call->record);
}

/* Whether the result's place is the record's first location. Otherwise the ABI defines it. */
static bool is_anyreg(const struct cairn_exit_call *call)
{
    return declaration_of(call)->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
}

enum cairn_status cairn_exit_continue(struct cairn_exit_call *call,
                                      const struct cairn_value *result, struct cairn_error *error)
{
    if (result == NULL) {
        call->action = EXIT_CONTINUE;
        return CAIRN_OK;
    }
    const struct cairn_declaration *declaration = declaration_of(call);
    if (declaration == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, call->frame.pc,
                         "the site before 0x%llx has no declaration, so its result has no type",
                         (unsigned long long)call->frame.pc);
    if (!cairn_type_equal(declaration->result, result->type)) {
        char declared[TYPE_NAME_BYTES];
        char given[TYPE_NAME_BYTES];
        cairn_type_format(declaration->result, declared, sizeof declared);
        cairn_type_format(result->type, given, sizeof given);
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "the site returns %s, and not %s",
                         declared, given);
    }
    enum cairn_status status =
        is_anyreg(call) ? frame_check_location(&call->frame, cairn_record_location(call->record, 0),
                                               result->type, error)
                        : results_check(call->frame.context, result, 1, error);
    if (status != CAIRN_OK)
        return status;
    call->results[0] = *result;
    call->result_count = 1;
    call->action = EXIT_CONTINUE_WITH;
    return CAIRN_OK;
}

/* ---- Returning ---- */

/* Formats a list of types, such as "i64, double"; "nothing" if it is empty. */
static void format_types(const struct cairn_type *types, uint32_t count, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "%s", count == 0 ? "nothing" : "");
    for (uint32_t i = 0; i < count && length < size; i++) {
        char name[TYPE_NAME_BYTES];
        cairn_type_format(types[i], name, sizeof name);
        length += (size_t)snprintf(text + length, size - length, "%s%s", i == 0 ? "" : ", ", name);
    }
}

/* Checks against the function's type only if it is known: if a record was copied into several
 * functions, it does not identify the frame's function. */
enum cairn_status exit_check_types(const struct cairn_exit_call *call,
                                   const struct cairn_results *given, struct cairn_error *error)
{
    const struct cairn_declaration *declaration = declaration_of(call);
    if (declaration == NULL || !declaration->function_results.is_known)
        return CAIRN_OK;
    const struct cairn_results *declared = &declaration->function_results;
    bool is_same = declared->count == given->count;
    for (uint32_t i = 0; is_same && i < given->count; i++)
        is_same = cairn_type_equal(declared->types[i], given->types[i]);
    if (is_same)
        return CAIRN_OK;
    char declared_names[TYPE_NAMES_BYTES];
    char given_names[TYPE_NAMES_BYTES];
    format_types(declared->types, declared->count, declared_names, sizeof declared_names);
    format_types(given->types, given->count, given_names, sizeof given_names);
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "'%.48s' returns %s, and not %s",
                     declaration->function == NULL ? "?" : declaration->function, declared_names,
                     given_names);
}

enum cairn_status cairn_exit_return(struct cairn_exit_call *call, const struct cairn_value *results,
                                    uint32_t result_count, struct cairn_error *error)
{
    if (result_count > CAIRN_EXIT_RESULTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, result_count,
                         "a function returns at most %d results in registers, not %u",
                         CAIRN_EXIT_RESULTS_MAX, result_count);
    struct cairn_results given = {.is_known = true, .count = (uint8_t)result_count};
    for (uint32_t i = 0; i < result_count; i++)
        given.types[i] = results[i].type;
    enum cairn_status status = exit_check_types(call, &given, error);
    if (status == CAIRN_OK)
        status = results_check(call->frame.context, results, result_count, error);
    if (status == CAIRN_OK)
        status = frame_find_restorable_caller(&call->frame, &call->caller, error);
    if (status != CAIRN_OK)
        return status;
    for (uint32_t i = 0; i < result_count; i++)
        call->results[i] = results[i];
    call->result_count = (uint8_t)result_count;
    const struct cairn_declaration *declaration = declaration_of(call);
    call->extends_sign = declaration != NULL && declaration->function_results.is_known &&
                         declaration->function_results.extends_sign;
    call->action = EXIT_RETURN;
    return CAIRN_OK;
}

/* ---- Leaving the exit ---- */

void exit_leave(struct cairn_exit_call *call)
{
    struct cairn_context *context = call->frame.context;
    switch (call->action) {
    case EXIT_CONTINUE_WITH:
        if (is_anyreg(call))
            frame_write_location(&call->frame, cairn_record_location(call->record, 0),
                                 &call->results[0]);
        else
            results_write(context, call->results, 1, false);
        break;
    case EXIT_RETURN:
        frame_restore(&call->caller, context);
        results_write(context, call->results, call->result_count, call->extends_sign);
        break;
    case EXIT_ENTER:
        frame_restore(&call->caller, context);
        enter_begin(call);
        break;
    default:
        break;
    }
}

/* ---- Exits ---- */

enum { DESCRIPTOR_WORDS = 3 };

/* Read-only once the module is loaded. */
struct cairn_exit {
    struct arch_exit data; /* the data that the stub reads */
    /* Function descriptor, on architectures where function pointers point to descriptors. */
    uint64_t descriptor[DESCRIPTOR_WORDS];
    const void *target;
    uint64_t entry_code;
    cairn_runtime *runtime;
    cairn_exit_handler *handler;
    void *user;
};

static void handle(struct cairn_context *context, void *user)
{
    const cairn_exit *exit = user;
    const struct cairn_arch *arch = arch_host();
    struct cairn_exit_call call;
    if (arch->has_descriptors) {
        /* Restores the caller's TOC pointer, because an exit's descriptor has none. A caller that
         * uses a descriptor has saved its TOC pointer. */
        const void *saved = (const void *)(uintptr_t)(context_sp(context) + arch->toc_save_offset);
        enum cairn_status status =
            cairn_context_write(context, arch->toc_register, saved, sizeof(uint64_t), NULL);
        (void)status; /* every context has a place for it */
    }
    exit_arrive(&call, exit->runtime, context, exit->entry_code);
    exit->handler(&call, exit->user);
    exit_leave(&call);
}

/* ORDER PART: the parts of the module, as `cairn_exit_create` lists them. */
enum {
    PART_STUB,
    PART_ENTRY, /* return address of functions that are entered in place of a frame */
    PART_RULES, /* unwind rules of that code */
    PART_EXIT,
    PART_COUNT
};

static enum cairn_status write_parts(void *const *parts, void *user, struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    cairn_exit *exit = parts[PART_EXIT];
    *exit = *(const cairn_exit *)user;
    exit->entry_code = (uintptr_t)parts[PART_ENTRY];
    enter_write_code(parts[PART_ENTRY], parts[PART_RULES]);
    uint64_t address = (uintptr_t)parts[PART_STUB];
    uint64_t data = (uintptr_t)&exit->data;
    enum cairn_status status = arch_exit_init(&exit->data, handle, exit, error);
    if (status != CAIRN_OK)
        return status;
    if (!arch->encode_exit(arch, address, data, parts[PART_STUB]))
        return error_set(error, CAIRN_ERROR_RANGE, address,
                         "an exit at 0x%llx does not reach its data at 0x%llx",
                         (unsigned long long)address, (unsigned long long)data);
    exit->descriptor[0] = address;
    exit->target = arch->has_descriptors ? (const void *)exit->descriptor : parts[PART_STUB];
    return CAIRN_OK;
}

enum cairn_status cairn_exit_create(cairn_runtime *runtime, cairn_exit_handler *handler, void *user,
                                    cairn_exit **exit, struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    if (runtime == NULL || handler == NULL || exit == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_exit_create needs a runtime, a handler and a place for the exit");
    if (arch == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "Cairn has no contexts for this machine");
    const struct stub_part parts[PART_COUNT] = {
        {CAIRN_SECTION_CODE, arch->exit_bytes, arch->veneer_alignment},
        {CAIRN_SECTION_CODE, arch->entry_frame.code_bytes, arch->veneer_alignment},
        {CAIRN_SECTION_UNWIND_TABLE, ENTER_RULES_BYTES, _Alignof(uint64_t)},
        {CAIRN_SECTION_READ_ONLY_DATA, sizeof **exit, _Alignof(cairn_exit)},
    };
    cairn_exit wanted = {.runtime = runtime, .handler = handler, .user = user};
    void *made;
    enum cairn_status status =
        stub_module_load(runtime, "exit", parts, PART_COUNT, write_parts, &wanted, &made, error);
    if (status == CAIRN_OK)
        *exit = made;
    return status;
}

enum cairn_status cairn_site_leave(cairn_site *site, cairn_exit_handler *handler, void *user,
                                   enum cairn_strength strength, cairn_exit **exit,
                                   struct cairn_error *error)
{
    if (site == NULL || exit == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_site_leave needs a site and a place for the exit");
    const cairn_module *module = table_owner(site->table->records);
    cairn_exit *created;
    enum cairn_status status = cairn_exit_create(module->runtime, handler, user, &created, error);
    if (status != CAIRN_OK)
        return status;
    status = cairn_site_call(site, created->target, strength, error);
    if (status == CAIRN_OK)
        *exit = created;
    else
        cairn_exit_destroy(created);
    return status;
}

void cairn_exit_destroy(cairn_exit *exit)
{
    if (exit != NULL)
        stub_module_retire(exit->runtime, exit);
}

const void *cairn_exit_target(const cairn_exit *exit) { return exit->target; }

uint64_t exit_entry_code(const cairn_exit *exit) { return exit->entry_code; }
