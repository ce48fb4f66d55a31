/*
 * Changes sites: one or many live ones, or the whole region of one site under quiescence.
 *
 * Everything that can be refused is refused before the first write. What fails after it is undone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/patch.h"

#include "base/error.h"
#include "site/boundaries.h"
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

/* ---- Live changes ---- */

enum cairn_status patch_live(const struct change_list *list, enum site_form form,
                             enum cairn_strength strength, struct cairn_error *error)
{
    enum cairn_status status = plan_all(list, form, strength, error);
    return status == CAIRN_OK ? commit_all(list, strength, error) : status;
}

/* The same for one change: the list exists only if it has a barrier or replaces pages. */
static enum cairn_status patch_one(struct change *change, enum cairn_strength strength,
                                   struct cairn_error *error)
{
    const struct site_table *checked = NULL;
    enum cairn_status status = plan_one(change, SITE_FORM_INITIAL, strength, &checked, error);
    if (status != CAIRN_OK)
        return status;
    if (commit_is_at_once(change->site, strength)) {
        commit_at_once(change);
        return CAIRN_OK;
    }
    return commit_all(&(struct change_list){change, 1, sizeof *change}, strength, error);
}

/* ---- Quiescent changes: more than one instruction ---- */

/* Writes all that may be written of the region. On failure it is unchanged; only if undoing fails
 * as well, it keeps the new bytes. `old` has space for as many bytes. */
static enum cairn_status write_region(cairn_site *site, const uint8_t *bytes, uint8_t *old,
                                      enum site_form form, enum cairn_strength strength,
                                      struct cairn_error *error)
{
    struct site_table *sites = site->table;
    memcpy(old, (const void *)(uintptr_t)site->address, site->limit);
    enum cairn_status status =
        code_block_write(sites->block, site->address, bytes, site->limit, error);
    if (status != CAIRN_OK)
        return status;
    status = commit_barrier(sites->space, strength, error);
    struct cairn_error failure;
    if (status != CAIRN_OK) {
        if (code_block_write(sites->block, site->address, old, site->limit, &failure) == CAIRN_OK)
            return status;
        error_set_system(error, failure.system_error,
                         "the barrier after a patch was refused, and undoing the patch, too: site "
                         "%llu at 0x%llx has the new bytes",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    }
    if (site->live)
        commit_note(site);
    atomic_store_explicit(&site->form, (uint8_t)form, memory_order_release);
    return status;
}

/* Returns a copy of the initial region, followed by as much space again for write_region. NULL if
 * there is no memory. */
static uint8_t *copy_initial(const cairn_site *site, struct cairn_error *error)
{
    uint8_t *bytes = memory_new(&site->table->allocator, 2, site->limit);
    if (bytes == NULL)
        error_set(error, CAIRN_ERROR_MEMORY, site->address, "no memory for two times %u bytes",
                  site->limit);
    else
        memcpy(bytes, site->table->initial_bytes + site->bytes_offset, site->limit);
    return bytes;
}

static void free_copy(const cairn_site *site, uint8_t *bytes)
{
    memory_free(&site->table->allocator, bytes, 2 * (size_t)site->limit);
}

static enum cairn_status write_and_free(cairn_site *site, uint8_t *bytes, enum site_form form,
                                        enum cairn_strength strength, struct cairn_error *error)
{
    enum cairn_status status =
        write_region(site, bytes, bytes + site->limit, form, strength, error);
    free_copy(site, bytes);
    return status;
}

static enum cairn_status check_space(const cairn_site *site, enum arch_branch branch,
                                     struct cairn_error *error)
{
    if (site->instruction_length == 0)
        return error_set(error, CAIRN_ERROR_RANGE, site->address, "site %llu at 0x%llx: %s",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         site->reason);
    /* No instruction is executed after a jump, but a call or a no-op would continue inside an
     * instruction. */
    if (branch != ARCH_BRANCH_JUMP && site->replaced_bytes > site->limit)
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "site %llu at 0x%llx: the last instruction that is overwritten ends %u "
                         "bytes after the shadow, so only a jump fits",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         site->replaced_bytes - site->limit);
    return CAIRN_OK;
}

/* Writes no-ops over the instructions that are replaced, and the branch among them, with its TOC
 * save and reload if there is space for them. */
