/* SPDX-License-Identifier: MIT */
#include "patch/plan.h"

#include "base/error.h"

/* ---- Veneers ---- */

static enum cairn_status make_veneer(cairn_site *site, uint64_t target, struct site_veneer **veneer,
                                     struct cairn_error *error)
{
    struct site_table *sites = site->table;
    struct site_veneer *made = memory_new(&sites->allocator, 1, sizeof *made);
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a veneer");
    enum cairn_status status = code_block_add_veneer(sites->block, target, &made->code, error);
    if (status != CAIRN_OK) {
        memory_free(&sites->allocator, made, sizeof *made);
        return status;
    }
    made->next = atomic_load_explicit(&sites->veneers, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&sites->veneers, &made->next, made,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    *veneer = made;
    return CAIRN_OK;
}

/* The site's veneer for calls or for jumps. Of two threads that make one at the same time, one
 * makes it in vain: it goes with the module. */
static enum cairn_status get_veneer(cairn_site *site, enum arch_branch branch, uint64_t target,
                                    struct site_veneer **veneer, struct cairn_error *error)
{
    _Atomic(struct site_veneer *) *place =
        branch == ARCH_BRANCH_CALL ? &site->call_veneer : &site->jump_veneer;
    *veneer = atomic_load_explicit(place, memory_order_acquire);
    if (*veneer != NULL)
        return CAIRN_OK;
    struct site_veneer *made = NULL;
    enum cairn_status status = make_veneer(site, target, &made, error);
    if (status != CAIRN_OK)
        return status;
    struct site_veneer *first = NULL;
    bool is_first = atomic_compare_exchange_strong_explicit(
        place, &first, made, memory_order_acq_rel, memory_order_acquire);
    *veneer = is_first ? made : first;
    return CAIRN_OK;
}

/* ---- Branches ---- */

static enum cairn_status plan_through_veneer(cairn_site *site, enum arch_branch branch,
                                             uint64_t target, struct change *change,
                                             struct cairn_error *error)
{
    enum cairn_status status = get_veneer(site, branch, target, &change->veneer, error);
    if (status != CAIRN_OK)
        return status;
    if (!site->table->arch->encode_branch(branch, site_instruction_address(site),
                                          change->veneer->code.address, site->instruction_length,
                                          &change->bits))
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "the veneer of the site at 0x%llx is out of its reach",
                         (unsigned long long)site->address);
    return CAIRN_OK;
}

enum cairn_status plan_branch(cairn_site *site, enum arch_branch branch, uint64_t target,
                              struct change *change, struct cairn_error *error)
{
    change->site = site;
    change->veneer = NULL;
    change->target = target;
    if (site->table->arch->encode_branch(branch, site_instruction_address(site), target,
                                         site->instruction_length, &change->bits))
        return CAIRN_OK;
    return plan_through_veneer(site, branch, target, change, error);
}

enum cairn_status plan_restore(cairn_site *site, struct change *change, struct cairn_error *error)
{
    if (!site->keeps_original)
        return plan_branch(site, (enum arch_branch)site->initial_branch, site->initial_target,
                           change, error);
    *change = (struct change){.site = site, .bits = site->initial_bits};
    return CAIRN_OK;
}

/* ---- The patch word ---- */

uint8_t plan_word_shift(const cairn_site *site)
{
    return (uint8_t)(8 * (site_instruction_address(site) - site_word_address(site)));
}

uint64_t plan_read_word(const cairn_site *site)
{
    const void *word = (const void *)(uintptr_t)site_word_address(site);
    if (site->table->arch->word_bytes == sizeof(uint32_t))
        return __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
}
