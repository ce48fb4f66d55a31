/*
 * Reads basic-block address maps. One pass checks everything that later functions rely on, so that
 * they read blocks without checks.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/bbmap.h>

#include "base/error.h"
#include "format/uleb128.h"

#include <stdbool.h>

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
static bool has_wide_features(uint8_t version) { return version >= 5; }

/* The features of each version: its own and those of earlier versions. */
enum {
    FEATURES_2 = CAIRN_BBMAP_ENTRY_COUNT | CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES |
                 CAIRN_BBMAP_RANGES | CAIRN_BBMAP_OMITTED_BLOCKS,
    FEATURES_3 = FEATURES_2 | CAIRN_BBMAP_CALLSITES,
    FEATURES_4 = FEATURES_3 | CAIRN_BBMAP_HASHES,
    FEATURES_5 = FEATURES_4 | CAIRN_BBMAP_POST_LINK,
    FEATURES = FEATURES_5
};
static const uint16_t features_of[VERSION_MAX + 1] = {
    [2] = FEATURES_2, [3] = FEATURES_3, [4] = FEATURES_4, [5] = FEATURES_5};

/* ---- Checking ---- */

/* The position in a section, and what is being read there, for error messages. */
struct reader {
    const struct cairn_section *section;
    const uint8_t *at;
    const uint8_t *end;
    uint64_t function; /* address of the function; 0 until it is known */
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

/* ---- Before the blocks ---- */

static enum cairn_status read_u16(struct reader *reader, const char *what, uint16_t *value)
{
    uint8_t bytes[2];
    enum cairn_status status = read_u8(reader, what, &bytes[0]);
    if (status == CAIRN_OK)
        status = read_u8(reader, what, &bytes[1]);
    if (status != CAIRN_OK)
        return status;
    bool is_little = reader->section->byte_order == CAIRN_LITTLE_ENDIAN;
    *value = (uint16_t)(bytes[is_little] << 8 | bytes[!is_little]);
    return CAIRN_OK;
}

static enum cairn_status read_features(struct reader *reader, struct cairn_bbmap_function *function)
{
    const uint8_t *at = reader->at;
    uint8_t narrow = 0;
    enum cairn_status status = has_wide_features(function->version)
                                   ? read_u16(reader, "the features", &function->features)
                                   : read_u8(reader, "the features", &narrow);
    if (status != CAIRN_OK)
        return status;
    function->features |= narrow;
    if ((function->features & ~FEATURES) != 0)
        return error_set(reader->error, CAIRN_ERROR_CORRUPT, offset_of(reader, at),
                         "the features 0x%02x of a function's map have bits outside of 0x%02x, "
                         "which are all that Cairn knows",
                         function->features, FEATURES);
    unsigned excess = function->features & ~(unsigned)features_of[function->version];
    if (excess != 0)
        return error_set(reader->error, CAIRN_ERROR_CORRUPT, offset_of(reader, at),
                         "a function's map of version %u has the features 0x%02x, of which 0x%02x "
                         "came with a later version",
                         function->version, function->features, excess);
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
                         "basic-block address map version %u: Cairn reads versions 1 to %d, and "
                         "sections of the type without versions",
                         function->version, VERSION_MAX);
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

/* The numbers of a block. `size` is the distance from the end of the block's last call,
 * `calls_end`. */
struct raw {
    uint32_t id;
    uint32_t offset;
    uint32_t calls_end; /* offset from the start of the block; 0 if it has no calls */
    uint32_t size;
    uint32_t flags;
};

static enum cairn_status check_end(const struct reader *reader, const uint8_t *at,
                                   const struct raw *raw, uint32_t *end)
{
    uint64_t block_end = (uint64_t)*end + raw->offset + raw->calls_end + raw->size;
    if (block_end > UINT32_MAX)
        return say(reader, CAIRN_ERROR_CORRUPT, at, "the block's end",
                   "is more than 32 bits away from its range's begin");
    *end = (uint32_t)block_end;
    return CAIRN_OK;
}

static enum cairn_status check_callsites(struct reader *reader, uint32_t *calls_end)
{
    uint32_t count = 0;
    enum cairn_status status = read_u32(reader, "the number of calls", &count);
    for (uint32_t i = 0; i < count && status == CAIRN_OK; i++) {
        const uint8_t *begin = reader->at;
        uint32_t distance = 0;
        status = read_u32(reader, "the distance to a call's end", &distance);
        if (__builtin_add_overflow(*calls_end, distance, calls_end))
            return say(reader, CAIRN_ERROR_CORRUPT, begin, "a call's end",
                       "is more than 32 bits away from the block's begin");
    }
    return status;
}

static enum cairn_status check_hash(struct reader *reader)
{
    if (reader->end - reader->at < HASH_BYTES)
        return say(reader, CAIRN_ERROR_TRUNCATED, reader->at, "the block's hash",
                   "goes beyond the section's end");
    reader->at += HASH_BYTES;
    return CAIRN_OK;
}

/* Checks one block. Where the version encodes offsets as differences, `*end` is the end of the
 * previous block, and is set to the end of this one. In other versions it is 0 before and after the
 * call. */
static enum cairn_status check_block(struct reader *reader,
                                     const struct cairn_bbmap_function *function, uint32_t *end)
{
    const uint8_t *begin = reader->at;
    struct raw raw = {0};
    enum cairn_status status = CAIRN_OK;
    if (has_ids(function->version))
        status = read_u32(reader, "the block's ID", &raw.id);
    if (status == CAIRN_OK)
        status = read_u32(reader, "the block's offset", &raw.offset);
    if (status == CAIRN_OK && has(function->features, CAIRN_BBMAP_CALLSITES))
        status = check_callsites(reader, &raw.calls_end);
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
    if (status == CAIRN_OK && has(function->features, CAIRN_BBMAP_HASHES))
        status = check_hash(reader);
    if (!has_differences(function->version))
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
    if (has(function->features, CAIRN_BBMAP_OMITTED_BLOCKS)) {
        function->omitted_count += count;
        return status;
    }
    for (uint32_t i = 0; i < count && status == CAIRN_OK; i++) {
        reader->block = function->block_count;
        status = check_block(reader, function, &end);
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

static enum cairn_status check_successor(struct reader *reader, uint16_t features)
{
    uint32_t ignored;
    uint64_t ignored_frequency;
    enum cairn_status status = read_u32(reader, "a successor's ID", &ignored);
    if (status == CAIRN_OK)
        status = read_u32(reader, "a successor's probability", &ignored);
    if (status == CAIRN_OK && has(features, CAIRN_BBMAP_POST_LINK))
        status = read_number(reader, "a successor's frequency after linking", &ignored_frequency);
    return status;
}

static enum cairn_status check_successors(struct reader *reader, uint16_t features)
{
    uint64_t count;
    enum cairn_status status = read_number(reader, "the number of successors", &count);
    for (uint64_t i = 0; i < count && status == CAIRN_OK; i++)
        status = check_successor(reader, features);
    return status;
}

static enum cairn_status check_profile(struct reader *reader, uint16_t features)
{
    uint64_t ignored;
    enum cairn_status status = CAIRN_OK;
    if (has(features, CAIRN_BBMAP_FREQUENCIES))
        status = read_number(reader, "the block's frequency", &ignored);
    if (status == CAIRN_OK && has(features, CAIRN_BBMAP_POST_LINK))
        status = read_number(reader, "the block's frequency after linking", &ignored);
    if (status == CAIRN_OK && has(features, CAIRN_BBMAP_PROBABILITIES))
        status = check_successors(reader, features);
    return status;
}

/* Whether the map has profiles. Post-link frequencies occur only together with the compiler's
 * frequencies or probabilities. */
static bool has_profiles(uint16_t features)
{
    return has(features, CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES);
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

/* ---- Functions ---- */

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

/* Returns the number of the range's blocks that are in the map. */
static uint32_t next_block_count(const struct cairn_bbmap_function *function, struct cursor *cursor)
{
    uint32_t count = (uint32_t)next_number(cursor);
    return has(function->features, CAIRN_BBMAP_OMITTED_BLOCKS) ? 0 : count;
}

/* Reads the first block of the range at `offset`, or of the next range that is not empty. Returns
 * false if no range from there on has blocks. */
static bool enter_range(const struct cairn_bbmap_function *function, size_t offset, uint32_t range,
                        struct cairn_bbmap_block *block)
{
    for (; range < function->range_count; range++) {
        uint64_t base = cairn_load_u64(function->bytes + offset, function->byte_order);
        struct cursor cursor = cursor_at(function, offset + ADDRESS_BYTES);
        uint32_t count = next_block_count(function, &cursor);
        offset = offset_in(function, &cursor);
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
    range->offset = function->offset + offset_in(function, &cursor);
    range->base = cairn_load_u64(cursor.at, function->byte_order);
    cursor.at += ADDRESS_BYTES;
    uint32_t count = (uint32_t)next_number(&cursor);
    bool is_omitted = has(function->features, CAIRN_BBMAP_OMITTED_BLOCKS);
    range->block_count = is_omitted ? 0 : count;
    range->omitted_count = is_omitted ? count : 0;
}

static void skip_range(const struct cairn_bbmap_function *function, struct cursor *cursor)
{
    struct cairn_bbmap_block block = {0};
    cursor->at += ADDRESS_BYTES;
    for (uint32_t left = next_block_count(function, cursor); left > 0; left--) {
        read_block(function, *cursor, 0, &block);
        *cursor = cursor_at(function, block.end);
    }
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

/* ---- Calls ---- */

/* Reads one call. `end` is the end of the previous call. */
static void read_callsite(const struct cairn_bbmap_function *function, struct cursor cursor,
                          uint32_t end, struct cairn_bbmap_callsite *callsite)
{
    callsite->end_offset = end + (uint32_t)next_number(&cursor);
    callsite->next = offset_in(function, &cursor);
}

bool cairn_bbmap_first_callsite(const struct cairn_bbmap_function *function,
                                const struct cairn_bbmap_block *block,
                                struct cairn_bbmap_callsite *callsite)
{
    if (block->callsite_count == 0)
        return false;
    callsite->left = block->callsite_count - 1;
    read_callsite(function, cursor_at(function, block->callsites), 0, callsite);
    return true;
}

bool cairn_bbmap_next_callsite(const struct cairn_bbmap_function *function,
                               struct cairn_bbmap_callsite *callsite)
{
    if (callsite->left == 0)
        return false;
    callsite->left--;
    read_callsite(function, cursor_at(function, callsite->next), callsite->end_offset, callsite);
    return true;
}

/* ---- Successors ---- */

static void read_successor(const struct cairn_bbmap_function *function, struct cursor cursor,
                           struct cairn_bbmap_successor *successor)
{
    successor->id = (uint32_t)next_number(&cursor);
    successor->probability = (uint32_t)next_number(&cursor);
    successor->post_link_frequency =
        has(function->features, CAIRN_BBMAP_POST_LINK) ? next_number(&cursor) : 0;
    successor->next = offset_in(function, &cursor);
}

bool cairn_bbmap_first_successor(const struct cairn_bbmap_function *function,
                                 const struct cairn_bbmap_block *block,
                                 struct cairn_bbmap_successor *successor)
{
    if (block->successor_count == 0)
        return false;
    successor->left = block->successor_count - 1;
    read_successor(function, cursor_at(function, block->successors), successor);
    return true;
}

bool cairn_bbmap_next_successor(const struct cairn_bbmap_function *function,
                                struct cairn_bbmap_successor *successor)
{
    if (successor->left == 0)
        return false;
    successor->left--;
    read_successor(function, cursor_at(function, successor->next), successor);
    return true;
}
