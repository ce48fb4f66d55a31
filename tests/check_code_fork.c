/*
 * Tests of code memory in forked children: parent and child do not see each other's patches, and
 * the code of both keeps working.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code_support.h"
#include "fork_support.h"

#include "code/state.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static uint64_t number(const void *address) { return (uint64_t)(uintptr_t)address; }

struct fixture {
    struct code_space *space;
    struct code_block *block;
    uint8_t *code;
    uint64_t *data;
    struct code_veneer veneer;
};

/* Small, because for the shadow of larger slabs sanitizers map memory in munmap, which may be
 * refused. */
enum { SLAB_BYTES = 256 << 10 };

static void load(struct fixture *fixture, enum cairn_code_mode mode)
{
    fixture->space = support_space(mode, SLAB_BYTES, 0);
    fixture->block = support_block(fixture->space);
    fixture->code = support_functions(fixture->block, 200, 1);
    void *data;
    ck_assert_ok(code_block_allocate(fixture->block, PAGES_FOR_DATA, 8, 8, &data, NULL));
    fixture->data = data;
    *fixture->data = 7;
    ck_assert_ok(code_block_add_veneer(fixture->block, CODE_VENEER_PLAIN, number(fixture->code),
                                       &fixture->veneer, NULL));
    ck_assert_ok(code_block_protect(fixture->block, NULL));
    ck_assert_ok(code_block_publish(fixture->block, fixture, NULL));
}

static void unload(struct fixture *fixture)
{
    code_block_destroy(fixture->block);
    code_space_destroy(fixture->space);
}

static int call_veneer(const struct fixture *fixture)
{
    return support_call((const void *)(uintptr_t)fixture->veneer.address);
}

static bool try_patch(struct fixture *fixture, int value)
{
    uint8_t word[ARCH_WORD_BYTES_MAX];
    support_word(arch_host(), value, word);
    return code_block_write(fixture->block, number(fixture->code), word, arch_host()->word_bytes,
                            NULL) == CAIRN_OK;
}

static void child_patches(void *user)
{
    struct fixture *fixture = user;
    support_expect(code_space_is_own(fixture->space));
    support_expect(support_call(fixture->code) == 1);
    support_expect(try_patch(fixture, 50));
    support_expect(support_call(fixture->code) == 50);
    support_expect(support_call(fixture->code + SUPPORT_FUNCTION_BYTES) == 2);
    support_expect(call_veneer(fixture) == 50);
    support_expect(strcmp(support_protection(fixture->code), "r-x") == 0);
    support_expect(code_space_synchronise(fixture->space, NULL) == CAIRN_OK);
    *fixture->data = 8;
}

START_TEST(childs_patch_stays_in_the_child)
{
    struct fixture fixture;
    load(&fixture, support_modes[_i]);
    support_in_child(child_patches, &fixture);
    ck_assert_int_eq(support_call(fixture.code), 1);
    ck_assert_uint_eq(*fixture.data, 7);
    ck_assert(code_space_is_own(fixture.space));
    support_patch(fixture.block, fixture.code, 60);
    ck_assert_int_eq(support_call(fixture.code), 60);
    unload(&fixture);
}
END_TEST

struct pipes {
    int to_child[2];
    int to_parent[2];
};

static void open_pipes(struct pipes *pipes)
{
    ck_assert_int_eq(pipe(pipes->to_child), 0);
    ck_assert_int_eq(pipe(pipes->to_parent), 0);
}

static void signal_through(const int ends[2]) { support_expect(write(ends[1], "x", 1) == 1); }

static void wait_through(const int ends[2])
{
    char byte;
    support_expect(read(ends[0], &byte, 1) == 1);
}

static void watch_parent(struct fixture *fixture, const struct pipes *pipes)
{
    signal_through(pipes->to_parent);
    wait_through(pipes->to_child);
    support_expect(support_call(fixture->code) == 1);
    support_expect(call_veneer(fixture) == 1);
    _exit(0);
}

