/*
 * llvm/cpu.h - which features of a CPU the code of a module needs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_CPU_H
#define LLVM_CPU_H

#include <cairn/allocator.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

/*
 * Finds the features that the module's code needs, if `machine` compiles it: those of
 * arch/features.h that one of its functions may use. A function may use the features of its
 * attributes "target-cpu" and "target-features", and otherwise those of the machine.
 *
 * Sets `*features` to their names with commas between them, which the caller frees with
 * memory_free_string. Takes some milliseconds, unless all code is for the architecture's oldest
 * CPU. Errors: UNSUPPORTED (the LLVM in use does not tell the features of this CPU), LLVM, MEMORY.
 */
CAIRN_MUST_CHECK enum cairn_status cpu_features_of_module(LLVMModuleRef module,
                                                          LLVMTargetMachineRef machine,
                                                          const struct cairn_allocator *allocator,
                                                          char **features,
                                                          struct cairn_error *error);

#endif
