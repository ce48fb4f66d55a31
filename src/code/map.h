/*
 * code/map.h - the ways of mapping code pages, from the best to the one that always works.
 *
 *   dual_file    Dual: two views of a memory file
 *   dual_shared  Dual: two views of shared anonymous pages, where memory files are refused
 *   single       Single: changed copies of pages are moved over them
 *   toggle       Toggle: pages lose their execute permission while they are written; used only if
 *                the host asks for it, since a thread that executes such a page meanwhile faults
 *
 * Data pages are the same in all of them and belong to the slab alone.
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

    /* Changes bytes of protected code; on failure nothing has changed. In Dual mode, a word of 4 or
     * 8 bytes at its own alignment changes as a whole, as seen by running threads. In Single mode,
     * all bytes of one call do, and all of them may be in several pages. */
    enum cairn_status (*write)(struct code_slab *slab, size_t offset, const void *bytes,
                               size_t size, struct cairn_error *error);

    /* The steps of a write to a run of whole pages, for writes to several runs (code/change.c).
     * NULL in Dual mode. */
    const struct code_change_steps *steps;
};

/*
 * `begin` comes once for each slab, before the first run, and `end` after the last run was placed
 * or abandoned. `prepare` and `seal` do all that can fail for want of a resource; `place` alone can
 * be seen by running threads. Between `prepare` and `seal`, the pages' new contents are at
 * `contents`. After a failure of any step, `abandon` is called for every run that was prepared and
 * not placed.
 */
struct code_change_steps {
    enum cairn_status (*begin)(struct code_slab *slab, struct cairn_error *error);
    enum cairn_status (*prepare)(struct code_slab *slab, size_t offset, size_t size,
                                 struct cairn_error *error);
    uint8_t *(*contents)(const struct code_slab *slab, size_t offset);
    enum cairn_status (*seal)(struct code_slab *slab, size_t offset, size_t size,
                              struct cairn_error *error);
    enum cairn_status (*place)(struct code_slab *slab, size_t offset, size_t size,
                               struct cairn_error *error);
    void (*abandon)(struct code_slab *slab, size_t offset, size_t size);
    void (*end)(struct code_slab *slab);
};

extern const struct code_map code_map_dual_file;
extern const struct code_map code_map_dual_shared;
extern const struct code_map code_map_single;
extern const struct code_map code_map_toggle;

/* Says that `size` bytes of address space could not be reserved to do something, and what to
 * change: SYSTEM. */
enum cairn_status map_cannot_reserve(size_t size, const char *purpose, int reason,
                                     struct cairn_error *error);

/* UNSUPPORTED if mappings that this thread makes readable become executable, too. */
enum cairn_status map_check_personality(struct cairn_error *error);

/* One atomic store if it is a whole aligned word; otherwise byte by byte. */
void map_store(uint8_t *destination, const void *bytes, size_t size);

/* Copies code that may be patched meanwhile: each aligned word of 8 bytes is copied whole. `size`
 * is a multiple of 8. */
void map_copy_words(uint8_t *destination, const uint8_t *source, size_t size);

#endif
