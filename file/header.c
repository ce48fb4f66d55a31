/*
 * Returns section headers, without reading the sections.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/object.h"

bool cairn_object_section_header(const cairn_object *object, uint32_t index,
                                 struct cairn_object_section_header *header)
{
    GElf_Shdr found;
    if (index == 0 || index >= object->file.section_count ||
        !file_section(&object->file, index, &found))
        return false;
    *header = (struct cairn_object_section_header){
        .name = file_section_name(&object->file, &found),
        .address = cairn_object_is_relocatable(object) ? 0 : found.sh_addr,
        .size = found.sh_size,
        .flags = found.sh_flags,
        .type = found.sh_type,
        .linked_section = (found.sh_flags & SHF_LINK_ORDER) != 0 ? found.sh_link : 0,
    };
    return true;
}
