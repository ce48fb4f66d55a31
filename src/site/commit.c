/*
 * Writes the patch words of published sites. This essay says why that is safe.
 *
 * Executing threads.
 *  (A) A change is one store of an aligned word, and it changes only one instruction in the word.
 *      The code before and after that instruction keeps its instruction boundaries. A core fetches
 *      the old instruction or the new one. If the word also holds bytes of a neighbouring site, the
 *      store is a compare-and-swap, so that each site keeps its own bytes.
 *  (B) Nothing after the instruction changes. So a pending call returns to the same no-ops,
 *      whatever the instruction has become. (For the bytes that inline caches write, see
 *      site/inline.h.)
 *  (C) Nothing before the instruction changes. So a thread that is stopped at any instruction of
 *      the region either has not reached the changed instruction, and will fetch it whole, or has
 *      executed it.
 *  (D) The target of a branch is ready before the word is stored. The code of a veneer never
 *      changes. Its slot is written before the word, by the change that has taken the veneer. The
 *      next part says why other cores see the two in that order.
 *
 * Stale state. A core that fetches the new word does not combine it with anything older:
 *  - The veneer's code. It is written before any word branches to it, and does not change while the
 *    veneer exists. arch_host_code_written cleans it from the data cache, invalidates it in the
 *    instruction caches of all cores, and waits for both. AArch64 guarantees that a core which
 *    fetches a word that was stored later does not then fetch older code ("Ordering of instruction
 *    fetches"). PPC64 guarantees this only to cores that have passed a context synchronisation in
 *    between: the kernel's return to a thread is one. So there is a barrier with SYNC_CORE after
 *    the code of a new veneer was written (space_forget_code), on PPC64 always, elsewhere if other
 *    code was released in the slab since the last barrier. A site keeps its veneers, so RELAXED
 *    changes have this barrier like all others. A kernel without SYNC_CORE has no such barrier. On
 *    PPC64, only memory that has not held other code before is safe then.
 *  - The slot. It is data, not code. The two stores must be seen in their order, and the veneer's
 *    load must come after the fetch of the branch. Both stores are releases (any store on x86-64,
 *    stlr on AArch64, a store after lwsync on PPC64). On x86-64 and AArch64, instructions are
 *    fetched in program order, and a load comes after its own fetch. The Power ISA guarantees less.
 *    But instructions that were executed speculatively are kept only if the branch to them was
 *    fetched and decoded, and processors decode in program order, so the word was read first there,
 *    too. The slot is an aligned doubleword, so the load returns one whole target.
 *  - The word. A core may execute an older word until the word is invalidated in the instruction
 *    caches, and on PPC64 even after a newer one. Every change, RELAXED or not, ends with
 *    arch_host_code_written for the word. Instructions that are in a core's pipeline at that time
 *    are executed soon, and the barrier of CAIRN_SYNC waits for them. An older word whose veneer
 *    has a new slot does what a change in progress was meant to do.
 *  - A descriptor that a slot points to (PPC64 ELFv1). It belongs to the host and is complete
 *    before the host requests the change. The release covers it, and loads from it have an address
 *    dependency on the load of the slot.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, section "Memory
 * Ordering"; Arm Architecture Reference Manual for A-profile architecture (DDI 0487), sections
 * "Concurrent modification and execution of instructions" and "Ordering of instruction fetches";
 * Power ISA, Book II, sections "Instruction Storage" and "Concurrent Modification and Execution of
 * Instructions"; membarrier(2).
 *
 * A thread between the branch and its veneer. The thread has executed the call or jump, a call's
 * return address is saved, and the thread may be stopped there for a long time. Meanwhile another
 * change may take the veneer, and then the thread reaches the target of that later change. This
 * target is still one of the old and new targets of the changes that overlap this execution. A call
 * never reaches the target of a jump, because a call's veneer is used for calls only.
 *
 * Several threads that patch one site. Each change takes the veneer that it uses, until it has
 * stored the instruction. No change takes a veneer that the instruction branches to, and only the
 * change that has taken a veneer stores a branch to it. So a change writes a slot that no thread
 * can reach by the present instruction, and preparing a change has no visible effect. The change
 * takes effect with the store of the word. All stores of one word are in one order and the last one
 * wins, so at each moment the site does what exactly one change requested. The word is the only
 * state of the site. No step waits for another thread: a signal handler may patch the site whose
 * change it interrupts. (With only one veneer per site, whose slot is written first and the word
 * later, a thread that is stopped between the two stores could restore its target after a third,
 * finished change had replaced it.) tests/check_sites_model.c tries all interleavings of several
 * changes.
 *
 * Failures. Everything that can fail fails before the first write (site/plan.h), except for two
 * things, and neither is undone:
 *  - The barrier may be refused. The change has been made then, as with CAIRN_RELAXED. Making it
 *    again requests the barrier again. So does every later change: a barrier is one for all stores
 *    before it.
 *  - With a single mapping, the system may refuse to replace a page. The changes before it in the
 *    list have been made, and the word of the others is unchanged. Their slots may have been
 *    written, which is as if the change had been made and replaced at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/commit.h"

#include "arch/arch.h"
#include "base/error.h"
#include "code/write_key.h"
#include "site/veneers.h"

/* ---- Dual mapping: stores through the writable view ---- */

