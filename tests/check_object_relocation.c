/*
 * Tests of relocations, of the names of functions whose addresses a section holds, and of code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/object.h"
#include "object_sample.h"

#include <string.h>

static const struct cairn_object_filter stackmaps = {.name = CAIRN_OBJECT_STACKMAPS};

static struct sample sample;
static cairn_object *object; /* closed after each test */
static struct cairn_object_section section;
static struct cairn_error error;

static void set_up(void)
{
    object = NULL;
    section = (struct cairn_object_section){0};
}

static void tear_down(void) { cairn_object_destroy(object); }

/* Opens the sample, and finds its stack map section. */
static void open_section(void)
{
    object = sample_open(&sample);
    section = sample_section(object);
}

static uint64_t word(unsigned index) { return sample_word(&section, index); }

static struct cairn_object_function function_at(size_t offset)
{
    return cairn_object_function(object, &section, offset);
}

static uint32_t target_at(size_t offset)
{
    return cairn_object_target_section(object, &section, offset);
}

/* Opens the sample, and returns the status of finding its stack map section. */
static enum cairn_status try_section(void)
{
    tear_down();
    set_up();
    object = sample_open(&sample);
    enum cairn_status status = cairn_object_next_section(object, &stackmaps, &section, &error);
    ck_assert_int_eq(status == CAIRN_OK, section.index != 0);
    return status;
}

/* ---- Addresses, and the names of their functions ---- */

/* Missing in some versions of <elf.h>. */
enum {
    MACHINE_LOONGARCH = 258,
    LARCH_64 = 2,
    LARCH_RELATIVE = 3,
    LARCH_ADD32 = 50,
    LARCH_SUB32 = 55,
    LARCH_ADD64 = 51,
    LARCH_SUB64 = 56,
    LARCH_ADD_ULEB128 = 107,
    LARCH_SUB_ULEB128 = 108
};

static const struct {
    uint16_t machine;
    enum cairn_byte_order byte_order;
    uint32_t type;
    uint32_t relative_type;
} address_relocations[] = {
    {EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64, R_X86_64_RELATIVE},
    {EM_AARCH64, CAIRN_LITTLE_ENDIAN, R_AARCH64_ABS64, R_AARCH64_RELATIVE},
    {EM_PPC64, CAIRN_LITTLE_ENDIAN, R_PPC64_ADDR64, R_PPC64_RELATIVE},
    {EM_PPC64, CAIRN_BIG_ENDIAN, R_PPC64_ADDR64, R_PPC64_RELATIVE},
    {EM_S390, CAIRN_BIG_ENDIAN, R_390_64, R_390_RELATIVE},
    {EM_RISCV, CAIRN_LITTLE_ENDIAN, R_RISCV_64, R_RISCV_RELATIVE},
    {EM_RISCV, CAIRN_BIG_ENDIAN, R_RISCV_64, R_RISCV_RELATIVE},
    {MACHINE_LOONGARCH, CAIRN_LITTLE_ENDIAN, LARCH_64, LARCH_RELATIVE},
};
enum { ADDRESS_RELOCATION_COUNT = sizeof address_relocations / sizeof *address_relocations };

START_TEST(relocatable_addresses_are_named_by_their_symbols)
{
    static uint8_t before[ELF_BYTES_MAX];
    sample_relocatable(&sample, address_relocations[_i].machine, address_relocations[_i].byte_order,
                       address_relocations[_i].type);
    memcpy(before, sample.bytes, sample.size);
    open_section();
    ck_assert_uint_eq(word(0), 0x10);
    ck_assert_uint_eq(word(1), 0x20);
    ck_assert_uint_eq(word(2), 0);
    ck_assert_str_eq(function_at(0).name, "first");
    ck_assert_str_eq(function_at(8).name, "second");
    ck_assert_uint_eq(function_at(8).entry, 0x20);
    ck_assert_ptr_null(function_at(16).name);
    ck_assert_mem_eq(before, sample.bytes, sample.size);
}
END_TEST

