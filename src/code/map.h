/*
 * code/map.h - the ways to map code pages, best first.
 *
 *   dual_file    dual mapping: two views of a memory file
 *   dual_shared  dual mapping: two views of shared anonymous pages, if memory files are refused
 *   single       single mapping: pages are replaced by changed copies
 *
 * Data pages are the same in all modes, and only the slab deals with them.
 *
 * Limits of a process (tests/check_code_system.c):
 *  - PR_SET_MDWE, systemd's MemoryDenyWriteExecute: a single mapping is refused.
 *  - RLIMIT_FSIZE below a slab's size, no file descriptor left, vm.memfd_noexec: shared anonymous
 *    pages replace the memory file.
 *  - RLIMIT_AS, RLIMIT_DATA: creating, loading and, with a single mapping, patching fail (SYSTEM).
 *    Loaded code continues to work.
 *  - mlockall(MCL_FUTURE): only pages in use take memory. The reservations count against
 *    RLIMIT_MEMLOCK: three times the size of each slab.
 *  - vm.overcommit_memory 2: reservations without access are not counted.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_MAP_H
#define CODE_MAP_H

#include "code/slab_state.h"

struct code_map {
    const char *name;
    enum cairn_code_mode mode;

    /* Creates the slab's second area, `slab->alias`. */
    enum cairn_status (*open)(struct code_slab *slab, struct cairn_error *error);

    /* `copy` copies code and read-only data to memory for a forked child, `slab->copy`. NULL with a
     * single mapping, in which pages are private. `after_fork` makes the slab the child's own, with
     * that memory in place of the parent's, at the same addresses. If it fails, the child executes
     * the same code as before, and both calls may be repeated (code/fork.c). */
    enum cairn_status (*copy)(struct code_slab *slab, struct cairn_error *error);
    enum cairn_status (*after_fork)(struct code_slab *slab, struct cairn_error *error);

    /* Dual mapping: gives free pages their place in both views: in the executed one read-execute
     * for code, and read-only otherwise. If it fails, they are unchanged or not mapped. NULL in the
     * other modes, in which the slab itself maps read-only data. */
    enum cairn_status (*add)(struct code_slab *slab, enum page_use use, size_t offset, size_t size,
                             struct cairn_error *error);

    /* Makes pages readable and writable at the address of their use, filled with zeros: added ones
     * in dual mapping, free ones in the other modes. If it fails, they are unchanged or not
     * mapped. */
    enum cairn_status (*open_pages)(struct code_slab *slab, size_t offset, size_t size,
                                    struct cairn_error *error);

    /* Makes opened pages read-execute or read-only. Dual mapping: copies them through the written
     * view and maps the executed view again; `abandon_pages` only does the latter. If it fails,
     * they are still open. */
    enum cairn_status (*close_pages)(struct code_slab *slab, enum page_use use, size_t offset,
                                     size_t size, struct cairn_error *error);
    enum cairn_status (*abandon_pages)(struct code_slab *slab, enum page_use use, size_t offset,
                                       size_t size, struct cairn_error *error);

    /* Dual mapping: releases the memory of closed pages, and fills them with zeros. */
    void (*discard)(struct code_slab *slab, size_t offset, size_t size);

    /* Changes bytes of protected code. If it fails, nothing has changed. In dual mapping, an
     * aligned word of 4 or 8 bytes changes atomically, as seen by running threads. In single
     * mapping, all bytes of one call change at the same moment, and they may be in several
     * pages. */
    enum cairn_status (*write)(struct code_slab *slab, size_t offset, const void *bytes,
                               size_t size, struct cairn_error *error);
};

/* Single mapping: makes copies of pages of code, and of the free ones among them, at the same
 * offset of the workshop (`slab->alias`); then moves these copies, which have been changed there,
 * over the pages. Only that is visible to running threads. If either fails, nothing has changed.
 * SYSTEM, UNSUPPORTED. */
enum cairn_status map_single_copy(struct code_slab *slab, size_t offset, size_t size,
                                  struct cairn_error *error);
enum cairn_status map_single_place(struct code_slab *slab, size_t offset, size_t size,
                                   struct cairn_error *error);

extern const struct code_map code_map_dual_file;
extern const struct code_map code_map_dual_shared;
extern const struct code_map code_map_single;

/* Makes profilers see the slab's code as anonymous memory, and be told when it appears: in dual
 * mapping, if the slab has no code yet. Does nothing otherwise: see space_hides. Errors: SYSTEM. */
enum cairn_status map_make_visible(struct code_slab *slab, struct cairn_error *error);

/* Unmaps the copy for a forked child, if there is one. */
void map_drop_copy(struct code_slab *slab);

/* Unmaps the source of a dual mapping, if there is one, and sets it to NULL. */
void map_close_source(struct code_slab *slab);

/* Unmaps the alias, except for its lost part, and sets it to NULL. */
void map_close_alias(struct code_slab *slab);

/* Sets the error for address space of `size` bytes that could not be reserved, with advice on what
 * to change. Returns SYSTEM. */
enum cairn_status map_cannot_reserve(size_t size, const char *purpose, int reason,
                                     struct cairn_error *error);

/* Returns UNSUPPORTED if mappings that this thread makes readable also become executable. */
enum cairn_status map_check_personality(struct cairn_error *error);

/* Stores bytes: an aligned word of 4 or 8 bytes with one atomic store, anything else not
 * atomically. */
void map_store(uint8_t *destination, const void *bytes, size_t size);

/* Copies code that may be patched at the same time: each aligned word of 8 bytes is read
 * atomically. `size` is a multiple of 8. */
void map_copy_words(uint8_t *destination, const uint8_t *source, size_t size);

#endif
