/*
 * Prepares the bytes of sections: decompresses and relocates them.
 *
 * A section is prepared when it is requested for the first time, and kept until the object is
 * closed. Sections that are never requested are not read.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/memory.h"
#include "file/object.h"

#include <string.h>

/* Replaces the bytes by a copy, which the prepared section owns. */
static enum cairn_status copy_bytes(const cairn_object *object, struct prepared *prepared,
                                    struct cairn_error *error)
{
    prepared->copy = memory_new(&object->allocator, prepared->size, 1);
    if (prepared->copy == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a section of %zu bytes",
                         prepared->size);
    memcpy(prepared->copy, prepared->bytes, prepared->size);
    prepared->bytes = prepared->copy;
    return CAIRN_OK;
}

/* ---- Decompression ----
 *
 * libelf can decompress only a section of a file, and changes the section's header. Therefore it
 * works on a small temporary file that contains only the section:
 *
 *     ELF header | section table: null section, the section | bytes of the section
 */

enum { TABLE_COUNT = 2, HEADERS_BYTES = sizeof(Elf64_Ehdr) + TABLE_COUNT * sizeof(Elf64_Shdr) };
enum { COMPRESSION_ZSTANDARD = 2 }; /* missing in some versions of <elf.h> */

static void write_file(const struct file *file, const struct file_bytes *section, uint8_t *bytes)
{
    Elf64_Ehdr header = {
        .e_type = ET_REL,
        .e_machine = file->header.e_machine,
        .e_version = EV_CURRENT,
        .e_shoff = sizeof(Elf64_Ehdr),
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = TABLE_COUNT,
    };
    Elf64_Shdr table[TABLE_COUNT] = {[1] = {
                                         .sh_type = SHT_PROGBITS,
                                         .sh_flags = SHF_COMPRESSED,
                                         .sh_offset = HEADERS_BYTES,
                                         .sh_size = section->size,
                                         .sh_addralign = 1,
                                     }};
    memcpy(header.e_ident, file->image.bytes, EI_NIDENT);
    Elf_Data from = {.d_buf = &header, .d_size = sizeof header, .d_version = EV_CURRENT};
    Elf_Data to = {.d_buf = bytes, .d_size = HEADERS_BYTES, .d_version = EV_CURRENT};
    from.d_type = ELF_T_EHDR;
    elf64_xlatetof(&to, &from, header.e_ident[EI_DATA]);
    from.d_buf = table;
    from.d_size = sizeof table;
    from.d_type = ELF_T_SHDR;
    to.d_buf = bytes + sizeof header;
    to.d_size = sizeof table;
    elf64_xlatetof(&to, &from, header.e_ident[EI_DATA]);
    memcpy(bytes + HEADERS_BYTES, section->bytes, section->size);
}

/* Copies the bytes that libelf decompresses from the temporary file. */
static enum cairn_status copy_decompressed(cairn_object *object, Elf *elf,
                                           const struct file_bytes *compressed,
                                           struct prepared *prepared, struct cairn_error *error)
{
    Elf_Scn *section = elf == NULL ? NULL : elf_getscn(elf, 1);
    Elf_Data *data = NULL;
    if (section != NULL && elf_compress(section, 0, 0) >= 0)
        data = elf_rawdata(section, NULL);
    const char *reason = data == NULL ? elf_errmsg(-1) : NULL;
    if (data == NULL && compressed->size >= sizeof(Elf64_Chdr) &&
        cairn_load_u32(compressed->bytes, object->file.byte_order) == COMPRESSION_ZSTANDARD)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "the section is compressed with Zstandard, which this libelf does not "
                         "know: decompress it with 'llvm-objcopy --decompress-debug-sections'");
    if (data == NULL)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "the section cannot be decompressed: %s",
                         reason);
    prepared->size = data->d_size;
    if (data->d_size == 0)
        return CAIRN_OK;
    prepared->bytes = data->d_buf;
    return copy_bytes(object, prepared, error);
}

/* Decompresses a section. Errors: CORRUPT, UNSUPPORTED (a type that libelf does not know),
 * MEMORY. */
static enum cairn_status decompress(cairn_object *object, const struct file_bytes *compressed,
                                    struct prepared *prepared, struct cairn_error *error)
{
    uint64_t whole_size = 0;
    if (compressed->size >= sizeof(Elf64_Chdr))
        whole_size = cairn_load_u64(compressed->bytes + offsetof(Elf64_Chdr, ch_size),
                                    object->file.byte_order);
    size_t small_size = HEADERS_BYTES + compressed->size;
    uint8_t *small = memory_new(&object->allocator, small_size, 1);
    /* libelf allocates exactly as many bytes as the section's compression header says. */
    if (small == NULL || !budget_take(&object->budget, whole_size)) {
        memory_free(&object->allocator, small, small_size);
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory to decompress a section to %llu bytes",
                         (unsigned long long)whole_size);
    }
    write_file(&object->file, compressed, small);
    Elf *elf = elf_memory((char *)small, small_size);
    enum cairn_status status = copy_decompressed(object, elf, compressed, prepared, error);
    elf_end(elf);
    object->budget.used -= whole_size;
    memory_free(&object->allocator, small, small_size);
    return status;
}