START_TEST(parents_later_patch_stays_in_the_parent)
{
    struct fixture fixture;
    struct pipes pipes;
    load(&fixture, support_modes[_i]);
    open_pipes(&pipes);
    pid_t child = fork();
    if (child == 0)
        watch_parent(&fixture, &pipes);
    wait_through(pipes.to_parent);
    support_patch(fixture.block, fixture.code, 77);
    atomic_store(fixture.veneer.slot, number(fixture.code + SUPPORT_FUNCTION_BYTES));
    signal_through(pipes.to_child);
    support_wait(child);
    ck_assert_int_eq(support_call(fixture.code), 77);
    ck_assert_int_eq(call_veneer(&fixture), 2);
    unload(&fixture);
}
END_TEST

static void grandchild_patches(void *user)
{
    struct fixture *fixture = user;
    support_expect(code_space_is_own(fixture->space));
    support_expect(support_call(fixture->code) == 50);
    support_expect(try_patch(fixture, 51));
    support_expect(support_call(fixture->code) == 51);
}

static void child_patches_and_forks(void *user)
{
    struct fixture *fixture = user;
    child_patches(user);
    pid_t child = fork();
    if (child == 0) {
        grandchild_patches(user);
        _exit(0);
    }
    support_wait(child);
    support_expect(support_call(fixture->code) == 50);
    support_expect(try_patch(fixture, 52));
    support_expect(support_call(fixture->code) == 52);
}

START_TEST(child_of_a_child_has_its_own_pages)
{
    struct fixture fixture;
    load(&fixture, support_modes[_i]);
    support_in_child(child_patches_and_forks, &fixture);
    ck_assert_int_eq(support_call(fixture.code), 1);
    unload(&fixture);
}
END_TEST

static void child_forks_before_it_patches(void *user)
{
    pid_t child = fork();
    if (child == 0) {
        child_patches(user);
        _exit(0);
    }
    support_wait(child);
    support_expect(support_call(((struct fixture *)user)->code) == 1);
}

START_TEST(child_that_only_forks_passes_it_on)
{
    struct fixture fixture;
    load(&fixture, support_modes[_i]);
    support_in_child(child_forks_before_it_patches, &fixture);
    ck_assert_int_eq(support_call(fixture.code), 1);
    unload(&fixture);
}
END_TEST

static void check_alias(void *user)
{
    struct fixture *fixture = user;
    uint8_t *before = code_block_writable_alias(fixture->block, number(fixture->code));
    support_expect(code_space_after_fork(fixture->space, NULL) == CAIRN_OK);
    uint8_t *alias = code_block_writable_alias(fixture->block, number(fixture->code));
    support_expect(alias == before);
    support_expect(strcmp(support_protection(alias), "rw-") == 0);
    support_word(arch_host(), 33, alias);
    support_expect(code_space_synchronise(fixture->space, NULL) == CAIRN_OK);
    support_expect(support_call(fixture->code) == 33);
}

START_TEST(alias_stays_where_it_is)
{
    struct fixture fixture;
    load(&fixture, CAIRN_CODE_MODE_DUAL);
    support_in_child(check_alias, &fixture);
    ck_assert_int_eq(support_call(fixture.code), 1);
    unload(&fixture);
}
END_TEST

/* A second call must have no effect. */
static void call_twice(void *user)
{
    struct fixture *fixture = user;
    support_expect(try_patch(fixture, 3));
    support_expect(code_space_after_fork(fixture->space, NULL) == CAIRN_OK);
    support_expect(support_call(fixture->code) == 3);
    support_expect(!support_any_writable_executable());
}

START_TEST(after_fork_is_done_once)
{
    struct fixture fixture;
    load(&fixture, support_modes[_i]);
    ck_assert_ok(code_space_after_fork(fixture.space, NULL));
    support_in_child(call_twice, &fixture);
    unload(&fixture);
}
END_TEST

/* ---- Loading and unloading in a child ---- */

