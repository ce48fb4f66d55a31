/* SPDX-License-Identifier: MIT */
#include "link_support.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Objects ---- */

void link_object_begin(struct link_object *object, enum cairn_architecture architecture)
{
    const struct cairn_arch *arch = arch_find(architecture);
    memset(object, 0, sizeof *object);
    object->file.type = ET_REL;
    object->file.byte_order = arch->byte_order;
    object->file.machine = architecture == CAIRN_ARCHITECTURE_X86_64    ? EM_X86_64
                           : architecture == CAIRN_ARCHITECTURE_AARCH64 ? EM_AARCH64
                                                                        : EM_PPC64;
    if (object->file.machine == EM_PPC64)
        object->file.flags = architecture == CAIRN_ARCHITECTURE_PPC64_ELFV1 ? 1 : 2;
    object->name_bytes = 1;
    object->symbol_count = 1;
    object->local_count = 1;
}

uint32_t link_object_contents(struct link_object *object, const char *name, uint32_t type,
                              uint64_t flags, const void *bytes, size_t size)
{
    return elf_add(&object->file,
                   (struct elf_section){
                       .name = name, .type = type, .flags = flags, .bytes = bytes, .size = size});
}

uint32_t link_object_section(struct link_object *object, const char *name, uint32_t type,
                             uint64_t flags, size_t size)
{
    static const uint8_t zeros[4096];
    ck_assert_uint_le(size, sizeof zeros);
    return link_object_contents(object, name, type, flags, zeros, size);
}

uint32_t link_object_symbol(struct link_object *object, const char *name, unsigned binding,
                            unsigned type, uint32_t section, uint64_t value, uint64_t size)
{
    size_t length = strlen(name);
    uint8_t *at = object->symbols + object->symbol_count * sizeof(Elf64_Sym);
    ck_assert_uint_lt(object->symbol_count, LINK_SYMBOLS_MAX);
    ck_assert_uint_le(object->name_bytes + length + 1, LINK_NAME_BYTES_MAX);
    memcpy(object->names + object->name_bytes, name, length);
    elf_put_symbol(at, object->file.byte_order, (uint32_t)object->name_bytes,
                   (uint8_t)ELF64_ST_INFO(binding, type), (uint16_t)section, value);
    elf_put64(at + offsetof(Elf64_Sym, st_size), object->file.byte_order, size);
    object->name_bytes += length + 1;
    object->local_count += binding == STB_LOCAL;
    return object->symbol_count++;
}

void link_object_other(struct link_object *object, uint8_t other)
{
    uint8_t *symbol = object->symbols + (object->symbol_count - 1) * sizeof(Elf64_Sym);
    symbol[offsetof(Elf64_Sym, st_other)] = other;
}

void link_object_relocation(struct link_object *object, uint32_t section, uint64_t offset,
                            uint32_t type, uint32_t symbol, int64_t addend)
{
    ck_assert_uint_lt(object->relocation_count, LINK_RELOCATIONS_MAX);
    object->relocations[object->relocation_count].section = section;
    elf_put_rela(object->relocations[object->relocation_count++].bytes, object->file.byte_order,
                 offset, symbol, type, addend);
}

void link_object_group(struct link_object *object, uint32_t signature, uint32_t section)
{
    static uint8_t words[16][8];
    static unsigned used;
    uint8_t *at = words[used++ % 16];
    elf_put32(elf_put32(at, object->file.byte_order, GRP_COMDAT), object->file.byte_order, section);
    uint32_t group = link_object_contents(object, ".group", SHT_GROUP, 0, at, 8);
    object->file.sections[group].info = signature;
    object->file.sections[section].flags |= SHF_GROUP;
}

static void add_tables(struct link_object *object)
{
    uint32_t names =
        link_object_contents(object, ".strtab", SHT_STRTAB, 0, object->names, object->name_bytes);
    uint32_t symbols = link_object_contents(object, ".symtab", SHT_SYMTAB, 0, object->symbols,
                                            object->symbol_count * sizeof(Elf64_Sym));
    object->file.sections[symbols].link = names;
    object->file.sections[symbols].info = object->local_count;
    object->file.sections[symbols].entry_size = sizeof(Elf64_Sym);
    for (uint32_t i = 0, end; i < object->relocation_count; i = end) {
        uint8_t *first = object->tables + i * sizeof(Elf64_Rela);
        uint32_t section = object->relocations[i].section;
        for (end = i; end < object->relocation_count && object->relocations[end].section == section;
             end++)
            memcpy(object->tables + end * sizeof(Elf64_Rela), object->relocations[end].bytes,
                   sizeof(Elf64_Rela));
        uint32_t table = link_object_contents(object, ".rela", SHT_RELA, 0, first,
                                              (end - i) * sizeof(Elf64_Rela));
        object->file.sections[table].link = symbols;
        object->file.sections[table].info = section;
        object->file.sections[table].entry_size = sizeof(Elf64_Rela);
    }
}

