/*
 * Fuzzes sanitizers' metadata: section names, and entries of both kinds. Reading twice gives the
 * same result.
 *
 * Input: flags (byte order, kind), version (4 bytes), the section; the section's bytes are also
 * used as a name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/sanmd.h>

static void parse_name(const struct cairn_section *section)
{
    char name[64] = "";
    struct cairn_sanmd_format format;
    size_t length = section->size < sizeof name - 1 ? section->size : sizeof name - 1;
    if (length > 0)
        memcpy(name, section->bytes, length);
    if (cairn_sanmd_parse_name(name, section, 0x1000, &format))
        require(strncmp(name, CAIRN_SANMD_PREFIX, strlen(CAIRN_SANMD_PREFIX)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    uint32_t version = (uint32_t)fuzz_number(&input, 4);
    const struct cairn_section section = fuzz_section(&input, flags);
    const struct cairn_sanmd_format format = {
        (flags & 2) != 0 ? CAIRN_SANMD_COVERED : CAIRN_SANMD_ATOMICS, version};
    enum cairn_status status = CAIRN_OK;
    parse_name(&section);
    for (size_t offset = 0; offset < section.size && status == CAIRN_OK;) {
        struct cairn_sanmd_entry entry[2] = {{0}};
        size_t begin = offset;
        for (unsigned i = 0; i < 2; i++) {
            offset = begin;
            enum cairn_status now =
                cairn_sanmd_read(&section, 0x1000, format, &offset, &entry[i], NULL);
            require(i == 0 || now == status);
            status = now;
        }
        require(entry[0].address == entry[1].address && entry[0].size == entry[1].size);
        require(status == CAIRN_OK ? offset > begin : offset == begin);
    }
    return 0;
}
