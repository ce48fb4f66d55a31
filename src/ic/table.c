/*
 * The tables of megamorphic caches: cases that differ only in key and field (arch/inline_cache.h).
 *
 * Code reads a word of the table with one load, and finds key and offset in it, so a case is added,
 * removed or replaced with one store. A key has one slot. If two keys of a table have the same one,
 * the cache gets a table with another multiplier or more slots, and code that searches it; the old
 * table is retired with the old code. If no such table is found, the newer case replaces the older
 * one.
 *
 * A change alters a copy of the table. If the code stays, the copy's words are stored in the table
 * one by one when the change is made (`ic_table_adopt`); otherwise the copy becomes the table.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "ic/cache.h"

#include <stddef.h>
#include <string.h>

enum { BITS_MIN = 6, MULTIPLIERS = 8, WIDE_KEY_BITS = 48 };

/* Odd numbers less than 2^31. */
enum { FIRST_MULTIPLIER = 0x61C88647, MULTIPLIER_BITS = 0x7FFFFFFF };

struct ic_table {
    struct grace_entry retired;
    struct cache_set *set;
    struct cairn_ic_case form; /* any one of the cases */
    uint32_t multiplier;
    unsigned bits;
    uint32_t count; /* cases */
    bool is_full;   /* whether larger tables were tried in vain */
    uint64_t words[];
};

static size_t table_bytes(unsigned bits)
{
    return sizeof(struct ic_table) + ((size_t)1 << bits) * sizeof(uint64_t);
}

/* ---- Words ---- */

static size_t slot_of(const struct ic_table *table, uint64_t key)
{
    return arch_cache_table_slot(key, table->multiplier, table->bits);
}

static uint64_t key_of(const struct ic_table *table, uint64_t word)
{
    return word & ((UINT64_C(1) << arch_cache_table_offset_bit(table->form.guard.width)) - 1);
}

static uint64_t word_of(const struct cairn_ic_case *one)
{
    unsigned bit = arch_cache_table_offset_bit(one->guard.width);
    return (uint64_t)(uint32_t)one->field.offset << bit | one->guard.key;
}

static bool is_free(const struct ic_table *table, size_t slot)
{
    return slot_of(table, key_of(table, table->words[slot])) != slot;
}

/* Returns a word with a key that belongs to another slot. */
static uint64_t free_word(const struct ic_table *table, size_t slot)
{
    uint64_t key = 0;
    while (slot_of(table, key) == slot)
        key++;
    return key;
}

/* ---- Tables ---- */

static struct ic_table *create(struct cache_set *set, const struct cairn_ic_case *form,
                               unsigned bits, struct cairn_error *error)
{
    struct ic_table *table = memory_new(&set->allocator, 1, table_bytes(bits));
    if (table == NULL) {
        (void)error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of cases");
        return NULL;
    }
    table->set = set;
    table->form = *form;
    table->multiplier = FIRST_MULTIPLIER;
    table->bits = bits;
    for (size_t i = 0; i < (size_t)1 << bits; i++)
        table->words[i] = free_word(table, i);
    return table;
}

void ic_table_free(struct ic_table *table)
{
    struct cairn_allocator allocator;
    if (table == NULL)
        return;
    allocator = table->set->allocator;
    memory_free(&allocator, table, table_bytes(table->bits));
}

static size_t free_retired(struct grace_entry *entry)
{
    _Static_assert(offsetof(struct ic_table, retired) == 0, "a table begins with its entry");
    ic_table_free((struct ic_table *)(void *)entry);
    return 0;
}

static void retire(struct ic_table *table)
{
    if (table != NULL)
        grace_retire(code_space_grace(table->set->space), &table->retired, free_retired);
}

