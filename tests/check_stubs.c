/*
 * check_stubs.c - stubs, and the exits and closures that are made of them: src/code/stub.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "code/parts.h"
#include "code/state.h"
#include "code_support.h"

#include <cairn/cairn.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SELF_TEST_BYTES = 64, MANY = 10000, MAPPINGS_MORE = 8 };

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* ---- Stubs that return a number ---- */

static _Alignas(8) int owner_a, owner_b;

static enum cairn_status encode_number(struct code_stub *stub, void *user, uint8_t *code,
                                       size_t *size, struct cairn_error *error)
{
    const int *number = user;
    (void)stub;
    (void)error;
    memset(code, 0xCC, SELF_TEST_BYTES);
    arch_host()->encode_self_test(arch_host(), *number, code);
    *size = SELF_TEST_BYTES;
    return CAIRN_OK;
}

static enum cairn_status try_to_add(struct code_space *space, const struct code_block *block,
                                    int number, void *owner, struct code_stub **stub,
                                    struct cairn_error *error)
{
    const struct code_stub_request request = {.encode = encode_number,
                                              .user = &number,
                                              .block = block,
                                              .owner = owner,
                                              .description_bytes = sizeof **stub};
    return code_space_add_stub(space, &request, stub, error);
}

static struct code_stub *add(struct code_space *space, int number, void *owner)
{
    struct code_stub *stub;
    ck_assert_ok(try_to_add(space, NULL, number, owner, &stub, NULL));
    return stub;
}

static int call(const struct code_stub *stub)
{
    return support_call((const void *)(uintptr_t)stub->address);
}

static void end_grace_period(struct code_space *space)
{
    struct grace *grace = code_space_grace(space);
    grace_end(grace, grace_start(grace), NULL);
}

static size_t code_bytes(struct code_space *space) { return support_statistics(space).code_bytes; }

START_TEST(a_stub_is_executed_and_found_by_its_owner_only)
{
    struct code_space *space = support_space(support_modes[_i], 64 * page_size(), 1);
    struct code_stub *stub = add(space, 7, &owner_a);
    ck_assert_int_eq(call(stub), 7);
    ck_assert_str_eq(support_protection((const void *)(uintptr_t)stub->address), "r-x");
    for (uint64_t i = 0; i < SELF_TEST_BYTES; i++) {
        ck_assert_ptr_eq(code_space_find_stub_owner(space, stub->address + i), &owner_a);
        ck_assert_ptr_null(code_space_find_owner(space, stub->address + i));
    }
    ck_assert_ptr_null(code_space_find_stub_owner(space, stub->address + SELF_TEST_BYTES));
    code_stub_free(stub);
    code_space_destroy(space);
}
END_TEST

START_TEST(a_stub_without_owner_is_not_found)
{
    struct code_space *space = support_space(support_modes[_i], 64 * page_size(), 1);
    struct code_stub *stub = add(space, 7, NULL);
    ck_assert_int_eq(call(stub), 7);
    ck_assert_ptr_null(code_space_find_stub_owner(space, stub->address));
    ck_assert_ptr_null(code_space_find_owner(space, stub->address));
    code_stub_free(stub);
    code_space_destroy(space);
}
END_TEST

START_TEST(a_retired_stub_stays_until_a_grace_period_has_ended)
{
    struct code_space *space = support_space(support_modes[_i], 64 * page_size(), 1);
    struct code_stub *kept = add(space, 6, NULL);
    struct code_stub *stub = add(space, 7, &owner_a);
    uint64_t address = stub->address;
    struct grace *grace = code_space_grace(space);
    uint64_t too_early = grace_start(grace);
    code_stub_retire(stub);
    grace_end(grace, too_early, NULL);
    ck_assert_int_eq(call(stub), 7);
    ck_assert_ptr_eq(code_space_find_stub_owner(space, address), &owner_a);
    end_grace_period(space);
    ck_assert_ptr_null(code_space_find_stub_owner(space, address));
    stub = add(space, 8, &owner_b);
    ck_assert_uint_eq(stub->address, address);
    ck_assert_ptr_eq(code_space_find_stub_owner(space, address), &owner_b);
    ck_assert_int_eq(call(stub), 8);
    ck_assert_int_eq(call(kept), 6);
    code_stub_free(stub);
    code_stub_free(kept);
    code_space_destroy(space);
}
END_TEST

