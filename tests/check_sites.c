/*
 * Tests of sites in loaded code: their states, and changing them one by one and as lists.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/site_support.h"

#include "arch/arch.h"
#include "runtime/module.h"
#include "runtime_support.h"
#include "tests/context_support.h"
#include "tests/machine.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Patch points ---- */

START_TEST(patchpoint_becomes_call_no_op_and_jump_and_is_restored)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_calling_patchpoint(region);
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_CALL);
    ck_assert_uint_eq(site_describe(fixture.site).target, (uintptr_t)site_one);
    ck_assert(site_describe(fixture.site).live);
    ck_assert_int_eq(fixture.function(), 1);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_RELAXED, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_uint_eq(site_describe(fixture.site).target, (uintptr_t)site_two);
    ck_assert_done(cairn_site_nop(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 0);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_NOP);
    /* The end of the function: removes the frame and returns. */
    ck_assert_done(cairn_site_jump(fixture.site, fixture.tail, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 0);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_JUMP);
    ck_assert(site_describe(fixture.site).uses_veneer == arch_host()->calls_need_veneer);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 1);
    site_unload(&fixture);
}
END_TEST

/* The frame that an exit's handler receives, and its answer. */
struct exit_visit {
    const cairn_runtime *runtime;
    uint64_t id;
    uint64_t result;
};

static void answer(struct cairn_context *context, void *user)
{
    struct exit_visit *visit = user;
    struct cairn_record record;
    if (support_find_return_address(visit->runtime, read_register(context, CAIRN_REGISTER_PC),
                                    &record))
        visit->id = cairn_record_id(record);
    ck_assert_int_eq(
        cairn_context_write(context, machine_result, &visit->result, sizeof visit->result, NULL),
        CAIRN_OK);
}

static const void *write_exit(uint8_t *memory, size_t page, struct exit_visit *visit)
{
    const struct cairn_arch *arch = arch_host();
    struct arch_exit *data = (struct arch_exit *)(void *)(memory + page);
    static _Atomic uint32_t level;
    level = arch_host_vector_level();
    ck_assert_int_eq(arch_exit_init(data, answer, visit, &level, NULL), CAIRN_OK);
    ck_assert(arch->encode_exit(arch, (uintptr_t)memory, (uintptr_t)data, memory));
    arch_host_code_written(memory, memory, arch->exit_bytes);
    ck_assert_int_eq(mprotect(memory, page, PROT_READ | PROT_EXEC), 0);
    return memory;
}

START_TEST(site_that_calls_an_exit_continues_with_the_handler_s_result)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_calling_patchpoint(region);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *memory =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    site_load(&fixture, site_modes[_i], &shape);
    struct exit_visit visit = {.runtime = fixture.runtime, .result = 9};
    const void *stub = write_exit(memory, page, &visit);
    ck_assert_done(cairn_site_call(fixture.site, stub, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 9);
    ck_assert_uint_eq(visit.id, 42);
    site_unload(&fixture);
    munmap(memory, 2 * page);
}
END_TEST

START_TEST(records_of_a_patchpoint_are_found_by_both_addresses)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_record record;
    const struct site_shape shape = site_patchpoint(region, machine_patchpoint_bytes + 4);
    site_load(&fixture, site_modes[_i], &shape);
    struct cairn_site_description description = site_describe(fixture.site);
    ck_assert(cairn_runtime_find_address(fixture.runtime, description.address, &record));
    ck_assert_ptr_eq(cairn_record_site(record), fixture.site);
    ck_assert_ptr_eq(record_module(record), fixture.module);
    ck_assert(support_find_return_address(fixture.runtime, description.return_address, &record));
    ck_assert_uint_eq(cairn_record_id(record), 42);
    ck_assert_str_eq(cairn_record_declaration(record)->function, "f");
    ck_assert(!support_find_return_address(fixture.runtime, description.address, &record));
    ck_assert_ptr_eq(cairn_runtime_find_site(fixture.runtime, 42, NULL), fixture.site);
    cairn_module_retire(fixture.module);
    ck_assert(!cairn_runtime_find_address(fixture.runtime, description.address, &record));
    ck_assert_ptr_null(cairn_runtime_find_site(fixture.runtime, 42, NULL));
    site_unload(&fixture);
}
END_TEST

START_TEST(unknown_bytes_are_left_alone_and_named)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_calling_patchpoint(region);
    uint32_t size = machine_patchpoint_bytes;
    machine_odd(region + size - machine_odd_distance);
    site_load(&fixture, site_modes[_i], &shape);
    struct cairn_site_description description = site_describe(fixture.site);
    ck_assert_int_eq(description.state, CAIRN_SITE_UNMANAGED);
    ck_assert(!description.live);
    ck_assert_ptr_nonnull(strstr(description.reason, machine_odd_name));
    ck_assert_int_eq(memcmp(description.bytes, region, size), 0);
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error),
                     CAIRN_ERROR_UNMANAGED);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_done(cairn_site_jump(fixture.site, fixture.near_three, CAIRN_QUIESCENT, &error),
                   error);
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(memcmp(description.bytes, region, size), 0);
    site_unload(&fixture);
}
END_TEST