static void load_and_unload(void *user)
{
    struct fixture *fixture = user;
    uint8_t *code;
    struct code_block *block = support_loaded(fixture->space, 300, 500, &code);
    support_expect(support_call(code) == 500);
    support_patch(block, code, 501);
    support_expect(support_call(code) == 501);
    code_block_destroy(fixture->block);
    support_expect(code_space_find_owner(fixture->space, number(fixture->code)) == NULL);
    code_block_destroy(block);
    struct cairn_runtime_statistics statistics = support_statistics(fixture->space);
    support_expect(statistics.free_bytes == statistics.slab_size_bytes);
    code_space_destroy(fixture->space);
}

static void destroy_at_once(void *user)
{
    struct fixture *fixture = user;
    unload(fixture);
}

START_TEST(child_unloads_without_the_parent_noticing)
{
    struct fixture fixture;
    load(&fixture, support_modes[_i]);
    support_in_child(load_and_unload, &fixture);
    support_in_child(destroy_at_once, &fixture);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(support_call(fixture.code + i * SUPPORT_FUNCTION_BYTES), i + 1);
    ck_assert_int_eq(call_veneer(&fixture), 1);
    ck_assert_ptr_eq(code_space_find_owner(fixture.space, number(fixture.code)), &fixture);
    unload(&fixture);
}
END_TEST

struct open_block {
    struct code_space *space;
    struct code_block *block;
    uint8_t *code;
};

static void finish_open_block(void *user)
{
    struct open_block *open = user;
    support_expect(code_space_after_fork(open->space, NULL) == CAIRN_OK);
    arch_host()->encode_self_test(arch_host(), 90, open->code);
    uint8_t *more = support_functions(open->block, 1, 91);
    support_expect(code_block_protect(open->block, NULL) == CAIRN_OK);
    support_expect(support_call(open->code) == 90);
    support_expect(support_call(more) == 91);
    code_block_destroy(open->block);
}

START_TEST(block_being_filled_continues_in_both)
{
    struct open_block open = {.space = support_space(support_modes[_i], 0, 0)};
    open.block = support_block(open.space);
    open.code = support_functions(open.block, 2, 10);
    support_in_child(finish_open_block, &open);
    ck_assert_ok(code_block_protect(open.block, NULL));
    ck_assert_int_eq(support_call(open.code), 10);
    ck_assert_int_eq(support_call(open.code + SUPPORT_FUNCTION_BYTES), 11);
    code_block_destroy(open.block);
    code_space_destroy(open.space);
}
END_TEST

/* ---- A fork while other threads work ---- */

struct worker {
    struct code_space *space;
    _Atomic bool stop;
};

static void *load_all_the_time(void *user)
{
    struct worker *worker = user;
    while (!worker->stop) {
        uint8_t *code;
        struct code_block *block = support_loaded(worker->space, 100, 1, &code);
        struct code_veneer veneer;
        support_expect(code_block_add_veneer(block, CODE_VENEER_PLAIN, number(code), &veneer,
                                             NULL) == CAIRN_OK);
        support_patch(block, code, 2);
        code_block_destroy(block);
    }
    return NULL;
}

START_TEST(fork_at_any_moment_leaves_a_child_that_works)
{
    struct fixture fixture;
    if (fork_breaks_the_allocator())
        return;
    load(&fixture, support_modes[_i]);
    struct worker worker = {.space = fixture.space};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, load_all_the_time, &worker), 0);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) {
            child_patches(&fixture);
            uint8_t *code;
            struct code_block *block = support_loaded(fixture.space, 100, 1, &code);
            support_expect(support_call(code + 99 * SUPPORT_FUNCTION_BYTES) == 100);
            code_block_destroy(block);
            _exit(0);
        }
        support_wait(child);
    }
    worker.stop = true;
    pthread_join(thread, NULL);
    ck_assert_int_eq(support_call(fixture.code), 1);
    unload(&fixture);
}
END_TEST

