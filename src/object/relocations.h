/*
 * object/relocations.h - reading an object's relocations, and applying them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_RELOCATIONS_H
#define OBJECT_RELOCATIONS_H

#include "object/image.h"

/*
 * Reads all relocations of loaded sections, checks everything except their values, and notes what
 * they need of their symbols.
 *
 * Errors: UNSUPPORTED (a type that is not supported, by its name; thread-local symbols and symbols
 * whose address a function finds at run time), CORRUPT (a relocation outside its section, or of a
 * symbol in a section that is not loaded), those of elf_relocation_count and elf_relocation.
 * Messages name section and entry.
 */
CAIRN_MUST_CHECK enum cairn_status object_check_relocations(struct object_link *link,
                                                            const struct object_image *image,
                                                            struct cairn_error *error);

/*
 * Applies the relocations of one object: those of function descriptors, or all others. Those of all
 * objects' descriptors must be applied first, because branches read the descriptors.
 *
 * Errors: RANGE (a value does not fit; nothing in the object tells whether it will), UNSUPPORTED (a
 * call that needs a stub, but after which the caller does not reload its TOC pointer).
 */
CAIRN_MUST_CHECK enum cairn_status object_relocate(struct object_link *link,
                                                   const struct object_image *image,
                                                   bool descriptors, struct cairn_error *error);

#endif
