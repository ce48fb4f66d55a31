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
#include "format/four.h"
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
    WINDOW_KEYS = 1024,
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

/* Whether both pointers of a pair are at the same place, if their location words are enough to
 * tell. Otherwise false. */
static inline bool is_same(const struct record_values *values, uint32_t index)
{
    return values->form == VALUES_COMPACT &&
           values->locations[index] == values->locations[index + 1];
}

/* Finds the pair whose base is location `index`. */
static inline enum cairn_status find_pair(struct pairs *pairs, uint32_t index, struct pair *pair,
                                          struct cairn_error *error)
{
    enum cairn_status status = find_key(pairs, index, &pair->base, error);
    pair->derived = pair->base;
    if (status != CAIRN_OK || is_same(&pairs->values, index))
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

/* Returns the index of the first alloca. Allocas are the last locations. */
static inline uint32_t find_end(const struct record_values *values, uint32_t first, uint32_t count)
{
    while (count > first && kind_at(values, count - 1) == CAIRN_LOCATION_DIRECT)
        count--;
    return count;
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
    pairs->end = find_end(&pairs->values, pairs->first, count);
    use_register(pairs, arch_host_layout.stack_pointer, frame->sp);
    bool come_in_twos = (pairs->end - pairs->first) % 2 == 0;
    return pairs->first != 0 && come_in_twos;
}

/* ---- Sets of places ---- */

/* A set of keys from one window. */
struct key_set {
    uint64_t words[WINDOW_KEYS / WORD_BITS];
};

/* Returns the key's index in the window; WINDOW_KEYS or more if it is outside. */
static uint64_t in_window(uint64_t key, uint64_t window) { return key - window; }

static bool contains(const struct key_set *set, uint64_t key)
{
    return (set->words[key / WORD_BITS] >> key % WORD_BITS & 1) != 0;
}

static void add(struct key_set *set, uint64_t key)
{
    set->words[key / WORD_BITS] |= UINT64_C(1) << key % WORD_BITS;
}

/* A summary of a record's pairs, and the bases in the current window. */
struct survey {
    struct pairs pairs;
    uint64_t key_end;
    bool has_interior; /* whether a derived pointer and its base are at different places */
    struct key_set bases;
};

static bool is_interior(struct pair pair)
{
    return pair.base != pair.derived && pair.base != NO_KEY && pair.derived != NO_KEY;
}

static uint64_t larger(uint64_t left, uint64_t right) { return left > right ? left : right; }

/* Bits that have not yet been written to a set. The places of a frame are close together, and it is
 * slow to load a word again that has just been stored. So the bits of a word are collected before
 * it is written. */
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
    survey->has_interior = true;
    survey->key_end = larger(survey->key_end, pair.derived + 1);
    return CAIRN_OK;
}

/* Checks all pairs and completes the summary. */
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

/* ---- Relocating place by place ---- */

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

/* Calls `change` once for each place of a derived pointer in the window. Places that are also bases
 * are skipped, because they are moved as bases. */
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

/* ---- The fast path: all places near the stack pointer, with one base register ---- */

/*
 * Does the same with less work: one word is enough to decode each location, and a set of all places
 * is small. If two derived pointers share a place, or a derived pointer's place is also a base, the
 * general path is used.
 */
enum {
    NEAR_WORDS = 16,
    NEAR_BYTES = NEAR_WORDS * WORD_BITS * POINTER_BYTES,
    NEAR_PLACES = NEAR_BYTES - POINTER_BYTES, /* mask of the valid distances */
    NEAR_INTERIORS = 128
};

struct near {
    unsigned char *base; /* address that the offsets are relative to */
    const uint32_t *words;
    uint32_t word_count; /* two for each pair */
    uint32_t distance;   /* of `base` from the stack pointer */
    uint32_t reach;      /* bitwise OR of all distances */
};

/* The sets of places, and the pairs whose pointers are at different places, as the index of each
 * pair's first word. */
struct near_sets {
    uint64_t bases[NEAR_WORDS];
    uint64_t derived[NEAR_WORDS];
    uint32_t interiors[NEAR_INTERIORS];
    uint32_t interior_count;
};

static inline uint32_t near_distance(const struct near *near, uint32_t word)
{
    return near->distance + (uint32_t)((int32_t)word >> COMPACT_OFFSET_SHIFT);
}

static inline void **near_place(const struct near *near, uint32_t word)
{
    return (void **)(void *)(near->base + ((int32_t)word >> COMPACT_OFFSET_SHIFT));
}

/* Whether each word is a place on the stack with the base register of `spill`, and near the stack
 * pointer. Sets `reach`. */
