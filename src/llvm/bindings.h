/*
 * llvm/bindings.h - what a module's sites are bound to: inline caches and assumptions.
 *
 * A binding is for an ID, because LLVM copies patch points with their IDs. It is kept in named
 * metadata of the module, `!cairn.bindings`, which passes keep, and which follows the module when
 * it is linked into another one. It holds addresses of this process, or IDs of names.
 *
 * Engines read the metadata when they have compiled the module. Memory managers and ORC only see
 * its object, to which the bindings are added before, in a section of this name, with a key that
 * only the same memory manager or connection knows. So an object of another process is refused.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_BINDINGS_H
#define LLVM_BINDINGS_H

#include "base/memory.h"
#include "format/bound_sites.h"

#include <cairn/assumption.h>
#include <cairn/ic.h>
#include <cairn/llvm.h>

/* Adds a binding of the patch point's ID to a cache, or to assumptions and the target at which
 * threads leave when one of them is broken. Errors: MEMORY. */
void bindings_add_cache(LLVMValueRef function, uint64_t id, const struct cairn_ic_options *options);
CAIRN_MUST_CHECK enum cairn_status bindings_add_assumptions(LLVMValueRef function, uint64_t id,
                                                            const void *target,
                                                            cairn_assumption *const *assumptions,
                                                            uint32_t count,
                                                            struct cairn_error *error);

/* Adds a binding of the patch point's ID to what names stand for: `count` names, whose meaning
 * depends on the kind (format/bound_sites.h). Errors: those of name_add; MEMORY. */
CAIRN_MUST_CHECK enum cairn_status bindings_add_named(LLVMValueRef function, uint64_t id,
                                                      enum bound_site_kind kind,
                                                      const struct cairn_name *const *names,
                                                      size_t count, struct cairn_error *error);

/* Checks that no site of the module with this ID is bound, because its ID is about to change. Takes
 * O(bindings) time. Errors: CONFLICT. */
CAIRN_MUST_CHECK enum cairn_status bindings_check_free(LLVMModuleRef module, uint64_t id,
                                                       struct cairn_error *error);

/* Refuses a module with bindings to addresses, because its object will be kept. Errors:
 * UNSUPPORTED, CORRUPT (metadata of another form), MEMORY. */
CAIRN_MUST_CHECK enum cairn_status bindings_refuse(LLVMModuleRef module, struct cairn_error *error);

/* Removes the patch points of guards that rely on the assumption alone. Takes O(instructions × log
 * bindings) time. Errors: ARGUMENT (a guard relies on others, too), CORRUPT, MEMORY. */
CAIRN_MUST_CHECK enum cairn_status bindings_drop_guards(LLVMModuleRef module,
                                                        const cairn_assumption *assumption,
                                                        struct cairn_error *error);

/* Adds the module's bindings to names to its object; its loader applies them. Errors: as
 * bindings_embed. */
CAIRN_MUST_CHECK enum cairn_status bindings_embed_named(LLVMModuleRef module,
                                                        struct cairn_error *error);

#define BINDINGS_SECTION ".cairn.bindings"

/* Adds the module's bindings to its object. Errors: CORRUPT, MEMORY, UNSUPPORTED (an object that is
 * not ELF). */
CAIRN_MUST_CHECK enum cairn_status bindings_embed(LLVMModuleRef module, uint64_t key,
                                                  struct cairn_error *error);

/* A section that was loaded. */
struct bindings_section {
    struct bindings_section *next;
    size_t size;
    uint64_t words[];
};

/* Binds all sites of a module like bindings_apply, by sections of its objects. Errors also:
 * UNSUPPORTED (bindings with another key alone). */
CAIRN_MUST_CHECK enum cairn_status bindings_apply_sections(const struct bindings_section *first,
                                                           uint64_t key, const cairn_module *module,
                                                           const struct cairn_allocator *allocator,
                                                           struct cairn_error *error);

/* Binds all sites of a loaded module, which was made of these LLVM modules and is not published
 * yet. After an error, some of its sites are bound. Takes O(records × log bindings) time. Errors:
 * CONFLICT (two bindings of an ID), CORRUPT, NOT_FOUND (a record without a site), MEMORY, and those
 * of cairn_ic_create and cairn_assumption_add. */
CAIRN_MUST_CHECK enum cairn_status bindings_apply(LLVMModuleRef *modules, size_t count,
                                                  const cairn_module *module,
                                                  const struct cairn_allocator *allocator,
                                                  struct cairn_error *error);

#endif
