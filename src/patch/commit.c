/*
 * Writing to published sites, and why that is safe.
 *
 * Executing threads.
 *  (A) One change is one store of an aligned word, in which only the instruction differs; what
 *      stands before and after it begins and ends at the same bytes. A core fetches one or the
 *      other. Where a neighbouring site has bytes in the word, the store is a compare-and-swap, so
 *      that each keeps its own.
 *  (B) Behind the instruction nothing changes, so a call that is pending returns to the same
 *      no-ops, whatever the instruction has become.
 *  (C) Before it nothing changes, so a thread stopped at any instruction of the region has either
 *      not reached the instruction yet and fetches it whole later, or has executed it.
 *  (D) What a word branches to is there before the word: a veneer's code never changes, and its
 *      slot is written, by the change that has taken it, before the word. How other cores come to
 *      see the two in that order stands below.
 *
 * What a core that fetches the new word might still have from before, and why it has not.
 *  - The veneer's code. It is written a page at a time, cleaned from the data cache and made
 *    invalid in the instruction caches of all cores, by operations that go to all of them and are
 *    waited for (arch_host_code_written); all this before the page can be executed. AArch64 then
 *    promises that no core fetches a word that was stored later and behind it the old code
 *    ("Ordering of instruction fetches"). PPC64 promises it to cores that have passed a context
 *    synchronisation since. So before the first veneer of a page is given to anybody, there is a
 *    barrier with SYNC_CORE (code/veneer.c, `prepare`): a kernel's return to a thread is such a
 *    synchronisation. It is paid for by the page, so RELAXED has it like all others. A kernel
 *    without SYNC_CORE has no such barrier; on PPC64 it is then only pages that have not held other
 *    code before that are safe.
 *  - The slot. It is data: the stores have to be seen in their order, and the veneer's load has to
 *    come after the fetch of the branch. Both stores are releases (x86-64: any store is; AArch64:
 *    stlr; PPC64: lwsync before it). On x86-64 and AArch64 instructions are fetched in the order of
 *    the program and a load comes after its own fetch. The Power ISA says less; but what was
 *    executed on a predicted way is kept only when the branch to it has been fetched and decoded,
 *    and processors decode in the program's order: so the word was read first there, too. The slot
 *    is an aligned doubleword, so the load gives one target or another, whole.
 *  - The word itself. Until the instruction caches have forgotten it, an older word may be
 * executed, on PPC64 even after a newer one. The change ends with arch_host_code_written of the
 * word, RELAXED or not; what is in a core's pipeline then is executed soon, and CAIRN_SYNC's
 * barrier waits for it. An older word whose veneer has a new slot does what a change that is being
 * made meant it to do.
 *  - A descriptor that a slot points to (PPC64 ELFv1). It is the host's, complete before the host
 *    asks for the change: the release covers it, and loads from it depend on the slot's by their
 *    address.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, section "Memory
 * Ordering"; Arm Architecture Reference Manual for A-profile architecture (DDI 0487), sections
 * "Concurrent modification and execution of instructions" and "Ordering of instruction fetches";
 * Power ISA, Book II, sections "Instruction Storage" and "Concurrent Modification and Execution of
 * Instructions"; membarrier(2).
 *
 * A thread between the call (or jump) and the veneer behind it. It has executed the branch, its
 * return address is on the stack, and it may be stopped there for long. The veneer may meanwhile
 * be taken again, and then it goes where a later change meant its own call to go. That is still
 * the old or the new thing of changes that overlap this execution; and never a jump's target,
 * because a call's veneer is for calls only.
 *
 * Several patchers of one site. Each takes the veneer that it brings, and the instruction goes to
 * none that is taken except by the change that stored it; so it writes a slot that nobody can
 * reach, and preparing a change cannot be seen. The store of the word is the change: all stores
 * of one word are in one order, the last one wins, and at each moment the site does what exactly
 * one of them asked for. (With one veneer a site, its slot written first and the word later, a
 * patcher that is stopped between the two could bring back a target of another one's that a
 * third, finished change had already replaced.)
 *
 * None of this waits for anybody; a signal handler may patch the site whose change it interrupts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch/commit.h"

#include "arch/arch.h"
#include "base/error.h"
#include "patch/veneers.h"

/* ---- Dual mode: through the other view ---- */

static void *alias_of(const cairn_site *site)
{
    return (void *)(uintptr_t)(word_address(site) + site->table->alias_distance);
}

/* Where the rest of the word never changes. */
static void store_word(const cairn_site *site, uint64_t bits)
{
    uint64_t word = site->word_base | bits << site->word_shift;
    if (word_is_narrow(site))
        __atomic_store_n((uint32_t *)alias_of(site), (uint32_t)word, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)alias_of(site), word, __ATOMIC_RELEASE);
}

