/* SPDX-License-Identifier: MIT */
#include "code/units.h"

#include <assert.h>

/* ---- Words ---- */

/* Returns the bits of word `word` that belong to units [first, end). */
static uint64_t mask_in_word(uint32_t word, uint32_t first, uint32_t end)
{
    uint32_t start = word * UNITS_IN_WORD;
    uint32_t low = first > start ? first - start : 0;
    uint32_t high = end - start < UNITS_IN_WORD ? end - start : UNITS_IN_WORD;
    uint32_t count = high - low;
    return count == UNITS_IN_WORD ? UINT64_MAX : ((UINT64_C(1) << count) - 1) << low;
}

static uint32_t longest_run(uint64_t word)
{
    uint32_t length = 0;
    for (; word != 0; word &= word << 1)
        length++;
    return length;
}

/* Returns a word in which the first bit of each run of `count` set bits is set. */
static uint64_t run_starts(uint64_t word, uint32_t count)
{
    uint64_t starts = word;
    for (uint32_t i = 1; i < count; i++)
        starts &= word >> i;
    return starts;
}

/* ---- Leaves ---- */

static uint32_t max(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Describes two neighbouring parts of so many units. */
static struct units_node join(const struct units_node *left, uint32_t left_size,
                              const struct units_node *right, uint32_t right_size)
{
    return (struct units_node){
        .first = left->first == left_size ? left_size + right->first : left->first,
        .last = right->last == right_size ? right_size + left->last : right->last,
        .longest = max(max(left->longest, right->longest), left->last + right->first),
    };
}

static struct units_node describe_word(uint64_t word)
{
    if (word == UINT64_MAX)
        return (struct units_node){UNITS_IN_WORD, UNITS_IN_WORD, UNITS_IN_WORD};
    return (struct units_node){
        .first = (uint32_t)__builtin_ctzll(~word),
        .last = (uint32_t)__builtin_clzll(~word),
        .longest = longest_run(word),
    };
}

static struct units_node describe_leaf(const uint64_t *words)
{
    uint64_t in_all = UINT64_MAX;
    for (uint32_t i = 0; i < UNITS_WORDS_IN_LEAF; i++)
        in_all &= words[i];
    if (in_all == UINT64_MAX)
        return (struct units_node){UNITS_IN_LEAF, UNITS_IN_LEAF, UNITS_IN_LEAF};
    struct units_node leaf = describe_word(words[0]);
    for (uint32_t i = 1; i < UNITS_WORDS_IN_LEAF; i++) {
        struct units_node word = describe_word(words[i]);
        leaf = join(&leaf, i * UNITS_IN_WORD, &word, UNITS_IN_WORD);
    }
    return leaf;
}

/* Returns the first unit of the lowest run of `count` free units at or after `start`, the start of
 * a leaf that has one. */
static uint32_t find_in_leaf(const struct units *units, uint32_t start, uint32_t count)
{
    uint32_t before = 0; /* free units directly before `start` */
    for (;; start += UNITS_IN_WORD) {
        uint64_t word = units->words[start / UNITS_IN_WORD];
        const struct units_node node = describe_word(word);
        if (before + node.first >= count)
            return start - before;
        if (node.longest >= count)
            return start + (uint32_t)__builtin_ctzll(run_starts(word, count));
        before = node.first == UNITS_IN_WORD ? before + UNITS_IN_WORD : node.last;
    }
}

/* Finds the highest run of `count` free units among those from `start`, the first of a word, to
 * `end` and the `*after` free ones that follow. If no run fits, sets `*after` to the number of
 * free units at `start`. */
static bool find_last_in_words(const struct units *units, uint32_t start, uint32_t end,
                               uint32_t count, uint32_t *after, uint32_t *first)
{
    while (end > start) {
        uint32_t size = (end - 1) % UNITS_IN_WORD + 1;
        uint64_t word =
            units->words[(end - 1) / UNITS_IN_WORD] & (UINT64_MAX >> (UNITS_IN_WORD - size));
        bool is_free = word == UINT64_MAX >> (UNITS_IN_WORD - size);
        uint32_t last =
            is_free ? size : (uint32_t)__builtin_clzll(~(word << (UNITS_IN_WORD - size)));
        if (last + *after >= count) {
            *first = end + *after - count;
            return true;
        }
        if (longest_run(word) >= count) {
            uint32_t highest =
                UNITS_IN_WORD - 1 - (uint32_t)__builtin_clzll(run_starts(word, count));
            *first = end - size + highest;
            return true;
        }
        *after = is_free ? size + *after : (uint32_t)__builtin_ctzll(~word);
        end -= size;
    }
    return false;
}

/* ---- The tree ---- */

/* Describes the leaves of words `first` to `last`, and all nodes above them, after the words have
 * changed. */
static void update(struct units *units, uint32_t first, uint32_t last)
{
    uint32_t size = UNITS_IN_LEAF;
    first /= UNITS_WORDS_IN_LEAF;
    last /= UNITS_WORDS_IN_LEAF;
    for (uint32_t leaf = first; leaf <= last; leaf++)
        units->nodes[units->leaf_count + leaf] =
            describe_leaf(&units->words[(size_t)leaf * UNITS_WORDS_IN_LEAF]);
    first += units->leaf_count;
    last += units->leaf_count;
    for (; first > 1; size *= 2) {
        first /= 2;
        last /= 2;
        for (uint32_t node = first; node <= last; node++) {
            const struct units_node *children = &units->nodes[(size_t)2 * node];
            units->nodes[node] = join(&children[0], size, &children[1], size);
        }
    }
}

/* Returns the first unit of the highest run of `count` free units in the part that a node
 * describes, which has one and begins with unit `start`. */
static uint32_t find_last_in(const struct units *units, uint32_t node, uint32_t start,
                             uint32_t size, uint32_t count)
{
    while (node < units->leaf_count) {
        const struct units_node *left = &units->nodes[(size_t)2 * node];
        const struct units_node *right = left + 1;
        bool goes_right = right->longest >= count;
        size /= 2;
        if (!goes_right && left->last + right->first >= count)
            return start + size + right->first - count;
        node = 2 * node + goes_right;
        start += goes_right ? size : 0;
    }
    uint32_t first = start, after = 0;
    find_last_in_words(units, start, start + size, count, &after, &first);
    return first;
}

/* Examines the part before unit `end`, from its end to its start: first the part of a leaf, then
 * the largest parts that nodes describe. `after` is the number of free units at the start of what
 * was examined. */
static bool find_last(const struct units *units, uint32_t count, uint32_t end, uint32_t *first)
{
    uint32_t node = units->leaf_count + end / UNITS_IN_LEAF;
    uint32_t size = end % UNITS_IN_LEAF;
    uint32_t after = 0;
    if (find_last_in_words(units, end - size, end, count, &after, first))
        return true;
    end -= size;
    /* The nodes of this size before `node` describe the rest. Only the last of them may be a part
     * that no larger node describes: a left child, or the root, which is node 1. */
    for (size = UNITS_IN_LEAF; end > 0; node /= 2, size *= 2) {
        if (node % 2 == 0 && node > 2)
            continue;
        const struct units_node *part = &units->nodes[node - 1];
        if (part->last + after >= count) {
            *first = end + after - count;
            return true;
        }
        end -= size;
        if (part->longest >= count) {
            *first = find_last_in(units, node - 1, end, size, count);
            return true;
        }
        after = part->first == size ? size + after : part->first;
    }
    return false;
}

/* Finds the lowest run of `count` free units. */
static bool find(const struct units *units, uint32_t count, uint32_t *first)
{
    const struct units_node *nodes = units->nodes;
    uint32_t node = 1;
    uint32_t start = 0;
    uint32_t half = units->leaf_count * (UNITS_IN_LEAF / 2);
    if (nodes[node].longest < count)
        return false;
    for (; node < units->leaf_count; half /= 2) {
        const struct units_node *left = &nodes[(size_t)2 * node];
        const struct units_node *right = left + 1;
        bool goes_left = left->longest >= count;
        if (!goes_left && left->last + right->first >= count) {
            *first = start + half - left->last;
            return true;
        }
        node = 2 * node + !goes_left;
        start += goes_left ? 0 : half;
    }
    *first = find_in_leaf(units, start, count);
    return true;
}

/* ---- Tables ---- */

static uint32_t leaves_for(uint32_t count)
{
    uint32_t leaves = 1;
    while (leaves < (count - 1) / UNITS_IN_LEAF + 1)
        leaves *= 2;
    return leaves;
}

size_t units_table_bytes(uint32_t count)
{
    return leaves_for(count) *
           (UNITS_WORDS_IN_LEAF * sizeof(uint64_t) + 2 * sizeof(struct units_node));
}

void units_init(struct units *units, uint32_t count, void *tables)
{
    assert(count > 0 && count <= UINT32_C(1) << 31);
    uint32_t leaves = leaves_for(count);
    *units = (struct units){.count = count, .leaf_count = leaves, .words = tables};
    units->nodes =
        (struct units_node *)(void *)(units->words + (size_t)leaves * UNITS_WORDS_IN_LEAF);
}

/* ---- Taking and giving ---- */

bool units_are_free(const struct units *units, uint32_t first, uint32_t count)
{
    if (count == 0 || first >= units->count || count > units->count - first)
        return false;
    uint32_t end = first + count;
    for (uint32_t word = first / UNITS_IN_WORD; word <= (end - 1) / UNITS_IN_WORD; word++) {
        uint64_t mask = mask_in_word(word, first, end);
        if ((units->words[word] & mask) != mask)
            return false;
    }
    return true;
}

void units_give(struct units *units, uint32_t first, uint32_t count)
{
    assert(count > 0);
    assert(first < units->count && count <= units->count - first);
    uint32_t end = first + count;
    uint32_t first_word = first / UNITS_IN_WORD;
    uint32_t last_word = (end - 1) / UNITS_IN_WORD;
    for (uint32_t word = first_word; word <= last_word; word++) {
        uint64_t mask = mask_in_word(word, first, end);
        assert((units->words[word] & mask) == 0);
        units->words[word] |= mask;
    }
    update(units, first_word, last_word);
}

bool units_take_at(struct units *units, uint32_t first, uint32_t count)
{
    if (!units_are_free(units, first, count))
        return false;
    uint32_t end = first + count;
    uint32_t first_word = first / UNITS_IN_WORD;
    uint32_t last_word = (end - 1) / UNITS_IN_WORD;
    for (uint32_t word = first_word; word <= last_word; word++)
        units->words[word] &= ~mask_in_word(word, first, end);
    update(units, first_word, last_word);
    return true;
}

bool units_take(struct units *units, uint32_t count, uint32_t alignment, uint32_t *first)
{
    assert(count > 0);
    assert(alignment > 0 && (alignment & (alignment - 1)) == 0);
    uint32_t run;
    if (count > units->count || alignment - 1 > units->count - count ||
        !find(units, count + alignment - 1, &run))
        return false;
    *first = (run + alignment - 1) & ~(alignment - 1);
    return units_take_at(units, *first, count);
}

bool units_take_last(struct units *units, uint32_t count, uint32_t end, uint32_t *first)
{
    assert(count > 0);
    assert(end <= units->count);
    return count <= end && find_last(units, count, end, first) &&
           units_take_at(units, *first, count);
}

uint32_t units_longest(const struct units *units) { return units->nodes[1].longest; }
