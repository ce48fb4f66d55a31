/*
 * base/adapter.h - what libcairn exports for libcairn-llvm alone.
 *
 * Both libraries are built and released together. These functions are no part of the interface for
 * hosts: they have a version node of their own (CAIRN_PRIVATE), and may change with each release.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_ADAPTER_H
#define BASE_ADAPTER_H

#include <cairn/declaration.h>
#include <cairn/module.h>
#include <cairn/runtime.h>

/* ---- Declarations ---- */

/* A set of declarations, with one for each ID. Not thread-safe while declarations are added;
 *  otherwise any number of threads may query it. */
typedef struct cairn_declarations cairn_declarations;

/* Creates an empty set. `allocator` NULL means malloc. The caller owns `*declarations`. Errors:
 *  MEMORY, ARGUMENT. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_declarations_create(
    const struct cairn_allocator *allocator, cairn_declarations **declarations,
    struct cairn_error *error);

/* Frees a set, which may be NULL, and its declarations. */
CAIRN_API void cairn_declarations_destroy(cairn_declarations *declarations);

/*
 * Copies `declaration`, its types and its function's name into the set.
 *
 * An ID may be added several times, because inlining and unrolling duplicate calls, if everything
 * except the function is the same. If the functions return different types, their results become
 * unknown. If anything else differs, the error is CONFLICT, the message names both functions and
 * the difference, and the set is unchanged.
 *
 * A declaration of kind CAIRN_RECORD_UNDECLARED means that the records with the ID have different
 * or unknown shapes. The ID then has no declaration, whatever was added or will be added for it.
 *
 * Errors: MEMORY, ARGUMENT, CONFLICT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_declarations_add(
    cairn_declarations *declarations, const struct cairn_declaration *declaration,
    struct cairn_error *error);

/* Returns the declaration of an ID, valid as long as the set; NULL if the ID has none or is
 *  undeclared. Takes expected O(1) time. */
CAIRN_API const struct cairn_declaration *cairn_declarations_find(
    const cairn_declarations *declarations, uint64_t id);

/* Removes all IDs except the first `count` that were added. An ID that has become undeclared stays
 * undeclared. */
CAIRN_API void cairn_declarations_truncate(cairn_declarations *declarations, size_t count);

/* Returns the number of different IDs that were added, including undeclared ones. */
CAIRN_API size_t cairn_declarations_count(const cairn_declarations *declarations);

/* Returns declaration number `index`, in the order in which IDs were added; NULL if there are no
 * more. An undeclared ID has a declaration of kind CAIRN_RECORD_UNDECLARED. */
CAIRN_API const struct cairn_declaration *cairn_declarations_at(
    const cairn_declarations *declarations, size_t index);

/* ---- The sections of a module ---- */

/* What a section holds, and how cairn_loader_finish uses it. */
enum cairn_section_kind {
    /* Code, executable when the loader has finished. */
    CAIRN_SECTION_CODE = 0,
    /* Data, which stays writable. */
    CAIRN_SECTION_DATA = 1,
    /* Data, read-only when the loader has finished. */
    CAIRN_SECTION_READ_ONLY_DATA = 2,
    /* A section `.llvm_stackmaps`, which is read and then freed. It names functions by their
     *  addresses in the loader's code; on PPC64 ELFv1, as LLVM writes it, also by the addresses of
     *  their descriptors, which are in the loader's data (`.opd`). */
    CAIRN_SECTION_STACKMAP = 3,
    /* A section `.llvm_faultmaps` with addresses in the loader's code, which is read and then
     *  freed. */
    CAIRN_SECTION_FAULTMAP = 4,
    /* A section `.eh_frame`: read-only data, from which the start and end of the module's
     * functions are read, and the rules by which their callers' registers are found. Source: Linux
     * Standard Base Core Specification, "Exception Frames". */
    CAIRN_SECTION_UNWIND_TABLE = 5,
    /* A PC section: read-only data with entries about the loader's code. The bytes stay with the
     *  module. If the section has a schema, its entries become part of the module's table of PC
     *  sections, and bytes that do not have the form of the schema make cairn_loader_finish fail.
     */
    CAIRN_SECTION_PC_SECTION = 6,
    /* A section `.cairn.manifest` (doc/architecture.md), from which declarations are read and
     *  which is then freed. The PC sections that it names are not looked for. */
    CAIRN_SECTION_MANIFEST = 7
};

/*
 * Allocates memory for a section and returns its address, which is the one at which code and data
 * are used. It is writable until cairn_loader_finish, and valid as long as the loader or its
 * module. `alignment` is in bytes, a power of two up to the size of a page.
 *
 * `pc_section` is the name, which is copied, and the schema of a PC section (cairn/pc_table.h); its
 * other members are ignored. Several sections may have the same name. It may be NULL for the other
 * kinds.
 *
 * Zeros after the last map of a stack map or fault map section, and after the last entry of a PC
 * section, are ignored: LLVM's RuntimeDyld requests more memory than a section has where its
 * relocations might need stubs.
 *
 * Returns NULL on failure; the loader can then only be destroyed. Errors: ARGUMENT, FULL, SYSTEM,
 * MEMORY.
 */
CAIRN_API void *cairn_loader_allocate(cairn_loader *loader, enum cairn_section_kind kind,
                                      size_t size, size_t alignment,
                                      const struct cairn_pc_table_section *pc_section,
                                      struct cairn_error *error);

/* Copies all of `declarations` into the loader's own set. Errors: MEMORY, CONFLICT. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_declare(
    cairn_loader *loader, const cairn_declarations *declarations, struct cairn_error *error);

/* ---- Runtimes and modules ---- */

/* Adds a reference to the runtime, which cairn_runtime_destroy removes. */
CAIRN_API void cairn_runtime_retain(cairn_runtime *runtime);

/* Returns the allocator of the runtime: that of its options, or one that uses malloc. */
CAIRN_API const struct cairn_allocator *cairn_runtime_allocator(const cairn_runtime *runtime);

/* Modules with the same `key` find each other's definitions first, and no other modules find them.
 * `modules` is the list of those that are not retired, which needs the runtime's lock; NULL: there
 * is no list. */
struct cairn_scope {
    const void *key;
    cairn_module **modules;
};

/* Sets the scope of what the loader loads. Without one, all modules find its definitions. The list
 * must remain valid while it is not empty. */
CAIRN_API void cairn_loader_set_scope(cairn_loader *loader, struct cairn_scope scope);

/* Retires all modules of a scope's list. Takes time in proportion to their number. */
CAIRN_API void cairn_runtime_retire_list(cairn_runtime *runtime, cairn_module **modules);

/* Finds a definition in the published modules, as a module of the scope with this key finds it.
 * Returns what cairn_module_find_symbol returns. Takes O(1) time, and longer if many scopes define
 * the name. */
CAIRN_API void *cairn_runtime_find_symbol(cairn_runtime *runtime, const void *key,
                                          const char *name);

#endif
