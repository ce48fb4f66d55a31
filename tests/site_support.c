/* SPDX-License-Identifier: MIT */
#include "tests/site_support.h"
#include "base/adapter.h"

#include "arch/arch.h"
#include "tests/machine.h"
#include "tests/section_writer.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

long site_one(void) { return 1; }
long site_two(void) { return 2; }

/* ---- Any code ---- */

static uint32_t count_records(const struct site_code *code)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < code->function_count; i++)
        count += code->functions[i].record_count;
    return count;
}

static void write_stackmap(cairn_loader *loader, const uint8_t *address,
                           const struct site_code *code)
{
    struct section_writer writer;
    struct cairn_error error;
    uint32_t count = count_records(code);
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, code->function_count, 0, count);
    for (uint32_t i = 0; i < code->function_count; i++)
        writer_function(&writer, (uintptr_t)address + code->functions[i].offset, 8,
                        code->functions[i].record_count);
    for (uint32_t i = 0; i < count; i++)
        writer_record(&writer, code->records[i].id, code->records[i].offset, NULL, 0, NULL, 0);
    void *section =
        cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, writer.size, 8, NULL, &error);
    ck_assert_msg(section != NULL, "%s", error.message);
    memcpy(section, writer.bytes, writer.size);
    writer_end(&writer);
}

static void write_unwind_table(cairn_loader *loader, const uint8_t *address, uint64_t size)
{
    /* A CIE that has only the size of pointers, 8 bytes, and one FDE. */
    struct {
        uint8_t cie[16];
        uint32_t length;
        uint32_t cie_distance;
        uint64_t function;
        uint64_t size;
        uint32_t end;
    } __attribute__((packed)) table = {
        .cie = {12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0, 0, 0},
        .length = 20,
        .cie_distance = 20,
        .function = (uintptr_t)address,
        .size = size,
    };
    struct cairn_error error;
    void *memory =
        cairn_loader_allocate(loader, CAIRN_SECTION_UNWIND_TABLE, sizeof table, 8, NULL, &error);
    ck_assert_msg(memory != NULL, "%s", error.message);
    memcpy(memory, &table, sizeof table);
}

static void declare(cairn_loader *loader, const struct site_code *code)
{
    struct cairn_error error;
    cairn_declarations *declarations;
    uint32_t count = count_records(code);
    ck_assert_done(cairn_declarations_create(NULL, &declarations, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        const struct site_record *record = &code->records[i];
        const struct cairn_declaration declaration = {.id = record->id,
                                                      .kind = record->kind,
                                                      .byte_count = record->byte_count,
                                                      .function = "f"};
        if (record->kind != CAIRN_RECORD_UNDECLARED)
            ck_assert_done(cairn_declarations_add(declarations, &declaration, &error), error);
    }
    ck_assert_done(cairn_loader_declare(loader, declarations, &error), error);
    cairn_declarations_destroy(declarations);
}

cairn_module *site_load_code(cairn_runtime *runtime, const struct site_code *code,
                             uint8_t **address)
{
    struct cairn_error error;
    cairn_loader *loader;
    cairn_module *module;
    ck_assert_done(cairn_loader_create(runtime, "test", &loader, &error), error);
    *address = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, code->size, 64, NULL, &error);
    ck_assert_msg(*address != NULL, "%s", error.message);
    memcpy(*address, code->bytes, code->size);
    write_stackmap(loader, *address, code);
    if (code->unwound > 0)
        write_unwind_table(loader, *address, code->unwound);
    declare(loader, code);
    ck_assert_done(cairn_loader_finish(loader, &module, &error), error);
    return module;
}

cairn_runtime *site_runtime(enum cairn_code_mode mode)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    const struct cairn_runtime_options options = {.code_mode = mode};
    ck_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    return runtime;
}

struct cairn_site_description site_describe(const cairn_site *site)
{
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    return description;
}

/* ---- One function with one site ---- */

enum { NEAR_ONE = SITE_FUNCTION_BYTES, NEAR_TWO = NEAR_ONE + 32, NEAR_THREE = NEAR_TWO + 32 };

static void write_targets(uint8_t *code)
{
    const struct cairn_arch *arch = arch_host();
    arch->encode_self_test(arch, 1, code + NEAR_ONE);
    arch->encode_self_test(arch, 2, code + NEAR_TWO);
    size_t size = machine_leave_frame(code + NEAR_THREE);
    arch->encode_self_test(arch, 3, code + NEAR_THREE + size);
}

