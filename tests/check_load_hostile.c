/*
 * Tests of loading hostile objects: what an object may take of memory and time, and which part of
 * it a refusal names. Nothing of a refused object remains.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/bound_sites.h"
#include "format/manifest.h"
#include "format/names.h"
#include "stackmap_support.h"

#include <cairn/load.h>
#include <cairn/runtime.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64, ADDRESS = R_X86_64_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64, ADDRESS = R_AARCH64_ABS64 };
#else
enum { MACHINE = EM_PPC64, ADDRESS = R_PPC64_ADDR64 };
#endif

/* Far more than is needed, even under emulators and with sanitizers. */
enum { CPU_SECONDS = 40, SECTIONS = 100000 };
#ifdef __SANITIZE_ADDRESS__
enum { LONG_NAME = 50000 }; /* each function of strings reads all of its string there */
#else
enum { LONG_NAME = 5000000 };
#endif
enum { WRITABLE = SHF_ALLOC | SHF_WRITE };

static cairn_runtime *runtime;
static struct cairn_error error;

/* The object: its section headers and its contents, which are written one after the other. */
static struct sample_section headers;
static struct sample_section contents;
static struct sample_section symbols;
static char *names;
static size_t name_bytes;
static uint32_t section_count;

static void put_header(uint32_t name, uint32_t type, uint64_t flags, uint64_t size,
                       uint64_t alignment)
{
    section_put(&headers, name, 4);
    section_put(&headers, type, 4);
    section_put(&headers, flags, 8);
    section_put(&headers, 0, 8);
    section_put(&headers, sizeof(Elf64_Ehdr) + contents.size, 8);
    section_put(&headers, size, 8);
    section_put(&headers, 0, 8);
    section_put(&headers, alignment, 8);
    section_put(&headers, 0, 8);
    section_count++;
}

/* Adds a section with `size` bytes of contents, or of zeros if `bytes` is NULL. Returns its
 * number. */
static uint32_t add_section(uint32_t name, uint32_t type, uint64_t flags, const void *bytes,
                            size_t size)
{
    put_header(name, type, flags, size, 8);
    for (size_t i = 0; i < size; i++)
        section_put(&contents, bytes == NULL ? 0 : ((const uint8_t *)bytes)[i], 1);
    return section_count - 1;
}

/* Sets the names of sections and symbols, which are used by their offsets. */
static void set_names(const char *begin, size_t size, size_t filled, char with)
{
    name_bytes = size + filled + 1;
    names = calloc(name_bytes, 1);
    ck_assert_ptr_nonnull(names);
    memcpy(names, begin, size);
    memset(names + size, with, filled);
}

static void set_link(uint32_t section, uint32_t link, uint32_t info, uint64_t entry_bytes)
{
    uint8_t *header = headers.bytes + section * sizeof(Elf64_Shdr);
    memcpy(header + offsetof(Elf64_Shdr, sh_link), &link, sizeof link);
    memcpy(header + offsetof(Elf64_Shdr, sh_info), &info, sizeof info);
    memcpy(header + offsetof(Elf64_Shdr, sh_entsize), &entry_bytes, sizeof entry_bytes);
}

static void add_symbol(uint32_t name, uint16_t section, uint64_t value, uint64_t size)
{
    if (symbols.size == 0)
        for (size_t i = 0; i < sizeof(Elf64_Sym); i++)
            section_put(&symbols, 0, 1);
    section_put(&symbols, name, 4);
    section_put(&symbols, STB_GLOBAL << 4, 1);
    section_put(&symbols, 0, 1);
    section_put(&symbols, section, 2);
    section_put(&symbols, value, 8);
    section_put(&symbols, size, 8);
}

/* Returns the object, with its names and symbols, and a relocation of section 1 if there are
 * symbols. The caller frees it. */
