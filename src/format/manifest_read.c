/* Reads manifests. SPDX-License-Identifier: MIT */
#include "format/manifest.h"

#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"
#include "format/pcsection.h"
#include "format/uleb128.h"

#include <cairn/section.h>
#include <string.h>

static enum cairn_status fail(enum cairn_status status, size_t offset, const char *what,
                              struct cairn_error *error)
{
    return error_set(error, status, offset, "section " MANIFEST_SECTION ", offset %zu: %s", offset,
                     what);
}

void manifest_reader_init(struct manifest_reader *reader, const uint8_t *bytes, size_t size,
                          const struct cairn_allocator *allocator)
{
    *reader = (struct manifest_reader){.bytes = bytes, .size = size, .allocator = *allocator};
}

void manifest_reader_release(struct manifest_reader *reader)
{
    memory_free(&reader->allocator, reader->types, reader->type_capacity * sizeof *reader->types);
}

/* ---- Numbers, strings and types ---- */

/* Reads a number of at most `max`. */
static enum cairn_status read_number(struct manifest_reader *reader, uint64_t max, const char *what,
                                     uint64_t *number, struct cairn_error *error)
{
    const uint8_t *at = reader->bytes + reader->offset;
    const uint8_t *after = uleb128_read(at, reader->bytes + reader->unit_end, number);
    if (after == NULL && *number == 0)
        return error_set(error, CAIRN_ERROR_TRUNCATED, reader->offset,
                         "section " MANIFEST_SECTION ", offset %zu: the unit ends inside %s",
                         reader->offset, what);
    if (after == NULL || *number > max)
        return error_set(error, CAIRN_ERROR_CORRUPT, reader->offset,
                         "section " MANIFEST_SECTION ", offset %zu: %s must be at most %llu",
                         reader->offset, what, (unsigned long long)max);
    reader->offset += (size_t)(after - at);
    return CAIRN_OK;
}

static enum cairn_status read_u32(struct manifest_reader *reader, const char *what,
                                  uint32_t *number, struct cairn_error *error)
{
    uint64_t wide = 0;
    enum cairn_status status = read_number(reader, UINT32_MAX, what, &wide, error);
    *number = (uint32_t)wide;
    return status;
}

/* Reads a string, which has no zero byte except the last one. */
static enum cairn_status read_string(struct manifest_reader *reader, const char *what,
                                     const char **text, struct cairn_error *error)
{
    uint64_t length = 0;
    size_t begin = reader->offset;
    enum cairn_status status = read_number(reader, UINT32_MAX, what, &length, error);
    if (status != CAIRN_OK)
        return status;
    if (length >= reader->unit_end - reader->offset)
        return error_set(error, CAIRN_ERROR_TRUNCATED, begin,
                         "section " MANIFEST_SECTION ", offset %zu: %s has %llu bytes, %zu are "
                         "left in the unit",
                         begin, what, (unsigned long long)length + 1,
                         reader->unit_end - reader->offset);
    const char *bytes = (const char *)reader->bytes + reader->offset;
    if (strnlen(bytes, length + 1) != length)
        return error_set(error, CAIRN_ERROR_CORRUPT, begin,
                         "section " MANIFEST_SECTION ", offset %zu: %s does not end with its only "
                         "zero byte",
                         begin, what);
    reader->offset += length + 1;
    *text = bytes;
    return CAIRN_OK;
}

static enum cairn_status read_type(struct manifest_reader *reader, struct cairn_type *type,
                                   struct cairn_error *error)
{
    uint64_t flags = 0;
    size_t begin = reader->offset;
    *type = (struct cairn_type){.kind = CAIRN_TYPE_VOID};
    enum cairn_status status =
        read_number(reader, MANIFEST_TYPE_FLAGS, "a type's kind", &flags, error);
    if (status == CAIRN_OK && (flags & MANIFEST_TYPE_KIND) > CAIRN_TYPE_OTHER)
        return fail(CAIRN_ERROR_CORRUPT, begin, "unknown kind of type", error);
    type->kind = (enum cairn_type_kind)(flags & MANIFEST_TYPE_KIND);
    if (status == CAIRN_OK)
        status = read_u32(reader, "the bits of a type", &type->bits, error);
    if (status == CAIRN_OK && (flags & MANIFEST_HAS_ELEMENTS) != 0)
        status = read_u32(reader, "the elements of a vector", &type->element_count, error);
    if (status == CAIRN_OK && (flags & MANIFEST_HAS_ADDRESS_SPACE) != 0)
        status = read_u32(reader, "an address space", &type->address_space, error);
    return status;
}

/* ---- Units ---- */

static uint32_t header_number(const struct manifest_reader *reader, size_t offset)
{
    return cairn_load_u32(reader->bytes + reader->offset + offset, CAIRN_LITTLE_ENDIAN);
}

