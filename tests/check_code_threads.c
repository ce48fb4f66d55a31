/*
 * Tests of code memory with threads: code that changes while it runs, lookups while blocks are
 * added and removed, and the process's mappings, which are watched all the time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code_support.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static uint64_t number(const void *address) { return (uint64_t)(uintptr_t)address; }

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static pthread_t start(void *(*body)(void *user), void *user)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, body, user), 0);
    return thread;
}

/* ---- Code that changes while it runs ---- */

enum { LAST_VALUE = 900, ROUNDS = 4000 };

struct running {
    struct code_space *space;
    struct code_block *block;
    uint8_t *code;
    _Atomic bool stop;
    _Atomic uint64_t calls;
    _Atomic uint64_t wrong;
    /* The last value that was stored and made visible by a barrier. Values increase. */
    _Atomic int stored;
    _Atomic int highest;
};

/* Values only increase, so a thread that reads `stored` before a call must not see a lower value.
 * It must never see a value that has not been requested. */
static void *run_and_check(void *user)
{
    struct running *running = user;
    while (!running->stop) {
        int least = running->stored;
        int value = support_call(running->code);
        int most = running->highest;
        if (value < least || value > most)
            running->wrong++;
        if (support_call(running->code + SUPPORT_FUNCTION_BYTES) != 5)
            running->wrong++;
        running->calls++;
    }
    return NULL;
}

static void change_while_running(struct running *running)
{
    uint8_t *functions;
    running->block = support_loaded(running->space, 2, 4, &functions);
    running->code = functions;
    support_patch(running->block, running->code, 0);
    ck_assert_ok(code_space_synchronise(running->space, NULL));
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        threads[i] = start(run_and_check, running);
    while (running->calls == 0)
        usleep(100);
    for (int i = 1; i <= ROUNDS; i++) {
        int value = i * LAST_VALUE / ROUNDS;
        running->highest = value;
        support_patch(running->block, running->code, value);
        ck_assert_ok(code_space_synchronise(running->space, NULL));
        running->stored = value;
        if (i % 64 == 0)
            usleep(50);
    }
    running->stop = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(running->wrong, 0);
    ck_assert_uint_gt(running->calls, 0);
    ck_assert_int_eq(support_call(running->code), LAST_VALUE);
    code_block_destroy(running->block);
}

START_TEST(running_threads_see_whole_patches_in_order)
{
    struct running running = {.space = support_space(support_modes[_i], 0, 0)};
    change_while_running(&running);
    code_space_destroy(running.space);
}
END_TEST

static void change_with_fresh_pages(void *user)
{
    (void)user;
    const struct support_refusal refusal = {SYS_mremap, EINVAL, 3, MREMAP_DONTUNMAP,
                                            MREMAP_DONTUNMAP};
    support_refuse(&refusal, 1);
    struct running running = {.space = support_space(CAIRN_CODE_MODE_SINGLE, 0, 0)};
    change_while_running(&running);
    code_space_destroy(running.space);
}

START_TEST(running_threads_see_whole_patches_of_fresh_pages)
{
    support_in_child(change_with_fresh_pages, NULL);
}
END_TEST

/* ---- Two patchers of one page ---- */

struct patcher {
    struct code_block *block;
    uint8_t *function;
    _Atomic uint64_t *lost;
};

static void *patch_and_check(void *user)
{
    struct patcher *patcher = user;
    for (int i = 1; i <= 1500; i++) {
        uint8_t word[ARCH_WORD_BYTES_MAX];
        support_word(arch_host(), i % 1000, word);
        ck_assert_ok(code_block_write(patcher->block, number(patcher->function), word,
                                      arch_host()->word_bytes, NULL));
        if (support_call(patcher->function) != i % 1000)
            (*patcher->lost)++;
    }
    return NULL;
}

