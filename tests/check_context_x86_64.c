/*
 * Tests of handwritten signal frames of x86-64: legacy frames, frames with components in their
 * initial state, compact frames, and frames that contradict themselves.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/context_support.h"

#include <cairn/cairn.h>
#include <check.h>
#include <cpuid.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
    AREA_BYTES = 8192,
    XMM0 = 17,
    XMM16 = 67,
    MXCSR = 64,
    K0 = 118,
    ALL_STATES = 0xE7,
    HEADER = 512,
    HEADER_END = 576,
    DESCRIPTION = 464,
    STATE_BYTES = 4096,
    SSE = 1,
    AVX = 2,
    MASKS = 5,
    ZMM_UPPER = 6,
    ZMM_16 = 7
};

static struct {
    ucontext_t signal;
    _Alignas(64) uint8_t area[AREA_BYTES];
    struct cairn_context context;
    struct cairn_error error;
} frame;

static void put_u32(size_t offset, uint32_t value)
{
    memcpy(frame.area + offset, &value, sizeof value);
}

static void put_u64(size_t offset, uint64_t value)
{
    memcpy(frame.area + offset, &value, sizeof value);
}

/* Makes a frame with an XSAVE area that has these components; those of `in_use` are not in their
 * initial state. Each byte of the area depends on its offset. */
static void make_frame(uint64_t features, uint64_t in_use, uint64_t compact)
{
    memset(&frame, 0, sizeof frame);
    for (size_t i = 0; i < AREA_BYTES; i++)
        frame.area[i] = (uint8_t)(i * 7 + i / 256);
    put_u32(24, 0x1FA0);
    put_u32(DESCRIPTION, 0x46505853);
    put_u32(DESCRIPTION + 4, STATE_BYTES + 4);
    put_u64(DESCRIPTION + 8, features);
    put_u32(DESCRIPTION + 16, STATE_BYTES);
    put_u64(HEADER, in_use);
    put_u64(HEADER + 8, compact);
    put_u32(STATE_BYTES, 0x46505845);
    frame.signal.uc_mcontext.fpregs = (fpregset_t)(void *)frame.area;
    frame.signal.uc_mcontext.gregs[REG_RAX] = 0x1234;
}

static enum cairn_status read_frame(void)
{
    return cairn_context_from_signal(&frame.context, &frame.signal, &frame.error);
}

static size_t size_of(uint16_t dwarf) { return cairn_context_register_size(&frame.context, dwarf); }

/* Returns a component's offset in the standard format, from CPUID. */
static size_t component(unsigned number)
{
    unsigned size;
    unsigned offset;
    unsigned flags;
    unsigned reserved;
    __cpuid_count(0xD, number, size, offset, flags, reserved);
    return size == 0 ? 0 : offset;
}

static bool has_avx512(void) { return component(ZMM_16) != 0; }

