/*
 * Tests of tables of PC sections. Random sections of random schemas, with overlapping functions,
 * several entries at a PC and runs that share their constants, are compared with the entries that
 * were written. Other tests use sections that do not match their schema, and let every allocation
 * fail.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/pc_table.h"
#include "runtime_support.h"
#include "stackmap_support.h"

#include <cairn/pc_table.h>
#include <stdio.h>
#include <string.h>

enum {
    SECTIONS_MAX = 4,
    ENTRIES_MAX = 400,
    GROUPS_MAX = 40,
    RUN_MAX = 4,
    CONSTANTS_MAX = 3,
    FOUND_MAX = ENTRIES_MAX,
    CODE_BYTES = 4096,
    ROUNDS = 400,
    QUESTIONS = 200
};

#define CODE UINT64_C(0x7F0000100000)
#define DATA UINT64_C(0x7F0000400000)

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

/* ---- Writing ---- */

struct written_entry {
    uint32_t section;
    struct cairn_pcsection_entry value;
};

static struct {
    struct sample_section bytes[SECTIONS_MAX];
    struct cairn_pc_table_section sections[SECTIONS_MAX];
    uint32_t section_count;
    struct written_entry entries[ENTRIES_MAX];
    uint32_t entry_count;
    size_t values[ENTRIES_MAX]; /* offsets at which the constants of a section's groups begin */
    uint32_t group_count;
    bool knows_code;
} written;

static void put_number(struct sample_section *section, bool is_compressed, uint64_t value,
                       size_t size)
{
    if (!is_compressed || size == 1) {
        section_put(section, value, size);
        return;
    }
    for (; value >= 0x80; value >>= 7)
        section_put(section, (value & 0x7F) | 0x80, 1);
    section_put(section, value, 1);
}

