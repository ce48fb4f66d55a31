/*
 * Tests of runtimes: loading, publishing, retiring and looking up, the order of destruction, forked
 * children, and the state after a failed allocation.
 *
 * The code is written by hand in the form in which LLVM emits it for the host, so these tests do
 * not need LLVM.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "code_support.h"
#include "machine.h"
#include "record/declarations.h"
#include "record/table.h"
#include "runtime/module.h"
#include "runtime_support.h"
#include "section_writer.h"

#include <cairn/cairn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ODD_OFFSET = 64, CODE_BYTES = 128 };
#define SITE_OFFSET machine_enter_bytes
#define SITE_BYTES machine_patchpoint_bytes

static long one(void) { return 1; }
static long two(void) { return 2; }

#define TWO ((const void *)(uintptr_t)two)

/* ---- Modules ---- */

/*
 * Writes a function that calls `one` at a patch point and returns its result. After it follows the
 * region of a second patch point, which is never executed. That region is not in LLVM's form, so
 * its site has a reason.
 */
static void write_code(uint8_t *code)
{
    memset(code, 0xF4, CODE_BYTES);
    uint8_t *site = code + machine_enter(code);
    uint8_t *tail = site + SITE_BYTES;
    size_t size = machine_call(site, (const void *)(uintptr_t)one);
    arch_host()->fill_nops(arch_host(), site + size, SITE_BYTES - size);
    machine_return(tail + machine_leave_frame(tail));
}

static enum cairn_status write_stackmap(cairn_loader *loader, uint64_t function, uint64_t id,
                                        struct cairn_error *error)
{
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, 2);
    writer_function(&writer, function, 8, 2);
    writer_record(&writer, id, SITE_OFFSET, NULL, 0, NULL, 0);
    writer_record(&writer, id + 1, ODD_OFFSET, NULL, 0, NULL, 0);
    void *section =
        cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, writer.size, 8, NULL, error);
    if (section != NULL)
        memcpy(section, writer.bytes, writer.size);
    writer_end(&writer);
    return section == NULL ? error->status : CAIRN_OK;
}

static enum cairn_status declare(cairn_loader *loader, uint64_t id, struct cairn_error *error)
{
    cairn_declarations *declarations;
    struct cairn_declaration declaration = {
        .id = id, .kind = CAIRN_RECORD_PATCHPOINT, .byte_count = SITE_BYTES, .function = "f"};
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(cairn_declarations_add(declarations, &declaration, NULL));
    declaration.id = id + 1;
    ck_assert_ok(cairn_declarations_add(declarations, &declaration, NULL));
    enum cairn_status status = cairn_loader_declare(loader, declarations, error);
    cairn_declarations_destroy(declarations);
    return status;
}

/* One function with one call frame instruction, which is the last byte. */
static enum cairn_status write_unwind_table(cairn_loader *loader, const uint8_t *code,
                                            uint8_t instruction, struct cairn_error *error)
{
    struct {
        uint8_t common[16];
        uint32_t length;
        uint32_t distance;
        uint64_t function;
        uint64_t size;
        uint8_t instructions[4];
    } __attribute__((packed)) table = {
        .common = {[8] = 1, [10] = 1, 0x78, 16},
        .length = 28 - 4,
        .distance = 20,
        .function = (uintptr_t)code,
        .size = CODE_BYTES,
        .instructions = {[3] = instruction},
    };
    const uint32_t common_length = 12;
    memcpy(table.common, &common_length, sizeof common_length);
    void *memory =
        cairn_loader_allocate(loader, CAIRN_SECTION_UNWIND_TABLE, sizeof table, 8, NULL, error);
    if (memory == NULL)
        return error->status;
    memcpy(memory, &table, sizeof table);
    return CAIRN_OK;
}

static enum cairn_status fill(cairn_loader *loader, uint64_t id, struct cairn_error *error)
{
    uint8_t *code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, CODE_BYTES, 64, NULL, error);
    if (code == NULL)
        return error->status;
    write_code(code);
    if (write_unwind_table(loader, code, 0, error) != CAIRN_OK)
        return error->status;
    enum cairn_status status = write_stackmap(loader, (uintptr_t)code, id, error);
    return status == CAIRN_OK ? declare(loader, id, error) : status;
}