static void fill_in_branch(const cairn_site *site, uint64_t bits, uint8_t *bytes)
{
    const struct cairn_arch *arch = site->table->arch;
    size_t size = site->replaced_bytes < site->limit ? site->replaced_bytes : site->limit;
    size_t offset = site->instruction_offset;
    size_t end = offset + site->instruction_length;
    if (site->saves_toc) {
        const struct arch_patchpoint no_target = {.has_call = false};
        const struct arch_placement placement = {offset, site->return_offset};
        arch->arm(arch, bytes, size, &no_target, &placement);
    } else {
        arch->fill_nops(arch, bytes, offset);
        arch->fill_nops(arch, bytes + end, size - end);
    }
    word_put_bits(site, bits, bytes + offset);
}

/* Writes the bytes, which contain the change's instruction, and ends the change. */
static enum cairn_status write_change(struct change *change, uint8_t *bytes, enum site_form form,
                                      enum cairn_strength strength, struct cairn_error *error)
{
    plan_write_slot(change);
    enum cairn_status status = write_and_free(change->site, bytes, form, strength, error);
    plan_release(change);
    return status;
}

static enum cairn_status patch_quiescent(struct change *change, enum cairn_strength strength,
                                         struct cairn_error *error)
{
    cairn_site *site = change->site;
    enum site_form form = form_of(site);
    enum cairn_status status = plan_check_module(site->table, strength, error);
    if (status == CAIRN_OK && form == SITE_FORM_WRITTEN)
        status = plan_refuse(site, form, error);
    if (status == CAIRN_OK)
        status = check_space(site, change->branch, error);
    if (status == CAIRN_OK)
        status = plan_change(change, error);
    if (status != CAIRN_OK)
        return status;
    uint8_t *bytes = copy_initial(site, error);
    if (bytes == NULL) {
        plan_release(change);
        return CAIRN_ERROR_MEMORY;
    }
    fill_in_branch(site, change->bits, bytes);
    return write_change(change, bytes, SITE_FORM_BRANCH, strength, error);
}

/* ---- Changing one site ---- */

static enum cairn_status check_target(const cairn_site *site, enum arch_branch branch,
                                      const void *target, struct cairn_error *error)
{
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no site to change");
    if (target != NULL || branch == ARCH_BRANCH_NOP)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_ARGUMENT, site->address,
                     "site %llu: the target is NULL; make the site a no-op instead",
                     (unsigned long long)site_id(site));
}

static enum cairn_status patch_branch(cairn_site *site, enum arch_branch branch, const void *target,
                                      enum cairn_strength strength, struct cairn_error *error)
{
    enum cairn_status status = check_target(site, branch, target, error);
    if (status != CAIRN_OK)
        return status;
    struct change change;
    plan_set_branch(&change, site, branch, (uintptr_t)target);
    if (!site->live && is_quiescent(site, strength))
        return patch_quiescent(&change, strength, error);
    return patch_one(&change, strength, error);
}

enum cairn_status cairn_site_call(cairn_site *site, const void *target,
                                  enum cairn_strength strength, struct cairn_error *error)
{
    return patch_branch(site, ARCH_BRANCH_CALL, target, strength, error);
}

enum cairn_status cairn_site_jump(cairn_site *site, const void *target,
                                  enum cairn_strength strength, struct cairn_error *error)
{
    return patch_branch(site, ARCH_BRANCH_JUMP, target, strength, error);
}

enum cairn_status cairn_site_nop(cairn_site *site, enum cairn_strength strength,
                                 struct cairn_error *error)
{
    return patch_branch(site, ARCH_BRANCH_NOP, NULL, strength, error);
}

/* ---- Restoring ---- */

/* A live site's initial branch may need a veneer, which need not be the one that it had. */
static enum cairn_status restore_region(cairn_site *site, enum cairn_strength strength,
                                        struct cairn_error *error)
{
    struct change change = plan_restore(site);
    enum cairn_status status = site->live ? plan_change(&change, error) : CAIRN_OK;
    if (status != CAIRN_OK)
        return status;
    uint8_t *bytes = copy_initial(site, error);
    if (bytes == NULL) {
        plan_release(&change);
        return CAIRN_ERROR_MEMORY;
    }
    if (site->live)
        word_put_bits(site, change.bits, bytes + site->instruction_offset);
    status = write_change(&change, bytes, SITE_FORM_INITIAL, strength, error);
    /* Also if both the barrier and undoing were refused, so that the region stays restored. */
    if (site->live && form_of(site) == SITE_FORM_INITIAL)
        atomic_store_explicit(&site->settled, change.bits, memory_order_release);
    return status;
}

