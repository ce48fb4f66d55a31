/*
 * Tests of the table of IDs: compared with a simple model at random, and read by threads and signal
 * handlers while modules come and go. Freed memory is overwritten, so that a reader that uses it
 * finds wrong records.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/id_table.h"
#include "tests/allocator_support.h"
#include "tests/section_writer.h"
#include "tests/stackmap_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* ---- Modules ---- */

/* A module of these tests: a table with records of these IDs at ascending addresses. */
struct module {
    struct cairn_allocator allocator;
    cairn_table *records;
    struct id_entry *entries;
    uint64_t ids[64];
    uint32_t count;
};

static cairn_table *new_records(const struct cairn_allocator *allocator, const uint64_t *ids,
                                uint32_t count)
{
    enum { BASE = 0x10000, STRIDE = 8 };
    struct section_writer writer;
    cairn_table *records = NULL;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, count);
    writer_function(&writer, BASE, 8, count);
    for (uint32_t i = 0; i < count; i++)
        writer_record(&writer, ids[i], i * STRIDE, NULL, 0, NULL, 0);
    struct cairn_section section = writer_section(&writer);
    ck_assert_ok(cairn_table_create(&section, 1, allocator, &records, NULL));
    writer_end(&writer);
    return records;
}

/* Creates the entries of a table of records; NULL if there are no records, or no memory. */
static struct id_entry *new_entries(const struct cairn_allocator *allocator,
                                    const cairn_table *records, id_site_finder *find_site)
{
    size_t count = id_entries_count(records);
    struct id_entry *entries = memory_new(allocator, count, sizeof *entries);
    if (entries == NULL)
        return NULL;
    id_entries_init(entries, records, find_site);
    ck_assert_uint_eq(id_entries_length(entries), count);
    return entries;
}

static void free_entries(const struct cairn_allocator *allocator, struct id_entry *entries)
{
    memory_free(allocator, entries, id_entries_length(entries) * sizeof *entries);
}

static void create_module(struct module *module, const struct cairn_allocator *allocator,
                          const uint64_t *ids, uint32_t count)
{
    memcpy(module->ids, ids, count * sizeof *ids);
    module->allocator = *allocator;
    module->count = count;
    module->records = new_records(allocator, ids, count);
    module->entries = new_entries(allocator, module->records, NULL);
    ck_assert(module->entries != NULL || count == 0);
}

static void destroy_module(const struct module *module)
{
    free_entries(&module->allocator, module->entries);
    cairn_table_destroy(module->records);
}

static void publish(struct id_table *ids, const struct module *module)
{
    ck_assert_ok(id_table_reserve(ids, module->entries, NULL));
    id_table_add(ids, module->entries);
}

struct fixture {
    struct cairn_allocator allocator;
    struct grace grace;
    struct id_table *ids;
};

static void set_up(struct fixture *fixture, struct cairn_allocator allocator)
{
    fixture->allocator = allocator;
    grace_init(&fixture->grace);
    ck_assert_ok(id_table_create(&fixture->allocator, &fixture->grace, &fixture->ids, NULL));
}

static void tear_down(struct fixture *fixture)
{
    grace_drain(&fixture->grace);
    grace_destroy(&fixture->grace);
    id_table_destroy(fixture->ids);
}

/* ---- Order ---- */

START_TEST(an_empty_table_has_no_records)
{
    struct fixture fixture;
    set_up(&fixture, memory_allocator(NULL));
    for (uint64_t id = 0; id < 100; id++)
        ck_assert_uint_eq(id_table_find(fixture.ids, id, NULL, 0), 0);
    ck_assert_uint_eq(id_table_find(fixture.ids, UINT64_MAX, NULL, 0), 0);
    tear_down(&fixture);
    id_table_destroy(NULL);
    ck_assert_uint_eq(id_entries_length(NULL), 0);
}
END_TEST

