/*
 * Fuzzes PC sections. Reading entries one by one and many at once gives the same entries and the
 * same errors.
 *
 * Input: flags (byte order, how many at once), the length of a schema, the schema, the section's
 * address (8 bytes), the section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/pcsection.h>

enum { SCHEMA_MAX = 64, AT_ONCE_MAX = 8 };

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
    uint64_t addresses[AT_ONCE_MAX];
    uint64_t sizes[AT_ONCE_MAX];
    uint64_t constants[AT_ONCE_MAX * CAIRN_PCSECTION_CONSTANTS_MAX];
    const struct cairn_pcsection_columns columns = {1 + (flags >> 1) % AT_ONCE_MAX, addresses,
                                                    sizes, constants};
    enum cairn_status status = CAIRN_OK;
    size_t offset = 0;
    while (offset < section.size && status == CAIRN_OK) {
        size_t count;
        size_t one = offset;
        struct cairn_error error;
        status = cairn_pcsection_read_many(&section, address, &schema, &offset, &columns, &count,
                                           &error);
        require(count <= columns.capacity && (count > 0 || status != CAIRN_OK));
        for (size_t i = 0; i < count; i++) {
            struct cairn_pcsection_entry entry;
            require(cairn_pcsection_read(&section, address, &schema, &one, &entry, NULL) ==
                    CAIRN_OK);
            require(entry.address == addresses[i]);
            require(!schema.has_size || entry.size == sizes[i]);
            for (unsigned k = 0; k < schema.constant_count; k++)
                require(entry.constants[k] == constants[i * schema.constant_count + k]);
        }
        require(one == offset);
        if (status != CAIRN_OK) {
            struct cairn_pcsection_entry entry;
            struct cairn_error other;
            require(cairn_pcsection_read(&section, address, &schema, &one, &entry, &other) ==
                    status);
            require(other.offset == error.offset && strcmp(other.message, error.message) == 0);
        }
    }
    return 0;
}
