/*
 * Tests of manifests: what is written is read again, and hostile bytes are refused.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "base/memory.h"
#include "format/manifest.h"
#include "stackmap_support.h"

#include <cairn/runtime.h>
#include <stdlib.h>
#include <string.h>

static struct cairn_allocator allocator;
static uint64_t state;

static uint32_t below(uint32_t bound) { return sample_random(&state, bound); }

/* ---- Random manifests ---- */

enum { DECLARATIONS_MAX = 40, SECTIONS_MAX = 4, TYPES_MAX = 12 };

/* The manifests of two modules, and what they contain. */
struct sample {
    struct manifest manifest;
    struct manifest_pc_section pc_sections[SECTIONS_MAX];
    cairn_declarations *declarations;
};

static struct cairn_type random_type(void)
{
    static const struct cairn_type types[] = {
        {.kind = CAIRN_TYPE_INTEGER, .bits = 64},
        {.kind = CAIRN_TYPE_INTEGER, .bits = 1u << 23},
        {.kind = CAIRN_TYPE_POINTER, .bits = 64, .address_space = 7},
        {.kind = CAIRN_TYPE_POINTER, .bits = 64, .address_space = UINT32_MAX},
        {.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 16},
        {.kind = CAIRN_TYPE_DOUBLE, .bits = 64},
        {.kind = CAIRN_TYPE_OTHER, .bits = 0},
        {.kind = CAIRN_TYPE_VOID},
    };
    return types[below(sizeof types / sizeof *types)];
}

static uint32_t random_u32(void)
{
    return below(2) == 0 ? below(300) : (uint32_t)sample_random_id(&state);
}

static void add_random_declaration(cairn_declarations *declarations)
{
    static const char *const functions[] = {NULL, "", "f", "a longer name", "\xFF\x01"};
    char long_name[MANIFEST_SHARED_NAME_MAX + 2];
    struct cairn_type types[TYPES_MAX];
    for (size_t i = 0; i < TYPES_MAX; i++)
        types[i] = random_type();
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    struct cairn_declaration declaration = {
        .id = sample_random_id(&state),
        .kind = (enum cairn_record_kind)below(CAIRN_RECORD_STATEPOINT + 1),
        .byte_count = random_u32(),
        .calling_convention = random_u32(),
        .has_target = below(2) == 0,
        .result = random_type(),
        .types = types,
        .argument_count = below(TYPES_MAX / 2),
        .live_value_count = below(TYPES_MAX / 2),
        .function = below(8) == 0 ? long_name : functions[below(5)],
    };
    if (below(2) == 0) {
        struct cairn_results *results = &declaration.function_results;
        results->is_known = true;
        results->extends_sign = below(2) == 0;
        results->count = (uint8_t)below(CAIRN_FUNCTION_RESULTS_MAX + 1);
        for (uint8_t i = 0; i < results->count; i++)
            results->types[i] = random_type();
    }
    ck_assert_ok(cairn_declarations_add(declarations, &declaration, NULL));
}

static struct manifest_pc_section random_pc_section(void)
{
    struct manifest_pc_section section = {.name = below(2) == 0 ? "" : "notes",
                                          .is_prefix = below(2) == 0};
    if (below(3) == 0)
        return section;
    section.schema.address_bytes = below(2) == 0 ? 4 : 8;
    section.schema.has_size = below(2) == 0;
    section.schema.is_compressed = below(2) == 0;
    section.schema.constant_count = (uint8_t)below(CAIRN_PCSECTION_CONSTANTS_MAX + 1);
    for (uint8_t i = 0; i < section.schema.constant_count; i++)
        section.schema.constant_bytes[i] = (uint8_t)(1 + below(8));
    return section;
}

static void make_sample(struct sample *sample)
{
    static const char *const features[] = {"", "avx2", "avx2,avx512f,fma"};
    memset(sample, 0, sizeof *sample);
    ck_assert_ok(cairn_declarations_create(NULL, &sample->declarations, NULL));
    for (uint32_t count = below(DECLARATIONS_MAX); count > 0; count--)
        add_random_declaration(sample->declarations);
    sample->manifest.target = (struct manifest_target){
        .architecture = (enum cairn_architecture)below(CAIRN_ARCHITECTURE_RISCV64 + 1),
        .llvm_version = random_u32(),
        .triple = below(2) == 0 ? "" : "x86_64-pc-linux-gnu",
        .cpu = below(2) == 0 ? "" : "znver4",
        .features = features[below(3)],
    };
    sample->manifest.declarations = sample->declarations;
    sample->manifest.pc_sections = sample->pc_sections;
    sample->manifest.pc_section_count = below(SECTIONS_MAX);
    for (size_t i = 0; i < sample->manifest.pc_section_count; i++)
        sample->pc_sections[i] = random_pc_section();
}

