/*
 * Tests that linking takes time linear in the size of a hostile object of several megabytes. If a
 * part of the linker searched anew for each section or symbol, the tests would take minutes instead
 * of milliseconds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "link_support.h"
#include "stackmap_support.h"

#include <stdlib.h>

/* Far more than is needed, even under emulators and with sanitizers. */
enum { CPU_SECONDS = 40, SECTIONS = 100000, SYMBOLS = 200000 };
enum { HEADER_BYTES = 64, WRITABLE = SHF_ALLOC | SHF_WRITE };

static struct link_host host;

/* The parts of an object, which begins with `header`: contents, section headers, symbols,
 * relocations. */
static struct sample_section contents;
static struct sample_section headers;
static struct sample_section symbols;
static struct sample_section relocations;
static uint32_t section_count;
static uint32_t symbol_count;

static void put(struct sample_section *section, uint64_t value, size_t size)
{
    section_put(section, value, size);
}

/* Adds a section header. */
static uint32_t add_header(uint32_t name, uint32_t type, uint64_t flags, uint64_t offset,
                           uint64_t size, uint32_t link, uint32_t info, uint64_t entry_bytes)
{
    put(&headers, name, 4);
    put(&headers, type, 4);
    put(&headers, flags, 8);
    put(&headers, 0, 8);
    put(&headers, offset, 8);
    put(&headers, size, 8);
    put(&headers, link, 4);
    put(&headers, info, 4);
    put(&headers, 1, 8);
    put(&headers, entry_bytes, 8);
    return section_count++;
}

/* Adds a section with bytes. */
static uint32_t add_section(uint32_t name, uint32_t type, uint64_t flags, const void *bytes,
                            size_t size)
{
    uint64_t offset = HEADER_BYTES + contents.size;
    for (size_t i = 0; i < size; i++)
        put(&contents, ((const uint8_t *)bytes)[i], 1);
    return add_header(name, type, flags, offset, size, 0, 0, 0);
}

static void add_symbol(uint32_t name, unsigned binding, uint32_t section)
{
    put(&symbols, name, 4);
    put(&symbols, (uint64_t)binding << 4, 1);
    put(&symbols, 0, 1);
    put(&symbols, section, 2);
    put(&symbols, 0, 8);
    put(&symbols, 0, 8);
    symbol_count++;
}

static void add_relocation(uint64_t offset, uint32_t symbol)
{
    put(&relocations, offset, 8);
    put(&relocations, (uint64_t)symbol << 32 | R_X86_64_64, 8);
    put(&relocations, 0, 8);
}

static void begin(void)
{
    struct sample_section *const parts[] = {&contents, &headers, &symbols, &relocations};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        *parts[i] = (struct sample_section){.byte_order = CAIRN_LITTLE_ENDIAN};
    memset(&host, 0, sizeof host);
    host.refuses_too_much = true;
    section_count = 0;
    symbol_count = 0;
    add_header(0, SHT_NULL, 0, 0, 0, 0, 0, 0);
    add_symbol(0, STB_LOCAL, SHN_UNDEF);
    limit_cpu_seconds(CPU_SECONDS);
}

static void end(void)
{
    link_end(&host);
    section_free(&contents);
    section_free(&headers);
    section_free(&symbols);
    section_free(&relocations);
}

/* Adds the tables, with relocations of section `target`, and links the object. There are more
 * sections than the header has numbers for, so their number is in the first section header. */
static enum cairn_status link_all(const char *names, size_t name_bytes, uint32_t target)
{
    uint32_t strings = add_section(0, SHT_STRTAB, 0, names, name_bytes);
    uint64_t at = HEADER_BYTES + contents.size;
    uint32_t table = add_header(0, SHT_SYMTAB, 0, at, symbols.size, strings, 1, sizeof(Elf64_Sym));
    add_header(0, SHT_RELA, 0, at + symbols.size, relocations.size, table, target,
               sizeof(Elf64_Rela));
    size_t size = HEADER_BYTES + contents.size + symbols.size + relocations.size + headers.size;
    uint8_t *bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    Elf64_Ehdr header = {.e_ident = {0x7F, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
    uint8_t *end_of_header = bytes + sizeof header.e_ident;
    memcpy(bytes, header.e_ident, sizeof header.e_ident);
    memset(end_of_header, 0, HEADER_BYTES - sizeof header.e_ident);
    elf_put16(bytes + offsetof(Elf64_Ehdr, e_type), CAIRN_LITTLE_ENDIAN, ET_REL);
    elf_put16(bytes + offsetof(Elf64_Ehdr, e_machine), CAIRN_LITTLE_ENDIAN, EM_X86_64);
    elf_put32(bytes + offsetof(Elf64_Ehdr, e_version), CAIRN_LITTLE_ENDIAN, EV_CURRENT);
    elf_put64(bytes + offsetof(Elf64_Ehdr, e_shoff), CAIRN_LITTLE_ENDIAN, size - headers.size);
    elf_put16(bytes + offsetof(Elf64_Ehdr, e_shentsize), CAIRN_LITTLE_ENDIAN, sizeof(Elf64_Shdr));
    elf_put16(bytes + offsetof(Elf64_Ehdr, e_shstrndx), CAIRN_LITTLE_ENDIAN, SHN_XINDEX);
    elf_put64(headers.bytes + offsetof(Elf64_Shdr, sh_size), CAIRN_LITTLE_ENDIAN, section_count);
    elf_put32(headers.bytes + offsetof(Elf64_Shdr, sh_link), CAIRN_LITTLE_ENDIAN, strings);
    const struct sample_section *const parts[] = {&contents, &symbols, &relocations, &headers};
    uint8_t *next = bytes + HEADER_BYTES;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i]->size > 0)
            memcpy(next, parts[i]->bytes, parts[i]->size);
        next += parts[i]->size;
    }
    enum cairn_status status =
        link_add_bytes(&host, arch_find(CAIRN_ARCHITECTURE_X86_64), bytes, size);
    free(bytes);
    return status == CAIRN_OK ? link_finish(&host) : status;
}

