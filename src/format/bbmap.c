/*
 * Reading basic-block address maps: one pass that checks everything a later reader relies on, so
 * that blocks are read without a check.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/bbmap.h>

#include "base/error.h"
#include "format/uleb128.h"

#include <stdbool.h>

enum {
    ADDRESS_BYTES = 8,
    VERSION_MAX = 2,
    FEATURES = CAIRN_BBMAP_ENTRY_COUNT | CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES |
               CAIRN_BBMAP_RANGES,
    FLAGS = CAIRN_BBMAP_HAS_RETURN | CAIRN_BBMAP_HAS_TAIL_CALL | CAIRN_BBMAP_IS_EH_PAD |
            CAIRN_BBMAP_CAN_FALL_THROUGH | CAIRN_BBMAP_HAS_INDIRECT_BRANCH
};

static bool has(uint8_t features, enum cairn_bbmap_feature feature)
{
    return (features & feature) != 0;
}

/* What a version has. */
static bool has_ids(uint8_t version) { return version >= 2; }
static bool has_differences(uint8_t version) { return version >= 1; }

/* ---- Checking ---- */

/* Where a reader is, and in what. */
struct reader {
    const struct cairn_section *section;
    const uint8_t *at;
    const uint8_t *end;
    uint64_t function; /* its address, when it is known */
    uint64_t block;
    struct cairn_error *error;
};

static size_t offset_of(const struct reader *reader, const uint8_t *at)
{
    return (size_t)(at - reader->section->bytes);
}

static enum cairn_status say(const struct reader *reader, enum cairn_status status,
                             const uint8_t *at, const char *what, const char *wrong)
{
    return error_set(reader->error, status, offset_of(reader, at),
                     "the map of the function at 0x%llx, block %llu: %s %s",
                     (unsigned long long)reader->function, (unsigned long long)reader->block, what,
                     wrong);
}

static enum cairn_status read_u8(struct reader *reader, const char *what, uint8_t *value)
{
    if (reader->at == reader->end)
        return say(reader, CAIRN_ERROR_TRUNCATED, reader->at, what,
                   "lies behind the section's end");
    *value = *reader->at++;
    return CAIRN_OK;
}

static enum cairn_status read_address(struct reader *reader, uint64_t *address)
{
    if (reader->end - reader->at < ADDRESS_BYTES)
        return say(reader, CAIRN_ERROR_TRUNCATED, reader->at, "an address",
                   "goes beyond the section's end");
    *address = cairn_load_u64(reader->at, reader->section->byte_order);
    reader->at += ADDRESS_BYTES;
    return CAIRN_OK;
}

static __attribute__((noinline)) enum cairn_status say_number(const struct reader *reader,
                                                              const char *what, uint64_t value)
{
    if (value == 0)
        return say(reader, CAIRN_ERROR_TRUNCATED, reader->at, what,
                   "is a number that goes beyond the section's end");
    return say(reader, CAIRN_ERROR_CORRUPT, reader->at, what, "is a number of more than 64 bits");
}

static inline enum cairn_status read_number(struct reader *reader, const char *what,
                                            uint64_t *value)
{
    const uint8_t *next = uleb128_read(reader->at, reader->end, value);
    if (__builtin_expect(next == NULL, 0))
        return say_number(reader, what, *value);
    reader->at = next;
    return CAIRN_OK;
}

static inline enum cairn_status read_u32(struct reader *reader, const char *what, uint32_t *value)
{
    const uint8_t *begin = reader->at;
    uint64_t number;
    enum cairn_status status = read_number(reader, what, &number);
    if (status != CAIRN_OK)
        return status;
    if (__builtin_expect(number > UINT32_MAX, 0))
        return say(reader, CAIRN_ERROR_CORRUPT, begin, what, "is a number of more than 32 bits");
    *value = (uint32_t)number;
    return CAIRN_OK;
}

/* ---- What stands before the blocks ---- */

