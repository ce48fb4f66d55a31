/*
 * Tests of what a module keeps of its objects, of any architecture: symbols, and the order of
 * constructors.
 *
 * SPDX-License-Identifier: MIT
 */
#include "link_support.h"
#include "runtime/linked_objects.h"

#include <stdlib.h>

enum { WRITABLE = SHF_ALLOC | SHF_WRITE, CODE = SHF_ALLOC | SHF_EXECINSTR };

static struct link_object one;
static struct link_object other;
static struct link_host host;
static struct module_symbols *symbols;
static struct hash_key key;

static void set_up(void)
{
    memset(&host, 0, sizeof host);
    key = hash_key_create();
    link_object_begin(&one, CAIRN_ARCHITECTURE_X86_64);
    link_object_begin(&other, CAIRN_ARCHITECTURE_X86_64);
}

static void tear_down(void)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    module_symbols_destroy(symbols, &allocator);
    symbols = NULL;
    link_end(&host);
}

/* Links the first object, and the second one if it has a section. */
static void expect_linked(void)
{
    ck_assert_msg(link_add(&host, &one) == CAIRN_OK, "%s", host.error.message);
    if (other.symbol_count > 1)
        ck_assert_msg(link_add(&host, &other) == CAIRN_OK, "%s", host.error.message);
    ck_assert_msg(link_finish(&host) == CAIRN_OK, "%s", host.error.message);
}

/* ---- Symbols ---- */

static void read_symbols(void)
{
    expect_linked();
    ck_assert_int_eq(linked_symbols(host.link, &key, &symbols, &host.error), CAIRN_OK);
}

static const char *name_at(uint64_t pc)
{
    const char *name = "";
    uint64_t address;
    return module_symbols_find_function(symbols, pc, &name, &address) ? name : "";
}

static uint64_t address_of(const char *name)
{
    const struct definition *found = module_symbols_find(symbols, &key, name);
    return found == NULL ? 0 : definition_address(found);
}

static uint64_t section_address(int image, uint32_t section)
{
    return host.link->images[image]->sections[section].memory.address;
}

START_TEST(local_functions_have_names_and_are_no_definitions)
{
    uint32_t text = link_object_section(&one, ".text", SHT_PROGBITS, CODE, 64);
    link_object_symbol(&one, "local", STB_LOCAL, STT_FUNC, text, 0, 16);
    link_object_symbol(&one, "global", STB_GLOBAL, STT_FUNC, text, 16, 16);
    link_object_symbol(&one, "label", STB_GLOBAL, STT_NOTYPE, text, 32, 0);
    read_symbols();
    uint64_t code = section_address(0, text);
    ck_assert_str_eq(name_at(code), "local");
    ck_assert_str_eq(name_at(code + 16), "global");
    ck_assert_str_eq(name_at(code + 40), "label");
    ck_assert_uint_eq(address_of("local"), 0);
    ck_assert_uint_eq(address_of("global"), code + 16);
    ck_assert_uint_eq(address_of("label"), code + 32);
}
END_TEST

START_TEST(local_labels_have_no_names)
{
    uint32_t text = link_object_section(&one, ".text", SHT_PROGBITS, CODE, 64);
    link_object_symbol(&one, "$x", STB_LOCAL, STT_NOTYPE, text, 8, 0);
    link_object_symbol(&one, "f", STB_GLOBAL, STT_FUNC, text, 0, 64);
    read_symbols();
    ck_assert_str_eq(name_at(section_address(0, text) + 8), "f");
}
END_TEST

START_TEST(definitions_are_visible_global_symbols_with_memory)
{
    uint32_t data = link_object_section(&one, ".data", SHT_PROGBITS, WRITABLE, 64);
    uint32_t note = link_object_section(&one, ".comment", SHT_PROGBITS, 0, 8);
    link_object_symbol(&one, "weak", STB_WEAK, STT_OBJECT, data, 0, 8);
    link_object_symbol(&one, "hidden", STB_GLOBAL, STT_OBJECT, data, 8, 8);
    link_object_other(&one, STV_HIDDEN);
    link_object_symbol(&one, "protected", STB_GLOBAL, STT_OBJECT, data, 16, 8);
    link_object_other(&one, STV_PROTECTED);
    link_object_symbol(&one, "common", STB_GLOBAL, STT_OBJECT, SHN_COMMON, 8, 24);
    link_object_symbol(&one, "absolute", STB_GLOBAL, STT_NOTYPE, SHN_ABS, 77, 0);
    link_object_symbol(&one, "undefined", STB_WEAK, STT_NOTYPE, SHN_UNDEF, 0, 0);
    link_object_symbol(&one, "in_note", STB_GLOBAL, STT_OBJECT, note, 0, 8);
    read_symbols();
    ck_assert_uint_eq(address_of("weak"), section_address(0, data));
    ck_assert_uint_eq(address_of("protected"), section_address(0, data) + 16);
    ck_assert_uint_eq(address_of("common"), link_symbol(&host, "common")->address);
    ck_assert_uint_ne(address_of("common"), 0);
    ck_assert_uint_eq(address_of("hidden"), 0);
    ck_assert_uint_eq(address_of("absolute"), 0);
    ck_assert_uint_eq(address_of("undefined"), 0);
    ck_assert_uint_eq(address_of("in_note"), 0);
    ck_assert_str_eq(name_at(section_address(0, data)), "");
}
END_TEST

