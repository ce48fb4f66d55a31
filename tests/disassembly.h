/*
 * What LLVM's disassembler says of code, for the tests of encoders.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_DISASSEMBLY_H
#define TESTS_DISASSEMBLY_H

#include <llvm-c/Disassembler.h>
#include <stddef.h>
#include <stdint.h>

/* Of all architectures; to be called first. */
void disassembly_set_up(void);

/* `processor` NULL: the triple's usual one. Fails the test if LLVM has none; LLVMDisasmDispose
 * gives it back. */
LLVMDisasmContextRef disassembly_open(const char *triple, const char *processor);

/* The instruction that the bytes begin with, with one space between words and none before and
 * behind; returns its length, 0 if it is none. */
size_t disassembly_line(LLVMDisasmContextRef disassembler, const uint8_t *bytes, size_t size,
                        uint64_t address, char *text, size_t text_size);

#endif