/* Writes a stack map whose records have the IDs `id` and `id` + 1. */
static enum cairn_status try_load(cairn_runtime *runtime, uint64_t id, cairn_module **module,
                                  struct cairn_error *error)
{
    cairn_loader *loader = NULL;
    enum cairn_status status = cairn_loader_create(runtime, "test", &loader, error);
    if (status != CAIRN_OK)
        return status;
    status = fill(loader, id, error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, module, error);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    return status;
}

static cairn_module *load(cairn_runtime *runtime, uint64_t id)
{
    cairn_module *module = NULL;
    struct cairn_error error = {0};
    enum cairn_status status = try_load(runtime, id, &module, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return module;
}

static cairn_module *load_published(cairn_runtime *runtime, uint64_t id)
{
    cairn_module *module = load(runtime, id);
    ck_assert_ok(cairn_module_publish(module, NULL));
    return module;
}

static cairn_runtime *create_with(enum cairn_code_mode mode, struct support_allocator *allocator)
{
    cairn_runtime *runtime = NULL;
    struct cairn_error error = {0};
    struct cairn_runtime_options options = {.code_mode = mode};
    if (allocator != NULL)
        options.allocator = support_counting(allocator);
    enum cairn_status status = cairn_runtime_create(&options, &runtime, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return runtime;
}

static cairn_runtime *create(enum cairn_code_mode mode) { return create_with(mode, NULL); }

static uint64_t site_address(const cairn_module *module)
{
    struct cairn_site_description description;
    cairn_site_describe(cairn_module_site(module, 0), &description);
    return description.address;
}

static long call_module(const cairn_module *module)
{
    return ((long (*)(void))(uintptr_t)(site_address(module) - SITE_OFFSET))();
}

static struct cairn_runtime_statistics statistics_of(cairn_runtime *runtime)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(runtime, &statistics);
    return statistics;
}

/* ---- Lifetime ---- */

START_TEST(runtime_says_how_it_was_made)
{
    cairn_runtime *runtime = NULL;
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_int_ne(support_runtime_statistics(runtime).code_mode, CAIRN_CODE_MODE_AUTOMATIC);
    ck_assert_ptr_nonnull(support_runtime_statistics(runtime).code_mode_reason);
    ck_assert_ptr_nonnull((void *)(uintptr_t)cairn_runtime_allocator(runtime)->reallocate);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
    const struct cairn_runtime_options too_large = {.slab_size = arch_host()->reach_bytes * 2};
    cairn_runtime *runtime = NULL;
    cairn_loader *loader = NULL;
    cairn_module *module = NULL;
    ck_assert_int_eq(cairn_runtime_create(NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_runtime_create(&too_large, &runtime, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(runtime);
    ck_assert_int_eq(cairn_loader_create(NULL, "", &loader, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_loader_finish(NULL, &module, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_module_publish(NULL, NULL), CAIRN_ERROR_ARGUMENT);
    cairn_runtime_destroy(NULL);
    cairn_loader_destroy(NULL);
    cairn_module_retire(NULL);
}
END_TEST

START_TEST(loader_outlives_its_host_s_share_of_the_runtime)
{
    struct support_allocator allocator = {.fail_at = 0};
    cairn_runtime *runtime = create_with(support_modes[_i], &allocator);
    cairn_loader *loader = NULL;
    struct cairn_error error;
    ck_assert_ok(cairn_loader_create(runtime, "late", &loader, NULL));
    cairn_runtime_destroy(runtime);
    ck_assert_ok(fill(loader, 10, &error));
    cairn_loader_destroy(loader);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
}
END_TEST

START_TEST(last_share_takes_modules_of_every_state_with_it)
{
    struct support_allocator allocator = {.fail_at = 0};
    cairn_runtime *runtime = create_with(support_modes[_i], &allocator);
    load(runtime, 10);
    load_published(runtime, 20);
    cairn_module_retire(load_published(runtime, 30));
    cairn_runtime_retain(runtime);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(statistics_of(runtime).module_count, 1);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
}
END_TEST

START_TEST(abandoned_loaders_leave_no_mappings)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    struct cairn_error error;
    size_t before = 0;
    for (int i = 0; i < 8; i++) {
        cairn_loader *loader = NULL;
        ck_assert_ok(cairn_loader_create(runtime, NULL, &loader, NULL));
        ck_assert_ok(fill(loader, 10, &error));
        cairn_loader_destroy(loader);
        if (i == 0)
            before = support_count_mappings();
    }
    ck_assert_uint_eq(support_count_mappings(), before);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Loaders ---- */

START_TEST(loader_with_a_failed_allocation_cannot_be_finished)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_loader *loader = NULL;
    cairn_module *module = NULL;
    struct cairn_error error;
    ck_assert_ok(cairn_loader_create(runtime, "", &loader, NULL));
    ck_assert_ptr_null(cairn_loader_allocate(loader, CAIRN_SECTION_CODE, 16, 3, NULL, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(cairn_loader_allocate(loader, CAIRN_SECTION_DATA, 0, 8, NULL, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(
        cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, SIZE_MAX, 8, NULL, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_loader_finish(loader, &module, NULL), CAIRN_ERROR_STATE);
    ck_assert_ptr_null(module);
    cairn_loader_destroy(loader);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(truncated_unwind_table_is_refused)
{
    static const uint8_t beyond[] = {0xFF, 0, 0, 0, 0, 0, 0, 0};
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_loader *loader = NULL;
    cairn_module *module = NULL;
    struct cairn_error error;
    ck_assert_ok(cairn_loader_create(runtime, "odd", &loader, NULL));
    void *unwind_table =
        cairn_loader_allocate(loader, CAIRN_SECTION_UNWIND_TABLE, sizeof beyond, 8, NULL, &error);
    ck_assert_ptr_nonnull(unwind_table);
    memcpy(unwind_table, beyond, sizeof beyond);
    ck_assert_ok(fill(loader, 10, &error));
    ck_assert_int_eq(cairn_loader_finish(loader, &module, &error), CAIRN_ERROR_TRUNCATED);
    ck_assert_ptr_null(module);
    cairn_loader_destroy(loader);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(corrupt_unwind_rules_are_refused)
{
    enum { RESTORE_STATE = 0x0B };
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_loader *loader = NULL;
    cairn_module *module = NULL;
    struct cairn_error error;
    ck_assert_ok(cairn_loader_create(runtime, "odd", &loader, NULL));
    ck_assert_ok(fill(loader, 10, &error));
    const uint8_t *code =
        cairn_loader_allocate(loader, CAIRN_SECTION_CODE, CODE_BYTES, 64, NULL, &error);
    ck_assert_ok(write_unwind_table(loader, code, RESTORE_STATE, &error));
    ck_assert_int_eq(cairn_loader_finish(loader, &module, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_null(module);
    cairn_loader_destroy(loader);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(unwind_rules_are_those_of_the_module_s_code)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    const cairn_module *module = load(runtime, 10);
    struct memory_range code;
    ck_assert(module_memory_range(module, 0, &code));
    ck_assert(code.executable);
    ck_assert_int_eq(unwind_find_exact(module->unwind, code.address)->problem, UNWIND_CFA_UNKNOWN);
    ck_assert_int_eq(unwind_find_exact(module->unwind, code.address + CODE_BYTES - 1)->problem,
                     UNWIND_CFA_UNKNOWN);
    ck_assert_int_eq(unwind_find_exact(module->unwind, code.address + CODE_BYTES)->problem,
                     UNWIND_NO_RULES);
    ck_assert_uint_ge(statistics_of(runtime).table_bytes, unwind_size(module->unwind).bytes);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(function_outside_of_the_loaded_code_is_corrupt)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_loader *loader = NULL;
    cairn_module *module = NULL;
    struct cairn_error error;
    ck_assert_ok(cairn_loader_create(runtime, "odd", &loader, NULL));
    ck_assert_ptr_nonnull(
        cairn_loader_allocate(loader, CAIRN_SECTION_CODE, CODE_BYTES, 64, NULL, &error));
    ck_assert_ok(write_stackmap(loader, (uintptr_t)one, 10, &error));
    ck_assert_int_eq(cairn_loader_finish(loader, &module, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(error.offset, (uintptr_t)one);
    ck_assert_ptr_nonnull(strstr(error.message, "'odd'"));
    ck_assert_int_eq(cairn_loader_finish(loader, &module, NULL), CAIRN_ERROR_STATE);
    cairn_loader_destroy(loader);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* Loads a section with that many bytes after its map, which are zero except for the last one. */
static enum cairn_status load_with_slack(cairn_runtime *runtime, size_t slack, uint8_t last,
                                         struct cairn_error *error)
{
    cairn_loader *loader = NULL;
    cairn_module *module = NULL;
    struct section_writer writer;
    ck_assert_ok(cairn_loader_create(runtime, "slack", &loader, NULL));
    uint8_t *code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, CODE_BYTES, 64, NULL, error);
    write_code(code);
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, 1);
    writer_function(&writer, (uintptr_t)code, 8, 1);
    writer_record(&writer, 10, SITE_OFFSET, NULL, 0, NULL, 0);
    uint8_t *section =
        cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, writer.size + slack, 8, NULL, error);
    memcpy(section, writer.bytes, writer.size);
    section[writer.size + slack - 1] |= last;
    writer_end(&writer);
    enum cairn_status status = cairn_loader_finish(loader, &module, error);
    if (status == CAIRN_OK) {
        ck_assert_uint_eq(cairn_table_record_count(cairn_module_table(module)), 1);
        cairn_module_retire(module);
    } else {
        cairn_loader_destroy(loader);
    }
    return status;
}

/* LLVM allocates space for stubs after sections with relocations: for Mach-O, but not for ELF on
 * x86-64. */
START_TEST(zeros_after_a_stack_map_are_not_part_of_it)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    struct cairn_error error = {0};
    for (size_t slack = 1; slack <= 40; slack++) {
        enum cairn_status status = load_with_slack(runtime, slack, 0, &error);
        ck_assert_msg(status == CAIRN_OK, "%zu bytes: %s", slack, error.message);
        ck_assert_int_ne(load_with_slack(runtime, slack, 1, &error), CAIRN_OK);
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(module_without_stack_map_has_no_records)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_loader *loader = NULL;
    cairn_module *module = NULL;
    ck_assert_ok(cairn_loader_create(runtime, NULL, &loader, NULL));
    uint8_t *code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, CODE_BYTES, 16, NULL, NULL);
    ck_assert_ptr_nonnull(code);
    machine_return(code);
    ck_assert_ok(cairn_loader_finish(loader, &module, NULL));
    ck_assert_ok(cairn_module_publish(module, NULL));
    ck_assert_str_eq(cairn_module_name(module), "");
    ck_assert_uint_eq(cairn_table_record_count(cairn_module_table(module)), 0);
    ck_assert_uint_eq(support_site_count(module), 0);
    ck_assert_ptr_null(cairn_module_site(module, 0));
    ck_assert_ptr_eq(cairn_runtime_find_module(runtime, (uintptr_t)code), module);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Publishing and retiring ---- */

START_TEST(module_is_visible_from_publishing_to_retiring)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_module *module = load(runtime, 10);
    uint64_t address = site_address(module);
    struct cairn_record record;
    struct cairn_function function;
    ck_assert_ptr_null(cairn_runtime_find_module(runtime, address));
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 10, &record, 1), 0);
    ck_assert_ok(cairn_module_publish(module, NULL));
    ck_assert_ptr_eq(cairn_runtime_find_module(runtime, address), module);
    ck_assert(cairn_runtime_find_address(runtime, address, &record));
    ck_assert_uint_eq(cairn_record_id(record), 10);
    ck_assert(cairn_runtime_find_function(runtime, address, &function));
    ck_assert_uint_eq(function.address, address - SITE_OFFSET);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 10, &record, 1), 1);
    ck_assert_int_eq(call_module(module), 1);
    cairn_module_retire(module);
    ck_assert_ptr_null(cairn_runtime_find_module(runtime, address));
    ck_assert(!cairn_runtime_find_address(runtime, address, &record));
    ck_assert(!cairn_runtime_find_function(runtime, address, &function));
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 10, &record, 1), 0);
    ck_assert_int_eq(call_module(module),
                     1); /* its memory is kept until the host allows its release */
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(module_is_published_once_and_retired_as_often_as_one_likes)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_module *module = load_published(runtime, 10);
    struct cairn_error error;
    ck_assert_int_eq(cairn_module_publish(module, &error), CAIRN_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(error.message, "published"));
    cairn_module_retire(module);
    cairn_module_retire(module);
    ck_assert_int_eq(cairn_module_publish(module, &error), CAIRN_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(error.message, "retired"));
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 0);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(unpublished_module_may_be_retired)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_module *module = load(runtime, 10);
    cairn_module_retire(module);
    ck_assert_int_eq(cairn_module_publish(module, NULL), CAIRN_ERROR_STATE);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(statistics_follow_the_modules)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    ck_assert_uint_eq(statistics_of(runtime).table_bytes, 0);
    cairn_module *module = load(runtime, 10);
    ck_assert_uint_eq(statistics_of(runtime).module_count, 0);
    ck_assert_uint_eq(
        statistics_of(runtime).table_bytes,
        table_size_bytes(cairn_module_table(module), NULL) +
            declarations_bound_bytes(module->declarations) + site_table_bound_bytes(module->sites) +
            functions_size_bytes(module->functions) + unwind_size(module->unwind).bytes);
    ck_assert_uint_gt(statistics_of(runtime).code_bytes, 0);
    ck_assert_ok(cairn_module_publish(module, NULL));
    ck_assert_uint_eq(statistics_of(runtime).module_count, 1);
    ck_assert_uint_eq(statistics_of(runtime).retired_count, 0);
    cairn_module_retire(module);
    ck_assert_uint_eq(statistics_of(runtime).module_count, 0);
    ck_assert_uint_eq(statistics_of(runtime).retired_count, 1);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    ck_assert_uint_eq(statistics_of(runtime).retired_count, 0);
    ck_assert_uint_eq(statistics_of(runtime).table_bytes, 0);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(memory_of_retired_modules_is_used_again)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    size_t free_bytes = 0;
    for (int i = 0; i < 20; i++) {
        cairn_module_retire(load_published(runtime, 10));
        ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
        if (i == 0)
            free_bytes = statistics_of(runtime).free_bytes;
        ck_assert_uint_eq(statistics_of(runtime).free_bytes, free_bytes);
    }
    ck_assert_uint_eq(statistics_of(runtime).slab_count, 1);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Grace periods ---- */

START_TEST(a_grace_period_frees_what_was_retired_before_its_start)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_module *before = load_published(runtime, 10);
    cairn_module *after = load_published(runtime, 20);
    cairn_module_retire(before);
    uint64_t first = cairn_runtime_grace_start(runtime);
    cairn_module_retire(after);
    uint64_t second = cairn_runtime_grace_start(runtime);
    ck_assert_uint_ne(first, 0);
    ck_assert_uint_eq(cairn_runtime_grace_end(runtime, second + 1), 0);
    ck_assert_uint_eq(cairn_runtime_grace_end(runtime, first), 1);
    ck_assert_int_eq(call_module(after), 1);
    ck_assert_uint_eq(statistics_of(runtime).retired_count, 1);
    ck_assert_uint_eq(cairn_runtime_grace_end(runtime, first), 0);
    ck_assert_uint_eq(cairn_runtime_grace_end(runtime, second), 1);
    ck_assert_uint_eq(statistics_of(runtime).retired_count, 0);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(a_module_with_references_waits_for_the_period_after_the_last_one)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_module *module = load_published(runtime, 10);
    cairn_module_retain(module);
    cairn_module_retain(module);
    cairn_module_retire(module);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 0);
    cairn_module_release(module);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 0);
    uint64_t token = cairn_runtime_grace_start(runtime);
    cairn_module_release(module);
    ck_assert_uint_eq(cairn_runtime_grace_end(runtime, token), 0);
    ck_assert_int_eq(call_module(module), 1);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Lookups over several modules ---- */

START_TEST(records_of_one_id_come_oldest_module_first)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_module *modules[3];
    struct cairn_record records[3];
    struct cairn_error error;
    for (int i = 0; i < 3; i++)
        modules[i] = load_published(runtime, 10);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 10, records, 2), 3);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 10, records, 3), 3);
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(record_module(records[i]), modules[i]);
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 10, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_CONFLICT);
    cairn_module_retire(modules[0]);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 10, records, 3), 2);
    ck_assert_ptr_eq(record_module(records[0]), modules[1]);
    cairn_module_retire(modules[2]);
    ck_assert_ptr_eq(cairn_runtime_find_site(runtime, 10, &error),
                     cairn_module_site(modules[1], 0));
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 99, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(many_sites_of_one_id_are_a_conflict)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    struct cairn_error error;
    for (int i = 0; i < 17; i++)
        load_published(runtime, 10);
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 10, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_CONFLICT);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 10, NULL, 0), 17);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(runtimes_know_nothing_of_each_other)
{
    cairn_runtime *first = create(support_modes[_i]);
    cairn_runtime *second = create(support_modes[_i]);
    cairn_module *module = load_published(first, 10);
    ck_assert_ptr_null(cairn_runtime_find_module(second, site_address(module)));
    ck_assert_uint_eq(cairn_runtime_find_id(second, 10, NULL, 0), 0);
    const struct cairn_site_change changes[] = {
        {cairn_module_site(load_published(second, 11), 0), CAIRN_SITE_NOP, NULL},
        {cairn_module_site(module, 0), CAIRN_SITE_NOP, NULL}};
    ck_assert_int_eq(cairn_sites_change(changes, 2, CAIRN_RELAXED, NULL), CAIRN_ERROR_ARGUMENT);
    cairn_runtime_destroy(first);
    cairn_runtime_destroy(second);
}
END_TEST

