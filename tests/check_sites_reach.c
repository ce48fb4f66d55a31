/*
 * Tests of the reach of a site's branch. Targets at the edges of its reach and one step beyond are
 * called and jumped to. Where there is no space for a veneer, targets beyond the reach are refused
 * before the first write.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "tests/site_support.h"

#include "arch/arch.h"
#include "code/parts.h"
#include "runtime/runtime.h"
#include "runtime_support.h"
#include "site/veneers.h"
#include "slab_limit.h"
#include "tests/machine.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* An address out of reach of every site and otherwise unused: above the shadow memory of
 * AddressSanitizer, below its heap. */
#define FAR_ADDRESS UINT64_C(0x200000000000)

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static bool is_of_words(void) { return arch_host()->fixed_instruction_bytes != 0; }

/* Distance from one target to the next. */
static uint64_t step(void) { return is_of_words() ? arch_host()->fixed_instruction_bytes : 1; }

/* ---- Both edges ---- */

/* As in the manuals: rel32 counts from the end of the instruction; all others count from its
 * beginning. */
static uint64_t last_forwards(uint64_t instruction)
{
    return is_of_words() ? instruction + arch_host()->reach_bytes - step()
                         : instruction + arch_host()->instruction_bytes + INT32_MAX;
}

static uint64_t last_backwards(uint64_t instruction)
{
    return is_of_words() ? instruction - arch_host()->reach_bytes
                         : instruction + arch_host()->instruction_bytes - (UINT64_C(1) << 31);
}

enum { FUNCTION_MAX = 2 * ARCH_SELF_TEST_BYTES_MAX };

/* Writes no-ops of one step, and then a function for a call or for a jump. */
static size_t write_target(uint8_t *code, int value, bool is_jumped_to)
{
    uint8_t *at = code + step();
    arch_host()->fill_nops(arch_host(), code, step());
    if (is_jumped_to)
        at += machine_leave_frame(at);
    at += arch_host()->encode_self_test(arch_host(), value, at);
    return (size_t)(at - code);
}

static bool place_target(uint64_t address, int value, bool is_jumped_to)
{
    uint8_t code[FUNCTION_MAX];
    size_t size = write_target(code, value, is_jumped_to);
    return site_place_code(address, code, size);
}

/* A site in a small slab, so that the edges are outside of it, with targets at both edges.
 * Addresses that are already mapped are avoided. */
struct edges {
    struct site_fixture fixture;
    uint64_t targets[4]; /* forwards: the last target in reach, and one step beyond; backwards: the
                            same */
};

enum { ATTEMPTS = 1024, SMALL_SLAB = 1 << 20 };

/* More than the reach of every branch. */
#define SPACER_BYTES (UINT64_C(5) << 30)

static void *map_spacer(size_t bytes)
{
    void *spacer = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(spacer, MAP_FAILED);
    return spacer;
}

static void load_small(struct site_fixture *fixture, enum cairn_code_mode mode,
                       const struct site_shape *shape)
{
    const struct cairn_runtime_options options = {.code_mode = mode, .slab_size = SMALL_SLAB};
    struct cairn_error error;
    cairn_runtime *runtime;
    ck_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    site_load_into(fixture, runtime, shape);
}

static void set_targets(struct edges *edges)
{
    uint64_t instruction = site_describe(edges->fixture.site).instruction_address;
    edges->targets[0] = last_forwards(instruction);
    edges->targets[1] = last_forwards(instruction) + step();
    edges->targets[2] = last_backwards(instruction);
    edges->targets[3] = last_backwards(instruction) - step();
}

static bool place_targets(const struct edges *edges, bool are_jumped_to)
{
    uint64_t forwards = edges->targets[0];
    uint64_t backwards = edges->targets[3];
    if (!place_target(forwards, 23, are_jumped_to))
        return false;
    if (place_target(backwards, 24, are_jumped_to))
        return true;
    site_remove_code(forwards);
    return false;
}

static void load_edges(struct edges *edges, enum cairn_code_mode mode, bool are_jumped_to)
{
    uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_null_patchpoint(region, 16);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        /* Keeps the slab away from what is mapped, unless it fits into a gap there. */
        void *spacer = map_spacer(SPACER_BYTES);
        load_small(&edges->fixture, mode, &shape);
        ck_assert_int_eq(munmap(spacer, SPACER_BYTES), 0);
        set_targets(edges);
        if (place_targets(edges, are_jumped_to))
            return;
        site_unload(&edges->fixture);
        /* The next slab is not in the same gap. */
        map_spacer(SMALL_SLAB);
    }
    ck_abort_msg("no place in the address space has both edges free");
}