START_TEST(what_is_wrong_is_refused_before_the_first_write)
{
    uint8_t region[SITE_REGION_MAX];
    uint8_t before[MACHINE_PATCHPOINT_MAX];
    struct site_fixture fixture;
    const struct site_shape shape = site_calling_patchpoint(region);
    site_load(&fixture, site_modes[_i], &shape);
    memcpy(before, site_describe(fixture.site).bytes, machine_patchpoint_bytes);
    ck_assert_int_eq(cairn_site_call(fixture.site, NULL, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_site_jump(fixture.site, NULL, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_site_call(NULL, SITE_ONE, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    struct cairn_error error;
    ck_assert_ptr_null(cairn_runtime_find_site(fixture.runtime, 7, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(memcmp(before, site_describe(fixture.site).bytes, machine_patchpoint_bytes),
                     0);
    site_unload(&fixture);
}
END_TEST

/* ---- Sizes ---- */

START_TEST(every_region_with_room_is_live_at_any_alignment)
{
    uint32_t step = arch_host()->fixed_instruction_bytes == 0
                        ? 1
                        : (uint32_t)arch_host()->fixed_instruction_bytes;
    for (uint32_t size = step; size <= 40; size += step) {
        for (uint32_t padding = 0; padding < 8; padding += step) {
            uint8_t region[SITE_REGION_MAX];
            struct site_fixture fixture;
            struct cairn_error error;
            struct site_shape shape = site_patchpoint(region, size);
            shape.padding = padding;
            site_load(&fixture, site_modes[site_first_mode()], &shape);
            bool live = site_describe(fixture.site).live;
            ck_assert(live || size < machine_region_bytes);
            enum cairn_status status =
                cairn_site_call(fixture.site, SITE_TWO, CAIRN_RELAXED, &error);
            ck_assert_int_eq(status, live ? CAIRN_OK : CAIRN_ERROR_UNMANAGED);
            if (live)
                ck_assert_int_eq(fixture.function(), 2);
            else
                ck_assert_int_gt((int)strlen(site_describe(fixture.site).reason), 10);
            site_unload(&fixture);
        }
    }
}
END_TEST

/* ---- Shadows ---- */

START_TEST(shadow_of_no_ops_is_live)
{
    struct site_fixture fixture;
    struct cairn_error error;
    uint8_t no_ops[16];
    arch_host()->fill_nops(arch_host(), no_ops, sizeof no_ops);
    const struct site_shape shape = {
        CAIRN_RECORD_STACKMAP, no_ops, sizeof no_ops, sizeof no_ops, 4, 0, true};
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert(site_describe(fixture.site).live);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_NOP);
    ck_assert_int_eq(fixture.function(), 0);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 0);
    site_unload(&fixture);
}
END_TEST

/* ---- Lists of changes ---- */

START_TEST(list_of_changes_is_made_whole_or_not_at_all)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_calling_patchpoint(region);
    site_load(&fixture, site_modes[_i], &shape);
    const struct cairn_site_change call = {fixture.site, CAIRN_SITE_CALL, SITE_TWO};
    const struct cairn_site_change restore = {fixture.site, CAIRN_SITE_ORIGINAL, NULL};
    const struct cairn_site_change twice[] = {call, restore};
    ck_assert_int_eq(cairn_sites_change(twice, 2, CAIRN_SYNC, &error), CAIRN_ERROR_CONFLICT);
    ck_assert_int_eq(cairn_sites_change(NULL, 1, CAIRN_SYNC, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(fixture.function(), 1);
    ck_assert_done(cairn_sites_change(&call, 1, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_done(cairn_sites_change(NULL, 0, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    cairn_module_retire(fixture.module);
    ck_assert_done(cairn_sites_change(&restore, 1, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 1);
    site_unload(&fixture);
}
END_TEST

int main(void)
{
    const TTest *in_every_mode[] = {
        patchpoint_becomes_call_no_op_and_jump_and_is_restored,
        site_that_calls_an_exit_continues_with_the_handler_s_result,
        records_of_a_patchpoint_are_found_by_both_addresses,
        unknown_bytes_are_left_alone_and_named,
        what_is_wrong_is_refused_before_the_first_write,
        shadow_of_no_ops_is_live,
        list_of_changes_is_made_whole_or_not_at_all,
    };
    Suite *suite = suite_create("sites");
    TCase *tests = tcase_create("sites");
    int first_mode = site_first_mode();
    tcase_set_timeout(tests, 60);
    for (size_t i = 0; i < sizeof in_every_mode / sizeof *in_every_mode; i++)
        tcase_add_loop_test(tests, in_every_mode[i], first_mode, SITE_MODES);
    tcase_add_test(tests, every_region_with_room_is_live_at_any_alignment);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
