/*
 * Sites in loaded code: what they become, how they are patched, alone and while threads and
 * signals run through them, and stopped at every instruction of their region.
 *
 * The code is made by hand as LLVM emits it for x86-64, so these tests need no LLVM.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/section_writer.h"

#include <cairn/cairn.h>
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

enum { EXIT_SKIPPED = 77, REGION_MAX = 64 };

static long one(void) { return 1; }
static long two(void) { return 2; }

#define ONE ((const void *)(uintptr_t)one)
#define TWO ((const void *)(uintptr_t)two)

/* ---- A function with one site ---- */

struct fixture {
    cairn_runtime *runtime;
    cairn_module *module;
    cairn_site *site;
    uint8_t *code;
    long (*function)(void);
};

static const enum cairn_code_mode modes[] = {CAIRN_CODE_MODE_DUAL, CAIRN_CODE_MODE_SINGLE};
enum { MODES = sizeof modes / sizeof *modes };

#define ck_assert_ok(status, error)                                                                \
    do {                                                                                           \
        enum cairn_status ok_status = (status);                                                    \
        ck_assert_msg(ok_status == CAIRN_OK, "%s: %s", cairn_status_name(ok_status),               \
                      (error).message);                                                            \
    } while (0)

struct shape {
    enum cairn_record_kind kind;
    const uint8_t *region;
    uint32_t region_size; /* as written */
    uint32_t byte_count;  /* as declared */
    uint32_t padding;     /* no-op bytes before the region: its alignment */
    uint32_t next_record; /* another record that far behind the region's start; 0: none */
    bool publish;
};

/* xor %eax, %eax; sub $8, %rsp; padding; region; add $8, %rsp; ret */
static void write_function(uint8_t *code, const struct shape *shape)
{
    static const uint8_t head[] = {0x31, 0xC0, 0x48, 0x83, 0xEC, 0x08};
    static const uint8_t tail[] = {0x48, 0x83, 0xC4, 0x08, 0xC3};
    uint8_t *at = code;
    memcpy(at, head, sizeof head);
    at += sizeof head;
    memset(at, 0x90, shape->padding);
    at += shape->padding;
    memcpy(at, shape->region, shape->region_size);
    at += shape->region_size;
    memcpy(at, tail, sizeof tail);
}

static void write_stackmap(cairn_loader *loader, const uint8_t *code, const struct shape *shape)
{
    struct section_writer writer;
    struct cairn_error error;
    uint32_t records = shape->next_record == 0 ? 1 : 2;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, records);
    writer_function(&writer, (uintptr_t)code, 8, records);
    writer_record(&writer, 42, 6 + shape->padding, NULL, 0, NULL, 0);
    if (shape->next_record != 0)
        writer_record(&writer, 43, 6 + shape->padding + shape->next_record, NULL, 0, NULL, 0);
    void *section = cairn_loader_allocate_stackmap(loader, writer.size, 8, &error);
    ck_assert_msg(section != NULL, "%s", error.message);
    memcpy(section, writer.bytes, writer.size);
    writer_end(&writer);
}

static void declare(cairn_loader *loader, const struct shape *shape)
{
    struct cairn_error error;
    cairn_declarations *declarations;
    const struct cairn_declaration declaration = {
        .id = 42, .kind = shape->kind, .byte_count = shape->byte_count, .function = "f"};
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, &error), error);
    ck_assert_ok(cairn_declarations_add(declarations, &declaration, &error), error);
    ck_assert_ok(cairn_loader_declare(loader, declarations, &error), error);
    cairn_declarations_destroy(declarations);
}

