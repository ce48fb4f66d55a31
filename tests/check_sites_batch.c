/*
 * Batches of 4096 sites: all of them change or none does; and what a batch and a single site do
 * where the kernel refuses the barrier, a page or memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/site_support.h"

#include "tests/code_support.h"
#include "tests/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Functions as those of site_support.h, with a null patch point of 16 bytes each; the last one has
 * its last page for itself. */
enum {
    COUNT = 4096,
    LAST = COUNT - 1,
    STRIDE = 64,
    PAGE = 4096,
    CODE_BYTES = COUNT * STRIDE + 2 * PAGE,
    REGION_BYTES = 16,
    /* Behind all functions: one that returns 2, and one that returns 1. */
    NEAR_TWO = CODE_BYTES - 32,
    NEAR_ONE = CODE_BYTES - 64
};

struct crowd {
    cairn_runtime *runtime;
    cairn_module *module;
    uint8_t *code;
    uint8_t *before; /* the code as it was loaded */
    cairn_batch *batch;
};

static uint32_t function_offset(uint32_t index)
{
    return index * STRIDE + (index == LAST ? PAGE : 0);
}

static uint32_t tail_offset(uint32_t index)
{
    return function_offset(index) + machine_enter_bytes + REGION_BYTES;
}

static void write_crowd(uint8_t *bytes)
{
    const struct cairn_arch *arch = arch_host();
    arch->fill_nops(arch, bytes, CODE_BYTES);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint8_t *tail = bytes + tail_offset(i);
        size_t size = machine_enter(bytes + function_offset(i));
        arch->fill_nops(arch, bytes + function_offset(i) + size, REGION_BYTES);
        machine_return(tail + machine_leave_frame(tail));
    }
    arch->encode_self_test(arch, 1, bytes + NEAR_ONE);
    arch->encode_self_test(arch, 2, bytes + NEAR_TWO);
}

static void load_crowd(struct crowd *crowd)
{
    static struct site_function functions[COUNT];
    static struct site_record records[COUNT];
    struct cairn_error error;
    crowd->before = malloc(CODE_BYTES);
    for (uint32_t i = 0; i < COUNT; i++) {
        functions[i] = (struct site_function){function_offset(i), 1};
        records[i] =
            (struct site_record){i, machine_enter_bytes, REGION_BYTES, CAIRN_RECORD_PATCHPOINT};
    }
    write_crowd(crowd->before);
    const struct site_code code = {crowd->before, CODE_BYTES, functions, COUNT, records, 0};
    crowd->module = site_load_code(crowd->runtime, &code, &crowd->code);
    ck_assert_uint_eq(cairn_module_site_count(crowd->module), COUNT);
    ck_assert_done(cairn_module_publish(crowd->module, &error), error);
    memcpy(crowd->before, crowd->code, CODE_BYTES);
    ck_assert_done(cairn_batch_create(crowd->runtime, &crowd->batch, &error), error);
}

static void create_crowd(struct crowd *crowd, enum cairn_code_mode mode)
{
    crowd->runtime = site_runtime(mode);
    load_crowd(crowd);
}

static void destroy_crowd(struct crowd *crowd)
{
    cairn_batch_destroy(crowd->batch);
    cairn_module_retire(crowd->module);
    cairn_runtime_destroy(crowd->runtime);
    free(crowd->before);
}

static cairn_site *site_of(const struct crowd *crowd, uint32_t index)
{
    return cairn_module_site(crowd->module, index);
}

static const uint8_t *near_two(const struct crowd *crowd) { return crowd->code + NEAR_TWO; }

/* The number of functions that return the value. */
static uint32_t count_results(const struct crowd *crowd, long value)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        long (*function)(void) = (long (*)(void))(uintptr_t)(crowd->code + function_offset(i));
        count += function() == value;
    }
    return count;
}

static bool is_unchanged(const struct crowd *crowd)
{
    return memcmp(crowd->code, crowd->before, CODE_BYTES) == 0;
}

