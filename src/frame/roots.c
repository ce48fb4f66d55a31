/*
 * Roots: the places of the pointers that a statepoint keeps alive.
 *
 * A place has a key: registers that calls leave as they are by their slot, places on the stack by
 * their distance from the stack pointer. So a set of places is a row of bits, which is small where
 * frames are; a frame whose places are further apart is gone through window by window.
 *
 * What must stay true: all of a record is checked before the first place is changed; until all
 * bases are moved, a derived pointer's place holds its distance from its base.
 *
 * Source: LLVM, "Garbage Collection Safepoints in LLVM", section Stack Map Format; which pairs a
 * record has: llvm/lib/CodeGen/StackMaps.cpp, parseStatepointOpers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "frame/frame.h"
#include "index/record_values.h"

#include <cairn/roots.h>
#include <cairn/statepoint.h>
#include <string.h>

enum {
    POINTER_BYTES = sizeof(void *),
    HEADER_LOCATIONS = 3, /* calling convention, flags, number of deopt values */
    DEOPT_COUNT = 2,
    STACK_KEYS = 128, /* below it are slots of registers */
    WINDOW_KEYS = 1024,
    WORD_BITS = 64
};
_Static_assert((int)STACK_KEYS >= (int)CAIRN_FRAME_SLOTS, "a key for each slot");

/* Of a constant. */
#define NO_KEY UINT64_MAX

/* A frame's pairs, as numbers of locations. */
struct pairs {
    const struct cairn_frame *frame;
    struct record_values values;
    uint32_t first;
    uint32_t end; /* the allocas begin here */
    /* The register that the last place was found by: its distance from the stack pointer, and what
     * a compact location of 8 bytes that is found by it begins with. */
    uint16_t dwarf;
    uint32_t spill;
    uint64_t distance;
};

struct pair {
    uint64_t base;
    uint64_t derived;
};

/* ---- Places ---- */

static void **place_of(const struct cairn_frame *frame, uint64_t key)
{
    if (key < CAIRN_FRAME_SLOTS)
        return frame->slots[key];
    return (void **)(uintptr_t)(frame->sp + (key - STACK_KEYS) * POINTER_BYTES);
}

/* Pointers of any type lie there. */
static void *load(void *const *place)
{
    void *pointer;
    memcpy(&pointer, (const void *)place, sizeof pointer);
    return pointer;
}

static void store(void **place, void *pointer) { memcpy((void *)place, &pointer, sizeof pointer); }

static enum cairn_status find_register_key(const struct cairn_frame *frame, uint16_t dwarf,
                                           uint64_t *key, struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS + 1; i < arch->unwind_slot_count; i++) {
        if (arch->unwind_slots[i].dwarf == dwarf && frame->slots[i] != NULL) {
            *key = i;
            return CAIRN_OK;
        }
    }
    return error_set(error, CAIRN_ERROR_NOT_FOUND, dwarf,
                     "a root of the frame at 0x%llx is in register %u, which is not known",
                     (unsigned long long)frame->pc, dwarf);
}

static uint32_t spill_of(uint16_t dwarf)
{
    enum { LOGARITHM = 3 };
    _Static_assert(1 << LOGARITHM == POINTER_BYTES, "pointers have 8 bytes");
    return CAIRN_LOCATION_INDIRECT | LOGARITHM << COMPACT_SIZE_SHIFT |
           (uint32_t)dwarf << COMPACT_REGISTER_SHIFT;
}

static void use_register(struct pairs *pairs, uint16_t dwarf, uint64_t value)
{
    pairs->dwarf = dwarf;
    pairs->spill = spill_of(dwarf);
    pairs->distance = value - pairs->frame->sp;
}

/* From the stack pointer. */
static enum cairn_status find_distance(struct pairs *pairs, struct cairn_location location,
                                       uint64_t *distance, struct cairn_error *error)
{
    if (pairs->dwarf != location.dwarf) {
        uint64_t value = 0;
        enum cairn_status status = frame_base(pairs->frame, location.dwarf, &value, error);
        if (status != CAIRN_OK)
            return status;
        use_register(pairs, location.dwarf, value);
    }
    *distance = pairs->distance + (uint64_t)(int64_t)location.offset;
    return CAIRN_OK;
}

