/*
 * Strings, and the sets in which all of them are. Two strings with the same bytes are the same
 * object. The sets do not keep strings alive.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_INTERN_H
#define LOX_INTERN_H

#include "heap.h"

enum { STRING_SIZE_MAX = 1 << 30 };

/* Returns the string with these bytes, in the old generation, or NULL if there is not enough
 * memory. There must be no young strings, among which it could be: call heap_collect before. */
struct string *string_intern_old(struct heap *heap, const char *bytes, size_t size);

/* Returns the string that joins both, or NULL if it is too long or there is not enough memory. The
 * strings are read from roots, since they may move meanwhile. */
struct string *string_join(struct heap *heap, const lox_value *left, const lox_value *right);

/* For collections. */
bool strings_reserve_for_minor(struct heap *heap);
void strings_after_minor(struct heap *heap);
void strings_before_sweep(struct heap *heap);

#endif
