/*
 * runtime/loader.h - a loader, and what is added to it, in addition to cairn/module.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_LOADER_H
#define RUNTIME_LOADER_H

#include "base/adapter.h"
#include "record/module_symbols.h"
#include "runtime/attachments.h"
#include "runtime/runtime.h"

/* The objects that a loader has been given, until it links them. */
struct loader_objects;
struct bound_sites;
struct module_names;

/* What the objects add to the module, in addition to its memory. */
struct loader_linked {
    struct module_symbols *symbols;
    struct cairn_scope scope;
    struct attachment_list attached;
    bool has_no_memory; /* to keep a reference to a module */
    struct kept_object *kept;
    struct module_names *names;
    struct bound_sites *bound;
};

/* A section that is read when the loader finishes. */
struct loader_section {
    enum cairn_section_kind kind;
    size_t mapped_size; /* of a map in its own mapping: whole pages; otherwise 0 */
    struct cairn_pc_table_section contents; /* the name is a copy, or NULL */
};

struct cairn_loader {
    cairn_runtime *runtime;
    const char *name; /* in `module` */
    struct code_block *block;
    cairn_module *module;             /* in `block` */
    cairn_declarations *declarations; /* NULL before the first is added */
    struct loader_objects *objects;
    struct loader_linked linked;
    struct loader_section *sections;
    size_t section_count;
    size_t section_capacity;
    /* Whether an allocation or an object has failed, so that the loaded code is not complete. */
    bool incomplete;
    /* The highest level of vector registers that the code can hold, as far as it is known (0:
     * nothing is known); whether there is other code; and whether both were set once and for all.
     */
    uint32_t code_level;
    bool has_unknown_level;
    bool has_fixed_level;
};

/* Adds a declaration of the loader's records. Errors: those of cairn_declarations_add. */
CAIRN_MUST_CHECK enum cairn_status loader_add_declaration(
    cairn_loader *loader, const struct cairn_declaration *declaration, struct cairn_error *error);

/* Like cairn_loader_allocate, for a section whose size will not change, and which is written at
 * another address than that of its use (code_block_reserve). */
enum cairn_status loader_reserve(cairn_loader *loader, enum cairn_section_kind kind, size_t size,
                                 size_t alignment, const struct cairn_pc_table_section *pc_section,
                                 struct code_place *place, struct cairn_error *error);

/* Frees the sections that are outside the slab, and the list of all. */
void loader_free_sections(cairn_loader *loader);

/*
 * What the loaded code can hold in vector registers, as levels (arch_host_vector_level).
 * cairn_loader_finish tells the runtime the highest one.
 *
 * loader_note_level is for a part of the code, loader_note_unknown_level for a part of which
 * nothing is known. loader_set_level is for all of it, and other parts are then not counted: with
 * 0, for code that keeps nothing in such registers while an exit runs.
 */
void loader_note_level(cairn_loader *loader, uint32_t level);
void loader_note_unknown_level(cairn_loader *loader);
void loader_set_level(cairn_loader *loader, uint32_t level);

/* Links the loader's objects into its memory. Without objects, it does nothing. Errors: those of
 * object_link_finish. */
CAIRN_MUST_CHECK enum cairn_status loader_link_objects(cairn_loader *loader,
                                                       struct cairn_error *error);

/* Frees what a loader keeps of its objects. NULL is allowed. */
void loader_objects_destroy(const struct cairn_allocator *allocator,
                            struct loader_objects *objects);

#endif
