/*
 * A test of grace periods in the manner of the kernel's rcutorture: every thread looks up,
 * executes, publishes and retires modules, and starts and ends grace periods by the counters of the
 * others, while signal handlers look up. Freed tables are overwritten, and freed code is used again
 * for modules that return other numbers. So whatever is freed too early is found.
 *
 * Runs for two seconds in each mode, or for CAIRN_TORTURE_SECONDS.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "runtime/module.h"
#include "tests/code_support.h"
#include "tests/site_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum {
    THREADS = 4,
    PLACES = 24,   /* modules that exist at a time */
    PERIODS = 4,   /* that a thread has begun and not ended */
    NUMBERS = 900, /* that functions return */
    RECORD_OFFSET = 1,
    COMMON_ID = 7, /* an ID that all modules have */
    FIRST_ID = 1000
};

/* ---- Threads ---- */

/* A grace period has passed when all counters have changed. */
struct period {
    uint64_t token; /* 0: none */
    uint64_t counters[THREADS];
};

struct torture;

struct torturer {
    struct torture *torture;
    pthread_t thread;
    uint64_t state;             /* of the random numbers */
    _Atomic uint64_t quiescent; /* number of quiescent points */
    struct period periods[PERIODS];
    uint64_t lookups;
    uint64_t updates;
    uint64_t ended;
    uint64_t freed;
};

struct torture {
    cairn_runtime *runtime;
    /* Modules that are published, by the addresses of their functions. Each place belongs to one
     * thread, which replaces it; all threads read it. */
    _Atomic uint64_t functions[PLACES];
    struct torturer torturers[THREADS];
    _Atomic bool stop;
    _Atomic uint64_t signals;
    _Atomic uint64_t found_by_signal;
};

static struct torture *interrupted;

static uint32_t below(uint64_t *state, uint32_t bound) { return support_random(state) % bound; }

/* ---- Modules ---- */

/* Loads and publishes a function that returns `number`, whose record's ID is FIRST_ID + number. */
static uint64_t publish(cairn_runtime *runtime, int number)
{
    enum { CODE_BYTES = 64 };
    uint8_t bytes[CODE_BYTES];
    const struct site_function function = {0, 2};
    const struct site_record records[] = {
        {(uint64_t)(FIRST_ID + number), RECORD_OFFSET, 0, CAIRN_RECORD_UNDECLARED},
        {COMMON_ID, RECORD_OFFSET + 1, 0, CAIRN_RECORD_UNDECLARED}};
    memset(bytes, 0xCC, sizeof bytes);
    arch_host()->encode_self_test(arch_host(), number, bytes);
    const struct site_code code = {bytes, sizeof bytes, &function, 1, records, 0};
    uint8_t *address;
    cairn_module *module = site_load_code(runtime, &code, &address);
    support_expect(cairn_module_publish(module, NULL) == CAIRN_OK);
    return (uintptr_t)address;
}

static void retire(cairn_runtime *runtime, uint64_t function)
{
    cairn_module *module = cairn_runtime_find_module(runtime, function);
    support_expect(module != NULL);
    cairn_module_retire(module);
}

/* ---- Reading: between two quiescent points ---- */

/* Checks a record that a lookup has found. */
static void check_record(struct cairn_record record, uint64_t function)
{
    support_expect(record_module(record) != NULL);
    support_expect(cairn_table_record_count(record.table) == 2);
    if (function != 0)
        support_expect(cairn_record_address(record) == function + RECORD_OFFSET);
    support_expect(cairn_record_id(record) >= FIRST_ID || cairn_record_id(record) == COMMON_ID);
}

/* Whether the module of the function was found: it may have been retired meanwhile. Another one may
 * be there. Async-signal-safe, except for `calls`. */
static bool look_up(const struct torture *torture, uint64_t function, bool calls)
{
    struct cairn_record record;
    struct cairn_record again[2];
    if (!cairn_runtime_find_address(torture->runtime, function + RECORD_OFFSET, &record))
        return false;
    check_record(record, function);
    uint64_t id = cairn_record_id(record);
    if (calls)
        support_expect(((int (*)(void))(uintptr_t)function)() == (int)(id - FIRST_ID));
    size_t count = cairn_runtime_find_id(torture->runtime, id, again, 2);
    for (size_t i = 0; i < count && i < 2; i++)
        support_expect(cairn_record_id(again[i]) == id);
    /* It is still there, whoever has retired it. */
    check_record(record, function);
    support_expect(cairn_record_id(record) == id);
    return true;
}

static void look_up_common(const struct torture *torture)
{
    struct cairn_record records[2 * PLACES];
    size_t count = cairn_runtime_find_id(torture->runtime, COMMON_ID, records, 2 * PLACES);
    for (size_t i = 0; i < count && i < 2 * PLACES; i++)
        support_expect(cairn_record_id(records[i]) == COMMON_ID);
}

