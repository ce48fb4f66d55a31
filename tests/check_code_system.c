/*
 * Code memory on systems that refuse something: from the start, and later on.
 *
 * Each test runs in a child whose system calls are filtered, so that the real paths are taken.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code_support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static const struct support_refusal no_memory_file = {.call = SYS_memfd_create, .error = EPERM};
static const struct support_refusal no_shared_memory = {
    SYS_mmap, EPERM, 3, MAP_SHARED | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS};
static const struct support_refusal no_mremap = {.call = SYS_mremap, .error = EPERM};
static const struct support_refusal no_execution = {SYS_mprotect, EACCES, 2, PROT_EXEC, PROT_EXEC};
static const struct support_refusal no_membarrier = {.call = SYS_membarrier, .error = ENOSYS};

static uint64_t number(const void *address) { return (uint64_t)(uintptr_t)address; }

static enum cairn_status try_create(enum cairn_code_mode mode, struct code_space **space,
                                    struct cairn_error *error)
{
    const struct code_space_options options = {.arch = arch_host(), .mode = mode};
    *space = NULL;
    memset(error, 0, sizeof *error);
    return code_space_create(&options, space, error);
}

static enum cairn_status try_patch(struct code_block *block, const uint8_t *function, int value,
                                   struct cairn_error *error)
{
    uint8_t word[ARCH_WORD_BYTES_MAX];
    support_word(arch_host(), value, word);
    return code_block_store_word(block, number(function), word, error);
}

/* A module loads, runs, is patched, and no page is ever writable and executable. */
static void expect_it_works(struct code_space *space)
{
    uint8_t *code;
    struct code_block *block = support_loaded(space, 300, 1, &code);
    support_expect(support_call(code) == 1);
    support_expect(!support_any_writable_executable());
    for (int i = 0; i < 50; i++) {
        support_patch(block, code, i);
        support_expect(support_call(code) == i);
    }
    support_expect(!support_any_writable_executable());
    struct code_veneer veneer;
    support_expect(code_block_add_veneer(block, CODE_VENEER_PLAIN, number(code), &veneer, NULL) ==
                   CAIRN_OK);
    support_expect(support_call((const void *)(uintptr_t)veneer.address) == 49);
    code_block_destroy(block);
}

static void expect_mode(enum cairn_code_mode asked, enum cairn_code_mode mode, const char *reason)
{
    struct code_space *space;
    struct cairn_error error;
    support_expect(try_create(asked, &space, &error) == CAIRN_OK);
    support_expect(code_space_mode(space) == mode);
    const char *said = code_space_mode_reason(space);
    support_expect(*reason == '\0' ? *said == '\0' : strstr(said, reason) != NULL);
    expect_it_works(space);
    code_space_destroy(space);
}

/* ---- Refused from the start ---- */

static void without_memory_files(void *user)
{
    (void)user;
    support_refuse(&no_memory_file, 1);
    expect_mode(CAIRN_CODE_MODE_AUTOMATIC, CAIRN_CODE_MODE_DUAL, "");
    expect_mode(CAIRN_CODE_MODE_DUAL, CAIRN_CODE_MODE_DUAL, "");
}

START_TEST(shared_memory_serves_where_memory_files_are_refused)
{
    support_in_child(without_memory_files, NULL);
}
END_TEST

static void with_old_memory_files(void *user)
{
    (void)user;
    const struct support_refusal refusals[] = {
        {SYS_memfd_create, EINVAL, 1, MFD_EXEC, MFD_EXEC},
        no_shared_memory,
    };
    support_refuse(refusals, 2);
    expect_mode(CAIRN_CODE_MODE_DUAL, CAIRN_CODE_MODE_DUAL, "");
}

START_TEST(kernels_without_executable_memory_files_are_served)
{
    support_in_child(with_old_memory_files, NULL);
}
END_TEST

static void without_shared_pages(void *user)
{
    (void)user;
    const struct support_refusal refusals[] = {no_memory_file, no_shared_memory};
    support_refuse(refusals, 2);
    expect_mode(CAIRN_CODE_MODE_AUTOMATIC, CAIRN_CODE_MODE_SINGLE, "memfd_create");
    expect_mode(CAIRN_CODE_MODE_SINGLE, CAIRN_CODE_MODE_SINGLE, "");
    struct code_space *space;
    struct cairn_error error;
    support_expect(try_create(CAIRN_CODE_MODE_DUAL, &space, &error) == CAIRN_ERROR_UNSUPPORTED);
    support_expect(error.system_error == EPERM);
    support_expect(strstr(error.message, "memfd_create") != NULL);
    support_expect(space == NULL);
}

