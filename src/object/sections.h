/*
 * object/sections.h - which sections of an object are loaded, and as what.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_SECTIONS_H
#define OBJECT_SECTIONS_H

#include "object/image.h"

/*
 * Reads the sections of an image, and sets their kinds. Notes, manifests, and sections that a
 * program does not have in memory, are not loaded. Data that only relocations change (constructors,
 * tables of pointers to constants) is read-only.
 *
 * All members of COMDAT groups are loaded, even if another object has the same group; the names
 * that they define lead to the first one (object/symbols.h). So the other copy's stack maps and
 * unwind tables remain correct, and no section refers to code that is not there.
 *
 * Errors: UNSUPPORTED (thread-local storage; a section that is writable and executable, or
 * compressed; code and data of one name that is an identifier), CORRUPT (sections that share bytes
 * of the file; a table without contents; a group with a member that does not exist; names that are
 * too long in total), RANGE (an alignment that the host does not support), MEMORY.
 */
CAIRN_MUST_CHECK enum cairn_status object_choose_sections(struct object_link *link,
                                                          struct object_image *image,
                                                          struct cairn_error *error);

/* Returns the range with a name, or NULL. */
const struct object_range *object_find_range(const struct object_link *link, const char *name,
                                             size_t length);

#endif