static void expect_bytes(uint16_t dwarf, size_t first, size_t size, const uint8_t *expected)
{
    uint8_t value[64];
    ck_assert_int_eq(cairn_context_read(&frame.context, dwarf, value, size_of(dwarf), NULL),
                     CAIRN_OK);
    if (expected != NULL) {
        ck_assert_mem_eq(value + first, expected, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        ck_assert_uint_eq(value[first + i], 0);
}

START_TEST(frame_without_vector_registers_gives_the_others)
{
    uint64_t rax;
    make_frame(0, 0, 0);
    frame.signal.uc_mcontext.fpregs = NULL;
    ck_assert_int_eq(read_frame(), CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(cairn_context_read(&frame.context, 0, &rax, 8, NULL), CAIRN_OK);
    ck_assert_uint_eq(rax, 0x1234);
    ck_assert_uint_eq(size_of(XMM0), 0);
    ck_assert_uint_eq(size_of(MXCSR), 0);
    ck_assert_int_eq(cairn_context_to_signal(&frame.context, &frame.signal, NULL), CAIRN_OK);
}
END_TEST

START_TEST(legacy_frame_has_sse_alone)
{
    make_frame(ALL_STATES, 0, 0);
    put_u32(DESCRIPTION, 0);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    ck_assert_uint_eq(size_of(XMM0), 16);
    ck_assert_uint_eq(size_of(XMM16), 0);
    ck_assert_uint_eq(size_of(K0), 0);
    expect_bytes(XMM0 + 3, 0, 16, frame.area + 160 + 3 * 16);
}
END_TEST

START_TEST(components_are_where_the_processor_says)
{
    if (!has_avx512())
        return;
    make_frame(ALL_STATES, ALL_STATES, 0);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    ck_assert_uint_eq(size_of(XMM0), 64);
    expect_bytes(XMM0 + 15, 0, 16, frame.area + 160 + 15 * 16);
    expect_bytes(XMM0 + 15, 16, 16, frame.area + component(AVX) + 15 * 16);
    expect_bytes(XMM0 + 15, 32, 32, frame.area + component(ZMM_UPPER) + 15 * 32);
    expect_bytes(XMM16 + 15, 0, 64, frame.area + component(ZMM_16) + 15 * 64);
    expect_bytes(K0 + 7, 0, 8, frame.area + component(MASKS) + 7 * 8);
}
END_TEST

START_TEST(component_in_its_initial_state_is_zero)
{
    if (!has_avx512())
        return;
    for (unsigned number = SSE; number <= ZMM_16; number++) {
        make_frame(ALL_STATES, ALL_STATES & ~(1U << number), 0);
        ck_assert_int_eq(read_frame(), CAIRN_OK);
        expect_bytes(XMM0 + 1, 0, 16, number == SSE ? NULL : frame.area + 160 + 16);
        expect_bytes(XMM0 + 1, 16, 16, number == AVX ? NULL : frame.area + component(AVX) + 16);
        expect_bytes(XMM0 + 1, 32, 32,
                     number == ZMM_UPPER ? NULL : frame.area + component(ZMM_UPPER) + 32);
        expect_bytes(XMM16 + 1, 0, 64,
                     number == ZMM_16 ? NULL : frame.area + component(ZMM_16) + 64);
        expect_bytes(K0 + 1, 0, 8, number == MASKS ? NULL : frame.area + component(MASKS) + 8);
    }
}
END_TEST

START_TEST(component_that_is_written_is_no_longer_in_its_initial_state)
{
    uint64_t in_use;
    if (!has_avx512())
        return;
    make_frame(ALL_STATES, 0, 0);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    ck_assert_int_eq(cairn_context_to_signal(&frame.context, &frame.signal, NULL), CAIRN_OK);
    memcpy(&in_use, frame.area + HEADER, sizeof in_use);
    ck_assert_uint_eq(in_use, ALL_STATES & ~1U);
    for (size_t i = 0; i < 16 * 64; i++)
        ck_assert_uint_eq(frame.area[component(ZMM_16) + i], 0);
}
END_TEST

START_TEST(compact_components_follow_each_other)
{
    const uint64_t compact = UINT64_C(1) << 63;
    if (!has_avx512())
        return;
    make_frame(ALL_STATES, ALL_STATES, compact | ALL_STATES);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    expect_bytes(XMM0 + 1, 16, 16, frame.area + HEADER_END + 16);
    expect_bytes(K0 + 1, 0, 8, frame.area + HEADER_END + 256 + 8);
    expect_bytes(XMM0 + 1, 32, 32, frame.area + HEADER_END + 256 + 64 + 32);
    expect_bytes(XMM16 + 1, 0, 64, frame.area + HEADER_END + 256 + 64 + 512 + 64);
    make_frame(ALL_STATES, ALL_STATES, compact | (ALL_STATES & ~(1U << MASKS)));
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    ck_assert_uint_eq(size_of(XMM0), 32);
}
END_TEST

static void expect_corrupt(void)
{
    ck_assert_int_eq(read_frame(), CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(frame.error.status, CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(size_of(0), 0);
    ck_assert_int_eq(cairn_context_to_signal(&frame.context, &frame.signal, NULL),
                     CAIRN_ERROR_CORRUPT);
}

START_TEST(frame_that_contradicts_itself_is_refused)
{
    make_frame(ALL_STATES, ALL_STATES, 0);
    put_u32(STATE_BYTES, 0);
    expect_corrupt();
    make_frame(ALL_STATES, ALL_STATES, 0);
    put_u32(DESCRIPTION + 16, HEADER_END - 1);
    expect_corrupt();
    make_frame(ALL_STATES, ALL_STATES, 0);
    put_u32(DESCRIPTION + 4, STATE_BYTES - 1);
    expect_corrupt();
    if (component(AVX) == 0)
        return;
    /* One byte less than AVX's registers need. */
    make_frame(ALL_STATES, ALL_STATES, 0);
    uint32_t size = (uint32_t)component(AVX) + 255;
    put_u32(DESCRIPTION + 16, size);
    put_u32(size, 0x46505845);
    expect_corrupt();
}
END_TEST

START_TEST(registers_that_the_frame_has_no_space_for_are_refused)
{
    if (component(AVX) == 0)
        return;
    make_frame(ALL_STATES, ALL_STATES, 0);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    write_register(&frame.context, CAIRN_REGISTER_PC, 77);
    put_u64(DESCRIPTION + 8, 3);
    ck_assert_int_eq(cairn_context_to_signal(&frame.context, &frame.signal, &frame.error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(frame.error.status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_ne(frame.signal.uc_mcontext.gregs[REG_RIP], 77);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("context_x86_64");
    TCase *tests = tcase_create("frames");
    tcase_add_test(tests, frame_without_vector_registers_gives_the_others);
    tcase_add_test(tests, legacy_frame_has_sse_alone);
    tcase_add_test(tests, components_are_where_the_processor_says);
    tcase_add_test(tests, component_in_its_initial_state_is_zero);
    tcase_add_test(tests, component_that_is_written_is_no_longer_in_its_initial_state);
    tcase_add_test(tests, compact_components_follow_each_other);
    tcase_add_test(tests, frame_that_contradicts_itself_is_refused);
    tcase_add_test(tests, registers_that_the_frame_has_no_space_for_are_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
