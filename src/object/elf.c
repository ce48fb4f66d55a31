/*
 * ELF files through libelf: sections by name, relocated, and the functions that they name.
 *
 * What is read of a section is prepared once, when it is first asked for, and kept until the
 * object is closed. libelf checks headers and tables; that a section lies inside the file is
 * checked here, so that the file's own bytes can be used.
 *
 * PPC64 ELFv1: the address of a function is that of its descriptor in .opd, whose first word
 * leads to the code. So .opd is prepared as well there, and code addresses are named through it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/memory.h"
#include "object/image.h"
#include "object/relocation.h"
#include "object/symbols.h"

#include <ar.h>
#include <cairn/object.h>
#include <string.h>

struct prepared {
    struct prepared *next;
    uint32_t index;
    uint64_t address;
    const uint8_t *bytes;
    size_t size;
    uint8_t *copy; /* of the bytes, if it was decompressed or relocated; or NULL */
    struct relocation_list relocations;
};

struct cairn_object {
    struct cairn_allocator allocator;
    struct image image;
    Elf *elf;
    GElf_Ehdr header;
    enum cairn_architecture architecture;
    enum cairn_byte_order byte_order;
    bool has_symbols; /* they were read */
    struct symbol_list symbols;
    struct prepared *sections;
    struct prepared *descriptors; /* .opd, one of `sections`; or NULL */
    struct prepared *code;        /* sections of code, not relocated; the relocations' names only */
};

/* ---- Opening ---- */

static enum cairn_architecture ppc64_architecture(const GElf_Ehdr *header)
{
    unsigned abi = header->e_flags & EF_PPC64_ABI;
    if (abi == 0)
        abi = header->e_ident[EI_DATA] == ELFDATA2MSB ? 1 : 2;
    return abi == 1 ? CAIRN_ARCHITECTURE_PPC64_ELFV1 : CAIRN_ARCHITECTURE_PPC64_ELFV2;
}

static enum cairn_architecture find_architecture(const GElf_Ehdr *header)
{
    switch (header->e_machine) {
    case EM_X86_64:
        return CAIRN_ARCHITECTURE_X86_64;
    case EM_AARCH64:
        return CAIRN_ARCHITECTURE_AARCH64;
    case EM_PPC64:
        return ppc64_architecture(header);
    case EM_S390:
        return CAIRN_ARCHITECTURE_SYSTEMZ;
    case EM_RISCV:
        return CAIRN_ARCHITECTURE_RISCV64;
    default:
        return CAIRN_ARCHITECTURE_UNKNOWN;
    }
}

static enum cairn_status check_identity(const struct image *image, struct cairn_error *error)
{
    static const char archive[] = ARMAG;
    const uint8_t *bytes = image->bytes;
    if (image->size == 0)
        return error_set(error, CAIRN_ERROR_TRUNCATED, 0, "the file is empty");
    if (image->size >= SARMAG && memcmp(bytes, archive, SARMAG) == 0)
        return error_set(
            error, CAIRN_ERROR_UNSUPPORTED, 0,
            "this is an archive: extract its members with 'ar x' and give one of them");
    if (image->size < SELFMAG || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "this is not an ELF file");
    if (image->size > EI_CLASS && bytes[EI_CLASS] == ELFCLASS32)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, EI_CLASS,
                         "this is a 32-bit ELF file: stack maps exist in 64-bit ones only");
    if (image->size < sizeof(Elf64_Ehdr))
        return error_set(error, CAIRN_ERROR_TRUNCATED, image->size,
                         "the file ends inside its ELF header: it has %zu bytes of %zu",
                         image->size, sizeof(Elf64_Ehdr));
    return CAIRN_OK;
}

/* libelf opens a file whose section table is cut off as one without sections. */
static enum cairn_status check_section_table(const cairn_object *object, struct cairn_error *error)
{
    const GElf_Ehdr *header = &object->header;
    size_t size = object->image.size;
    if (header->e_shoff == 0)
        return CAIRN_OK;
    uint64_t table_bytes = (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
    if (table_bytes == 0)
        table_bytes = sizeof(Elf64_Shdr);
    if (header->e_shoff <= size && size - header->e_shoff >= table_bytes)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_TRUNCATED, header->e_shoff,
                     "the file ends before its section table: it has %zu bytes, the table is at "
                     "byte %llu",
                     size, (unsigned long long)header->e_shoff);
}