static void look_up_in_handler(int number)
{
    (void)number;
    uint64_t count = atomic_fetch_add(&interrupted->signals, 1);
    uint64_t function = atomic_load(&interrupted->functions[count % PLACES]);
    if (look_up(interrupted, function, false))
        atomic_fetch_add(&interrupted->found_by_signal, 1);
    look_up_common(interrupted);
}

/* ---- Grace periods ---- */

static bool has_passed(const struct torture *torture, const struct period *period)
{
    for (int i = 0; i < THREADS; i++)
        if (atomic_load(&torture->torturers[i].quiescent) == period->counters[i])
            return false;
    return true;
}

static void start_or_end(struct torturer *self, struct period *period)
{
    struct torture *torture = self->torture;
    if (period->token == 0) {
        period->token = cairn_runtime_grace_start(torture->runtime);
        for (int i = 0; i < THREADS; i++)
            period->counters[i] = atomic_load(&torture->torturers[i].quiescent);
    } else if (has_passed(torture, period)) {
        self->freed += cairn_runtime_grace_end(torture->runtime, period->token);
        self->ended++;
        period->token = 0;
    }
}

/* ---- All of it ---- */

static void update(struct torturer *self, int number)
{
    struct torture *torture = self->torture;
    int place = (int)below(&self->state, PLACES / THREADS) * THREADS + number;
    uint64_t fresh =
        publish(torture->runtime, (int)below(&self->state, NUMBERS / THREADS) * THREADS + number);
    uint64_t old = atomic_exchange(&torture->functions[place], fresh);
    retire(torture->runtime, old);
    self->updates++;
}

static void *run(void *argument)
{
    struct torturer *self = argument;
    struct torture *torture = self->torture;
    int number = (int)(self - torture->torturers);
    while (!atomic_load(&torture->stop)) {
        for (uint32_t i = below(&self->state, 8); i > 0; i--) {
            uint32_t place = below(&self->state, PLACES);
            self->lookups +=
                look_up(torture, atomic_load(&torture->functions[place]), below(&self->state, 2));
        }
        look_up_common(torture);
        if (below(&self->state, 4) == 0)
            update(self, number);
        atomic_fetch_add(&self->quiescent, 1);
        start_or_end(self, &self->periods[below(&self->state, PERIODS)]);
    }
    /* Ends no more periods of the others, which need not wait for this thread any more. */
    return NULL;
}

static void set_timer(long microseconds)
{
    struct itimerval interval = {{0, microseconds}, {0, microseconds}};
    ck_assert_int_eq(setitimer(ITIMER_REAL, &interval, NULL), 0);
}

static unsigned seconds(void)
{
    const char *given = getenv("CAIRN_TORTURE_SECONDS");
    return given == NULL ? 2 : (unsigned)strtoul(given, NULL, 10);
}

static void sleep_for(unsigned count)
{
    struct timespec left = {.tv_sec = count};
    while (nanosleep(&left, &left) != 0)
        continue;
}

START_TEST(nothing_is_freed_while_it_is_in_use)
{
    static struct torture torture; /* too large for the stack */
    torture = (struct torture){.stop = false};
    uint64_t state = support_seed();
    const struct cairn_runtime_options options = {.allocator = support_poisoning(),
                                                  .code_mode = site_modes[_i]};
    ck_assert_int_eq(cairn_runtime_create(&options, &torture.runtime, NULL), CAIRN_OK);
    for (int i = 0; i < PLACES; i++)
        torture.functions[i] = publish(torture.runtime, i);
    interrupted = &torture;
    struct sigaction action = {.sa_handler = look_up_in_handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < THREADS; i++) {
        torture.torturers[i].torture = &torture;
        torture.torturers[i].state = state + (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15);
        ck_assert_int_eq(
            pthread_create(&torture.torturers[i].thread, NULL, run, &torture.torturers[i]), 0);
    }
    /* This thread holds nothing, so periods need not wait for it; but its handler does. */
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    set_timer(500);
    sleep_for(seconds());
    set_timer(0);
    atomic_store(&torture.stop, true);
    uint64_t lookups = 0, updates = 0, ended = 0, freed = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(torture.torturers[i].thread, NULL);
        lookups += torture.torturers[i].lookups;
        updates += torture.torturers[i].updates;
        ended += torture.torturers[i].ended;
        freed += torture.torturers[i].freed;
    }
    printf("%llu lookups, %llu modules retired, %llu freed in %llu grace periods, %llu signals\n",
           (unsigned long long)lookups, (unsigned long long)updates, (unsigned long long)freed,
           (unsigned long long)ended, (unsigned long long)torture.signals);
    ck_assert_uint_gt(lookups, 100);
    ck_assert_uint_gt(ended, 10);
    ck_assert_uint_gt(freed, 10);
    ck_assert_uint_le(freed, updates);
    ck_assert_uint_eq(freed + cairn_runtime_quiesce(torture.runtime), updates);
    cairn_runtime_destroy(torture.runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture");
    TCase *tests = tcase_create("torture");
    tcase_set_timeout(tests, seconds() + 60);
    tcase_add_loop_test(tests, nothing_is_freed_while_it_is_in_use, site_first_mode(), SITE_MODES);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