static inline bool check_words(struct near *near, uint32_t spill)
{
    four_words misfits = {0};
    four_words reach = {0};
    uint32_t i = 0;
    for (; i + 4 <= near->word_count; i += 4) {
        four_words words;
        memcpy(&words, near->words + i, sizeof words);
        misfits |= words ^ spill;
        reach |= (four_words)((four_integers)words >> COMPACT_OFFSET_SHIFT) + near->distance;
    }
    uint32_t all_misfits = four_or(misfits);
    near->reach = four_or(reach);
    for (; i < near->word_count; i++) {
        all_misfits |= near->words[i] ^ spill;
        near->reach |= near_distance(near, near->words[i]);
    }
    return (all_misfits & SPILL_MASK) == 0 && (near->reach & ~(uint32_t)NEAR_PLACES) == 0;
}

/* Sets the base register to that of the first location. If that location is not on the stack, the
 * check of the words fails later. */
static __attribute__((noinline)) void find_spill_register(struct pairs *pairs)
{
    uint64_t key;
    enum cairn_status status = find_any_key(pairs, pairs->first, &key, NULL);
    (void)status;
}

/* Prepares the fast path. False if it cannot be used. The caller must then check the words. */
static inline bool begin_near(struct pairs *pairs, struct near *near)
{
    if (pairs->values.form != VALUES_COMPACT || pairs->first == pairs->end)
        return false;
    near->words = pairs->values.locations + pairs->first;
    near->word_count = pairs->end - pairs->first;
    if ((near->words[0] & SPILL_MASK) != pairs->spill)
        find_spill_register(pairs);
    near->distance = (uint32_t)pairs->distance;
    near->base = (unsigned char *)(uintptr_t)(pairs->frame->sp + pairs->distance);
    return pairs->distance + NEAR_BYTES <= 2 * (uint64_t)NEAR_BYTES;
}

static inline void flush_near(uint64_t *words, struct key_word word)
{
    words[word.number] |= word.bits;
}

static inline struct key_word add_near(uint64_t *words, struct key_word word, uint32_t distance)
{
    uint64_t bit = UINT64_C(1) << distance / POINTER_BYTES % WORD_BITS;
    uint64_t number = distance / (POINTER_BYTES * WORD_BITS);
    if (__builtin_expect(number == word.number, 1))
        return (struct key_word){number, word.bits | bit};
    flush_near(words, word);
    return (struct key_word){number, bit};
}

static inline uint32_t count_words(const struct near *near)
{
    return near->reach / (POINTER_BYTES * WORD_BITS) + 1;
}

/* Collects the bases and the interior pointers. False if there are more interior pointers than the
 * list can hold. */
static inline bool collect_near(const struct near *near, struct near_sets *sets)
{
    const struct near copy = *near;
    struct key_word word = {0, 0};
    uint32_t interior_count = 0;
    sets->bases[0] = 0;
    for (uint32_t i = 1; i < count_words(near); i++)
        sets->bases[i] = 0;
    for (uint32_t i = 0; i < copy.word_count; i += 2) {
        uint32_t base = copy.words[i];
        word = add_near(sets->bases, word, near_distance(&copy, base));
        if (base == copy.words[i + 1])
            continue;
        if (interior_count == NEAR_INTERIORS)
            return false;
        sets->interiors[interior_count++] = i;
    }
    flush_near(sets->bases, word);
    sets->interior_count = interior_count;
    return true;
}

/* Whether no interior pointer shares its place with another one or with a base. */
static inline bool have_own_places(const struct near *near, struct near_sets *sets)
{
    for (uint32_t i = 0; i < count_words(near); i++)
        sets->derived[i] = sets->bases[i];
    for (uint32_t i = 0; i < sets->interior_count; i++) {
        uint32_t distance = near_distance(near, near->words[sets->interiors[i] + 1]);
        uint64_t bit = UINT64_C(1) << distance / POINTER_BYTES % WORD_BITS;
        uint64_t *word = &sets->derived[distance / (POINTER_BYTES * WORD_BITS)];
        if ((*word & bit) != 0)
            return false;
        *word |= bit;
    }
    return true;
}

/* Calls `change` for each interior pointer. `interiors` has the indices of their pairs' first
 * words. */
static inline void each_near_interior(const struct near *near, const uint32_t *interiors,
                                      uint32_t count, void (*change)(void **base, void **derived))
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t *words = near->words + interiors[i];
        change(near_place(near, words[0]), near_place(near, words[1]));
    }
}

static __attribute__((noinline)) bool relocate_with_sets(const struct near *near, void **places,
                                                         cairn_root_mover *move, void *user)
{
    struct near_sets sets;
    if (!collect_near(near, &sets) || (sets.interior_count != 0 && !have_own_places(near, &sets)))
        return false;
    each_near_interior(near, sets.interiors, sets.interior_count, detach);
    uint32_t word_count = count_words(near);
    for (uint32_t i = 0; i < word_count; i++, places += WORD_BITS)
        move_spilled(places, sets.bases[i], move, user);
    each_near_interior(near, sets.interiors, sets.interior_count, attach);
    return true;
}

