/*
 * Applies relocations, so that a section reads as it will once it is loaded.
 *
 * In relocatable objects, the relocation sections of the target section are applied. Symbol values
 * are offsets from the start of the symbol's section. In linked files, the dynamic relocations
 * (text relocations of position-independent code) are applied, as for a load at address 0.
 * Relocations that the linker has applied and kept (--emit-relocs) are not applied again.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/relocation.h"

#include "base/array.h"
#include "base/error.h"
#include "file/sorted.h"

enum operation {
    OPERATION_UNKNOWN = 0,
    OPERATION_NONE,
    OPERATION_SET,      /* symbol + addend */
    OPERATION_DISTANCE, /* symbol + addend - address of the place */
    OPERATION_RELATIVE, /* load address + addend */
    OPERATION_ADD,      /* stored value + symbol + addend */
    OPERATION_SUBTRACT
};

/* Widths that are not a number of bytes. */
enum {
    WIDTH_SIX_BITS = 6,    /* the low 6 bits of a byte */
    WIDTH_ULEB128 = 0xff,  /* the length of the ULEB128 at the place */
    ULEB128_BYTES_MAX = 10 /* for 64 bits */
};

/* Missing in some versions of <elf.h>. */
enum { RISCV_SET_ULEB128 = 60, RISCV_SUB_ULEB128 = 61 };
enum {
    MACHINE_LOONGARCH = 258,
    LARCH_NONE = 0,
    LARCH_32 = 1,
    LARCH_64 = 2,
    LARCH_RELATIVE = 3,
    LARCH_ADD8 = 47,
    LARCH_ADD16 = 48,
    LARCH_ADD32 = 50,
    LARCH_ADD64 = 51,
    LARCH_SUB8 = 52,
    LARCH_SUB16 = 53,
    LARCH_SUB32 = 55,
    LARCH_SUB64 = 56,
    LARCH_32_PCREL = 99,
    LARCH_ADD6 = 105,
    LARCH_SUB6 = 106,
    LARCH_ADD_ULEB128 = 107,
    LARCH_SUB_ULEB128 = 108,
    LARCH_64_PCREL = 109
};

struct rule {
    uint16_t machine;
    uint32_t type;
    enum operation operation;
    uint8_t width; /* bytes, or one of the WIDTH constants */
};

