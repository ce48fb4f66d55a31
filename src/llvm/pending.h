/*
 * llvm/pending.h - holds the declarations of modules that a memory manager has not loaded yet.
 *
 * A memory manager gets sections, without the modules that they belong to. So each declared module
 * gets a variable in a section with a special name. Its bytes identify the module.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_PENDING_H
#define LLVM_PENDING_H

#include "llvm/scan.h"

#include <cairn/llvm.h>
#include <llvm-c/Core.h>

struct pending;

struct pending_list {
    struct cairn_allocator allocator;
    enum cairn_id_conflicts id_conflicts;
    struct scan_new_ids new_ids; /* of conflicting calls */
    struct pending *first;
    uint64_t last_number;
};

/* Initialises an empty list. `allocator` NULL means malloc. */
void pending_init(struct pending_list *list, const struct cairn_allocator *allocator,
                  enum cairn_id_conflicts id_conflicts);

/* Scans a module, and handles IDs with two shapes as `id_conflicts` says. The list's modules do not
 * change. On failure, the contents of `declarations` are unspecified. Errors: as
 * cairn_memory_manager_declare. */
enum cairn_status pending_scan(struct pending_list *list, LLVMModuleRef module,
                               cairn_declarations *declarations, struct cairn_error *error);

/* Scans the module, and adds a marker to it if it declares anything. On failure, the module is not
 * pending and has no marker, but its calls may have new IDs. Errors: as
 * cairn_memory_manager_declare. */
enum cairn_status pending_add(struct pending_list *list, LLVMModuleRef module,
                              struct cairn_error *error);

/* Whether a section with this name holds markers. */
bool pending_is_marker(const char *section_name);

/* Reads a section of markers, and notes that the modules that it names are loaded. */
void pending_note_loaded(struct pending_list *list, const void *section, size_t size);

/* Passes the declarations of the loaded modules to the loader. MEMORY, CONFLICT. */
enum cairn_status pending_declare_loaded(const struct pending_list *list, cairn_loader *loader,
                                         struct cairn_error *error);

/* Removes the loaded modules from the list. */
void pending_drop_loaded(struct pending_list *list);

void pending_release(struct pending_list *list);

#endif
