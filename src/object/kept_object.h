/*
 * object/kept_object.h - objects that are kept for debuggers and profilers after they were loaded.
 *
 * A kept object is the file that was loaded, with the addresses of its loaded sections in the table
 * of sections, and with relocated debug information. Debuggers know this form from LLVM
 * (GDBRegistrationListener). It takes over the link's copy of the file, so it takes no time to
 * copy.
 *
 * Its sections were checked when it was loaded, but debug information was not: relocations of it
 * that cannot be applied are left out.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_KEPT_OBJECT_H
#define OBJECT_KEPT_OBJECT_H

#include "object/image.h"

struct kept_object {
    struct kept_object *next;
    uint8_t *bytes;
    size_t size;
    void *registration; /* for the debugger that is told about it */
};

/* Takes the objects of a finished link, whose files cannot be read any more. Returns NULL without
 * memory, or without objects. */
struct kept_object *kept_objects_take(struct object_link *link);

void kept_objects_free(struct kept_object *kept, const struct cairn_allocator *allocator);

#endif
