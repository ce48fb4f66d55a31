/*
 * Tests that sites of every architecture follow the rules for calls in the architecture's table.
 * They use x86-64's code, and tables with more requirements than x86-64 has.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "tests/site_support.h"

#include "arch/arch.h"
#include "code/state.h"
#include "record/table.h"
#include "runtime/runtime.h"
#include "site/site.h"
#include "site/veneers.h"
#include "tests/machine.h"
#include "tests/section_writer.h"

#include <string.h>

/* Makes the sites of the fixture's module follow `rules`. */
static void apply(const struct site_fixture *fixture, const struct cairn_arch *rules)
{
    fixture->site->table->arch = rules;
}

static struct cairn_arch rules_of_host(void) { return *arch_host(); }

/* ---- calls_need_veneer ---- */

static void expect_call(const struct site_fixture *fixture, const uint8_t *target, bool veneer,
                        long result)
{
    struct cairn_site_description description = site_describe(fixture->site);
    ck_assert_int_eq(description.state, CAIRN_SITE_CALL);
    ck_assert_uint_eq(description.target, (uintptr_t)target);
    ck_assert(description.uses_veneer == veneer);
    ck_assert_int_eq(fixture->function(), result);
}

START_TEST(every_target_goes_through_a_veneer_where_its_entry_expects_more)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_null_patchpoint(region, 16);
    struct cairn_arch rules = rules_of_host();
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert_done(cairn_site_call(fixture.site, fixture.near_one, CAIRN_RELAXED, &error), error);
    expect_call(&fixture, fixture.near_one, false, 1);
    rules.calls_need_veneer = true;
    apply(&fixture, &rules);
    ck_assert_done(cairn_site_call(fixture.site, fixture.near_one, CAIRN_RELAXED, &error), error);
    expect_call(&fixture, fixture.near_one, true, 1);
    ck_assert_done(cairn_site_call(fixture.site, fixture.near_two, CAIRN_SYNC, &error), error);
    expect_call(&fixture, fixture.near_two, true, 2);
    ck_assert_done(cairn_site_jump(fixture.site, fixture.near_three, CAIRN_SYNC, &error), error);
    ck_assert(site_describe(fixture.site).uses_veneer);
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_done(cairn_site_nop(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert(!site_describe(fixture.site).uses_veneer);
    ck_assert_int_eq(fixture.function(), 0);
    site_unload(&fixture);
}
END_TEST

/* ---- is_direct ---- */

/* Recognises LLVM's call as a branch, to one of the functions that follow the site's, or out of
 * reach. */
static enum cairn_status recognise_branch(uint64_t target, size_t size,
                                          struct arch_patchpoint *patchpoint)
{
    ck_assert_uint_ge(size, arch_host()->instruction_bytes);
    *patchpoint = (struct arch_patchpoint){.has_call = true,
                                           .is_direct = true,
                                           .target = target,
                                           .return_offset = arch_host()->instruction_bytes};
    return CAIRN_OK;
}

static enum cairn_status recognise_near_branch(const struct cairn_arch *arch, const uint8_t *region,
                                               size_t size, uint64_t address,
                                               struct arch_patchpoint *patchpoint,
                                               struct cairn_error *error)
{
    (void)arch;
    (void)region;
    (void)error;
    return recognise_branch(address - machine_enter_bytes + SITE_FUNCTION_BYTES, size, patchpoint);
}

static enum cairn_status recognise_far_branch(const struct cairn_arch *arch, const uint8_t *region,
                                              size_t size, uint64_t address,
                                              struct arch_patchpoint *patchpoint,
                                              struct cairn_error *error)
{
    (void)arch;
    (void)region;
    (void)address;
    (void)error;
    return recognise_branch((uintptr_t)site_one, size, patchpoint);
}

/* Loads and arms a site according to the rules. */
static void load_by(struct site_fixture *fixture, enum cairn_code_mode mode,
                    const struct cairn_arch *rules)
{
    uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_null_patchpoint(region, 16);
    cairn_runtime *runtime = site_runtime(mode);
    runtime->space->arch = rules;
    site_load_into(fixture, runtime, &shape);
}

START_TEST(llvm_s_branch_is_decoded_as_one)
{
    struct site_fixture fixture;
    struct cairn_error error;
    struct cairn_arch rules = rules_of_host();
    rules.calls_need_veneer = true;
    rules.has_descriptors = true;
    rules.recognise = recognise_near_branch;
    load_by(&fixture, site_modes[_i], &rules);
    ck_assert(site_describe(fixture.site).live);
    expect_call(&fixture, fixture.near_one, false, 1);
    ck_assert_done(cairn_site_call(fixture.site, fixture.near_two, CAIRN_SYNC, &error), error);
    expect_call(&fixture, fixture.near_two, true, 2);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), error);
    expect_call(&fixture, fixture.near_one, false, 1);
    site_unload(&fixture);
}
END_TEST

