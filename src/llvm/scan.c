/*
 * Makes declarations from the IR.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/scan.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "llvm/declared_types.h"
#include "llvm/site_list.h"
#include "llvm/target.h"
#include "llvm/types.h"

#include <cairn/llvm.h>

/* ---- One call ---- */

static void convert_types(const struct site_call *call, struct cairn_type *types)
{
    unsigned count = call->argument_count + call->live_value_count;
    for (unsigned i = 0; i < count; i++)
        types[i] = types_convert(LLVMTypeOf(site_call_value(call, i)));
    declared_types_read(call, types + call->argument_count);
}

/* Declares one call. `types` has space for the types of its arguments and live values. */
static enum cairn_status declare(const struct site_call *call, struct cairn_type *types,
                                 cairn_declarations *declarations, struct cairn_error *error)
{
    convert_types(call, types);
    struct cairn_declaration declaration = {
        .id = call->id,
        .kind = call->kind,
        .byte_count = (uint32_t)call->byte_count,
        .calling_convention = call->calling_convention,
        .has_target = call->has_target,
        .types = types,
        .argument_count = call->argument_count,
        .live_value_count = call->live_value_count,
        .function = site_call_function(call->call),
    };
    if (call->result != NULL)
        declaration.result = types_convert(call->result);
    declaration.function_results =
        types_function_results(LLVMGetBasicBlockParent(LLVMGetInstructionParent(call->call)));
    return cairn_declarations_add(declarations, &declaration, error);
}

/* ---- The calls of a module ---- */

struct scan {
    struct cairn_allocator allocator;
    struct site_call *calls;
    size_t count;
    /* Space for the types of any one of the calls. */
    struct cairn_type *types;
    size_t type_count;
};

/* Rejects targets that LLVM does not call correctly, because the host may compile the module
 * without checking it. */
static enum cairn_status check_target(const struct site_call *call,
                                      enum cairn_architecture architecture,
                                      struct cairn_error *error)
{
    const struct target_problem *problem =
        call->target == NULL ? NULL : target_find_problem(call->target, architecture);
    if (problem == NULL)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, call->id,
                     "in '%.40s': patch point with ID %llu: %s; write %s",
                     site_call_function(call->call), (unsigned long long)call->id, problem->why,
                     problem->instead);
}

static enum cairn_status read_calls(const struct site_list *list, struct scan *scan,
                                    struct cairn_error *error)
{
    scan->calls = memory_new(&scan->allocator, list->count, sizeof *scan->calls);
    if (scan->calls == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu calls", list->count);
    scan->count = list->count;
    scan->type_count = 1;
    for (size_t i = 0; i < list->count; i++) {
        struct site_call *call = &scan->calls[i];
        enum cairn_status status =
            site_call_read(list->uses[i].call, list->uses[i].kind, call, error);
        if (status == CAIRN_OK)
            status = check_target(
                call, types_architecture(LLVMGetGlobalParent(list->uses[i].function)), error);
        if (status != CAIRN_OK)
            return status;
        size_t count = (size_t)call->argument_count + call->live_value_count;
        if (count > scan->type_count)
            scan->type_count = count;
    }
    scan->types = memory_new(&scan->allocator, scan->type_count, sizeof *scan->types);
    if (scan->types == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu types", scan->type_count);
    return CAIRN_OK;
}

static void release(struct scan *scan)
{
    memory_free(&scan->allocator, scan->types, scan->type_count * sizeof *scan->types);
    memory_free(&scan->allocator, scan->calls, scan->count * sizeof *scan->calls);
}

static enum cairn_status declare_all(const struct scan *scan, cairn_declarations *declarations,
                                     struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < scan->count && status == CAIRN_OK; i++)
        status = declare(&scan->calls[i], scan->types, declarations, error);
    return status;
}

/* ---- Conflicts ---- */

/* Whether two calls have the same ID. `places` is a hash table of `place_count` zeros; the count is
 * a power of two and at least twice the number of calls. An entry becomes the number of a call plus
 * 1. */
static bool repeats_ids(const struct scan *scan, size_t *places, size_t place_count)
{
    size_t mask = place_count - 1;
    const struct hash_key key = hash_key_create();
    for (size_t i = 0; i < scan->count; i++) {
        uint64_t id = scan->calls[i].id;
        size_t place = (size_t)(hash_u64(&key, id) >> 32) & mask;
        for (; places[place] != 0; place = (place + 1) & mask)
            if (scan->calls[places[place] - 1].id == id)
                return true;
        places[place] = i + 1;
    }
    return false;
}

/* Checks the calls for conflicts with each other. If an ID occurs more than once, a temporary set
 * of declarations detects conflicts. */
static enum cairn_status check_themselves(const struct scan *scan, struct cairn_error *error)
{
    size_t place_count = 2;
    while (place_count < 2 * scan->count)
        place_count *= 2;
    size_t *places = memory_new(&scan->allocator, place_count, sizeof *places);
    if (places == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu IDs", scan->count);
    bool repeats = repeats_ids(scan, places, place_count);
    memory_free(&scan->allocator, places, place_count * sizeof *places);
    cairn_declarations *trial;
    enum cairn_status status = repeats ? cairn_declarations_create(NULL, &trial, error) : CAIRN_OK;
    if (status != CAIRN_OK || !repeats)
        return status;
    status = declare_all(scan, trial, error);
    cairn_declarations_destroy(trial);
    return status;
}

/* Checks the calls for conflicts with the known declarations. Adding a known declaration again
 * changes nothing, and fails if the shapes differ. */
static enum cairn_status check_known(const struct scan *scan, cairn_declarations *declarations,
                                     struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < scan->count && status == CAIRN_OK; i++)
        if (cairn_declarations_find(declarations, scan->calls[i].id) != NULL)
            status = declare(&scan->calls[i], scan->types, declarations, error);
    return status;
}

/* ---- A module ---- */

/* Declares all calls, or none of them. All conflicts are found before the first declaration is
 * added. If memory runs out later, the added declarations are removed. */
static enum cairn_status declare_consistent(const struct scan *scan,
                                            cairn_declarations *declarations,
                                            struct cairn_error *error)
{
    enum cairn_status status = check_themselves(scan, error);
    if (status == CAIRN_OK)
        status = check_known(scan, declarations, error);
    size_t known = cairn_declarations_count(declarations);
    if (status == CAIRN_OK)
        status = declare_all(scan, declarations, error);
    if (status != CAIRN_OK)
        cairn_declarations_truncate(declarations, known);
    return status;
}

/* Declares all calls. An ID with two shapes becomes undeclared. */
static enum cairn_status declare_undisputed(const struct scan *scan,
                                            cairn_declarations *declarations,
                                            struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < scan->count && status == CAIRN_OK; i++) {
        status = declare(&scan->calls[i], scan->types, declarations, error);
        const struct cairn_declaration none = {.id = scan->calls[i].id,
                                               .kind = CAIRN_RECORD_UNDECLARED};
        if (status == CAIRN_ERROR_CONFLICT)
            status = cairn_declarations_add(declarations, &none, error);
    }
    return status;
}