/* ---- Threads ---- */

enum { READERS = 2, ROUNDS = 40 };

struct reading {
    cairn_runtime *runtime;
    const cairn_module *lasting;
    _Atomic uint64_t passing_address; /* address of a module that is loaded and retired repeatedly;
                                         0 before the first */
    _Atomic bool stop;
    _Atomic uint64_t passes[READERS]; /* number of moments at which the reader holds no reference */
    _Atomic uint64_t seen;            /* number of lookups that found the passing module */
};

struct reader {
    struct reading *reading;
    int number;
};

/* A module is found complete, or not at all. */
static void look_at_passing(struct reading *reading)
{
    struct cairn_record record;
    uint64_t address = atomic_load(&reading->passing_address);
    if (cairn_runtime_find_address(reading->runtime, address, &record)) {
        support_expect(cairn_record_id(record) == 20);
        support_expect(cairn_record_address(record) == address);
        atomic_fetch_add(&reading->seen, 1);
    }
    if (cairn_runtime_find_id(reading->runtime, 20, &record, 1) == 1)
        support_expect(cairn_record_id(record) == 20);
}

static void look_at_lasting(const struct reading *reading)
{
    struct cairn_record record;
    uint64_t address = site_address(reading->lasting);
    support_expect(cairn_runtime_find_address(reading->runtime, address, &record));
    support_expect(record_module(record) == reading->lasting);
    support_expect(cairn_runtime_find_id(reading->runtime, 10, &record, 1) == 1);
    support_expect(cairn_record_id(record) == 10);
}