static void expect_target(const struct edges *edges, int index, enum cairn_site_state state)
{
    struct cairn_site_description description = site_describe(edges->fixture.site);
    bool is_beyond = index % 2 == 1;
    ck_assert_int_eq(description.state, state);
    ck_assert_uint_eq(description.target, edges->targets[index]);
    ck_assert(description.uses_veneer == (is_beyond || arch_host()->calls_need_veneer));
    ck_assert_int_eq(edges->fixture.function(), index < 2 ? 23 : 24);
}

static void unload_edges(struct edges *edges)
{
    site_unload(&edges->fixture);
    site_remove_code(edges->targets[0]);
    site_remove_code(edges->targets[3]);
}

START_TEST(targets_at_both_edges_of_the_reach_and_one_step_beyond_are_called)
{
    struct edges edges;
    struct cairn_error error;
    load_edges(&edges, site_modes[_i], false);
    for (int i = 0; i < 8; i++) {
        const void *target = (const void *)(uintptr_t)edges.targets[i % 4];
        ck_assert_done(cairn_site_call(edges.fixture.site, target, CAIRN_SYNC, &error), error);
        expect_target(&edges, i % 4, CAIRN_SITE_CALL);
    }
    unload_edges(&edges);
}
END_TEST

START_TEST(targets_at_both_edges_of_the_reach_and_one_step_beyond_are_jumped_to)
{
    struct edges edges;
    struct cairn_error error;
    load_edges(&edges, site_modes[_i], true);
    for (int i = 0; i < 8; i++) {
        const void *target = (const void *)(uintptr_t)edges.targets[i % 4];
        ck_assert_done(cairn_site_jump(edges.fixture.site, target, CAIRN_SYNC, &error), error);
        expect_target(&edges, i % 4, CAIRN_SITE_JUMP);
    }
    unload_edges(&edges);
}
END_TEST

/* ---- Reach within a slab ---- */

enum { FAR_VALUE = 9, OTHER_FAR_VALUE = 10 };

/* Placed once for each test. */
static const void *far_target(void)
{
    static bool is_placed;
    if (!is_placed)
        is_placed = place_target(FAR_ADDRESS, FAR_VALUE, false);
    ck_assert(is_placed);
    return (const void *)(uintptr_t)(FAR_ADDRESS + step());
}

static const void *other_far_target(void)
{
    uint64_t address = FAR_ADDRESS + 16 * page_bytes();
    static bool is_placed;
    if (!is_placed)
        is_placed = place_target(address, OTHER_FAR_VALUE, false);
    ck_assert(is_placed);
    return (const void *)(uintptr_t)(address + step());
}

static cairn_runtime *create_runtime_of_one_slab(enum cairn_code_mode mode, size_t pages)
{
    const struct cairn_runtime_options options = {.code_mode = mode,
                                                  .slab_size = pages * page_bytes()};
    struct cairn_error error;
    cairn_runtime *runtime;
    ck_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    support_limit_slabs(runtime, 1);
    return runtime;
}

enum { SPARE_PAGES = 3 };

/* Allocates all free pages except some at the high end. */
static cairn_loader *fill_low_pages(cairn_runtime *runtime)
{
    struct cairn_runtime_statistics statistics;
    struct cairn_error error;
    cairn_loader *filler;
    cairn_runtime_statistics(runtime, &statistics);
    size_t size = statistics.free_bytes - SPARE_PAGES * page_bytes();
    ck_assert_done(cairn_loader_create(runtime, "filler", &filler, &error), error);
    ck_assert_msg(cairn_loader_allocate(filler, CAIRN_SECTION_CODE, size, 64, NULL, &error) != NULL,
                  "%s", error.message);
    return filler;
}

static uint64_t veneer_address(const cairn_site *site)
{
    const struct site_veneer *veneer = veneers_find(site, word_read_instruction(site));
    ck_assert_ptr_nonnull(veneer);
    return veneer->code.address;
}

