/* SPDX-License-Identifier: MIT */
#include "runtime/captured.h"

#include "base/error.h"
#include "base/memory.h"
#include "format/pcsection.h"

#include <string.h>

static enum cairn_status check(const char *name, const struct cairn_pcsection_schema *schema,
                               struct cairn_error *error)
{
    if (name == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a PC section has to have a name");
    if (schema != NULL && !pcsection_is_schema(schema))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "PC section '%.60s': a schema has addresses of 4 or 8 bytes, and up to %d "
                         "constants of 1 to 8",
                         name, CAIRN_PCSECTION_CONSTANTS_MAX);
    return CAIRN_OK;
}

static bool reserve(struct captured *captured, const struct cairn_allocator *allocator)
{
    if (captured->count < captured->capacity)
        return true;
    size_t capacity = captured->capacity == 0 ? 4 : 2 * captured->capacity;
    struct cairn_pc_table_section *grown =
        memory_resize(allocator, captured->sections, captured->capacity * sizeof *grown,
                      capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    captured->sections = grown;
    captured->capacity = capacity;
    return true;
}

enum cairn_status captured_add(struct captured *captured, const struct cairn_allocator *allocator,
                               const char *name, const struct cairn_pcsection_schema *schema,
                               struct cairn_error *error)
{
    enum cairn_status status = check(name, schema, error);
    if (status != CAIRN_OK)
        return status;
    char *copy = memory_new(allocator, strlen(name) + 1, 1);
    if (copy == NULL || !reserve(captured, allocator)) {
        memory_free(allocator, copy, strlen(name) + 1);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note PC section '%.60s'",
                         name);
    }
    strcpy(copy, name);
    struct cairn_pc_table_section *section = &captured->sections[captured->count++];
    *section = (struct cairn_pc_table_section){.name = copy};
    if (schema != NULL)
        section->schema = *schema;
    return CAIRN_OK;
}

void captured_place(struct captured *captured, const uint8_t *bytes, size_t size)
{
    struct cairn_pc_table_section *section = &captured->sections[captured->count - 1];
    section->address = (uint64_t)(uintptr_t)bytes;
    section->section =
        (struct cairn_section){.bytes = bytes, .size = size, .byte_order = cairn_byte_order_host()};
}

static bool is_code(uint64_t address, void *user)
{
    return code_block_holds_code(user, address, 1);
}

enum cairn_status captured_build(const struct captured *captured,
                                 const struct cairn_allocator *allocator,
                                 const struct code_block *block, cairn_pc_table **table,
                                 struct cairn_error *error)
{
    if (captured->count == 0)
        return CAIRN_OK;
    const struct cairn_pc_table_options options = {
        .allocator = *allocator, .is_code = is_code, .user = (void *)(uintptr_t)block};
    return cairn_pc_table_create(captured->sections, captured->count, &options, table, error);
}

void captured_release(struct captured *captured, const struct cairn_allocator *allocator)
{
    for (size_t i = 0; i < captured->count; i++) {
        char *name = (char *)(uintptr_t)captured->sections[i].name;
        memory_free(allocator, name, strlen(name) + 1);
    }
    memory_free(allocator, captured->sections, captured->capacity * sizeof *captured->sections);
    *captured = (struct captured){0};
}
