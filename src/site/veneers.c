/* SPDX-License-Identifier: MIT */
#include "site/veneers.h"

#include "base/error.h"

static struct site_veneer *take_free(const cairn_site *site, enum arch_branch branch)
{
    struct site_veneer *veneer = atomic_load_explicit(&site->veneers, memory_order_acquire);
    while (veneer != NULL && (veneer->branch != branch || !veneers_try_to_take(site, veneer)))
        veneer = veneer->next;
    return veneer;
}

static void push(cairn_site *site, struct site_veneer *veneer)
{
    veneer->next = atomic_load_explicit(&site->veneers, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&site->veneers, &veneer->next, veneer,
                                                  memory_order_release, memory_order_relaxed))
        continue;
}

bool veneers_frame_calls(const cairn_site *site)
{
    return site->kind == CAIRN_RECORD_STACKMAP && !site->saves_toc &&
           site->table->arch->encode_framed_veneer != NULL;
}

static enum code_veneer_kind kind_of(const cairn_site *site, enum arch_branch branch)
{
    return branch == ARCH_BRANCH_CALL && veneers_frame_calls(site) ? CODE_VENEER_FRAMED
                                                                   : CODE_VENEER_PLAIN;
}

static enum cairn_status set_up(const cairn_site *site, enum arch_branch branch,
                                struct site_veneer *veneer, struct cairn_error *error)
{
    const struct site_table *sites = site->table;
    enum cairn_status status =
        code_block_add_veneer(sites->block, kind_of(site, branch), 0, &veneer->code, error);
    if (status != CAIRN_OK)
        return status;
    veneer->branch = branch;
    atomic_init(&veneer->taken, true);
    if (sites->arch->encode_branch(branch, word_instruction_address(site), veneer->code.address,
                                   site->instruction_length, &veneer->bits))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_RANGE, site->address,
                     "the veneer of the site at 0x%llx is out of its reach",
                     (unsigned long long)site->address);
}

static enum cairn_status make(cairn_site *site, enum arch_branch branch,
                              struct site_veneer **veneer, struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &site->table->allocator;
    struct site_veneer *made = memory_new(allocator, 1, sizeof *made);
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, site->address, "no memory for a veneer");
    enum cairn_status status = set_up(site, branch, made, error);
    if (status != CAIRN_OK) {
        memory_free(allocator, made, sizeof *made);
        return status;
    }
    push(site, made);
    *veneer = made;
    return CAIRN_OK;
}

enum cairn_status veneers_take(cairn_site *site, enum arch_branch branch,
                               struct site_veneer **veneer, struct cairn_error *error)
{
    *veneer = take_free(site, branch);
    return *veneer != NULL ? CAIRN_OK : make(site, branch, veneer, error);
}

struct site_veneer *veneers_find(const cairn_site *site, uint64_t bits)
{
    struct site_veneer *veneer = atomic_load_explicit(&site->veneers, memory_order_acquire);
    while (veneer != NULL && veneer->bits != bits)
        veneer = veneer->next;
    return veneer;
}

/* ---- From a veneer to its site ---- */

static bool has_framed_veneer(const cairn_site *site, uint64_t address)
{
    struct site_veneer *veneer = atomic_load_explicit(&site->veneers, memory_order_acquire);
    while (veneer != NULL &&
           (veneer->branch != ARCH_BRANCH_CALL || veneer->code.address != address))
        veneer = veneer->next;
    return veneer != NULL && veneers_frame_calls(site);
}

/* The call replaces the first instruction at a stack map's address. Several stack maps may have
 * that address. */
bool site_table_calls_through(const struct site_table *sites, uint64_t return_address, uint64_t pc)
{
    const struct arch_veneer_frame *frame = sites->arch->veneer_frame;
    uint64_t address = return_address - sites->arch->instruction_bytes;
    struct cairn_record record;
    if (frame == NULL || !cairn_table_find_address(sites->records, address, &record))
        return false;
    for (uint32_t i = site_table_from(sites, record.index); i < sites->count; i++) {
        const cairn_site *site = &sites->sites[i];
        if (cairn_record_address((struct cairn_record){sites->records, site->record}) != address)
            return false;
        if (has_framed_veneer(site, pc - frame->return_offset))
            return true;
    }
    return false;
}

void veneers_destroy(cairn_site *site)
{
    struct site_veneer *veneer = atomic_load_explicit(&site->veneers, memory_order_relaxed);
    while (veneer != NULL) {
        struct site_veneer *next = veneer->next;
        memory_free(&site->table->allocator, veneer, sizeof *veneer);
        veneer = next;
    }
}