/* Checks that the rest of a unit, after its last item, is less than MANIFEST_ALIGNMENT zeros. */
static enum cairn_status end_unit(struct manifest_reader *reader, struct cairn_error *error)
{
    size_t left = reader->unit_end - reader->offset;
    if (reader->pc_sections_left > 0 || reader->declarations_left > 0)
        return CAIRN_OK;
    for (size_t i = 0; i < left; i++)
        if (left >= MANIFEST_ALIGNMENT || reader->bytes[reader->offset + i] != 0)
            return fail(CAIRN_ERROR_CORRUPT, reader->offset, "bytes after the unit's last item",
                        error);
    reader->offset = reader->unit_end;
    return CAIRN_OK;
}

static enum cairn_status read_header(struct manifest_reader *reader, struct cairn_error *error)
{
    size_t left = reader->size - reader->offset;
    if (left < MANIFEST_HEADER_BYTES)
        return error_set(error, CAIRN_ERROR_TRUNCATED, reader->offset,
                         "section " MANIFEST_SECTION ", offset %zu: truncated header (%d bytes "
                         "needed, %zu left)",
                         reader->offset, MANIFEST_HEADER_BYTES, left);
    if (memcmp(reader->bytes + reader->offset, MANIFEST_MAGIC, 8) != 0)
        return fail(CAIRN_ERROR_CORRUPT, reader->offset,
                    "a unit does not begin with '" MANIFEST_MAGIC "'", error);
    uint32_t version = header_number(reader, 8);
    if (version != MANIFEST_VERSION)
        return error_set(error, CAIRN_ERROR_VERSION, reader->offset + 8,
                         "section " MANIFEST_SECTION ", offset %zu: the object's manifest has "
                         "version %u, this Cairn reads version %d: compile the object again",
                         reader->offset + 8, version, MANIFEST_VERSION);
    size_t size = header_number(reader, 12);
    if (size < MANIFEST_HEADER_BYTES || size % MANIFEST_ALIGNMENT != 0)
        return fail(CAIRN_ERROR_CORRUPT, reader->offset + 12, "invalid size of a unit", error);
    if (size > left)
        return error_set(error, CAIRN_ERROR_TRUNCATED, reader->offset + 12,
                         "section " MANIFEST_SECTION ", offset %zu: a unit of %zu bytes, %zu left",
                         reader->offset + 12, size, left);
    reader->pc_sections_left = header_number(reader, 16);
    reader->declarations_left = header_number(reader, 20);
    reader->unit_end = reader->offset + size;
    reader->offset += MANIFEST_HEADER_BYTES;
    reader->function = NULL;
    return CAIRN_OK;
}

enum cairn_status manifest_read_unit(struct manifest_reader *reader, struct manifest_target *target,
                                     struct cairn_error *error)
{
    uint64_t architecture = 0;
    *target = (struct manifest_target){.triple = "", .cpu = "", .features = ""};
    enum cairn_status status = read_header(reader, error);
    if (status == CAIRN_OK)
        status = read_number(reader, CAIRN_ARCHITECTURE_RISCV64, "the number of an architecture",
                             &architecture, error);
    target->architecture = (enum cairn_architecture)architecture;
    if (status == CAIRN_OK)
        status = read_u32(reader, "the version of LLVM", &target->llvm_version, error);
    if (status == CAIRN_OK)
        status = read_string(reader, "the triple", &target->triple, error);
    if (status == CAIRN_OK)
        status = read_string(reader, "the name of the CPU", &target->cpu, error);
    if (status == CAIRN_OK)
        status = read_string(reader, "the list of features", &target->features, error);
    return status == CAIRN_OK ? end_unit(reader, error) : status;
}

enum cairn_status manifest_read_pc_section(struct manifest_reader *reader,
                                           struct manifest_pc_section *pc_section,
                                           struct cairn_error *error)
{
    uint64_t flags = 0;
    uint64_t address_bytes = 0;
    uint64_t count = 0;
    struct cairn_pcsection_schema *schema = &pc_section->schema;
    size_t begin = reader->offset;
    *pc_section = (struct manifest_pc_section){.name = ""};
    reader->pc_sections_left--;
    enum cairn_status status =
        read_string(reader, "the name of a PC section", &pc_section->name, error);
    if (status == CAIRN_OK)
        status = read_number(reader, MANIFEST_SCHEMA_FLAGS, "flags of a PC section", &flags, error);
    if (status != CAIRN_OK)
        return status;
    pc_section->is_prefix = (flags & MANIFEST_IS_PREFIX) != 0;
    if ((flags & MANIFEST_HAS_SCHEMA) == 0)
        return end_unit(reader, error);
    schema->has_size = (flags & MANIFEST_HAS_SIZE) != 0;
    schema->is_compressed = (flags & MANIFEST_IS_COMPRESSED) != 0;
    status = read_number(reader, 8, "the size of an address", &address_bytes, error);
    if (status == CAIRN_OK)
        status = read_number(reader, CAIRN_PCSECTION_CONSTANTS_MAX, "the number of constants",
                             &count, error);
    if (status != CAIRN_OK)
        return status;
    if (count > reader->unit_end - reader->offset)
        return fail(CAIRN_ERROR_TRUNCATED, reader->offset, "the unit ends inside a schema", error);
    schema->address_bytes = (uint8_t)address_bytes;
    schema->constant_count = (uint8_t)count;
    memcpy(schema->constant_bytes, reader->bytes + reader->offset, count);
    reader->offset += count;
    if (!pcsection_is_schema(schema))
        return fail(CAIRN_ERROR_CORRUPT, begin, "invalid schema of a PC section", error);
    return end_unit(reader, error);
}

