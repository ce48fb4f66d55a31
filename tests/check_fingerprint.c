/*
 * Tests of fingerprints: the tables of CPU features of all architectures, and the comparison of an
 * object's code with a machine.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/features.h"
#include "arch/x86_64/features.h"
#include "runtime/fingerprint.h"
#include "stackmap_support.h"

#include <stdio.h>
#include <string.h>

static const enum cairn_architecture architectures[] = {
    CAIRN_ARCHITECTURE_X86_64, CAIRN_ARCHITECTURE_AARCH64, CAIRN_ARCHITECTURE_PPC64_ELFV2,
    CAIRN_ARCHITECTURE_PPC64_ELFV1};
enum { ARCHITECTURE_COUNT = sizeof architectures / sizeof *architectures };

static struct cairn_error error;
static char told[2][4096];
static uint64_t words[ARCH_FEATURE_WORDS];

static void note_features(void *user, const char *needed, const char *available)
{
    ck_assert_ptr_eq(user, words);
    snprintf(told[0], sizeof told[0], "%s", needed);
    snprintf(told[1], sizeof told[1], "%s", available);
}

/* Compares code that needs these features with a machine that reports `words`. */
static enum cairn_status compare(enum cairn_architecture architecture, const char *features)
{
    static const struct cairn_load_options options = {.note_features = note_features,
                                                      .user = words};
    const struct manifest_target target = {
        .architecture = architecture, .triple = "a-triple", .cpu = "", .features = features};
    memset(told, 0, sizeof told);
    return fingerprint_compare(&target, arch_find(architecture), words, &options, &error);
}

static void set_words(uint64_t value)
{
    for (size_t i = 0; i < ARCH_FEATURE_WORDS; i++)
        words[i] = value;
}

START_TEST(every_feature_is_found_by_its_whole_name)
{
    for (size_t k = 0; k < ARCHITECTURE_COUNT; k++) {
        const struct arch_feature_table *table = arch_features(architectures[k]);
        ck_assert_uint_gt(table->count, 20);
        for (size_t i = 0; i < table->count; i++) {
            const char *name = table->features[i].name;
            ck_assert_ptr_eq(arch_find_feature(table, name, strlen(name)), &table->features[i]);
            ck_assert_uint_lt(table->features[i].word, ARCH_FEATURE_STATE);
            ck_assert_uint_ne(table->features[i].bits, 0);
        }
        ck_assert_ptr_null(arch_find_feature(table, table->base, strlen(table->base)));
        ck_assert_ptr_null(arch_find_feature(table, "", 0));
    }
}
END_TEST

START_TEST(a_machine_with_all_bits_has_all_features_and_one_without_bits_has_none)
{
    for (size_t k = 0; k < ARCHITECTURE_COUNT; k++) {
        const struct arch_feature_table *table = arch_features(architectures[k]);
        for (size_t i = 0; i < table->count; i++) {
            set_words(UINT64_MAX);
            ck_assert_ok(compare(architectures[k], table->features[i].name));
            set_words(0);
            ck_assert_int_eq(compare(architectures[k], table->features[i].name),
                             CAIRN_ERROR_UNSUPPORTED);
            ck_assert_str_eq(told[0], table->features[i].name);
            ck_assert_str_eq(told[1], "");
        }
    }
}
END_TEST

START_TEST(registers_that_the_kernel_does_not_save_are_missing)
{
    set_words(UINT64_MAX);
    words[ARCH_FEATURE_STATE] = 7; /* AVX, but not AVX-512 */
    ck_assert_ok(compare(CAIRN_ARCHITECTURE_X86_64, "avx2,fma,popcnt"));
    ck_assert_int_eq(compare(CAIRN_ARCHITECTURE_X86_64, "avx2,avx512f,popcnt,amx-tile"),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "lacks: avx512f,amx-tile (needed: avx2,"));
}
END_TEST

START_TEST(both_lists_are_told)
{
    set_words(0);
    words[X86_64_1_ECX] = UINT64_C(1) << 23 | 1;
    ck_assert_int_eq(compare(CAIRN_ARCHITECTURE_X86_64, "sse3,ssse3,popcnt"),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(told[0], "sse3,ssse3,popcnt");
    ck_assert_str_eq(told[1], "sse3,popcnt");
    ck_assert_str_eq(error.message,
                     "the object's code needs features that this CPU lacks: ssse3 (needed: "
                     "sse3,ssse3,popcnt; this CPU has: sse3,popcnt)");
}
END_TEST

START_TEST(a_feature_that_cairn_does_not_know_is_missing)
{
    set_words(UINT64_MAX);
    ck_assert_int_eq(compare(CAIRN_ARCHITECTURE_AARCH64, "lse,sve99"), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "lacks: sve99"));
    ck_assert_int_eq(compare(CAIRN_ARCHITECTURE_X86_64, "avx51"), CAIRN_ERROR_UNSUPPORTED);
}
END_TEST

START_TEST(hostile_lists_are_refused)
{
    char list[10000];
    set_words(UINT64_MAX);
    memset(list, 'x', sizeof list - 1);
    list[sizeof list - 1] = '\0';
    ck_assert_int_eq(compare(CAIRN_ARCHITECTURE_X86_64, list), CAIRN_ERROR_UNSUPPORTED);
    for (size_t i = 1; i < sizeof list - 1; i += 2)
        list[i] = ',';
    ck_assert_int_eq(compare(CAIRN_ARCHITECTURE_X86_64, list), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ok(compare(CAIRN_ARCHITECTURE_X86_64, ",,,"));
}
END_TEST

START_TEST(another_architecture_or_abi_is_refused_with_both_names)
{
    static const struct cairn_load_options none = {0};
    const struct manifest_target target = {.architecture = CAIRN_ARCHITECTURE_PPC64_ELFV1,
                                           .triple = "powerpc64-linux-gnu",
                                           .cpu = "",
                                           .features = ""};
    ck_assert_int_eq(fingerprint_compare(&target, arch_find(CAIRN_ARCHITECTURE_PPC64_ELFV2), words,
                                         &none, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message, "the object was compiled for ppc64-elfv1 "
                                    "(powerpc64-linux-gnu), this process runs on ppc64-elfv2");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fingerprint");
    TCase *tests = tcase_create("fingerprints");
    tcase_add_test(tests, every_feature_is_found_by_its_whole_name);
    tcase_add_test(tests, a_machine_with_all_bits_has_all_features_and_one_without_bits_has_none);
    tcase_add_test(tests, registers_that_the_kernel_does_not_save_are_missing);
    tcase_add_test(tests, both_lists_are_told);
    tcase_add_test(tests, a_feature_that_cairn_does_not_know_is_missing);
    tcase_add_test(tests, hostile_lists_are_refused);
    tcase_add_test(tests, another_architecture_or_abi_is_refused_with_both_names);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