/* ---- All places in one word of a set ---- */

/* Mask of the distances that one word covers: all others have bits outside it. */
enum { WORD_PLACES = (WORD_BITS - 1) * POINTER_BYTES };

static inline uint64_t place_bit(uint32_t distance)
{
    return UINT64_C(1) << distance / POINTER_BYTES % WORD_BITS;
}

/* Returns the set of all bases; 0 if a base is not covered by the word. `*differences` is 0 if
 * there are no interior pointers. */
static inline uint64_t collect_word(const struct near *near, uint32_t spill, uint32_t *differences)
{
    uint64_t places = 0;
    uint32_t misfits = 0;
    uint32_t reach = 0;
    uint32_t all_differences = 0;
    const uint32_t *end = near->words + near->word_count;
    for (const uint32_t *pair = near->words; pair != end; pair += 2) {
        uint32_t distance = near_distance(near, pair[0]);
        reach |= distance;
        misfits |= pair[0] ^ spill;
        all_differences |= pair[0] ^ pair[1];
        places |= place_bit(distance);
    }
    *differences = all_differences;
    return (misfits & SPILL_MASK) == 0 && (reach & ~(uint32_t)WORD_PLACES) == 0 ? places : 0;
}

/* Lists the interior pointers. Each needs a separate place in the word, so there are at most
 * WORD_BITS of them. False if one is outside the word or shares its place. */
static inline bool list_interiors(const struct near *near, uint32_t spill, uint64_t bases,
                                  uint32_t *interiors, uint32_t *count)
{
    uint64_t taken = bases;
    *count = 0;
    for (uint32_t i = 0; i < near->word_count; i += 2) {
        uint32_t word = near->words[i + 1];
        if (word == near->words[i])
            continue;
        uint32_t distance = near_distance(near, word);
        bool is_near =
            ((word ^ spill) & SPILL_MASK) == 0 && (distance & ~(uint32_t)WORD_PLACES) == 0;
        if (!is_near || (taken & place_bit(distance)) != 0)
            return false;
        taken |= place_bit(distance);
        interiors[(*count)++] = i;
    }
    return true;
}

static __attribute__((noinline)) bool relocate_word(const struct near *near, uint32_t spill,
                                                    uint64_t bases, void **places,
                                                    cairn_root_mover *move, void *user)
{
    uint32_t interiors[WORD_BITS];
    uint32_t count;
    if (!list_interiors(near, spill, bases, interiors, &count))
        return false;
    each_near_interior(near, interiors, count, detach);
    move_spilled(places, bases, move, user);
    each_near_interior(near, interiors, count, attach);
    return true;
}

/* ---- Places in ascending or descending order ---- */

/* The order of the places, as a bitwise OR over all pairs. The highest bit of `descents` is set
 * unless each place is above the one before; that of `ascents` unless each is below. */
struct order {
    four_words misfits; /* 0 if all are places of the expected form and no pair has two places */
    four_words reach;
    four_words descents;
    four_words ascents;
};

/* Adds the two pairs at `words`, compared with the pair before them, which must already have been
 * checked. */
static inline struct order add_to_order(struct order order, const struct near *near,
                                        const uint32_t *words, uint32_t spill)
{
    four_words here;
    four_words before;
    memcpy(&here, words, sizeof here);
    memcpy(&before, words - 2, sizeof before);
    four_words other = __builtin_shufflevector(here, here, 1, 0, 3, 2);
    four_words offset = (four_words)((four_integers)here >> COMPACT_OFFSET_SHIFT);
    four_words step = offset - (four_words)((four_integers)before >> COMPACT_OFFSET_SHIFT);
    order.misfits |= ((here ^ spill) & SPILL_MASK) | (here ^ other);
    order.reach |= offset + near->distance;
    order.descents |= step - 1;
    order.ascents |= ~step;
    return order;
}

/* Whether there are no interior pointers, and the places are strictly ascending or strictly
 * descending, so that no place occurs twice. The last two pairs are always checked, even if they
 * have been checked before. */
static __attribute__((noinline)) bool is_in_order(const struct near *near, uint32_t spill)
{
    enum { PAIRS_MIN = 3 };
    const uint32_t *words = near->words;
    if (near->word_count < 2 * PAIRS_MIN || words[0] != words[1] ||
        ((words[0] ^ spill) & SPILL_MASK) != 0)
        return false;
    struct order order = {.reach = (four_words){0} + near_distance(near, words[0])};
    for (uint32_t i = 2; i + 4 <= near->word_count; i += 4)
        order = add_to_order(order, near, words + i, spill);
    order = add_to_order(order, near, words + near->word_count - 4, spill);
    bool is_sorted = (four_or(order.descents) & four_or(order.ascents)) >> 31 == 0;
    return is_sorted && four_or(order.misfits) == 0 &&
           (four_or(order.reach) & ~(uint32_t)NEAR_PLACES) == 0;
}

