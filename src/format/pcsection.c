/*
 * Reads the entries of PC sections according to a schema.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/pcsection.h"

#include "base/error.h"
#include "format/uleb128.h"

#include <string.h>

enum { SIZE_BYTES = 4 };

/* ---- Parsing schemas ---- */

/* A word of the schema's text. */
struct word {
    const char *text;
    const char *begin;
    size_t length;
};

/* Returns the next word; its length is 0 at the end of the text. */
static struct word next_word(struct word word)
{
    const char *begin = word.begin + word.length;
    begin += strspn(begin, " ");
    return (struct word){word.text, begin, strcspn(begin, " ")};
}

static bool word_is(struct word word, const char *name)
{
    return word.length == strlen(name) && memcmp(word.begin, name, word.length) == 0;
}

static enum cairn_status say_word(struct word word, const char *wanted, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_ARGUMENT, (uint64_t)(word.begin - word.text),
                     "the schema '%.80s' has '%.*s' where %s should be", word.text,
                     word.length < 40 ? (int)word.length : 40, word.begin, wanted);
}

/* Returns the size of a constant, "u8" to "u64" in steps of 8 bits; 0 for other words. */
static uint8_t constant_bytes(struct word word)
{
    static const char *const names[] = {"u8", "u16", "u24", "u32", "u40", "u48", "u56", "u64"};
    for (unsigned i = 0; i < CAIRN_PCSECTION_CONSTANT_BYTES_MAX; i++)
        if (word_is(word, names[i]))
            return (uint8_t)(i + 1);
    return 0;
}

enum cairn_status cairn_pcsection_parse_schema(const char *text,
                                               struct cairn_pcsection_schema *schema,
                                               struct cairn_error *error)
{
    if (text == NULL || schema == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_pcsection_parse_schema: `%s` is NULL",
                         text == NULL ? "text" : "schema");
    struct word word = next_word((struct word){text, text, 0});
    struct cairn_pcsection_schema parsed = {.has_size = word_is(word, "function")};
    if (!parsed.has_size && !word_is(word, "instruction"))
        return say_word(word, "'function' or 'instruction'", error);
    word = next_word(word);
    parsed.address_bytes = word_is(word, "4") ? 4 : 8;
    if (!word_is(word, "4") && !word_is(word, "8"))
        return say_word(word, "the address's bytes, '4' or '8',", error);
    for (word = next_word(word); word.length > 0 && !parsed.is_compressed; word = next_word(word)) {
        parsed.is_compressed = word_is(word, "!C");
        if (parsed.is_compressed)
            continue;
        uint8_t bytes = constant_bytes(word);
        if (bytes == 0)
            return say_word(word, "a constant ('u8', 'u16' to 'u64') or, at the end, '!C'", error);
        if (parsed.constant_count == CAIRN_PCSECTION_CONSTANTS_MAX)
            return say_word(word, "the end, after 16 constants,", error);
        parsed.constant_bytes[parsed.constant_count++] = bytes;
    }
    if (word.length > 0)
        return say_word(word, "the end, after '!C',", error);
    *schema = parsed;
    return CAIRN_OK;
}

/* ---- Entries ---- */

bool pcsection_is_schema(const struct cairn_pcsection_schema *schema)
{
    bool is_address = schema->address_bytes == 4 || schema->address_bytes == 8;
    if (!is_address || schema->constant_count > CAIRN_PCSECTION_CONSTANTS_MAX)
        return false;
    for (uint8_t i = 0; i < schema->constant_count; i++)
        if (schema->constant_bytes[i] < 1 ||
            schema->constant_bytes[i] > CAIRN_PCSECTION_CONSTANT_BYTES_MAX)
            return false;
    return true;
}

/* Sets the error of a number that read_number has refused, with what it has set `value` to. If the
 * schema is invalid, this is the error. */
static __attribute__((noinline, cold)) enum cairn_status say(
    const struct cairn_pcsection_schema *schema, size_t at, size_t entry, const char *part,
    bool is_compressed, uint64_t value, struct cairn_error *error)
{
    if (!pcsection_is_schema(schema))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "a schema has addresses of 4 or 8 bytes and constants of 1 to 8");
    if (value != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, at,
                         "the entry at byte %zu: %s has more bits than the schema says", entry,
                         part);
    return error_set(error, CAIRN_ERROR_TRUNCATED, at, "the entry at byte %zu: %s %s", entry, part,
                     is_compressed
                         ? "is a number that goes beyond the section's end"
                         : "goes beyond the section's end: is the schema this section's?");
}

/* Reads a number at `at`, and returns the address after it. Returns NULL if the number goes beyond
 * `end`, with `*value` 0, or if it has more than `size` bytes, with another `*value`. Any `size` is
 * safe. */