/* Makes a child for which no fork handlers run, as _Fork does. */
static void in_clone(void (*body)(void *user), void *user)
{
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0, 0, 0, 0);
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        body(user);
        _exit(0);
    }
    support_wait(child);
}

struct unfinished {
    struct code_space *space;
    uint8_t *page;
};

static void expect_no_rest(void *user)
{
    const struct unfinished *unfinished = user;
    support_expect(code_space_after_fork(unfinished->space, NULL) == CAIRN_OK);
    support_expect(strcmp(support_protection(unfinished->page), "---") == 0);
}

/* Simulates another thread that has mapped a page at the moment of the fork and not recorded it
 * yet. Fork handlers would wait for that thread. */
START_TEST(child_does_not_inherit_what_was_half_done)
{
    struct unfinished unfinished = {.space = support_space(support_modes[_i], 0, 0)};
    struct code_slab *slab = unfinished.space->slabs;
    size_t page;
    bool found;
    ck_assert_ok(slab_take_open(slab, PAGES_FOR_CODE, 1, &page, &found, NULL));
    ck_assert(found);
    unfinished.page = slab->base + page * slab->page_size;
    atomic_store(&slab->states[page], PAGE_FREE);
    in_clone(expect_no_rest, &unfinished);
    ck_assert_str_eq(support_protection(unfinished.page), "rw-");
    code_space_destroy(unfinished.space);
}
END_TEST

/* Patches back and forth while children copy the page: a child must see one of the two words,
 * whole. */
static void *patch_all_the_time(void *user)
{
    struct fixture *fixture = user;
    for (int i = 0; i < 20000 && fixture->data[0] == 7; i++)
        support_expect(try_patch(fixture, i % 2 == 0 ? 1 : 0x1FF));
    return NULL;
}

START_TEST(copy_of_a_page_being_patched_is_whole)
{
    struct fixture fixture;
    load(&fixture, support_modes[_i]);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, patch_all_the_time, &fixture), 0);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            support_expect(code_space_after_fork(fixture.space, NULL) == CAIRN_OK);
            int seen = support_call(fixture.code);
            support_expect(seen == 1 || seen == 0x1FF);
            _exit(0);
        }
        support_wait(child);
    }
    fixture.data[0] = 0;
    pthread_join(thread, NULL);
    unload(&fixture);
}
END_TEST

/* ---- When the system refuses ---- */

/* Expects a change to be refused because the code is the parent's. */
static void expect_shared(struct fixture *fixture)
{
    uint8_t word[ARCH_WORD_BYTES_MAX];
    struct cairn_error error = {0};
    support_word(arch_host(), 99, word);
    support_expect(code_block_write(fixture->block, number(fixture->code), word,
                                    arch_host()->word_bytes, &error) == CAIRN_ERROR_SYSTEM);
    support_expect(strstr(error.message, "cairn_runtime_after_fork") != NULL);
}

/* The child's code must still run, the parent's must be unchanged, and each change must be
 * refused. */
static void expect_refusal(struct fixture *fixture)
{
    struct cairn_error error = {0};
    support_expect(code_space_after_fork(fixture->space, &error) == CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == ENOMEM);
    support_expect(!code_space_is_own(fixture->space));
    support_expect(code_space_after_fork(fixture->space, &error) == CAIRN_ERROR_SYSTEM);
    expect_shared(fixture);
    support_expect(support_call(fixture->code) == 1);
    support_expect(call_veneer(fixture) == 1);
    support_expect(!support_any_writable_executable());
    unload(fixture);
}

static void child_without_mremap(void *user)
{
    const struct support_refusal refusals[] = {{.call = SYS_mremap, .error = ENOMEM}};
    support_refuse(refusals, 1);
    expect_refusal(user);
}

/* The child can make the copies, but cannot move them into place. */
static void child_without_moving(void *user)
{
    const struct support_refusal refusals[] = {
        {SYS_mremap, ENOMEM, 3, MREMAP_FIXED, MREMAP_FIXED},
    };
    support_refuse(refusals, 1);
    expect_refusal(user);
}

