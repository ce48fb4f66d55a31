/*
 * Tests of lists of 4096 changes: what is wrong with one of them refuses all. Also tests of lists
 * and of single sites when the kernel refuses a barrier, a page or memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/site_support.h"

#include "runtime_support.h"
#include "tests/code_support.h"
#include "tests/machine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Functions like those of site_support.h, each with a null patch point of 16 bytes. The last
 * function is alone in the last page. */
enum {
    COUNT = 4096,
    LAST = COUNT - 1,
    STRIDE = 64,
    PAGE = 4096,
    CODE_BYTES = COUNT * STRIDE + 2 * PAGE,
    REGION_BYTES = 16,
    /* After all functions there is one that returns 2, and one that returns 1. */
    NEAR_TWO = CODE_BYTES - 32,
    NEAR_ONE = CODE_BYTES - 64
};

struct crowd {
    enum cairn_code_mode mode;
    cairn_runtime *runtime;
    cairn_module *module;
    uint8_t *code;
    uint8_t *before; /* the code before any change */
    /* The list of changes: space for all sites of two crowds. */
    struct cairn_site_change *changes;
    size_t count;
};

static uint32_t function_offset(uint32_t index)
{
    return index * STRIDE + (index == LAST ? PAGE : 0);
}

static uint32_t tail_offset(uint32_t index)
{
    return function_offset(index) + machine_enter_bytes + REGION_BYTES;
}

static void write_crowd(uint8_t *bytes)
{
    const struct cairn_arch *arch = arch_host();
    arch->fill_nops(arch, bytes, CODE_BYTES);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint8_t *tail = bytes + tail_offset(i);
        size_t size = machine_enter(bytes + function_offset(i));
        arch->fill_nops(arch, bytes + function_offset(i) + size, REGION_BYTES);
        machine_return(tail + machine_leave_frame(tail));
    }
    arch->encode_self_test(arch, 1, bytes + NEAR_ONE);
    arch->encode_self_test(arch, 2, bytes + NEAR_TWO);
}

static void load_crowd(struct crowd *crowd)
{
    static struct site_function functions[COUNT];
    static struct site_record records[COUNT];
    struct cairn_error error;
    crowd->before = malloc(CODE_BYTES);
    for (uint32_t i = 0; i < COUNT; i++) {
        functions[i] = (struct site_function){function_offset(i), 1};
        records[i] =
            (struct site_record){i, machine_enter_bytes, REGION_BYTES, CAIRN_RECORD_PATCHPOINT};
    }
    write_crowd(crowd->before);
    const struct site_code code = {crowd->before, CODE_BYTES, functions, COUNT, records, 0};
    crowd->module = site_load_code(crowd->runtime, &code, &crowd->code);
    ck_assert_uint_eq(support_site_count(crowd->module), COUNT);
    ck_assert_done(cairn_module_publish(crowd->module, &error), error);
    memcpy(crowd->before, crowd->code, CODE_BYTES);
    crowd->changes = malloc(2 * COUNT * sizeof *crowd->changes);
    crowd->count = 0;
}

static void create_crowd(struct crowd *crowd, enum cairn_code_mode mode)
{
    crowd->mode = mode;
    crowd->runtime = site_runtime(mode);
    load_crowd(crowd);
}

static void destroy_crowd(struct crowd *crowd)
{
    cairn_module_retire(crowd->module);
    cairn_runtime_destroy(crowd->runtime);
    free(crowd->before);
    free(crowd->changes);
}

static cairn_site *site_of(const struct crowd *crowd, uint32_t index)
{
    return cairn_module_site(crowd->module, index);
}

static const uint8_t *near_two(const struct crowd *crowd) { return crowd->code + NEAR_TWO; }

/* Counts the functions that return the value. */
static uint32_t count_results(const struct crowd *crowd, long value)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        long (*function)(void) = (long (*)(void))(uintptr_t)(crowd->code + function_offset(i));
        count += function() == value;
    }
    return count;
}

static bool is_unchanged(const struct crowd *crowd)
{
    return memcmp(crowd->code, crowd->before, CODE_BYTES) == 0;
}