static void free_sample(struct sample *sample) { cairn_declarations_destroy(sample->declarations); }

/* ---- Comparing ---- */

static void expect_type(struct cairn_type found, struct cairn_type expected)
{
    expect_equal(found.kind, expected.kind);
    expect_equal(found.bits, expected.bits);
    expect_equal(found.element_count, expected.element_count);
    expect_equal(found.address_space, expected.address_space);
}

static void expect_declaration(const struct cairn_declaration *found,
                               const struct cairn_declaration *expected)
{
    expect_equal(found->id, expected->id);
    expect_equal(found->kind, expected->kind);
    if (expected->kind == CAIRN_RECORD_UNDECLARED)
        return;
    expect_equal(found->byte_count, expected->byte_count);
    expect_equal(found->calling_convention, expected->calling_convention);
    expect_equal(found->has_target, expected->has_target);
    expect_type(found->result, expected->result);
    expect_equal(found->argument_count, expected->argument_count);
    expect_equal(found->live_value_count, expected->live_value_count);
    for (size_t i = 0; i < (size_t)found->argument_count + found->live_value_count; i++)
        expect_type(found->types[i], expected->types[i]);
    expect((found->function == NULL) == (expected->function == NULL));
    expect(found->function == NULL || strcmp(found->function, expected->function) == 0);
    const struct cairn_results *results = &found->function_results;
    expect_equal(results->is_known, expected->function_results.is_known);
    if (!results->is_known)
        return;
    expect_equal(results->extends_sign, expected->function_results.extends_sign);
    expect_equal(results->count, expected->function_results.count);
    for (uint8_t i = 0; i < results->count; i++)
        expect_type(results->types[i], expected->function_results.types[i]);
}

/* Reads a unit, and compares it with a sample, if there is one. */
static enum cairn_status read_unit(struct manifest_reader *reader, const struct sample *expected,
                                   struct cairn_error *error)
{
    struct manifest_target target;
    struct manifest_pc_section pc_section;
    struct cairn_declaration declaration;
    enum cairn_status status = manifest_read_unit(reader, &target, error);
    if (status == CAIRN_OK && expected != NULL) {
        const struct manifest_target *own = &expected->manifest.target;
        expect_equal(target.architecture, own->architecture);
        expect_equal(target.llvm_version, own->llvm_version);
        expect(strcmp(target.triple, own->triple) == 0 && strcmp(target.cpu, own->cpu) == 0);
        expect(strcmp(target.features, own->features) == 0);
        expect_equal(reader->pc_sections_left, expected->manifest.pc_section_count);
        expect_equal(reader->declarations_left, cairn_declarations_count(expected->declarations));
    }
    for (size_t i = 0; status == CAIRN_OK && reader->pc_sections_left > 0; i++) {
        status = manifest_read_pc_section(reader, &pc_section, error);
        if (status != CAIRN_OK || expected == NULL)
            continue;
        expect(strcmp(pc_section.name, expected->pc_sections[i].name) == 0);
        expect_equal(pc_section.is_prefix, expected->pc_sections[i].is_prefix);
        expect(memcmp(&pc_section.schema, &expected->pc_sections[i].schema,
                      sizeof pc_section.schema) == 0);
    }
    for (size_t i = 0; status == CAIRN_OK && reader->declarations_left > 0; i++) {
        status = manifest_read_declaration(reader, &declaration, error);
        if (status == CAIRN_OK && expected != NULL)
            expect_declaration(&declaration, cairn_declarations_at(expected->declarations, i));
    }
    return status;
}

static enum cairn_status read_all(const uint8_t *bytes, size_t size, struct cairn_error *error)
{
    struct manifest_reader reader;
    enum cairn_status status = CAIRN_OK;
    manifest_reader_init(&reader, bytes, size, &allocator);
    while (status == CAIRN_OK && reader.offset < reader.size)
        status = read_unit(&reader, NULL, error);
    manifest_reader_release(&reader);
    return status;
}

/* ---- What is written is read again ---- */

