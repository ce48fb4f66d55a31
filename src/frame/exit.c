/*
 * Exits: code that calls the host's handler with the thread's registers, and the actions by which
 * the handler selects how the thread continues.
 *
 * An exit is a stub (code/space.h). The data that its code reads follows the code and, like the
 * code, does not change. The handler and its argument are in the stub's description.
 *
 * Actions are validated while the handler runs and performed after it has returned, because the
 * handler may read the frame until then.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/exit.h"

#include "arch/arch.h"
#include "base/error.h"
#include "base/type.h"
#include "call/result_registers.h"
#include "frame/frame.h"
#include "frame/framed_veneer.h"
#include "record/declarations.h"
#include "record/table.h"
#include "runtime/events.h"
#include "runtime/module.h"

#include <cairn/frame_state.h>
#include <cairn/runtime.h>

#include <stddef.h>
#include <string.h>

enum { TYPE_NAME_BYTES = 64 };

/* ---- Arriving at an exit ---- */

void exit_arrive(struct exit_state *state, const cairn_runtime *runtime,
                 struct cairn_context *context)
{
    struct cairn_exit_call *call = &state->call;
    state->action = EXIT_CONTINUE;
    state->result_count = 0;
    call->reason = NULL;
    call->record = (struct cairn_record){0};
    frame_leave_veneer_context(runtime, context);
    /* This cannot fail: only a missing stack pointer is an error, and an exit's context has one. */
    enum cairn_status status = cairn_frame_from_context(runtime, context, true, &call->frame, NULL);
    (void)status;
    cairn_frame_record(&call->frame, &call->record);
}

/* ---- Continuing ---- */

/* Whether the result's place is the record's first location. Otherwise the ABI defines it. */
static bool is_anyreg(const struct cairn_exit_call *call)
{
    return exit_declaration(call)->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
}

