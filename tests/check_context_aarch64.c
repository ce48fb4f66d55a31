/*
 * Tests of handwritten signal frames of AArch64: without a record of the vector registers, with
 * records in the extra space, and with records that do not end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/context_support.h"

#include <cairn/cairn.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
    V0 = 64,
    SIMD_BYTES = 528,
    SIMD_VECTORS = 16,
    SVE_VECTOR_BYTES = 32,
    SVE_HEADER_BYTES = 16,
    SVE_BYTES = SVE_HEADER_BYTES + 32 * SVE_VECTOR_BYTES,
    EXTRA_BYTES = 32,
    EXTRA_SPACE = SVE_BYTES + 16
};

#define SIMD UINT32_C(0x46508001)
#define SVE UINT32_C(0x53564501)
#define EXTRA UINT32_C(0x45585401)

static struct {
    ucontext_t signal;
    struct cairn_context context;
    struct cairn_error error;
    _Alignas(16) uint8_t extra[EXTRA_SPACE];
} frame;

static uint8_t *records(void) { return (uint8_t *)frame.signal.uc_mcontext.__reserved; }

static void put_record(uint8_t *at, uint32_t magic, uint32_t size)
{
    memcpy(at, &magic, sizeof magic);
    memcpy(at + 4, &size, sizeof size);
}

/* Makes a frame whose vector registers have consecutive bytes. */
static void make_frame(void)
{
    memset(&frame, 0, sizeof frame);
    put_record(records(), SIMD, SIMD_BYTES);
    for (size_t i = SIMD_VECTORS; i < SIMD_BYTES; i++)
        records()[i] = (uint8_t)(i * 3);
    frame.signal.uc_mcontext.regs[0] = 0x1234;
}

/* Adds SVE's registers in the extra space, following the record of the other registers. */
static void add_extra(uint32_t size)
{
    uint8_t *record = records() + SIMD_BYTES;
    uint64_t address = (uintptr_t)frame.extra;
    const uint16_t vector_bytes = SVE_VECTOR_BYTES;
    put_record(record, EXTRA, EXTRA_BYTES);
    memcpy(record + 8, &address, sizeof address);
    memcpy(record + 16, &size, sizeof size);
    put_record(frame.extra, SVE, SVE_BYTES);
    memcpy(frame.extra + 8, &vector_bytes, sizeof vector_bytes);
    memset(frame.extra + SVE_HEADER_BYTES, 0xEE, SVE_BYTES - SVE_HEADER_BYTES);
}

static enum cairn_status read_frame(void)
{
    return cairn_context_from_signal(&frame.context, &frame.signal, &frame.error);
}

static enum cairn_status write_frame(void)
{
    return cairn_context_to_signal(&frame.context, &frame.signal, &frame.error);
}

START_TEST(frame_without_vector_registers_gives_the_others)
{
    uint64_t x0;
    make_frame();
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    ck_assert_uint_eq(cairn_context_register_size(&frame.context, V0), 16);
    put_record(records(), 0, 0);
    write_register(&frame.context, CAIRN_REGISTER_PC, 77);
    ck_assert_int_eq(write_frame(), CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_ne(frame.signal.uc_mcontext.pc, 77);
    ck_assert_int_eq(read_frame(), CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(cairn_context_read(&frame.context, 0, &x0, 8, NULL), CAIRN_OK);
    ck_assert_uint_eq(x0, 0x1234);
    ck_assert_uint_eq(cairn_context_register_size(&frame.context, V0), 0);
    ck_assert_int_eq(write_frame(), CAIRN_OK);
}
END_TEST

START_TEST(registers_of_sve_in_the_extra_space_stay_equal)
{
    make_frame();
    add_extra(EXTRA_SPACE);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    ck_assert_int_eq(write_frame(), CAIRN_OK);
    for (size_t i = 0; i < 32; i++) {
        const uint8_t *vector = frame.extra + SVE_HEADER_BYTES + i * SVE_VECTOR_BYTES;
        ck_assert_mem_eq(vector, records() + SIMD_VECTORS + i * 16, 16);
        ck_assert_uint_eq(vector[16], 0xEE);
    }
}
END_TEST

START_TEST(record_of_sve_without_registers_is_left_alone)
{
    make_frame();
    add_extra(EXTRA_SPACE);
    put_record(frame.extra, SVE, SVE_HEADER_BYTES);
    put_record(frame.extra + SVE_HEADER_BYTES, 0, 0);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    ck_assert_int_eq(write_frame(), CAIRN_OK);
    ck_assert_uint_eq(frame.extra[SVE_HEADER_BYTES + SVE_VECTOR_BYTES], 0xEE);
}
END_TEST

static void expect_corrupt(void)
{
    ck_assert_int_eq(read_frame(), CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(frame.error.status, CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(cairn_context_register_size(&frame.context, 0), 0);
    ck_assert_int_eq(write_frame(), CAIRN_ERROR_CORRUPT);
}

START_TEST(records_that_do_not_end_are_refused)
{
    static const uint32_t sizes[] = {0, 4, SIMD_BYTES + 8, 4096, UINT32_MAX - 15};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        make_frame();
        put_record(records(), SIMD, sizes[i]);
        expect_corrupt();
    }
    make_frame();
    add_extra(SVE_BYTES);
    expect_corrupt();
    make_frame();
    add_extra(UINT32_MAX);
    expect_corrupt();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("context_aarch64");
    TCase *tests = tcase_create("frames");
    tcase_add_test(tests, frame_without_vector_registers_gives_the_others);
    tcase_add_test(tests, registers_of_sve_in_the_extra_space_stay_equal);
    tcase_add_test(tests, record_of_sve_without_registers_is_left_alone);
    tcase_add_test(tests, records_that_do_not_end_are_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