START_TEST(random_manifests_are_read_as_they_were_written)
{
    enum { ROUNDS = 300, UNITS = 3 };
    state = sample_seed();
    for (int round = 0; round < ROUNDS; round++) {
        struct sample samples[UNITS];
        uint8_t *section = NULL;
        size_t size = 0;
        for (int i = 0; i < UNITS; i++) {
            uint8_t *bytes;
            size_t added;
            make_sample(&samples[i]);
            ck_assert_ok(manifest_write(&samples[i].manifest, &allocator, &bytes, &added, NULL));
            expect_equal(added % MANIFEST_ALIGNMENT, 0);
            uint8_t *larger = realloc(section, size + added);
            ck_assert_ptr_ne(larger, NULL);
            section = larger;
            memcpy(section + size, bytes, added);
            size += added;
            memory_free(&allocator, bytes, added);
        }
        struct manifest_reader reader;
        manifest_reader_init(&reader, section, size, &allocator);
        for (int i = 0; i < UNITS; i++) {
            ck_assert_ok(read_unit(&reader, &samples[i], NULL));
            free_sample(&samples[i]);
        }
        expect_equal(reader.offset, reader.size);
        manifest_reader_release(&reader);
        free(section);
    }
}
END_TEST

/* A manifest whose bytes are known: a declaration with all parts, in a function whose name another
 * declaration shares. */
static void write_known(uint8_t **bytes, size_t *size)
{
    static const struct cairn_type types[] = {
        {.kind = CAIRN_TYPE_POINTER, .bits = 64, .address_space = 1},
        {.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 4}};
    struct cairn_declaration declaration = {
        .id = 300,
        .kind = CAIRN_RECORD_PATCHPOINT,
        .byte_count = 16,
        .has_target = true,
        .types = types,
        .argument_count = 1,
        .live_value_count = 1,
        .function = "f",
        .function_results = {.is_known = true, .count = 1, .types = {CAIRN_INTEGER(32)}},
    };
    struct manifest manifest = {.target = {.architecture = CAIRN_ARCHITECTURE_X86_64,
                                           .llvm_version = 22,
                                           .triple = "t",
                                           .cpu = "c",
                                           .features = "avx"}};
    cairn_declarations *declarations;
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(cairn_declarations_add(declarations, &declaration, NULL));
    declaration =
        (struct cairn_declaration){.id = 1, .kind = CAIRN_RECORD_STACKMAP, .function = "f"};
    ck_assert_ok(cairn_declarations_add(declarations, &declaration, NULL));
    manifest.declarations = declarations;
    ck_assert_ok(manifest_write(&manifest, &allocator, bytes, size, NULL));
    cairn_declarations_destroy(declarations);
}

static const uint8_t known[] = {
    'C',  'A', 'I', 'R', 'N', '-', 'M', 'F', /* magic bytes */
    1,    0,   0,   0,   72,  0,   0,   0,   0, 0,   0,   0,   2,
    0,    0,   0, /* version, size, numbers of items */
    1,    22,  1,   't', 0,   1,   'c', 0,   3, 'a', 'v', 'x', 0, /* the target */
    0xAC, 2,   2,   11,  16,  0,   1,   'f', 0, 0,   0,           /* ID to result */
    1,    1,   34,  64,  1,   21,  32,  4,                        /* types */
    1,    1,   32,                                                /* results of the function */
    1,    1,   16,  0,   0,   0,   0,   0,   0,                   /* another declaration */
    0,    0,   0,   0,                                            /* padding */
};

START_TEST(a_manifest_has_the_documented_bytes_on_every_host)
{
    uint8_t *bytes;
    size_t size;
    write_known(&bytes, &size);
    ck_assert_mem_eq(bytes, known, sizeof known);
    ck_assert_uint_eq(size, sizeof known);
    memory_free(&allocator, bytes, size);
}
END_TEST

START_TEST(writing_without_memory_fails_and_frees_everything)
{
    struct sample sample;
    state = 5;
    do {
        make_sample(&sample);
    } while (cairn_declarations_count(sample.declarations) < DECLARATIONS_MAX / 2 &&
             (free_sample(&sample), true));
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    for (size_t fail_at = 1; status != CAIRN_OK; fail_at++) {
        struct counting_allocator counter = {.fail_at = fail_at};
        struct cairn_allocator failing = counting(&counter);
        uint8_t *bytes;
        size_t size;
        status = manifest_write(&sample.manifest, &failing, &bytes, &size, NULL);
        if (status == CAIRN_OK)
            memory_free(&failing, bytes, size);
        else
            ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        ck_assert_uint_eq(counter.blocks, 0);
    }
    free_sample(&sample);
}
END_TEST

/* ---- Hostile bytes ---- */