/* ---- Preparing a section ---- */

static enum cairn_status relocate(cairn_object *object, const GElf_Shdr *header,
                                  enum section_form form, struct prepared *prepared,
                                  struct cairn_error *error)
{
    struct relocation_target target = {
        .sources = &object->sources,
        .section = prepared->index,
        .address = prepared->address,
        .size = prepared->size,
        .is_loaded = (header->sh_flags & SHF_ALLOC) != 0,
    };
    enum cairn_status status = CAIRN_OK;
    if (object->sources.file == NULL)
        status =
            relocation_sources_read(&object->file, &object->allocator, &object->sources, error);
    if (status == CAIRN_OK && form == SECTION_RELOCATED && target.is_loaded)
        status = relocation_sources_sort(&object->sources, error);
    if (status != CAIRN_OK)
        return status;
    if (form == SECTION_CODE)
        return relocation_apply(&target, &prepared->relocations, error);
    if (prepared->size == 0 || !relocation_is_needed(&target))
        return CAIRN_OK;
    if (prepared->copy == NULL)
        status = copy_bytes(object, prepared, error);
    if (status != CAIRN_OK)
        return status;
    target.bytes = prepared->copy;
    return relocation_apply(&target, &prepared->relocations, error);
}

static void release(struct prepared *prepared, const struct cairn_allocator *allocator)
{
    if (prepared == NULL)
        return;
    relocation_list_release(&prepared->relocations, allocator);
    memory_free(allocator, prepared->copy, prepared->size);
    memory_free(allocator, prepared, sizeof *prepared);
}

static enum cairn_status create(cairn_object *object, uint32_t index, enum section_form form,
                                struct prepared **created, struct cairn_error *error)
{
    GElf_Shdr header;
    struct file_bytes found;
    if (!file_section(&object->file, index, &header))
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "section %u cannot be read", index);
    if (header.sh_type == SHT_NOBITS)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, header.sh_offset,
                         "the section has no bytes in this file: is it a separate debug file?");
    enum cairn_status status = file_section_bytes(&object->file, index, &header, &found, error);
    if (status != CAIRN_OK)
        return status;
    struct prepared *prepared = memory_new(&object->allocator, 1, sizeof *prepared);
    if (prepared == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a section");
    *prepared = (struct prepared){
        .index = index,
        .address = file_is_relocatable(&object->file) ? 0 : header.sh_addr,
        .bytes = found.bytes,
        .size = found.size,
    };
    if ((header.sh_flags & SHF_COMPRESSED) != 0)
        status = decompress(object, &found, prepared, error);
    if (status == CAIRN_OK)
        status = relocate(object, &header, form, prepared, error);
    if (status == CAIRN_OK)
        *created = prepared;
    else
        release(prepared, &object->allocator);
    return status;
}

enum cairn_status section_prepare(cairn_object *object, uint32_t index, enum section_form form,
                                  const struct prepared **prepared, struct cairn_error *error)
{
    struct prepared ***list = &object->sections[form];
    size_t count = object->file.section_count;
    enum cairn_status status = CAIRN_OK;
    if (*list == NULL)
        *list = memory_new(&object->allocator, count, sizeof(struct prepared *));
    if (*list == NULL)
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu sections", count);
    else if ((*list)[index] == NULL)
        status = create(object, index, form, &(*list)[index], error);
    *prepared = status == CAIRN_OK ? (*list)[index] : NULL;
    return section_explain(&object->budget, &object->file, index, status, error);
}

const struct prepared *section_find(const cairn_object *object, uint32_t index,
                                    enum section_form form)
{
    uint32_t count = object->file.section_count;
    if (index >= count)
        return object->debug_file == NULL ? NULL
                                          : section_find(object->debug_file, index - count, form);
    return object->sections[form] == NULL ? NULL : object->sections[form][index];
}

struct relocation section_read_address(const cairn_object *object, const struct prepared *prepared,
                                       uint64_t offset)
{
    const struct relocation *relocation = relocation_find(&prepared->relocations, offset, 1);
    uint64_t value = cairn_load_u64(prepared->bytes + offset, object->file.byte_order);
    /* If another relocation has changed some of the bytes, they are not the address of this one. */
    if (relocation != NULL && relocation->is_address && relocation->width == sizeof value &&
        relocation->value == value)
        return *relocation;
    return (struct relocation){.offset = offset, .value = value};
}

void section_release_all(cairn_object *object)
{
    size_t count = object->file.section_count;
    for (int form = 0; form < SECTION_FORMS; form++) {
        struct prepared **list = object->sections[form];
        for (size_t i = 0; list != NULL && i < count; i++)
            release(list[i], &object->allocator);
        memory_free(&object->allocator, list, count * sizeof(struct prepared *));
    }
    relocation_sources_release(&object->sources);
}
