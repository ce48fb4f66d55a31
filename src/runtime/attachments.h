/*
 * runtime/attachments.h - what ties a module to other modules and to the process.
 *
 *  - Modules whose definitions it uses. It has a reference to each, so that they are not freed
 *    before it. A module finds only modules that were published before it was finished, so there
 *    are no cycles.
 *  - Its constructors and destructors. Between running them it has a reference to itself.
 *  - The functions that its code has registered with __cxa_atexit for its __dso_handle. They are
 *    called before it is freed, because the process would call them when it exits.
 *  - Its unwind tables that are registered with the process's unwinder.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_ATTACHMENTS_H
#define RUNTIME_ATTACHMENTS_H

#include "base/memory.h"
#include "runtime/runtime.h"

#include <cairn/status.h>
#include <stdbool.h>

enum attachment {
    ATTACHED_MODULE,       /* a pointer */
    ATTACHED_CONSTRUCTOR,  /* what a function pointer holds; in the order of calls */
    ATTACHED_DESTRUCTOR,   /* likewise */
    ATTACHED_UNWIND_TABLE, /* an address */
    ATTACHMENT_KINDS
};

/* ---- While a module is loaded ---- */

struct attachment_list {
    uint64_t dso_handle; /* 0: it is not used */
    struct {
        uint64_t *items;
        size_t count;
        size_t capacity;
    } lists[ATTACHMENT_KINDS];
};

/* Adds an item. The list becomes the owner of a reference to a module, also on failure. Returns
 * false if memory runs out. */
bool attachment_list_add(struct attachment_list *list, const struct cairn_allocator *allocator,
                         enum attachment kind, uint64_t item);

/* Removes the references, and frees the list's memory. */
void attachment_list_release(struct attachment_list *list, const struct cairn_allocator *allocator);

/* ---- Of a module ---- */

enum constructor_state { CONSTRUCTORS_NOT_RUN, CONSTRUCTORS_RUN, DESTRUCTORS_RUN };

/* Invariant: `items` holds the items of each kind, in the order of the kinds. */
struct attachments {
    uint64_t dso_handle;
    enum constructor_state state; /* with the runtime's lock held */
    bool is_registered;           /* with the unwinder */
    uint32_t counts[ATTACHMENT_KINDS];
    uint64_t items[];
};

/* Moves the contents of a list, which is released, to `*attachments`: NULL if the list is empty.
 * Registers the unwind tables. On failure the list is unchanged. Errors: MEMORY, UNSUPPORTED. */
CAIRN_MUST_CHECK enum cairn_status attachments_create(struct attachment_list *list,
                                                      cairn_runtime *runtime,
                                                      struct attachments **attachments,
                                                      struct cairn_error *error);

size_t attachments_size_bytes(const struct attachments *attachments);

/* Removes the module from the process: calls what it has registered with __cxa_atexit, and
 * unregisters its unwind tables. Its memory and that of the modules that it uses must be valid.
 * Called without locks. */
void attachments_detach(struct attachments *attachments, cairn_runtime *runtime);

/* Removes the references to modules, unless the runtime is destroyed with all of them, and frees
 * the memory. */
void attachments_destroy(struct attachments *attachments, cairn_runtime *runtime);

/* Call the constructors, or what was registered with __cxa_atexit and then the destructors. */
void attachments_construct(const struct attachments *attachments);
void attachments_destruct(const struct attachments *attachments);

#endif
