/*
 * Inline caches, the slow path: the handlers for threads that no case matched.
 *
 * The code of a cache ends like an exit's stub, so its handlers get a frame with all registers, and
 * in addition the operands. The places of the operands are found once, when the cache is created:
 * with anyregcc from the record, otherwise from a signature of their types.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ic/cache.h"

#include "arch/call.h"
#include "base/error.h"
#include "base/type.h"
#include "call/signature.h"
#include "frame/exit.h"
#include "frame/frame.h"
#include "runtime/events.h"
#include "runtime/module.h"
#include "value/representation.h"

#include <cairn/call.h>
#include <cairn/frame.h>
#include <string.h>

enum { TYPE_NAME_BYTES = 64, WORD_BYTES = 8, WORD_BITS = 64 };

/* Invariant: `locations` are the places of the cache's operands. */
struct slow_path {
    cairn_runtime *runtime;
    struct cairn_record record;
    const struct cairn_declaration *declaration;
    /* The signature of the site's calls; NULL if there cannot be one. `refused` is the error with
     * which calls are refused, or OK. */
    cairn_signature *signature;
    struct cairn_error refused;
    struct cairn_location locations[CAIRN_IC_OPERANDS_MAX];
    /* For the light handler: offsets in a context of the operands and of the result. */
    uint16_t offsets[CAIRN_IC_OPERANDS_MAX];
    uint16_t result_offset;
};

static void destroy_slow_path(void *destroyed, const struct cairn_allocator *allocator)
{
    struct slow_path *slow = destroyed;
    cairn_signature_destroy(slow->signature);
    memory_free(allocator, slow, sizeof *slow);
}

/* ---- Values, most of which are scalars in registers ---- */

/* Whether a register holds the value as a word whose low bytes are the value. */
static bool is_scalar(const struct ic_value *value)
{
    bool is_narrow = value->type.element_count == 0 && value->type.bits <= WORD_BITS;
    bool is_other = arch_host_layout.floats_are_doubles && value->type.kind == CAIRN_TYPE_FLOAT;
    return is_narrow && !is_other && value->dwarf != IC_NO_REGISTER;
}

/* Returns that word. NULL if the value is elsewhere or in another form. */
static void *scalar_place(const struct cairn_frame *frame, const struct ic_value *value)
{
    return is_scalar(value) ? frame_scalar(frame, value->dwarf) : NULL;
}

/* Reads an operand. An operand that cannot be read is void. */
static void read_operand(const struct cairn_frame *frame, const struct ic_value *operand,
                         struct cairn_location location, struct cairn_value *value)
{
    struct cairn_type type = operand->type;
    const void *place = scalar_place(frame, operand);
    if (place != NULL) {
        uint64_t word;
        memcpy(&word, place, sizeof word);
        word &= UINT64_MAX >> (WORD_BITS - type.bits);
        *value = (struct cairn_value){.type = type, .size = (uint32_t)cairn_type_size(type)};
        value_copy_low(value->bytes, value->size, &word, sizeof word);
    } else if (cairn_frame_at_location(frame, location, type, value, NULL) != CAIRN_OK) {
        *value = (struct cairn_value){.size = 0};
    }
}

/* ---- Handling a miss ---- */

static void arrive(const cairn_ic *ic, struct cairn_context *context, struct cairn_exit_call *call,
                   struct cairn_value *operands)
{
    const struct slow_path *slow = ic->slow_path;
    exit_arrive(call, slow->runtime, context);
    call->record = slow->record;
    for (uint32_t i = 0; i < ic->operand_count; i++)
        read_operand(&call->frame, &ic->operands[i], slow->locations[i], &operands[i]);
}

/* Ends the handling. A result that is a scalar in a register is written here, which is faster. */
static void leave(const cairn_ic *ic, struct cairn_exit_call *call)
{
    void *place = scalar_place(&call->frame, &ic->result);
    const struct slow_path *slow = ic->slow_path;
    cairn_log *log = log_of(runtime_sink(slow->runtime));
    bool leaves =
        call->action == EXIT_RETURN || call->action == EXIT_ENTER || call->action == EXIT_RESUME;
    if (event_has_log(log) && leaves)
        exit_note_action(log, slow->runtime, call, 0);
    if (call->action != EXIT_CONTINUE_WITH || place == NULL) {
        exit_leave(call);
        return;
    }
    uint64_t word = 0;
    value_copy_low(&word, sizeof word, call->results[0].bytes, call->results[0].size);
    memcpy(place, &word, sizeof word);
}

