/* SPDX-License-Identifier: MIT */
#include "code_support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const enum cairn_code_mode support_modes[2] = {CAIRN_CODE_MODE_SINGLE, CAIRN_CODE_MODE_DUAL};

bool support_is_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

bool support_is_emulated(void) { return getenv("CAIRN_TEST_EMULATED") != NULL; }

static bool has_dual_mode(struct cairn_error *error)
{
    const struct code_space_options options = {.arch = arch_host(), .mode = CAIRN_CODE_MODE_DUAL};
    struct code_space *space = NULL;
    enum cairn_status status = code_space_create(&options, &space, error);
    if (status == CAIRN_OK)
        code_space_destroy(space);
    return status != CAIRN_ERROR_UNSUPPORTED;
}

int support_mode_count(void)
{
    static int count;
    struct cairn_error error;
    if (count != 0)
        return count;
    count = !support_is_emulated() || has_dual_mode(&error) ? 2 : 1;
    if (count == 1)
        printf("skipped: %s\n", error.message);
    fflush(stdout);
    return count;
}

/* ---- Spaces and functions ---- */

struct code_space *support_space(enum cairn_code_mode mode, size_t slab_size, uint32_t slab_limit)
{
    const struct code_space_options options = {
        .arch = arch_host(),
        .slab_size = slab_size,
        .slab_limit = slab_limit,
        .mode = mode,
    };
    struct code_space *space = NULL;
    struct cairn_error error = {0};
    enum cairn_status status = code_space_create(&options, &space, &error);
    support_expect_at(status == CAIRN_OK, error.message, __FILE__, __LINE__);
    return space;
}

struct code_block *support_block(struct code_space *space)
{
    struct code_block *block = NULL;
    support_expect(code_block_create(space, 0, &block, NULL) == CAIRN_OK);
    return block;
}

uint8_t *support_functions(struct code_block *block, size_t count, int first_value)
{
    void *address = NULL;
    struct cairn_error error = {0};
    enum cairn_status status =
        code_block_allocate(block, PAGES_FOR_CODE, count * SUPPORT_FUNCTION_BYTES,
                            SUPPORT_FUNCTION_BYTES, &address, &error);
    support_expect_at(status == CAIRN_OK, error.message, __FILE__, __LINE__);
    uint8_t *functions = address;
    arch_host()->fill_nops(arch_host(), functions, count * SUPPORT_FUNCTION_BYTES);
    for (size_t i = 0; i < count; i++)
        arch_host()->encode_self_test(arch_host(), first_value + (int)i,
                                      functions + i * SUPPORT_FUNCTION_BYTES);
    return functions;
}

struct code_block *support_loaded(struct code_space *space, size_t count, int first_value,
                                  uint8_t **functions)
{
    struct code_block *block = support_block(space);
    *functions = support_functions(block, count, first_value);
    support_expect(code_block_protect(block, NULL) == CAIRN_OK);
    return block;
}

int support_call(const void *function)
{
    int (*call)(void) = (int (*)(void))(uintptr_t)function;
    return call();
}

void support_word(const struct cairn_arch *arch, int value, uint8_t word[ARCH_WORD_BYTES_MAX])
{
    uint8_t code[ARCH_SELF_TEST_BYTES_MAX];
    arch->fill_nops(arch, code, sizeof code);
    arch->encode_self_test(arch, value, code);
    memcpy(word, code, arch->word_bytes);
}

void support_patch(struct code_block *block, uint8_t *function, int value)
{
    uint8_t word[ARCH_WORD_BYTES_MAX];
    support_word(arch_host(), value, word);
    struct cairn_error error = {0};
    enum cairn_status status = code_block_write(block, (uint64_t)(uintptr_t)function, word,
                                                arch_host()->word_bytes, &error);
    support_expect_at(status == CAIRN_OK, error.message, __FILE__, __LINE__);
}

struct cairn_runtime_statistics support_statistics(struct code_space *space)
{
    struct cairn_runtime_statistics statistics = {0};
    code_space_statistics(space, &statistics);
    return statistics;
}

/* ---- The process's own mappings ---- */

static bool parse_mapping(const char *line, struct support_mapping *mapping)
{
    char *end;
    mapping->start = strtoull(line, &end, 16);
    if (*end != '-')
        return false;
    mapping->end = strtoull(end + 1, &end, 16);
    mapping->readable = end[1] == 'r';
    mapping->writable = end[2] == 'w';
    mapping->executable = end[3] == 'x';
    mapping->shared = end[4] == 's';
    return true;
}