static uint8_t *write_object(size_t *size)
{
    uint32_t strings = add_section(0, SHT_STRTAB, 0, names, name_bytes);
    if (symbols.size > 0) {
        uint32_t table = add_section(0, SHT_SYMTAB, 0, symbols.bytes, symbols.size);
        const Elf64_Rela relocation = {.r_info = ELF64_R_INFO(1, ADDRESS)};
        uint32_t relocations = add_section(0, SHT_RELA, 0, &relocation, sizeof relocation);
        set_link(table, strings, 1, sizeof(Elf64_Sym));
        set_link(relocations, table, 1, sizeof relocation);
    }
    Elf64_Ehdr header = {
        .e_ident = {0x7F, 'E', 'L', 'F', ELFCLASS64,
                    CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN ? ELFDATA2MSB : ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_REL,
        .e_machine = MACHINE,
        .e_version = EV_CURRENT,
        .e_shoff = sizeof header + contents.size,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shstrndx = SHN_XINDEX};
    const uint64_t count = section_count;
    memcpy(headers.bytes + offsetof(Elf64_Shdr, sh_size), &count, sizeof count);
    memcpy(headers.bytes + offsetof(Elf64_Shdr, sh_link), &strings, sizeof strings);
    *size = sizeof header + contents.size + headers.size;
    uint8_t *bytes = malloc(*size);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, contents.bytes, contents.size);
    memcpy(bytes + sizeof header + contents.size, headers.bytes, headers.size);
    return bytes;
}

static size_t asked; /* names that the host was asked for */

static size_t find_names(void *user, const struct cairn_name *symbolic, size_t count,
                         uint64_t *values)
{
    *(size_t *)user += count;
    for (size_t i = 0; i < count; i++)
        values[i] = symbolic[i].size;
    return count;
}

/* Loads the object and frees the module. Sets the error. */
static enum cairn_status load(void)
{
    const struct cairn_load_options options = {
        .name = "x.o", .find_names = find_names, .user = &asked};
    size_t size;
    uint8_t *bytes = write_object(&size);
    cairn_loader *loader;
    cairn_module *module;
    ck_assert_int_eq(cairn_loader_create(runtime, "x", &loader, NULL), CAIRN_OK);
    enum cairn_status status = cairn_loader_add_object(loader, bytes, size, &options, &error);
    free(bytes);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, &module, &error);
    if (status == CAIRN_OK)
        cairn_module_retire(module);
    else
        cairn_loader_destroy(loader);
    cairn_runtime_quiesce(runtime);
    return status;
}

/* Loads it, and removes the sections that writing it has added. */
static enum cairn_status load_again(uint32_t sections, size_t end_of_contents)
{
    enum cairn_status status = load();
    section_count = sections;
    headers.size = sections * sizeof(Elf64_Shdr);
    contents.size = end_of_contents;
    return status;
}

static void expect_refused(enum cairn_status wanted, const char *message)
{
    enum cairn_status status = load();
    ck_assert_str_eq(error.message, message);
    ck_assert_int_eq(status, wanted);
}

static void begin(void)
{
    const struct sample_section empty = {.byte_order = CAIRN_BYTE_ORDER_NATIVE};
    headers = contents = symbols = empty;
    section_count = 0;
    put_header(0, SHT_NULL, 0, 0, 0);
    ck_assert_int_eq(cairn_runtime_create(NULL, &runtime, NULL), CAIRN_OK);
    limit_cpu_seconds(CPU_SECONDS);
}

static void end(void)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(runtime, &statistics);
    ck_assert_uint_eq(statistics.code_bytes + statistics.data_bytes, 0);
    ck_assert_uint_eq(statistics.module_count + statistics.retired_count, 0);
    cairn_runtime_destroy(runtime);
    section_free(&headers);
    section_free(&contents);
    section_free(&symbols);
    free(names);
}

/* ---- Time ---- */

static const struct {
    const char *begin; /* of the name that all sections share */
    char with;         /* what it goes on with */
} long_names[] = {
    {"\0.text.", 'a'}, {"\0.init_array.", '0'}, {"\0.dtors.", '0'}, {"\0section", 'a'}};
enum { LONG_NAMES = sizeof long_names / sizeof *long_names };

START_TEST(test_sections_may_share_a_long_name)
{
    const char *name = long_names[_i].begin;
    set_names(name, 1 + strlen(name + 1), LONG_NAME, long_names[_i].with);
    for (uint32_t i = 0; i < SECTIONS; i++)
        add_section(1, SHT_PROGBITS, SHF_ALLOC, "\0\0\0\0\0\0\0", 8);
    ck_assert_int_eq(load(), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "x.o: section "));
    ck_assert_ptr_nonnull(strstr(error.message, "are too long in total"));
}
END_TEST