static enum cairn_status encode_trap(struct code_stub *stub, void *user, uint8_t *code,
                                     size_t *size, struct cairn_error *error)
{
    (void)stub;
    (void)user;
    (void)error;
    memset(code, 0, PART_UNIT_BYTES);
    *size = PART_UNIT_BYTES;
    return CAIRN_OK;
}

/* Fills the page of the site with stubs, so that a veneer needs another page. They are in the
 * list's `retired.next`. */
static struct code_stub *fill_page(cairn_runtime *runtime, uint64_t site_address)
{
    const struct code_stub_request request = {.encode = encode_trap,
                                              .description_bytes = sizeof(struct code_stub)};
    struct code_stub *list = NULL;
    for (;;) {
        struct code_stub *stub;
        ck_assert_int_eq(code_space_add_stub(runtime->space, &request, &stub, NULL), CAIRN_OK);
        if (stub->address / page_bytes() != site_address / page_bytes()) {
            code_stub_free(stub);
            return list;
        }
        stub->retired.next = (struct grace_entry *)list;
        list = stub;
    }
}

static void free_stubs(struct code_stub *list)
{
    while (list != NULL) {
        struct code_stub *next = (struct code_stub *)(void *)list->retired.next;
        code_stub_free(list);
        list = next;
    }
}

/* The slab has the maximum size, or as large a one as slabs have. The site and its veneer are at
 * its two ends. */
START_TEST(site_reaches_a_veneer_at_the_other_end_of_its_slab)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_null_patchpoint(region, 16);
    size_t slab_pages = arch_host()->slab_bytes_default / page_bytes();
    bool site_is_low = _i % 2 == 0;
    cairn_runtime *runtime = create_runtime_of_one_slab(site_modes[_i / 2], slab_pages);
    cairn_loader *filler = site_is_low ? NULL : fill_low_pages(runtime);
    site_load_into(&fixture, runtime, &shape);
    if (site_is_low)
        filler = fill_low_pages(runtime);
    else
        cairn_loader_destroy(filler);
    uint64_t site_address = site_describe(fixture.site).instruction_address;
    struct code_stub *stubs = fill_page(runtime, site_address);
    ck_assert_done(cairn_site_call(fixture.site, far_target(), CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), FAR_VALUE);
    uint64_t distance = site_is_low ? veneer_address(fixture.site) - site_address
                                    : site_address - veneer_address(fixture.site);
    ck_assert_uint_ge(distance, (slab_pages - SPARE_PAGES - 1) * page_bytes());
    ck_assert_uint_lt(distance, slab_pages * page_bytes());
    free_stubs(stubs);
    if (site_is_low)
        cairn_loader_destroy(filler);
    site_unload(&fixture);
}
END_TEST

/* ---- No space for a veneer ---- */

/* Allocates every free page. */
static cairn_loader *fill_slab(cairn_runtime *runtime)
{
    struct cairn_error error;
    cairn_loader *filler;
    ck_assert_done(cairn_loader_create(runtime, "filler", &filler, &error), error);
    while (cairn_loader_allocate(filler, CAIRN_SECTION_CODE, page_bytes(), page_bytes(), NULL,
                                 &error) != NULL)
        continue;
    ck_assert_int_eq(error.status, CAIRN_ERROR_FULL);
    return filler;
}

static void expect_full(enum cairn_status status, const struct cairn_error *error)
{
    ck_assert_msg(status == CAIRN_ERROR_FULL, "%s: %s", cairn_status_name(status), error->message);
    ck_assert_msg(strstr(error->message, "veneer") != NULL, "%s", error->message);
    ck_assert_msg(strstr(error->message, "slab_size") != NULL, "%s", error->message);
}

static void expect_list_full(const struct site_fixture *fixture)
{
    struct cairn_error error;
    const struct cairn_site_change change = {fixture->site, CAIRN_SITE_CALL, far_target()};
    enum cairn_status status = cairn_sites_change(&change, 1, CAIRN_SYNC, &error);
    expect_full(status, &error);
}

