/*
 * LLVM's disassembler, for the tests of encoders.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_DISASSEMBLY_H
#define TESTS_DISASSEMBLY_H

#include <llvm-c/Disassembler.h>
#include <stddef.h>
#include <stdint.h>

/* Initialises the disassemblers of all architectures. Must be called first. */
void disassembly_set_up(void);

/* Opens a disassembler; `processor` NULL is the triple's default. Fails the test if LLVM has no
 * such disassembler. The caller frees it with LLVMDisasmDispose. */
LLVMDisasmContextRef disassembly_open(const char *triple, const char *processor);

/* Writes the instruction at the start of the bytes, with single spaces between words and none at
 * the ends. Returns its length, or 0 if the bytes are not an instruction. */
size_t disassembly_line(LLVMDisasmContextRef disassembler, const uint8_t *bytes, size_t size,
                        uint64_t address, char *text, size_t text_size);

#endif
