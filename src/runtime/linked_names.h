/*
 * runtime/linked_names.h - the names of objects (symbolic constants), and their values.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_LINKED_NAMES_H
#define RUNTIME_LINKED_NAMES_H

#include "object/image.h"

#include <cairn/load.h>

/* The names of all objects of a link, in the order of their entries, and their values. */
struct linked_names {
    size_t count;
    struct cairn_name *names; /* the bytes are in the images */
    uint64_t *values;
};

/* What a module keeps: the values by the names' IDs, in ascending order. */
struct module_names {
    size_t count;
    struct module_name {
        uint64_t id;
        uint64_t value;
    } items[];
};

/* Returns the number of the first of `count` names without a value; `count` if all have one, which
 * are then in `values`. `user` is that of the image's host. */
typedef size_t linked_name_finder(void *user, const struct cairn_name *names, size_t count,
                                  uint64_t *values);

/*
 * Reads the names of all images, and asks for their values, once for each image that has names.
 * Sets `*table` to NULL if there are no names. The caller releases `names` with
 * linked_names_release, also after an error, and frees the table with module_names_free.
 *
 * Takes O(n log n) time for n bytes of names. Errors: CORRUPT, NOT_FOUND (a name without a value),
 * MEMORY.
 */
CAIRN_MUST_CHECK enum cairn_status linked_names_find(const struct object_link *link,
                                                     linked_name_finder *find,
                                                     struct linked_names *names,
                                                     struct module_names **table,
                                                     struct cairn_error *error);

/* Writes the values into the sections of a finished link. */
void linked_names_write(const struct object_link *link, const struct linked_names *names);

void linked_names_release(struct linked_names *names, const struct cairn_allocator *allocator);

/* Frees a table, which may be NULL. */
void module_names_free(struct module_names *table, const struct cairn_allocator *allocator);

/* Finds the value of a name by its ID. `table` may be NULL. Lock-free and async-signal-safe. */
bool module_names_find(const struct module_names *table, uint64_t id, uint64_t *value);

#endif
