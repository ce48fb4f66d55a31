/*
 * Tests of contexts: the registers that an exit saves and restores, save and resume, signals.
 * The tests' own instructions (registers.h) load and store registers with random values.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "code_support.h"
#include "tests/context_support.h"
#include "tests/registers.h"

#include <cairn/cairn.h>
#include <check.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

enum { ROUNDS = 200, STACK_BYTES = 1 << 16, STUB_PAGES = 2 };

/* More registers than any architecture has. */
static const uint16_t numbers = 130;

/* ---- A trial: registers that are loaded, changes by a handler, and the registers afterwards
 * ---- */

static struct {
    struct registers before;
    struct registers wanted; /* the registers that a handler sets */
    struct registers after;
    uint32_t level;
    uint64_t sp; /* the stack pointer that a handler sets; 0: unchanged */
    unsigned calls;
    char fault[128]; /* the first error that a handler found */
} trial;

static void find_fault(const char *what, uint16_t dwarf)
{
    if (trial.fault[0] == '\0')
        snprintf(trial.fault, sizeof trial.fault, "%s: register %u (%s)", what, dwarf,
                 cairn_register_name(cairn_architecture_host(), dwarf));
}

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return (uint64_t)support_random(&random_state) << 32 | support_random(&random_state);
}

static void make_random(struct registers *registers)
{
    uint8_t *bytes = (uint8_t *)registers;
    for (size_t i = 0; i < sizeof *registers; i += sizeof(uint64_t)) {
        uint64_t value = random_u64();
        memcpy(bytes + i, &value, sizeof value);
    }
    registers_make_possible(registers);
}

static void begin_trial(uint32_t level)
{
    memset(&trial, 0, sizeof trial);
    trial.level = level;
    make_random(&trial.before);
    make_random(&trial.wanted);
    registers_make_pair(&trial.before, &trial.wanted);
}

/* Ignores flags that cannot be loaded. */
static bool same_bytes(const void *one, const void *other, uint16_t dwarf, size_t size)
{
    size_t offset;
    size_t bytes;
    if (registers_place(dwarf, trial.level, &offset, &bytes) &&
        offset == offsetof(struct registers, flags)) {
        uint64_t flags[2];
        memcpy(&flags[0], one, sizeof flags[0]);
        memcpy(&flags[1], other, sizeof flags[1]);
        return ((flags[0] ^ flags[1]) & registers_flags_mask()) == 0;
    }
    return memcmp(one, other, size) == 0;
}

static void compare_register(const struct cairn_context *context, uint16_t dwarf)
{
    uint8_t value[REGISTERS_VECTOR_BYTES];
    size_t offset;
    size_t bytes;
    if (!registers_place(dwarf, trial.level, &offset, &bytes)) {
        if (!registers_is_pc(dwarf) && cairn_context_register_size(context, dwarf) != 0)
            find_fault("there should be none", dwarf);
        return;
    }
    if (cairn_context_register_size(context, dwarf) != bytes ||
        cairn_context_read(context, dwarf, value, bytes, NULL) != CAIRN_OK)
        find_fault("it is not there", dwarf);
    else if (!registers_is_fixed(dwarf) &&
             !same_bytes(value, (const uint8_t *)&trial.before + offset, dwarf, bytes))
        find_fault("it has another value", dwarf);
}

/* Expects the registers of `before` in the context. */
static void compare_context(const struct cairn_context *context, uint64_t pc, uint64_t sp)
{
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++)
        if (!registers_is_given_up(dwarf))
            compare_register(context, dwarf);
    if (((read_register(context, CAIRN_REGISTER_FLAGS) ^ trial.before.flags) &
         registers_flags_mask()) != 0)
        find_fault("the flags", 0);
    if (read_register(context, CAIRN_REGISTER_PC) != pc)
        find_fault("the program counter", 0);
    if (read_register(context, CAIRN_REGISTER_SP) != sp)
        find_fault("the stack pointer", registers_stack_pointer());
}

