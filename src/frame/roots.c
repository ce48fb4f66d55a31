/*
 * Roots: the places of the pointers that a statepoint keeps alive.
 *
 * Each place has a key: for a callee-saved register its slot, for a place on the stack its distance
 * from the stack pointer. So a set of places is a bitmap, which is small for a small frame. If the
 * places of a frame are further apart, they are processed in windows of keys.
 *
 * Invariants: the whole record is checked before the first place is changed; until all bases have
 * been moved, the place of a derived pointer holds its distance from its base.
 *
 * Source: LLVM, "Garbage Collection Safepoints in LLVM", section Stack Map Format. Which pairs a
 * record has: llvm/lib/CodeGen/StackMaps.cpp, parseStatepointOpers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "frame/frame.h"
#include "record/record_values.h"

#include <cairn/roots.h>
#include <cairn/statepoint.h>
#include <string.h>

enum {
    POINTER_BYTES = sizeof(void *),
    HEADER_LOCATIONS = 3, /* calling convention, flags, number of deopt values */
    DEOPT_COUNT = 2,
    STACK_KEYS = 128, /* first key of the stack; smaller keys are register slots */
    WINDOW_KEYS = 512,
    INTERIORS_LISTED = 64,
    WORD_BITS = 64,
    SPILL_MASK = (1 << COMPACT_OFFSET_SHIFT) - 1 /* a compact location without its offset */
};
_Static_assert((int)STACK_KEYS >= (int)FRAME_SLOTS, "a key for each slot");

/* Key of a constant. */
#define NO_KEY UINT64_MAX

/* The pairs of a frame, as indices of locations. */
struct pairs {
    const struct cairn_frame *frame;
    struct record_values values;
    uint32_t first;
    uint32_t end; /* index of the first alloca */
    /* The base register of the last place: its distance from the stack pointer, and the bits of a
     * compact location of 8 bytes with this base register; UINT32_MAX in other forms. */
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
    if (key < FRAME_SLOTS)
        return frame->private_words[key];
    return (void **)(uintptr_t)(frame->sp + (key - STACK_KEYS) * POINTER_BYTES);
}

/* Load and store a pointer. memcpy is used because the place may hold a pointer of any type. */
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
        if (arch->unwind_slots[i].dwarf == dwarf && frame->private_words[i] != NULL) {
            *key = i;
            return CAIRN_OK;
        }
    }
    return error_set(error, CAIRN_ERROR_NOT_FOUND, dwarf,
                     "a root of the frame at 0x%llx is in register %u, which is not known",
                     (unsigned long long)frame->pc, dwarf);
}

static void use_register(struct pairs *pairs, uint16_t dwarf, uint64_t value)
{
    enum { LOGARITHM = 3 };
    _Static_assert(1 << LOGARITHM == POINTER_BYTES, "pointers have 8 bytes");
    pairs->dwarf = dwarf;
    pairs->spill = UINT32_MAX;
    if (pairs->values.form == VALUES_COMPACT)
        pairs->spill = CAIRN_LOCATION_INDIRECT | LOGARITHM << COMPACT_SIZE_SHIFT |
                       (uint32_t)dwarf << COMPACT_REGISTER_SHIFT;
    pairs->distance = value - pairs->frame->sp;
}

/* Whether a root can be at this distance: not below the stack pointer, and aligned. */
static bool is_place(uint64_t distance)
{
    return (distance & (UINT64_C(1) << 63 | (POINTER_BYTES - 1))) == 0;
}

static uint64_t stack_key(uint64_t distance) { return STACK_KEYS + distance / POINTER_BYTES; }

