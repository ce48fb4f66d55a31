/*
 * Tests in which a thread is stopped at one instruction of a function with a site, the site is
 * patched, and the thread continues: for every instruction, every alignment and size of the region,
 * every pair of states, with a single and with a dual mapping.
 *
 * The processor's trap flag raises SIGTRAP after each instruction, and the handler patches. A
 * thread that has not executed the patched instruction yet must do what the new state says,
 * completely; one that has executed it, what the old state says. It must never be at an address
 * inside of an instruction, and callees must return to the site's return address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/site_support.h"

#include "site/boundaries.h"
#include "tests/machine.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

/* The function's first two instructions are far from the site. */
enum { TRAP_FLAG = 0x100, FIRST_STOP = 2, MANY = 1000 };

/* ---- Operations on a site ---- */

/* The target of jumps beyond the reach of the direct call: removes the frame and returns 4. */
__asm__(".pushsection .text\n"
        ".type site_far_jump, @function\n"
        "site_far_jump:\n"
        "    add $8, %rsp\n"
        "    mov $4, %eax\n"
        "    ret\n"
        ".size site_far_jump, . - site_far_jump\n"
        ".popsection\n");
extern const uint8_t site_far_jump[] __attribute__((visibility("hidden")));

enum deed { NOTHING, CALL_NEAR_ONE, CALL_NEAR_TWO, JUMP_NEAR, CALL_FAR, JUMP_FAR, RESTORE, DEEDS };

static enum cairn_status perform(const struct site_fixture *fixture, enum deed deed)
{
    switch (deed) {
    case CALL_NEAR_ONE:
        return cairn_site_call(fixture->site, fixture->near_one, CAIRN_RELAXED, NULL);
    case CALL_NEAR_TWO:
        return cairn_site_call(fixture->site, fixture->near_two, CAIRN_RELAXED, NULL);
    case JUMP_NEAR:
        return cairn_site_jump(fixture->site, fixture->near_three, CAIRN_RELAXED, NULL);
    case CALL_FAR:
        return cairn_site_call(fixture->site, SITE_TWO, CAIRN_RELAXED, NULL);
    case JUMP_FAR:
        return cairn_site_jump(fixture->site, site_far_jump, CAIRN_RELAXED, NULL);
    case RESTORE:
        return cairn_site_restore(fixture->site, CAIRN_RELAXED, NULL);
    default:
        return cairn_site_nop(fixture->site, CAIRN_RELAXED, NULL);
    }
}

/* ---- Stepping ---- */

static struct {
    const struct site_fixture *fixture;
    struct cairn_site_description description;
    uint64_t boundaries; /* bit n: an instruction begins at byte n of the function */
    uint64_t boundaries_above;
    enum deed deed;
    int stop_at;
    /* The following fields are about one call of the function. */
    int steps;
    bool inside; /* whether it is between its first instruction and its return */
    uint64_t caller;
    bool was_outside; /* whether the previous step was in a callee or a veneer */
    bool branched;    /* whether the patched instruction has been executed */
    bool patched;
    bool branched_before_patch;
    const char *wrong;
} step;

static bool is_boundary(uint64_t offset)
{
    return (offset < 64 ? step.boundaries >> offset : step.boundaries_above >> (offset - 64)) & 1;
}

/* The boundaries of the function's instructions, which a patch never moves. */
static void find_boundaries(void)
{
    const struct cairn_arch *arch = arch_host();
    size_t end = (size_t)(step.fixture->tail - step.fixture->code) + 5;
    step.boundaries = 0;
    step.boundaries_above = 0;
    for (size_t offset = 0; offset < end;) {
        *(offset < 64 ? &step.boundaries : &step.boundaries_above) |= UINT64_C(1) << (offset % 64);
        size_t length = boundaries_instruction_length(arch, step.fixture->code + offset,
                                                      SITE_FUNCTION_BYTES - offset);
        ck_assert_uint_gt(length, 0);
        offset += length;
    }
}

