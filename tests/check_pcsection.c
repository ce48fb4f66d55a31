/*
 * Tests of PC sections: random entries of random schemas are read back unchanged; schemas are
 * parsed from text; truncated and invalid sections are refused with the offset of the error.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"

#include <cairn/pcsection.h>
#include <stdio.h>
#include <string.h>

enum { BYTES_MAX = 4096, ENTRIES = 20, ROUNDS = 2000, TEXT_BYTES = 256 };

#define SECTION_ADDRESS UINT64_C(0x7F0000001000)

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

static uint64_t random_of(unsigned bytes)
{
    uint64_t number = (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
    return number >> (64 - 8 * bytes) >> below(8 * bytes);
}

/* ---- Writing ---- */

static struct {
    struct cairn_pcsection_schema schema;
    enum cairn_byte_order byte_order;
    struct cairn_pcsection_entry entries[ENTRIES];
    uint8_t bytes[BYTES_MAX];
    size_t size;
} written;

static void put(uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        unsigned place = written.byte_order == CAIRN_LITTLE_ENDIAN ? i : bytes - 1 - i;
        expect(written.size < BYTES_MAX);
        written.bytes[written.size++] = (uint8_t)(value >> 8 * place);
    }
}

static void put_number(uint64_t value, unsigned bytes)
{
    if (!written.schema.is_compressed || bytes == 1) {
        put(value, bytes);
        return;
    }
    for (; value >= 0x80; value >>= 7)
        put((value & 0x7F) | 0x80, 1);
    put(value, 1);
}

static void put_entry(struct cairn_pcsection_entry *entry)
{
    const struct cairn_pcsection_schema *schema = &written.schema;
    int64_t relative = (int64_t)below(UINT32_MAX) - INT32_MAX;
    *entry = (struct cairn_pcsection_entry){.offset = written.size};
    entry->address = SECTION_ADDRESS + entry->offset + (uint64_t)relative;
    put((uint64_t)relative, schema->address_bytes);
    if (schema->has_size) {
        entry->size = random_of(4);
        put_number(entry->size, 4);
    }
    for (uint8_t i = 0; i < schema->constant_count; i++) {
        entry->constants[i] = random_of(schema->constant_bytes[i]);
        put_number(entry->constants[i], schema->constant_bytes[i]);
    }
}

static void put_section(void)
{
    struct cairn_pcsection_schema *schema = &written.schema;
    *schema = (struct cairn_pcsection_schema){.address_bytes = below(2) == 0 ? 4 : 8,
                                              .has_size = below(2) == 0,
                                              .is_compressed = below(2) == 0};
    schema->constant_count = (uint8_t)below(CAIRN_PCSECTION_CONSTANTS_MAX + 1);
    for (uint8_t i = 0; i < schema->constant_count; i++)
        schema->constant_bytes[i] = (uint8_t)(1 + below(8));
    written.byte_order = below(2) == 0 ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN;
    written.size = 0;
    for (unsigned i = 0; i < ENTRIES; i++)
        put_entry(&written.entries[i]);
}

/* ---- Reading ---- */

static enum cairn_status read(const struct guarded *guarded, size_t *offset,
                              struct cairn_pcsection_entry *entry, struct cairn_error *error)
{
    const struct cairn_section section = {guarded->bytes, guarded->size, written.byte_order};
    return cairn_pcsection_read(&section, SECTION_ADDRESS, &written.schema, offset, entry, error);
}

static void expect_entry(const struct cairn_pcsection_entry *entry,
                         const struct cairn_pcsection_entry *expected)
{
    expect_equal(entry->offset, expected->offset);
    expect_equal(entry->address, expected->address);
    expect_equal(entry->size, expected->size);
    expect(memcmp(entry->constants, expected->constants, sizeof entry->constants) == 0);
}

START_TEST(random_entries_are_read_as_they_were_written)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        put_section();
        struct guarded guarded = guard(written.bytes, written.size);
        struct cairn_pcsection_entry entry = {.constants = {0}};
        size_t offset = 0;
        for (unsigned i = 0; i < ENTRIES; i++) {
            expect_equal(read(&guarded, &offset, &entry, NULL), CAIRN_OK);
            expect_entry(&entry, &written.entries[i]);
        }
        expect_equal(offset, written.size);
        guard_end(&guarded);
    }
}
END_TEST

/* ---- Invalid sections ---- */

static size_t end_of(unsigned entry)
{
    return entry + 1 == ENTRIES ? written.size : written.entries[entry + 1].offset;
}

/* Entries that end before the cut are returned. */
static void expect_cut(size_t size)
{
    struct guarded guarded = guard(written.bytes, size);
    size_t offset = 0;
    for (unsigned i = 0; offset < size; i++) {
        struct cairn_pcsection_entry entry;
        struct cairn_error error = {0};
        enum cairn_status status = read(&guarded, &offset, &entry, &error);
        if (end_of(i) <= size) {
            expect_equal(status, CAIRN_OK);
            continue;
        }
        expect_equal(status, CAIRN_ERROR_TRUNCATED);
        expect_equal(offset, written.entries[i].offset);
        ck_assert_uint_ge(error.offset, offset);
        ck_assert_uint_le(error.offset, size);
        break;
    }
    guard_end(&guarded);
}

