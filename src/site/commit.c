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
 * Several threads that patch one site. Each change takes the veneer that it uses. The instruction
 * never branches to a taken veneer, except when the change that has taken it has stored the
 * instruction. So a change writes a slot that no thread can reach, and preparing a change has no
 * visible effect. The change takes effect with the store of the word. All stores of one word are in
 * one order and the last one wins, so at each moment the site does what exactly one change
 * requested. (With only one veneer per site, whose slot is written first and the word later, a
 * thread that is stopped between the two stores could restore its target after a third, finished
 * change had replaced it.)
 *
 * Changes that fail. A change that requests a barrier is written first, and then the barrier may be
 * refused. With a single mapping, the store itself may be refused. In both cases the site must do
 * what it would do without that change. This is not always what the site did before, because other
 * threads may have changed it since. Some may have stored the same instruction, and their changes
 * may fail, too.
 *  (E) A change is settled when it can no longer fail. A change without a barrier in dual mapping
 *      is settled before it writes the word, any other change when its barrier has succeeded.
 *      `settled` is the instruction of the last change that was written and is settled. No change
 *      takes a veneer that `settled` branches to, just as if the instruction branched there. A
 *      change that waits for its barrier has a number. The number is unique in the code space and
 *      larger than the number of every change that was written to the site before. `latest` is the
 *      number of the change that was written last, or 0 if that change has no barrier. A change is
 *      superseded if a settled change was written after it: all changes with numbers up to
 *      `superseded` are, and all changes while `latest` is 0. A superseded change settles nothing
 *      when its barrier succeeds. `highest` is the largest number that was written. When a change
 *      without a barrier was written last, the next change with a number copies `highest` to
 *      `superseded`. A change whose number is not larger than `highest` takes a new number.
 *  (F) If a change has failed and is the latest, it replaces its instruction by the settled one. If
 *      it is not the latest, the word belongs to another change, even if that has the same
 *      instruction. The failed change leaves it alone. After a replacement the failed change reads
 *      `settled` again. If another change was settled meanwhile, perhaps one with the very
 *      instruction that was just replaced, it writes that change's instruction. If the system
 *      refuses to replace the instruction (single mapping), the instruction that stays becomes the
 *      settled one. The error says that it stays, so a later change that fails must restore it, not
 *      the one before.
 *  (G) The instruction that (F) replaces may have been written over an earlier change that still
 *      waits for its barrier, or a change that has just begun may have the same instruction. So
 *      undoing increments a count (`undone`) before and after it writes the word. Each change reads
 *      the count before it writes. If the count has changed when its barrier has succeeded, and the
 *      change is not superseded, it is written once more, with a new number and another barrier. It
 *      reads the count both before and after it is settled. So if it misses an undo, that undo
 *      finds it settled.
 *  (H) Between two stores of a change, others may make all of theirs. So a change reads the numbers
 *      after it has written the word, and repeats its stores if they are another change's. It
 *      stores `latest` before `highest`, so whoever finds its number in `highest` finds that the
 *      site has a change with a number, too. When the barrier has succeeded, all stores that were
 *      made before are visible. Then a change is written again, with a new number and another
 *      barrier, if the numbers do not tell an order: if it is the latest, but superseded, or the
 *      site does not have its instruction; if it is not the latest, but no larger number was
 *      written; if a change without a barrier was written later, but the site still has this one's
 *      instruction; if another change was settled while this one was. For the same reason, a change
 *      that fails also replaces its instruction if it finds it after one without a barrier.
 * So whichever changes fail while others wait for their barriers, the site finally does what the
 * last successful change requested. There are two exceptions. A change without a barrier makes no
 * atomic read-modify-write and has no fence between its stores and its check (H), because either
 * would double its time. So if two of them are made in the same nanoseconds, `settled` may be the
 * instruction of the other one, which a change that fails later then restores. And if a change is
 * settled between two of the stores that settle or undo another change, the other change may write
 * the settled instruction after the settled change's own barrier.
 *
 * No step waits for another thread. A signal handler may patch the site whose change it interrupts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/commit.h"

#include "arch/arch.h"
#include "base/error.h"
#include "code/write_key.h"
#include "site/veneers.h"

/* ---- Dual mapping: stores through the writable view ---- */

static bool is_dual(const cairn_site *site) { return site->table->alias_distance != 0; }

/* Whether the patch word has 4 bytes; otherwise it has 8. */
static bool is_narrow(const cairn_site *site)
{
    return site->table->arch->word_bytes == sizeof(uint32_t);
}

static void *alias_of(const cairn_site *site) { return (void *)(uintptr_t)site->word; }