/* LLVM writes no code for a function that cannot be called. Relocations refer to it nevertheless.
 */
START_TEST(symbols_of_empty_sections_have_addresses_and_name_no_code)
{
    uint32_t empty = link_object_section(&one, ".text.dead", SHT_PROGBITS, CODE, 0);
    uint32_t text = link_object_section(&one, ".text.f", SHT_PROGBITS, CODE, 64);
    uint32_t data = link_object_section(&one, ".data.nothing", SHT_PROGBITS, WRITABLE, 0);
    link_object_symbol(&one, "dead", STB_GLOBAL, STT_FUNC, empty, 0, 0);
    link_object_symbol(&one, "f", STB_GLOBAL, STT_FUNC, text, 0, 64);
    uint32_t nothing = link_object_symbol(&one, "nothing", STB_GLOBAL, STT_OBJECT, data, 0, 0);
    link_object_symbol(&one, "common", STB_GLOBAL, STT_OBJECT, SHN_COMMON, 1, 0);
    link_object_relocation(&one, text, 0, R_X86_64_PC32, nothing, 0);
    read_symbols();
    uint64_t code = section_address(0, text);
    ck_assert_str_eq(name_at(code), "f");
    ck_assert_uint_eq(address_of("dead"), code);
    ck_assert_uint_ne(address_of("nothing"), 0);
    ck_assert_uint_ne(address_of("common"), 0);
}
END_TEST

START_TEST(symbols_of_all_objects_are_kept)
{
    uint32_t text = link_object_section(&one, ".text", SHT_PROGBITS, CODE, 16);
    link_object_symbol(&one, "same", STB_LOCAL, STT_FUNC, text, 0, 16);
    text = link_object_section(&other, ".text", SHT_PROGBITS, CODE, 16);
    link_object_symbol(&other, "same", STB_LOCAL, STT_FUNC, text, 0, 16);
    link_object_symbol(&other, "f", STB_GLOBAL, STT_FUNC, text, 0, 16);
    read_symbols();
    ck_assert_str_eq(name_at(section_address(0, text)), "same");
    ck_assert_str_eq(name_at(section_address(1, text)), "f");
}
END_TEST

START_TEST(functions_with_descriptors_are_named_at_their_code)
{
    link_object_begin(&one, CAIRN_ARCHITECTURE_PPC64_ELFV1);
    uint32_t text = link_object_section(&one, ".text", SHT_PROGBITS, CODE, 64);
    uint32_t opd = link_object_section(&one, ".opd", SHT_PROGBITS, WRITABLE, 48);
    uint32_t start = link_object_symbol(&one, "", STB_LOCAL, STT_SECTION, text, 0, 0);
    link_object_symbol(&one, "local", STB_LOCAL, STT_FUNC, opd, 0, 32);
    link_object_symbol(&one, "global", STB_GLOBAL, STT_FUNC, opd, 24, 32);
    link_object_relocation(&one, opd, 0, R_PPC64_ADDR64, start, 0);
    link_object_relocation(&one, opd, 24, R_PPC64_ADDR64, start, 32);
    read_symbols();
    uint64_t code = section_address(0, text);
    ck_assert_str_eq(name_at(code), "local");
    ck_assert_str_eq(name_at(code + 31), "local");
    ck_assert_str_eq(name_at(code + 32), "global");
    ck_assert_str_eq(name_at(code + 64), "");
    ck_assert_str_eq(name_at(section_address(0, opd)), "");
    ck_assert_uint_eq(address_of("global"), section_address(0, opd) + 24);
}
END_TEST

START_TEST(a_descriptor_that_leads_elsewhere_names_nothing)
{
    static const uint8_t words[32] = {[0] = 0x7f};
    link_object_begin(&one, CAIRN_ARCHITECTURE_PPC64_ELFV1);
    link_object_section(&one, ".text", SHT_PROGBITS, CODE, 64);
    uint32_t opd = link_object_contents(&one, ".opd", SHT_PROGBITS, WRITABLE, words, sizeof words);
    link_object_symbol(&one, "wild", STB_GLOBAL, STT_FUNC, opd, 0, 32);
    link_object_symbol(&one, "at_the_end", STB_GLOBAL, STT_FUNC, opd, 28, 32);
    read_symbols();
    ck_assert_str_eq(name_at(UINT64_C(0x7f00000000000000)), "");
    ck_assert_uint_eq(address_of("wild"), section_address(0, opd));
    ck_assert_uint_eq(address_of("at_the_end"), section_address(0, opd) + 28);
}
END_TEST