START_TEST(single_mode_serves_where_no_pages_are_shared)
{
    support_in_child(without_shared_pages, NULL);
}
END_TEST

static void without_dontunmap(void *user)
{
    (void)user;
    const struct support_refusal refusals[] = {
        {SYS_mremap, EINVAL, 3, MREMAP_DONTUNMAP, MREMAP_DONTUNMAP},
    };
    support_refuse(refusals, 1);
    expect_mode(CAIRN_CODE_MODE_SINGLE, CAIRN_CODE_MODE_SINGLE, "");
    expect_mode(CAIRN_CODE_MODE_AUTOMATIC, CAIRN_CODE_MODE_DUAL, "");
}

START_TEST(single_mode_serves_kernels_that_always_unmap)
{
    support_in_child(without_dontunmap, NULL);
}
END_TEST

static void without_mremap(void *user)
{
    (void)user;
    const enum cairn_code_mode unasked[] = {CAIRN_CODE_MODE_AUTOMATIC, CAIRN_CODE_MODE_SINGLE};
    support_refuse(&no_mremap, 1);
    struct code_space *space;
    struct cairn_error error;
    size_t before = support_count_mappings();
    for (int i = 0; i < 2; i++) {
        support_expect(try_create(unasked[i], &space, &error) == CAIRN_ERROR_UNSUPPORTED);
        support_expect(strstr(error.message, "CAIRN_CODE_MODE_TOGGLE") != NULL);
        support_expect(error.system_error == EPERM);
        support_expect(space == NULL);
    }
    support_expect(support_count_mappings() <= before + 1);
    support_expect(try_create(CAIRN_CODE_MODE_DUAL, &space, &error) == CAIRN_ERROR_UNSUPPORTED);
    expect_mode(CAIRN_CODE_MODE_TOGGLE, CAIRN_CODE_MODE_TOGGLE, "");
}

START_TEST(toggling_serves_where_pages_cannot_move_only_if_it_is_asked_for)
{
    support_in_child(without_mremap, NULL);
}
END_TEST

START_TEST(toggling_can_be_asked_for_anywhere)
{
    expect_mode(CAIRN_CODE_MODE_TOGGLE, CAIRN_CODE_MODE_TOGGLE, "");
}
END_TEST

static void without_execution(void *user)
{
    (void)user;
    support_refuse(&no_execution, 1);
    size_t before = support_count_mappings();
    struct code_space *space;
    struct cairn_error error;
    support_expect(try_create(CAIRN_CODE_MODE_AUTOMATIC, &space, &error) == CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == EACCES);
    support_expect(strstr(error.message, "executable") != NULL);
    support_expect(try_create(CAIRN_CODE_MODE_SINGLE, &space, &error) == CAIRN_ERROR_SYSTEM);
    support_expect(try_create(CAIRN_CODE_MODE_DUAL, &space, &error) == CAIRN_ERROR_UNSUPPORTED);
    support_expect(error.system_error == EACCES);
    support_expect(space == NULL);
    support_expect(support_count_mappings() <= before + 1);
}

START_TEST(no_execution_is_an_error) { support_in_child(without_execution, NULL); }
END_TEST

static void without_address_space(void *user)
{
    (void)user;
    const struct support_refusal refusals[] = {
        {SYS_mmap, ENOMEM, 2, UINT32_MAX, PROT_NONE},
    };
    support_refuse(refusals, 1);
    struct code_space *space;
    struct cairn_error error;
    support_expect(try_create(CAIRN_CODE_MODE_AUTOMATIC, &space, &error) == CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == ENOMEM);
    support_expect(strstr(error.message, "address space") != NULL);
}

START_TEST(no_address_space_is_an_error) { support_in_child(without_address_space, NULL); }
END_TEST

/* ---- A machine that executes what was there before ---- */

static int stale_tests_left;

/* As long as tests are left, each changes the function to what it was. */
static size_t encode_stale(const struct cairn_arch *table, int value, uint8_t *code)
{
    bool is_change = value != 1;
    if (is_change && stale_tests_left > 0) {
        stale_tests_left--;
        value = 1;
    }
    return arch_host()->encode_self_test(table, value, code);
}

