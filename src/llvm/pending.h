/*
 * llvm/pending.h - declarations of modules that a memory manager has not loaded yet.
 *
 * A memory manager is given sections, and not told of which module they are. So each declared
 * module gets a variable in a section of its own name, whose bytes say which module it is.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_PENDING_H
#define LLVM_PENDING_H

#include <cairn/llvm.h>
#include <llvm-c/Core.h>

struct pending;

struct pending_list {
    struct cairn_allocator allocator;
    enum cairn_id_conflicts id_conflicts;
    uint64_t next_id; /* of those that conflicting calls get */
    struct pending *first;
    uint64_t last_number;
};

/* An empty list. `allocator` NULL means malloc. */
void pending_init(struct pending_list *list, const struct cairn_allocator *allocator,
                  enum cairn_id_conflicts id_conflicts);

/* Scans a module, and does with IDs of two shapes what was chosen. Nothing is added to the list. On
 * failure what `declarations` has is unspecified. As cairn_memory_manager_declare. */
enum cairn_status pending_scan(struct pending_list *list, LLVMModuleRef module,
                               cairn_declarations *declarations, struct cairn_error *error);

/* Scans the module, and adds a marker to it if it declares anything. On failure nothing is pending,
 * and the module has no marker; calls may have new IDs. As cairn_memory_manager_declare. */
enum cairn_status pending_add(struct pending_list *list, LLVMModuleRef module,
                              struct cairn_error *error);

/* Whether a section of that name holds markers. */
bool pending_is_marker(const char *section_name);

/* Reads a section of markers: the modules that it names have been loaded. */
void pending_note_loaded(struct pending_list *list, const void *section, size_t size);

/* Tells the loader of the declarations of what has been loaded. MEMORY, CONFLICT. */
enum cairn_status pending_declare_loaded(const struct pending_list *list, cairn_loader *loader,
                                         struct cairn_error *error);

/* Removes what has been loaded. */
void pending_drop_loaded(struct pending_list *list);

void pending_release(struct pending_list *list);

#endif
