/*
 * Code that an earlier run of the program has compiled, in a folder.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_STORED_H
#define LOX_STORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code that begins at a place of the program. */
struct stored_key {
    uint32_t function; /* its number */
    uint32_t start;    /* AT_CALL, or an instruction */
};

struct stored_code {
    const char *name; /* of the compiled function; "" if nothing is stored */
    const void *object;
    size_t size;
};

/* Opens the code of a program, in a folder, or in ~/.cache/lox if that is NULL. If it cannot be
 * opened, which is printed, nothing is stored. */
void stored_open(const char *folder, const char *source, size_t size);
bool stored_is_open(void);
void stored_close(void);

/* Returns the code that was stored, valid until the end, or an object that is NULL. */
struct stored_code stored_find(struct stored_key key);

/* Stores code instead of what was stored. */
void stored_add(struct stored_key key, const struct stored_code *code);

void stored_remove(struct stored_key key);

#endif
