/*
 * Code memory in processes that their administrator has hardened: doc/hardening.md.
 *
 * Each test runs in a child that gives itself a setting for good. With arguments, the program
 * instead gives itself the named settings and executes another program:
 *
 *     check_code_hardened SETTING... -- PROGRAM ARGUMENT...
 *
 * SPDX-License-Identifier: MIT
 */
#include "code_support.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

enum { SKIPPED = 77 };

static uint64_t number(const void *address) { return (uint64_t)(uintptr_t)address; }

/* ---- Settings: each returns NULL, or what the system lacks for it ---- */

static const char *forbid_by_prctl(void)
{
    return prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0
               ? NULL
               : "PR_SET_MDWE (Linux 6.3) is not available";
}

/* Source: systemd, src/shared/seccomp-util.c (seccomp_memory_deny_write_execute). */
static const char *forbid_like_systemd(void)
{
    enum { BOTH = PROT_WRITE | PROT_EXEC };
    const struct support_refusal refusals[] = {
        {SYS_mmap, EPERM, 2, BOTH, BOTH},
        {SYS_mprotect, EPERM, 2, PROT_EXEC, PROT_EXEC},
        {SYS_pkey_mprotect, EPERM, 2, PROT_EXEC, PROT_EXEC},
        {SYS_shmat, EPERM, 2, SHM_EXEC, SHM_EXEC},
    };
    support_refuse(refusals, sizeof refusals / sizeof *refusals);
    return NULL;
}

static const char *refuse_memory_files(void)
{
    const struct support_refusal refusal = {.call = SYS_memfd_create, .error = EPERM};
    support_refuse(&refusal, 1);
    return NULL;
}

static const char *refuse_barriers(void)
{
    const struct support_refusal refusal = {.call = SYS_membarrier, .error = ENOSYS};
    support_refuse(&refusal, 1);
    return NULL;
}

static const char *limit_files(void)
{
    const struct rlimit limit = {1 << 16, 1 << 16};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0 ? NULL : "setrlimit is refused";
}

static bool write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return is_written;
}

