/*
 * record_branches: runs a program and prints samples with the branches before them, as `perf script
 * -F ip,brstack --show-mmap-events` does. It needs no branch records of the processor, which
 * virtual machines lack: now and then it executes the program step by step.
 *
 * usage: record_branches OUTPUT PROGRAM ARG...       (x86-64)
 *
 * SPDX-License-Identifier: MIT
 */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BRANCHES = 32,
    STEPS_MIN = 200,
    STEPS_RANDOM = 64,
    INTERVAL_NS = 100000,
    INSTRUCTION_BYTES_MAX = 15
};

struct branch {
    uint64_t from;
    uint64_t to;
};

static uint64_t program_counter(pid_t pid)
{
    struct user_regs_struct registers = {.rip = 0};
    ptrace(PTRACE_GETREGS, pid, NULL, &registers);
    return registers.rip;
}

/* Returns the size of the instruction; 0 if it is unknown. */
static uint64_t instruction_size(pid_t pid, const ZydisDecoder *decoder, uint64_t address)
{
    uint8_t bytes[INSTRUCTION_BYTES_MAX];
    ZydisDecodedInstruction instruction;
    struct iovec local = {bytes, sizeof bytes};
    struct iovec remote = {(void *)(uintptr_t)address, sizeof bytes};
    ssize_t size = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (size <= 0 || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, bytes, (size_t)size,
                                                                 &instruction)))
        return 0;
    return instruction.length;
}

/* Executes some steps, and prints where the program is then, and the branches that were taken last,
 * the newest first. The number of steps is random, so that samples are not all at the targets of
 * branches. False if the program has ended. */
static bool record(pid_t pid, const ZydisDecoder *decoder, FILE *output)
{
    struct branch branches[BRANCHES];
    uint64_t at = program_counter(pid);
    int steps = STEPS_MIN + (int)(random() % STEPS_RANDOM);
    int count = 0;
    int status;
    for (int step = 0; step < steps; step++) {
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid ||
            !WIFSTOPPED(status))
            return false;
        uint64_t next = program_counter(pid);
        uint64_t size = instruction_size(pid, decoder, at);
        if (next != at && size != 0 && next != at + size)
            branches[count++ % BRANCHES] = (struct branch){at, next};
        at = next;
    }
    fprintf(output, "%llx", (unsigned long long)at);
    for (int i = count - 1; i >= 0 && i >= count - BRANCHES; i--)
        fprintf(output, " 0x%llx/0x%llx/P/-/-/0", (unsigned long long)branches[i % BRANCHES].from,
                (unsigned long long)branches[i % BRANCHES].to);
    fprintf(output, "\n");
    return true;
}

static void print_mappings(pid_t pid, FILE *output)
{
    char line[4096];
    snprintf(line, sizeof line, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(line, "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        fputs(line, output);
    if (maps != NULL)
        fclose(maps);
}

/* Stops the running program. False if it has ended. */
static bool stop(pid_t pid)
{
    int status;
    const struct timespec interval = {.tv_nsec = INTERVAL_NS};
    nanosleep(&interval, NULL);
    return ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid &&
           WIFSTOPPED(status);
}

int main(int argc, char **argv)
{
    ZydisDecoder decoder;
    int status;
    FILE *output = argc < 3 ? NULL : fopen(argv[1], "w");
    pid_t pid = output == NULL ? -1 : fork();
    if (pid == 0) {
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid ||
        ptrace(PTRACE_SEIZE, pid, NULL, (void *)PTRACE_O_TRACEEXEC) != 0) {
        fprintf(stderr, "usage: record_branches OUTPUT PROGRAM ARG...: %s\n", strerror(errno));
        return 2;
    }
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    /* It is stopped as the shell would stop it, until it is told to continue. */
    kill(pid, SIGCONT);
    bool was_executed = false;
    while (!was_executed && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        was_executed = status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
        if (was_executed)
            print_mappings(pid, output);
        ptrace(PTRACE_CONT, pid, NULL, NULL);
    }
    while (was_executed && stop(pid) && record(pid, &decoder, output))
        ptrace(PTRACE_CONT, pid, NULL, NULL);
    return fclose(output) == 0 && was_executed ? 0 : 1;
}
