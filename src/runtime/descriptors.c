/*
 * Source: 64-bit PowerPC ELF Application Binary Interface Supplement (ELFv1), section "Function
 * Descriptors"; the code that LLVM 14 to 19 emit for powerpc64-linux-gnu.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/descriptors.h"

#include "base/error.h"

#include <string.h>

/* A descriptor holds the entry, the TOC pointer and the environment. */
enum { DESCRIPTOR_BYTES = 24, DESCRIPTOR_ALIGNMENT = 8 };

static enum cairn_status read_entry(const struct code_block *block, uint32_t number,
                                    uint64_t descriptor, uint64_t *entry, struct cairn_error *error)
{
    if (descriptor % DESCRIPTOR_ALIGNMENT != 0 ||
        !code_block_holds_data(block, descriptor, DESCRIPTOR_BYTES))
        return error_set(error, CAIRN_ERROR_CORRUPT, descriptor,
                         "function %u of a stack map is named by 0x%llx, which is neither in the "
                         "code that was loaded nor a function descriptor in its data",
                         number, (unsigned long long)descriptor);
    memcpy(entry, (const void *)(uintptr_t)descriptor, sizeof *entry);
    if (code_block_holds_code(block, *entry, 1))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CORRUPT, descriptor,
                     "function %u of a stack map has its descriptor at 0x%llx, which leads to "
                     "0x%llx, not in the code that was loaded",
                     number, (unsigned long long)descriptor, (unsigned long long)*entry);
}

/* Resolves the functions of one map. The section and the descriptors are in the host's byte
 * order. */
static enum cairn_status resolve_map(const struct code_block *block, uint8_t *bytes,
                                     const struct cairn_stackmap *map, struct cairn_error *error)
{
    uint8_t *place = bytes + map->section_offset + CAIRN_STACKMAP_HEADER_BYTES;
    for (uint32_t i = 0; i < map->function_count; i++) {
        uint64_t address = cairn_stackmap_function(map, i).address;
        if (!code_block_holds_code(block, address, 1)) {
            enum cairn_status status = read_entry(block, i, address, &address, error);
            if (status != CAIRN_OK)
                return status;
            memcpy(place, &address, sizeof address);
        }
        place += cairn_stackmap_function_bytes(map->version);
    }
    return CAIRN_OK;
}

enum cairn_status descriptors_resolve(const struct code_block *block,
                                      const struct cairn_section *section,
                                      struct cairn_error *error)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)section->bytes;
    size_t offset = 0;
    struct cairn_stackmap map;
    if (!code_space_arch(code_block_space(block))->has_descriptors)
        return CAIRN_OK;
    while (offset < section->size &&
           cairn_stackmap_read(section, &offset, &map, NULL) == CAIRN_OK) {
        enum cairn_status status = resolve_map(block, bytes, &map, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}