/* Returns a constant as a front end would use: most are small. */
static uint64_t random_constant(uint8_t bytes)
{
    uint64_t value = (uint64_t)below(1u << 16) << 8 * below(4);
    return bytes == 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

static struct cairn_pcsection_schema random_schema(void)
{
    struct cairn_pcsection_schema schema = {.address_bytes = below(2) == 0 ? 4 : 8,
                                            .has_size = below(2) == 0,
                                            .is_compressed = below(2) == 0,
                                            .constant_count = (uint8_t)below(CONSTANTS_MAX + 1)};
    for (uint8_t i = 0; i < schema.constant_count; i++)
        schema.constant_bytes[i] = (uint8_t)(1 + below(8));
    return schema;
}

static void put_group(uint32_t number)
{
    struct sample_section *bytes = &written.bytes[number];
    const struct cairn_pc_table_section *section = &written.sections[number];
    const struct cairn_pcsection_schema *schema = &section->schema;
    bool may_be_run = written.knows_code && !schema->has_size;
    uint32_t first = written.entry_count;
    uint64_t address = CODE + below(below(2) == 0 ? 32 : CODE_BYTES - 8 * RUN_MAX);
    for (uint32_t left = may_be_run ? 1 + below(RUN_MAX) : 1; left > 0; left--) {
        struct written_entry *entry = &written.entries[written.entry_count++];
        *entry = (struct written_entry){.section = number};
        entry->value.offset = bytes->size;
        entry->value.address = address;
        section_put(bytes, entry->value.address - (section->address + bytes->size),
                    schema->address_bytes);
        address += 1 + below(8);
    }
    uint64_t size = schema->has_size ? below(below(4) == 0 ? CODE_BYTES : 64) : 0;
    if (schema->has_size)
        put_number(bytes, schema->is_compressed, size, 4);
    written.values[written.group_count++] = bytes->size;
    for (uint8_t i = 0; i < schema->constant_count; i++) {
        uint64_t constant = random_constant(schema->constant_bytes[i]);
        put_number(bytes, schema->is_compressed, constant, schema->constant_bytes[i]);
        for (uint32_t k = first; k < written.entry_count; k++)
            written.entries[k].value.constants[i] = constant;
    }
    for (uint32_t k = first; k < written.entry_count; k++)
        written.entries[k].value.size = size;
}

static const char *const names[SECTIONS_MAX] = {"first", "second", "second", ""};

/* Whether the constants at this place could be mistaken for an address of code, and the following
 * bytes for an entry's constants. That happens in one of some thousand sections. */
static bool leads_to_code(const struct sample_section *bytes, uint64_t address, uint8_t width,
                          size_t at)
{
    uint64_t word = 0;
    if (at + width > bytes->size)
        return false;
    for (size_t i = 0; i < width; i++) {
        size_t place = bytes->byte_order == CAIRN_BIG_ENDIAN ? i : width - 1u - i;
        word = word << 8 | bytes->bytes[at + place];
    }
    if (width == 4)
        word = (uint64_t)(int64_t)(int32_t)(uint32_t)word;
    word += address + at;
    return word >= CODE && word <= CODE + CODE_BYTES;
}

static bool is_ambiguous(uint32_t number)
{
    const struct cairn_pc_table_section *section = &written.sections[number];
    for (uint32_t i = 0; i < written.group_count; i++)
        if (leads_to_code(&written.bytes[number], section->address, section->schema.address_bytes,
                          written.values[i]) &&
            !section->schema.has_size && section->schema.constant_count > 0)
            return true;
    return false;
}

static void try_section(uint32_t number)
{
    struct sample_section *bytes = &written.bytes[number];
    *bytes = (struct sample_section){.byte_order =
                                         below(4) == 0 ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN};
    struct cairn_pc_table_section *section = &written.sections[number];
    *section = (struct cairn_pc_table_section){
        .name = names[number], .address = DATA + number * UINT64_C(0x10000) + below(16)};
    written.group_count = 0;
    bool is_raw = below(8) == 0;
    if (!is_raw)
        section->schema = random_schema();
    for (uint32_t left = below(GROUPS_MAX); left > 0; left--) {
        if (is_raw)
            section_put(bytes, below(256), 1);
        else if (written.entry_count + RUN_MAX <= ENTRIES_MAX)
            put_group(number);
    }
    if (written.knows_code)
        for (uint32_t zeros = below(3) == 0 ? below(40) : 0; zeros > 0; zeros--)
            section_put(bytes, 0, 1);
}

static void put_section(uint32_t number)
{
    uint32_t before = written.entry_count;
    try_section(number);
    while (written.knows_code && is_ambiguous(number)) {
        section_free(&written.bytes[number]);
        written.entry_count = before;
        try_section(number);
    }
}

/* The bytes end at an inaccessible page. */
static struct guarded guarded[SECTIONS_MAX];

static void put_all(void)
{
    written.section_count = below(SECTIONS_MAX + 1);
    written.entry_count = 0;
    written.knows_code = below(2) == 0;
    for (uint32_t i = 0; i < written.section_count; i++) {
        put_section(i);
        guarded[i] = guard(written.bytes[i].bytes, written.bytes[i].size);
        written.sections[i].section =
            (struct cairn_section){guarded[i].bytes, guarded[i].size, written.bytes[i].byte_order};
        section_free(&written.bytes[i]);
    }
}

static void forget_all(void)
{
    for (uint32_t i = 0; i < written.section_count; i++)
        guard_end(&guarded[i]);
}

static bool is_code(uint64_t address, void *user)
{
    ck_assert_ptr_eq(user, &written);
    return address >= CODE && address < CODE + CODE_BYTES;
}

static enum cairn_status create(struct counting_allocator *allocator, cairn_pc_table **table,
                                struct cairn_error *error)
{
    struct cairn_pc_table_options options = {.allocator = counting(allocator)};
    if (written.knows_code) {
        options.is_code = is_code;
        options.user = &written;
    }
    return cairn_pc_table_create(written.sections, written.section_count, &options, table, error);
}

/* ---- Comparing ---- */

static uint32_t number_of(const cairn_pc_table *table, const struct cairn_pc_table_section *section)
{
    for (uint32_t i = 0; cairn_pc_table_section(table, i) != NULL; i++)
        if (cairn_pc_table_section(table, i) == section)
            return i;
    ck_abort_msg("a section that is not the table's");
}

static void expect_entry(const cairn_pc_table *table, const struct cairn_pc_table_entry *found,
                         const struct written_entry *expected)
{
    expect(number_of(table, found->section) == expected->section);
    expect(found->value.address == expected->value.address);
    expect(found->value.size == expected->value.size);
    for (uint32_t i = 0; i < CONSTANTS_MAX; i++)
        expect(found->value.constants[i] == expected->value.constants[i]);
}

/* Computes the expected result of a lookup by linear search. */
static size_t search(uint64_t pc, const struct written_entry **found)
{
    size_t count = 0;
    for (uint32_t i = 0; i < written.entry_count; i++) {
        const struct cairn_pcsection_entry *value = &written.entries[i].value;
        bool is_function = written.sections[written.entries[i].section].schema.has_size;
        bool holds = is_function ? pc >= value->address && pc - value->address < value->size
                                 : pc == value->address;
        if (holds)
            found[count++] = &written.entries[i];
    }
    return count;
}

static bool is_function(const struct written_entry *entry)
{
    return written.sections[entry->section].schema.has_size;
}

/* Functions come first, sorted by their beginning, and all other entries in the order in which they
 * were written. */
static bool comes_before(const struct written_entry *left, const struct written_entry *right)
{
    if (is_function(left) != is_function(right))
        return is_function(left);
    return left->value.address < right->value.address;
}

static void sort(const struct written_entry **entries, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && comes_before(entries[k], entries[k - 1]); k--) {
            const struct written_entry *held = entries[k];
            entries[k] = entries[k - 1];
            entries[k - 1] = held;
        }
}