/* Adds a change to the list. */
static void note(struct crowd *crowd, cairn_site *site, enum cairn_site_state kind,
                 const void *target)
{
    crowd->changes[crowd->count++] = (struct cairn_site_change){site, kind, target};
}

static void note_calls(struct crowd *crowd, uint32_t count, const void *target)
{
    for (uint32_t i = 0; i < count; i++)
        note(crowd, site_of(crowd, i), CAIRN_SITE_CALL, target);
}

/* Makes the changes of the list, and empties it on success. */
static enum cairn_status make_changes(struct crowd *crowd, enum cairn_strength strength,
                                      struct cairn_error *error)
{
    enum cairn_status status = cairn_sites_change(crowd->changes, crowd->count, strength, error);
    if (status == CAIRN_OK)
        crowd->count = 0;
    return status;
}

/* ---- Changing all of them ---- */

static const enum cairn_strength strengths[] = {CAIRN_RELAXED, CAIRN_SYNC};

START_TEST(all_4096_sites_do_the_new_thing)
{
    struct crowd crowd;
    struct cairn_error error;
    enum cairn_strength strength = strengths[_i % 2];
    create_crowd(&crowd, site_modes[_i / 2]);
    ck_assert_uint_eq(count_results(&crowd, 0), COUNT);
    note_calls(&crowd, COUNT, near_two(&crowd));
    ck_assert(is_unchanged(&crowd));
    ck_assert_done(make_changes(&crowd, strength, &error), error);
    ck_assert_uint_eq(count_results(&crowd, 2), COUNT);
    note_calls(&crowd, COUNT, SITE_ONE);
    ck_assert_done(make_changes(&crowd, strength, &error), error);
    ck_assert_uint_eq(count_results(&crowd, 1), COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (i % 3 == 0)
            note(&crowd, site_of(&crowd, i), CAIRN_SITE_NOP, NULL);
        else if (i % 3 == 1)
            note(&crowd, site_of(&crowd, i), CAIRN_SITE_JUMP, crowd.code + tail_offset(i));
        else
            note(&crowd, site_of(&crowd, i), CAIRN_SITE_CALL, SITE_TWO);
    }
    ck_assert_done(make_changes(&crowd, strength, &error), error);
    ck_assert_uint_eq(count_results(&crowd, 2), COUNT / 3);
    ck_assert_uint_eq(count_results(&crowd, 0), COUNT - COUNT / 3);
    for (uint32_t i = 0; i < COUNT; i++)
        note(&crowd, site_of(&crowd, i), CAIRN_SITE_ORIGINAL, NULL);
    ck_assert_done(make_changes(&crowd, strength, &error), error);
    ck_assert(is_unchanged(&crowd));
    destroy_crowd(&crowd);
}
END_TEST

/* ---- An invalid last change ---- */

/* The last of 4096 changes is refused. Without it, the list is accepted. Returns the error. */
static struct cairn_error check_refused_last(struct crowd *crowd, enum cairn_status expected)
{
    struct cairn_error refused;
    struct cairn_error error;
    ck_assert_int_eq(cairn_sites_change(crowd->changes, COUNT, CAIRN_SYNC, &refused), expected);
    ck_assert_int_eq(refused.status, expected);
    ck_assert(is_unchanged(crowd));
    ck_assert_uint_eq(count_results(crowd, 0), COUNT);
    ck_assert_done(cairn_sites_change(crowd->changes, LAST, CAIRN_SYNC, &error), error);
    ck_assert_uint_eq(count_results(crowd, 2), LAST);
    ck_assert_int_eq(
        memcmp(crowd->code + function_offset(LAST), crowd->before + function_offset(LAST), STRIDE),
        0);
    destroy_crowd(crowd);
    return refused;
}

START_TEST(null_as_the_last_target_is_refused)
{
    struct crowd crowd;
    create_crowd(&crowd, site_modes[_i]);
    note_calls(&crowd, LAST, near_two(&crowd));
    note(&crowd, site_of(&crowd, LAST), CAIRN_SITE_CALL, NULL);
    check_refused_last(&crowd, CAIRN_ERROR_ARGUMENT);
}
END_TEST