static void change_register(struct cairn_context *context, uint16_t dwarf)
{
    size_t offset;
    size_t bytes;
    if (registers_place(dwarf, trial.level, &offset, &bytes) && !registers_is_fixed(dwarf) &&
        cairn_context_write(context, dwarf, (const uint8_t *)&trial.wanted + offset, bytes, NULL) !=
            CAIRN_OK)
        find_fault("it cannot be written", dwarf);
}

/* Writes the registers of `wanted` to the context. */
static void change_context(struct cairn_context *context)
{
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++)
        change_register(context, dwarf);
    write_register(context, CAIRN_REGISTER_FLAGS, trial.wanted.flags);
}

static void compare_after(const struct registers *expected, uint16_t dwarf)
{
    size_t offset;
    size_t bytes;
    if (registers_place(dwarf, trial.level, &offset, &bytes) && !registers_is_fixed(dwarf) &&
        !registers_is_given_up(dwarf) &&
        !same_bytes((const uint8_t *)&trial.after + offset, (const uint8_t *)expected + offset,
                    dwarf, bytes))
        find_fault("it is another afterwards", dwarf);
}

/* Expects the registers of `expected` after the run. (There is no ck_assert for each register,
 * because each one writes to a pipe.) */
static void expect_after(const struct registers *expected, uint64_t sp)
{
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++)
        compare_after(expected, dwarf);
    if (((trial.after.flags ^ expected->flags) & registers_flags_mask()) != 0)
        find_fault("the flags are others afterwards", 0);
    if (trial.after.general[registers_stack_pointer()] != sp)
        find_fault("it is another afterwards", registers_stack_pointer());
    if (trial.after.control != expected->control)
        find_fault("what controls floating point is another afterwards", 0);
    if (registers_has_red_zone() &&
        memcmp(trial.after.below, trial.before.below, sizeof trial.after.below) != 0)
        find_fault("what lies below the stack pointer", registers_stack_pointer());
    ck_assert_msg(trial.fault[0] == '\0', "%s", trial.fault);
}

/* ---- Stubs ---- */

static uint8_t *stub_pages;

