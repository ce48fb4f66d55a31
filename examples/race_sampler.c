/*
 * race_sampler: a data race detector that samples, in the manner of GWP-TSan. It finds a race in
 * the program at the end of this file, and stays silent when the program uses atomic accesses.
 *
 *     clang -O1 -g -fexperimental-sanitize-metadata=covered,atomics race_sampler.c \
 *         $(pkg-config --cflags --libs cairn-sanmd) -lZydis -lpthread
 *     ./race_sampler [plain|atomic] [--no-watchpoints]     # default: both
 *
 * Nothing is added to the code of the program. A timer's signal interrupts each thread a hundred
 * times a second. From there it is stepped to a plain access to memory, because processors prefer
 * some instructions for interrupts to others. Before the access it waits a moment, and its address
 * is watched. The metadata tells plain accesses: the function is covered, and the instruction is
 * not one of its atomic accesses. While the thread waits, no other thread may access the address
 * unless both only read, because the thread cannot do anything that would order the two accesses.
 * An access that is seen is therefore a data race, and there are no false reports.
 *
 * Accesses of other threads are seen by hardware watchpoints (perf_event_open, Linux 5.13), which
 * also tell the instruction. Where they are not permitted, or never fire, as in some virtual
 * machines, the handler reads the value again, which shows only writes that change it.
 *
 * Limits: x86-64; threads must call sampler_add_thread; without watchpoints, the handler reads the
 * address before the program does, and a wild pointer faults there.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* registers of contexts, and dladdr1 */
#endif
#include <cairn/sanmd_runtime.h>

#include <Zydis/Zydis.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    THREADS_MAX = 64,
    RACES_MAX = 32,
    INTERVAL_NANOSECONDS = 10000000, /* between two samples of a thread */
    WATCH_NANOSECONDS = 200000,      /* how long an address is watched */
    RED_ZONE_BYTES = 128,
    TRIAL_WRITES = 1000000, /* to an address that is watched as a trial */
    SKIPPED_STEPS_MAX = 16, /* a random number of steps before an access is chosen */
    STEPS_MAX = 64,         /* steps to an access */
    TRAP_FLAG = 1 << 8,     /* in the flags register: trap after the next instruction */
    TRAP_OF_PERF = 6        /* TRAP_PERF, which old headers lack */
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "race_sampler: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- 1. Accesses: what an instruction of covered code will do ---- */

struct access {
    uint64_t pc;
    uint64_t address;
    unsigned size; /* bytes that are watched: 1, 2, 4 or 8 */
    bool is_write;
    pid_t thread;
};

static ZydisDecoder decoder;

static const struct {
    ZydisRegister zydis;
    int context;
} registers[] = {
    {ZYDIS_REGISTER_RAX, REG_RAX}, {ZYDIS_REGISTER_RCX, REG_RCX}, {ZYDIS_REGISTER_RDX, REG_RDX},
    {ZYDIS_REGISTER_RBX, REG_RBX}, {ZYDIS_REGISTER_RSP, REG_RSP}, {ZYDIS_REGISTER_RBP, REG_RBP},
    {ZYDIS_REGISTER_RSI, REG_RSI}, {ZYDIS_REGISTER_RDI, REG_RDI}, {ZYDIS_REGISTER_R8, REG_R8},
    {ZYDIS_REGISTER_R9, REG_R9},   {ZYDIS_REGISTER_R10, REG_R10}, {ZYDIS_REGISTER_R11, REG_R11},
    {ZYDIS_REGISTER_R12, REG_R12}, {ZYDIS_REGISTER_R13, REG_R13}, {ZYDIS_REGISTER_R14, REG_R14},
    {ZYDIS_REGISTER_R15, REG_R15},
};

/* Finds the function with metadata about its atomic accesses that contains `pc`. */
static bool find_covered(uint64_t pc, struct cairn_sanmd_entry *function)
{
    return cairn_sanmd_find_function(pc, function) &&
           (function->features & CAIRN_SANMD_FEATURE_ATOMICS) != 0;
}