START_TEST(every_truncation_is_refused_without_reading_further)
{
    for (size_t size = 1; size < sizeof known; size++) {
        struct guarded guarded = guard(known, size);
        struct cairn_error error;
        ck_assert_int_eq(read_all(guarded.bytes, size, &error), CAIRN_ERROR_TRUNCATED);
        guard_end(&guarded);
    }
}
END_TEST

START_TEST(a_unit_that_ends_early_is_refused_at_the_item_that_does_not_fit)
{
    uint8_t bytes[sizeof known];
    struct cairn_error error;
    for (size_t size = MANIFEST_HEADER_BYTES; size < sizeof known; size += MANIFEST_ALIGNMENT) {
        memcpy(bytes, known, sizeof bytes);
        bytes[12] = (uint8_t)size;
        enum cairn_status status = read_all(bytes, size, &error);
        ck_assert(status == CAIRN_ERROR_TRUNCATED || status == CAIRN_ERROR_CORRUPT);
        ck_assert_uint_ge(error.offset, 12);
        ck_assert_uint_le(error.offset, size);
    }
}
END_TEST

START_TEST(invalid_fields_are_refused_with_their_offsets)
{
    static const struct {
        size_t offset;
        uint8_t value;
        enum cairn_status status;
        size_t where;
        const char *message;
    } cases[] = {
        {0, 'X', CAIRN_ERROR_CORRUPT, 0, "does not begin with 'CAIRN-MF'"},
        {8, 2, CAIRN_ERROR_VERSION, 8, "version 2, this Cairn reads version 1"},
        {12, 16, CAIRN_ERROR_CORRUPT, 12, "invalid size of a unit"},
        {12, 73, CAIRN_ERROR_CORRUPT, 12, "invalid size of a unit"},
        {12, 80, CAIRN_ERROR_TRUNCATED, 12, "a unit of 80 bytes, 72 left"},
        {23, 255, CAIRN_ERROR_CORRUPT, 71, ""},
        {24, 7, CAIRN_ERROR_CORRUPT, 24, "an architecture must be at most 6"},
        {26, 200, CAIRN_ERROR_TRUNCATED, 26, "the triple"},
        {26, 0, CAIRN_ERROR_CORRUPT, 26, "the triple does not end with its only zero byte"},
        {39, 4, CAIRN_ERROR_CORRUPT, 39, "the kind of a declaration must be at most 3"},
        {40, 32, CAIRN_ERROR_CORRUPT, 40, "flags of a declaration must be at most 31"},
        {40, 16, CAIRN_ERROR_CORRUPT, 40, "no earlier name of a function can be shared"},
        {46, 11, CAIRN_ERROR_CORRUPT, 46, "unknown kind of type"},
        {48, 100, CAIRN_ERROR_TRUNCATED, 50, "101 types in 22 bytes"},
        {50, 64, CAIRN_ERROR_CORRUPT, 50, "a type's kind must be at most 63"},
        {56, 5, CAIRN_ERROR_CORRUPT, 56, "the number of results must be at most 4"},
        {71, 1, CAIRN_ERROR_CORRUPT, 68, "bytes after the unit's last item"},
        {20, 1, CAIRN_ERROR_CORRUPT, 59, "bytes after the unit's last item"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[sizeof known];
        struct cairn_error error = {0};
        memcpy(bytes, known, sizeof bytes);
        bytes[cases[i].offset] = cases[i].value;
        enum cairn_status status = read_all(bytes, sizeof bytes, &error);
        if (cases[i].message[0] == '\0') {
            ck_assert_int_ne(status, CAIRN_OK);
            continue;
        }
        ck_assert_msg(strstr(error.message, cases[i].message) != NULL, "case %zu: %s", i,
                      error.message);
        ck_assert_int_eq(status, cases[i].status);
        ck_assert_uint_eq(error.offset, cases[i].where);
    }
}
END_TEST

START_TEST(mutated_manifests_are_read_or_refused_within_their_bytes)
{
    enum { ROUNDS = 20000 };
    state = sample_seed();
    struct sample sample;
    uint8_t *bytes;
    size_t size;
    make_sample(&sample);
    ck_assert_ok(manifest_write(&sample.manifest, &allocator, &bytes, &size, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t *mutated = malloc(size);
        memcpy(mutated, bytes, size);
        for (uint32_t i = below(4) + 1; i > 0; i--)
            mutated[below((uint32_t)size)] = (uint8_t)below(256);
        struct cairn_error error = {0};
        enum cairn_status status = read_all(mutated, size, &error);
        expect(status == CAIRN_OK || (error.offset <= size && error.message[0] != '\0'));
        free(mutated);
    }
    memory_free(&allocator, bytes, size);
    free_sample(&sample);
}
END_TEST

/* The numbers of arguments and live values promise types that are not there, in many declarations;
 * reading must take memory and time in proportion to the bytes. */
START_TEST(numbers_that_promise_too_much_take_no_memory)
{
    enum { SIZE = 1 << 20 };
    uint8_t *bytes = calloc(1, SIZE);
    struct counting_allocator counter = {0};
    struct cairn_error error;
    limit_cpu_seconds(10);
    memcpy(bytes, known, sizeof known);
    bytes[12] = 0;
    bytes[14] = SIZE >> 16;
    bytes[20] = bytes[21] = bytes[22] = 255;
    allocator = counting(&counter);
    memset(bytes + 48, 0xFF, 4);
    bytes[52] = 0x0F;
    ck_assert_int_eq(read_all(bytes, SIZE, &error), CAIRN_ERROR_TRUNCATED);
    ck_assert_uint_eq(counter.bytes, 0);
    ck_assert_uint_eq(counter.calls, 0);
    free(bytes);
}
END_TEST

static void set_up(void) { allocator = memory_allocator(NULL); }

/* ---- Loaders ---- */

static enum cairn_status load(const uint8_t *bytes, size_t size, bool is_damaged,
                              cairn_module **module)
{
    enum { CODE_BYTES = 32, ALIGNMENT = 16 };
    cairn_runtime *runtime;
    cairn_loader *loader;
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_ok(cairn_loader_create(runtime, "manifest", &loader, NULL));
    uint8_t *code =
        cairn_loader_allocate(loader, CAIRN_SECTION_CODE, CODE_BYTES, ALIGNMENT, NULL, NULL);
    uint8_t *section =
        cairn_loader_allocate(loader, CAIRN_SECTION_MANIFEST, size, MANIFEST_ALIGNMENT, NULL, NULL);
    ck_assert_ptr_nonnull(code);
    ck_assert_ptr_nonnull(section);
    memset(code, 0, CODE_BYTES);
    memcpy(section, bytes, size);
    section[0] ^= is_damaged ? 1 : 0;
    enum cairn_status status = cairn_loader_finish(loader, module, NULL);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    else
        cairn_module_retire(*module);
    cairn_runtime_destroy(runtime);
    return status;
}

START_TEST(a_loader_reads_a_section_of_manifests_or_refuses_it)
{
    const struct cairn_declaration declaration = {.id = 7, .kind = CAIRN_RECORD_STACKMAP};
    struct manifest manifest = {
        .target = {
            .architecture = cairn_architecture_host(), .triple = "", .cpu = "", .features = ""}};
    cairn_declarations *declarations;
    cairn_module *module = NULL;
    uint8_t *bytes;
    size_t size;
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(cairn_declarations_add(declarations, &declaration, NULL));
    manifest.declarations = declarations;
    ck_assert_ok(manifest_write(&manifest, &allocator, &bytes, &size, NULL));
    ck_assert_ok(load(bytes, size, false, &module));
    ck_assert_int_eq(load(bytes, size, true, &module), CAIRN_ERROR_CORRUPT);
    memory_free(&allocator, bytes, size);
    manifest.target.architecture = CAIRN_ARCHITECTURE_RISCV64;
    ck_assert_ok(manifest_write(&manifest, &allocator, &bytes, &size, NULL));
    ck_assert_int_eq(load(bytes, size, false, &module), CAIRN_ERROR_UNSUPPORTED);
    memory_free(&allocator, bytes, size);
    cairn_declarations_destroy(declarations);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("manifest");
    TCase *tests = tcase_create("manifests");
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_manifests_are_read_as_they_were_written);
    tcase_add_test(tests, a_manifest_has_the_documented_bytes_on_every_host);
    tcase_add_test(tests, writing_without_memory_fails_and_frees_everything);
    tcase_add_test(tests, every_truncation_is_refused_without_reading_further);
    tcase_add_test(tests, a_unit_that_ends_early_is_refused_at_the_item_that_does_not_fit);
    tcase_add_test(tests, invalid_fields_are_refused_with_their_offsets);
    tcase_add_test(tests, mutated_manifests_are_read_or_refused_within_their_bytes);
    tcase_add_test(tests, numbers_that_promise_too_much_take_no_memory);
    tcase_add_test(tests, a_loader_reads_a_section_of_manifests_or_refuses_it);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
