/*
 * Source: System V ABI, chapter "Object Files"; DWARF 5, section 6.4; Linux Standard Base Core
 * Specification, "Exception Frames".
 *
 * SPDX-License-Identifier: MIT
 */
#include "debug/symfile.h"

#include "base/array.h"
#include "unwind/rules.h"

#include <elf.h>

enum { WORD_BYTES = 8, PADDING_BYTES = 8 };

enum cfa_instruction {
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_VAL_EXPRESSION = 0x16
};

enum { OP_CONST8U = 0x0E };

/* ---- Bytes ---- */

static void put(struct symfile_bytes *to, const void *bytes, size_t size)
{
    uint8_t *reserved = to->failed ? NULL
                                   : array_reserve(to->allocator, to->bytes, to->size, size,
                                                   &to->capacity, sizeof *reserved);
    if (reserved == NULL) {
        to->failed = true;
        return;
    }
    to->bytes = reserved;
    memcpy(reserved + to->size, bytes, size);
    to->size += size;
}

static void put_u8(struct symfile_bytes *to, unsigned value)
{
    uint8_t byte = (uint8_t)value;
    put(to, &byte, sizeof byte);
}

static void put_u32(struct symfile_bytes *to, uint32_t value) { put(to, &value, sizeof value); }

static void put_u64(struct symfile_bytes *to, uint64_t value) { put(to, &value, sizeof value); }

static void put_uleb(struct symfile_bytes *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_u8(to, (unsigned)(value & 0x7F) | 0x80);
    put_u8(to, (unsigned)value);
}

static void put_sleb(struct symfile_bytes *to, int64_t value)
{
    while (value < -64 || value > 63) {
        uint64_t low = (uint64_t)value & 0x7F;
        put_u8(to, (unsigned)low | 0x80);
        value = (value - (int64_t)low) / 0x80;
    }
    put_u8(to, (unsigned)value & 0x7F);
}

/* ---- Frames ---- */

/* Ends an entry of .eh_frame that begins at `start` with space for its length. */
static void end_entry(struct symfile_bytes *frames, size_t start)
{
    while ((frames->size - start) % WORD_BYTES != 0)
        put_u8(frames, 0); /* DW_CFA_nop */
    if (frames->failed)
        return;
    uint32_t length = (uint32_t)(frames->size - start - sizeof length);
    memcpy(frames->bytes + start, &length, sizeof length);
}

static uint64_t register_of(const struct symfile *file, unsigned slot)
{
    return file->arch->unwind_slots[slot].dwarf;
}

static void put_cfa(struct symfile *file, unsigned slot, int64_t offset)
{
    put_u8(&file->frames, CFA_DEF_CFA_SF);
    put_uleb(&file->frames, register_of(file, slot));
    put_sleb(&file->frames, offset / -WORD_BYTES);
}

/* `words` are counted from the CFA. */
static void put_saved(struct symfile *file, unsigned slot, int64_t words)
{
    put_u8(&file->frames, CFA_OFFSET_EXTENDED_SF);
    put_uleb(&file->frames, register_of(file, slot));
    put_sleb(&file->frames, -words);
}

/* The common information has the rules of a function that has just been called. */
static void put_common(struct symfile *file)
{
    enum { VERSION_OF_GCC = 1, CODE_ALIGNMENT = 1, DATA_ALIGNMENT = -WORD_BYTES };
    struct symfile_bytes *frames = &file->frames;
    put_u32(frames, 0);
    put_u32(frames, 0);
    put_u8(frames, VERSION_OF_GCC);
    put_u8(frames, 0); /* no augmentation: addresses are absolute */
    put_uleb(frames, CODE_ALIGNMENT);
    put_sleb(frames, DATA_ALIGNMENT);
    put_uleb(frames, register_of(file, ARCH_UNWIND_RETURN_ADDRESS));
    put_cfa(file, ARCH_UNWIND_STACK_POINTER, file->arch->has_link_register ? 0 : WORD_BYTES);
    if (!file->arch->has_link_register)
        put_saved(file, ARCH_UNWIND_RETURN_ADDRESS, -1);
    end_entry(frames, 0);
}

/* Begins an entry for code. */
static size_t begin_entry(struct symfile *file, const struct named_code *code)
{
    size_t start = file->frames.size;
    put_u32(&file->frames, 0);
    put_u32(&file->frames, (uint32_t)(start + sizeof(uint32_t)));
    put_u64(&file->frames, code->address);
    put_u64(&file->frames, code->size);
    return start;
}

