/*
 * tools/llvm/module.h - what the command needs of LLVM.
 *
 * LLVM's library takes longer to load than most commands take to finish. So it is a dependency of a
 * module, cairn-llvm-module.so, which is opened when an instruction is first disassembled or IR
 * compiled.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LLVM_MODULE_H
#define TOOLS_LLVM_MODULE_H

#include "tools/llvm/compile.h"
#include "llvm/disassemble.h"

#define LLVM_MODULE_FILE "cairn-llvm-module.so"
#define LLVM_FUNCTIONS_SYMBOL cairn_llvm_functions

/* The functions of the module, which is of the same version as the command. */
struct llvm_functions {
    const char *version;
    enum cairn_status (*disassembler_create)(enum cairn_architecture architecture,
                                             enum cairn_byte_order byte_order,
                                             struct disassembler **disassembler,
                                             struct cairn_error *error);
    void (*disassembler_destroy)(struct disassembler *disassembler);
    bool (*disassembler_next)(struct disassembler *disassembler, const uint8_t *bytes, size_t size,
                              uint64_t address, struct instruction *instruction);
    enum cairn_architecture (*find_architecture)(const char *triple);
    enum exit_status (*compile_file)(const char *path, const struct compile_options *options,
                                     void **bytes, size_t *size);
};

/* Opens the module at the first call. Returns NULL if that fails: UNSUPPORTED. The module stays
 * open. */
const struct llvm_functions *find_llvm(struct cairn_error *error);

#endif
