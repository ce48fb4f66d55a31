/*
 * Tests of objects that are refused: each with a message that says what is wrong, and where.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "link_support.h"

#include <stdlib.h>

enum { WRITABLE = SHF_ALLOC | SHF_WRITE, CODE = SHF_ALLOC | SHF_EXECINSTR };

static struct link_object object;
static struct link_host host;

static void set_up(void)
{
    memset(&host, 0, sizeof host);
    link_object_begin(&object, CAIRN_ARCHITECTURE_X86_64);
}

static void tear_down(void) { link_end(&host); }

/* ---- Parts of objects ---- */

static uint32_t add_code(void)
{
    return link_object_section(&object, ".text", SHT_PROGBITS, CODE, 64);
}

static uint32_t add_data(void)
{
    return link_object_section(&object, ".data", SHT_PROGBITS, WRITABLE, 64);
}

static uint32_t add_undefined(unsigned binding, unsigned type)
{
    return link_object_symbol(&object, "f", binding, type, SHN_UNDEF, 0, 0);
}

static void use_type(uint32_t type)
{
    uint32_t symbol = add_undefined(STB_GLOBAL, STT_NOTYPE);
    link_object_relocation(&object, add_data(), 0, type, symbol, 0);
}

static void begin(enum cairn_architecture architecture)
{
    link_object_begin(&object, architecture);
}

/* ---- Bytes that are changed after the object was written ---- */

static void put16(size_t at, uint16_t value)
{
    elf_put16(object.bytes + at, object.file.byte_order, value);
}
static void put32(size_t at, uint32_t value)
{
    elf_put32(object.bytes + at, object.file.byte_order, value);
}
static void put64(size_t at, uint64_t value)
{
    elf_put64(object.bytes + at, object.file.byte_order, value);
}

/* Returns the offset of a section's header. */
static size_t header(uint32_t section)
{
    uint64_t table =
        cairn_load_u64(object.bytes + offsetof(Elf64_Ehdr, e_shoff), object.file.byte_order);
    return (size_t)table + section * sizeof(Elf64_Shdr);
}

/* Sections of an object with one section `.data`: strings, symbols, and relocations if there are
 * any. */
enum { DATA = 1, STRINGS = 2, SYMBOLS = 3, RELOCATIONS = 4, NAMES = 5 };

#define HEADER(field) offsetof(Elf64_Ehdr, field)
#define SECTION(number, field) (header(number) + offsetof(Elf64_Shdr, field))

/* Returns the offset of a section's contents. */
static size_t contents(uint32_t section)
{
    return (size_t)cairn_load_u64(object.bytes + SECTION(section, sh_offset),
                                  object.file.byte_order);
}

/* ---- What is wrong ---- */