START_TEST(a_module_without_records_may_be_added)
{
    struct fixture fixture;
    struct module module;
    set_up(&fixture, memory_allocator(NULL));
    create_module(&module, &fixture.allocator, (const uint64_t[]){0}, 0);
    publish(fixture.ids, &module);
    ck_assert_uint_eq(id_table_find(fixture.ids, 0, NULL, 0), 0);
    id_table_remove(fixture.ids, module.entries);
    destroy_module(&module);
    tear_down(&fixture);
}
END_TEST

/* The orders in which three modules with one ID may be removed. */
static const unsigned removals[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                       {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

static void expect_of(const struct fixture *fixture, uint64_t id, struct module *const *modules,
                      size_t count)
{
    struct cairn_record records[8];
    size_t found = id_table_find(fixture->ids, id, records, 8);
    size_t place = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; modules[i] != NULL && k < modules[i]->count; k++)
            if (modules[i]->ids[k] == id) {
                ck_assert_ptr_eq(records[place].table, modules[i]->records);
                ck_assert_uint_eq(records[place++].index, k);
            }
    ck_assert_uint_eq(found, place);
}

START_TEST(records_come_oldest_module_first_whichever_is_removed)
{
    static const uint64_t ids[] = {7, 9, 7};
    struct fixture fixture;
    struct module modules[3];
    struct module *in[] = {&modules[0], &modules[1], &modules[2]};
    set_up(&fixture, memory_allocator(NULL));
    for (int i = 0; i < 3; i++) {
        create_module(&modules[i], &fixture.allocator, ids, i == 1 ? 2 : 3);
        publish(fixture.ids, &modules[i]);
    }
    expect_of(&fixture, 7, in, 3);
    for (int i = 0; i < 3; i++) {
        unsigned removed = removals[_i][i];
        id_table_remove(fixture.ids, modules[removed].entries);
        in[removed] = NULL;
        expect_of(&fixture, 7, in, 3);
        expect_of(&fixture, 9, in, 3);
    }
    for (int i = 0; i < 3; i++)
        destroy_module(&modules[i]);
    tear_down(&fixture);
}
END_TEST

static bool stop_at_second(struct cairn_record record, void *user)
{
    (void)record;
    return ++*(unsigned *)user < 2;
}

START_TEST(a_visit_ends_when_the_visitor_says_so)
{
    static const uint64_t ids[] = {5, 5, 5};
    struct fixture fixture;
    struct module modules[2];
    unsigned visits = 0;
    set_up(&fixture, memory_allocator(NULL));
    for (int i = 0; i < 2; i++) {
        create_module(&modules[i], &fixture.allocator, ids, i == 0 ? 1 : 3);
        publish(fixture.ids, &modules[i]);
    }
    id_table_visit(fixture.ids, 5, stop_at_second, &visits);
    ck_assert_uint_eq(visits, 2);
    ck_assert_uint_eq(id_table_find(fixture.ids, 5, NULL, 0), 4);
    for (int i = 0; i < 2; i++)
        destroy_module(&modules[i]);
    tear_down(&fixture);
}
END_TEST

/* ---- Sites ---- */

/* A site for each record with an odd index, which is never read. */
static cairn_site *find_odd(struct cairn_record record)
{
    uintptr_t site = (uintptr_t)record.table + record.index * sizeof(void *);
    return record.index % 2 == 0 ? NULL : (cairn_site *)site;
}

START_TEST(the_only_site_of_an_id_is_found)
{
    static const uint64_t ids[] = {0, 1, 2, 2, 3, 3, 4, 3};
    enum { COUNT = sizeof ids / sizeof *ids };
    struct fixture fixture;
    struct module modules[2];
    set_up(&fixture, memory_allocator(NULL));
    for (int i = 0; i < 2; i++) {
        modules[i] = (struct module){.allocator = fixture.allocator};
        modules[i].records = new_records(&fixture.allocator, ids, COUNT);
        modules[i].entries = new_entries(&fixture.allocator, modules[i].records, find_odd);
    }
    publish(fixture.ids, &modules[0]);
    const cairn_table *table = modules[0].records;
    ck_assert_ptr_null(id_table_find_site(fixture.ids, 0));
    ck_assert_ptr_eq(id_table_find_site(fixture.ids, 1), find_odd((struct cairn_record){table, 1}));
    ck_assert_ptr_eq(id_table_find_site(fixture.ids, 2), find_odd((struct cairn_record){table, 3}));
    ck_assert_ptr_eq(id_table_find_site(fixture.ids, 3), ID_SITE_AMBIGUOUS);
    ck_assert_ptr_null(id_table_find_site(fixture.ids, 4));
    ck_assert_ptr_null(id_table_find_site(fixture.ids, 5));
    publish(fixture.ids, &modules[1]);
    ck_assert_ptr_null(id_table_find_site(fixture.ids, 0));
    ck_assert_ptr_eq(id_table_find_site(fixture.ids, 1), ID_SITE_AMBIGUOUS);
    id_table_remove(fixture.ids, modules[0].entries);
    ck_assert_ptr_eq(id_table_find_site(fixture.ids, 1),
                     find_odd((struct cairn_record){modules[1].records, 1}));
    id_table_remove(fixture.ids, modules[1].entries);
    ck_assert_ptr_null(id_table_find_site(fixture.ids, 1));
    for (int i = 0; i < 2; i++)
        destroy_module(&modules[i]);
    tear_down(&fixture);
}
END_TEST

/* Quadratic time would be several minutes. */
START_TEST(many_modules_with_one_id_take_linear_time)
{
    enum { MODULES = 200000 };
    struct fixture fixture;
    set_up(&fixture, memory_allocator(NULL));
    cairn_table *records = new_records(NULL, (const uint64_t[]){3}, 1);
    struct id_entry **entries = calloc(MODULES, sizeof *entries);
    for (size_t i = 0; i < MODULES; i++) {
        entries[i] = new_entries(&fixture.allocator, records, NULL);
        ck_assert_ptr_nonnull(entries[i]);
        ck_assert_ok(id_table_reserve(fixture.ids, entries[i], NULL));
        id_table_add(fixture.ids, entries[i]);
    }
    expect_equal(id_table_find(fixture.ids, 3, NULL, 0), MODULES);
    for (size_t i = 0; i < MODULES; i++) /* every third, then the others from the end */
        if (i % 3 == 0)
            id_table_remove(fixture.ids, entries[i]);
    for (size_t i = MODULES; i-- > 0;)
        if (i % 3 != 0)
            id_table_remove(fixture.ids, entries[i]);
    expect_equal(id_table_find(fixture.ids, 3, NULL, 0), 0);
    for (size_t i = 0; i < MODULES; i++)
        free_entries(&fixture.allocator, entries[i]);
    free(entries);
    cairn_table_destroy(records);
    tear_down(&fixture);
}
END_TEST

START_TEST(slots_of_removed_ids_are_used_again)
{
    struct fixture fixture;
    size_t size = 0;
    set_up(&fixture, memory_allocator(NULL));
    for (uint64_t id = 0; id < 5000; id++) {
        struct module module;
        create_module(&module, &fixture.allocator, &id, 1);
        publish(fixture.ids, &module);
        ck_assert_uint_eq(id_table_find(fixture.ids, id, NULL, 0), 1);
        id_table_remove(fixture.ids, module.entries);
        ck_assert_uint_eq(id_table_find(fixture.ids, id, NULL, 0), 0);
        destroy_module(&module);
        if (id == 100)
            size = id_table_size_bytes(fixture.ids);
    }
    ck_assert_uint_eq(id_table_size_bytes(fixture.ids), size);
    tear_down(&fixture);
}
END_TEST

START_TEST(without_memory_nothing_changes)
{
    enum { MODULES = 40 };
    for (size_t fail_at = 1;; fail_at++) {
        struct support_allocator counter = {.fail_at = fail_at};
        struct fixture fixture = {.allocator = support_counting(&counter)};
        struct module modules[MODULES] = {0};
        grace_init(&fixture.grace);
        enum cairn_status status =
            id_table_create(&fixture.allocator, &fixture.grace, &fixture.ids, NULL);
        unsigned published = 0;
        while (status == CAIRN_OK && published < MODULES) {
            struct module *module = &modules[published];
            uint64_t ids[] = {published, 1000, published};
            module->allocator = fixture.allocator;
            module->records = new_records(NULL, ids, 3);
            module->entries = new_entries(&fixture.allocator, module->records, NULL);
            status = CAIRN_ERROR_MEMORY;
            if (module->entries != NULL)
                status = id_table_reserve(fixture.ids, module->entries, NULL);
            if (status != CAIRN_OK)
                break;
            id_table_add(fixture.ids, module->entries);
            published++;
        }
        for (uint64_t id = 0; fixture.ids != NULL && id < MODULES; id++)
            ck_assert_uint_eq(id_table_find(fixture.ids, id, NULL, 0), id < published ? 2 : 0);
        for (unsigned i = 0; i < MODULES; i++)
            if (modules[i].records != NULL)
                destroy_module(&modules[i]);
        tear_down(&fixture);
        ck_assert_uint_eq(counter.outstanding_bytes, 0);
        if (status == CAIRN_OK)
            break;
        ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
    }
}
END_TEST

/* ---- Random modules, compared with a list ---- */

static uint64_t state;

static uint32_t below(uint32_t bound) { return sample_random(&state, bound); }

/* IDs that often repeat, IDs in arithmetic progression, and any. */
static uint64_t random_id(void)
{
    switch (below(4)) {
    case 0:
        return below(8);
    case 1:
        return (uint64_t)below(300) << 32;
    case 2:
        return UINT64_MAX - below(300);
    default:
        return below(300);
    }
}

enum { LIVE_MAX = 120, CHECKED_IDS = 40 };

struct model {
    struct module *live[LIVE_MAX]; /* in the order of publication */
    size_t count;
};

static size_t model_find(const struct model *model, uint64_t id, struct cairn_record *records)
{
    size_t found = 0;
    for (size_t i = 0; i < model->count; i++)
        for (uint32_t k = 0; k < model->live[i]->count; k++)
            if (model->live[i]->ids[k] == id)
                records[found++] = (struct cairn_record){model->live[i]->records, k};
    return found;
}

static void check_id(const struct fixture *fixture, const struct model *model, uint64_t id)
{
    static struct cairn_record wanted[LIVE_MAX * 64];
    static struct cairn_record found[LIVE_MAX * 64];
    size_t count = model_find(model, id, wanted);
    expect_equal(id_table_find(fixture->ids, id, found, LIVE_MAX * 64), count);
    for (size_t i = 0; i < count; i++) {
        expect(found[i].table == wanted[i].table);
        expect_equal(found[i].index, wanted[i].index);
    }
}

static void add_random(struct fixture *fixture, struct model *model)
{
    uint64_t ids[64] = {0};
    uint32_t count = below(8) == 0 ? below(65) : below(4);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = random_id();
    struct module *module = calloc(1, sizeof *module);
    create_module(module, &fixture->allocator, ids, count);
    publish(fixture->ids, module);
    model->live[model->count++] = module;
}

static void remove_random(struct fixture *fixture, struct model *model)
{
    size_t number = below((uint32_t)model->count);
    struct module *module = model->live[number];
    id_table_remove(fixture->ids, module->entries);
    memmove(&model->live[number], &model->live[number + 1],
            (--model->count - number) * sizeof *model->live);
    destroy_module(module);
    free(module);
}

START_TEST(random_modules_are_found_like_in_a_list)
{
    struct fixture fixture;
    struct model model = {.count = 0};
    state = sample_seed();
    set_up(&fixture, memory_allocator(NULL));
    uint32_t target = 0;
    for (int step = 0; step < 6000; step++) {
        if (step % 200 == 0)
            target = below(LIVE_MAX);
        bool adds = below(4) == 0 ? below(2) == 0 : model.count < target;
        if (adds && model.count < LIVE_MAX)
            add_random(&fixture, &model);
        else if (model.count > 0)
            remove_random(&fixture, &model);
        for (int i = 0; i < CHECKED_IDS; i++)
            check_id(&fixture, &model, random_id());
        if (below(50) == 0)
            grace_end(&fixture.grace, grace_start(&fixture.grace), NULL);
    }
    while (model.count > 0)
        remove_random(&fixture, &model);
    tear_down(&fixture);
}
END_TEST

/* ---- Threads, and signal handlers in them ---- */

/* IDs below LASTING are those of modules that stay. Early modules have them, too, and come before
 * the lasting ones in their lists; they are removed while readers pass over them. Passing modules
 * come after them, and have other IDs as well, so the array of slots is replaced. */
enum { READERS = 2, LASTING = 16, PASSING = 48, EARLY = 100, ROUNDS = 1600 };

struct reading {
    struct fixture fixture;
    struct module early[EARLY];
    struct module lasting[2];
    _Atomic bool stop;
    _Atomic uint64_t passes[READERS];
    _Atomic uint64_t lookups;
    _Atomic uint64_t signals;
    _Atomic uint64_t wrong;
};

static struct reading *read_by_signal;

struct walk {
    const struct reading *reading;
    uint64_t id;
    unsigned lasting; /* lasting modules so far */
    bool is_right;
};

/* After so many records a reader sleeps while it holds a record, and the others go on: that is when
 * memory that is freed too early is noticed. If readers had to be interrupted there by chance, the
 * test would take twenty times as long. */
enum { VISITS_BETWEEN_RESTS = 97 };
static const struct timespec rest = {.tv_nsec = 50000};
static _Thread_local unsigned visits;

static bool walk_over(struct cairn_record record, void *user)
{
    struct walk *walk = user;
    if (++visits % VISITS_BETWEEN_RESTS == 0)
        nanosleep(&rest, NULL);
    walk->is_right = walk->is_right && cairn_record_id(record) == walk->id;
    for (unsigned i = 0; i < 2; i++)
        if (record.table == walk->reading->lasting[i].records)
            walk->is_right = walk->lasting++ == i && walk->is_right;
    return true;
}

/* Both lasting modules are found, in this order, and every record has the ID. */
static bool is_right(const struct reading *reading, uint64_t id)
{
    struct walk walk = {.reading = reading, .id = id, .is_right = true};
    id_table_visit(reading->fixture.ids, id, walk_over, &walk);
    return walk.is_right && walk.lasting == (id < LASTING ? 2 : 0);
}

static void read_once(struct reading *reading, uint64_t seed)
{
    for (uint64_t i = 0; i < 8; i++)
        if (!is_right(reading, (seed * 7 + i * 13) % (LASTING + PASSING)))
            atomic_fetch_add(&reading->wrong, 1);
    atomic_fetch_add(&reading->lookups, 8);
}

static void read_in_handler(int number)
{
    (void)number;
    uint64_t seed = atomic_fetch_add(&read_by_signal->signals, 1);
    read_once(read_by_signal, seed);
}

struct reader {
    struct reading *reading;
    int number;
};

static void *read_on(void *argument)
{
    const struct reader *reader = argument;
    while (!atomic_load(&reader->reading->stop)) {
        uint64_t pass = atomic_fetch_add(&reader->reading->passes[reader->number], 1);
        read_once(reader->reading, pass);
    }
    return NULL;
}

/* Returns when every reader has begun anew. The writer's own handler has returned before this
 * function continues. */
static void wait_for_readers(struct reading *reading)
{
    for (int i = 0; i < READERS; i++) {
        uint64_t before = atomic_load(&reading->passes[i]);
        while (atomic_load(&reading->passes[i]) == before)
            sched_yield();
    }
}

static void set_timer(long microseconds)
{
    struct itimerval interval = {{0, microseconds}, {0, microseconds}};
    ck_assert_int_eq(setitimer(ITIMER_REAL, &interval, NULL), 0);
}

/* What is removed in one round is freed in the next. */
static void change_modules(struct reading *reading)
{
    struct fixture *fixture = &reading->fixture;
    struct module modules[4];
    uint64_t token = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct module *module = &modules[round % 4];
        uint64_t ids[40] = {0};
        uint32_t count = below(40);
        for (uint32_t i = 0; i < count; i++)
            ids[i] = below(4) == 0 ? below(LASTING + PASSING) : 1000 + (uint64_t)below(1u << 20);
        create_module(module, &fixture->allocator, ids, count);
        publish(fixture->ids, module);
        if (round < 2)
            continue;
        id_table_remove(fixture->ids, modules[(round - 2) % 4].entries);
        if (round / 16 < EARLY && round % 16 == 15)
            id_table_remove(fixture->ids, reading->early[EARLY - 1 - round / 16].entries);
        token = grace_start(&fixture->grace);
        wait_for_readers(reading);
        destroy_module(&modules[(round - 2) % 4]);
        grace_end(&fixture->grace, token, NULL);
    }
    for (int round = ROUNDS - 2; round < ROUNDS; round++)
        id_table_remove(fixture->ids, modules[round % 4].entries);
    wait_for_readers(reading);
    for (int round = ROUNDS - 2; round < ROUNDS; round++)
        destroy_module(&modules[round % 4]);
}

