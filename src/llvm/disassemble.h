/*
 * llvm/disassemble.h - disassembles instructions of any architecture, with LLVM's disassembler.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_DISASSEMBLE_H
#define LLVM_DISASSEMBLE_H

#include <cairn/architecture.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INSTRUCTION_TEXT_BYTES = 128 };

/* A disassembler. Not thread-safe: one thread at a time may use it. */
struct disassembler;

struct instruction {
    size_t length; /* in bytes */
    /* One line, truncated if it is too long. Registers have the names that cairn_register_name
     * returns. */
    char text[INSTRUCTION_TEXT_BYTES];
    /* Whether it is a branch or a call whose target is encoded in the instruction. */
    bool has_target;
    uint64_t target;
};

/* Creates a disassembler. `byte_order` is the byte order of the architecture's data. It applies to
 * instructions only on PPC64; elsewhere the architecture determines their byte order. UNSUPPORTED
 * if the LLVM in use does not know the architecture, or the architecture is unknown; MEMORY. */
enum cairn_status disassembler_create(enum cairn_architecture architecture,
                                      enum cairn_byte_order byte_order,
                                      struct disassembler **disassembler,
                                      struct cairn_error *error);

/* Destroys a disassembler. NULL is allowed. */
void disassembler_destroy(struct disassembler *disassembler);

/* Decodes the instruction at `bytes`, which is executed at `address`. Returns false if the bytes
 * are not an instruction, or if it does not end within `size` bytes. */
bool disassembler_next(struct disassembler *disassembler, const uint8_t *bytes, size_t size,
                       uint64_t address, struct instruction *instruction);

#endif
