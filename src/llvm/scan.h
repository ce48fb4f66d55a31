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

/* The new IDs that were given: from `first`, up to `next`. Some of them may not have been given,
 * because calls had them as their own. */
struct scan_new_ids {
    uint64_t first;
    uint64_t next;
};

bool scan_is_new_id(const struct scan_new_ids *ids, uint64_t id);

/* Gives new IDs to the calls whose ID has two shapes, in the module or in the module and `known`,
 * or is one of `ids`. The new IDs are unique, and are added to `ids`. The module's declarations are
 * added to `known`. */
enum cairn_status scan_renumber_conflicts(LLVMModuleRef module, enum scan_renumbered which,
                                          cairn_declarations *known, struct scan_new_ids *ids,
                                          struct cairn_error *error);

#endif
