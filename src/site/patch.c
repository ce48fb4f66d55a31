/*
 * Changes sites: one or many live ones, or the whole region of one site under quiescence.
 *
 * Everything that can be refused is refused before the first write (site/plan.h). What can fail
 * after it is told in site/commit.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/patch.h"

#include "base/error.h"
#include "log/event.h"
#include "site/commit.h"

#include <string.h>

static enum site_form form_of(const cairn_site *site)
{
    return (enum site_form)atomic_load_explicit(&site->form, memory_order_relaxed);
}

static bool is_quiescent(const cairn_site *site, enum cairn_strength strength)
{
    return strength == CAIRN_QUIESCENT ||
           !atomic_load_explicit(&site->table->published, memory_order_acquire);
}

/* ---- Events ---- */

static void note_change(const struct change *change)
{
    const cairn_site *site = change->site;
    const struct log_sink *sink = code_space_sink(site->table->space);
    bool has_target = change->branch != CAIRN_SITE_NOP && !change->original;
    enum cairn_site_state state = change->original ? CAIRN_SITE_ORIGINAL : change->branch;
    uint64_t target = has_target ? change->target : 0;
    EVENT_PROBE3(patch, site->address, state, target);
    if (event_has_log(log_of(sink)))
        event_patch(sink, site->address, site_id(site), site->table->module_number, state, target);
}

/* ---- Live changes ---- */

enum cairn_status patch_commit(const struct change_list *list, enum cairn_strength strength,
                               size_t *made, struct cairn_error *error)
{
    enum cairn_status status = commit_all(list, strength, made, error);
    for (size_t i = 0; i < *made; i++)
        note_change(change_at(list, i));
    return status;
}

enum cairn_status patch_live(const struct change_list *list, enum cairn_strength strength,
                             size_t *made, struct cairn_error *error)
{
    *made = 0;
    enum cairn_status status = plan_all(list, SITE_FORM_INITIAL, strength, error);
    return status == CAIRN_OK ? patch_commit(list, strength, made, error) : status;
}

static inline enum cairn_status patch_one(struct change *change, enum cairn_strength strength,
                                          struct cairn_error *error)
{
    const struct change_list list = {change, 1, sizeof *change};
    const struct site_table *checked = NULL;
    size_t made;
    enum cairn_status status = plan_one(change, SITE_FORM_INITIAL, strength, &checked, error);
    if (status != CAIRN_OK)
        return status;
    status = commit_all(&list, strength, &made, error);
    if (made > 0)
        note_change(change);
    return status;
}

enum cairn_status patch_barrier(struct code_space *space, enum cairn_strength strength,
                                struct cairn_error *error)
{
    enum cairn_status status = plan_check_strength(space, strength, error);
    return status == CAIRN_OK ? commit_barrier(space, strength, error) : status;
}

/* ---- Quiescent changes: more than one instruction ---- */

/* Fills in the new contents of a region: the initial bytes, with Cairn's branch among them if the
 * form is SITE_FORM_BRANCH. */
static void fill_region(const struct change *change, enum site_form form, uint8_t *region)
{
    const cairn_site *site = change->site;
    const struct cairn_arch *arch = site->table->arch;
    const struct arch_patchpoint no_target = {.has_call = false};
    size_t offset = site->instruction_offset;
    size_t end = site->replaced_bytes < site->limit ? site->replaced_bytes : site->limit;
    memcpy(region, site->table->initial_bytes + site->bytes_offset, site->limit);
    if (form != SITE_FORM_BRANCH)
        return;
    if (site->saves_toc) {
        const struct arch_placement placement = {offset, site->return_offset};
        arch->arm(arch, region, end, &no_target, &placement);
    } else {
        size_t after = offset + site->instruction_length;
        arch->fill_nops(arch, region, offset);
        arch->fill_nops(arch, region + after, end - after);
    }
    word_put_bits(site, change->bits, region + offset);
}

/* Writes all that may be written of the region, with the planned change's instruction, and ends the
 * change. */