static void is_empty(void) { object.size = 0; }
static void has_no_header(void) { object.size = 63; }
static void is_no_elf(void) { object.bytes[1] = 'X'; }
static void has_32_bits(void) { object.bytes[EI_CLASS] = ELFCLASS32; }
static void has_version_2(void) { put32(HEADER(e_version), 2); }
static void is_program(void) { put16(HEADER(e_type), ET_EXEC); }
static void is_for_sparc(void) { put16(HEADER(e_machine), EM_SPARCV9); }
static void is_for_aarch64(void) { put16(HEADER(e_machine), EM_AARCH64); }
static void has_long_headers(void) { put16(HEADER(e_shentsize), 80); }
static void has_no_table(void) { put64(HEADER(e_shoff), UINT64_MAX - 8); }
static void has_many_sections(void) { put16(HEADER(e_shnum), 600); }
static void has_unknown_names(void) { put16(HEADER(e_shstrndx), 77); }
static void has_names_in_data(void) { put16(HEADER(e_shstrndx), DATA); }
static void has_open_names(void) { object.bytes[contents(STRINGS) + object.name_bytes - 1] = 1; }
static void has_name_outside(void) { put32(SECTION(DATA, sh_name), 5000); }
static void is_aligned_to_3(void) { put64(SECTION(DATA, sh_addralign), 3); }
static void is_linked_outside(void) { put32(SECTION(DATA, sh_link), 99); }
static void is_outside_of_file(void) { put64(SECTION(DATA, sh_offset), UINT64_MAX - 3); }
static void is_longer_than_file(void) { put64(SECTION(DATA, sh_size), UINT64_MAX); }
static void has_two_symbol_tables(void) { put32(SECTION(DATA, sh_type), SHT_SYMTAB); }
static void has_odd_symbols(void) { put64(SECTION(SYMBOLS, sh_entsize), 23); }
static void has_few_wide_numbers(void)
{
    put32(SECTION(DATA, sh_type), SHT_SYMTAB_SHNDX);
    put32(SECTION(DATA, sh_link), SYMBOLS);
    put64(SECTION(DATA, sh_size), 4);
}
static void shares_bytes(void) { put64(SECTION(STRINGS, sh_offset), contents(DATA) + 32); }
static void has_symbol_name_outside(void) { put32(contents(SYMBOLS) + 24, 5000); }
static void has_symbol_section_outside(void) { put16(contents(SYMBOLS) + 24 + 6, 55); }
static void has_local_after_global(void) { object.bytes[contents(SYMBOLS) + 24 + 4] = 0; }
static void has_unknown_binding(void) { object.bytes[contents(SYMBOLS) + 24 + 4] = 5 << 4; }
static void has_rel(void) { put32(SECTION(RELOCATIONS, sh_type), SHT_REL); }
static void has_crel(void) { put32(SECTION(RELOCATIONS, sh_type), 0x40000014); }
static void has_odd_relocations(void) { put64(SECTION(RELOCATIONS, sh_entsize), 16); }
static void has_relocations_of_nothing(void) { put32(SECTION(RELOCATIONS, sh_info), 0); }
static void has_relocations_outside(void) { put32(SECTION(RELOCATIONS, sh_info), 6000); }
static void has_relocation_symbol_outside(void) { put32(contents(RELOCATIONS) + 12, 9); }
static void has_relocation_far_outside(void) { put64(contents(RELOCATIONS), UINT64_MAX - 3); }

/* An object with a symbol and a relocation, which can be loaded. */
static void build_usual(void) { use_type(R_X86_64_64); }