/* The relocations that can occur in data with addresses and differences of labels. */
static const struct rule rules[] = {
    {EM_X86_64, R_X86_64_NONE, OPERATION_NONE, 0},
    {EM_X86_64, R_X86_64_64, OPERATION_SET, 8},
    {EM_X86_64, R_X86_64_32, OPERATION_SET, 4},
    {EM_X86_64, R_X86_64_32S, OPERATION_SET, 4},
    {EM_X86_64, R_X86_64_PC32, OPERATION_DISTANCE, 4},
    {EM_X86_64, R_X86_64_PC64, OPERATION_DISTANCE, 8},
    {EM_X86_64, R_X86_64_RELATIVE, OPERATION_RELATIVE, 8},
    {EM_AARCH64, R_AARCH64_NONE, OPERATION_NONE, 0},
    {EM_AARCH64, R_AARCH64_ABS64, OPERATION_SET, 8},
    {EM_AARCH64, R_AARCH64_ABS32, OPERATION_SET, 4},
    {EM_AARCH64, R_AARCH64_PREL32, OPERATION_DISTANCE, 4},
    {EM_AARCH64, R_AARCH64_PREL64, OPERATION_DISTANCE, 8},
    {EM_AARCH64, R_AARCH64_RELATIVE, OPERATION_RELATIVE, 8},
    {EM_PPC64, R_PPC64_NONE, OPERATION_NONE, 0},
    {EM_PPC64, R_PPC64_ADDR64, OPERATION_SET, 8},
    {EM_PPC64, R_PPC64_UADDR64, OPERATION_SET, 8},
    {EM_PPC64, R_PPC64_ADDR32, OPERATION_SET, 4},
    {EM_PPC64, R_PPC64_REL32, OPERATION_DISTANCE, 4},
    {EM_PPC64, R_PPC64_REL64, OPERATION_DISTANCE, 8},
    {EM_PPC64, R_PPC64_TOC, OPERATION_NONE, 0}, /* second word of a descriptor */
    {EM_PPC64, R_PPC64_RELATIVE, OPERATION_RELATIVE, 8},
    {EM_S390, R_390_NONE, OPERATION_NONE, 0},
    {EM_S390, R_390_64, OPERATION_SET, 8},
    {EM_S390, R_390_32, OPERATION_SET, 4},
    {EM_S390, R_390_PC32, OPERATION_DISTANCE, 4},
    {EM_S390, R_390_PC64, OPERATION_DISTANCE, 8},
    {EM_S390, R_390_RELATIVE, OPERATION_RELATIVE, 8},
    {EM_RISCV, R_RISCV_NONE, OPERATION_NONE, 0},
    {EM_RISCV, R_RISCV_64, OPERATION_SET, 8},
    {EM_RISCV, R_RISCV_32, OPERATION_SET, 4},
    {EM_RISCV, R_RISCV_RELATIVE, OPERATION_RELATIVE, 8},
    {EM_RISCV, R_RISCV_32_PCREL, OPERATION_DISTANCE, 4},
    {EM_RISCV, R_RISCV_SET6, OPERATION_SET, WIDTH_SIX_BITS},
    {EM_RISCV, R_RISCV_SET8, OPERATION_SET, 1},
    {EM_RISCV, R_RISCV_SET16, OPERATION_SET, 2},
    {EM_RISCV, R_RISCV_SET32, OPERATION_SET, 4},
    {EM_RISCV, RISCV_SET_ULEB128, OPERATION_SET, WIDTH_ULEB128},
    {EM_RISCV, R_RISCV_ADD8, OPERATION_ADD, 1},
    {EM_RISCV, R_RISCV_ADD16, OPERATION_ADD, 2},
    {EM_RISCV, R_RISCV_ADD32, OPERATION_ADD, 4},
    {EM_RISCV, R_RISCV_ADD64, OPERATION_ADD, 8},
    {EM_RISCV, R_RISCV_SUB6, OPERATION_SUBTRACT, WIDTH_SIX_BITS},
    {EM_RISCV, R_RISCV_SUB8, OPERATION_SUBTRACT, 1},
    {EM_RISCV, R_RISCV_SUB16, OPERATION_SUBTRACT, 2},
    {EM_RISCV, R_RISCV_SUB32, OPERATION_SUBTRACT, 4},
    {EM_RISCV, R_RISCV_SUB64, OPERATION_SUBTRACT, 8},
    {EM_RISCV, RISCV_SUB_ULEB128, OPERATION_SUBTRACT, WIDTH_ULEB128},
    {MACHINE_LOONGARCH, LARCH_NONE, OPERATION_NONE, 0},
    {MACHINE_LOONGARCH, LARCH_32, OPERATION_SET, 4},
    {MACHINE_LOONGARCH, LARCH_64, OPERATION_SET, 8},
    {MACHINE_LOONGARCH, LARCH_RELATIVE, OPERATION_RELATIVE, 8},
    {MACHINE_LOONGARCH, LARCH_32_PCREL, OPERATION_DISTANCE, 4},
    {MACHINE_LOONGARCH, LARCH_64_PCREL, OPERATION_DISTANCE, 8},
    {MACHINE_LOONGARCH, LARCH_ADD6, OPERATION_ADD, WIDTH_SIX_BITS},
    {MACHINE_LOONGARCH, LARCH_ADD8, OPERATION_ADD, 1},
    {MACHINE_LOONGARCH, LARCH_ADD16, OPERATION_ADD, 2},
    {MACHINE_LOONGARCH, LARCH_ADD32, OPERATION_ADD, 4},
    {MACHINE_LOONGARCH, LARCH_ADD64, OPERATION_ADD, 8},
    {MACHINE_LOONGARCH, LARCH_ADD_ULEB128, OPERATION_ADD, WIDTH_ULEB128},
    {MACHINE_LOONGARCH, LARCH_SUB6, OPERATION_SUBTRACT, WIDTH_SIX_BITS},
    {MACHINE_LOONGARCH, LARCH_SUB8, OPERATION_SUBTRACT, 1},
    {MACHINE_LOONGARCH, LARCH_SUB16, OPERATION_SUBTRACT, 2},
    {MACHINE_LOONGARCH, LARCH_SUB32, OPERATION_SUBTRACT, 4},
    {MACHINE_LOONGARCH, LARCH_SUB64, OPERATION_SUBTRACT, 8},
    {MACHINE_LOONGARCH, LARCH_SUB_ULEB128, OPERATION_SUBTRACT, WIDTH_ULEB128},
};