static bool decode(const struct cairn_sanmd_entry *function, uint64_t pc,
                   ZydisDecodedInstruction *instruction, ZydisDecodedOperand *operands)
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, (const void *)(uintptr_t)pc,
                                               function->address + function->size - pc, instruction,
                                               operands));
}

/* Returns the operand that is in memory and named by the instruction, or NULL. Operands that are
 * relative to a segment are thread-local. No-ops and prefetches may have operands, too. */
static const ZydisDecodedOperand *find_memory(const ZydisDecodedInstruction *instruction,
                                              const ZydisDecodedOperand *operands)
{
    switch (instruction->meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
        return NULL;
    default:
        break;
    }
    for (unsigned i = 0; i < instruction->operand_count_visible; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            operands[i].mem.type == ZYDIS_MEMOP_TYPE_MEM &&
            operands[i].mem.segment != ZYDIS_REGISTER_FS &&
            operands[i].mem.segment != ZYDIS_REGISTER_GS &&
            (operands[i].actions &
             (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_MASK_WRITE)) != 0)
            return &operands[i];
    return NULL;
}

/* Returns the greatest size up to `bytes` that a watchpoint at `address` can have. */
static unsigned watchable_size(uint64_t address, unsigned bytes)
{
    unsigned size = 8;
    while (size > 1 && (size > bytes || address % size != 0))
        size /= 2;
    return size;
}

