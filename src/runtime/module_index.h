/*
 * runtime/module_index.h - the index of a published module (record/address_index.h): the owner of
 * its memory in the code space.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_MODULE_INDEX_H
#define RUNTIME_MODULE_INDEX_H

#include "runtime/module.h"

/* Creates the index of a module that is loaded completely, in the runtime's pools. Takes the
 * runtime's lock. Errors: MEMORY. */
enum cairn_status module_index_create(const cairn_module *module, struct address_index **index,
                                      struct cairn_error *error);

/* Frees an index that no lookup can read. Takes the runtime's lock. NULL is allowed. */
void module_index_free(cairn_runtime *runtime, struct address_index *index);

/* Returns the size of an index in bytes; 0 for NULL. */
size_t module_index_bytes(const struct address_index *index);

#endif
