/*
 * code/state.h - the private definition of a space.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_STATE_H
#define CODE_STATE_H

#include "base/grace.h"
#include "code/map.h"
#include "code/slab.h"
#include "code/watch.h"

#include <pthread.h>
#include <sys/types.h>

enum { SPACE_REASON_BYTES = 5 * CAIRN_ERROR_MESSAGE_SIZE };

/* All slabs, sorted by address. A published table does not change. Older tables are kept until the
 * space is destroyed, because a lookup may still be reading them. */
struct slab_table {
    struct slab_table *older;
    size_t count;
    struct code_slab_lookup slabs[];
};

struct code_space {
    struct code_lookup lookup; /* must be first: the inline lookups read it */
    _Atomic(struct slab_table *) slab_table;

    struct cairn_allocator allocator;
    const struct cairn_arch *arch;
    const struct code_map *map;
    size_t page_size;
    size_t slab_size;
    uint32_t slab_limit;
    int read_execute; /* protection of code */
    int write_key;    /* of the written views (code/write_key.h) */
    char reason[SPACE_REASON_BYTES];

    /* Whether the process is registered for membarrier with SYNC_CORE. If not, it is registered
     * when that is next needed. */
    _Atomic bool has_barrier;

    /* Whether profilers see new slabs as anonymous memory; with `lock` held. */
    bool is_visible;

    /* The stage (enum code_space_stage). `own_mark` is in a page that fork wipes. If the kernel
     * cannot wipe pages, `own_mark` is NULL and `stage` is valid only in `process`. */
    _Atomic uint32_t *own_mark;
    _Atomic uint32_t stage;
    pid_t process;

    /* These three change only with the lock over all spaces held, or before the first fork that
     * matters. */
    struct code_space *next_space;
    const struct code_fork_client *fork_client; /* NULL: no client */
    void *fork_user;

    struct grace grace;
    struct code_watchers watchers;

    /* Lock for all fields below, for the slabs' page states and parts, and for replacing pages in
     * single mapping. */
    pthread_mutex_t lock;
    struct code_slab *slabs; /* newest first */
    uint32_t slab_count;
    uint32_t stub_count; /* stubs that are not freed yet, and the bytes of their code */
    size_t stub_bytes;
};

/* Takes the lock to change the data that it protects. On SYSTEM (code_space_check_own), it is not
 * taken. */
enum cairn_status space_enter(struct code_space *space, struct cairn_error *error);
void space_leave(struct code_space *space);

/* Whether profilers see other slabs, and not this one, because it was in use when they were asked
 * for. New code does not go there if it can be avoided. */
bool space_hides(const struct code_space *space, const struct code_slab *slab);

/* Chooses a slab for a block that is about to allocate `page_count` pages. Called with the lock
 * held. */
enum cairn_status space_choose_slab(struct code_space *space, size_t page_count,
                                    struct code_slab **slab, struct cairn_error *error);

/* Returns the slab of the block's pages; NULL before its first allocation. */
struct code_slab *code_block_slab(const struct code_block *block);

/* Create and destroy the mark that fork wipes. */
enum cairn_status ownership_create(struct code_space *space, struct cairn_error *error);
void ownership_destroy(struct code_space *space);

void space_create_locks(struct code_space *space);
void space_destroy_locks(struct code_space *space);

/* Children that are forked between these two calls get a copy of the space. */
void space_watch_forks(struct code_space *space);
void space_ignore_forks(struct code_space *space);

/* Registers the process for SYNC_CORE barriers, if the system allows it. */
void barrier_register(struct code_space *space);

/* Makes sure that no core still holds old code at addresses at which new code was written, where
 * the system has such a barrier. */
enum cairn_status space_publish_code(struct code_space *space, struct cairn_error *error);

/* The same, once for all code that was released in the slab, before code that was written at its
 * addresses is executed. Called with the lock held. */
enum cairn_status space_forget_code(struct code_space *space, struct code_slab *slab,
                                    struct cairn_error *error);

#endif