static void child_without_execution(void *user)
{
    const struct support_refusal refusals[] = {
        {SYS_mprotect, ENOMEM, 2, PROT_EXEC, PROT_EXEC},
        {SYS_mmap, ENOMEM, 2, PROT_EXEC, PROT_EXEC},
    };
    support_refuse(refusals, 2);
    expect_refusal(user);
}

static void child_without_shared_memory(void *user)
{
    const struct support_refusal refusals[] = {
        {.call = SYS_memfd_create, .error = ENOMEM},
        {SYS_mmap, ENOMEM, 3, MAP_SHARED, MAP_SHARED},
    };
    support_refuse(refusals, 2);
    expect_refusal(user);
}

START_TEST(child_that_cannot_have_pages_leaves_the_parents_alone)
{
    struct fixture fixture;
    load(&fixture, CAIRN_CODE_MODE_DUAL);
    in_clone(child_without_mremap, &fixture);
    in_clone(child_without_moving, &fixture);
    in_clone(child_without_execution, &fixture);
    in_clone(child_without_shared_memory, &fixture);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(support_call(fixture.code + i * SUPPORT_FUNCTION_BYTES), i + 1);
    support_patch(fixture.block, fixture.code, 4);
    ck_assert_int_eq(support_call(fixture.code), 4);
    unload(&fixture);
}
END_TEST

/* System calls that are refused from before the fork on. The child has no copy, or cannot put it
 * into place: it executes its parent's code and can change nothing. */
static const struct support_refusal at_fork[][2] = {
    {{.call = SYS_mmap, .error = ENOMEM}},
    {{SYS_mprotect, ENOMEM, 2, PROT_EXEC, PROT_EXEC}, {SYS_mmap, ENOMEM, 2, PROT_EXEC, PROT_EXEC}},
    {{.call = SYS_mremap, .error = ENOMEM}},
    {{SYS_mremap, ENOMEM, 3, MREMAP_FIXED, MREMAP_FIXED}},
    {{.call = SYS_memfd_create, .error = ENOMEM}, {SYS_mmap, ENOMEM, 3, MAP_SHARED, MAP_SHARED}},
};
enum { AT_FORK = sizeof at_fork / sizeof *at_fork };

static void fork_refused(void *user)
{
    const struct support_refusal *refusals = user;
    struct fixture fixture;
    load(&fixture, CAIRN_CODE_MODE_DUAL);
    support_refuse(refusals, refusals[1].call == 0 ? 1 : 2);
    pid_t child = fork();
    if (child == 0) {
        expect_refusal(&fixture);
        _exit(0);
    }
    support_wait(child);
    support_expect(try_patch(&fixture, 5) && support_call(fixture.code) == 5);
}

START_TEST(fork_that_gets_no_memory_leaves_a_child_that_changes_nothing)
{
    support_in_child(fork_refused, (void *)(uintptr_t)at_fork[_i]);
}
END_TEST

/* If readable memory would be executable, there is no copy. The copy would otherwise stay, because
 * its protection cannot be changed. */
static void fork_with_executable_memory(void *user)
{
    struct fixture fixture;
    (void)user;
    load(&fixture, CAIRN_CODE_MODE_DUAL);
    int before = personality(0xFFFFFFFF);
    support_refuse(at_fork[3], 1);
    support_expect(personality((unsigned long)before | READ_IMPLIES_EXEC) != -1);
    pid_t child = fork();
    support_expect(personality((unsigned long)before) != -1);
    if (child == 0) {
        support_expect(!support_any_writable_executable());
        expect_refusal(&fixture);
        _exit(0);
    }
    support_wait(child);
}

START_TEST(copy_is_never_writable_and_executable)
{
    support_in_child(fork_with_executable_memory, NULL);
}
END_TEST

