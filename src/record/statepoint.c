/*
 * Reads the statepoints of a table's records.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/statepoint.h"
#include "base/error.h"

static struct cairn_location table_location(const void *record, uint32_t index)
{
    return cairn_record_location(*(const struct cairn_record *)record, index);
}

enum cairn_status cairn_record_statepoint(struct cairn_record record,
                                          struct cairn_statepoint *statepoint,
                                          struct cairn_error *error)
{
    if (record.table == NULL || statepoint == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_record_statepoint needs a record and a statepoint");
    const struct statepoint_source source = {
        .location = table_location,
        .record = &record,
        .count = cairn_record_location_count(record),
        .offset = cairn_record_address(record),
    };
    return statepoint_parse(&source, statepoint, error);
}