/* Makes this user the administrator of new namespaces, and hides /proc. */
static const char *hide_proc(void)
{
    char map[64];
    snprintf(map, sizeof map, "0 %ld 1", (long)geteuid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return "namespaces are refused";
    (void)(write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", map));
    if (mount("none", "/proc", "tmpfs", 0, NULL) != 0)
        return "/proc cannot be hidden";
    return access("/proc/self", F_OK) == 0 ? "/proc is still there" : NULL;
}

/* The setting is one of a namespace of processes, whose first process is a child. */
static const char *set_memfd_noexec(const char *value)
{
    char found[2] = "";
    if (access("/proc/sys/vm/memfd_noexec", F_OK) != 0)
        return "vm.memfd_noexec (Linux 6.3) is not available";
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
        return "namespaces are refused";
    pid_t child = fork();
    support_expect(child >= 0);
    if (child > 0) {
        int status;
        support_expect(waitpid(child, &status, 0) == child);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    if (!write_text("/proc/sys/vm/memfd_noexec", value))
        return "vm.memfd_noexec may be set by the administrator only";
    int file = open("/proc/sys/vm/memfd_noexec", O_RDONLY | O_CLOEXEC);
    support_expect(file >= 0 && read(file, found, 1) == 1);
    close(file);
    return found[0] == value[0] ? NULL : "vm.memfd_noexec keeps its value";
}

static const char *mark_memory_files(void) { return set_memfd_noexec("1"); }
static const char *forbid_executable_memory_files(void) { return set_memfd_noexec("2"); }

struct setting {
    const char *name;
    const char *(*apply)(void);
    bool forbids_single; /* memory that was writable may not become executable */
};

static const struct setting settings[] = {
    {"mdwe", forbid_by_prctl, true},
    {"systemd", forbid_like_systemd, true},
    {"no-memfd", refuse_memory_files, false},
    {"no-membarrier", refuse_barriers, false},
    {"small-files", limit_files, false},
    {"no-proc", hide_proc, false},
    {"memfd-noexec-1", mark_memory_files, false},
    {"memfd-noexec-2", forbid_executable_memory_files, false},
};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

/* Skips the test, by ending the child, if the setting is not available. */
static void apply(const struct setting *setting)
{
    const char *missing = setting->apply();
    if (missing == NULL)
        return;
    printf("skipped: %s: %s\n", setting->name, missing);
    fflush(stdout);
    _exit(0);
}

/* ---- The life of a process ---- */

/* Two functions, one written through its final address and one through the second view. */
static struct code_block *load_reserved(struct code_space *space, int value, uint8_t **code)
{
    struct code_block *block = support_block(space);
    struct code_place place;
    support_expect(code_block_reserve(block, PAGES_FOR_CODE, SUPPORT_FUNCTION_BYTES,
                                      SUPPORT_FUNCTION_BYTES, &place, NULL) == CAIRN_OK);
    arch_host()->encode_self_test(arch_host(), value, place.bytes);
    support_expect(code_block_protect(block, NULL) == CAIRN_OK);
    *code = (uint8_t *)(uintptr_t)place.address;
    return block;
}

static void change(struct code_block *block, uint8_t *code)
{
    struct code_veneer veneer;
    support_expect(support_call(code) == 1);
    support_patch(block, code, 2);
    support_expect(support_call(code) == 2);
    support_expect(code_block_add_veneer(block, CODE_VENEER_PLAIN, number(code), &veneer, NULL) ==
                   CAIRN_OK);
    support_expect(support_call((const void *)(uintptr_t)veneer.address) == 2);
}

/* Loads in both ways, data too, changes, forks, releases and loads again. */
static void live(struct code_space *space, bool may_look)
{
    enum { MANY = 3000 };
    uint8_t *code[2];
    void *data;
    for (int round = 0; round < 3; round++) {
        struct code_block *blocks[] = {support_loaded(space, MANY, 1, &code[0]),
                                       load_reserved(space, 1, &code[1])};
        struct code_block *other = support_block(space);
        support_expect(code_block_allocate(other, PAGES_FOR_READ_ONLY, 9000, 8, &data, NULL) ==
                       CAIRN_OK);
        memset(data, round + 1, 9000);
        support_expect(code_block_protect(other, NULL) == CAIRN_OK);
        for (int i = 0; i < 2; i++)
            change(blocks[i], code[i]);
        pid_t child = fork();
        if (child == 0) {
            support_expect(code_space_is_own(space));
            support_patch(blocks[0], code[0], 3);
            support_expect(support_call(code[0]) == 3);
            code_block_destroy(load_reserved(space, 9, &code[1]));
            _exit(0);
        }
        int status;
        support_expect(waitpid(child, &status, 0) == child && status == 0);
        support_expect(support_call(code[0]) == 2 && ((uint8_t *)data)[8999] == round + 1);
        support_expect(support_call(code[0] + (MANY - 1) * SUPPORT_FUNCTION_BYTES) == MANY);
        support_expect(!may_look || !support_any_writable_executable());
        code_block_destroy(blocks[round % 2]);
        code_block_destroy(other);
        code_space_clean(space);
        code_block_destroy(blocks[(round + 1) % 2]);
    }
}

static void live_in_dual_mapping(void *user)
{
    const struct setting *setting = user;
    apply(setting);
    bool may_look = access("/proc/self/maps", R_OK) == 0;
    for (int is_visible = 0; is_visible < 2; is_visible++) {
        struct code_space *space = support_space(CAIRN_CODE_MODE_AUTOMATIC, 0, 0);
        support_expect(code_space_mode(space) == CAIRN_CODE_MODE_DUAL);
        if (is_visible)
            support_expect(code_space_make_visible(space, NULL) == CAIRN_OK);
        live(space, may_look);
        code_space_destroy(space);
    }
}

START_TEST(everything_works_in_a_hardened_process)
{
    support_in_child(live_in_dual_mapping, (void *)(uintptr_t)&settings[_i]);
}
END_TEST

static void live_in_single_mapping(void *user)
{
    const struct setting *setting = user;
    struct code_space *space = NULL;
    struct cairn_error error = {0};
    const struct code_space_options options = {.arch = arch_host(), .mode = CAIRN_CODE_MODE_SINGLE};
    apply(setting);
    bool may_look = access("/proc/self/maps", R_OK) == 0;
    enum cairn_status status = code_space_create(&options, &space, &error);
    if (setting->forbids_single) {
        support_expect(status == CAIRN_ERROR_SYSTEM);
        support_expect(strstr(error.message, "PR_SET_MDWE") != NULL);
        support_expect(strstr(error.message, "only a dual mapping") != NULL);
        return;
    }
    support_expect(status == CAIRN_OK);
    live(space, may_look);
    code_space_destroy(space);
}

START_TEST(single_mapping_works_or_names_the_setting)
{
    support_in_child(live_in_single_mapping, (void *)(uintptr_t)&settings[_i]);
}
END_TEST

/* Without memory files, shared memory takes their place, under both settings at once. */
static void live_without_files(void *user)
{
    const struct setting *setting = user;
    if (!setting->forbids_single)
        return;
    apply(setting);
    refuse_memory_files();
    struct code_space *space = support_space(CAIRN_CODE_MODE_AUTOMATIC, 0, 0);
    support_expect(code_space_mode(space) == CAIRN_CODE_MODE_DUAL);
    live(space, true);
    code_space_destroy(space);
}

START_TEST(shared_memory_serves_hardened_processes_without_memory_files)
{
    support_in_child(live_without_files, (void *)(uintptr_t)&settings[_i]);
}
END_TEST

/* ---- The program ---- */

static int execute_hardened(char **arguments)
{
    for (; *arguments != NULL && strcmp(*arguments, "--") != 0; arguments++)
        for (size_t i = 0; i < SETTING_COUNT; i++) {
            const char *missing =
                strcmp(*arguments, settings[i].name) == 0 ? settings[i].apply() : NULL;
            if (missing != NULL) {
                printf("skipped: %s: %s\n", settings[i].name, missing);
                return SKIPPED;
            }
        }
    if (*arguments != NULL)
        execvp(arguments[1], arguments + 1);
    perror("execvp");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return execute_hardened(argv + 1);
    if (support_is_emulated())
        return SKIPPED;
    Suite *suite = suite_create("code: hardened");
    TCase *tests = tcase_create("hardened");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, everything_works_in_a_hardened_process, 0, SETTING_COUNT);
    tcase_add_loop_test(tests, single_mapping_works_or_names_the_setting, 0, SETTING_COUNT);
    tcase_add_loop_test(tests, shared_memory_serves_hardened_processes_without_memory_files, 0,
                        SETTING_COUNT);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
