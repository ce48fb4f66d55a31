/*
 * link_support.h - small objects to link, and a host that gives them memory at chosen addresses.
 *
 * Objects can be for any architecture, because nothing of them is run.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_LINK_SUPPORT_H
#define TESTS_LINK_SUPPORT_H

#include "base/adapter.h"
#include "elf_builder.h"
#include "object/link.h"

#include <check.h>

/* ---- Objects ---- */

enum { LINK_SYMBOLS_MAX = 64, LINK_RELOCATIONS_MAX = 64, LINK_NAME_BYTES_MAX = 2048 };

struct link_object {
    struct elf_file file;
    uint8_t symbols[LINK_SYMBOLS_MAX * sizeof(Elf64_Sym)];
    uint32_t symbol_count;
    uint32_t local_count;
    struct {
        uint32_t section;
        uint8_t bytes[sizeof(Elf64_Rela)];
    } relocations[LINK_RELOCATIONS_MAX];
    uint32_t relocation_count;
    char names[LINK_NAME_BYTES_MAX];
    size_t name_bytes;
    /* What link_object_write writes. */
    uint8_t tables[LINK_RELOCATIONS_MAX * sizeof(Elf64_Rela)];
    uint8_t bytes[ELF_BYTES_MAX];
    size_t size;
};

/* Begins an object for an architecture. */
void link_object_begin(struct link_object *object, enum cairn_architecture architecture);

/* Adds a section with `size` zeros as its contents, or without contents if it is NOBITS. Returns
 * its number. */
uint32_t link_object_section(struct link_object *object, const char *name, uint32_t type,
                             uint64_t flags, size_t size);

/* Adds a section with contents, which must remain valid. */
uint32_t link_object_contents(struct link_object *object, const char *name, uint32_t type,
                              uint64_t flags, const void *bytes, size_t size);

/* Adds a symbol and returns its number. Local ones must be added first. */
uint32_t link_object_symbol(struct link_object *object, const char *name, unsigned binding,
                            unsigned type, uint32_t section, uint64_t value, uint64_t size);

/* Sets st_other of the last symbol. */
void link_object_other(struct link_object *object, uint8_t other);

/* Adds a relocation of a section. Those of one section must be added one after the other. */
void link_object_relocation(struct link_object *object, uint32_t section, uint64_t offset,
                            uint32_t type, uint32_t symbol, int64_t addend);

/* Adds a COMDAT group of one section. */
void link_object_group(struct link_object *object, uint32_t signature, uint32_t section);

/* Adds the tables, and writes the file to `bytes`. */
void link_object_write(struct link_object *object);

/* ---- The host ---- */

enum { LINK_BLOCKS_MAX = 32, LINK_HOST_SYMBOLS_MAX = 16 };

/* Zeroed, it has no symbols, and memory from address 0x100000 on. */
struct link_host {
    uint64_t next; /* the address of the next memory */
    struct object_memory blocks[LINK_BLOCKS_MAX];
    uint64_t sizes[LINK_BLOCKS_MAX];
    enum cairn_section_kind kinds[LINK_BLOCKS_MAX];
    uint32_t block_count;
    const char *pc_section; /* the name of PC sections */
    bool refuses_too_much;  /* returns FULL instead of failing the test */
    struct {
        const char *name;
        uint64_t address;
    } symbols[LINK_HOST_SYMBOLS_MAX];
    uint32_t symbol_count;
    char asked[256];     /* the names that were asked for, each with a space after it */
    char undefined[256]; /* the names that were not found, likewise */
    const char *file;    /* name of the objects that are added next; NULL: none */
    struct object_link *link;
    struct cairn_error error;
};

void link_host_symbol(struct link_host *host, const char *name, uint64_t address);

/* Writes an object and adds it to the link, which is created first if necessary. */
enum cairn_status link_add(struct link_host *host, struct link_object *object);

/* Adds bytes. */
enum cairn_status link_add_bytes(struct link_host *host, const struct cairn_arch *arch,
                                 const uint8_t *bytes, size_t size);

enum cairn_status link_finish(struct link_host *host);

/* Returns the symbol with a name, which must exist. */
const struct object_symbol *link_symbol(const struct link_host *host, const char *name);

/* Returns where the byte at an address is, which must be in one of the blocks. */
const uint8_t *link_at(const struct link_host *host, uint64_t address);

/* Returns the number of 8 or 4 bytes at an address. */
uint64_t link_u64(const struct link_host *host, uint64_t address);
uint32_t link_u32(const struct link_host *host, uint64_t address);

/* Destroys the link, and frees the memory. */
void link_end(struct link_host *host);

#endif
