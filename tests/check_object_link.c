/*
 * Tests of linking several objects: how definitions are merged, and where everything is.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "link_support.h"

#include <stdio.h>
#include <stdlib.h>

enum { WRITABLE = SHF_ALLOC | SHF_WRITE, CODE = SHF_ALLOC | SHF_EXECINSTR };

static struct link_object one;
static struct link_object other;
static struct link_host host;

static void set_up(void)
{
    memset(&host, 0, sizeof host);
    link_object_begin(&one, CAIRN_ARCHITECTURE_X86_64);
    link_object_begin(&other, CAIRN_ARCHITECTURE_X86_64);
}

static void tear_down(void) { link_end(&host); }

static void expect_added(struct link_object *object, const char *name)
{
    host.file = name;
    ck_assert_msg(link_add(&host, object) == CAIRN_OK, "%s", host.error.message);
}

static void expect_linked(void)
{
    expect_added(&one, "one.o");
    expect_added(&other, "other.o");
    ck_assert_msg(link_finish(&host) == CAIRN_OK, "%s", host.error.message);
}

/* Adds `size` bytes of data with a symbol at their begin. */
static uint32_t define(struct link_object *object, const char *name, unsigned binding)
{
    uint32_t section = link_object_section(object, ".data", SHT_PROGBITS, WRITABLE, 16);
    link_object_symbol(object, name, binding, STT_OBJECT, section, 0, 16);
    return section;
}

/* Adds a section `.data` with the address of a symbol. */
static uint32_t use(struct link_object *object, uint32_t symbol)
{
    uint32_t section = link_object_section(object, ".data", SHT_PROGBITS, WRITABLE, 8);
    link_object_relocation(object, section, 0, R_X86_64_64, symbol, 0);
    return section;
}

/* Adds a section with the address of a symbol that the object does not define. */
static uint32_t refer(struct link_object *object, const char *name, unsigned binding)
{
    return use(object, link_object_symbol(object, name, binding, STT_NOTYPE, SHN_UNDEF, 0, 0));
}

static uint64_t address_of(int image, uint32_t section)
{
    return host.link->images[image]->sections[section].memory.address;
}

static uint64_t used_address(int image, uint32_t section)
{
    return link_u64(&host, address_of(image, section));
}

static bool is_zero(uint64_t address, size_t size)
{
    const uint8_t *bytes = link_at(&host, address);
    size_t zeros = 0;
    while (zeros < size && bytes[zeros] == 0)
        zeros++;
    return zeros == size;
}

/* ---- Definitions ---- */

START_TEST(test_symbol_of_one_object_is_found_by_another)
{
    uint32_t user = refer(&one, "f", STB_GLOBAL);
    uint32_t definition = define(&other, "f", STB_GLOBAL);
    expect_linked();
    ck_assert_uint_eq(used_address(0, user), address_of(1, definition));
    ck_assert_str_eq(host.asked, "");
}
END_TEST

START_TEST(test_first_of_two_weak_definitions_is_used)
{
    uint32_t first = define(&one, "f", STB_WEAK);
    define(&other, "f", STB_WEAK);
    uint32_t user = use(&other, 1);
    expect_linked();
    ck_assert_uint_eq(used_address(1, user), address_of(0, first));
}
END_TEST

START_TEST(test_strong_definition_replaces_a_weak_one)
{
    bool is_first = _i == 0;
    uint32_t strong = define(is_first ? &one : &other, "f", STB_GLOBAL);
    define(is_first ? &other : &one, "f", STB_WEAK);
    uint32_t users[] = {use(&one, 1), use(&other, 1)};
    expect_linked();
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(used_address(i, users[i]), address_of(!is_first, strong));
}
END_TEST

START_TEST(test_two_strong_definitions_conflict)
{
    define(&one, "f", STB_GLOBAL);
    define(&other, "f", STB_GLOBAL);
    expect_added(&one, "one.o");
    host.file = "other.o";
    ck_assert_int_eq(link_add(&host, &other), CAIRN_ERROR_CONFLICT);
    ck_assert_str_eq(host.error.message, "other.o: 'f' is defined by both one.o and other.o");
}
END_TEST