static struct rule find_rule(uint16_t machine, uint32_t type)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].machine == machine && rules[i].type == type)
            return rules[i];
    return (struct rule){.machine = machine, .type = type};
}

/* ---- Bytes of the target ---- */

/* A number in the target. Arithmetic is modulo 2 to the power of the number's bits. Thus, the
 * number may be a truncated address until the address of another label is subtracted from it. */
struct place {
    uint8_t *bytes;
    uint8_t size;
    uint8_t bits_in_byte; /* number of low bits in each byte that belong to the number */
    bool is_little_endian;
};

/* Finds the bytes that a relocation changes. The size is 0 if they are not inside the target. */
static struct place find_place(const struct relocation_target *target, uint64_t offset,
                               uint8_t width)
{
    struct place place = {.bits_in_byte = 8, .is_little_endian = true};
    if (offset >= target->size)
        return place;
    size_t left = target->size - offset;
    place.bytes = target->bytes + offset;
    place.size = width;
    if (width == WIDTH_ULEB128) {
        place.bits_in_byte = 7;
        place.size = 1;
        while (place.size < left && place.size < ULEB128_BYTES_MAX &&
               (place.bytes[place.size - 1] & 0x80) != 0)
            place.size++;
        if ((place.bytes[place.size - 1] & 0x80) != 0)
            place.size = 0;
    } else if (width == WIDTH_SIX_BITS) {
        place.size = 1;
        place.bits_in_byte = 6;
    } else {
        place.is_little_endian = target->sources->file->byte_order == CAIRN_LITTLE_ENDIAN;
    }
    if (place.size > left)
        place.size = 0;
    return place;
}

static uint8_t *place_byte(const struct place *place, unsigned index)
{
    return place->bytes + (place->is_little_endian ? index : place->size - 1u - index);
}

static uint64_t load(const struct place *place)
{
    uint8_t mask = (uint8_t)((1u << place->bits_in_byte) - 1);
    uint64_t value = 0;
    for (unsigned i = 0; i < place->size; i++)
        value |= (uint64_t)(*place_byte(place, i) & mask) << (i * place->bits_in_byte);
    return value;
}

static void store(const struct place *place, uint64_t value)
{
    uint8_t mask = (uint8_t)((1u << place->bits_in_byte) - 1);
    for (unsigned i = 0; i < place->size; i++) {
        uint8_t *byte = place_byte(place, i);
        *byte = (uint8_t)((*byte & ~mask) | (value >> (i * place->bits_in_byte) & mask));
    }
}

/* ---- Relocation sections ---- */

/* An open relocation section. */
struct source {
    const struct file *file;
    uint32_t section;
    struct file_bytes entries;
    size_t count;
    bool has_addends;
    struct symbol_table symbols;
};

static enum cairn_status open_source(const struct file *file, uint32_t section,
                                     struct source *source, struct cairn_error *error)
{
    GElf_Shdr header = {0};
    bool is_there = file_section(file, section, &header);
    *source = (struct source){
        .file = file, .section = section, .has_addends = header.sh_type == SHT_RELA};
    size_t entry_bytes = source->has_addends ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    if (!is_there || header.sh_entsize != entry_bytes ||
        file_section_bytes(file, section, &header, &source->entries, NULL) != CAIRN_OK)
        return error_set(error, CAIRN_ERROR_CORRUPT, header.sh_offset,
                         "the relocations in section %u cannot be read", section);
    source->count = source->entries.size / entry_bytes;
    /* A table that cannot be opened counts as empty. A relocation with a symbol then reports an
     * error. */
    if (symbol_table_open(file, header.sh_link, &source->symbols, NULL) != CAIRN_OK)
        source->symbols = (struct symbol_table){0};
    return CAIRN_OK;
}