static void *read_on(void *argument)
{
    struct reader *reader = argument;
    while (!atomic_load(&reader->reading->stop)) {
        look_at_lasting(reader->reading);
        look_at_passing(reader->reading);
        atomic_fetch_add(&reader->reading->passes[reader->number], 1);
    }
    return NULL;
}

/* Returns when no reader can hold a result of a lookup before the call. */
static void wait_for_readers(struct reading *reading)
{
    for (int i = 0; i < READERS; i++) {
        uint64_t before = atomic_load(&reading->passes[i]);
        while (atomic_load(&reading->passes[i]) == before)
            sched_yield();
    }
}

START_TEST(lookups_are_right_while_modules_are_loaded_and_retired)
{
    struct reading reading = {.runtime = create(support_modes[_i])};
    pthread_t threads[READERS];
    struct reader readers[READERS];
    reading.lasting = load_published(reading.runtime, 10);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){&reading, i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        cairn_module *module = load(reading.runtime, 20);
        atomic_store(&reading.passing_address, site_address(module));
        ck_assert_ok(cairn_module_publish(module, NULL));
        wait_for_readers(&reading);
        wait_for_readers(&reading);
        cairn_module_retire(module);
        wait_for_readers(&reading);
        ck_assert_uint_eq(cairn_runtime_quiesce(reading.runtime), 1);
    }
    atomic_store(&reading.stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    /* Of two passes of a reader after publishing, the second one begins after publishing. */
    ck_assert_uint_ge(reading.seen, READERS * ROUNDS);
    cairn_runtime_destroy(reading.runtime);
}
END_TEST

