/*
 * Tests of code memory on systems that refuse system calls, from the start or later.
 *
 * Each test runs in a child whose system calls are filtered, so that the library's real code paths
 * run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code_support.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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
static const struct support_refusal no_execution[] = {
    {SYS_mprotect, EACCES, 2, PROT_EXEC, PROT_EXEC},
    {SYS_mmap, EACCES, 2, PROT_EXEC, PROT_EXEC},
};
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
    return code_block_write(block, number(function), word, arch_host()->word_bytes, error);
}

/* Loads, runs and patches a module. No page may ever be writable and executable. */
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
    support_refuse(&no_mremap, 1);
    struct code_space *space;
    struct cairn_error error;
    size_t before = support_count_mappings();
    for (enum cairn_code_mode mode = 0; mode <= CAIRN_CODE_MODE_SINGLE; mode++) {
        enum cairn_status status = try_create(mode, &space, &error);
        support_expect(status == (mode == CAIRN_CODE_MODE_DUAL ? CAIRN_ERROR_UNSUPPORTED
                                                               : CAIRN_ERROR_SYSTEM));
        support_expect(error.system_error == EPERM);
        support_expect(space == NULL);
    }
    support_expect(support_count_mappings() <= before + 1);
}

START_TEST(no_mode_serves_where_pages_cannot_move) { support_in_child(without_mremap, NULL); }
END_TEST