static enum cairn_status read_features(struct reader *reader, struct cairn_bbmap_function *function)
{
    const uint8_t *at = reader->at;
    enum cairn_status status = read_u8(reader, "the features", &function->features);
    if (status != CAIRN_OK)
        return status;
    if ((function->features & ~FEATURES) != 0)
        return error_set(reader->error, CAIRN_ERROR_CORRUPT, offset_of(reader, at),
                         "a function's features 0x%02x have bits beyond 0x%02x, which are all that "
                         "Cairn knows",
                         function->features, FEATURES);
    if (function->features != 0 && function->version < VERSION_MAX)
        return error_set(reader->error, CAIRN_ERROR_CORRUPT, offset_of(reader, at),
                         "a function's map of version %u has the features 0x%02x, which came with "
                         "version 2",
                         function->version, function->features);
    return CAIRN_OK;
}

static enum cairn_status read_version(struct reader *reader, struct cairn_bbmap_function *function)
{
    const uint8_t *at = reader->at;
    enum cairn_status status = read_u8(reader, "the version", &function->version);
    if (status != CAIRN_OK)
        return status;
    if (function->version == 0 || function->version > VERSION_MAX)
        return error_set(reader->error, CAIRN_ERROR_VERSION, offset_of(reader, at),
                         "basic-block address map version %u: Cairn reads versions 1 and 2, and "
                         "sections of the type that has none",
                         function->version);
    return read_features(reader, function);
}

static enum cairn_status read_range_count(struct reader *reader,
                                          struct cairn_bbmap_function *function)
{
    const uint8_t *at = reader->at;
    function->range_count = 1;
    if (!has(function->features, CAIRN_BBMAP_RANGES))
        return CAIRN_OK;
    enum cairn_status status = read_u32(reader, "the number of ranges", &function->range_count);
    if (status == CAIRN_OK && function->range_count == 0)
        return say(reader, CAIRN_ERROR_CORRUPT, at, "the number of ranges", "is 0");
    return status;
}

/* ---- Blocks ---- */

/* What a block has in its range's bytes, and its range's end so far. */
struct raw {
    uint32_t id;
    uint32_t offset;
    uint32_t size;
    uint32_t flags;
};

static enum cairn_status check_end(const struct reader *reader, const uint8_t *at,
                                   const struct raw *raw, uint32_t *end)
{
    uint64_t begin = raw->offset + (uint64_t)*end;
    if (begin + raw->size > UINT32_MAX)
        return say(reader, CAIRN_ERROR_CORRUPT, at, "the block's end",
                   "is more than 32 bits away from its range's begin");
    *end = (uint32_t)(begin + raw->size);
    return CAIRN_OK;
}

/* `*end` is where the block before ends, in versions in which offsets are differences; else 0. */
static enum cairn_status check_block(struct reader *reader, uint8_t version, uint32_t *end)
{
    const uint8_t *begin = reader->at;
    struct raw raw = {0};
    enum cairn_status status = CAIRN_OK;
    if (has_ids(version))
        status = read_u32(reader, "the block's ID", &raw.id);
    if (status == CAIRN_OK)
        status = read_u32(reader, "the block's offset", &raw.offset);
    if (status == CAIRN_OK)
        status = read_u32(reader, "the block's size", &raw.size);
    if (status == CAIRN_OK)
        status = check_end(reader, begin, &raw, end);
    const uint8_t *flags = reader->at;
    if (status == CAIRN_OK)
        status = read_u32(reader, "the block's flags", &raw.flags);
    if (status == CAIRN_OK && (raw.flags & ~(uint32_t)FLAGS) != 0)
        return say(reader, CAIRN_ERROR_CORRUPT, flags, "the block's flags",
                   "have bits beyond the five that Cairn knows");
    if (!has_differences(version))
        *end = 0;
    return status;
}

static enum cairn_status check_range(struct reader *reader, struct cairn_bbmap_function *function,
                                     uint64_t *address)
{
    uint32_t count = 0;
    uint32_t end = 0;
    enum cairn_status status = read_address(reader, address);
    if (status != CAIRN_OK)
        return status;
    if (function->block_count == 0)
        reader->function = *address;
    status = read_u32(reader, "the number of blocks", &count);
    for (uint32_t i = 0; i < count && status == CAIRN_OK; i++) {
        reader->block = function->block_count;
        status = check_block(reader, function->version, &end);
        function->block_count++;
    }
    return status;
}