void support_each_mapping(bool (*visit)(const struct support_mapping *mapping, void *user),
                          void *user)
{
    static const size_t line_bytes = 512;
    char buffer[16384];
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    support_expect(file >= 0);
    size_t have = 0;
    ssize_t got;
    bool more = true;
    while (more && (got = read(file, buffer + have, sizeof buffer - 1 - have)) > 0) {
        have += (size_t)got;
        buffer[have] = '\0';
        char *line = buffer;
        char *newline;
        while (more && (newline = strchr(line, '\n')) != NULL) {
            struct support_mapping mapping;
            if (parse_mapping(line, &mapping))
                more = visit(&mapping, user);
            line = newline + 1;
        }
        have -= (size_t)(line - buffer);
        support_expect(have < sizeof buffer - line_bytes);
        memmove(buffer, line, have);
    }
    close(file);
}

struct protection_question {
    uint64_t address;
    const char *answer;
};

static bool visit_protection(const struct support_mapping *mapping, void *user)
{
    static const char *const names[] = {"---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx"};
    struct protection_question *question = user;
    if (question->address < mapping->start || question->address >= mapping->end)
        return true;
    question->answer = names[mapping->readable * 4 + mapping->writable * 2 + mapping->executable];
    return false;
}

const char *support_protection(const void *address)
{
    struct protection_question question = {(uint64_t)(uintptr_t)address, ""};
    support_each_mapping(visit_protection, &question);
    return question.answer;
}

static bool visit_count(const struct support_mapping *mapping, void *user)
{
    (void)mapping;
    (*(size_t *)user)++;
    return true;
}

size_t support_count_mappings(void)
{
    size_t count = 0;
    if (support_is_sanitized() || support_is_emulated())
        return 0;
    support_each_mapping(visit_count, &count);
    return count;
}

static bool visit_dangerous(const struct support_mapping *mapping, void *user)
{
    bool *any = user;
    *any = *any || (mapping->writable && mapping->executable);
    return !*any;
}

bool support_any_writable_executable(void)
{
    bool any = false;
    support_each_mapping(visit_dangerous, &any);
    return any;
}

size_t support_count_files(void)
{
    size_t count = 0;
    for (int file = 0; file < 1024; file++)
        count += fcntl(file, F_GETFD) >= 0;
    return count;
}

size_t support_count_resident(const void *address, size_t size)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = size / page_size;
    unsigned char *present = malloc(pages);
    ck_assert_int_eq(mincore((void *)(uintptr_t)address, size, present), 0);
    size_t count = 0;
    for (size_t i = 0; i < pages; i++)
        count += present[i] & 1;
    free(present);
    return count;
}

/* ---- Refusing system calls ---- */

enum { REFUSAL_INSTRUCTIONS = 6, REFUSALS_MAX = 8 };

/* Filters: if (nr == call && (argument & mask) == value) return the error. */
static void encode_refusal(const struct support_refusal *refusal, struct sock_filter *filter)
{
    uint32_t argument =
        (uint32_t)(offsetof(struct seccomp_data, args) + refusal->argument * sizeof(uint64_t));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    argument += 4;
#endif
    const struct sock_filter instructions[REFUSAL_INSTRUCTIONS] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refusal->call, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, refusal->mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusal->value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)refusal->error),
    };
    memcpy(filter, instructions, sizeof instructions);
}

bool support_can_refuse(void)
{
    if (support_is_emulated() && prctl(PR_GET_SECCOMP) != 0) {
        printf("skipped: the emulator refuses to filter system calls\n");
        return false;
    }
    return true;
}

