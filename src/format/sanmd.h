/*
 * format/sanmd.h - the width of addresses in sanitizer metadata, and the names of its features.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_SANMD_H
#define FORMAT_SANMD_H

#include <cairn/sanmd.h>

/* Returns the name of one of the bits CAIRN_SANMD_FEATURE_…; NULL for an unknown bit. */
const char *sanmd_feature_name(uint32_t feature);

/* Returns whether the addresses of a section of linked code have 8 bytes although its version may
 * not have the flag (cairn_sanmd_parse_name). */
bool sanmd_has_wide_addresses(const struct cairn_section *section, uint64_t section_address,
                              struct cairn_sanmd_format format);

#endif
