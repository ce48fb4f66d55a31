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

/* Removes all IDs except the first `count` that were added. An ID that has become undeclared stays
 * undeclared. */
CAIRN_API void cairn_declarations_truncate(cairn_declarations *declarations, size_t count);

/* Returns the number of different IDs that were added, including undeclared ones. */
CAIRN_API size_t cairn_declarations_count(const cairn_declarations *declarations);

/* Returns declaration number `index`, in the order in which IDs were added; NULL if there are no
 * more. An undeclared ID has a declaration of kind CAIRN_RECORD_UNDECLARED. */
CAIRN_API const struct cairn_declaration *cairn_declarations_at(
    const cairn_declarations *declarations, size_t index);

/* ---- Runtimes and modules ---- */

/* Returns the allocator of the runtime: that of its options, or one that uses malloc. */
CAIRN_API const struct cairn_allocator *cairn_runtime_allocator(const cairn_runtime *runtime);

/* Finds a definition in the published modules, as a module with this scope sees them. Returns what
 * cairn_module_find_symbol returns. Takes O(1) time, and longer if many scopes define the name. */
CAIRN_API void *cairn_runtime_find_symbol(cairn_runtime *runtime, const void *scope,
                                          const char *name);

/* Returns the module's number: above 0, and of no other module of the runtime, not even after the
 * module was freed. So what is known about a module can be kept without a reference to it. */
CAIRN_API uint64_t cairn_module_number(const cairn_module *module);

#endif
