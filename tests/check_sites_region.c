/*
 * Tests of which bytes belong to a site: declarations that overlap, that extend too far, or that
 * reserve too few bytes; shadows and their rules; statepoints. The tests use x86-64 instructions of
 * all lengths. check_sites_words.c has the tests for architectures whose instructions are all
 * words.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/site_random.h"
#include "tests/site_support.h"

#include "arch/arch.h"
#include "runtime_support.h"
#include "tests/code_support.h"
#include "tests/machine.h"

#include <string.h>

static const enum cairn_strength strengths[] = {CAIRN_RELAXED, CAIRN_SYNC, CAIRN_QUIESCENT};
enum { STRENGTHS = sizeof strengths / sizeof *strengths };

/* ---- Records and declarations that do not match the code ---- */

enum { CODE_BYTES = 64 };

/* Writes no-ops with one function at the start, or two, of which the other one begins at `second`.
 */
static cairn_module *load_no_ops(cairn_runtime *runtime, uint32_t second,
                                 const struct site_record *records, uint32_t count,
                                 uint8_t **address)
{
    uint8_t bytes[CODE_BYTES];
    struct cairn_error error;
    const struct site_function functions[] = {{0, second == 0 ? count : count - 1}, {second, 1}};
    const struct site_code code = {bytes, sizeof bytes, functions, second == 0 ? 1 : 2, records, 0};
    memset(bytes, 0x90, sizeof bytes);
    cairn_module *module = site_load_code(runtime, &code, address);
    ck_assert_done(cairn_module_publish(module, &error), error);
    return module;
}

/* Asserts that the site is refused with this reason, and that no operation on it changes the code.
 */
static void check_refused(cairn_site *site, const uint8_t *code, const char *why)
{
    uint8_t before[CODE_BYTES];
    struct cairn_error error;
    struct cairn_site_description description = site_describe(site);
    memcpy(before, code, sizeof before);
    ck_assert(!description.live);
    ck_assert_msg(strstr(description.reason, why) != NULL, "'%s' does not say '%s'",
                  description.reason, why);
    for (size_t i = 0; i < STRENGTHS; i++) {
        enum cairn_status expected =
            strengths[i] == CAIRN_QUIESCENT ? CAIRN_ERROR_RANGE : CAIRN_ERROR_UNMANAGED;
        ck_assert_int_eq(cairn_site_call(site, SITE_TWO, strengths[i], &error), expected);
        ck_assert_msg(strstr(error.message, why) != NULL, "'%s' does not say '%s'", error.message,
                      why);
        ck_assert_int_eq(cairn_site_jump(site, SITE_TWO, strengths[i], NULL), expected);
        ck_assert_int_eq(cairn_site_nop(site, strengths[i], NULL), expected);
        ck_assert_done(cairn_site_restore(site, strengths[i], &error), error);
    }
    ck_assert_int_eq(memcmp(code, before, sizeof before), 0);
}