static void ask(const cairn_pc_table *table, uint64_t pc)
{
    static const struct written_entry *expected[ENTRIES_MAX];
    static struct cairn_pc_table_entry found[FOUND_MAX];
    size_t count = search(pc, expected);
    sort(expected, count);
    expect(cairn_pc_table_find(table, pc, NULL, 0) == count);
    size_t capacity = below(2) == 0 ? FOUND_MAX : below(4);
    expect(cairn_pc_table_find(table, pc, found, capacity) == count);
    for (size_t i = 0; i < count && i < capacity; i++)
        expect_entry(table, &found[i], expected[i]);
}

static void expect_all_in_order(const cairn_pc_table *table)
{
    ck_assert_uint_eq(support_pc_entry_count(table), written.entry_count);
    uint64_t last = 0;
    for (uint32_t i = 0; i < written.entry_count; i++) {
        uint64_t address = support_pc_entry(table, i).value.address;
        expect(address >= last);
        last = address;
    }
    struct cairn_pc_table_entry entry;
    ck_assert(!cairn_pc_table_entry(table, written.entry_count, &entry));
}

static void expect_sections(const cairn_pc_table *table)
{
    ck_assert_uint_eq(support_pc_section_count(table), written.section_count);
    ck_assert_ptr_null(cairn_pc_table_section(table, written.section_count));
    for (uint32_t i = 0; i < written.section_count; i++) {
        const struct cairn_pc_table_section *section = cairn_pc_table_section(table, i);
        ck_assert_str_eq(section->name, names[i]);
        ck_assert_ptr_eq(section->section.bytes, written.sections[i].section.bytes);
        ck_assert_uint_eq(section->address, written.sections[i].address);
    }
}

START_TEST(random_entries_are_found_by_pc)
{
    random_state = sample_seed();
    for (int round = 0; round < ROUNDS; round++) {
        struct counting_allocator allocator = {.fail_at = 0};
        struct cairn_error error;
        cairn_pc_table *table = NULL;
        put_all();
        ck_assert_msg(create(&allocator, &table, &error) == CAIRN_OK, "%s", error.message);
        ck_assert_uint_eq(allocator.blocks, 1);
        ck_assert_uint_eq(allocator.bytes, pc_table_size_bytes(table));
        expect_sections(table);
        expect_all_in_order(table);
        for (int i = 0; i < QUESTIONS; i++)
            ask(table, CODE - 8 + below(CODE_BYTES + 16));
        for (uint32_t i = 0; i < written.entry_count; i++)
            ask(table, written.entries[i].value.address);
        ask(table, 0);
        ask(table, UINT64_MAX);
        cairn_pc_table_destroy(table);
        ck_assert_uint_eq(allocator.blocks, 0);
        forget_all();
    }
}
END_TEST

START_TEST(each_failed_allocation_is_reported)
{
    random_state = sample_seed();
    for (int round = 0; round < 20; round++) {
        put_all();
        for (size_t fail_at = 1;; fail_at++) {
            struct counting_allocator allocator = {.fail_at = fail_at};
            cairn_pc_table *table = NULL;
            enum cairn_status status = create(&allocator, &table, NULL);
            if (status == CAIRN_OK)
                cairn_pc_table_destroy(table);
            else
                ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
            ck_assert_uint_eq(allocator.blocks, 0);
            if (status == CAIRN_OK)
                break;
            ck_assert_ptr_null(table);
        }
        forget_all();
    }
}
END_TEST

/* ---- One section, written by hand ---- */

static uint8_t hand_bytes[64];

static struct cairn_pc_table_section by_hand(size_t size, const char *schema)
{
    struct cairn_pc_table_section section = {
        .name = "hand", .section = {hand_bytes, size, CAIRN_LITTLE_ENDIAN}, .address = DATA};
    ck_assert_ok(cairn_pcsection_parse_schema(schema, &section.schema, NULL));
    return section;
}