static enum cairn_status find_any_key(struct pairs *pairs, uint32_t index, uint64_t *key,
                                      struct cairn_error *error)
{
    struct cairn_location location = record_values_location(&pairs->values, index);
    *key = NO_KEY;
    if (location.kind == CAIRN_LOCATION_CONSTANT || location.kind == CAIRN_LOCATION_CONSTANT_INDEX)
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
    if (pairs->dwarf != location.dwarf) {
        uint64_t value = 0;
        enum cairn_status status = frame_base(pairs->frame, location.dwarf, &value, error);
        if (status != CAIRN_OK)
            return status;
        use_register(pairs, location.dwarf, value);
    }
    uint64_t distance = pairs->distance + (uint64_t)(int64_t)location.offset;
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

/* How to find the keys of nearly all locations: those on the stack in the compact form, with the
 * same base register as the last one. A copy of fields of `pairs`, which stays in registers. */
struct spills {
    const uint32_t *locations;
    uint64_t distance;
    uint32_t spill;
};

static inline struct spills spills_of(const struct pairs *pairs)
{
    return (struct spills){pairs->values.locations, pairs->distance, pairs->spill};
}

/* Finds the key of such a location. False for other locations. */
static inline bool find_spill_key(const struct spills *spills, uint32_t word, uint64_t *key)
{
    uint64_t distance = spills->distance + (uint64_t)((int32_t)word >> COMPACT_OFFSET_SHIFT);
    *key = stack_key(distance);
    return (word & SPILL_MASK) == spills->spill && is_place(distance);
}

/* ---- Pairs ---- */

static __attribute__((noinline)) enum cairn_status find_any_pair(struct pairs *pairs,
                                                                 uint32_t index, struct pair *pair,
                                                                 struct cairn_error *error)
{
    enum cairn_status status = find_any_key(pairs, index, &pair->base, error);
    return status == CAIRN_OK ? find_any_key(pairs, index + 1, &pair->derived, error) : status;
}

/* Finds the pair whose base is location `index`. `*spills` is that of `pairs`. */
static inline enum cairn_status find_pair(struct pairs *pairs, struct spills *spills,
                                          uint32_t index, struct pair *pair,
                                          struct cairn_error *error)
{
    const uint32_t *words = spills->locations + index;
    bool is_spill = find_spill_key(spills, words[0], &pair->base);
    pair->derived = pair->base;
    if (__builtin_expect(is_spill, 1) &&
        (words[0] == words[1] || find_spill_key(spills, words[1], &pair->derived)))
        return CAIRN_OK;
    struct pair any = {NO_KEY, NO_KEY};
    enum cairn_status status = find_any_pair(pairs, index, &any, error);
    *spills = spills_of(pairs);
    *pair = any;
    return status;
}

/* Returns a pair of a record that has been checked. */
static inline struct pair pair_at(struct pairs *pairs, uint32_t index)
{
    struct pair pair = {NO_KEY, NO_KEY};
    struct spills spills = spills_of(pairs);
    enum cairn_status status = find_pair(pairs, &spills, index, &pair, NULL);
    (void)status;
    return pair;
}

static inline unsigned kind_at(const struct record_values *values, uint32_t index)
{
    return values->locations[(size_t)index * ((size_t)values->form + 1)] & COMPACT_KIND_MASK;
}

/* Whether the record may be a statepoint's. A statepoint's call returns to the address of the
 * record. Where calls return to is unknown only in tables that the host has built itself. */
static inline bool may_be_statepoint(struct cairn_record record)
{
    uint8_t delta = record.table->return_deltas[record.index];
    return delta == 0 || delta == RETURN_UNKNOWN;
}

static __attribute__((noinline)) enum cairn_status say_no_pairs(const struct cairn_frame *frame,
                                                                struct cairn_record record,
                                                                struct cairn_error *error)
{
    struct cairn_statepoint statepoint;
    if (frame == NULL || record.table == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "roots need a frame and its record");
    if (may_be_statepoint(record))
        return cairn_record_statepoint(record, &statepoint, error); /* sets the error */
    return error_set(error, CAIRN_ERROR_ARGUMENT, cairn_record_address(record),
                     "record %llu at 0x%llx is not a statepoint's: it has no roots",
                     (unsigned long long)cairn_record_id(record),
                     (unsigned long long)cairn_record_address(record));
}

/* Finds the pairs of a record. On false, say_no_pairs returns the error. */
static inline __attribute__((always_inline)) bool read_pairs(const struct cairn_frame *frame,
                                                             struct cairn_record record,
                                                             struct pairs *pairs)
{
    if (frame == NULL || record.table == NULL || !may_be_statepoint(record))
        return false;
    pairs->frame = frame;
    pairs->values = record_values_of(record);
    uint32_t count = record_values_location_count(&pairs->values);
    _Static_assert((CAIRN_LOCATION_CONSTANT & CAIRN_LOCATION_CONSTANT_INDEX) == 4, "a bit of both");
    _Static_assert(CAIRN_LOCATION_INDIRECT < 4, "and of no other kind");
    if (count < HEADER_LOCATIONS ||
        (kind_at(&pairs->values, 0) & kind_at(&pairs->values, 1) &
         kind_at(&pairs->values, DEOPT_COUNT) & CAIRN_LOCATION_CONSTANT) == 0)
        return false;
    uint64_t deopt_count = record_values_location(&pairs->values, DEOPT_COUNT).constant;
    if (deopt_count > count - HEADER_LOCATIONS)
        return false;
    pairs->first = HEADER_LOCATIONS + (uint32_t)deopt_count;
    while (count > pairs->first && kind_at(&pairs->values, count - 1) == CAIRN_LOCATION_DIRECT)
        count--; /* allocas are the last locations */
    pairs->end = count;
    use_register(pairs, arch_host_layout.stack_pointer, frame->sp);
    return (pairs->end - pairs->first) % 2 == 0;
}

/* ---- Sets of places ---- */

/* A set of keys from one window. */
struct key_set {
    uint64_t words[WINDOW_KEYS / WORD_BITS];
};

static bool has(const struct key_set *set, uint64_t key)
{
    return (set->words[key / WORD_BITS] >> key % WORD_BITS & 1) != 0;
}

/* Adds a key. Returns whether it is new. */
static bool add(struct key_set *set, uint64_t key)
{
    bool is_new = !has(set, key);
    set->words[key / WORD_BITS] |= UINT64_C(1) << key % WORD_BITS;
    return is_new;
}

/* A summary of a record's pairs, and the bases in the current window. */
struct survey {
    struct pairs pairs;
    struct key_set bases;
    uint64_t key_end;
    /* The pairs whose pointers are at different places, as far as the list has space. */
    uint32_t interior_count;
    struct pair interiors[INTERIORS_LISTED];
};

static uint64_t larger(uint64_t left, uint64_t right) { return left > right ? left : right; }

/* Checks all pairs and completes the summary. The places of a frame are close together, and it is
 * slow to load a word again that has just been stored, so the bits of a word are collected in
 * `bits` before they are written. */
static inline enum cairn_status make_survey(struct survey *survey, struct cairn_error *error)
{
    uint64_t bits = 0;
    uint64_t number = 0;
    uint64_t last_number = 0;
    struct spills spills = spills_of(&survey->pairs);
    const uint32_t pairs_end = survey->pairs.end;
    for (uint32_t i = survey->pairs.first; i < pairs_end; i += 2) {
        struct pair pair;
        enum cairn_status status = find_pair(&survey->pairs, &spills, i, &pair, error);
        if (status != CAIRN_OK)
            return status;
        if (pair.base == NO_KEY)
            continue;
        if (pair.base != pair.derived && pair.derived != NO_KEY) {
            if (survey->interior_count < INTERIORS_LISTED)
                survey->interiors[survey->interior_count] = pair;
            survey->interior_count++;
            last_number = larger(last_number, pair.derived / WORD_BITS);
        }
        if (__builtin_expect(pair.base / WORD_BITS != number, 0)) {
            if (number < WINDOW_KEYS / WORD_BITS)
                survey->bases.words[number] |= bits;
            number = pair.base / WORD_BITS;
            last_number = larger(last_number, number);
            bits = 0;
        }
        bits |= UINT64_C(1) << pair.base % WORD_BITS;
    }
    if (number < WINDOW_KEYS / WORD_BITS)
        survey->bases.words[number] |= bits;
    survey->key_end = (last_number + 1) * WORD_BITS;
    return CAIRN_OK;
}

static void collect_bases(struct survey *survey, uint64_t window)
{
    if (survey->key_end <= WINDOW_KEYS)
        return;
    survey->bases = (struct key_set){{0}};
    for (uint32_t i = survey->pairs.first; i < survey->pairs.end; i += 2) {
        uint64_t key = pair_at(&survey->pairs, i).base - window;
        if (key < WINDOW_KEYS)
            add(&survey->bases, key);
    }
}

/* ---- Relocating place by place ---- */

/* Adds the base of a derived pointer to its place, or subtracts it. */
static inline void add_base(const struct cairn_frame *frame, struct pair pair, bool subtract)
{
    void **place = place_of(frame, pair.derived);
    uintptr_t base = (uintptr_t)load(place_of(frame, pair.base));
    store(place, (void *)((uintptr_t)load(place) + (subtract ? -base : base)));
}

/* Calls add_base once for each place of a derived pointer in the window. Places that are also bases
 * are skipped, because they are moved as bases. Pairs that are skipped leave the list. */
static void add_bases_in_window(struct survey *survey, uint64_t window, bool are_listed,
                                bool subtract)
{
    uint32_t step = are_listed ? 1 : 2;
    uint32_t end = are_listed ? survey->interior_count : survey->pairs.end;
    struct key_set taken = {{0}};
    collect_bases(survey, window);
    for (uint32_t i = are_listed ? 0 : survey->pairs.first; i < end; i += step) {
        struct pair pair = are_listed ? survey->interiors[i] : pair_at(&survey->pairs, i);
        uint64_t key = pair.derived - window;
        if (pair.base == pair.derived || pair.base == NO_KEY || pair.derived == NO_KEY ||
            key >= WINDOW_KEYS)
            continue;
        if (!has(&survey->bases, key) && add(&taken, key))
            add_base(survey->pairs.frame, pair, subtract);
        else if (are_listed)
            survey->interiors[i].derived = NO_KEY;
    }
}

static void add_bases(struct survey *survey, bool subtract)
{
    bool are_listed = survey->interior_count <= INTERIORS_LISTED;
    if (subtract || !are_listed) {
        for (uint64_t window = 0; window < survey->key_end; window += WINDOW_KEYS)
            add_bases_in_window(survey, window, are_listed, subtract);
        return;
    }
    for (uint32_t i = 0; i < survey->interior_count; i++)
        if (survey->interiors[i].derived != NO_KEY)
            add_base(survey->pairs.frame, survey->interiors[i], false);
}

static void move_base(void **place, cairn_root_mover *move, void *user)
{
    void *object = load(place);
    if (object != NULL)
        store(place, move(object, user));
}

_Static_assert(STACK_KEYS % WORD_BITS == 0, "a word is of registers or of the stack");

static void move_bases(struct survey *survey, cairn_root_mover *move, void *user)
{
    const struct cairn_frame *frame = survey->pairs.frame;
    for (uint64_t window = 0; window < survey->key_end; window += WINDOW_KEYS) {
        collect_bases(survey, window);
        uint64_t end =
            survey->key_end - window < WINDOW_KEYS ? survey->key_end : window + WINDOW_KEYS;
        for (uint64_t key = window; key < end; key += WORD_BITS) {
            uint64_t word = survey->bases.words[(key - window) / WORD_BITS];
            if (key < STACK_KEYS)
                for (; word != 0; word &= word - 1)
                    move_base(frame->private_words[key + (uint64_t)__builtin_ctzll(word)], move,
                              user);
            else
                for (void **places = place_of(frame, key); word != 0; word &= word - 1)
                    move_base(places + __builtin_ctzll(word), move, user);
        }
    }
}

enum cairn_status cairn_frame_relocate(struct cairn_frame *frame, struct cairn_record record,
                                       cairn_root_mover *move, void *user,
                                       struct cairn_error *error)
{
    struct survey survey; /* large, so only what is used is initialised */
    if (move == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_frame_relocate: `move` is NULL");
    if (!read_pairs(frame, record, &survey.pairs))
        return say_no_pairs(frame, record, error);
    memset(&survey.bases, 0, sizeof survey.bases);
    survey.key_end = 0;
    survey.interior_count = 0;
    enum cairn_status status = make_survey(&survey, error);
    if (status != CAIRN_OK)
        return status;
    if (survey.interior_count > 0)
        add_bases(&survey, true); /* only the distance is left */
    move_bases(&survey, move, user);
    if (survey.interior_count > 0)
        add_bases(&survey, false);
    return CAIRN_OK;
}

/* ---- Enumerating ---- */

enum cairn_status cairn_frame_roots(const struct cairn_frame *frame, struct cairn_record record,
                                    struct cairn_root *roots, size_t capacity, size_t *count,
                                    struct cairn_error *error)
{
    struct pairs pairs;
    size_t found = 0;
    if (!read_pairs(frame, record, &pairs))
        return say_no_pairs(frame, record, error);
    struct spills spills = spills_of(&pairs);
    for (uint32_t i = pairs.first; i < pairs.end; i += 2) {
        struct pair pair;
        enum cairn_status status = find_pair(&pairs, &spills, i, &pair, error);
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
