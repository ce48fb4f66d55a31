/*
 * Fuzzes .stack_sizes and __sancov_pcs: every entry is inside of the section, entries follow one
 * another, and reading ends at the end or at an error that names its place.
 *
 * Input: flags (byte order, size of pointers), the section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/sancov.h>
#include <cairn/stack_sizes.h>

static void read_sizes(const struct cairn_section *section, unsigned address_bytes)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t offset = 0; offset < section->size && status == CAIRN_OK;) {
        struct cairn_stack_size entry = {.size = 77};
        struct cairn_error error;
        size_t begin = offset;
        status = cairn_stack_size_read(section, address_bytes, &offset, &entry, &error);
        if (status == CAIRN_OK) {
            require(entry.offset == begin && offset > begin + address_bytes);
            require(offset <= section->size);
        } else {
            require(offset == begin && entry.size == 77);
            require(error.offset >= begin && error.offset <= section->size);
        }
    }
}

static void read_points(const struct cairn_section *section, unsigned address_bytes)
{
    enum cairn_status status = CAIRN_OK;
    uint64_t count = 0;
    size_t offset = 0;
    while (offset < section->size && status == CAIRN_OK) {
        struct cairn_sancov_point point = {.index = 0};
        status = cairn_sancov_read(section, address_bytes, &offset, &point, NULL);
        require(status != CAIRN_OK || point.index == count);
        count += status == CAIRN_OK;
    }
    require(count == section->size / (2 * (size_t)address_bytes));
    require(offset == count * 2 * address_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    const struct cairn_section section = fuzz_section(&input, flags);
    unsigned address_bytes = (flags & 2) != 0 ? 4 : 8;
    read_sizes(&section, address_bytes);
    read_points(&section, address_bytes);
    return 0;
}