/* Whether the patch word has 4 bytes; otherwise it has 8. */
static bool is_narrow(const cairn_site *site)
{
    return site->table->arch->word_bytes == sizeof(uint32_t);
}

static void *alias_of(const cairn_site *site) { return (void *)(uintptr_t)site->word; }

/* Replaces the instruction in the word and keeps the other bytes. */
static void exchange_in_word(const cairn_site *site, uint64_t bits)
{
    uint64_t mask = word_instruction_mask(site);
    uint64_t *alias = alias_of(site);
    uint64_t word = __atomic_load_n(alias, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(alias, &word, (word & ~mask) | bits << site->word_shift,
                                        true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        continue;
}

static void make_visible(const cairn_site *site)
{
    if (site->table->arch->fetch_is_coherent)
        return;
    arch_host_code_written(alias_of(site), (const void *)(uintptr_t)word_address(site),
                           site->table->arch->word_bytes);
}

/* Stores the change's instruction. If the other bytes of the word never change, the word is stored
 * without being read. */
static void store_instruction(const struct change *change)
{
    cairn_site *site = change->site;
    int rights = write_key_open(site->table->write_key);
    uint64_t word = site->word_base | change->bits << site->word_shift;
    if (site->shares_word)
        exchange_in_word(site, change->bits);
    else if (is_narrow(site))
        __atomic_store_n((uint32_t *)alias_of(site), (uint32_t)word, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)alias_of(site), word, __ATOMIC_RELEASE);
    atomic_store_explicit(&site->noted_bits, change->bits, memory_order_release);
    make_visible(site);
    write_key_close(site->table->write_key, rights);
}

/* ---- Single mapping: pages are replaced ---- */

/* Writes to pages. Only instructions are written, with the code space locked, so the other bytes of
 * their words keep the values of that moment, whichever site they belong to. */
struct writing {
    const struct change_list *list;
    uint8_t bytes[ARCH_WORD_BYTES_MAX];
};

static void next_write(void *user, size_t index, struct code_write *write)
{
    struct writing *writing = user;
    const struct change *change = change_at(writing->list, index);
    const cairn_site *site = change->site;
    word_put_bits(site, change->bits, writing->bytes);
    *write = (struct code_write){
        .block = site->table->block,
        .address = word_instruction_address(site),
        .bytes = writing->bytes,
        .size = site->instruction_length,
    };
}

static enum cairn_status replace_pages(const struct change_list *list, size_t *made,
                                       struct cairn_error *error)
{
    struct writing writing = {.list = list};
    struct cairn_error reason;
    for (size_t i = 0; i < list->count; i++)
        plan_write_slot(change_at(list, i));
    enum cairn_status status = code_space_write_all(list->first->site->table->space, next_write,
                                                    &writing, list->count, made, &reason);
    for (size_t i = 0; i < list->count; i++)
        plan_release(change_at(list, i));
    if (status != CAIRN_OK && error != NULL) {
        error_set(error, status, reason.offset, "%zu of %zu changes have been made: %s", *made,
                  list->count, reason.message);
        error->system_error = reason.system_error;
    }
    return status;
}

/* ---- Both ---- */

enum cairn_status commit_barrier(struct code_space *space, enum cairn_strength strength,
                                 struct cairn_error *error)
{
    return strength == CAIRN_RELAXED ? CAIRN_OK : code_space_synchronise(space, error);
}

enum cairn_status commit_all(const struct change_list *list, enum cairn_strength strength,
                             size_t *made, struct cairn_error *error)
{
    struct change *change = list->first;
    const struct site_table *sites = change->site->table;
    enum cairn_status status = CAIRN_OK;
    *made = list->count;
    if (sites->alias_distance == 0)
        status = replace_pages(list, made, error);
    else
        for (size_t i = list->count; i > 0; i--) {
            plan_write_slot(change);
            store_instruction(change);
            plan_release(change);
            change = (struct change *)(void *)((char *)change + list->stride);
        }
    return status == CAIRN_OK ? commit_barrier(sites->space, strength, error) : status;
}