/* The parent must unmap the copy for its children when the fork has finished. */
START_TEST(parent_keeps_no_copy)
{
    struct fixture fixture;
    load(&fixture, CAIRN_CODE_MODE_DUAL);
    support_in_child(child_patches, &fixture);
    size_t mappings = support_count_mappings();
    for (int i = 0; i < 20; i++)
        support_in_child(child_patches, &fixture);
    ck_assert_ptr_null(fixture.space->slabs->copy);
    ck_assert_uint_eq(support_count_mappings(), mappings);
    unload(&fixture);
}
END_TEST

/* ---- Many modules ---- */

enum { CROWD = 48, CROWD_FUNCTIONS = 300 };

/* Modules of several pages each, and the value of the first function of each. */
struct crowd {
    struct code_space *space;
    struct code_block *blocks[CROWD];
    uint8_t *code[CROWD];
    int values[CROWD];
    uint64_t random;
};

static void load_one(struct crowd *crowd, int i)
{
    crowd->values[i] = 1 + i;
    if (support_random(&crowd->random) % 2 == 0) {
        crowd->blocks[i] = support_loaded(crowd->space, CROWD_FUNCTIONS, 1 + i, &crowd->code[i]);
        return;
    }
    struct code_place place;
    struct code_block *block = support_block(crowd->space);
    size_t size = (size_t)CROWD_FUNCTIONS * SUPPORT_FUNCTION_BYTES;
    support_expect(code_block_reserve(block, PAGES_FOR_CODE, size, 64, &place, NULL) == CAIRN_OK);
    arch_host()->fill_nops(arch_host(), place.bytes, size);
    for (int function = 0; function < CROWD_FUNCTIONS; function++)
        arch_host()->encode_self_test(arch_host(), 1 + i + function,
                                      place.bytes + function * SUPPORT_FUNCTION_BYTES);
    support_expect(code_block_protect(block, NULL) == CAIRN_OK);
    crowd->blocks[i] = block;
    crowd->code[i] = (uint8_t *)(uintptr_t)place.address;
}

static void expect_crowd(const struct crowd *crowd)
{
    for (int i = 0; i < CROWD; i++) {
        support_expect(support_call(crowd->code[i]) == crowd->values[i]);
        for (int function = 1; function < CROWD_FUNCTIONS; function += 7)
            support_expect(support_call(crowd->code[i] + function * SUPPORT_FUNCTION_BYTES) ==
                           1 + i + function);
    }
}

static void change_crowd(struct crowd *crowd, int count)
{
    for (int step = 0; step < count; step++) {
        int i = (int)(support_random(&crowd->random) % CROWD);
        switch (support_random(&crowd->random) % 4) {
        case 0:
            code_block_destroy(crowd->blocks[i]);
            if (step % 2 == 0)
                code_space_clean(crowd->space);
            load_one(crowd, i);
            break;
        default:
            crowd->values[i] = 1 + (int)(support_random(&crowd->random) % 100);
            support_patch(crowd->blocks[i], crowd->code[i], crowd->values[i]);
        }
    }
}

static void change_in_child(void *user)
{
    struct crowd *crowd = user;
    expect_crowd(crowd);
    change_crowd(crowd, 30);
    expect_crowd(crowd);
}

static void change_in_generations(void *user)
{
    struct crowd *crowd = user;
    change_crowd(crowd, 5);
    support_in_child(change_in_child, crowd);
    expect_crowd(crowd);
    change_crowd(crowd, 5);
    support_in_child(change_in_child, crowd);
    support_expect(code_space_after_fork(crowd->space, NULL) == CAIRN_OK);
    change_crowd(crowd, 20);
    expect_crowd(crowd);
}

static void create_crowd(struct crowd *crowd, enum cairn_code_mode mode)
{
    *crowd = (struct crowd){.space = support_space(mode, 1024 * page_size(), 1),
                            .random = support_seed()};
    for (int i = 0; i < CROWD; i++)
        load_one(crowd, i);
}