typedef enum cairn_status declarer(const struct scan *scan, cairn_declarations *declarations,
                                   struct cairn_error *error);

/* Lists the calls for which LLVM may make records. */
static enum cairn_status list_calls(LLVMModuleRef module, struct site_list *list,
                                    struct cairn_error *error)
{
    enum cairn_status status = site_list_create(module, list, error);
    if (status == CAIRN_OK)
        site_list_drop_unemitted(list);
    return status;
}

static enum cairn_status scan_list(const struct site_list *list, declarer *declare_calls,
                                   cairn_declarations *declarations, struct cairn_error *error)
{
    struct scan scan = {.allocator = memory_allocator(NULL)};
    enum cairn_status status = read_calls(list, &scan, error);
    if (status == CAIRN_OK)
        status = declare_calls(&scan, declarations, error);
    release(&scan);
    return status;
}

static enum cairn_status scan_module(LLVMModuleRef module, declarer *declare_calls,
                                     cairn_declarations *declarations, struct cairn_error *error)
{
    struct site_list list;
    enum cairn_status status = list_calls(module, &list, error);
    if (status != CAIRN_OK || list.count == 0) {
        site_list_release(&list);
        return status;
    }
    status = scan_list(&list, declare_calls, declarations, error);
    if (status == CAIRN_ERROR_CORRUPT || status == CAIRN_ERROR_CONFLICT ||
        status == CAIRN_ERROR_UNSUPPORTED) {
        /* Scans again in the order of the module, so that the error is about the first call. */
        site_list_sort(&list);
        status = scan_list(&list, declare_calls, declarations, error);
    }
    site_list_release(&list);
    return status;
}

enum cairn_status cairn_scan_module(LLVMModuleRef module, cairn_declarations *declarations,
                                    struct cairn_error *error)
{
    if (module == NULL || declarations == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_scan_module needs a module and a set of declarations");
    return scan_module(module, declare_consistent, declarations, error);
}

enum cairn_status scan_leaving_conflicts_undeclared(LLVMModuleRef module,
                                                    cairn_declarations *declarations,
                                                    struct cairn_error *error)
{
    return scan_module(module, declare_undisputed, declarations, error);
}

/* ---- New IDs ---- */

bool scan_is_new_id(const struct scan_new_ids *ids, uint64_t id)
{
    return id >= ids->first && id < ids->next;
}

/* Gives new IDs to calls. `known` contains all calls, so an ID that it does not find has two
 * shapes. A call whose own ID was given to another call before gets a new one, too. */
static void renumber(const struct scan *scan, enum scan_renumbered which,
                     const cairn_declarations *known, struct scan_new_ids *ids)
{
    const struct scan_new_ids given = *ids;
    for (size_t i = 0; i < scan->count; i++) {
        const struct site_call *call = &scan->calls[i];
        bool is_disputed =
            cairn_declarations_find(known, call->id) == NULL || scan_is_new_id(&given, call->id);
        if (!is_disputed || (which == SCAN_RENUMBERED_DEFAULTS && !call->has_default_id))
            continue;
        while (cairn_declarations_find(known, ids->next) != NULL)
            ids->next++;
        site_call_set_id(call->call, ids->next++);
    }
}

enum cairn_status scan_renumber_conflicts(LLVMModuleRef module, enum scan_renumbered which,
                                          cairn_declarations *known, struct scan_new_ids *ids,
                                          struct cairn_error *error)
{
    struct site_list list;
    enum cairn_status status = list_calls(module, &list, error);
    if (status != CAIRN_OK || list.count == 0) {
        site_list_release(&list);
        return status;
    }
    site_list_sort(&list);
    struct scan scan = {.allocator = memory_allocator(NULL)};
    status = read_calls(&list, &scan, error);
    if (status == CAIRN_OK)
        status = declare_undisputed(&scan, known, error);
    if (status == CAIRN_OK)
        renumber(&scan, which, known, ids);
    release(&scan);
    site_list_release(&list);
    return status;
}