/* Reads an entry; the addend is 0 if the section has none. */
static GElf_Rela read_entry(const struct source *source, size_t index)
{
    enum cairn_byte_order order = source->file->byte_order;
    size_t size = source->has_addends ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    const uint8_t *bytes = source->entries.bytes + index * size;
    GElf_Rela entry = {
        .r_offset = cairn_load_u64(bytes, order),
        .r_info = cairn_load_u64(bytes + offsetof(Elf64_Rela, r_info), order),
    };
    if (source->has_addends)
        entry.r_addend = (GElf_Sxword)cairn_load_u64(bytes + offsetof(Elf64_Rela, r_addend), order);
    return entry;
}

/* Reads the symbol of an entry, which is all zero if the entry has no symbol. */
static enum cairn_status read_symbol(const struct source *source, const GElf_Rela *entry,
                                     struct table_symbol *symbol, struct cairn_error *error)
{
    uint32_t index = (uint32_t)GELF_R_SYM(entry->r_info);
    *symbol = (struct table_symbol){0};
    if (index == 0)
        return CAIRN_OK;
    if (index >= source->symbols.count)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0,
                         "a relocation names symbol %u, which does not exist", index);
    *symbol = symbol_table_read(&source->symbols, index);
    return CAIRN_OK;
}

static const char *symbol_name(const struct source *source, const struct table_symbol *symbol)
{
    if (symbol->name == 0 || symbol->type == STT_SECTION)
        return NULL;
    return file_string(&source->symbols.strings, symbol->name);
}

/* ---- One relocation ---- */

static enum cairn_status append(const struct relocation_target *target,
                                const struct relocation *relocation, struct relocation_list *list,
                                struct cairn_error *error)
{
    struct relocation *entries = array_reserve(&target->sources->allocator, list->entries,
                                               list->count, 1, &list->capacity, sizeof *relocation);
    if (entries == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu relocations",
                         list->count + 1);
    list->entries = entries;
    list->entries[list->count++] = *relocation;
    return CAIRN_OK;
}

/* Adds an applied relocation to the list.
 *
 * RISC-V writes a distance as an address to add and an address to subtract. A distance points to
 * its first label only if the second label is in the same section as the place. Otherwise it does
 * not point to a section. */
static enum cairn_status note_applied(const struct relocation_target *target, struct rule rule,
                                      struct relocation *relocation, struct relocation_list *list,
                                      struct cairn_error *error)
{
    if (rule.width != 4 && rule.width != 8)
        return CAIRN_OK;
    if (rule.operation == OPERATION_SUBTRACT) {
        struct relocation *added = list->count == 0 ? NULL : &list->entries[list->count - 1];
        if (added != NULL && added->offset == relocation->offset &&
            relocation->section != target->section)
            added->section = 0;
        return CAIRN_OK;
    }
    relocation->width = rule.width;
    relocation->is_address =
        rule.operation == OPERATION_SET || rule.operation == OPERATION_RELATIVE;
    return append(target, relocation, list, error);
}

/* The linker applies the relocations of relocatable files. Those of linked files are applied by the
 * system, except in files that are linked for a fixed address. */
static enum cairn_status refuse_type(const struct file *file, const struct relocation *relocation,
                                     const struct rule *rule, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, relocation->offset,
                     "the relocation at byte %llu of the section is of type %u of ELF machine %u, "
                     "which cannot be applied: link the file %s",
                     (unsigned long long)relocation->offset, rule->type, rule->machine,
                     file->header.e_type == ET_REL ? "first" : "for a fixed address (-no-pie)");
}

static enum cairn_status apply_entry(const struct relocation_target *target,
                                     const struct source *source, const GElf_Rela *entry,
                                     struct relocation_list *list, struct cairn_error *error)
{
    struct relocation relocation = {.offset = entry->r_offset - target->address};
    struct rule rule =
        find_rule(source->file->header.e_machine, (uint32_t)GELF_R_TYPE(entry->r_info));
    if (rule.operation == OPERATION_UNKNOWN)
        return refuse_type(source->file, &relocation, &rule, error);
    if (rule.operation == OPERATION_NONE)
        return CAIRN_OK;
    struct place place = find_place(target, relocation.offset, rule.width);
    if (place.size == 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, relocation.offset,
                         "a relocation reaches byte %llu of a section of %zu bytes",
                         (unsigned long long)relocation.offset, target->size);
    struct table_symbol symbol;
    enum cairn_status status = read_symbol(source, entry, &symbol, error);
    if (status != CAIRN_OK)
        return status;