START_TEST(sections_are_relocated_once)
{
    sample_begin(&sample, EM_RISCV, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_set_word(&sample, 0, 100);
    sample_add_symbol(&sample, NAME_FIRST, STB_LOCAL, STT_NOTYPE, sample.text, 0x30);
    sample_add_symbol(&sample, NAME_SECOND, STB_LOCAL, STT_NOTYPE, sample.text, 0x10);
    sample_add_rela(&sample, 0, 1, R_RISCV_ADD32, 2);
    sample_add_rela(&sample, 0, 2, R_RISCV_SUB32, 0);
    sample_add_rela(&sample, 8, 1, R_RISCV_ADD64, 0);
    sample_add_rela(&sample, 8, 2, R_RISCV_SUB64, 0);
    sample_finish_relocated(&sample, sample.stackmaps);
    object = sample_open(&sample);
    for (int i = 0; i < 2; i++) {
        section = sample_section(object);
        ck_assert_uint_eq(word(0), 100 + 0x32 - 0x10);
        ck_assert_uint_eq(word(1), 0x20);
    }
}
END_TEST

START_TEST(differences_on_loongarch_are_added_and_subtracted)
{
    sample_begin(&sample, MACHINE_LOONGARCH, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_set_word(&sample, 0, 100);
    sample_set_word(&sample, 2, 0x8080); /* a ULEB128 of three bytes */
    sample_add_symbol(&sample, NAME_FIRST, STB_LOCAL, STT_NOTYPE, sample.text, 0x130);
    sample_add_symbol(&sample, NAME_SECOND, STB_LOCAL, STT_NOTYPE, sample.text, 0x10);
    sample_add_rela(&sample, 0, 1, LARCH_ADD32, 2);
    sample_add_rela(&sample, 0, 2, LARCH_SUB32, 0);
    sample_add_rela(&sample, 8, 1, LARCH_ADD64, 0);
    sample_add_rela(&sample, 8, 2, LARCH_SUB64, 0);
    sample_add_rela(&sample, 16, 1, LARCH_ADD_ULEB128, 0);
    sample_add_rela(&sample, 16, 2, LARCH_SUB_ULEB128, 0);
    sample_finish_relocated(&sample, sample.stackmaps);
    open_section();
    ck_assert_uint_eq(word(0), 100 + 0x132 - 0x10);
    ck_assert_uint_eq(word(1), 0x120);
    ck_assert_uint_eq(word(2), 0x0082a0); /* 0x120 in three bytes */
}
END_TEST

START_TEST(relocations_without_addends_use_the_stored_value)
{
    sample_begin(&sample, EM_S390, ET_REL, CAIRN_BIG_ENDIAN);
    sample_set_word(&sample, 0, 0x20);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_SECTION, sample.text, 0);
    sample_add_symbol(&sample, NAME_SECOND, STB_LOCAL, STT_FUNC, sample.text, 0x20);
    sample.relocations_end = elf_put_rel(sample.relocations_end, CAIRN_BIG_ENDIAN, 0, 1, R_390_64);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_REL, 0, sample.stackmaps);
    sample_finish(&sample);
    open_section();
    ck_assert_uint_eq(word(0), 0x20);
    ck_assert_str_eq(function_at(0).name, "second");
}
END_TEST

START_TEST(overlapping_relocations_change_the_address)
{
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_symbol(&sample, NAME_FIRST, STB_LOCAL, STT_FUNC, sample.text, 0x10);
    sample_add_rela(&sample, 0, 1, R_X86_64_64, 0);
    sample_add_rela(&sample, 2, 0, R_X86_64_32, 0x77);
    sample_add_rela(&sample, 8, 1, R_X86_64_64, 0);
    sample_add_rela(&sample, 12, 0, R_X86_64_32, 0);
    sample_finish_relocated(&sample, sample.stackmaps);
    open_section();
    ck_assert_uint_eq(word(0), 0x770010);
    ck_assert_uint_eq(function_at(0).entry, 0x770010);
    ck_assert_ptr_null(function_at(0).name);
    ck_assert_str_eq(function_at(8).name, "first");
}
END_TEST