struct patching {
    cairn_site *site;
    _Atomic bool stop;
    _Atomic uint64_t patches;
};

static void *patch_on(void *argument)
{
    struct patching *patching = argument;
    while (!atomic_load(&patching->stop)) {
        support_expect(cairn_site_call(patching->site, TWO, CAIRN_RELAXED, NULL) == CAIRN_OK);
        support_expect(cairn_site_nop(patching->site, CAIRN_RELAXED, NULL) == CAIRN_OK);
        atomic_fetch_add(&patching->patches, 1);
    }
    return NULL;
}

START_TEST(no_page_is_writable_and_executable_while_patching)
{
    if (support_is_emulated()) /* an emulator has its own such pages */
        return;
    cairn_runtime *runtime = create(support_modes[_i]);
    struct patching patching = {.site = cairn_module_site(load_published(runtime, 10), 0)};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, patch_on, &patching), 0);
    for (int i = 0; i < 300 || atomic_load(&patching.patches) < 300; i++) {
        ck_assert(!support_any_writable_executable());
        if (i % 10 == 0)
            cairn_module_retire(load_published(runtime, 20));
    }
    atomic_store(&patching.stop, true);
    pthread_join(thread, NULL);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Forked children ---- */

static void patch_in_child(void *user)
{
    cairn_module *module = user;
    support_expect(call_module(module) == 1);
    support_expect(cairn_site_call(cairn_module_site(module, 0), TWO, CAIRN_RELAXED, NULL) ==
                   CAIRN_OK);
    support_expect(call_module(module) == 2);
}

