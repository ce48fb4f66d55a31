/*
 * Fuzzes the reader of manifests. A manifest that is read, and whose IDs are different, is written
 * again; reading that gives the same declarations.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "base/memory.h"
#include "format/manifest.h"
#include "fuzz/fuzz.h"

static bool same_type(struct cairn_type left, struct cairn_type right)
{
    return left.kind == right.kind && left.bits == right.bits &&
           left.element_count == right.element_count && left.address_space == right.address_space;
}

static void check_again(const cairn_declarations *set, const struct manifest_target *target)
{
    const struct manifest manifest = {.target = *target, .declarations = set};
    const struct cairn_allocator allocator = memory_allocator(NULL);
    struct manifest_reader reader;
    struct manifest_target again;
    struct cairn_declaration found;
    uint8_t *bytes;
    size_t size;
    require(manifest_write(&manifest, &allocator, &bytes, &size, NULL) == CAIRN_OK);
    manifest_reader_init(&reader, bytes, size, &allocator);
    require(manifest_read_unit(&reader, &again, NULL) == CAIRN_OK);
    require(strcmp(again.features, target->features) == 0);
    for (size_t i = 0; i < cairn_declarations_count(set); i++) {
        const struct cairn_declaration *added = cairn_declarations_at(set, i);
        require(manifest_read_declaration(&reader, &found, NULL) == CAIRN_OK);
        require(found.id == added->id && found.kind == added->kind);
        if (found.kind == CAIRN_RECORD_UNDECLARED)
            continue;
        require(found.byte_count == added->byte_count && same_type(found.result, added->result));
        require(found.argument_count == added->argument_count);
        require(found.live_value_count == added->live_value_count);
        for (size_t k = 0; k < (size_t)found.argument_count + found.live_value_count; k++)
            require(same_type(found.types[k], added->types[k]));
        require((found.function == NULL) == (added->function == NULL));
        require(found.function == NULL || strcmp(found.function, added->function) == 0);
    }
    require(reader.offset == reader.size);
    manifest_reader_release(&reader);
    memory_free(&allocator, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    uint8_t *bytes = fuzz_copy(data, size);
    struct manifest_reader reader;
    struct manifest_target target;
    struct manifest_pc_section pc_section;
    struct cairn_declaration declaration;
    struct cairn_error error = {0};
    enum cairn_status status = CAIRN_OK;
    manifest_reader_init(&reader, bytes, size, &allocator);
    while (status == CAIRN_OK && reader.offset < reader.size) {
        cairn_declarations *set;
        require(cairn_declarations_create(NULL, &set, NULL) == CAIRN_OK);
        status = manifest_read_unit(&reader, &target, &error);
        while (status == CAIRN_OK && reader.pc_sections_left > 0)
            status = manifest_read_pc_section(&reader, &pc_section, &error);
        while (status == CAIRN_OK && reader.declarations_left > 0) {
            status = manifest_read_declaration(&reader, &declaration, &error);
            if (status == CAIRN_OK)
                (void)(cairn_declarations_add(set, &declaration, NULL) == CAIRN_OK);
        }
        if (status == CAIRN_OK)
            check_again(set, &target);
        cairn_declarations_destroy(set);
    }
    require(status == CAIRN_OK || (error.offset <= size && error.message[0] != '\0'));
    manifest_reader_release(&reader);
    free(bytes);
    return 0;
}