static void miss(cairn_ic *ic, cairn_ic_handler *handler, struct cairn_context *context)
{
    struct cairn_exit_call call;
    struct cairn_value operands[CAIRN_IC_OPERANDS_MAX];
    arrive(ic, context, &call, operands);
    if (ic->options.counts_hits)
        atomic_fetch_add_explicit(&ic->misses, 1, memory_order_relaxed);
    struct cairn_ic_miss missed = {
        .ic = ic, .operands = operands, .operand_count = ic->operand_count, .call = &call};
    handler(&missed, ic->options.user);
    leave(ic, &call);
}

static uint64_t truncate(uint64_t word, struct cairn_type type)
{
    return word & UINT64_MAX >> (WORD_BITS - type.bits);
}

/* Calls the light handler with the bits of the operands. */
static bool handle_lightly(struct cairn_context *context, void *user)
{
    cairn_ic *ic = user;
    const struct slow_path *slow = ic->slow_path;
    uint64_t operands[CAIRN_IC_OPERANDS_MAX];
    uint64_t result = 0;
    for (uint32_t i = 0; i < ic->operand_count; i++) {
        memcpy(&operands[i], context->bytes + slow->offsets[i], sizeof operands[i]);
        operands[i] = truncate(operands[i], ic->operands[i].type);
    }
    if (!ic->options.light_handler(operands, &result, ic->options.user))
        return false;
    if (ic->result.type.kind != CAIRN_TYPE_VOID) {
        result = truncate(result, ic->result.type);
        memcpy(context->bytes + slow->result_offset, &result, sizeof result);
    }
    if (ic->options.counts_hits)
        atomic_fetch_add_explicit(&ic->misses, 1, memory_order_relaxed);
    return true;
}

static void handle_miss(struct cairn_context *context, void *user)
{
    cairn_ic *ic = user;
    miss(ic, ic->options.handler, context);
}

static void handle_megamorphic(struct cairn_context *context, void *user)
{
    cairn_ic *ic = user;
    miss(ic, ic->options.megamorphic_handler, context);
}

/* Calls a case's function with the operands. */
static void handle_call(struct cairn_context *context, void *user)
{
    const struct ic_call *called = user;
    const cairn_ic *ic = called->ic;
    const struct slow_path *slow = ic->slow_path;
    struct cairn_exit_call call;
    struct cairn_value operands[CAIRN_IC_OPERANDS_MAX];
    struct cairn_value result;
    arrive(ic, context, &call, operands);
    enum cairn_status status = cairn_call(slow->signature, called->made_for.target, operands,
                                          ic->operand_count, &result, NULL);
    if (status == CAIRN_OK && ic->result.type.kind != CAIRN_TYPE_VOID)
        status = cairn_exit_continue(&call, &result, NULL);
    (void)status; /* cannot fail: the types are the declaration's */
    leave(ic, &call);
}

void cairn_ic_retry(struct cairn_ic_miss *miss) { miss->call->action = EXIT_REPEAT; }

enum cairn_status cairn_ic_return(struct cairn_ic_miss *miss, const struct cairn_value *result,
                                  struct cairn_error *error)
{
    const struct ic_value *expected = &miss->ic->result;
    bool is_expected = result != NULL && type_equal(expected->type, result->type);
    if (!is_expected || scalar_place(&miss->call->frame, expected) == NULL)
        return cairn_exit_continue(miss->call, result, error);
    miss->call->results[0] = *result;
    miss->call->result_count = 1;
    miss->call->action = EXIT_CONTINUE_WITH;
    return CAIRN_OK;
}

/* ---- Places of the operands ---- */

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

/* ---- The light exit ---- */

/* Returns the offset in a context of the word whose low bytes are the value; 0 if the value is
 * elsewhere or in another form. */
static uint16_t scalar_offset(const struct ic_value *value)
{
    const struct arch_context_layout *layout = &arch_host_layout;
    bool is_there = is_scalar(value) && value->dwarf < layout->scalars_end &&
                    value->dwarf != layout->stack_pointer;
    return is_there ? layout->offsets[value->dwarf] : 0;
}

/* Whether misses can call a light handler: all values are scalars in registers. */
static bool find_offsets(const cairn_ic *ic, struct slow_path *slow)
{
    bool has_result = ic->result.type.kind != CAIRN_TYPE_VOID;
    slow->result_offset = has_result ? scalar_offset(&ic->result) : 0;
    bool is_found = !has_result || slow->result_offset != 0;
    for (uint32_t i = 0; i < ic->operand_count; i++) {
        slow->offsets[i] = scalar_offset(&ic->operands[i]);
        is_found &= slow->offsets[i] != 0;
    }
    return is_found;
}

static enum cairn_status make_exits(cairn_ic *ic, struct cairn_error *error)
{
    enum cairn_status status = arch_exit_init(&ic->miss.exit, handle_miss, ic, ic->level, error);
    if (status == CAIRN_OK)
        status = arch_exit_init(&ic->megamorphic.exit, handle_megamorphic, ic, ic->level, error);
    if (status == CAIRN_OK && ic->options.light_handler != NULL &&
        find_offsets(ic, ic->slow_path)) {
        arch_exit_make_light(&ic->miss, handle_lightly);
        arch_exit_make_light(&ic->megamorphic, handle_lightly);
    }
    return status;
}