START_TEST(child_s_patch_is_its_own)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_module *module = load_published(runtime, 10);
    support_in_child(patch_in_child, module);
    ck_assert_int_eq(call_module(module), 1);
    cairn_runtime_destroy(runtime);
}
END_TEST

static void quiesce_in_child(void *user) { support_expect(cairn_runtime_quiesce(user) == 1); }

START_TEST(child_s_quiescence_leaves_the_parent_s_code)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_module *module = load_published(runtime, 10);
    cairn_module_retire(module);
    support_in_child(quiesce_in_child, runtime);
    ck_assert_int_eq(call_module(module), 1);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* The parent patches the site between the two calls, while the child waits for a byte. */
static void run_in_child(const cairn_runtime *runtime, const cairn_module *module, int pipe_end)
{
    char byte;
    support_expect(cairn_runtime_after_fork((cairn_runtime *)(uintptr_t)runtime, NULL) == CAIRN_OK);
    support_expect(write(pipe_end, "r", 1) == 1);
    support_expect(read(pipe_end, &byte, 1) == 1);
    support_expect(call_module(module) == 1);
}

struct period {
    cairn_runtime *runtime;
    uint64_t token;
};

static void end_period(void *user)
{
    const struct period *period = user;
    support_expect(cairn_runtime_grace_end(period->runtime, period->token) == 1);
    support_expect(cairn_runtime_quiesce(period->runtime) == 1);
}