/* Returns the offset at which the function continues after the region. */
static uint32_t write_function(uint8_t *code, const struct site_shape *shape)
{
    uint8_t *at = code + machine_enter(code);
    arch_host()->fill_nops(arch_host(), at, shape->padding);
    at += shape->padding;
    memcpy(at, shape->region, shape->region_size);
    at += shape->region_size;
    uint32_t tail = (uint32_t)(at - code);
    at += machine_leave_frame(at);
    at += machine_return(at);
    ck_assert_int_le(at - code, SITE_FUNCTION_BYTES);
    return tail;
}

void site_load_into(struct site_fixture *fixture, cairn_runtime *runtime,
                    const struct site_shape *shape)
{
    uint8_t bytes[SITE_CODE_BYTES];
    struct cairn_error error;
    uint32_t record = machine_enter_bytes + shape->padding;
    /* A statepoint's record is at the end of its bytes. */
    if (shape->kind == CAIRN_RECORD_STATEPOINT)
        record += shape->byte_count;
    const struct site_function function = {0, shape->next_record == 0 ? 1 : 2};
    const struct site_record records[] = {
        {42, record, shape->byte_count, shape->kind},
        {43, machine_enter_bytes + shape->padding + shape->next_record, 0,
         CAIRN_RECORD_UNDECLARED}};
    memset(bytes, 0xCC, sizeof bytes);
    write_targets(bytes);
    uint32_t tail = write_function(bytes, shape);
    const struct site_code code = {bytes, sizeof bytes, &function, 1, records, 0};
    fixture->runtime = runtime;
    fixture->module = site_load_code(runtime, &code, &fixture->code);
    if (shape->publish)
        ck_assert_done(cairn_module_publish(fixture->module, &error), error);
    fixture->site = cairn_module_site(fixture->module, 0);
    ck_assert_ptr_nonnull(fixture->site);
    fixture->function = (long (*)(void))(uintptr_t)fixture->code;
    fixture->tail = fixture->code + tail;
    fixture->near_one = fixture->code + NEAR_ONE;
    fixture->near_two = fixture->code + NEAR_TWO;
    fixture->near_three = fixture->code + NEAR_THREE;
}

void site_load(struct site_fixture *fixture, enum cairn_code_mode mode,
               const struct site_shape *shape)
{
    site_load_into(fixture, site_runtime(mode), shape);
}

void site_unload(struct site_fixture *fixture)
{
    cairn_module_retire(fixture->module);
    ck_assert_uint_eq(cairn_runtime_quiesce(fixture->runtime), 1);
    cairn_runtime_destroy(fixture->runtime);
}

struct site_shape site_null_patchpoint(uint8_t *region, uint32_t size)
{
    ck_assert_uint_le(size, SITE_REGION_MAX);
    memset(region, 0, size);
    for (uint32_t at = 0; at < size;) {
        /* One no-op at a time: on x86-64, LLVM's own are longer, and another test checks those. */
        uint32_t left = size - at;
        uint32_t step = arch_host()->fixed_instruction_bytes == 0 ? 1 : left < 4 ? left : 4;
        arch_host()->fill_nops(arch_host(), region + at, step);
        at += step;
    }
    return (struct site_shape){CAIRN_RECORD_PATCHPOINT, region, size, size, 0, 0, true};
}

struct site_shape site_patchpoint(uint8_t *region, uint32_t size)
{
    uint8_t call[MACHINE_PATCHPOINT_MAX];
    size_t call_size = machine_call(call, SITE_ONE);
    struct site_shape shape = site_null_patchpoint(region, size);
    if (size >= call_size)
        memcpy(region, call, call_size);
    return shape;
}

struct site_shape site_calling_patchpoint(uint8_t *region)
{
    return site_patchpoint(region, machine_patchpoint_bytes);
}

/* ---- Code elsewhere ---- */

static uint8_t *page_of(uint64_t address)
{
    return (uint8_t *)(uintptr_t)(address & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1));
}

static size_t two_pages(void) { return 2 * (size_t)sysconf(_SC_PAGESIZE); }

bool site_place_code(uint64_t address, const uint8_t *code, size_t size)
{
    uint8_t *page = page_of(address);
    uint8_t *place = (uint8_t *)(uintptr_t)address;
    uint8_t *memory = mmap(page, two_pages(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    ck_assert_ptr_eq(memory, page);
    memcpy(place, code, size);
    arch_host_code_written(place, place, size);
    ck_assert_int_eq(mprotect(page, two_pages(), PROT_READ | PROT_EXEC), 0);
    return true;
}

void site_remove_code(uint64_t address)
{
    ck_assert_int_eq(munmap(page_of(address), two_pages()), 0);
}

int site_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
