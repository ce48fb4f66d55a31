/*
 * Finds the host's options for a section that LLVM asks memory for, by the section's name.
 *
 * LLVM 16 takes the options as a part of the name ("section!C"). It does not compress numbers, and
 * pads each to its size in memory: a number of 3 bytes takes 4, a number of 5 to 7 bytes takes 8.
 * Later versions remove the options from the name, and apply them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/captures.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>

/* ---- Copying ---- */

/* Returns the bytes of an address in the entries. Sources:
 * llvm/lib/CodeGen/AsmPrinter/AsmPrinter.cpp, emitPCSections; for the default code model, functions
 * such as getEffectiveCodeModel in the target machines. Memory managers reject the other models. */
static uint8_t address_bytes(LLVMCodeModel code_model)
{
    enum { NEAR = 4, FAR = 8 };
    if (code_model == LLVMCodeModelLarge)
        return FAR;
    return cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2 ? NEAR : FAR;
}

static enum cairn_status copy(const struct cairn_capture *capture, LLVMCodeModel code_model,
                              struct captures *captures, struct cairn_error *error)
{
    if (capture->section == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a capture of PC sections has no name");
    char *name = memory_new(&captures->allocator, strlen(capture->section) + 1, 1);
    if (name == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory to note the capture of PC section '%.60s'", capture->section);
    strcpy(name, capture->section);
    struct cairn_capture *entry = &captures->entries[captures->count++];
    *entry = *capture;
    entry->section = name;
    if (entry->schema.address_bytes == 0)
        entry->schema.address_bytes = address_bytes(code_model);
    return CAIRN_OK;
}

enum cairn_status captures_create(const struct cairn_memory_manager_options *options,
                                  const struct cairn_allocator *allocator,
                                  struct captures *captures, struct cairn_error *error)
{
    size_t count = options->capture_count;
    *captures = (struct captures){.allocator = *allocator};
    if (count == 0)
        return CAIRN_OK;
    if (options->captures == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "%zu captures of PC sections, but no array of them", count);
    captures->entries = memory_new(allocator, count, sizeof *captures->entries);
    if (captures->entries == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu captures", count);
    captures->capacity = count;
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = copy(&options->captures[i], options->code_model, captures, error);
    return status;
}

void captures_release(struct captures *captures)
{
    for (size_t i = 0; i < captures->count; i++) {
        char *name = (char *)(uintptr_t)captures->entries[i].section;
        memory_free(&captures->allocator, name, strlen(name) + 1);
    }
    memory_free(&captures->allocator, captures->entries,
                captures->capacity * sizeof *captures->entries);
    *captures = (struct captures){0};
}

/* ---- Finding ---- */

static bool fits(const struct cairn_capture *capture, const char *name, size_t length)
{
    size_t wanted = strlen(capture->section);
    bool long_enough = capture->is_prefix ? length >= wanted : length == wanted;
    return long_enough && memcmp(name, capture->section, wanted) == 0;
}

static const struct cairn_capture *find(const struct captures *captures, const char *name,
                                        size_t length)
{
    for (size_t i = 0; i < captures->count; i++)
        if (fits(&captures->entries[i], name, length))
            return &captures->entries[i];
    return NULL;
}

/* Changes the schema to what LLVM 16 writes for a section with the option to compress. */
static void write_whole(struct cairn_pcsection_schema *schema)
{
    enum { SHORT = 2, WORD = 4, DOUBLEWORD = 8 };
    schema->is_compressed = false;
    for (uint8_t i = 0; i < schema->constant_count; i++) {
        uint8_t *bytes = &schema->constant_bytes[i];
        if (*bytes > SHORT)
            *bytes = *bytes <= WORD ? WORD : DOUBLEWORD;
    }
}

enum cairn_status captures_find(const struct captures *captures, const char *section_name,
                                struct cairn_pc_table_section *section, bool *is_captured,
                                struct cairn_error *error)
{
    size_t length = strcspn(section_name, "!");
    const struct cairn_capture *found = find(captures, section_name, length);
    *is_captured = false;
    if (found == NULL)
        return CAIRN_OK;
    char *name = memory_new(&captures->allocator, length + 1, 1);
    if (name == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory for the name of PC section '%.60s'", section_name);
    memcpy(name, section_name, length);
    *section = (struct cairn_pc_table_section){.name = name};
    if (found->has_schema)
        section->schema = found->schema;
    if (section_name[length] != '\0')
        write_whole(&section->schema);
    *is_captured = true;
    return CAIRN_OK;
}

void capture_release(const struct captures *captures, const struct cairn_pc_table_section *section)
{
    memory_free(&captures->allocator, (char *)(uintptr_t)section->name, strlen(section->name) + 1);
}