START_TEST(test_sections_may_have_the_same_name)
{
    static const char names[] = "\0names\0__start_names\0__stop_names";
    enum { NAMES = 1, START = 7, STOP = 21 };
    for (uint32_t i = 0; i < SECTIONS; i++)
        add_section(NAMES, SHT_PROGBITS, i < SECTIONS / 2 ? SHF_ALLOC : WRITABLE, "\0\0\0\0\0\0\0",
                    i % 2 == 0 ? 8 : 0);
    add_symbol(START, STB_GLOBAL, SHN_UNDEF);
    add_symbol(STOP, STB_GLOBAL, SHN_UNDEF);
    add_relocation(0, 1);
    ck_assert_msg(link_all(names, sizeof names, 1) == CAIRN_OK, "%s", host.error.message);
    uint64_t start = link_symbol(&host, "__start_names")->address;
    ck_assert_uint_eq(link_u64(&host, start), start);
    ck_assert_uint_eq(host.sizes[0], SECTIONS / 2 * 8);
}
END_TEST

START_TEST(test_code_and_data_may_alternate_after_an_empty_section)
{
    static const char names[] = "\0names";
    add_section(1, SHT_PROGBITS, SHF_ALLOC, "", 0);
    for (uint32_t i = 0; i < SECTIONS; i++)
        add_section(1, SHT_PROGBITS, i % 2 == 0 ? WRITABLE : SHF_ALLOC | SHF_EXECINSTR, "", 1);
    ck_assert_int_eq(link_all(names, sizeof names, 1), CAIRN_ERROR_UNSUPPORTED);
}
END_TEST

START_TEST(test_symbols_may_have_the_same_name)
{
    static const char names[] = "\0f";
    add_section(0, SHT_PROGBITS, WRITABLE, "\0\0\0\0\0\0\0", 8);
    for (uint32_t i = 0; i < SYMBOLS; i++)
        add_symbol(1, STB_WEAK, 1);
    add_relocation(0, SYMBOLS / 2);
    ck_assert_msg(link_all(names, sizeof names, 1) == CAIRN_OK, "%s", host.error.message);
}
END_TEST

START_TEST(test_names_may_be_the_ends_of_a_long_one)
{
    char *names = malloc(SYMBOLS + 2);
    ck_assert_ptr_nonnull(names);
    memset(names, 'a', SYMBOLS + 2);
    names[0] = names[SYMBOLS + 1] = '\0';
    for (uint32_t i = 0; i < SYMBOLS; i++)
        add_symbol(1 + i, STB_GLOBAL, SHN_UNDEF);
    ck_assert_int_eq(link_all(names, SYMBOLS + 2, 0), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(host.error.message, "are too long in total"));
    free(names);
}
END_TEST

START_TEST(test_any_number_of_symbols_may_be_undefined)
{
    enum { NAME_BYTES = 8 };
    char *names = calloc(SYMBOLS + 1, NAME_BYTES);
    uint8_t *data = calloc(SYMBOLS, 8);
    ck_assert(names != NULL && data != NULL);
    add_section(0, SHT_PROGBITS, WRITABLE, data, (size_t)SYMBOLS * 8);
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        char *name = names + (i + 1) * (size_t)NAME_BYTES;
        for (uint32_t k = 0, left = i; k < NAME_BYTES - 1; k++, left /= 10)
            name[k] = (char)('0' + left % 10);
        add_symbol((i + 1) * NAME_BYTES, STB_GLOBAL, SHN_UNDEF);
        add_relocation(8 * (uint64_t)i, i + 1);
    }
    ck_assert_int_eq(link_all(names, (SYMBOLS + 1) * (size_t)NAME_BYTES, 1), CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(host.error.message, "200000 undefined symbols: 0000000, 1000000"));
    free(names);
    free(data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("object_link_linear");
    TCase *tests = tcase_create("hostile objects");
    tcase_set_timeout(tests, 600);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, test_sections_may_have_the_same_name);
    tcase_add_test(tests, test_code_and_data_may_alternate_after_an_empty_section);
    tcase_add_test(tests, test_symbols_may_have_the_same_name);
    tcase_add_test(tests, test_names_may_be_the_ends_of_a_long_one);
    tcase_add_test(tests, test_any_number_of_symbols_may_be_undefined);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
