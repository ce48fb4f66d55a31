/*
 * Tests of which bytes belong to a site where all instructions are words: shadows of real
 * instructions, declarations that do not match the code, statepoints. check_sites_region.c has the
 * tests for x86-64.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/site_random.h"
#include "tests/site_support.h"

#include "arch/arch.h"
#include "runtime_support.h"
#include "tests/code_support.h"
#include "tests/machine.h"

#include <stdio.h>
#include <string.h>

enum { WORD = 4 };

static bool has_toc(void) { return arch_host()->toc_save_offset != 0; }

static void write_increments(uint8_t *region, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        region += machine_increment(region);
}

static struct site_shape shadow(const uint8_t *region, uint32_t region_size, uint32_t declared)
{
    return (struct site_shape){.kind = CAIRN_RECORD_STACKMAP,
                               .region = region,
                               .region_size = region_size,
                               .byte_count = declared,
                               .publish = true};
}

/* ---- Shadows ---- */

/* A shadow of one instruction, followed by three that add 1 each. */
static void check_shadow(const struct site_fixture *fixture, enum cairn_strength strength)
{
    struct cairn_error error;
    uint8_t first[4 * WORD];
    const uint8_t *bytes = site_describe(fixture->site).bytes;
    memcpy(first, bytes, sizeof first);
    const long others = 3;
    ck_assert_int_eq(site_describe(fixture->site).state, CAIRN_SITE_ORIGINAL);
    ck_assert_done(cairn_site_nop(fixture->site, strength, &error), error);
    ck_assert_int_eq(fixture->function(), others);
    ck_assert_done(cairn_site_call(fixture->site, SITE_TWO, strength, &error), error);
    ck_assert_int_eq(site_describe(fixture->site).state, CAIRN_SITE_CALL);
    ck_assert_uint_eq(site_describe(fixture->site).target, (uintptr_t)site_two);
    ck_assert_int_eq(fixture->function(), 2 + others);
    ck_assert_done(cairn_site_call(fixture->site, fixture->near_one, strength, &error), error);
    ck_assert(site_describe(fixture->site).uses_veneer == arch_host()->calls_need_veneer);
    ck_assert_int_eq(fixture->function(), 1 + others);
    ck_assert_done(cairn_site_jump(fixture->site, fixture->near_three, strength, &error), error);
    ck_assert_int_eq(fixture->function(), 3);
    ck_assert_int_eq(memcmp(bytes + WORD, first + WORD, sizeof first - WORD), 0);
    ck_assert_done(cairn_site_restore(fixture->site, strength, &error), error);
    ck_assert_int_eq(memcmp(bytes, first, sizeof first), 0);
}

START_TEST(shadow_of_an_instruction_is_patched_under_quiescence_alone)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    write_increments(region, 4);
    const struct site_shape shape = shadow(region, 4 * WORD, 4 * WORD);
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert(!site_describe(fixture.site).live);
    ck_assert_ptr_nonnull(strstr(site_describe(fixture.site).reason, "CAIRN_QUIESCENT only"));
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, NULL),
                     CAIRN_ERROR_UNMANAGED);
    ck_assert_int_eq(cairn_site_nop(fixture.site, CAIRN_RELAXED, NULL), CAIRN_ERROR_UNMANAGED);
    ck_assert_int_eq(cairn_site_jump(fixture.site, fixture.near_three, CAIRN_SYNC, NULL),
                     CAIRN_ERROR_UNMANAGED);
    ck_assert_int_eq(fixture.function(), 4);
    check_shadow(&fixture, CAIRN_QUIESCENT);
    ck_assert_int_eq(fixture.function(), 4);
    site_unload(&fixture);
}
END_TEST

/* A jump to the instruction after it. */
START_TEST(shadow_of_a_branch_is_live)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    uint64_t bits;
    write_increments(region, 4);
    ck_assert(arch_host()->encode_branch(arch_host(), CAIRN_SITE_JUMP, 0, WORD, WORD, &bits));
    const uint32_t word = (uint32_t)bits;
    memcpy(region, &word, sizeof word);
    const struct site_shape shape = shadow(region, 4 * WORD, 4 * WORD);
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert_msg(site_describe(fixture.site).live, "%s", site_describe(fixture.site).reason);
    ck_assert_int_eq(fixture.function(), 3);
    check_shadow(&fixture, CAIRN_SYNC);
    ck_assert_int_eq(fixture.function(), 3);
    site_unload(&fixture);
}
END_TEST

START_TEST(shadow_of_fewer_bytes_than_an_instruction_is_refused)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    write_increments(region, 4);
    const struct site_shape shape = shadow(region, 16, (uint32_t)_i);
    site_load(&fixture, site_modes[SITE_MODES - 1], &shape);
    ck_assert(!site_describe(fixture.site).live);
    if (_i < WORD)
        ck_assert_int_eq(cairn_site_nop(fixture.site, CAIRN_QUIESCENT, NULL), CAIRN_ERROR_RANGE);
    ck_assert_int_eq(fixture.function(), 4);
    site_unload(&fixture);
}
END_TEST

