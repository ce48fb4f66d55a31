/*
 * format/pcsection.h - reading entries of PC sections in two parts, for those who know which
 * addresses can be true.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_PCSECTION_H
#define FORMAT_PCSECTION_H

#include <cairn/pcsection.h>

bool pcsection_is_schema(const struct cairn_pcsection_schema *schema);

/* The address that begins at `offset`; false if the section ends before it does. */
bool pcsection_read_address(const struct cairn_section *section, uint64_t section_address,
                            uint8_t size, size_t offset, uint64_t *address);

/* The function's size and the constants, which begin at `*offset`, into `entry`, whose `offset` the
 * sentence names if they cannot be read. Moves `*offset` behind them. TRUNCATED, CORRUPT. */
enum cairn_status pcsection_read_values(const struct cairn_section *section,
                                        const struct cairn_pcsection_schema *schema, size_t *offset,
                                        struct cairn_pcsection_entry *entry,
                                        struct cairn_error *error);

#endif
