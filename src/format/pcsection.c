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

struct reader {
    const struct cairn_section *section;
    size_t at;
    size_t entry; /* offset of the entry */
    struct cairn_error *error;
};

static enum cairn_status say(const struct reader *reader, enum cairn_status status,
                             const char *part, const char *wrong)
{
    return error_set(reader->error, status, reader->at, "the entry at byte %zu: %s %s",
                     reader->entry, part, wrong);
}

static uint64_t load(const uint8_t *bytes, uint8_t size, enum cairn_byte_order byte_order)
{
    if (size == sizeof(uint64_t))
        return cairn_load_u64(bytes, byte_order);
    if (size == sizeof(uint32_t))
        return cairn_load_u32(bytes, byte_order);
    uint64_t value = 0;
    for (uint8_t i = 0; i < size; i++) {
        uint8_t place = byte_order == CAIRN_LITTLE_ENDIAN ? i : (uint8_t)(size - 1 - i);
        value |= (uint64_t)bytes[i] << 8 * place;
    }
    return value;
}

static enum cairn_status read_fixed(struct reader *reader, const char *part, uint8_t size,
                                    uint64_t *value)
{
    if (reader->section->size - reader->at < size)
        return say(reader, CAIRN_ERROR_TRUNCATED, part,
                   "goes beyond the section's end: is the schema this section's?");
    *value = load(reader->section->bytes + reader->at, size, reader->section->byte_order);
    reader->at += size;
    return CAIRN_OK;
}

static bool fits(uint64_t value, uint8_t size)
{
    return size == sizeof value || value >> (8 * size) == 0;
}

static enum cairn_status read_compressed(struct reader *reader, const char *part, uint8_t size,
                                         uint64_t *value)
{
    const uint8_t *bytes = reader->section->bytes;
    const uint8_t *end = bytes + reader->section->size;
    const uint8_t *next = uleb128_read(bytes + reader->at, end, value);
    if (next == NULL && *value == 0)
        return say(reader, CAIRN_ERROR_TRUNCATED, part,
                   "is a number that goes beyond the section's end");
    if (next == NULL || !fits(*value, size))
        return say(reader, CAIRN_ERROR_CORRUPT, part, "has more bits than the schema says");
    reader->at = (size_t)(next - bytes);
    return CAIRN_OK;
}

static enum cairn_status read_number(struct reader *reader, bool is_compressed, const char *part,
                                     uint8_t size, uint64_t *value)
{
    if (is_compressed && size > 1)
        return read_compressed(reader, part, size, value);
    return read_fixed(reader, part, size, value);
}

/* Reads an address, which is stored relative to itself. */
static enum cairn_status read_address(struct reader *reader, uint64_t section_address, uint8_t size,
                                      uint64_t *address)
{
    uint64_t relative;
    enum cairn_status status = read_fixed(reader, "the address", size, &relative);
    if (status != CAIRN_OK)
        return status;
    if (size == sizeof(uint32_t))
        relative = (uint64_t)(int64_t)(int32_t)(uint32_t)relative;
    *address = section_address + reader->entry + relative;
    return CAIRN_OK;
}

/* Reads everything after the address. */
static enum cairn_status read_values(struct reader *reader,
                                     const struct cairn_pcsection_schema *schema,
                                     struct cairn_pcsection_entry *entry)
{
    enum cairn_status status = CAIRN_OK;
    if (schema->has_size)
        status = read_number(reader, schema->is_compressed, "the function's size", SIZE_BYTES,
                             &entry->size);
    for (uint8_t i = 0; i < schema->constant_count && status == CAIRN_OK; i++)
        status = read_number(reader, schema->is_compressed, "a constant", schema->constant_bytes[i],
                             &entry->constants[i]);
    return status;
}

static enum cairn_status read_entry(struct reader *reader, uint64_t section_address,
                                    const struct cairn_pcsection_schema *schema,
                                    struct cairn_pcsection_entry *entry)
{
    enum cairn_status status =
        read_address(reader, section_address, schema->address_bytes, &entry->address);
    return status == CAIRN_OK ? read_values(reader, schema, entry) : status;
}

bool pcsection_read_address(const struct cairn_section *section, uint64_t section_address,
                            uint8_t size, size_t offset, uint64_t *address)
{
    struct reader reader = {.section = section, .at = offset, .entry = offset};
    return offset <= section->size &&
           read_address(&reader, section_address, size, address) == CAIRN_OK;
}

enum cairn_status pcsection_read_values(const struct cairn_section *section,
                                        const struct cairn_pcsection_schema *schema, size_t *offset,
                                        struct cairn_pcsection_entry *entry,
                                        struct cairn_error *error)
{
    struct reader reader = {
        .section = section, .at = *offset, .entry = entry->offset, .error = error};
    enum cairn_status status = read_values(&reader, schema, entry);
    *offset = reader.at;
    return status;
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
    struct reader reader = {.section = section, .at = *offset, .entry = *offset, .error = error};
    struct cairn_pcsection_entry read = {.offset = *offset};
    enum cairn_status status = read_entry(&reader, section_address, schema, &read);
    if (status != CAIRN_OK)
        return status;
    *offset = reader.at;
    *entry = read;
    return CAIRN_OK;
}
