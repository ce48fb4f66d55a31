/*
 * runtime/linked_objects.h - what a module keeps of its objects, in addition to its memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_LINKED_OBJECTS_H
#define RUNTIME_LINKED_OBJECTS_H

#include "object/image.h"
#include "record/module_symbols.h"
#include "runtime/attachments.h"

/*
 * Creates the symbols of a module. Definitions are the global symbols that are not hidden, except
 * absolute ones. On PPC64 ELFv1, the code of a function is found by its descriptor, so the link
 * must be finished.
 *
 * Errors: MEMORY, RANGE, CORRUPT (names of local symbols are too long in total).
 */
CAIRN_MUST_CHECK enum cairn_status linked_symbols(const struct object_link *link,
                                                  const struct hash_key *key,
                                                  struct module_symbols **symbols,
                                                  struct cairn_error *error);

/*
 * Adds the constructors and destructors, and the address of __dso_handle if it is used.
 *
 * Constructors are called as linkers and the C library define it: sections with the lowest priority
 * come first (`.preinit_array`, `.init_array.1`, ...), and sections without one last; those of one
 * priority in the order of the objects. The functions of a section `.ctors` are called in reverse,
 * and the number in its name is 65535 minus its priority. Destructors are called in the opposite
 * order.
 *
 * Source: System V ABI, chapter "Initialization and Termination Functions"; GNU ld's linker
 * scripts. Errors: MEMORY.
 */
CAIRN_MUST_CHECK enum cairn_status linked_constructors(const struct object_link *link,
                                                       struct attachment_list *attached,
                                                       struct cairn_error *error);

#endif
