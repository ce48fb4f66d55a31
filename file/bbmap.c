/*
 * Reads basic-block address maps. One pass checks everything that later functions rely on, so that
 * they read blocks without checks.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/bbmap.h>

#include "base/error.h"
#include "format/uleb128.h"

enum {
    ADDRESS_BYTES = 8,
    HASH_BYTES = 8,
    VERSION_MAX = 5,
    FLAGS = CAIRN_BBMAP_HAS_RETURN | CAIRN_BBMAP_HAS_TAIL_CALL | CAIRN_BBMAP_IS_EH_PAD |
            CAIRN_BBMAP_CAN_FALL_THROUGH | CAIRN_BBMAP_HAS_INDIRECT_BRANCH
};

static inline bool has(uint16_t features, unsigned feature) { return (features & feature) != 0; }

static bool has_ids(uint8_t version) { return version >= 2; }
static bool has_differences(uint8_t version) { return version >= 1; }

/* The features of each version: its own and those of earlier versions. */
enum {
    FEATURES_2 = CAIRN_BBMAP_ENTRY_COUNT | CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES |
                 CAIRN_BBMAP_RANGES | CAIRN_BBMAP_OMITTED_BLOCKS,
    FEATURES_3 = FEATURES_2 | CAIRN_BBMAP_CALLSITES,
    FEATURES_4 = FEATURES_3 | CAIRN_BBMAP_HASHES,
    FEATURES_5 = FEATURES_4 | CAIRN_BBMAP_POST_LINK
};
static const uint16_t features_of[VERSION_MAX + 1] = {
    [2] = FEATURES_2, [3] = FEATURES_3, [4] = FEATURES_4, [5] = FEATURES_5};

/* ---- Checking ---- */

/* The position in a section, and what is being read there, for error messages. The functions that
 * check return false after an error, and have set `status`. */
struct reader {
    const struct cairn_section *section;
    const uint8_t *at;
    const uint8_t *end;
    uint64_t function; /* address of the function; 0 until it is known */
    uint64_t block;
    enum cairn_status status;
    struct cairn_error *error;
};

static size_t offset_of(const struct reader *reader, const uint8_t *at)
{
    return (size_t)(at - reader->section->bytes);
}

static bool fail(struct reader *reader, enum cairn_status status, const uint8_t *at,
                 const char *what, const char *wrong)
{
    reader->status = error_set(reader->error, status, offset_of(reader, at),
                               "the map of the function at 0x%llx, block %llu: %s %s",
                               (unsigned long long)reader->function,
                               (unsigned long long)reader->block, what, wrong);
    return false;
}

static bool take(struct reader *reader, size_t size, const char *what, const uint8_t **bytes)
{
    if ((size_t)(reader->end - reader->at) < size)
        return fail(reader, CAIRN_ERROR_TRUNCATED, reader->at, what,
                    "must not go beyond the section's end");
    *bytes = reader->at;
    reader->at += size;
    return true;
}

static __attribute__((noinline)) bool fail_number(struct reader *reader, const char *what,
                                                  uint64_t value)
{
    if (value == 0)
        return fail(reader, CAIRN_ERROR_TRUNCATED, reader->at, what,
                    "is a number that goes beyond the section's end");
    return fail(reader, CAIRN_ERROR_CORRUPT, reader->at, what, "is a number of more than 64 bits");
}

static inline bool read_number(struct reader *reader, const char *what, uint64_t *value)
{
    const uint8_t *next = uleb128_read(reader->at, reader->end, value);
    if (__builtin_expect(next == NULL, 0))
        return fail_number(reader, what, *value);
    reader->at = next;
    return true;
}

static inline bool read_u32(struct reader *reader, const char *what, uint32_t *value)
{
    const uint8_t *begin = reader->at;
    uint64_t number;
    *value = 0; /* gcc -O1 does not see that `fail` returns false */
    if (!read_number(reader, what, &number))
        return false;
    if (__builtin_expect(number > UINT32_MAX, 0))
        return fail(reader, CAIRN_ERROR_CORRUPT, begin, what, "is a number of more than 32 bits");
    *value = (uint32_t)number;
    return true;
}