START_TEST(a_token_is_valid_in_a_child)
{
    struct period period = {.runtime = create(support_modes[_i])};
    cairn_module_retire(load_published(period.runtime, 10));
    period.token = cairn_runtime_grace_start(period.runtime);
    cairn_module_retire(load_published(period.runtime, 20));
    support_in_child(end_period, &period);
    end_period(&period);
    cairn_runtime_destroy(period.runtime);
}
END_TEST

START_TEST(parent_s_patch_does_not_reach_a_child_that_has_its_own_code)
{
    cairn_runtime *runtime = create(support_modes[_i]);
    cairn_module *module = load_published(runtime, 10);
    int ends[2];
    char byte;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    int child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(ends[0]);
        run_in_child(runtime, module, ends[1]);
        _exit(EXIT_SUCCESS);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_ok(cairn_site_call(cairn_module_site(module, 0), TWO, CAIRN_RELAXED, NULL));
    ck_assert_int_eq(write(ends[0], "g", 1), 1);
    support_wait(child);
    ck_assert_int_eq(call_module(module), 2);
    close(ends[0]);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Allocation failures ---- */

/* Creates a runtime and a module in it, changes the module's site, and frees everything, wherever
 * an error occurs. */
static enum cairn_status use_all(enum cairn_code_mode mode, struct support_allocator *allocator,
                                 struct cairn_error *error)
{
    cairn_runtime *runtime = NULL;
    cairn_module *module = NULL;
    const struct cairn_runtime_options options = {.allocator = support_counting(allocator),
                                                  .code_mode = mode};
    enum cairn_status status = cairn_runtime_create(&options, &runtime, error);
    if (status == CAIRN_OK)
        status = try_load(runtime, 10, &module, error);
    if (status == CAIRN_OK)
        status = cairn_module_publish(module, error);
    if (status == CAIRN_OK)
        status = cairn_sites_change(
            &(struct cairn_site_change){cairn_module_site(module, 0), CAIRN_SITE_JUMP, TWO}, 1,
            CAIRN_RELAXED, error);
    cairn_module_retire(module);
    if (runtime != NULL)
        ck_assert_uint_eq(cairn_runtime_quiesce(runtime), module != NULL);
    cairn_runtime_destroy(runtime);
    return status;
}

START_TEST(every_allocation_may_fail_and_nothing_is_lost)
{
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    size_t mappings = 0;
    size_t failures = 0;
    while (status != CAIRN_OK) {
        struct support_allocator allocator = {.fail_at = failures + 1};
        struct cairn_error error = {0};
        status = use_all(support_modes[_i], &allocator, &error);
        ck_assert_uint_eq(allocator.outstanding_bytes, 0);
        if (status == CAIRN_OK)
            break;
        ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        ck_assert_int_eq(error.status, CAIRN_ERROR_MEMORY);
        if (failures++ == 0)
            mappings = support_count_mappings();
    }
    ck_assert_uint_gt(failures, 10);
    ck_assert_uint_le(support_count_mappings(), mappings + 2); /* the one of malloc */
}
END_TEST

/* Whether publishing fails if the allocation with this number fails; the first one is number 1.
 * Also checks the state after the error. */
static bool publishing_fails(cairn_runtime *runtime, cairn_module *module, uint64_t id,
                             size_t number, struct support_allocator *allocator)
{
    size_t outstanding = allocator->outstanding_bytes;
    allocator->fail_at = allocator->calls + number;
    enum cairn_status status = cairn_module_publish(module, NULL);
    allocator->fail_at = 0;
    if (status == CAIRN_OK)
        return false;
    ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
    ck_assert_uint_eq(allocator->outstanding_bytes, outstanding);
    ck_assert_ptr_null(cairn_runtime_find_module(runtime, site_address(module)));
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, id, NULL, 0), 0);
    return true;
}

