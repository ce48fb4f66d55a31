/*
 * Support for the tests of sites: handwritten code, as LLVM emits it for the host, loaded with its
 * records and declarations.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_SITE_SUPPORT_H
#define TESTS_SITE_SUPPORT_H

#include "tests/mode_support.h"

#include <cairn/cairn.h>

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

/* Fails the test with the message of the error. */
#define ck_assert_done(status, error)                                                              \
    do {                                                                                           \
        enum cairn_status done_status = (status);                                                  \
        ck_assert_msg(done_status == CAIRN_OK, "%s: %s", cairn_status_name(done_status),           \
                      (error).message);                                                            \
    } while (0)

enum { SITE_REGION_MAX = 64 };

/* Targets in the test program, which are out of reach of the direct call. */
long site_one(void);
long site_two(void);
#define SITE_ONE ((const void *)(uintptr_t)site_one)
#define SITE_TWO ((const void *)(uintptr_t)site_two)

/* ---- Any code ---- */

/* A record, and the declaration of its ID. */
struct site_record {
    uint64_t id;
    uint32_t offset; /* from the start of its function */
    uint32_t byte_count;
    enum cairn_record_kind kind; /* UNDECLARED: no declaration */
};

struct site_function {
    uint32_t offset; /* from the start of the code */
    uint32_t record_count;
};

struct site_code {
    const uint8_t *bytes;
    uint32_t size;
    const struct site_function *functions;
    uint32_t function_count;
    const struct site_record *records; /* grouped by function, in the functions' order */
    uint32_t unwound;                  /* size of the function in an unwind table; 0: no table */
};

/* Loads the code at an address that is a multiple of 64, without publishing it. */
cairn_module *site_load_code(cairn_runtime *runtime, const struct site_code *code,
                             uint8_t **address);

cairn_runtime *site_runtime(enum cairn_code_mode mode);

struct cairn_site_description site_describe(const cairn_site *site);

/* ---- One function with one site ---- */

struct site_shape {
    enum cairn_record_kind kind;
    const uint8_t *region;
    uint32_t region_size; /* size that is written */
    uint32_t byte_count;  /* size that is declared */
    uint32_t padding;     /* no-op bytes before the region: its alignment */
    uint32_t next_record; /* offset of another record from the region's start; 0: no record */
    bool publish;
};

/*
 * The function sets the result to 0, makes a frame, runs padding and the region, removes the frame,
 * and returns.
 *
 * The same section then has targets within reach of the direct call: functions that return 1 and 2,
 * and a jump target that removes the frame and returns 3.
 */
struct site_fixture {
    cairn_runtime *runtime;
    cairn_module *module;
    cairn_site *site;
    uint8_t *code;
    long (*function)(void);
    const uint8_t *tail; /* code after the region */
    const uint8_t *near_one;
    const uint8_t *near_two;
    const uint8_t *near_three;
};

enum { SITE_FUNCTION_BYTES = 128, SITE_CODE_BYTES = 256 };

void site_load(struct site_fixture *fixture, enum cairn_code_mode mode,
               const struct site_shape *shape);
/* Does the same in a runtime of the caller's. */
void site_load_into(struct site_fixture *fixture, cairn_runtime *runtime,
                    const struct site_shape *shape);
void site_unload(struct site_fixture *fixture);

/* Writes LLVM's call of site_one, if there is space for it, and no-ops up to `size`, to
 * `region`. */
struct site_shape site_patchpoint(uint8_t *region, uint32_t size);
/* The same, with the size of the host's call. */
struct site_shape site_calling_patchpoint(uint8_t *region);
/* Writes the no-ops that LLVM emits for a null target. */
struct site_shape site_null_patchpoint(uint8_t *region, uint32_t size);

/* ---- Code elsewhere ---- */

/* Writes at most a page of executable code at an address outside of the library's memory. Returns
 * false if something is mapped there. site_remove_code removes it. */
bool site_place_code(uint64_t address, const uint8_t *code, size_t size);
void site_remove_code(uint64_t address);

/* Runs the suite and returns the status for main. */
int site_main(Suite *suite);

#endif
