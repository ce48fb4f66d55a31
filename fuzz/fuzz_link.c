/*
 * Fuzzes the linker of objects. Linking the same objects twice has the same outcome: status,
 * message, addresses and bytes. Loaded sections and used symbols are in memory that the linker has
 * asked for, and all of its own memory is freed.
 *
 * Input: flags (the architecture; whether there are two objects, or bytes of one object), then for
 * each object its sections, symbols and relocations, and bytes to change in the written file.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "fuzz/fuzz.h"
#include "object/link.h"
#include "tests/elf_builder.h"

enum { IS_MADE = 1, ARCHITECTURE_SHIFT = 1, HAS_TWO = 8 };
enum { SECTIONS_MAX = 6, SYMBOLS_MAX = 12, RELOCATIONS_MAX = 10, CHANGES_MAX = 7 };
enum { BLOCKS_MAX = 256, MEMORY_MAX = 1 << 20 };

static const enum cairn_architecture architectures[] = {
    CAIRN_ARCHITECTURE_X86_64, CAIRN_ARCHITECTURE_AARCH64, CAIRN_ARCHITECTURE_PPC64_ELFV2,
    CAIRN_ARCHITECTURE_PPC64_ELFV1};

/* ---- Making objects ---- */

static const struct {
    const char *name;
    uint32_t type;
    uint64_t flags;
} kinds[] = {
    {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR},
    {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE},
    {".rodata", SHT_PROGBITS, SHF_ALLOC},
    {".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE},
    {".opd", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE},
    {".toc", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE},
    {"names", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE},
    {"names", SHT_PROGBITS, SHF_ALLOC},
    {"pcs", SHT_PROGBITS, SHF_ALLOC},
    {".llvm_stackmaps", SHT_PROGBITS, SHF_ALLOC},
    {".eh_frame", SHT_PROGBITS, SHF_ALLOC},
    {".group", SHT_GROUP, 0},
    {".init_array", SHT_INIT_ARRAY, SHF_ALLOC | SHF_WRITE},
    {".comment", SHT_PROGBITS, 0},
    {".tdata", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE | SHF_TLS},
    {".note", SHT_NOTE, SHF_ALLOC},
};

/* Names of symbols, by their offset. */
static const char names[] = "\0f\0g\0h\0host\0.TOC.\0__start_names\0__stop_names\0__dso_handle\0"
                            "__start_pcs\0_GLOBAL_OFFSET_TABLE_";
static const uint8_t name_offsets[] = {0, 1, 3, 5, 7, 12, 18, 32, 45, 58, 70, 19};

struct made {
    struct elf_file file;
    uint8_t contents[SECTIONS_MAX][256];
    uint8_t symbols[(SYMBOLS_MAX + 1) * sizeof(Elf64_Sym)];
    uint8_t relocations[RELOCATIONS_MAX * sizeof(Elf64_Rela)];
    uint8_t bytes[ELF_BYTES_MAX];
    size_t size;
};

static void make_sections(struct fuzz_input *input, struct made *made, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t kind = fuzz_u8(input);
        uint8_t size = fuzz_u8(input);
        for (unsigned k = 0; k < size && (kind & 16) != 0; k++)
            made->contents[i][k] = fuzz_u8(input);
        elf_add(&made->file,
                (struct elf_section){.name = kinds[kind % 16].name,
                                     .type = kinds[kind % 16].type,
                                     .flags = kinds[kind % 16].flags |
                                              ((kind & 32) != 0 ? (uint64_t)SHF_GROUP : 0),
                                     .bytes = made->contents[i],
                                     .size = size,
                                     .alignment = UINT64_C(1) << (kind >> 6)});
    }
}

/* Local symbols come first, as they must. Returns the number of local ones, with the first. */
static uint32_t make_symbols(struct fuzz_input *input, struct made *made, uint32_t count)
{
    uint32_t locals = 1;
    bool is_local = true;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *at = made->symbols + (i + 1) * sizeof(Elf64_Sym);
        uint8_t info = fuzz_u8(input);
        uint8_t name = name_offsets[fuzz_u8(input) % sizeof name_offsets];
        uint8_t section = fuzz_u8(input);
        uint8_t value = fuzz_u8(input);
        is_local = is_local && info >> 4 == STB_LOCAL;
        if (!is_local && info >> 4 == STB_LOCAL)
            info |= STB_GLOBAL << 4;
        locals += is_local;
        uint16_t number = section == 255   ? SHN_ABS
                          : section == 254 ? SHN_COMMON
                                           : section % (SECTIONS_MAX + 1);
        elf_put_symbol(at, made->file.byte_order, name, info, number, value);
        at[offsetof(Elf64_Sym, st_other)] = fuzz_u8(input);
        elf_put64(at + offsetof(Elf64_Sym, st_size), made->file.byte_order, value);
    }
    return locals;
}