void link_object_write(struct link_object *object)
{
    add_tables(object);
    object->size = elf_write(&object->file, object->bytes);
}

/* ---- The host ---- */

enum { LINK_BYTES_MAX = 1 << 24 };

static enum cairn_status allocate(void *user, enum cairn_section_kind kind, const char *name,
                                  uint64_t size, uint64_t alignment, struct object_memory *memory,
                                  struct cairn_error *error)
{
    struct link_host *host = user;
    (void)name;
    if (host->refuses_too_much && (size > LINK_BYTES_MAX || alignment > LINK_BYTES_MAX ||
                                   host->block_count == LINK_BLOCKS_MAX)) {
        *error = (struct cairn_error){.status = CAIRN_ERROR_FULL, .message = "full"};
        return CAIRN_ERROR_FULL;
    }
    if (host->next == 0)
        host->next = 0x100000;
    ck_assert_uint_lt(host->block_count, LINK_BLOCKS_MAX);
    host->next = (host->next + alignment - 1) & ~(alignment - 1);
    *memory = (struct object_memory){malloc(size), host->next};
    ck_assert_ptr_nonnull(memory->bytes);
    memset(memory->bytes, 0xA5, size);
    host->next += size;
    host->blocks[host->block_count] = *memory;
    host->sizes[host->block_count] = size;
    host->kinds[host->block_count++] = kind;
    return CAIRN_OK;
}

static bool is_pc_section(void *user, const char *name)
{
    const struct link_host *host = user;
    return host->pc_section != NULL && strcmp(name, host->pc_section) == 0;
}

static void append(char *list, size_t size, const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s ", name);
}

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    struct link_host *host = user;
    append(host->asked, sizeof host->asked, name);
    for (uint32_t i = 0; i < host->symbol_count; i++)
        if (strcmp(host->symbols[i].name, name) == 0) {
            *address = host->symbols[i].address;
            return true;
        }
    return false;
}

static void note_undefined(void *user, const char *name)
{
    struct link_host *host = user;
    append(host->undefined, sizeof host->undefined, name);
}

void link_host_symbol(struct link_host *host, const char *name, uint64_t address)
{
    ck_assert_uint_lt(host->symbol_count, LINK_HOST_SYMBOLS_MAX);
    host->symbols[host->symbol_count].name = name;
    host->symbols[host->symbol_count++].address = address;
}

enum cairn_status link_add_bytes(struct link_host *host, const struct cairn_arch *arch,
                                 const uint8_t *bytes, size_t size)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    const struct object_host callbacks = {allocate,       is_pc_section, find_symbol,
                                          note_undefined, host,          0};
    if (host->link == NULL)
        ck_assert_int_eq(object_link_create(arch, &allocator, &host->link, &host->error), CAIRN_OK);
    return object_link_add(host->link, bytes, size, host->file, &callbacks, &host->error);
}

static const struct cairn_arch *arch_of(const struct link_object *object)
{
    if (object->file.machine == EM_X86_64)
        return arch_find(CAIRN_ARCHITECTURE_X86_64);
    if (object->file.machine == EM_AARCH64)
        return arch_find(CAIRN_ARCHITECTURE_AARCH64);
    return arch_find(object->file.flags == 1 ? CAIRN_ARCHITECTURE_PPC64_ELFV1
                                             : CAIRN_ARCHITECTURE_PPC64_ELFV2);
}

enum cairn_status link_add(struct link_host *host, struct link_object *object)
{
    link_object_write(object);
    return link_add_bytes(host, arch_of(object), object->bytes, object->size);
}

enum cairn_status link_finish(struct link_host *host)
{
    return object_link_finish(host->link, &host->error);
}

const struct object_symbol *link_symbol(const struct link_host *host, const char *name)
{
    for (size_t i = 0; i < host->link->symbol_count; i++)
        if (host->link->symbols[i].name != NULL && strcmp(host->link->symbols[i].name, name) == 0)
            return &host->link->symbols[i];
    ck_abort_msg("there is no symbol '%s'", name);
    return NULL;
}

const uint8_t *link_at(const struct link_host *host, uint64_t address)
{
    for (uint32_t i = 0; i < host->block_count; i++)
        if (address >= host->blocks[i].address &&
            address - host->blocks[i].address < host->sizes[i])
            return host->blocks[i].bytes + (address - host->blocks[i].address);
    ck_abort_msg("there is no memory at 0x%llx", (unsigned long long)address);
    return NULL;
}

uint64_t link_u64(const struct link_host *host, uint64_t address)
{
    return cairn_load_u64(link_at(host, address), host->link->arch->byte_order);
}

uint32_t link_u32(const struct link_host *host, uint64_t address)
{
    return cairn_load_u32(link_at(host, address), host->link->arch->byte_order);
}

void link_end(struct link_host *host)
{
    object_link_destroy(host->link);
    for (uint32_t i = 0; i < host->block_count; i++)
        free(host->blocks[i].bytes);
    memset(host, 0, sizeof *host);
}
