/* SPDX-License-Identifier: MIT */
#include "bench/generate_bbmap.h"

#include <cairn/bbmap.h>
#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAP_VERSION = 2, FUNCTION_ALIGNMENT = 16, BLOCKS_MAX = 512, BLOCK_BYTES_MAX = 16 };
enum { SECTION_CODE = 1, SECTION_MAPS = 2, SECTION_NAMES = 3, SECTION_COUNT = 4 };

static const char names[] = "\0.text\0.llvm_bb_addr_map\0.shstrtab";
enum { NAME_CODE = 1, NAME_MAPS = 7, NAME_NAMES = 25 };

struct writer {
    struct generated_bbmap *made;
    size_t capacity;
    uint64_t random;
};

/* ---- Random numbers ---- */

static uint32_t below(struct writer *writer, uint32_t bound)
{
    writer->random ^= writer->random << 13;
    writer->random ^= writer->random >> 7;
    writer->random ^= writer->random << 17;
    return (uint32_t)((writer->random >> 32) * bound >> 32);
}

/* Returns a random number between two adjacent steps. Each interval between steps is equally
 * likely. */
static uint32_t between_steps(struct writer *writer, const uint16_t *steps, uint32_t count)
{
    uint32_t step = below(writer, count - 1);
    return steps[step] + below(writer, steps[step + 1] - (uint32_t)steps[step] + 1);
}

static uint32_t random_block_count(struct writer *writer)
{
    static const uint16_t twentieths[] = {1, 1,  1,  1,  2,  3,  4,  5,  6,  7,  8,
                                          9, 11, 13, 15, 17, 21, 28, 39, 54, 120};
    return between_steps(writer, twentieths, sizeof twentieths / sizeof *twentieths);
}

static uint32_t random_block_bytes(struct writer *writer)
{
    static const uint16_t twentieths[] = {2,  4,  5,  6,  7,  8,  9,  10, 12, 13, 15,
                                          17, 19, 22, 25, 28, 31, 37, 49, 65, 110};
    if (below(writer, 100) == 0)
        return 128 + below(writer, 400);
    return between_steps(writer, twentieths, sizeof twentieths / sizeof *twentieths);
}

/* ---- Writing ---- */

static bool reserve(struct writer *writer, size_t size)
{
    struct generated_bbmap *made = writer->made;
    if (writer->capacity - made->size >= size)
        return true;
    size_t capacity = 2 * writer->capacity + size;
    uint8_t *grown = realloc(made->bytes, capacity);
    if (grown == NULL)
        return false;
    made->bytes = grown;
    writer->capacity = capacity;
    return true;
}

static void put_number(struct generated_bbmap *made, uint32_t number)
{
    for (; number >= 0x80; number >>= 7)
        made->bytes[made->size++] = (uint8_t)(number | 0x80);
    made->bytes[made->size++] = (uint8_t)number;
}

static void put_bytes(struct generated_bbmap *made, const void *bytes, size_t size)
{
    memcpy(made->bytes + made->size, bytes, size);
    made->size += size;
}

/* Writes a block. Two in three blocks fall through, and the last one returns. A few have IDs that
 * differ from their position, as if they had been moved. */
static void put_block(struct writer *writer, uint32_t index, uint32_t count)
{
    struct generated_bbmap *made = writer->made;
    uint32_t gap = below(writer, 50) == 0 ? below(writer, 15) : 0;
    uint32_t size = random_block_bytes(writer);
    uint32_t flags = below(writer, 3) > 0 ? CAIRN_BBMAP_CAN_FALL_THROUGH : 0;
    put_number(made, below(writer, 8) == 0 ? below(writer, count) : index);
    put_number(made, index == 0 ? 0 : gap);
    put_number(made, size);
    put_number(made, index + 1 == count ? CAIRN_BBMAP_HAS_RETURN : flags);
    made->code_size += size + (index == 0 ? 0 : gap);
}

static bool put_function(struct writer *writer)
{
    struct generated_bbmap *made = writer->made;
    if (!reserve(writer, 32 + (size_t)BLOCKS_MAX * BLOCK_BYTES_MAX))
        return false;
    uint32_t count = random_block_count(writer);
    uint64_t address = made->code_address + made->code_size;
    put_bytes(made, (const uint8_t[]){MAP_VERSION, 0}, 2);
    put_bytes(made, &address, sizeof address);
    put_number(made, count);
    for (uint32_t i = 0; i < count; i++)
        put_block(writer, i, count);
    made->code_size = (made->code_size + FUNCTION_ALIGNMENT - 1) & -(uint64_t)FUNCTION_ALIGNMENT;
    made->block_count += count;
    made->function_count++;
    return true;
}

static void put_section_table(struct generated_bbmap *made, size_t names_offset)
{
    const Elf64_Shdr sections[SECTION_COUNT] = {
        [SECTION_CODE] = {.sh_name = NAME_CODE,
                          .sh_type = SHT_NOBITS,
                          .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                          .sh_addr = made->code_address,
                          .sh_offset = sizeof(Elf64_Ehdr),
                          .sh_size = made->code_size},
        [SECTION_MAPS] = {.sh_name = NAME_MAPS,
                          .sh_type = CAIRN_BBMAP_SECTION_TYPE,
                          .sh_flags = SHF_LINK_ORDER,
                          .sh_offset = made->section_offset,
                          .sh_size = made->section_size,
                          .sh_link = SECTION_CODE},
        [SECTION_NAMES] = {.sh_name = NAME_NAMES,
                           .sh_type = SHT_STRTAB,
                           .sh_offset = names_offset,
                           .sh_size = sizeof names},
    };
    put_bytes(made, sections, sizeof sections);
}

static void put_end(struct generated_bbmap *made)
{
    made->section_size = made->size - made->section_offset;
    size_t names_offset = made->size;
    put_bytes(made, names, sizeof names);
    while (made->size % sizeof(uint64_t) != 0)
        made->bytes[made->size++] = 0;
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof header,
        .e_shoff = made->size,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTION_COUNT,
        .e_shstrndx = SECTION_NAMES,
    };
    memcpy(made->bytes, &header, sizeof header);
    put_section_table(made, names_offset);
}

struct generated_bbmap generate_bbmap(uint32_t block_count)
{
    struct generated_bbmap made = {.code_address = 0x401000, .section_offset = sizeof(Elf64_Ehdr)};
    struct writer writer = {.made = &made, .random = UINT64_C(0x9E3779B97F4A7C15)};
    bool has_room = reserve(&writer, sizeof(Elf64_Ehdr));
    made.size = sizeof(Elf64_Ehdr);
    while (has_room && made.block_count < block_count)
        has_room = put_function(&writer);
    has_room = has_room && reserve(&writer, 1024);
    if (has_room) {
        put_end(&made);
    } else {
        free(made.bytes);
        made.bytes = NULL;
    }
    return made;
}