static void destroy_crowd(struct crowd *crowd)
{
    for (int i = 0; i < CROWD; i++)
        code_block_destroy(crowd->blocks[i]);
    code_space_destroy(crowd->space);
}

START_TEST(random_changes_stay_in_their_generation)
{
    struct crowd crowd;
    create_crowd(&crowd, support_modes[_i]);
    for (int round = 0; round < 5; round++) {
        change_crowd(&crowd, 10);
        support_in_child(change_in_generations, &crowd);
        expect_crowd(&crowd);
        support_random(&crowd.random);
    }
    destroy_crowd(&crowd);
}
END_TEST

static const char *protection_of_written(const struct crowd *crowd, int i)
{
    return support_protection(code_block_writable_alias(crowd->blocks[i], number(crowd->code[i])));
}

static void change_one(void *user)
{
    struct crowd *crowd = user;
    support_patch(crowd->blocks[0], crowd->code[0], 99);
    crowd->values[0] = 99;
    expect_crowd(crowd);
    for (int i = 0; i < CROWD; i++)
        support_expect(strcmp(protection_of_written(crowd, i), "rw-") == 0);
}

START_TEST(child_has_both_views_of_all_code)
{
    struct crowd crowd;
    create_crowd(&crowd, CAIRN_CODE_MODE_DUAL);
    support_in_child(change_one, &crowd);
    expect_crowd(&crowd);
    destroy_crowd(&crowd);
}
END_TEST

static void change_everywhere(void *user)
{
    struct code_block **blocks = user;
    int before = (int)support_count_mappings();
    for (int i = 0; blocks[i] != NULL; i++) {
        struct memory_range range;
        support_expect(code_block_memory_range(blocks[i], 0, &range));
        support_patch(blocks[i], (uint8_t *)(uintptr_t)range.address, 77);
        support_expect(support_call((void *)(uintptr_t)range.address) == 77);
        support_expect((int)support_count_mappings() < before + 20);
    }
}

START_TEST(child_and_its_changes_need_few_mappings)
{
    enum { BLOCKS = 300, STEP = 64 << 10 };
    struct code_space *space = support_space(CAIRN_CODE_MODE_DUAL, 0, 1);
    struct code_block *blocks[BLOCKS + 1] = {NULL};
    for (int i = 0; i < BLOCKS; i++) {
        struct code_place place;
        blocks[i] = support_block(space);
        ck_assert_ok(code_block_reserve(blocks[i], PAGES_FOR_CODE, STEP, 64, &place, NULL));
        arch_host()->encode_self_test(arch_host(), 1, place.bytes);
        ck_assert_ok(code_block_protect(blocks[i], NULL));
    }
    support_in_child(change_everywhere, blocks);
    for (int i = 0; i < BLOCKS; i++)
        code_block_destroy(blocks[i]);
    code_space_destroy(space);
}
END_TEST

/* ---- Without handlers ---- */

struct own_work {
    struct fixture *fixture;
    void (*body)(void *user);
};

static void make_own_and_work(void *user)
{
    const struct own_work *work = user;
    support_expect(!code_space_is_own(work->fixture->space));
    support_expect(code_space_after_fork(work->fixture->space, NULL) == CAIRN_OK);
    work->body(work->fixture);
}

