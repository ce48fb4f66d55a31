/*
 * What the tests of code memory share: small functions to load, looking at the process's own
 * mappings, refusing system calls, children.
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

/* The modes, for tests that loop over them from 0 to support_mode_count: all of them, or, under
 * valgrind and qemu-user (the environment has CAIRN_TEST_EMULATED), Single alone if the runtime
 * says that it has no Dual mode; its reason is printed. */
extern const enum cairn_code_mode support_modes[2];
int support_mode_count(void);
bool support_is_emulated(void);
/* A sanitizer has memory of its own, which limits and refusals hit as well. */
bool support_is_sanitized(void);

/* ---- Spaces and functions ---- */

struct code_space *support_space(enum cairn_code_mode mode, size_t slab_size, uint32_t slab_limit);
struct code_block *support_block(struct code_space *space);

/* Functions `int f(void)`, each in a slot of its own that begins with an aligned patch word. */
enum { SUPPORT_FUNCTION_BYTES = 32 };

/* Allocates `count` functions one behind the other, function i returning `first_value + i`. */
uint8_t *support_functions(struct code_block *block, size_t count, int first_value);
/* A block with these functions that is protected already. */
struct code_block *support_loaded(struct code_space *space, size_t count, int first_value,
                                  uint8_t **functions);
int support_call(const void *function);
/* The patch word that makes a function return `value`. */
void support_word(const struct cairn_arch *arch, int value, uint8_t word[ARCH_WORD_BYTES_MAX]);
/* Stores that word; fails the test if it cannot. */
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
};

/* Calls `visit` for each line of /proc/self/maps until it answers false; allocates nothing. */
void support_each_mapping(bool (*visit)(const struct support_mapping *mapping, void *user),
                          void *user);
/* "r-x" and so on of the mapping that holds the address; "" if there is none. */
const char *support_protection(const void *address);
/* 0 where a sanitizer or an emulator has mappings of its own that come and go. */
size_t support_count_mappings(void);
/* A mapping that is writable and executable exists. */
bool support_any_writable_executable(void);
size_t support_count_files(void);
/* Pages of the range that are in memory. */
size_t support_count_resident(const void *address, size_t size);

/* ---- Refusing system calls ---- */

/* From here on the process gets `error` from the system call, if (argument & mask) == value. */
struct support_refusal {
    long call;
    int error;
    unsigned argument;
    uint32_t mask;
    uint32_t value;
};
/* False, having printed why, where an emulator does not let a program filter its system calls. */
bool support_can_refuse(void);
void support_refuse(const struct support_refusal *refusals, size_t count);

/* Watches these system calls of this thread, and of those that it starts afterwards. Once in a
 * process, in a child. False, having printed why, where the system cannot do that. */
bool support_watch_calls(const long *calls, size_t count);
/* From here on `granted` of the watched calls are granted, and all after them refused with ENOMEM.
 */
void support_refuse_after(size_t granted);
/* Grants all; returns how many were watched since support_refuse_after. */
size_t support_grant_all(void);
/* Maps a page, as another thread could, wherever a watched mmap is about to map memory at a fixed
 * address and nothing is mapped yet; up to `count` times. */
void support_take_places(size_t count);
/* Returns how many pages were mapped so far; they must hold what they held then. */
size_t support_expect_taken_places(void);

/* Ends the process if it is not so. Children, and threads of a process that forks, use this instead
 * of ck_assert, which takes a lock of Check's: a child may be born with it held. So do all
 * functions here. */
#define support_expect(condition) support_expect_at((condition), #condition, __FILE__, __LINE__)
void support_expect_at(bool condition, const char *text, const char *file, int line);

/* Runs `body` in a forked child; fails the test if the child did not end well. */
void support_in_child(void (*body)(void *user), void *user);
/* The child of a fork ends here; the parent waits for it and checks. */
void support_wait(int child);
/* Whether the body dies of SIGSEGV. */
bool support_faults(void (*body)(void *user), void *user);

/* ---- Randomness ---- */

/* From the environment's CAIRN_TEST_SEED, or from the clock; printed. */
uint64_t support_seed(void);
uint32_t support_random(uint64_t *state);

int support_main(Suite *suite);

#endif