static void note_calls(struct crowd *crowd, uint32_t count, const void *target)
{
    enum cairn_status status = CAIRN_OK;
    for (uint32_t i = 0; i < count && status == CAIRN_OK; i++)
        status = cairn_batch_call(crowd->batch, site_of(crowd, i), target, NULL);
    support_expect(status == CAIRN_OK);
}

/* ---- All of them ---- */

static const enum cairn_strength strengths[] = {CAIRN_RELAXED, CAIRN_SYNC};

START_TEST(all_4096_sites_do_the_new_thing)
{
    struct crowd crowd;
    struct cairn_error error;
    enum cairn_strength strength = strengths[_i % 2];
    create_crowd(&crowd, site_modes[_i / 2]);
    ck_assert_uint_eq(count_results(&crowd, 0), COUNT);
    note_calls(&crowd, COUNT, near_two(&crowd));
    ck_assert(is_unchanged(&crowd));
    ck_assert_done(cairn_batch_commit(crowd.batch, strength, &error), error);
    ck_assert_uint_eq(count_results(&crowd, 2), COUNT);
    note_calls(&crowd, COUNT, SITE_ONE);
    ck_assert_done(cairn_batch_commit(crowd.batch, strength, &error), error);
    ck_assert_uint_eq(count_results(&crowd, 1), COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        enum cairn_status status = CAIRN_OK;
        if (i % 3 == 0)
            status = cairn_batch_nop(crowd.batch, site_of(&crowd, i), &error);
        else if (i % 3 == 1)
            status = cairn_batch_jump(crowd.batch, site_of(&crowd, i), crowd.code + tail_offset(i),
                                      &error);
        else
            status = cairn_batch_call(crowd.batch, site_of(&crowd, i), SITE_TWO, &error);
        ck_assert_done(status, error);
    }
    ck_assert_done(cairn_batch_commit(crowd.batch, strength, &error), error);
    ck_assert_uint_eq(count_results(&crowd, 2), COUNT / 3);
    ck_assert_uint_eq(count_results(&crowd, 0), COUNT - COUNT / 3);
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_done(cairn_batch_restore(crowd.batch, site_of(&crowd, i), &error), error);
    ck_assert_done(cairn_batch_commit(crowd.batch, strength, &error), error);
    ck_assert(is_unchanged(&crowd));
    destroy_crowd(&crowd);
}
END_TEST

/* ---- The last one is refused when it is noted ---- */

/* 4095 changes are noted; the last one is refused. The others are still there and can be made. */
static void check_refused_note(struct crowd *crowd, enum cairn_status got,
                               enum cairn_status expected)
{
    struct cairn_error error;
    ck_assert_int_eq(got, expected);
    ck_assert(is_unchanged(crowd));
    ck_assert_uint_eq(count_results(crowd, 0), COUNT);
    ck_assert_done(cairn_batch_commit(crowd->batch, CAIRN_SYNC, &error), error);
    ck_assert_uint_eq(count_results(crowd, 2), LAST);
    ck_assert_int_eq(
        memcmp(crowd->code + function_offset(LAST), crowd->before + function_offset(LAST), STRIDE),
        0);
    destroy_crowd(crowd);
}

START_TEST(null_as_the_last_target_is_refused)
{
    struct crowd crowd;
    create_crowd(&crowd, site_modes[_i]);
    note_calls(&crowd, LAST, near_two(&crowd));
    check_refused_note(&crowd, cairn_batch_call(crowd.batch, site_of(&crowd, LAST), NULL, NULL),
                       CAIRN_ERROR_ARGUMENT);
}
END_TEST

START_TEST(site_named_again_at_last_is_refused_and_named)
{
    struct crowd crowd;
    struct cairn_error error;
    create_crowd(&crowd, site_modes[_i]);
    note_calls(&crowd, LAST, near_two(&crowd));
    enum cairn_status status = cairn_batch_nop(crowd.batch, site_of(&crowd, 77), &error);
    ck_assert_ptr_nonnull(strstr(error.message, "site 77 "));
    check_refused_note(&crowd, status, CAIRN_ERROR_CONFLICT);
}
END_TEST

