/*
 * Fuzzes fault maps. An accepted section can be iterated, and the sizes of its parts add up.
 *
 * Input: flags (byte order), the section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/faultmap.h>

static void go_through(const struct cairn_faultmap *map)
{
    struct cairn_faultmap_function function = {0};
    uint32_t count = 0;
    size_t bytes = 8;
    while (cairn_faultmap_next(map, &function)) {
        require(function.index == count++ && function.offset == bytes);
        for (uint32_t i = 0; i < function.fault_count; i++) {
            struct cairn_fault fault = cairn_faultmap_fault(map, &function, i);
            require(strcmp(cairn_fault_kind_name(fault.kind), "unknown") != 0);
        }
        bytes += 16 + (size_t)function.fault_count * 12;
    }
    require(count == map->function_count && bytes == map->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    const struct cairn_section section = fuzz_section(&input, flags);
    size_t offset = 0;
    while (offset < section.size) {
        struct cairn_faultmap map;
        struct cairn_faultmap again;
        struct cairn_error error;
        size_t begin = offset;
        size_t other = offset;
        enum cairn_status status = cairn_faultmap_read(&section, &offset, &map, &error);
        require(cairn_faultmap_read(&section, &other, &again, NULL) == status && other == offset);
        require(map.function_count == again.function_count);
        if (map.bytes != NULL)
            go_through(&map);
        if (status != CAIRN_OK) {
            require(offset == begin && error.offset >= begin && error.offset <= section.size);
            break;
        }
        require(offset == begin + map.size);
    }
    return 0;
}