enum cairn_status cairn_site_restore(cairn_site *site, enum cairn_strength strength,
                                     struct cairn_error *error)
{
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no site to restore");
    enum cairn_status status = plan_check_module(site->table, strength, error);
    if (status != CAIRN_OK)
        return status;
    struct change change = plan_restore(site);
    enum site_form form = form_of(site);
    if (site->live && form == SITE_FORM_INITIAL)
        return patch_one(&change, strength, error);
    if (form == SITE_FORM_INITIAL)
        return CAIRN_OK;
    if (form != SITE_FORM_CACHE && is_quiescent(site, strength))
        return restore_region(site, strength, error);
    return plan_refuse(site, form, error);
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
    static const enum arch_branch branches[] = {
        [CAIRN_SITE_CHANGE_CALL] = ARCH_BRANCH_CALL,
        [CAIRN_SITE_CHANGE_JUMP] = ARCH_BRANCH_JUMP,
        [CAIRN_SITE_CHANGE_NOP] = ARCH_BRANCH_NOP,
        [CAIRN_SITE_CHANGE_RESTORE] = ARCH_BRANCH_NOP,
    };
    cairn_site *site = wanted->site;
    if ((unsigned)wanted->kind > CAIRN_SITE_CHANGE_RESTORE)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no change number %u",
                         (unsigned)wanted->kind);
    enum cairn_status status = check_target(site, branches[wanted->kind], wanted->target, error);
    if (status != CAIRN_OK)
        return status;
    if (site->table->space != first->table->space)
        return error_set(error, CAIRN_ERROR_ARGUMENT, site->address,
                         "site %llu at 0x%llx belongs to another runtime than site %llu",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         (unsigned long long)site_id(first));
    if (wanted->kind == CAIRN_SITE_CHANGE_RESTORE)
        *change = plan_restore(site);
    else
        plan_set_branch(change, site, branches[wanted->kind], (uintptr_t)wanted->target);
    return CAIRN_OK;
}

enum cairn_status cairn_sites_change(const struct cairn_site_change *changes, size_t count,
                                     enum cairn_strength strength, struct cairn_error *error)
{
    if (count == 0)
        return CAIRN_OK;
    if (changes == NULL || changes->site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no site to change");
    const cairn_site *first = changes->site;
    const struct cairn_allocator *allocator = &first->table->allocator;
    const struct change_list list = {memory_new(allocator, count, sizeof(struct change)), count,
                                     sizeof(struct change)};
    if (list.first == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu changes", count);
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = begin(&list.first[i], &changes[i], first, error);
    if (status == CAIRN_OK)
        status = patch_check_distinct(&list, error);
    if (status == CAIRN_OK)
        status = patch_live(&list, SITE_FORM_INITIAL, strength, error);
    memory_free(allocator, list.first, count * sizeof(struct change));
    return status;
}

/* ---- The host's own bytes ---- */

static enum cairn_status check_write(const cairn_site *site, const void *bytes, size_t size,
                                     enum cairn_strength strength, struct cairn_error *error)
{
    if (site == NULL || bytes == NULL || size == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_site_write needs a site and bytes");
    if (size > site->limit)
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "site %llu at 0x%llx has %u bytes that may be written, not %zu",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         site->limit, size);
    size_t step = site->table->arch->fixed_instruction_bytes;
    if (step != 0 && size % step != 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, size,
                         "%zu bytes are not whole instructions: each has %zu", size, step);
    if (!is_quiescent(site, strength))
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx is published: writing all of it needs "
                         "CAIRN_QUIESCENT",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    enum site_form form = form_of(site);
    if (form == SITE_FORM_CACHE)
        return plan_refuse(site, form, error);
    return plan_check_module(site->table, strength, error);
}

/* Returns how many bytes to write: all reserved bytes of a patch point; of a shadow, the bytes up
 * to the next of LLVM's instructions. */
static size_t padded_size(const cairn_site *site, size_t size)
{
    if (site->kind != CAIRN_RECORD_STACKMAP)
        return site->limit;
    const uint8_t *initial = site->table->initial_bytes + site->bytes_offset;
    size_t boundary = boundaries_next(site->table->arch, initial, site->limit, size);
    return boundary == 0 ? site->limit : boundary;
}

enum cairn_status cairn_site_write(cairn_site *site, const void *bytes, size_t size,
                                   enum cairn_strength strength, struct cairn_error *error)
{
    enum cairn_status status = check_write(site, bytes, size, strength, error);
    if (status != CAIRN_OK)
        return status;
    uint8_t *region = copy_initial(site, error);
    if (region == NULL)
        return CAIRN_ERROR_MEMORY;
    memcpy(region, bytes, size);
    site->table->arch->fill_nops(site->table->arch, region + size, padded_size(site, size) - size);
    return write_and_free(site, region, SITE_FORM_WRITTEN, strength, error);
}
