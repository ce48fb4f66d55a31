/*
 * cairn-bench-exit: the time to save all registers of a thread, call a C function with them, and
 * resume from them, for each set of vector registers that the machine has. It is compared with
 * setjmp and longjmp, which save a part of the general registers.
 *
 * This is a separate program, because the shared library does not export the exit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "bench/report.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAMPLES = 501, GROUP = 1000 };

static void leave_alone(struct cairn_context *context, void *user)
{
    (void)context;
    (void)user;
}

/* ---- One operation, in nanoseconds ---- */

static double time_exit(void (*stub)(void))
{
    double begun = bench_now();
    for (int i = 0; i < GROUP; i++)
        stub();
    return (bench_now() - begun) / (double)GROUP;
}

static double time_setjmp(void (*unused)(void))
{
    static jmp_buf buffer;
    volatile int i = 0;
    (void)unused;
    double begun = bench_now();
    for (; i < GROUP; i++)
        if (_setjmp(buffer) == 0)
            longjmp(buffer, 1);
    return (bench_now() - begun) / (double)GROUP;
}

static double time_capture(void (*unused)(void))
{
    static struct cairn_context context;
    volatile int i = 0;
    (void)unused;
    double begun = bench_now();
    for (; i < GROUP; i++)
        if (cairn_context_save(&context) == 0)
            cairn_context_resume(&context);
    return (bench_now() - begun) / (double)GROUP;
}

/* ---- Figures ---- */

/* Prints the medians of both, which are measured in turn. */
static void compare(const char *name, double (*one)(void (*)(void)), void (*stub)(void),
                    double limit)
{
    static double values[SAMPLES];
    static double peer_values[SAMPLES];
    const struct bench_options options = {.json = false};
    for (int i = 0; i < SAMPLES; i++) {
        values[i] = one(stub);
        peer_values[i] = time_setjmp(NULL);
    }
    const struct bench_figure figure = {
        .name = name,
        .value = bench_percentile(values, SAMPLES, 0.5),
        .unit = "ns",
        .peer = "setjmp, longjmp",
        .peer_value = bench_percentile(peer_values, SAMPLES, 0.5),
        .limit = limit,
    };
    bench_print(&options, &figure);
}

static void bench_exits(const struct cairn_arch *arch, uint8_t *code, struct arch_exit *data)
{
    /* This serves as a descriptor where function pointers are addresses of descriptors. */
    const volatile uint64_t descriptor[3] = {(uintptr_t)code};
    uintptr_t pointer = arch->has_descriptors ? (uintptr_t)descriptor : (uintptr_t)code;
    static _Atomic uint32_t saved;
    char name[64];
    for (uint32_t level = 1; level <= arch_host_vector_level(); level++) {
        saved = level;
        if (arch_exit_init(data, leave_alone, NULL, &saved, NULL) != CAIRN_OK ||
            !arch->encode_exit(arch, (uintptr_t)code, (uintptr_t)data, code))
            return;
        arch_host_code_written(code, code, arch->exit_bytes);
        snprintf(name, sizeof name, "exit.continue.vectors-%u", level);
        compare(name, time_exit, (void (*)(void))pointer, 150);
    }
}

int main(void)
{
    const struct cairn_arch *arch = arch_host();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arch == NULL || memory == MAP_FAILED) {
        fputs("cairn-bench-exit: no exits on this machine, or no writable code\n", stderr);
        return 1;
    }
    bench_exits(arch, memory, (struct arch_exit *)(void *)(memory + page));
    compare("context.save.resume", time_capture, NULL, 0);
    munmap(memory, 2 * page);
    return 0;
}
