/*
 * tools/sanmd_version.h - with which version a section of sanitizers' metadata is read.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SANMD_VERSION_H
#define TOOLS_SANMD_VERSION_H

#include <cairn/object.h>
#include <cairn/sanmd.h>

/* The version that the section's name says, with the width of addresses, which it may not say. */
uint32_t find_sanmd_version(cairn_object *object, const struct cairn_object_section *section,
                            const struct cairn_sanmd_format *format);

#endif