START_TEST(retiring_a_stub_twice_frees_it_once)
{
    struct support_allocator counts = {0};
    const struct code_space_options options = {
        .arch = arch_host(), .allocator = support_counting(&counts), .mode = support_modes[_i]};
    struct code_space *space;
    ck_assert_ok(code_space_create(&options, &space, NULL));
    size_t bytes = counts.outstanding_bytes;
    struct code_stub *stub = add(space, 7, NULL);
    code_stub_retire(stub);
    code_stub_retire(stub);
    code_stub_retire(NULL);
    end_grace_period(space);
    end_grace_period(space);
    ck_assert_uint_eq(counts.outstanding_bytes, bytes);
    code_stub_free(NULL);
    code_space_destroy(space);
    ck_assert_uint_eq(counts.outstanding_bytes, 0);
}
END_TEST

START_TEST(stubs_share_pages)
{
    enum { STUBS = 20 };
    struct code_space *space = support_space(support_modes[_i], 64 * page_size(), 1);
    struct code_stub *stubs[STUBS];
    for (int i = 0; i < STUBS; i++)
        stubs[i] = add(space, i, &owner_a);
    for (int i = 0; i < STUBS; i++)
        ck_assert_int_eq(call(stubs[i]), i);
    ck_assert_uint_eq(code_bytes(space), page_size());
    for (int i = 0; i < STUBS; i++)
        code_stub_free(stubs[i]);
    ck_assert_uint_eq(code_bytes(space), 0);
    code_space_destroy(space);
}
END_TEST

START_TEST(a_stub_of_a_block_is_in_the_block_s_slab)
{
    struct code_space *space = support_space(support_modes[_i], 4 * page_size(), 0);
    uint8_t *first, *second;
    struct code_block *block =
        support_loaded(space, 3 * page_size() / SUPPORT_FUNCTION_BYTES, 1, &first);
    struct code_block *other = support_loaded(space, 1, 1, &second);
    struct code_stub *stub;
    ck_assert_uint_eq(support_statistics(space).slab_count, 2);
    ck_assert_ok(try_to_add(space, block, 7, NULL, &stub, NULL));
    ck_assert_uint_lt(stub->address - (uintptr_t)first, 4 * page_size());
    code_stub_free(stub);
    ck_assert_ok(try_to_add(space, other, 7, NULL, &stub, NULL));
    ck_assert_uint_lt(stub->address - (uintptr_t)second, 4 * page_size());
    code_stub_free(stub);
    code_block_destroy(block);
    code_block_destroy(other);
    code_space_destroy(space);
}
END_TEST

START_TEST(a_slab_is_added_when_all_are_full)
{
    enum { SLABS = 3 };
    struct code_space *space = support_space(support_modes[_i], page_size(), 0);
    static struct code_stub *stubs[SLABS * (64 << 10) / SELF_TEST_BYTES];
    size_t count = 0;
    while (support_statistics(space).slab_count < SLABS) {
        stubs[count] = add(space, (int)count, NULL);
        count++;
    }
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(call(stubs[i]), (int)i);
    for (size_t i = 0; i < count; i++)
        code_stub_free(stubs[i]);
    ck_assert_uint_eq(code_bytes(space), 0);
    code_space_destroy(space);
}
END_TEST

START_TEST(a_full_space_refuses_stubs_until_some_are_freed)
{
    struct code_space *space = support_space(support_modes[_i], page_size(), 1);
    static struct code_stub *stubs[(64 << 10) / SELF_TEST_BYTES];
    struct code_stub *none = NULL;
    struct cairn_error error;
    size_t count = 0;
    enum cairn_status status;
    while ((status = try_to_add(space, NULL, 7, &owner_a, &stubs[count], &error)) == CAIRN_OK)
        count++;
    ck_assert_int_eq(status, CAIRN_ERROR_FULL);
    ck_assert_ptr_nonnull(strstr(error.message, "slab_size"));
    size_t most = page_size() / SELF_TEST_BYTES;
    ck_assert(count == most || count == most - 1); /* units_take may miss the last one */
    ck_assert_int_eq(try_to_add(space, NULL, 7, &owner_a, &none, NULL), CAIRN_ERROR_FULL);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(call(stubs[count - 1]), 7);
    code_stub_retire(stubs[count - 1]);
    end_grace_period(space);
    stubs[count - 1] = add(space, 8, &owner_a);
    for (size_t i = 0; i < count; i++)
        code_stub_free(stubs[i]);
    code_space_destroy(space);
}
END_TEST