START_TEST(test_first_of_two_comdat_definitions_is_used)
{
    uint32_t first = define(&one, "f", STB_GLOBAL);
    link_object_group(&one, 1, first);
    uint32_t second = define(&other, "f", STB_GLOBAL);
    link_object_group(&other, 1, second);
    uint32_t user = use(&other, 1);
    expect_linked();
    ck_assert_uint_eq(used_address(1, user), address_of(0, first));
}
END_TEST

START_TEST(test_comdat_definition_conflicts_with_one_outside_of_groups)
{
    uint32_t first = define(&one, "f", STB_GLOBAL);
    link_object_group(&one, 1, first);
    define(&other, "f", STB_GLOBAL);
    expect_added(&one, NULL);
    host.file = NULL;
    ck_assert_int_eq(link_add(&host, &other), CAIRN_ERROR_CONFLICT);
    ck_assert_str_eq(host.error.message, "'f' is defined by both an object without a name and an "
                                         "object without a name");
}
END_TEST

START_TEST(test_local_symbols_with_the_same_name_are_separate)
{
    uint32_t sections[] = {define(&one, "f", STB_LOCAL), define(&other, "f", STB_LOCAL)};
    uint32_t users[] = {use(&one, 1), use(&other, 1)};
    expect_linked();
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(used_address(i, users[i]), address_of(i, sections[i]));
}
END_TEST

START_TEST(test_most_restrictive_visibility_is_kept)
{
    refer(&one, "f", STB_GLOBAL);
    link_object_other(&one, STV_HIDDEN);
    define(&other, "f", STB_GLOBAL);
    link_object_other(&other, STV_PROTECTED);
    expect_linked();
    ck_assert_int_eq(link_symbol(&host, "f")->visibility, ELF_HIDDEN);
}
END_TEST

START_TEST(test_absolute_symbol_has_its_value)
{
    link_object_symbol(&one, "f", STB_GLOBAL, STT_NOTYPE, SHN_ABS, 0x123456789, 0);
    uint32_t user = refer(&other, "f", STB_GLOBAL);
    expect_linked();
    ck_assert_uint_eq(used_address(1, user), 0x123456789);
}
END_TEST

/* ---- Common symbols ---- */

static void add_common(struct link_object *object, uint64_t size, uint64_t alignment)
{
    link_object_symbol(object, "c", STB_GLOBAL, STT_OBJECT, SHN_COMMON, alignment, size);
}

START_TEST(test_common_symbols_share_the_largest_size_and_alignment)
{
    add_common(&one, 100, 64);
    add_common(&other, 300, 8);
    uint32_t users[] = {use(&one, 1), use(&other, 1)};
    expect_linked();
    uint64_t address = link_symbol(&host, "c")->address;
    ck_assert_uint_eq(address % 64, 0);
    ck_assert_uint_eq(used_address(0, users[0]), address);
    ck_assert_uint_eq(used_address(1, users[1]), address);
    ck_assert(is_zero(address, 300));
}
END_TEST

START_TEST(test_large_common_symbol_is_a_common_one)
{
    enum { SHN_X86_64_LCOMMON = 0xFF02 };
    link_object_symbol(&one, "c", STB_GLOBAL, STT_OBJECT, SHN_X86_64_LCOMMON, 32, 64);
    uint32_t user = use(&one, 1);
    expect_linked();
    ck_assert_uint_ne(used_address(0, user), 0);
    ck_assert_int_eq(link_symbol(&host, "c")->definition, OBJECT_COMMON);
}
END_TEST

START_TEST(test_strong_definition_replaces_a_common_one)
{
    bool is_first = _i == 0;
    add_common(is_first ? &one : &other, 100, 64);
    uint32_t strong = define(is_first ? &other : &one, "c", STB_GLOBAL);
    expect_linked();
    ck_assert_uint_eq(link_symbol(&host, "c")->address, address_of(is_first, strong));
}
END_TEST

