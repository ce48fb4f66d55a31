/*
 * code/map.h - the ways of mapping code pages, from the best to the one that always works.
 *
 *   dual_file       Dual: two views of a memory file
 *   dual_shared     Dual: two views of shared anonymous pages, where memory files are refused
 *   single_workshop Single: a changed copy of a page is moved over it
 *   single_fresh    the same for kernels before 5.7, which know no MREMAP_DONTUNMAP
 *   single_toggle   Single: a page loses its execute permission while it is written; for machines
 *                   on which pages cannot be moved (and on which patching running code faults)
 *
 * Data pages are the same in all of them and are the slab's own business.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_MAP_H
#define CODE_MAP_H

#include "code/slab.h"

#include <cairn/runtime.h>
#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>

struct code_map {
    const char *name;
    enum cairn_code_mode mode;

    /* `open` makes the slab's second area, `slab->alias`. `after_fork`, in a child, makes it anew
     * at the same address and lets the code pages be reached through it; these are private to the
     * child already (code/fork.c). On failure the code is unchanged, and the call may be
     * repeated. */
    enum cairn_status (*open)(struct code_slab *slab, struct cairn_error *error);
    enum cairn_status (*after_fork)(struct code_slab *slab, struct cairn_error *error);

    /* Makes free pages readable and writable, filled with zeros. On failure they are as they were,
     * or not mapped at all. */
    enum cairn_status (*map_code)(struct code_slab *slab, size_t offset, size_t size,
                                  struct cairn_error *error);

    /* Gives the memory of code pages back which are about to be unmapped. */
    void (*discard_code)(struct code_slab *slab, size_t offset, size_t size);

    /* Changes bytes of one protected page. A word of 4 or 8 bytes at its own alignment changes
     * as a whole, as seen by running threads. */
    enum cairn_status (*write)(struct code_slab *slab, size_t offset, const void *bytes,
                               size_t size, struct cairn_error *error);
};

extern const struct code_map code_map_dual_file;
extern const struct code_map code_map_dual_shared;
extern const struct code_map code_map_single_workshop;
extern const struct code_map code_map_single_fresh;
extern const struct code_map code_map_single_toggle;

/* One atomic store if it is a whole aligned word; otherwise byte by byte. */
void map_store(uint8_t *destination, const void *bytes, size_t size);

/* Copies code that may be patched meanwhile: each aligned word of 8 bytes is copied whole. `size`
 * is a multiple of 8. */
void map_copy_words(uint8_t *destination, const uint8_t *source, size_t size);

#endif
