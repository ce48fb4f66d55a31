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

static enum cairn_status parse_kind(struct word word, struct cairn_pcsection_schema *schema,
                                    struct cairn_error *error)
{
    schema->has_size = word_is(word, "function");
    if (schema->has_size || word_is(word, "instruction"))
        return CAIRN_OK;
    return say_word(word, "'function' or 'instruction'", error);
}

static enum cairn_status parse_address(struct word word, struct cairn_pcsection_schema *schema,
                                       struct cairn_error *error)
{
    schema->address_bytes = word_is(word, "4") ? 4 : 8;
    if (word_is(word, "4") || word_is(word, "8"))
        return CAIRN_OK;
    return say_word(word, "the address's bytes, '4' or '8',", error);
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

static enum cairn_status parse_constant(struct word word, struct cairn_pcsection_schema *schema,
                                        struct cairn_error *error)
{
    uint8_t bytes = constant_bytes(word);
    if (bytes == 0)
        return say_word(word, "a constant ('u8', 'u16' to 'u64') or, at the end, '!C'", error);
    if (schema->constant_count == CAIRN_PCSECTION_CONSTANTS_MAX)
        return say_word(word, "the end, after 16 constants,", error);
    schema->constant_bytes[schema->constant_count++] = bytes;
    return CAIRN_OK;
}

static enum cairn_status parse_rest(struct word word, struct cairn_pcsection_schema *schema,
                                    struct cairn_error *error)
{
    for (; word.length > 0; word = next_word(word)) {
        schema->is_compressed = word_is(word, "!C");
        if (schema->is_compressed)
            break;
        enum cairn_status status = parse_constant(word, schema, error);
        if (status != CAIRN_OK)
            return status;
    }
    struct word behind = next_word(word);
    return behind.length == 0 ? CAIRN_OK : say_word(behind, "the end, after '!C',", error);
}

enum cairn_status cairn_pcsection_parse_schema(const char *text,
                                               struct cairn_pcsection_schema *schema,
                                               struct cairn_error *error)
{
    if (text == NULL || schema == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no schema to read");
    struct cairn_pcsection_schema parsed = {.address_bytes = 0};
    struct word word = next_word((struct word){text, text, 0});
    enum cairn_status status = parse_kind(word, &parsed, error);
    if (status != CAIRN_OK)
        return status;
    word = next_word(word);
    status = parse_address(word, &parsed, error);
    if (status == CAIRN_OK)
        status = parse_rest(next_word(word), &parsed, error);
    if (status == CAIRN_OK)
        *schema = parsed;
    return status;
}

/* ---- Entries ---- */

/* Sets the error of a number that read_number has refused, with what it has set `value` to. */
static enum cairn_status say(size_t at, size_t entry, const char *part, bool is_compressed,
                             uint64_t value, struct cairn_error *error)
{
    if (value != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, at,
                         "the entry at byte %zu: %s has more bits than the schema says", entry,
                         part);
    return error_set(error, CAIRN_ERROR_TRUNCATED, at, "the entry at byte %zu: %s %s", entry, part,
                     is_compressed
                         ? "is a number that goes beyond the section's end"
                         : "goes beyond the section's end: is the schema this section's?");
}

/* Loads a number of `size` bytes, of which 8 can be read if `left` is at least 8. */
static inline uint64_t load(const uint8_t *bytes, size_t left, uint8_t size,
                            enum cairn_byte_order byte_order)
{
    const unsigned unused_bits = 64 - 8u * size;
    if (left >= sizeof(uint64_t) && byte_order == CAIRN_LITTLE_ENDIAN)
        return cairn_load_u64(bytes, CAIRN_LITTLE_ENDIAN) << unused_bits >> unused_bits;
    uint64_t value = 0;
    for (uint8_t i = 0; i < size; i++) {
        uint8_t place = byte_order == CAIRN_LITTLE_ENDIAN ? i : (uint8_t)(size - 1 - i);
        value |= (uint64_t)bytes[i] << 8 * place;
    }
    return value;
}

/* Reads a number at `at`, and returns the address after it. Returns NULL if the number goes beyond
 * `end`, with `*value` 0, or if it has more than `size` bytes, with another `*value`. */
static inline const uint8_t *read_number(const uint8_t *at, const uint8_t *end,
                                         enum cairn_byte_order byte_order, bool is_compressed,
                                         uint8_t size, uint64_t *value)
{
    const size_t left = (size_t)(end - at);
    if (is_compressed && size > 1) {
        const uint8_t *next = uleb128_read(at, end, value);
        bool fits = size == sizeof *value || *value >> 8 * size == 0;
        return fits ? next : NULL;
    }
    *value = 0;
    if (left < size)
        return NULL;
    *value = load(at, left, size, byte_order);
    return at + size;
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
                                        const struct cairn_pcsection_schema *schema, size_t offset,
                                        struct cairn_pcsection_entry *entry, size_t *end_offset,
                                        struct cairn_error *error)
{
    const uint8_t *const begin = section->bytes;
    const uint8_t *const end = begin + section->size;
    const enum cairn_byte_order byte_order = section->byte_order;
    const bool is_compressed = schema->is_compressed;
    const uint8_t *at = begin + offset;
    const uint8_t *next;
    uint64_t value;
    if (schema->has_size) {
        next = read_number(at, end, byte_order, is_compressed, SIZE_BYTES, &value);
        if (next == NULL)
            return say((size_t)(at - begin), entry->offset, "the function's size", is_compressed,
                       value, error);
        entry->size = value;
        at = next;
    }
    for (unsigned i = 0; i < schema->constant_count; i++) {
        uint8_t size = schema->constant_bytes[i];
        next = read_number(at, end, byte_order, is_compressed, size, &value);
        if (next == NULL)
            return say((size_t)(at - begin), entry->offset, "a constant", is_compressed && size > 1,
                       value, error);
        entry->constants[i] = value;
        at = next;
    }
    *end_offset = (size_t)(at - begin);
    return CAIRN_OK;
}

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

enum cairn_status cairn_pcsection_read(const struct cairn_section *section,
                                       uint64_t section_address,
                                       const struct cairn_pcsection_schema *schema, size_t *offset,
                                       struct cairn_pcsection_entry *entry,
                                       struct cairn_error *error)
{
    if (!pcsection_is_schema(schema))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "a schema has addresses of 4 or 8 bytes and constants of 1 to 8");
    if (*offset >= section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, *offset,
                         "there is no byte %zu in a section of %zu bytes", *offset, section->size);
    entry->offset = *offset;
    entry->size = 0;
    if (!pcsection_read_address(section, section_address, schema->address_bytes, *offset,
                                &entry->address))
        return say(*offset, *offset, "the address", false, 0, error);
    if (schema->has_size || schema->constant_count > 0)
        return pcsection_read_values(section, schema, *offset + schema->address_bytes, entry,
                                     offset, error);
    *offset += schema->address_bytes;
    return CAIRN_OK;
}