/* Replaces the instruction in the word and keeps the other bytes. If `expected` is not NULL, does
 * so only if the instruction is `*expected`. */
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
        exchange_in_word(site, change->bits, NULL);
    else if (is_narrow(site))
        __atomic_store_n((uint32_t *)alias_of(site), (uint32_t)word, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)alias_of(site), word, __ATOMIC_RELEASE);
    atomic_store_explicit(&site->noted_bits, change->bits, memory_order_release);
    make_visible(site);
    write_key_close(site->table->write_key, rights);
}

/* Writes `to` if the instruction is `from`. */
static void replace(cairn_site *site, uint64_t from, uint64_t to)
{
    uint32_t found = (uint32_t)from;
    int rights = write_key_open(site->table->write_key);
    if (is_narrow(site))
        __atomic_compare_exchange_n((uint32_t *)alias_of(site), &found, (uint32_t)to, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    else
        exchange_in_word(site, to, &from);
    commit_note(site);
    make_visible(site);
    write_key_close(site->table->write_key, rights);
}

/* ---- Single mapping: pages are replaced ---- */

/* Writes to pages. Only instructions are written, with the code space locked, so the other bytes of
 * their words keep the values of that moment, whichever site they belong to. */
struct writing {
    const struct change_list *list;
    bool undoes;
    uint8_t bytes[ARCH_WORD_BYTES_MAX];
};

static bool next_write(void *user, size_t index, struct code_write *write)
{
    struct writing *writing = user;
    const struct change *change = change_at(writing->list, index);
    const cairn_site *site = change->site;
    if (writing->undoes &&
        (change->undo_from == change->undo_to || word_read_instruction(site) != change->undo_from))
        return false;
    word_put_bits(site, writing->undoes ? change->undo_to : change->bits, writing->bytes);
    *write = (struct code_write){
        .block = site->table->block,
        .address = word_instruction_address(site),
        .bytes = writing->bytes,
        .size = site->instruction_length,
    };
    return true;
}

static enum cairn_status write_pages(const struct change_list *list, bool undoes,
                                     struct cairn_error *error)
{
    struct writing writing = {.list = list, .undoes = undoes};
    return code_space_write_all(list->first->site->table->space, next_write, &writing, list->count,
                                error);
}

/* ---- Changes ---- */

static uint64_t load(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_acquire);
}

static void store(_Atomic uint64_t *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_release);
}

static uint64_t settled(const cairn_site *site) { return load(&site->settled); }

/* Takes `count` consecutive numbers (E), from 1 on. Returns the first. */
static uint64_t take_numbers(const cairn_site *site, size_t count)
{
    return 1 + atomic_fetch_add_explicit(code_space_sequence(site->table->space), count,
                                         memory_order_acq_rel);
}

/* Gives a change its number, and updates the site's numbers (E). */
static void note_number(struct change *change)
{
    cairn_site *site = change->site;
    uint64_t highest = load(&site->highest);
    change->undone = load(&site->undone);
    if (load(&site->latest) == 0)
        store(&site->superseded, highest);
    if (highest >= change->sequence)
        change->sequence = take_numbers(site, 1);
    store(&site->latest, change->sequence);
    store(&site->highest, change->sequence);
}

/* Whether no other change was written since (H). */
static bool is_latest(const struct change *change)
{
    return load(&change->site->latest) == change->sequence;
}

/* Whether the site has the change's instruction although one without a barrier was written since,
 * which asked for another (H). */
static bool has_overwritten(const struct change *change)
{
    const cairn_site *site = change->site;
    return load(&site->latest) == 0 && settled(site) != change->bits &&
           word_read_instruction(site) == change->bits;
}

static enum cairn_status write_changes(const struct change_list *list, struct cairn_error *error)
{
    const bool dual = is_dual(list->first->site);
    uint64_t number = take_numbers(list->first->site, list->count);
    for (size_t i = 0; i < list->count; i++) {
        struct change *change = change_at(list, i);
        change->sequence = number++;
        plan_write_slot(change);
        for (bool again = dual; again; again = !is_latest(change)) {
            note_number(change);
            store_instruction(change);
        }
    }
    enum cairn_status status = CAIRN_OK;
    for (bool again = !dual; again && status == CAIRN_OK;) {
        again = false;
        for (size_t i = 0; i < list->count; i++)
            note_number(change_at(list, i));
        status = write_pages(list, false, error);
        for (size_t i = 0; i < list->count; i++)
            again |= !is_latest(change_at(list, i));
    }
    return status;
}

void commit_at_once(struct change *change)
{
    cairn_site *site = change->site;
    plan_write_slot(change);
    do {
        store(&site->settled, change->bits);
        store(&site->latest, 0);
        store_instruction(change);
    } while (load(&site->latest) != 0 || settled(site) != change->bits);
    plan_release(change);
}

/* ---- Undoing ---- */

/* Chooses the instruction to replace and its replacement (F): the first time, the change's own, and
 * after a replacement that one, because another change may have been settled meanwhile. False if
 * there is nothing to do: the site was changed again, or does what is settled. */