/* Makes the change's table one that only the change has. */
static enum cairn_status copy(struct ic_change *change, struct cairn_error *error)
{
    const struct ic_table *from = change->table;
    if (from != change->ic->table)
        return CAIRN_OK;
    struct ic_table *to = memory_new(&from->set->allocator, 1, table_bytes(from->bits));
    if (to == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of cases");
    memcpy(to, from, table_bytes(from->bits));
    change->table = to;
    return CAIRN_OK;
}

/* ---- Growing ---- */

/* Puts the words of a table and one more into an empty table. False if two keys have one slot. */
static bool place_all(const struct ic_table *from, uint64_t added, struct ic_table *to)
{
    size_t slot = slot_of(to, key_of(to, added));
    to->words[slot] = added;
    to->count = 1;
    for (size_t i = 0; i < (size_t)1 << from->bits; i++) {
        slot = slot_of(to, key_of(to, from->words[i]));
        if (is_free(from, i))
            continue;
        if (!is_free(to, slot))
            return false;
        to->words[slot] = from->words[i];
        to->count++;
    }
    return true;
}

/* Looks for a table that has a slot for each key, also for that of `added`. Leaves the change's
 * table if there is none. */
static enum cairn_status grow(struct ic_change *change, uint64_t added, struct cairn_error *error)
{
    const struct ic_table *old = change->table;
    for (unsigned bits = old->bits; bits <= ARCH_CACHE_TABLE_BITS_MAX; bits++) {
        struct ic_table *grown = create(old->set, &old->form, bits, error);
        if (grown == NULL)
            return CAIRN_ERROR_MEMORY;
        for (int i = 0; i < MULTIPLIERS; i++) {
            if (place_all(old, added, grown)) {
                ic_table_drop(change);
                change->table = grown;
                change->needs_code = true;
                return CAIRN_OK;
            }
            /* Any sequence of different numbers will do. */
            grown->multiplier = (grown->multiplier * 0x2C9277B5U & MULTIPLIER_BITS) | 1;
            for (size_t slot = 0; slot < (size_t)1 << bits; slot++)
                grown->words[slot] = free_word(grown, slot);
        }
        ic_table_free(grown);
    }
    return CAIRN_OK;
}

/* ---- Cases ---- */

/* Whether a table can have the case. */
static bool is_tabular(const cairn_ic *ic, const struct cairn_ic_case *one)
{
    const struct cairn_ic_guard *guard = &one->guard;
    const struct cairn_ic_field *field = &one->field;
    bool is_wide = guard->width == sizeof(uint64_t);
    bool is_access = one->action == CAIRN_IC_LOAD || one->action == CAIRN_IC_STORE;
    bool is_plain = one->holder.object == NULL && one->elements.length_width == 0 &&
                    !one->changes_key && one->barrier.kind == CAIRN_IC_BARRIER_NONE;
    bool is_whole = guard->width >= sizeof(uint32_t) && guard->mask == ic_all_bits(guard->width);
    bool fits = field->offset >= 0 &&
                (!is_wide || (guard->key >> WIDE_KEY_BITS == 0 && field->offset <= UINT16_MAX));
    return ic->options.has_table && !ic->options.counts_hits && is_access && is_plain && is_whole &&
           !field->is_out_of_line && fits;
}

static bool has_form(const struct ic_table *table, const struct cairn_ic_guard *guard)
{
    struct cairn_ic_guard same = table->form.guard;
    same.key = guard->key;
    return ic_same_guard(&same, guard);
}

/* Whether the table is for cases like this one. */
static bool is_similar(const struct ic_table *table, const struct cairn_ic_case *one)
{
    struct cairn_ic_case same = table->form;
    same.field.offset = one->field.offset;
    same.constant = one->constant; /* without meaning for accesses */
    same.target = one->target;
    if (one->action == CAIRN_IC_LOAD)
        same.operand = one->operand;
    return has_form(table, &one->guard) && ic_same_action(&same, one);
}

enum cairn_status ic_table_add(struct ic_change *change, const struct cairn_ic_case *added,
                               struct cairn_error *error)
{
    const cairn_ic *ic = change->ic;
    if (!is_tabular(ic, added) || (change->table != NULL && !is_similar(change->table, added)))
        return CAIRN_OK;
    uint64_t word = word_of(added);
    if (change->table == NULL) {
        change->table = create(ic->set, added, BITS_MIN, error);
        if (change->table == NULL)
            return CAIRN_ERROR_MEMORY;
        change->is_altered = change->needs_code = true;
    }
    if (change->table->words[slot_of(change->table, added->guard.key)] == word)
        return CAIRN_OK;
    enum cairn_status status = copy(change, error);
    if (status != CAIRN_OK)
        return status;
    change->is_altered = true;
    struct ic_table *table = change->table;
    size_t slot = slot_of(table, added->guard.key);
    bool was_free = is_free(table, slot);
    bool is_taken = !was_free && key_of(table, table->words[slot]) != added->guard.key;
    if (is_taken && !table->is_full) {
        status = grow(change, word, error);
        if (status != CAIRN_OK || change->table != table)
            return status;
        table->is_full = true;
    }
    table->words[slot] = word;
    table->count += was_free ? 1 : 0;
    return CAIRN_OK;
}

enum cairn_status ic_table_remove(struct ic_change *change, const struct cairn_ic_guard *guard,
                                  struct cairn_error *error)
{
    const struct ic_table *present = change->table;
    if (present == NULL || !has_form(present, guard))
        return CAIRN_OK;
    size_t slot = slot_of(present, guard->key);
    if (is_free(present, slot) || key_of(present, present->words[slot]) != guard->key)
        return CAIRN_OK;
    enum cairn_status status = copy(change, error);
    if (status != CAIRN_OK)
        return status;
    change->is_altered = true;
    change->table->words[slot] = free_word(change->table, slot);
    change->table->count--;
    return CAIRN_OK;
}

/* ---- Ends of changes ---- */

void ic_table_drop(struct ic_change *change)
{
    if (change->table != change->ic->table)
        retire(change->table);
    change->table = change->ic->table;
}

/* The fence makes the words visible to all executions that begin after this function. */
void ic_table_adopt(struct ic_change *change)
{
    cairn_ic *ic = change->ic;
    struct ic_table *old = ic->table;
    struct ic_table *new = change->table;
    if (old == new)
        return;
    if (change->needs_code) {
        ic->table = new;
        retire(old);
        return;
    }
    for (size_t i = 0; i < (size_t)1 << old->bits; i++)
        if (old->words[i] != new->words[i])
            __atomic_store_n(&old->words[i], new->words[i], __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    old->count = new->count;
    old->is_full = new->is_full;
    ic_table_free(new);
}

/* ---- What others see ---- */

uint32_t ic_table_count(const struct ic_table *table) { return table == NULL ? 0 : table->count; }

const struct cairn_ic_case *ic_table_form(const struct ic_table *table) { return &table->form; }

struct arch_cache_table ic_table_describe(const struct ic_table *table,
                                          const struct arch_cache_case *access)
{
    return (struct arch_cache_table){
        .address = (uintptr_t)table->words,
        .bits = table->bits,
        .multiplier = table->multiplier,
        .access = *access,
    };
}
