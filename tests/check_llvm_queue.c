/*
 * Tests of queues: jobs are compiled in batches by other threads and installed as versions, errors
 * and cancellations are reported, and limits hold.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "llvm_engine_support.h"
#include "llvm/jobs.h"

#include <cairn/entry.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Functions to compile ---- */

enum { FUNCTIONS = 64 };

/* A function of the host, and what its jobs do. */
struct item {
    cairn_entry *entry;
    int value;        /* what the compiled version returns */
    const char *text; /* IR instead; %d becomes the value */
    bool fails;       /* `build` returns an error */
    bool gives_up;    /* `build` returns NULL without one */
    int32_t priority;
    uint32_t frame_limit;
    _Atomic unsigned built;
    unsigned order; /* in which it was built last */
    _Atomic unsigned done;
    _Atomic unsigned cancelled;
    struct cairn_error error;
    void *address;
};

static struct item items[FUNCTIONS];
static cairn_signature *signature; /* i64 (i64) */
static cairn_queue *queue;
static _Atomic unsigned build_count;

/* Builds wait while this is closed. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_closed;
    unsigned waiting;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pass_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    pthread_cond_broadcast(&gate.changed);
    while (gate.is_closed)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.waiting--;
    pthread_mutex_unlock(&gate.lock);
}

static void set_gate(bool is_closed)
{
    pthread_mutex_lock(&gate.lock);
    gate.is_closed = is_closed;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void wait_for_builder(void)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.waiting == 0)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static LLVMModuleRef build(LLVMContextRef own, void *user, struct cairn_error *error)
{
    struct item *item = user;
    char text[1024];
    pass_gate();
    item->built++;
    item->order = ++build_count;
    if (item->fails) {
        error->status = CAIRN_ERROR_RANGE;
        snprintf(error->message, sizeof error->message, "item %d fails", item->value);
    }
    if (item->fails || item->gives_up)
        return NULL;
    const char *format = item->text;
    if (format == NULL)
        format = "define i64 @f.%d(i64 %%x) {\n  ret i64 %d\n}\n";
    snprintf(text, sizeof text, format, item->value, item->value);
    return support_parse(own, text);
}

static void note(const struct cairn_queue_result *result, void *user)
{
    struct item *item = user;
    item->error = *result->error;
    item->address = result->address;
    item->cancelled += result->is_cancelled;
    item->done++;
}

static int64_t interpret(int64_t x) { return -x; }

static int64_t call_item(const struct item *item)
{
    return ((function *)(uintptr_t)cairn_entry_target(item->entry))(1);
}

/* ---- The fixture ---- */

static void create_items(void)
{
    const struct cairn_type word = CAIRN_INTEGER(64);
    ck_assert_ok(cairn_signature_create(NULL, &word, 1, &word, 1, &signature, NULL));
    memset(items, 0, sizeof items);
    for (int i = 0; i < FUNCTIONS; i++) {
        items[i].value = i;
        ck_assert_ok(cairn_entry_create(runtime, "f", signature, (const void *)(uintptr_t)interpret,
                                        &items[i].entry, NULL));
    }
}