/* ---- Patch points ---- */

START_TEST(declarations_smaller_than_llvm_s_call_are_refused)
{
    uint8_t call[MACHINE_PATCHPOINT_MAX];
    uint32_t call_size = (uint32_t)machine_call(call, SITE_ONE);
    /* The reload of the TOC pointer may follow the region. */
    uint32_t smallest = has_toc() ? call_size - WORD : call_size;
    for (uint32_t declared = 0; declared <= call_size; declared++) {
        uint8_t region[SITE_REGION_MAX];
        struct site_fixture fixture;
        struct site_shape shape = site_calling_patchpoint(region);
        shape.byte_count = declared;
        site_load(&fixture, site_modes[SITE_MODES - 1], &shape);
        struct cairn_site_description description = site_describe(fixture.site);
        bool live = declared >= smallest && declared % WORD == 0;
        ck_assert_msg(description.live == live, "%u bytes: %s", declared, description.reason);
        ck_assert_int_eq(fixture.function(), 1);
        if (!live) {
            ck_assert_int_gt((int)strlen(description.reason), 10);
            ck_assert_int_eq(
                memcmp(fixture.tail - machine_patchpoint_bytes, region, machine_patchpoint_bytes),
                0);
        }
        site_unload(&fixture);
    }
}
END_TEST

/* Each bit of LLVM's sequence is changed in turn. Only the bits of the target may differ in a valid
 * sequence. */