/* ---- Declarations ---- */

/* Reads the types of the arguments and live values. Each takes at least 2 bytes, so that the memory
 * for them is in proportion to the section. */
static enum cairn_status read_types(struct manifest_reader *reader,
                                    struct cairn_declaration *declaration,
                                    struct cairn_error *error)
{
    enum { TYPE_BYTES_MIN = 2 };
    size_t begin = reader->offset;
    size_t left = reader->unit_end - begin;
    size_t count = (size_t)declaration->argument_count + declaration->live_value_count;
    if (count > left / TYPE_BYTES_MIN)
        return error_set(error, CAIRN_ERROR_TRUNCATED, begin,
                         "section " MANIFEST_SECTION ", offset %zu: %zu types in %zu bytes", begin,
                         count, left);
    if (count > 0) {
        struct cairn_type *types = array_reserve(&reader->allocator, reader->types, 0, count,
                                                 &reader->type_capacity, sizeof *types);
        if (types == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, begin, "no memory for %zu types", count);
        reader->types = types;
    }
    declaration->types = reader->types;
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = read_type(reader, &reader->types[i], error);
    return status;
}

static enum cairn_status read_results(struct manifest_reader *reader, struct cairn_results *results,
                                      struct cairn_error *error)
{
    uint64_t count = 0;
    enum cairn_status status =
        read_number(reader, CAIRN_FUNCTION_RESULTS_MAX, "the number of results", &count, error);
    for (uint8_t i = 0; i < count && status == CAIRN_OK; i++)
        status = read_type(reader, &results->types[i], error);
    results->count = (uint8_t)count;
    return status;
}

/* Reads the flags and what they announce, up to the name of the function. */
static enum cairn_status read_properties(struct manifest_reader *reader,
                                         struct cairn_declaration *declaration,
                                         struct cairn_error *error)
{
    uint64_t flags = 0;
    size_t begin = reader->offset;
    enum cairn_status status =
        read_number(reader, MANIFEST_DECLARATION_FLAGS, "flags of a declaration", &flags, error);
    declaration->has_target = (flags & MANIFEST_HAS_TARGET) != 0;
    declaration->function_results.is_known = (flags & MANIFEST_HAS_RESULTS) != 0;
    declaration->function_results.extends_sign = (flags & MANIFEST_EXTENDS_SIGN) != 0;
    if (status == CAIRN_OK)
        status = read_u32(reader, "a number of bytes", &declaration->byte_count, error);
    if (status == CAIRN_OK)
        status = read_u32(reader, "a calling convention", &declaration->calling_convention, error);
    if (status == CAIRN_OK && (flags & MANIFEST_HAS_FUNCTION) != 0)
        status = read_string(reader, "the name of a function", &reader->function, error);
    bool is_same = (flags & MANIFEST_SAME_FUNCTION) != 0;
    if (status == CAIRN_OK && is_same &&
        (reader->function == NULL || strlen(reader->function) > MANIFEST_SHARED_NAME_MAX))
        return fail(CAIRN_ERROR_CORRUPT, begin, "no earlier name of a function can be shared",
                    error);
    if (is_same || (flags & MANIFEST_HAS_FUNCTION) != 0)
        declaration->function = reader->function;
    return status;
}

enum cairn_status manifest_read_declaration(struct manifest_reader *reader,
                                            struct cairn_declaration *declaration,
                                            struct cairn_error *error)
{
    uint64_t kind = 0;
    *declaration = (struct cairn_declaration){.id = 0};
    reader->declarations_left--;
    enum cairn_status status =
        read_number(reader, UINT64_MAX, "the ID of a declaration", &declaration->id, error);
    if (status == CAIRN_OK)
        status =
            read_number(reader, CAIRN_RECORD_STATEPOINT, "the kind of a declaration", &kind, error);
    declaration->kind = (enum cairn_record_kind)kind;
    if (status == CAIRN_OK && declaration->kind == CAIRN_RECORD_UNDECLARED)
        return end_unit(reader, error);
    if (status == CAIRN_OK)
        status = read_properties(reader, declaration, error);
    if (status == CAIRN_OK)
        status = read_type(reader, &declaration->result, error);
    if (status == CAIRN_OK)
        status = read_u32(reader, "the number of arguments", &declaration->argument_count, error);
    if (status == CAIRN_OK)
        status =
            read_u32(reader, "the number of live values", &declaration->live_value_count, error);
    if (status == CAIRN_OK)
        status = read_types(reader, declaration, error);
    if (status == CAIRN_OK && declaration->function_results.is_known)
        status = read_results(reader, &declaration->function_results, error);
    return status == CAIRN_OK ? end_unit(reader, error) : status;
}