static void load(struct fixture *fixture, enum cairn_code_mode mode, const struct shape *shape)
{
    struct cairn_error error;
    cairn_loader *loader;
    const struct cairn_runtime_options options = {.code_mode = mode};
    ck_assert_ok(cairn_runtime_create(&options, &fixture->runtime, &error), error);
    ck_assert_ok(cairn_loader_create(fixture->runtime, "test", &loader, &error), error);
    fixture->code = cairn_loader_allocate_code(loader, 256, 64, &error);
    ck_assert_msg(fixture->code != NULL, "%s", error.message);
    write_function(fixture->code, shape);
    write_stackmap(loader, fixture->code, shape);
    declare(loader, shape);
    ck_assert_ok(cairn_loader_finish(loader, &fixture->module, &error), error);
    if (shape->publish)
        ck_assert_ok(cairn_module_publish(fixture->module, &error), error);
    fixture->site = cairn_module_site(fixture->module, 0);
    ck_assert_ptr_nonnull(fixture->site);
    fixture->function = (long (*)(void))(uintptr_t)fixture->code;
}

static void unload(struct fixture *fixture)
{
    cairn_module_retire(fixture->module);
    ck_assert_uint_eq(cairn_runtime_quiesce(fixture->runtime), 1);
    cairn_runtime_destroy(fixture->runtime);
}

static struct cairn_site_description describe(const struct fixture *fixture)
{
    struct cairn_site_description description;
    cairn_site_describe(fixture->site, &description);
    return description;
}

/* LLVM's call of `one` and no-ops up to `size`, in `region`. */
static struct shape patchpoint(uint8_t *region, uint32_t size)
{
    static const uint8_t call[] = {0x49, 0xBB, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xFF, 0xD3};
    uint64_t target = (uintptr_t)one;
    memset(region, 0x90, size);
    if (size >= sizeof call) {
        memcpy(region, call, sizeof call);
        memcpy(region + 2, &target, sizeof target);
    }
    return (struct shape){CAIRN_RECORD_PATCHPOINT, region, size, size, 0, 0, true};
}

/* ---- Patch points ---- */