START_TEST(readers_and_signal_handlers_see_what_stays_while_modules_come_and_go)
{
    static struct reading reading;
    pthread_t threads[READERS];
    struct reader readers[READERS];
    uint64_t ids[LASTING] = {0};
    state = sample_seed();
    set_up(&reading.fixture, support_poisoning());
    for (uint64_t id = 0; id < LASTING; id++)
        ids[id] = id;
    for (int i = 0; i < EARLY; i++) {
        create_module(&reading.early[i], &reading.fixture.allocator, ids, LASTING);
        publish(reading.fixture.ids, &reading.early[i]);
    }
    for (int i = 0; i < 2; i++) {
        create_module(&reading.lasting[i], &reading.fixture.allocator, ids, LASTING);
        publish(reading.fixture.ids, &reading.lasting[i]);
    }
    read_by_signal = &reading;
    struct sigaction action = {.sa_handler = read_in_handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){&reading, i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
    }
    set_timer(200);
    change_modules(&reading);
    set_timer(0);
    atomic_store(&reading.stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(reading.wrong, 0);
    ck_assert_uint_gt(reading.lookups, ROUNDS);
    ck_assert_uint_gt(reading.signals, 0);
    for (int i = 0; i < 2; i++)
        destroy_module(&reading.lasting[i]);
    for (int i = 0; i < EARLY; i++)
        destroy_module(&reading.early[i]);
    tear_down(&reading.fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("table of IDs");
    TCase *tests = tcase_create("ids");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, an_empty_table_has_no_records);
    tcase_add_test(tests, a_module_without_records_may_be_added);
    tcase_add_loop_test(tests, records_come_oldest_module_first_whichever_is_removed, 0,
                        sizeof removals / sizeof *removals);
    tcase_add_test(tests, a_visit_ends_when_the_visitor_says_so);
    tcase_add_test(tests, the_only_site_of_an_id_is_found);
    tcase_add_test(tests, many_modules_with_one_id_take_linear_time);
    tcase_add_test(tests, slots_of_removed_ids_are_used_again);
    tcase_add_test(tests, without_memory_nothing_changes);
    tcase_add_test(tests, random_modules_are_found_like_in_a_list);
    tcase_add_test(tests, readers_and_signal_handlers_see_what_stays_while_modules_come_and_go);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
