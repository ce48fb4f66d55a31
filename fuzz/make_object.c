/* SPDX-License-Identifier: MIT */
#include "fuzz/make_object.h"

#include <cairn/object.h>

enum {
    CONTENT_MAX = 1 << 12, /* bytes of all sections together */
    SECTIONS_MADE_MAX =
        8, /* in addition to the symbol table, the names, the relocations and the debug link */
    RELOCATION_MAX = 32,     /* number in one section */
    RELOCATED_MAX = 2,       /* number of sections with relocations */
    SECTION_ADDRESS = 0x1000 /* distance between linked sections */
};

/* Contents of sections. They must stay valid while the object is being written. */
static uint8_t contents[2 * CONTENT_MAX];
static size_t content_size;
static uint8_t symbol_bytes[(MADE_SYMBOLS_MAX + 1) * sizeof(Elf64_Sym)];
static char symbol_names[MADE_SYMBOLS_MAX * sizeof(((struct made_symbol *)NULL)->name) + 1];
static uint8_t relocations[RELOCATED_MAX][RELOCATION_MAX * sizeof(Elf64_Rela)];
static uint8_t link_bytes[2][32];

/* ---- Sections ---- */

enum { SHT_BB_ADDR_MAP = 0x6fff4c0a };

static const struct {
    const char *name;
    uint32_t type;
    uint64_t flags;
} kinds[] = {
    {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR},
    {".text.other", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR},
    {CAIRN_OBJECT_STACKMAPS, SHT_PROGBITS, SHF_ALLOC},
    {CAIRN_OBJECT_STACKMAPS, SHT_PROGBITS, SHF_ALLOC | SHF_COMPRESSED},
    {".llvm_bb_addr_map", SHT_BB_ADDR_MAP, SHF_LINK_ORDER},
    {"pcs", SHT_PROGBITS, SHF_ALLOC | SHF_LINK_ORDER},
    {".opd", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE},
    {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC},
    {".gnu_debuglink", SHT_PROGBITS, 0},
    {".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE},
    {".text.nobits", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR},
    {".symtab_shndx", SHT_SYMTAB_SHNDX, 0},
};

static uint32_t adler32(const uint8_t *bytes, size_t size)
{
    uint32_t low = 1;
    uint32_t high = 0;
    for (size_t i = 0; i < size; i++) {
        low = (low + bytes[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

/* Writes a header, and a zlib stream of one stored block. Returns the total size. */
static size_t compress(uint8_t *to, enum cairn_byte_order order, const uint8_t *bytes, size_t size)
{
    uint8_t *at = elf_put32(to, order, ELFCOMPRESS_ZLIB);
    at = elf_put32(at, order, 0);
    at = elf_put64(at, order, size);
    at = elf_put64(at, order, 8);
    *at++ = 0x78;
    *at++ = 0x01;
    *at++ = 1;
    at = elf_put16(at, CAIRN_LITTLE_ENDIAN, (uint16_t)size);
    at = elf_put16(at, CAIRN_LITTLE_ENDIAN, (uint16_t)~size);
    memcpy(at, bytes, size);
    at = elf_put32(at + size, CAIRN_BIG_ENDIAN, adler32(bytes, size));
    return (size_t)(at - to);
}

static uint8_t *take_content(size_t size)
{
    uint8_t *taken = contents + content_size;
    require(content_size + size <= sizeof contents);
    content_size += size;
    return taken;
}

static void add_section(struct fuzz_input *input, struct elf_file *file)
{
    enum { COMPRESSED_EXTRA = 64 };
    uint8_t bytes[256] = {0};
    unsigned kind = fuzz_u8(input) % (sizeof kinds / sizeof *kinds);
    size_t size = fuzz_u8(input);
    uint8_t link = fuzz_u8(input);
    if (file->section_count == SECTIONS_MADE_MAX || content_size + size > CONTENT_MAX)
        return;
    struct elf_section section = {.name = kinds[kind].name,
                                  .type = kinds[kind].type,
                                  .flags = kinds[kind].flags,
                                  .link = link & 15,
                                  .size = size,
                                  .alignment = (link & 16) != 0 ? 4 : 8};
    if (file->type != ET_REL)
        section.address = (uint64_t)SECTION_ADDRESS * (1 + (link >> 5)) +
                          ((link & 16) != 0 ? (uint64_t)file->section_count * 64 : 0);
    for (size_t i = 0; i < size && section.type != SHT_NOBITS; i++)
        bytes[i] = fuzz_u8(input);
    if ((section.flags & SHF_COMPRESSED) != 0) {
        uint8_t *compressed = take_content(size + COMPRESSED_EXTRA);
        section.size = compress(compressed, file->byte_order, bytes, size);
        section.bytes = compressed;
    } else if (section.type != SHT_NOBITS) {
        uint8_t *taken = take_content(size);
        memcpy(taken, bytes, size);
        section.bytes = taken;
    }
    elf_add(file, section);
}

/* ---- Symbols ---- */

static void add_symbol(struct fuzz_input *input, struct made_object *made)
{
    static const uint8_t types[] = {STT_FUNC,   STT_FUNC,    STT_FUNC,      STT_NOTYPE,
                                    STT_NOTYPE, STT_SECTION, STT_GNU_IFUNC, STT_OBJECT};
    uint8_t what = fuzz_u8(input);
    uint8_t place = fuzz_u8(input);
    uint8_t value = fuzz_u8(input);
    uint8_t size = fuzz_u8(input);
    if (made->symbol_count == MADE_SYMBOLS_MAX)
        return;
    struct made_symbol *symbol = &made->symbols[made->symbol_count++];
    uint16_t section = place & 15;
    *symbol = (struct made_symbol){
        .info = (uint8_t)((what >> 3 & 3) % 3 << 4 | types[what & 7]),
        .section = section == 15   ? SHN_ABS
                   : section == 14 ? SHN_XINDEX
                                   : section,
        .value = value,
        .size = size == 255 ? UINT64_MAX - 16 : size,
    };
    /* There are few names, so that several symbols have the same one. */
    symbol->name[0] = "fg$."[what >> 5 & 3];
    symbol->name[1] = (char)((what & 128) != 0 ? 'L' : 'a' + place / 16);
    if (made->file.type != ET_REL)
        symbol->value += SECTION_ADDRESS * (uint64_t)(1 + (place >> 5));
}

static void write_symbols(struct made_object *made)
{
    enum cairn_byte_order order = made->file.byte_order;
    uint8_t *at = elf_put_symbol(symbol_bytes, order, 0, 0, 0, 0);
    size_t name = 1;
    for (uint32_t i = 0; i < made->symbol_count; i++) {
        const struct made_symbol *symbol = &made->symbols[i];
        at =
            elf_put_symbol(at, order, (uint32_t)name, symbol->info, symbol->section, symbol->value);
        elf_put64(at - sizeof(uint64_t), order, symbol->size);
        memcpy(symbol_names + name, symbol->name, sizeof symbol->name);
        name += sizeof symbol->name;
    }
    elf_add(&made->file, (struct elf_section){.name = ".symtab",
                                              .type = SHT_SYMTAB,
                                              .link = made->file.section_count + 2,
                                              .bytes = symbol_bytes,
                                              .size = (size_t)(at - symbol_bytes),
                                              .entry_size = sizeof(Elf64_Sym)});
    elf_add(&made->file, (struct elf_section){.name = ".strtab",
                                              .type = SHT_STRTAB,
                                              .bytes = symbol_names,
                                              .size = name,
                                              .alignment = 1});
}

/* ---- Relocations ---- */

/* Returns a relocation type, which may be one that Cairn applies or another one. */
static uint32_t relocation_type(uint16_t machine, uint8_t what)
{
    static const uint32_t x86_64[] = {R_X86_64_64, R_X86_64_PC32, R_X86_64_32, R_X86_64_PC64};
    static const uint32_t aarch64[] = {R_AARCH64_ABS64, R_AARCH64_PREL32, R_AARCH64_ABS32,
                                       R_AARCH64_PREL64};
    static const uint32_t ppc64[] = {R_PPC64_ADDR64, R_PPC64_REL32, R_PPC64_ADDR32, R_PPC64_REL64};
    static const uint32_t riscv[] = {R_RISCV_64, R_RISCV_ADD32, R_RISCV_SUB32, R_RISCV_32};
    if (what >= 128)
        return what;
    switch (machine) {
    case EM_AARCH64:
        return aarch64[what & 3];
    case EM_PPC64:
        return ppc64[what & 3];
    case EM_RISCV:
        return riscv[what & 3];
    case EM_S390:
        return (what & 1) != 0 ? R_390_64 : R_390_PC32;
    default:
        return x86_64[what & 3];
    }
}

static void add_relocations(struct fuzz_input *input, struct made_object *made, uint32_t symbols,
                            unsigned number)
{
    const struct elf_file *file = &made->file;
    uint8_t target = fuzz_u8(input);
    uint8_t count = fuzz_u8(input) % RELOCATION_MAX;
    uint8_t *at = relocations[number];
    for (uint8_t i = 0; i < count; i++) {
        uint8_t offset = fuzz_u8(input);
        uint8_t symbol = fuzz_u8(input);
        uint8_t type = fuzz_u8(input);
        int8_t addend = (int8_t)fuzz_u8(input);
        uint64_t base = (target & 15) == 0 || (target & 15) > file->section_count
                            ? 0
                            : file->sections[target & 15].address;
        at = elf_put_rela(at, file->byte_order, base + offset, symbol % (made->symbol_count + 2U),
                          relocation_type(file->machine, type), addend);
    }
    elf_add(&made->file, (struct elf_section){.name = ".rela",
                                              .type = SHT_RELA,
                                              .link = (target & 16) != 0 ? target >> 5 : symbols,
                                              .info = target & 15,
                                              .bytes = relocations[number],
                                              .size = (size_t)(at - relocations[number]),
                                              .entry_size = sizeof(Elf64_Rela)});
}

/* ---- The whole object ---- */

static void take_kind(struct fuzz_input *input, struct elf_file *file)
{
    static const uint16_t machines[] = {EM_X86_64, EM_X86_64, EM_AARCH64, EM_PPC64,
                                        EM_PPC64,  EM_S390,   EM_RISCV,   0x1234};
    static const uint16_t types[] = {ET_REL, ET_REL, ET_EXEC, ET_DYN};
    uint8_t what = fuzz_u8(input);
    file->machine = machines[what & 7];
    file->type = types[what >> 3 & 3];
    file->byte_order = (what & 32) != 0 ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN;
    file->flags = what >> 6; /* version of PPC64's ABI */
}

static void change(struct fuzz_input *input, struct made_object *made)
{
    uint64_t place = fuzz_number(input, 2);
    uint8_t value = fuzz_u8(input);
    made->bytes[place % made->size] = value;
    made->is_changed = true;
}

void make_object(struct fuzz_input *input, struct made_object *made)
{
    enum { STEP_SECTION = 3, STEP_SYMBOL = 6, STEP_END = 7 };
    uint8_t step;
    *made = (struct made_object){.size = 0};
    content_size = 0;
    take_kind(input, &made->file);
    while (input->left > 0 && (step = fuzz_u8(input) & 7) != STEP_END)
        if (step <= STEP_SECTION)
            add_section(input, &made->file);
        else if (step <= STEP_SYMBOL)
            add_symbol(input, made);
    uint8_t what = fuzz_u8(input);
    uint32_t symbols = made->file.section_count + 1;
    if ((what & 1) == 0)
        write_symbols(made);
    else
        made->symbol_count = 0;
    for (unsigned i = 0; i < (unsigned)(what >> 1 & 3) && i < RELOCATED_MAX; i++)
        add_relocations(input, made, symbols, i);
    made->size = elf_write(&made->file, made->bytes);
    for (unsigned changes = what >> 4; changes > 0; changes--)
        change(input, made);
}

uint32_t checksum_of(const uint8_t *bytes, size_t size)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        sum ^= bytes[i];
        for (unsigned bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ ((sum & 1) != 0 ? 0xEDB88320 : 0);
    }
    return ~sum;
}

void made_object_link(struct made_object *made, const struct made_object *debug_file)
{
    enum cairn_byte_order order = made->file.byte_order;
    uint8_t *at = link_bytes[debug_file == NULL];
    struct elf_section section = {.name = ".gnu_debuglink", .type = SHT_PROGBITS, .bytes = at};
    if (debug_file != NULL) {
        memcpy(at, "d\0\0\0", 4);
        at = elf_put32(at + 4, order, checksum_of(debug_file->bytes, debug_file->size));
    } else {
        section.name = ".note.gnu.build-id";
        section.type = SHT_NOTE;
        section.alignment = 4;
        at = elf_put32(at, order, 4);
        at = elf_put32(at, order, 2);
        at = elf_put32(at, order, NT_GNU_BUILD_ID);
        memcpy(at, "GNU\0\xAB\xCD\0", 8);
        at += 8;
    }
    section.size = (size_t)(at - (const uint8_t *)section.bytes);
    elf_add(&made->file, section);
    made->size = elf_write(&made->file, made->bytes);
}

static void *count(void *user, void *block, size_t old_size, size_t new_size)
{
    struct fuzz_memory *memory = user;
    require(old_size <= memory->used || block == NULL);
    memory->used += new_size - (block == NULL ? 0 : old_size);
    if (memory->first == 0)
        memory->first = new_size;
    if (memory->used > memory->most)
        memory->most = memory->used;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    void *moved = realloc(block, new_size);
    require(moved != NULL);
    return moved;
}

struct cairn_allocator fuzz_memory_allocator(struct fuzz_memory *memory)
{
    return (struct cairn_allocator){.reallocate = count, .user = memory};
}
