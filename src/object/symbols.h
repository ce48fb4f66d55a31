/*
 * object/symbols.h - the symbols of several objects, and their addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_SYMBOLS_H
#define OBJECT_SYMBOLS_H

#include "object/image.h"

/*
 * Checks all symbols of an object, and merges the global ones with those of the link, by the rules
 * of enum object_definition.
 *
 * Errors: CONFLICT (two strong definitions; both objects are named), CORRUPT (a symbol outside its
 * section; names that are too long in total), UNSUPPORTED (definitions of thread-local symbols and
 * of functions that are chosen at run time; an unknown binding), RANGE (the alignment of a common
 * symbol), MEMORY.
 */
CAIRN_MUST_CHECK enum cairn_status object_merge_symbols(struct object_link *link,
                                                        struct object_image *image,
                                                        struct cairn_error *error);

/*
 * Finds the symbols that relocations use and no object defines. A weak symbol that is not found has
 * the address 0. As a linker does, defines _GLOBAL_OFFSET_TABLE_ and .TOC. (the base of the table
 * of slots), __dso_handle (an address in the module), and __start_NAME and __stop_NAME (the bounds
 * of the sections NAME).
 *
 * Errors: NOT_FOUND (the message has the names of undefined symbols, as many as fit; the hosts'
 * `note_undefined` get all of them), UNSUPPORTED (bounds of several PC sections, which are not
 * adjacent).
 */
CAIRN_MUST_CHECK enum cairn_status object_find_symbols(struct object_link *link,
                                                       struct cairn_error *error);

/* Calculates the address of each symbol that is defined, after everything has its memory. */
void object_set_addresses(struct object_link *link);

/* Whether linkers define a symbol with this name as the base of the table of slots. */
bool object_is_table_name(const char *name);

#endif
