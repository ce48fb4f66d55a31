/*
 * cairn/module.h - loading code, and the modules that it becomes.
 *
 * A loader collects the objects of one module (cairn/load.h). Finishing it creates the module,
 * which lookups do not find until it is published.
 *
 *     cairn_loader_create(runtime, "f", &loader, &error)
 *     cairn_loader_add_object(loader, bytes, size, NULL, &error)
 *     cairn_loader_finish(loader, &module, &error)          frees the loader on success
 *     cairn_module_publish(module, &error)
 *     ...
 *     cairn_module_retire(module)
 *     cairn_runtime_quiesce(runtime)                        frees modules without references
 *
 * libcairn-llvm does all of this for LLVM's modules.
 *
 * Threads: a loader must be used by one thread at a time. Functions of modules are thread-safe.
 * Signal handlers may only read the contents of modules.
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

/* ---- Loading ----
 *
 * Threads: a loader must be used by one thread at a time. Signal handlers must not call this. */

/** Creates a loader for one module. `name` is copied; NULL means "". The caller owns `*loader`.
 *  Errors: ARGUMENT, MEMORY, SYSTEM. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_create(cairn_runtime *runtime,
                                                                 const char *name,
                                                                 cairn_loader **loader,
                                                                 struct cairn_error *error);

/** Frees a loader that was not finished, with its memory. NULL is allowed. */
CAIRN_API void cairn_loader_destroy(cairn_loader *loader);

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
 * cairn_loader_add_object); STATE if an allocation or an object of this loader has failed.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_finish(cairn_loader *loader,
                                                                 cairn_module **module,
                                                                 struct cairn_error *error);

/* ---- The life of a module ----
 *
 * Threads: thread-safe, but signal handlers must not call this: it takes a lock. */

/** Makes the module visible to lookups. Errors: STATE if it is published or retired; MEMORY,
 *  SYSTEM. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_module_publish(cairn_module *module,
                                                                  struct cairn_error *error);

/** Removes the module from the lookups of cairn/runtime.h. Threads that are in its code continue,
 *  and their frames are found. To make them leave, or to let no further call in, see
 *  cairn/invalidation.h. The module is freed when a grace period ends that started after both this
 *  call and the last cairn_module_release (cairn_runtime_grace_start), or by
 *  cairn_runtime_free_unused. NULL, a second call, and a module that was not published are allowed.
 *  So is a module of a memory manager (cairn/llvm.h), which keeps a reference to it until MCJIT's
 *  engine is destroyed, because LLVM has registered the module's unwind tables. */
CAIRN_API void cairn_module_retire(cairn_module *module);

/** Adds a reference to the module. Even a retired module is not freed while it has references. */
CAIRN_API void cairn_module_retain(cairn_module *module);

/** Removes a reference that cairn_module_retain added. NULL is allowed. The module is not freed
 *  before the end of a grace period. */
CAIRN_API void cairn_module_release(cairn_module *module);

/* ---- Contents of a module ----
 *
 * The result is valid as long as the module.
 *
 * Threads: thread-safe, lock-free and async-signal-safe. */

/** Returns the name of the module's loader. */
CAIRN_API const char *cairn_module_name(const cairn_module *module);

/** Returns the module's records: an empty table, not NULL, if it has no stack map. */
CAIRN_API const cairn_table *cairn_module_table(const cairn_module *module);

/** Returns the entries of the module's PC sections; NULL, an empty table, for a module without
 *  them, and for NULL: the module that is found for a PC need not be tested. */
CAIRN_API const cairn_pc_table *cairn_module_pc_table(const cairn_module *module);

/** Returns the module's fault maps; NULL, an empty table, for a module without them, and for NULL.
 */
CAIRN_API const cairn_fault_table *cairn_module_fault_table(const cairn_module *module);

/** Returns site number `index`, in order of address; NULL after the last one. */
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
