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
 * Changes that fail. A change that asks for a barrier is written first, and the barrier may be
 * refused; in Single mode the store itself may be. Then the site must do what it would do
 * without that change. That is not what it did before: others may have changed it since, some
 * of them to the very same instruction, and those may fail, too.
 *  (E) A change is settled when it cannot fail any more: without a barrier in dual mapping before
 *      it writes the word, otherwise when the barrier has succeeded. `settled` is the
 *      instruction of the last change that was written and is settled. A veneer that it branches
 *      to is not taken, as if the instruction branched there. A change that waits for its
 *      barrier has a number, which no other change of the space has, and which is larger than that
 *      of every change that was written to the site before. `latest` is the number of the change
 *      that was written last, or 0 if that is one without a barrier. Changes up to number
 *      `superseded` have a settled one on top of them, and so have all while `latest` is 0: when
 *      their barriers succeed, they settle nothing. `highest` is the largest number that was
 *      written: the first change with a number after one without a barrier finds there up to which
 *      number changes are superseded. A change whose number is not larger takes another.
 *  (F) A change that has failed and is the latest replaces its instruction by the settled one.
 *      If it is not the latest, the word is that of another change, also if that is the same
 *      instruction. It then looks at `settled` again: a change that was settled meanwhile,
 *      perhaps with the very instruction that was just replaced, is put in place.
 *  (G) What (F) replaces the instruction of may have been on top of an earlier change that
 *      still waits for its barrier, or may be the same instruction of one that has just begun.
 *      So undoing is counted (`undone`), before and after it touches the word. A change notes
 *      the count before it writes. If the count has changed when its barrier has succeeded,
 *      and it is not superseded, it is written once more, with a new number and another
 *      barrier. It looks at the count before it is settled and again after that: an undoing that
 *      is not seen then finds it settled.
 *  (H) Between the stores of `latest` and of the word, another change may do both. So a change
 *      looks at `latest` after it has written the word, and does both again if it is another's.
 * So whatever fails while whatever else is waiting for its barrier, the site does in the end
 * what the last successful change asked for. A change without a barrier makes no atomic
 * read-modify-write and no fence, either of which would double its time: its check (H) misses a
 * change that is made while its own stores wait in the core's store buffer. And a change that is
 * settled between two of the stores by which another one is settled or undone may be put in place
 * by that, after its own barrier.
 *
 * None of this waits for anybody; a signal handler may patch the site whose change it interrupts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch/commit.h"

