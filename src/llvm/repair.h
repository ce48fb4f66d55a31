/*
 * llvm/repair.h - changes calls that LLVM would compile to wrong code, so that it compiles them as
 * written.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_REPAIR_H
#define LLVM_REPAIR_H

#include "llvm/site_call.h"

/* Changes the call, or inserts an instruction before it. Repairing a call again has no effect. It
 * must be done after all passes over the IR, because they may remove what it adds. */
void repair_call(const struct site_call *call);

/* Does so with what makes no record, or a record that the C API of the LLVM in use does not tell.
 * */
void repair_module(LLVMModuleRef module);

#endif