/* ---- Creating ---- */

/* Source: llvm/IR/CallingConv.h. */
enum {
    CONVENTION_FAST = 8,
    CONVENTION_COLD = 9,
    CONVENTION_PRESERVE_MOST = 14,
    CONVENTION_PRESERVE_ALL = 15
};

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

/* Checks that the site can call the megamorphic target. */
static enum cairn_status check_target(const cairn_ic *ic, uint32_t convention,
                                      struct cairn_error *error)
{
    if (!ic->calls_straight)
        return error_set(error, CAIRN_ERROR_ARGUMENT, convention,
                         "site %llu has LLVM's calling convention number %u%s, with which "
                         "functions cannot be called straight: give a megamorphic handler instead "
                         "of a target",
                         (unsigned long long)site_id(ic->site), convention,
                         convention == CAIRN_CALLING_CONVENTION_ANYREG ? " (anyregcc)" : "");
    return CAIRN_OK;
}

/* Prepares the slow path. On an error, ic_free frees what exists of it. */
static enum cairn_status make_slow_path(cairn_ic *ic, cairn_runtime *runtime,
                                        struct cairn_error *error)
{
    const struct cairn_record record = {ic->site->table->records, ic->site->record};
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    if (declaration == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, cairn_record_address(record),
                         "record %llu has no declaration, so its operands have no types",
                         (unsigned long long)cairn_record_id(record));
    struct slow_path *slow = memory_new(&runtime->allocator, 1, sizeof *slow);
    if (slow == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an inline cache");
    slow->runtime = runtime;
    slow->record = record;
    slow->declaration = declaration;
    ic->slow_path = slow;
    ic->destroy_slow_path = destroy_slow_path;
    ic->call_handler = handle_call;
    ic->level = &runtime->saved_level;
    enum cairn_status status = take_types(ic, slow, error);
    if (status == CAIRN_OK)
        status = place(ic, error);
    if (status == CAIRN_OK)
        status = enter_prepare(runtime, error);
    if (status == CAIRN_OK && ic->options.megamorphic_target != NULL)
        status = check_target(ic, declaration->calling_convention, error);
    return status == CAIRN_OK ? make_exits(ic, error) : status;
}

/* Checks what needs no memory. Whether the site already has a cache is found out under the lock. */
static enum cairn_status check_request(const cairn_site *site,
                                       const struct cairn_ic_options *options,
                                       struct cairn_error *error)
{
    if (options->handler == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_ic_create: `options->handler` is NULL");
    if (options->case_limit > CAIRN_IC_CASE_LIMIT_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, options->case_limit,
                         "an inline cache has %d cases at most, not %u", CAIRN_IC_CASE_LIMIT_MAX,
                         options->case_limit);
    if (site->kind != CAIRN_RECORD_PATCHPOINT)
        return error_set(error, CAIRN_ERROR_UNMANAGED, site->address,
                         "site %llu at 0x%llx is a %s's: inline caches are for patch points",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         cairn_record_kind_name((enum cairn_record_kind)site->kind));
    bool has_cache = atomic_load_explicit(&site->form, memory_order_relaxed) == SITE_FORM_CACHE;
    return has_cache ? CAIRN_OK : plan_check_live(site, SITE_FORM_INITIAL, error);
}

enum cairn_status cairn_ic_create(cairn_site *site, const struct cairn_ic_options *options,
                                  cairn_ic **ic, struct cairn_error *error)
{
    if (site == NULL || options == NULL || ic == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_ic_create: `%s` is NULL",
                         site == NULL      ? "site"
                         : options == NULL ? "options"
                                           : "ic");
    enum cairn_status status = check_request(site, options, error);
    if (status != CAIRN_OK)
        return status;
    const struct cairn_record record = {site->table->records, site->record};
    cairn_runtime *runtime = record_module(record)->runtime;
    uint32_t limit = options->case_limit != 0 ? options->case_limit : CAIRN_IC_CASE_LIMIT_DEFAULT;
    cairn_ic *created = memory_new(&runtime->allocator, 1, ic_bytes(limit));
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an inline cache");
    created->set = &runtime->ics;
    created->site = site;
    created->options = *options;
    created->options.case_limit = limit;
    if (options->megamorphic_handler == NULL)
        created->options.megamorphic_handler = options->handler;
    status = make_slow_path(created, runtime, error);
    if (status == CAIRN_OK)
        status = ic_bind(created, error);
    if (status != CAIRN_OK) {
        ic_free(created);
        return status;
    }
    *ic = created;
    return CAIRN_OK;
}
