/*
 * llvm/scan.h - scanning modules in which one ID has two shapes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SCAN_H
#define LLVM_SCAN_H

#include <cairn/llvm.h>

/* As cairn_scan_module, but IDs with two shapes are left undeclared (cairn/declaration.h). */
enum cairn_status scan_leaving_conflicts_undeclared(LLVMModuleRef module,
                                                    cairn_declarations *declarations,
                                                    struct cairn_error *error);

/* Which calls may get another ID. */
enum scan_renumbered {
    SCAN_RENUMBERED_DEFAULTS, /* those whose ID is LLVM's default, for want of another */
    SCAN_RENUMBERED_ALL
};

/* Gives IDs of their own, from `*next_id` on, to the calls whose ID has two shapes in the module,
 * or in the module and in `known`, to which the module's declarations are added. */
enum cairn_status scan_renumber_conflicts(LLVMModuleRef module, enum scan_renumbered which,
                                          cairn_declarations *known, uint64_t *next_id,
                                          struct cairn_error *error);

#endif
