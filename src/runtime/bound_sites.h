/*
 * runtime/bound_sites.h - binds sites of objects to what the host's names stand for.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_BOUND_SITES_H
#define RUNTIME_BOUND_SITES_H

#include "format/bound_sites.h"
#include "object/image.h"
#include "runtime/linked_names.h"

/* What the sites with an ID are bound to. */
struct bound_site {
    uint64_t id;
    enum bound_site_kind kind;
    size_t count;
    const uint64_t *values; /* of the names */
};

/* Sorted by ID, with one for each. */
struct bound_sites {
    size_t count;
    size_t size; /* of the memory */
    struct bound_site items[];
};

/* Reads the bindings of all images, with the values of their names. Sets `*sites` to NULL if the
 * images have no bindings; the caller frees it with bound_sites_free. Takes O(n log n) time for n
 * bytes. Errors: CORRUPT (also a name that no image has), CONFLICT (two bindings of an ID), MEMORY.
 */
CAIRN_MUST_CHECK enum cairn_status bound_sites_read(const struct object_link *link,
                                                    const struct module_names *names,
                                                    struct bound_sites **sites,
                                                    struct cairn_error *error);

/* Frees what bound_sites_read has read. NULL is allowed. */
void bound_sites_free(struct bound_sites *sites, const struct cairn_allocator *allocator);

/* Binds all sites of a module that is not published. `sites` may be NULL. After an error, some are
 * bound. Takes O(records × log bindings) time. Errors: NOT_FOUND (a record without a site),
 * ARGUMENT (a value of 0), and those of cairn_ic_create, cairn_site_call and cairn_assumption_add.
 */
CAIRN_MUST_CHECK enum cairn_status bound_sites_apply(const struct bound_sites *sites,
                                                     const cairn_module *module,
                                                     struct cairn_error *error);

#endif