START_TEST(undefined_symbols_name_their_address)
{
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0);
    sample_add_rela(&sample, 0, 1, R_X86_64_64, 0);
    sample_finish_relocated(&sample, sample.stackmaps);
    open_section();
    ck_assert_str_eq(function_at(0).name, "first");
}
END_TEST

START_TEST(dynamic_relocations_are_applied)
{
    sample_begin(&sample, address_relocations[_i].machine, ET_DYN,
                 address_relocations[_i].byte_order);
    sample.file.flags = 2; /* so that PPC64 has no descriptors */
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x1010);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_FUNC, sample.text, 0x1020);
    sample_add_rela(&sample, 0x2000, 0, address_relocations[_i].relative_type, 0x1010);
    sample_add_rela(&sample, 0x2008, 2, address_relocations[_i].type, 0);
    sample_add_rela(&sample, 0x5000, 0, 12345, 0); /* outside of the section: must be ignored */
    sample_add_symbol_section(&sample, SHT_DYNSYM);
    sample_add_relocation_section(&sample, SHT_RELA, SHF_ALLOC, 0);
    sample_finish(&sample);
    open_section();
    ck_assert_uint_eq(word(0), 0x1010);
    ck_assert_uint_eq(word(1), 0x1020);
    ck_assert_str_eq(function_at(0).name, "first");
    ck_assert_str_eq(function_at(8).name, "second");
}
END_TEST

START_TEST(relocations_kept_by_the_linker_are_not_applied)
{
    sample_begin(&sample, EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN);
    sample_set_word(&sample, 0, 0x1010);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x1010);
    sample_add_rela(&sample, 0x2000, 1, R_X86_64_64, 0x77);
    sample_finish_relocated(&sample, sample.stackmaps);
    open_section();
    ck_assert_uint_eq(word(0), 0x1010);
}
END_TEST

START_TEST(linked_addresses_are_named_by_the_symbol_table)
{
    sample_executable(&sample, _i == 0 ? SHT_SYMTAB : SHT_DYNSYM);
    open_section();
    ck_assert(!cairn_object_header(object).is_relocatable);
    ck_assert_str_eq(function_at(0).name, "first");
    ck_assert_str_eq(function_at(8).name, "second");
    /* One byte past the beginning of a function is not its beginning. */
    ck_assert_ptr_null(function_at(16).name);
    ck_assert_uint_eq(function_at(16).entry, 0x1011);
    ck_assert_ptr_null(function_at(17).name);
    ck_assert_uint_eq(function_at(SIZE_MAX).entry, 0);
}
END_TEST

START_TEST(global_functions_are_preferred_over_other_names)
{
    sample_begin(&sample, EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN);
    sample_set_word(&sample, 0, 0x1010);
    sample_add_symbol(&sample, NAME_LOCAL, STB_LOCAL, STT_FUNC, sample.text, 0x1010);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_NOTYPE, sample.text, 0x1010);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_OBJECT, sample.text, 0x1010);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x1010);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_finish(&sample);
    open_section();
    ck_assert_str_eq(function_at(0).name, "first");
}
END_TEST

static void check_descriptors(uint64_t descriptor, uint64_t code)
{
    open_section();
    ck_assert_uint_eq(word(1), descriptor + 24);
    ck_assert_str_eq(function_at(0).name, "first");
    ck_assert_uint_eq(function_at(0).entry, code + 0x10);
    ck_assert_str_eq(function_at(8).name, "second");
    ck_assert_uint_eq(function_at(8).entry, code + 0x20);
    ck_assert_str_eq(function_at(16).name, "second");
    ck_assert_uint_eq(function_at(16).entry, code + 0x20);
}

START_TEST(descriptors_of_an_executable_are_followed)
{
    sample_descriptors(&sample, ET_EXEC);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_finish(&sample);
    check_descriptors(0x3000, 0x1000);
}
END_TEST

