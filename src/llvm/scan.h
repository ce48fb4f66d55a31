/*
 * llvm/scan.h - scans modules in which an ID has two shapes, and holds the declarations of modules
 * that a memory manager has not loaded yet.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SCAN_H
#define LLVM_SCAN_H

#include "base/adapter.h"

#include <cairn/llvm.h>

/* Adds the declaration. If its ID has another shape in the set, and `undeclares` is set, makes the
 * ID undeclared (cairn/declaration.h); otherwise that is a CONFLICT. */
enum cairn_status scan_declare(cairn_declarations *declarations,
                               const struct cairn_declaration *declaration, bool undeclares,
                               struct cairn_error *error);

/* Adds the declarations of a module (doc/llvm.md), and treats conflicts as scan_declare does.
 * After an error, IDs that were in the set before may have lost the results of their functions. */
enum cairn_status scan_module(LLVMModuleRef module, bool undeclares,
                              cairn_declarations *declarations, struct cairn_error *error);

/* Checks that no ID has different shapes in the two sets, which stay unchanged. `allocator` NULL
 * means malloc. Errors: CONFLICT, MEMORY. */
enum cairn_status scan_check_conflicts(const cairn_declarations *known,
                                       const cairn_declarations *added,
                                       const struct cairn_allocator *allocator,
                                       struct cairn_error *error);

/* The new IDs that were given: from `first`, up to `next`. Some of them may not have been given,
 * because calls had them as their own. */
struct scan_new_ids {
    uint64_t first;
    uint64_t next;
};

bool scan_is_new_id(const struct scan_new_ids *ids, uint64_t id);

/* Gives new IDs to the calls whose ID has two shapes, in the module or in the module and `known`,
 * or is one of `ids`; if `only_defaults` is set, only to those without an ID of their own, which
 * have LLVM's default ID. The new IDs are unique, and are added to `ids`. The module's declarations
 * are added to `known`. */
enum cairn_status scan_renumber_conflicts(LLVMModuleRef module, bool only_defaults,
                                          cairn_declarations *known, struct scan_new_ids *ids,
                                          struct cairn_error *error);

/* ---- Declarations of modules that are not loaded yet ---- */

/* A memory manager gets sections, without the modules that they belong to. So each module that is
 * declared to one gets a variable in a section with a special name, whose bytes identify the
 * module. Engines know their modules. */
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

/* Scans the module, and adds it to the list if it declares anything. If `marks` is set, a module
 * that was added gets a marker. On failure, the module is unchanged, except that its calls may have
 * new IDs. Errors: as cairn_memory_manager_declare. */
enum cairn_status pending_add(struct pending_list *list, LLVMModuleRef module, bool marks,
                              struct cairn_error *error);

/* Whether a section with this name holds markers. */
bool pending_is_marker(const char *section_name);

/* Reads a section of markers, and moves the modules that it names to `*taken`. */
void pending_take(struct pending_list *list, const void *section, size_t size,
                  struct pending **taken);

/* Passes the declarations of modules to a loader: of taken ones, or of all of a list. Errors:
 * MEMORY, CONFLICT. */
enum cairn_status pending_declare(const struct pending_list *list, const struct pending *first,
                                  cairn_loader *loader, struct cairn_error *error);

/* Frees modules: taken ones, or all of a list that is not used again. */
void pending_destroy(const struct pending_list *list, struct pending *first);

#endif