/* The slab was in use when profilers were to see the space, so only another slab is visible. */
START_TEST(a_hidden_slab_takes_stubs_if_there_can_be_no_other)
{
    for (uint32_t limit = 1; limit <= 2; limit++) {
        struct code_space *space = support_space(support_modes[_i], page_size(), limit);
        struct code_stub *early = add(space, 7, NULL);
        ck_assert_ok(code_space_make_visible(space, NULL));
        struct code_stub *late = add(space, 8, NULL);
        bool is_dual = code_space_mode(space) == CAIRN_CODE_MODE_DUAL;
        ck_assert_uint_eq(support_statistics(space).slab_count, is_dual ? limit : 1);
        ck_assert_int_eq(call(early) + call(late), 15);
        code_stub_free(early);
        code_stub_free(late);
        code_space_destroy(space);
    }
}
END_TEST

START_TEST(a_stub_without_memory_leaves_nothing)
{
    size_t failures = 0;
    for (size_t fail_at = 1;; fail_at++) {
        struct support_allocator counts = {0};
        const struct code_space_options options = {.arch = arch_host(),
                                                   .allocator = support_counting(&counts),
                                                   .slab_size = page_size(),
                                                   .mode = support_modes[_i]};
        struct code_space *space;
        struct code_stub *stub = NULL;
        uint8_t *code;
        ck_assert_ok(code_space_create(&options, &space, NULL));
        /* Fills the slab, so that one must be added. */
        struct code_block *block =
            support_loaded(space, page_size() / SUPPORT_FUNCTION_BYTES, 0, &code);
        counts.calls = 0;
        counts.fail_at = fail_at;
        enum cairn_status status = try_to_add(space, NULL, 7, &owner_a, &stub, NULL);
        counts.fail_at = 0;
        ck_assert((status == CAIRN_OK) == (stub != NULL));
        ck_assert_uint_eq(code_bytes(space), (status == CAIRN_OK ? 2 : 1) * page_size());
        if (status == CAIRN_OK)
            ck_assert_int_eq(call(stub), 7);
        code_stub_free(stub);
        code_block_destroy(block);
        code_space_destroy(space);
        ck_assert_uint_eq(counts.outstanding_bytes, 0);
        if (status == CAIRN_OK)
            break;
        ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        failures++;
    }
    ck_assert_uint_gt(failures, 3);
}
END_TEST

/* Refuses to encode for the address that it gets in the end. */
static enum cairn_status refuse_later(struct code_stub *stub, void *user, uint8_t *code,
                                      size_t *size, struct cairn_error *error)
{
    int *calls = user;
    int number = 7;
    if ((*calls)++ > 0)
        return CAIRN_ERROR_RANGE;
    return encode_number(stub, &number, code, size, error);
}

START_TEST(a_stub_that_cannot_be_encoded_leaves_nothing)
{
    struct code_space *space = support_space(support_modes[_i], 64 * page_size(), 1);
    for (int calls = 0; calls <= 1; calls++) {
        int made = 1 - calls;
        const struct code_stub_request request = {.encode = refuse_later,
                                                  .user = &made,
                                                  .owner = &owner_a,
                                                  .description_bytes = sizeof(struct code_stub)};
        struct code_stub *stub = NULL;
        ck_assert_int_eq(code_space_add_stub(space, &request, &stub, NULL), CAIRN_ERROR_RANGE);
        ck_assert_ptr_null(stub);
        ck_assert_uint_eq(code_bytes(space), 0);
    }
    code_space_destroy(space);
}
END_TEST

/* Without the barrier, another core could still execute the old code. */
static void refuse_barrier(void *user)
{
    struct code_space *space = support_space(*(const enum cairn_code_mode *)user, 0, 1);
    struct code_stub *kept = add(space, 1, NULL);
    struct code_stub *stub = add(space, 2, NULL);
    const struct support_refusal refusal = {SYS_membarrier, EPERM, 0, UINT32_MAX,
                                            MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE};
    code_stub_free(stub);
    size_t bytes = code_bytes(space);
    support_refuse(&refusal, 1);
    support_expect(try_to_add(space, NULL, 3, &owner_a, &stub, NULL) == CAIRN_ERROR_SYSTEM);
    support_expect(code_bytes(space) == bytes);
    support_expect(call(kept) == 1);
    code_stub_free(kept);
    code_space_destroy(space);
}

