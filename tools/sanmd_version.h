/*
 * tools/sanmd_version.h - finding the version of a section of sanitizer metadata.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SANMD_VERSION_H
#define TOOLS_SANMD_VERSION_H

#include <cairn/object.h>
#include <cairn/sanmd.h>

/* Returns the version from the section's name, with the width of addresses, which the name may
 * lack. */
uint32_t find_sanmd_version(cairn_object *object, const struct cairn_object_section *section,
                            const struct cairn_sanmd_format *format);

#endif
