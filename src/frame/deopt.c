/*
 * Deoptimisation: the actions that a handler can choose for a thread at an exit.
 *
 * Actions are validated while the handler runs and performed after it has returned, because the
 * handler may read the frame until then.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/deopt.h"

#include "arch/arch.h"
#include "base/error.h"
#include "call/result_registers.h"
#include "frame/enter.h"
#include "frame/frame.h"
#include "frame/framed_veneer.h"

#include <stdio.h>
#include <string.h>

enum { TYPE_NAME_BYTES = 64, TYPE_NAMES_BYTES = 80 };

/* ---- Arriving ---- */

void deopt_begin(struct cairn_deopt *deopt, const cairn_runtime *runtime,
                 struct cairn_context *context, uint64_t entry_code)
{
    deopt->action = DEOPT_CONTINUE;
    deopt->result_count = 0;
    deopt->entry_code = entry_code;
    deopt->record = (struct cairn_record){0};
    between_leave_context(runtime, context);
    /* This cannot fail: only a missing stack pointer is an error, and an exit's context has one. */
    enum cairn_status status =
        cairn_frame_from_context(runtime, context, true, &deopt->frame, NULL);
    (void)status;
    cairn_frame_record(&deopt->frame, &deopt->record);
}

/* ---- Continuing ---- */

static const struct cairn_declaration *declaration_of(const struct cairn_deopt *deopt)
{
    return deopt->record.table == NULL ? NULL : cairn_record_declaration(deopt->record);
}

/* Whether the result's place is the record's first location (anyregcc). If not, the ABI defines the
 * place. */
static bool is_anyreg(const struct cairn_deopt *deopt)
{
    return declaration_of(deopt)->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
}

static enum cairn_status check_result(const struct cairn_deopt *deopt,
                                      const struct cairn_value *result, struct cairn_error *error)
{
    const struct cairn_declaration *declaration = declaration_of(deopt);
    if (declaration == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, deopt->frame.pc,
                         "the site before 0x%llx has no declaration, so its result has no type",
                         (unsigned long long)deopt->frame.pc);
    if (!cairn_type_equal(declaration->result, result->type)) {
        char declared[TYPE_NAME_BYTES];
        char given[TYPE_NAME_BYTES];
        cairn_type_format(declaration->result, declared, sizeof declared);
        cairn_type_format(result->type, given, sizeof given);
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "the site returns %s, and not %s",
                         declared, given);
    }
    if (is_anyreg(deopt))
        return frame_check_location(&deopt->frame, cairn_record_location(deopt->record, 0),
                                    result->type, error);
    return results_check(deopt->frame.context, result, 1, error);
}

enum cairn_status cairn_deopt_continue(struct cairn_deopt *deopt, const struct cairn_value *result,
                                       struct cairn_error *error)
{
    if (result == NULL) {
        deopt->action = DEOPT_CONTINUE;
        return CAIRN_OK;
    }
    enum cairn_status status = check_result(deopt, result, error);
    if (status != CAIRN_OK)
        return status;
    deopt->results[0] = *result;
    deopt->result_count = 1;
    deopt->action = DEOPT_CONTINUE_WITH;
    return CAIRN_OK;
}

/* ---- Returning ---- */

/* Returns the results of the frame's function if the declaration contains them, otherwise NULL. */
static const struct cairn_results *function_results(const struct cairn_deopt *deopt)
{
    const struct cairn_declaration *declaration = declaration_of(deopt);
    bool is_known = declaration != NULL && declaration->function_results.is_known;
    return is_known ? &declaration->function_results : NULL;
}

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
static enum cairn_status check_types(const struct cairn_deopt *deopt,
                                     const struct cairn_results *declared,
                                     const struct cairn_results *given, struct cairn_error *error)
{
    bool is_same = declared == NULL || declared->count == given->count;
    for (uint32_t i = 0; declared != NULL && is_same && i < given->count; i++)
        is_same = cairn_type_equal(declared->types[i], given->types[i]);
    if (is_same)
        return CAIRN_OK;
    char declared_names[TYPE_NAMES_BYTES];
    char given_names[TYPE_NAMES_BYTES];
    const char *name = cairn_record_declaration(deopt->record)->function;
    format_types(declared->types, declared->count, declared_names, sizeof declared_names);
    format_types(given->types, given->count, given_names, sizeof given_names);
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "'%.48s' returns %s, and not %s",
                     name == NULL ? "?" : name, declared_names, given_names);
}

enum cairn_status deopt_check_types(const struct cairn_deopt *deopt,
                                    const struct cairn_results *given, struct cairn_error *error)
{
    return check_types(deopt, function_results(deopt), given, error);
}

enum cairn_status cairn_deopt_return(struct cairn_deopt *deopt, const struct cairn_value *results,
                                     uint32_t result_count, struct cairn_error *error)
{
    if (result_count > CAIRN_DEOPT_RESULTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, result_count,
                         "a function returns at most %d results in registers, not %u",
                         CAIRN_DEOPT_RESULTS_MAX, result_count);
    struct cairn_results given = {.is_known = true, .count = (uint8_t)result_count};
    for (uint32_t i = 0; i < result_count; i++)
        given.types[i] = results[i].type;
    const struct cairn_results *declared = function_results(deopt);
    enum cairn_status status = check_types(deopt, declared, &given, error);
    if (status == CAIRN_OK)
        status = results_check(deopt->frame.context, results, result_count, error);
    if (status == CAIRN_OK)
        status = frame_find_restorable_caller(&deopt->frame, &deopt->caller, error);
    if (status != CAIRN_OK)
        return status;
    for (uint32_t i = 0; i < result_count; i++)
        deopt->results[i] = results[i];
    deopt->result_count = (uint8_t)result_count;
    deopt->extends_sign = declared != NULL && declared->extends_sign;
    deopt->action = DEOPT_RETURN;
    return CAIRN_OK;
}

/* ---- Leaving ---- */

void deopt_end(struct cairn_deopt *deopt)
{
    struct cairn_context *context = deopt->frame.context;
    switch (deopt->action) {
    case DEOPT_CONTINUE_WITH:
        if (is_anyreg(deopt))
            frame_write_location(&deopt->frame, cairn_record_location(deopt->record, 0),
                                 &deopt->results[0]);
        else
            results_write(context, deopt->results, 1, false);
        break;
    case DEOPT_RETURN:
        frame_restore(&deopt->caller, context);
        results_write(context, deopt->results, deopt->result_count, deopt->extends_sign);
        break;
    case DEOPT_ENTER:
        frame_restore(&deopt->caller, context);
        enter_begin(deopt);
        break;
    default:
        break;
    }
}
