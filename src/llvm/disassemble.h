/*
 * llvm/disassemble.h - the instructions of any architecture in words, by LLVM's disassembler.
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

/* One thread at a time. */
struct disassembler;

struct instruction {
    size_t length; /* in bytes */
    /* On one line, cut where it is too long. Registers are named as cairn_register_name does. */
    char text[INSTRUCTION_TEXT_BYTES];
    /* It is a branch or a call to a place in code that stands in it. */
    bool has_target;
    uint64_t target;
};

/* Instructions always lie in memory as the architecture has them; `byte_order` is that of its
 * data, which on PPC64 the instructions share. UNSUPPORTED (LLVM as it was built does not know the
 * architecture, or nobody does), MEMORY. */
enum cairn_status disassembler_create(enum cairn_architecture architecture,
                                      enum cairn_byte_order byte_order,
                                      struct disassembler **disassembler,
                                      struct cairn_error *error);

/* NULL is allowed. */
void disassembler_destroy(struct disassembler *disassembler);

/* The instruction at `bytes`, which runs at `address`; false if they are none or it does not end
 * within `size`. */
bool disassembler_next(struct disassembler *disassembler, const uint8_t *bytes, size_t size,
                       uint64_t address, struct instruction *instruction);

#endif