static void make_relocations(struct fuzz_input *input, struct made *made, uint32_t count)
{
    uint8_t *at = made->relocations;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t type = (uint32_t)fuzz_number(input, 2);
        uint8_t symbol = fuzz_u8(input);
        uint8_t offset = fuzz_u8(input);
        at = elf_put_rela(at, made->file.byte_order, offset, symbol, type, (int8_t)fuzz_u8(input));
    }
}

static void add_tables(struct made *made, uint32_t symbols, uint32_t locals, uint32_t relocations,
                       uint32_t target)
{
    uint32_t strings =
        elf_add(&made->file,
                (struct elf_section){
                    .name = ".strtab", .type = SHT_STRTAB, .bytes = names, .size = sizeof names});
    uint32_t table =
        elf_add(&made->file, (struct elf_section){.name = ".symtab",
                                                  .type = SHT_SYMTAB,
                                                  .bytes = made->symbols,
                                                  .size = (symbols + 1) * sizeof(Elf64_Sym),
                                                  .entry_size = sizeof(Elf64_Sym),
                                                  .link = strings,
                                                  .info = locals});
    elf_add(&made->file, (struct elf_section){.name = ".rela",
                                              .type = SHT_RELA,
                                              .bytes = made->relocations,
                                              .size = relocations * sizeof(Elf64_Rela),
                                              .entry_size = sizeof(Elf64_Rela),
                                              .link = table,
                                              .info = target});
}

static void make(struct fuzz_input *input, enum cairn_architecture architecture, struct made *made)
{
    memset(made, 0, sizeof *made);
    made->file.byte_order = arch_find(architecture)->byte_order;
    made->file.type = ET_REL;
    made->file.machine = architecture == CAIRN_ARCHITECTURE_X86_64    ? EM_X86_64
                         : architecture == CAIRN_ARCHITECTURE_AARCH64 ? EM_AARCH64
                                                                      : EM_PPC64;
    made->file.flags = architecture == CAIRN_ARCHITECTURE_PPC64_ELFV1 ? 1 : 2;
    uint8_t target = fuzz_u8(input);
    uint32_t symbols = fuzz_u8(input) % (SYMBOLS_MAX + 1);
    uint32_t relocations = fuzz_u8(input) % (RELOCATIONS_MAX + 1);
    make_sections(input, made, (target >> 4) % (SECTIONS_MAX + 1));
    uint32_t locals = make_symbols(input, made, symbols);
    make_relocations(input, made, relocations);
    add_tables(made, symbols, locals, relocations, target & 15);
    made->size = elf_write(&made->file, made->bytes);
    for (unsigned changes = fuzz_u8(input) % (CHANGES_MAX + 1); changes > 0; changes--) {
        size_t at = fuzz_number(input, 2) % made->size;
        made->bytes[at] = fuzz_u8(input);
    }
}

/* ---- Linking ---- */

struct outcome {
    enum cairn_status status;
    struct cairn_error error;
    uint64_t next;
    struct object_memory blocks[BLOCKS_MAX];
    uint64_t sizes[BLOCKS_MAX];
    size_t count;
    size_t used; /* bytes of the linker's own memory */
};

static void *reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    struct outcome *outcome = user;
    outcome->used += new_size - old_size;
    if (new_size > 0)
        return realloc(block, new_size);
    free(block);
    return NULL;
}

static enum cairn_status allocate(void *user, enum cairn_section_kind kind, const char *name,
                                  uint64_t size, uint64_t alignment, struct object_memory *memory,
                                  struct cairn_error *error)
{
    struct outcome *outcome = user;
    require(size > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0 && kind >= 0);
    require(kind != CAIRN_SECTION_PC_SECTION || strcmp(name, "pcs") == 0);
    if (size > MEMORY_MAX || alignment > MEMORY_MAX || outcome->count == BLOCKS_MAX) {
        *error = (struct cairn_error){.status = CAIRN_ERROR_FULL, .message = "full"};
        return CAIRN_ERROR_FULL;
    }
    outcome->next = (outcome->next + alignment - 1) & ~(alignment - 1);
    *memory = (struct object_memory){malloc(size), outcome->next};
    require(memory->bytes != NULL);
    memset(memory->bytes, 0xA5, size);
    outcome->next += size;
    outcome->blocks[outcome->count] = *memory;
    outcome->sizes[outcome->count++] = size;
    return CAIRN_OK;
}

