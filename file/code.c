/*
 * Finds the code of objects, and the symbols that relocations in it refer to.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "file/object.h"

enum cairn_status code_read_ranges(cairn_object *object, struct cairn_error *error)
{
    if (object->has_ranges)
        return CAIRN_OK;
    enum cairn_status status =
        code_ranges_read(&object->file, &object->allocator, &object->ranges, error);
    object->has_ranges = status == CAIRN_OK;
    return status;
}

static enum cairn_status prepare(cairn_object *object, uint32_t section, uint64_t address,
                                 const struct prepared **prepared, struct cairn_error *error)
{
    enum cairn_status status = code_read_ranges(object, error);
    if (status != CAIRN_OK)
        return status;
    const struct code_range *range = code_ranges_find(&object->ranges, section, address);
    if (range == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, address,
                         "there is no code at 0x%llx in this file", (unsigned long long)address);
    status = section_prepare_code(object, range->section, prepared, error);
    if (status == CAIRN_OK && address - (*prepared)->address >= (*prepared)->size)
        return error_set(error, CAIRN_ERROR_CORRUPT, address, "the section has fewer bytes");
    return status;
}

enum cairn_status cairn_object_code(cairn_object *object, uint32_t section, uint64_t address,
                                    struct cairn_object_code *code, struct cairn_error *error)
{
    if (object == NULL || code == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_code needs an object and a place for the code");
    const struct prepared *prepared;
    enum cairn_status status = prepare(object, section, address, &prepared, error);
    if (status != CAIRN_OK)
        return status;
    uint64_t offset = address - prepared->address;
    *code = (struct cairn_object_code){
        .address = address, .bytes = prepared->bytes + offset, .size = prepared->size - offset};
    return CAIRN_OK;
}

const char *cairn_object_relocated_symbol(const cairn_object *object, uint32_t section,
                                          uint64_t address, size_t size)
{
    const struct code_range *range = code_ranges_find(&object->ranges, section, address);
    const struct prepared *prepared =
        range == NULL ? NULL : section_find_code(object, range->section);
    if (prepared == NULL)
        return NULL;
    const struct relocation *relocation =
        relocation_find_name(&prepared->relocations, address - prepared->address, size);
    return relocation == NULL ? NULL : relocation->name;
}
