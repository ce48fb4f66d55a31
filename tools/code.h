/*
 * tools/code.h - sites and their instructions in words, the same for code that was loaded and for
 * code in files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CODE_H
#define TOOLS_CODE_H

#include "tools/output.h"
#include "llvm/disassemble.h"

#include <cairn/patch.h>

/* What stands in the file or was loaded, or what Cairn makes of it. */
enum code_form { CODE_ORIGINAL, CODE_ARMED };

struct code_writer {
    struct output *output;
    unsigned indentation;              /* instructions stand two columns further in */
    unsigned columns;                  /* bytes, before the instruction's text */
    struct disassembler *disassembler; /* NULL: bytes only */
    /* The name of what the instruction at `address` goes to or refers to, or NULL. */
    const char *(*find_name)(void *user, enum code_form form, uint64_t address,
                             const struct instruction *instruction);
    void *user;
};

/* Bytes that most instructions of the architecture have at most. */
unsigned code_columns(enum cairn_architecture architecture);

/* The instruction at `bytes`; false, with a line's worth of bytes and no text, where there is none:
 * a shadow may end inside an instruction. */
bool code_next(struct disassembler *disassembler, unsigned columns, const uint8_t *bytes,
               size_t size, uint64_t address, struct instruction *instruction);

/* `title`, and all instructions, a line each. */
void write_code(const struct code_writer *writer, const char *title, enum code_form form,
                const uint8_t *bytes, size_t size, uint64_t address);

/* Behind `prefix`, "24 bytes at 0x10, state: call to 0x2000 = callee"; whether and where it can be
 * patched while threads run, or why it cannot. `target_name` may be NULL. */
void write_site_summary(const struct code_writer *writer, const char *prefix,
                        const struct cairn_site_description *site, const char *target_name);

/* A line of what stands in the way. */
void write_refusal(const struct code_writer *writer, const char *prefix, const char *reason);

/* The bytes as LLVM emitted them; behind `title`, as they are now; or `line` if that is the same.
 */
void write_site_code(const struct code_writer *writer, const struct cairn_site_description *site,
                     const char *title, const char *line);

void write_indentation(struct output *output, unsigned columns);

#endif
