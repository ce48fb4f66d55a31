/* SPDX-License-Identifier: MIT */
#include "site/veneers.h"

#include "base/error.h"

/* Takes this veneer, if it is free and the instruction does not branch to it. No change can have
 * stored a branch to it since, because that change would have taken it: `turns` would differ. */
static bool try_to_take(const cairn_site *site, struct site_veneer *veneer, uint32_t turns)
{
    return turns % 2 == 0 && veneer->bits != word_read_instruction(site) &&
           atomic_compare_exchange_strong_explicit(&veneer->turns, &turns, turns + 1,
                                                   memory_order_acq_rel, memory_order_acquire);
}

/* Takes a free veneer. Returns NULL only if there was a moment at which no veneer was free: the
 * search is repeated if any was taken or released since the previous search, because that may have
 * freed one that this search had passed. */
static struct site_veneer *take_free(const cairn_site *site, enum cairn_site_state branch)
{
    uint64_t previous, turns = UINT64_MAX;
    do {
        previous = turns;
        turns = 0;
        struct site_veneer *veneer = atomic_load_explicit(&site->veneers, memory_order_acquire);
        for (; veneer != NULL; veneer = veneer->next) {
            if (veneer->branch != branch)
                continue;
            uint32_t current = atomic_load_explicit(&veneer->turns, memory_order_acquire);
            if (try_to_take(site, veneer, current))
                return veneer;
            turns += current;
        }
    } while (turns != previous);
    return NULL;
}

static enum cairn_status write_code(cairn_site *site, struct site_veneer *veneer,
                                    struct cairn_error *error)
{
    const struct site_table *sites = site->table;
    const struct cairn_arch *arch = sites->arch;
    bool is_framed = veneer->branch == CAIRN_SITE_CALL && veneers_frame_calls(site);
    enum cairn_status status = code_block_add_veneer(
        sites->block, is_framed ? CODE_VENEER_FRAMED : CODE_VENEER_PLAIN, 0, &veneer->code, error);
    if (status != CAIRN_OK)
        return status;
    if (!arch->encode_branch(arch, veneer->branch, word_instruction_address(site),
                             veneer->code.address, site->instruction_length, &veneer->bits))
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "site at 0x%llx: the veneer is out of branch range",
                         (unsigned long long)site->address);
    if (veneer->branch == CAIRN_SITE_JUMP)
        atomic_store_explicit(&veneer->code.slot[1], word_instruction_address(site),
                              memory_order_relaxed);
    code_watchers_code(
        code_space_watchers(sites->space),
        &(struct code_note){.address = veneer->code.address,
                            .size = is_framed ? arch->framed_veneer_bytes : arch->veneer_bytes,
                            .label = "veneer",
                            .site = site});
    return CAIRN_OK;
}

/* Makes a veneer and adds it to the site's list. */
static enum cairn_status make(cairn_site *site, enum cairn_site_state branch, uint32_t turns,
                              struct site_veneer **veneer, struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &site->table->allocator;
    struct site_veneer *made = memory_new(allocator, 1, sizeof *made);
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, site->address, "no memory for a veneer");
    made->branch = branch;
    atomic_init(&made->turns, turns);
    enum cairn_status status = write_code(site, made, error);
    if (status != CAIRN_OK) {
        memory_free(allocator, made, sizeof *made);
        return status;
    }
    made->next = atomic_load_explicit(&site->veneers, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&site->veneers, &made->next, made,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    *veneer = made;
    return CAIRN_OK;
}

enum cairn_status veneers_take(cairn_site *site, enum cairn_site_state branch,
                               struct site_veneer **veneer, struct cairn_error *error)
{
    *veneer = take_free(site, branch);
    return *veneer != NULL ? CAIRN_OK : make(site, branch, 1, veneer, error);
}

enum cairn_status veneers_reserve(cairn_site *site, enum cairn_site_state branch, size_t count,
                                  struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    struct site_veneer *veneer = atomic_load_explicit(&site->veneers, memory_order_acquire);
    for (; veneer != NULL && count > 0; veneer = veneer->next)
        count -= veneer->branch == branch &&
                 atomic_load_explicit(&veneer->turns, memory_order_relaxed) % 2 == 0;
    for (; count > 0 && status == CAIRN_OK; count--)
        status = make(site, branch, 0, &veneer, error);
    return status;
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