#include "arch/arch.h"
#include "base/error.h"
#include "patch/patch.h"
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
    uint64_t word = __atomic_load_n(alias, __ATOMIC_ACQUIRE);
    while (expected == NULL || word_instruction_bits(site, word) == *expected)
        if (__atomic_compare_exchange_n(alias, &word, (word & ~mask) | bits << site->word_shift,
                                        true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            break;
}

/* The same where the instruction is all of the word. */
static void exchange_narrow_word(const cairn_site *site, uint64_t bits, uint64_t expected)
{
    uint32_t found = (uint32_t)expected;
    __atomic_compare_exchange_n((uint32_t *)alias_of(site), &found, (uint32_t)bits, false,
                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void make_visible(const cairn_site *site)
{
    if (site->table->arch->fetch_is_coherent)
        return;
    arch_host_code_written(alias_of(site), (const void *)(uintptr_t)word_address(site),
                           site->table->arch->word_bytes);
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
    const struct change *change = change_at(writing->list, index);
    fill_write(writing, change->site, change->bits, write);
    return true;
}

static bool next_undo(void *user, size_t index, struct code_write *write)
{
    struct writing *writing = user;
    const struct change *change = change_at(writing->list, index);
    if (change->undo_from == change->undo_to ||
        word_read_instruction(change->site) != change->undo_from)
        return false;
    fill_write(writing, change->site, change->undo_to, write);
    return true;
}

static enum cairn_status write_pages(const struct change_list *list, code_write_source *source,
                                     struct cairn_error *error)
{
    struct writing writing = {.list = list};
    return code_space_write_all(list->first->site->table->space, source, &writing, list->count,
                                error);
}

/* ---- Changes ---- */

static bool is_dual(const cairn_site *site) { return site->table->alias_distance != 0; }

static void store_instruction(const struct change *change)
{
    const cairn_site *site = change->site;
    if (site->shares_word)
        exchange_in_word(site, change->bits, NULL);
    else
        store_word(site, change->bits);
    atomic_store_explicit(&change->site->noted_bits, change->bits, memory_order_release);
    make_visible(site);
}

static uint32_t load(const _Atomic uint32_t *number)
{
    return atomic_load_explicit(number, memory_order_acquire);
}

static void store(_Atomic uint32_t *number, uint32_t value)
{
    atomic_store_explicit(number, value, memory_order_release);
}

/* (E) `count` numbers that follow each other; returns the first. */
static uint32_t take_numbers(const cairn_site *site, size_t count)
{
    _Atomic uint32_t *sequence = code_space_sequence(site->table->space);
    uint32_t taken = (uint32_t)count;
    uint32_t first;
    do
        first = atomic_fetch_add_explicit(sequence, taken, memory_order_acq_rel);
    while (first == 0 || first + taken < first);
    return first;
}

/* Numbers begin again at 1 after the last one. */
static bool reaches(uint32_t number, uint32_t other) { return (int32_t)(number - other) >= 0; }

/* (E) */
static void note_number(struct change *change)
{
    cairn_site *site = change->site;
    uint32_t highest = load(&site->highest);
    change->undone = load(&site->undone);
    if (load(&site->latest) == 0)
        store(&site->superseded, highest);
    if (reaches(highest, change->sequence))
        change->sequence = take_numbers(site, 1);
    store(&site->highest, change->sequence);
    store(&site->latest, change->sequence);
}

/* (H) */
static bool is_latest(const struct change *change)
{
    return load(&change->site->latest) == change->sequence;
}

static enum cairn_status write_changes_of_pages(const struct change_list *list,
                                                struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    bool again = true;
    while (again && status == CAIRN_OK) {
        again = false;
        for (size_t i = 0; i < list->count; i++)
            note_number(change_at(list, i));
        status = write_pages(list, next_change, error);
        for (size_t i = 0; i < list->count; i++)
            again |= !is_latest(change_at(list, i));
    }
    return status;
}

static enum cairn_status write_changes(const struct change_list *list, struct cairn_error *error)
{
    const bool dual = is_dual(list->first->site);
    uint32_t number = take_numbers(list->first->site, list->count);
    for (size_t i = 0; i < list->count; i++) {
        struct change *change = change_at(list, i);
        change->sequence = number++;
        plan_write_slot(change);
        do {
            if (!dual)
                break;
            note_number(change);
            store_instruction(change);
        } while (!is_latest(change));
    }
    return dual ? CAIRN_OK : write_changes_of_pages(list, error);
}

void commit_at_once(struct change *change)
{
    cairn_site *site = change->site;
    plan_write_slot(change);
    do {
        atomic_store_explicit(&site->settled, change->bits, memory_order_release);
        store(&site->latest, 0);
        store_instruction(change);
    } while (load(&site->latest) != 0);
    plan_release(change);
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

/* ---- Undoing ---- */

/* Writes `to` if the instruction is `from`. */
static void replace(cairn_site *site, uint64_t from, uint64_t to)
{
    if (word_is_narrow(site))
        exchange_narrow_word(site, to, from);
    else
        exchange_in_word(site, to, &from);
    commit_note(site);
    make_visible(site);
}

static void count_undoing(cairn_site *site)
{
    atomic_fetch_add_explicit(&site->undone, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(code_space_undone(site->table->space), 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
}

static uint64_t settled(const cairn_site *site)
{
    return atomic_load_explicit(&site->settled, memory_order_acquire);
}

/* (F) Sets what is to be replaced by what; false: nothing, since the site has been changed again or
 * does what is settled. */
static bool begin_undo(struct change *change)
{
    change->undo_from = change->bits;
    change->undo_to = change->bits;
    if (load(&change->site->latest) != change->sequence)
        return false;
    count_undoing(change->site);
    change->undo_to = settled(change->site);
    return change->undo_to != change->undo_from;
}

/* The same after the replacement: something else may have been settled meanwhile. */
static bool go_on_undoing(struct change *change)
{
    if (change->undo_from == change->undo_to)
        return false;
    count_undoing(change->site);
    change->undo_from = change->undo_to;
    change->undo_to = settled(change->site);
    return change->undo_to != change->undo_from;
}

static enum cairn_status undo_pages(const struct change_list *list, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    bool any = false;
    for (size_t i = 0; i < list->count; i++)
        any |= begin_undo(change_at(list, i));
    while (any && status == CAIRN_OK) {
        status = write_pages(list, next_undo, error);
        any = false;
        for (size_t i = 0; i < list->count; i++)
            any |= go_on_undoing(change_at(list, i));
    }
    return status;
}

/* The last one first. Fails in Single and Toggle mode alone; then the sites go on doing the new
 * thing. */
static enum cairn_status undo_all(const struct change_list *list, struct cairn_error *error)
{
    if (!is_dual(list->first->site))
        return undo_pages(list, error);
    for (size_t i = list->count; i-- > 0;) {
        struct change *change = change_at(list, i);
        for (bool any = begin_undo(change); any; any = go_on_undoing(change))
            replace(change->site, change->undo_from, change->undo_to);
    }
    return CAIRN_OK;
}

/* ---- Many changes, all or none ---- */

static bool is_superseded(const struct change *change)
{
    const cairn_site *site = change->site;
    return load(&site->latest) == 0 || reaches(load(&site->superseded), change->sequence);
}

/* No change of these sites was undone since they were written. `undone` is what the space had
 * counted before that: mostly that is all that has to be looked at. */
static bool is_undisturbed(struct code_space *space, const struct change_list *list,
                           uint32_t undone)
{
    if (load(code_space_undone(space)) == undone)
        return true;
    for (size_t i = 0; i < list->count; i++) {
        const struct change *change = change_at(list, i);
        if (load(&change->site->undone) != change->undone && !is_superseded(change))
            return false;
    }
    return true;
}

static void settle(struct change *change)
{
    cairn_site *site = change->site;
    if (is_superseded(change))
        return;
    change->is_settled = true;
    atomic_store_explicit(&site->settled, change->bits, memory_order_release);
    store(&site->superseded, change->sequence);
}

/* (G) Whoever undoes something from now on finds it settled, or its undoing is found here. */
static bool was_undone_meanwhile(struct code_space *space, const struct change_list *list,
                                 uint32_t undone)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (load(code_space_undone(space)) == undone)
        return false;
    for (size_t i = 0; i < list->count; i++) {
        const struct change *change = change_at(list, i);
        if (change->is_settled && load(&change->site->undone) != change->undone)
            return true;
    }
    return false;
}

/* (G) False: some of the sites may not do the new thing any more. The veneers are held until they
 * do. */
static bool settle_all(struct code_space *space, const struct change_list *list, uint32_t undone)
{
    if (!is_undisturbed(space, list, undone))
        return false;
    for (size_t i = 0; i < list->count; i++)
        settle(change_at(list, i));
    if (was_undone_meanwhile(space, list, undone))
        return false;
    plan_release_all(list);
    return true;
}

static enum cairn_status commit_at_once_all(const struct change_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        commit_at_once(change_at(list, i));
    return CAIRN_OK;
}

static enum cairn_status write_and_synchronise(struct code_space *space,
                                               const struct change_list *list,
                                               enum cairn_strength strength,
                                               struct cairn_error *error)
{
    enum cairn_status status = write_changes(list, error);
    if (status != CAIRN_OK)
        return status;
    status = patch_synchronise(space, strength, error);
    struct cairn_error failure;
    if (status != CAIRN_OK && undo_all(list, &failure) != CAIRN_OK)
        error_set_system(error, failure.system_error,
                         "the barrier after a patch was refused, and undoing the patch, too: the "
                         "sites do the new thing");
    return status;
}

enum cairn_status commit_all(struct code_space *space, const struct change_list *list,
                             enum cairn_strength strength, struct cairn_error *error)
{
    if (list->count == 0)
        return CAIRN_OK;
    if (strength == CAIRN_RELAXED && commit_is_at_once(list->first->site))
        return commit_at_once_all(list);
    enum cairn_status status;
    uint32_t undone;
    do {
        undone = load(code_space_undone(space));
        status = write_and_synchronise(space, list, strength, error);
    } while (status == CAIRN_OK && !settle_all(space, list, undone));
    if (status != CAIRN_OK)
        plan_release_all(list);
    return status;
}
