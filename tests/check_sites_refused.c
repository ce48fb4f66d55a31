/*
 * Tests of what is left of a change when the system refuses the barrier after it, or with a single
 * mapping to replace a page: it has been made, as far as the page was replaced, and making it again
 * completes it. Everything else that can fail leaves the sites unchanged.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "tests/barrier_support.h"
#include "tests/code_support.h"
#include "tests/machine.h"
#include "tests/site_support.h"

#include <string.h>
#include <sys/syscall.h>

/* ---- Barriers that are refused ---- */

static int barriers;

static bool refuse(void *user)
{
    (void)user;
    barriers++;
    return false;
}

static void refuse_barriers(void) { support_set_barrier((struct support_barrier){refuse, NULL}); }

static void grant_barriers(void) { support_set_barrier((struct support_barrier){0}); }

/* The status is that of a change whose barrier was refused since the last call. */
#define ck_assert_refused(status)                                                                  \
    do {                                                                                           \
        int before = barriers;                                                                     \
        ck_assert_int_eq((status), CAIRN_ERROR_SYSTEM);                                            \
        ck_assert_int_eq(barriers, before + 1);                                                    \
    } while (0)

/* ---- Sites ---- */

enum { SITES = 3 };

static struct cairn_error error;
static cairn_runtime *runtime;
static struct site_fixture fixtures[SITES]; /* functions that return 0; the sites do nothing */
static cairn_site *sites[SITES];

/* New code may need pages and barriers, so veneers are made before these are refused. */
static void make_veneers(cairn_site *site, enum cairn_strength strength)
{
    for (int times = 0; times < 2; times++) {
        support_expect(cairn_site_call(site, SITE_TWO, strength, NULL) == CAIRN_OK);
        support_expect(cairn_site_call(site, SITE_ONE, strength, NULL) == CAIRN_OK);
        support_expect(cairn_site_jump(site, SITE_TWO, strength, NULL) == CAIRN_OK);
        support_expect(cairn_site_jump(site, SITE_ONE, strength, NULL) == CAIRN_OK);
    }
    support_expect(cairn_site_restore(site, strength, NULL) == CAIRN_OK);
}

static void set_up(enum cairn_code_mode mode)
{
    uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_null_patchpoint(region, machine_patchpoint_bytes);
    runtime = site_runtime(mode);
    for (int i = 0; i < SITES; i++) {
        site_load_into(&fixtures[i], runtime, &shape);
        sites[i] = fixtures[i].site;
        make_veneers(sites[i], CAIRN_SYNC);
    }
    refuse_barriers();
}

static void tear_down(void)
{
    grant_barriers();
    cairn_runtime_destroy(runtime);
}

/* Loads a shadow that is not live, after an instruction that sets the result. */
static void load_shadow(struct site_fixture *fixture)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_shape shape = site_null_patchpoint(region, machine_patchpoint_bytes);
    shape.kind = CAIRN_RECORD_STACKMAP;
    size_t size = 0;
    while (size < machine_patchpoint_bytes)
        size += machine_increment(region + size);
    site_load_into(fixture, runtime, &shape);
    ck_assert(!site_describe(fixture->site).live);
}