START_TEST(region_that_is_too_small_is_refused_at_last)
{
    struct crowd crowd;
    struct site_fixture small;
    struct cairn_error error;
    uint8_t region[SITE_REGION_MAX];
    create_crowd(&crowd, site_modes[_i]);
    const struct site_shape shape = site_null_patchpoint(region, machine_region_too_small);
    site_load_into(&small, crowd.runtime, &shape);
    note_calls(&crowd, LAST, near_two(&crowd));
    enum cairn_status status = cairn_batch_call(crowd.batch, small.site, SITE_TWO, &error);
    ck_assert_ptr_nonnull(strstr(error.message, machine_why_too_small));
    check_refused_note(&crowd, status, CAIRN_ERROR_UNMANAGED);
}
END_TEST

START_TEST(site_of_another_runtime_is_refused_at_last)
{
    struct crowd crowd;
    struct site_fixture other;
    struct cairn_error error;
    uint8_t region[SITE_REGION_MAX];
    create_crowd(&crowd, site_modes[_i]);
    const struct site_shape shape = site_null_patchpoint(region, 16);
    site_load(&other, site_modes[_i], &shape);
    note_calls(&crowd, LAST, near_two(&crowd));
    enum cairn_status status = cairn_batch_call(crowd.batch, other.site, SITE_TWO, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "another runtime"));
    ck_assert_int_eq(other.function(), 0);
    check_refused_note(&crowd, status, CAIRN_ERROR_ARGUMENT);
    site_unload(&other);
}
END_TEST

/* ---- The commit is refused ---- */

/* Nothing has changed, and the batch still holds its changes. */
static void check_refused_commit(struct crowd *crowd, enum cairn_strength strength,
                                 enum cairn_status expected)
{
    struct cairn_error error = {.status = CAIRN_OK};
    support_expect(cairn_batch_commit(crowd->batch, strength, &error) == expected);
    support_expect(error.status == expected && error.message[0] != '\0');
    support_expect(is_unchanged(crowd));
    support_expect(count_results(crowd, 0) == COUNT);
    support_expect(cairn_batch_nop(crowd->batch, site_of(crowd, 0), NULL) == CAIRN_ERROR_CONFLICT);
}

START_TEST(module_retired_under_the_last_change_refuses_all)
{
    struct crowd crowd;
    struct site_fixture other;
    struct cairn_error error;
    uint8_t region[SITE_REGION_MAX];
    create_crowd(&crowd, site_modes[_i]);
    const struct site_shape shape = site_null_patchpoint(region, 16);
    site_load_into(&other, crowd.runtime, &shape);
    note_calls(&crowd, COUNT, near_two(&crowd));
    ck_assert_done(cairn_batch_call(crowd.batch, other.site, SITE_TWO, &error), error);
    cairn_module_retire(other.module);
    check_refused_commit(&crowd, CAIRN_SYNC, CAIRN_ERROR_STATE);
    ck_assert_int_eq(other.function(), 0);
    destroy_crowd(&crowd);
}
END_TEST

