/*
 * check_write_key.c - memory protection keys for the written views: src/code/write_key.h.
 *
 * Few machines have such keys. So that every write of the library is tested on all machines, the C
 * library's functions for keys are replaced by ones that change the protection of pages for the
 * whole process: a write outside of write_key_open and write_key_close is then a fault. Where the
 * machine has keys, the last test calls the C library's own functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/one_function.h"
#include "code/state.h"
#include "code/write_key.h"
#include "code_support.h"
#include "runtime/runtime.h"
#include "runtime_support.h"
#include "site/site.h"
#include "tests/site_support.h"

#include <cairn/cairn.h>
#include <cairn/load.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef PKEY_DISABLE_ACCESS

/* ---- Keys without a processor that has them ---- */

enum { FAKE_KEY = 1, VIEWS_MAX = 1024 };

static struct {
    bool is_used;
    unsigned rights;
    size_t opened; /* how often the views have become accessible */
    size_t view_count;
    struct {
        void *address;
        size_t size;
    } views[VIEWS_MAX];
} fake;

/* The C library's function of the same name. */
static uintptr_t replaced(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    support_expect(function != NULL);
    return (uintptr_t)function;
}

static int protection(void)
{
    return (fake.rights & PKEY_DISABLE_ACCESS) != 0 ? PROT_NONE : PROT_READ | PROT_WRITE;
}

int pkey_alloc(unsigned flags, unsigned rights)
{
    if (!fake.is_used)
        return ((int (*)(unsigned, unsigned))replaced("pkey_alloc"))(flags, rights);
    fake.rights = rights;
    fake.view_count = 0;
    return FAKE_KEY;
}

int pkey_free(int key)
{
    if (!fake.is_used)
        return ((int (*)(int))replaced("pkey_free"))(key);
    support_expect(key == FAKE_KEY);
    fake.view_count = 0;
    return 0;
}

int pkey_mprotect(void *address, size_t size, int wanted, int key)
{
    if (!fake.is_used)
        return ((int (*)(void *, size_t, int, int))replaced("pkey_mprotect"))(address, size, wanted,
                                                                              key);
    support_expect(key == FAKE_KEY && wanted == (PROT_READ | PROT_WRITE));
    support_expect(fake.view_count < VIEWS_MAX);
    fake.views[fake.view_count].address = address;
    fake.views[fake.view_count++].size = size;
    return mprotect(address, size, protection());
}

int pkey_get(int key)
{
    if (!fake.is_used)
        return ((int (*)(int))replaced("pkey_get"))(key);
    support_expect(key == FAKE_KEY);
    return (int)fake.rights;
}

int pkey_set(int key, unsigned rights)
{
    if (!fake.is_used)
        return ((int (*)(int, unsigned))replaced("pkey_set"))(key, rights);
    support_expect(key == FAKE_KEY);
    if (fake.rights == rights)
        return 0;
    fake.rights = rights;
    fake.opened += (rights & PKEY_DISABLE_ACCESS) == 0;
    for (size_t i = 0; i < fake.view_count; i++)
        support_expect(mprotect(fake.views[i].address, fake.views[i].size, protection()) == 0);
    return 0;
}

/* ---- Refusals ---- */

static enum cairn_status try_runtime(enum cairn_code_mode mode, cairn_runtime **runtime,
                                     struct cairn_error *error)
{
    const struct cairn_runtime_options options = {
        .code_mode = mode, .slab_size = 4 << 20, .protects_writes = true};
    *error = (struct cairn_error){0};
    return cairn_runtime_create(&options, runtime, error);
}

static bool has_keys(void)
{
    int key = (int)syscall(SYS_pkey_alloc, 0, PKEY_DISABLE_ACCESS);
    if (key > 0)
        syscall(SYS_pkey_free, key);
    return key > 0;
}

START_TEST(machine_without_keys_is_named)
{
    cairn_runtime *runtime;
    struct cairn_error error;
    enum cairn_status status = try_runtime(CAIRN_CODE_MODE_AUTOMATIC, &runtime, &error);
    if (has_keys()) {
        ck_assert_done(status, error);
        cairn_runtime_destroy(runtime);
        return;
    }
    ck_assert_int_eq(status, CAIRN_ERROR_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, "protects_writes") != NULL, "%s", error.message);
    ck_assert_msg(strstr(error.message, "pku") != NULL, "%s", error.message);
}
END_TEST

