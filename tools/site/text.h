/*
 * tools/site/text.h - printing sites and their instructions, of loaded code and of code in files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SITE_TEXT_H
#define TOOLS_SITE_TEXT_H

#include "tools/cli/output.h"
#include "llvm/disassemble.h"

#include <cairn/patch.h>

/* The code in the file or as it was loaded, or the code that Cairn makes of it. */
enum code_form { CODE_ORIGINAL, CODE_ARMED };

struct code_writer {
    struct output *output;
    unsigned indentation; /* indentation of titles; instructions are indented by two more columns */
    unsigned columns;     /* width of the bytes before the instruction's text */
    struct disassembler *disassembler; /* NULL to print bytes only */
    /* Returns the name of what the instruction at `address` branches or refers to, or NULL. */
    const char *(*find_name)(void *user, enum code_form form, uint64_t address,
                             const struct instruction *instruction);
    void *user;
};

/* Returns a number of bytes that most instructions of the architecture do not exceed. */
unsigned code_columns(enum cairn_architecture architecture);

/* Disassembles the instruction at `bytes`. False if there is no valid instruction, as at the end of
 * a shadow, which may end inside one; `*instruction` then has a line's worth of bytes and no
 * text. */
bool code_next(struct disassembler *disassembler, unsigned columns, const uint8_t *bytes,
               size_t size, uint64_t address, struct instruction *instruction);

/* Writes `title`, and each instruction on a line of its own. */
void write_code(const struct code_writer *writer, const char *title, enum code_form form,
                const uint8_t *bytes, size_t size, uint64_t address);

/* Writes `prefix` and "24 bytes at 0x10, state: call to 0x2000 = callee", then whether and where
 * the site can be patched while threads run, or why it cannot. `target_name` may be NULL. */
void write_site_summary(const struct code_writer *writer, const char *prefix,
                        const struct cairn_site_description *site, const char *target_name);

/* Writes a line with the reason why a site cannot be shown or patched. */
void write_refusal(const struct code_writer *writer, const char *prefix, const char *reason);

/* Writes the bytes that LLVM emitted, then `title` and the current bytes; or `line` if both are
 * equal. */
void write_site_code(const struct code_writer *writer, const struct cairn_site_description *site,
                     const char *title, const char *line);

#endif