/* Whether it is above the stack pointer, and of whole pointers. */
static bool is_place(uint64_t distance)
{
    return (distance & (UINT64_C(1) << 63 | (POINTER_BYTES - 1))) == 0;
}

static uint64_t stack_key(uint64_t distance) { return STACK_KEYS + distance / POINTER_BYTES; }

static enum cairn_status find_stack_key(struct pairs *pairs, struct cairn_location location,
                                        uint64_t *key, struct cairn_error *error)
{
    uint64_t distance = 0;
    enum cairn_status status = find_distance(pairs, location, &distance, error);
    if (status != CAIRN_OK)
        return status;
    if (!is_place(distance))
        return error_set(error, CAIRN_ERROR_CORRUPT, pairs->frame->pc,
                         "a root of the frame at 0x%llx would be at 0x%llx, and its stack pointer "
                         "is 0x%llx",
                         (unsigned long long)pairs->frame->pc,
                         (unsigned long long)(pairs->frame->sp + distance),
                         (unsigned long long)pairs->frame->sp);
    *key = stack_key(distance);
    return CAIRN_OK;
}

static bool is_constant(struct cairn_location location)
{
    return location.kind == CAIRN_LOCATION_CONSTANT ||
           location.kind == CAIRN_LOCATION_CONSTANT_INDEX;
}

static __attribute__((noinline)) enum cairn_status find_any_key(struct pairs *pairs, uint32_t index,
                                                                uint64_t *key,
                                                                struct cairn_error *error)
{
    struct cairn_location location = record_values_location(&pairs->values, index);
    *key = NO_KEY;
    if (is_constant(location))
        return CAIRN_OK;
    if (location.kind == CAIRN_LOCATION_DIRECT)
        return error_set(error, CAIRN_ERROR_CORRUPT, pairs->frame->pc,
                         "a root of the frame at 0x%llx would be an address in the frame",
                         (unsigned long long)pairs->frame->pc);
    if (location.size != POINTER_BYTES)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, pairs->frame->pc,
                         "a root of the frame at 0x%llx has %u bytes, and not %d: a vector of "
                         "pointers",
                         (unsigned long long)pairs->frame->pc, location.size, POINTER_BYTES);
    if (location.kind == CAIRN_LOCATION_REGISTER)
        return find_register_key(pairs->frame, location.dwarf, key, error);
    return find_stack_key(pairs, location, key, error);
}

/* Of a compact location on the stack, found as the last one was. Nearly all are. */
static inline bool find_spill_key(const struct pairs *pairs, uint32_t word, uint64_t *key)
{
    enum { SPILL_MASK = (1 << COMPACT_OFFSET_SHIFT) - 1 };
    uint64_t distance = pairs->distance + (uint64_t)((int32_t)word >> COMPACT_OFFSET_SHIFT);
    *key = stack_key(distance);
    return (word & SPILL_MASK) == pairs->spill && is_place(distance);
}

/* Of location `index`. */
static inline enum cairn_status find_key(struct pairs *pairs, uint32_t index, uint64_t *key,
                                         struct cairn_error *error)
{
    bool is_found = pairs->values.form == VALUES_COMPACT &&
                    find_spill_key(pairs, pairs->values.locations[index], key);
    return is_found ? CAIRN_OK : find_any_key(pairs, index, key, error);
}

/* ---- Pairs ---- */

/* Whether a pair is one place, without looking where that is; false if it takes a look. */
static inline bool is_same(const struct record_values *values, uint32_t index)
{
    return values->form == VALUES_COMPACT &&
           values->locations[index] == values->locations[index + 1];
}

/* The pair whose base is location `index`. */
static inline enum cairn_status find_pair(struct pairs *pairs, uint32_t index, struct pair *pair,
                                          struct cairn_error *error)
{
    enum cairn_status status = find_key(pairs, index, &pair->base, error);
    pair->derived = pair->base;
    if (status != CAIRN_OK || is_same(&pairs->values, index))
        return status;
    return find_key(pairs, index + 1, &pair->derived, error);
}

