/* Writes manifests. SPDX-License-Identifier: MIT */
#include "format/manifest.h"

#include "base/adapter.h"
#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

/* Bytes that grow. After memory has run out, `failed` is set and nothing more is written. */
struct buffer {
    const struct cairn_allocator *allocator;
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    bool failed;
};

static void put_bytes(struct buffer *buffer, const void *bytes, size_t size)
{
    if (size == 0 || buffer->failed)
        return;
    uint8_t *reserved =
        array_reserve(buffer->allocator, buffer->bytes, buffer->size, size, &buffer->capacity, 1);
    if (reserved == NULL) {
        buffer->failed = true;
        return;
    }
    buffer->bytes = reserved;
    memcpy(reserved + buffer->size, bytes, size);
    buffer->size += size;
}

static void put_number(struct buffer *buffer, uint64_t number)
{
    enum { BITS = 7, MORE = 0x80, NUMBER_BYTES_MAX = 10 };
    uint8_t bytes[NUMBER_BYTES_MAX];
    size_t size = 0;
    for (; number >= MORE; number >>= BITS)
        bytes[size++] = (uint8_t)(number | MORE);
    bytes[size++] = (uint8_t)number;
    put_bytes(buffer, bytes, size);
}

static void put_string(struct buffer *buffer, const char *text)
{
    size_t length = strlen(text);
    put_number(buffer, length);
    put_bytes(buffer, text, length + 1);
}

static void put_type(struct buffer *buffer, struct cairn_type type)
{
    put_number(buffer, (unsigned)type.kind | (type.element_count > 0 ? MANIFEST_HAS_ELEMENTS : 0U) |
                           (type.address_space > 0 ? MANIFEST_HAS_ADDRESS_SPACE : 0U));
    put_number(buffer, type.bits);
    if (type.element_count > 0)
        put_number(buffer, type.element_count);
    if (type.address_space > 0)
        put_number(buffer, type.address_space);
}

static void put_pc_section(struct buffer *buffer, const struct manifest_pc_section *pc_section)
{
    const struct cairn_pcsection_schema *schema = &pc_section->schema;
    bool has_schema = schema->address_bytes != 0;
    put_string(buffer, pc_section->name);
    put_number(buffer, (pc_section->is_prefix ? MANIFEST_IS_PREFIX : 0U) |
                           (has_schema ? MANIFEST_HAS_SCHEMA : 0U) |
                           (has_schema && schema->has_size ? MANIFEST_HAS_SIZE : 0U) |
                           (has_schema && schema->is_compressed ? MANIFEST_IS_COMPRESSED : 0U));
    if (!has_schema)
        return;
    put_number(buffer, schema->address_bytes);
    put_number(buffer, schema->constant_count);
    put_bytes(buffer, schema->constant_bytes, schema->constant_count);
}

/* Writes a declaration. `*function` is the name of the last function that was written. */
static void put_declaration(struct buffer *buffer, const struct cairn_declaration *declaration,
                            const char **function)
{
    const struct cairn_results *results = &declaration->function_results;
    put_number(buffer, declaration->id);
    put_number(buffer, (unsigned)declaration->kind);
    if (declaration->kind == CAIRN_RECORD_UNDECLARED)
        return;
    const char *name = declaration->function;
    bool is_same = name != NULL && *function != NULL && strcmp(name, *function) == 0 &&
                   strlen(name) <= MANIFEST_SHARED_NAME_MAX;
    put_number(buffer,
               (declaration->has_target ? MANIFEST_HAS_TARGET : 0U) |
                   (results->is_known ? MANIFEST_HAS_RESULTS : 0U) |
                   (results->is_known && results->extends_sign ? MANIFEST_EXTENDS_SIGN : 0U) |
                   (name != NULL && !is_same ? MANIFEST_HAS_FUNCTION : 0U) |
                   (is_same ? MANIFEST_SAME_FUNCTION : 0U));
    put_number(buffer, declaration->byte_count);
    put_number(buffer, declaration->calling_convention);
    if (name != NULL && !is_same)
        put_string(buffer, *function = name);
    put_type(buffer, declaration->result);
    put_number(buffer, declaration->argument_count);
    put_number(buffer, declaration->live_value_count);
    size_t count = (size_t)declaration->argument_count + declaration->live_value_count;
    for (size_t i = 0; i < count; i++)
        put_type(buffer, declaration->types[i]);
    if (!results->is_known)
        return;
    put_number(buffer, results->count);
    for (size_t i = 0; i < results->count; i++)
        put_type(buffer, results->types[i]);
}

static void set_u32(uint8_t *bytes, size_t number)
{
    for (unsigned i = 0; i < sizeof(uint32_t); i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
}

/* Writes the unit's header into the space that was left for it. */
static void write_header(const struct manifest *manifest, size_t declaration_count,
                         struct buffer *buffer)
{
    memcpy(buffer->bytes, MANIFEST_MAGIC, 8);
    set_u32(buffer->bytes + 8, MANIFEST_VERSION);
    set_u32(buffer->bytes + 12, buffer->size);
    set_u32(buffer->bytes + 16, manifest->pc_section_count);
    set_u32(buffer->bytes + 20, declaration_count);
}

enum cairn_status manifest_write(const struct manifest *manifest,
                                 const struct cairn_allocator *allocator, uint8_t **bytes,
                                 size_t *size, struct cairn_error *error)
{
    static const uint8_t zeros[MANIFEST_HEADER_BYTES];
    const struct manifest_target *target = &manifest->target;
    struct buffer buffer = {.allocator = allocator};
    const char *function = NULL;
    size_t count =
        manifest->declarations == NULL ? 0 : cairn_declarations_count(manifest->declarations);
    put_bytes(&buffer, zeros, sizeof zeros);
    put_number(&buffer, (unsigned)target->architecture);
    put_number(&buffer, target->llvm_version);
    put_string(&buffer, target->triple);
    put_string(&buffer, target->cpu);
    put_string(&buffer, target->features);
    for (size_t i = 0; i < manifest->pc_section_count; i++)
        put_pc_section(&buffer, &manifest->pc_sections[i]);
    for (size_t i = 0; i < count; i++)
        put_declaration(&buffer, cairn_declarations_at(manifest->declarations, i), &function);
    put_bytes(&buffer, zeros, -buffer.size % MANIFEST_ALIGNMENT);
    uint8_t *fitted =
        buffer.failed ? NULL : memory_resize(allocator, buffer.bytes, buffer.capacity, buffer.size);
    enum cairn_status status = CAIRN_OK;
    if (fitted == NULL)
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an object's manifest");
    else if (buffer.size > UINT32_MAX)
        status = error_set(error, CAIRN_ERROR_RANGE, 0, "an object's manifest of %zu bytes",
                           buffer.size);
    if (fitted != NULL) {
        buffer.bytes = fitted;
        buffer.capacity = buffer.size;
    }
    if (status != CAIRN_OK) {
        memory_free(allocator, buffer.bytes, buffer.capacity);
        return status;
    }
    write_header(manifest, count, &buffer);
    *bytes = buffer.bytes;
    *size = buffer.size;
    return CAIRN_OK;
}