START_TEST(descriptors_of_an_object_are_followed)
{
    uint8_t opd_relocations[2 * sizeof(Elf64_Rela)];
    sample_descriptors(&sample, ET_REL);
    uint8_t *at = elf_put_rela(opd_relocations, CAIRN_BIG_ENDIAN, 0, 3, R_PPC64_ADDR64, 0x10);
    elf_put_rela(at, CAIRN_BIG_ENDIAN, 24, 3, R_PPC64_ADDR64, 0x20);
    sample_add_rela(&sample, 0, 1, R_PPC64_ADDR64, 0);
    sample_add_rela(&sample, 8, 2, R_PPC64_ADDR64, 0);
    sample_add_rela(&sample, 16, 3, R_PPC64_ADDR64, 0x20);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    elf_add(&sample.file, (struct elf_section){.name = ".rela.opd",
                                               .type = SHT_RELA,
                                               .link = sample.symbol_section,
                                               .info = sample.descriptor_section,
                                               .bytes = opd_relocations,
                                               .size = sizeof opd_relocations,
                                               .entry_size = sizeof(Elf64_Rela)});
    sample_finish(&sample);
    check_descriptors(0, 0);
}
END_TEST

/* ---- Distances, such as in PC sections ---- */

static const struct {
    uint16_t machine;
    enum cairn_byte_order byte_order;
    uint32_t narrow_type, wide_type;     /* number of distances */
    uint32_t address_type, address_wide; /* number of addresses */
} distances[] = {
    {EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_32, R_X86_64_64},
    {EM_AARCH64, CAIRN_LITTLE_ENDIAN, R_AARCH64_PREL32, R_AARCH64_PREL64, R_AARCH64_ABS32,
     R_AARCH64_ABS64},
    {EM_PPC64, CAIRN_LITTLE_ENDIAN, R_PPC64_REL32, R_PPC64_REL64, R_PPC64_ADDR32, R_PPC64_ADDR64},
    {EM_PPC64, CAIRN_BIG_ENDIAN, R_PPC64_REL32, R_PPC64_REL64, R_PPC64_ADDR32, R_PPC64_ADDR64},
    {EM_S390, CAIRN_BIG_ENDIAN, R_390_PC32, R_390_PC64, R_390_32, R_390_64},
};

static uint32_t narrow_word(size_t offset)
{
    return cairn_load_u32(section.contents.bytes + offset, section.contents.byte_order);
}

START_TEST(distances_refer_to_the_section_of_their_symbol)
{
    sample_begin(&sample, distances[_i].machine, ET_REL, distances[_i].byte_order);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_SECTION, sample.text, 0);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x10);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0);
    sample_add_rela(&sample, 4, 1, distances[_i].narrow_type, 0x21);
    sample_add_rela(&sample, 8, 2, distances[_i].wide_type, 2);
    sample_add_rela(&sample, 16, 1, distances[_i].address_type, 0x33);
    sample_add_rela(&sample, 20, 3, distances[_i].narrow_type, 0);
    sample_finish_relocated(&sample, sample.stackmaps);
    open_section();
    ck_assert_uint_eq(4 + narrow_word(4), 0x21);
    ck_assert_uint_eq(8 + word(1), 0x12);
    ck_assert_uint_eq(narrow_word(16), 0x33);
    ck_assert_uint_eq(target_at(0), 0);
    ck_assert_uint_eq(target_at(4), sample.text);
    ck_assert_uint_eq(target_at(8), sample.text);
    ck_assert_uint_eq(target_at(16), sample.text);
    ck_assert_uint_eq(target_at(20), 0);
    ck_assert_uint_eq(target_at(SIZE_MAX), 0);
    /* A distance is not the address of a function. */
    ck_assert_uint_eq(function_at(8).entry, word(1));
    ck_assert_uint_eq(function_at(8).section, 0);
}
END_TEST