static enum cairn_status check_ranges(struct reader *reader, struct cairn_bbmap_function *function)
{
    for (uint32_t i = 0; i < function->range_count; i++) {
        uint64_t address = 0;
        enum cairn_status status = check_range(reader, function, &address);
        if (status != CAIRN_OK)
            return status;
        if (i == 0)
            function->address = address;
    }
    return CAIRN_OK;
}

/* ---- Profiles ---- */

static enum cairn_status check_successors(struct reader *reader)
{
    uint64_t count;
    enum cairn_status status = read_number(reader, "the number of successors", &count);
    for (uint64_t i = 0; i < count && status == CAIRN_OK; i++) {
        uint32_t ignored;
        status = read_u32(reader, "a successor's ID", &ignored);
        if (status == CAIRN_OK)
            status = read_u32(reader, "a successor's probability", &ignored);
    }
    return status;
}

static enum cairn_status check_profile(struct reader *reader, uint8_t features)
{
    uint64_t ignored;
    enum cairn_status status = CAIRN_OK;
    if (has(features, CAIRN_BBMAP_FREQUENCIES))
        status = read_number(reader, "the block's frequency", &ignored);
    if (status == CAIRN_OK && has(features, CAIRN_BBMAP_PROBABILITIES))
        status = check_successors(reader);
    return status;
}

static bool has_profiles(uint8_t features)
{
    return has(features, CAIRN_BBMAP_FREQUENCIES) || has(features, CAIRN_BBMAP_PROBABILITIES);
}

static enum cairn_status check_profiles(struct reader *reader,
                                        struct cairn_bbmap_function *function)
{
    enum cairn_status status = CAIRN_OK;
    if (has(function->features, CAIRN_BBMAP_ENTRY_COUNT))
        status = read_number(reader, "the entry count", &function->entry_count);
    if (status != CAIRN_OK || !has_profiles(function->features))
        return status;
    function->profiles_offset = (size_t)(reader->at - function->bytes);
    for (uint64_t i = 0; i < function->block_count && status == CAIRN_OK; i++) {
        reader->block = i;
        status = check_profile(reader, function->features);
    }
    return status;
}

/* ---- A function ---- */

static enum cairn_status check_function(struct reader *reader, enum cairn_bbmap_encoding encoding,
                                        struct cairn_bbmap_function *function)
{
    enum cairn_status status = CAIRN_OK;
    if (encoding != CAIRN_BBMAP_V0)
        status = read_version(reader, function);
    if (status == CAIRN_OK)
        status = read_range_count(reader, function);
    function->ranges_offset = (size_t)(reader->at - function->bytes);
    if (status == CAIRN_OK)
        status = check_ranges(reader, function);
    return status == CAIRN_OK ? check_profiles(reader, function) : status;
}

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
    enum cairn_status status = check_function(&reader, encoding, &read);
    if (status != CAIRN_OK)
        return status;
    read.size = (size_t)(reader.at - begin);
    *offset += read.size;
    *function = read;
    return CAIRN_OK;
}

/* ---- Reading what has been checked ---- */

/* Where a reader is in a function's bytes; every number is there. */
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

static inline void read_block(const struct cairn_bbmap_function *function, struct cursor cursor,
                              uint32_t before, struct cairn_bbmap_block *block)
{
    block->id =
        has_ids(function->version) ? (uint32_t)next_number(&cursor) : (uint32_t)block->index;
    block->offset = before + (uint32_t)next_number(&cursor);
    block->size = (uint32_t)next_number(&cursor);
    block->flags = (uint8_t)next_number(&cursor);
    block->end = (size_t)(cursor.at - function->bytes);
}