START_TEST(a_section_cut_anywhere_is_truncated_there)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < 10; round++) {
        put_section();
        for (size_t size = 0; size < written.size; size++)
            expect_cut(size);
    }
}
END_TEST

START_TEST(a_compressed_number_with_too_many_bits_is_refused)
{
    static const uint8_t bytes[] = {0, 0, 0, 0, 0x80, 0x80, 0x04};
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    struct cairn_pcsection_schema schema;
    struct cairn_pcsection_entry entry;
    struct cairn_error error = {0};
    size_t offset = 0;
    expect_equal(cairn_pcsection_parse_schema("instruction 4 u16 !C", &schema, NULL), CAIRN_OK);
    expect_equal(cairn_pcsection_read(&section, 0, &schema, &offset, &entry, &error),
                 CAIRN_ERROR_CORRUPT);
    expect_equal(error.offset, 4);
    ck_assert_str_eq(error.message,
                     "the entry at byte 0: a constant has more bits than the schema says");
}
END_TEST

/* ---- Schemas ---- */

static void write_schema(const struct cairn_pcsection_schema *schema, char *text)
{
    int length = snprintf(text, TEXT_BYTES, "%s %u", schema->has_size ? "function" : "instruction",
                          schema->address_bytes);
    for (uint8_t i = 0; i < schema->constant_count; i++)
        length += snprintf(text + length, TEXT_BYTES - (size_t)length, " u%d",
                           8 * schema->constant_bytes[i]);
    if (schema->is_compressed)
        snprintf(text + length, TEXT_BYTES - (size_t)length, " !C");
}

START_TEST(a_schema_is_what_its_text_says)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        char text[TEXT_BYTES];
        struct cairn_pcsection_schema schema;
        struct cairn_error error = {0};
        put_section();
        write_schema(&written.schema, text);
        ck_assert_msg(cairn_pcsection_parse_schema(text, &schema, &error) == CAIRN_OK, "%s",
                      error.message);
        expect_equal(schema.address_bytes, written.schema.address_bytes);
        expect(schema.has_size == written.schema.has_size);
        expect(schema.is_compressed == written.schema.is_compressed);
        expect_equal(schema.constant_count, written.schema.constant_count);
        ck_assert_mem_eq(schema.constant_bytes, written.schema.constant_bytes,
                         sizeof schema.constant_bytes);
    }
}
END_TEST

static const struct {
    const char *text;
    size_t offset;
    const char *sentence; /* a part of it */
} refused[] = {
    {"", 0, "has '' where 'function' or 'instruction' should be"},
    {"functions 4", 0, "has 'functions' where 'function' or 'instruction'"},
    {"function", 8, "has '' where the address's bytes, '4' or '8', should be"},
    {"function 16", 9, "has '16' where the address's bytes"},
    {"function 4 i8", 11, "has 'i8' where a constant"},
    {"function 4 u12", 11, "has 'u12' where a constant"},
    {"function 4 !C u8", 14, "has 'u8' where the end, after '!C', should be"},
    {"instruction 4 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u16", 62,
     "has 'u16' where the end, after 16 constants, should be"},
};

START_TEST(errors_of_schemas_say_where)
{
    struct cairn_pcsection_schema schema = {.address_bytes = 77};
    struct cairn_error error = {0};
    expect_equal(cairn_pcsection_parse_schema(refused[_i].text, &schema, &error),
                 CAIRN_ERROR_ARGUMENT);
    expect_equal(error.offset, refused[_i].offset);
    expect_equal(schema.address_bytes, 77);
    if (strstr(error.message, refused[_i].sentence) == NULL)
        ck_abort_msg("no '%s' in '%s'", refused[_i].sentence, error.message);
}
END_TEST

START_TEST(an_invalid_schema_reads_nothing)
{
    static const uint8_t bytes[8];
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    const struct cairn_pcsection_schema schemas[] = {
        {.address_bytes = 2},
        {.address_bytes = 4, .constant_count = CAIRN_PCSECTION_CONSTANTS_MAX + 1},
        {.address_bytes = 4, .constant_count = 1},
        {.address_bytes = 4, .constant_count = 1, .constant_bytes = {9}},
    };
    struct cairn_pcsection_entry entry;
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        size_t offset = 0;
        expect_equal(cairn_pcsection_read(&section, 0, &schemas[i], &offset, &entry, NULL),
                     CAIRN_ERROR_ARGUMENT);
        expect_equal(offset, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("PC sections");
    TCase *tests = tcase_create("entries");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_entries_are_read_as_they_were_written);
    tcase_add_test(tests, a_section_cut_anywhere_is_truncated_there);
    tcase_add_test(tests, a_compressed_number_with_too_many_bits_is_refused);
    tcase_add_test(tests, a_schema_is_what_its_text_says);
    tcase_add_loop_test(tests, errors_of_schemas_say_where, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tests, an_invalid_schema_reads_nothing);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
