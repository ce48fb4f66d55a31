/*
 * Changing one site: all that can be refused is refused before the first write.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch/patch.h"

#include "base/error.h"
#include "patch/boundaries.h"
#include "patch/commit.h"

#include <string.h>

/* ---- Checks ---- */

enum cairn_status patch_check_module(const struct site_table *sites, enum cairn_strength strength,
                                     struct cairn_error *error)
{
    if (atomic_load_explicit(&sites->retired, memory_order_acquire))
        return error_set(error, CAIRN_ERROR_STATE, 0, "the site's module has been retired");
    if (strength == CAIRN_SYNC && !code_space_can_synchronise(sites->space))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "this kernel has no membarrier with core synchronisation: patch with "
                         "CAIRN_RELAXED");
    if (!code_space_is_own(sites->space))
        return code_space_after_fork(sites->space, error);
    return CAIRN_OK;
}

static enum site_form form_of(const cairn_site *site)
{
    return (enum site_form)atomic_load_explicit(&site->form, memory_order_relaxed);
}

enum cairn_status patch_check_live(const cairn_site *site, struct cairn_error *error)
{
    if (!site->live)
        return error_set(error, CAIRN_ERROR_UNMANAGED, site->address,
                         "site %llu at 0x%llx cannot be patched live: %s",
                         (unsigned long long)site_id(site), (unsigned long long)site->address,
                         site->reason);
    if (form_of(site) == SITE_FORM_WRITTEN)
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx holds bytes of the host: restore it first",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    return CAIRN_OK;
}

static bool is_unpublished(const cairn_site *site)
{
    return !atomic_load_explicit(&site->table->published, memory_order_acquire);
}

static bool is_quiescent(const cairn_site *site, enum cairn_strength strength)
{
    return strength == CAIRN_QUIESCENT || is_unpublished(site);
}

enum cairn_status patch_plan(cairn_site *site, enum arch_branch branch, const void *target,
                             struct change *change, struct cairn_error *error)
{
    if (branch != ARCH_BRANCH_NOP && target == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, site->address,
                         "site %llu: NULL is no target; make the site a no-op instead",
                         (unsigned long long)site_id(site));
    return plan_branch(site, branch, (uintptr_t)target, change, error);
}

static enum cairn_status synchronise(const cairn_site *site, enum cairn_strength strength,
                                     struct cairn_error *error)
{
    if (strength == CAIRN_RELAXED || !code_space_can_synchronise(site->table->space))
        return CAIRN_OK;
    return code_space_synchronise(site->table->space, error);
}

/* ---- Live changes ---- */

static enum cairn_status patch_live(cairn_site *site, enum arch_branch branch, const void *target,
                                    enum cairn_strength strength, struct cairn_error *error)
{
    struct change change;
    enum cairn_status status = patch_check_live(site, error);
    if (status == CAIRN_OK)
        status = patch_plan(site, branch, target, &change, error);
    if (status == CAIRN_OK)
        status = commit_change(&change, error);
    if (status != CAIRN_OK)
        return status;
    return synchronise(site, strength, error);
}

/* ---- Quiescent changes: more than one instruction ---- */