static enum cairn_status open_elf(cairn_object *object, struct cairn_error *error)
{
    enum cairn_status status = check_identity(&object->image, error);
    if (status != CAIRN_OK)
        return status;
    elf_version(EV_CURRENT);
    /* libelf takes a pointer that is not const, and does not write through it. */
    object->elf = elf_memory((char *)(uintptr_t)object->image.bytes, object->image.size);
    if (object->elf == NULL || gelf_getehdr(object->elf, &object->header) == NULL)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "the ELF header is no good: %s",
                         elf_errmsg(-1));
    object->architecture = find_architecture(&object->header);
    if (object->header.e_ident[EI_DATA] == ELFDATA2MSB)
        object->byte_order = CAIRN_BIG_ENDIAN;
    return check_section_table(object, error);
}

static enum cairn_status create(const struct cairn_allocator *chosen, cairn_object **object,
                                struct cairn_error *error)
{
    struct cairn_allocator allocator = memory_allocator(chosen);
    *object = memory_new(&allocator, 1, sizeof **object);
    if (*object == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an object");
    (*object)->allocator = allocator;
    return CAIRN_OK;
}

static enum cairn_status finish_opening(cairn_object *opened, enum cairn_status status,
                                        cairn_object **object, struct cairn_error *error)
{
    if (status == CAIRN_OK)
        status = open_elf(opened, error);
    if (status == CAIRN_OK)
        *object = opened;
    else
        cairn_object_close(opened);
    return status;
}

enum cairn_status cairn_object_open(const char *path, const struct cairn_allocator *allocator,
                                    cairn_object **object, struct cairn_error *error)
{
    if (path == NULL || object == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_open needs a path and a place for the object");
    cairn_object *opened;
    enum cairn_status status = create(allocator, &opened, error);
    if (status != CAIRN_OK)
        return status;
    status = image_open(path, &opened->allocator, &opened->image, error);
    return finish_opening(opened, status, object, error);
}

enum cairn_status cairn_object_open_memory(const void *bytes, size_t size,
                                           const struct cairn_allocator *allocator,
                                           cairn_object **object, struct cairn_error *error)
{
    if ((bytes == NULL && size > 0) || object == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_open_memory needs bytes and a place for the object");
    cairn_object *opened;
    enum cairn_status status = create(allocator, &opened, error);
    if (status != CAIRN_OK)
        return status;
    opened->image = (struct image){.bytes = bytes, .size = size, .origin = IMAGE_BORROWED};
    return finish_opening(opened, CAIRN_OK, object, error);
}

static void release_prepared(struct prepared *prepared, const struct cairn_allocator *allocator)
{
    relocation_list_release(&prepared->relocations, allocator);
    memory_free(allocator, prepared->copy, prepared->size);
    memory_free(allocator, prepared, sizeof *prepared);
}

static void release_all(struct prepared *first, const struct cairn_allocator *allocator)
{
    while (first != NULL) {
        struct prepared *next = first->next;
        release_prepared(first, allocator);
        first = next;
    }
}

void cairn_object_close(cairn_object *object)
{
    if (object == NULL)
        return;
    struct cairn_allocator allocator = object->allocator;
    release_all(object->sections, &allocator);
    release_all(object->code, &allocator);
    symbols_release(&object->symbols, &allocator);
    elf_end(object->elf);
    image_close(&object->image, &allocator);
    memory_free(&allocator, object, sizeof *object);
}

enum cairn_architecture cairn_object_architecture(const cairn_object *object)
{
    return object->architecture;
}

enum cairn_byte_order cairn_object_byte_order(const cairn_object *object)
{
    return object->byte_order;
}

bool cairn_object_is_relocatable(const cairn_object *object)
{
    return object->header.e_type == ET_REL;
}

/* Whether a mapping of `size` bytes from `file_offset` on has bytes of the segment. */
static bool is_mapped(const GElf_Phdr *segment, uint64_t file_offset, uint64_t size)
{
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0)
        return false;
    if (file_offset < segment->p_offset)
        return segment->p_offset - file_offset < size;
    return file_offset - segment->p_offset < segment->p_filesz;
}

bool cairn_object_load_base(const cairn_object *object, uint64_t address, uint64_t file_offset,
                            uint64_t size, uint64_t *base)
{
    size_t count;
    GElf_Phdr segment;
    if (elf_getphdrnum(object->elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (gelf_getphdr(object->elf, (int)i, &segment) == NULL)
            return false;
        if (!is_mapped(&segment, file_offset, size))
            continue;
        *base = address - file_offset - (segment.p_vaddr - segment.p_offset);
        return true;
    }
    return false;
}

/* ---- The bytes of a section ---- */

static enum cairn_status find_plain_bytes(const cairn_object *object, const GElf_Shdr *header,
                                          struct prepared *prepared, struct cairn_error *error)
{
    size_t size = object->image.size;
    if (header->sh_offset > size || size - header->sh_offset < header->sh_size)
        return error_set(error, CAIRN_ERROR_TRUNCATED, header->sh_offset,
                         "the section takes %llu bytes from byte %llu on; the file has %zu",
                         (unsigned long long)header->sh_size, (unsigned long long)header->sh_offset,
                         size);
    prepared->bytes = object->image.bytes + header->sh_offset;
    prepared->size = header->sh_size;
    return CAIRN_OK;
}

static enum cairn_status keep_copy(const cairn_object *object, struct prepared *prepared,
                                   const void *bytes, size_t size, struct cairn_error *error)
{
    prepared->bytes = bytes;
    prepared->size = size;
    if (size == 0)
        return CAIRN_OK;
    prepared->copy = memory_new(&object->allocator, size, 1);
    if (prepared->copy == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a section of %zu bytes",
                         size);
    memcpy(prepared->copy, bytes, size);
    prepared->bytes = prepared->copy;
    return CAIRN_OK;
}

static enum cairn_status decompress(const cairn_object *object, Elf *elf, uint32_t index,
                                    struct prepared *prepared, struct cairn_error *error)
{
    Elf_Scn *section = elf == NULL ? NULL : elf_getscn(elf, index);
    Elf_Data *data = NULL;
    if (section != NULL && elf_compress(section, 0, 0) >= 0)
        data = elf_rawdata(section, NULL);
    if (data == NULL)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "the section cannot be decompressed: %s",
                         elf_errmsg(-1));
    return keep_copy(object, prepared, data->d_buf, data->d_size, error);
}

/* libelf changes the section's header as it decompresses, so it is given a copy of the file. */
static enum cairn_status find_compressed_bytes(const cairn_object *object,
                                               struct prepared *prepared, struct cairn_error *error)
{
    size_t size = object->image.size;
    char *image = memory_new(&object->allocator, size, 1);
    if (image == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to decompress a section");
    memcpy(image, object->image.bytes, size);
    Elf *elf = elf_memory(image, size);
    enum cairn_status status = decompress(object, elf, prepared->index, prepared, error);
    elf_end(elf);
    memory_free(&object->allocator, image, size);
    return status;
}

static enum cairn_status find_bytes(const cairn_object *object, const GElf_Shdr *header,
                                    struct prepared *prepared, struct cairn_error *error)
{
    if (header->sh_type == SHT_NOBITS)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, header->sh_offset,
                         "the section has no bytes in this file: is it a separate debug file?");
    if ((header->sh_flags & SHF_COMPRESSED) != 0)
        return find_compressed_bytes(object, prepared, error);
    return find_plain_bytes(object, header, prepared, error);
}

static struct relocation_target target_of(const cairn_object *object,
                                          const struct prepared *prepared)
{
    return (struct relocation_target){
        .elf = object->elf,
        .header = object->header,
        .section = prepared->index,
        .address = prepared->address,
        .size = prepared->size,
        .byte_order = object->byte_order,
    };
}

static enum cairn_status relocate(const cairn_object *object, struct prepared *prepared,
                                  struct cairn_error *error)
{
    struct relocation_target target = target_of(object, prepared);
    if (prepared->size == 0 || !relocation_is_needed(&target))
        return CAIRN_OK;
    enum cairn_status status = CAIRN_OK;
    if (prepared->copy == NULL)
        status = keep_copy(object, prepared, prepared->bytes, prepared->size, error);
    if (status != CAIRN_OK)
        return status;
    return relocation_apply(&target, prepared->copy, &object->allocator, &prepared->relocations,
                            error);
}

static struct prepared *find_prepared(const cairn_object *object, size_t index)
{
    struct prepared *prepared = object->sections;
    while (prepared != NULL && prepared->index != index)
        prepared = prepared->next;
    return prepared;
}

static enum cairn_status prepare(cairn_object *object, Elf_Scn *section, const GElf_Shdr *header,
                                 struct prepared **prepared, struct cairn_error *error)
{
    *prepared = find_prepared(object, elf_ndxscn(section));
    if (*prepared != NULL)
        return CAIRN_OK;
    struct prepared *created = memory_new(&object->allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a section");
    created->index = (uint32_t)elf_ndxscn(section);
    created->address = cairn_object_is_relocatable(object) ? 0 : header->sh_addr;
    enum cairn_status status = find_bytes(object, header, created, error);
    if (status == CAIRN_OK)
        status = relocate(object, created, error);
    if (status != CAIRN_OK) {
        release_prepared(created, &object->allocator);
        return status;
    }
    created->next = object->sections;
    object->sections = created;
    *prepared = created;
    return CAIRN_OK;
}

/* ---- Addresses in a section ---- */

static bool has_room(const struct prepared *prepared, uint64_t offset)
{
    return offset <= prepared->size && prepared->size - offset >= 8;
}

/* Where the address at `offset` points to: as its relocation says, or else as it stands there. */
static struct relocation read_address(const cairn_object *object, const struct prepared *prepared,
                                      uint64_t offset)
{
    const struct relocation *relocation = relocation_find(&prepared->relocations, offset);
    if (relocation != NULL)
        return *relocation;
    uint64_t value = cairn_load_u64(prepared->bytes + offset, object->byte_order);
    return (struct relocation){.offset = offset, .value = value};
}

/* ---- Sections by name ---- */

static bool matches(const struct cairn_object_filter *filter, const char *name, uint32_t type)
{
    if (filter->type != 0 && filter->type != type)
        return false;
    if (filter->name != NULL && strcmp(filter->name, name) != 0)
        return false;
    return filter->prefix == NULL || strncmp(filter->prefix, name, strlen(filter->prefix)) == 0;
}

static Elf_Scn *find_next(const cairn_object *object, const struct cairn_object_filter *filter,
                          Elf_Scn *section, GElf_Shdr *header)
{
    size_t names;
    if (elf_getshdrstrndx(object->elf, &names) != 0)
        return NULL;
    while ((section = elf_nextscn(object->elf, section)) != NULL) {
        if (gelf_getshdr(section, header) == NULL)
            continue;
        const char *name = elf_strptr(object->elf, names, header->sh_name);
        if (name != NULL && matches(filter, name, header->sh_type))
            return section;
    }
    return NULL;
}

static enum cairn_status read_descriptors(cairn_object *object, struct cairn_error *error)
{
    GElf_Shdr header;
    if (object->architecture != CAIRN_ARCHITECTURE_PPC64_ELFV1)
        return CAIRN_OK;
    Elf_Scn *section =
        find_next(object, &(struct cairn_object_filter){.name = ".opd"}, NULL, &header);
    if (section == NULL)
        return CAIRN_OK;
    return prepare(object, section, &header, &object->descriptors, error);
}

/* A symbol of a descriptor names the code as well that the descriptor leads to, unless the code
 * has a symbol of its own. */
static enum cairn_status add_code_names(cairn_object *object, struct cairn_error *error)
{
    const struct prepared *descriptors = object->descriptors;
    size_t count = descriptors == NULL ? 0 : object->symbols.count;
    uint32_t section = count > 0 && cairn_object_is_relocatable(object) ? descriptors->index : 0;
    for (size_t i = 0; i < count; i++) {
        struct symbol symbol = object->symbols.entries[i];
        uint64_t offset = symbol.value - descriptors->address;
        if (symbol.section != section || !has_room(descriptors, offset))
            continue;
        struct relocation code = read_address(object, descriptors, offset);
        symbol.section = code.section;
        symbol.value = code.value;
        symbol.rank = (uint8_t)(symbol.rank + SYMBOL_RANK_COUNT);
        if (symbols_add(&object->symbols, &object->allocator, &symbol, error) != CAIRN_OK)
            return CAIRN_ERROR_MEMORY;
    }
    return CAIRN_OK;
}

static enum cairn_status read_names(cairn_object *object, struct cairn_error *error)
{
    if (object->has_symbols)
        return CAIRN_OK;
    enum cairn_status status = read_descriptors(object, error);
    if (status == CAIRN_OK)
        status =
            symbols_read(object->elf, &object->header, &object->allocator, &object->symbols, error);
    if (status == CAIRN_OK)
        status = add_code_names(object, error);
    if (status != CAIRN_OK) {
        symbols_release(&object->symbols, &object->allocator);
        return status;
    }
    symbols_sort(&object->symbols);
    object->has_symbols = true;
    return CAIRN_OK;
}

static const char *name_of(const cairn_object *object, const GElf_Shdr *header)
{
    size_t names;
    const char *name = NULL;
    if (elf_getshdrstrndx(object->elf, &names) == 0)
        name = elf_strptr(object->elf, names, header->sh_name);
    return name == NULL ? "" : name;
}

static enum cairn_status say_not_found(const struct cairn_object_filter *filter,
                                       const struct cairn_object_section *section,
                                       struct cairn_error *error)
{
    const char *other = section->index == 0 ? "" : "other ";
    if (filter->name != NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "there is no %ssection '%s'", other,
                         filter->name);
    if (filter->prefix != NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "there is no %ssection '%s...'", other,
                         filter->prefix);
    return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "there is no %ssection of type 0x%x", other,
                     filter->type);
}

enum cairn_status cairn_object_next_matching(cairn_object *object,
                                             const struct cairn_object_filter *filter,
                                             struct cairn_object_section *section,
                                             struct cairn_error *error)
{
    if (object == NULL || filter == NULL || section == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_next_matching needs an object, a filter and a section");
    GElf_Shdr header;
    Elf_Scn *previous = section->index == 0 ? NULL : elf_getscn(object->elf, section->index);
    Elf_Scn *found = find_next(object, filter, previous, &header);
    if (found == NULL)
        return say_not_found(filter, section, error);
    struct prepared *prepared;
    enum cairn_status status = read_names(object, error);
    if (status == CAIRN_OK)
        status = prepare(object, found, &header, &prepared, error);
    if (status != CAIRN_OK)
        return status;
    *section = (struct cairn_object_section){
        .index = prepared->index,
        .contents = {prepared->bytes, prepared->size, object->byte_order},
        .address = prepared->address,
        .name = name_of(object, &header),
        .type = header.sh_type,
        .linked_section = (header.sh_flags & SHF_LINK_ORDER) != 0 ? header.sh_link : 0,
    };
    return CAIRN_OK;
}

enum cairn_status cairn_object_next_section(cairn_object *object, const char *name,
                                            struct cairn_object_section *section,
                                            struct cairn_error *error)
{
    if (object == NULL || name == NULL || section == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_next_section needs an object, a name and a section");
    return cairn_object_next_matching(object, &(struct cairn_object_filter){.name = name}, section,
                                      error);
}

/* ---- Functions ---- */

/* Linked: the address lies in .opd. Relocatable: the relocation points into it. */
static bool is_descriptor(const cairn_object *object, const struct relocation *address)
{
    const struct prepared *descriptors = object->descriptors;
    if (descriptors == NULL)
        return false;
    if (cairn_object_is_relocatable(object) && address->section != descriptors->index)
        return false;
    return address->value >= descriptors->address &&
           has_room(descriptors, address->value - descriptors->address);
}

struct cairn_object_function cairn_object_function(const cairn_object *object,
                                                   const struct cairn_object_section *section,
                                                   size_t offset)
{
    struct cairn_object_function function = {0};
    const struct prepared *prepared = find_prepared(object, section->index);
    if (prepared == NULL || !has_room(prepared, offset))
        return function;
    struct relocation address = read_address(object, prepared, offset);
    const struct symbol *symbol = symbols_find(&object->symbols, address.section, address.value);
    function.name = address.name == NULL && symbol != NULL ? symbol->name : address.name;
    /* That of a descriptor has the size of the code. */
    function.size = symbol == NULL ? 0 : symbol->size;
    if (is_descriptor(object, &address)) {
        uint64_t descriptor = address.value - object->descriptors->address;
        address = read_address(object, object->descriptors, descriptor);
    }
    function.entry = address.value;
    function.section = address.section;
    return function;
}

const char *cairn_object_symbol(const cairn_object *object, uint32_t section, uint64_t address)
{
    uint32_t counted_from = cairn_object_is_relocatable(object) ? section : 0;
    const struct symbol *symbol = symbols_find(&object->symbols, counted_from, address);
    return symbol == NULL ? NULL : symbol->name;
}

/* ---- Code ---- */

static bool holds(const struct prepared *prepared, uint64_t address)
{
    return address >= prepared->address && address - prepared->address < prepared->size;
}

static bool is_code_at(const cairn_object *object, const GElf_Shdr *header, size_t index,
                       uint32_t section, uint64_t address)
{
    if ((header->sh_flags & SHF_EXECINSTR) == 0)
        return false;
    if (cairn_object_is_relocatable(object))
        return index == section && address < header->sh_size;
    return address >= header->sh_addr && address - header->sh_addr < header->sh_size;
}

static Elf_Scn *find_code_section(const cairn_object *object, uint32_t section, uint64_t address,
                                  GElf_Shdr *header)
{
    Elf_Scn *candidate = NULL;
    while ((candidate = elf_nextscn(object->elf, candidate)) != NULL)
        if (gelf_getshdr(candidate, header) != NULL &&
            is_code_at(object, header, elf_ndxscn(candidate), section, address))
            return candidate;
    return NULL;
}

/* Of those that were prepared before. */
static const struct prepared *find_code(const cairn_object *object, uint32_t section,
                                        uint64_t address)
{
    bool is_relocatable = cairn_object_is_relocatable(object);
    const struct prepared *prepared = object->code;
    while (prepared != NULL &&
           (!holds(prepared, address) || (is_relocatable && prepared->index != section)))
        prepared = prepared->next;
    return prepared;
}

static enum cairn_status prepare_code(cairn_object *object, uint32_t section, uint64_t address,
                                      const struct prepared **prepared, struct cairn_error *error)
{
    GElf_Shdr header;
    *prepared = find_code(object, section, address);
    if (*prepared != NULL)
        return CAIRN_OK;
    Elf_Scn *found = find_code_section(object, section, address, &header);
    if (found == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, address,
                         "there is no code at 0x%llx in this file", (unsigned long long)address);
    struct prepared *created = memory_new(&object->allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a section");
    created->index = (uint32_t)elf_ndxscn(found);
    created->address = cairn_object_is_relocatable(object) ? 0 : header.sh_addr;
    enum cairn_status status = find_bytes(object, &header, created, error);
    struct relocation_target target = target_of(object, created);
    if (status == CAIRN_OK)
        status = relocation_note_names(&target, &object->allocator, &created->relocations, error);
    if (status == CAIRN_OK && !holds(created, address))
        status = error_set(error, CAIRN_ERROR_CORRUPT, address, "the section has fewer bytes");
    if (status != CAIRN_OK) {
        release_prepared(created, &object->allocator);
        return status;
    }
    created->next = object->code;
    object->code = created;
    *prepared = created;
    return CAIRN_OK;
}

enum cairn_status cairn_object_code(cairn_object *object, uint32_t section, uint64_t address,
                                    struct cairn_object_code *code, struct cairn_error *error)
{
    if (object == NULL || code == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_code needs an object and a place for the code");
    const struct prepared *prepared;
    enum cairn_status status = prepare_code(object, section, address, &prepared, error);
    if (status != CAIRN_OK)
        return status;
    uint64_t offset = address - prepared->address;
    *code = (struct cairn_object_code){
        .address = address, .bytes = prepared->bytes + offset, .size = prepared->size - offset};
    return CAIRN_OK;
}

const char *cairn_object_relocated_symbol(const cairn_object *object, uint32_t section,
                                          uint64_t address, size_t size)
{
    const struct prepared *prepared = find_code(object, section, address);
    if (prepared == NULL)
        return NULL;
    const struct relocation *relocation =
        relocation_find_name(&prepared->relocations, address - prepared->address, size);
    return relocation == NULL ? NULL : relocation->name;
}