static void put_advance(struct symfile *file, uint32_t bytes)
{
    put_u8(&file->frames, CFA_ADVANCE_LOC4);
    put_u32(&file->frames, bytes);
}

/* Writes all rules of a row, because the row before it may have had any. */
static void put_row(struct symfile *file, const struct unwind_row *row)
{
    const struct unwind_place *places = unwind_places(row);
    const struct cairn_arch *arch = file->arch;
    if (!unwind_can_leave(row)) {
        put_u8(&file->frames, CFA_UNDEFINED);
        put_uleb(&file->frames, register_of(file, ARCH_UNWIND_RETURN_ADDRESS));
        return;
    }
    put_cfa(file, row->cfa_slot, row->cfa_offset);
    for (unsigned slot = ARCH_UNWIND_RETURN_ADDRESS; slot < arch->unwind_slot_count; slot++) {
        unsigned i = 0;
        unsigned count = (unsigned)row->loaded_count + row->moved_count;
        if (slot > 0 && register_of(file, slot) == register_of(file, slot - 1))
            continue; /* another part of the same register */
        while (i < count && places[i].slot != slot)
            i++;
        if (i < row->loaded_count) {
            put_saved(file, slot, places[i].words);
        } else if (i < count) {
            put_u8(&file->frames, CFA_REGISTER);
            put_uleb(&file->frames, register_of(file, slot));
            put_uleb(&file->frames, register_of(file, places[i].source));
        } else {
            put_u8(&file->frames, CFA_SAME_VALUE);
            put_uleb(&file->frames, register_of(file, slot));
        }
    }
}

void symfile_add_rules(struct symfile *file, const struct named_code *code,
                       const struct unwind *unwind)
{
    if (unwind == NULL || code->address - unwind->base >= unwind->span)
        return;
    size_t start = begin_entry(file, code);
    put_row(file, unwind_find_exact(unwind, code->address));
    uint64_t at = code->address;
    const struct unwind_entry *end = unwind->entries + unwind->entry_count;
    const struct unwind_entry *entry =
        unwind_search(unwind->entries, unwind->entry_count, (uint32_t)(at - unwind->base));
    while (++entry < end && unwind->base + entry->offset - code->address < code->size) {
        uint64_t address = unwind->base + entry->offset;
        put_advance(file, (uint32_t)(address - at));
        put_row(file, unwind_find_exact(unwind, address));
        at = address;
    }
    end_entry(&file->frames, start);
}

/* The code shares the frame of the site's function, which is its caller: the stack pointer is the
 * same, and the return address is that of the site. */
void symfile_add_site_rules(struct symfile *file, const struct named_code *code, uint64_t site_end)
{
    enum { EXPRESSION_BYTES = 9 };
    size_t start = begin_entry(file, code);
    put_cfa(file, ARCH_UNWIND_STACK_POINTER, 0);
    put_u8(&file->frames, CFA_VAL_EXPRESSION);
    put_uleb(&file->frames, register_of(file, ARCH_UNWIND_RETURN_ADDRESS));
    put_uleb(&file->frames, EXPRESSION_BYTES);
    put_u8(&file->frames, OP_CONST8U);
    put_u64(&file->frames, site_end);
    end_entry(&file->frames, start);
}

void symfile_add_call_rules(struct symfile *file, const struct named_code *code,
                            unsigned push_bytes, unsigned pushed)
{
    size_t start = begin_entry(file, code);
    if (pushed > 0) {
        put_advance(file, push_bytes);
        put_cfa(file, ARCH_UNWIND_STACK_POINTER, (int64_t)WORD_BYTES + pushed);
    }
    end_entry(&file->frames, start);
}

/* ---- The file ---- */

void symfile_begin(struct symfile *file, const struct cairn_allocator *allocator,
                   const struct cairn_arch *arch, uint64_t address, uint64_t size)
{
    const struct symfile_bytes none = {.allocator = allocator};
    const Elf64_Sym no_symbol = {0};
    *file = (struct symfile){arch, address, size, none, none, none};
    put_u8(&file->names, 0);
    put(&file->symbols, &no_symbol, sizeof no_symbol);
    put_common(file);
}