START_TEST(test_common_definition_replaces_a_weak_one)
{
    uint32_t weak = define(&one, "c", STB_WEAK);
    add_common(&other, 100, 64);
    expect_linked();
    ck_assert_uint_ne(link_symbol(&host, "c")->address, address_of(0, weak));
    ck_assert_uint_eq(link_symbol(&host, "c")->size, 100);
}
END_TEST

/* ---- Symbols that no object defines ---- */

START_TEST(test_all_undefined_symbols_are_named_and_nothing_is_allocated)
{
    refer(&one, "f", STB_GLOBAL);
    refer(&one, "g", STB_GLOBAL);
    refer(&other, "g", STB_GLOBAL);
    refer(&other, "h", STB_GLOBAL);
    expect_added(&one, "one.o");
    expect_added(&other, "other.o");
    ck_assert_int_eq(link_finish(&host), CAIRN_ERROR_NOT_FOUND);
    ck_assert_str_eq(host.error.message, "3 undefined symbols: f, g, h");
    ck_assert_str_eq(host.undefined, "f g h ");
    ck_assert_uint_eq(host.block_count, 0);
}
END_TEST

START_TEST(test_undefined_symbols_that_do_not_fit_are_counted)
{
    char name[64];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "a_rather_long_name_of_a_function_number_%d", i);
        refer(i < 4 ? &one : &other, name, STB_GLOBAL);
    }
    expect_added(&one, "one.o");
    expect_added(&other, "other.o");
    ck_assert_int_eq(link_finish(&host), CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(host.error.message, "8 undefined symbols: a_rather"));
    ck_assert_ptr_nonnull(strstr(host.error.message, "number_2 and 5 more"));
}
END_TEST

START_TEST(test_unused_undefined_symbol_is_not_looked_up)
{
    link_object_symbol(&one, "f", STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0, 0);
    expect_linked();
    ck_assert_str_eq(host.asked, "");
}
END_TEST

START_TEST(test_weak_undefined_symbol_is_null)
{
    uint32_t user = refer(&one, "f", STB_WEAK);
    expect_linked();
    ck_assert_uint_eq(used_address(0, user), 0);
    ck_assert_str_eq(host.asked, "f ");
    ck_assert_str_eq(host.undefined, "");
}
END_TEST

START_TEST(test_symbol_of_the_host_is_looked_up_once)
{
    link_host_symbol(&host, "f", 0x1234);
    uint32_t users[] = {refer(&one, "f", STB_GLOBAL), refer(&other, "f", STB_WEAK)};
    expect_linked();
    ck_assert_uint_eq(used_address(0, users[0]), 0x1234);
    ck_assert_uint_eq(used_address(1, users[1]), 0x1234);
    ck_assert_str_eq(host.asked, "f ");
}
END_TEST

/* ---- Symbols that linkers define ---- */

START_TEST(test_sections_with_one_identifier_are_adjacent)
{
    uint32_t parts[] = {link_object_section(&one, "names", SHT_PROGBITS, WRITABLE, 16),
                        link_object_section(&one, ".data", SHT_PROGBITS, WRITABLE, 64),
                        link_object_section(&one, "names", SHT_PROGBITS, WRITABLE, 24)};
    uint32_t last = link_object_section(&other, "names", SHT_PROGBITS, WRITABLE, 8);
    uint32_t start = refer(&one, "__start_names", STB_GLOBAL);
    uint32_t stop = refer(&other, "__stop_names", STB_WEAK);
    expect_linked();
    uint64_t begin = address_of(0, parts[0]);
    ck_assert_uint_eq(address_of(0, parts[2]), begin + 16);
    ck_assert_uint_eq(address_of(1, last), begin + 40);
    ck_assert_uint_eq(used_address(0, start), begin);
    ck_assert_uint_eq(used_address(1, stop), begin + 48);
    ck_assert_str_eq(host.asked, "");
}
END_TEST