/* Finds the plain access that the interrupted thread is about to execute. */
static bool find_access(const ucontext_t *context, const struct cairn_sanmd_entry *function,
                        struct access *access)
{
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisRegisterContext values;
    uint64_t pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    if (cairn_sanmd_is_atomic(pc) || !decode(function, pc, &instruction, operands))
        return false;
    const ZydisDecodedOperand *memory = find_memory(&instruction, operands);
    if (memory == NULL)
        return false;
    for (unsigned i = 0; i < sizeof registers / sizeof *registers; i++)
        values.values[registers[i].zydis] =
            (uint64_t)context->uc_mcontext.gregs[registers[i].context];
    if (!ZYAN_SUCCESS(
            ZydisCalcAbsoluteAddressEx(&instruction, memory, pc, &values, &access->address)))
        return false;
    if (access->address > INT64_MAX) /* not an address of user space */
        return false;
    access->pc = pc;
    access->size = watchable_size(access->address, memory->size / 8);
    access->is_write = (memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    return true;
}

/* Finds the plain access that ended at `end`, which a watchpoint has reported. Its beginning is
 * found by decoding the function from its start. False for atomic accesses and code without
 * metadata. */
static bool find_access_before(uint64_t end, struct access *access)
{
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    struct cairn_sanmd_entry function;
    if (!find_covered(end - 1, &function))
        return false;
    uint64_t pc = function.address;
    while (pc < end && decode(&function, pc, &instruction, operands) &&
           pc + instruction.length != end)
        pc += instruction.length;
    if (pc >= end || pc + instruction.length != end || cairn_sanmd_is_atomic(pc))
        return false;
    const ZydisDecodedOperand *memory = find_memory(&instruction, operands);
    access->pc = pc;
    access->is_write = memory != NULL && (memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    return true;
}

/* ---- 2. Watching an address ---- */

struct race {
    struct access first;  /* of the thread that waited */
    struct access second; /* `pc` is 0 if only its effect was seen */
    unsigned count;
};

static struct race races[RACES_MAX]; /* written while watching */
static atomic_uint race_count;

static _Atomic pid_t threads[THREADS_MAX]; /* 0: free */
static atomic_bool is_watching;            /* a lock: one address is watched at a time */
/* Why values are read again; NULL while there are hardware watchpoints. */
static const char *_Atomic lacks_watchpoints;
static atomic_ulong sample_count, watch_count;

/* What each thread was last seen to do, and in which watch: a signal may be delivered, or its
 * handler continue, after its watch has ended and others have begun. */
static struct {
    _Atomic uint64_t watch; /* number of the watch, the first of which is 1; written last */
    _Atomic uint64_t end;   /* of the conflicting instruction */
    _Atomic pid_t thread;
} seen[THREADS_MAX];

static uint64_t load(uint64_t address, unsigned size)
{
    const volatile void *from = (const volatile void *)(uintptr_t)address;
    switch (size) {
    case 1:
        return *(const volatile uint8_t *)from;
    case 2:
        return *(const volatile uint16_t *)from;
    case 4:
        return *(const volatile uint32_t *)from;
    default:
        return *(const volatile uint64_t *)from;
    }
}

/* Opens a watchpoint in a thread. If the interrupted thread only reads, so may others. */
static int open_watchpoint(pid_t thread, const struct access *access, uint64_t watch)
{
#ifdef PERF_ATTR_SIZE_VER7
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof attributes,
        .sample_period = 1,
        .bp_type = access->is_write ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W,
        .bp_addr = access->address,
        .bp_len = access->size,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .remove_on_exec = 1,
        .sigtrap = 1,
        .sig_data = watch,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
#else
    (void)thread;
    (void)access;
    (void)watch;
    errno = ENOSYS;
    return -1;
#endif
}

/* Opens watchpoints in all other threads. Returns how many. */
static unsigned open_watchpoints(const struct access *access, uint64_t watch, int *descriptors)
{
    unsigned count = 0;
    for (unsigned i = 0; i < THREADS_MAX && lacks_watchpoints == NULL; i++) {
        pid_t thread = threads[i];
        if (thread == 0 || thread == access->thread)
            continue;
        int descriptor = open_watchpoint(thread, access, watch);
        if (descriptor >= 0)
            descriptors[count++] = descriptor;
        else if (errno != ESRCH) /* the thread has ended */
            lacks_watchpoints = "the system permits no more of them";
    }
    return count;
}

/* Keeps that thread number `index` has accessed the address of a watch, and is stopped after its
 * instruction. */
static void note_access(unsigned index, uint64_t watch, uint64_t end)
{
    if (seen[index].watch == watch)
        return;
    seen[index].thread = threads[index];
    seen[index].end = end;
    seen[index].watch = watch;
}

/* Finds an access that was seen in this watch. */
static bool find_seen(uint64_t watch, struct access *access)
{
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        if (seen[i].watch != watch)
            continue;
        access->thread = seen[i].thread;
        return find_access_before(seen[i].end, access);
    }
    return false;
}

static void add_race(const struct access *first, const struct access *second)
{
    unsigned count = race_count;
    for (unsigned i = 0; i < count; i++) {
        if (races[i].first.pc == first->pc && races[i].second.pc == second->pc) {
            races[i].count++;
            return;
        }
    }
    if (count == RACES_MAX)
        return;
    races[count] = (struct race){.first = *first, .second = *second, .count = 1};
    race_count = count + 1;
}

static void watch(const struct access *access)
{
    const struct timespec moment = {.tv_nsec = WATCH_NANOSECONDS};
    struct access other = {.address = access->address, .size = access->size};
    int descriptors[THREADS_MAX];
    uint64_t number = watch_count + 1;
    unsigned count = open_watchpoints(access, number, descriptors);
    bool is_compared = lacks_watchpoints != NULL;
    uint64_t before = is_compared ? load(access->address, access->size) : 0;
    nanosleep(&moment, NULL);
    while (count > 0)
        close(descriptors[--count]);
    if (find_seen(number, &other)) {
        add_race(access, &other);
    } else if (is_compared && load(access->address, access->size) != before) {
        other.is_write = true;
        add_race(access, &other);
    }
    watch_count++;
}

/* ---- 3. Samples ---- */

/* Where the thread's stack ends: accesses below are to its own variables. */
static _Thread_local uint64_t stack_end;
static _Thread_local timer_t thread_timer;
static _Thread_local unsigned thread_index;
static _Thread_local int thread_step; /* negative: the number of steps to skip */
static atomic_bool is_on;

/* Watches the access that the stopped thread is about to execute, or lets it take another step. */
static void advance(ucontext_t *stopped)
{
    struct access access = {.thread = threads[thread_index]};
    struct cairn_sanmd_entry function;
    uint64_t stack = (uint64_t)stopped->uc_mcontext.gregs[REG_RSP] - RED_ZONE_BYTES;
    bool is_covered = find_covered((uint64_t)stopped->uc_mcontext.gregs[REG_RIP], &function);
    bool is_found = is_covered && thread_step >= 0 && find_access(stopped, &function, &access) &&
                    (access.address < stack || access.address >= stack_end);
    if (is_found && !atomic_exchange(&is_watching, true)) {
        watch(&access);
        is_watching = false;
    }
    if (is_covered && !is_found && thread_step++ < STEPS_MAX)
        stopped->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    else
        stopped->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void on_timer(int signal, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    (void)signal;
    (void)info;
    unsigned long number = sample_count++;
    thread_step = -(int)(number * 2654435761U / 65536 % SKIPPED_STEPS_MAX);
    if (is_on)
        advance(context);
    errno = saved_errno;
}

/* Returns the `sig_data` of the event that caused the signal. It follows the address; glibc has no
 * name for it. */
static uint64_t data_of(const siginfo_t *info)
{
    uint64_t data;
    memcpy(&data, (const char *)&info->si_addr + sizeof info->si_addr, sizeof data);
    return data;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
    ucontext_t *stopped = context;
    int saved_errno = errno;
    (void)signal;
    if (info->si_code == TRAP_OF_PERF)
        note_access(thread_index, data_of(info), (uint64_t)stopped->uc_mcontext.gregs[REG_RIP]);
    else if (info->si_code == TRAP_TRACE)
        advance(stopped);
    errno = saved_errno;
}

static void sampler_create(void)
{
    struct sigaction timer = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&timer.sa_mask);
    sigemptyset(&trap.sa_mask);
    sigaddset(&trap.sa_mask, SIGPROF); /* the handlers' own accesses are not sampled */
    if (sigaction(SIGPROF, &timer, NULL) != 0 || sigaction(SIGTRAP, &trap, NULL) != 0)
        fail("sigaction");
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

/* Watches a variable of its own, and writes to it. Some virtual machines accept watchpoints that
 * never fire: without this trial, a program would seem to have no races there. */
static void try_watchpoint(void)
{
    static volatile uint64_t watched;
    const struct access access = {
        .address = (uint64_t)(uintptr_t)&watched, .size = sizeof watched, .is_write = true};
    const uint64_t trial = UINT64_MAX; /* the number of no other watch */
    int descriptor = open_watchpoint((pid_t)syscall(SYS_gettid), &access, trial);
    if (descriptor < 0) {
        lacks_watchpoints = "the system does not permit hardware watchpoints";
        return;
    }
    for (unsigned i = 0; i < TRIAL_WRITES && seen[thread_index].watch != trial; i++)
        watched = i;
    close(descriptor);
    if (seen[thread_index].watch != trial)
        lacks_watchpoints = "hardware watchpoints do not fire on this machine";
}

/* Adds the calling thread, which must call sampler_remove_thread before it ends. */
static void sampler_add_thread(void)
{
    const struct itimerspec interval = {.it_interval = {.tv_nsec = INTERVAL_NANOSECONDS},
                                        .it_value = {.tv_nsec = INTERVAL_NANOSECONDS}};
    pid_t thread = (pid_t)syscall(SYS_gettid);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    pthread_attr_t attributes;
    void *stack;
    size_t size;
    pid_t nobody = 0;
    event._sigev_un._tid = thread; /* glibc has no name for it */
    if (pthread_getattr_np(pthread_self(), &attributes) != 0 ||
        pthread_attr_getstack(&attributes, &stack, &size) != 0)
        fail("pthread_getattr_np");
    pthread_attr_destroy(&attributes);
    stack_end = (uint64_t)(uintptr_t)stack + size;
    while (!atomic_compare_exchange_strong(&threads[thread_index], &nobody, thread)) {
        thread_index = (thread_index + 1) % THREADS_MAX;
        nobody = 0;
    }
    if (timer_create(CLOCK_MONOTONIC, &event, &thread_timer) != 0 ||
        timer_settime(thread_timer, 0, &interval, NULL) != 0)
        fail("timer_create");
}

static void sampler_remove_thread(void)
{
    timer_delete(thread_timer);
    threads[thread_index] = 0;
}

/* ---- 4. Reports ---- */

/* Prints the function and the line of `pc`, which addr2line finds in the debug information. */
static void print_place(uint64_t pc)
{
    char command[4300], name[256], line[512];
    const struct link_map *map;
    Dl_info info;
    if (dladdr1((void *)(uintptr_t)pc, &info, (void **)&map, RTLD_DL_LINKMAP) == 0) {
        printf("0x%" PRIx64 "\n", pc);
        return;
    }
    /* The file is given as a descriptor, so that its name needs no quotes for the shell. */
    const char *file = *map->l_name == '\0' ? "/proc/self/exe" : map->l_name;
    FILE *object = fopen(file, "r");
    if (object == NULL)
        fail(file);
    snprintf(command, sizeof command, "addr2line -f -s -e /proc/%ld/fd/%d 0x%" PRIx64 " 2>&1",
             (long)getpid(), fileno(object), pc - map->l_addr);
    FILE *lines = popen(command, "r"); /* NOLINT(cert-env33-c): no names in it */
    bool is_good = lines != NULL && fscanf(lines, "%255s %511[^\n]", name, line) == 2;
    if (lines != NULL && pclose(lines) == 0 && is_good)
        printf("%s at %s\n", name, line);
    else
        printf("%s+0x%" PRIx64 "\n", file, pc - map->l_addr);
    fclose(object);
}

static void print_access(const char *before, const struct access *access)
{
    printf("  %s%s", before, access->is_write ? "write" : "read");
    if (access->pc == 0) {
        puts(" by another thread, at an unknown place");
        return;
    }
    printf(" by thread %d in ", (int)access->thread);
    print_place(access->pc);
}

static void print_races(void)
{
    for (unsigned i = 0; i < race_count; i++) {
        const struct race *race = &races[i];
        printf("data race on %u byte%s at 0x%" PRIx64 ", seen %u time%s\n", race->first.size,
               race->first.size == 1 ? "" : "s", race->first.address, race->count,
               race->count == 1 ? "" : "s");
        print_access("", &race->first);
        print_access("and ", &race->second);
    }
}

/* ---- 5. The program: threads transfer money between accounts, and count transfers ---- */

enum { WORKERS = 4, ACCOUNTS = 64, HISTORY = 256 };

static struct account {
    pthread_mutex_t lock;
    long balance;
} accounts[ACCOUNTS];

static long plain_transfers; /* the race: several threads add to it without a lock */
static atomic_long atomic_transfers;
static atomic_bool is_stopping;

struct worker {
    _Alignas(128) pthread_t thread;
    atomic_ulong turns;
    uint64_t random;
    bool is_atomic;
    long history[HISTORY];
};

__attribute__((noinline)) static void count_transfer(bool is_atomic)
{
    if (is_atomic)
        atomic_fetch_add_explicit(&atomic_transfers, 1, memory_order_relaxed);
    else
        plain_transfers++;
}

/* Memory that only one thread accesses. */
__attribute__((noinline)) static void keep_history(struct worker *worker, long amount)
{
    for (unsigned i = 1; i < HISTORY; i++)
        worker->history[i - 1] = worker->history[i] + amount / 2;
    worker->history[HISTORY - 1] = amount;
}

/* Memory that a mutex protects. */
__attribute__((noinline)) static void add_money(struct account *account, long amount)
{
    pthread_mutex_lock(&account->lock);
    account->balance += amount;
    pthread_mutex_unlock(&account->lock);
}

static void *work(void *data)
{
    struct worker *worker = data;
    sampler_add_thread();
    while (!is_stopping) {
        worker->random = worker->random * UINT64_C(6364136223846793005) + 1442695040888963407;
        long amount = (long)(worker->random >> 60);
        add_money(&accounts[worker->random >> 32 & (ACCOUNTS - 1)], amount);
        add_money(&accounts[worker->random >> 40 & (ACCOUNTS - 1)], -amount);
        keep_history(worker, amount);
        for (unsigned i = 0; i < 16; i++)
            count_transfer(worker->is_atomic);
        atomic_fetch_add_explicit(&worker->turns, 1, memory_order_relaxed);
    }
    sampler_remove_thread();
    return NULL;
}

/* ---- 6. Running the program under the sampler ---- */

enum { PAIRS = 20, SLICE_NANOSECONDS = 40000000, WATCHES_ENOUGH = 100 };
static const double seconds_max = 50;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Lets the program run for a slice of time. Returns its turns per second. */
static double run_slice(struct worker *workers, bool with_sampler)
{
    const struct timespec slice = {.tv_nsec = SLICE_NANOSECONDS};
    unsigned long turns = 0;
    is_on = with_sampler;
    double begin = seconds();
    for (unsigned i = 0; i < WORKERS; i++)
        turns -= workers[i].turns;
    nanosleep(&slice, NULL);
    for (unsigned i = 0; i < WORKERS; i++)
        turns += workers[i].turns;
    return (double)turns / (seconds() - begin);
}

static int compare_numbers(const void *left, const void *right)
{
    double one = *(const double *)left;
    double other = *(const double *)right;
    return (one > other) - (one < other);
}

static void start(struct worker *workers, bool is_atomic)
{
    is_stopping = false;
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.random = i, .is_atomic = is_atomic};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            fail("pthread_create");
    }
}

