/*
 * tools/run_sites.h - printing the records and sites of a loaded module.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_RUN_SITES_H
#define TOOLS_RUN_SITES_H

#include "tools/output.h"
#include "llvm/disassemble.h"
#include "llvm/program.h"

#include <cairn/cairn.h>

/* Writes the records and sites. If `disassembler` is NULL, only bytes are shown. */
void write_sites(struct output *output, const cairn_module *module, struct program_names *names,
                 struct disassembler *disassembler);

#endif
