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
_Static_assert((int)STACK_KEYS >= (int)CAIRN_FRAME_SLOTS, "a key for each slot");

/* Key of a constant. */
#define NO_KEY UINT64_MAX

/* The pairs of a frame, as indices of locations. */
struct pairs {
    const struct cairn_frame *frame;
    struct record_values values;
    uint32_t first;
    uint32_t end; /* index of the first alloca */
    /* The base register of the last place: its distance from the stack pointer, and the bits of a
     * compact location of 8 bytes with this base register. */
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
        if (arch->unwind_slots[i].dwarf == dwarf && frame->slots[i] != NULL) {
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
    pairs->spill = CAIRN_LOCATION_INDIRECT | LOGARITHM << COMPACT_SIZE_SHIFT |
                   (uint32_t)dwarf << COMPACT_REGISTER_SHIFT;
    pairs->distance = value - pairs->frame->sp;
}

/* Computes a location's distance from the stack pointer. */
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

/* Whether a root can be at this distance: not below the stack pointer, and aligned. */
static bool is_place(uint64_t distance)
{
    return (distance & (UINT64_C(1) << 63 | (POINTER_BYTES - 1))) == 0;
}

static uint64_t stack_key(uint64_t distance) { return STACK_KEYS + distance / POINTER_BYTES; }

static __attribute__((noinline)) enum cairn_status find_any_key(struct pairs *pairs, uint32_t index,
                                                                uint64_t *key,
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

/* Finds the key of a compact location on the stack with the same base register as the last one, as
 * nearly all locations are. False for other locations. */
static inline bool find_spill_key(const struct pairs *pairs, uint32_t word, uint64_t *key)
{
    uint64_t distance = pairs->distance + (uint64_t)((int32_t)word >> COMPACT_OFFSET_SHIFT);
    *key = stack_key(distance);
    return (word & SPILL_MASK) == pairs->spill && is_place(distance);
}

/* Finds the key of location `index`. */
static inline enum cairn_status find_key(struct pairs *pairs, uint32_t index, uint64_t *key,
                                         struct cairn_error *error)
{
    bool is_found = pairs->values.form == VALUES_COMPACT &&
                    find_spill_key(pairs, pairs->values.locations[index], key);
    return is_found ? CAIRN_OK : find_any_key(pairs, index, key, error);
}

/* ---- Pairs ---- */

/* Finds the pair whose base is location `index`. */
static inline enum cairn_status find_pair(struct pairs *pairs, uint32_t index, struct pair *pair,
                                          struct cairn_error *error)
{
    enum cairn_status status = find_key(pairs, index, &pair->base, error);
    pair->derived = pair->base;
    const uint32_t *words = pairs->values.locations;
    bool is_same = pairs->values.form == VALUES_COMPACT && words[index] == words[index + 1];
    if (status != CAIRN_OK || is_same)
        return status;
    return find_key(pairs, index + 1, &pair->derived, error);
}

/* Returns a pair of a record that has been checked. */
static inline struct pair pair_at(struct pairs *pairs, uint32_t index)
{
    struct pair pair = {NO_KEY, NO_KEY};
    enum cairn_status status = find_pair(pairs, index, &pair, NULL);
    (void)status;
    return pair;
}

static inline unsigned kind_at(const struct record_values *values, uint32_t index)
{
    return values->locations[(size_t)index * ((size_t)values->form + 1)] & COMPACT_KIND_MASK;
}

/* Returns the index of the first pair; 0 if the record does not begin like a statepoint's. */
static inline uint32_t find_first_pair(const struct record_values *values, uint32_t count)
{
    _Static_assert((CAIRN_LOCATION_CONSTANT & CAIRN_LOCATION_CONSTANT_INDEX) == 4, "a bit of both");
    _Static_assert(CAIRN_LOCATION_INDIRECT < 4, "and of no other kind");
    if (count < HEADER_LOCATIONS)
        return 0;
    unsigned common = kind_at(values, 0) & kind_at(values, 1) & kind_at(values, DEOPT_COUNT);
    if ((common & CAIRN_LOCATION_CONSTANT) == 0)
        return 0;
    uint64_t deopt_count = record_values_location(values, DEOPT_COUNT).constant;
    return deopt_count <= count - HEADER_LOCATIONS ? HEADER_LOCATIONS + (uint32_t)deopt_count : 0;
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
    pairs->first = find_first_pair(&pairs->values, count);
    while (count > pairs->first && kind_at(&pairs->values, count - 1) == CAIRN_LOCATION_DIRECT)
        count--; /* allocas are the last locations */
    pairs->end = count;
    use_register(pairs, arch_host_layout.stack_pointer, frame->sp);
    bool come_in_twos = (pairs->end - pairs->first) % 2 == 0;
    return pairs->first != 0 && come_in_twos;
}

/* ---- Sets of places ---- */

/* A set of keys from one window. */
struct key_set {
    uint64_t words[WINDOW_KEYS / WORD_BITS];
};

/* Adds a key. Returns whether it is new. */
static bool add(struct key_set *set, uint64_t key)
{
    uint64_t *word = &set->words[key / WORD_BITS];
    uint64_t bit = UINT64_C(1) << key % WORD_BITS;
    bool is_new = (*word & bit) == 0;
    *word |= bit;
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

static bool is_interior(struct pair pair)
{
    return pair.base != pair.derived && pair.base != NO_KEY && pair.derived != NO_KEY;
}

static uint64_t larger(uint64_t left, uint64_t right) { return left > right ? left : right; }

/* Checks a pair of any kind and adds it to the summary. `*key` becomes the key of its base. */
static __attribute__((noinline)) enum cairn_status survey_pair(struct survey *survey,
                                                               uint32_t index, uint64_t *key,
                                                               struct cairn_error *error)
{
    struct pair pair;
    enum cairn_status status = find_pair(&survey->pairs, index, &pair, error);
    *key = pair.base;
    if (status != CAIRN_OK || !is_interior(pair))
        return status;
    if (survey->interior_count < INTERIORS_LISTED)
        survey->interiors[survey->interior_count] = pair;
    survey->interior_count++;
    survey->key_end = larger(survey->key_end, pair.derived + 1);
    return CAIRN_OK;
}

/* Checks all pairs and completes the summary. The places of a frame are close together, and it is
 * slow to load a word again that has just been stored, so the bits of a word are collected in
 * `bits` before they are written. */
static inline enum cairn_status make_survey(struct survey *survey, struct cairn_error *error)
{
    const bool is_compact = survey->pairs.values.form == VALUES_COMPACT;
    const uint32_t *words = survey->pairs.values.locations;
    const uint32_t pairs_end = survey->pairs.end;
    uint64_t end = 0;
    uint64_t bits = 0;
    uint64_t number = 0;
    for (uint32_t i = survey->pairs.first; i < pairs_end; i += 2) {
        uint64_t key;
        /* Nearly always, one spilled pointer is both the base and the derived one. */
        bool is_spill = is_compact && words[i] == words[i + 1] &&
                        find_spill_key(&survey->pairs, words[i], &key);
        if (__builtin_expect(!is_spill, 0)) {
            uint64_t any;
            enum cairn_status status = survey_pair(survey, i, &any, error);
            if (status != CAIRN_OK)
                return status;
            if (any == NO_KEY)
                continue;
            key = any;
        }
        end = larger(end, key + 1);
        if (__builtin_expect(key / WORD_BITS != number, 0)) {
            if (number < WINDOW_KEYS / WORD_BITS)
                survey->bases.words[number] |= bits;
            number = key / WORD_BITS;
            bits = 0;
        }
        bits |= UINT64_C(1) << key % WORD_BITS;
    }
    if (number < WINDOW_KEYS / WORD_BITS)
        survey->bases.words[number] |= bits;
    survey->key_end = larger(survey->key_end, end);
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

/* Changes each place of a derived pointer in the window once: adds its base, times `sign`. Places
 * that are also bases are skipped, because they are moved as bases. */
static void add_base_in_window(struct survey *survey, uint64_t window, uintptr_t sign)
{
    const struct cairn_frame *frame = survey->pairs.frame;
    bool are_listed = survey->interior_count <= INTERIORS_LISTED;
    uint32_t step = are_listed ? 1 : 2;
    uint32_t end = are_listed ? survey->interior_count : survey->pairs.end;
    collect_bases(survey, window);
    struct key_set taken = survey->bases;
    for (uint32_t i = are_listed ? 0 : survey->pairs.first; i < end; i += step) {
        struct pair pair = are_listed ? survey->interiors[i] : pair_at(&survey->pairs, i);
        uint64_t key = pair.derived - window;
        if (!is_interior(pair) || key >= WINDOW_KEYS || !add(&taken, key))
            continue;
        void **place = place_of(frame, pair.derived);
        uintptr_t base = (uintptr_t)load(place_of(frame, pair.base));
        store(place, (void *)((uintptr_t)load(place) + sign * base));
    }
}

static void add_base(struct survey *survey, uintptr_t sign)
{
    for (uint64_t window = 0; survey->interior_count > 0 && window < survey->key_end;
         window += WINDOW_KEYS)
        add_base_in_window(survey, window, sign);
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
                    move_base(frame->slots[key + (uint64_t)__builtin_ctzll(word)], move, user);
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
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_frame_relocate needs a mover");
    if (!read_pairs(frame, record, &survey.pairs))
        return say_no_pairs(frame, record, error);
    memset(&survey.bases, 0, sizeof survey.bases);
    survey.key_end = 0;
    survey.interior_count = 0;
    enum cairn_status status = make_survey(&survey, error);
    if (status != CAIRN_OK)
        return status;
    add_base(&survey, (uintptr_t)-1); /* only the distance is left */
    move_bases(&survey, move, user);
    add_base(&survey, 1);
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
    for (uint32_t i = pairs.first; i < pairs.end; i += 2) {
        struct pair pair;
        enum cairn_status status = find_pair(&pairs, i, &pair, error);
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
    if (!read_pairs(frame, record, &pairs))
        return say_no_pairs(frame, record, error);
    uint32_t found = record_values_location_count(&pairs.values) - pairs.end;
    for (uint32_t i = 0; i < found && i < capacity; i++) {
        uint64_t distance = 0;
        struct cairn_location location = record_values_location(&pairs.values, pairs.end + i);
        enum cairn_status status = find_distance(&pairs, location, &distance, error);
        if (status != CAIRN_OK)
            return status;
        addresses[i] = (void *)(uintptr_t)(frame->sp + distance);
    }
    *count = found;
    return CAIRN_OK;
}