START_TEST(patchpoint_becomes_call_no_op_and_jump_and_comes_back)
{
    uint8_t region[REGION_MAX];
    struct fixture fixture;
    struct cairn_error error;
    const struct shape shape = patchpoint(region, 16);
    load(&fixture, modes[_i], &shape);
    ck_assert_int_eq(describe(&fixture).state, CAIRN_SITE_CALL);
    ck_assert_uint_eq(describe(&fixture).target, (uintptr_t)one);
    ck_assert(describe(&fixture).live);
    ck_assert_int_eq(fixture.function(), 1);
    ck_assert_ok(cairn_site_call(fixture.site, TWO, CAIRN_RELAXED, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_uint_eq(describe(&fixture).target, (uintptr_t)two);
    ck_assert_ok(cairn_site_nop(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 0);
    ck_assert_int_eq(describe(&fixture).state, CAIRN_SITE_NOP);
    /* The function's own end: takes the frame down and returns. */
    const uint8_t *tail = fixture.code + 6 + 16;
    ck_assert_ok(cairn_site_jump(fixture.site, tail, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 0);
    ck_assert_int_eq(describe(&fixture).state, CAIRN_SITE_JUMP);
    ck_assert(!describe(&fixture).uses_veneer);
    ck_assert_ok(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 1);
    unload(&fixture);
}
END_TEST

START_TEST(records_of_a_patchpoint_are_found_by_both_addresses)
{
    uint8_t region[REGION_MAX];
    struct fixture fixture;
    struct cairn_record record;
    const struct shape shape = patchpoint(region, 20);
    load(&fixture, modes[_i], &shape);
    struct cairn_site_description description = describe(&fixture);
    ck_assert(cairn_runtime_find_address(fixture.runtime, description.address, &record));
    ck_assert_ptr_eq(cairn_record_site(record), fixture.site);
    ck_assert_ptr_eq(cairn_record_module(record), fixture.module);
    ck_assert(
        cairn_runtime_find_return_address(fixture.runtime, description.return_address, &record));
    ck_assert_uint_eq(cairn_record_id(record), 42);
    ck_assert_str_eq(cairn_record_declaration(record)->function, "f");
    ck_assert(!cairn_runtime_find_return_address(fixture.runtime, description.address, &record));
    ck_assert_ptr_eq(cairn_runtime_find_site(fixture.runtime, 42, NULL), fixture.site);
    cairn_module_retire(fixture.module);
    ck_assert(!cairn_runtime_find_address(fixture.runtime, description.address, &record));
    ck_assert_ptr_null(cairn_runtime_find_site(fixture.runtime, 42, NULL));
    ck_assert_int_eq(cairn_site_call(fixture.site, TWO, CAIRN_RELAXED, NULL), CAIRN_ERROR_STATE);
    unload(&fixture);
}
END_TEST

START_TEST(every_region_of_nine_bytes_is_live_at_any_alignment)
{
    for (uint32_t size = 1; size <= 24; size++) {
        for (uint32_t padding = 0; padding < 8; padding++) {
            uint8_t region[REGION_MAX];
            struct fixture fixture;
            struct cairn_error error;
            struct shape shape = patchpoint(region, size);
            shape.padding = padding;
            load(&fixture, CAIRN_CODE_MODE_DUAL, &shape);
            bool live = describe(&fixture).live;
            ck_assert(live || size < 9);
            enum cairn_status status = cairn_site_call(fixture.site, TWO, CAIRN_RELAXED, &error);
            ck_assert_int_eq(status, live ? CAIRN_OK : CAIRN_ERROR_UNMANAGED);
            if (live)
                ck_assert_int_eq(fixture.function(), 2);
            else
                ck_assert_int_gt((int)strlen(describe(&fixture).reason), 10);
            unload(&fixture);
        }
    }
}
END_TEST

START_TEST(unknown_bytes_are_left_alone_and_named)
{
    uint8_t region[REGION_MAX];
    struct fixture fixture;
    struct cairn_error error;
    const struct shape shape = patchpoint(region, 16);
    region[14] = 0xF4;
    load(&fixture, modes[_i], &shape);
    struct cairn_site_description description = describe(&fixture);
    ck_assert_int_eq(description.state, CAIRN_SITE_UNMANAGED);
    ck_assert(!description.live);
    ck_assert_ptr_nonnull(strstr(description.reason, "0xf4"));
    ck_assert_int_eq(memcmp(description.bytes, region, 16), 0);
    ck_assert_int_eq(cairn_site_call(fixture.site, TWO, CAIRN_SYNC, &error), CAIRN_ERROR_UNMANAGED);
    ck_assert_ok(cairn_site_call(fixture.site, TWO, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_ok(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(memcmp(description.bytes, region, 16), 0);
    unload(&fixture);
}
END_TEST

START_TEST(what_is_wrong_is_refused_before_the_first_write)
{
    uint8_t region[REGION_MAX];
    uint8_t before[16];
    struct fixture fixture;
    const struct shape shape = patchpoint(region, 16);
    load(&fixture, modes[_i], &shape);
    memcpy(before, describe(&fixture).bytes, 16);
    ck_assert_int_eq(cairn_site_call(fixture.site, NULL, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_site_jump(fixture.site, NULL, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_site_call(NULL, ONE, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_site_write(fixture.site, region, 16, CAIRN_SYNC, NULL),
                     CAIRN_ERROR_STATE);
    ck_assert_int_eq(cairn_site_write(fixture.site, region, 17, CAIRN_QUIESCENT, NULL),
                     CAIRN_ERROR_RANGE);
    struct cairn_error error;
    ck_assert_ptr_null(cairn_runtime_find_site(fixture.runtime, 7, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(memcmp(before, describe(&fixture).bytes, 16), 0);
    unload(&fixture);
}
END_TEST

START_TEST(whole_region_is_written_unpublished_or_quiescent)
{
    static const uint8_t return_seven[] = {0xB8, 7, 0, 0, 0};
    uint8_t region[REGION_MAX];
    struct fixture fixture;
    struct cairn_error error;
    struct shape shape = patchpoint(region, 16);
    shape.publish = false;
    load(&fixture, modes[_i], &shape);
    ck_assert_ok(
        cairn_site_write(fixture.site, return_seven, sizeof return_seven, CAIRN_RELAXED, &error),
        error);
    ck_assert_ok(cairn_module_publish(fixture.module, &error), error);
    ck_assert_int_eq(fixture.function(), 7);
    ck_assert_int_eq(describe(&fixture).state, CAIRN_SITE_WRITTEN);
    ck_assert_int_eq(cairn_site_call(fixture.site, TWO, CAIRN_SYNC, &error), CAIRN_ERROR_STATE);
    ck_assert_int_eq(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), CAIRN_ERROR_STATE);
    ck_assert_ok(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(fixture.function(), 1);
    ck_assert_ok(cairn_site_call(fixture.site, TWO, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    unload(&fixture);
}
END_TEST

/* ---- Shadows ---- */

/* xor %eax, %eax (2); inc %eax three times (2 each): nothing of 5 bytes. */
static const uint8_t short_instructions[] = {0x31, 0xC0, 0xFF, 0xC0, 0xFF, 0xC0, 0xFF, 0xC0};
/* mov $3, %eax: one instruction of 5 bytes. */
static const uint8_t long_instruction[] = {0xB8, 3, 0, 0, 0, 0x90, 0x90, 0x90};
static const uint8_t no_ops[] = {0x66, 0x0F, 0x1F, 0x84, 0, 0, 2, 0, 0, 0x90};

START_TEST(shadow_of_no_ops_is_live)
{
    struct fixture fixture;
    struct cairn_error error;
    const struct shape shape = {
        CAIRN_RECORD_STACKMAP, no_ops, sizeof no_ops, sizeof no_ops, 3, 0, true};
    load(&fixture, modes[_i], &shape);
    ck_assert(describe(&fixture).live);
    ck_assert_int_eq(describe(&fixture).state, CAIRN_SITE_NOP);
    ck_assert_int_eq(fixture.function(), 0);
    ck_assert_ok(cairn_site_call(fixture.site, TWO, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_ok(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 0);
    unload(&fixture);
}
END_TEST

START_TEST(shadow_of_one_long_instruction_in_a_word_is_live)
{
    for (uint32_t padding = 0; padding < 8; padding++) {
        struct fixture fixture;
        struct cairn_error error;
        const struct shape shape = {
            CAIRN_RECORD_STACKMAP, long_instruction, sizeof long_instruction, 5, padding, 0, true};
        load(&fixture, modes[_i], &shape);
        bool in_one_word = describe(&fixture).address % 8 <= 3;
        ck_assert(describe(&fixture).live == in_one_word);
        ck_assert_int_eq(describe(&fixture).state, CAIRN_SITE_ORIGINAL);
        ck_assert_int_eq(fixture.function(), 3);
        enum cairn_strength strength = in_one_word ? CAIRN_SYNC : CAIRN_QUIESCENT;
        ck_assert_ok(cairn_site_call(fixture.site, TWO, strength, &error), error);
        ck_assert_int_eq(fixture.function(), 2);
        ck_assert_ok(cairn_site_restore(fixture.site, strength, &error), error);
        ck_assert_int_eq(fixture.function(), 3);
        ck_assert_int_eq(describe(&fixture).state, CAIRN_SITE_ORIGINAL);
        unload(&fixture);
    }
}
END_TEST

START_TEST(shadow_of_short_instructions_needs_quiescence)
{
    struct fixture fixture;
    struct cairn_error error;
    const struct shape shape = {CAIRN_RECORD_STACKMAP,
                                short_instructions,
                                sizeof short_instructions,
                                sizeof short_instructions,
                                0,
                                0,
                                true};
    load(&fixture, modes[_i], &shape);
    ck_assert(!describe(&fixture).live);
    ck_assert_int_eq(cairn_site_call(fixture.site, TWO, CAIRN_SYNC, &error), CAIRN_ERROR_UNMANAGED);
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_ok(cairn_site_call(fixture.site, TWO, CAIRN_QUIESCENT, &error), error);
    /* The call took 5 bytes and the rest of the third instruction; the fourth is still there. */
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_int_eq(describe(&fixture).state, CAIRN_SITE_CALL);
    ck_assert_uint_eq(describe(&fixture).bytes[5], 0x90);
    ck_assert_ok(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(
        memcmp(describe(&fixture).bytes, short_instructions, sizeof short_instructions), 0);
    unload(&fixture);
}
END_TEST

START_TEST(shadow_is_not_patched_across_another_record_or_its_end)
{
    struct fixture fixture;
    struct cairn_error error;
    const struct shape crossed = {CAIRN_RECORD_STACKMAP,
                                  short_instructions,
                                  sizeof short_instructions,
                                  sizeof short_instructions,
                                  0,
                                  4,
                                  true};
    const struct shape small = {
        CAIRN_RECORD_STACKMAP, short_instructions, sizeof short_instructions, 4, 0, 0, true};
    load(&fixture, modes[_i / 2], _i % 2 == 0 ? &crossed : &small);
    ck_assert_int_eq(cairn_site_call(fixture.site, TWO, CAIRN_QUIESCENT, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_int_eq(cairn_site_write(fixture.site, no_ops, 5, CAIRN_QUIESCENT, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_int_eq(fixture.function(), 3);
    unload(&fixture);
}
END_TEST

/* ---- Batches ---- */

START_TEST(batch_is_made_whole_or_not_at_all)
{
    uint8_t region[REGION_MAX];
    struct fixture fixture;
    struct cairn_error error;
    cairn_batch *batch;
    const struct shape shape = patchpoint(region, 16);
    load(&fixture, modes[_i], &shape);
    ck_assert_ok(cairn_batch_create(fixture.runtime, &batch, &error), error);
    ck_assert_ok(cairn_batch_call(batch, fixture.site, TWO, &error), error);
    ck_assert_int_eq(fixture.function(), 1);
    ck_assert_int_eq(cairn_batch_nop(batch, fixture.site, &error), CAIRN_ERROR_CONFLICT);
    ck_assert_int_eq(cairn_batch_call(batch, fixture.site, NULL, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ok(cairn_batch_commit(batch, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_ok(cairn_batch_restore(batch, fixture.site, &error), error);
    cairn_batch_clear(batch);
    ck_assert_ok(cairn_batch_commit(batch, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_ok(cairn_batch_restore(batch, fixture.site, &error), error);
    cairn_module_retire(fixture.module);
    ck_assert_int_eq(cairn_batch_commit(batch, CAIRN_SYNC, &error), CAIRN_ERROR_STATE);
    ck_assert_int_eq(fixture.function(), 2);
    cairn_batch_destroy(batch);
    unload(&fixture);
}
END_TEST

/* ---- Threads and signals ---- */

enum { THREADS = 3, PATCHES = 20000 };

struct runner {
    pthread_t thread;
    long (*function)(void);
    _Atomic long *promised; /* after a synchronised patch: the only result; -1: any */
    atomic_bool *stop;
    atomic_ulong wrong;
    atomic_ulong runs;
};

static void *run(void *argument)
{
    struct runner *runner = argument;
    while (!atomic_load(runner->stop)) {
        long promised = atomic_load(runner->promised);
        long result = runner->function();
        bool still = atomic_load(runner->promised) == promised;
        if (result < 0 || result > 2 || (promised >= 0 && still && result != promised))
            atomic_fetch_add(&runner->wrong, 1);
        atomic_fetch_add(&runner->runs, 1);
    }
    return NULL;
}

static void patch_at_random(const struct fixture *fixture, _Atomic long *promised, int patches)
{
    const uint8_t *tail = fixture->code + 6 + 16;
    for (int i = 0; i < patches; i++) {
        long choice = i * 7 % 5;
        bool sync = i % 16 == 0;
        enum cairn_strength strength = sync ? CAIRN_SYNC : CAIRN_RELAXED;
        atomic_store(promised, -1);
        enum cairn_status status = CAIRN_OK;
        if (choice == 0)
            status = cairn_site_nop(fixture->site, strength, NULL);
        else if (choice == 3)
            status = cairn_site_jump(fixture->site, tail, strength, NULL);
        else
            status = cairn_site_call(fixture->site, choice % 2 == 1 ? ONE : TWO, strength, NULL);
        ck_assert_int_eq(status, CAIRN_OK);
        if (sync)
            atomic_store(promised, choice == 0 || choice == 3 ? 0 : choice % 2 == 1 ? 1 : 2);
    }
}

START_TEST(threads_see_the_old_or_the_new_and_after_a_barrier_the_new)
{
    uint8_t region[REGION_MAX];
    struct fixture fixture;
    static struct runner runners[THREADS];
    static _Atomic long promised;
    static atomic_bool stop;
    const struct shape shape = patchpoint(region, 16);
    load(&fixture, modes[_i], &shape);
    atomic_store(&promised, -1);
    for (int i = 0; i < THREADS; i++) {
        runners[i] =
            (struct runner){.function = fixture.function, .promised = &promised, .stop = &stop};
        ck_assert_int_eq(pthread_create(&runners[i].thread, NULL, run, &runners[i]), 0);
    }
    patch_at_random(&fixture, &promised, _i == 0 ? PATCHES : PATCHES / 10);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(runners[i].thread, NULL);
        ck_assert_uint_eq(runners[i].wrong, 0);
        ck_assert_uint_gt(runners[i].runs, 0);
    }
    unload(&fixture);
}
END_TEST

static const struct fixture *timer_fixture;
static atomic_ulong timer_runs;
static atomic_ulong timer_wrong;

static void run_in_signal(int signal)
{
    (void)signal;
    long result = timer_fixture->function();
    if (result < 0 || result > 2)
        atomic_fetch_add(&timer_wrong, 1);
    const void *target = atomic_fetch_add(&timer_runs, 1) % 2 == 0 ? ONE : TWO;
    if (cairn_site_call(timer_fixture->site, target, CAIRN_RELAXED, NULL) != CAIRN_OK)
        atomic_fetch_add(&timer_wrong, 1);
}

START_TEST(signal_handlers_may_run_and_patch_the_site)
{
    uint8_t region[REGION_MAX];
    struct fixture fixture;
    const struct shape shape = patchpoint(region, 16);
    load(&fixture, CAIRN_CODE_MODE_DUAL, &shape);
    timer_fixture = &fixture;
    const struct sigaction action = {.sa_handler = run_in_signal};
    const struct itimerval timer = {{0, 200}, {0, 200}};
    const struct itimerval none = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    while (atomic_load(&timer_runs) < 1000) {
        long result = fixture.function();
        ck_assert(result == 1 || result == 2 || result == 0);
        ck_assert_int_eq(cairn_site_call(fixture.site, TWO, CAIRN_RELAXED, NULL), CAIRN_OK);
        ck_assert_int_eq(cairn_site_nop(fixture.site, CAIRN_RELAXED, NULL), CAIRN_OK);
    }
    setitimer(ITIMER_REAL, &none, NULL);
    ck_assert_uint_eq(timer_wrong, 0);
    unload(&fixture);
}
END_TEST

/* ---- Stopped at every instruction ---- */

static struct {
    const struct fixture *fixture;
    int stop_at; /* patch at that instruction of the function */
    int steps;
    bool stepping;
    bool patched;
} step;

enum { TRAP_FLAG = 0x100 };

/* One instruction of the site's function was executed, or of what it called. */
static void stepped(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    ucontext_t *registers = context;
    if (!step.stepping) {
        registers->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
        return;
    }
    const uint8_t *pc = (const uint8_t *)registers->uc_mcontext.gregs[REG_RIP];
    bool inside = pc >= step.fixture->code && pc < step.fixture->code + 256;
    if (!inside || step.steps++ != step.stop_at)
        return;
    step.patched = true;
    if (cairn_site_call(step.fixture->site, TWO, CAIRN_RELAXED, NULL) != CAIRN_OK)
        step.patched = false;
    step.stepping = false;
    registers->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static long call_stepping(long (*function)(void))
{
    step.stepping = true;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    long result = function();
    step.stepping = false;
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    return result;
}

/* True if the function has an instruction with that number to stop at. */
static bool stop_and_patch(const struct fixture *fixture, int instruction)
{
    ck_assert_int_eq(cairn_site_call(fixture->site, ONE, CAIRN_RELAXED, NULL), CAIRN_OK);
    step.fixture = fixture;
    step.stop_at = instruction;
    step.steps = 0;
    step.patched = false;
    long result = call_stepping(fixture->function);
    ck_assert_msg(result == 1 || result == 2, "stopped at instruction %d: %ld", instruction,
                  result);
    if (step.patched)
        ck_assert_int_eq(fixture->function(), 2);
    return step.patched;
}

START_TEST(thread_stopped_at_any_instruction_goes_on_correctly)
{
    const struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    for (uint32_t size = 13; size <= 24; size++) {
        for (uint32_t padding = 0; padding < 8; padding++) {
            uint8_t region[REGION_MAX];
            struct fixture fixture;
            struct shape shape = patchpoint(region, size);
            shape.padding = padding;
            load(&fixture, CAIRN_CODE_MODE_DUAL, &shape);
            int instruction = 0;
            while (stop_and_patch(&fixture, instruction))
                instruction++;
            ck_assert_int_ge(instruction, 5);
            unload(&fixture);
        }
    }
}
END_TEST

int main(void)
{
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64)
        return EXIT_SKIPPED;
    Suite *suite = suite_create("sites");
    TCase *tests = tcase_create("sites");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, patchpoint_becomes_call_no_op_and_jump_and_comes_back, 0, MODES);
    tcase_add_loop_test(tests, records_of_a_patchpoint_are_found_by_both_addresses, 0, MODES);
    tcase_add_test(tests, every_region_of_nine_bytes_is_live_at_any_alignment);
    tcase_add_loop_test(tests, unknown_bytes_are_left_alone_and_named, 0, MODES);
    tcase_add_loop_test(tests, what_is_wrong_is_refused_before_the_first_write, 0, MODES);
    tcase_add_loop_test(tests, whole_region_is_written_unpublished_or_quiescent, 0, MODES);
    tcase_add_loop_test(tests, shadow_of_no_ops_is_live, 0, MODES);
    tcase_add_loop_test(tests, shadow_of_one_long_instruction_in_a_word_is_live, 0, MODES);
    tcase_add_loop_test(tests, shadow_of_short_instructions_needs_quiescence, 0, MODES);
    tcase_add_loop_test(tests, shadow_is_not_patched_across_another_record_or_its_end, 0,
                        2 * MODES);
    tcase_add_loop_test(tests, batch_is_made_whole_or_not_at_all, 0, MODES);
    tcase_add_loop_test(tests, threads_see_the_old_or_the_new_and_after_a_barrier_the_new, 0,
                        MODES);
    tcase_add_test(tests, signal_handlers_may_run_and_patch_the_site);
    tcase_add_test(tests, thread_stopped_at_any_instruction_goes_on_correctly);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
