/*
 * check_code_views.c - the views of dual mapping: the executed view is never writable, and there
 * are few mappings, whatever is loaded and released.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/state.h"
#include "code_support.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DATA_BYTES = 40, BLOCKS_MAX = 4000 };

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* ---- Modules ---- */

static void fill(uint8_t *code, int value)
{
    arch_host()->fill_nops(arch_host(), code, SUPPORT_FUNCTION_BYTES);
    arch_host()->encode_self_test(arch_host(), value, code);
}

/* Loads a function, a constant and a variable as an object's. Returns the function. */
static uint8_t *load_reserved(struct code_block *block, int value)
{
    static const enum page_use kinds[] = {PAGES_FOR_READ_ONLY, PAGES_FOR_DATA};
    struct code_place place;
    support_expect(code_block_reserve(block, PAGES_FOR_CODE, SUPPORT_FUNCTION_BYTES, 16, &place,
                                      NULL) == CAIRN_OK);
    uint8_t *function = (uint8_t *)(uintptr_t)place.address;
    fill(place.bytes, value);
    for (int i = 0; i < 2; i++) {
        support_expect(code_block_reserve(block, kinds[i], DATA_BYTES, 8, &place, NULL) ==
                       CAIRN_OK);
        memset(place.bytes, value, DATA_BYTES);
    }
    return function;
}

/* The same as MCJIT does it: everything is written to the address of its use. */
static uint8_t *load_in_place(struct code_block *block, int value)
{
    static const enum page_use kinds[] = {PAGES_FOR_READ_ONLY, PAGES_FOR_DATA};
    uint8_t *function = support_functions(block, 1, value);
    for (int i = 0; i < 2; i++) {
        void *data;
        support_expect(code_block_allocate(block, kinds[i], DATA_BYTES, 8, &data, NULL) ==
                       CAIRN_OK);
        memset(data, value, DATA_BYTES);
    }
    return function;
}

typedef uint8_t *load_function(struct code_block *block, int value);
static load_function *const ways[] = {load_reserved, load_in_place};

static struct code_block *load(struct code_space *space, load_function *way, int value)
{
    struct code_block *block = support_block(space);
    uint8_t *function = way(block, value);
    support_expect(code_block_protect(block, NULL) == CAIRN_OK);
    support_expect(code_block_publish(block, block, NULL) == CAIRN_OK);
    support_expect(support_call(function) == value);
    return block;
}

/* ---- What is mapped ---- */

struct inspection {
    const struct code_slab *slab;
    size_t executable; /* mappings of the executed view */
};

/* In the slab, what is executable is shared, and what is shared is not writable: so no page of the
 * executed view is. Outside of it, no view is executable. */
static bool inspect(const struct support_mapping *mapping, void *user)
{
    struct inspection *inspection = user;
    uint64_t base = (uint64_t)(uintptr_t)inspection->slab->base;
    bool is_in_slab = mapping->start < base + inspection->slab->size && mapping->end > base;
    support_expect(!mapping->writable || !mapping->executable);
    if (is_in_slab && mapping->shared)
        support_expect(!mapping->writable);
    if (is_in_slab && mapping->executable)
        support_expect(mapping->shared);
    inspection->executable += is_in_slab && mapping->executable;
    return true;
}

static void expect_safe_views(const struct code_slab *slab)
{
    struct inspection inspection = {.slab = slab};
    support_each_mapping(inspect, &inspection);
    support_expect(inspection.executable > 0);
}

/* ---- The life of a process ---- */

static struct code_space *create(void)
{
    return support_space(CAIRN_CODE_MODE_DUAL, 1024 * page_size(), 1);
}

/* Loads, changes, calls, fills the slab, releases and reuses; inspects after every step. */
static void live(struct code_space *space)
{
    const struct code_slab *slab = space->slabs;
    struct code_veneer veneer;
    struct code_place place;
    for (int way = 0; way < 2; way++) {
        struct code_block *block = support_block(space);
        uint8_t *function = ways[way](block, 1);
        expect_safe_views(slab);
        support_expect(code_block_protect(block, NULL) == CAIRN_OK);
        expect_safe_views(slab);
        support_patch(block, function, 2);
        support_expect(support_call(function) == 2);
        support_expect(code_block_add_veneer(block, CODE_VENEER_PLAIN, 1, &veneer, NULL) ==
                       CAIRN_OK);
        expect_safe_views(slab);
        struct code_block *abandoned = support_block(space);
        ways[way](abandoned, 3);
        code_block_destroy(abandoned);
        expect_safe_views(slab);
        code_block_destroy(block);
        code_space_clean(space);
        expect_safe_views(slab);
    }
    /* Pages of code become pages of data, and code again. */
    for (int i = 0; i < 3; i++) {
        struct code_block *block = support_block(space);
        enum page_use use = i == 1 ? PAGES_FOR_DATA : PAGES_FOR_CODE;
        support_expect(code_block_reserve(block, use, 1000 * page_size(), 16, &place, NULL) ==
                       CAIRN_OK);
        support_expect(code_block_protect(block, NULL) == CAIRN_OK);
        if (i != 1)
            expect_safe_views(slab);
        code_block_destroy(block);
    }
}

START_TEST(executed_view_is_never_writable)
{
    struct code_space *space = create();
    live(space);
    code_space_destroy(space);
}
END_TEST