static const struct {
    void (*change)(void);
    enum cairn_status status;
    const char *message;
} changes[] = {
    {is_empty, CAIRN_ERROR_TRUNCATED, "the object is empty"},
    {has_no_header, CAIRN_ERROR_TRUNCATED, "an ELF object of 63 bytes has no header (64 bytes)"},
    {is_no_elf, CAIRN_ERROR_UNSUPPORTED, "not an ELF object"},
    {has_32_bits, CAIRN_ERROR_UNSUPPORTED,
     "an ELF object of class 1 and byte order 1; only 64-bit objects can be loaded"},
    {has_version_2, CAIRN_ERROR_VERSION, "an ELF object of version 2"},
    {is_program, CAIRN_ERROR_UNSUPPORTED,
     "an ELF file of type 2; only relocatable objects (type 1) can be loaded"},
    {is_for_sparc, CAIRN_ERROR_UNSUPPORTED,
     "an ELF object for machine 43; only x86-64, AArch64 and PPC64 objects can be loaded"},
    {is_for_aarch64, CAIRN_ERROR_UNSUPPORTED,
     "an object for aarch64, little-endian, cannot be loaded where code is for x86-64, "
     "little-endian"},
    {has_long_headers, CAIRN_ERROR_CORRUPT, "section headers of 80 bytes (64 expected)"},
    {has_no_table, CAIRN_ERROR_TRUNCATED, "the table of sections is at offset "},
    {has_many_sections, CAIRN_ERROR_TRUNCATED,
     "600 sections, but the file has space for 6 section headers"},
    {has_unknown_names, CAIRN_ERROR_CORRUPT, "names are in section 77 of 6 sections"},
    {has_names_in_data, CAIRN_ERROR_CORRUPT,
     "section 1 should hold names, but is not a string table that ends with a zero byte"},
    {has_open_names, CAIRN_ERROR_CORRUPT,
     "section 2 should hold names, but is not a string table that ends with a zero byte"},
    {has_name_outside, CAIRN_ERROR_CORRUPT, "section 1: its name is at byte 5000 of "},
    {is_aligned_to_3, CAIRN_ERROR_CORRUPT, "section 1 (.data): alignment 3 is not a power of two"},
    {is_linked_outside, CAIRN_ERROR_CORRUPT, "section 1 (.data): linked to section 99 of 6"},
    {is_outside_of_file, CAIRN_ERROR_TRUNCATED,
     "section 1 (.data): 64 bytes at offset 18446744073709551612 of a file of "},
    {is_longer_than_file, CAIRN_ERROR_TRUNCATED,
     "section 1 (.data): 18446744073709551615 bytes at offset 64 of a file of "},
    {has_two_symbol_tables, CAIRN_ERROR_CORRUPT, "section 1: a table of symbols of 0 bytes each"},
    {has_odd_symbols, CAIRN_ERROR_CORRUPT,
     "section 3: a table of symbols of 23 bytes each, 48 bytes in total, 1 of them local (24 bytes "
     "each expected)"},
    {has_few_wide_numbers, CAIRN_ERROR_CORRUPT,
     "section 1: 1 section numbers for the 2 symbols of section 3"},
    {has_symbol_name_outside, CAIRN_ERROR_CORRUPT, "symbol 1: its name is at byte 5000 of 3"},
    {has_symbol_section_outside, CAIRN_ERROR_CORRUPT, "symbol 1 (f): in section 55 of 6 sections"},
    {has_local_after_global, CAIRN_ERROR_CORRUPT,
     "symbol 1 (f): binding 0, but the first 1 symbols, and no others, are local"},
    {has_unknown_binding, CAIRN_ERROR_UNSUPPORTED,
     "section 3 (symbols), entry 1 (f): its binding is not supported"},
    {has_rel, CAIRN_ERROR_UNSUPPORTED,
     "section 4 (.rela): relocations in a section of type 0x9; only RELA (type 4) is supported"},
    {has_crel, CAIRN_ERROR_UNSUPPORTED,
     "section 4 (.rela): relocations in a section of type 0x40000014; only RELA (type 4) is "
     "supported"},
    {has_odd_relocations, CAIRN_ERROR_CORRUPT,
     "section 4 (.rela): 24 bytes of relocations of 16 bytes each with the symbols of section 3 "
     "(24 bytes and section 3 expected)"},
    {has_relocations_of_nothing, CAIRN_ERROR_CORRUPT,
     "section 4 (.rela): relocations of section 0 of 6 sections"},
    {has_relocations_outside, CAIRN_ERROR_CORRUPT,
     "section 4 (.rela): relocations of section 6000 of 6 sections"},
    {has_relocation_symbol_outside, CAIRN_ERROR_CORRUPT,
     "section 4 (.rela), entry 0: symbol 9 of 2 symbols"},
    {has_relocation_far_outside, CAIRN_ERROR_CORRUPT,
     "section 4 (.rela), entry 0: R_X86_64_64 at offset 18446744073709551612 of section 1, which "
     "has 64 bytes; symbol f"},
};

START_TEST(test_changed_object_is_refused)
{
    build_usual();
    link_object_write(&object);
    changes[_i].change();
    enum cairn_status status =
        link_add_bytes(&host, arch_find(CAIRN_ARCHITECTURE_X86_64), object.bytes, object.size);
    const char *wanted = changes[_i].message;
    ck_assert_msg(status == changes[_i].status, "%s: %s", cairn_status_name(status),
                  host.error.message);
    ck_assert_msg(strncmp(host.error.message, wanted, strlen(wanted)) == 0, "%s",
                  host.error.message);
    ck_assert_uint_eq(host.block_count, 0);
}
END_TEST