static void look_around(uint64_t pc)
{
    uint64_t offset = pc - (uintptr_t)step.fixture->code;
    bool in_function = offset < SITE_FUNCTION_BYTES;
    if (in_function && !is_boundary(offset))
        step.wrong = "stands within an instruction";
    if (in_function && step.was_outside && pc != step.description.return_address)
        step.wrong = "came back to another address than the return address";
    step.was_outside = !in_function;
}

static void patch_here(uint64_t pc)
{
    step.patched = true;
    step.branched_before_patch = step.branched;
    if (perform(step.fixture, step.deed) != CAIRN_OK)
        step.wrong = "could not be patched";
    if (pc == step.description.instruction_address)
        step.branched = true;
}

static void stepped(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t pc = (uint64_t)registers[REG_RIP];
    if (!step.inside && pc == (uintptr_t)step.fixture->code) {
        step.inside = true;
        memcpy(&step.caller, (const void *)(uintptr_t)registers[REG_RSP], sizeof step.caller);
    }
    if (!step.inside)
        return;
    if (pc == step.caller) {
        step.inside = false;
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
        return;
    }
    look_around(pc);
    if (step.steps++ == step.stop_at)
        patch_here(pc);
    else if (pc == step.description.instruction_address)
        step.branched = true;
}

static long call_stepping(long (*function)(void))
{
    step.steps = 0;
    step.inside = false;
    step.was_outside = false;
    step.branched = false;
    step.patched = false;
    step.wrong = NULL;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    return function();
}

/* ---- All pairs of states ---- */

static long run_undisturbed(const struct site_fixture *fixture, enum deed deed)
{
    ck_assert_int_eq(perform(fixture, deed), CAIRN_OK);
    return fixture->function();
}

/* Patches from one state to the other with the thread stopped at its first, second, … instruction.
 * Returns the number of instructions. */
static int stop_everywhere(const struct site_fixture *fixture, enum deed from, enum deed to)
{
    long new_result = run_undisturbed(fixture, to);
    long old_result = run_undisturbed(fixture, from);
    step.deed = to;
    for (step.stop_at = FIRST_STOP; step.stop_at < MANY; step.stop_at++) {
        ck_assert_int_eq(perform(fixture, from), CAIRN_OK);
        long result = call_stepping(fixture->function);
        if (!step.patched)
            return step.stop_at;
        long expected = step.branched_before_patch ? old_result : new_result;
        ck_assert_msg(step.wrong == NULL && result == expected,
                      "%u bytes at %llu mod 8, from %d to %d, stopped at %d: %ld, not %ld; %s",
                      step.description.byte_count, (unsigned long long)step.description.address % 8,
                      (int)from, (int)to, step.stop_at, result, expected,
                      step.wrong == NULL ? "" : step.wrong);
        ck_assert_int_eq(fixture->function(), new_result);
    }
    ck_abort_msg("the function does not end");
    return 0;
}

static void look_at(const struct site_fixture *fixture)
{
    step.fixture = fixture;
    step.description = site_describe(fixture->site);
    ck_assert(step.description.live);
    find_boundaries();
}

static void stop_between(const struct site_fixture *fixture, const enum deed pairs[][2],
                         size_t count)
{
    look_at(fixture);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_ge(stop_everywhere(fixture, pairs[i][0], pairs[i][1]), 5);
}

static void stop_between_all_states(const struct site_fixture *fixture)
{
    look_at(fixture);
    for (enum deed from = NOTHING; from < DEEDS; from++)
        for (enum deed to = NOTHING; to < DEEDS; to++)
            if (from != to)
                ck_assert_int_ge(stop_everywhere(fixture, from, to), 5);
}

static void begin_stepping(void)
{
    const struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
}

/* ---- Regions ---- */