/* Asserts that the site is live, and that a call at it changes only its own bytes. */
static void check_live(cairn_site *site, const uint8_t *code)
{
    uint8_t before[CODE_BYTES];
    struct cairn_error error;
    struct cairn_site_description description = site_describe(site);
    ck_assert_msg(description.live, "%s", description.reason);
    memcpy(before, code, sizeof before);
    ck_assert_done(cairn_site_call(site, SITE_TWO, CAIRN_SYNC, &error), error);
    uint64_t begin = description.address - (uintptr_t)code;
    uint64_t end = begin + description.byte_count;
    ck_assert(site_is_same_but_for(code, before, sizeof before, begin, end));
    ck_assert_done(cairn_site_restore(site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(memcmp(code, before, sizeof before), 0);
}

START_TEST(bytes_with_another_record_inside_are_refused)
{
    static const struct site_record records[] = {{1, 0, 16, CAIRN_RECORD_PATCHPOINT},
                                                 {2, 9, 16, CAIRN_RECORD_PATCHPOINT},
                                                 {3, 30, 16, CAIRN_RECORD_PATCHPOINT},
                                                 {4, 45, 0, CAIRN_RECORD_UNDECLARED}};
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    uint8_t *code;
    cairn_module *module = load_no_ops(runtime, 0, records, 4, &code);
    ck_assert_uint_eq(support_site_count(module), 3);
    check_refused(cairn_module_site(module, 0), code, "9 bytes after");
    check_live(cairn_module_site(module, 1), code);
    check_refused(cairn_module_site(module, 2), code, "15 bytes after");
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(of_sites_at_one_address_the_first_has_the_bytes)
{
    static const struct site_record records[] = {{1, 8, 16, CAIRN_RECORD_PATCHPOINT},
                                                 {2, 8, 0, CAIRN_RECORD_PATCHPOINT},
                                                 {3, 8, 16, CAIRN_RECORD_STACKMAP}};
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    uint8_t *code;
    cairn_module *module = load_no_ops(runtime, 0, records, 3, &code);
    ck_assert_uint_eq(support_site_count(module), 3);
    check_live(cairn_module_site(module, 0), code);
    check_refused(cairn_module_site(module, 1), code, "0 bytes");
    check_refused(cairn_module_site(module, 2), code, "overlap");
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(statepoint_that_reaches_back_into_another_site_is_refused)
{
    static const struct site_record records[] = {{1, 8, 16, CAIRN_RECORD_PATCHPOINT},
                                                 {2, 36, 13, CAIRN_RECORD_STATEPOINT},
                                                 {3, 44, 9, CAIRN_RECORD_STATEPOINT}};
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    uint8_t *code;
    cairn_module *module = load_no_ops(runtime, 0, records, 3, &code);
    check_live(cairn_module_site(module, 0), code);
    check_refused(cairn_module_site(module, 1), code, "overlap");
    check_refused(cairn_module_site(module, 2), code, "1 byte");
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(bytes_beyond_the_code_are_refused)
{
    static const struct site_record records[] = {{1, 0, 16, CAIRN_RECORD_PATCHPOINT},
                                                 {2, 40, 25, CAIRN_RECORD_STACKMAP},
                                                 {3, 56, 9, CAIRN_RECORD_PATCHPOINT},
                                                 {4, 62, 100, CAIRN_RECORD_STATEPOINT},
                                                 {5, 64, UINT32_MAX, CAIRN_RECORD_STATEPOINT}};
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    uint8_t *code;
    cairn_module *module = load_no_ops(runtime, 0, records, 5, &code);
    ck_assert_uint_eq(support_site_count(module), 5);
    check_live(cairn_module_site(module, 0), code);
    for (uint32_t i = 1; i < 5; i++) {
        check_refused(cairn_module_site(module, i), code, "outside");
        ck_assert_ptr_null(site_describe(cairn_module_site(module, i)).bytes);
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

/* A site must not extend to the address at which the next function begins, even if there is no
 * record. */
START_TEST(bytes_beyond_the_function_are_refused)
{
    static const struct site_record records[] = {{1, 0, 16, CAIRN_RECORD_PATCHPOINT},
                                                 {2, 20, 16, CAIRN_RECORD_PATCHPOINT},
                                                 {3, 20, 0, CAIRN_RECORD_UNDECLARED}};
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    uint8_t *code;
    cairn_module *module = load_no_ops(runtime, 32, records, 3, &code);
    check_live(cairn_module_site(module, 0), code);
    check_refused(cairn_module_site(module, 1), code, "12 bytes after");
    cairn_runtime_destroy(runtime);
}
END_TEST

/* The following function has no records, so only an unwind table shows where this one ends. */
START_TEST(bytes_beyond_the_end_that_an_unwind_table_gives_are_refused)
{
    static const struct site_record records[] = {{1, 0, 16, CAIRN_RECORD_PATCHPOINT},
                                                 {2, 20, 16, CAIRN_RECORD_PATCHPOINT}};
    static const struct site_function function = {0, 2};
    uint8_t bytes[CODE_BYTES];
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    struct cairn_error error;
    uint8_t *code;
    memset(bytes, 0x90, sizeof bytes);
    const struct site_code known = {bytes, sizeof bytes, &function, 1, records, 30};
    cairn_module *module = site_load_code(runtime, &known, &code);
    ck_assert_done(cairn_module_publish(module, &error), error);
    check_live(cairn_module_site(module, 0), code);
    check_refused(cairn_module_site(module, 1), code, "10 bytes after");
    const struct site_code exact = {bytes, sizeof bytes, &function, 1, records, 36};
    module = site_load_code(runtime, &exact, &code);
    ck_assert_done(cairn_module_publish(module, &error), error);
    check_live(cairn_module_site(module, 1), code);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(shadow_ends_where_the_next_function_begins)
{
    static const struct site_record records[] = {{1, 24, 32, CAIRN_RECORD_STACKMAP},
                                                 {2, 20, 0, CAIRN_RECORD_UNDECLARED}};
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    struct cairn_error error;
    uint8_t *code;
    cairn_module *module = load_no_ops(runtime, 32, records, 2, &code);
    cairn_site *site = cairn_module_site(module, 0);
    check_live(site, code);
    ck_assert_done(cairn_site_call(site, SITE_TWO, CAIRN_QUIESCENT, &error), error);
    for (size_t i = 32; i < CODE_BYTES; i++)
        ck_assert_uint_eq(code[i], 0x90);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(statepoint_that_begins_before_its_function_is_refused)
{
    static const struct site_record records[] = {{1, 0, 0, CAIRN_RECORD_UNDECLARED},
                                                 {2, 8, 16, CAIRN_RECORD_STATEPOINT}};
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    uint8_t *code;
    cairn_module *module = load_no_ops(runtime, 32, records, 2, &code);
    check_refused(cairn_module_site(module, 0), code, "8 bytes after");
    cairn_runtime_destroy(runtime);
}
END_TEST

/* LLVM's call has 13 bytes, and fewer are declared. */
START_TEST(declarations_smaller_than_llvm_s_call_are_refused)
{
    for (uint32_t declared = 0; declared < 13; declared++) {
        uint8_t region[SITE_REGION_MAX];
        struct site_fixture fixture;
        struct site_shape shape = site_patchpoint(region, 16);
        shape.byte_count = declared;
        site_load(&fixture, site_modes[_i], &shape);
        struct cairn_site_description description = site_describe(fixture.site);
        ck_assert(!description.live);
        ck_assert_int_gt((int)strlen(description.reason), 10);
        ck_assert_int_eq(cairn_site_nop(fixture.site, CAIRN_SYNC, NULL), CAIRN_ERROR_UNMANAGED);
        ck_assert_int_eq(fixture.function(), 1);
        ck_assert_int_eq(memcmp(fixture.tail - 16, region, 16), 0);
        site_unload(&fixture);
    }
}
END_TEST

/* ---- Random declarations ---- */

enum { RANDOM_CODE = 512, RANDOM_RECORDS = 24, RANDOM_MODULES = 300 };

/* Writes no-ops, LLVM's calls, and instructions of all lengths. */
static void write_random_code(uint64_t *state, uint8_t *code)
{
    static const struct {
        uint8_t size;
        uint8_t bytes[13];
    } pieces[] = {
        {1, {0x90}},
        {2, {0x66, 0x90}},
        {5, {0x0F, 0x1F, 0x44, 0, 0}},
        {9, {0x66, 0x0F, 0x1F, 0x84, 0, 0, 2, 0, 0}},
        {13, {0x49, 0xBB, 0, 16, 0, 0, 0, 0, 0, 0, 0x41, 0xFF, 0xD3}},
        {2, {0x31, 0xC0}},
        {3, {0x48, 0x89, 0xC8}},
        {5, {0xB8, 1, 0, 0, 0}},
        {7, {0x48, 0x8B, 0x04, 0x25, 0, 16, 0}},
        {10, {0x48, 0xB8, 1, 2, 3, 4, 5, 6, 7, 8}},
    };
    for (uint32_t at = 0; at < RANDOM_CODE;) {
        uint32_t piece = support_random(state) % (2 * sizeof pieces / sizeof *pieces);
        piece = piece < sizeof pieces / sizeof *pieces ? piece : piece % 4;
        uint32_t size = pieces[piece].size;
        size = size <= RANDOM_CODE - at ? size : RANDOM_CODE - at;
        memcpy(code + at, pieces[piece].bytes, size);
        at += size;
    }
}

static void make_random_records(uint64_t *state, struct site_record *records, uint32_t count,
                                uint32_t span)
{
    for (uint32_t i = 0; i < count; i++) {
        records[i].offset = support_random(state) % span;
        records[i].byte_count = support_random(state) % 40;
        records[i].kind = (enum cairn_record_kind)(support_random(state) % 4);
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
    make_random_records(state, records, RANDOM_RECORDS, RANDOM_CODE / 2);
    for (uint32_t i = 0; i < RANDOM_RECORDS; i++)
        records[i].id = i;
    cairn_module *module = site_load_code(runtime, &code, address);
    ck_assert_done(cairn_module_publish(module, &error), error);
    return module;
}

/* `owner` of each byte of the code: the live site to which it belongs, plus 1. */
static void find_owners(const cairn_module *module, const uint8_t *code, uint32_t *owner)
{
    memset(owner, 0, RANDOM_CODE * sizeof *owner);
    for (uint32_t i = 0; i < support_site_count(module); i++) {
        struct cairn_site_description site = site_describe(cairn_module_site(module, i));
        ck_assert_int_eq(site.live, *site.reason == '\0');
        if (!site.live)
            continue;
        uint64_t begin = site.instruction_address - (uintptr_t)code;
        ck_assert_uint_ge(site.instruction_address, site.address);
        ck_assert_uint_le(begin + 5, RANDOM_CODE);
        ck_assert_uint_le(site.instruction_address + 5, site.address + site.byte_count);
        ck_assert(owner[begin] == 0 && owner[begin + 4] == 0);
        for (uint64_t byte = begin; byte < begin + 5; byte++)
            owner[byte] = i + 1;
    }
}

START_TEST(no_declaration_changes_bytes_that_are_not_a_site_s_own)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    uint64_t state = support_seed();
    uint32_t live = 0;
    uint32_t wrong = 0;
    for (int i = 0; i < RANDOM_MODULES; i++) {
        uint8_t bytes[RANDOM_CODE];
        uint8_t armed[RANDOM_CODE];
        uint32_t owner[RANDOM_CODE];
        uint8_t *code;
        cairn_module *module = load_random(&state, runtime, bytes, &code);
        uint32_t count = support_site_count(module);
        find_owners(module, code, owner);
        memcpy(armed, code, RANDOM_CODE);
        for (int step = 0; count > 0 && step < 40; step++)
            site_disturb(&state, cairn_module_site(module, support_random(&state) % count), code,
                         RANDOM_CODE);
        live += site_restore_all(module);
        for (uint32_t byte = 0; byte < RANDOM_CODE; byte++)
            wrong += code[byte] != armed[byte] && owner[byte] == 0;
        ck_assert_uint_eq(wrong, 0);
        cairn_module_retire(module);
        ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    }
    ck_assert_uint_gt(live, RANDOM_MODULES / 4);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Shadows ---- */

/* mov $9, %eax, with redundant prefixes: one instruction of 5 to 13 bytes. */
static void write_instruction(uint8_t *bytes, uint32_t length)
{
    static const uint8_t move[] = {0xB8, 9, 0, 0, 0};
    memset(bytes, 0x3E, length - sizeof move);
    memcpy(bytes + length - sizeof move, move, sizeof move);
}

static struct site_shape shadow(const uint8_t *region, uint32_t region_size, uint32_t declared)
{
    return (struct site_shape){.kind = CAIRN_RECORD_STACKMAP,
                               .region = region,
                               .region_size = region_size,
                               .byte_count = declared,
                               .publish = true};
}

START_TEST(shadow_is_live_where_a_branch_takes_the_place_of_one_instruction_in_one_word)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    for (uint32_t length = 5; length <= 10; length++) {
        for (uint32_t padding = 0; padding < 8; padding++) {
            for (uint32_t declared = 3; declared <= 12; declared++) {
                uint8_t region[SITE_REGION_MAX];
                struct site_fixture fixture;
                memset(region, 0x90, sizeof region);
                write_instruction(region, length);
                struct site_shape shape = shadow(region, 16, declared);
                shape.padding = padding;
                site_load_into(&fixture, runtime, &shape);
                uint32_t in_word = (machine_enter_bytes + padding) % 8;
                bool live = length <= declared && in_word + length <= 8;
                ck_assert(site_describe(fixture.site).live == live);
                ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, NULL),
                                 live ? CAIRN_OK : CAIRN_ERROR_UNMANAGED);
                ck_assert_int_eq(fixture.function(), live ? 2 : 9);
                cairn_module_retire(fixture.module);
                cairn_runtime_quiesce(runtime);
            }
        }
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

/* An interrupt may suspend these instructions with a part of the work done. */
START_TEST(shadow_of_an_instruction_that_may_stop_half_way_is_not_live)
{
    static const struct {
        uint32_t size;
        uint8_t bytes[8];
    } instructions[] = {
        {6, {0xC4, 0xE2, 0x6D, 0x90, 0x04, 0x88}},       /* vpgatherdd */
        {7, {0x62, 0xF2, 0x7D, 0x49, 0x90, 0x04, 0x88}}, /* vpgatherdd of 512 bits */
        {7, {0x62, 0xF2, 0x7D, 0x49, 0xA0, 0x04, 0x88}}, /* vpscatterdd */
        {5, {0x3E, 0x3E, 0xF3, 0x48, 0xA5}},             /* rep movsq */
        {6, {0xC4, 0xE2, 0x7B, 0x4B, 0x04, 0x18}},       /* tileloadd */
    };
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        struct site_fixture fixture;
        struct site_shape shape =
            shadow(instructions[i].bytes, instructions[i].size, instructions[i].size);
        shape.padding = 2;
        site_load_into(&fixture, runtime, &shape);
        struct cairn_site_description description = site_describe(fixture.site);
        ck_assert_uint_eq(description.address % 8, 0);
        ck_assert_msg(!description.live, "instruction %zu", i);
        ck_assert_ptr_nonnull(strstr(description.reason, "half-way"));
        ck_assert_int_eq(cairn_site_jump(fixture.site, SITE_TWO, CAIRN_QUIESCENT, NULL), CAIRN_OK);
        cairn_module_retire(fixture.module);
        cairn_runtime_quiesce(runtime);
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

/* inc %eax, repeated: an instruction begins at every second byte. */
static void write_increments(uint8_t *region, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        region[2 * i] = 0xFF;
        region[2 * i + 1] = 0xC0;
    }
}

START_TEST(quiescent_call_in_a_shadow_ends_at_an_instruction_boundary)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    write_increments(region, 8);
    const struct site_shape shape = shadow(region, 16, 12);
    site_load(&fixture, site_modes[_i], &shape);
    const uint8_t *bytes = site_describe(fixture.site).bytes;
    ck_assert_int_eq(fixture.function(), 8);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, &error), error);
    ck_assert_uint_eq(bytes[5], 0x90);
    ck_assert_int_eq(memcmp(bytes + 6, region + 6, 10), 0);
    ck_assert_int_eq(fixture.function(), 2 + 5);
    ck_assert_done(cairn_site_nop(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(fixture.function(), 5);
    ck_assert_done(cairn_site_jump(fixture.site, fixture.near_three, CAIRN_QUIESCENT, &error),
                   error);
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(memcmp(bytes, region, 16), 0);
    ck_assert_int_eq(fixture.function(), 8);
    site_unload(&fixture);
}
END_TEST

/* An instruction of two bytes, and then one of ten bytes, of which only six are before the end of
 * the shadow (or before the next record). */
START_TEST(where_the_last_instruction_leaves_the_shadow_only_a_jump_fits)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    write_increments(region, 1);
    write_instruction(region + 2, 10);
    struct site_shape shape = shadow(region, 12, 8);
    if (_i % 2 == 1) {
        shape.byte_count = 12;
        shape.next_record = 8;
    }
    site_load(&fixture, site_modes[_i / 2], &shape);
    const uint8_t *bytes = site_describe(fixture.site).bytes;
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_ptr_nonnull(strstr(error.message, "4 bytes after"));
    ck_assert_int_eq(cairn_site_nop(fixture.site, CAIRN_QUIESCENT, NULL), CAIRN_ERROR_RANGE);
    ck_assert_int_eq(memcmp(bytes, region, 12), 0);
    ck_assert_done(cairn_site_jump(fixture.site, fixture.near_three, CAIRN_QUIESCENT, &error),
                   error);
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_int_eq(memcmp(bytes + 8, region + 8, 4), 0);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(memcmp(bytes, region, 12), 0);
    ck_assert_int_eq(fixture.function(), 9);
    site_unload(&fixture);
}
END_TEST

/* Another record is inside the instruction, so the branch would cross it. */
START_TEST(shadow_of_an_instruction_with_a_record_inside_is_not_live)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    write_instruction(region, 7);
    struct site_shape shape = shadow(region, 7, 7);
    shape.padding = 2;
    shape.next_record = 5;
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert(!site_describe(fixture.site).live);
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, NULL),
                     CAIRN_ERROR_RANGE);
    ck_assert_int_eq(memcmp(site_describe(fixture.site).bytes, region, 7), 0);
    ck_assert_int_eq(fixture.function(), 9);
    site_unload(&fixture);
}
END_TEST

START_TEST(shadow_that_cannot_be_decoded_is_refused)
{
    static const uint8_t nonsense[] = {0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06};
    struct site_fixture fixture;
    const struct site_shape shape = shadow(nonsense, sizeof nonsense, sizeof nonsense);
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert_ptr_nonnull(strstr(site_describe(fixture.site).reason, "decoded"));
    ck_assert_int_eq(cairn_site_jump(fixture.site, SITE_TWO, CAIRN_QUIESCENT, NULL),
                     CAIRN_ERROR_RANGE);
    site_unload(&fixture);
}
END_TEST

/* Does one of four operations. */
static void do_to_shadow(const struct site_fixture *fixture, uint32_t deed)
{
    static const enum cairn_strength strength = CAIRN_QUIESCENT;
    enum cairn_status status = CAIRN_OK;
    if (deed == 0)
        status = cairn_site_call(fixture->site, SITE_TWO, strength, NULL);
    else if (deed == 1)
        status = cairn_site_jump(fixture->site, fixture->near_three, strength, NULL);
    else if (deed == 2)
        status = cairn_site_nop(fixture->site, strength, NULL);
    else
        status = cairn_site_restore(fixture->site, strength, NULL);
    ck_assert_int_eq(status, CAIRN_OK);
}

/* Any sequence of four operations. */
static void check_it_comes_back(const struct site_fixture *fixture)
{
    enum { ORDERS = 256 };
    uint8_t before[SITE_FUNCTION_BYTES];
    struct cairn_error error;
    memcpy(before, fixture->code, sizeof before);
    for (uint32_t order = 0; order < ORDERS; order++) {
        for (uint32_t i = 0; i < 4; i++)
            do_to_shadow(fixture, order >> (2 * i) & 3);
        ck_assert_done(cairn_site_restore(fixture->site, CAIRN_QUIESCENT, &error), error);
        ck_assert_int_eq(memcmp(fixture->code, before, sizeof before), 0);
        ck_assert_int_eq(fixture->function(), 14);
        ck_assert_int_eq(site_describe(fixture->site).state, CAIRN_SITE_ORIGINAL);
    }
}

START_TEST(shadow_is_restored_byte_for_byte)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    for (uint32_t padding = 0; padding < 8; padding++) {
        uint8_t region[SITE_REGION_MAX];
        struct site_fixture fixture;
        write_instruction(region, 5);
        write_increments(region + 5, 5);
        struct site_shape shape = shadow(region, 15, 11);
        shape.padding = padding;
        site_load_into(&fixture, runtime, &shape);
        ck_assert_int_eq(memcmp(site_describe(fixture.site).original_bytes, region, 11), 0);
        check_it_comes_back(&fixture);
        cairn_module_retire(fixture.module);
        cairn_runtime_quiesce(runtime);
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

/* Two shadows in one word, the first of five bytes: restoring one does not change the other. */
START_TEST(shadow_is_restored_without_its_neighbours_change)
{
    static const struct site_record records[] = {{1, 0, 5, CAIRN_RECORD_STACKMAP},
                                                 {2, 5, 16, CAIRN_RECORD_STACKMAP}};
    static const struct site_function function = {0, 2};
    uint8_t bytes[CODE_BYTES];
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    struct cairn_error error;
    uint8_t *code;
    memset(bytes, 0xCC, sizeof bytes);
    write_instruction(bytes, 5);
    write_increments(bytes + 5, 12);
    const struct site_code two_shadows = {bytes, sizeof bytes, &function, 1, records, 0};
    cairn_module *module = site_load_code(runtime, &two_shadows, &code);
    ck_assert_done(cairn_module_publish(module, &error), error);
    cairn_site *live = cairn_module_site(module, 0);
    cairn_site *other = cairn_module_site(module, 1);
    ck_assert(site_describe(live).live);
    ck_assert(!site_describe(other).live);
    ck_assert_done(cairn_site_call(live, SITE_TWO, CAIRN_SYNC, &error), error);
    ck_assert_done(cairn_site_jump(other, code, CAIRN_QUIESCENT, &error), error);
    uint8_t jump[16];
    memcpy(jump, code + 5, sizeof jump);
    ck_assert_done(cairn_site_restore(live, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(memcmp(code, bytes, 5), 0);
    ck_assert_int_eq(memcmp(code + 5, jump, sizeof jump), 0);
    ck_assert_done(cairn_site_call(live, SITE_TWO, CAIRN_SYNC, &error), error);
    ck_assert_done(cairn_site_restore(other, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(site_describe(live).state, CAIRN_SITE_CALL);
    ck_assert_done(cairn_site_restore(live, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(memcmp(code, bytes, sizeof bytes), 0);
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(what_was_done_to_a_shadow_before_publishing_is_undone_quiescently)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    write_increments(region, 8);
    struct site_shape shape = shadow(region, 16, 12);
    shape.publish = false;
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_RELAXED, &error), error);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_RELAXED, &error), error);
    ck_assert_int_eq(fixture.function(), 8);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_RELAXED, &error), error);
    ck_assert_done(cairn_module_publish(fixture.module, &error), error);
    ck_assert_int_eq(fixture.function(), 7);
    ck_assert_int_eq(cairn_site_restore(fixture.site, CAIRN_SYNC, NULL), CAIRN_ERROR_UNMANAGED);
    ck_assert_int_eq(fixture.function(), 7);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(fixture.function(), 8);
    cairn_module_retire(fixture.module);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_uint_eq(cairn_runtime_quiesce(fixture.runtime), 1);
    cairn_runtime_destroy(fixture.runtime);
}
END_TEST

/* xor %eax, %eax (2); inc %eax three times (2 each): there is no instruction of 5 bytes. */
static const uint8_t short_instructions[] = {0x31, 0xC0, 0xFF, 0xC0, 0xFF, 0xC0, 0xFF, 0xC0};
/* mov $3, %eax: one instruction of 5 bytes. */
static const uint8_t long_instruction[] = {0xB8, 3, 0, 0, 0, 0x90, 0x90, 0x90};

START_TEST(shadow_of_one_long_instruction_in_a_word_is_live)
{
    for (uint32_t padding = 0; padding < 8; padding++) {
        struct site_fixture fixture;
        struct cairn_error error;
        const struct site_shape shape = {
            CAIRN_RECORD_STACKMAP, long_instruction, sizeof long_instruction, 5, padding, 0, true};
        site_load(&fixture, site_modes[_i], &shape);
        bool in_one_word = site_describe(fixture.site).address % 8 <= 3;
        ck_assert(site_describe(fixture.site).live == in_one_word);
        ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_ORIGINAL);
        ck_assert_int_eq(fixture.function(), 3);
        enum cairn_strength strength = in_one_word ? CAIRN_SYNC : CAIRN_QUIESCENT;
        ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, strength, &error), error);
        ck_assert_int_eq(fixture.function(), 2);
        ck_assert_done(cairn_site_restore(fixture.site, strength, &error), error);
        ck_assert_int_eq(fixture.function(), 3);
        ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_ORIGINAL);
        site_unload(&fixture);
    }
}
END_TEST

START_TEST(shadow_of_short_instructions_needs_quiescence)
{
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = {CAIRN_RECORD_STACKMAP,
                                     short_instructions,
                                     sizeof short_instructions,
                                     sizeof short_instructions,
                                     0,
                                     0,
                                     true};
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert(!site_describe(fixture.site).live);
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error),
                     CAIRN_ERROR_UNMANAGED);
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, &error), error);
    /* The call replaced 5 bytes and the remainder of the third instruction; the fourth is
     * unchanged. */
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_CALL);
    ck_assert_uint_eq(site_describe(fixture.site).bytes[5], 0x90);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(
        memcmp(site_describe(fixture.site).bytes, short_instructions, sizeof short_instructions),
        0);
    site_unload(&fixture);
}
END_TEST