START_TEST(place_in_code_out_of_reach_has_no_descriptor)
{
    struct site_fixture fixture;
    struct cairn_arch rules = rules_of_host();
    rules.calls_need_veneer = true;
    rules.has_descriptors = true;
    rules.recognise = recognise_far_branch;
    load_by(&fixture, site_modes[_i], &rules);
    struct cairn_site_description description = site_describe(fixture.site);
    ck_assert(!description.live);
    ck_assert_ptr_nonnull(strstr(description.reason, "descriptor"));
    /* The site is unchanged since LLVM's code was loaded. */
    ck_assert_int_eq(memcmp(description.bytes, description.original_bytes, description.byte_count),
                     0);
    site_unload(&fixture);
}
END_TEST

START_TEST(place_in_code_out_of_reach_gets_a_veneer_without_descriptors)
{
    struct site_fixture fixture;
    struct cairn_arch rules = rules_of_host();
    rules.calls_need_veneer = true;
    rules.recognise = recognise_far_branch;
    load_by(&fixture, site_modes[_i], &rules);
    expect_call(&fixture, (const uint8_t *)SITE_ONE, true, 1);
    site_unload(&fixture);
}
END_TEST

/* ---- has_descriptors ---- */

enum { DESCRIPTOR_WORDS = 3, DESCRIPTORS = 2, DESCRIPTOR_CODE_BYTES = 128 };

/* A module of two functions in one code section. Once the descriptors have been written, the stack
 * map contains `names` as the functions' addresses. */
struct described {
    cairn_runtime *runtime;
    cairn_loader *loader;
    uint8_t *code;
    uint64_t *descriptors;
    uint64_t names[DESCRIPTORS];
};

static const uint32_t described_functions[DESCRIPTORS] = {0, DESCRIPTOR_CODE_BYTES / 2};

static void begin_described(struct described *described, const struct cairn_arch *rules,
                            bool read_only)
{
    struct cairn_error error;
    size_t size = DESCRIPTORS * DESCRIPTOR_WORDS * sizeof(uint64_t);
    described->runtime = site_runtime(site_modes[SITE_MODES - 1]);
    described->runtime->space->arch = rules;
    ck_assert_done(cairn_loader_create(described->runtime, "test", &described->loader, &error),
                   error);
    described->code = cairn_loader_allocate(described->loader, CAIRN_SECTION_CODE,
                                            DESCRIPTOR_CODE_BYTES, 64, NULL, &error);
    described->descriptors =
        read_only
            ? cairn_loader_allocate(described->loader, CAIRN_SECTION_READ_ONLY_DATA, size, 8, NULL,
                                    &error)
            : cairn_loader_allocate(described->loader, CAIRN_SECTION_DATA, size, 8, NULL, &error);
    ck_assert_ptr_nonnull(described->code);
    ck_assert_ptr_nonnull(described->descriptors);
    memset(described->code, 0x90, DESCRIPTOR_CODE_BYTES);
    memset(described->descriptors, 0, size);
    for (int i = 0; i < DESCRIPTORS; i++) {
        uint64_t *descriptor = described->descriptors + (ptrdiff_t)i * DESCRIPTOR_WORDS;
        *descriptor = (uintptr_t)described->code + described_functions[i];
        described->names[i] = (uintptr_t)descriptor;
    }
}