/* A linker may remove instructions on RISC-V, so each label has its own relocation. */
START_TEST(differences_of_labels_refer_to_the_section_of_the_first)
{
    sample_begin(&sample, EM_RISCV, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x30);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x10);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.stackmaps, 4);
    sample_add_rela(&sample, 0, 1, R_RISCV_ADD32, 0);
    sample_add_rela(&sample, 0, 2, R_RISCV_SUB32, 0);
    sample_add_rela(&sample, 4, 1, R_RISCV_ADD32, 0);
    sample_add_rela(&sample, 4, 3, R_RISCV_SUB32, 0);
    sample_add_rela(&sample, 8, 2, R_RISCV_ADD64, 0);
    sample_add_rela(&sample, 8, 3, R_RISCV_SUB64, -4);
    sample_finish_relocated(&sample, sample.stackmaps);
    open_section();
    ck_assert_uint_eq(narrow_word(0), 0x20);
    ck_assert_uint_eq(4 + narrow_word(4), 0x30);
    ck_assert_uint_eq(word(1), 0x10);
    ck_assert_uint_eq(target_at(0), 0);
    ck_assert_uint_eq(target_at(4), sample.text);
    ck_assert_uint_eq(target_at(8), sample.text);
}
END_TEST

static void make_uleb128(const void *bytes, size_t size)
{
    sample_begin(&sample, EM_RISCV, ET_REL, CAIRN_LITTLE_ENDIAN);
    memcpy(sample.words + WORD_BYTES - size, bytes, size);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x12345);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x12300);
    sample_add_rela(&sample, WORD_BYTES - size, 1, 60, 0);
    sample_add_rela(&sample, WORD_BYTES - size, 2, 61, 0);
    sample_finish_relocated(&sample, sample.stackmaps);
}

START_TEST(numbers_of_variable_length_keep_their_length)
{
    static const struct {
        const char *before, *after;
        size_t size;
    } numbers[] = {{"\x00\xff", "\x45\xff", 2}, {"\x80\x80\x00", "\xc5\x80\x00", 3}};
    make_uleb128(numbers[_i].before, numbers[_i].size);
    open_section();
    ck_assert_mem_eq(section.contents.bytes + WORD_BYTES - numbers[_i].size, numbers[_i].after,
                     numbers[_i].size);
}
END_TEST

START_TEST(number_of_variable_length_without_an_end_is_corrupt)
{
    make_uleb128("\x80\x80\x80", 3);
    ck_assert_int_eq(try_section(), CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(error.offset, WORD_BYTES - 3);
    make_uleb128("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11);
    ck_assert_int_eq(try_section(), CAIRN_ERROR_CORRUPT);
}
END_TEST

/* As in call frame information: the low six bits are a distance, and the others are an instruction.
 */
START_TEST(parts_of_bytes_are_relocated)
{
    sample_begin(&sample, EM_RISCV, ET_REL, CAIRN_LITTLE_ENDIAN);
    memcpy(sample.words, "\x40\x05\x01\x02\x09", 5);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x130);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x10e);
    sample_add_rela(&sample, 0, 1, R_RISCV_SET6, 0);
    sample_add_rela(&sample, 0, 2, R_RISCV_SUB6, 0);
    sample_add_rela(&sample, 1, 1, R_RISCV_ADD8, 0);
    sample_add_rela(&sample, 1, 2, R_RISCV_SUB8, 0);
    sample_add_rela(&sample, 2, 1, R_RISCV_SET16, 0);
    sample_add_rela(&sample, 2, 2, R_RISCV_SUB16, 0);
    sample_finish_relocated(&sample, sample.stackmaps);
    open_section();
    ck_assert_mem_eq(section.contents.bytes, "\x62\x27\x22\x00\x09", 5);
}
END_TEST

/* ---- Code ---- */

static void expect_code(uint32_t index, uint64_t address, uint8_t first, size_t size)
{
    struct cairn_object_code code;
    if (cairn_object_code(object, index, address, &code, &error) != CAIRN_OK)
        ck_abort_msg("%s", error.message);
    ck_assert_uint_eq(code.address, address);
    ck_assert_uint_eq(code.size, size);
    for (size_t i = 0; i < size; i++)
        ck_assert_uint_eq(code.bytes[i], first + i);
}

START_TEST(code_of_an_object_has_offsets_in_its_section)
{
    sample_relocatable(&sample, address_relocations[_i].machine, address_relocations[_i].byte_order,
                       address_relocations[_i].type);
    open_section();
    struct cairn_object_function function = function_at(0);
    ck_assert_uint_eq(function.section, sample.text);
    ck_assert_uint_eq(function.size, 12);
    ck_assert_uint_eq(function_at(8).section, sample.text);
    ck_assert_uint_eq(function_at(8).size, 0);
    expect_code(function.section, function.entry, 0x10, 48);
    expect_code(sample.text, 0, 0, 64);
    expect_code(sample.text, 63, 63, 1);
}
END_TEST

