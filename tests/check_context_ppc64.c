/*
 * Tests of handwritten signal frames of PPC64: without vector registers, and with vector registers
 * that the thread has not used.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/context_support.h"

#include <cairn/cairn.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { F0 = 32, V0 = 77, MSR = 33, NIP = 32, DOUBLEWORDS = 69 * 2 };

#define ALTIVEC (UINT64_C(1) << 25)
#define VSX (UINT64_C(1) << 23)

static struct {
    ucontext_t signal;
    struct cairn_context context;
    struct cairn_error error;
    _Alignas(16) uint64_t vectors[DOUBLEWORDS];
} frame;

static void make_frame(uint64_t msr)
{
    memset(&frame, 0, sizeof frame);
    memset(frame.vectors, 0xEE, sizeof frame.vectors);
    frame.signal.uc_mcontext.v_regs = (vrregset_t *)(void *)frame.vectors;
    frame.signal.uc_mcontext.gp_regs[MSR] = msr;
    frame.signal.uc_mcontext.gp_regs[3] = 0x1234;
    frame.signal.uc_mcontext.fp_regs[1] = 1.5;
}

static enum cairn_status read_frame(void)
{
    return cairn_context_from_signal(&frame.context, &frame.signal, &frame.error);
}

static enum cairn_status write_frame(void)
{
    return cairn_context_to_signal(&frame.context, &frame.signal, &frame.error);
}

static uint64_t read_u64(uint16_t dwarf)
{
    uint64_t value;
    ck_assert_int_eq(cairn_context_read(&frame.context, dwarf, &value, sizeof value, NULL),
                     CAIRN_OK);
    return value;
}

static bool is_zero(uint16_t dwarf)
{
    static const uint8_t zeros[16];
    uint8_t value[16];
    ck_assert_int_eq(cairn_context_read(&frame.context, dwarf, value, sizeof value, NULL),
                     CAIRN_OK);
    return memcmp(value, zeros, sizeof zeros) == 0;
}

static bool has_vsx(void)
{
    make_frame(ALTIVEC | VSX);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    return cairn_context_register_size(&frame.context, F0) == 16;
}

START_TEST(frame_without_vector_registers_gives_the_others)
{
    if (!has_vsx())
        return;
    frame.signal.uc_mcontext.v_regs = NULL;
    write_register(&frame.context, CAIRN_REGISTER_PC, 77);
    ck_assert_int_eq(write_frame(), CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_ne(frame.signal.uc_mcontext.gp_regs[NIP], 77);
    ck_assert_int_eq(read_frame(), CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(read_u64(3), 0x1234);
    ck_assert_uint_eq(read_u64(F0 + 1), UINT64_C(0x3FF8000000000000));
    ck_assert_uint_eq(cairn_context_register_size(&frame.context, F0), 8);
    ck_assert_uint_eq(cairn_context_register_size(&frame.context, V0), 0);
    ck_assert_int_eq(write_frame(), CAIRN_OK);
}
END_TEST

START_TEST(registers_that_were_not_used_are_zero)
{
    if (!has_vsx())
        return;
    ck_assert(!is_zero(V0));
    ck_assert(!is_zero(F0));
    make_frame(0);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    ck_assert(is_zero(V0 + 31));
    ck_assert(is_zero(F0 + 31));
    ck_assert_uint_eq(read_u64(F0 + 1), UINT64_C(0x3FF8000000000000));
}
END_TEST

START_TEST(registers_that_are_written_are_in_use)
{
    const uint64_t value[2] = {1, 2};
    if (!has_vsx())
        return;
    make_frame(0);
    ck_assert_int_eq(read_frame(), CAIRN_OK);
    ck_assert_int_eq(cairn_context_write(&frame.context, V0 + 3, value, sizeof value, NULL),
                     CAIRN_OK);
    ck_assert_int_eq(write_frame(), CAIRN_OK);
    ck_assert_uint_eq(frame.signal.uc_mcontext.gp_regs[MSR], ALTIVEC | VSX);
    ck_assert_mem_eq(frame.vectors + 6, value, sizeof value);
    ck_assert_uint_eq(frame.vectors[0], 0);
}
END_TEST

/* A scalar is the first doubleword, at the offset at which a vector store writes it. */
START_TEST(scalar_is_the_first_doubleword)
{
    const double scalar = 2.5;
    double found;
    double lanes[2];
    size_t first = CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN ? 0 : 1;
    static const uint16_t registers[] = {F0 + 2, V0 + 2};
    if (!has_vsx())
        return;
    for (size_t i = 0; i < 2; i++) {
        uint16_t dwarf = registers[i];
        ck_assert_int_eq(cairn_context_write(&frame.context, dwarf, &scalar, 8, NULL), CAIRN_OK);
        ck_assert_int_eq(cairn_context_read(&frame.context, dwarf, &found, 8, NULL), CAIRN_OK);
        ck_assert_int_eq(cairn_context_read(&frame.context, dwarf, lanes, 16, NULL), CAIRN_OK);
        ck_assert(found == scalar);
        ck_assert(lanes[first] == scalar);
        ck_assert_int_eq(cairn_context_read(&frame.context, dwarf, lanes, 12, NULL),
                         CAIRN_ERROR_RANGE);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("context_ppc64");
    TCase *tests = tcase_create("frames");
    tcase_add_test(tests, frame_without_vector_registers_gives_the_others);
    tcase_add_test(tests, registers_that_were_not_used_are_zero);
    tcase_add_test(tests, registers_that_are_written_are_in_use);
    tcase_add_test(tests, scalar_is_the_first_doubleword);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