/* ---- Objects that are correct, but not supported, or that do not fit ---- */

static void build_tls(void)
{
    link_object_section(&object, ".tdata", SHT_PROGBITS, WRITABLE | SHF_TLS, 8);
}
static void build_compressed(void)
{
    link_object_section(&object, ".data", SHT_PROGBITS, WRITABLE | SHF_COMPRESSED, 8);
}
static void build_writable_code(void)
{
    link_object_section(&object, ".text", SHT_PROGBITS, WRITABLE | SHF_EXECINSTR, 8);
}
static void build_mixed_names(void)
{
    link_object_section(&object, "mixed", SHT_PROGBITS, WRITABLE, 8);
    link_object_section(&object, "mixed", SHT_PROGBITS, CODE, 8);
}
static void build_mixed_names_after_an_empty_section(void)
{
    link_object_section(&object, "mixed", SHT_PROGBITS, SHF_ALLOC, 0);
    link_object_section(&object, "mixed", SHT_PROGBITS, CODE, 8);
    link_object_section(&object, "mixed", SHT_PROGBITS, WRITABLE, 8);
}
static void build_short_group(void) { link_object_section(&object, ".group", SHT_GROUP, 0, 7); }
static void build_ifunc(void)
{
    link_object_symbol(&object, "f", STB_GLOBAL, STT_GNU_IFUNC, add_code(), 0, 8);
}
static void build_tls_symbol(void)
{
    link_object_symbol(&object, "t", STB_GLOBAL, STT_TLS, add_data(), 0, 8);
}
static void build_symbol_outside(void)
{
    link_object_symbol(&object, "f", STB_GLOBAL, STT_FUNC, add_code(), 65, 8);
}
static void build_odd_common(void)
{
    link_object_symbol(&object, "c", STB_GLOBAL, STT_OBJECT, SHN_COMMON, 24, 8);
}
static void build_unknown_type(void) { use_type(200); }
static void build_copy(void) { use_type(R_X86_64_COPY); }
static void build_tls_relocation(void) { use_type(R_X86_64_TLSGD); }
static void use_symbol(uint32_t symbol)
{
    link_object_relocation(&object, add_data(), 8, R_X86_64_64, symbol, 0);
}
static void build_undefined_tls(void) { use_symbol(add_undefined(STB_GLOBAL, STT_TLS)); }
static void build_undefined_ifunc(void) { use_symbol(add_undefined(STB_GLOBAL, STT_GNU_IFUNC)); }
static void build_undefined_local(void) { use_symbol(add_undefined(STB_LOCAL, STT_NOTYPE)); }
static void build_use_of_note(void)
{
    uint32_t note = link_object_section(&object, ".note", SHT_NOTE, SHF_ALLOC, 8);
    use_symbol(link_object_symbol(&object, "n", STB_LOCAL, STT_OBJECT, note, 0, 8));
}
static void build_relocation_outside(void)
{
    uint32_t symbol = add_undefined(STB_GLOBAL, STT_NOTYPE);
    link_object_relocation(&object, add_data(), 0, R_X86_64_64, symbol, 0);
    link_object_relocation(&object, 1, 57, R_X86_64_64, symbol, 0);
}
static void build_elfv1(void) { begin(CAIRN_ARCHITECTURE_PPC64_ELFV1); }
static void build_long_names(void)
{
    /* All symbols have names that are suffixes of a long one. */
    char name[1500];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    link_object_symbol(&object, name, STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0, 0);
    for (unsigned i = 2; i < 60; i++) {
        link_object_symbol(&object, "", STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0, 0);
        elf_put32(object.symbols + i * sizeof(Elf64_Sym), object.file.byte_order, i);
    }
}

