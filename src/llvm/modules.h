/*
 * llvm/modules.h - what engines and memory managers do alike with the modules that they load.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_MODULES_H
#define LLVM_MODULES_H

#include "base/memory.h"

#include <cairn/llvm.h>
#include <stdint.h>

/* Copies the name, which is `name` if the host has chosen none, and the PC sections. In schemas
 * that leave the size of an address to the code model, sets it to `address_bytes`. On failure,
 * `copy` may be released. Errors: ARGUMENT, MEMORY. */
CAIRN_MUST_CHECK enum cairn_status modules_copy_options(const struct cairn_module_options *options,
                                                        const char *name, uint8_t address_bytes,
                                                        const struct cairn_allocator *allocator,
                                                        struct cairn_module_options *copy,
                                                        struct cairn_error *error);

void modules_release_options(const struct cairn_module_options *copy,
                             const struct cairn_allocator *allocator);

/* Rejects code models other than LLVM's default ones and the large one. Errors: ARGUMENT,
 * UNSUPPORTED. */
CAIRN_MUST_CHECK enum cairn_status modules_check_code_model(LLVMCodeModel code_model,
                                                            struct cairn_error *error);

/* Returns the size of an address in PC sections (cairn/pcsection.h) that LLVM emits for this host.
 * `is_jit`: for a target machine of a JIT, which has other default models. */
uint8_t modules_address_bytes(LLVMCodeModel code_model, bool is_jit);

/* Publishes a module to which the caller has a reference, and calls the host before and after. */
CAIRN_MUST_CHECK enum cairn_status modules_publish(cairn_module *module,
                                                   const struct cairn_module_options *options,
                                                   struct cairn_error *error);

#endif
