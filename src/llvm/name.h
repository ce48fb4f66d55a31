/*
 * llvm/name.h - names (symbolic constants) in a module.
 *
 * A name is a global of the module, which is an entry of the section `.cairn.names`
 * (format/names.h). It is weak and hidden: passes keep it, and LLVM makes equal names one when it
 * links modules. It is constant and initialised elsewhere: LLVM does not know its value, and may
 * move loads of it anywhere.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_NAME_H
#define LLVM_NAME_H

#include <cairn/load.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>

/* Adds a name, unless the module has it already. Errors: ARGUMENT, CONFLICT (another name has the
 * same ID), UNSUPPORTED (an object format other than ELF). */
CAIRN_MUST_CHECK enum cairn_status name_add(LLVMModuleRef module, const struct cairn_name *name,
                                            struct cairn_error *error);

/* Whether a global of the module is a name. */
bool name_is_global(LLVMValueRef global);

/* Whether the value is a name that cairn_build_name has loaded; then sets its ID. */
bool name_of_value(LLVMValueRef value, uint64_t *id);

#endif