START_TEST(mode_without_a_written_view_is_refused)
{
    cairn_runtime *runtime;
    struct cairn_error error;
    fake.is_used = true;
    ck_assert_int_eq(try_runtime(CAIRN_CODE_MODE_SINGLE, &runtime, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, "dual mapping") != NULL, "%s", error.message);
}
END_TEST

/* ---- Writes ---- */

struct fixture {
    cairn_runtime *runtime;
    struct site_fixture site;
    uint8_t *written; /* the site's code in the written view */
};

static void create(struct fixture *fixture, bool uses_fake)
{
    uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_calling_patchpoint(region);
    struct cairn_error error;
    fake.is_used = uses_fake;
    ck_assert_done(try_runtime(CAIRN_CODE_MODE_DUAL, &fixture->runtime, &error), error);
    site_load_into(&fixture->site, fixture->runtime, &shape);
    fixture->written =
        code_block_writable_alias(fixture->site.site->table->block, (uintptr_t)fixture->site.code);
    ck_assert_ptr_nonnull(fixture->written);
}

/* The view is not accessible between the library's writes. */
static void expect_closed(const struct fixture *fixture)
{
    support_expect(strcmp(support_protection(fixture->written), "---") == 0);
    support_expect((fake.rights & PKEY_DISABLE_ACCESS) != 0);
}

static void patch(const struct fixture *fixture)
{
    static const enum cairn_strength strengths[] = {CAIRN_RELAXED, CAIRN_SYNC, CAIRN_QUIESCENT};
    const struct site_fixture *site = &fixture->site;
    bool is_relaxed = !support_runtime_statistics(fixture->runtime).can_synchronise;
    for (int i = 0; i < (is_relaxed ? 1 : 3); i++) {
        support_expect(cairn_site_call(site->site, site->near_two, strengths[i], NULL) == CAIRN_OK);
        support_expect(site->function() == 2);
        expect_closed(fixture);
        support_expect(cairn_site_call(site->site, SITE_ONE, strengths[i], NULL) == CAIRN_OK);
        support_expect(site->function() == 1);
        expect_closed(fixture);
        support_expect(cairn_site_nop(site->site, strengths[i], NULL) == CAIRN_OK);
        support_expect(cairn_site_restore(site->site, strengths[i], NULL) == CAIRN_OK);
        expect_closed(fixture);
    }
}

