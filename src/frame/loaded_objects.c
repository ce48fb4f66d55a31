/*
 * Finding a loaded object through the dynamic linker.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/loaded_objects.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

/* glibc defines this macro, as 0 or 1, if it has _dl_find_object. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE

bool objects_find(uint64_t pc, struct object_memory *object)
{
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)pc, &found) != 0)
        return false;
    object->begin = (uintptr_t)found.dlfo_map_start;
    object->end = (uintptr_t)found.dlfo_map_end;
    object->header = (uintptr_t)found.dlfo_eh_frame;
    return true;
}

#else

struct search {
    uint64_t pc;
    struct object_memory object;
};

static void take_segment(const struct dl_phdr_info *info, const ElfW(Phdr) * segment,
                         struct object_memory *object)
{
    uint64_t begin = info->dlpi_addr + segment->p_vaddr;
    uint64_t end = begin + segment->p_memsz;
    if (segment->p_type == PT_GNU_EH_FRAME)
        object->header = begin;
    if (segment->p_type != PT_LOAD)
        return;
    object->begin = begin < object->begin ? begin : object->begin;
    object->end = end > object->end ? end : object->end;
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *user)
{
    struct search *search = user;
    (void)size;
    search->object = (struct object_memory){.begin = UINT64_MAX};
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++)
        take_segment(info, &info->dlpi_phdr[i], &search->object);
    return search->pc >= search->object.begin && search->pc < search->object.end;
}

bool objects_find(uint64_t pc, struct object_memory *object)
{
    struct search search = {.pc = pc};
    if (dl_iterate_phdr(look_at_object, &search) == 0)
        return false;
    *object = search.object;
    return true;
}

#endif