START_TEST(a_change_of_a_site_has_been_made_and_is_completed_by_the_same_change)
{
    set_up(site_modes[_i]);
    const struct site_fixture *fixture = &fixtures[0];
    for (int times = 0; times < 2; times++) {
        ck_assert_refused(cairn_site_call(sites[0], SITE_TWO, CAIRN_SYNC, NULL));
        ck_assert_int_eq(fixture->function(), 2);
    }
    ck_assert_refused(cairn_site_call(sites[0], fixture->near_one, CAIRN_QUIESCENT, NULL));
    ck_assert_int_eq(fixture->function(), 1);
    ck_assert_refused(cairn_site_jump(sites[0], fixture->near_three, CAIRN_SYNC, NULL));
    ck_assert_int_eq(fixture->function(), 3);
    ck_assert_refused(cairn_site_nop(sites[0], CAIRN_SYNC, NULL));
    ck_assert_int_eq(fixture->function(), 0);
    ck_assert_refused(cairn_site_restore(sites[0], CAIRN_SYNC, NULL));
    grant_barriers();
    ck_assert_done(cairn_site_restore(sites[0], CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture->function(), 0);
    tear_down();
}
END_TEST

START_TEST(a_quiescent_change_has_been_made_and_is_completed_by_the_same_change)
{
    set_up(site_modes[_i]);
    struct site_fixture shadow;
    grant_barriers();
    load_shadow(&shadow);
    long initial = shadow.function();
    make_veneers(shadow.site, CAIRN_QUIESCENT);
    refuse_barriers();
    for (int times = 0; times < 2; times++) {
        ck_assert_refused(cairn_site_jump(shadow.site, shadow.near_three, CAIRN_QUIESCENT, NULL));
        ck_assert_int_eq(shadow.function(), 3);
    }
    for (int times = 0; times < 2; times++) {
        ck_assert_refused(cairn_site_restore(shadow.site, CAIRN_QUIESCENT, NULL));
        ck_assert_int_eq(shadow.function(), initial);
    }
    tear_down();
}
END_TEST

static enum cairn_status change_list(const void *target, enum cairn_strength strength)
{
    struct cairn_site_change changes[SITES];
    for (int i = 0; i < SITES; i++)
        changes[i] = (struct cairn_site_change){sites[i], CAIRN_SITE_CALL, target};
    return cairn_sites_change(changes, SITES, strength, &error);
}

/* Whether the sites up to `count` call a function that returns `result`, and the others do
 * nothing. */
static bool have_changed(int count, long result)
{
    bool right = true;
    for (int i = 0; i < SITES; i++)
        right &= fixtures[i].function() == (i < count ? result : 0);
    return right;
}

START_TEST(a_list_has_been_made_and_is_completed_by_the_same_list)
{
    set_up(site_modes[_i]);
    for (int times = 0; times < 2; times++) {
        ck_assert_refused(change_list(SITE_TWO, CAIRN_SYNC));
        ck_assert(have_changed(SITES, 2));
    }
    grant_barriers();
    ck_assert_done(change_list(SITE_TWO, CAIRN_SYNC), error);
    ck_assert(have_changed(SITES, 2));
    tear_down();
}
END_TEST

/* ---- Invalidations, assumptions, entries ---- */

static enum cairn_status invalidate(cairn_invalidation **invalidation)
{
    const struct cairn_invalidation_options options = {
        .sites = sites, .site_count = SITES, .target = SITE_TWO};
    return cairn_invalidate(runtime, &options, CAIRN_SYNC, invalidation, &error);
}

START_TEST(an_invalidation_has_its_sites_and_is_completed_by_invalidating_again)
{
    cairn_invalidation *made, *again = NULL;
    set_up(site_modes[_i]);
    ck_assert_refused(invalidate(&made));
    ck_assert_ptr_nonnull(made);
    ck_assert(have_changed(SITES, 2));
    ck_assert_refused(invalidate(&again));
    ck_assert_ptr_null(again);
    grant_barriers();
    ck_assert_int_eq(invalidate(&again), CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_null(again);
    refuse_barriers();
    for (int times = 0; times < 2; times++) {
        ck_assert_refused(cairn_invalidation_undo(made, CAIRN_SYNC, NULL));
        ck_assert(have_changed(0, 0));
    }
    grant_barriers();
    ck_assert_done(cairn_invalidation_undo(made, CAIRN_SYNC, &error), error);
    cairn_invalidation_destroy(made);
    tear_down();
}
END_TEST

static cairn_assumption *assume(int count)
{
    cairn_assumption *assumption;
    ck_assert_done(cairn_assumption_create(runtime, &assumption, &error), error);
    for (int i = 0; i < count; i++)
        ck_assert_done(cairn_assumption_add(assumption, sites[i], SITE_TWO, CAIRN_SYNC, &error),
                       error);
    return assumption;
}

START_TEST(an_assumption_is_broken_and_completed_by_breaking_it_again)
{
    set_up(site_modes[_i]);
    cairn_assumption *assumption = assume(SITES - 1);
    for (int times = 0; times < 2; times++) {
        ck_assert_refused(cairn_assumption_break(assumption, CAIRN_SYNC, NULL));
        ck_assert(have_changed(SITES - 1, 2));
    }
    for (int times = 0; times < 2; times++) {
        ck_assert_refused(
            cairn_assumption_add(assumption, sites[SITES - 1], SITE_TWO, CAIRN_SYNC, NULL));
        ck_assert(have_changed(SITES, 2));
    }
    grant_barriers();
    ck_assert_done(cairn_assumption_break(assumption, CAIRN_SYNC, &error), error);
    ck_assert_done(cairn_assumption_add(assumption, sites[SITES - 1], SITE_TWO, CAIRN_SYNC, &error),
                   error);
    cairn_assumption_destroy(assumption);
    tear_down();
}
END_TEST

static bool accept_all(const struct cairn_site_description *site, void *user)
{
    (void)site;
    (void)user;
    return true;
}

static long call_entry(const cairn_entry *entry)
{
    return ((long (*)(void))(uintptr_t)cairn_entry_target(entry))();
}

static cairn_entry *create_entry(const struct cairn_entry_version *version)
{
    cairn_entry *entry;
    ck_assert_done(cairn_entry_create(runtime, "f", NULL, SITE_ONE, &entry, &error), error);
    ck_assert_done(cairn_entry_install(entry, version, CAIRN_SYNC, &error), error);
    return entry;
}

static const void *code_of(const struct site_fixture *fixture)
{
    return (const void *)(uintptr_t)fixture->function;
}

START_TEST(a_version_is_installed_and_its_sites_completed_by_installing_it_again)
{
    set_up(site_modes[_i]);
    const struct cairn_entry_version old = {.code = code_of(&fixtures[0]), .leave = SITE_TWO};
    const struct cairn_entry_version new = {.code = SITE_ONE};
    grant_barriers();
    cairn_entry *entry = create_entry(&old);
    ck_assert_int_eq(call_entry(entry), 0);
    refuse_barriers();
    for (int times = 0; times < 2; times++) {
        ck_assert_refused(cairn_entry_install(entry, &new, CAIRN_SYNC, NULL));
        ck_assert_int_eq(call_entry(entry), 1);
        ck_assert(have_changed(1, 2));
    }
    grant_barriers();
    ck_assert_done(cairn_entry_install(entry, &new, CAIRN_SYNC, &error), error);
    cairn_entry_destroy(entry);
    tear_down();
}
END_TEST

START_TEST(a_version_whose_sites_cannot_change_stays_installed)
{
    struct site_fixture shadow;
    set_up(site_modes[_i]);
    grant_barriers();
    load_shadow(&shadow);
    long initial = shadow.function();
    const struct cairn_entry_version old = {
        .code = code_of(&shadow), .leave = SITE_TWO, .accepts = accept_all};
    const struct cairn_entry_version new = {.code = SITE_ONE};
    cairn_entry *entry = create_entry(&old);
    ck_assert_int_eq(cairn_entry_install(entry, &new, CAIRN_SYNC, NULL), CAIRN_ERROR_UNMANAGED);
    ck_assert_int_eq(call_entry(entry), initial);
    cairn_entry_destroy(entry);
    tear_down();
}
END_TEST

/* ---- Pages that are refused, with a single mapping ---- */

static const long replacing = SYS_mremap;

/* Puts each site into a slab of its own. */
static void set_up_slabs(void)
{
    enum { SLAB_BYTES = 128 << 10 };
    uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_null_patchpoint(region, machine_patchpoint_bytes);
    const struct cairn_runtime_options options = {.slab_size = SLAB_BYTES,
                                                  .code_mode = CAIRN_CODE_MODE_SINGLE};
    support_expect(cairn_runtime_create(&options, &runtime, &error) == CAIRN_OK);
    struct cairn_runtime_statistics statistics;
    for (uint32_t i = 0; i < SITES; i++) {
        do {
            site_load_into(&fixtures[i], runtime, &shape);
            cairn_runtime_statistics(runtime, &statistics);
        } while (statistics.slab_count <= i);
        sites[i] = fixtures[i].site;
        make_veneers(sites[i], CAIRN_SYNC);
    }
}

/* One page after the other is refused. */
static void refuse_pages_of_a_list(void *user)
{
    (void)user;
    if (!support_watch_calls(&replacing, 1))
        return;
    set_up_slabs();
    for (int granted = 0; granted < SITES; granted++) {
        char text[sizeof "0 of 3 changes"];
        snprintf(text, sizeof text, "%d of %d changes", granted, SITES);
        support_refuse_after((size_t)granted);
        enum cairn_status status = change_list(SITE_TWO, CAIRN_SYNC);
        support_grant_all();
        support_expect(status == CAIRN_ERROR_SYSTEM && strstr(error.message, text) != NULL);
        support_expect(have_changed(granted, 2));
        for (int i = 0; i < SITES; i++)
            support_expect(cairn_site_nop(sites[i], CAIRN_SYNC, NULL) == CAIRN_OK);
    }
    support_expect(change_list(SITE_TWO, CAIRN_SYNC) == CAIRN_OK);
    support_expect(have_changed(SITES, 2));
}

START_TEST(a_list_has_been_made_up_to_the_page_that_was_refused)
{
    support_in_child(refuse_pages_of_a_list, NULL);
}
END_TEST

static void refuse_pages_of_an_invalidation(void *user)
{
    cairn_invalidation *made;
    (void)user;
    if (!support_watch_calls(&replacing, 1))
        return;
    set_up_slabs();
    for (int granted = 0; granted <= SITES; granted++) {
        support_refuse_after((size_t)granted);
        enum cairn_status status = invalidate(&made);
        support_grant_all();
        support_expect(status == (granted < SITES ? CAIRN_ERROR_SYSTEM : CAIRN_OK));
        support_expect((made != NULL) == (granted > 0) && have_changed(granted, 2));
        if (made == NULL)
            continue;
        support_refuse_after(1);
        status = cairn_invalidation_undo(made, CAIRN_SYNC, NULL);
        support_grant_all();
        support_expect(status == (granted > 1 ? CAIRN_ERROR_SYSTEM : CAIRN_OK));
        support_expect(fixtures[0].function() == 0);
        support_expect(cairn_invalidation_undo(made, CAIRN_SYNC, NULL) == CAIRN_OK);
        support_expect(have_changed(0, 0));
        cairn_invalidation_destroy(made);
    }
}

START_TEST(an_invalidation_has_the_sites_up_to_the_page_that_was_refused)
{
    support_in_child(refuse_pages_of_an_invalidation, NULL);
}
END_TEST

/* An assumption changes the site that was registered last first. */
static void refuse_pages_of_an_assumption(void *user)
{
    (void)user;
    if (!support_watch_calls(&replacing, 1))
        return;
    set_up_slabs();
    cairn_assumption *assumption = assume(SITES);
    support_refuse_after(1);
    enum cairn_status status = cairn_assumption_break(assumption, CAIRN_SYNC, NULL);
    support_grant_all();
    support_expect(status == CAIRN_ERROR_SYSTEM);
    support_expect(fixtures[0].function() == 0 && fixtures[SITES - 1].function() == 2);
    support_expect(cairn_assumption_break(assumption, CAIRN_SYNC, NULL) == CAIRN_OK);
    support_expect(have_changed(SITES, 2));
    cairn_assumption_destroy(assumption);
}

START_TEST(an_assumption_is_broken_when_the_pages_are_granted)
{
    support_in_child(refuse_pages_of_an_assumption, NULL);
}
END_TEST

int main(void)
{
    const TTest *both[] = {
        a_change_of_a_site_has_been_made_and_is_completed_by_the_same_change,
        a_quiescent_change_has_been_made_and_is_completed_by_the_same_change,
        a_list_has_been_made_and_is_completed_by_the_same_list,
        an_invalidation_has_its_sites_and_is_completed_by_invalidating_again,
        an_assumption_is_broken_and_completed_by_breaking_it_again,
    };
    Suite *suite = suite_create("refused");
    TCase *tests = tcase_create("refused");
    tcase_set_timeout(tests, 60);
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        tcase_add_loop_test(tests, both[i], site_first_mode(), SITE_MODES);
    if (!arch_host()->has_descriptors) {
        tcase_add_loop_test(tests,
                            a_version_is_installed_and_its_sites_completed_by_installing_it_again,
                            site_first_mode(), SITE_MODES);
        tcase_add_loop_test(tests, a_version_whose_sites_cannot_change_stays_installed,
                            site_first_mode(), SITE_MODES);
    }
    if (support_can_refuse()) {
        tcase_add_test(tests, a_list_has_been_made_up_to_the_page_that_was_refused);
        tcase_add_test(tests, an_invalidation_has_the_sites_up_to_the_page_that_was_refused);
        tcase_add_test(tests, an_assumption_is_broken_when_the_pages_are_granted);
    }
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