static enum cairn_status create_stale(int stale_tests, enum cairn_code_mode mode,
                                      struct code_space **space, struct cairn_error *error)
{
    static struct cairn_arch arch;
    arch = *arch_host();
    arch.encode_self_test = encode_stale;
    stale_tests_left = stale_tests;
    const struct code_space_options options = {.arch = &arch, .mode = mode};
    *space = NULL;
    return code_space_create(&options, space, error);
}

START_TEST(views_that_do_not_agree_lead_to_single_mode)
{
    struct code_space *space;
    struct cairn_error error;
    ck_assert_ok(create_stale(2, CAIRN_CODE_MODE_AUTOMATIC, &space, &error));
    ck_assert_int_eq(code_space_mode(space), CAIRN_CODE_MODE_SINGLE);
    ck_assert_ptr_nonnull(strstr(code_space_mode_reason(space), "not executed"));
    expect_it_works(space);
    code_space_destroy(space);
}
END_TEST

START_TEST(forced_dual_mode_that_fails_its_test_is_unsupported)
{
    struct code_space *space;
    struct cairn_error error = {0};
    ck_assert_int_eq(create_stale(2, CAIRN_CODE_MODE_DUAL, &space, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "not executed"));
    ck_assert_ptr_null(space);
    ck_assert_int_eq(create_stale(100, CAIRN_CODE_MODE_AUTOMATIC, &space, NULL),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ok(create_stale(1, CAIRN_CODE_MODE_DUAL, &space, &error));
    ck_assert_int_eq(code_space_mode(space), CAIRN_CODE_MODE_DUAL);
    code_space_destroy(space);
}
END_TEST

/* ---- Barriers ---- */

START_TEST(barrier_is_there)
{
    struct code_space *space = support_space(support_modes[_i], 0, 0);
    ck_assert(code_space_can_synchronise(space));
    ck_assert_ok(code_space_synchronise(space, NULL));
    code_space_destroy(space);
}
END_TEST

static void without_membarrier(void *user)
{
    enum cairn_code_mode mode = *(const enum cairn_code_mode *)user;
    support_refuse(&no_membarrier, 1);
    struct code_space *space = support_space(mode, 0, 0);
    struct cairn_error error = {0};
    support_expect(!code_space_can_synchronise(space));
    support_expect(code_space_synchronise(space, &error) == CAIRN_ERROR_UNSUPPORTED);
    support_expect(strstr(error.message, "SYNC_CORE") != NULL);
    expect_it_works(space);
    code_space_destroy(space);
}

START_TEST(no_mode_synchronises_without_membarrier)
{
    enum cairn_code_mode mode = support_modes[_i];
    support_in_child(without_membarrier, &mode);
}
END_TEST

static void barrier_fails_later(void *user)
{
    struct code_space *space = support_space(*(const enum cairn_code_mode *)user, 0, 0);
    uint8_t *code;
    struct code_block *block = support_loaded(space, 1, 5, &code);
    support_refuse(&no_membarrier, 1);
    struct cairn_error error = {0};
    support_expect(code_space_synchronise(space, &error) == CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == ENOSYS);
    struct code_veneer veneer;
    support_expect(code_block_add_veneer(block, CODE_VENEER_PLAIN, 1, &veneer, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(support_call(code) == 5);
    code_block_destroy(block);
    struct cairn_runtime_statistics statistics = support_statistics(space);
    support_expect(statistics.free_bytes == statistics.slab_size_bytes);
    code_space_destroy(space);
}

START_TEST(barrier_that_fails_later_is_an_error)
{
    enum cairn_code_mode mode = support_modes[_i];
    support_in_child(barrier_fails_later, &mode);
}
END_TEST

/* ---- Refused later: what is loaded keeps working ---- */

struct loaded {
    enum cairn_code_mode mode;
    struct code_space *space;
    struct code_block *block;
    uint8_t *code;
};

static void load_and_refuse(struct loaded *loaded, const struct support_refusal *refusal)
{
    loaded->space = support_space(loaded->mode, 0, 0);
    loaded->block = support_loaded(loaded->space, 300, 1, &loaded->code);
    support_refuse(refusal, 1);
}

static void expect_still_loaded(struct loaded *loaded)
{
    for (int i = 0; i < 300; i++)
        support_expect(support_call(loaded->code + i * SUPPORT_FUNCTION_BYTES) == i + 1);
    support_expect(!support_any_writable_executable());
    code_block_destroy(loaded->block);
    code_space_destroy(loaded->space);
}

static void protection_refused(void *user)
{
    struct loaded *loaded = user;
    load_and_refuse(loaded, &no_execution);
    struct code_block *block = support_block(loaded->space);
    support_functions(block, 1, 9);
    struct cairn_error error = {0};
    support_expect(code_block_protect(block, &error) == CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == EACCES);
    code_block_destroy(block);
    struct code_veneer veneer;
    size_t free_bytes = support_statistics(loaded->space).free_bytes;
    support_expect(code_block_add_veneer(loaded->block, CODE_VENEER_PLAIN, 1, &veneer, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(support_statistics(loaded->space).free_bytes == free_bytes);
    if (loaded->mode == CAIRN_CODE_MODE_SINGLE)
        support_expect(try_patch(loaded->block, loaded->code, 8, &error) == CAIRN_ERROR_SYSTEM);
    expect_still_loaded(loaded);
}

START_TEST(refused_protection_harms_only_the_new_module)
{
    struct loaded loaded = {.mode = support_modes[_i]};
    support_in_child(protection_refused, &loaded);
}
END_TEST

static void mapping_refused(void *user)
{
    struct loaded *loaded = user;
    load_and_refuse(loaded, &no_mremap);
    struct code_block *block = support_block(loaded->space);
    void *address = NULL;
    struct cairn_error error = {0};
    support_expect(code_block_allocate_code(block, 100, 16, &address, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == EPERM);
    support_expect(address == NULL);
    support_expect(code_block_allocate_data(block, 100, 16, &address, &error) == CAIRN_OK);
    code_block_destroy(block);
    struct code_veneer veneer;
    support_expect(code_block_add_veneer(loaded->block, CODE_VENEER_PLAIN, 1, &veneer, &error) ==
                   CAIRN_ERROR_SYSTEM);
    bool single = loaded->mode == CAIRN_CODE_MODE_SINGLE;
    support_expect(try_patch(loaded->block, loaded->code, 1, &error) ==
                   (single ? CAIRN_ERROR_SYSTEM : CAIRN_OK));
    /* What a failed patch leaves behind does not get in the way of the next. */
    support_expect(try_patch(loaded->block, loaded->code, 1, &error) ==
                   (single ? CAIRN_ERROR_SYSTEM : CAIRN_OK));
    expect_still_loaded(loaded);
}

START_TEST(refused_mapping_harms_only_the_new_module)
{
    struct loaded loaded = {.mode = support_modes[_i]};
    support_in_child(mapping_refused, &loaded);
}
END_TEST

static void data_refused(void *user)
{
    struct loaded *loaded = user;
    const struct support_refusal refusal = {SYS_mprotect, ENOMEM, 2, PROT_WRITE, PROT_WRITE};
    load_and_refuse(loaded, &refusal);
    struct code_block *block = support_block(loaded->space);
    void *address = NULL;
    struct cairn_error error = {0};
    size_t free_bytes = support_statistics(loaded->space).free_bytes;
    support_expect(code_block_allocate_data(block, 100, 16, &address, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == ENOMEM);
    struct code_veneer veneer;
    support_expect(code_block_add_veneer(loaded->block, CODE_VENEER_PLAIN, 1, &veneer, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(support_statistics(loaded->space).free_bytes == free_bytes);
    code_block_destroy(block);
    if (loaded->mode == CAIRN_CODE_MODE_SINGLE) {
        /* No copy can be written to. */
        support_expect(try_patch(loaded->block, loaded->code, 70, &error) == CAIRN_ERROR_SYSTEM);
    }
    expect_still_loaded(loaded);
}

START_TEST(refused_data_harms_only_the_new_module)
{
    struct loaded loaded = {.mode = support_modes[_i]};
    support_in_child(data_refused, &loaded);
}
END_TEST

static void release_refused(void *user)
{
    struct loaded *loaded = user;
    uint8_t *code;
    loaded->space = support_space(loaded->mode, 0, 0);
    struct code_block *block = support_loaded(loaded->space, 1, 9, &code);
    loaded->block = support_loaded(loaded->space, 300, 1, &loaded->code);
    const struct support_refusal refusal = {SYS_mmap, ENOMEM, 3, MAP_FIXED, MAP_FIXED};
    support_refuse(&refusal, 1);
    size_t free_bytes = support_statistics(loaded->space).free_bytes;
    code_block_destroy(block);
    /* Neither free nor in use: never touched again. */
    support_expect(support_statistics(loaded->space).free_bytes == free_bytes);
    uint8_t *other;
    block = support_loaded(loaded->space, 1, 10, &other);
    support_expect(other != code);
    support_expect(support_call(other) == 10);
    code_block_destroy(block);
    expect_still_loaded(loaded);
}

START_TEST(pages_that_cannot_be_released_are_left_alone)
{
    struct loaded loaded = {.mode = support_modes[_i]};
    support_in_child(release_refused, &loaded);
}
END_TEST

static void no_hole_punching(void *user)
{
    struct loaded *loaded = user;
    const struct support_refusal refusal = {SYS_madvise, EINVAL, 2, UINT32_MAX, MADV_REMOVE};
    load_and_refuse(loaded, &refusal);
    uint8_t *code, *again;
    code_block_destroy(support_loaded(loaded->space, 1, 9, &code));
    struct code_block *block = support_block(loaded->space);
    void *address;
    support_expect(code_block_allocate_code(block, 64, 16, &address, NULL) == CAIRN_OK);
    again = address;
    support_expect(again == code);
    for (int i = 0; i < 64; i++)
        support_expect(again[i] == 0);
    code_block_destroy(block);
    expect_still_loaded(loaded);
}

START_TEST(pages_that_keep_their_memory_are_cleared)
{
    struct loaded loaded = {.mode = support_modes[_i]};
    support_in_child(no_hole_punching, &loaded);
}
END_TEST

/* A new slab cannot be had: modules that fit an old one still load. */
static void slab_refused(void *user)
{
    struct loaded *loaded = user;
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    loaded->space = support_space(loaded->mode, 16 * page_size, 0);
    loaded->block = support_block(loaded->space);
    loaded->code = support_functions(loaded->block, 300, 1);
    support_expect(300 * SUPPORT_FUNCTION_BYTES > 2 * page_size);
    const struct support_refusal refusal = {SYS_mmap, ENOMEM, 2, UINT32_MAX, PROT_NONE};
    support_refuse(&refusal, 1);
    struct code_block *small = support_block(loaded->space);
    struct code_block *large = support_block(loaded->space);
    void *address;
    struct cairn_error error = {0};
    support_expect(code_block_allocate_code(large, 14 * page_size, 16, &address, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == ENOMEM);
    support_expect(code_block_allocate_code(small, page_size, 16, &address, &error) == CAIRN_OK);
    support_expect(support_statistics(loaded->space).slab_count == 1);
    support_expect(code_block_protect(loaded->block, NULL) == CAIRN_OK);
    code_block_destroy(small);
    code_block_destroy(large);
    expect_still_loaded(loaded);
}

START_TEST(refused_slab_leaves_the_others)
{
    struct loaded loaded = {.mode = support_modes[_i]};
    support_in_child(slab_refused, &loaded);
}
END_TEST

int main(void)
{
    enum { SKIPPED = 77 };
    if (support_is_emulated())
        return SKIPPED;
    Suite *suite = suite_create("code: system");
    TCase *tests = tcase_create("system");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, shared_memory_serves_where_memory_files_are_refused);
    tcase_add_test(tests, kernels_without_executable_memory_files_are_served);
    tcase_add_test(tests, single_mode_serves_where_no_pages_are_shared);
    tcase_add_test(tests, single_mode_serves_kernels_that_always_unmap);
    tcase_add_test(tests, toggling_serves_where_pages_cannot_move_only_if_it_is_asked_for);
    tcase_add_test(tests, toggling_can_be_asked_for_anywhere);
    tcase_add_test(tests, no_execution_is_an_error);
    tcase_add_test(tests, no_address_space_is_an_error);
    tcase_add_test(tests, views_that_do_not_agree_lead_to_single_mode);
    tcase_add_test(tests, forced_dual_mode_that_fails_its_test_is_unsupported);
    tcase_add_loop_test(tests, barrier_is_there, 0, support_mode_count());
    tcase_add_loop_test(tests, no_mode_synchronises_without_membarrier, 0, support_mode_count());
    tcase_add_loop_test(tests, barrier_that_fails_later_is_an_error, 0, support_mode_count());
    tcase_add_loop_test(tests, refused_protection_harms_only_the_new_module, 0,
                        support_mode_count());
    tcase_add_loop_test(tests, refused_mapping_harms_only_the_new_module, 0, support_mode_count());
    tcase_add_loop_test(tests, refused_data_harms_only_the_new_module, 0, support_mode_count());
    tcase_add_loop_test(tests, pages_that_cannot_be_released_are_left_alone, 0,
                        support_mode_count());
    tcase_add_loop_test(tests, pages_that_keep_their_memory_are_cleared, 0, support_mode_count());
    tcase_add_loop_test(tests, refused_slab_leaves_the_others, 0, support_mode_count());
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
