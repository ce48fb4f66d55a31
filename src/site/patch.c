/*
 * Changing one site: all that can be refused is refused before the first write, and what fails
 * after it is undone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/patch.h"

#include "base/error.h"
#include "site/boundaries.h"
#include "site/commit.h"

#include <string.h>

/* ---- Checks ---- */

static enum cairn_status check_strength(const struct site_table *sites,
                                        enum cairn_strength strength, struct cairn_error *error)
{
    if ((unsigned)strength > CAIRN_QUIESCENT)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no strength number %u",
                         (unsigned)strength);
    if (strength != CAIRN_RELAXED && !code_space_can_synchronise(sites->space))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "this system has no membarrier with SYNC_CORE (Linux 4.16), so other "
                         "cores cannot be made to see a patch at once: patch with CAIRN_RELAXED");
    return CAIRN_OK;
}

enum cairn_status patch_check_module(const struct site_table *sites, enum cairn_strength strength,
                                     struct cairn_error *error)
{
    enum cairn_status status = check_strength(sites, strength, error);
    if (status != CAIRN_OK)
        return status;
    if (atomic_load_explicit(&sites->retired, memory_order_acquire))
        return error_set(error, CAIRN_ERROR_STATE, 0, "the site's module has been retired");
    if (!code_space_is_own(sites->space))
        return code_space_after_fork(sites->space, error);
    return CAIRN_OK;
}

static enum site_form form_of(const cairn_site *site)
{
    return (enum site_form)atomic_load_explicit(&site->form, memory_order_relaxed);
}

enum cairn_status patch_refuse(const cairn_site *site, enum site_form form,
                               struct cairn_error *error)
{
    if (form == SITE_FORM_WRITTEN)
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx holds bytes of the host: restore it first, with "
                         "CAIRN_QUIESCENT",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    if (form == SITE_FORM_CACHE)
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx has an inline cache: destroy that first",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    return error_set(error, CAIRN_ERROR_UNMANAGED, site->address,
                     "site %llu at 0x%llx cannot be patched live: %s",
                     (unsigned long long)site_id(site), (unsigned long long)site->address,
                     site->reason);
}

enum cairn_status patch_check_target(const cairn_site *site, const void *target,
                                     struct cairn_error *error)
{
    if (target != NULL)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_ARGUMENT, site->address,
                     "site %llu: NULL is no target; make the site a no-op instead",
                     (unsigned long long)site_id(site));
}

static bool is_quiescent(const cairn_site *site, enum cairn_strength strength)
{
    return strength == CAIRN_QUIESCENT ||
           !atomic_load_explicit(&site->table->published, memory_order_acquire);
}

enum cairn_status patch_synchronise(struct code_space *space, enum cairn_strength strength,
                                    struct cairn_error *error)
{
    return strength == CAIRN_RELAXED ? CAIRN_OK : code_space_synchronise(space, error);
}

/* ---- Live changes ---- */

enum cairn_status patch_live(struct change *change, enum cairn_strength strength,
                             struct cairn_error *error)
{
    enum cairn_status status = plan_change(change, error);
    if (status != CAIRN_OK)
        return status;
    if (strength == CAIRN_RELAXED && commit_is_at_once(change->site)) {
        commit_at_once(change);
        return CAIRN_OK;
    }
    return commit_all(change->site->table->space, &(struct change_list){change, 1, sizeof *change},
                      strength, error);
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
    status = patch_synchronise(sites->space, strength, error);
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

/* The region as it was at first, and as much room again for write_region. NULL: no memory. */
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

static enum cairn_status check_room(const cairn_site *site, enum arch_branch branch,
                                    struct cairn_error *error)
{
    if (site->instruction_length == 0)
        return error_set(error, CAIRN_ERROR_RANGE, site->address, "site %llu at 0x%llx: %s",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         site->reason);
    /* Behind a jump nothing is executed; a call or a no-op would go on inside an instruction. */
    if (branch != ARCH_BRANCH_JUMP && site->replaced_bytes > site->limit)
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "site %llu at 0x%llx: the last instruction that is overwritten ends %u "
                         "bytes behind the shadow, so only a jump fits",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         site->replaced_bytes - site->limit);
    return CAIRN_OK;
}

/* No-ops over what is replaced, and the branch among them, with what belongs to it if there is room
 * for that. */
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

/* Writes the bytes with the change's instruction among them, and ends the change. */
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
    if (form == SITE_FORM_WRITTEN)
        return patch_refuse(site, form, error);
    enum cairn_status status = check_room(site, change->branch, error);
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

/* ---- Calls, jumps, no-ops ---- */

static enum cairn_status patch(struct change *change, enum cairn_strength strength,
                               struct cairn_error *error)
{
    cairn_site *site = change->site;
    enum cairn_status status = patch_check_module(site->table, strength, error);
    if (status != CAIRN_OK)
        return status;
    if (!site->live && is_quiescent(site, strength))
        return patch_quiescent(change, strength, error);
    status = patch_check_live(site, error);
    return status == CAIRN_OK ? patch_live(change, strength, error) : status;
}

static enum cairn_status patch_branch(cairn_site *site, enum arch_branch branch, const void *target,
                                      enum cairn_strength strength, struct cairn_error *error)
{
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no site to patch");
    enum cairn_status status = patch_check_target(site, target, error);
    if (status != CAIRN_OK)
        return status;
    struct change change;
    plan_set_branch(&change, site, branch, (uintptr_t)target);
    return patch(&change, strength, error);
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
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no site to patch");
    struct change change;
    plan_set_branch(&change, site, ARCH_BRANCH_NOP, 0);
    return patch(&change, strength, error);
}

/* ---- Restoring ---- */

/* The first branch of a live site may need a veneer, and not the one that it had. */
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
    /* Also if neither the barrier nor undoing was possible, and the region is restored. */
    if (site->live && form_of(site) == SITE_FORM_INITIAL)
        atomic_store_explicit(&site->settled, change.bits, memory_order_release);
    return status;
}

enum cairn_status cairn_site_restore(cairn_site *site, enum cairn_strength strength,
                                     struct cairn_error *error)
{
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no site to restore");
    enum cairn_status status = patch_check_module(site->table, strength, error);
    if (status != CAIRN_OK)
        return status;
    struct change change = plan_restore(site);
    enum site_form form = form_of(site);
    if (site->live && form == SITE_FORM_INITIAL)
        return patch_live(&change, strength, error);
    if (form == SITE_FORM_INITIAL)
        return CAIRN_OK;
    if (form != SITE_FORM_CACHE && is_quiescent(site, strength))
        return restore_region(site, strength, error);
    return patch_refuse(site, form, error);
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
                         "%zu bytes are no whole instructions: each has %zu", size, step);
    if (!is_quiescent(site, strength))
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx is published: writing all of it needs "
                         "CAIRN_QUIESCENT",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    enum site_form form = form_of(site);
    if (form == SITE_FORM_CACHE)
        return patch_refuse(site, form, error);
    return patch_check_module(site->table, strength, error);
}

/* Bytes to write: all reserved ones of a patch point, and of a shadow up to the next instruction
 * that LLVM put there. */
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