enum cairn_status cairn_exit_continue(struct cairn_exit_call *call,
                                      const struct cairn_value *result, struct cairn_error *error)
{
    if (result == NULL) {
        exit_state_of(call)->action = EXIT_CONTINUE;
        return CAIRN_OK;
    }
    const struct cairn_declaration *declaration = exit_declaration(call);
    if (declaration == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, call->frame.pc,
                         "the site before 0x%llx has no declaration, so its result has no type",
                         (unsigned long long)call->frame.pc);
    if (!type_equal(declaration->result, result->type)) {
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
    struct exit_state *state = exit_state_of(call);
    state->results[0] = *result;
    state->result_count = 1;
    state->action = EXIT_CONTINUE_WITH;
    return CAIRN_OK;
}

/* ---- Returning ---- */

enum cairn_status cairn_exit_return(struct cairn_exit_call *call, const struct cairn_value *results,
                                    uint32_t result_count, struct cairn_error *error)
{
    struct exit_state *state = exit_state_of(call);
    if (result_count > CAIRN_EXIT_RESULTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, result_count,
                         "a function returns at most %d results in registers, not %u",
                         CAIRN_EXIT_RESULTS_MAX, result_count);
    struct cairn_results given = {.is_known = true, .count = (uint8_t)result_count};
    for (uint32_t i = 0; i < result_count; i++)
        given.types[i] = results[i].type;
    enum cairn_status status = declaration_check_results(exit_declaration(call), &given, error);
    if (status == CAIRN_OK)
        status = results_check(call->frame.context, results, result_count, error);
    if (status == CAIRN_OK)
        status = frame_find_restorable_caller(&call->frame, &state->caller, error);
    if (status != CAIRN_OK)
        return status;
    for (uint32_t i = 0; i < result_count; i++)
        state->results[i] = results[i];
    state->result_count = (uint8_t)result_count;
    const struct cairn_declaration *declaration = exit_declaration(call);
    state->extends_sign = declaration != NULL && declaration->function_results.is_known &&
                          declaration->function_results.extends_sign;
    state->action = EXIT_RETURN;
    return CAIRN_OK;
}

/* ---- Resuming ---- */

enum cairn_status cairn_exit_resume(struct cairn_exit_call *call,
                                    const struct cairn_context *context, struct cairn_error *error)
{
    if (context == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_exit_resume: `context` is NULL");
    uint64_t pc;
    uint64_t sp;
    enum cairn_status status =
        cairn_context_read(context, CAIRN_REGISTER_SP, &sp, sizeof sp, error);
    if (status == CAIRN_OK)
        status = cairn_context_read(context, CAIRN_REGISTER_PC, &pc, sizeof pc, error);
    if (status != CAIRN_OK)
        return status;
    if (pc == 0)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "the context has no program counter");
    if (sp < call->frame.sp)
        return error_set(error, CAIRN_ERROR_ARGUMENT, sp,
                         "the context's stack pointer, 0x%llx, is further in than the site's, "
                         "0x%llx",
                         (unsigned long long)sp, (unsigned long long)call->frame.sp);
    exit_state_of(call)->target = context;
    exit_state_of(call)->action = EXIT_RESUME;
    return CAIRN_OK;
}

/* In programs with AddressSanitizer: makes the stack accessible, because functions that are left
 * without returning do not. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-*) */
extern void __asan_handle_no_return(void) __attribute__((weak));

static void copy_target(const struct cairn_context *target, struct cairn_context *context)
{
    if (__asan_handle_no_return != NULL)
        __asan_handle_no_return();
    memmove(context, target, sizeof *context);
}

/* ---- Events ---- */

/* Returns the innermost interpreter frame that the record describes. Its position is UINT64_MAX if
 * there are no frame states. */
static struct cairn_interpreter_frame innermost_frame(const struct cairn_exit_call *call)
{
    struct cairn_frame_state state = {.next_live_value = 0};
    struct cairn_interpreter_frame frame = {.position = UINT64_MAX};
    while (call->record.table != NULL &&
           cairn_frame_state_read(&call->frame, call->record, state.next_live_value, &state,
                                  NULL) == CAIRN_OK)
        if (cairn_frame_state_frame(&state, state.frame_count - 1, &frame, NULL) != CAIRN_OK)
            break;
    return frame;
}

/* Fills in where the thread is, and returns the name of the function. */
static const char *describe(struct cairn_log_event *event, const cairn_runtime *runtime,
                            const struct cairn_exit_call *call)
{
    uint64_t start;
    const cairn_module *module = call->frame.module;
    event->address = call->frame.pc;
    event->module = event_module(runtime_sink(runtime), module == NULL ? 0 : module->number);
    if (call->record.table != NULL) {
        event->id = cairn_record_id(call->record);
        event->address = cairn_record_address(call->record);
    }
    return event_function(module, event->address, &start);
}

uint64_t exit_note_arrival(cairn_log *log, const cairn_runtime *runtime,
                           const struct cairn_exit_call *call)
{
    enum { SOURCE_BYTES = 256 };
    struct cairn_interpreter_frame frame = innermost_frame(call);
    struct cairn_log_event event = {.kind = CAIRN_LOG_EXIT, .a = frame.position};
    char text[SOURCE_BYTES];
    const char *source = NULL;
    const char *name = describe(&event, runtime, call);
    if (frame.position != UINT64_MAX)
        source = log_describe_position(log, frame.function, frame.position, text, sizeof text);
    return log_record(log, &event, name, source);
}

void exit_note_action(cairn_log *log, const cairn_runtime *runtime, const struct exit_state *state,
                      uint64_t arrival)
{
    const struct cairn_exit_call *call = &state->call;
    static const enum cairn_log_action actions[] = {
        [EXIT_CONTINUE] = CAIRN_LOG_ACTION_CONTINUE,
        [EXIT_CONTINUE_WITH] = CAIRN_LOG_ACTION_CONTINUE,
        [EXIT_RETURN] = CAIRN_LOG_ACTION_RETURN,
        [EXIT_ENTER] = CAIRN_LOG_ACTION_ENTER,
        [EXIT_RESUME] = CAIRN_LOG_ACTION_RESUME,
    };
    uint64_t position = innermost_frame(call).position;
    struct cairn_log_event event = {.kind = CAIRN_LOG_DEOPT, .a = actions[state->action]};
    if (position < UINT32_MAX)
        event.a |= (position + 1) << 32;
    if (arrival != 0)
        event.b = log_nanoseconds(log, log_clock(log) - arrival);
    const char *name = describe(&event, runtime, call);
    log_record(log, &event, name, call->reason);
}

/* ---- Leaving the exit ---- */

void exit_leave(struct exit_state *state)
{
    struct cairn_exit_call *call = &state->call;
    struct cairn_context *context = call->frame.context;
    switch (state->action) {
    case EXIT_CONTINUE_WITH:
        if (is_anyreg(call))
            frame_write_location(&call->frame, cairn_record_location(call->record, 0),
                                 &state->results[0]);
        else
            results_write(context, state->results, 1, false);
        break;
    case EXIT_RETURN:
        frame_restore(&state->caller, context);
        results_write(context, state->results, state->result_count, state->extends_sign);
        break;
    case EXIT_ENTER:
        frame_restore(&state->caller, context);
        enter_begin(state);
        break;
    case EXIT_RESUME:
        copy_target(state->target, context);
        break;
    default:
        break;
    }
}

/* ---- Exits ---- */

enum { DESCRIPTOR_WORDS = 3 };

struct cairn_exit {
    struct code_stub stub; /* must be first */
    cairn_exit_handler *handler;
    void *user;
};

/* What follows the code of an exit. */
struct exit_data {
    struct arch_exit data;
    /* Function descriptor, on architectures where function pointers point to descriptors. */
    uint64_t descriptor[DESCRIPTOR_WORDS];
};

static size_t data_bytes(const struct cairn_arch *arch)
{
    return arch->has_descriptors ? sizeof(struct exit_data)
                                 : offsetof(struct exit_data, descriptor);
}

/* Returns the exit's runtime. To save memory, it is found by the level that the runtime holds. */
static const cairn_runtime *runtime_of(const cairn_exit *exit)
{
    const struct arch_exit *data =
        (const void *)(uintptr_t)(exit->stub.address + arch_host()->exit_bytes);
    const char *level = (const char *)data->level;
    return (const void *)(level - offsetof(cairn_runtime, saved_level));
}

static void handle(struct cairn_context *context, void *user)
{
    const cairn_exit *exit = user;
    const struct cairn_arch *arch = arch_host();
    struct exit_state state;
    struct cairn_exit_call *call = &state.call;
    if (arch->has_descriptors) {
        /* Restores the caller's TOC pointer, because an exit's descriptor has none. A caller that
         * uses a descriptor has saved its TOC pointer. */
        const void *saved = (const void *)(uintptr_t)(context_sp(context) + arch->toc_save_offset);
        enum cairn_status status =
            cairn_context_write(context, arch->toc_register, saved, sizeof(uint64_t), NULL);
        (void)status; /* every context has a place for it */
    }
    const cairn_runtime *runtime = runtime_of(exit);
    exit_arrive(&state, runtime, context);
    EVENT_PROBE2(exit, call->frame.pc, call->frame.sp);
    cairn_log *log = log_of(runtime_sink(runtime));
    uint64_t arrival = event_has_log(log) ? exit_note_arrival(log, runtime, call) : 0;
    exit->handler(call, exit->user);
    EVENT_PROBE3(deopt, call->frame.pc, state.action, call->reason);
    if (event_has_log(log))
        exit_note_action(log, runtime, &state, arrival);
    exit_leave(&state);
}

static enum cairn_status encode(struct code_stub *stub, void *user, uint8_t *code, size_t *size,
                                struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    const cairn_runtime *runtime = user;
    uint64_t address = stub->address + arch->exit_bytes;
    struct exit_data data = {.descriptor = {stub->address}};
    enum cairn_status status =
        arch_exit_init(&data.data, handle, stub, &runtime->saved_level, error);
    if (status != CAIRN_OK)
        return status;
    data.data.self = (struct arch_exit *)(uintptr_t)address;
    if (!arch->encode_exit(arch, stub->address, address, code))
        return error_set(error, CAIRN_ERROR_RANGE, stub->address,
                         "an exit at 0x%llx does not reach its data at 0x%llx",
                         (unsigned long long)stub->address, (unsigned long long)address);
    memcpy(code + arch->exit_bytes, &data, data_bytes(arch));
    *size = arch->exit_bytes + data_bytes(arch);
    return CAIRN_OK;
}

/* Creates an exit for a site, or for any. */
static enum cairn_status create(cairn_runtime *runtime, cairn_exit_handler *handler, void *user,
                                const cairn_site *site, cairn_exit **exit,
                                struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    if (runtime == NULL || handler == NULL || exit == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_exit_create: `%s` is NULL",
                         runtime == NULL   ? "runtime"
                         : handler == NULL ? "handler"
                                           : "exit");
    if (arch == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "cairn_exit_create: unsupported host architecture %s",
                         cairn_architecture_name(cairn_architecture_host()));
    const struct code_stub_request request = {.encode = encode,
                                              .user = runtime,
                                              .code_bytes = arch->exit_bytes + data_bytes(arch),
                                              .label = "exit",
                                              .site = site,
                                              .description_bytes = sizeof **exit};
    struct code_stub *stub;
    enum cairn_status status = enter_prepare(runtime, error);
    if (status == CAIRN_OK)
        status = code_space_add_stub(runtime->space, &request, &stub, error);
    if (status != CAIRN_OK)
        return status;
    *exit = (cairn_exit *)(void *)stub;
    (*exit)->handler = handler;
    (*exit)->user = user;
    return CAIRN_OK;
}

enum cairn_status cairn_exit_create(cairn_runtime *runtime, cairn_exit_handler *handler, void *user,
                                    cairn_exit **exit, struct cairn_error *error)
{
    return create(runtime, handler, user, NULL, exit, error);
}

enum cairn_status cairn_site_leave(cairn_site *site, cairn_exit_handler *handler, void *user,
                                   enum cairn_strength strength, cairn_exit **exit,
                                   struct cairn_error *error)
{
    if (site == NULL || exit == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_site_leave: `%s` is NULL",
                         site == NULL ? "site" : "exit");
    const cairn_module *module = table_owner(site->table->records);
    cairn_exit *created;
    enum cairn_status status = create(module->runtime, handler, user, site, &created, error);
    if (status != CAIRN_OK)
        return status;
    status = cairn_site_call(site, cairn_exit_target(created), strength, error);
    if (status == CAIRN_OK)
        *exit = created;
    else
        cairn_exit_destroy(created);
    return status;
}

void cairn_exit_destroy(cairn_exit *exit)
{
    if (exit != NULL)
        code_stub_retire(&exit->stub);
}

const void *cairn_exit_target(const cairn_exit *exit)
{
    const struct cairn_arch *arch = arch_host();
    size_t descriptor = arch->exit_bytes + offsetof(struct exit_data, descriptor);
    return (const void *)(uintptr_t)(exit->stub.address + (arch->has_descriptors ? descriptor : 0));
}