static enum cairn_status finish_described(struct described *described, cairn_module **module,
                                          struct cairn_error *error)
{
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, DESCRIPTORS, 0, DESCRIPTORS);
    for (int i = 0; i < DESCRIPTORS; i++)
        writer_function(&writer, described->names[i], 8, 1);
    for (uint64_t i = 0; i < DESCRIPTORS; i++)
        writer_record(&writer, i, 16, NULL, 0, NULL, 0);
    void *section = cairn_loader_allocate(described->loader, CAIRN_SECTION_STACKMAP, writer.size, 8,
                                          NULL, error);
    ck_assert_ptr_nonnull(section);
    memcpy(section, writer.bytes, writer.size);
    writer_end(&writer);
    return cairn_loader_finish(described->loader, module, error);
}

static struct cairn_arch rules_with_descriptors(void)
{
    struct cairn_arch rules = rules_of_host();
    rules.has_descriptors = true;
    return rules;
}

START_TEST(functions_named_by_descriptors_are_found_in_the_code)
{
    struct described described;
    struct cairn_error error;
    cairn_module *module;
    struct cairn_arch rules = rules_with_descriptors();
    begin_described(&described, &rules, _i == 1);
    /* One of them is named by its address in the code, as a host may do. */
    if (_i == 2)
        described.names[0] = (uintptr_t)described.code;
    ck_assert_done(finish_described(&described, &module, &error), error);
    const cairn_table *table = cairn_module_table(module);
    for (uint32_t i = 0; i < DESCRIPTORS; i++) {
        const struct cairn_record record = {table, i};
        uint64_t function = (uintptr_t)described.code + described_functions[i];
        struct cairn_function found;
        ck_assert(table_function_at(table, i, &found));
        ck_assert_uint_eq(found.address, function);
        ck_assert_uint_eq(cairn_record_address(record), function + 16);
    }
    cairn_runtime_destroy(described.runtime);
}
END_TEST