/* ---- Constructors ---- */

static struct attachment_list attached;

/* Adds a section with pointers to functions, which are these characters. */
static void add_pointers(struct link_object *object, const char *section, const char *functions)
{
    static uint8_t bytes[16][64];
    static unsigned next;
    size_t count = strlen(functions);
    uint8_t *words = bytes[next++ % 16];
    memset(words, 0, sizeof bytes[0]);
    for (size_t i = 0; i < count; i++) {
        bool is_big = object->file.machine == EM_PPC64;
        words[8 * i + (is_big ? 7 : 0)] = (uint8_t)functions[i];
        if (functions[i] == '-')
            memset(words + 8 * i, 0xFF, 8);
    }
    link_object_contents(object, section, SHT_PROGBITS, WRITABLE, words, 8 * count);
}

static const char *calls_of(enum attachment kind)
{
    static char calls[64];
    size_t count = attached.lists[kind].count;
    for (size_t i = 0; i < count; i++)
        calls[i] = (char)attached.lists[kind].items[i];
    calls[count] = '\0';
    return calls;
}

static void expect_calls(const char *constructors, const char *destructors)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    expect_linked();
    ck_assert_int_eq(linked_constructors(host.link, &attached, &host.error), CAIRN_OK);
    ck_assert_str_eq(calls_of(ATTACHED_CONSTRUCTOR), constructors);
    ck_assert_str_eq(calls_of(ATTACHED_DESTRUCTOR), destructors);
    attachment_list_release(&attached, &allocator);
}

START_TEST(constructors_are_in_the_order_of_a_linker)
{
    add_pointers(&one, ".init_array", "fg");
    add_pointers(&one, ".init_array.2000", "cd");
    add_pointers(&one, ".ctors.65434", "ba"); /* priority 101 */
    add_pointers(&one, ".init_array.65535", "e");
    add_pointers(&one, ".ctors", "-ih");
    expect_calls("abcdefghi", "");
}
END_TEST

START_TEST(destructors_are_in_the_opposite_order)
{
    add_pointers(&one, ".fini_array", "gf");
    add_pointers(&one, ".fini_array.2000", "ih");
    add_pointers(&one, ".dtors.65434", "jk"); /* priority 101 */
    add_pointers(&one, ".dtors", "-de");
    expect_calls("", "defghijk");
}
END_TEST

START_TEST(constructors_of_the_first_object_come_first)
{
    add_pointers(&one, ".init_array", "b");
    add_pointers(&one, ".fini_array", "z");
    add_pointers(&other, ".init_array", "c");
    add_pointers(&other, ".init_array.5", "a");
    add_pointers(&other, ".fini_array", "y");
    link_object_symbol(&other, "s", STB_GLOBAL, STT_NOTYPE, SHN_ABS, 0, 0);
    expect_calls("abc", "yz");
}
END_TEST

START_TEST(pointers_are_read_in_the_byte_order_of_the_object)
{
    link_object_begin(&one, CAIRN_ARCHITECTURE_PPC64_ELFV1);
    add_pointers(&one, ".init_array", "ab");
    expect_calls("ab", "");
}
END_TEST

START_TEST(sections_with_similar_names_are_data)
{
    add_pointers(&one, ".init_arrays", "a");
    add_pointers(&one, ".ctorsx.1", "b");
    add_pointers(&one, "init_array", "c");
    expect_calls("", "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("linked objects");
    TCase *tests = tcase_create("linked objects");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, local_functions_have_names_and_are_no_definitions);
    tcase_add_test(tests, local_labels_have_no_names);
    tcase_add_test(tests, definitions_are_visible_global_symbols_with_memory);
    tcase_add_test(tests, symbols_of_empty_sections_have_addresses_and_name_no_code);
    tcase_add_test(tests, symbols_of_all_objects_are_kept);
    tcase_add_test(tests, functions_with_descriptors_are_named_at_their_code);
    tcase_add_test(tests, a_descriptor_that_leads_elsewhere_names_nothing);
    tcase_add_test(tests, constructors_are_in_the_order_of_a_linker);
    tcase_add_test(tests, destructors_are_in_the_opposite_order);
    tcase_add_test(tests, constructors_of_the_first_object_come_first);
    tcase_add_test(tests, pointers_are_read_in_the_byte_order_of_the_object);
    tcase_add_test(tests, sections_with_similar_names_are_data);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
