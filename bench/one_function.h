/*
 * bench/one_function.h - a relocatable object of one function for the host's architecture, as LLVM
 * writes it: code, unwind table, and a stack map of one record. It is made without LLVM.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_ONE_FUNCTION_H
#define BENCH_ONE_FUNCTION_H

#include "tests/elf_builder.h"

#include <stdbool.h>

enum { ONE_FUNCTION_CODE_BYTES = 32, ONE_FUNCTION_SITE_BYTES = 16 };

struct one_function {
    uint8_t bytes[ELF_BYTES_MAX];
    size_t size;
    uint8_t *id;   /* the place of the record's ID */
    uint8_t *name; /* the place of the function's name: 8 characters */
};

/* Makes the object. The function consists of no-ops; the record is at its first byte. Returns false
 * for an architecture that Cairn cannot load. */
bool one_function_create(struct one_function *object);

/* Gives the record an ID and the function a name that contains the number. */
void one_function_number(struct one_function *object, uint64_t id, uint32_t number);

#endif