static bool check_version(struct reader *reader, struct cairn_bbmap_function *function)
{
    const uint8_t *bytes;
    const uint8_t *second;
    if (!take(reader, 1, "the version", &bytes))
        return false;
    function->version = *bytes;
    if (function->version == 0 || function->version > VERSION_MAX)
        reader->status = error_set(reader->error, CAIRN_ERROR_VERSION, offset_of(reader, bytes),
                                   "basic-block address map version %u: Cairn reads versions 1 to "
                                   "%d, and sections of the type without versions",
                                   function->version, VERSION_MAX);
    bool is_wide = function->version >= 5;
    if (reader->status != CAIRN_OK || !take(reader, 1, "the features", &bytes) ||
        (is_wide && !take(reader, 1, "the features", &second)))
        return false;
    function->features = is_wide ? cairn_load_u16(bytes, reader->section->byte_order) : *bytes;
    unsigned excess = function->features & ~(unsigned)features_of[function->version];
    if ((function->features & ~FEATURES_5) != 0)
        reader->status =
            error_set(reader->error, CAIRN_ERROR_CORRUPT, offset_of(reader, bytes),
                      "the features 0x%02x of a function's map have bits outside of 0x%02x, which "
                      "are all that Cairn knows",
                      function->features, FEATURES_5);
    else if (excess != 0)
        reader->status =
            error_set(reader->error, CAIRN_ERROR_CORRUPT, offset_of(reader, bytes),
                      "a function's map of version %u has the features 0x%02x, of which 0x%02x "
                      "came with a later version",
                      function->version, function->features, excess);
    return reader->status == CAIRN_OK;
}

/* ---- Blocks ---- */

static bool check_callsites(struct reader *reader, uint32_t *calls_end)
{
    uint32_t count;
    if (!read_u32(reader, "the number of calls", &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *begin = reader->at;
        uint32_t distance;
        if (!read_u32(reader, "the distance to a call's end", &distance))
            return false;
        if (__builtin_add_overflow(*calls_end, distance, calls_end))
            return fail(reader, CAIRN_ERROR_CORRUPT, begin, "a call's end",
                        "is more than 32 bits away from the block's begin");
    }
    return true;
}

/* Checks one block. Where the version encodes offsets as differences, `*end` is the end of the
 * previous block, and is set to the end of this one. In other versions it is 0 before and after the
 * call. The size is the distance from the end of the block's last call. */
static bool check_block(struct reader *reader, const struct cairn_bbmap_function *function,
                        uint32_t *end)
{
    const uint8_t *begin = reader->at;
    uint32_t id, offset, size, flags = 0;
    uint32_t calls_end = 0;
    if (has_ids(function->version) && !read_u32(reader, "the block's ID", &id))
        return false;
    if (!read_u32(reader, "the block's offset", &offset))
        return false;
    if (has(function->features, CAIRN_BBMAP_CALLSITES) && !check_callsites(reader, &calls_end))
        return false;
    if (!read_u32(reader, "the block's size", &size))
        return false;
    uint64_t block_end = (uint64_t)*end + offset + calls_end + size;
    if (block_end > UINT32_MAX)
        return fail(reader, CAIRN_ERROR_CORRUPT, begin, "the block's end",
                    "is more than 32 bits away from its range's begin");
    *end = has_differences(function->version) ? (uint32_t)block_end : 0;
    begin = reader->at;
    if (!read_u32(reader, "the block's flags", &flags))
        return false;
    if ((flags & ~(uint32_t)FLAGS) != 0)
        return fail(reader, CAIRN_ERROR_CORRUPT, begin, "the block's flags",
                    "have bits beyond the five that Cairn knows");
    const uint8_t *hash;
    return !has(function->features, CAIRN_BBMAP_HASHES) ||
           take(reader, HASH_BYTES, "the block's hash", &hash);
}

static bool check_ranges(struct reader *reader, struct cairn_bbmap_function *function)
{
    const uint8_t *begin = reader->at;
    function->range_count = 1;
    if (has(function->features, CAIRN_BBMAP_RANGES) &&
        !read_u32(reader, "the number of ranges", &function->range_count))
        return false;
    if (function->range_count == 0)
        return fail(reader, CAIRN_ERROR_CORRUPT, begin, "the number of ranges", "is 0");
    function->ranges_offset = (size_t)(reader->at - function->bytes);
    for (uint32_t range = 0; range < function->range_count; range++) {
        const uint8_t *address;
        uint32_t count;
        uint32_t end = 0;
        if (!take(reader, ADDRESS_BYTES, "an address", &address))
            return false;
        uint64_t base = cairn_load_u64(address, reader->section->byte_order);
        if (range == 0)
            function->address = base;
        if (function->block_count == 0)
            reader->function = base;
        if (!read_u32(reader, "the number of blocks", &count))
            return false;
        if (has(function->features, CAIRN_BBMAP_OMITTED_BLOCKS)) {
            function->omitted_count += count;
            continue;
        }
        for (uint64_t last = function->block_count + count; function->block_count < last;
             function->block_count++) {
            reader->block = function->block_count;
            if (!check_block(reader, function, &end))
                return false;
        }
    }
    return true;
}

/* ---- Profiles ---- */

static bool check_successors(struct reader *reader, uint16_t features)
{
    uint64_t count;
    uint64_t frequency;
    uint32_t ignored;
    if (!read_number(reader, "the number of successors", &count))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!read_u32(reader, "a successor's ID", &ignored) ||
            !read_u32(reader, "a successor's probability", &ignored) ||
            (has(features, CAIRN_BBMAP_POST_LINK) &&
             !read_number(reader, "a successor's frequency after linking", &frequency)))
            return false;
    return true;
}

