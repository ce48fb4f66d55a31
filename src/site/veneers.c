/* SPDX-License-Identifier: MIT */
#include "site/veneers.h"

#include "base/error.h"

/* Takes this veneer, if it is free. Checks twice whether the instruction branches to it: first
 * because that quickly rejects the veneer in use, and again when no other change can put the veneer
 * into use any more. */
static bool try_to_take(const cairn_site *site, struct site_veneer *veneer)
{
    if (veneer->bits == word_read_instruction(site) ||
        atomic_load_explicit(&veneer->taken, memory_order_relaxed) ||
        atomic_exchange_explicit(&veneer->taken, true, memory_order_acq_rel))
        return false;
    if (veneer->bits != word_read_instruction(site))
        return true;
    atomic_store_explicit(&veneer->taken, false, memory_order_release);
    return false;
}

enum cairn_status veneers_take(cairn_site *site, enum cairn_site_state branch,
                               struct site_veneer **veneer, struct cairn_error *error)
{
    const struct site_table *sites = site->table;
    struct site_veneer *taken = atomic_load_explicit(&site->veneers, memory_order_acquire);
    while (taken != NULL && (taken->branch != branch || !try_to_take(site, taken)))
        taken = taken->next;
    *veneer = taken;
    if (taken != NULL)
        return CAIRN_OK;
    taken = memory_new(&sites->allocator, 1, sizeof *taken);
    if (taken == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, site->address, "no memory for a veneer");
    taken->branch = branch;
    atomic_init(&taken->taken, true);
    bool is_framed = branch == CAIRN_SITE_CALL && veneers_frame_calls(site);
    enum cairn_status status = code_block_add_veneer(
        sites->block, is_framed ? CODE_VENEER_FRAMED : CODE_VENEER_PLAIN, 0, &taken->code, error);
    if (status == CAIRN_OK &&
        !sites->arch->encode_branch(sites->arch, branch, word_instruction_address(site),
                                    taken->code.address, site->instruction_length, &taken->bits))
        status = error_set(error, CAIRN_ERROR_RANGE, site->address,
                           "site at 0x%llx: the veneer is out of branch range",
                           (unsigned long long)site->address);
    if (status != CAIRN_OK) {
        memory_free(&sites->allocator, taken, sizeof *taken);
        return status;
    }
    const struct cairn_arch *arch = sites->arch;
    code_watchers_code(
        code_space_watchers(sites->space),
        &(struct code_note){.address = taken->code.address,
                            .size = is_framed ? arch->framed_veneer_bytes : arch->veneer_bytes,
                            .label = "veneer",
                            .site = site});
    taken->next = atomic_load_explicit(&site->veneers, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&site->veneers, &taken->next, taken,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    *veneer = taken;
    return CAIRN_OK;
}

struct site_veneer *veneers_find(const cairn_site *site, uint64_t bits)
{
    struct site_veneer *veneer = atomic_load_explicit(&site->veneers, memory_order_acquire);
    while (veneer != NULL && veneer->bits != bits)
        veneer = veneer->next;
    return veneer;
}

/* The call replaces the first instruction at a stack map's address. Several stack maps may have
 * that address. */
bool site_table_calls_through(const struct site_table *sites, uint64_t return_address, uint64_t pc)
{
    if (sites == NULL)
        return false;
    const struct arch_veneer_frame *frame = sites->arch->veneer_frame;
    uint64_t address = return_address - sites->arch->instruction_bytes;
    struct cairn_record record;
    if (frame == NULL || !cairn_table_find_address(sites->records, address, &record))
        return false;
    for (uint32_t i = site_table_from(sites, record.index); i < sites->count; i++) {
        const cairn_site *site = &sites->sites[i];
        if (cairn_record_address((struct cairn_record){sites->records, site->record}) != address)
            return false;
        const struct site_veneer *veneer =
            atomic_load_explicit(&site->veneers, memory_order_acquire);
        for (; veneer != NULL && veneers_frame_calls(site); veneer = veneer->next)
            if (veneer->branch == CAIRN_SITE_CALL &&
                veneer->code.address == pc - frame->return_offset)
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