void symfile_add_symbol(struct symfile *file, const struct named_code *code)
{
    const Elf64_Sym symbol = {.st_name = (Elf64_Word)file->names.size,
                              .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                              .st_shndx = 1,
                              .st_value = code->address - file->address,
                              .st_size = code->size};
    put(&file->symbols, &symbol, sizeof symbol);
    put(&file->names, code->name, strlen(code->name) + 1);
}

static Elf64_Half machine(void)
{
    switch (cairn_architecture_host()) {
    case CAIRN_ARCHITECTURE_X86_64:
        return EM_X86_64;
    case CAIRN_ARCHITECTURE_AARCH64:
        return EM_AARCH64;
    default:
        return EM_PPC64;
    }
}

static Elf64_Ehdr header_of(size_t sections, Elf64_Half count)
{
    bool is_little = CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
    return (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                    is_little ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT},
        .e_type = ET_REL,
        .e_machine = machine(),
        .e_version = EV_CURRENT,
        .e_shoff = sections,
        .e_flags = cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2 ? 2 : 0,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = count,
        .e_shstrndx = (Elf64_Half)(count - 1),
    };
}

/* Adds the contents of a section to the file, whose start is aligned. */
static size_t add_contents(struct symfile_bytes *to, const void *bytes, size_t size)
{
    static const uint8_t zeros[PADDING_BYTES];
    put(to, zeros, (PADDING_BYTES - to->size % PADDING_BYTES) % PADDING_BYTES);
    size_t offset = to->size;
    put(to, bytes, size);
    return offset;
}

/* Writes the sections after space for the header, and the table of sections after them. */
static void write_file(struct symfile *file, struct symfile_bytes *to)
{
    enum { TEXT = 1, FRAMES, SYMBOLS, NAMES, SECTION_NAMES, COUNT };
    static const char section_names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
    const Elf64_Ehdr no_header = {0};
    put_u32(&file->frames, 0); /* the end of the frames */
    put(to, &no_header, sizeof no_header);
    Elf64_Shdr sections[COUNT] = {
        [TEXT] = {.sh_name = 1,
                  .sh_type = SHT_NOBITS,
                  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                  .sh_addr = file->address,
                  .sh_offset = sizeof no_header,
                  .sh_size = file->size,
                  .sh_addralign = 1},
        [FRAMES] = {.sh_name = 7,
                    .sh_type = SHT_PROGBITS,
                    .sh_size = file->frames.size,
                    .sh_addralign = WORD_BYTES},
        [SYMBOLS] = {.sh_name = 17,
                     .sh_type = SHT_SYMTAB,
                     .sh_size = file->symbols.size,
                     .sh_link = NAMES,
                     .sh_info = 1,
                     .sh_addralign = WORD_BYTES,
                     .sh_entsize = sizeof(Elf64_Sym)},
        [NAMES] = {.sh_name = 25,
                   .sh_type = SHT_STRTAB,
                   .sh_size = file->names.size,
                   .sh_addralign = 1},
        [SECTION_NAMES] = {.sh_name = 33,
                           .sh_type = SHT_STRTAB,
                           .sh_size = sizeof section_names,
                           .sh_addralign = 1},
    };
    sections[FRAMES].sh_offset = add_contents(to, file->frames.bytes, file->frames.size);
    sections[SYMBOLS].sh_offset = add_contents(to, file->symbols.bytes, file->symbols.size);
    sections[NAMES].sh_offset = add_contents(to, file->names.bytes, file->names.size);
    sections[SECTION_NAMES].sh_offset = add_contents(to, section_names, sizeof section_names);
    const Elf64_Ehdr header = header_of(add_contents(to, sections, sizeof sections), COUNT);
    if (!to->failed)
        memcpy(to->bytes, &header, sizeof header);
}

static void release(struct symfile_bytes *bytes)
{
    memory_free(bytes->allocator, bytes->bytes, bytes->capacity);
}

uint8_t *symfile_end(struct symfile *file, size_t *size)
{
    struct symfile_bytes to = {.allocator = file->names.allocator};
    if (!file->names.failed && !file->symbols.failed && !file->frames.failed)
        write_file(file, &to);
    else
        to.failed = true;
    bool failed = to.failed || file->frames.failed;
    release(&file->names);
    release(&file->symbols);
    release(&file->frames);
    uint8_t *made = failed ? NULL : memory_new(to.allocator, to.size, 1);
    if (made != NULL)
        memcpy(made, to.bytes, to.size);
    *size = to.size;
    release(&to);
    return made;
}