static void live_without_gaining_execution(void *user)
{
    (void)user;
    if (!support_forbid_gaining_execution())
        return;
    struct code_space *space = create();
    live(space);
    code_space_destroy(space);
}

/* The process ends if it asks for memory that is writable and executable, or for the right to
 * execute memory that is writable. */
START_TEST(no_memory_becomes_executable_that_is_writable)
{
    support_in_child(live_without_gaining_execution, NULL);
}
END_TEST

static void ask_for_both(void *user)
{
    (void)user;
    if (!support_forbid_gaining_execution())
        return;
    void *page =
        mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page, page_size(), PROT_READ | PROT_EXEC);
    _exit(0);
}

START_TEST(process_that_gains_execution_ends)
{
    int status;
    int child = fork();
    if (child == 0) {
        ask_for_both(NULL);
        _exit(2);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_ne(WEXITSTATUS(status), 0);
}
END_TEST

struct watch {
    const struct code_slab *slab;
    _Atomic bool ends;
    size_t samples;
};

static void *inspect_all_the_time(void *user)
{
    struct watch *watch = user;
    while (!watch->ends) {
        expect_safe_views(watch->slab);
        watch->samples++;
    }
    return NULL;
}

START_TEST(executed_view_is_not_writable_while_another_thread_loads)
{
    enum { ROUNDS = 300, KEPT = 20 };
    struct code_space *space = create();
    struct code_block *kept[KEPT] = {NULL};
    struct watch watch = {.slab = space->slabs};
    uint64_t random = support_seed();
    pthread_t thread;
    struct code_block *first = load(space, load_reserved, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, inspect_all_the_time, &watch), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct code_block **block = &kept[support_random(&random) % KEPT];
        code_block_destroy(*block);
        *block = load(space, ways[support_random(&random) % 2], i % 100);
        if (i % 16 == 0)
            code_space_clean(space);
    }
    watch.ends = true;
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    printf("%zu samples\n", watch.samples);
    for (int i = 0; i < KEPT; i++)
        code_block_destroy(kept[i]);
    code_block_destroy(first);
    code_space_destroy(space);
}
END_TEST

/* ---- The number of mappings ---- */

static void replace_half(struct code_space *space, struct code_block **blocks, int count,
                         load_function *way, uint64_t *random)
{
    for (int i = 0; i < count; i++)
        if (support_random(random) % 2 == 0) {
            code_block_destroy(blocks[i]);
            blocks[i] = NULL;
        }
    code_space_clean(space);
    for (int i = 0; i < count; i++)
        if (blocks[i] == NULL)
            blocks[i] = load(space, way, i % 1000);
}

/* Half of the modules are replaced at random, twice. */
START_TEST(modules_of_interleaved_lifetimes_need_few_mappings)
{
    enum { MAPPINGS = 16 };
    static struct code_block *blocks[BLOCKS_MAX];
    int count = _i == 0 ? BLOCKS_MAX : BLOCKS_MAX / 8;
    uint64_t random = support_seed();
    size_t before = support_count_mappings();
    struct code_space *space = support_space(CAIRN_CODE_MODE_DUAL, 0, 0);
    for (int i = 0; i < count; i++)
        blocks[i] = load(space, ways[_i], i % 1000);
    for (int round = 0; round < 2; round++) {
        replace_half(space, blocks, count, ways[_i], &random);
        ck_assert_uint_le(support_count_mappings(), before + MAPPINGS);
    }
    for (int i = 0; i < count; i++)
        code_block_destroy(blocks[i]);
    code_space_clean(space);
    ck_assert_uint_le(support_count_mappings(), before + MAPPINGS);
    ck_assert_uint_eq(support_statistics(space).code_bytes, 0);
    code_space_destroy(space);
}
END_TEST

START_TEST(loading_reserved_sections_usually_makes_no_system_call)
{
    enum { LOADED = 200, CALLS_MAX = 12 };
    static struct code_block *blocks[LOADED];
    static const long calls[] = {SYS_mmap,    SYS_munmap,   SYS_mremap,
                                 SYS_madvise, SYS_mprotect, SYS_membarrier};
    struct code_space *space = create();
    if (!support_watch_calls(calls, sizeof calls / sizeof *calls))
        return;
    support_refuse_after(SIZE_MAX);
    for (int i = 0; i < LOADED; i++)
        blocks[i] = load(space, load_reserved, i);
    ck_assert_uint_le(support_grant_all(), CALLS_MAX);
    for (int i = 0; i < LOADED; i++)
        code_block_destroy(blocks[i]);
    code_space_destroy(space);
}
END_TEST

static bool is_dual(void)
{
    struct code_space *space = support_space(CAIRN_CODE_MODE_AUTOMATIC, 0, 0);
    bool result = code_space_mode(space) == CAIRN_CODE_MODE_DUAL;
    code_space_destroy(space);
    return result;
}

int main(void)
{
    Suite *suite = suite_create("views");
    TCase *tests = tcase_create("views");
    if (!is_dual())
        return 77;
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, executed_view_is_never_writable);
    tcase_add_test(tests, no_memory_becomes_executable_that_is_writable);
    if (!support_is_sanitized())
        tcase_add_test(tests, process_that_gains_execution_ends);
    tcase_add_test(tests, executed_view_is_not_writable_while_another_thread_loads);
    tcase_add_loop_test(tests, modules_of_interleaved_lifetimes_need_few_mappings, 0, 2);
    tcase_add_test(tests, loading_reserved_sections_usually_makes_no_system_call);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
