/*
 * runtime/load_manifest.h - what an object tells its loader (format/manifest.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_LOAD_MANIFEST_H
#define RUNTIME_LOAD_MANIFEST_H

#include "format/manifest.h"

#include <cairn/load.h>

/* The PC sections that an object's manifest names. The names are copies. */
struct object_pc_sections {
    struct manifest_pc_section *entries;
    size_t count;
    size_t capacity;
    bool has_manifest; /* whether the object has one */
};

/* Reads the manifest of an object for this process, if it has one: adds its declarations to the
 * loader, and its PC sections to the list, which the caller releases, also after an error; and
 * notes what its code can hold, unless the options contain that.
 * Errors: those of manifest_read_unit, fingerprint_check, elf_open, elf_section and
 * cairn_declarations_add. */
CAIRN_MUST_CHECK enum cairn_status load_manifest(cairn_loader *loader, const uint8_t *bytes,
                                                 size_t size,
                                                 const struct cairn_load_options *options,
                                                 struct object_pc_sections *sections,
                                                 struct cairn_error *error);

/* Reads a section of manifests that was allocated by cairn_loader_allocate: adds its declarations
 * to the loader. Its PC sections have been allocated already. Errors: those of manifest_read_unit,
 * fingerprint_check and cairn_declarations_add. */
CAIRN_MUST_CHECK enum cairn_status load_manifest_section(cairn_loader *loader, const uint8_t *bytes,
                                                         size_t size, struct cairn_error *error);

void object_pc_sections_release(struct object_pc_sections *sections,
                                const struct cairn_allocator *allocator);

#endif