static void put_hand(size_t *at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hand_bytes[(*at)++] = (uint8_t)(value >> 8 * i);
}

static void put_address(size_t *at, uint64_t address, size_t size)
{
    put_hand(at, address - (DATA + *at), size);
}

static enum cairn_status create_by_hand(const struct cairn_pc_table_section *section,
                                        bool knows_code, cairn_pc_table **table,
                                        struct cairn_error *error)
{
    const struct cairn_pc_table_options options = {.is_code = knows_code ? is_code : NULL,
                                                   .user = &written};
    return cairn_pc_table_create(section, 1, &options, table, error);
}

START_TEST(instructions_are_found_among_functions_of_one_address)
{
    static const uint64_t sizes[] = {0, 5, 0};
    static const struct {
        const char *schema;
        size_t first;
        size_t end;
    } parts[] = {{"function 4", 0, 24},
                 {"instruction 4", 24, 32},
                 {"function 4", 32, 40},
                 {"instruction 4", 40, 44}};
    struct cairn_pc_table_section sections[4];
    struct cairn_pc_table_entry found[8];
    cairn_pc_table *table = NULL;
    size_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        put_address(&at, CODE, 4);
        put_hand(&at, sizes[i], 4);
    }
    put_address(&at, CODE, 4);
    put_address(&at, CODE, 4);
    put_address(&at, CODE, 4);
    put_hand(&at, 9, 4);
    put_address(&at, CODE, 4);
    for (size_t i = 0; i < 4; i++) {
        sections[i] = by_hand(parts[i].end - parts[i].first, parts[i].schema);
        sections[i].section.bytes += parts[i].first;
        sections[i].address += parts[i].first;
    }
    ck_assert_ok(cairn_pc_table_create(sections, 4, NULL, &table, NULL));
    for (size_t capacity = 0; capacity <= 8; capacity++) {
        memset(found, 0, sizeof found);
        ck_assert_uint_eq(cairn_pc_table_find(table, CODE, found, capacity), 5);
        ck_assert_uint_eq(found[0].value.size, capacity > 0 ? 5 : 0);
        ck_assert_uint_eq(found[1].value.size, capacity > 1 ? 9 : 0);
        ck_assert_uint_eq(found[3].value.offset, capacity > 3 ? 4 : 0);
        for (size_t i = 2; i < 8; i++)
            ck_assert(i >= capacity || i >= 5
                          ? found[i].section == NULL
                          : number_of(table, found[i].section) == (i < 4 ? 1 : 3));
    }
    ck_assert_uint_eq(cairn_pc_table_find(table, CODE + 4, found, 8), 2);
    ck_assert_uint_eq(cairn_pc_table_find(table, CODE + 5, found, 8), 1);
    ck_assert_uint_eq(cairn_pc_table_find(table, CODE + 9, found, 8), 0);
    cairn_pc_table_destroy(table);
}
END_TEST

