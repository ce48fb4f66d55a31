/*
 * object/link.h - loads relocatable objects into memory that their host allocates.
 *
 *     object_link_create(arch, &allocator, &link, error)
 *     object_link_add(link, bytes, size, "a.o", &host, error)      for each object
 *     object_link_finish(link, error)                              now everything is in memory
 *     ...                                                          read its sections and symbols
 *     object_link_destroy(link)
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_LINK_H
#define OBJECT_LINK_H

#include "object/image.h"

/* Creates an empty link of objects for `arch`. Errors: MEMORY. */
CAIRN_MUST_CHECK enum cairn_status object_link_create(const struct cairn_arch *arch,
                                                      const struct cairn_allocator *allocator,
                                                      struct object_link **link,
                                                      struct cairn_error *error);

/*
 * Adds an object of `size` bytes, which are copied. `name` is for messages; NULL means none. Uses
 * only `host->is_pc_section` of the host, whose functions and `user` must remain valid for
 * object_link_finish. Takes O(n log n) time for n bytes. On failure the link can only be destroyed.
 *
 * Errors: those of object/elf.h and of steps 1 to 3 (object/image.h); UNSUPPORTED (an object for
 * another architecture; both are named); MEMORY.
 */
CAIRN_MUST_CHECK enum cairn_status object_link_add(struct object_link *link, const void *bytes,
                                                   size_t size, const char *name,
                                                   const struct object_host *host,
                                                   struct cairn_error *error);

/*
 * Places the objects and applies their relocations, in O(n) time for n bytes of objects. Memory
 * comes from the first object's host, except that of sections which have memory of their own. On
 * failure, the memory that was allocated has unspecified contents. Errors: those of steps 4 to 8.
 */
CAIRN_MUST_CHECK enum cairn_status object_link_finish(struct object_link *link,
                                                      struct cairn_error *error);

/* Frees a link, but not the memory of its sections. NULL is allowed. */
void object_link_destroy(struct object_link *link);

#endif