START_TEST(shadow_is_not_patched_across_another_record_or_its_end)
{
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape crossed = {CAIRN_RECORD_STACKMAP,
                                       short_instructions,
                                       sizeof short_instructions,
                                       sizeof short_instructions,
                                       0,
                                       4,
                                       true};
    const struct site_shape small = {
        CAIRN_RECORD_STACKMAP, short_instructions, sizeof short_instructions, 4, 0, 0, true};
    site_load(&fixture, site_modes[_i / 2], _i % 2 == 0 ? &crossed : &small);
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_int_eq(fixture.function(), 3);
    site_unload(&fixture);
}
END_TEST

/* ---- Statepoints ---- */

START_TEST(statepoint_is_live_where_its_last_five_bytes_lie_in_one_word)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    for (uint32_t size = 1; size <= 24; size++) {
        for (uint32_t padding = 0; padding < 8; padding++) {
            uint8_t region[SITE_REGION_MAX];
            struct site_fixture fixture;
            struct cairn_error error;
            struct site_shape shape = site_null_patchpoint(region, size);
            shape.kind = CAIRN_RECORD_STATEPOINT;
            shape.padding = padding;
            site_load_into(&fixture, runtime, &shape);
            struct cairn_site_description description = site_describe(fixture.site);
            uint32_t end = machine_enter_bytes + padding + size;
            bool live = size >= 5 && (end - 5) % 8 <= 3;
            ck_assert(description.live == live);
            ck_assert_uint_eq(description.address, (uintptr_t)fixture.tail - size);
            enum cairn_strength strength = live ? CAIRN_SYNC : CAIRN_QUIESCENT;
            enum cairn_status status = cairn_site_call(fixture.site, SITE_TWO, strength, &error);
            ck_assert_int_eq(status, size >= 5 ? CAIRN_OK : CAIRN_ERROR_RANGE);
            ck_assert_int_eq(fixture.function(), size >= 5 ? 2 : 0);
            if (size >= 5)
                ck_assert_uint_eq(description.return_address, (uintptr_t)fixture.tail);
            ck_assert_done(cairn_site_restore(fixture.site, strength, &error), error);
            ck_assert_int_eq(fixture.function(), 0);
            cairn_module_retire(fixture.module);
            cairn_runtime_quiesce(runtime);
        }
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

START_TEST(record_of_a_statepoint_is_found_by_the_address_its_call_returns_to)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_record record;
    struct site_shape shape = site_null_patchpoint(region, 13);
    shape.kind = CAIRN_RECORD_STATEPOINT;
    site_load(&fixture, site_modes[_i], &shape);
    uint64_t tail = (uintptr_t)fixture.tail;
    ck_assert(support_find_return_address(fixture.runtime, tail, &record));
    ck_assert_ptr_eq(cairn_record_site(record), fixture.site);
    ck_assert(cairn_runtime_find_address(fixture.runtime, tail, &record));
    ck_assert(!cairn_runtime_find_address(fixture.runtime, tail - 13, &record));
    site_unload(&fixture);
}
END_TEST

