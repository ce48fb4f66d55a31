/*
 * cairn/module.h - loading code, and what was loaded.
 *
 * A loader collects what belongs to one finalisation: sections, stack maps, declarations.
 * Finishing it decodes the stack maps, arms the sites, protects the pages and gives a module,
 * which nobody else can see yet. Publishing makes it visible to lookups.
 *
 *     cairn_loader_create(runtime, "f", &loader, &error)
 *     cairn_loader_allocate_code(loader, …), …_data, …_stackmap     write to them
 *     cairn_loader_declare(loader, declarations, &error)
 *     cairn_loader_finish(loader, &module, &error)                  on success, loader is gone
 *     cairn_module_publish(module, &error)
 *     …
 *     cairn_module_retire(module)
 *     cairn_runtime_quiesce(runtime)                                module is gone, unless somebody
 *                                                                   has a share of it
 *
 * libcairn-llvm does all this for MCJIT.
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

/** A loader for one module. `name` is copied; NULL means "". One thread at a time may use it. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_create(cairn_runtime *runtime,
                                                                 const char *name,
                                                                 cairn_loader **loader,
                                                                 struct cairn_error *error);

/** Gives everything back. NULL is allowed. */
CAIRN_API void cairn_loader_abandon(cairn_loader *loader);

/**
 * Memory at the address at which it will be used, writable until cairn_loader_finish and then
 * executable, readable, or still writable. `alignment` is a power of two, up to a page. NULL on
 * failure (ARGUMENT, FULL, SYSTEM, MEMORY): the loader can then only be abandoned.
 */
CAIRN_API void *cairn_loader_allocate_code(cairn_loader *loader, size_t size, size_t alignment,
                                           struct cairn_error *error);
CAIRN_API void *cairn_loader_allocate_read_only_data(cairn_loader *loader, size_t size,
                                                     size_t alignment, struct cairn_error *error);
CAIRN_API void *cairn_loader_allocate_data(cairn_loader *loader, size_t size, size_t alignment,
                                           struct cairn_error *error);

/** Memory for a stack map section: read by cairn_loader_finish and then given back. Bytes behind
 *  the last map that were left zero are no error: LLVM's RuntimeDyld asks for more than a section
 *  has where its relocations might need stubs. Functions are named by their addresses in the
 *  loader's code; on PPC64 ELFv1, as LLVM does it, also by those of their descriptors, which then
 *  lie in data of the loader (`.opd`) and are complete when it finishes. */
CAIRN_API void *cairn_loader_allocate_stackmap(cairn_loader *loader, size_t size, size_t alignment,
                                               struct cairn_error *error);

/** Read-only data that holds an `.eh_frame` section: cairn_loader_finish reads from it where the
 *  module's functions begin and end, for cairn_runtime_find_function, and where their callers'
 *  registers are. Source: Linux Standard Base Core Specification, "Exception Frames". */
CAIRN_API void *cairn_loader_allocate_unwind_table(cairn_loader *loader, size_t size,
                                                   size_t alignment, struct cairn_error *error);

/** Memory for a fault map section (`.llvm_faultmaps`), whose addresses are in the loader's code:
 * read by cairn_loader_finish and then given back. Zeros behind the last map are no error, as
 * above. */
CAIRN_API void *cairn_loader_allocate_faultmap(cairn_loader *loader, size_t size, size_t alignment,
                                               struct cairn_error *error);

/** Read-only data for a PC section of that name, which is copied, whose entries are about the
 * loader's code. cairn_loader_finish reads it by the schema, zeros at its end being none, and makes
 * a table; the bytes stay with the module. A section that does not have the form of the schema
 * makes the finishing fail. `schema` NULL: nothing is read, and the host finds the bytes in the
 * module's table (cairn_pc_table_section). Names may come again. */
CAIRN_API void *cairn_loader_allocate_pcsection(cairn_loader *loader, const char *name,
                                                const struct cairn_pcsection_schema *schema,
                                                size_t size, size_t alignment,
                                                struct cairn_error *error);