/* Post-link frequencies occur only together with the compiler's frequencies or probabilities. */
static bool check_profiles(struct reader *reader, struct cairn_bbmap_function *function)
{
    uint16_t features = function->features;
    uint64_t ignored;
    if (has(features, CAIRN_BBMAP_ENTRY_COUNT) &&
        !read_number(reader, "the entry count", &function->entry_count))
        return false;
    if (!has(features, CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES))
        return true;
    function->profiles_offset = (size_t)(reader->at - function->bytes);
    for (reader->block = 0; reader->block < function->block_count; reader->block++)
        if ((has(features, CAIRN_BBMAP_FREQUENCIES) &&
             !read_number(reader, "the block's frequency", &ignored)) ||
            (has(features, CAIRN_BBMAP_POST_LINK) &&
             !read_number(reader, "the block's frequency after linking", &ignored)) ||
            (has(features, CAIRN_BBMAP_PROBABILITIES) && !check_successors(reader, features)))
            return false;
    return true;
}

/* ---- Functions ---- */

enum cairn_status cairn_bbmap_read(const struct cairn_section *section,
                                   enum cairn_bbmap_encoding encoding, size_t *offset,
                                   struct cairn_bbmap_function *function, struct cairn_error *error)
{
    if (*offset >= section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, *offset,
                         "there is no byte %zu in a section of %zu bytes", *offset, section->size);
    const uint8_t *begin = section->bytes + *offset;
    struct reader reader = {
        .section = section, .at = begin, .end = section->bytes + section->size, .error = error};
    struct cairn_bbmap_function read = {
        .offset = *offset, .bytes = begin, .byte_order = section->byte_order};
    if ((encoding != CAIRN_BBMAP_V0 && !check_version(&reader, &read)) ||
        !check_ranges(&reader, &read) || !check_profiles(&reader, &read))
        return reader.status;
    read.size = (size_t)(reader.at - begin);
    *offset += read.size;
    *function = read;
    return CAIRN_OK;
}

/* ---- Reading checked maps ---- */

/* The position in a function's bytes, which have been checked. */
struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

static struct cursor cursor_at(const struct cairn_bbmap_function *function, size_t offset)
{
    return (struct cursor){function->bytes + offset, function->bytes + function->size};
}

static inline uint64_t next_number(struct cursor *cursor)
{
    uint64_t value = 0;
    cursor->at = uleb128_read(cursor->at, cursor->end, &value);
    return value;
}

static size_t offset_in(const struct cairn_bbmap_function *function, const struct cursor *cursor)
{
    return (size_t)(cursor->at - function->bytes);
}

/* Reads the list of calls, and sets the block's size to the end of the last one. Few maps have such
 * lists, and taking the cursor's address would keep it in memory for all others. */
static __attribute__((noinline)) struct cursor read_callsites(
    const struct cairn_bbmap_function *function, struct cursor cursor,
    struct cairn_bbmap_block *block)
{
    block->callsite_count = (uint32_t)next_number(&cursor);
    block->callsites = offset_in(function, &cursor);
    for (uint32_t i = 0; i < block->callsite_count; i++)
        block->size += (uint32_t)next_number(&cursor);
    return cursor;
}

/* Always inlined, because a call for each block takes half as long again. */
static inline __attribute__((always_inline)) void read_block(
    const struct cairn_bbmap_function *function, struct cursor cursor, uint32_t before,
    struct cairn_bbmap_block *block)
{
    block->id =
        has_ids(function->version) ? (uint32_t)next_number(&cursor) : (uint32_t)block->index;
    block->offset = before + (uint32_t)next_number(&cursor);
    block->size = 0;
    if (has(function->features, CAIRN_BBMAP_CALLSITES))
        cursor = read_callsites(function, cursor, block);
    block->size += (uint32_t)next_number(&cursor);
    block->flags = (uint8_t)next_number(&cursor);
    if (has(function->features, CAIRN_BBMAP_HASHES)) {
        block->hash = cairn_load_u64(cursor.at, function->byte_order);
        cursor.at += HASH_BYTES;
    }
    block->end = offset_in(function, &cursor);
}