static const struct {
    void (*build)(void);
    enum cairn_status status;
    const char *message;
} objects[] = {
    {build_tls, CAIRN_ERROR_UNSUPPORTED,
     "section 1 (.tdata): thread-local storage is not supported"},
    {build_compressed, CAIRN_ERROR_UNSUPPORTED,
     "section 1 (.data): loaded sections must not be compressed"},
    {build_writable_code, CAIRN_ERROR_UNSUPPORTED, "section 1 (.text): writable and executable"},
    {build_mixed_names, CAIRN_ERROR_UNSUPPORTED,
     "section 2 (mixed): there are code and data with this name"},
    {build_mixed_names_after_an_empty_section, CAIRN_ERROR_UNSUPPORTED,
     "section 3 (mixed): there are code and data with this name"},
    {build_short_group, CAIRN_ERROR_CORRUPT,
     "section 1 (.group): a group of 7 bytes (a multiple of 4 expected)"},
    {build_ifunc, CAIRN_ERROR_UNSUPPORTED,
     "section 3 (symbols), entry 1 (f): functions that are chosen at run time (IFUNC) are not "
     "supported"},
    {build_tls_symbol, CAIRN_ERROR_UNSUPPORTED,
     "section 3 (symbols), entry 1 (t): thread-local storage is not supported"},
    {build_symbol_outside, CAIRN_ERROR_CORRUPT,
     "section 3 (symbols), entry 1 (f): at byte 65 of section 1, which has 64 bytes"},
    {build_odd_common, CAIRN_ERROR_RANGE,
     "section 2 (symbols), entry 1 (c): a common symbol whose alignment 24 is not a power of two"},
    {build_unknown_type, CAIRN_ERROR_UNSUPPORTED,
     "section 4 (.rela), entry 0: relocation type 200 is not supported; symbol f"},
    {build_copy, CAIRN_ERROR_UNSUPPORTED,
     "section 4 (.rela), entry 0: R_X86_64_COPY: only linked files have such relocations; symbol "
     "f"},
    {build_tls_relocation, CAIRN_ERROR_UNSUPPORTED,
     "section 4 (.rela), entry 0: R_X86_64_TLSGD: thread-local storage is not supported; symbol "
     "f"},
    {build_undefined_tls, CAIRN_ERROR_UNSUPPORTED,
     "section 4 (.rela), entry 0: R_X86_64_64: thread-local storage is not supported; symbol f"},
    {build_undefined_ifunc, CAIRN_ERROR_UNSUPPORTED,
     "section 4 (.rela), entry 0: R_X86_64_64: functions that are chosen at run time (IFUNC) are "
     "not supported; symbol f"},
    {build_undefined_local, CAIRN_ERROR_CORRUPT,
     "section 4 (.rela), entry 0: R_X86_64_64: a local symbol that is not defined; symbol f"},
    {build_use_of_note, CAIRN_ERROR_CORRUPT,
     "section 5 (.rela), entry 0: R_X86_64_64: a loaded section refers to section 1 (.note), "
     "which is not loaded; symbol n"},
    {build_relocation_outside, CAIRN_ERROR_CORRUPT,
     "section 4 (.rela), entry 1: R_X86_64_64 at offset 57 of section 1, which has 64 bytes; "
     "symbol f"},
};

START_TEST(test_object_is_refused)
{
    objects[_i].build();
    enum cairn_status status = link_add(&host, &object);
    const char *wanted = objects[_i].message;
    ck_assert_msg(status == objects[_i].status, "%s: %s", cairn_status_name(status),
                  host.error.message);
    ck_assert_str_eq(host.error.message, wanted);
}
END_TEST

START_TEST(test_group_with_a_member_that_does_not_exist_is_refused)
{
    add_data();
    link_object_group(&object, 0, 1);
    link_object_write(&object);
    put32(contents(2) + 4, 12);
    ck_assert_int_eq(
        link_add_bytes(&host, arch_find(CAIRN_ARCHITECTURE_X86_64), object.bytes, object.size),
        CAIRN_ERROR_CORRUPT);
    ck_assert_str_eq(host.error.message,
                     "section 2 (.group), entry 0: a group with section 12 of 6");
}
END_TEST