START_TEST(target_beyond_reach_without_room_for_a_veneer_is_refused_before_the_first_write)
{
    static const enum cairn_strength strengths[] = {CAIRN_RELAXED, CAIRN_SYNC, CAIRN_QUIESCENT};
    enum { SIZE = 16 };
    uint8_t region[SITE_REGION_MAX];
    uint8_t before[SIZE];
    struct site_fixture fixture;
    struct cairn_error error = {0};
    const struct site_shape shape = site_null_patchpoint(region, SIZE);
    site_load_into(&fixture, create_runtime_of_one_slab(site_modes[_i], 32), &shape);
    cairn_loader *filler = fill_slab(fixture.runtime);
    const uint8_t *bytes = site_describe(fixture.site).bytes;
    memcpy(before, bytes, SIZE);
    for (int i = 0; i < 3; i++) {
        enum cairn_status status =
            cairn_site_call(fixture.site, far_target(), strengths[i], &error);
        expect_full(status, &error);
        status = cairn_site_jump(fixture.site, far_target(), strengths[i], &error);
        expect_full(status, &error);
    }
    expect_list_full(&fixture);
    ck_assert_int_eq(memcmp(before, bytes, SIZE), 0);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_NOP);
    ck_assert_int_eq(fixture.function(), 0);
    /* Changes that need no veneer succeed. */
    ck_assert_done(cairn_site_nop(fixture.site, CAIRN_SYNC, &error), error);
    if (!arch_host()->calls_need_veneer) {
        ck_assert_done(cairn_site_call(fixture.site, fixture.near_two, CAIRN_SYNC, &error), error);
        ck_assert_int_eq(fixture.function(), 2);
    }
    /* With free space again, all changes succeed. */
    cairn_loader_destroy(filler);
    ck_assert_done(cairn_site_call(fixture.site, far_target(), CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), FAR_VALUE);
    site_unload(&fixture);
}
END_TEST

/* ---- More sites than veneers ---- */

enum { SITES = 3000, VENEER_PAGES = 4 };

struct crowd {
    cairn_runtime *runtime;
    cairn_loader *filler; /* holds as many additional pages */
    cairn_module *module;
    long (*function)(void);
};

/* One function with all sites one after the other; its result is that of the last call. */
static void load_crowd(struct crowd *crowd, enum cairn_code_mode mode, const void *target)
{
    static struct site_record records[SITES];
    static uint8_t bytes[(SITES + 2) * 32];
    uint32_t size = machine_patchpoint_bytes;
    ck_assert_uint_le(size, 32);
    struct cairn_error error;
    uint8_t *at = bytes + machine_enter(bytes);
    for (uint32_t i = 0; i < SITES; i++) {
        records[i] = (struct site_record){i, (uint32_t)(at - bytes), size, CAIRN_RECORD_PATCHPOINT};
        size_t used = target == NULL ? 0 : machine_call(at, target);
        arch_host()->fill_nops(arch_host(), at + used, size - used);
        at += size;
    }
    at += machine_leave_frame(at);
    at += machine_return(at);
    const struct site_function function = {0, SITES};
    const struct site_code code = {bytes, (uint32_t)(at - bytes), &function, 1, records, 0};
    size_t pages = (code.size + page_bytes() - 1) / page_bytes();
    uint8_t *address;
    crowd->runtime = create_runtime_of_one_slab(mode, pages + VENEER_PAGES + VENEER_PAGES);
    ck_assert_done(cairn_loader_create(crowd->runtime, "filler", &crowd->filler, &error), error);
    ck_assert_ptr_nonnull(cairn_loader_allocate(crowd->filler, CAIRN_SECTION_CODE,
                                                VENEER_PAGES * page_bytes(), 64, NULL, &error));
    crowd->module = site_load_code(crowd->runtime, &code, &address);
    ck_assert_done(cairn_module_publish(crowd->module, &error), error);
    ck_assert_uint_eq(support_site_count(crowd->module), SITES);
    crowd->function = (long (*)(void))(uintptr_t)address;
}

static void unload_crowd(struct crowd *crowd)
{
    cairn_loader_destroy(crowd->filler);
    cairn_module_retire(crowd->module);
    ck_assert_uint_eq(cairn_runtime_quiesce(crowd->runtime), 1);
    cairn_runtime_destroy(crowd->runtime);
}

/* The last site keeps LLVM's call. Under quiescence it can be changed; a call needs space for its
 * veneer. */