START_TEST(code_of_a_linked_file_is_found_by_its_address)
{
    sample_executable(&sample, SHT_SYMTAB);
    open_section();
    struct cairn_object_function function = function_at(8);
    ck_assert_uint_eq(function.section, 0);
    expect_code(function.section, function.entry, 0x20, 32);
    expect_code(77, 0x1000, 0, 64);
    ck_assert_str_eq(object_symbol(object, 77, 0x1020), "second");
    ck_assert_ptr_null(object_symbol(object, 0, 0x1021));
    ck_assert_ptr_null(cairn_object_relocated_symbol(object, 0, 0x1000, 64));
}
END_TEST

START_TEST(descriptors_lead_to_code)
{
    sample_descriptors(&sample, ET_EXEC);
    sample_set_symbol_size(&sample, 20);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_finish(&sample);
    open_section();
    struct cairn_object_function function = function_at(8);
    ck_assert_uint_eq(function.size, 20);
    expect_code(function.section, function.entry, 0x20, 32);
    ck_assert_str_eq(object_symbol(object, 0, 0x1020), "second");
}
END_TEST

START_TEST(relocations_of_code_are_named_and_not_applied)
{
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    object = sample_open(&sample);
    sample_section(object);
    ck_assert_ptr_null(cairn_object_relocated_symbol(object, sample.text, 0x10, 8));
    expect_code(sample.text, 0x10, 0x10, 48);
    ck_assert_str_eq(cairn_object_relocated_symbol(object, sample.text, 0x10, 3), "first");
    ck_assert_str_eq(cairn_object_relocated_symbol(object, sample.text, 0x12, 1), "first");
    ck_assert_ptr_null(cairn_object_relocated_symbol(object, sample.text, 0x10, 2));
    ck_assert_ptr_null(cairn_object_relocated_symbol(object, sample.text, 0x13, 40));
    ck_assert_str_eq(object_symbol(object, sample.text, 0x20), "second");
    ck_assert_ptr_null(object_symbol(object, sample.text + 1, 0x20));
}
END_TEST

START_TEST(addresses_without_code_are_not_found)
{
    struct cairn_object_code code;
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    object = sample_open(&sample);
    sample_section(object);
    const struct {
        uint32_t section;
        uint64_t address;
    } places[] = {{sample.text, 64},
                  {sample.text, UINT64_MAX},
                  {sample.stackmaps, 0},
                  {0, 0},
                  {UINT32_MAX, 0}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        ck_assert_int_eq(
            cairn_object_code(object, places[i].section, places[i].address, &code, &error),
            CAIRN_ERROR_NOT_FOUND);
        ck_assert_ptr_nonnull(strstr(error.message, "there is no code at 0x"));
    }
    ck_assert_int_eq(cairn_object_code(NULL, 1, 0, &code, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_code(object, 1, 0, NULL, &error), CAIRN_ERROR_ARGUMENT);
}
END_TEST

START_TEST(code_without_bytes_is_unsupported)
{
    struct cairn_object_code code;
    sample_begin(&sample, EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN);
    sample.file.sections[sample.text].type = SHT_NOBITS;
    sample_finish(&sample);
    object = sample_open(&sample);
    ck_assert_int_eq(cairn_object_code(object, sample.text, 0x1000, &code, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "separate debug file"));
}
END_TEST

START_TEST(code_whose_relocation_has_no_symbol_is_corrupt)
{
    struct cairn_object_code code;
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_rela(&sample, 4, 2, R_X86_64_PLT32, 0);
    sample_finish_relocated(&sample, sample.text);
    object = sample_open(&sample);
    ck_assert_int_eq(cairn_object_code(object, sample.text, 0, &code, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "symbol 2"));
}
END_TEST

static enum cairn_status try_relocation(uint64_t offset, uint32_t symbol, uint32_t type)
{
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x10);
    sample_add_rela(&sample, offset, symbol, type, 0);
    sample_finish_relocated(&sample, sample.stackmaps);
    return try_section();
}