static bool is_pc_section(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "pcs") == 0;
}

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    (void)user;
    *address = 0x200000;
    return strcmp(name, "host") == 0;
}

static void check_linked(const struct object_link *link, const struct outcome *outcome)
{
    for (size_t i = 0; i < link->image_count; i++)
        for (uint32_t k = 1; k < link->images[i]->elf.section_count; k++) {
            const struct object_section *section = &link->images[i]->sections[k];
            bool is_held = section->kind == OBJECT_NOT_LOADED || section->header.size == 0;
            for (size_t block = 0; block < outcome->count && !is_held; block++) {
                uint64_t offset = section->memory.address - outcome->blocks[block].address;
                is_held = offset < outcome->sizes[block] &&
                          section->header.size <= outcome->sizes[block] - offset &&
                          section->memory.bytes == outcome->blocks[block].bytes + offset;
            }
            require(is_held);
        }
    for (size_t i = 1; i < link->symbol_count; i++) {
        const struct object_symbol *symbol = &link->symbols[i];
        bool is_defined = symbol->definition == OBJECT_WEAK ||
                          symbol->definition == OBJECT_COMMON ||
                          symbol->definition == OBJECT_STRONG;
        require(is_defined == (symbol->image != NULL));
        require(symbol->slot <= link->slot_count && symbol->stub <= link->stub_count);
        require(symbol->stub == 0 || symbol->slot != 0);
    }
}

static void link_objects(const struct made *made, size_t count,
                         enum cairn_architecture architecture, struct outcome *outcome)
{
    const struct cairn_allocator allocator = {reallocate, outcome};
    const struct object_host host = {allocate, is_pc_section, find_symbol, NULL, outcome, 0};
    struct object_link *link = NULL;
    *outcome = (struct outcome){.next = 0x100000};
    require(object_link_create(arch_find(architecture), &allocator, &link, NULL) == CAIRN_OK);
    for (size_t i = 0; i < count && outcome->status == CAIRN_OK; i++) {
        void *copy = fuzz_copy(made[i].bytes, made[i].size);
        outcome->status =
            object_link_add(link, copy, made[i].size, i == 0 ? "a" : NULL, &host, &outcome->error);
        free(copy);
    }
    if (outcome->status == CAIRN_OK)
        outcome->status = object_link_finish(link, &outcome->error);
    if (outcome->status == CAIRN_OK)
        check_linked(link, outcome);
    else
        require(outcome->error.status == outcome->status && outcome->error.message[0] != '\0');
    object_link_destroy(link);
    require(outcome->used == 0);
}

static void compare(const struct outcome *one, const struct outcome *other)
{
    require(one->status == other->status && one->count == other->count);
    require(one->status == CAIRN_OK || strcmp(one->error.message, other->error.message) == 0);
    for (size_t i = 0; i < one->count; i++) {
        require(one->sizes[i] == other->sizes[i]);
        require(one->status != CAIRN_OK ||
                memcmp(one->blocks[i].bytes, other->blocks[i].bytes, one->sizes[i]) == 0);
        free(one->blocks[i].bytes);
        free(other->blocks[i].bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct made made[2];
    static struct outcome outcomes[2];
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    enum cairn_architecture architecture = architectures[flags >> ARCHITECTURE_SHIFT & 3];
    size_t count = (flags & (HAS_TWO | IS_MADE)) == (HAS_TWO | IS_MADE) ? 2 : 1;
    for (size_t i = 0; i < count && (flags & IS_MADE) != 0; i++)
        make(&input, architecture, &made[i]);
    if ((flags & IS_MADE) == 0) {
        made[0].size = input.left < ELF_BYTES_MAX ? input.left : ELF_BYTES_MAX;
        memcpy(made[0].bytes, input.at, made[0].size);
    }
    for (int i = 0; i < 2; i++)
        link_objects(made, count, architecture, &outcomes[i]);
    compare(&outcomes[0], &outcomes[1]);
    return 0;
}