START_TEST(patchpoint_of_any_size_and_alignment)
{
    static const enum deed pairs[][2] = {
        {NOTHING, CALL_NEAR_ONE},       {CALL_NEAR_ONE, NOTHING},   {NOTHING, JUMP_NEAR},
        {JUMP_NEAR, NOTHING},           {CALL_NEAR_ONE, JUMP_NEAR}, {JUMP_NEAR, CALL_NEAR_TWO},
        {CALL_NEAR_ONE, CALL_NEAR_TWO},
    };
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    begin_stepping();
    for (uint32_t size = 9; size <= 32; size++) {
        for (uint32_t padding = 0; padding < 8; padding++) {
            uint8_t region[SITE_REGION_MAX];
            struct site_fixture fixture;
            struct site_shape shape = site_null_patchpoint(region, size);
            shape.padding = padding;
            site_load_into(&fixture, runtime, &shape);
            stop_between(&fixture, pairs, sizeof pairs / sizeof *pairs);
            cairn_module_retire(fixture.module);
            cairn_runtime_quiesce(runtime);
        }
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

/* The target of LLVM's call, site_one, is out of reach, too: RESTORE restores that call. */
START_TEST(patchpoint_with_far_targets_through_veneers)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    begin_stepping();
    for (uint32_t size = 13; size <= 24; size += 11) {
        for (uint32_t padding = 0; padding < 8; padding++) {
            uint8_t region[SITE_REGION_MAX];
            struct site_fixture fixture;
            struct site_shape shape = site_patchpoint(region, size);
            shape.padding = padding;
            site_load_into(&fixture, runtime, &shape);
            stop_between_all_states(&fixture);
            cairn_module_retire(fixture.module);
            cairn_runtime_quiesce(runtime);
        }
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

/* mov $9, %eax, with redundant prefixes, in 5 to 8 bytes. */
static uint32_t write_long_instruction(uint8_t *region, uint32_t length)
{
    static const uint8_t move[] = {0xB8, 9, 0, 0, 0};
    memset(region, 0x3E, length - sizeof move);
    memcpy(region + length - sizeof move, move, sizeof move);
    return length;
}

START_TEST(shadow_of_one_instruction_in_a_word)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    begin_stepping();
    for (uint32_t length = 5; length <= 8; length++) {
        for (uint32_t in_word = 0; in_word + length <= 8; in_word++) {
            uint8_t region[SITE_REGION_MAX];
            struct site_fixture fixture;
            struct site_shape shape = {.kind = CAIRN_RECORD_STACKMAP,
                                       .region = region,
                                       .padding = (8 - machine_enter_bytes + in_word) % 8,
                                       .publish = true};
            shape.region_size = shape.byte_count = write_long_instruction(region, length);
            site_load_into(&fixture, runtime, &shape);
            ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_ORIGINAL);
            ck_assert_int_eq(fixture.function(), 9);
            stop_between_all_states(&fixture);
            cairn_module_retire(fixture.module);
            cairn_runtime_quiesce(runtime);
        }
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

/* The call ends at the end of the region and follows no-ops. */
START_TEST(statepoint_of_any_size)
{
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    begin_stepping();
    for (uint32_t size = 5; size <= 13; size++) {
        uint8_t region[SITE_REGION_MAX];
        struct site_fixture fixture;
        struct site_shape shape = site_null_patchpoint(region, size);
        shape.kind = CAIRN_RECORD_STATEPOINT;
        /* The last five bytes begin a word. */
        shape.padding = (16 - (machine_enter_bytes + size - 5) % 8) % 8;
        site_load_into(&fixture, runtime, &shape);
        stop_between_all_states(&fixture);
        cairn_module_retire(fixture.module);
        cairn_runtime_quiesce(runtime);
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads stopped at every instruction");
    TCase *tests = tcase_create("stopped");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, patchpoint_of_any_size_and_alignment, 0, SITE_MODES);
    tcase_add_loop_test(tests, patchpoint_with_far_targets_through_veneers, 0, SITE_MODES);
    tcase_add_loop_test(tests, shadow_of_one_instruction_in_a_word, 0, SITE_MODES);
    tcase_add_loop_test(tests, statepoint_of_any_size, 0, SITE_MODES);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