static void expect_corrupt(struct described *described, const char *sentence)
{
    struct cairn_error error = {0};
    cairn_module *module = NULL;
    ck_assert_int_eq(finish_described(described, &module, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_null(module);
    ck_assert_msg(strstr(error.message, sentence) != NULL, "%s", error.message);
    cairn_loader_destroy(described->loader);
    cairn_runtime_destroy(described->runtime);
}

START_TEST(function_named_by_what_is_no_descriptor_is_corrupt)
{
    static const int64_t offsets[] = {-8, 25, 28, 32, 40, 48, -(INT64_C(1) << 40)};
    struct described described;
    struct cairn_arch rules = rules_with_descriptors();
    begin_described(&described, &rules, false);
    uint64_t name = (uintptr_t)described.descriptors + (uint64_t)offsets[_i];
    described.names[1] = name;
    /* The descriptor holds a valid entry address, if it is within the mapped bytes. */
    const uint64_t entry = (uintptr_t)described.code;
    if (offsets[_i] >= 0 && offsets[_i] < 48)
        memcpy((void *)(uintptr_t)name, &entry, sizeof entry);
    expect_corrupt(&described, "function 1 ");
}
END_TEST

START_TEST(descriptor_that_leads_out_of_the_code_is_corrupt)
{
    static const uint64_t entries[] = {0, UINT64_MAX, 0x1000};
    struct described described;
    struct cairn_arch rules = rules_with_descriptors();
    begin_described(&described, &rules, false);
    described.descriptors[0] = _i < 3 ? entries[_i] : (uintptr_t)described.descriptors;
    expect_corrupt(&described, "function 0 ");
}
END_TEST

START_TEST(descriptor_is_none_where_there_are_none)
{
    struct described described;
    struct cairn_arch rules = rules_of_host();
    begin_described(&described, &rules, false);
    expect_corrupt(&described, "not in the code");
}
END_TEST

/* ---- toc_save_offset ---- */

/* A shadow of one instruction that a branch can replace: mov $9, %eax. */
static const uint8_t one_instruction[] = {0xB8, 9, 0, 0, 0};

static struct site_shape one_instruction_shadow(void)
{
    return (struct site_shape){CAIRN_RECORD_STACKMAP,
                               one_instruction,
                               sizeof one_instruction,
                               sizeof one_instruction,
                               2, /* up to the start of a word */
                               0,
                               true};
}

static void expect_only_calls_refused(const struct site_fixture *fixture,
                                      enum cairn_strength strength)
{
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_site_call(fixture->site, fixture->near_one, strength, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_ptr_nonnull(strstr(error.message, "TOC"));
    ck_assert_int_eq(fixture->function(), 9);
    ck_assert_done(cairn_site_jump(fixture->site, fixture->near_three, strength, &error), error);
    ck_assert_int_eq(fixture->function(), 3);
    ck_assert_done(cairn_site_nop(fixture->site, strength, &error), error);
    ck_assert_int_eq(fixture->function(), 0);
    ck_assert_done(cairn_site_restore(fixture->site, strength, &error), error);
    ck_assert_int_eq(fixture->function(), 9);
}

START_TEST(call_without_space_for_the_toc_is_refused)
{
    struct site_fixture fixture;
    const struct site_shape shape = one_instruction_shadow();
    struct cairn_arch rules = rules_of_host();
    rules.toc_save_offset = 24;
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert(site_describe(fixture.site).live);
    apply(&fixture, &rules);
    expect_only_calls_refused(&fixture, CAIRN_RELAXED);
    expect_only_calls_refused(&fixture, CAIRN_SYNC);
    site_unload(&fixture);
}
END_TEST

/* Like the shadow above, but not live because it crosses a word boundary. */
START_TEST(quiescent_call_without_space_for_the_toc_is_refused)
{
    struct site_fixture fixture;
    struct site_shape shape = one_instruction_shadow();
    struct cairn_arch rules = rules_of_host();
    rules.toc_save_offset = 24;
    shape.padding = 6;
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert(!site_describe(fixture.site).live);
    apply(&fixture, &rules);
    expect_only_calls_refused(&fixture, CAIRN_QUIESCENT);
    site_unload(&fixture);
}
END_TEST

START_TEST(list_with_a_call_without_space_for_the_toc_changes_nothing)
{
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = one_instruction_shadow();
    struct cairn_arch rules = rules_of_host();
    rules.toc_save_offset = 24;
    site_load(&fixture, site_modes[_i], &shape);
    apply(&fixture, &rules);
    const struct cairn_site_change change = {fixture.site, CAIRN_SITE_CALL, fixture.near_one};
    ck_assert_int_eq(cairn_sites_change(&change, 1, CAIRN_SYNC, &error), CAIRN_ERROR_RANGE);
    ck_assert_int_eq(fixture.function(), 9);
    site_unload(&fixture);
}
END_TEST

/* sub $8, %rsp; call *slot(%rip); add $8, %rsp; ret */
static bool encode_framed_veneer(const struct cairn_arch *arch, uint64_t address,
                                 uint64_t slot_address, uint8_t *code)
{
    static const uint8_t bytes[] = {0x48, 0x83, 0xEC, 0x08, 0xFF, 0x15, 0,   0,
                                    0,    0,    0x48, 0x83, 0xC4, 0x08, 0xC3};
    int32_t displacement = (int32_t)(slot_address - address - 10);
    (void)arch;
    memcpy(code, bytes, sizeof bytes);
    memcpy(code + 6, &displacement, sizeof displacement);
    return true;
}

static struct cairn_arch rules_with_frames(void)
{
    struct cairn_arch rules = rules_of_host();
    rules.toc_save_offset = 24;
    rules.framed_veneer_bytes = 16;
    rules.encode_framed_veneer = encode_framed_veneer;
    return rules;
}

static const struct site_veneer *veneer_of(const struct site_fixture *fixture)
{
    const struct site_veneer *veneer =
        veneers_find(fixture->site, word_read_instruction(fixture->site));
    ck_assert_ptr_nonnull(veneer);
    return veneer;
}

static bool is_framed(const struct site_veneer *veneer)
{
    static const uint8_t begin[] = {0x48, 0x83, 0xEC, 0x08};
    return memcmp((const void *)(uintptr_t)veneer->code.address, begin, sizeof begin) == 0;
}

static void expect_framed_calls(const struct site_fixture *fixture, enum cairn_strength strength)
{
    struct cairn_error error;
    const void *const targets[] = {fixture->near_one, SITE_TWO};
    for (int i = 0; i < 8; i++) {
        const void *target = targets[i % 2];
        ck_assert_done(cairn_site_call(fixture->site, target, strength, &error), error);
        expect_call(fixture, target, true, 1 + i % 2);
        ck_assert(is_framed(veneer_of(fixture)));
    }
    /* A jump does not use a veneer that returns. */
    ck_assert_done(cairn_site_jump(fixture->site, fixture->near_three, strength, &error), error);
    ck_assert(!site_describe(fixture->site).uses_veneer);
    ck_assert_int_eq(fixture->function(), 3);
    ck_assert_done(cairn_site_jump(fixture->site, fixture->tail, strength, &error), error);
    ck_assert_int_eq(fixture->function(), 0);
    ck_assert_done(cairn_site_restore(fixture->site, strength, &error), error);
    ck_assert_int_eq(fixture->function(), 9);
}

START_TEST(shadow_s_call_goes_through_a_veneer_that_saves_the_toc)
{
    struct site_fixture fixture;
    const struct site_shape shape = one_instruction_shadow();
    struct cairn_arch rules = rules_with_frames();
    site_load(&fixture, site_modes[_i], &shape);
    fixture.runtime->space->arch = &rules;
    apply(&fixture, &rules);
    expect_framed_calls(&fixture, CAIRN_RELAXED);
    expect_framed_calls(&fixture, CAIRN_SYNC);
    site_unload(&fixture);
}
END_TEST

START_TEST(quiescent_shadow_s_call_goes_through_a_veneer_that_saves_the_toc)
{
    struct site_fixture fixture;
    struct site_shape shape = one_instruction_shadow();
    struct cairn_arch rules = rules_with_frames();
    shape.padding = 6;
    site_load(&fixture, site_modes[_i], &shape);
    fixture.runtime->space->arch = &rules;
    apply(&fixture, &rules);
    ck_assert(!site_describe(fixture.site).live);
    expect_framed_calls(&fixture, CAIRN_QUIESCENT);
    site_unload(&fixture);
}
END_TEST

START_TEST(armed_patch_point_needs_no_veneer_that_saves_the_toc)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_null_patchpoint(region, 16);
    struct cairn_arch rules = rules_with_frames();
    rules.calls_need_veneer = true;
    site_load(&fixture, site_modes[_i], &shape);
    fixture.runtime->space->arch = &rules;
    apply(&fixture, &rules);
    ck_assert_done(cairn_site_call(fixture.site, fixture.near_two, CAIRN_SYNC, &error), error);
    expect_call(&fixture, fixture.near_two, true, 2);
    ck_assert(!is_framed(veneer_of(&fixture)));
    site_unload(&fixture);
}
END_TEST

START_TEST(armed_patch_point_may_call)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_null_patchpoint(region, 16);
    struct cairn_arch rules = rules_of_host();
    rules.toc_save_offset = 24;
    site_load(&fixture, site_modes[_i], &shape);
    apply(&fixture, &rules);
    ck_assert_done(cairn_site_call(fixture.site, fixture.near_two, CAIRN_SYNC, &error), error);
    expect_call(&fixture, fixture.near_two, false, 2);
    site_unload(&fixture);
}
END_TEST

#define ADD(tests, test) tcase_add_loop_test((tests), test, 0, SITE_MODES)

int main(void)
{
    Suite *suite = suite_create("rules");
    TCase *tests = tcase_create("rules");
    ADD(tests, every_target_goes_through_a_veneer_where_its_entry_expects_more);
    ADD(tests, llvm_s_branch_is_decoded_as_one);
    ADD(tests, place_in_code_out_of_reach_has_no_descriptor);
    ADD(tests, place_in_code_out_of_reach_gets_a_veneer_without_descriptors);
    tcase_add_loop_test(tests, functions_named_by_descriptors_are_found_in_the_code, 0, 3);
    tcase_add_loop_test(tests, function_named_by_what_is_no_descriptor_is_corrupt, 0, 7);
    tcase_add_loop_test(tests, descriptor_that_leads_out_of_the_code_is_corrupt, 0, 4);
    tcase_add_test(tests, descriptor_is_none_where_there_are_none);
    ADD(tests, call_without_space_for_the_toc_is_refused);
    ADD(tests, quiescent_call_without_space_for_the_toc_is_refused);
    ADD(tests, list_with_a_call_without_space_for_the_toc_changes_nothing);
    ADD(tests, shadow_s_call_goes_through_a_veneer_that_saves_the_toc);
    ADD(tests, quiescent_shadow_s_call_goes_through_a_veneer_that_saves_the_toc);
    ADD(tests, armed_patch_point_needs_no_veneer_that_saves_the_toc);
    ADD(tests, armed_patch_point_may_call);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
