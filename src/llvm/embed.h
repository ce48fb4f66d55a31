/*
 * llvm/embed.h - adds to a module what the loader of its object must know (format/manifest.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_EMBED_H
#define LLVM_EMBED_H

#include "base/adapter.h"
#include "format/manifest.h"

#include <cairn/llvm.h>

/* Adds a constant with the manifest, in a separate section. Passes and code generation keep it. To
 * be called after the last pass that changes records, and once for each module. On failure, the
 * module is unchanged. Errors: MEMORY, RANGE, UNSUPPORTED (objects that are not ELF). */
CAIRN_MUST_CHECK enum cairn_status embed_manifest(LLVMModuleRef module,
                                                  const struct manifest *manifest,
                                                  struct cairn_error *error);

/* Does so for code that is loaded into this process: with the declarations and the PC sections, and
 * without a fingerprint of the CPU. `address_bytes` 0 of a PC section's schema means 4. */
CAIRN_MUST_CHECK enum cairn_status embed_declarations(LLVMModuleRef module,
                                                      const cairn_declarations *declarations,
                                                      const struct cairn_pc_section *wanted,
                                                      size_t wanted_count,
                                                      struct cairn_error *error);

/* Scans a module that becomes a module by itself, and embeds its declarations, if it has any, for
 * code that is loaded into this process. Errors: as cairn_memory_manager_declare, and as
 * embed_manifest. */
CAIRN_MUST_CHECK enum cairn_status embed_scanned(LLVMModuleRef module,
                                                 enum cairn_id_conflicts id_conflicts,
                                                 struct cairn_error *error);

#endif
