/*
 * Decompresses sections.
 *
 * libelf can decompress only a section of a file, and changes the section's header. Therefore it
 * works on a small temporary file that contains only the section:
 *
 *     ELF header | section table: null section, the section | bytes of the section
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/compression.h"

#include "base/error.h"
#include "base/memory.h"

#include <cairn/section.h>
#include <string.h>

enum {
    TABLE_OFFSET = sizeof(Elf64_Ehdr),
    TABLE_COUNT = 2,
    HEADER_OFFSET = TABLE_OFFSET + sizeof(Elf64_Shdr),
    BYTES_OFFSET = TABLE_OFFSET + TABLE_COUNT * sizeof(Elf64_Shdr)
};

enum { COMPRESSION_ZSTANDARD = 2 }; /* missing in some versions of <elf.h> */

/* ---- The temporary file ---- */

static void put(uint8_t *bytes, size_t size, enum cairn_byte_order byte_order, uint64_t value)
{
    for (size_t i = 0; i < size; i++) {
        size_t place = byte_order == CAIRN_BIG_ENDIAN ? size - 1 - i : i;
        bytes[place] = (uint8_t)(value >> (8 * i));
    }
}

#define PUT(start, type, field, byte_order, value)                                                 \
    put((start) + offsetof(type, field), sizeof(((type *)NULL)->field), byte_order, value)

static void write_file(const struct file *file, const struct file_bytes *section, uint8_t *bytes)
{
    enum cairn_byte_order order = file->byte_order;
    memcpy(bytes, file->image.bytes, EI_NIDENT);
    PUT(bytes, Elf64_Ehdr, e_type, order, ET_REL);
    PUT(bytes, Elf64_Ehdr, e_machine, order, file->header.e_machine);
    PUT(bytes, Elf64_Ehdr, e_version, order, EV_CURRENT);
    PUT(bytes, Elf64_Ehdr, e_shoff, order, TABLE_OFFSET);
    PUT(bytes, Elf64_Ehdr, e_ehsize, order, sizeof(Elf64_Ehdr));
    PUT(bytes, Elf64_Ehdr, e_shentsize, order, sizeof(Elf64_Shdr));
    PUT(bytes, Elf64_Ehdr, e_shnum, order, TABLE_COUNT);

    uint8_t *header = bytes + HEADER_OFFSET;
    PUT(header, Elf64_Shdr, sh_type, order, SHT_PROGBITS);
    PUT(header, Elf64_Shdr, sh_flags, order, SHF_COMPRESSED);
    PUT(header, Elf64_Shdr, sh_offset, order, BYTES_OFFSET);
    PUT(header, Elf64_Shdr, sh_size, order, section->size);
    PUT(header, Elf64_Shdr, sh_addralign, order, 1);
    memcpy(bytes + BYTES_OFFSET, section->bytes, section->size);
}

/* ---- Decompression by libelf ---- */

static bool is_unknown(const struct file *file, const struct file_bytes *compressed)
{
    return compressed->size >= sizeof(Elf64_Chdr) &&
           cairn_load_u32(compressed->bytes, file->byte_order) == COMPRESSION_ZSTANDARD;
}

static enum cairn_status explain(const struct file *file, const struct file_bytes *compressed,
                                 struct cairn_error *error)
{
    const char *reason = elf_errmsg(-1);
    if (is_unknown(file, compressed))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "the section is compressed with Zstandard, which this libelf does not "
                         "know: decompress it with 'llvm-objcopy --decompress-debug-sections'");
    return error_set(error, CAIRN_ERROR_CORRUPT, 0, "the section cannot be decompressed: %s",
                     reason);
}

static enum cairn_status decompress(Elf *elf, const struct file *file,
                                    const struct file_bytes *compressed,
                                    const struct cairn_allocator *allocator, uint8_t **bytes,
                                    size_t *size, struct cairn_error *error)
{
    Elf_Scn *section = elf == NULL ? NULL : elf_getscn(elf, 1);
    Elf_Data *data = NULL;
    if (section != NULL && elf_compress(section, 0, 0) >= 0)
        data = elf_rawdata(section, NULL);
    if (data == NULL)
        return explain(file, compressed, error);
    *size = data->d_size;
    if (data->d_size == 0)
        return CAIRN_OK;
    *bytes = memory_new(allocator, data->d_size, 1);
    if (*bytes == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a section of %zu bytes",
                         data->d_size);
    memcpy(*bytes, data->d_buf, data->d_size);
    return CAIRN_OK;
}

/* Returns the size in the section's compression header; 0 if there is no such header. */
static uint64_t decompressed_size(const struct file *file, const struct file_bytes *compressed)
{
    if (compressed->size < sizeof(Elf64_Chdr))
        return 0;
    return cairn_load_u64(compressed->bytes + offsetof(Elf64_Chdr, ch_size), file->byte_order);
}

enum cairn_status compression_undo(const struct file *file, const struct file_bytes *compressed,
                                   struct budget *budget, uint8_t **bytes, size_t *size,
                                   struct cairn_error *error)
{
    const struct cairn_allocator allocator = budget_allocator(budget);
    uint64_t whole_size = decompressed_size(file, compressed);
    *bytes = NULL;
    *size = 0;
    size_t small_size = BYTES_OFFSET + compressed->size;
    uint8_t *small = memory_new(&allocator, small_size, 1);
    /* libelf allocates exactly as many bytes as the section's compression header says. */
    bool is_taken = small != NULL && budget_take(budget, whole_size);
    if (!is_taken) {
        memory_free(&allocator, small, small_size);
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory to decompress a section to %llu bytes",
                         (unsigned long long)whole_size);
    }
    write_file(file, compressed, small);
    Elf *elf = elf_memory((char *)small, small_size);
    enum cairn_status status = decompress(elf, file, compressed, &allocator, bytes, size, error);
    elf_end(elf);
    budget_return(budget, whole_size);
    memory_free(&allocator, small, small_size);
    return status;
}
