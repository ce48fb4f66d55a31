/*
 * llvm/scan.h - scans modules in which an ID has two shapes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SCAN_H
#define LLVM_SCAN_H

#include <cairn/llvm.h>

/* Does the same as cairn_scan_module, but leaves IDs with two shapes undeclared
 * (cairn/declaration.h). */
enum cairn_status scan_leaving_conflicts_undeclared(LLVMModuleRef module,
                                                    cairn_declarations *declarations,
                                                    struct cairn_error *error);

/* The calls that may get a new ID. */
enum scan_renumbered {
    SCAN_RENUMBERED_DEFAULTS, /* calls without an ID of their own, which get LLVM's default ID */
    SCAN_RENUMBERED_ALL
};

/* Gives new IDs to the calls whose ID has two shapes, in the module or in the module and `known`.
 * The new IDs are unique and begin at `*next_id`. The module's declarations are added to
 * `known`. */
enum cairn_status scan_renumber_conflicts(LLVMModuleRef module, enum scan_renumbered which,
                                          cairn_declarations *known, uint64_t *next_id,
                                          struct cairn_error *error);

#endif