/* The same of a record that was checked. */
static inline struct pair pair_at(struct pairs *pairs, uint32_t index)
{
    struct pair pair = {NO_KEY, NO_KEY};
    enum cairn_status status = find_pair(pairs, index, &pair, NULL);
    (void)status;
    return pair;
}

static unsigned kind_at(const struct record_values *values, uint32_t index)
{
    return values->locations[(size_t)index * ((size_t)values->form + 1)] & COMPACT_KIND_MASK;
}

/* Where the pairs begin; 0 if the record does not begin as a statepoint's. */
static uint32_t find_first_pair(const struct record_values *values)
{
    uint32_t count = record_values_location_count(values);
    if (count < HEADER_LOCATIONS)
        return 0;
    for (uint32_t i = 0; i < HEADER_LOCATIONS; i++)
        if (kind_at(values, i) < CAIRN_LOCATION_CONSTANT)
            return 0;
    uint64_t deopt_count = record_values_location(values, DEOPT_COUNT).constant;
    return deopt_count <= count - HEADER_LOCATIONS ? HEADER_LOCATIONS + (uint32_t)deopt_count : 0;
}

/* The allocas come last. Whether the pairs come in twos. */
static bool find_end(struct pairs *pairs)
{
    uint32_t end = record_values_location_count(&pairs->values);
    while (end > pairs->first && kind_at(&pairs->values, end - 1) == CAIRN_LOCATION_DIRECT)
        end--;
    pairs->end = end;
    return (end - pairs->first) % 2 == 0;
}

/* Calls at statepoints return to the record; only of tables that the host has made himself that is
 * not known. */
static bool may_be_statepoint(struct cairn_record record)
{
    uint8_t delta = record.table->return_deltas[record.index];
    return delta == 0 || delta == RETURN_UNKNOWN;
}

static enum cairn_status read_pairs(const struct cairn_frame *frame, struct cairn_record record,
                                    struct pairs *pairs, struct cairn_error *error)
{
    if (frame == NULL || record.table == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "roots need a frame and its record");
    if (!may_be_statepoint(record))
        return error_set(error, CAIRN_ERROR_ARGUMENT, cairn_record_address(record),
                         "record %llu at 0x%llx is not a statepoint's: it has no roots",
                         (unsigned long long)cairn_record_id(record),
                         (unsigned long long)cairn_record_address(record));
    *pairs = (struct pairs){.frame = frame, .values = record_values_of(record)};
    use_register(pairs, arch_host_stack_pointer(), frame->sp);
    pairs->first = find_first_pair(&pairs->values);
    if (pairs->first != 0 && find_end(pairs))
        return CAIRN_OK;
    struct cairn_statepoint statepoint;
    return cairn_record_statepoint(record, &statepoint, error); /* says what is wrong */
}

/* ---- Sets of places ---- */

/* Of the keys of one window. */
struct key_set {
    uint64_t words[WINDOW_KEYS / WORD_BITS];
};

/* The window's key; WINDOW_KEYS or more if it is not in it. */
static uint64_t in_window(uint64_t key, uint64_t window) { return key - window; }

static bool contains(const struct key_set *set, uint64_t key)
{
    return (set->words[key / WORD_BITS] >> key % WORD_BITS & 1) != 0;
}

static void add(struct key_set *set, uint64_t key)
{
    set->words[key / WORD_BITS] |= UINT64_C(1) << key % WORD_BITS;
}

/* What the pairs of a record are, and the bases of its first window. */
struct survey {
    struct pairs pairs;
    uint64_t key_end;
    bool has_interior; /* a derived pointer in another place than its base */
    struct key_set bases;
};

static bool is_interior(struct pair pair)
{
    return pair.base != pair.derived && pair.base != NO_KEY && pair.derived != NO_KEY;
}

static uint64_t larger(uint64_t left, uint64_t right) { return left > right ? left : right; }

/* Bits on their way into a set: places of a frame are near each other, and a word that is written
 * and read again at once is slow. */
