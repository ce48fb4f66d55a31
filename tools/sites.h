/*
 * tools/sites.h - a loaded module's records and sites in words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SITES_H
#define TOOLS_SITES_H

#include "tools/output.h"
#include "llvm/disassemble.h"
#include "llvm/program.h"

#include <cairn/cairn.h>

/* `disassembler` may be NULL: then the bytes stand there alone. */
void write_sites(struct output *output, const cairn_module *module, struct program_names *names,
                 struct disassembler *disassembler);

#endif