static void set_up(void)
{
    random_state = support_seed();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    stub_pages =
        mmap(NULL, STUB_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(stub_pages, MAP_FAILED);
}

static void tear_down(void) { munmap(stub_pages, STUB_PAGES * (size_t)sysconf(_SC_PAGESIZE)); }

/* Returns an exit of one of this machine's levels, which tests call. */
static const void *make_exit(arch_exit_handler *handler, uint32_t level)
{
    const struct cairn_arch *arch = arch_host();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct arch_exit *data = (struct arch_exit *)(void *)(stub_pages + page);
    ck_assert_int_eq(mprotect(stub_pages, page, PROT_READ | PROT_WRITE), 0);
    static _Atomic uint32_t saved_level;
    saved_level = level;
    ck_assert_int_eq(arch_exit_init(data, handler, &trial, &saved_level, NULL), CAIRN_OK);
    ck_assert(arch->encode_exit(arch, (uintptr_t)stub_pages, (uintptr_t)data, stub_pages));
    arch_host_code_written(stub_pages, stub_pages, arch->exit_bytes);
    ck_assert_int_eq(mprotect(stub_pages, page, PROT_READ | PROT_EXEC), 0);
    return stub_pages;
}

/* Is not inlined, so that it has a call frame that unwinders find. */
static __attribute__((noinline)) unsigned run(const void *code)
{
    registers_run(&trial.before, &trial.after, code, trial.level);
    return trial.calls;
}

static uint64_t returned(void) { return registers_code_address(registers_returned); }

/* ---- Exits ---- */

static void look(struct cairn_context *context, void *user)
{
    trial.calls++;
    if (user != &trial || !registers_suit_c())
        find_fault("the handler is not called as C is", 0);
    if ((uintptr_t)context % CAIRN_CONTEXT_ALIGNMENT != 0)
        find_fault("the context is not aligned", 0);
    compare_context(context, returned(), registers_sp);
}

START_TEST(exit_hands_over_every_register_and_brings_it_back)
{
    for (uint32_t level = 1; level <= arch_host_vector_level(); level++) {
        const void *stub = make_exit(look, level);
        for (int round = 0; round < ROUNDS; round++) {
            begin_trial(level);
            run(stub);
            ck_assert_uint_eq(trial.calls, 1);
            expect_after(&trial.before, registers_sp);
        }
    }
}
END_TEST

static void change(struct cairn_context *context, void *user)
{
    look(context, user);
    change_context(context);
}

START_TEST(thread_continues_with_the_registers_that_the_handler_left)
{
    for (uint32_t level = 1; level <= arch_host_vector_level(); level++) {
        const void *stub = make_exit(change, level);
        for (int round = 0; round < ROUNDS; round++) {
            begin_trial(level);
            run(stub);
            expect_after(&trial.wanted, registers_sp);
        }
    }
}
END_TEST

/* Writes the values that `below` must have below the new stack pointer. */
static void prepare_below(uint64_t sp)
{
    uint64_t *below = (uint64_t *)(uintptr_t)(sp - 128);
    memcpy(below, trial.before.below, sizeof trial.before.below);
}

static void move(struct cairn_context *context, void *user)
{
    change(context, user);
    write_register(context, CAIRN_REGISTER_PC, registers_code_address(registers_landing));
    if (trial.sp == 0)
        return;
    write_register(context, CAIRN_REGISTER_SP, trial.sp);
    prepare_below(trial.sp);
}

static void expect_moved(const void *stub, uint64_t sp, uint32_t level)
{
    begin_trial(level);
    trial.sp = sp;
    run(stub);
    expect_after(&trial.wanted, sp);
}

START_TEST(thread_continues_where_the_handler_says)
{
    static _Alignas(64) uint8_t other[STACK_BYTES];
    _Alignas(64) volatile uint8_t above[STACK_BYTES];
    uint32_t level = arch_host_vector_level();
    const void *stub = make_exit(move, level);
    expect_moved(stub, (uintptr_t)other + STACK_BYTES - 1024, level);
    for (uint64_t offset = 0; offset < 4096; offset += 16) {
        expect_moved(stub, (uintptr_t)above + STACK_BYTES / 2 - offset, level);
        expect_moved(stub, (uintptr_t)above - 5 * STACK_BYTES - offset, level);
    }
}
END_TEST

/* The unwinder must continue past the frame that an exit makes, to the code that contains the site
 * and to its callers. */
struct unwinding {
    unsigned frames;
    unsigned registers; /* registers of the site's frame with the loaded values */
    bool site_seen;
    bool caller_seen;
};

/* Only general registers, because unwinders know only parts of others. */
static bool is_kept_general(uint16_t dwarf)
{
    return dwarf < 32 && registers_is_kept(dwarf) && !registers_is_fixed(dwarf) &&
           dwarf != registers_stack_pointer();
}

static unsigned count_kept(struct _Unwind_Context *frame)
{
    unsigned count = 0;
    for (uint16_t dwarf = 0; dwarf < 32; dwarf++)
        count +=
            is_kept_general(dwarf) && _Unwind_GetGR(frame, dwarf) == trial.before.general[dwarf];
    return count;
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *user)
{
    struct unwinding *unwinding = user;
    uint64_t pc = _Unwind_GetIP(frame);
    unwinding->frames++;
    if (pc == returned()) {
        unwinding->site_seen = true;
        unwinding->registers = count_kept(frame);
    }
    void *function = _Unwind_FindEnclosingFunction((void *)(uintptr_t)(pc - 1));
    if (unwinding->site_seen && function == (void *)(uintptr_t)run)
        unwinding->caller_seen = true;
    return unwinding->frames < 30 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static struct unwinding unwinding;

static void unwind(struct cairn_context *context, void *user)
{
    look(context, user);
    _Unwind_Backtrace(visit, &unwinding);
}

START_TEST(unwinder_passes_an_exit)
{
    for (uint32_t level = 1; level <= arch_host_vector_level(); level++) {
        begin_trial(level);
        unwinding = (struct unwinding){.frames = 0};
        run(make_exit(unwind, level));
        expect_after(&trial.before, registers_sp);
        ck_assert(unwinding.site_seen);
        unsigned kept = 0;
        for (uint16_t dwarf = 0; dwarf < 32; dwarf++)
            kept += is_kept_general(dwarf);
        ck_assert_uint_eq(unwinding.registers, kept);
        ck_assert(unwinding.caller_seen);
    }
}
END_TEST

START_TEST(exit_without_a_level_is_refused)
{
    struct arch_exit data;
    _Atomic uint32_t level = arch_host_vector_level();
    ck_assert_int_eq(arch_exit_init(&data, look, &trial, &level, NULL), CAIRN_OK);
    ck_assert_ptr_eq(data.self, &data);
    level = 0;
    ck_assert_int_eq(arch_exit_init(&data, look, &trial, &level, NULL), CAIRN_ERROR_UNSUPPORTED);
}
END_TEST

/* ---- Resume ---- */

static struct cairn_context copy;

static void resume_copy(struct cairn_context *context, void *user)
{
    change(context, user);
    copy = *context;
    memset(context, 0xEE, sizeof *context);
    cairn_context_resume(&copy);
}

START_TEST(resume_loads_every_register_of_a_context_elsewhere)
{
    for (uint32_t level = 1; level <= arch_host_vector_level(); level++) {
        const void *stub = make_exit(resume_copy, level);
        for (int round = 0; round < ROUNDS; round++) {
            begin_trial(level);
            run(stub);
            expect_after(&trial.wanted, registers_sp);
        }
    }
}
END_TEST

/* Distance of the context below the stack pointer that it is resumed with; all distances are
 * tested. */
static uint64_t distance;

static void resume_below(struct cairn_context *context, void *user)
{
    static _Alignas(64) uint8_t stack[4 * CAIRN_CONTEXT_BYTES];
    change(context, user);
    struct cairn_context *below =
        (struct cairn_context *)(void *)(stack + CAIRN_CONTEXT_ALIGNMENT * 2);
    memcpy(below, context, sizeof *below);
    trial.sp = (uintptr_t)(below + 1) + distance;
    write_register(below, CAIRN_REGISTER_SP, trial.sp);
    memcpy(trial.before.below, (const void *)(uintptr_t)(trial.sp - 128),
           sizeof trial.before.below);
    cairn_context_resume(below);
}

START_TEST(context_may_lie_below_the_stack_pointer)
{
    uint32_t level = arch_host_vector_level();
    const void *stub = make_exit(resume_below, level);
    for (distance = 0; distance < 512; distance += 16) {
        begin_trial(level);
        run(stub);
        expect_after(&trial.wanted, trial.sp);
    }
}
END_TEST

/* ---- Save ---- */

START_TEST(save_describes_the_caller)
{
    struct cairn_context context;
    for (int round = 0; round < ROUNDS; round++) {
        begin_trial(arch_host_vector_level());
        memset(&context, 0xEE, sizeof context);
        const void *code = registers_call_function(
            &trial.before, (const void *)(uintptr_t)cairn_context_save, &context);
        run(code);
        for (uint16_t dwarf = 0; dwarf < numbers; dwarf++) {
            if (registers_is_kept(dwarf))
                compare_register(&context, dwarf);
            else if (!registers_is_pc(dwarf) && !registers_is_fixed(dwarf))
                ck_assert_uint_eq(cairn_context_register_size(&context, dwarf), 0);
        }
        ck_assert_msg(trial.fault[0] == '\0', "%s", trial.fault);
        ck_assert_uint_eq(read_register(&context, CAIRN_REGISTER_PC), returned());
        ck_assert_uint_eq(read_register(&context, CAIRN_REGISTER_SP), registers_sp);
    }
}
END_TEST

/* Resumes from some frames deeper. */
static __attribute__((noinline)) int go_back(const struct cairn_context *context, int depth)
{
    volatile int below = depth;
    if (depth == 0)
        cairn_context_resume(context);
    if (depth > 0)
        below = go_back(context, depth - 1);
    return below;
}

START_TEST(resume_returns_from_save_again)
{
    struct cairn_context context;
    volatile int times = 0;
    for (volatile int depth = 0; depth < 20; depth++) {
        int result = cairn_context_save(&context);
        times++;
        if (result == 0)
            go_back(&context, depth);
        ck_assert_int_eq(result, 1);
    }
    ck_assert_int_eq(times, 40);
}
END_TEST

/* ---- Signals ---- */

static struct {
    atomic_bool done;
    atomic_bool spinning;
    bool resumes;
    bool has_no_vectors;
    enum cairn_status status;
    struct cairn_error error;
} interruption;

static bool is_spinning(const struct cairn_context *context)
{
    uint64_t pc = read_register(context, CAIRN_REGISTER_PC);
    return pc > registers_code_address(registers_spin) &&
           pc < registers_code_address(registers_spin_end);
}

static void look_and_change(struct cairn_context *context)
{
    compare_context(context, read_register(context, CAIRN_REGISTER_PC),
                    registers_sp - registers_call_bytes());
    change_context(context);
    write_register(context, CAIRN_REGISTER_PC, registers_code_address(registers_landing));
    write_register(context, CAIRN_REGISTER_SP, registers_sp);
}

static void interrupt(int number, siginfo_t *info, void *ucontext)
{
    static struct cairn_context context;
    (void)number;
    (void)info;
    memset(&context, 0xEE, sizeof context);
    interruption.status = cairn_context_from_signal(&context, ucontext, &interruption.error);
    bool has_context =
        interruption.status == CAIRN_OK || interruption.status == CAIRN_ERROR_NOT_FOUND;
    if (atomic_load(&interruption.done) || (has_context && !is_spinning(&context)))
        return;
    atomic_store(&interruption.done, true);
    if (!has_context)
        _exit(3);
    look_and_change(&context);
    if (interruption.resumes)
        cairn_context_resume(&context);
    if (cairn_context_to_signal(&context, ucontext, &interruption.error) != CAIRN_OK)
        find_fault("it cannot go back", 0);
}

static void *interrupt_until_done(void *thread)
{
    while (!atomic_load(&interruption.done)) {
        usleep(200);
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
    }
    return NULL;
}

static void run_interrupted(bool resumes)
{
    pthread_t own = pthread_self();
    pthread_t other;
    interruption.resumes = resumes;
    interruption.status = CAIRN_OK;
    atomic_store(&interruption.done, false);
    ck_assert_int_eq(pthread_create(&other, NULL, interrupt_until_done, &own), 0);
    run(registers_spin);
    pthread_join(other, NULL);
}

static void catch_signal(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    ck_assert_int_eq(sigaction(number, &action, NULL), 0);
}

/* Unblocks a signal, which is still blocked after a handler that does not return. */
static void unblock(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    ck_assert_int_eq(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
}

static void interrupt_rounds(bool resumes)
{
    catch_signal(SIGUSR1, interrupt);
    for (int round = 0; round < ROUNDS / 10; round++) {
        begin_trial(arch_host_vector_level());
        run_interrupted(resumes);
        unblock(SIGUSR1);
        if (interruption.status == CAIRN_ERROR_NOT_FOUND) {
            printf("skipped: registers of signals: %s\n", interruption.error.message);
            return;
        }
        ck_assert_int_eq(interruption.status, CAIRN_OK);
        memcpy(trial.before.below, trial.after.below, sizeof trial.after.below);
        expect_after(&trial.wanted, registers_sp);
    }
}

START_TEST(signal_has_the_registers_of_the_interrupted_code) { interrupt_rounds(false); }
END_TEST

START_TEST(interrupted_code_may_be_resumed_without_returning) { interrupt_rounds(true); }
END_TEST

/* For processors that can stop after each instruction: no instruction may leave a value below the
 * stack pointer that is used later. */

static void move_alone(struct cairn_context *context, void *user)
{
    (void)user;
    if (trial.sp != 0)
        write_register(context, CAIRN_REGISTER_SP, trial.sp);
}

/* Moves the stack to where a signal's frame would be. */
static void move_deeper(struct cairn_context *context, void *user)
{
    trial.sp = (uintptr_t)context - 1024;
    move_alone(context, user);
}

static void resume_elsewhere(struct cairn_context *context, void *user)
{
    copy = *context;
    move_alone(&copy, user);
    cairn_context_resume(&copy);
}

static void overwrite_below(int number, siginfo_t *info, void *ucontext)
{
    struct cairn_context context;
    volatile uint64_t room[CAIRN_CONTEXT_BYTES / 4];
    (void)number;
    (void)info;
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        room[i] = UINT64_C(0xDDDDDDDDDDDDDDDD);
    trial.calls++;
    if (cairn_context_from_signal(&context, ucontext, NULL) != CAIRN_OK)
        find_fault("there is no context", 0);
    if (read_register(&context, CAIRN_REGISTER_PC) != registers_code_address(registers_landing))
        return;
    uint64_t flags = read_register(&context, CAIRN_REGISTER_FLAGS) & ~registers_step_flag();
    write_register(&context, CAIRN_REGISTER_FLAGS, flags);
    if (cairn_context_to_signal(&context, ucontext, NULL) != CAIRN_OK)
        find_fault("it cannot go back", 0);
}

static void expect_steps(arch_exit_handler *handler, uint64_t sp)
{
    uint32_t level = arch_host_vector_level();
    const void *stub = make_exit(handler, level);
    begin_trial(level);
    trial.sp = sp;
    trial.before.flags |= registers_step_flag();
    run(stub);
    ck_assert_uint_gt(trial.calls, 100);
    memcpy(trial.before.below, trial.after.below, sizeof trial.after.below);
    trial.before.flags &= ~registers_step_flag();
    expect_after(&trial.before, trial.sp == 0 ? registers_sp : trial.sp);
}

START_TEST(signal_after_any_instruction_changes_nothing)
{
    static _Alignas(64) uint8_t other[STACK_BYTES];
    _Alignas(64) volatile uint8_t above[STACK_BYTES];
    if (registers_step_flag() == 0)
        return;
    catch_signal(SIGTRAP, overwrite_below);
    expect_steps(move_deeper, 0);
    const uint64_t sps[] = {0, (uintptr_t)other + STACK_BYTES - 1024,
                            (uintptr_t)above + STACK_BYTES / 2, (uintptr_t)above - 3 * STACK_BYTES};
    for (size_t i = 0; i < sizeof sps / sizeof *sps; i++) {
        expect_steps(move_alone, sps[i]);
        expect_steps(resume_elsewhere, sps[i]);
    }
}
END_TEST

/* ---- Reading and writing ---- */

static struct cairn_context looked_at;

static void keep(struct cairn_context *context, void *user)
{
    look(context, user);
    looked_at = *context;
}

static void get_context(uint32_t level)
{
    begin_trial(level);
    run(make_exit(keep, level));
}

START_TEST(sizes_that_a_register_does_not_have_are_refused)
{
    uint8_t value[128] = {0};
    struct cairn_error error;
    get_context(arch_host_vector_level());
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++) {
        size_t bytes = cairn_context_register_size(&looked_at, dwarf);
        enum cairn_status expected = bytes == 0 ? CAIRN_ERROR_NOT_FOUND : CAIRN_ERROR_RANGE;
        ck_assert_int_eq(cairn_context_read(&looked_at, dwarf, value, 0, &error), expected);
        ck_assert_int_eq(error.status, expected);
        ck_assert_int_eq(cairn_context_read(&looked_at, dwarf, value, bytes + 1, NULL), expected);
        if (bytes != 0)
            ck_assert_int_eq(cairn_context_write(&looked_at, dwarf, value, bytes + 1, &error),
                             CAIRN_ERROR_RANGE);
    }
    ck_assert_int_eq(cairn_context_read(&looked_at, UINT16_MAX, value, 8, NULL),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(cairn_context_write(&looked_at, UINT16_MAX, value, 8, &error),
                     CAIRN_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(part_of_an_integer_is_its_low_bytes)
{
    const uint16_t dwarf = 3;
    uint64_t value = UINT64_C(0x1122334455667788);
    uint32_t low;
    uint8_t lowest = 0xAA;
    get_context(1);
    ck_assert_int_eq(cairn_context_write(&looked_at, dwarf, &value, 8, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_context_read(&looked_at, dwarf, &low, 4, NULL), CAIRN_OK);
    ck_assert_uint_eq(low, 0x55667788);
    ck_assert_int_eq(cairn_context_write(&looked_at, dwarf, &lowest, 1, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_context_read(&looked_at, dwarf, &value, 8, NULL), CAIRN_OK);
    ck_assert_uint_eq(value, UINT64_C(0x11223344556677AA));
}
END_TEST

/* Checks the layout table, which common queries use. */
START_TEST(layout_says_where_registers_are)
{
    struct cairn_context context = {{0}};
    struct arch_context_head *head = (struct arch_context_head *)&context;
    head->vector_level = arch_host_vector_level();
    ck_assert_uint_ne(arch_host_layout.offsets[arch_host_layout.stack_pointer], 0);
    for (uint16_t dwarf = 0; dwarf < (uint16_t)ARCH_CONTEXT_REGISTERS; dwarf++) {
        struct arch_register place;
        size_t offset = arch_host_layout.offsets[dwarf];
        if (offset == 0 || !arch_host_register(&context, dwarf, &place))
            continue;
        ck_assert_uint_eq(offset, place.offset);
        ck_assert_uint_eq(place.first_flag, 0);
        ck_assert(place.form != ARCH_REGISTER_QUADWORD || dwarf >= arch_host_layout.scalars_end);
        ck_assert_uint_ge(place.bytes, sizeof(uint64_t));
    }
}
END_TEST

/* The first 8 bytes of a register in the table are its low bytes, which hold a scalar. */
START_TEST(layout_says_where_scalars_are)
{
    static struct cairn_context context;
    struct arch_context_head *head = (struct arch_context_head *)&context;
    head->vector_level = arch_host_vector_level();
    for (uint16_t dwarf = 0; dwarf < arch_host_layout.scalars_end; dwarf++) {
        uint64_t value = random_u64();
        uint64_t seen;
        size_t offset = arch_host_layout.offsets[dwarf];
        if (offset == 0 ||
            cairn_context_write(&context, dwarf, &value, sizeof value, NULL) != CAIRN_OK)
            continue;
        memcpy(&seen, context.bytes + offset, sizeof seen);
        ck_assert_uint_eq(seen, value);
    }
}
END_TEST

START_TEST(context_of_zeros_gets_registers_by_writing)
{
    struct cairn_context context;
    const uint16_t dwarf = 0;
    uint32_t value = 7;
    uint64_t whole = 1;
    memset(&context, 0xEE, sizeof context);
    memset(&context, 0, 1024);
    ck_assert_uint_eq(cairn_context_register_size(&context, dwarf), 0);
    ck_assert_int_eq(cairn_context_read(&context, dwarf, &whole, 8, NULL), CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(cairn_context_write(&context, dwarf, &value, 4, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_context_read(&context, dwarf, &whole, 8, NULL), CAIRN_OK);
    ck_assert_uint_eq(whole, 7);
    write_register(&context, CAIRN_REGISTER_PC, 0x1234);
    write_register(&context, CAIRN_REGISTER_SP, 0x5678);
    ck_assert_uint_eq(read_register(&context, CAIRN_REGISTER_PC), 0x1234);
    ck_assert_uint_eq(read_register(&context, CAIRN_REGISTER_SP), 0x5678);
    ck_assert_uint_eq(cairn_context_register_size(&context, registers_stack_pointer()), 8);
}
END_TEST

START_TEST(vector_register_cannot_be_written_on_machines_without_them)
{
    struct cairn_context context;
    uint64_t value = 7;
    memset(&context, 0, sizeof context);
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++) {
        size_t offset;
        size_t bytes;
        if (registers_place(dwarf, arch_host_vector_level(), &offset, &bytes) &&
            offset >= offsetof(struct registers, masks))
            ck_assert_int_eq(cairn_context_write(&context, dwarf, &value, 8, NULL),
                             CAIRN_ERROR_NOT_FOUND);
    }
}
END_TEST

/* A library of another version must agree on the size. */
START_TEST(context_has_the_size_that_the_header_says)
{
    ck_assert_uint_eq(sizeof(struct cairn_context), CAIRN_CONTEXT_BYTES);
    ck_assert_uint_eq(_Alignof(struct cairn_context), CAIRN_CONTEXT_ALIGNMENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("context");
    TCase *exits = tcase_create("exits");
    tcase_add_checked_fixture(exits, set_up, tear_down);
    tcase_add_test(exits, exit_hands_over_every_register_and_brings_it_back);
    tcase_add_test(exits, thread_continues_with_the_registers_that_the_handler_left);
    tcase_add_test(exits, thread_continues_where_the_handler_says);
    tcase_add_test(exits, unwinder_passes_an_exit);
    tcase_add_test(exits, exit_without_a_level_is_refused);
    tcase_add_test(exits, resume_loads_every_register_of_a_context_elsewhere);
    tcase_add_test(exits, context_may_lie_below_the_stack_pointer);
    suite_add_tcase(suite, exits);
    TCase *save = tcase_create("save");
    tcase_add_checked_fixture(save, set_up, tear_down);
    tcase_add_test(save, save_describes_the_caller);
    tcase_add_test(save, resume_returns_from_save_again);
    suite_add_tcase(suite, save);
    TCase *signals = tcase_create("signals");
    tcase_add_checked_fixture(signals, set_up, tear_down);
    tcase_add_test(signals, signal_has_the_registers_of_the_interrupted_code);
    tcase_add_test(signals, interrupted_code_may_be_resumed_without_returning);
    tcase_add_test(signals, signal_after_any_instruction_changes_nothing);
    suite_add_tcase(suite, signals);
    TCase *access = tcase_create("access");
    tcase_add_checked_fixture(access, set_up, tear_down);
    tcase_add_test(access, sizes_that_a_register_does_not_have_are_refused);
    tcase_add_test(access, part_of_an_integer_is_its_low_bytes);
    tcase_add_test(access, layout_says_where_registers_are);
    tcase_add_test(access, layout_says_where_scalars_are);
    tcase_add_test(access, context_of_zeros_gets_registers_by_writing);
    tcase_add_test(access, vector_register_cannot_be_written_on_machines_without_them);
    tcase_add_test(access, context_has_the_size_that_the_header_says);
    suite_add_tcase(suite, access);
    return support_main(suite);
}