/* Begins a manifest for this machine. */
static void begin_manifest(struct sample_section *manifest, uint32_t pc_sections)
{
    *manifest = (struct sample_section){.byte_order = CAIRN_LITTLE_ENDIAN};
    for (const char *byte = MANIFEST_MAGIC; *byte != '\0'; byte++)
        section_put(manifest, (uint8_t)*byte, 1);
    section_put(manifest, MANIFEST_VERSION, 4);
    section_put(manifest, 0, 4);
    section_put(manifest, pc_sections, 4);
    section_put(manifest, 0, 4);
    section_put(manifest, cairn_architecture_host(), 1);
    section_put(manifest, 0, 1);
    for (int text = 0; text < 3; text++)
        section_put(manifest, 0, 2);
}

static void put_pc_section(struct sample_section *manifest, const char *name)
{
    section_put(manifest, strlen(name), 1);
    for (size_t i = 0; i <= strlen(name); i++)
        section_put(manifest, (uint8_t)name[i], 1);
    section_put(manifest, 0, 1);
}

static void end_manifest(struct sample_section *manifest, uint32_t name)
{
    while (manifest->size % MANIFEST_ALIGNMENT != 0)
        section_put(manifest, 0, 1);
    uint32_t size = (uint32_t)manifest->size;
    for (unsigned byte = 0; byte < sizeof size; byte++)
        manifest->bytes[12 + byte] = (uint8_t)(size >> 8 * byte);
    add_section(name, SHT_PROGBITS, SHF_ALLOC, manifest->bytes, manifest->size);
    section_free(manifest);
}

/* A manifest that was linked from many has the same names many times. */
START_TEST(test_pc_sections_may_be_named_many_times)
{
    static const char text[] = "\0.cairn.manifest\0data";
    struct sample_section manifest;
    set_names(text, sizeof text, 0, 0);
    begin_manifest(&manifest, SECTIONS);
    for (uint32_t i = 0; i < SECTIONS; i++)
        put_pc_section(&manifest, "pcs");
    end_manifest(&manifest, 1);
    for (uint32_t i = 0; i < SECTIONS; i++)
        add_section(17, SHT_PROGBITS, SHF_ALLOC, "\0\0\0\0\0\0\0", 8);
    ck_assert_msg(load() == CAIRN_OK, "%s", error.message);
}
END_TEST

START_TEST(test_too_many_names_of_pc_sections_are_refused)
{
    static const char text[] = "\0.cairn.manifest";
    enum { MOST = 1024 };
    struct sample_section manifest;
    set_names(text, sizeof text, 0, 0);
    begin_manifest(&manifest, MOST + 1);
    for (uint32_t i = 0; i <= MOST; i++) {
        char name[16];
        snprintf(name, sizeof name, "pcs%u", 10000 + i);
        put_pc_section(&manifest, name);
    }
    end_manifest(&manifest, 1);
    expect_refused(CAIRN_ERROR_RANGE, "x.o: section .cairn.manifest, offset 11296: more than 1024 "
                                      "names of PC sections");
}
END_TEST

/* ---- Memory ---- */

static const char *const table_names[] = {".llvm_stackmaps", ".llvm_faultmaps", ".eh_frame"};
enum { TABLE_NAMES = sizeof table_names / sizeof *table_names };

START_TEST(test_a_table_without_contents_is_refused)
{
    char text[32] = "";
    char message[128];
    snprintf(text + 1, sizeof text - 1, "%s", table_names[_i]);
    set_names(text, sizeof text, 0, 0);
    put_header(1, SHT_NOBITS, SHF_ALLOC, UINT64_C(1) << 33, 8);
    snprintf(message, sizeof message,
             "x.o: section 1 (%s): 8589934592 bytes without contents in the file", table_names[_i]);
    expect_refused(CAIRN_ERROR_CORRUPT, message);
}
END_TEST

START_TEST(test_a_section_that_is_too_large_is_named)
{
    static const char text[] = "\0.data\0.bss";
    set_names(text, sizeof text, 0, 0);
    add_section(1, SHT_PROGBITS, WRITABLE, NULL, 8);
    put_header(7, SHT_NOBITS, WRITABLE, UINT64_C(1) << 33, 8);
    ck_assert_int_eq(load(), CAIRN_ERROR_FULL);
    ck_assert_msg(strncmp(error.message, "section 2 (.bss), the largest of its kind: ", 43) == 0,
                  "%s", error.message);
}
END_TEST

START_TEST(test_an_alignment_that_is_too_large_is_named)
{
    static const char text[] = "\0.data";
    char message[128];
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    set_names(text, sizeof text, 0, 0);
    put_header(1, SHT_NOBITS, WRITABLE, 1, 2 * page);
    snprintf(message, sizeof message,
             "x.o: section 1 (.data): aligned to %lu bytes; at most %lu are possible", 2 * page,
             page);
    expect_refused(CAIRN_ERROR_RANGE, message);
}
END_TEST