static void stop(struct worker *workers)
{
    is_stopping = true;
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
}

/* Runs the program until a race was found, or enough addresses were watched. It is sampled in every
 * other slice of time, and the median of the differences is its cost. Returns whether a race was
 * found. */
static bool run_program(bool is_atomic)
{
    static struct worker workers[WORKERS];
    double ratios[PAIRS];
    double begin = seconds(), found = 0;
    unsigned old_races = race_count;
    unsigned long old_watches = watch_count;
    bool is_enough = false;
    start(workers, is_atomic);
    for (unsigned pair = 0; pair < PAIRS || (!is_enough && seconds() < begin + seconds_max);
         pair++) {
        double speed = run_slice(workers, false);
        ratios[pair % PAIRS] = speed / run_slice(workers, true);
        if (found == 0 && race_count > old_races)
            found = seconds() - begin;
        is_enough = found != 0 || (is_atomic && watch_count - old_watches >= WATCHES_ENOUGH);
    }
    stop(workers);
    printf("%s: %lu addresses watched, ", is_atomic ? "atomic accesses" : "plain accesses",
           watch_count - old_watches);
    if (found != 0)
        printf("a race after %.2f s, ", found);
    else
        printf("no race, ");
    qsort(ratios, PAIRS, sizeof *ratios, compare_numbers);
    printf("%.1f %% slower while sampled\n", 100 * (ratios[PAIRS / 2] - 1));
    return found != 0;
}

int main(int argc, char **argv)
{
    struct cairn_sanmd_statistics statistics;
    const char *mode = argc > 1 ? argv[1] : "";
    bool is_good = true;
    cairn_sanmd_get_statistics(&statistics);
    if (statistics.function_count == 0) {
        puts("race_sampler: this program has no metadata: it was not compiled by clang with "
             "-fexperimental-sanitize-metadata=covered,atomics");
        return 77;
    }
    for (unsigned i = 0; i < ACCOUNTS; i++)
        pthread_mutex_init(&accounts[i].lock, NULL);
    sampler_create();
    if (strcmp(argv[argc - 1], "--no-watchpoints") == 0)
        lacks_watchpoints = "as the option says";
    else
        try_watchpoint();
    if (strcmp(mode, "atomic") != 0)
        is_good = run_program(false) && is_good;
    if (strcmp(mode, "plain") != 0)
        is_good = !run_program(true) && is_good;
    print_races();
    const char *reason = lacks_watchpoints;
    printf("%lu samples, %lu addresses watched, by %s%s\n", sample_count, watch_count,
           reason == NULL ? "hardware watchpoints" : "reading them again: ",
           reason == NULL ? "" : reason);
    return is_good ? 0 : 1;
}