static enum cairn_status write_region(struct change *change, enum site_form form,
                                      enum cairn_strength strength, struct cairn_error *error)
{
    cairn_site *site = change->site;
    struct site_table *sites = site->table;
    enum cairn_status status;
    uint8_t *region = memory_new(&sites->allocator, 1, site->limit);
    if (region == NULL) {
        status = error_set(error, CAIRN_ERROR_MEMORY, site->address, "no memory for %u bytes",
                           site->limit);
    } else {
        fill_region(change, form, region);
        plan_write_slot(change);
        status = code_block_write(sites->block, site->address, region, site->limit, error);
        memory_free(&sites->allocator, region, site->limit);
    }
    plan_release(change);
    if (status != CAIRN_OK)
        return status;
    atomic_store_explicit(&site->form, (uint8_t)form, memory_order_release);
    note_change(change);
    return commit_barrier(sites->space, strength, error);
}

static enum cairn_status patch_quiescent(struct change *change, enum cairn_strength strength,
                                         struct cairn_error *error)
{
    const cairn_site *site = change->site;
    enum cairn_status status = plan_check_module(site->table, strength, error);
    if (status != CAIRN_OK)
        return status;
    if (site->instruction_length == 0)
        return error_set(error, CAIRN_ERROR_RANGE, site->address, "site %llu at 0x%llx: %s",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         site->reason);
    /* No instruction is executed after a jump, but a call or a no-op would continue inside an
     * instruction. */
    if (change->branch != CAIRN_SITE_JUMP && site->replaced_bytes > site->limit)
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "site %llu at 0x%llx: the last instruction that is overwritten ends %u "
                         "bytes after the shadow, so only a jump fits",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         site->replaced_bytes - site->limit);
    status = plan_change(change, error);
    return status == CAIRN_OK ? write_region(change, SITE_FORM_BRANCH, strength, error) : status;
}

/* ---- Changing one site ---- */

/* Returns why there can be no such branch: there is no site, or no target. */
static enum cairn_status refuse_target(const cairn_site *site, struct cairn_error *error)
{
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "`site` is NULL");
    return error_set(error, CAIRN_ERROR_ARGUMENT, site->address,
                     "site %llu: `target` is NULL; make the site a no-op instead",
                     (unsigned long long)site_id(site));
}

static enum cairn_status patch_branch(cairn_site *site, enum cairn_site_state branch,
                                      const void *target, enum cairn_strength strength,
                                      struct cairn_error *error)
{
    if (site == NULL || (target == NULL && branch != CAIRN_SITE_NOP))
        return refuse_target(site, error);
    struct change change;
    plan_set_branch(&change, site, branch, (uintptr_t)target);
    if (!site->live && is_quiescent(site, strength))
        return patch_quiescent(&change, strength, error);
    return patch_one(&change, strength, error);
}

enum cairn_status cairn_site_call(cairn_site *site, const void *target,
                                  enum cairn_strength strength, struct cairn_error *error)
{
    return patch_branch(site, CAIRN_SITE_CALL, target, strength, error);
}

enum cairn_status cairn_site_jump(cairn_site *site, const void *target,
                                  enum cairn_strength strength, struct cairn_error *error)
{
    return patch_branch(site, CAIRN_SITE_JUMP, target, strength, error);
}

enum cairn_status cairn_site_nop(cairn_site *site, enum cairn_strength strength,
                                 struct cairn_error *error)
{
    return patch_branch(site, CAIRN_SITE_NOP, NULL, strength, error);
}

/* A live site's initial branch may need a veneer, which need not be the one that it had. */
enum cairn_status cairn_site_restore(cairn_site *site, enum cairn_strength strength,
                                     struct cairn_error *error)
{
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_site_restore: `site` is NULL");
    struct change change = plan_restore(site);
    if (site->live)
        return patch_one(&change, strength, error);
    enum cairn_status status = plan_check_module(site->table, strength, error);
    if (status != CAIRN_OK)
        return status;
    enum site_form form = form_of(site);
    if (form == SITE_FORM_INITIAL)
        return commit_barrier(site->table->space, strength, error);
    if (!is_quiescent(site, strength))
        return plan_refuse(site, form, error);
    return write_region(&change, SITE_FORM_INITIAL, strength, error);
}

