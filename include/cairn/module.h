/*
 * cairn/module.h - loading code, and the modules that it becomes.
 *
 * A loader collects the sections of one module: code, data, stack maps, and so on. Finishing it
 * creates a module, which lookups do not find until it is published.
 *
 *     cairn_loader_create(runtime, "f", &loader, &error)
 *     cairn_loader_allocate(loader, CAIRN_SECTION_CODE, size, 16, NULL, &error)       write to it
 *     cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, size, 8, NULL, &error)    write to it
 *     cairn_loader_declare(loader, declarations, &error)
 *     cairn_loader_finish(loader, &module, &error)          frees the loader on success
 *     cairn_module_publish(module, &error)
 *     ...
 *     cairn_module_retire(module)
 *     cairn_runtime_quiesce(runtime)                        frees modules without references
 *
 * libcairn-llvm does all of this for LLVM's MCJIT.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_MODULE_H
#define CAIRN_MODULE_H

#include <cairn/declaration.h>
#include <cairn/fault_table.h>
#include <cairn/pc_table.h>
#include <cairn/status.h>
#include <cairn/table.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_runtime cairn_runtime;
typedef struct cairn_loader cairn_loader;
typedef struct cairn_module cairn_module;
typedef struct cairn_site cairn_site;

/* ---- Loading ---- */

/** Creates a loader for one module. `name` is copied; NULL means "". The caller owns `*loader`,
 *  which one thread at a time may use. Errors: ARGUMENT, MEMORY, SYSTEM. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_create(cairn_runtime *runtime,
                                                                 const char *name,
                                                                 cairn_loader **loader,
                                                                 struct cairn_error *error);

/** Frees a loader that was not finished, with its memory. NULL is allowed. */
CAIRN_API void cairn_loader_destroy(cairn_loader *loader);

/** What a section holds, and how cairn_loader_finish uses it. */
enum cairn_section_kind {
    /** Code, executable when the loader has finished. */
    CAIRN_SECTION_CODE = 0,
    /** Data, which stays writable. */
    CAIRN_SECTION_DATA = 1,
    /** Data, read-only when the loader has finished. */
    CAIRN_SECTION_READ_ONLY_DATA = 2,
    /** A section `.llvm_stackmaps`, which is read and then freed. It names functions by their
     *  addresses in the loader's code; on PPC64 ELFv1, as LLVM writes it, also by the addresses of
     *  their descriptors, which are in the loader's data (`.opd`). */
    CAIRN_SECTION_STACKMAP = 3,
    /** A section `.llvm_faultmaps` with addresses in the loader's code, which is read and then
     *  freed. */
    CAIRN_SECTION_FAULTMAP = 4,
    /** A section `.eh_frame`: read-only data, from which the start and end of the module's
     * functions are read, and the rules by which their callers' registers are found. Source: Linux
     * Standard Base Core Specification, "Exception Frames". */
    CAIRN_SECTION_UNWIND_TABLE = 5,
    /** A PC section: read-only data with entries about the loader's code. The bytes stay with the
     *  module. If the section has a schema, its entries become part of the module's table of PC
     *  sections, and bytes that do not have the form of the schema make cairn_loader_finish fail.
     */
    CAIRN_SECTION_PC_SECTION = 6,
    /** A section `.cairn.manifest` (cairn/load.h, MANIFESTS), from which declarations are read and
     *  which is then freed. The PC sections that it names are not looked for. */
    CAIRN_SECTION_MANIFEST = 7
};

/**
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

/** Copies all of `declarations` into the loader's own set. Errors: MEMORY, CONFLICT. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_declare(
    cairn_loader *loader, const cairn_declarations *declarations, struct cairn_error *error);

/**
 * Links the loader's objects (cairn/load.h), decodes the sections, arms the sites, protects the
 * code, and creates the module. Reads each section once: n records with d declarations take O(n +
 * d) time.
 *
 * On success the loader is freed. On failure it remains, with its memory, and can only be
 * destroyed: the host chooses when, because it may still hold addresses in it. A site that cannot
 * be armed is not an error; cairn_site_describe returns the reason.
 *
 * Errors: TRUNCATED, VERSION, CORRUPT, RANGE, UNSUPPORTED, FULL, MEMORY, SYSTEM; NOT_FOUND (see
 * cairn/load.h); STATE if an allocation or an object of this loader has failed.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_finish(cairn_loader *loader,
                                                                 cairn_module **module,
                                                                 struct cairn_error *error);

/* ---- The life of a module. All functions are thread-safe. ---- */

/** Makes the module visible to lookups. Errors: STATE if it is published or retired; MEMORY,
 *  SYSTEM. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_module_publish(cairn_module *module,
                                                                  struct cairn_error *error);

/** Removes the module from the lookups of cairn/runtime.h. Threads that are in its code continue;
 *  their frames are found as before. To make them leave, or to let no further call in, see
 *  cairn/invalidation.h. The module is freed at the end of a grace period that began after
 *  that (cairn_runtime_grace_start), if it has no references then; otherwise, of one that began
 *  after the last reference was removed. NULL, a second call, and a module that was not published
 *  are allowed. So is a module of a memory manager (cairn/llvm.h), which keeps a reference to it
 *  until MCJIT's engine is destroyed, because LLVM has registered the module's unwind tables. */
CAIRN_API void cairn_module_retire(cairn_module *module);

/** Adds a reference to the module. Even a retired module is not freed while it has references. */
CAIRN_API void cairn_module_retain(cairn_module *module);

/** Removes a reference that cairn_module_retain added. NULL is allowed. The module is not freed
 *  before the end of a grace period. */
CAIRN_API void cairn_module_release(cairn_module *module);

/* ---- Contents of a module. All functions are lock-free and async-signal-safe; what they return is
 * valid as long as the module. ---- */

/** Returns the name of the module's loader. */
CAIRN_API const char *cairn_module_name(const cairn_module *module);

/** Returns the module's records: an empty table, not NULL, if it has no stack map. */
CAIRN_API const cairn_table *cairn_module_table(const cairn_module *module);

/** Return the entries of the module's PC sections, and its fault maps. Return NULL for a module
 *  without them, and for NULL. All functions of these tables treat NULL as an empty table:
 *  `cairn_pc_table_find(cairn_module_pc_table(cairn_runtime_find_module(runtime, pc)), pc, ...)`.
 */
CAIRN_API const cairn_pc_table *cairn_module_pc_table(const cairn_module *module);
CAIRN_API const cairn_fault_table *cairn_module_fault_table(const cairn_module *module);

/** A range of the memory that a module occupies. */
struct cairn_memory_range {
    uint64_t address;
    size_t size; /**< in bytes */
    bool executable;
    bool writable;
};

/** Sets `*range` to range number `index`; false if there are no more. */
CAIRN_API bool cairn_module_memory_range(const cairn_module *module, uint32_t index,
                                         struct cairn_memory_range *range);

/** Returns site number `index`, in order of address; NULL if there are no more. */
CAIRN_API cairn_site *cairn_module_site(const cairn_module *module, uint32_t index);

/** Returns the declaration of a record, in O(1) time; NULL if its ID was not declared. */
CAIRN_API const struct cairn_declaration *cairn_record_declaration(struct cairn_record record);

/** Returns the site of a record, in O(1) time; NULL for undeclared records, for stack maps without
 *  shadow bytes, and for statepoints without reserved bytes. */
CAIRN_API cairn_site *cairn_record_site(struct cairn_record record);

#ifdef __cplusplus
}
#endif
#endif