static inline __attribute__((always_inline)) const uint8_t *read_number(
    const uint8_t *at, const uint8_t *end, enum cairn_byte_order byte_order, bool is_compressed,
    uint8_t size, uint64_t *value)
{
    const size_t left = (size_t)(end - at);
    *value = 0;
    if (is_compressed) {
        if (left > 0 && (*at < 0x80 || size == 1)) {
            *value = *at;
            return at + 1;
        }
        const uint8_t *next = uleb128_read_long(at, end, value);
        return size >= sizeof *value || *value >> 8 * size == 0 ? next : NULL;
    }
    if (left < size || size > sizeof *value)
        return NULL;
    if (left >= sizeof *value && byte_order == CAIRN_LITTLE_ENDIAN) {
        const unsigned unused_bits = (64 - 8u * size) % 64;
        *value = cairn_load_u64(at, CAIRN_LITTLE_ENDIAN) << unused_bits >> unused_bits;
        return at + size;
    }
    for (uint8_t i = 0; i < size; i++)
        *value |= (uint64_t)at[byte_order == CAIRN_LITTLE_ENDIAN ? size - 1 - i : i]
                  << 8 * (size - 1 - i);
    return at + size;
}

/* The same for the compressed size of a function. Whether it has one or two bytes is not
 * predictable, so there is no branch. */
static inline const uint8_t *read_size(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    const unsigned has_second = at < end ? at[0] >> 7 : 0;
    if (end - at < 2 || (has_second & at[1] >> 7) != 0)
        return read_number(at, end, CAIRN_LITTLE_ENDIAN, true, SIZE_BYTES, value);
    *value = (at[0] & 0x7Fu) | (uint64_t)(at[1] * has_second) << 7;
    return at + 1 + has_second;
}

/* Implements pcsection_read_values. Inlined, so that the compiler specialises it for the form of
 * numbers. */
static inline __attribute__((always_inline)) enum cairn_status read_values(
    const struct cairn_section *section, const struct cairn_pcsection_schema *schema,
    bool is_compressed, size_t offset, struct cairn_pcsection_entry *entry, size_t *end_offset,
    struct cairn_error *error)
{
    const uint8_t *const begin = section->bytes;
    const uint8_t *const end = begin + section->size;
    const enum cairn_byte_order byte_order = section->byte_order;
    const unsigned count = schema->constant_count;
    const uint8_t *at = begin + offset;
    const uint8_t *next;
    uint64_t value;
    unsigned invalid_sizes = 0;
    if (schema->has_size) {
        next = is_compressed ? read_size(at, end, &value)
                             : read_number(at, end, byte_order, false, SIZE_BYTES, &value);
        if (next == NULL)
            return say(schema, (size_t)(at - begin), entry->offset, "the function's size",
                       is_compressed, value, error);
        entry->size = value;
        at = next;
    }
    for (unsigned i = 0; i < count; i++) {
        uint8_t size = schema->constant_bytes[i];
        next = read_number(at, end, byte_order, is_compressed, size, &value);
        if (next == NULL)
            return say(schema, (size_t)(at - begin), entry->offset, "a constant",
                       is_compressed && size > 1, value, error);
        entry->constants[i] = value;
        at = next;
        invalid_sizes |= size - 1u;
    }
    if (invalid_sizes >= CAIRN_PCSECTION_CONSTANT_BYTES_MAX)
        return say(schema, 0, 0, NULL, false, 0, error);
    *end_offset = (size_t)(at - begin);
    return CAIRN_OK;
}

bool pcsection_read_address(const struct cairn_section *section, uint64_t section_address,
                            uint8_t size, size_t offset, uint64_t *address)
{
    if (offset > section->size || section->size - offset < size)
        return false;
    /* Stored relative to itself. */
    const uint8_t *bytes = section->bytes + offset;
    int64_t relative = size == sizeof(uint32_t)
                           ? (int32_t)cairn_load_u32(bytes, section->byte_order)
                           : (int64_t)cairn_load_u64(bytes, section->byte_order);
    *address = section_address + offset + (uint64_t)relative;
    return true;
}

enum cairn_status pcsection_read_values(const struct cairn_section *section,
                                        const struct cairn_pcsection_schema *schema, size_t at,
                                        struct cairn_pcsection_entry *entry, size_t *end,
                                        struct cairn_error *error)
{
    return schema->is_compressed ? read_values(section, schema, true, at, entry, end, error)
                                 : read_values(section, schema, false, at, entry, end, error);
}

enum cairn_status cairn_pcsection_read(const struct cairn_section *section,
                                       uint64_t section_address,
                                       const struct cairn_pcsection_schema *schema, size_t *offset,
                                       struct cairn_pcsection_entry *entry,
                                       struct cairn_error *error)
{
    /* Constants are checked while they are read. */
    if ((schema->address_bytes != 4 && schema->address_bytes != 8) ||
        schema->constant_count > CAIRN_PCSECTION_CONSTANTS_MAX)
        return say(schema, 0, 0, NULL, false, 0, error);
    if (*offset >= section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, *offset,
                         "offset %zu is out of range: the section has %zu bytes", *offset,
                         section->size);
    entry->offset = *offset;
    entry->size = 0;
    if (!pcsection_read_address(section, section_address, schema->address_bytes, *offset,
                                &entry->address))
        return say(schema, *offset, *offset, "the address", false, 0, error);
    if (schema->has_size || schema->constant_count > 0)
        return pcsection_read_values(section, schema, *offset + schema->address_bytes, entry,
                                     offset, error);
    *offset += schema->address_bytes;
    return CAIRN_OK;
}