START_TEST(changed_bit_of_llvm_s_sequence_leaves_the_site_unmanaged_and_is_named)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_shape shape = site_calling_patchpoint(region);
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    uint32_t live = 0;
    for (uint32_t bit = 0; bit < 8 * shape.region_size; bit++) {
        struct site_fixture fixture;
        char name[64];
        uint32_t offset = bit / 8 / WORD * WORD;
        region[bit / 8] ^= (uint8_t)(1U << bit % 8);
        site_load_into(&fixture, runtime, &shape);
        struct cairn_site_description description = site_describe(fixture.site);
        snprintf(name, sizeof name, "byte %u of the region, 0x%08x", offset,
                 cairn_load_u32(region + offset, CAIRN_BYTE_ORDER_NATIVE));
        live += description.live;
        ck_assert_msg(description.live || strstr(description.reason, name) != NULL,
                      "'%s' does not say '%s'", description.reason, name);
        ck_assert(description.live || memcmp(description.bytes, region, shape.region_size) == 0);
        ck_assert(!description.live || description.target != (uintptr_t)site_one);
        cairn_module_retire(fixture.module);
        cairn_runtime_quiesce(runtime);
        region[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    ck_assert_uint_eq(live, 48);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* The regions have words that LLVM does not emit, and each size. Which changes are possible under
 * quiescence depends on the size of a call. */
START_TEST(unknown_region_may_be_called_from_where_all_that_a_call_needs_has_space)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    for (uint32_t size = WORD; size <= 32; size += WORD) {
        uint8_t region[SITE_REGION_MAX];
        struct site_fixture fixture;
        struct cairn_error error = {0};
        bool may_call = size >= arch_host()->call_bytes;
        struct site_shape shape = site_null_patchpoint(region, size);
        write_increments(region + size - WORD, 1);
        site_load_into(&fixture, runtime, &shape);
        const uint8_t *bytes = site_describe(fixture.site).bytes;
        ck_assert(!site_describe(fixture.site).live);
        ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, &error),
                         may_call ? CAIRN_OK : CAIRN_ERROR_RANGE);
        ck_assert_int_eq(fixture.function(), may_call ? 2 : 1);
        if (!may_call) {
            ck_assert_msg(strstr(error.message, "12 bytes") != NULL, "%s", error.message);
            ck_assert_int_eq(memcmp(bytes, region, size), 0);
        }
        ck_assert_done(cairn_site_jump(fixture.site, fixture.near_three, CAIRN_QUIESCENT, &error),
                       error);
        ck_assert_int_eq(fixture.function(), 3);
        ck_assert_done(cairn_site_nop(fixture.site, CAIRN_QUIESCENT, &error), error);
        ck_assert_int_eq(fixture.function(), 0);
        ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
        ck_assert_int_eq(memcmp(bytes, region, size), 0);
        cairn_module_retire(fixture.module);
        cairn_runtime_quiesce(runtime);
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Statepoints ---- */

static void expect_jumps_alone(const struct site_fixture *fixture, uint32_t size)
{
    struct cairn_error error;
    const char *reason = site_describe(fixture->site).reason;
    ck_assert_msg(strstr(reason, "12 bytes") != NULL, "%s", reason);
    ck_assert_msg(size < 12 || strstr(reason, "reload") != NULL, "%s", reason);
    ck_assert_int_eq(cairn_site_call(fixture->site, SITE_TWO, CAIRN_QUIESCENT, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_int_eq(fixture->function(), 0);
    ck_assert_done(cairn_site_jump(fixture->site, fixture->near_three, CAIRN_QUIESCENT, &error),
                   error);
    ck_assert_int_eq(fixture->function(), 3);
    ck_assert_done(cairn_site_restore(fixture->site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(fixture->function(), 0);
}

START_TEST(statepoint_s_call_returns_to_its_end)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    for (uint32_t size = WORD; size <= 32; size += WORD) {
        uint8_t region[SITE_REGION_MAX];
        struct site_fixture fixture;
        struct cairn_error error;
        struct site_shape shape = site_null_patchpoint(region, size);
        shape.kind = CAIRN_RECORD_STATEPOINT;
        site_load_into(&fixture, runtime, &shape);
        struct cairn_site_description description = site_describe(fixture.site);
        ck_assert_uint_eq(description.address, (uintptr_t)fixture.tail - size);
        /* With a TOC, the reload is between the call and the end. */
        ck_assert(description.live == !has_toc());
        ck_assert_int_eq(fixture.function(), 0);
        if (description.live) {
            ck_assert_uint_eq(description.return_address, (uintptr_t)fixture.tail);
            ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error), error);
            ck_assert_int_eq(fixture.function(), 2);
            ck_assert_done(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), error);
            ck_assert_int_eq(fixture.function(), 0);
        } else {
            expect_jumps_alone(&fixture, size);
        }
        cairn_module_retire(fixture.module);
        cairn_runtime_quiesce(runtime);
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Random declarations ---- */

enum { RANDOM_CODE = 512, RANDOM_RECORDS = 24, RANDOM_MODULES = 100 };

static void write_random_code(uint64_t *state, uint8_t *code)
{
    arch_host()->fill_nops(arch_host(), code, RANDOM_CODE);
    for (uint32_t at = 0; at + MACHINE_PATCHPOINT_MAX <= RANDOM_CODE;) {
        uint32_t piece = support_random(state) % 6;
        if (piece == 0)
            at += (uint32_t)machine_call(code + at, SITE_ONE);
        else if (piece == 1)
            at += (uint32_t)machine_increment(code + at);
        else if (piece == 2)
            at += (uint32_t)machine_set(code + at, 5);
        else
            at += WORD * (1 + support_random(state) % 4);
    }
}

/* Two functions: the first half of the code, and the second. */
static cairn_module *load_random(uint64_t *state, cairn_runtime *runtime, uint8_t *bytes,
                                 uint8_t **address)
{
    static struct site_record records[RANDOM_RECORDS];
    const struct site_function functions[] = {{0, RANDOM_RECORDS / 2},
                                              {RANDOM_CODE / 2, RANDOM_RECORDS / 2}};
    const struct site_code code = {bytes, RANDOM_CODE, functions, 2, records, 0};
    struct cairn_error error;
    write_random_code(state, bytes);
    for (uint32_t i = 0; i < RANDOM_RECORDS; i++) {
        /* In some cases the offset and the size are not multiples of a word, which no compiler
         * does. */
        uint32_t odd = support_random(state) % 8 == 0 ? support_random(state) % WORD : 0;
        records[i].id = i;
        records[i].offset = support_random(state) % (RANDOM_CODE / 2 / WORD) * WORD + odd;
        records[i].byte_count = support_random(state) % 12 * WORD + odd;
        records[i].kind = (enum cairn_record_kind)(support_random(state) % 4);
    }
    cairn_module *module = site_load_code(runtime, &code, address);
    ck_assert_done(cairn_module_publish(module, &error), error);
    return module;
}

START_TEST(no_declaration_changes_bytes_that_are_not_a_site_s_own)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    uint64_t state = support_seed();
    uint32_t live = 0;
    for (int i = 0; i < RANDOM_MODULES; i++) {
        uint8_t bytes[RANDOM_CODE];
        uint8_t *code;
        cairn_module *module = load_random(&state, runtime, bytes, &code);
        uint32_t count = support_site_count(module);
        for (int step = 0; count > 0 && step < 40; step++)
            site_disturb(&state, cairn_module_site(module, support_random(&state) % count), code,
                         RANDOM_CODE);
        live += site_restore_all(module);
        cairn_module_retire(module);
        ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    }
    ck_assert_uint_gt(live, RANDOM_MODULES / 4);
    cairn_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
    const TTest *in_every_mode[] = {
        shadow_of_an_instruction_is_patched_under_quiescence_alone,
        shadow_of_a_branch_is_live,
        changed_bit_of_llvm_s_sequence_leaves_the_site_unmanaged_and_is_named,
        unknown_region_may_be_called_from_where_all_that_a_call_needs_has_space,
        statepoint_s_call_returns_to_its_end,
        no_declaration_changes_bytes_that_are_not_a_site_s_own,
    };
    Suite *suite = suite_create("regions of words");
    TCase *tests = tcase_create("regions");
    int first_mode = site_first_mode();
    tcase_set_timeout(tests, 60);
    for (size_t i = 0; i < sizeof in_every_mode / sizeof *in_every_mode; i++)
        tcase_add_loop_test(tests, in_every_mode[i], first_mode, SITE_MODES);
    tcase_add_loop_test(tests, shadow_of_fewer_bytes_than_an_instruction_is_refused, 1, 9);
    tcase_add_test(tests, declarations_smaller_than_llvm_s_call_are_refused);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