START_TEST(test_sections_with_one_identifier_are_data_if_one_of_them_is)
{
    bool is_first = _i == 0;
    link_object_section(is_first ? &one : &other, "names", SHT_PROGBITS, WRITABLE, 16);
    link_object_section(is_first ? &other : &one, "names", SHT_PROGBITS, SHF_ALLOC, 16);
    expect_linked();
    ck_assert_uint_eq(host.block_count, 1);
    ck_assert_int_eq(host.kinds[0], CAIRN_SECTION_DATA);
}
END_TEST

START_TEST(test_empty_sections_with_one_identifier_get_the_kind_of_the_others)
{
    uint32_t empty = link_object_section(&one, "names", SHT_PROGBITS, CODE, 0);
    uint32_t data = link_object_section(&other, "names", SHT_PROGBITS, WRITABLE, 16);
    expect_linked();
    ck_assert_uint_eq(address_of(0, empty), address_of(1, data));
    ck_assert_int_eq(host.link->images[0]->sections[empty].kind, CAIRN_SECTION_DATA);
}
END_TEST

START_TEST(test_bounds_of_a_section_that_does_not_exist_are_undefined)
{
    refer(&one, "__start_names", STB_GLOBAL);
    refer(&other, "__stop_names", STB_WEAK);
    expect_added(&one, NULL);
    expect_added(&other, NULL);
    ck_assert_int_eq(link_finish(&host), CAIRN_ERROR_NOT_FOUND);
    ck_assert_str_eq(host.undefined, "__start_names ");
}
END_TEST

START_TEST(test_handle_of_the_module_is_in_its_memory)
{
    uint32_t user = refer(&one, "__dso_handle", STB_GLOBAL);
    expect_linked();
    link_at(&host, used_address(0, user));
}
END_TEST

/* ---- Contents ---- */

START_TEST(test_section_without_contents_is_zero)
{
    uint32_t section = link_object_section(&one, ".bss", SHT_NOBITS, WRITABLE, 4096);
    expect_linked();
    ck_assert(is_zero(address_of(0, section), 4096));
}
END_TEST

START_TEST(test_empty_pc_section_has_no_memory)
{
    bool is_first = _i == 0;
    host.pc_section = "pcs";
    link_object_section(is_first ? &one : &other, "pcs", SHT_PROGBITS, SHF_ALLOC, 0);
    link_object_section(is_first ? &other : &one, "pcs", SHT_PROGBITS, SHF_ALLOC, 16);
    expect_linked();
    ck_assert_uint_eq(host.block_count, 1);
    ck_assert_uint_eq(host.sizes[0], 16);
}
END_TEST

START_TEST(test_sections_outside_of_memory_are_not_loaded)
{
    link_object_section(&one, ".comment", SHT_PROGBITS, 0, 16);
    link_object_section(&one, ".note", SHT_NOTE, SHF_ALLOC, 16);
    link_object_section(&one, ".drop", SHT_PROGBITS, SHF_ALLOC | SHF_EXCLUDE, 16);
    expect_linked();
    ck_assert_uint_eq(host.block_count, 0);
}
END_TEST

START_TEST(test_objects_share_one_area_of_each_kind)
{
    struct link_object *const objects[] = {&one, &other};
    for (int i = 0; i < 2; i++) {
        link_object_section(objects[i], ".text", SHT_PROGBITS, CODE, 16);
        link_object_section(objects[i], ".data", SHT_PROGBITS, WRITABLE, 16);
        link_object_section(objects[i], ".rodata", SHT_PROGBITS, SHF_ALLOC, 16);
        link_object_section(objects[i], ".data.rel.ro", SHT_PROGBITS, WRITABLE, 16);
        link_object_section(objects[i], ".init_array", SHT_INIT_ARRAY, WRITABLE, 8);
    }
    expect_linked();
    ck_assert_uint_eq(host.block_count, 3);
    ck_assert_uint_eq(host.sizes[CAIRN_SECTION_CODE], 32);
    ck_assert_uint_eq(host.sizes[CAIRN_SECTION_DATA], 32);
    ck_assert_uint_eq(host.sizes[CAIRN_SECTION_READ_ONLY_DATA], 80);
}
END_TEST

