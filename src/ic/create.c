/*
 * Creating an inline cache.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "frame/exit.h"
#include "ic/slow_path.h"
#include "record/declarations.h"
#include "runtime/module.h"

static void destroy_slow_path(void *destroyed, const struct cairn_allocator *allocator)
{
    struct slow_path *slow = destroyed;
    cairn_signature_destroy(slow->signature);
    memory_free(allocator, slow, sizeof *slow);
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
    ic->level = &runtime->saved_level;
    enum cairn_status status = ic_place_operands(ic, slow, error);
    if (status == CAIRN_OK)
        status = enter_prepare(runtime, error);
    if (status == CAIRN_OK && ic->options.megamorphic_target != NULL)
        status = check_target(ic, declaration->calling_convention, error);
    return status == CAIRN_OK ? ic_make_exits(ic, error) : status;
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
                         record_kind_name((enum cairn_record_kind)site->kind));
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
