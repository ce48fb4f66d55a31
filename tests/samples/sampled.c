/*
 * A program that samples itself with a timer's signal while nearly all of its time goes to one
 * basic block, in which the label hot_block stands. It prints its mappings, so that it is known
 * where it was loaded, and the addresses, one a line.
 *
 * PROGRAM_COUNTER is the member of the machine's registers; tests/check_profile.pl knows it.
 *
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

enum { SAMPLES = 60 };

static volatile uintptr_t samples[SAMPLES];
static volatile sig_atomic_t sample_count;

static void take_sample(int signal_number, siginfo_t *information, void *context)
{
    const ucontext_t *interrupted = context;
    (void)signal_number;
    (void)information;
    if (sample_count == SAMPLES)
        return;
    samples[sample_count] = (uintptr_t)interrupted->uc_mcontext.PROGRAM_COUNTER;
    sample_count = sample_count + 1;
}

static void start_timer(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = take_sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGPROF, &action, NULL);
    struct itimerval interval = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &interval, NULL);
}

/* Each turn needs the one before it, so that no compiler shortens it. */
__attribute__((noinline)) static uint32_t work(uint32_t value, int turns)
{
    if (turns < 0)
        return value ^ 1;
#pragma clang loop unroll(disable) vectorize(disable)
    for (int i = 0; i < turns; i++) {
        __asm__ volatile(".globl hot_block\nhot_block:" : "+r"(value));
        value = value * 1664525u + 1013904223u;
        value ^= value >> 7;
        value = value * 22695477u + 1u;
        value ^= value << 9;
    }
    return value == 0 ? 7 : value;
}

static void print_mappings(void)
{
    char line[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        fputs(line, stdout);
    if (maps != NULL)
        fclose(maps);
}

int main(void)
{
    uint32_t value = 1;
    start_timer();
    while (sample_count < SAMPLES)
        value = work(value, 100000);
    print_mappings();
    for (int i = 0; i < SAMPLES; i++)
        printf("%llx\n", (unsigned long long)samples[i]);
    return value == 3;
}
