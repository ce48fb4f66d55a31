/*
 * Fuzzes schemas of PC sections. Parsing the same text gives the same schema. An accepted schema is
 * within the limits, and printing and parsing it gives the same schema. An error leaves the schema
 * unchanged and gives an offset in the text.
 *
 * Input: the text.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/pcsection.h>

enum { WRITTEN_MAX = 256 };

static void write_schema(const struct cairn_pcsection_schema *schema, char *text)
{
    int size = snprintf(text, WRITTEN_MAX, "%s %u", schema->has_size ? "function" : "instruction",
                        schema->address_bytes);
    for (unsigned i = 0; i < schema->constant_count; i++)
        size += snprintf(text + size, WRITTEN_MAX - (size_t)size, " u%u",
                         8U * schema->constant_bytes[i]);
    snprintf(text + size, WRITTEN_MAX - (size_t)size, "%s", schema->is_compressed ? " !C" : "");
}

static void check_accepted(const struct cairn_pcsection_schema *schema)
{
    struct cairn_pcsection_schema again;
    char text[WRITTEN_MAX];
    memset(&again, 0, sizeof again);
    require(schema->address_bytes == 4 || schema->address_bytes == 8);
    require(schema->constant_count <= CAIRN_PCSECTION_CONSTANTS_MAX);
    for (unsigned i = 0; i < schema->constant_count; i++)
        require(schema->constant_bytes[i] >= 1 &&
                schema->constant_bytes[i] <= CAIRN_PCSECTION_CONSTANT_BYTES_MAX);
    write_schema(schema, text);
    require(cairn_pcsection_parse_schema(text, &again, NULL) == CAIRN_OK);
    require(memcmp(schema, &again, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cairn_pcsection_schema schemas[2];
    struct cairn_pcsection_schema untouched;
    struct cairn_error errors[2];
    enum cairn_status statuses[2];
    char *text = malloc(size + 1);
    require(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    memset(&untouched, 0, sizeof untouched);
    for (int i = 0; i < 2; i++) {
        memset(&schemas[i], 0, sizeof schemas[i]);
        statuses[i] = cairn_pcsection_parse_schema(text, &schemas[i], &errors[i]);
    }
    require(statuses[0] == statuses[1] && memcmp(&schemas[0], &schemas[1], sizeof untouched) == 0);
    if (statuses[0] == CAIRN_OK) {
        check_accepted(&schemas[0]);
    } else {
        require(statuses[0] == CAIRN_ERROR_ARGUMENT && errors[0].offset <= strlen(text));
        require(memcmp(&schemas[0], &untouched, sizeof untouched) == 0);
    }
    free(text);
    return 0;
}