START_TEST(addresses_are_used_again_only_after_a_barrier)
{
    struct code_space *space = support_space(support_modes[_i], 0, 1);
    bool has_barrier = code_space_can_synchronise(space);
    code_space_destroy(space);
    if (has_barrier && support_can_refuse())
        support_in_child(refuse_barrier, (void *)&support_modes[_i]);
}
END_TEST

static const long watched[] = {SYS_mmap,    SYS_munmap,   SYS_mremap,
                               SYS_madvise, SYS_mprotect, SYS_membarrier};

/* Needs a new page and, from the second time on, a barrier. */
static enum cairn_status add_and_free(struct code_space *space)
{
    struct code_stub *stub;
    struct cairn_error error = {.status = CAIRN_OK};
    enum cairn_status status = try_to_add(space, NULL, 7, &owner_a, &stub, &error);
    support_expect(error.status == status);
    if (status == CAIRN_OK) {
        support_expect(call(stub) == 7);
        code_stub_free(stub);
    }
    return status;
}

static void refuse_from_every_call_on(void *user)
{
    struct code_space *space;
    if (!support_watch_calls(watched, sizeof watched / sizeof *watched))
        return;
    space = support_space(*(const enum cairn_code_mode *)user, 0, 1);
    size_t made = SIZE_MAX;
    for (size_t granted = 0; granted < made; granted++) {
        support_refuse_after(granted);
        enum cairn_status status = add_and_free(space);
        made = support_grant_all();
        support_expect(status == CAIRN_OK || made > granted);
        support_expect(code_bytes(space) == 0);
        support_expect(add_and_free(space) == CAIRN_OK);
    }
    code_space_destroy(space);
}

START_TEST(refusals_from_any_call_on_leave_no_stub)
{
    if (!support_is_emulated())
        support_in_child(refuse_from_every_call_on, (void *)&support_modes[_i]);
}
END_TEST

/* ---- Many of them ---- */

/* A stub of random size, as the code of an inline cache has. Each byte is the low byte of its
 * number. */
struct filled {
    struct code_stub stub; /* must be first */
    uint32_t number;
};

static enum cairn_status encode_filled(struct code_stub *stub, void *user, uint8_t *code,
                                       size_t *size, struct cairn_error *error)
{
    const uint32_t *number = user;
    (void)error;
    ((struct filled *)(void *)stub)->number = *number;
    *size = 1 + *number % 700;
    memset(code, (uint8_t)*number, *size);
    return CAIRN_OK;
}

static struct code_stub *add_filled(struct code_space *space, uint32_t number, void *owner)
{
    const struct code_stub_request request = {.encode = encode_filled,
                                              .user = &number,
                                              .owner = owner,
                                              .description_bytes = sizeof(struct filled)};
    struct code_stub *stub;
    ck_assert_ok(code_space_add_stub(space, &request, &stub, NULL));
    return stub;
}

static void check_filled(const struct code_space *space, const struct code_stub *stub, void *owner)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)stub->address;
    uint8_t expected = (uint8_t)((const struct filled *)(const void *)stub)->number;
    size_t wrong = 0;
    for (size_t i = 0; i < stub->code_bytes; i++)
        wrong += code[i] != expected;
    ck_assert_uint_eq(wrong, 0);
    ck_assert_ptr_eq(code_space_find_stub_owner(space, stub->address), owner);
    ck_assert_ptr_eq(code_space_find_stub_owner(space, stub->address + stub->code_bytes - 1),
                     owner);
}

/* Every second place has stubs with an owner. */
START_TEST(ten_thousand_stubs_of_random_sizes_add_no_mappings_and_leave_nothing)
{
    static struct code_stub *stubs[MANY / 4];
    uint64_t seed = support_seed();
    struct support_allocator counts = {0};
    const struct code_space_options options = {
        .arch = arch_host(), .allocator = support_counting(&counts), .mode = support_modes[_i]};
    struct code_space *space;
    ck_assert_ok(code_space_create(&options, &space, NULL));
    struct code_stub *first = add(space, 7, NULL);
    size_t mappings = support_count_mappings();
    for (int i = 0; i < MANY; i++) {
        uint32_t place = support_random(&seed) % (MANY / 4);
        void *owner = place % 2 == 0 ? &owner_a : NULL;
        if (stubs[place] == NULL) {
            stubs[place] = add_filled(space, support_random(&seed), owner);
        } else {
            check_filled(space, stubs[place], owner);
            code_stub_retire(stubs[place]);
            stubs[place] = NULL;
        }
        if (i % 500 == 0)
            end_grace_period(space);
    }
    if (support_modes[_i] == CAIRN_CODE_MODE_DUAL && mappings != 0)
        ck_assert_uint_le(support_count_mappings(), mappings + MAPPINGS_MORE);
    for (uint32_t place = 0; place < MANY / 4; place++) {
        if (stubs[place] != NULL)
            check_filled(space, stubs[place], place % 2 == 0 ? &owner_a : NULL);
        code_stub_retire(stubs[place]);
    }
    end_grace_period(space);
    ck_assert_int_eq(call(first), 7);
    ck_assert_uint_eq(code_bytes(space), page_size());
    code_stub_free(first);
    code_space_destroy(space);
    ck_assert_uint_eq(counts.outstanding_bytes, 0);
}
END_TEST

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)call;
    ++*(int *)user;
}

