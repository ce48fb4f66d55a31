/*
 * Exits of every level and signals, with random registers: the handler finds them, leaves others,
 * and those are there afterwards. A part of tests/check_context.c, without Check, for
 * tests/cross/execute.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/cross/execute_context.h"

#include "arch/arch.h"
#include "tests/context_support.h"
#include "tests/registers.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { ROUNDS = 20, BYTES_MAX = 64 };

/* More than any of the architectures has. */
static const uint16_t numbers = 130;

static struct {
    struct registers before;
    struct registers wanted;
    struct registers after;
    uint32_t level;
    const char *fault;
} trial;

static void make_random(struct registers *registers)
{
    uint8_t *bytes = (uint8_t *)registers;
    for (size_t i = 0; i < sizeof *registers; i++)
        bytes[i] = (uint8_t)(rand() >> 8);
    registers_make_possible(registers);
}

static bool place(uint16_t dwarf, size_t *offset, size_t *bytes)
{
    return registers_place(dwarf, trial.level, offset, bytes) && !registers_is_fixed(dwarf) &&
           !registers_is_given_up(dwarf);
}

/* Of the flags, those that count. */
static bool same(const uint8_t *value, size_t offset, size_t bytes)
{
    uint64_t flags;
    if (offset != offsetof(struct registers, flags))
        return memcmp(value, (uint8_t *)&trial.before + offset, bytes) == 0;
    memcpy(&flags, value, sizeof flags);
    return ((flags ^ trial.before.flags) & registers_flags_mask()) == 0;
}

static void look(const struct cairn_context *context)
{
    uint8_t value[BYTES_MAX];
    size_t offset;
    size_t bytes;
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++)
        if (place(dwarf, &offset, &bytes) &&
            (cairn_context_read(context, dwarf, value, bytes, NULL) != CAIRN_OK ||
             !same(value, offset, bytes)))
            trial.fault = "a register that the handler found";
}

static void change(struct cairn_context *context)
{
    size_t offset;
    size_t bytes;
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++)
        if (place(dwarf, &offset, &bytes) &&
            cairn_context_write(context, dwarf, (uint8_t *)&trial.wanted + offset, bytes, NULL) !=
                CAIRN_OK)
            trial.fault = "a register that the handler wrote";
    write_register(context, CAIRN_REGISTER_FLAGS, trial.wanted.flags);
}

static void handle_exit(struct cairn_context *context, void *user)
{
    if (user != &trial || read_register(context, CAIRN_REGISTER_SP) != registers_sp ||
        read_register(context, CAIRN_REGISTER_PC) != registers_code_address(registers_returned))
        trial.fault = "where the thread was";
    look(context);
    change(context);
}

static void handle_signal(int number, siginfo_t *info, void *ucontext)
{
    struct cairn_context context;
    (void)number;
    (void)info;
    enum cairn_status status = cairn_context_from_signal(&context, ucontext, NULL);
    uint64_t pc = read_register(&context, CAIRN_REGISTER_PC);
    if (pc <= registers_code_address(registers_spin) ||
        pc >= registers_code_address(registers_spin_end))
        return;
    if (status != CAIRN_OK ||
        read_register(&context, CAIRN_REGISTER_SP) != registers_sp - registers_call_bytes())
        trial.fault = "the registers of a signal";
    look(&context);
    change(&context);
    write_register(&context, CAIRN_REGISTER_PC, registers_code_address(registers_landing));
    write_register(&context, CAIRN_REGISTER_SP, registers_sp);
    if (cairn_context_to_signal(&context, ucontext, NULL) != CAIRN_OK)
        trial.fault = "going back into a signal";
}

static void compare_after(void)
{
    size_t offset;
    size_t bytes;
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++)
        if (place(dwarf, &offset, &bytes) &&
            memcmp((uint8_t *)&trial.after + offset, (uint8_t *)&trial.wanted + offset, bytes) != 0)
            trial.fault = "a register afterwards";
    if (trial.after.general[registers_stack_pointer()] != registers_sp ||
        trial.after.flags != trial.wanted.flags || trial.after.control != trial.wanted.control)
        trial.fault = "stack pointer, flags or control afterwards";
}

static void run_round(const void *called, uint32_t level)
{
    memset(&trial.after, 0, sizeof trial.after);
    trial.level = level;
    make_random(&trial.before);
    make_random(&trial.wanted);
    registers_make_pair(&trial.before, &trial.wanted);
    registers_run(&trial.before, &trial.after, called, level);
    compare_after();
}

static void run_interrupted(void)
{
    const struct itimerval interval = {{0, 2000}, {0, 2000}};
    const struct itimerval none = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_sigaction = handle_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &interval, NULL);
    run_round(registers_spin, arch_host_vector_level());
    setitimer(ITIMER_REAL, &none, NULL);
}

/* As setjmp and longjmp. */
static void go_back(void)
{
    struct cairn_context context;
    volatile int times = 0;
    int result = cairn_context_save(&context);
    times++;
    if (result == 0 && times == 1)
        cairn_context_resume(&context);
    if (result != 1 || times != 2)
        trial.fault = "what was captured";
}

const char *execute_contexts(uint8_t *code, void *data, unsigned long *checks)
{
    const struct cairn_arch *arch = arch_host();
    for (uint32_t level = 1; level <= arch_host_vector_level(); level++) {
        _Atomic uint32_t saved = level;
        if (arch_exit_init(data, handle_exit, &trial, &saved, NULL) != CAIRN_OK)
            return "the exit is refused";
        if (!arch->encode_exit(arch, (uintptr_t)code, (uintptr_t)data, code))
            return "the exit's data is out of reach";
        arch_host_code_written(code, code, arch->exit_bytes);
        for (int round = 0; round < ROUNDS && trial.fault == NULL; round++, ++*checks)
            run_round(code, level);
    }
    for (int round = 0; round < ROUNDS && trial.fault == NULL; round++, ++*checks) {
        run_interrupted();
        go_back();
    }
    return trial.fault;
}