START_TEST(test_overlapping_sections_are_named)
{
    build_usual();
    link_object_write(&object);
    shares_bytes();
    /* The zeros in the middle of the data are names that end with a zero byte. */
    put64(SECTION(STRINGS, sh_size), 8);
    put32(contents(SYMBOLS) + 24, 0);
    ck_assert_int_eq(
        link_add_bytes(&host, arch_find(CAIRN_ARCHITECTURE_X86_64), object.bytes, object.size),
        CAIRN_ERROR_CORRUPT);
    ck_assert_str_eq(host.error.message, "sections 1 and 2 share bytes of the file");
}
END_TEST

START_TEST(test_names_that_overlap_too_much_are_refused)
{
    build_long_names();
    link_object_write(&object);
    ck_assert_int_eq(
        link_add_bytes(&host, arch_find(CAIRN_ARCHITECTURE_X86_64), object.bytes, object.size),
        CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(
        strstr(host.error.message, "the names of sections and symbols are too long in total"));
}
END_TEST

START_TEST(test_other_versions_of_the_abi_are_refused)
{
    build_elfv1();
    link_object_write(&object);
    ck_assert_int_eq(
        link_add_bytes(&host, arch_find(CAIRN_ARCHITECTURE_PPC64_ELFV2), object.bytes, object.size),
        CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(host.error.message,
                     "an object for ppc64-elfv1, big-endian, cannot be loaded where code is for "
                     "ppc64-elfv2, little-endian");
}
END_TEST

/* ---- What only linking shows ---- */

static void expect_not_linked(enum cairn_status status, const char *message)
{
    ck_assert_msg(link_add(&host, &object) == CAIRN_OK, "%s", host.error.message);
    ck_assert_int_eq(link_finish(&host), status);
    ck_assert_str_eq(host.error.message, message);
}

START_TEST(test_section_that_no_memory_can_hold_is_refused)
{
    uint32_t section = link_object_section(&object, ".bss", SHT_NOBITS, WRITABLE, 8);
    object.file.sections[section].size = UINT64_MAX - 7;
    expect_not_linked(CAIRN_ERROR_RANGE,
                      "section 1 (.bss): 18446744073709551608 bytes, aligned to 8, are too many");
}
END_TEST

START_TEST(test_alignment_that_no_memory_has_is_refused)
{
    uint32_t section = add_data();
    object.file.sections[section].alignment = UINT64_C(1) << 63;
    expect_not_linked(CAIRN_ERROR_RANGE,
                      "section 1 (.data): 64 bytes, aligned to 9223372036854775808, are too many");
}
END_TEST

START_TEST(test_common_symbol_that_no_memory_can_hold_is_refused)
{
    link_object_symbol(&object, "c", STB_GLOBAL, STT_OBJECT, SHN_COMMON, 16, UINT64_MAX);
    expect_not_linked(CAIRN_ERROR_RANGE, "'c': a common symbol of 18446744073709551615 bytes, "
                                         "aligned to 16, is too large");
}
END_TEST

START_TEST(test_value_that_does_not_fit_is_refused_with_advice)
{
    use_type(R_X86_64_32S);
    link_host_symbol(&host, "f", UINT64_C(0x7F0000000000));
    expect_not_linked(CAIRN_ERROR_RANGE,
                      "section 4 (.rela), entry 0: R_X86_64_32S: the value 0x7f0000000000 does not "
                      "fit into 32 bits; compile it with -fPIC or for the large code model; symbol "
                      "f");
}
END_TEST

START_TEST(test_value_that_is_not_aligned_is_refused)
{
    begin(CAIRN_ARCHITECTURE_AARCH64);
    use_type(R_AARCH64_LDST64_ABS_LO12_NC);
    link_host_symbol(&host, "f", 0x1004);
    ck_assert_msg(link_add(&host, &object) == CAIRN_OK, "%s", host.error.message);
    ck_assert_int_eq(link_finish(&host), CAIRN_ERROR_RANGE);
    ck_assert_ptr_nonnull(strstr(host.error.message, "R_AARCH64_LDST64_ABS_LO12_NC: the value "
                                                     "0x1004 is not a multiple of 8"));
}
END_TEST

START_TEST(test_bounds_of_several_pc_sections_are_refused)
{
    host.pc_section = "pcs";
    link_object_section(&object, "pcs", SHT_PROGBITS, SHF_ALLOC, 8);
    link_object_section(&object, "pcs", SHT_PROGBITS, SHF_ALLOC, 8);
    uint32_t start = link_object_symbol(&object, "__start_pcs", STB_GLOBAL, STT_NOTYPE, 0, 0, 0);
    use_symbol(start);
    expect_not_linked(CAIRN_ERROR_UNSUPPORTED,
                      "symbol '__start_pcs': there are several sections 'pcs', which are loaded as "
                      "PC sections and are not adjacent");
}
END_TEST

/* A call on PPC64 of a function elsewhere, with `word` after it. */
static void build_call(uint32_t word)
{
    static uint8_t code[8];
    enum { CALL = 0x48000001 };
    begin(CAIRN_ARCHITECTURE_PPC64_ELFV2);
    elf_put32(elf_put32(code, object.file.byte_order, CALL), object.file.byte_order, word);
    uint32_t section =
        link_object_contents(&object, ".text", SHT_PROGBITS, CODE, code, sizeof code);
    uint32_t symbol = add_undefined(STB_GLOBAL, STT_FUNC);
    link_object_relocation(&object, section, 0, R_PPC64_REL24, symbol, 0);
    link_host_symbol(&host, "f", 0x200000);
}

START_TEST(test_call_that_cannot_reload_the_toc_pointer_is_refused)
{
    enum { MR_R3_R4 = 0x7C832378 };
    build_call(MR_R3_R4);
    expect_not_linked(CAIRN_ERROR_UNSUPPORTED,
                      "section 4 (.rela), entry 0: a branch to another module, after which no "
                      "no-op has space to reload the TOC pointer; symbol f");
}
END_TEST

START_TEST(test_no_op_after_a_call_reloads_the_toc_pointer)
{
    enum { NOP = 0x60000000 };
    const uint32_t ld_r2_24_r1 = 0xE8410018;
    build_call(NOP);
    ck_assert_msg(link_add(&host, &object) == CAIRN_OK, "%s", host.error.message);
    ck_assert_msg(link_finish(&host) == CAIRN_OK, "%s", host.error.message);
    uint64_t code = host.link->areas[CAIRN_SECTION_CODE].memory.address;
    ck_assert_uint_eq(link_u32(&host, code + 4), ld_r2_24_r1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("object_link_refusals");
    TCase *refusals = tcase_create("refusals");
    tcase_add_checked_fixture(refusals, set_up, tear_down);
    tcase_add_loop_test(refusals, test_changed_object_is_refused, 0,
                        sizeof changes / sizeof *changes);
    tcase_add_loop_test(refusals, test_object_is_refused, 0, sizeof objects / sizeof *objects);
    tcase_add_test(refusals, test_group_with_a_member_that_does_not_exist_is_refused);
    tcase_add_test(refusals, test_overlapping_sections_are_named);
    tcase_add_test(refusals, test_names_that_overlap_too_much_are_refused);
    tcase_add_test(refusals, test_other_versions_of_the_abi_are_refused);
    tcase_add_test(refusals, test_section_that_no_memory_can_hold_is_refused);
    tcase_add_test(refusals, test_alignment_that_no_memory_has_is_refused);
    tcase_add_test(refusals, test_common_symbol_that_no_memory_can_hold_is_refused);
    tcase_add_test(refusals, test_value_that_does_not_fit_is_refused_with_advice);
    tcase_add_test(refusals, test_value_that_is_not_aligned_is_refused);
    tcase_add_test(refusals, test_bounds_of_several_pc_sections_are_refused);
    tcase_add_test(refusals, test_call_that_cannot_reload_the_toc_pointer_is_refused);
    tcase_add_test(refusals, test_no_op_after_a_call_reloads_the_toc_pointer);
    suite_add_tcase(suite, refusals);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