START_TEST(host_s_bytes_under_the_last_change_refuse_all)
{
    uint8_t no_op[4];
    struct crowd crowd;
    struct site_fixture other;
    struct cairn_error error;
    uint8_t region[SITE_REGION_MAX];
    create_crowd(&crowd, site_modes[_i]);
    arch_host()->fill_nops(arch_host(), no_op, sizeof no_op);
    const struct site_shape shape = site_null_patchpoint(region, 16);
    site_load_into(&other, crowd.runtime, &shape);
    note_calls(&crowd, COUNT, near_two(&crowd));
    ck_assert_done(cairn_batch_call(crowd.batch, other.site, SITE_TWO, &error), error);
    ck_assert_done(cairn_site_write(other.site, no_op, sizeof no_op, CAIRN_QUIESCENT, &error),
                   error);
    check_refused_commit(&crowd, CAIRN_RELAXED, CAIRN_ERROR_STATE);
    ck_assert_int_eq(other.function(), 0);
    ck_assert_done(cairn_site_restore(other.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_done(cairn_batch_commit(crowd.batch, CAIRN_RELAXED, &error), error);
    ck_assert_uint_eq(count_results(&crowd, 2), COUNT);
    ck_assert_int_eq(other.function(), 2);
    destroy_crowd(&crowd);
}
END_TEST

/* Only the last target is out of reach, and there is no memory for its veneer. */
START_TEST(missing_veneer_of_the_last_change_refuses_all)
{
    struct crowd crowd;
    struct cairn_error error;
    struct support_allocator allocator = {.fail_at = 0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocator),
                                                  .code_mode = site_modes[_i]};
    ck_assert_done(cairn_runtime_create(&options, &crowd.runtime, &error), error);
    load_crowd(&crowd);
    note_calls(&crowd, LAST, near_two(&crowd));
    ck_assert_done(cairn_batch_call(crowd.batch, site_of(&crowd, LAST), SITE_TWO, &error), error);
    allocator.fail_at = allocator.calls + 1;
    check_refused_commit(&crowd, CAIRN_SYNC, CAIRN_ERROR_MEMORY);
    ck_assert_done(cairn_batch_commit(crowd.batch, CAIRN_SYNC, &error), error);
    ck_assert_uint_eq(count_results(&crowd, 2), COUNT);
    destroy_crowd(&crowd);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
}
END_TEST

START_TEST(strength_that_is_none_refuses_all)
{
    struct crowd crowd;
    create_crowd(&crowd, site_modes[_i]);
    note_calls(&crowd, COUNT, near_two(&crowd));
    check_refused_commit(&crowd, (enum cairn_strength)3, CAIRN_ERROR_ARGUMENT);
    destroy_crowd(&crowd);
}
END_TEST

/* ---- The kernel refuses ---- */

static const struct support_refusal no_barrier = {.call = SYS_membarrier, .error = EPERM};

/* Of a region; one instruction where they all have the same size. */
enum { PART = 4 };

static void sites_without_barrier(void *user)
{
    struct crowd crowd;
    struct cairn_error error;
    support_refuse(&no_barrier, 1);
    create_crowd(&crowd, *(const enum cairn_code_mode *)user);
    support_expect(!cairn_runtime_can_synchronise(crowd.runtime));
    for (enum cairn_strength strength = CAIRN_SYNC; strength <= CAIRN_QUIESCENT; strength++) {
        cairn_site *site = site_of(&crowd, 0);
        support_expect(cairn_site_call(site, SITE_TWO, strength, &error) ==
                       CAIRN_ERROR_UNSUPPORTED);
        support_expect(strstr(error.message, "membarrier") != NULL);
        support_expect(cairn_site_jump(site, SITE_TWO, strength, NULL) == CAIRN_ERROR_UNSUPPORTED);
        support_expect(cairn_site_nop(site, strength, NULL) == CAIRN_ERROR_UNSUPPORTED);
        support_expect(cairn_site_restore(site, strength, NULL) == CAIRN_ERROR_UNSUPPORTED);
        support_expect(cairn_site_write(site, crowd.before, PART, CAIRN_QUIESCENT, NULL) ==
                       CAIRN_ERROR_UNSUPPORTED);
    }
    note_calls(&crowd, COUNT, near_two(&crowd));
    check_refused_commit(&crowd, CAIRN_SYNC, CAIRN_ERROR_UNSUPPORTED);
    check_refused_commit(&crowd, CAIRN_QUIESCENT, CAIRN_ERROR_UNSUPPORTED);
    support_expect(cairn_batch_commit(crowd.batch, CAIRN_RELAXED, NULL) == CAIRN_OK);
    support_expect(count_results(&crowd, 2) == COUNT);
    destroy_crowd(&crowd);
}

START_TEST(without_a_barrier_no_mode_synchronises)
{
    enum cairn_code_mode mode = site_modes[_i];
    support_in_child(sites_without_barrier, &mode);
}
END_TEST

/* It is there at first, and refused when all is written. */
static void barrier_is_refused_later(void *user)
{
    struct crowd crowd;
    struct cairn_error error;
    create_crowd(&crowd, *(const enum cairn_code_mode *)user);
    cairn_site *site = site_of(&crowd, 5);
    note_calls(&crowd, COUNT, near_two(&crowd));
    support_refuse(&no_barrier, 1);
    check_refused_commit(&crowd, CAIRN_SYNC, CAIRN_ERROR_SYSTEM);
    support_expect(cairn_site_call(site, near_two(&crowd), CAIRN_SYNC, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == EPERM);
    support_expect(cairn_site_write(site, crowd.before, PART, CAIRN_QUIESCENT, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(is_unchanged(&crowd));
    support_expect(site_describe(site).state == CAIRN_SITE_NOP);
    support_expect(cairn_batch_commit(crowd.batch, CAIRN_RELAXED, NULL) == CAIRN_OK);
    support_expect(count_results(&crowd, 2) == COUNT);
    destroy_crowd(&crowd);
}

START_TEST(barrier_that_fails_takes_all_changes_back)
{
    enum cairn_code_mode mode = site_modes[_i];
    support_in_child(barrier_is_refused_later, &mode);
}
END_TEST

/* In Single mode, the last site's page cannot be replaced: mremap to its address is refused. */
static void last_page_is_refused(void *user)
{
    enum { NEW_ADDRESS = 4 };
    struct crowd crowd;
    (void)user;
    create_crowd(&crowd, CAIRN_CODE_MODE_SINGLE);
    uint64_t last = site_describe(site_of(&crowd, LAST)).address & ~(uint64_t)(PAGE - 1);
    const struct support_refusal refusal = {.call = SYS_mremap,
                                            .error = ENOMEM,
                                            .argument = NEW_ADDRESS,
                                            .mask = ~(uint32_t)(PAGE - 1),
                                            .value = (uint32_t)last};
    note_calls(&crowd, COUNT, near_two(&crowd));
    support_refuse(&refusal, 1);
    check_refused_commit(&crowd, CAIRN_SYNC, CAIRN_ERROR_SYSTEM);
    check_refused_commit(&crowd, CAIRN_RELAXED, CAIRN_ERROR_SYSTEM);
    support_expect(cairn_site_call(site_of(&crowd, LAST), near_two(&crowd), CAIRN_SYNC, NULL) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(is_unchanged(&crowd));
    cairn_batch_clear(crowd.batch);
    note_calls(&crowd, LAST, near_two(&crowd));
    support_expect(cairn_batch_commit(crowd.batch, CAIRN_SYNC, NULL) == CAIRN_OK);
    support_expect(count_results(&crowd, 2) == LAST);
    destroy_crowd(&crowd);
}

START_TEST(page_of_the_last_site_that_cannot_be_replaced_takes_all_changes_back)
{
    support_in_child(last_page_is_refused, NULL);
}
END_TEST

int main(void)
{
    const TTest *both[] = {
        null_as_the_last_target_is_refused,
        site_named_again_at_last_is_refused_and_named,
        region_that_is_too_small_is_refused_at_last,
        site_of_another_runtime_is_refused_at_last,
        module_retired_under_the_last_change_refuses_all,
        host_s_bytes_under_the_last_change_refuse_all,
        missing_veneer_of_the_last_change_refuses_all,
        strength_that_is_none_refuses_all,
    };
    Suite *suite = suite_create("batches of sites");
    TCase *tests = tcase_create("batches");
    int first_mode = site_first_mode();
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, all_4096_sites_do_the_new_thing, 2 * first_mode, 2 * SITE_MODES);
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        tcase_add_loop_test(tests, both[i], first_mode, SITE_MODES);
    if (support_can_refuse()) {
        tcase_add_loop_test(tests, barrier_that_fails_takes_all_changes_back, 0, SITE_MODES);
        tcase_add_loop_test(tests, without_a_barrier_no_mode_synchronises, 0, SITE_MODES);
        tcase_add_test(tests, page_of_the_last_site_that_cannot_be_replaced_takes_all_changes_back);
    }
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
