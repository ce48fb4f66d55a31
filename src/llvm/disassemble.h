/*
 * llvm/disassemble.h - the host's instructions in words, by LLVM's disassembler.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_DISASSEMBLE_H
#define LLVM_DISASSEMBLE_H

#include <stddef.h>
#include <stdint.h>

/* One thread at a time. */
struct disassembler;

/* NULL if LLVM has none for this machine. */
struct disassembler *disassembler_create(void);

/* NULL is allowed. */
void disassembler_destroy(struct disassembler *disassembler);

/* Writes the instruction at `bytes`, which runs at `address`, to `text` and returns its length in
 * bytes; 0 if it is none or does not end within `size`. */
size_t disassembler_next(struct disassembler *disassembler, const uint8_t *bytes, size_t size,
                         uint64_t address, char *text, size_t text_size);

#endif