START_TEST(test_a_common_symbol_with_a_large_alignment_is_named)
{
    static const char text[] = "\0.data\0shared";
    char message[128];
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    set_names(text, sizeof text, 0, 0);
    add_section(1, SHT_PROGBITS, WRITABLE, NULL, 8);
    add_symbol(7, SHN_COMMON, 2 * page, 8);
    snprintf(message, sizeof message,
             "x.o: section 3 (symbols), entry 1 (shared): aligned to %lu bytes; at most %lu are "
             "possible",
             2 * page, page);
    expect_refused(CAIRN_ERROR_RANGE, message);
}
END_TEST

/* ---- Symbolic constants ---- */

static void put_name(struct sample_section *section, uint64_t number)
{
    section_put(section, 0, 8);
    section_put(section, sizeof number, 8);
    section_put(section, number, 8);
}

/* Writes a binding with one name. The words are little-endian. */
static void put_binding(struct sample_section *section, uint64_t id, uint64_t kind, uint64_t count,
                        uint64_t name)
{
    section->byte_order = CAIRN_LITTLE_ENDIAN;
    section_put(section, id, 8);
    section_put(section, kind, 8);
    section_put(section, count, 8);
    section_put(section, name, 8);
}

static void add_and_free(uint32_t name, uint64_t flags, struct sample_section *section)
{
    add_section(name, SHT_PROGBITS, flags, section->bytes, section->size);
    section_free(section);
}

static const char symbolic_names[] = "\0.cairn.names\0.cairn.sites";
enum { NAMES_NAME = 1, SITES_NAME = 14 };

/* Each is counted, sorted and found once. */
START_TEST(test_many_names_and_bindings_take_linear_time)
{
    struct sample_section symbolic = {.byte_order = CAIRN_BYTE_ORDER_NATIVE};
    struct sample_section bound = {.byte_order = CAIRN_LITTLE_ENDIAN};
    asked = 0;
    set_names(symbolic_names, sizeof symbolic_names, 0, 0);
    for (uint64_t i = 0; i < SECTIONS; i++) {
        uint64_t number = i % (SECTIONS / 2);
        put_name(&symbolic, number);
        put_binding(&bound, i, BOUND_SITE_CALL, 1, name_id(&number, sizeof number));
    }
    add_and_free(NAMES_NAME, SHF_ALLOC, &symbolic);
    add_and_free(SITES_NAME, SHF_ALLOC, &bound);
    ck_assert_msg(load() == CAIRN_OK, "%s", error.message);
    ck_assert_uint_eq(asked, SECTIONS);
}
END_TEST

START_TEST(test_names_that_are_not_read_only_data_are_refused)
{
    struct sample_section symbolic = {.byte_order = CAIRN_BYTE_ORDER_NATIVE};
    set_names(symbolic_names, sizeof symbolic_names, 0, 0);
    put_name(&symbolic, 1);
    add_and_free(NAMES_NAME, _i == 0 ? WRITABLE : SHF_ALLOC | SHF_EXECINSTR, &symbolic);
    expect_refused(CAIRN_ERROR_CORRUPT, "x.o: section 1 (.cairn.names) is not read-only data");
}
END_TEST

static const struct {
    uint64_t kind;
    uint64_t count;
    const char *message;
} bad_bindings[] = {
    {0, 1, "not a binding of a site"},
    {4, 1, "not a binding of a site"},
    {UINT64_MAX, 1, "not a binding of a site"},
    {BOUND_SITE_CACHE, 0, "a binding with a wrong number of names"},
    {BOUND_SITE_CALL, 2, "a binding with a wrong number of names"},
    {BOUND_SITE_ASSUMPTIONS, 1, "a binding with a wrong number of names"},
    {BOUND_SITE_ASSUMPTIONS, UINT64_MAX, "a binding with a wrong number of names"},
    {BOUND_SITE_CALL, 1, "a binding to a name that the object does not have"},
};

START_TEST(test_bindings_of_another_form_are_refused)
{
    char message[128];
    struct sample_section bound = {.byte_order = CAIRN_LITTLE_ENDIAN};
    set_names(symbolic_names, sizeof symbolic_names, 0, 0);
    put_binding(&bound, 1, bad_bindings[_i].kind, bad_bindings[_i].count, 7);
    add_and_free(SITES_NAME, SHF_ALLOC, &bound);
    snprintf(message, sizeof message, "x.o: section 1 (.cairn.sites), offset 0: %s",
             bad_bindings[_i].message);
    expect_refused(CAIRN_ERROR_CORRUPT, message);
}
END_TEST