static __attribute__((noinline)) void move_in_order(const struct near *near, cairn_root_mover *move,
                                                    void *user)
{
    const uint32_t *end = near->words + near->word_count;
    for (const uint32_t *pair = near->words; pair != end; pair += 2)
        move_base(near_place(near, *pair), move, user);
}

/* ---- Any near frame ---- */

/* Relocates any frame near the stack pointer. False if the fast path cannot be used; then nothing
 * has been changed. */
static __attribute__((noinline)) bool relocate_far(const struct near *near, uint32_t spill,
                                                   void **places, cairn_root_mover *move,
                                                   void *user)
{
    struct near checked = *near;
    if (is_in_order(near, spill)) {
        move_in_order(near, move, user);
        return true;
    }
    return check_words(&checked, spill) && relocate_with_sets(&checked, places, move, user);
}

static inline bool relocate_near(struct pairs *pairs, cairn_root_mover *move, void *user)
{
    struct near near;
    uint32_t differences = 0;
    if (!begin_near(pairs, &near))
        return false;
    void **places = (void **)(uintptr_t)pairs->frame->sp;
    bool may_be_word = near.word_count <= 2 * WORD_BITS;
    uint64_t bases = may_be_word ? collect_word(&near, pairs->spill, &differences) : 0;
    if (bases != 0 && differences == 0) {
        move_spilled(places, bases, move, user);
        return true;
    }
    return (bases != 0 && relocate_word(&near, pairs->spill, bases, places, move, user)) ||
           relocate_far(&near, pairs->spill, places, move, user);
}

/* ---- Relocating any frame ---- */

static __attribute__((noinline)) enum cairn_status relocate_any(const struct pairs *pairs,
                                                                cairn_root_mover *move, void *user,
                                                                struct cairn_error *error)
{
    struct survey survey = {.pairs = *pairs};
    enum cairn_status status = make_survey(&survey, error);
    if (status != CAIRN_OK)
        return status;
    each_interior(&survey, detach);
    move_bases(&survey, move, user);
    each_interior(&survey, attach);
    return CAIRN_OK;
}

enum cairn_status cairn_frame_relocate(struct cairn_frame *frame, struct cairn_record record,
                                       cairn_root_mover *move, void *user,
                                       struct cairn_error *error)
{
    struct pairs pairs;
    if (move == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_frame_relocate needs a mover");
    if (!read_pairs(frame, record, &pairs))
        return say_no_pairs(frame, record, error);
    if (relocate_near(&pairs, move, user))
        return CAIRN_OK;
    return relocate_any(&pairs, move, user, error);
}

/* ---- Enumerating ---- */

static inline void enumerate_near(const struct near *near, struct cairn_root *roots,
                                  size_t capacity)
{
    const uint32_t *word = near->words;
    for (size_t i = 0; i < capacity && i < near->word_count / 2; i++, word += 2)
        roots[i] = (struct cairn_root){near_place(near, word[0]), near_place(near, word[1])};
}

static __attribute__((noinline)) enum cairn_status enumerate_any(struct pairs *pairs,
                                                                 struct cairn_root *roots,
                                                                 size_t capacity, size_t *count,
                                                                 struct cairn_error *error)
{
    size_t found = 0;
    for (uint32_t i = pairs->first; i < pairs->end; i += 2) {
        struct pair pair;
        enum cairn_status status = find_pair(pairs, i, &pair, error);
        if (status != CAIRN_OK)
            return status;
        if (pair.base == NO_KEY || pair.derived == NO_KEY)
            continue;
        if (found < capacity)
            roots[found] = (struct cairn_root){place_of(pairs->frame, pair.base),
                                               place_of(pairs->frame, pair.derived)};
        found++;
    }
    *count = found;
    return CAIRN_OK;
}

enum cairn_status cairn_frame_roots(const struct cairn_frame *frame, struct cairn_record record,
                                    struct cairn_root *roots, size_t capacity, size_t *count,
                                    struct cairn_error *error)
{
    struct pairs pairs;
    struct near near;
    if (!read_pairs(frame, record, &pairs))
        return say_no_pairs(frame, record, error);
    if (!begin_near(&pairs, &near) || !check_words(&near, pairs.spill))
        return enumerate_any(&pairs, roots, capacity, count, error);
    enumerate_near(&near, roots, capacity);
    *count = near.word_count / 2;
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