    uint64_t stored = load(&place);
    uint64_t addend = source->has_addends ? (uint64_t)entry->r_addend : stored;
    uint64_t value = addend + (rule.operation == OPERATION_RELATIVE ? 0 : symbol.value);
    if (rule.operation == OPERATION_DISTANCE)
        value -= target->address + relocation.offset;
    else if (rule.operation == OPERATION_ADD)
        value += stored;
    else if (rule.operation == OPERATION_SUBTRACT)
        value = stored - value;
    relocation.value = value;
    store(&place, value);
    relocation.name = addend == 0 ? symbol_name(source, &symbol) : NULL;
    bool has_section = file_is_relocatable(source->file) && !symbol.is_reserved;
    relocation.section = has_section ? symbol.section : 0;
    return note_applied(target, rule, &relocation, list, error);
}

static enum cairn_status note_name(const struct relocation_target *target,
                                   const struct source *source, const GElf_Rela *entry,
                                   struct relocation_list *list, struct cairn_error *error)
{
    struct table_symbol symbol;
    enum cairn_status status = read_symbol(source, entry, &symbol, error);
    struct relocation relocation = {.offset = entry->r_offset,
                                    .name = symbol_name(source, &symbol)};
    if (status != CAIRN_OK || relocation.name == NULL)
        return status;
    return append(target, &relocation, list, error);
}

/* ---- The relocations of a file ---- */

enum cairn_status relocation_sources_read(const struct file *file,
                                          const struct cairn_allocator *allocator,
                                          struct relocation_sources *sources,
                                          struct cairn_error *error)
{
    size_t count = file->section_count;
    bool is_relocatable = file_is_relocatable(file);
    *sources = (struct relocation_sources){.file = file, .allocator = *allocator};
    if (count == 0)
        return CAIRN_OK;
    sources->first = memory_new(allocator, count * 2, sizeof *sources->first);
    if (sources->first == NULL) {
        *sources = (struct relocation_sources){0};
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu sections", count);
    }
    sources->next = sources->first + count;
    /* Iterate in reverse, so that each list is in the order of the file. */
    for (uint32_t index = file->section_count - 1; index > 0; index--) {
        GElf_Shdr header;
        if (!file_section(file, index, &header) ||
            (header.sh_type != SHT_RELA && header.sh_type != SHT_REL))
            continue;
        uint32_t target = is_relocatable ? header.sh_info : 0;
        if (is_relocatable ? target == 0 || target >= count : (header.sh_flags & SHF_ALLOC) == 0)
            continue;
        sources->next[index] = sources->first[target];
        sources->first[target] = index;
    }
    return CAIRN_OK;
}

