/*
 * llvm/machine.h - LLVM's target machine: runs passes, and compiles modules to objects in memory.
 *
 * A machine must be used by one thread at a time. Machines of several threads work concurrently, if
 * their modules have different contexts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_MACHINE_H
#define LLVM_MACHINE_H

#include <cairn/llvm.h>

struct machine;

/* Creates a machine for `triple`; "" means the host's own. Initialises LLVM's native target; any
 * other must be initialised. Sets the process-wide options that `options` asks for.
 * Errors: LLVM, MEMORY. */
CAIRN_MUST_CHECK enum cairn_status machine_create(const struct cairn_allocator *allocator,
                                                  const char *triple,
                                                  const struct cairn_engine_options *options,
                                                  struct machine **machine,
                                                  struct cairn_error *error);

/* NULL is allowed. */
void machine_destroy(struct machine *machine);

LLVMTargetMachineRef machine_llvm(const struct machine *machine);

/* Returns the size of an address in PC sections that the machine emits for this host. */
uint8_t machine_address_bytes(const struct machine *machine);

/* Checks that the module's data layout is empty or the machine's. Errors: LLVM. */
CAIRN_MUST_CHECK enum cairn_status machine_check_layout(const struct machine *machine,
                                                        LLVMModuleRef module,
                                                        struct cairn_error *error);

/* Sets the module's data layout, and its triple if it has none. */
void machine_set_target(const struct machine *machine, LLVMModuleRef module);

/* Sets the module's target, and runs a pipeline of passes, in the syntax of LLVM's command opt.
 * Errors: ARGUMENT (LLVM does not know the pipeline; then the module is unchanged), LLVM (an error
 * that a pass has reported). */
CAIRN_MUST_CHECK enum cairn_status machine_run_passes(const struct machine *machine,
                                                      LLVMModuleRef module, const char *passes,
                                                      struct cairn_error *error);

/* Compiles a module to an object. The module must only be disposed of afterwards. The caller owns
 * `*object`, which is written only on success. Errors: LLVM (an error that LLVM has reported). */
CAIRN_MUST_CHECK enum cairn_status machine_emit(const struct machine *machine, LLVMModuleRef module,
                                                LLVMMemoryBufferRef *object,
                                                struct cairn_error *error);

#endif