static void answer(const struct cairn_value *arguments, struct cairn_value *results, void *user)
{
    (void)arguments;
    ++*(int *)user;
    results[0] = cairn_value_of_integer(64, 42);
}

/* Creates, calls and destroys. Closures may be missing in this build. */
struct kind {
    bool is_closure;
    cairn_runtime *runtime;
    cairn_signature *signature;
};

static int calls;

static void *create(const struct kind *kind)
{
    cairn_exit *exit;
    cairn_closure *closure;
    if (!kind->is_closure) {
        ck_assert_ok(cairn_exit_create(kind->runtime, leave, &calls, &exit, NULL));
        return exit;
    }
    enum cairn_status status =
        cairn_closure_create(kind->runtime, kind->signature, answer, &calls, &closure, NULL);
    if (status == CAIRN_ERROR_UNSUPPORTED)
        return NULL;
    ck_assert_ok(status);
    return closure;
}

static void call_created(const struct kind *kind, const void *created)
{
    int before = calls;
    struct cairn_value result;
    const void *target =
        kind->is_closure ? cairn_closure_target(created) : cairn_exit_target(created);
    /* An exit is called as a function without arguments, and changes no registers. */
    ck_assert_ok(cairn_call(kind->signature, target, NULL, 0, &result, NULL));
    if (kind->is_closure)
        ck_assert_int_eq(cairn_value_signed(&result), 42);
    ck_assert_int_eq(calls, before + 1);
}

static void destroy(const struct kind *kind, void *created)
{
    if (kind->is_closure)
        cairn_closure_destroy(created);
    else
        cairn_exit_destroy(created);
}

static void churn(const struct kind *kind, void **created, uint64_t *seed)
{
    for (int i = 0; i < 2 * MANY; i++) {
        uint32_t place = support_random(seed) % MANY;
        if (created[place] != NULL) {
            if (i % 16 == 0)
                call_created(kind, created[place]);
            destroy(kind, created[place]);
            created[place] = NULL;
        } else {
            created[place] = create(kind);
        }
        if (i % 1024 == 0)
            cairn_runtime_quiesce(kind->runtime);
    }
}

static size_t bytes_of(const struct kind *kind, const struct support_allocator *counts)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(kind->runtime, &statistics);
    return statistics.code_bytes + statistics.data_bytes + counts->outstanding_bytes;
}

/* Ten thousand of a kind are created. Then random ones are destroyed and created again. */
static void create_and_destroy_many(enum cairn_code_mode mode, bool is_closure)
{
    static void *created[MANY];
    struct support_allocator counts = {0};
    uint64_t seed = support_seed();
    const struct cairn_type result = CAIRN_INTEGER(64);
    const struct cairn_runtime_options options = {.allocator = support_counting(&counts),
                                                  .code_mode = mode};
    struct kind kind = {.is_closure = is_closure};
    ck_assert_ok(cairn_runtime_create(&options, &kind.runtime, NULL));
    ck_assert_ok(cairn_signature_create(NULL, &result, 1, NULL, 0, &kind.signature, NULL));
    void *first = create(&kind);
    size_t mappings = support_count_mappings();
    size_t bytes = bytes_of(&kind, &counts);
    for (int i = 0; first != NULL && i < MANY; i++)
        created[i] = create(&kind);
    size_t limit = 112 + arch_host()->exit_bytes; /* 128, and 160 on PPC64 */
    if (mode == CAIRN_CODE_MODE_DUAL && first != NULL)
        ck_assert_uint_le(bytes_of(&kind, &counts) - bytes, limit * MANY);
    if (first != NULL)
        churn(&kind, created, &seed);
    if (mode == CAIRN_CODE_MODE_DUAL && mappings != 0)
        ck_assert_uint_le(support_count_mappings(), mappings + MAPPINGS_MORE);
    for (int i = 0; i < MANY; i++) {
        if (created[i] != NULL) {
            if (i % 16 == 0)
                call_created(&kind, created[i]);
            destroy(&kind, created[i]);
        }
        created[i] = NULL;
    }
    cairn_runtime_quiesce(kind.runtime);
    ck_assert_uint_eq(bytes_of(&kind, &counts), bytes);
    if (first != NULL)
        destroy(&kind, first);
    cairn_signature_destroy(kind.signature);
    cairn_runtime_destroy(kind.runtime);
    ck_assert_uint_eq(counts.outstanding_bytes, 0);
}