/* Orders relocations by address; relocations of the same place keep the order of the file. */
static int compare_loaded(const void *left, const void *right)
{
    const struct loaded_relocation *a = left;
    const struct loaded_relocation *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

enum cairn_status relocation_sources_sort(struct relocation_sources *sources,
                                          struct cairn_error *error)
{
    if (sources->is_sorted || sources->first == NULL || file_is_relocatable(sources->file))
        return CAIRN_OK;
    sources->loaded_count = 0;
    for (uint32_t section = sources->first[0]; section != 0; section = sources->next[section]) {
        struct source source;
        enum cairn_status status = open_source(sources->file, section, &source, error);
        if (status != CAIRN_OK)
            return status;
        if (source.count == 0)
            continue;
        struct loaded_relocation *loaded =
            array_reserve(&sources->allocator, sources->loaded, sources->loaded_count, source.count,
                          &sources->loaded_capacity, sizeof *loaded);
        if (loaded == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu relocations",
                             sources->loaded_count + source.count);
        sources->loaded = loaded;
        for (size_t i = 0; i < source.count; i++)
            loaded[sources->loaded_count++] =
                (struct loaded_relocation){read_entry(&source, i).r_offset, section, (uint32_t)i};
    }
    sorted_make(sources->loaded, sources->loaded_count, sizeof *sources->loaded, compare_loaded);
    sources->is_sorted = true;
    return CAIRN_OK;
}

void relocation_sources_release(struct relocation_sources *sources)
{
    if (sources->file == NULL)
        return;
    memory_free(&sources->allocator, sources->first,
                (size_t)sources->file->section_count * 2 * sizeof *sources->first);
    memory_free(&sources->allocator, sources->loaded,
                sources->loaded_capacity * sizeof *sources->loaded);
    *sources = (struct relocation_sources){0};
}

/* ---- All relocations of a section ---- */

/* Returns the index of the first dynamic relocation at or after the target's address. */
static size_t find_loaded(const struct relocation_target *target)
{
    const struct relocation_sources *sources = target->sources;
    struct loaded_relocation key = {.address = target->address};
    return sorted_lower_bound(sources->loaded, sources->loaded_count, sizeof key, &key,
                              compare_loaded);
}

static bool is_of_target(const struct relocation_target *target, size_t number)
{
    const struct relocation_sources *sources = target->sources;
    return target->is_loaded && number < sources->loaded_count &&
           sources->loaded[number].address - target->address < target->size;
}

bool relocation_is_needed(const struct relocation_target *target)
{
    const struct relocation_sources *sources = target->sources;
    if (file_is_relocatable(sources->file))
        return sources->first != NULL && sources->first[target->section] != 0;
    return is_of_target(target, find_loaded(target));
}

/* Applies all relocations of the target's relocation sections, or notes their names. */
static enum cairn_status apply_sources(const struct relocation_target *target,
                                       struct relocation_list *list, struct cairn_error *error)
{
    const struct relocation_sources *sources = target->sources;
    for (uint32_t section = sources->first[target->section]; section != 0;
         section = sources->next[section]) {
        struct source source;
        enum cairn_status status = open_source(sources->file, section, &source, error);
        for (size_t i = 0; i < source.count && status == CAIRN_OK; i++) {
            GElf_Rela entry = read_entry(&source, i);
            status = target->bytes == NULL ? note_name(target, &source, &entry, list, error)
                                           : apply_entry(target, &source, &entry, list, error);
        }
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* Applies the dynamic relocations of the target's bytes. Each one changes one section, unless the
 * addresses of sections overlap. The number of relocations applied is therefore limited to the
 * number that exist. */
static enum cairn_status apply_loaded(const struct relocation_target *target,
                                      struct relocation_list *list, struct cairn_error *error)
{
    struct relocation_sources *sources = target->sources;
    struct source source = {.section = 0};
    enum cairn_status status = CAIRN_OK;
    for (size_t i = find_loaded(target); is_of_target(target, i) && status == CAIRN_OK; i++) {
        const struct loaded_relocation *loaded = &sources->loaded[i];
        if (++sources->applied_count > sources->loaded_count)
            return error_set(error, CAIRN_ERROR_CORRUPT, 0,
                             "section %u is loaded at the same addresses as others: there are %zu "
                             "relocations, and more would be applied",
                             target->section, sources->loaded_count);
        if (source.file == NULL || loaded->source != source.section)
            status = open_source(sources->file, loaded->source, &source, error);
        if (status != CAIRN_OK)
            return status;
        GElf_Rela entry = read_entry(&source, loaded->entry);
        status = apply_entry(target, &source, &entry, list, error);
    }
    return status;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = ((const struct relocation *)left)->offset;
    uint64_t b = ((const struct relocation *)right)->offset;
    return (a > b) - (a < b);
}

enum cairn_status relocation_apply(const struct relocation_target *target,
                                   struct relocation_list *list, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (file_is_relocatable(target->sources->file))
        status = apply_sources(target, list, error);
    else if (target->bytes != NULL)
        status = apply_loaded(target, list, error);
    if (status == CAIRN_OK)
        sorted_make(list->entries, list->count, sizeof *list->entries, compare);
    return status;
}

const struct relocation *relocation_find(const struct relocation_list *list, uint64_t offset,
                                         uint64_t size)
{
    struct relocation key = {.offset = offset};
    size_t place = sorted_lower_bound(list->entries, list->count, sizeof key, &key, compare);
    bool is_found = place < list->count && list->entries[place].offset - offset < size;
    return is_found ? &list->entries[place] : NULL;
}

void relocation_list_release(struct relocation_list *list, const struct cairn_allocator *allocator)
{
    memory_free(allocator, list->entries, list->capacity * sizeof *list->entries);
    *list = (struct relocation_list){0};
}