/* Publishing lists a module's functions. The pools, which keep their memory, and the table of IDs
 * have space for the first modules; one of the later ones makes the table grow. */
START_TEST(failed_publishing_leaves_the_module_unpublished)
{
    struct support_allocator allocator = {.fail_at = 0};
    cairn_runtime *runtime = create_with(support_modes[_i], &allocator);
    uint64_t id = 10;
    cairn_module *module = load(runtime, id);
    ck_assert_ok(cairn_module_publish(module, NULL));
    id += 10;
    module = load(runtime, id);
    ck_assert(publishing_fails(runtime, module, id, 1, &allocator));
    while (!publishing_fails(runtime, module, id, 2, &allocator)) {
        id += 10;
        ck_assert_uint_lt(id, 2000);
        module = load(runtime, id);
    }
    ck_assert_ok(cairn_module_publish(module, NULL));
    ck_assert_ptr_eq(cairn_runtime_find_module(runtime, site_address(module)), module);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, id, NULL, 0), 1);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 10, NULL, 0), 1);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
}
END_TEST

/* ---- The suite ---- */

static void add_tests_of_both_modes(TCase *tests)
{
    const TTest *both[] = {
        loader_outlives_its_host_s_share_of_the_runtime,
        last_share_takes_modules_of_every_state_with_it,
        abandoned_loaders_leave_no_mappings,
        loader_with_a_failed_allocation_cannot_be_finished,
        truncated_unwind_table_is_refused,
        corrupt_unwind_rules_are_refused,
        unwind_rules_are_those_of_the_module_s_code,
        function_outside_of_the_loaded_code_is_corrupt,
        zeros_after_a_stack_map_are_not_part_of_it,
        module_without_stack_map_has_no_records,
        module_is_visible_from_publishing_to_retiring,
        module_is_published_once_and_retired_as_often_as_one_likes,
        unpublished_module_may_be_retired,
        statistics_follow_the_modules,
        memory_of_retired_modules_is_used_again,
        a_grace_period_frees_what_was_retired_before_its_start,
        a_module_with_references_waits_for_the_period_after_the_last_one,
        records_of_one_id_come_oldest_module_first,
        many_sites_of_one_id_are_a_conflict,
        runtimes_know_nothing_of_each_other,
        lookups_are_right_while_modules_are_loaded_and_retired,
        no_page_is_writable_and_executable_while_patching,
        child_s_patch_is_its_own,
        child_s_quiescence_leaves_the_parent_s_code,
        a_token_is_valid_in_a_child,
        parent_s_patch_does_not_reach_a_child_that_has_its_own_code,
        every_allocation_may_fail_and_nothing_is_lost,
        failed_publishing_leaves_the_module_unpublished,
    };
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        tcase_add_loop_test(tests, both[i], 0, support_mode_count());
}

int main(void)
{
    Suite *suite = suite_create("runtime");
    TCase *tests = tcase_create("runtime");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, runtime_says_how_it_was_made);
    tcase_add_test(tests, wrong_arguments_are_refused);
    add_tests_of_both_modes(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