/* What a profile says of the block that `next_profile` says the place of. */
static void read_profile(const struct cairn_bbmap_function *function,
                         struct cairn_bbmap_block *block)
{
    if (function->profiles_offset == 0)
        return;
    struct cursor cursor = cursor_at(function, block->next_profile);
    if (has(function->features, CAIRN_BBMAP_FREQUENCIES))
        block->frequency = next_number(&cursor);
    if (has(function->features, CAIRN_BBMAP_PROBABILITIES)) {
        block->successor_count = next_number(&cursor);
        block->successors = (size_t)(cursor.at - function->bytes);
        for (uint64_t i = 0; i < 2 * block->successor_count; i++)
            (void)next_number(&cursor);
    }
    block->next_profile = (size_t)(cursor.at - function->bytes);
}

/* From where a range begins to the first block of it or of a later one; false if there is none. */
static bool enter_range(const struct cairn_bbmap_function *function, size_t offset, uint32_t range,
                        struct cairn_bbmap_block *block)
{
    for (; range < function->range_count; range++) {
        uint64_t base = cairn_load_u64(function->bytes + offset, function->byte_order);
        struct cursor cursor = cursor_at(function, offset + ADDRESS_BYTES);
        uint32_t count = (uint32_t)next_number(&cursor);
        offset = (size_t)(cursor.at - function->bytes);
        if (count == 0)
            continue;
        block->range = range;
        block->base = base;
        block->left = count - 1;
        read_block(function, cursor, 0, block);
        read_profile(function, block);
        return true;
    }
    return false;
}

bool cairn_bbmap_first(const struct cairn_bbmap_function *function, struct cairn_bbmap_block *block)
{
    *block = (struct cairn_bbmap_block){.next_profile = function->profiles_offset};
    return enter_range(function, function->ranges_offset, 0, block);
}

bool cairn_bbmap_next(const struct cairn_bbmap_function *function, struct cairn_bbmap_block *block)
{
    if (block->index + 1 == function->block_count)
        return false;
    block->index++;
    if (block->left == 0)
        return enter_range(function, block->end, block->range + 1, block);
    block->left--;
    uint32_t before = has_differences(function->version) ? block->offset + block->size : 0;
    read_block(function, cursor_at(function, block->end), before, block);
    read_profile(function, block);
    return true;
}

/* ---- Ranges ---- */

static void read_range(const struct cairn_bbmap_function *function, struct cursor cursor,
                       struct cairn_bbmap_range *range)
{
    range->offset = function->offset + (size_t)(cursor.at - function->bytes);
    range->base = cairn_load_u64(cursor.at, function->byte_order);
    cursor.at += ADDRESS_BYTES;
    range->block_count = (uint32_t)next_number(&cursor);
}

static void skip_range(const struct cairn_bbmap_function *function, struct cursor *cursor)
{
    unsigned numbers = has_ids(function->version) ? 4 : 3;
    cursor->at += ADDRESS_BYTES;
    for (uint64_t left = next_number(cursor) * numbers; left > 0; left--)
        (void)next_number(cursor);
}

void cairn_bbmap_first_range(const struct cairn_bbmap_function *function,
                             struct cairn_bbmap_range *range)
{
    range->index = 0;
    read_range(function, cursor_at(function, function->ranges_offset), range);
}

bool cairn_bbmap_next_range(const struct cairn_bbmap_function *function,
                            struct cairn_bbmap_range *range)
{
    if (range->index + 1 == function->range_count)
        return false;
    struct cursor cursor = cursor_at(function, range->offset - function->offset);
    skip_range(function, &cursor);
    range->index++;
    read_range(function, cursor, range);
    return true;
}

bool cairn_bbmap_successor(const struct cairn_bbmap_function *function,
                           const struct cairn_bbmap_block *block, uint64_t index,
                           struct cairn_bbmap_successor *successor)
{
    if (index >= block->successor_count)
        return false;
    struct cursor cursor = cursor_at(function, block->successors);
    for (uint64_t i = 0; i < 2 * index; i++)
        (void)next_number(&cursor);
    successor->id = (uint32_t)next_number(&cursor);
    successor->probability = (uint32_t)next_number(&cursor);
    return true;
}