/* Reads the block's profile at `next_profile`, and moves `next_profile` to the next block's. */
static void read_profile(const struct cairn_bbmap_function *function,
                         struct cairn_bbmap_block *block)
{
    if (function->profiles_offset == 0)
        return;
    bool has_post_link = has(function->features, CAIRN_BBMAP_POST_LINK);
    struct cursor cursor = cursor_at(function, block->next_profile);
    if (has(function->features, CAIRN_BBMAP_FREQUENCIES))
        block->frequency = next_number(&cursor);
    if (has_post_link)
        block->post_link_frequency = next_number(&cursor);
    if (has(function->features, CAIRN_BBMAP_PROBABILITIES)) {
        block->successor_count = next_number(&cursor);
        block->successors = offset_in(function, &cursor);
        for (uint64_t i = (has_post_link ? 3 : 2) * block->successor_count; i > 0; i--)
            (void)next_number(&cursor);
    }
    block->next_profile = offset_in(function, &cursor);
}

/* Reads the address and the number of blocks of the range at the cursor. */
static void read_range(const struct cairn_bbmap_function *function, struct cursor *cursor,
                       struct cairn_bbmap_range *range)
{
    range->offset = function->offset + offset_in(function, cursor);
    range->base = cairn_load_u64(cursor->at, function->byte_order);
    cursor->at += ADDRESS_BYTES;
    uint32_t count = (uint32_t)next_number(cursor);
    bool is_omitted = has(function->features, CAIRN_BBMAP_OMITTED_BLOCKS);
    range->block_count = is_omitted ? 0 : count;
    range->omitted_count = is_omitted ? count : 0;
    range->blocks = offset_in(function, cursor);
}

/* Reads the first block of the range at `offset`, or of the next range that is not empty. There
 * must be such a range. */
static void enter_range(const struct cairn_bbmap_function *function, size_t offset, uint32_t index,
                        struct cairn_bbmap_block *block)
{
    struct cursor cursor = cursor_at(function, offset);
    struct cairn_bbmap_range range;
    for (read_range(function, &cursor, &range); range.block_count == 0; index++)
        read_range(function, &cursor, &range);
    block->range = index;
    block->base = range.base;
    block->left = range.block_count - 1;
    read_block(function, cursor, 0, block);
}

bool cairn_bbmap_next(const struct cairn_bbmap_function *function, struct cairn_bbmap_block *block)
{
    uint64_t next = block->end == 0 ? 0 : block->index + 1;
    if (next >= function->block_count)
        return false;
    block->index = next;
    if (next == 0) {
        block->next_profile = function->profiles_offset;
        enter_range(function, function->ranges_offset, 0, block);
    } else if (block->left == 0) {
        enter_range(function, block->end, block->range + 1, block);
    } else {
        block->left--;
        uint32_t before = has_differences(function->version) ? block->offset + block->size : 0;
        read_block(function, cursor_at(function, block->end), before, block);
    }
    read_profile(function, block);
    return true;
}

bool cairn_bbmap_next_range(const struct cairn_bbmap_function *function,
                            struct cairn_bbmap_range *range)
{
    bool is_first = range->blocks == 0;
    if (!is_first && range->index + 1 == function->range_count)
        return false;
    struct cursor cursor = cursor_at(function, is_first ? function->ranges_offset : range->blocks);
    struct cairn_bbmap_block block = {0};
    for (uint32_t left = range->block_count; left > 0; left--) {
        read_block(function, cursor, 0, &block);
        cursor = cursor_at(function, block.end);
    }
    range->index += !is_first;
    read_range(function, &cursor, range);
    return true;
}

bool cairn_bbmap_next_callsite(const struct cairn_bbmap_function *function,
                               const struct cairn_bbmap_block *block,
                               struct cairn_bbmap_callsite *callsite)
{
    bool is_first = callsite->next == 0;
    uint32_t left = is_first ? block->callsite_count : callsite->left;
    if (left == 0)
        return false;
    struct cursor cursor = cursor_at(function, is_first ? block->callsites : callsite->next);
    callsite->left = left - 1;
    callsite->end_offset += (uint32_t)next_number(&cursor);
    callsite->next = offset_in(function, &cursor);
    return true;
}

bool cairn_bbmap_next_successor(const struct cairn_bbmap_function *function,
                                const struct cairn_bbmap_block *block,
                                struct cairn_bbmap_successor *successor)
{
    bool is_first = successor->next == 0;
    uint64_t left = is_first ? block->successor_count : successor->left;
    if (left == 0)
        return false;
    struct cursor cursor = cursor_at(function, is_first ? block->successors : successor->next);
    successor->left = left - 1;
    successor->id = (uint32_t)next_number(&cursor);
    successor->probability = (uint32_t)next_number(&cursor);
    successor->post_link_frequency =
        has(function->features, CAIRN_BBMAP_POST_LINK) ? next_number(&cursor) : 0;
    successor->next = offset_in(function, &cursor);
    return true;
}
