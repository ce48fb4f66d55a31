/*
 * llvm/embed_section.h - adds bytes to a module's object, in a section of their own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_EMBED_SECTION_H
#define LLVM_EMBED_SECTION_H

#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <stddef.h>

enum { EMBED_ALIGNMENT = 8 };

/* Adds a constant with these bytes in a section of this name, aligned to EMBED_ALIGNMENT. Passes
 * and code generation keep it, and memory managers get the section. On failure, the module is
 * unchanged. Errors: MEMORY, UNSUPPORTED (objects that are not ELF). */
CAIRN_MUST_CHECK enum cairn_status embed_section(LLVMModuleRef module, const char *name,
                                                 const char *section, const void *bytes,
                                                 size_t size, struct cairn_error *error);

#endif
