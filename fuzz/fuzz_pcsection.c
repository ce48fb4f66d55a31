/*
 * Fuzzes PC sections. Reading an entry twice gives the same result, and either advances or fails.
 *
 * Input: flags (byte order), the length of a schema, the schema, the section's
 * address (8 bytes), the section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/pcsection.h>

enum { SCHEMA_MAX = 64 };

static bool take_schema(struct fuzz_input *input, struct cairn_pcsection_schema *schema)
{
    char text[SCHEMA_MAX + 1] = "";
    unsigned length = fuzz_u8(input) % SCHEMA_MAX;
    for (unsigned i = 0; i < length; i++)
        text[i] = (char)fuzz_u8(input);
    return cairn_pcsection_parse_schema(text, schema, NULL) == CAIRN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    struct cairn_pcsection_schema schema;
    if (!take_schema(&input, &schema))
        return 0;
    uint64_t address = fuzz_number(&input, 8);
    const struct cairn_section section = fuzz_section(&input, flags);
    size_t offset = 0;
    enum cairn_status status = CAIRN_OK;
    while (offset < section.size && status == CAIRN_OK) {
        struct cairn_pcsection_entry entry = {.constants = {0}};
        struct cairn_pcsection_entry again = entry;
        struct cairn_error error;
        size_t begin = offset;
        size_t same = offset;
        status = cairn_pcsection_read(&section, address, &schema, &offset, &entry, &error);
        require(cairn_pcsection_read(&section, address, &schema, &same, &again, NULL) == status);
        require(same == offset && offset <= section.size);
        if (status == CAIRN_OK) {
            require(offset > begin && entry.offset == begin);
            require(memcmp(&entry, &again, sizeof entry) == 0);
        } else {
            require(offset == begin && error.offset >= begin && error.offset <= section.size);
        }
    }
    return 0;
}