struct key_word {
    uint64_t number;
    uint64_t bits;
};

static inline void write_word(struct key_set *set, struct key_word word)
{
    if (word.number < WINDOW_KEYS / WORD_BITS)
        set->words[word.number] |= word.bits;
}

static inline struct key_word add_to_word(struct key_set *set, struct key_word word, uint64_t key)
{
    uint64_t bit = UINT64_C(1) << key % WORD_BITS;
    if (key / WORD_BITS == word.number)
        return (struct key_word){word.number, word.bits | bit};
    write_word(set, word);
    return (struct key_word){key / WORD_BITS, bit};
}

/* Any pair. `*key` is its base's. */
static __attribute__((noinline)) enum cairn_status survey_pair(struct survey *survey,
                                                               uint32_t index, uint64_t *key,
                                                               struct cairn_error *error)
{
    struct pair pair;
    enum cairn_status status = find_pair(&survey->pairs, index, &pair, error);
    *key = pair.base;
    if (status != CAIRN_OK || !is_interior(pair))
        return status;
    survey->has_interior = true;
    survey->key_end = larger(survey->key_end, pair.derived + 1);
    return CAIRN_OK;
}

/* Checks all pairs. */
static enum cairn_status make_survey(struct survey *survey, struct cairn_error *error)
{
    const struct record_values *values = &survey->pairs.values;
    struct key_word word = {0, 0};
    uint64_t end = 0;
    for (uint32_t i = survey->pairs.first; i < survey->pairs.end; i += 2) {
        uint64_t key;
        enum cairn_status status = CAIRN_OK;
        if (!is_same(values, i) || !find_spill_key(&survey->pairs, values->locations[i], &key))
            status = survey_pair(survey, i, &key, error);
        if (status != CAIRN_OK)
            return status;
        if (key == NO_KEY)
            continue;
        end = larger(end, key + 1);
        word = add_to_word(&survey->bases, word, key);
    }
    write_word(&survey->bases, word);
    survey->key_end = larger(survey->key_end, end);
    return CAIRN_OK;
}

static void collect_bases(struct survey *survey, uint64_t window)
{
    if (survey->key_end <= WINDOW_KEYS)
        return;
    survey->bases = (struct key_set){{0}};
    for (uint32_t i = survey->pairs.first; i < survey->pairs.end; i += 2) {
        uint64_t key = in_window(pair_at(&survey->pairs, i).base, window);
        if (key < WINDOW_KEYS)
            add(&survey->bases, key);
    }
}

/* ---- Relocating ---- */

static void detach(void **base, void **derived)
{
    uintptr_t distance = (uintptr_t)load(derived) - (uintptr_t)load(base);
    store(derived, (void *)distance);
}

static void attach(void **base, void **derived)
{
    uintptr_t distance = (uintptr_t)load(derived);
    store(derived, (void *)((uintptr_t)load(base) + distance));
}

/* For each derived pointer's place of the window, once; those that are bases are moved as such. */
static inline void each_interior_in_window(struct survey *survey, uint64_t window,
                                           void (*change)(void **base, void **derived))
{
    const struct cairn_frame *frame = survey->pairs.frame;
    struct key_set seen = {{0}};
    collect_bases(survey, window);
    for (uint32_t i = survey->pairs.first; i < survey->pairs.end; i += 2) {
        if (is_same(&survey->pairs.values, i))
            continue;
        struct pair pair = pair_at(&survey->pairs, i);
        uint64_t key = in_window(pair.derived, window);
        if (!is_interior(pair) || key >= WINDOW_KEYS || contains(&survey->bases, key) ||
            contains(&seen, key))
            continue;
        add(&seen, key);
        change(place_of(frame, pair.base), place_of(frame, pair.derived));
    }
}

static inline void each_interior(struct survey *survey, void (*change)(void **base, void **derived))
{
    if (!survey->has_interior)
        return;
    for (uint64_t window = 0; window < survey->key_end; window += WINDOW_KEYS)
        each_interior_in_window(survey, window, change);
}