START_TEST(null_as_the_last_site_is_refused)
{
    struct crowd crowd;
    create_crowd(&crowd, site_modes[_i]);
    note_calls(&crowd, LAST, near_two(&crowd));
    note(&crowd, NULL, CAIRN_SITE_NOP, NULL);
    check_refused_last(&crowd, CAIRN_ERROR_ARGUMENT);
}
END_TEST

START_TEST(unknown_kind_of_the_last_change_is_refused)
{
    struct crowd crowd;
    create_crowd(&crowd, site_modes[_i]);
    note_calls(&crowd, LAST, near_two(&crowd));
    note(&crowd, site_of(&crowd, LAST), (enum cairn_site_state)4, near_two(&crowd));
    check_refused_last(&crowd, CAIRN_ERROR_ARGUMENT);
}
END_TEST

START_TEST(site_that_is_also_the_last_one_is_refused_and_named)
{
    struct crowd crowd;
    create_crowd(&crowd, site_modes[_i]);
    note_calls(&crowd, LAST, near_two(&crowd));
    note(&crowd, site_of(&crowd, 77), CAIRN_SITE_NOP, NULL);
    struct cairn_error error = check_refused_last(&crowd, CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "site 77 "));
}
END_TEST

START_TEST(last_region_that_is_too_small_is_refused)
{
    struct crowd crowd;
    struct site_fixture small;
    uint8_t region[SITE_REGION_MAX];
    create_crowd(&crowd, site_modes[_i]);
    const struct site_shape shape = site_null_patchpoint(region, machine_region_too_small);
    site_load_into(&small, crowd.runtime, &shape);
    note_calls(&crowd, LAST, near_two(&crowd));
    note(&crowd, small.site, CAIRN_SITE_CALL, SITE_TWO);
    struct cairn_error error = check_refused_last(&crowd, CAIRN_ERROR_UNMANAGED);
    ck_assert_ptr_nonnull(strstr(error.message, machine_why_too_small));
}
END_TEST

START_TEST(last_site_of_another_runtime_is_refused)
{
    struct crowd crowd;
    struct site_fixture other;
    uint8_t region[SITE_REGION_MAX];
    create_crowd(&crowd, site_modes[_i]);
    const struct site_shape shape = site_null_patchpoint(region, 16);
    site_load(&other, site_modes[_i], &shape);
    note_calls(&crowd, LAST, near_two(&crowd));
    note(&crowd, other.site, CAIRN_SITE_CALL, SITE_TWO);
    struct cairn_error error = check_refused_last(&crowd, CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "another runtime"));
    ck_assert_int_eq(other.function(), 0);
    site_unload(&other);
}
END_TEST

/* ---- Refused lists ---- */

/* The list is refused, and no site has changed. */
static void check_refused(struct crowd *crowd, enum cairn_strength strength,
                          enum cairn_status expected)
{
    struct cairn_error error = {.status = CAIRN_OK};
    support_expect(make_changes(crowd, strength, &error) == expected);
    support_expect(error.status == expected && error.message[0] != '\0');
    support_expect(is_unchanged(crowd));
    support_expect(count_results(crowd, 0) == COUNT);
}