static void continue_after(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

static bool find_nothing(void *user, const char *name, uint64_t *address)
{
    (void)name;
    (void)address;
    expect_closed(user);
    return false;
}

static void load(struct fixture *fixture)
{
    static struct one_function object;
    const struct cairn_load_options options = {.find_symbol = find_nothing, .user = fixture};
    cairn_loader *loader;
    cairn_module *module;
    struct cairn_error error;
    support_expect(one_function_create(&object));
    for (int i = 0; i < 20; i++) {
        one_function_number(&object, (uint64_t)i + 100, (uint32_t)i);
        support_expect(cairn_loader_create(fixture->runtime, "object", &loader, NULL) == CAIRN_OK);
        enum cairn_status status =
            cairn_loader_add_object(loader, object.bytes, object.size, &options, &error);
        support_expect_at(status == CAIRN_OK, error.message, __FILE__, __LINE__);
        expect_closed(fixture);
        status = cairn_loader_finish(loader, &module, &error);
        support_expect_at(status == CAIRN_OK, error.message, __FILE__, __LINE__);
        expect_closed(fixture);
        support_expect(cairn_module_publish(module, NULL) == CAIRN_OK);
        cairn_module_retire(module);
        if (i % 4 == 0)
            cairn_runtime_quiesce(fixture->runtime);
        expect_closed(fixture);
    }
}

static void work(struct fixture *fixture)
{
    cairn_exit *exit;
    expect_closed(fixture);
    patch(fixture);
    load(fixture);
    support_expect(cairn_exit_create(fixture->runtime, continue_after, NULL, &exit, NULL) ==
                   CAIRN_OK);
    expect_closed(fixture);
    cairn_exit_destroy(exit);
    cairn_runtime_quiesce(fixture->runtime);
    expect_closed(fixture);
}

static void work_in_child(void *user) { work(user); }

START_TEST(all_writes_open_the_view_and_close_it)
{
    struct fixture fixture;
    create(&fixture, true);
    size_t before = fake.opened;
    work(&fixture);
    ck_assert_uint_gt(fake.opened, before);
    support_in_child(work_in_child, &fixture);
    expect_closed(&fixture);
    patch(&fixture);
    site_unload(&fixture.site);
}
END_TEST

/* ---- Other threads ---- */

static void *read_byte(void *user)
{
    (void)*(volatile uint8_t *)user;
    return NULL;
}

static void *write_byte(void *user)
{
    *(volatile uint8_t *)user = 0;
    return NULL;
}

struct access {
    const struct fixture *fixture;
    void *(*body)(void *user);
    bool while_open;
};

/* Waits until the thread that made it has, or has not, opened the view for itself. */
static void *access_when_told(void *user)
{
    pthread_barrier_t *told = ((void **)user)[0];
    const struct access *access = ((void **)user)[1];
    pthread_barrier_wait(told);
    return access->body(access->fixture->written);
}

/* A thread begins with the rights of the one that makes it, so it is made before the view is
 * opened. */
static void access_in_thread(void *user)
{
    const struct access *access = user;
    int key = code_space_write_key(access->fixture->runtime->space);
    pthread_barrier_t told;
    pthread_t thread;
    void *arguments[] = {&told, user};
    support_expect(pthread_barrier_init(&told, NULL, 2) == 0);
    support_expect(pthread_create(&thread, NULL, access_when_told, arguments) == 0);
    if (access->while_open)
        write_key_open(key);
    pthread_barrier_wait(&told);
    pthread_join(thread, NULL);
}

/* With real keys, also while this thread writes. */
START_TEST(other_threads_cannot_access_the_view)
{
    struct fixture fixture;
    create(&fixture, !has_keys());
    for (int while_open = 0; while_open <= (int)has_keys(); while_open++) {
        struct access read = {&fixture, read_byte, while_open};
        struct access write = {&fixture, write_byte, while_open};
        ck_assert(support_faults(access_in_thread, &read));
        ck_assert(support_faults(access_in_thread, &write));
    }
    site_unload(&fixture.site);
}
END_TEST

/* The library's writes succeed with real keys, too. */
START_TEST(sites_are_patched_with_the_keys_of_the_machine)
{
    struct fixture fixture;
    if (!has_keys())
        return;
    create(&fixture, false);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(
            cairn_site_call(fixture.site.site, fixture.site.near_two, CAIRN_RELAXED, NULL),
            CAIRN_OK);
        ck_assert_int_eq(fixture.site.function(), 2);
        ck_assert_int_eq(cairn_site_call(fixture.site.site, SITE_ONE, CAIRN_RELAXED, NULL),
                         CAIRN_OK);
        ck_assert_int_eq(fixture.site.function(), 1);
    }
    site_unload(&fixture.site);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("write key");
    TCase *tests = tcase_create("write key");
    tcase_set_timeout(tests, 60);
    struct code_space *space = support_space(CAIRN_CODE_MODE_AUTOMATIC, 0, 0);
    bool is_dual = code_space_mode(space) == CAIRN_CODE_MODE_DUAL;
    code_space_destroy(space);
    tcase_add_test(tests, machine_without_keys_is_named);
    if (is_dual) {
        tcase_add_test(tests, mode_without_a_written_view_is_refused);
        tcase_add_test(tests, all_writes_open_the_view_and_close_it);
        tcase_add_test(tests, other_threads_cannot_access_the_view);
        tcase_add_test(tests, sites_are_patched_with_the_keys_of_the_machine);
    }
    suite_add_tcase(suite, tests);
    return site_main(suite);
}

#else

int main(void) { return 77; }

#endif