static void try_unmanaged(struct crowd *crowd, cairn_site *site)
{
    struct cairn_error error = {0};
    const void *target = other_far_target();
    uint64_t return_address = site_describe(site).return_address;
    enum cairn_status status = cairn_site_call(site, target, CAIRN_QUIESCENT, &error);
    expect_full(status, &error);
    ck_assert_int_eq(crowd->function(), FAR_VALUE);
    cairn_loader_destroy(crowd->filler);
    crowd->filler = NULL;
    ck_assert_done(cairn_site_call(site, target, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(site_describe(site).state, CAIRN_SITE_CALL);
    ck_assert_uint_eq(site_describe(site).target, (uintptr_t)target);
    ck_assert_uint_eq(site_describe(site).return_address, return_address);
    ck_assert_int_eq(crowd->function(), OTHER_FAR_VALUE);
    ck_assert_done(cairn_site_restore(site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(crowd->function(), FAR_VALUE);
}

START_TEST(sites_that_a_slab_has_no_veneers_for_keep_llvm_s_call_and_say_so)
{
    struct crowd crowd;
    struct cairn_error error = {0};
    uint32_t live = 0;
    load_crowd(&crowd, site_modes[_i], far_target());
    for (uint32_t i = 0; i < SITES; i++) {
        cairn_site *site = cairn_module_site(crowd.module, i);
        struct cairn_site_description description = site_describe(site);
        live += description.live;
        /* The first sites have veneers, and the others have none. */
        ck_assert(description.live == (i < live));
        if (description.live)
            continue;
        ck_assert_msg(strstr(description.reason, "veneer") != NULL, "%s", description.reason);
        ck_assert_int_eq(
            memcmp(description.bytes, description.original_bytes, description.byte_count), 0);
        ck_assert_int_eq(cairn_site_nop(site, CAIRN_SYNC, &error), CAIRN_ERROR_UNMANAGED);
        ck_assert_msg(strstr(error.message, "veneer") != NULL, "%s", error.message);
    }
    ck_assert_uint_gt(live, 0);
    ck_assert_uint_lt(live, SITES);
    ck_assert_int_eq(crowd.function(), FAR_VALUE);
    try_unmanaged(&crowd, cairn_module_site(crowd.module, SITES - 1));
    unload_crowd(&crowd);
}
END_TEST

START_TEST(calls_are_full_when_a_slab_s_veneers_are_used_up)
{
    struct crowd crowd;
    struct cairn_error error = {0};
    uint32_t called = 0;
    load_crowd(&crowd, site_modes[_i], NULL);
    for (uint32_t i = 0; i < SITES; i++) {
        cairn_site *site = cairn_module_site(crowd.module, i);
        ck_assert(site_describe(site).live);
        enum cairn_status status = cairn_site_call(site, far_target(), CAIRN_RELAXED, &error);
        called += status == CAIRN_OK;
        ck_assert((status == CAIRN_OK) == (i < called));
        if (status != CAIRN_OK)
            expect_full(status, &error);
    }
    ck_assert_uint_gt(called, 0);
    ck_assert_uint_lt(called, SITES);
    ck_assert_int_eq(crowd.function(), FAR_VALUE);
    for (uint32_t i = 0; i < SITES; i++)
        ck_assert_int_eq(site_describe(cairn_module_site(crowd.module, i)).state,
                         i < called ? CAIRN_SITE_CALL : CAIRN_SITE_NOP);
    unload_crowd(&crowd);
}
END_TEST

int main(void)
{
    const TTest *in_every_mode[] = {
        targets_at_both_edges_of_the_reach_and_one_step_beyond_are_called,
        targets_at_both_edges_of_the_reach_and_one_step_beyond_are_jumped_to,
        target_beyond_reach_without_room_for_a_veneer_is_refused_before_the_first_write,
        sites_that_a_slab_has_no_veneers_for_keep_llvm_s_call_and_say_so,
        calls_are_full_when_a_slab_s_veneers_are_used_up,
    };
    Suite *suite = suite_create("reach");
    TCase *tests = tcase_create("reach");
    int first_mode = site_first_mode();
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, site_reaches_a_veneer_at_the_other_end_of_its_slab, 2 * first_mode,
                        2 * SITE_MODES);
    for (size_t i = 0; i < sizeof in_every_mode / sizeof *in_every_mode; i++)
        tcase_add_loop_test(tests, in_every_mode[i], first_mode, SITE_MODES);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