static bool next_undo(struct change *change, bool is_first)
{
    cairn_site *site = change->site;
    if (is_first)
        change->undo_from = change->undo_to = change->bits;
    if (is_first ? !is_latest(change) && !has_overwritten(change)
                 : change->undo_from == change->undo_to)
        return false;
    atomic_fetch_add_explicit(&site->undone, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(code_space_undone(site->table->space), 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    change->undo_from = change->undo_to;
    change->undo_to = settled(site);
    return change->undo_to != change->undo_from;
}

/* Undoes the changes, the last one first. Fails only without dual mapping. The sites then keep the
 * new instructions, which are settled (F), unless another change is settled meanwhile. */
static enum cairn_status undo_all(const struct change_list *list, struct cairn_error *error)
{
    const bool dual = is_dual(list->first->site);
    enum cairn_status status = CAIRN_OK;
    bool any = false;
    for (size_t i = list->count; i-- > 0;) {
        struct change *change = change_at(list, i);
        bool goes_on = next_undo(change, true);
        for (; dual && goes_on; goes_on = next_undo(change, false))
            replace(change->site, change->undo_from, change->undo_to);
        any |= goes_on;
    }
    while (any && status == CAIRN_OK) {
        status = write_pages(list, true, error);
        any = false;
        for (size_t i = 0; i < list->count; i++)
            any |= next_undo(change_at(list, i), false);
    }
    for (size_t i = 0; i < list->count && status != CAIRN_OK; i++) {
        const struct change *change = change_at(list, i);
        uint64_t before = settled(change->site);
        if (is_latest(change))
            atomic_compare_exchange_strong(&change->site->settled, &before,
                                           word_read_instruction(change->site));
    }
    return status;
}

/* ---- Many changes, all or none ---- */

static bool is_superseded(const struct change *change)
{
    const cairn_site *site = change->site;
    uint64_t latest = load(&site->latest);
    return latest == 0 ||
           (latest != change->sequence && load(&site->superseded) >= change->sequence);
}

/* Whether the site's change was undone, or another one of the site, since it was written. */
static bool is_disturbed(const struct change *change)
{
    return load(&change->site->undone) != change->undone;
}

/* Whether the site may have lost the change's instruction (G), or others that were written at the
 * same moment have left numbers that do not tell the order (H). */
static bool must_repeat(const struct change *change)
{
    const cairn_site *site = change->site;
    if (is_latest(change))
        return is_disturbed(change) || load(&site->superseded) >= change->sequence ||
               word_read_instruction(site) != change->bits;
    if (is_superseded(change))
        return has_overwritten(change);
    return is_disturbed(change) || load(&site->highest) < change->sequence;
}

/* Settles the changes. Returns false if they must be written again. `undone` is the count of the
 * whole space before they were written: if it is unchanged, which is the usual case, nothing was
 * undone meanwhile (G). */
static bool settle_all(struct code_space *space, const struct change_list *list, uint64_t undone)
{
    for (size_t i = 0; i < list->count; i++)
        if (must_repeat(change_at(list, i)))
            return false;
    for (size_t i = 0; i < list->count; i++) {
        struct change *change = change_at(list, i);
        if (is_superseded(change))
            continue;
        change->is_settled = true;
        store(&change->site->settled, change->bits);
        if (is_superseded(change)) /* and what was settled since may be lost */
            return false;
        store(&change->site->superseded, change->sequence);
    }
    /* Undoing that begins after this fence finds the settled changes. */
    atomic_thread_fence(memory_order_seq_cst);
    bool checks = load(code_space_undone(space)) != undone;
    for (size_t i = 0; checks && i < list->count; i++)
        if (change_at(list, i)->is_settled && is_disturbed(change_at(list, i)))
            return false;
    return true;
}

enum cairn_status commit_all(const struct change_list *list, enum cairn_strength strength,
                             struct cairn_error *error)
{
    if (strength == CAIRN_RELAXED && is_dual(list->first->site)) {
        for (size_t i = 0; i < list->count; i++)
            commit_at_once(change_at(list, i));
        return CAIRN_OK;
    }
    struct code_space *space = list->first->site->table->space;
    enum cairn_status status;
    uint64_t undone;
    do {
        struct cairn_error failure;
        undone = load(code_space_undone(space));
        status = write_changes(list, error);
        if (status != CAIRN_OK)
            break;
        if (strength != CAIRN_RELAXED)
            status = code_space_synchronise(space, error);
        if (status != CAIRN_OK && undo_all(list, &failure) != CAIRN_OK)
            error_set_system(error, failure.system_error,
                             "the barrier after a patch was refused, and undoing the patch, too: "
                             "the sites do the new thing");
    } while (status == CAIRN_OK && !settle_all(space, list, undone));
    for (size_t i = 0; i < list->count; i++)
        plan_release(change_at(list, i));
    return status;
}