static void without_execution(void *user)
{
    (void)user;
    support_refuse(no_execution, 2);
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

/* ---- Limits and settings of the process ---- */

static void limit(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit current;
    support_expect(getrlimit(resource, &current) == 0);
    current.rlim_cur = value < current.rlim_max ? value : current.rlim_max;
    support_expect(setrlimit(resource, &current) == 0);
}

static _Atomic int signals_seen;

static void count_signal(int number)
{
    (void)number;
    signals_seen++;
}

static void with_small_files(void *user)
{
    (void)user;
    limit(RLIMIT_FSIZE, 1 << 20);
    expect_mode(CAIRN_CODE_MODE_AUTOMATIC, CAIRN_CODE_MODE_DUAL, "");
    expect_mode(CAIRN_CODE_MODE_DUAL, CAIRN_CODE_MODE_DUAL, "");
    signal(SIGXFSZ, count_signal);
    expect_mode(CAIRN_CODE_MODE_DUAL, CAIRN_CODE_MODE_DUAL, "");
    support_expect(signals_seen == 0);
    support_refuse(&no_shared_memory, 1);
    struct code_space *space;
    struct cairn_error error;
    support_expect(try_create(CAIRN_CODE_MODE_DUAL, &space, &error) == CAIRN_ERROR_UNSUPPORTED);
    support_expect(strstr(error.message, "RLIMIT_FSIZE") != NULL);
    expect_mode(CAIRN_CODE_MODE_AUTOMATIC, CAIRN_CODE_MODE_SINGLE, "RLIMIT_FSIZE");
    support_expect(signals_seen == 0);
}

START_TEST(limit_of_file_sizes_ends_no_process) { support_in_child(with_small_files, NULL); }
END_TEST

/* Signals that are pending or blocked in the host must stay so. */
static void with_small_files_and_signals(void *user)
{
    (void)user;
    sigset_t set, blocked;
    limit(RLIMIT_FSIZE, 1 << 20);
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    support_expect(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    expect_mode(CAIRN_CODE_MODE_DUAL, CAIRN_CODE_MODE_DUAL, "");
    support_expect(sigpending(&set) == 0 && sigismember(&set, SIGXFSZ) == 0);
    raise(SIGXFSZ);
    expect_mode(CAIRN_CODE_MODE_DUAL, CAIRN_CODE_MODE_DUAL, "");
    support_expect(sigpending(&set) == 0 && sigismember(&set, SIGXFSZ) == 1);
    support_expect(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
    support_expect(sigismember(&blocked, SIGXFSZ) == 1);
}

START_TEST(signals_of_the_host_stay_where_they_are)
{
    support_in_child(with_small_files_and_signals, NULL);
}
END_TEST

static void fill_slabs(struct code_space *space, int slabs)
{
    struct code_block *blocks[8];
    support_expect(slabs <= 8);
    for (int i = 0; i < slabs; i++) {
        blocks[i] = support_block(space);
        support_functions(blocks[i], 10, i);
    }
    support_expect(support_statistics(space).slab_count == (uint32_t)slabs);
    expect_it_works(space);
    for (int i = 0; i < slabs; i++)
        code_block_destroy(blocks[i]);
}

static void slabs_after_limits(void *user)
{
    size_t slab = 256 * (size_t)sysconf(_SC_PAGESIZE);
    struct code_space *space = support_space(*(const enum cairn_code_mode *)user, slab, 0);
    fill_slabs(space, 2);
    limit(RLIMIT_FSIZE, 1);
    fill_slabs(space, 3);
    const struct support_refusal no_file_left = {.call = SYS_memfd_create, .error = EMFILE};
    support_refuse(&no_file_left, 1);
    fill_slabs(space, 4);
    expect_mode(CAIRN_CODE_MODE_DUAL, CAIRN_CODE_MODE_DUAL, "");
    pid_t child = fork();
    if (child == 0) {
        support_expect(code_space_after_fork(space, NULL) == CAIRN_OK);
        expect_it_works(space);
        _exit(0);
    }
    int status;
    support_expect(waitpid(child, &status, 0) == child && status == 0);
    code_space_destroy(space);
}

START_TEST(slabs_and_children_are_made_although_file_sizes_are_limited)
{
    enum cairn_code_mode mode = support_modes[_i];
    support_in_child(slabs_after_limits, &mode);
}
END_TEST

static void read_implies_exec(void *user)
{
    const enum cairn_code_mode *mode = user;
    struct code_space *space = support_space(*mode, 0, 0);
    uint8_t *code;
    struct code_block *loaded = support_loaded(space, 4, 1, &code);
    struct code_block *block = support_block(space);
    void *data, *address = NULL;
    support_expect(code_block_allocate(block, PAGES_FOR_DATA, 64, 8, &data, NULL) == CAIRN_OK);
    support_expect(code_block_allocate(block, PAGES_FOR_READ_ONLY, 64, 8, &data, NULL) == CAIRN_OK);
    int before = personality(0xFFFFFFFF);
    support_expect(personality((unsigned long)before | READ_IMPLIES_EXEC) != -1);
    struct code_space *other;
    struct cairn_error error;
    const enum cairn_code_mode modes[] = {CAIRN_CODE_MODE_AUTOMATIC, CAIRN_CODE_MODE_DUAL,
                                          CAIRN_CODE_MODE_SINGLE};
    for (int i = 0; i < 3; i++) {
        support_expect(try_create(modes[i], &other, &error) == CAIRN_ERROR_UNSUPPORTED);
        support_expect(strstr(error.message, "READ_IMPLIES_EXEC") != NULL);
    }
    struct code_block *late = support_block(space);
    support_expect(code_block_allocate(late, PAGES_FOR_CODE, 64, 8, &address, &error) ==
                   CAIRN_ERROR_UNSUPPORTED);
    support_expect(code_block_allocate(late, PAGES_FOR_DATA, 64, 8, &address, &error) ==
                   CAIRN_ERROR_UNSUPPORTED);
    support_expect(address == NULL);
    support_expect(code_block_protect(block, &error) == CAIRN_ERROR_UNSUPPORTED);
    support_expect(strstr(error.message, "READ_IMPLIES_EXEC") != NULL);
    enum cairn_status patched = try_patch(loaded, code, 9, &error);
    bool dual = *mode == CAIRN_CODE_MODE_DUAL;
    support_expect(patched == (dual ? CAIRN_OK : CAIRN_ERROR_UNSUPPORTED));
    support_expect(support_call(code) == (dual ? 9 : 1));
    support_expect(strcmp(support_protection(code), "r-x") == 0);
    support_expect(personality((unsigned long)before) != -1);
    support_expect(try_patch(loaded, code, 8, &error) == CAIRN_OK);
    support_expect(support_call(code) == 8);
    support_expect(code_block_allocate(late, PAGES_FOR_CODE, 64, 8, &address, &error) == CAIRN_OK);
    support_expect(!support_any_writable_executable());
    code_block_destroy(late);
    code_block_destroy(block);
    code_block_destroy(loaded);
    code_space_destroy(space);
}

START_TEST(memory_that_would_all_be_executable_is_refused)
{
    enum cairn_code_mode mode = support_modes[_i];
    support_in_child(read_implies_exec, &mode);
}
END_TEST

static size_t resident_bytes(void)
{
    char line[128];
    FILE *file = fopen("/proc/self/statm", "r");
    support_expect(file != NULL && fgets(line, sizeof line, file) != NULL);
    fclose(file);
    char *resident;
    strtoul(line, &resident, 10); /* skips the first field, the size of the address space */
    return strtoul(resident, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* All new memory is locked; at the end, all memory of the process. */
static void with_locked_memory(void *user)
{
    const enum cairn_code_mode *mode = user;
    struct code_space *space;
    struct cairn_error error;
    size_t before = resident_bytes();
    if (mlockall(MCL_FUTURE) != 0) {
        printf("skipped: mlockall: %s\n", strerror(errno));
        return;
    }
    enum cairn_status status = try_create(*mode, &space, &error);
    if (status == CAIRN_ERROR_SYSTEM && strstr(error.message, "RLIMIT_MEMLOCK") != NULL) {
        printf("skipped: %s\n", error.message);
        return;
    }
    support_expect(status == CAIRN_OK && code_space_mode(space) == *mode);
    size_t slab = support_statistics(space).slab_size_bytes;
    support_expect(resident_bytes() - before < slab / 16);
    expect_it_works(space);
    support_expect(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    expect_it_works(space);
    support_expect(resident_bytes() - before < slab / 8);
    code_space_destroy(space);
}

START_TEST(locked_memory_is_what_is_in_use)
{
    enum cairn_code_mode mode = support_modes[_i];
    support_in_child(with_locked_memory, &mode);
}
END_TEST

static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    support_expect(syscall(SYS_capset, &header, none) == 0);
}

static void with_little_locked_memory(void *user)
{
    (void)user;
    drop_capabilities();
    limit(RLIMIT_MEMLOCK, 16 << 20);
    if (mlockall(MCL_FUTURE) != 0) {
        printf("skipped: mlockall: %s\n", strerror(errno));
        return;
    }
    struct code_space *space;
    struct cairn_error error;
    for (enum cairn_code_mode mode = CAIRN_CODE_MODE_AUTOMATIC; mode <= CAIRN_CODE_MODE_SINGLE;
         mode++) {
        support_expect(try_create(mode, &space, &error) != CAIRN_OK);
        support_expect(strstr(error.message, "RLIMIT_MEMLOCK") != NULL);
        support_expect(error.system_error == EAGAIN);
    }
}

START_TEST(limit_of_locked_memory_is_named) { support_in_child(with_little_locked_memory, NULL); }
END_TEST

/* ---- A machine that executes old code ---- */

static int stale_tests_left;

/* For the first `stale_tests_left` changes, encodes the old function instead of the new one. */
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
    struct code_block *released = support_loaded(space, 1, 4, &code);
    struct code_block *block = support_loaded(space, 1, 5, &code);
    code_block_destroy(released); /* cores may still hold its code */
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

/* A registration that was refused once, at the start or in a forked child, is tried again. */
static void registration_fails_once(void *user)
{
    static const long barrier = SYS_membarrier;
    int refused[2], granted[2];
    char byte = 0;
    (void)user;
    if (!support_watch_calls(&barrier, 1))
        return;
    support_refuse_after(0);
    struct code_space *space = support_space(CAIRN_CODE_MODE_AUTOMATIC, 0, 0);
    support_expect(!code_space_can_synchronise(space));
    support_grant_all();
    support_expect(code_space_synchronise(space, NULL) == CAIRN_OK);
    support_expect(pipe(refused) == 0 && pipe(granted) == 0);
    support_refuse_after(0);
    pid_t child = fork();
    if (child == 0) {
        support_expect(!code_space_can_synchronise(space));
        support_expect(write(refused[1], &byte, 1) == 1 && read(granted[0], &byte, 1) == 1);
        support_expect(code_space_synchronise(space, NULL) == CAIRN_OK);
        expect_it_works(space);
        _exit(0);
    }
    support_expect(read(refused[0], &byte, 1) == 1);
    support_grant_all();
    support_expect(write(granted[1], &byte, 1) == 1);
    int status;
    support_expect(waitpid(child, &status, 0) == child && status == 0);
    code_space_destroy(space);
}

START_TEST(registration_that_is_refused_once_is_tried_again)
{
    support_in_child(registration_fails_once, NULL);
}
END_TEST

/* ---- Later refusals: loaded code keeps working ---- */

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

/* Adds veneers until the system would have to map pages for another one. */
static void expect_veneers_refused(const struct loaded *loaded)
{
    struct code_veneer veneer;
    size_t free_bytes;
    enum cairn_status status;
    do {
        free_bytes = support_statistics(loaded->space).free_bytes;
        status = code_block_add_veneer(loaded->block, CODE_VENEER_PLAIN, 1, &veneer, NULL);
    } while (status == CAIRN_OK);
    support_expect(status == CAIRN_ERROR_SYSTEM);
    support_expect(support_statistics(loaded->space).free_bytes == free_bytes);
}

static void protection_refused(void *user)
{
    struct loaded *loaded = user;
    load_and_refuse(loaded, no_execution);
    if (loaded->mode == CAIRN_CODE_MODE_DUAL) { /* needs no right that it does not have already */
        support_refuse(no_execution, 2);
        expect_it_works(loaded->space);
        expect_still_loaded(loaded);
        return;
    }
    struct code_block *block = support_block(loaded->space);
    void *code;
    struct cairn_error error = {0};
    support_expect(code_block_allocate(block, PAGES_FOR_CODE, 100, 16, &code, &error) == CAIRN_OK);
    support_expect(code_block_protect(block, &error) == CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == EACCES);
    support_expect(strstr(error.message, "PR_SET_MDWE") != NULL);
    code_block_destroy(block);
    expect_veneers_refused(loaded);
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
    support_expect(code_block_allocate(block, PAGES_FOR_CODE, 100, 16, &address, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == EPERM);
    support_expect(address == NULL);
    support_expect(code_block_allocate(block, PAGES_FOR_DATA, 100, 16, &address, &error) ==
                   CAIRN_OK);
    code_block_destroy(block);
    expect_veneers_refused(loaded);
    bool single = loaded->mode == CAIRN_CODE_MODE_SINGLE;
    support_expect(try_patch(loaded->block, loaded->code, 1, &error) ==
                   (single ? CAIRN_ERROR_SYSTEM : CAIRN_OK));
    /* The remains of a failed patch must not affect the next one. */
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
    support_expect(code_block_allocate(block, PAGES_FOR_DATA, 100, 16, &address, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == ENOMEM);
    struct code_veneer veneer;
    support_expect(code_block_add_veneer(loaded->block, CODE_VENEER_PLAIN, 1, &veneer, &error) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(support_statistics(loaded->space).free_bytes == free_bytes);
    code_block_destroy(block);
    if (loaded->mode == CAIRN_CODE_MODE_SINGLE) {
        /* There is no memory for a copy that could be written to. */
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
    /* Small, because for the shadow of larger slabs sanitizers map memory in munmap. */
    enum { SLAB_BYTES = 256 << 10 };
    struct loaded *loaded = user;
    uint8_t *code;
    loaded->space = support_space(loaded->mode, SLAB_BYTES, 0);
    struct code_block *block = support_loaded(loaded->space, 1, 9, &code);
    loaded->block = support_loaded(loaded->space, 300, 1, &loaded->code);
    const struct support_refusal refusal = {SYS_mmap, ENOMEM, 3, MAP_FIXED, MAP_FIXED};
    support_refuse(&refusal, 1);
    size_t free_bytes = support_statistics(loaded->space).free_bytes;
    code_block_destroy(block);
    /* The memory is neither free nor in use, and is never touched again. */
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
    /* In dual mapping, pages of code stay mapped. */
    if (loaded.mode == CAIRN_CODE_MODE_DUAL)
        return;
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
    support_expect(code_block_allocate(block, PAGES_FOR_CODE, 64, 16, &address, NULL) == CAIRN_OK);
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

/* A new slab cannot be allocated. Modules that fit into an old one can still be loaded. */
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
    support_expect(code_block_allocate(large, PAGES_FOR_CODE, 14 * page_size, 16, &address,
                                       &error) == CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == ENOMEM);
    support_expect(code_block_allocate(small, PAGES_FOR_CODE, page_size, 16, &address, &error) ==
                   CAIRN_OK);
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

/* ---- Writes to several pages ---- */

/* A function in each of two modules that are far apart in one slab. */
struct apart {
    struct code_space *space;
    struct code_block *blocks[2];
    uint8_t *code[2];
    uint8_t words[2][ARCH_WORD_BYTES_MAX];
    size_t made; /* writes of the last call */
};

static void next_word(void *user, size_t index, struct code_write *write)
{
    const struct apart *apart = user;
    *write = (struct code_write){.block = apart->blocks[index],
                                 .address = number(apart->code[index]),
                                 .bytes = apart->words[index],
                                 .size = arch_host()->word_bytes};
}

static enum cairn_status write_both(struct apart *apart, int value)
{
    for (int i = 0; i < 2; i++)
        support_word(arch_host(), value, apart->words[i]);
    return code_space_write_all(apart->space, next_word, apart, 2, &apart->made, NULL);
}

static void expect_both(const struct apart *apart, int value)
{
    for (int i = 0; i < 2; i++)
        support_expect(support_call(apart->code[i]) == value);
    support_expect(!support_any_writable_executable());
}

/* Allocates the pages between the two modules. There is only one slab. */
static struct code_block *load_apart(struct apart *apart, enum cairn_code_mode mode)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    void *between;
    apart->space = support_space(mode, 64 * page_size, 1);
    apart->blocks[0] = support_loaded(apart->space, 1, 1, &apart->code[0]);
    struct code_block *block = support_block(apart->space);
    support_expect(code_block_allocate(block, PAGES_FOR_CODE, 3 * page_size, 16, &between, NULL) ==
                   CAIRN_OK);
    memset(between, 5, 3 * page_size);
    apart->blocks[1] = support_loaded(apart->space, 1, 1, &apart->code[1]);
    support_expect(apart->code[1] == apart->code[0] + 4 * page_size);
    return block;
}

static void unload_apart(struct apart *apart)
{
    code_block_destroy(apart->blocks[0]);
    code_block_destroy(apart->blocks[1]);
    code_space_destroy(apart->space);
}

START_TEST(free_pages_between_written_ones_stay_without_access)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    struct apart apart;
    code_block_destroy(load_apart(&apart, CAIRN_CODE_MODE_SINGLE));
    for (int value = 2; value < 10; value++) {
        ck_assert_ok(write_both(&apart, value));
        expect_both(&apart, value);
        ck_assert_str_eq(support_protection(apart.code[0] + page_size), "---");
    }
    expect_it_works(apart.space);
    unload_apart(&apart);
}
END_TEST

START_TEST(writes_around_a_module_that_is_being_loaded_leave_it_alone)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    struct apart apart;
    struct code_block *block = load_apart(&apart, CAIRN_CODE_MODE_SINGLE);
    for (int value = 2; value < 10; value++) {
        ck_assert_ok(write_both(&apart, value));
        expect_both(&apart, value);
        const uint8_t *between = apart.code[0] + page_size;
        ck_assert_str_eq(support_protection(between), "rw-");
        for (size_t i = 0; i < 3 * page_size; i++)
            ck_assert_uint_eq(between[i], 5);
    }
    code_block_destroy(block);
    unload_apart(&apart);
}
END_TEST

/* A patch needs two moves. If the second is refused, the first stays made. If all calls that clean
 * up are refused, too, nothing may be lost. */
static void move_is_refused(void *user)
{
    enum { NEW_ADDRESS = 4 };
    struct apart apart;
    (void)user;
    struct code_block *block = load_apart(&apart, CAIRN_CODE_MODE_SINGLE);
    const uint32_t page_mask = ~(uint32_t)(sysconf(_SC_PAGESIZE) - 1);
    const struct support_refusal refusal = {SYS_mremap, ENOMEM, NEW_ADDRESS, page_mask,
                                            (uint32_t)(number(apart.code[1]) & page_mask)};
    support_refuse(&refusal, 1);
    for (int i = 0; i < 3; i++) {
        support_expect(write_both(&apart, 7) == CAIRN_ERROR_SYSTEM && apart.made == 1);
        support_expect(support_call(apart.code[0]) == 7 && support_call(apart.code[1]) == 1);
        support_expect(try_patch(apart.blocks[0], apart.code[0], 9, NULL) == CAIRN_OK);
        support_expect(try_patch(apart.blocks[0], apart.code[0], 1, NULL) == CAIRN_OK);
    }
    limit(RLIMIT_AS, 1 << 20);
    for (int i = 0; i < 3; i++) {
        support_expect(write_both(&apart, 7) == CAIRN_ERROR_SYSTEM);
        support_expect(support_call(apart.code[1]) == 1);
    }
    code_block_destroy(block);
    unload_apart(&apart);
}

START_TEST(writes_before_a_refused_one_stay_made) { support_in_child(move_is_refused, NULL); }
END_TEST

/* Mappings of other threads must be preserved, even if a thread maps memory where pages have just
 * been moved away. Code can be changed afterwards. */
static void places_are_taken(void *user)
{
    enum { ROUNDS = 5 };
    static const long map = SYS_mmap;
    struct apart apart;
    (void)user;
    struct code_block *block = load_apart(&apart, CAIRN_CODE_MODE_SINGLE);
    if (!support_watch_calls(&map, 1))
        return;
    for (int round = 0; round < ROUNDS; round++) {
        size_t before = support_expect_taken_places();
        support_take_places(1);
        support_expect(try_patch(apart.blocks[0], apart.code[0], 9, NULL) == CAIRN_OK);
        support_expect(support_call(apart.code[0]) == 9);
        support_take_places(2);
        support_expect(write_both(&apart, 7) == CAIRN_OK);
        expect_both(&apart, 7);
        support_take_places(0);
        support_expect(write_both(&apart, 5) == CAIRN_OK);
        expect_both(&apart, 5);
        support_expect(support_expect_taken_places() == before + 3);
    }
    code_block_destroy(block);
    unload_apart(&apart);
    support_expect(support_expect_taken_places() == 3 * ROUNDS);
}

START_TEST(changes_leave_memory_of_other_threads_alone)
{
    support_in_child(places_are_taken, NULL);
}
END_TEST

/* ---- Limits below the process's current use ---- */

enum { EXECUTED = 300 };

struct executing {
    const uint8_t *code;
    _Atomic bool stop;
    _Atomic int rounds;
    _Atomic int wrong;
};

/* Calls the functions, which must return their number, or 1000 more. */
static void *execute(void *user)
{
    struct executing *executing = user;
    while (!executing->stop) {
        for (int i = 0; i < EXECUTED; i++) {
            int value = support_call(executing->code + i * SUPPORT_FUNCTION_BYTES);
            executing->wrong += value != i + 1 && value != i + 1001;
        }
        executing->rounds++;
    }
    return NULL;
}

static pthread_t start_executing(struct executing *executing, const uint8_t *code)
{
    pthread_t thread;
    *executing = (struct executing){.code = code};
    support_expect(pthread_create(&thread, NULL, execute, executing) == 0);
    while (executing->rounds == 0)
        sched_yield();
    return thread;
}

struct limited {
    struct loaded loaded;
    __rlimit_resource_t resource;
};

/* Patches must succeed, or be refused without an effect. Loading may be refused. */
static void patch_and_load(struct loaded *loaded)
{
    struct cairn_error error = {.status = CAIRN_OK};
    for (int i = 0; i < EXECUTED; i++) {
        uint8_t *function = loaded->code + i * SUPPORT_FUNCTION_BYTES;
        enum cairn_status status = try_patch(loaded->block, function, i + 1001, &error);
        support_expect(status == CAIRN_OK || status == CAIRN_ERROR_SYSTEM);
        support_expect(loaded->mode != CAIRN_CODE_MODE_DUAL || status == CAIRN_OK);
        support_expect(support_call(function) == i + (status == CAIRN_OK ? 1001 : 1));
    }
    struct code_block *block = NULL;
    void *address;
    if (code_block_create(loaded->space, 0, &block, &error) == CAIRN_OK)
        for (int i = 0; i < 20; i++)
            if (code_block_allocate(block, PAGES_FOR_CODE, 9000, 16, &address, &error) == CAIRN_OK)
                memset(address, 1, 9000);
    code_block_destroy(block);
}

static void below_current_use(void *user)
{
    struct limited *limited = user;
    struct loaded *loaded = &limited->loaded;
    struct executing executing;
    struct rlimit before;
    loaded->space = support_space(loaded->mode, 0, 0);
    loaded->block = support_loaded(loaded->space, EXECUTED, 1, &loaded->code);
    pthread_t thread = start_executing(&executing, loaded->code);
    support_expect(getrlimit(limited->resource, &before) == 0);
    for (int round = 0; round < 3; round++) {
        limit(limited->resource, 1 << 20);
        patch_and_load(loaded);
        support_expect(setrlimit(limited->resource, &before) == 0);
        for (int i = 0; i < EXECUTED; i++)
            support_patch(loaded->block, loaded->code + i * SUPPORT_FUNCTION_BYTES, i + 1);
        expect_it_works(loaded->space);
    }
    executing.stop = true;
    pthread_join(thread, NULL);
    support_expect(executing.wrong == 0);
    expect_still_loaded(loaded);
}

static const __rlimit_resource_t resources[] = {RLIMIT_AS, RLIMIT_DATA};

START_TEST(limits_below_current_use_lose_no_page)
{
    struct limited limited = {.loaded = {.mode = support_modes[_i % 2]},
                              .resource = resources[_i / 2]};
    support_in_child(below_current_use, &limited);
}
END_TEST

/* Address space is limited from the start: either the space is created, or the error says what to
 * change. */
static void little_address_space(void *user)
{
    (void)user;
    limit(RLIMIT_AS, 200 << 20);
    struct code_space *space;
    struct cairn_error error;
    for (enum cairn_code_mode mode = CAIRN_CODE_MODE_AUTOMATIC; mode <= CAIRN_CODE_MODE_SINGLE;
         mode++) {
        support_expect(try_create(mode, &space, &error) != CAIRN_OK);
        support_expect(strstr(error.message, "RLIMIT_AS") != NULL);
        support_expect(strstr(error.message, "slab_size") != NULL);
    }
    const struct code_space_options small = {.arch = arch_host(), .slab_size = 1 << 20};
    support_expect(code_space_create(&small, &space, NULL) == CAIRN_OK);
    expect_it_works(space);
    code_space_destroy(space);
}

START_TEST(limit_of_address_space_is_named)
{
    if (200 << 20 <= arch_host()->slab_bytes_default)
        support_in_child(little_address_space, NULL);
}
END_TEST

/* ---- All system calls after a number of them are refused ---- */

static const long calls[] = {SYS_mmap,      SYS_mremap,       SYS_mprotect,
                             SYS_munmap,    SYS_madvise,      SYS_membarrier,
                             SYS_ftruncate, SYS_memfd_create, SYS_personality};
enum { CALLS = sizeof calls / sizeof *calls };

/* Loads a module with all kinds of memory, patches it, and unloads it. */
static enum cairn_status load_and_unload(struct code_space *space, struct cairn_error *error)
{
    struct code_block *block = NULL;
    struct code_veneer veneer;
    void *data = NULL, *code = NULL;
    enum cairn_status status = code_block_create(space, 0, &block, error);
    if (status == CAIRN_OK)
        status = code_block_allocate(block, PAGES_FOR_DATA, 5000, 8, &data, error);
    if (status == CAIRN_OK)
        status = code_block_allocate(block, PAGES_FOR_READ_ONLY, 5000, 8, &data, error);
    if (status == CAIRN_OK)
        status =
            code_block_allocate(block, PAGES_FOR_CODE, 5000, ARCH_WORD_BYTES_MAX, &code, error);
    if (status == CAIRN_OK) {
        arch_host()->encode_self_test(arch_host(), 77, code);
        status = code_block_protect(block, error);
    }
    if (status == CAIRN_OK)
        status = code_block_add_veneer(block, CODE_VENEER_PLAIN, number(code), &veneer, error);
    if (status == CAIRN_OK) {
        support_expect(support_call((const void *)(uintptr_t)veneer.address) == 77);
        status = try_patch(block, code, 78, error);
        support_expect(support_call(code) == (status == CAIRN_OK ? 78 : 77));
    }
    code_block_destroy(block);
    return status;
}

static void refused_from_every_call_on(void *user)
{
    struct loaded *loaded = user;
    struct executing executing;
    if (!support_watch_calls(calls, CALLS))
        return;
    loaded->space = support_space(loaded->mode, 0, 0);
    loaded->block = support_loaded(loaded->space, EXECUTED, 1, &loaded->code);
    pthread_t thread = start_executing(&executing, loaded->code);
    size_t made = SIZE_MAX;
    for (size_t granted = 0; granted < made; granted++) {
        struct cairn_error error = {.status = CAIRN_OK};
        support_refuse_after(granted);
        enum cairn_status status = load_and_unload(loaded->space, &error);
        made = support_grant_all();
        support_expect(status == CAIRN_OK || (error.status == status && made > granted));
        support_expect(status != CAIRN_OK || made > 5);
        expect_it_works(loaded->space);
    }
    executing.stop = true;
    pthread_join(thread, NULL);
    support_expect(executing.wrong == 0);
    expect_still_loaded(loaded);
}

START_TEST(refusals_from_any_call_on_harm_only_the_new_module)
{
    struct loaded loaded = {.mode = support_modes[_i]};
    support_in_child(refused_from_every_call_on, &loaded);
}
END_TEST

static void creation_refused_from_every_call_on(void *user)
{
    (void)user;
    if (!support_watch_calls(calls, CALLS))
        return;
    for (enum cairn_code_mode mode = CAIRN_CODE_MODE_AUTOMATIC; mode <= CAIRN_CODE_MODE_SINGLE;
         mode++) {
        size_t made = SIZE_MAX;
        for (size_t granted = 0; granted < made; granted++) {
            struct code_space *space;
            struct cairn_error error;
            support_refuse_after(granted);
            enum cairn_status status = try_create(mode, &space, &error);
            made = support_grant_all();
            support_expect((status == CAIRN_OK) == (space != NULL));
            support_expect(status == CAIRN_OK || error.message[0] != '\0');
            if (status == CAIRN_OK)
                expect_it_works(space);
            code_space_destroy(space);
        }
    }
}

START_TEST(refusals_from_any_call_on_make_a_whole_space_or_none)
{
    support_in_child(creation_refused_from_every_call_on, NULL);
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
    tcase_add_test(tests, no_mode_serves_where_pages_cannot_move);
    tcase_add_test(tests, no_execution_is_an_error);
    tcase_add_test(tests, no_address_space_is_an_error);
    tcase_add_test(tests, limit_of_file_sizes_ends_no_process);
    tcase_add_test(tests, signals_of_the_host_stay_where_they_are);
    tcase_add_loop_test(tests, slabs_and_children_are_made_although_file_sizes_are_limited, 0,
                        support_mode_count());
    tcase_add_loop_test(tests, memory_that_would_all_be_executable_is_refused, 0,
                        support_mode_count());
    tcase_add_test(tests, views_that_do_not_agree_lead_to_single_mode);
    tcase_add_test(tests, forced_dual_mode_that_fails_its_test_is_unsupported);
    tcase_add_loop_test(tests, barrier_is_there, 0, support_mode_count());
    tcase_add_loop_test(tests, no_mode_synchronises_without_membarrier, 0, support_mode_count());
    tcase_add_loop_test(tests, barrier_that_fails_later_is_an_error, 0, support_mode_count());
    tcase_add_test(tests, registration_that_is_refused_once_is_tried_again);
    tcase_add_loop_test(tests, refused_protection_harms_only_the_new_module, 0,
                        support_mode_count());
    tcase_add_loop_test(tests, refused_mapping_harms_only_the_new_module, 0, support_mode_count());
    tcase_add_loop_test(tests, refused_data_harms_only_the_new_module, 0, support_mode_count());
    tcase_add_loop_test(tests, pages_that_cannot_be_released_are_left_alone, 0,
                        support_mode_count());
    tcase_add_loop_test(tests, pages_that_keep_their_memory_are_cleared, 0, support_mode_count());
    tcase_add_loop_test(tests, refused_slab_leaves_the_others, 0, support_mode_count());
    if (!support_is_sanitized()) {
        tcase_add_loop_test(tests, locked_memory_is_what_is_in_use, 0, support_mode_count());
        tcase_add_test(tests, limit_of_locked_memory_is_named);
        tcase_add_loop_test(tests, limits_below_current_use_lose_no_page, 0, 4);
        tcase_add_test(tests, limit_of_address_space_is_named);
    }
    tcase_add_test(tests, free_pages_between_written_ones_stay_without_access);
    tcase_add_test(tests, writes_around_a_module_that_is_being_loaded_leave_it_alone);
    if (!support_is_sanitized())
        tcase_add_test(tests, writes_before_a_refused_one_stay_made);
    tcase_add_test(tests, changes_leave_memory_of_other_threads_alone);
    tcase_add_loop_test(tests, refusals_from_any_call_on_harm_only_the_new_module, 0,
                        support_mode_count());
    tcase_add_test(tests, refusals_from_any_call_on_make_a_whole_space_or_none);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