static void create_queue(const struct cairn_queue_options *options)
{
    struct cairn_error error = {0};
    create_items();
    enum cairn_status status = cairn_queue_create(runtime, options, &queue, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static void destroy_items(void)
{
    for (int i = 0; i < FUNCTIONS; i++)
        cairn_entry_destroy(items[i].entry);
    cairn_signature_destroy(signature);
}

static void destroy_queue(void)
{
    cairn_queue_destroy(queue);
    destroy_items();
}

static struct cairn_queue_job job_of(struct item *item, char *name)
{
    snprintf(name, 32, "f.%d", item->value);
    return (struct cairn_queue_job){
        .build = build,
        .done = note,
        .user = item,
        .function = name,
        .entry = item->entry,
        .version = {.retires = true},
        .priority = item->priority,
        .frame_limit = item->frame_limit,
        .bytes = 100,
    };
}

static enum cairn_status try_to_add(struct item *item, uint64_t *ticket, struct cairn_error *error)
{
    char name[32];
    const struct cairn_queue_job job = job_of(item, name);
    return cairn_queue_add(queue, &job, ticket, error);
}

static uint64_t add_item(struct item *item)
{
    struct cairn_error error = {0};
    uint64_t ticket = 0;
    enum cairn_status status = try_to_add(item, &ticket, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_uint_ne(ticket, 0);
    return ticket;
}

static void wait_for(struct item *item, unsigned done)
{
    while (atomic_load(&item->done) < done)
        sched_yield();
}

static void expect_installed(struct item *item)
{
    ck_assert_msg(item->error.status == CAIRN_OK, "%s", item->error.message);
    ck_assert_ptr_nonnull(item->address);
    ck_assert_int_eq(call_item(item), item->value);
}

static void expect_failed(struct item *item, enum cairn_status status, const char *text)
{
    ck_assert_uint_eq(item->done, 1);
    ck_assert_int_eq(item->error.status, status);
    assert_says(&item->error, text);
    ck_assert_ptr_null(item->address);
    ck_assert_int_eq(call_item(item), -1);
}

/* ---- Compiling ---- */

START_TEST(jobs_are_compiled_and_installed)
{
    const struct cairn_queue_options options = {.thread_count = (uint32_t)_i};
    create_queue(&options);
    for (int i = 0; i < FUNCTIONS; i++)
        add_item(&items[i]);
    for (int i = 0; i < FUNCTIONS; i++)
        wait_for(&items[i], 1);
    for (int i = 0; i < FUNCTIONS; i++)
        expect_installed(&items[i]);
    cairn_queue_destroy(queue);
    for (int i = 0; i < FUNCTIONS; i++)
        expect_installed(&items[i]);
    ck_assert_uint_gt(statistics().module_count, 0);
    destroy_items();
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(statistics().module_count + statistics().retired_count, 0);
}
END_TEST

/* While one job is built, others arrive. They become one module. */
static void add_batch(unsigned count)
{
    set_gate(true);
    add_item(&items[0]);
    wait_for_builder();
    for (unsigned i = 1; i <= count; i++)
        add_item(&items[i]);
    set_gate(false);
    for (unsigned i = 0; i <= count; i++)
        wait_for(&items[i], 1);
}

START_TEST(modules_are_named_by_their_functions)
{
    create_queue(NULL);
    add_batch(2);
    cairn_module *first = cairn_runtime_find_module(runtime, (uintptr_t)items[0].address);
    cairn_module *batch = cairn_runtime_find_module(runtime, (uintptr_t)items[1].address);
    ck_assert_str_eq(cairn_module_name(first), "queue: f.0");
    ck_assert_msg(strstr(cairn_module_name(batch), " and 1 other") != NULL, "%s",
                  cairn_module_name(batch));
    cairn_queue_destroy(queue);
    destroy_items();
}
END_TEST

START_TEST(jobs_that_wait_are_compiled_together)
{
    const struct cairn_queue_options options = {.batch_limit = 10};
    create_queue(&options);
    add_batch(20);
    for (int i = 0; i <= 20; i++) {
        expect_installed(&items[i]);
        ck_assert_uint_eq(items[i].built, 1);
    }
    /* The first one, and two batches. */
    ck_assert_uint_eq(statistics().module_count, 3);
    destroy_queue();
}
END_TEST

START_TEST(a_later_version_replaces_and_retires_an_earlier_one)
{
    create_queue(NULL);
    for (unsigned n = 1; n < 5; n++) {
        items[0].value = (int)(100 * n);
        add_item(&items[0]);
        wait_for(&items[0], n);
        expect_installed(&items[0]);
        cairn_runtime_quiesce(runtime);
    }
    cairn_queue_destroy(queue); /* waits until the last module has no other reference */
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(statistics().module_count, 1);
    destroy_items();
}
END_TEST

/* ---- Jobs that cannot be linked with others ---- */

static int64_t host_g(int64_t x) { return x + 40; }

static bool find_g(void *user, const char *name, uint64_t *address)
{
    (void)user;
    *address = (uintptr_t)host_g;
    return strcmp(name, "g") == 0;
}

START_TEST(a_job_does_not_use_what_another_one_defines)
{
    const struct cairn_queue_options options = {.engine = {.load = {.find_symbol = find_g}}};
    create_queue(&options);
    items[1].text = "declare i64 @g(i64)\n"
                    "define i64 @f.%d(i64 %%x) {\n"
                    "  %%r = call i64 @g(i64 %%x)\n"
                    "  ret i64 %%r\n"
                    "}\n";
    items[2].text = "define i64 @f.%d(i64 %%x) {\n  ret i64 2\n}\n"
                    "define i64 @g(i64 %%x) {\n  ret i64 7\n}\n";
    items[3].text = items[1].text;
    items[4].text = "@g = internal global i64 5\n"
                    "define i64 @f.%d(i64 %%x) {\n  ret i64 4\n}\n";
    add_batch(5);
    items[1].value = items[3].value = 41;
    for (int i = 0; i <= 5; i++) {
        expect_installed(&items[i]);
        ck_assert_uint_eq(items[i].built, 1);
    }
    destroy_queue();
}
END_TEST

START_TEST(a_job_fills_an_entry_without_a_type)
{
    create_queue(NULL);
    cairn_entry_destroy(items[0].entry);
    ck_assert_ok(cairn_entry_create(runtime, "f", NULL, (const void *)(uintptr_t)interpret,
                                    &items[0].entry, NULL));
    add_batch(1);
    expect_installed(&items[0]);
    destroy_queue();
}
END_TEST

/* ---- Errors ---- */

START_TEST(an_error_affects_only_its_own_job)
{
    create_queue(NULL);
    items[1].fails = true;
    items[2].gives_up = true;
    items[3].text = "define i64 @other.%d(i64 %%x) {\n  ret i64 3\n}\n";
    items[4].text = "define internal i64 @f.%d(i64 %%x) {\n  ret i64 3\n}\n";
    items[5].text = "define double @f.%d(i64 %%x) {\n  ret double 1.0\n}\n";
    items[6].text = "declare i64 @nowhere(i64)\n"
                    "define i64 @f.%d(i64 %%x) {\n"
                    "  %%r = call i64 @nowhere(i64 %%x)\n"
                    "  ret i64 %%r\n"
                    "}\n";
    items[7].text = "define i64 @f.%d(i64 %%x) {\n"
                    "  call void asm sideeffect \"no_such_instruction\", \"\"()\n"
                    "  ret i64 7\n"
                    "}\n";
    add_batch(9);
    expect_installed(&items[0]);
    expect_failed(&items[1], CAIRN_ERROR_RANGE, "item 1 fails");
    expect_failed(&items[2], CAIRN_ERROR_STATE, "was cancelled");
    ck_assert_uint_eq(items[2].cancelled, 1);
    expect_failed(&items[3], CAIRN_ERROR_NOT_FOUND, "does not define the function 'f.3'");
    expect_failed(&items[4], CAIRN_ERROR_ARGUMENT, "no external linkage");
    expect_failed(&items[5], CAIRN_ERROR_ARGUMENT,
                  "entry 'f' has the type i64 (i64), and the version 'f.5' the type double (i64)");
    expect_failed(&items[6], CAIRN_ERROR_NOT_FOUND, "nowhere");
    expect_failed(&items[7], CAIRN_ERROR_LLVM, "LLVM");
    expect_installed(&items[8]);
    expect_installed(&items[9]);
    cairn_queue_destroy(queue);
    /* Modules of which nothing is installed are retired: what is left is in three. */
    ck_assert_uint_eq(statistics().module_count, 3);
    destroy_items();
}
END_TEST

START_TEST(misuse_is_refused)
{
    char name[32];
    struct cairn_error error = {0};
    cairn_queue *none = NULL;
    create_queue(NULL);
    struct cairn_queue_job job = job_of(&items[0], name);
    job.build = NULL;
    ck_assert_int_eq(cairn_queue_add(queue, &job, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    job = job_of(&items[0], name);
    job.function = NULL;
    ck_assert_int_eq(cairn_queue_add(queue, &job, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_queue_add(NULL, &job, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_queue_add(queue, NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_queue_create(NULL, NULL, &none, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_queue_create(runtime, NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    const struct cairn_queue_options wrong = {.engine = {.optimisation_level = 4}};
    ck_assert_int_eq(cairn_queue_create(runtime, &wrong, &none, &error), CAIRN_ERROR_ARGUMENT);
    assert_says(&error, "level 4");
    ck_assert_ptr_null(none);
    ck_assert(!cairn_queue_cancel(queue, 0));
    ck_assert(!cairn_queue_cancel(NULL, 1));
    cairn_queue_destroy(NULL);
    destroy_queue();
}
END_TEST

START_TEST(jobs_have_the_errors_of_options_that_only_llvm_can_check)
{
    const struct cairn_queue_options options = {.engine = {.passes = "no-such-pass"},
                                                .warms_up = true};
    create_queue(&options);
    for (unsigned i = 0; i < 2; i++)
        add_item(&items[i]);
    for (unsigned i = 0; i < 2; i++) {
        wait_for(&items[i], 1);
        expect_failed(&items[i], CAIRN_ERROR_ARGUMENT, "no-such-pass");
    }
    destroy_queue();
}
END_TEST

static LLVMModuleRef build_elsewhere(LLVMContextRef of_queue, void *user, struct cairn_error *error)
{
    (void)of_queue;
    return build(context, user, error);
}

START_TEST(a_module_in_another_context_is_refused)
{
    char name[32];
    create_queue(NULL);
    struct cairn_queue_job job = job_of(&items[0], name);
    job.build = build_elsewhere;
    ck_assert_ok(cairn_queue_add(queue, &job, NULL, NULL));
    wait_for(&items[0], 1);
    expect_failed(&items[0], CAIRN_ERROR_ARGUMENT,
                  "'f.0' was built in another context than the queue's");
    destroy_queue();
}
END_TEST

/* ---- Bitcode ---- */

/* Makes a job of a module that this thread has built. */
static struct cairn_queue_job bitcode_job(struct item *item, char *name,
                                          LLVMMemoryBufferRef *buffer)
{
    struct cairn_queue_job job = job_of(item, name);
    struct cairn_error error = {0};
    LLVMModuleRef module = build(context, item, &error);
    *buffer = LLVMWriteBitcodeToMemoryBuffer(module);
    LLVMDisposeModule(module);
    job.build = NULL;
    job.bitcode = LLVMGetBufferStart(*buffer);
    job.bitcode_size = LLVMGetBufferSize(*buffer);
    return job;
}

START_TEST(jobs_may_be_bitcode)
{
    create_queue(NULL);
    for (int i = 0; i < 10; i++) {
        char name[32];
        LLVMMemoryBufferRef buffer;
        const struct cairn_queue_job job = bitcode_job(&items[i], name, &buffer);
        ck_assert_ok(cairn_queue_add(queue, &job, NULL, NULL));
        LLVMDisposeMemoryBuffer(buffer); /* it was copied */
    }
    for (int i = 0; i < 10; i++) {
        wait_for(&items[i], 1);
        expect_installed(&items[i]);
    }
    destroy_queue();
}
END_TEST

START_TEST(bitcode_that_llvm_cannot_read_is_an_error_of_the_job)
{
    char name[32];
    struct cairn_error error;
    LLVMMemoryBufferRef buffer;
    create_queue(NULL);
    struct cairn_queue_job job = bitcode_job(&items[1], name, &buffer);
    job.bitcode_size = 8;
    ck_assert_ok(cairn_queue_add(queue, &job, NULL, NULL));
    wait_for(&items[1], 1);
    expect_failed(&items[1], CAIRN_ERROR_LLVM, "");
    job.bitcode_size = 0;
    ck_assert_int_eq(cairn_queue_add(queue, &job, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    job.build = build;
    ck_assert_int_eq(cairn_queue_add(queue, &job, NULL, &error), CAIRN_ERROR_ARGUMENT);
    assert_says(&error, "more than one of `build`, `bitcode` and `object`");
    LLVMDisposeMemoryBuffer(buffer);
    destroy_queue();
}
END_TEST

/* ---- Priorities ---- */

static void expect_order(const int *expected, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        wait_for(&items[expected[i]], 1);
    for (unsigned i = 1; i < count; i++)
        ck_assert_uint_lt(items[expected[i - 1]].order, items[expected[i]].order);
}

/* Lets jobs wait: items 1 to `count`, whose tickets it returns. */
static void let_wait(unsigned count, uint64_t *tickets)
{
    set_gate(true);
    add_item(&items[0]);
    wait_for_builder();
    for (unsigned i = 1; i <= count; i++)
        tickets[i] = add_item(&items[i]);
}

START_TEST(jobs_with_a_higher_priority_are_begun_first)
{
    uint64_t tickets[8];
    create_queue(NULL);
    for (int i = 1; i <= 7; i++)
        items[i].priority = (int[]){0, 0, 5, -1, 5, 0, INT32_MAX, INT32_MIN}[i];
    let_wait(7, tickets);
    set_gate(false);
    expect_order((int[]){0, 6, 2, 4, 1, 5, 3, 7}, 8);
    destroy_queue();
}
END_TEST

START_TEST(a_job_that_waits_can_be_raised)
{
    uint64_t tickets[6];
    create_queue(NULL);
    items[4].priority = 2;
    let_wait(5, tickets);
    ck_assert(cairn_queue_raise(queue, tickets[3], 7));
    ck_assert(cairn_queue_raise(queue, tickets[5], 2));
    ck_assert(cairn_queue_raise(queue, tickets[4], 1)); /* never lower */
    ck_assert(cairn_queue_raise(queue, tickets[1], 0));
    ck_assert(!cairn_queue_raise(queue, tickets[1] - 1, 9)); /* it has been begun */
    ck_assert(!cairn_queue_raise(queue, tickets[5] + 1, 9));
    ck_assert(!cairn_queue_raise(NULL, 1, 9));
    set_gate(false);
    expect_order((int[]){0, 3, 4, 5, 1, 2}, 6);
    ck_assert(!cairn_queue_raise(queue, tickets[5], 9));
    destroy_queue();
}
END_TEST

START_TEST(a_batch_has_jobs_of_one_priority)
{
    uint64_t tickets[10];
    create_queue(NULL);
    for (int i = 1; i <= 9; i++)
        items[i].priority = i / 4;
    let_wait(9, tickets);
    set_gate(false);
    for (int i = 0; i <= 9; i++)
        wait_for(&items[i], 1);
    ck_assert_uint_eq(statistics().module_count, 4);
    destroy_queue();
}
END_TEST

enum { PLACES = 500, CHANGES = 20000 };

/* Returns the job that should be first, which is found by looking at all. */
static struct job_place *first_of(struct job_place *places)
{
    struct job_place *first = NULL;
    for (int i = 0; i < PLACES; i++) {
        struct job_place *next = &places[i];
        if (next->position == 0)
            continue;
        bool is_before =
            first == NULL || (next->is_later != first->is_later   ? first->is_later
                              : next->priority != first->priority ? next->priority > first->priority
                                                                  : next->ticket < first->ticket);
        first = is_before ? next : first;
    }
    return first;
}

static size_t count_like(const struct job_place *places, const struct job_place *first)
{
    size_t count = 0;
    for (int i = 0; i < PLACES; i++)
        count += places[i].position != 0 && jobs_are_equal(&places[i], first);
    return count;
}

/* Adds, lets wait, raises, takes or removes a job. */
static void change_place(struct jobs *jobs, struct job_place *place, uint64_t random, uint64_t step)
{
    if (place->ticket == 0) {
        *place = (struct job_place){
            .ticket = step, .priority = (int32_t)(random >> 40) % 5, .is_later = random >> 63};
        ck_assert(jobs_add(jobs, place));
        jobs_wait(jobs, place);
    } else if (place->position == 0) {
        jobs_remove(jobs, place);
        ck_assert_ptr_null(jobs_find(jobs, place->ticket));
        place->ticket = 0;
    } else if (random >> 62 == 0) {
        jobs_raise(jobs, place, place->priority + (int32_t)(random >> 50) % 4);
    } else {
        jobs_take(jobs, place);
    }
}

START_TEST(jobs_are_found_and_ordered_at_random)
{
    static struct job_place places[PLACES];
    struct jobs jobs = {.allocator = memory_allocator(NULL)};
    uint64_t random = support_seed_or(5);
    for (uint64_t step = 1; step <= CHANGES; step++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        struct job_place *place = &places[(random >> 33) % PLACES];
        change_place(&jobs, place, random, step);
        ck_assert(place->ticket == 0 || jobs_find(&jobs, place->ticket) == place);
        struct job_place *first = jobs_first(&jobs);
        ck_assert_ptr_eq(first, first_of(places));
        if (first != NULL) {
            ck_assert_uint_eq(jobs_count_first(&jobs, PLACES), count_like(places, first));
            ck_assert_uint_le(jobs_count_first(&jobs, 3), 3);
        }
    }
    jobs_release(&jobs);
}
END_TEST

/* ---- Limits of frames ---- */

/* A function with a record and a frame of more than the given bytes, or not a constant size. */
#define WITH_FRAME(COUNT)                                                                          \
    "declare void @llvm.experimental.stackmap(i64, i32, ...)\n"                                    \
    "define i64 @f.%d(i64 %%x) {\n"                                                                \
    "  %%a = alloca i8, i64 " COUNT "\n"                                                           \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 0, ptr %%a)\n"            \
    "  ret i64 1\n"                                                                                \
    "}\n"

START_TEST(a_function_with_a_large_frame_is_refused)
{
    create_queue(NULL);
    items[1].text = items[2].text = items[3].text = WITH_FRAME("4096");
    items[4].text = WITH_FRAME("%%x");
    items[1].frame_limit = items[4].frame_limit = items[5].frame_limit = 1000;
    items[2].frame_limit = 8000;
    add_batch(5);
    expect_failed(&items[1], CAIRN_ERROR_RANGE, "frame_limit is 1000");
    ck_assert_uint_gt(items[1].error.offset, 4096);
    expect_failed(&items[4], CAIRN_ERROR_RANGE, "no constant size");
    items[2].value = items[3].value = 1;
    for (int i = 2; i <= 3; i++)
        expect_installed(&items[i]);
    expect_installed(&items[5]); /* it has no records */
    destroy_queue();
}
END_TEST

START_TEST(a_module_of_refused_functions_is_retired)
{
    create_queue(NULL);
    items[0].text = WITH_FRAME("4096");
    items[0].frame_limit = 1000;
    add_item(&items[0]);
    wait_for(&items[0], 1);
    cairn_queue_destroy(queue);
    ck_assert_uint_eq(statistics().module_count, 0);
    destroy_items();
}
END_TEST

/* ---- Retiring functions ---- */

enum { RETIRED = 12 };

/* Adds jobs that are compiled together: by number, with an entry that retires them, with one that
 * does not, and without. */
static void add_functions(unsigned count)
{
    set_gate(true);
    add_item(&items[0]);
    wait_for_builder();
    for (unsigned i = 1; i <= count; i++) {
        char name[32];
        struct cairn_queue_job job = job_of(&items[i], name);
        job.version.retires = i % 3 == 0;
        if (i % 3 == 1)
            job.entry = NULL;
        ck_assert_ok(cairn_queue_add(queue, &job, NULL, NULL));
    }
    set_gate(false);
    for (unsigned i = 0; i <= count; i++)
        wait_for(&items[i], 1);
}

/* Ends the use of a function as its host would. */
static void retire_item(const struct item *item)
{
    const struct cairn_entry_version first = {.code = (const void *)(uintptr_t)interpret,
                                              .signature = signature};
    unsigned kind = (unsigned)item->value % 3;
    if (kind != 1)
        ck_assert_ok(cairn_entry_install(item->entry, &first, CAIRN_SYNC, NULL));
    if (kind != 0)
        cairn_function_retire(runtime, item->address);
}

/* Numbers 1 to RETIRED in a random order. */
static void shuffle(unsigned *order, uint64_t random)
{
    for (unsigned i = 0; i < RETIRED; i++)
        order[i] = i + 1;
    for (unsigned i = RETIRED - 1; i > 0; i--) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        unsigned j = (unsigned)(random >> 33) % (i + 1);
        unsigned moved = order[i];
        order[i] = order[j];
        order[j] = moved;
    }
}

static _Atomic bool functions_are_called;
static _Atomic unsigned wrong_results;

/* Calls the last function that will be retired. */
static void *call_last(void *user)
{
    const struct item *item = user;
    while (functions_are_called)
        wrong_results += ((function *)(uintptr_t)item->address)(1) != item->value;
    return NULL;
}

/* Retires all functions but the last one, while a thread executes that. */
static void retire_in_order(const unsigned *order)
{
    pthread_t caller;
    struct item *last = &items[order[RETIRED - 1]];
    functions_are_called = true;
    wrong_results = 0;
    pthread_create(&caller, NULL, call_last, last);
    for (unsigned i = 0; i + 1 < RETIRED; i++) {
        retire_item(&items[order[i]]);
        cairn_runtime_quiesce(runtime);
        for (unsigned j = i + 1; j < RETIRED; j++)
            ck_assert_ptr_nonnull(
                cairn_runtime_find_module(runtime, (uintptr_t)items[order[j]].address));
    }
    functions_are_called = false;
    pthread_join(caller, NULL);
    ck_assert_uint_eq(wrong_results, 0);
    retire_item(last);
    ck_assert_ptr_null(cairn_runtime_find_module(runtime, (uintptr_t)last->address));
}

START_TEST(a_batch_is_retired_with_its_last_function)
{
    unsigned order[RETIRED];
    create_queue(NULL);
    add_functions(RETIRED);
    cairn_queue_destroy(queue);
    ck_assert_uint_eq(statistics().module_count, 2);
    shuffle(order, support_seed_or(7) + (unsigned)_i);
    retire_in_order(order);
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(statistics().module_count, 1);
    ck_assert_uint_eq(statistics().retired_count, 0);
    destroy_items();
}
END_TEST

START_TEST(a_function_of_a_retired_module_can_be_retired)
{
    create_queue(NULL);
    add_functions(2);
    cairn_queue_destroy(queue);
    cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)items[1].address);
    cairn_module_retire(module);
    retire_item(&items[1]);
    retire_item(&items[2]);
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(statistics().retired_count, 0);
    cairn_function_retire(runtime, NULL);
    cairn_function_retire(NULL, items[1].address);
    cairn_function_retire(runtime, items[1].address);
    cairn_function_retire(runtime, (const void *)(uintptr_t)interpret);
    destroy_items();
}
END_TEST

/* ---- Two tiers ---- */

/* Adds a job with two versions, of which the results are kept and counted. */
static uint64_t add_tiers(struct item *item, cairn_assumption *until_full)
{
    char name[32];
    uint64_t ticket;
    struct cairn_queue_job job = job_of(item, name);
    job.has_tiers = true;
    job.until_full = until_full;
    job.keeps_result = true;
    ck_assert_ok(cairn_queue_add(queue, &job, &ticket, NULL));
    return ticket;
}

START_TEST(a_full_version_follows_a_quick_one)
{
    struct cairn_queue_result result;
    struct cairn_error error;
    const void *quick;
    create_queue(NULL);
    uint64_t ticket = add_tiers(&items[3], NULL);
    cairn_queue_wait(queue, ticket);
    ck_assert_uint_eq(items[3].done, 2);
    ck_assert_uint_eq(items[3].built, 2);
    expect_installed(&items[3]);
    ck_assert(cairn_queue_take(queue, &result, &error));
    ck_assert_int_eq(result.tier, CAIRN_TIER_QUICK);
    ck_assert_int_eq(error.status, CAIRN_OK);
    ck_assert_uint_eq(result.ticket, ticket);
    quick = result.address;
    ck_assert(cairn_queue_take(queue, &result, &error));
    ck_assert_int_eq(result.tier, CAIRN_TIER_FULL);
    ck_assert_uint_eq(result.ticket, ticket);
    ck_assert_ptr_ne(result.address, quick);
    ck_assert(!cairn_queue_take(queue, &result, &error));
    cairn_queue_destroy(queue);
    ck_assert_uint_eq(statistics().module_count, 1); /* the quick one is retired */
    destroy_items();
}
END_TEST

START_TEST(full_versions_wait_for_quick_ones)
{
    create_queue(NULL);
    items[1].priority = 9;
    set_gate(true);
    add_item(&items[0]);
    wait_for_builder();
    add_tiers(&items[1], NULL);
    add_tiers(&items[2], NULL);
    add_item(&items[3]);
    set_gate(false);
    wait_for(&items[1], 2);
    wait_for(&items[2], 2);
    /* When it was built last, the others had been built once. */
    ck_assert_uint_gt(items[1].order, items[3].order);
    ck_assert_uint_gt(items[2].order, items[1].order);
    ck_assert_uint_eq(build_count - items[3].order, 2);
    destroy_queue();
}
END_TEST

static void cancel_when_quick(const struct cairn_queue_result *result, void *user)
{
    note(result, user);
    if (result->tier == CAIRN_TIER_QUICK)
        ck_assert(cairn_queue_cancel(queue, result->ticket));
}

/* In the callback of the quick version, or while it waits for the full one. */
START_TEST(the_full_version_can_be_cancelled)
{
    char name[32];
    uint64_t ticket;
    create_queue(NULL);
    set_gate(true);
    add_item(&items[0]);
    wait_for_builder();
    struct cairn_queue_job job = job_of(&items[1], name);
    job.has_tiers = true;
    if (_i == 0)
        job.done = cancel_when_quick;
    ck_assert_ok(cairn_queue_add(queue, &job, &ticket, NULL));
    set_gate(false);
    wait_for(&items[1], 1);
    bool is_cancelled = _i == 0 || cairn_queue_cancel(queue, ticket);
    cairn_queue_wait(queue, ticket);
    ck_assert_uint_eq(items[1].done, 2);
    ck_assert_uint_eq(items[1].cancelled, is_cancelled);
    ck_assert_int_eq(items[1].error.status, is_cancelled ? CAIRN_ERROR_STATE : CAIRN_OK);
    ck_assert_int_eq(call_item(&items[1]), 1); /* the quick version stays */
    if (_i == 0)
        ck_assert_uint_eq(items[1].built, 1);
    ck_assert(!cairn_queue_cancel(queue, ticket));
    destroy_queue();
}
END_TEST

START_TEST(a_job_that_is_cancelled_before_its_quick_version_has_one_result)
{
    uint64_t tickets[2];
    create_queue(NULL);
    let_wait(1, tickets);
    uint64_t ticket = add_tiers(&items[2], NULL);
    ck_assert(cairn_queue_cancel(queue, ticket));
    expect_failed(&items[2], CAIRN_ERROR_STATE, "was cancelled");
    set_gate(false);
    wait_for(&items[1], 1);
    destroy_queue();
}
END_TEST

START_TEST(the_full_version_follows_a_quick_one_that_failed)
{
    const struct cairn_engine_options quick = {.passes = "no-such-pass"};
    const struct cairn_queue_options options = {.quick = &quick};
    struct cairn_queue_result result;
    struct cairn_error error;
    create_queue(&options);
    cairn_queue_wait(queue, add_tiers(&items[1], NULL));
    expect_installed(&items[1]);
    ck_assert_uint_eq(items[1].built, 1);
    ck_assert(cairn_queue_take(queue, &result, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(result.tier, CAIRN_TIER_QUICK);
    destroy_queue();
}
END_TEST

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

static struct {
    cairn_exit *exit;
    cairn_assumption *assumptions[2];
    uint32_t count; /* of the guard */
} guarded;

/* Builds a function with a guard. */
static LLVMModuleRef build_guarded(LLVMContextRef own, void *user, struct cairn_error *error)
{
    LLVMModuleRef module = build(own, user, error);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(own);
    LLVMValueRef built = LLVMGetFirstFunction(module);
    LLVMValueRef argument = LLVMGetParam(built, 0);
    const struct cairn_encoded_frame frame = {.locals = &argument, .local_count = 1};
    const struct cairn_guard guard = {.id = 77,
                                      .exit = guarded.exit,
                                      .frames = &frame,
                                      .frame_count = 1,
                                      .assumptions = guarded.assumptions,
                                      .assumption_count = guarded.count};
    LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(built)));
    ck_assert_ptr_nonnull(cairn_build_guard(builder, NULL, &guard, NULL));
    LLVMDisposeBuilder(builder);
    return module;
}

/* With a guard that relies on nothing else, or on another assumption, too. */
START_TEST(guards_that_wait_for_the_full_version_are_not_in_it)
{
    char name[32];
    uint64_t ticket;
    create_queue(NULL);
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &guarded.exit, NULL));
    for (int i = 0; i < 2; i++)
        ck_assert_ok(cairn_assumption_create(runtime, &guarded.assumptions[i], NULL));
    guarded.count = (uint32_t)_i + 1;
    struct cairn_queue_job job = job_of(&items[1], name);
    job.build = build_guarded;
    job.has_tiers = true;
    job.until_full = guarded.assumptions[0];
    ck_assert_ok(cairn_queue_add(queue, &job, &ticket, NULL));
    cairn_queue_wait(queue, ticket);
    ck_assert_uint_eq(items[1].done, 2);
    if (_i == 0) {
        expect_installed(&items[1]);
        ck_assert_uint_eq(count_records(77), 0);
    } else {
        ck_assert_int_eq(items[1].error.status, CAIRN_ERROR_ARGUMENT);
        assert_says(&items[1].error, "guard 77 of 'f.1' relies on until_full and on another");
        ck_assert_uint_eq(count_records(77), 1);
    }
    cairn_queue_destroy(queue);
    for (int i = 0; i < 2; i++)
        cairn_assumption_destroy(guarded.assumptions[i]);
    destroy_items();
    cairn_exit_destroy(guarded.exit);
}
END_TEST

START_TEST(wrong_tiers_are_refused)
{
    char name[32];
    struct cairn_error error = {0};
    create_queue(NULL);
    ck_assert_ok(cairn_assumption_create(runtime, &guarded.assumptions[0], NULL));
    struct cairn_queue_job job = job_of(&items[1], name);
    job.until_full = guarded.assumptions[0];
    ck_assert_int_eq(cairn_queue_add(queue, &job, NULL, &error), CAIRN_ERROR_ARGUMENT);
    assert_says(&error, "has until_full, and one version");
    job.until_full = NULL;
    job.has_tiers = true;
    job.build = NULL;
    job.object = name;
    job.object_size = sizeof name;
    ck_assert_int_eq(cairn_queue_add(queue, &job, NULL, &error), CAIRN_ERROR_ARGUMENT);
    assert_says(&error, "is an object");
    cairn_assumption_destroy(guarded.assumptions[0]);
    destroy_queue();
}
END_TEST

/* ---- Objects ---- */

static LLVMTargetMachineRef create_machine(void)
{
    LLVMTargetRef target;
    char *message;
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    ck_assert_int_eq(LLVMGetTargetFromTriple(triple, &target, &message), 0);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
        target, triple, "", "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    LLVMDisposeMessage(triple);
    return machine;
}

/* Makes a job of an object that this thread has compiled. */
static struct cairn_queue_job object_job(struct item *item, char *name, LLVMMemoryBufferRef *object)
{
    struct cairn_queue_job job = job_of(item, name);
    struct cairn_error error = {0};
    char *message;
    const struct cairn_embed_options embed = {.machine = create_machine()};
    LLVMModuleRef module = build(context, item, &error);
    ck_assert_ok(cairn_embed_manifest(module, &embed, NULL));
    ck_assert_int_eq(LLVMTargetMachineEmitToMemoryBuffer(embed.machine, module, LLVMObjectFile,
                                                         &message, object),
                     0);
    LLVMDisposeTargetMachine(embed.machine);
    LLVMDisposeModule(module);
    job.build = NULL;
    job.object = LLVMGetBufferStart(*object);
    job.object_size = LLVMGetBufferSize(*object);
    job.version.signature = signature;
    return job;
}

/* Without an engine: its options are wrong, and are not looked at. */
START_TEST(jobs_may_be_objects)
{
    const struct cairn_queue_options options = {
        .engine = {.passes = "no-such-pass", .load = {.find_symbol = find_g}}};
    create_queue(&options);
    items[3].text = "declare i64 @g(i64)\n"
                    "define i64 @f.%d(i64 %%x) {\n"
                    "  %%r = call i64 @g(i64 %%x)\n"
                    "  ret i64 %%r\n"
                    "}\n";
    for (int i = 0; i < 10; i++) {
        char name[32];
        LLVMMemoryBufferRef object;
        const struct cairn_queue_job job = object_job(&items[i], name, &object);
        ck_assert_ok(cairn_queue_add(queue, &job, NULL, NULL));
        LLVMDisposeMemoryBuffer(object); /* it was copied */
    }
    items[3].value = 41;
    for (int i = 0; i < 10; i++) {
        wait_for(&items[i], 1);
        expect_installed(&items[i]);
    }
    cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)items[1].address);
    ck_assert_str_eq(cairn_module_name(module), "queue: f.1");
    destroy_queue();
}
END_TEST

START_TEST(objects_may_wait_with_other_jobs)
{
    char names[2][32];
    LLVMMemoryBufferRef objects[2];
    create_queue(NULL);
    const struct cairn_queue_job jobs[] = {object_job(&items[1], names[0], &objects[0]),
                                           object_job(&items[3], names[1], &objects[1])};
    set_gate(true);
    add_item(&items[0]);
    wait_for_builder();
    for (int i = 0; i < 2; i++) {
        ck_assert_ok(cairn_queue_add(queue, &jobs[i], NULL, NULL));
        add_item(&items[2 + 2 * i]);
    }
    set_gate(false);
    for (int i = 0; i < 5; i++) {
        wait_for(&items[i], 1);
        expect_installed(&items[i]);
    }
    LLVMDisposeMemoryBuffer(objects[0]);
    LLVMDisposeMemoryBuffer(objects[1]);
    destroy_queue();
}
END_TEST

static void expect_refused_object(struct item *item, const struct cairn_queue_job *job,
                                  enum cairn_status status, const char *text)
{
    item->done = 0;
    ck_assert_ok(cairn_queue_add(queue, job, NULL, NULL));
    wait_for(item, 1);
    expect_failed(item, status, text);
}

START_TEST(an_object_that_cannot_be_loaded_is_an_error_of_the_job)
{
    char name[32];
    LLVMMemoryBufferRef object;
    create_queue(NULL);
    struct cairn_queue_job job = object_job(&items[1], name, &object);
    const size_t size = job.object_size;
    job.object_size = 40;
    expect_refused_object(&items[1], &job, CAIRN_ERROR_TRUNCATED, "");
    job.object_size = size;
    job.function = "other";
    expect_refused_object(&items[1], &job, CAIRN_ERROR_NOT_FOUND,
                          "does not define the function 'other'");
    job.function = name;
    job.version.signature = NULL;
    expect_refused_object(&items[1], &job, CAIRN_ERROR_ARGUMENT, "type");
    LLVMDisposeMemoryBuffer(object);
    cairn_queue_destroy(queue);
    ck_assert_uint_eq(statistics().module_count, 0);
    destroy_items();
}
END_TEST

START_TEST(a_job_has_one_kind_of_code)
{
    struct cairn_error error = {0};
    create_queue(NULL);
    for (int kinds = 0; kinds < 8; kinds++) {
        char name[32];
        struct cairn_queue_job job = job_of(&items[0], name);
        job.build = kinds & 1 ? build : NULL;
        job.bitcode = kinds & 2 ? "bytes" : NULL;
        job.object = kinds & 4 ? "bytes" : NULL;
        if (kinds == 1)
            continue;
        ck_assert_int_eq(cairn_queue_add(queue, &job, NULL, &error), CAIRN_ERROR_ARGUMENT);
        assert_says(&error, kinds == 0                 ? "none of"
                            : kinds == 2 || kinds == 4 ? "0 bytes"
                                                       : "more than one of");
    }
    destroy_queue();
}
END_TEST

/* ---- Results that are kept ---- */

START_TEST(results_can_be_taken_by_the_hosts_thread)
{
    uint32_t result_count = 0;
    const struct cairn_queue_options options = {.result_count = &result_count};
    struct cairn_queue_result result;
    struct cairn_error error;
    uint64_t tickets[3];
    create_queue(&options);
    items[2].fails = true;
    ck_assert(!cairn_queue_take(queue, &result, &error));
    for (int i = 0; i < 3; i++) {
        char name[32];
        struct cairn_queue_job job = job_of(&items[i], name);
        job.done = NULL;
        job.keeps_result = true;
        ck_assert_ok(cairn_queue_add(queue, &job, &tickets[i], NULL));
    }
    for (int i = 0; i < 3; i++)
        cairn_queue_wait(queue, tickets[i]);
    ck_assert_uint_eq(result_count, 3);
    for (unsigned found = 0; cairn_queue_take(queue, &result, &error); found++) {
        struct item *item = result.user;
        ck_assert_uint_eq(result.ticket, tickets[item - items]);
        ck_assert_ptr_eq(result.error, &error);
        ck_assert_int_eq(error.status, item->fails ? CAIRN_ERROR_RANGE : CAIRN_OK);
        ck_assert_uint_eq(result_count, 2 - found);
        ck_assert(item->fails == (result.address == NULL));
        ck_assert_int_eq(call_item(item), item->fails ? -1 : item->value);
    }
    ck_assert_uint_eq(result_count, 0);
    destroy_queue();
}
END_TEST

START_TEST(results_that_are_not_taken_are_freed_with_the_queue)
{
    char name[32];
    uint64_t ticket;
    create_queue(NULL);
    struct cairn_queue_job job = job_of(&items[1], name);
    job.keeps_result = true;
    ck_assert_ok(cairn_queue_add(queue, &job, &ticket, NULL));
    cairn_queue_wait(queue, ticket);
    ck_assert_uint_eq(items[1].done, 1);
    cairn_queue_wait(queue, ticket + 1);
    destroy_queue();
}
END_TEST

/* ---- Warming up ---- */

/* With passes or without, and with a job that waits when the threads start or one that comes
 * later. */
START_TEST(a_queue_that_warms_up_compiles_jobs)
{
    const struct cairn_queue_options options = {
        .engine = {.optimisation_level = 2, .passes = _i % 2 == 0 ? NULL : "default<O2>"},
        .thread_count = 2,
        .warms_up = true,
    };
    const struct timespec a_while = {.tv_nsec = 30000000};
    create_queue(&options);
    if (_i / 2 == 0)
        nanosleep(&a_while, NULL);
    add_item(&items[1]);
    wait_for(&items[1], 1);
    expect_installed(&items[1]);
    ck_assert_uint_eq(statistics().module_count, 1);
    destroy_queue();
}
END_TEST

START_TEST(a_queue_can_be_destroyed_while_it_warms_up)
{
    const struct cairn_queue_options options = {.thread_count = 3, .warms_up = true};
    for (int i = 0; i < 10; i++) {
        create_queue(&options);
        destroy_queue();
    }
}
END_TEST

/* ---- Limits ---- */

START_TEST(a_batch_may_have_any_limit)
{
    const struct cairn_queue_options options = {.batch_limit = UINT32_MAX};
    create_queue(&options);
    add_item(&items[0]);
    wait_for(&items[0], 1);
    expect_installed(&items[0]);
    destroy_queue();
}
END_TEST

START_TEST(limits_are_enforced)
{
    struct cairn_error error = {0};
    const struct cairn_queue_options options = {.job_limit = _i == 0 ? 3 : 0,
                                                .byte_limit = _i == 0 ? 0 : 450};
    create_queue(&options);
    set_gate(true);
    add_item(&items[0]);
    wait_for_builder();
    for (int i = 1; i <= 3; i++)
        add_item(&items[i]);
    ck_assert_int_eq(try_to_add(&items[4], NULL, &error), CAIRN_ERROR_FULL);
    assert_says(&error, _i == 0 ? "job_limit is 3" : "byte_limit is 450");
    set_gate(false);
    for (int i = 0; i <= 3; i++)
        wait_for(&items[i], 1);
    add_item(&items[4]);
    wait_for(&items[4], 1);
    ck_assert_uint_eq(items[4].built, 1);
    destroy_queue();
}
END_TEST

/* ---- Cancelling ---- */

START_TEST(a_cancelled_job_is_not_installed)
{
    create_queue(NULL);
    set_gate(true);
    uint64_t running = add_item(&items[0]);
    wait_for_builder();
    uint64_t waiting = add_item(&items[1]);
    add_item(&items[2]);
    ck_assert(cairn_queue_cancel(queue, waiting));
    expect_failed(&items[1], CAIRN_ERROR_STATE, "'f.1' was cancelled");
    ck_assert(!cairn_queue_cancel(queue, waiting));
    ck_assert(cairn_queue_cancel(queue, running));
    ck_assert_uint_eq(items[0].done, 0);
    set_gate(false);
    wait_for(&items[0], 1);
    wait_for(&items[2], 1);
    expect_failed(&items[0], CAIRN_ERROR_STATE, "'f.0' was cancelled");
    ck_assert_uint_eq(items[0].cancelled + items[1].cancelled, 2);
    ck_assert_uint_eq(items[1].built, 0);
    expect_installed(&items[2]);
    ck_assert(!cairn_queue_cancel(queue, running));
    cairn_queue_destroy(queue);
    ck_assert_uint_eq(statistics().module_count, 1);
    destroy_items();
}
END_TEST

static void *open_gate_later(void *unused)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
    set_gate(false);
    return unused;
}

START_TEST(destroying_cancels_what_waits_and_waits_for_the_rest)
{
    pthread_t opener;
    create_queue(NULL);
    set_gate(true);
    add_item(&items[0]);
    wait_for_builder();
    add_item(&items[1]);
    pthread_create(&opener, NULL, open_gate_later, NULL);
    cairn_queue_destroy(queue);
    pthread_join(opener, NULL);
    expect_installed(&items[0]);
    expect_failed(&items[1], CAIRN_ERROR_STATE, "was cancelled");
    destroy_items();
}
END_TEST

/* ---- Random jobs ---- */

enum { ADDERS = 3, ADDITIONS = 60 };

static struct {
    _Atomic unsigned wrong;
    _Atomic unsigned accepted;
    _Atomic unsigned ended;
    _Atomic bool stop;
} race;

static void count_end(const struct cairn_queue_result *result, void *user)
{
    const struct item *item = user;
    enum cairn_status status = result->error->status;
    race.wrong += status != (result->is_cancelled ? CAIRN_ERROR_STATE
                             : item->fails        ? CAIRN_ERROR_RANGE
                                                  : CAIRN_OK);
    race.ended += result->tier == CAIRN_TIER_FULL;
}

static void *add_at_random(void *seed)
{
    uint64_t random = (uintptr_t)seed + support_seed_or(9);
    char name[32];
    for (int i = 0; i < ADDITIONS; i++) {
        uint64_t ticket = 0;
        random = random * 6364136223846793005U + 1442695040888963407U;
        struct cairn_queue_job job = job_of(&items[random >> 58], name);
        job.done = count_end;
        job.has_tiers = (random >> 50) % 2 == 0;
        job.priority = (int32_t)(random >> 46) % 3;
        enum cairn_status status = cairn_queue_add(queue, &job, &ticket, NULL);
        race.accepted += status == CAIRN_OK;
        race.wrong += status != CAIRN_OK && status != CAIRN_ERROR_FULL;
        if ((random >> 40) % 4 == 0)
            cairn_queue_cancel(queue, ticket - (random >> 32) % 3);
        if ((random >> 36) % 4 == 0)
            sched_yield();
    }
    return NULL;
}

static void *call_at_random(void *unused)
{
    for (unsigned i = 0; !atomic_load(&race.stop); i = (i + 7) % FUNCTIONS) {
        int64_t result = call_item(&items[i]);
        race.wrong += result != -1 && result != items[i].value;
    }
    return unused;
}

START_TEST(threads_add_cancel_and_call_at_random)
{
    pthread_t adders[ADDERS], caller;
    const struct cairn_queue_options options = {
        .thread_count = 2, .batch_limit = 8, .job_limit = 40};
    create_queue(&options);
    for (int i = 0; i < FUNCTIONS; i += 9)
        items[i].fails = true;
    memset(&race, 0, sizeof race);
    pthread_create(&caller, NULL, call_at_random, NULL);
    for (uintptr_t i = 0; i < ADDERS; i++)
        pthread_create(&adders[i], NULL, add_at_random, (void *)(i * 1000));
    for (int i = 0; i < ADDERS; i++)
        pthread_join(adders[i], NULL);
    cairn_queue_destroy(queue);
    atomic_store(&race.stop, true);
    pthread_join(caller, NULL);
    ck_assert_uint_eq(race.wrong, 0);
    ck_assert_uint_gt(race.accepted, 0);
    ck_assert_uint_eq(race.accepted, race.ended);
    destroy_items();
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(statistics().module_count + statistics().retired_count, 0);
}
END_TEST

/* ---- Memory and forks ---- */

START_TEST(a_queue_that_cannot_be_allocated_leaves_nothing)
{
    struct support_allocator allocations = {0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations)};
    cairn_runtime *counted;
    cairn_queue *created = NULL;
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    ck_assert_ok(cairn_runtime_create(&options, &counted, NULL));
    for (size_t i = 1; status != CAIRN_OK; i++) {
        allocations.fail_at = allocations.calls + i;
        status = cairn_queue_create(counted, NULL, &created, NULL);
        allocations.fail_at = 0;
        ck_assert(status == CAIRN_OK || status == CAIRN_ERROR_MEMORY);
    }
    cairn_queue_destroy(created);
    cairn_runtime_destroy(counted);
    ck_assert_uint_eq(allocations.outstanding_bytes, 0);
}
END_TEST

START_TEST(a_child_cannot_use_its_parents_queue)
{
    int result = 1;
    create_queue(NULL);
    uint64_t ticket = add_item(&items[1]);
    wait_for(&items[1], 1);
    pid_t child = fork();
    if (child == 0) {
        struct cairn_error error = {0};
        bool is_right = try_to_add(&items[2], NULL, &error) == CAIRN_ERROR_STATE &&
                        !cairn_queue_cancel(queue, ticket) && call_item(&items[1]) == 1;
        cairn_queue_destroy(queue);
        _exit(is_right ? 0 : 1);
    }
    waitpid(child, &result, 0);
    ck_assert_int_eq(result, 0);
    add_item(&items[2]);
    wait_for(&items[2], 1);
    expect_installed(&items[2]);
    destroy_queue();
}
END_TEST

/* A function that takes a while to compile. */
static LLVMModuleRef build_large(LLVMContextRef own, void *user, struct cairn_error *error)
{
    enum { STEPS = 200 };
    static const char *const operations[] = {"add", "mul", "xor", "sub"};
    char *text = malloc(64 + STEPS * 48);
    const struct item *item = user;
    (void)error;
    int length = sprintf(text, "define i64 @f.%d(i64 %%v0) {\n", item->value);
    for (int i = 1; i < STEPS; i++)
        length += sprintf(text + length, "  %%v%d = %s i64 %%v%d, %%v%d\n", i, operations[i % 4],
                          i - 1, i / 2);
    sprintf(text + length, "  ret i64 %%v%d\n}\n", STEPS - 1);
    LLVMModuleRef module = support_parse(own, text);
    free(text);
    return module;
}

static void destroy_at_exit(void) { cairn_queue_destroy(queue); }

/* Ends the process at some time after the queue has begun to compile. */
static _Noreturn void end_while_compiling(unsigned wait_us, bool destroys)
{
    char names[8][32];
    const struct cairn_queue_options options = {.engine = {.optimisation_level = 2},
                                                .thread_count = 2};
    if (destroys)
        atexit(destroy_at_exit);
    create_queue(&options);
    for (int i = 0; i < 8; i++) {
        struct cairn_queue_job job = job_of(&items[i], names[i]);
        job.build = build_large;
        ck_assert_ok(cairn_queue_add(queue, &job, NULL, NULL));
    }
    const struct timespec a_while = {.tv_nsec = 1000L * wait_us};
    nanosleep(&a_while, NULL);
    exit(0);
}

START_TEST(the_process_may_end_while_jobs_are_compiled)
{
    for (unsigned i = 0; i < 20; i++) {
        int result;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            end_while_compiling(500 * i, _i != 0);
        waitpid(child, &result, 0);
        ck_assert_msg(WIFEXITED(result), "child %u ended by signal %d", i, WTERMSIG(result));
        ck_assert_int_eq(WEXITSTATUS(result), 0);
    }
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, jobs_are_compiled_and_installed, 0, 4);
    tcase_add_loop_test(tests, the_process_may_end_while_jobs_are_compiled, 0, 2);
    tcase_add_test(tests, jobs_that_wait_are_compiled_together);
    tcase_add_test(tests, modules_are_named_by_their_functions);
    tcase_add_test(tests, a_later_version_replaces_and_retires_an_earlier_one);
    tcase_add_test(tests, a_job_does_not_use_what_another_one_defines);
    tcase_add_test(tests, a_job_fills_an_entry_without_a_type);
    tcase_add_test(tests, an_error_affects_only_its_own_job);
    tcase_add_test(tests, misuse_is_refused);
    tcase_add_test(tests, a_module_in_another_context_is_refused);
    tcase_add_test(tests, jobs_have_the_errors_of_options_that_only_llvm_can_check);
    tcase_add_test(tests, jobs_may_be_bitcode);
    tcase_add_test(tests, bitcode_that_llvm_cannot_read_is_an_error_of_the_job);
    tcase_add_test(tests, jobs_with_a_higher_priority_are_begun_first);
    tcase_add_test(tests, a_job_that_waits_can_be_raised);
    tcase_add_test(tests, a_batch_has_jobs_of_one_priority);
    tcase_add_test(tests, jobs_are_found_and_ordered_at_random);
    tcase_add_test(tests, a_function_with_a_large_frame_is_refused);
    tcase_add_test(tests, a_module_of_refused_functions_is_retired);
    tcase_add_loop_test(tests, a_batch_is_retired_with_its_last_function, 0, 8);
    tcase_add_test(tests, a_function_of_a_retired_module_can_be_retired);
    tcase_add_test(tests, a_full_version_follows_a_quick_one);
    tcase_add_test(tests, full_versions_wait_for_quick_ones);
    tcase_add_loop_test(tests, the_full_version_can_be_cancelled, 0, 2);
    tcase_add_test(tests, a_job_that_is_cancelled_before_its_quick_version_has_one_result);
    tcase_add_test(tests, the_full_version_follows_a_quick_one_that_failed);
    tcase_add_loop_test(tests, guards_that_wait_for_the_full_version_are_not_in_it, 0, 2);
    tcase_add_test(tests, wrong_tiers_are_refused);
    tcase_add_test(tests, jobs_may_be_objects);
    tcase_add_test(tests, objects_may_wait_with_other_jobs);
    tcase_add_test(tests, an_object_that_cannot_be_loaded_is_an_error_of_the_job);
    tcase_add_test(tests, a_job_has_one_kind_of_code);
    tcase_add_test(tests, results_can_be_taken_by_the_hosts_thread);
    tcase_add_test(tests, results_that_are_not_taken_are_freed_with_the_queue);
    tcase_add_loop_test(tests, a_queue_that_warms_up_compiles_jobs, 0, 4);
    tcase_add_test(tests, a_queue_can_be_destroyed_while_it_warms_up);
    tcase_add_test(tests, a_batch_may_have_any_limit);
    tcase_add_loop_test(tests, limits_are_enforced, 0, 2);
    tcase_add_test(tests, a_cancelled_job_is_not_installed);
    tcase_add_test(tests, destroying_cancels_what_waits_and_waits_for_the_rest);
    tcase_add_test(tests, threads_add_cancel_and_call_at_random);
    tcase_add_test(tests, a_queue_that_cannot_be_allocated_leaves_nothing);
    tcase_add_test(tests, a_child_cannot_use_its_parents_queue);
}

int main(void) { return engine_main("queues", add_tests); }