START_TEST(unknown_relocation_is_unsupported)
{
    ck_assert_int_eq(try_relocation(8, 1, R_X86_64_TPOFF64), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_uint_eq(error.offset, 8);
    ck_assert_ptr_nonnull(strstr(error.message, "type 18"));
}
END_TEST

START_TEST(relocation_outside_the_section_is_corrupt)
{
    ck_assert_int_eq(try_relocation(WORD_BYTES - 8, 1, R_X86_64_64), CAIRN_OK);
    ck_assert_int_eq(try_relocation(WORD_BYTES - 7, 1, R_X86_64_64), CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(try_relocation(UINT64_MAX, 1, R_X86_64_64), CAIRN_ERROR_CORRUPT);
}
END_TEST

START_TEST(relocation_without_its_symbol_is_corrupt)
{
    ck_assert_int_eq(try_relocation(0, 2, R_X86_64_64), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "symbol 2"));
    ck_assert_int_eq(try_relocation(0, UINT32_MAX, R_X86_64_64), CAIRN_ERROR_CORRUPT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("relocations and code of objects");
    TCase *names = tcase_create("relocations and names");
    tcase_add_checked_fixture(names, set_up, tear_down);
    tcase_add_loop_test(names, relocatable_addresses_are_named_by_their_symbols, 0,
                        ADDRESS_RELOCATION_COUNT);
    tcase_add_test(names, sections_are_relocated_once);
    tcase_add_test(names, differences_on_loongarch_are_added_and_subtracted);
    tcase_add_test(names, relocations_without_addends_use_the_stored_value);
    tcase_add_test(names, overlapping_relocations_change_the_address);
    tcase_add_test(names, undefined_symbols_name_their_address);
    tcase_add_loop_test(names, dynamic_relocations_are_applied, 0, ADDRESS_RELOCATION_COUNT);
    tcase_add_test(names, relocations_kept_by_the_linker_are_not_applied);
    tcase_add_loop_test(names, linked_addresses_are_named_by_the_symbol_table, 0, 2);
    tcase_add_test(names, global_functions_are_preferred_over_other_names);
    tcase_add_test(names, descriptors_of_an_executable_are_followed);
    tcase_add_test(names, descriptors_of_an_object_are_followed);
    tcase_add_test(names, unknown_relocation_is_unsupported);
    tcase_add_test(names, relocation_outside_the_section_is_corrupt);
    tcase_add_test(names, relocation_without_its_symbol_is_corrupt);
    suite_add_tcase(suite, names);

    TCase *apart = tcase_create("distances");
    tcase_add_checked_fixture(apart, set_up, tear_down);
    tcase_add_loop_test(apart, distances_refer_to_the_section_of_their_symbol, 0,
                        (int)(sizeof distances / sizeof *distances));
    tcase_add_test(apart, differences_of_labels_refer_to_the_section_of_the_first);
    tcase_add_loop_test(apart, numbers_of_variable_length_keep_their_length, 0, 2);
    tcase_add_test(apart, number_of_variable_length_without_an_end_is_corrupt);
    tcase_add_test(apart, parts_of_bytes_are_relocated);
    suite_add_tcase(suite, apart);

    TCase *code = tcase_create("code");
    tcase_add_checked_fixture(code, set_up, tear_down);
    tcase_add_loop_test(code, code_of_an_object_has_offsets_in_its_section, 0,
                        ADDRESS_RELOCATION_COUNT);
    tcase_add_test(code, code_of_a_linked_file_is_found_by_its_address);
    tcase_add_test(code, descriptors_lead_to_code);
    tcase_add_test(code, relocations_of_code_are_named_and_not_applied);
    tcase_add_test(code, addresses_without_code_are_not_found);
    tcase_add_test(code, code_without_bytes_is_unsupported);
    tcase_add_test(code, code_whose_relocation_has_no_symbol_is_corrupt);
    suite_add_tcase(suite, code);
    return sample_run(suite);
}
