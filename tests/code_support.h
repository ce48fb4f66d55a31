/*
 * Support for the tests of code memory: small functions to load, the process's own mappings,
 * refused system calls, child processes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_CODE_SUPPORT_H
#define TESTS_CODE_SUPPORT_H

#include "code/space.h"
#include "tests/allocator_support.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The modes, for tests that loop over them from 0 to support_mode_count. All modes are tested,
 * except under valgrind and qemu-user (CAIRN_TEST_EMULATED is set in the environment): if the
 * runtime reports there that dual mapping is not available, its reason is printed and only single
 * mapping is tested. */
extern const enum cairn_code_mode support_modes[2];
int support_mode_count(void);
bool support_is_emulated(void);
/* Whether the build has a sanitizer. Its own memory is subject to limits and refusals, too. */
bool support_is_sanitized(void);

/* ---- Spaces and functions ---- */

struct code_space *support_space(enum cairn_code_mode mode, size_t slab_size, uint32_t slab_limit);
struct code_block *support_block(struct code_space *space);

/* Functions `int f(void)`, each in a separate slot that begins with an aligned patch word. */
enum { SUPPORT_FUNCTION_BYTES = 32 };

/* Allocates `count` consecutive functions; function i returns `first_value + i`. */
uint8_t *support_functions(struct code_block *block, size_t count, int first_value);
/* Returns a block with these functions that is already protected. */
struct code_block *support_loaded(struct code_space *space, size_t count, int first_value,
                                  uint8_t **functions);
int support_call(const void *function);
/* Encodes the patch word that makes a function return `value`. */
void support_word(const struct cairn_arch *arch, int value, uint8_t word[ARCH_WORD_BYTES_MAX]);
/* Stores that word. Fails the test on an error. */
void support_patch(struct code_block *block, uint8_t *function, int value);

struct cairn_runtime_statistics support_statistics(struct code_space *space);

#define ck_assert_ok(status) ck_assert_int_eq((status), CAIRN_OK)

/* ---- The process's own mappings ---- */

struct support_mapping {
    uint64_t start;
    uint64_t end;
    bool readable;
    bool writable;
    bool executable;
    bool shared;
};

/* Calls `visit` for each line of /proc/self/maps until it returns false. Allocates nothing. */
void support_each_mapping(bool (*visit)(const struct support_mapping *mapping, void *user),
                          void *user);
/* Returns the protection of the mapping that contains the address, such as "r-x"; "" if there is no
 * such mapping. */
const char *support_protection(const void *address);
/* Returns the number of mappings; 0 where a sanitizer or an emulator maps and unmaps memory
 * itself. */
size_t support_count_mappings(void);
/* Whether there is a mapping that is both writable and executable. */
bool support_any_writable_executable(void);
size_t support_count_files(void);
/* Returns how many pages of the range are in memory. */
size_t support_count_resident(const void *address, size_t size);

/* ---- Refusing system calls ---- */

/* From now on, the system call returns `error` in this process if (argument & mask) == value. */
struct support_refusal {
    long call;
    int error;
    unsigned argument;
    uint32_t mask;
    uint32_t value;
};
/* Whether programs can filter their system calls. Under an emulator they may be unable to; then
 * prints the reason and returns false. */
bool support_can_refuse(void);
void support_refuse(const struct support_refusal *refusals, size_t count);

/* Watches these system calls of this thread, and of the threads that it starts later. Must be
 * called in a child, once per process. If the system cannot do that, prints the reason and returns
 * false. */
bool support_watch_calls(const long *calls, size_t count);
/* From now on, grants the next `granted` watched calls, and refuses all later ones with ENOMEM. */
void support_refuse_after(size_t granted);
/* Grants all calls; returns how many were watched since support_refuse_after. */
size_t support_grant_all(void);
/* Watches the calls that map memory and change its protection, like support_watch_calls, and ends
 * the process at a call that asks for memory that is writable and executable, or for the right to
 * execute memory some of which is writable at that moment. */
bool support_forbid_gaining_execution(void);
/* Maps a page, as another thread could, wherever a watched mmap is about to map memory at a fixed
 * address where nothing is mapped yet; at most `count` times. */
void support_take_places(size_t count);
/* Returns how many pages have been mapped so far. Fails if their contents have changed. */
size_t support_expect_taken_places(void);

/* Ends the process if the condition is false. Child processes, and threads of a process that forks,
 * must use this instead of ck_assert, which takes one of Check's locks: in a child, the lock may be
 * held for ever. All functions in this file use it. */
#define support_expect(condition) support_expect_at((condition), #condition, __FILE__, __LINE__)
void support_expect_at(bool condition, const char *text, const char *file, int line);

/* Runs `body` in a forked child. Fails the test if the child fails. */
void support_in_child(void (*body)(void *user), void *user);
/* Ends the child of a fork; in the parent, waits for the child and checks its status. */
void support_wait(int child);
/* Whether `body` is ended by SIGSEGV. */
bool support_faults(void (*body)(void *user), void *user);

/* ---- Randomness ---- */

/* Returns the seed from CAIRN_TEST_SEED in the environment, or from the clock, and prints it. */
uint64_t support_seed(void);
uint32_t support_random(uint64_t *state);

int support_main(Suite *suite);

#endif