enum cairn_status cairn_site_reserve(cairn_site *site, uint32_t count, struct cairn_error *error)
{
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_site_reserve: `site` is NULL");
    if (!site->live)
        return plan_refuse(site, form_of(site), error);
    if (site->table->alias_distance == 0)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, site->address,
                         "site %llu: with a single mapping every change takes a lock; make the "
                         "runtime with CAIRN_CODE_MODE_DUAL",
                         (unsigned long long)site_id(site));
    enum cairn_status status = plan_check_module(site->table, CAIRN_RELAXED, error);
    return status == CAIRN_OK ? plan_reserve(site, count, error) : status;
}

/* ---- Changing many sites ---- */

enum cairn_status patch_check_distinct(const struct change_list *list, struct cairn_error *error)
{
    if (list->count < 2)
        return CAIRN_OK;
    /* An open-addressed set of the sites so far. */
    const struct cairn_allocator *allocator = &list->first->site->table->allocator;
    size_t capacity = 4;
    while (capacity < 2 * list->count)
        capacity *= 2;
    const cairn_site **set = memory_new(allocator, capacity, sizeof *set);
    if (set == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a set of %zu sites",
                         list->count);
    const cairn_site *repeated = NULL;
    for (size_t i = 0; i < list->count && repeated == NULL; i++) {
        const cairn_site *site = change_at(list, i)->site;
        uint64_t hash = (uintptr_t)site * UINT64_C(0x9E3779B97F4A7C15);
        size_t place = (size_t)(hash >> 32) & (capacity - 1);
        while (set[place] != NULL && set[place] != site)
            place = (place + 1) & (capacity - 1);
        if (set[place] == site)
            repeated = site;
        set[place] = site;
    }
    memory_free(allocator, (void *)set, capacity * sizeof *set);
    if (repeated == NULL)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CONFLICT, repeated->address,
                     "site %llu at 0x%llx is in the list twice",
                     (unsigned long long)site_id(repeated), (unsigned long long)repeated->address);
}

/* Initialises a change. `first` is a site of the runtime that it must belong to. */
static enum cairn_status begin(struct change *change, const struct cairn_site_change *wanted,
                               const cairn_site *first, struct cairn_error *error)
{
    cairn_site *site = wanted->site;
    bool has_target = wanted->state == CAIRN_SITE_CALL || wanted->state == CAIRN_SITE_JUMP;
    if ((unsigned)wanted->state > CAIRN_SITE_ORIGINAL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "no change makes a site %s",
                         cairn_site_state_name(wanted->state));
    if (site == NULL || (wanted->target == NULL && has_target))
        return refuse_target(site, error);
    if (site->table->space != first->table->space)
        return error_set(error, CAIRN_ERROR_ARGUMENT, site->address,
                         "site %llu at 0x%llx belongs to another runtime than site %llu",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         (unsigned long long)site_id(first));
    if (wanted->state == CAIRN_SITE_ORIGINAL)
        *change = plan_restore(site);
    else
        plan_set_branch(change, site, wanted->state, (uintptr_t)wanted->target);
    return CAIRN_OK;
}

enum cairn_status cairn_sites_change(const struct cairn_site_change *changes, size_t count,
                                     enum cairn_strength strength, struct cairn_error *error)
{
    if (count == 0)
        return CAIRN_OK;
    if (changes == NULL || changes->site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_sites_change: `%s` is NULL",
                         changes == NULL ? "changes" : "site");
    const cairn_site *first = changes->site;
    const struct cairn_allocator *allocator = &first->table->allocator;
    const struct change_list list = {memory_new(allocator, count, sizeof(struct change)), count,
                                     sizeof(struct change)};
    if (list.first == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu changes", count);
    enum cairn_status status = CAIRN_OK;
    size_t made;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = begin(&list.first[i], &changes[i], first, error);
    if (status == CAIRN_OK)
        status = patch_check_distinct(&list, error);
    if (status == CAIRN_OK)
        status = patch_live(&list, strength, &made, error);
    memory_free(allocator, list.first, count * sizeof(struct change));
    return status;
}