START_TEST(ten_thousand_exits_add_no_mappings_and_leave_nothing)
{
    create_and_destroy_many(support_modes[_i], false);
}
END_TEST

START_TEST(ten_thousand_closures_add_no_mappings_and_leave_nothing)
{
    create_and_destroy_many(support_modes[_i], true);
}
END_TEST

START_TEST(exits_and_closures_are_in_no_module)
{
    const struct cairn_type result = CAIRN_INTEGER(64);
    const struct cairn_runtime_options options = {.code_mode = support_modes[_i]};
    struct kind kind = {0};
    struct cairn_function function;
    ck_assert_ok(cairn_runtime_create(&options, &kind.runtime, NULL));
    ck_assert_ok(cairn_signature_create(NULL, &result, 1, NULL, 0, &kind.signature, NULL));
    for (int i = 0; i < 2; i++) {
        kind.is_closure = i == 1;
        void *created = create(&kind);
        if (created == NULL)
            continue;
        uint64_t pc = (uintptr_t)(kind.is_closure ? cairn_closure_target(created)
                                                  : cairn_exit_target(created));
        ck_assert_ptr_null(cairn_runtime_find_module(kind.runtime, pc));
        ck_assert(!cairn_runtime_find_function(kind.runtime, pc, &function));
        destroy(&kind, created);
    }
    cairn_signature_destroy(kind.signature);
    cairn_runtime_destroy(kind.runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stubs");
    TCase *stubs = tcase_create("stubs");
    int count = support_mode_count();
    tcase_add_loop_test(stubs, a_stub_is_executed_and_found_by_its_owner_only, 0, count);
    tcase_add_loop_test(stubs, a_stub_without_owner_is_not_found, 0, count);
    tcase_add_loop_test(stubs, a_retired_stub_stays_until_a_grace_period_has_ended, 0, count);
    tcase_add_loop_test(stubs, retiring_a_stub_twice_frees_it_once, 0, count);
    tcase_add_loop_test(stubs, stubs_share_pages, 0, count);
    tcase_add_loop_test(stubs, a_stub_of_a_block_is_in_the_block_s_slab, 0, count);
    tcase_add_loop_test(stubs, a_slab_is_added_when_all_are_full, 0, count);
    tcase_add_loop_test(stubs, a_full_space_refuses_stubs_until_some_are_freed, 0, count);
    tcase_add_loop_test(stubs, a_hidden_slab_takes_stubs_if_there_can_be_no_other, 0, count);
    tcase_add_loop_test(stubs, a_stub_without_memory_leaves_nothing, 0, count);
    tcase_add_loop_test(stubs, a_stub_that_cannot_be_encoded_leaves_nothing, 0, count);
    tcase_add_loop_test(stubs, addresses_are_used_again_only_after_a_barrier, 0, count);
    tcase_add_loop_test(stubs, refusals_from_any_call_on_leave_no_stub, 0, count);
    suite_add_tcase(suite, stubs);
    TCase *many = tcase_create("many");
    tcase_set_timeout(many, 120);
    tcase_add_loop_test(many, ten_thousand_stubs_of_random_sizes_add_no_mappings_and_leave_nothing,
                        0, count);
    tcase_add_loop_test(many, ten_thousand_exits_add_no_mappings_and_leave_nothing, 0, count);
    tcase_add_loop_test(many, ten_thousand_closures_add_no_mappings_and_leave_nothing, 0, count);
    tcase_add_loop_test(many, exits_and_closures_are_in_no_module, 0, count);
    suite_add_tcase(suite, many);
    return support_main(suite);
}