void support_refuse(const struct support_refusal *refusals, size_t count)
{
    struct sock_filter filter[REFUSALS_MAX * REFUSAL_INSTRUCTIONS + 1];
    support_expect(count <= REFUSALS_MAX);
    for (size_t i = 0; i < count; i++)
        encode_refusal(&refusals[i], filter + i * REFUSAL_INSTRUCTIONS);
    filter[count * REFUSAL_INSTRUCTIONS] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {
        .len = (unsigned short)(count * REFUSAL_INSTRUCTIONS + 1),
        .filter = filter,
    };
    support_expect(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    support_expect(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* ---- Refusing all system calls after a number of them ---- */

enum { PLACES_MAX = 32 };

/* Seccomp notifies a thread that was started earlier and is not filtered itself. */
static struct {
    int listener;
    _Atomic size_t seen;
    _Atomic size_t granted;
    _Atomic bool forbids_gaining_execution;
    _Atomic size_t places_to_take;
    _Atomic size_t taken_count;
    uint8_t *taken[PLACES_MAX];
} watched;

enum { MARK_OF_TAKEN = 77 };

static void take_place(const struct seccomp_notif *call)
{
    enum { FLAGS = 3 };
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (watched.places_to_take == 0 || call->data.nr != SYS_mmap ||
        (call->data.args[FLAGS] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0)
        return;
    uint8_t *place = (uint8_t *)(uintptr_t)call->data.args[0];
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *taken = mmap(place, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (taken == MAP_FAILED)
        return;
    support_expect(taken == place);
    memset(taken, MARK_OF_TAKEN, size);
    watched.taken[watched.taken_count++] = taken;
    watched.places_to_take--;
}

void support_take_places(size_t count)
{
    support_expect(watched.taken_count + count <= PLACES_MAX);
    watched.places_to_take = count;
}

size_t support_expect_taken_places(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < watched.taken_count; i++)
        for (size_t byte = 0; byte < size; byte++)
            support_expect(watched.taken[i][byte] == MARK_OF_TAKEN);
    return watched.taken_count;
}

struct range {
    uint64_t start;
    uint64_t end;
};

static bool expect_not_writable(const struct support_mapping *mapping, void *user)
{
    const struct range *range = user;
    support_expect(!mapping->writable || mapping->end <= range->start ||
                   mapping->start >= range->end);
    return true;
}

static void check_gain(const struct seccomp_data *call)
{
    enum { PROTECTION = 2 };
    if (call->nr != SYS_mmap && call->nr != SYS_mprotect && call->nr != SYS_pkey_mprotect)
        return;
    if ((call->args[PROTECTION] & PROT_EXEC) == 0)
        return;
    support_expect((call->args[PROTECTION] & PROT_WRITE) == 0);
    struct range range = {call->args[0], call->args[0] + call->args[1]};
    if (call->nr != SYS_mmap)
        support_each_mapping(expect_not_writable, &range);
}

bool support_forbid_gaining_execution(void)
{
    static const long calls[] = {SYS_mmap, SYS_mprotect, SYS_pkey_mprotect};
    watched.forbids_gaining_execution = true;
    return support_watch_calls(calls, sizeof calls / sizeof *calls);
}

static void answer(const struct seccomp_notif *call, struct seccomp_notif_resp *response)
{
    memset(response, 0, sizeof *response);
    response->id = call->id;
    take_place(call);
    if (watched.forbids_gaining_execution)
        check_gain(&call->data);
    if (watched.seen++ < watched.granted)
        response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else
        response->error = -ENOMEM;
}

static void *answer_calls(void *user)
{
    sem_t *ready = user;
    struct seccomp_notif call;
    struct seccomp_notif_resp response;
    sem_wait(ready);
    for (;;) {
        memset(&call, 0, sizeof call);
        if (ioctl(watched.listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
            support_expect(errno == EINTR || errno == ENOENT);
            continue;
        }
        answer(&call, &response);
        /* ENOENT: a signal has interrupted the call, which is then made again. */
        support_expect(ioctl(watched.listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0 ||
                       errno == ENOENT);
    }
    return NULL;
}

bool support_watch_calls(const long *calls, size_t count)
{
    enum { CALLS_MAX = 16 };
    static sem_t ready;
    pthread_t thread;
    struct sock_filter filter[CALLS_MAX + 3];
    if (support_is_sanitized()) {
        printf("skipped: the sanitizer's own calls would be refused\n");
        return false;
    }
    support_expect(count <= CALLS_MAX);
    size_t end = count + 2;
    filter[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++)
        filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i],
                                                     (uint8_t)(end - (i + 2)), 0);
    filter[end - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[end] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {.len = (unsigned short)(end + 1), .filter = filter};
    watched.granted = SIZE_MAX;
    support_expect(sem_init(&ready, 0, 0) == 0);
    support_expect(pthread_create(&thread, NULL, answer_calls, &ready) == 0);
    support_expect(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    watched.listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                    SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (watched.listener < 0) {
        printf("skipped: system calls cannot be watched: %s\n", strerror(errno));
        return false;
    }
    sem_post(&ready);
    return true;
}

void support_refuse_after(size_t granted)
{
    watched.seen = 0;
    watched.granted = granted;
}

size_t support_grant_all(void)
{
    size_t seen = watched.seen;
    watched.granted = SIZE_MAX;
    return seen;
}

/* ---- Children ---- */

void support_expect_at(bool condition, const char *text, const char *file, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
    fflush(NULL);
    _exit(1);
}

void support_wait(int child)
{
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child died of signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}

void support_in_child(void (*body)(void *user), void *user)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        body(user);
        _exit(0);
    }
    support_wait(child);
}

bool support_faults(void (*body)(void *user), void *user)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        body(user);
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

/* ---- Randomness ---- */

uint64_t support_seed(void)
{
    const char *given = getenv("CAIRN_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("CAIRN_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

/* SplitMix64 */
uint32_t support_random(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)(mixed >> 32);
}

int support_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