START_TEST(test_slot_of_a_symbol_is_shared)
{
    struct link_object *const objects[] = {&one, &other};
    uint32_t sections[2];
    for (int i = 0; i < 2; i++) {
        sections[i] = link_object_section(objects[i], ".text", SHT_PROGBITS, CODE, 4);
        uint32_t f = link_object_symbol(objects[i], "f", STB_GLOBAL, STT_FUNC, 0, 0, 0);
        link_object_relocation(objects[i], sections[i], 0, R_X86_64_GOTPCREL, f, 0);
    }
    link_host_symbol(&host, "f", UINT64_C(0x123456789ABC));
    expect_linked();
    ck_assert_uint_eq(host.link->slot_count, 1);
    for (int i = 0; i < 2; i++) {
        uint64_t place = address_of(i, sections[i]);
        uint64_t slot = place + (uint64_t)(int32_t)link_u32(&host, place);
        ck_assert_uint_eq(link_u64(&host, slot), UINT64_C(0x123456789ABC));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("object_link");
    TCase *definitions = tcase_create("definitions");
    tcase_add_checked_fixture(definitions, set_up, tear_down);
    tcase_add_test(definitions, test_symbol_of_one_object_is_found_by_another);
    tcase_add_test(definitions, test_first_of_two_weak_definitions_is_used);
    tcase_add_loop_test(definitions, test_strong_definition_replaces_a_weak_one, 0, 2);
    tcase_add_test(definitions, test_two_strong_definitions_conflict);
    tcase_add_test(definitions, test_first_of_two_comdat_definitions_is_used);
    tcase_add_test(definitions, test_comdat_definition_conflicts_with_one_outside_of_groups);
    tcase_add_test(definitions, test_local_symbols_with_the_same_name_are_separate);
    tcase_add_test(definitions, test_most_restrictive_visibility_is_kept);
    tcase_add_test(definitions, test_absolute_symbol_has_its_value);
    tcase_add_test(definitions, test_common_symbols_share_the_largest_size_and_alignment);
    tcase_add_test(definitions, test_large_common_symbol_is_a_common_one);
    tcase_add_loop_test(definitions, test_strong_definition_replaces_a_common_one, 0, 2);
    tcase_add_test(definitions, test_common_definition_replaces_a_weak_one);
    tcase_add_test(definitions, test_all_undefined_symbols_are_named_and_nothing_is_allocated);
    tcase_add_test(definitions, test_undefined_symbols_that_do_not_fit_are_counted);
    tcase_add_test(definitions, test_unused_undefined_symbol_is_not_looked_up);
    tcase_add_test(definitions, test_weak_undefined_symbol_is_null);
    tcase_add_test(definitions, test_symbol_of_the_host_is_looked_up_once);
    tcase_add_test(definitions, test_sections_with_one_identifier_are_adjacent);
    tcase_add_loop_test(definitions, test_sections_with_one_identifier_are_data_if_one_of_them_is,
                        0, 2);
    tcase_add_test(definitions, test_empty_sections_with_one_identifier_get_the_kind_of_the_others);
    tcase_add_test(definitions, test_bounds_of_a_section_that_does_not_exist_are_undefined);
    tcase_add_test(definitions, test_handle_of_the_module_is_in_its_memory);
    tcase_add_test(definitions, test_section_without_contents_is_zero);
    tcase_add_loop_test(definitions, test_empty_pc_section_has_no_memory, 0, 2);
    tcase_add_test(definitions, test_sections_outside_of_memory_are_not_loaded);
    tcase_add_test(definitions, test_objects_share_one_area_of_each_kind);
    tcase_add_test(definitions, test_slot_of_a_symbol_is_shared);
    suite_add_tcase(suite, definitions);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
