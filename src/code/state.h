/*
 * code/state.h - a space from inside.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_STATE_H
#define CODE_STATE_H

#include "code/map.h"
#include "code/slab.h"
#include "code/space.h"

#include <pthread.h>
#include <sys/types.h>

enum { SPACE_REASON_BYTES = 5 * CAIRN_ERROR_MESSAGE_SIZE };

/* All slabs by address. Immutable once published; older ones are kept until the space goes,
 * because a lookup may still be reading them. */
struct slab_table {
    struct slab_table *older;
    size_t count;
    struct code_slab_lookup slabs[];
};

struct code_space {
    struct code_lookup lookup; /* first: the inline lookups read it */
    _Atomic(struct slab_table *) slab_table;

    struct cairn_allocator allocator;
    const struct cairn_arch *arch;
    const struct code_map *map;
    size_t page_size;
    size_t slab_size;
    uint32_t slab_limit;
    char reason[SPACE_REASON_BYTES];

    /* Membarrier with SYNC_CORE is registered. */
    bool has_barrier;

    /* The stage: in a page that fork wipes; where fork cannot, that of `process`. */
    _Atomic uint32_t *own_mark;
    _Atomic uint32_t stage;
    pid_t process;

    /* With the lock over all spaces held, and before the first fork that matters. */
    struct code_space *next_space;
    const struct code_fork_client *fork_client; /* NULL: there is none */
    void *fork_user;
    /* Over making a forked child's code its own; taken before the client's locks and `lock`. */
    pthread_mutex_t after_fork_lock;

    _Atomic uint32_t undone;
    _Atomic uint32_t sequence;

    /* All that there are, newest first; they are as long-lived as the space. */
    _Atomic(struct code_stub_chunk *) stub_chunks;

    /* Over all below, the slabs' page states and chunks, and replaced pages in Single mode. */
    pthread_mutex_t lock;
    struct code_slab *slabs; /* newest first */
    uint32_t slab_count;
};

/* Takes the lock, to look at what it protects. */
void space_lock(struct code_space *space);
/* The same to change it, for which the pages are made this process's own. SYSTEM: the lock is not
 * taken. */
enum cairn_status space_enter(struct code_space *space, struct cairn_error *error);
void space_leave(struct code_space *space);

/* A slab for a block that is about to allocate `page_count` pages; the block is counted as open in
 * it. Under the lock. */
enum cairn_status space_choose_slab(struct code_space *space, size_t page_count,
                                    struct code_slab **slab, struct cairn_error *error);

/* Shows a slab to lookups. Under the lock, or before anybody knows the space. */
enum cairn_status space_publish_slab(struct code_space *space, const struct code_slab *slab,
                                     struct cairn_error *error);

/* Where the block's pages are; NULL until its first allocation. */
struct code_slab *code_block_slab(const struct code_block *block);

/* Executes what it wrote through the slab's map, changes it, executes it again. UNSUPPORTED where
 * old code is executed; SYSTEM. */
enum cairn_status self_test_run(struct code_slab *slab, const struct cairn_arch *arch,
                                struct cairn_error *error);

/* The mark that fork wipes. */
enum cairn_status ownership_create(struct code_space *space, struct cairn_error *error);
void ownership_destroy(struct code_space *space);

void space_create_locks(struct code_space *space);
void space_destroy_locks(struct code_space *space);

/* From the first to the second, children get a copy of the space. */
void space_watch_forks(struct code_space *space);
void space_ignore_forks(struct code_space *space);

/* True if SYNC_CORE barriers can be had from now on. */
bool barrier_register(void);

#endif