static enum cairn_status write_region(cairn_site *site, const uint8_t *bytes, size_t size,
                                      enum site_form form, enum cairn_strength strength,
                                      struct cairn_error *error)
{
    enum cairn_status status =
        code_block_write(site->table->block, site->address, bytes, size, error);
    if (status != CAIRN_OK)
        return status;
    atomic_store_explicit(&site->form, (uint8_t)form, memory_order_release);
    return synchronise(site, strength, error);
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

/* No-ops over what is replaced, and the branch among them. */
static void fill_in_branch(const cairn_site *site, const struct change *change, uint8_t *bytes,
                           size_t size)
{
    const struct cairn_arch *arch = site->table->arch;
    size_t offset = site->instruction_offset;
    size_t end = offset + site->instruction_length;
    arch->fill_nops(bytes, offset);
    memcpy(bytes + offset, &change->bits, site->instruction_length);
    arch->fill_nops(bytes + end, size - end);
}

static enum cairn_status patch_quiescent(cairn_site *site, enum arch_branch branch,
                                         const void *target, enum cairn_strength strength,
                                         struct cairn_error *error)
{
    struct change change;
    enum cairn_status status = check_room(site, branch, error);
    if (status == CAIRN_OK)
        status = patch_plan(site, branch, target, &change, error);
    if (status != CAIRN_OK)
        return status;
    size_t size = site->replaced_bytes < site->limit ? site->replaced_bytes : site->limit;
    uint8_t *bytes = memory_new(&site->table->allocator, size, 1);
    if (bytes == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, site->address, "no memory for %zu bytes", size);
    fill_in_branch(site, &change, bytes, size);
    if (change.veneer != NULL)
        atomic_store_explicit(change.veneer->code.slot, change.target, memory_order_release);
    status = write_region(site, bytes, size, SITE_FORM_BRANCH, strength, error);
    memory_free(&site->table->allocator, bytes, size);
    return status;
}

/* ---- The public functions ---- */

static enum cairn_status patch(cairn_site *site, enum arch_branch branch, const void *target,
                               enum cairn_strength strength, struct cairn_error *error)
{
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no site to patch");
    enum cairn_status status = patch_check_module(site->table, strength, error);
    if (status != CAIRN_OK)
        return status;
    if (!site->live && is_quiescent(site, strength) && form_of(site) != SITE_FORM_WRITTEN)
        return patch_quiescent(site, branch, target, strength, error);
    return patch_live(site, branch, target, strength, error);
}

enum cairn_status cairn_site_call(cairn_site *site, const void *target,
                                  enum cairn_strength strength, struct cairn_error *error)
{
    return patch(site, ARCH_BRANCH_CALL, target, strength, error);
}

enum cairn_status cairn_site_jump(cairn_site *site, const void *target,
                                  enum cairn_strength strength, struct cairn_error *error)
{
    return patch(site, ARCH_BRANCH_JUMP, target, strength, error);
}

enum cairn_status cairn_site_nop(cairn_site *site, enum cairn_strength strength,
                                 struct cairn_error *error)
{
    return patch(site, ARCH_BRANCH_NOP, NULL, strength, error);
}

static enum cairn_status restore_live(cairn_site *site, enum cairn_strength strength,
                                      struct cairn_error *error)
{
    struct change change;
    enum cairn_status status = plan_restore(site, &change, error);
    if (status == CAIRN_OK)
        status = commit_change(&change, error);
    if (status != CAIRN_OK)
        return status;
    return synchronise(site, strength, error);
}

/* The first bytes may call through the veneer: its slot has to hold the first target again. */
static enum cairn_status restore_region(cairn_site *site, enum cairn_strength strength,
                                        struct cairn_error *error)
{
    struct change change = {.veneer = NULL};
    if (site->live) {
        enum cairn_status status = plan_restore(site, &change, error);
        if (status != CAIRN_OK)
            return status;
    }
    if (change.veneer != NULL)
        atomic_store_explicit(change.veneer->code.slot, change.target, memory_order_release);
    const uint8_t *initial = site->table->initial_bytes + site->bytes_offset;
    return write_region(site, initial, site->limit, SITE_FORM_INITIAL, strength, error);
}

enum cairn_status cairn_site_restore(cairn_site *site, enum cairn_strength strength,
                                     struct cairn_error *error)
{
    if (site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no site to restore");
    enum cairn_status status = patch_check_module(site->table, strength, error);
    if (status != CAIRN_OK)
        return status;
    if (site->live && form_of(site) != SITE_FORM_WRITTEN)
        return restore_live(site, strength, error);
    if (form_of(site) == SITE_FORM_INITIAL)
        return CAIRN_OK;
    if (!is_quiescent(site, strength))
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx: restoring it changes more than one instruction, "
                         "which needs CAIRN_QUIESCENT",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    return restore_region(site, strength, error);
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
    if (!is_quiescent(site, strength))
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx is published: writing all of it needs "
                         "CAIRN_QUIESCENT",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
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
    size_t padded = padded_size(site, size);
    uint8_t *region = memory_new(&site->table->allocator, padded, 1);
    if (region == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, site->address, "no memory for %zu bytes",
                         padded);
    memcpy(region, bytes, size);
    site->table->arch->fill_nops(region + size, padded - size);
    status = write_region(site, region, padded, SITE_FORM_WRITTEN, strength, error);
    memory_free(&site->table->allocator, region, padded);
    return status;
}