START_TEST(an_address_that_is_not_code_is_refused_where_it_is)
{
    size_t at = 0;
    struct cairn_error error;
    cairn_pc_table *table = NULL;
    put_address(&at, CODE + 1, 4);
    put_hand(&at, 7, 1);
    put_address(&at, CODE + CODE_BYTES + 1, 4);
    put_hand(&at, 7, 1);
    struct cairn_pc_table_section section = by_hand(at, "instruction 4 u8");
    ck_assert_int_eq(create_by_hand(&section, true, &table, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_null(table);
    ck_assert_uint_eq(error.offset, 5);
    ck_assert_ptr_nonnull(strstr(error.message, "'hand', entry 1"));
    ck_assert_ptr_nonnull(strstr(error.message, "at byte 5"));
    ck_assert_ok(create_by_hand(&section, false, &table, &error));
    cairn_pc_table_destroy(table);
}
END_TEST

START_TEST(a_section_that_ends_inside_an_entry_is_refused)
{
    size_t at = 0;
    struct cairn_error error;
    cairn_pc_table *table = NULL;
    put_address(&at, CODE + 1, 4);
    put_hand(&at, 7, 2);
    for (int knows_code = 0; knows_code < 2; knows_code++) {
        struct cairn_pc_table_section section = by_hand(at, "instruction 4 u32");
        ck_assert_int_eq(create_by_hand(&section, knows_code != 0, &table, &error),
                         CAIRN_ERROR_TRUNCATED);
        ck_assert_uint_eq(error.offset, 4);
        ck_assert_ptr_nonnull(strstr(error.message, "'hand', entry 0"));
        section = by_hand(3, "instruction 4 u32");
        ck_assert_int_eq(create_by_hand(&section, knows_code != 0, &table, &error),
                         CAIRN_ERROR_TRUNCATED);
    }
}
END_TEST

START_TEST(a_number_that_is_too_long_is_refused)
{
    size_t at = 0;
    struct cairn_error error;
    cairn_pc_table *table = NULL;
    put_address(&at, CODE + 1, 8);
    put_hand(&at, 0x04FFFF, 3);
    struct cairn_pc_table_section section = by_hand(at, "instruction 8 u16 !C");
    ck_assert_int_eq(create_by_hand(&section, true, &table, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(error.offset, 8);
}
END_TEST

START_TEST(functions_that_end_nowhere_are_refused)
{
    size_t at = 0;
    struct cairn_error error;
    cairn_pc_table *table = NULL;
    put_address(&at, UINT64_MAX - 10, 8);
    put_hand(&at, 12, 4);
    struct cairn_pc_table_section section = by_hand(at, "function 8");
    ck_assert_int_eq(create_by_hand(&section, false, &table, &error), CAIRN_ERROR_CORRUPT);
    hand_bytes[8] = 11;
    ck_assert_ok(create_by_hand(&section, false, &table, &error));
    struct cairn_pc_table_entry entry;
    ck_assert_uint_eq(cairn_pc_table_find(table, UINT64_MAX, &entry, 1), 1);
    ck_assert_uint_eq(cairn_pc_table_find(table, UINT64_MAX - 11, &entry, 1), 0);
    cairn_pc_table_destroy(table);
}
END_TEST

START_TEST(entries_may_be_almost_four_gigabytes_apart)
{
    size_t at = 0;
    struct cairn_error error;
    cairn_pc_table *table = NULL;
    put_address(&at, CODE, 8);
    put_address(&at, CODE + UINT32_MAX - 1, 8);
    struct cairn_pc_table_section section = by_hand(at, "instruction 8");
    ck_assert_ok(create_by_hand(&section, false, &table, &error));
    struct cairn_pc_table_entry entry;
    ck_assert_uint_eq(cairn_pc_table_find(table, CODE + UINT32_MAX - 1, &entry, 1), 1);
    ck_assert_uint_eq(cairn_pc_table_find(table, CODE + UINT32_MAX, &entry, 1), 0);
    ck_assert_uint_eq(cairn_pc_table_find(table, CODE + (UINT64_C(1) << 32), &entry, 1), 0);
    cairn_pc_table_destroy(table);
    at = 8;
    put_address(&at, CODE + UINT32_MAX, 8);
    ck_assert_int_eq(create_by_hand(&section, false, &table, &error), CAIRN_ERROR_RANGE);
}
END_TEST

START_TEST(an_invalid_schema_is_refused)
{
    struct cairn_error error;
    cairn_pc_table *table = NULL;
    struct cairn_pc_table_section section = by_hand(0, "instruction 8");
    section.schema.address_bytes = 5;
    ck_assert_int_eq(create_by_hand(&section, false, &table, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_pc_table_create(NULL, 1, NULL, &table, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_pc_table_create(NULL, 0, NULL, NULL, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(table);
}
END_TEST

START_TEST(no_table_is_an_empty_one)
{
    struct cairn_pc_table_entry entry;
    ck_assert_uint_eq(pc_table_size_bytes(NULL), 0);
    ck_assert_uint_eq(support_pc_section_count(NULL), 0);
    ck_assert_uint_eq(support_pc_entry_count(NULL), 0);
    ck_assert_ptr_null(cairn_pc_table_section(NULL, 0));
    ck_assert(!cairn_pc_table_entry(NULL, 0, &entry));
    ck_assert_uint_eq(cairn_pc_table_find(NULL, CODE, &entry, 1), 0);
    cairn_pc_table_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pc_table");
    TCase *tests = tcase_create("pc_table");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_entries_are_found_by_pc);
    tcase_add_test(tests, each_failed_allocation_is_reported);
    tcase_add_test(tests, instructions_are_found_among_functions_of_one_address);
    tcase_add_test(tests, an_address_that_is_not_code_is_refused_where_it_is);
    tcase_add_test(tests, a_section_that_ends_inside_an_entry_is_refused);
    tcase_add_test(tests, a_number_that_is_too_long_is_refused);
    tcase_add_test(tests, functions_that_end_nowhere_are_refused);
    tcase_add_test(tests, entries_may_be_almost_four_gigabytes_apart);
    tcase_add_test(tests, an_invalid_schema_is_refused);
    tcase_add_test(tests, no_table_is_an_empty_one);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