static void change_nothing(void *user)
{
    struct fixture *fixture = user;
    struct code_block *block = support_block(fixture->space);
    void *memory;
    support_expect(!code_space_is_own(fixture->space));
    expect_shared(fixture);
    support_expect(code_block_allocate(block, PAGES_FOR_CODE, 8, 8, &memory, NULL) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(support_call(fixture->code) == 1);
    code_block_destroy(block);
    unload(fixture);
}

START_TEST(child_without_handlers_makes_its_code_its_own)
{
    static void (*const bodies[])(void *user) = {child_patches, child_patches_and_forks,
                                                 child_forks_before_it_patches, load_and_unload,
                                                 destroy_at_once};
    struct fixture fixture;
    load(&fixture, support_modes[_i]);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        in_clone(make_own_and_work, &(struct own_work){&fixture, bodies[i]});
    in_clone(change_nothing, &fixture);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(support_call(fixture.code + i * SUPPORT_FUNCTION_BYTES), i + 1);
    ck_assert_int_eq(call_veneer(&fixture), 1);
    unload(&fixture);
}
END_TEST

static void use_after_fork(void *user)
{
    struct fixture fixture;
    load(&fixture, *(const enum cairn_code_mode *)user);
    support_expect(code_space_is_own(fixture.space));
    support_expect(((const struct code_lookup *)fixture.space)->own_mark == NULL);
    pid_t child = fork();
    if (child == 0) {
        child_patches(&fixture);
        _exit(0);
    }
    support_wait(child);
    support_expect(support_call(fixture.code) == 1);
    unload(&fixture);
}

static void use_without_wiping(void *user)
{
    const struct support_refusal refusals[] = {
        {SYS_madvise, EINVAL, 2, UINT32_MAX, MADV_WIPEONFORK},
    };
    support_refuse(refusals, 1);
    use_after_fork(user);
}

START_TEST(fork_is_noticed_where_pages_are_not_wiped)
{
    enum cairn_code_mode mode = support_modes[_i];
    support_in_child(use_without_wiping, &mode);
}
END_TEST

static void use_with_advice_ignored(void *user)
{
    const struct support_refusal refusals[] = {
        {SYS_madvise, 0, 2, UINT32_MAX, MADV_WIPEONFORK},
    };
    support_refuse(refusals, 1);
    use_after_fork(user);
}

START_TEST(advice_that_is_always_taken_is_not_believed)
{
    enum cairn_code_mode mode = support_modes[_i];
    support_in_child(use_with_advice_ignored, &mode);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("code: fork");
    TCase *tests = tcase_create("fork");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, childs_patch_stays_in_the_child, 0, support_mode_count());
    tcase_add_loop_test(tests, parents_later_patch_stays_in_the_parent, 0, support_mode_count());
    tcase_add_loop_test(tests, child_of_a_child_has_its_own_pages, 0, support_mode_count());
    tcase_add_loop_test(tests, child_that_only_forks_passes_it_on, 0, support_mode_count());
    tcase_add_loop_test(tests, after_fork_is_done_once, 0, support_mode_count());
    tcase_add_loop_test(tests, child_unloads_without_the_parent_noticing, 0, support_mode_count());
    tcase_add_loop_test(tests, block_being_filled_continues_in_both, 0, support_mode_count());
    tcase_add_loop_test(tests, fork_at_any_moment_leaves_a_child_that_works, 0,
                        support_mode_count());
    tcase_add_loop_test(tests, child_does_not_inherit_what_was_half_done, 0, support_mode_count());
    tcase_add_loop_test(tests, copy_of_a_page_being_patched_is_whole, 0, support_mode_count());
    tcase_add_loop_test(tests, child_without_handlers_makes_its_code_its_own, 0,
                        support_mode_count());
    tcase_add_loop_test(tests, random_changes_stay_in_their_generation, 0, support_mode_count());
    if (!support_is_emulated()) {
        tcase_add_test(tests, child_has_both_views_of_all_code);
        if (!support_is_sanitized())
            tcase_add_test(tests, child_and_its_changes_need_few_mappings);
        tcase_add_test(tests, alias_stays_where_it_is);
        tcase_add_test(tests, child_that_cannot_have_pages_leaves_the_parents_alone);
        tcase_add_loop_test(tests, fork_that_gets_no_memory_leaves_a_child_that_changes_nothing, 0,
                            AT_FORK);
        tcase_add_test(tests, parent_keeps_no_copy);
        tcase_add_test(tests, copy_is_never_writable_and_executable);
        tcase_add_loop_test(tests, fork_is_noticed_where_pages_are_not_wiped, 0, 2);
        tcase_add_loop_test(tests, advice_that_is_always_taken_is_not_believed, 0, 2);
    }
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