START_TEST(two_patchers_of_one_page_lose_nothing)
{
    struct code_space *space = support_space(support_modes[_i], 0, 0);
    uint8_t *code;
    struct code_block *block = support_loaded(space, 2, 0, &code);
    _Atomic uint64_t lost = 0;
    struct patcher patchers[2] = {{block, code, &lost},
                                  {block, code + SUPPORT_FUNCTION_BYTES, &lost}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        threads[i] = start(patch_and_check, &patchers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(lost, 0);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

/* ---- Watching the mappings ---- */

struct watch {
    _Atomic bool stop;
    _Atomic uint64_t looks;
    _Atomic uint64_t dangerous;
};

static void *watch_mappings(void *user)
{
    struct watch *watch = user;
    while (!watch->stop) {
        if (support_any_writable_executable())
            watch->dangerous++;
        watch->looks++;
    }
    return NULL;
}

static void do_all_there_is(struct code_space *space, int round)
{
    uint8_t *code;
    struct code_block *block = support_loaded(space, 300, round % 100, &code);
    struct code_veneer veneer;
    ck_assert_ok(code_block_add_veneer(block, CODE_VENEER_PLAIN, number(code), &veneer, NULL));
    ck_assert_ok(code_block_publish(block, block, NULL));
    for (int i = 0; i < 20; i++) {
        uint8_t *function = code + i * 10 * SUPPORT_FUNCTION_BYTES;
        support_patch(block, function, i);
        ck_assert_int_eq(support_call(function), i);
    }
    uint8_t bytes[300];
    memcpy(bytes, code, sizeof bytes);
    ck_assert_ok(code_block_write(block, number(code), bytes, sizeof bytes, NULL));
    code_block_destroy(block);
}

static void watch_while_working(enum cairn_code_mode mode)
{
    struct code_space *space = support_space(mode, 0, 0);
    struct watch watch = {.looks = 0};
    pthread_t watcher = start(watch_mappings, &watch);
    for (int round = 0; round < 200 || watch.looks < 200; round++)
        do_all_there_is(space, round);
    watch.stop = true;
    pthread_join(watcher, NULL);
    ck_assert_uint_eq(watch.dangerous, 0);
    code_space_destroy(space);
}

START_TEST(no_page_is_ever_writable_and_executable) { watch_while_working(support_modes[_i]); }
END_TEST

static void *create_spaces(void *user)
{
    struct watch *watch = user;
    while (watch->looks < 200) {
        code_space_destroy(support_space(CAIRN_CODE_MODE_DUAL, 0, 0));
        code_space_destroy(support_space(CAIRN_CODE_MODE_SINGLE, 0, 0));
    }
    return NULL;
}

START_TEST(nor_while_spaces_are_made_and_tested)
{
    struct watch watch = {.looks = 0};
    pthread_t watcher = start(watch_mappings, &watch);
    create_spaces(&watch);
    watch.stop = true;
    pthread_join(watcher, NULL);
    ck_assert_uint_eq(watch.dangerous, 0);
}
END_TEST

START_TEST(the_watch_counts_what_happens)
{
    ck_assert(!support_any_writable_executable());
    void *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return; /* refused by the system itself */
    ck_assert(support_any_writable_executable());
    munmap(page, page_size());
    ck_assert(!support_any_writable_executable());
}
END_TEST

/* ---- How many mappings there are ---- */

static size_t mappings_after_patching(enum cairn_code_mode mode, size_t pages, size_t patches)
{
    uint64_t random = support_seed();
    struct code_space *space = support_space(mode, 0, 0);
    size_t functions = pages * page_size() / SUPPORT_FUNCTION_BYTES;
    uint8_t *code;
    struct code_block *block = support_loaded(space, functions, 0, &code);
    size_t before = support_count_mappings();
    for (size_t i = 0; i < patches; i++) {
        size_t page = support_random(&random) % pages;
        support_patch(block, code + page * page_size(), 7);
    }
    size_t more = support_count_mappings() - before;
    code_block_destroy(block);
    code_space_destroy(space);
    return more;
}

START_TEST(patching_adds_no_mappings)
{
    ck_assert_uint_le(mappings_after_patching(support_modes[_i], 1, 300), 2);
    ck_assert_uint_le(mappings_after_patching(support_modes[_i], 300, 2000), 2);
}
END_TEST

static void count_without_dontunmap(void *user)
{
    (void)user;
    const struct support_refusal refusal = {SYS_mremap, EINVAL, 3, MREMAP_DONTUNMAP,
                                            MREMAP_DONTUNMAP};
    support_refuse(&refusal, 1);
    support_expect(mappings_after_patching(CAIRN_CODE_MODE_SINGLE, 1, 300) <= 2);
    support_expect(mappings_after_patching(CAIRN_CODE_MODE_SINGLE, 100, 600) <= 2);
}

START_TEST(patching_adds_no_mappings_on_kernels_that_always_unmap)
{
    support_in_child(count_without_dontunmap, NULL);
}
END_TEST

START_TEST(loaded_modules_need_few_mappings)
{
    enum { MODULES = 200 };
    struct code_block *blocks[MODULES];
    struct code_space *space = support_space(support_modes[_i], 0, 0);
    size_t before = support_count_mappings();
    for (int i = 0; i < MODULES; i++) {
        void *address;
        blocks[i] = support_block(space);
        support_functions(blocks[i], 1, i);
        ck_assert_ok(code_block_allocate(blocks[i], PAGES_FOR_READ_ONLY, 64, 8, &address, NULL));
        memset(address, 1, 64);
        ck_assert_ok(code_block_allocate(blocks[i], PAGES_FOR_DATA, 64, 8, &address, NULL));
        memset(address, 1, 64);
        ck_assert_ok(code_block_protect(blocks[i], NULL));
    }
    ck_assert_uint_le(support_count_mappings(), before + 10);
    for (int i = 0; i < MODULES; i++)
        code_block_destroy(blocks[i]);
    /* Spare pages of data stay mapped, and in dual mapping those of code. */
    ck_assert_uint_le(support_count_mappings(), before + 8);
    code_space_destroy(space);
}
END_TEST

/* ---- Loaders and lookups at once ---- */

enum { LOADERS = 3 };

struct loading {
    struct code_space *space;
    _Atomic uint64_t published; /* an address that `loading` owned a moment ago */
    _Atomic bool stop;
    _Atomic uint64_t lookups;
    _Atomic uint64_t wrong;
};

static void *load_and_unload(void *user)
{
    struct loading *loading = user;
    for (int i = 0; i < 150; i++) {
        uint8_t *code;
        struct code_block *block = support_loaded(loading->space, 300, i, &code);
        if (code_space_find_owner(loading->space, number(code)) != NULL)
            loading->wrong++;
        ck_assert_ok(code_block_publish(block, loading, NULL));
        loading->published = number(code) + 5000;
        if (code_space_find_owner(loading->space, number(code) + 5000) != loading ||
            support_call(code) != i)
            loading->wrong++;
        code_block_retire(block);
        if (code_space_find_owner(loading->space, number(code)) != NULL)
            loading->wrong++;
        code_block_destroy(block);
    }
    return NULL;
}

static void look_up_once(struct loading *loading)
{
    void *owner = code_space_find_owner(loading->space, loading->published);
    if (owner != NULL && owner != loading)
        loading->wrong++;
    loading->lookups++;
}

static void *look_up(void *user)
{
    struct loading *loading = user;
    while (!loading->stop)
        look_up_once(loading);
    return NULL;
}

static struct loading *looked_up_by_signal;

static void look_up_in_handler(int signal_number)
{
    (void)signal_number;
    look_up_once(looked_up_by_signal);
}

static void start_timer(long microseconds)
{
    struct itimerval interval = {{0, microseconds}, {0, microseconds}};
    ck_assert_int_eq(setitimer(ITIMER_REAL, &interval, NULL), 0);
}

START_TEST(loaders_and_lookups_do_not_disturb_each_other)
{
    struct loading loading = {.space = support_space(support_modes[_i], 64 * page_size(), 0)};
    looked_up_by_signal = &loading;
    struct sigaction action = {.sa_handler = look_up_in_handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    start_timer(500);
    pthread_t looker = start(look_up, &loading);
    pthread_t loaders[LOADERS];
    for (int i = 0; i < LOADERS; i++)
        loaders[i] = start(load_and_unload, &loading);
    for (int i = 0; i < LOADERS; i++)
        pthread_join(loaders[i], NULL);
    loading.stop = true;
    pthread_join(looker, NULL);
    start_timer(0);
    ck_assert_uint_eq(loading.wrong, 0);
    ck_assert_uint_gt(loading.lookups, 0);
    struct cairn_runtime_statistics statistics = support_statistics(loading.space);
    ck_assert_uint_eq(statistics.free_bytes, statistics.slab_count * statistics.slab_size_bytes);
    ck_assert_uint_le(statistics.slab_count, LOADERS);
    code_space_destroy(loading.space);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("code: threads");
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, running_threads_see_whole_patches_in_order, 0, support_mode_count());
    tcase_add_loop_test(tests, two_patchers_of_one_page_lose_nothing, 0, support_mode_count());
    tcase_add_loop_test(tests, no_page_is_ever_writable_and_executable, 0, support_mode_count());
    tcase_add_test(tests, the_watch_counts_what_happens);
    tcase_add_loop_test(tests, patching_adds_no_mappings, 0, support_mode_count());
    tcase_add_loop_test(tests, loaded_modules_need_few_mappings, 0, support_mode_count());
    tcase_add_loop_test(tests, loaders_and_lookups_do_not_disturb_each_other, 0,
                        support_mode_count());
    if (!support_is_emulated()) {
        tcase_add_test(tests, running_threads_see_whole_patches_of_fresh_pages);
        tcase_add_test(tests, nor_while_spaces_are_made_and_tested);
        tcase_add_test(tests, patching_adds_no_mappings_on_kernels_that_always_unmap);
    }
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