START_TEST(site_of_a_retired_module_is_changed_with_the_others)
{
    struct crowd crowd;
    struct site_fixture other;
    uint8_t region[SITE_REGION_MAX];
    create_crowd(&crowd, site_modes[_i]);
    const struct site_shape shape = site_null_patchpoint(region, 16);
    site_load_into(&other, crowd.runtime, &shape);
    note_calls(&crowd, COUNT, near_two(&crowd));
    note(&crowd, other.site, CAIRN_SITE_CALL, SITE_TWO);
    cairn_module_retire(other.module);
    struct cairn_error error;
    ck_assert_done(make_changes(&crowd, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(other.function(), 2);
    ck_assert_uint_eq(count_results(&crowd, 2), COUNT);
    destroy_crowd(&crowd);
}
END_TEST

/* Only the last target is out of reach. There is no memory for the changes, for finding repeated
 * sites, or for the last change's veneer. */
START_TEST(no_memory_refuses_all)
{
    struct crowd crowd;
    struct cairn_error error;
    struct support_allocator allocator = {.fail_at = 0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocator),
                                                  .code_mode = site_modes[_i]};
    ck_assert_done(cairn_runtime_create(&options, &crowd.runtime, &error), error);
    load_crowd(&crowd);
    note_calls(&crowd, LAST, near_two(&crowd));
    note(&crowd, site_of(&crowd, LAST), CAIRN_SITE_CALL, SITE_TWO);
    size_t before = allocator.calls;
    for (size_t failing = 1; failing <= 3; failing++) {
        allocator.fail_at = allocator.calls + failing;
        check_refused(&crowd, CAIRN_SYNC, CAIRN_ERROR_MEMORY);
        ck_assert_uint_gt(allocator.calls, before);
    }
    ck_assert_done(make_changes(&crowd, CAIRN_SYNC, &error), error);
    ck_assert_uint_eq(count_results(&crowd, 2), COUNT);
    destroy_crowd(&crowd);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
}
END_TEST

START_TEST(invalid_strength_refuses_all)
{
    struct crowd crowd;
    create_crowd(&crowd, site_modes[_i]);
    note_calls(&crowd, COUNT, near_two(&crowd));
    check_refused(&crowd, (enum cairn_strength)3, CAIRN_ERROR_ARGUMENT);
    destroy_crowd(&crowd);
}
END_TEST

/* ---- Errors of the kernel ---- */

static const struct support_refusal no_barrier = {.call = SYS_membarrier, .error = EPERM};

static void sites_without_barrier(void *user)
{
    struct crowd crowd;
    struct cairn_error error;
    support_refuse(&no_barrier, 1);
    create_crowd(&crowd, *(const enum cairn_code_mode *)user);
    support_expect(!support_runtime_statistics(crowd.runtime).can_synchronise);
    for (enum cairn_strength strength = CAIRN_SYNC; strength <= CAIRN_QUIESCENT; strength++) {
        cairn_site *site = site_of(&crowd, 0);
        support_expect(cairn_site_call(site, SITE_TWO, strength, &error) ==
                       CAIRN_ERROR_UNSUPPORTED);
        support_expect(strstr(error.message, "membarrier") != NULL);
        support_expect(cairn_site_jump(site, SITE_TWO, strength, NULL) == CAIRN_ERROR_UNSUPPORTED);
        support_expect(cairn_site_nop(site, strength, NULL) == CAIRN_ERROR_UNSUPPORTED);
        support_expect(cairn_site_restore(site, strength, NULL) == CAIRN_ERROR_UNSUPPORTED);
    }
    note_calls(&crowd, COUNT, near_two(&crowd));
    check_refused(&crowd, CAIRN_SYNC, CAIRN_ERROR_UNSUPPORTED);
    check_refused(&crowd, CAIRN_QUIESCENT, CAIRN_ERROR_UNSUPPORTED);
    support_expect(make_changes(&crowd, CAIRN_RELAXED, NULL) == CAIRN_OK);
    support_expect(count_results(&crowd, 2) == COUNT);
    destroy_crowd(&crowd);
}

START_TEST(without_a_barrier_no_mode_synchronises)
{
    enum cairn_code_mode mode = site_modes[_i];
    support_in_child(sites_without_barrier, &mode);
}
END_TEST

/* The barrier is available at first, and is refused after everything was written. */
static void barrier_is_refused_later(void *user)
{
    struct crowd crowd;
    struct cairn_error error;
    create_crowd(&crowd, *(const enum cairn_code_mode *)user);
    cairn_site *site = site_of(&crowd, 5);
    note_calls(&crowd, COUNT, near_two(&crowd));
    support_refuse(&no_barrier, 1);
    for (int times = 0; times < 2; times++) {
        support_expect(make_changes(&crowd, CAIRN_SYNC, NULL) == CAIRN_ERROR_SYSTEM);
        support_expect(count_results(&crowd, 2) == COUNT);
    }
    support_expect(cairn_site_nop(site, CAIRN_SYNC, &error) == CAIRN_ERROR_SYSTEM);
    support_expect(error.system_error == EPERM);
    support_expect(site_describe(site).state == CAIRN_SITE_NOP);
    support_expect(make_changes(&crowd, CAIRN_RELAXED, NULL) == CAIRN_OK);
    support_expect(count_results(&crowd, 2) == COUNT);
    destroy_crowd(&crowd);
}

START_TEST(changes_whose_barrier_is_refused_have_been_made)
{
    enum cairn_code_mode mode = site_modes[_i];
    support_in_child(barrier_is_refused_later, &mode);
}
END_TEST

static uint64_t page_of(const struct crowd *crowd, uint32_t index)
{
    return site_describe(site_of(crowd, index)).address & ~(uint64_t)(PAGE - 1);
}

/* The test makes mremap to a page's address fail. */
static struct support_refusal refuse_page(uint64_t page)
{
    enum { NEW_ADDRESS = 4 };
    return (struct support_refusal){.call = SYS_mremap,
                                    .error = ENOMEM,
                                    .argument = NEW_ADDRESS,
                                    .mask = ~(uint32_t)(PAGE - 1),
                                    .value = (uint32_t)page};
}

/* With a single mapping, the pages of the first and the last site cannot be replaced. */
static void pages_are_refused(void *user)
{
    struct crowd crowd;
    (void)user;
    create_crowd(&crowd, CAIRN_CODE_MODE_SINGLE);
    const struct support_refusal refusals[] = {refuse_page(page_of(&crowd, 0)),
                                               refuse_page(page_of(&crowd, LAST))};
    note_calls(&crowd, COUNT, near_two(&crowd));
    support_refuse(refusals, 2);
    check_refused(&crowd, CAIRN_SYNC, CAIRN_ERROR_SYSTEM);
    check_refused(&crowd, CAIRN_RELAXED, CAIRN_ERROR_SYSTEM);
    support_expect(cairn_site_call(site_of(&crowd, LAST), near_two(&crowd), CAIRN_SYNC, NULL) ==
                   CAIRN_ERROR_SYSTEM);
    support_expect(is_unchanged(&crowd));
    crowd.count = 0;
    uint32_t first = 0;
    while (page_of(&crowd, first) == page_of(&crowd, 0))
        first++;
    for (uint32_t i = first; i < LAST; i++)
        note(&crowd, site_of(&crowd, i), CAIRN_SITE_CALL, near_two(&crowd));
    support_expect(make_changes(&crowd, CAIRN_SYNC, NULL) == CAIRN_OK);
    support_expect(count_results(&crowd, 2) == LAST - first);
    destroy_crowd(&crowd);
}

START_TEST(pages_that_cannot_be_replaced_leave_all_sites_unchanged)
{
    support_in_child(pages_are_refused, NULL);
}
END_TEST

/* ---- All system calls fail after some call ---- */

static const long memory_calls[] = {SYS_mmap, SYS_mremap, SYS_mprotect, SYS_munmap, SYS_madvise};
static const long all_calls[] = {SYS_mmap,    SYS_mremap,     SYS_mprotect,     SYS_munmap,
                                 SYS_madvise, SYS_membarrier, SYS_memfd_create, SYS_ftruncate};

/* A thread that executes all sites in a loop. */
struct executing {
    const struct crowd *crowd;
    _Atomic bool stop;
    _Atomic uint32_t rounds;
    _Atomic uint32_t wrong;
};

static void *execute(void *user)
{
    struct executing *executing = user;
    while (!executing->stop) {
        for (uint32_t i = 0; i < COUNT; i++) {
            const uint8_t *code = executing->crowd->code + function_offset(i);
            long (*function)(void) = (long (*)(void))(uintptr_t)code;
            long result = function();
            executing->wrong += result < 0 || result > 2;
        }
        executing->rounds++;
    }
    return NULL;
}

/* Changes `count` sites, so that their functions return 2. */
struct operation {
    enum cairn_strength strength;
    uint32_t count;
    bool is_far;
    bool is_list;
};

static const struct operation operations[] = {
    {CAIRN_RELAXED, COUNT, false, true}, {CAIRN_SYNC, COUNT, false, true},
    {CAIRN_RELAXED, 700, true, true},    {CAIRN_SYNC, 700, true, true},
    {CAIRN_RELAXED, 1, false, false},    {CAIRN_SYNC, 1, true, false},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* Returns one of the sites, which are spread over the code if not all of them change. */
static cairn_site *changed_site(const struct crowd *crowd, const struct operation *operation,
                                uint32_t index)
{
    return site_of(crowd, index * (COUNT / operation->count));
}

static enum cairn_status change_sites(struct crowd *crowd, const struct operation *operation,
                                      struct cairn_error *error)
{
    const void *target = operation->is_far ? SITE_TWO : near_two(crowd);
    if (!operation->is_list)
        return cairn_site_call(changed_site(crowd, operation, 0), target, operation->strength,
                               error);
    return make_changes(crowd, operation->strength, error);
}

static void note_operation(struct crowd *crowd, const struct operation *operation)
{
    const void *target = operation->is_far ? SITE_TWO : near_two(crowd);
    crowd->count = 0;
    for (uint32_t i = 0; i < operation->count && operation->is_list; i++)
        note(crowd, changed_site(crowd, operation, i), CAIRN_SITE_CALL, target);
}

static void restore_sites(struct crowd *crowd, const struct operation *operation)
{
    crowd->count = 0;
    for (uint32_t i = 0; i < operation->count; i++)
        note(crowd, changed_site(crowd, operation, i), CAIRN_SITE_ORIGINAL, NULL);
    support_expect(make_changes(crowd, CAIRN_SYNC, NULL) == CAIRN_OK);
    support_expect(is_unchanged(crowd));
}

/* Tries the change with each number of granted system calls: either all sites are changed or none
 * is, because all pages are replaced by one call. If only the barrier was refused, they are.
 * Returns the number of calls that the change needs. */
static size_t change_with_refusals(struct crowd *crowd, const struct operation *operation,
                                   bool refuses_barrier)
{
    for (size_t granted = 0;; granted++) {
        struct cairn_error error = {.status = CAIRN_OK};
        note_operation(crowd, operation);
        support_refuse_after(granted);
        enum cairn_status status = change_sites(crowd, operation, &error);
        size_t calls = support_grant_all();
        support_expect(status == CAIRN_OK || (status == error.status && error.message[0] != '\0'));
        bool is_made = count_results(crowd, 2) == operation->count;
        bool has_barrier = refuses_barrier && operation->strength != CAIRN_RELAXED;
        support_expect(is_made || (status != CAIRN_OK && is_unchanged(crowd)));
        support_expect(status == CAIRN_OK || !is_made ||
                       (has_barrier && strstr(error.message, "barrier") != NULL));
        support_expect(status == CAIRN_OK || calls > granted);
        if (is_made)
            restore_sites(crowd, operation);
        if (calls <= granted)
            return calls;
    }
}

struct refusing {
    enum cairn_code_mode mode;
    bool refuses_barrier;
};

static void refuse_from_every_call_on(void *user)
{
    const struct refusing *refusing = user;
    struct crowd crowd;
    struct executing executing = {.crowd = &crowd};
    pthread_t thread;
    bool can_watch =
        refusing->refuses_barrier
            ? support_watch_calls(all_calls, sizeof all_calls / sizeof *all_calls)
            : support_watch_calls(memory_calls, sizeof memory_calls / sizeof *memory_calls);
    if (!can_watch)
        return;
    create_crowd(&crowd, refusing->mode);
    support_expect(pthread_create(&thread, NULL, execute, &executing) == 0);
    while (executing.rounds == 0)
        sched_yield();
    for (int i = 0; i < OPERATIONS; i++) {
        size_t calls = change_with_refusals(&crowd, &operations[i], refusing->refuses_barrier);
        support_expect(calls > 0 || refusing->mode == CAIRN_CODE_MODE_DUAL);
    }
    executing.stop = true;
    pthread_join(thread, NULL);
    support_expect(executing.wrong == 0);
    destroy_crowd(&crowd);
}

START_TEST(refusals_from_any_call_on_change_all_sites_or_none)
{
    struct refusing refusing = {site_modes[_i % 2], _i / 2 == 1};
    support_in_child(refuse_from_every_call_on, &refusing);
}
END_TEST

/* ---- Several slabs ---- */

/* Two modules in two slabs; with a single mapping, the pages of one of them cannot be replaced. The
 * changes before it have been made. */
static void one_of_two_slabs_is_refused(void *user)
{
    enum { SLAB_BYTES = 512 << 10 };
    const int *refused = user;
    struct crowd crowds[2] = {{.mode = CAIRN_CODE_MODE_SINGLE}, {.mode = CAIRN_CODE_MODE_SINGLE}};
    struct cairn_runtime_statistics statistics;
    struct cairn_error error;
    const struct cairn_runtime_options options = {.slab_size = SLAB_BYTES,
                                                  .code_mode = CAIRN_CODE_MODE_SINGLE};
    support_expect(cairn_runtime_create(&options, &crowds[0].runtime, &error) == CAIRN_OK);
    crowds[1].runtime = crowds[0].runtime;
    load_crowd(&crowds[0]);
    load_crowd(&crowds[1]);
    cairn_runtime_statistics(crowds[0].runtime, &statistics);
    support_expect(statistics.slab_count == 2);
    note_calls(&crowds[0], COUNT, near_two(&crowds[0]));
    for (uint32_t i = 0; i < COUNT; i++)
        note(&crowds[0], site_of(&crowds[1], i), CAIRN_SITE_CALL, near_two(&crowds[1]));
    if (*refused < 2) {
        const struct support_refusal refusal = refuse_page(page_of(&crowds[*refused], 0));
        support_refuse(&refusal, 1);
        support_expect(make_changes(&crowds[0], CAIRN_SYNC, &error) == CAIRN_ERROR_SYSTEM);
        support_expect(count_results(&crowds[0], 2) == (*refused == 0 ? 0 : COUNT));
        support_expect(is_unchanged(&crowds[1]));
    } else {
        support_expect(make_changes(&crowds[0], CAIRN_SYNC, &error) == CAIRN_OK);
        support_expect(count_results(&crowds[0], 2) == COUNT);
        support_expect(count_results(&crowds[1], 2) == COUNT);
    }
}

START_TEST(refusal_in_one_of_two_slabs_leaves_the_changes_before_it)
{
    support_in_child(one_of_two_slabs_is_refused, &_i);
}
END_TEST

int main(void)
{
    const TTest *both[] = {
        null_as_the_last_target_is_refused,
        null_as_the_last_site_is_refused,
        unknown_kind_of_the_last_change_is_refused,
        site_that_is_also_the_last_one_is_refused_and_named,
        last_region_that_is_too_small_is_refused,
        last_site_of_another_runtime_is_refused,
        site_of_a_retired_module_is_changed_with_the_others,
        no_memory_refuses_all,
        invalid_strength_refuses_all,
    };
    Suite *suite = suite_create("lists of changes");
    TCase *tests = tcase_create("lists");
    int first_mode = site_first_mode();
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, all_4096_sites_do_the_new_thing, 2 * first_mode, 2 * SITE_MODES);
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        tcase_add_loop_test(tests, both[i], first_mode, SITE_MODES);
    if (support_can_refuse()) {
        tcase_add_loop_test(tests, refusals_from_any_call_on_change_all_sites_or_none, 0,
                            2 * SITE_MODES);
        tcase_add_loop_test(tests, changes_whose_barrier_is_refused_have_been_made, 0, SITE_MODES);
        tcase_add_loop_test(tests, without_a_barrier_no_mode_synchronises, 0, SITE_MODES);
        tcase_add_loop_test(tests, refusal_in_one_of_two_slabs_leaves_the_changes_before_it, 0, 3);
        tcase_add_test(tests, pages_that_cannot_be_replaced_leave_all_sites_unchanged);
    }
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