/** Copies all of `declarations` into the loader's own. MEMORY, CONFLICT. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_declare(
    cairn_loader *loader, const cairn_declarations *declarations, struct cairn_error *error);

/**
 * Decodes the stack maps, fault maps and PC sections, arms the sites, protects the pages, and gives
 * the maps' memory back. On success the loader is gone. On failure it stays, with its memory, and
 * can only be abandoned: whoever still holds addresses in it chooses the moment. A site that cannot
 * be armed is no failure: it says why (cairn_site_describe). TRUNCATED, VERSION, CORRUPT, RANGE,
 * UNSUPPORTED, MEMORY, SYSTEM; STATE if an allocation of this loader has failed before.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_finish(cairn_loader *loader,
                                                                 cairn_module **module,
                                                                 struct cairn_error *error);

/** Makes the module visible to lookups. STATE if it is published or retired; MEMORY. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_module_publish(cairn_module *module,
                                                                  struct cairn_error *error);

/** Takes the module out of the lookups. Its memory is freed at the next quiescent point at which
 *  nobody has a share of it. NULL and a second call are allowed; an unpublished module may be
 *  retired. A module that an LLVM engine has loaded may be retired, too; the engine has a share of
 *  it, because LLVM has registered the module's unwind tables until the engine is disposed of. */
CAIRN_API void cairn_module_retire(cairn_module *module);

/** Takes a share of the module: its memory stays, whether it is retired or not, until as many calls
 *  of cairn_module_release have followed and then a quiescent point. Thread-safe. */
CAIRN_API void cairn_module_retain(cairn_module *module);

/** Gives one share up. The module may still be published. Thread-safe. NULL is allowed. */
CAIRN_API void cairn_module_release(cairn_module *module);

/** The name that it was loaded with; valid as long as the module. */
CAIRN_API const char *cairn_module_name(const cairn_module *module);
/** The module's records; never NULL (an empty table if it had no stack map). */
CAIRN_API const cairn_table *cairn_module_table(const cairn_module *module);
/** What the module's PC sections say; NULL, which all functions of cairn/pc_table.h take, if it has
 *  none that were captured. */
CAIRN_API const cairn_pc_table *cairn_module_pc_table(const cairn_module *module);
/** The module's fault maps; NULL, which all functions of cairn/fault_table.h take, if it has none.
 */
CAIRN_API const cairn_fault_table *cairn_module_fault_table(const cairn_module *module);
/** The runtime that the module was loaded into. */
CAIRN_API cairn_runtime *cairn_module_runtime(const cairn_module *module);

/** Ranges of memory that the module occupies: number `index`, false beyond the last. */
struct cairn_memory_range {
    uint64_t address;
    size_t size;
    bool executable;
    bool writable;
};
CAIRN_API bool cairn_module_memory_range(const cairn_module *module, uint32_t index,
                                         struct cairn_memory_range *range);

/** Sites of the module, by address. */
CAIRN_API uint32_t cairn_module_site_count(const cairn_module *module);
/** Site number `index`; NULL beyond the last. Valid as long as the module. */
CAIRN_API cairn_site *cairn_module_site(const cairn_module *module, uint32_t index);
/** The sites of a function of the module, which follow each other: returns how many they are, and
 *  in `*first` the number of the first one. */
CAIRN_API uint32_t cairn_module_function_sites(const cairn_module *module,
                                               struct cairn_function function, uint32_t *first);

/** The module that a record was loaded with; NULL for a record of a table that belongs to none. */
CAIRN_API cairn_module *cairn_record_module(struct cairn_record record);
/** The record's declaration, or NULL if there was none for its ID. */
CAIRN_API const struct cairn_declaration *cairn_record_declaration(struct cairn_record record);
/** The record's site: NULL for statepoints with no reserved bytes, undeclared records, and
 *  stack maps without shadow. */
CAIRN_API cairn_site *cairn_record_site(struct cairn_record record);

#ifdef __cplusplus
}
#endif
#endif
