/* SPDX-License-Identifier: MIT */
#include "tools/sanmd_version.h"

/* Whether a relocatable object's section can be read in this version, with a relocation at each
 * entry. */
static bool fits_relocations(cairn_object *object, const struct cairn_object_section *section,
                             const struct cairn_sanmd_format *format, uint32_t version)
{
    for (size_t offset = 0; offset < section->contents.size;) {
        struct cairn_sanmd_covered covered;
        struct cairn_sanmd_atomic atomic;
        if (cairn_object_target_section(object, section, offset) == 0)
            return false;
        enum cairn_status status =
            format->kind == CAIRN_SANMD_COVERED
                ? cairn_sanmd_read_covered(&section->contents, 0, version, &offset, &covered, NULL)
                : cairn_sanmd_read_atomic(&section->contents, 0, version, &offset, &atomic, NULL);
        if (status != CAIRN_OK)
            return false;
    }
    return true;
}

uint32_t find_sanmd_version(cairn_object *object, const struct cairn_object_section *section,
                            const struct cairn_sanmd_format *format)
{
    uint32_t wide = format->version | CAIRN_SANMD_WIDE_ADDRESSES;
    bool is_wide = cairn_object_is_relocatable(object)
                       ? !fits_relocations(object, section, format, format->version) &&
                             fits_relocations(object, section, format, wide)
                       : cairn_sanmd_has_wide_addresses(&section->contents, section->address,
                                                        format->kind, format->version);
    return is_wide ? wide : format->version;
}
