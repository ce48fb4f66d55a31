/*
 * format/pcsection.h - reads an entry of a PC section in two parts, so that a caller can check the
 * address before it reads the rest.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_PCSECTION_H
#define FORMAT_PCSECTION_H

#include <cairn/pcsection.h>

bool pcsection_is_schema(const struct cairn_pcsection_schema *schema);

/* Reads the address at `offset`. Returns false if it is not inside the section. */
bool pcsection_read_address(const struct cairn_section *section, uint64_t section_address,
                            uint8_t size, size_t offset, uint64_t *address);

/* Reads the function's size and the constants at offset `at` into `entry`, and sets `*end` to the
 * offset after them. Error messages contain `entry->offset`. Errors: TRUNCATED, CORRUPT. */
enum cairn_status pcsection_read_values(const struct cairn_section *section,
                                        const struct cairn_pcsection_schema *schema, size_t at,
                                        struct cairn_pcsection_entry *entry, size_t *end,
                                        struct cairn_error *error);

#endif