static void move_base(void **place, cairn_root_mover *move, void *user)
{
    void *object = load(place);
    if (object != NULL)
        store(place, move(object, user));
}

static void move_saved(const struct cairn_frame *frame, uint64_t word, uint64_t first_key,
                       cairn_root_mover *move, void *user)
{
    for (; word != 0; word &= word - 1)
        move_base(frame->slots[first_key + (uint64_t)__builtin_ctzll(word)], move, user);
}

static void move_spilled(void **first, uint64_t word, cairn_root_mover *move, void *user)
{
    for (; word != 0; word &= word - 1)
        move_base(first + __builtin_ctzll(word), move, user);
}

_Static_assert(STACK_KEYS % WORD_BITS == 0, "a word is of registers or of the stack");
static void move_word(const struct cairn_frame *frame, uint64_t word, uint64_t first_key,
                      cairn_root_mover *move, void *user)
{
    if (first_key < STACK_KEYS)
        move_saved(frame, word, first_key, move, user);
    else
        move_spilled(place_of(frame, first_key), word, move, user);
}

static void move_window(const struct survey *survey, uint64_t window, cairn_root_mover *move,
                        void *user)
{
    for (uint64_t key = 0; key < WINDOW_KEYS && window + key < survey->key_end; key += WORD_BITS)
        move_word(survey->pairs.frame, survey->bases.words[key / WORD_BITS], window + key, move,
                  user);
}

static void move_bases(struct survey *survey, cairn_root_mover *move, void *user)
{
    for (uint64_t window = 0; window < survey->key_end; window += WINDOW_KEYS) {
        collect_bases(survey, window);
        move_window(survey, window, move, user);
    }
}

enum cairn_status cairn_frame_relocate(struct cairn_frame *frame, struct cairn_record record,
                                       cairn_root_mover *move, void *user,
                                       struct cairn_error *error)
{
    struct survey survey = {.key_end = 0};
    if (move == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_frame_relocate needs a mover");
    enum cairn_status status = read_pairs(frame, record, &survey.pairs, error);
    if (status == CAIRN_OK)
        status = make_survey(&survey, error);
    if (status != CAIRN_OK)
        return status;
    each_interior(&survey, detach);
    move_bases(&survey, move, user);
    each_interior(&survey, attach);
    return CAIRN_OK;
}

/* ---- Enumerating ---- */

enum cairn_status cairn_frame_roots(const struct cairn_frame *frame, struct cairn_record record,
                                    struct cairn_root *roots, size_t capacity, size_t *count,
                                    struct cairn_error *error)
{
    struct pairs pairs;
    size_t found = 0;
    enum cairn_status status = read_pairs(frame, record, &pairs, error);
    if (status != CAIRN_OK)
        return status;
    for (uint32_t i = pairs.first; i < pairs.end; i += 2) {
        struct pair pair;
        status = find_pair(&pairs, i, &pair, error);
        if (status != CAIRN_OK)
            return status;
        if (pair.base == NO_KEY || pair.derived == NO_KEY)
            continue;
        if (found < capacity)
            roots[found] =
                (struct cairn_root){place_of(frame, pair.base), place_of(frame, pair.derived)};
        found++;
    }
    *count = found;
    return CAIRN_OK;
}

enum cairn_status cairn_frame_allocas(const struct cairn_frame *frame, struct cairn_record record,
                                      void **addresses, size_t capacity, size_t *count,
                                      struct cairn_error *error)
{
    struct pairs pairs;
    enum cairn_status status = read_pairs(frame, record, &pairs, error);
    if (status != CAIRN_OK)
        return status;
    uint32_t found = record_values_location_count(&pairs.values) - pairs.end;
    for (uint32_t i = 0; i < found && i < capacity; i++) {
        uint64_t distance = 0;
        struct cairn_location location = record_values_location(&pairs.values, pairs.end + i);
        status = find_distance(&pairs, location, &distance, error);
        if (status != CAIRN_OK)
            return status;
        addresses[i] = (void *)(uintptr_t)(frame->sp + distance);
    }
    *count = found;
    return CAIRN_OK;
}