/* Changes nothing but the instruction; if `expected` is given, only where it is that one. */
static void exchange_in_word(const cairn_site *site, uint64_t bits, const uint64_t *expected)
{
    uint64_t mask = word_instruction_mask(site);
    uint64_t *alias = alias_of(site);
    uint64_t word = __atomic_load_n(alias, __ATOMIC_RELAXED);
    while (expected == NULL || word_instruction_bits(site, word) == *expected)
        if (__atomic_compare_exchange_n(alias, &word, (word & ~mask) | bits << site->word_shift,
                                        true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            break;
}

/* The same where the instruction is all of the word. */
static void exchange_narrow_word(const cairn_site *site, uint64_t bits, uint64_t expected)
{
    uint32_t found = (uint32_t)expected;
    __atomic_compare_exchange_n((uint32_t *)alias_of(site), &found, (uint32_t)bits, false,
                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void make_visible(const cairn_site *site)
{
    arch_host_code_written(alias_of(site), (const void *)(uintptr_t)word_address(site),
                           site->table->arch->word_bytes);
}

static void change_word(const struct change *change)
{
    if (change->site->shares_word)
        exchange_in_word(change->site, change->bits, NULL);
    else
        store_word(change->site, change->bits);
    atomic_store_explicit(&change->site->noted_bits, change->bits, memory_order_release);
    make_visible(change->site);
}

/* ---- Single and Toggle mode: pages are replaced, or toggled ---- */

/* Only instructions are written, and with the code space locked: the other bytes of their words are
 * those of that moment, whoever they belong to. */
struct writing {
    const struct change_list *list;
    uint8_t bytes[ARCH_WORD_BYTES_MAX];
};

static void fill_write(struct writing *writing, const cairn_site *site, uint64_t bits,
                       struct code_write *write)
{
    word_put_bits(site, bits, writing->bytes);
    *write = (struct code_write){
        .block = site->table->block,
        .address = word_instruction_address(site),
        .bytes = writing->bytes,
        .size = site->instruction_length,
    };
}

static bool next_change(void *user, size_t index, struct code_write *write)
{
    struct writing *writing = user;
    struct change *change = change_at(writing->list, index);
    change->old_bits = word_read_instruction(change->site);
    fill_write(writing, change->site, change->bits, write);
    return true;
}

/* Only of sites that still do what the change has made them do. */
static bool next_undo(void *user, size_t index, struct code_write *write)
{
    struct writing *writing = user;
    const struct change *change = change_at(writing->list, index);
    if (!change->may_undo || word_read_instruction(change->site) != change->bits)
        return false;
    fill_write(writing, change->site, change->old_bits, write);
    return true;
}

static enum cairn_status write_all(const struct change_list *list, code_write_source *source,
                                   struct cairn_error *error)
{
    struct writing writing = {.list = list};
    return code_space_write_all(list->first->site->table->space, source, &writing, list->count,
                                error);
}

/* ---- Changes ---- */

static bool is_dual(const cairn_site *site) { return site->table->alias_distance != 0; }

static inline void change_one_word(struct change *change)
{
    plan_write_slot(change);
    change_word(change);
    plan_release(change);
}

static void change_words(const struct change_list *list, bool may_be_undone)
{
    for (size_t i = 0; i < list->count; i++) {
        struct change *change = change_at(list, i);
        if (may_be_undone)
            change->old_bits = word_read_instruction(change->site);
        change_one_word(change);
    }
}

static enum cairn_status change_pages(const struct change_list *list, struct cairn_error *error)
{
    for (size_t i = 0; i < list->count; i++)
        plan_write_slot(change_at(list, i));
    enum cairn_status status = write_all(list, next_change, error);
    plan_release_all(list);
    return status;
}

enum cairn_status commit_changes(const struct change_list *list, bool may_be_undone,
                                 struct cairn_error *error)
{
    if (list->count == 0)
        return CAIRN_OK;
    if (!is_dual(list->first->site))
        return change_pages(list, error);
    change_words(list, may_be_undone);
    return CAIRN_OK;
}

enum cairn_status commit_change(struct change *change, struct cairn_error *error)
{
    if (!is_dual(change->site))
        return commit_changes(&(struct change_list){change, 1, sizeof *change}, false, error);
    change_one_word(change);
    return CAIRN_OK;
}

/* A forked child that has changed nothing yet has its own code in the executed view alone. */
static uint64_t read_instruction(const cairn_site *site)
{
    return code_space_is_own(site->table->space) ? word_read_instruction(site)
                                                 : word_read_executed_instruction(site);
}

/* The slot of a veneer that the instruction goes to does not change, so it belongs to the
 * instruction if that is the same before and after. */
const struct site_veneer *commit_read(const cairn_site *site, uint64_t *bits,
                                      uint64_t *veneer_target)
{
    for (;;) {
        *bits = read_instruction(site);
        const struct site_veneer *veneer = veneers_find(site, *bits);
        if (veneer == NULL)
            return NULL;
        *veneer_target = atomic_load_explicit(veneer->code.slot, memory_order_acquire);
        if (read_instruction(site) == *bits)
            return veneer;
    }
}

/* Writes the old instruction, if the instruction is still the change's. */
static void undo_word(const struct change *change)
{
    const cairn_site *site = change->site;
    if (word_is_narrow(site))
        exchange_narrow_word(site, change->old_bits, change->bits);
    else
        exchange_in_word(site, change->old_bits, &change->bits);
    commit_note(change->site);
    make_visible(site);
}

/* The veneer that the old instruction goes to: its slot still holds the old target, if nobody has
 * taken it since. */
static void begin_undo(struct change *change)
{
    change->veneer = veneers_find(change->site, change->old_bits);
    change->may_undo = true;
    if (change->veneer != NULL && !veneers_try_to_take(change->site, change->veneer)) {
        change->veneer = NULL;
        change->may_undo = false;
    }
}

/* The last one first. */
enum cairn_status commit_undo(const struct change_list *list, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (list->count == 0)
        return status;
    bool dual = is_dual(list->first->site);
    for (size_t i = list->count; i-- > 0;) {
        struct change *change = change_at(list, i);
        begin_undo(change);
        if (dual && change->may_undo)
            undo_word(change);
    }
    if (!dual)
        status = write_all(list, next_undo, error);
    plan_release_all(list);
    return status;
}