START_TEST(test_bindings_without_contents_are_refused)
{
    set_names(symbolic_names, sizeof symbolic_names, 0, 0);
    put_header(SITES_NAME, SHT_NOBITS, SHF_ALLOC, 64, 8);
    expect_refused(CAIRN_ERROR_CORRUPT,
                   "x.o: section 1 (.cairn.sites), offset 0: it has no contents");
}
END_TEST

START_TEST(test_damaged_names_and_bindings_are_refused_or_loaded)
{
    enum { ROUNDS = 3000, ENTRIES = 4 };
    uint64_t random = 20261129;
    struct sample_section symbolic = {.byte_order = CAIRN_BYTE_ORDER_NATIVE};
    struct sample_section bound = {.byte_order = CAIRN_LITTLE_ENDIAN};
    set_names(symbolic_names, sizeof symbolic_names, 0, 0);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        put_name(&symbolic, i);
        put_binding(&bound, i, 1 + i % 2, 1, name_id(&i, sizeof i));
    }
    add_and_free(NAMES_NAME, SHF_ALLOC, &symbolic);
    add_and_free(SITES_NAME, SHF_ALLOC, &bound);
    unsigned refused = 0;
    size_t end = contents.size;
    uint32_t sections = section_count;
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t at = sample_random(&random, (uint32_t)end);
        uint8_t byte = contents.bytes[at];
        contents.bytes[at] = (uint8_t)sample_random(&random, 256);
        refused += load_again(sections, end) != CAIRN_OK;
        contents.bytes[at] = byte;
    }
    ck_assert_uint_gt(refused, ROUNDS / 8);
    ck_assert_uint_lt(refused, ROUNDS);
}
END_TEST

/* ---- Names ---- */

START_TEST(test_the_first_undefined_symbol_is_named_however_long)
{
    static const char text[] = "\0.data\0undefined";
    set_names(text, sizeof text - 1, LONG_NAME, 'u');
    add_section(1, SHT_PROGBITS, WRITABLE, NULL, 8);
    add_symbol(7, SHN_UNDEF, 0, 0);
    ck_assert_int_eq(load(), CAIRN_ERROR_NOT_FOUND);
    ck_assert_msg(strncmp(error.message, "1 undefined symbols: undefineduuuuuuu", 37) == 0, "%s",
                  error.message);
}
END_TEST

START_TEST(test_a_manifest_that_is_refused_is_named_with_its_object)
{
    static const char text[] = "\0.cairn.manifest";
    set_names(text, sizeof text, 0, 0);
    add_section(1, SHT_PROGBITS, SHF_ALLOC, "CAIRN", 5);
    expect_refused(CAIRN_ERROR_TRUNCATED, "x.o: section .cairn.manifest, offset 0: truncated "
                                          "header (24 bytes needed, 5 left)");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("load_hostile");
    TCase *tests = tcase_create("hostile objects");
    tcase_set_timeout(tests, 600);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, test_sections_may_share_a_long_name, 0, LONG_NAMES);
    tcase_add_test(tests, test_pc_sections_may_be_named_many_times);
    tcase_add_test(tests, test_too_many_names_of_pc_sections_are_refused);
    tcase_add_loop_test(tests, test_a_table_without_contents_is_refused, 0, TABLE_NAMES);
    tcase_add_test(tests, test_a_section_that_is_too_large_is_named);
    tcase_add_test(tests, test_an_alignment_that_is_too_large_is_named);
    tcase_add_test(tests, test_a_common_symbol_with_a_large_alignment_is_named);
    tcase_add_test(tests, test_many_names_and_bindings_take_linear_time);
    tcase_add_loop_test(tests, test_names_that_are_not_read_only_data_are_refused, 0, 2);
    tcase_add_loop_test(tests, test_bindings_of_another_form_are_refused, 0,
                        (int)(sizeof bad_bindings / sizeof *bad_bindings));
    tcase_add_test(tests, test_bindings_without_contents_are_refused);
    tcase_add_test(tests, test_damaged_names_and_bindings_are_refused_or_loaded);
    tcase_add_test(tests, test_the_first_undefined_symbol_is_named_however_long);
    tcase_add_test(tests, test_a_manifest_that_is_refused_is_named_with_its_object);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