static void add_regions(Suite *suite)
{
    const TTest *both[] = {
        bytes_with_another_record_inside_are_refused,
        of_sites_at_one_address_the_first_has_the_bytes,
        statepoint_that_reaches_back_into_another_site_is_refused,
        bytes_beyond_the_code_are_refused,
        bytes_beyond_the_function_are_refused,
        bytes_beyond_the_end_that_an_unwind_table_gives_are_refused,
        shadow_ends_where_the_next_function_begins,
        statepoint_that_begins_before_its_function_is_refused,
        declarations_smaller_than_llvm_s_call_are_refused,
        no_declaration_changes_bytes_that_are_not_a_site_s_own,
    };
    TCase *tests = tcase_create("regions");
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        tcase_add_loop_test(tests, both[i], 0, SITE_MODES);
    suite_add_tcase(suite, tests);
}

static void add_shadows_and_statepoints(Suite *suite)
{
    const TTest *both[] = {
        shadow_is_live_where_a_branch_takes_the_place_of_one_instruction_in_one_word,
        shadow_of_an_instruction_that_may_stop_half_way_is_not_live,
        quiescent_call_in_a_shadow_ends_at_an_instruction_boundary,
        shadow_of_an_instruction_with_a_record_inside_is_not_live,
        shadow_that_cannot_be_decoded_is_refused,
        shadow_is_restored_byte_for_byte,
        shadow_is_restored_without_its_neighbours_change,
        what_was_done_to_a_shadow_before_publishing_is_undone_quiescently,
        shadow_of_one_long_instruction_in_a_word_is_live,
        shadow_of_short_instructions_needs_quiescence,
        statepoint_is_live_where_its_last_five_bytes_lie_in_one_word,
        record_of_a_statepoint_is_found_by_the_address_its_call_returns_to,
    };
    TCase *tests = tcase_create("shadows and statepoints");
    tcase_set_timeout(tests, 30);
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        tcase_add_loop_test(tests, both[i], 0, SITE_MODES);
    tcase_add_loop_test(tests, shadow_is_not_patched_across_another_record_or_its_end, 0,
                        2 * SITE_MODES);
    tcase_add_loop_test(tests, where_the_last_instruction_leaves_the_shadow_only_a_jump_fits, 0,
                        2 * SITE_MODES);
    suite_add_tcase(suite, tests);
}

int main(void)
{
    Suite *suite = suite_create("regions of sites");
    add_regions(suite);
    add_shadows_and_statepoints(suite);
    return site_main(suite);
}
