/* SPDX-License-Identifier: MIT */
#include "bench/one_function.h"

#include <cairn/architecture.h>
#include <stdio.h>
#include <string.h>

enum { NAME_DIGITS = 7, NAME_BYTES = NAME_DIGITS + 1, TEXT_SYMBOL = 1, FUNCTION_SYMBOL = 2 };

/* What differs between architectures. Source: their ELF ABIs, and the unwind tables that LLVM
 * writes for functions without a frame. */
struct machine {
    enum cairn_architecture architecture;
    uint16_t machine;
    uint32_t absolute; /* the relocation of an 8-byte address */
    uint32_t relative; /* of a 4-byte distance */
    uint32_t no_op;    /* 4 bytes of instructions */
    uint32_t flags;    /* of the file */
    uint8_t return_register;
    uint8_t stack_pointer;
    uint8_t cfa_offset;
};

static const struct machine machines[] = {
    {CAIRN_ARCHITECTURE_X86_64, EM_X86_64, R_X86_64_64, R_X86_64_PC32, 0x90909090, 0, 16, 7, 8},
    {CAIRN_ARCHITECTURE_AARCH64, EM_AARCH64, R_AARCH64_ABS64, R_AARCH64_PREL32, 0xD503201F, 0, 30,
     31, 0},
    {CAIRN_ARCHITECTURE_PPC64_ELFV2, EM_PPC64, R_PPC64_ADDR64, R_PPC64_REL32, 0x60000000, 2, 65, 1,
     0},
    {CAIRN_ARCHITECTURE_PPC64_ELFV1, EM_PPC64, R_PPC64_ADDR64, R_PPC64_REL32, 0x60000000, 1, 65, 1,
     0},
};

static const struct machine *find_machine(void)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].architecture == cairn_architecture_host())
            return &machines[i];
    return NULL;
}

/* ---- Sections ---- */

enum { STACKMAP_BYTES = 64, STACKMAP_ADDRESS = 16, STACKMAP_ID = 40 };

/* A map of version 3 with one function and one record without locations. */
static void write_stackmap(uint8_t *at, enum cairn_byte_order order)
{
    at = elf_put32(at, order, order == CAIRN_LITTLE_ENDIAN ? 3 : UINT32_C(3) << 24);
    at = elf_put32(at, order, 1); /* functions */
    at = elf_put32(at, order, 0); /* constants */
    at = elf_put32(at, order, 1); /* records */
    at = elf_put64(at, order, 0); /* the function's address: relocated */
    at = elf_put64(at, order, 8); /* stack size */
    at = elf_put64(at, order, 1); /* records of the function */
    at = elf_put64(at, order, 0); /* ID */
    at = elf_put32(at, order, 0); /* offset */
    elf_put64(at, order, 0);      /* no locations, no live-outs; padding */
}

enum { EH_FRAME_BYTES = 44, EH_FRAME_FUNCTION = 28 };

/* A CIE of 20 bytes and an FDE of 24. Source: Linux Standard Base Core Specification, "Exception
 * Frames"; DWARF 5, section 6.4. */
static void write_eh_frame(const struct machine *machine, uint8_t *at, enum cairn_byte_order order)
{
    const uint8_t cie[] = {1,
                           'z',
                           'R',
                           0,
                           1,
                           0x78,
                           machine->return_register,
                           1,
                           0x1B,
                           /* DW_CFA_def_cfa */ 0x0C,
                           machine->stack_pointer,
                           machine->cfa_offset};
    at = elf_put32(at, order, 16);
    at = elf_put32(at, order, 0);
    memcpy(at, cie, sizeof cie);
    at = elf_put32(at + sizeof cie, order, 20);
    at = elf_put32(at, order, 24);
    at = elf_put32(at, order, 0); /* the function's distance: relocated */
    elf_put32(at, order, ONE_FUNCTION_CODE_BYTES);
}

/* ---- The object ---- */

static void add_relocations(struct elf_file *file, const char *name, uint32_t symbols,
                            uint32_t section, const uint8_t *bytes)
{
    elf_add(file, (struct elf_section){.name = name,
                                       .type = SHT_RELA,
                                       .flags = SHF_INFO_LINK,
                                       .link = symbols,
                                       .info = section,
                                       .bytes = bytes,
                                       .size = sizeof(Elf64_Rela),
                                       .entry_size = sizeof(Elf64_Rela)});
}

static void add_sections(struct elf_file *file, const struct machine *machine)
{
    enum { TEXT = 1, STACKMAP, EH_FRAME, SYMBOLS };
    static uint8_t code[ONE_FUNCTION_CODE_BYTES], stackmap[STACKMAP_BYTES];
    static uint8_t eh_frame[EH_FRAME_BYTES + 4], symbols[3 * sizeof(Elf64_Sym)];
    static uint8_t stackmap_relocation[sizeof(Elf64_Rela)], frame_relocation[sizeof(Elf64_Rela)];
    static const char names[1 + NAME_BYTES + 1] = "\0f0000000";
    const enum cairn_byte_order order = file->byte_order;
    for (uint8_t *at = code; at < code + sizeof code; at += 4)
        elf_put32(at, order, machine->no_op);
    write_stackmap(stackmap, order);
    write_eh_frame(machine, eh_frame, order);
    elf_put_symbol(symbols + sizeof(Elf64_Sym), order, 0, ELF64_ST_INFO(STB_LOCAL, STT_SECTION),
                   TEXT, 0);
    uint8_t *end = elf_put_symbol(symbols + 2 * sizeof(Elf64_Sym), order, 1,
                                  ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), TEXT, 0);
    elf_put64(end - sizeof(uint64_t), order, ONE_FUNCTION_CODE_BYTES);
    elf_put_rela(stackmap_relocation, order, STACKMAP_ADDRESS, FUNCTION_SYMBOL, machine->absolute,
                 0);
    elf_put_rela(frame_relocation, order, EH_FRAME_FUNCTION, TEXT_SYMBOL, machine->relative, 0);
    elf_add(file, (struct elf_section){.name = ".text",
                                       .type = SHT_PROGBITS,
                                       .flags = SHF_ALLOC | SHF_EXECINSTR,
                                       .bytes = code,
                                       .size = sizeof code,
                                       .alignment = 16});
    elf_add(file, (struct elf_section){.name = ".llvm_stackmaps",
                                       .type = SHT_PROGBITS,
                                       .flags = SHF_ALLOC,
                                       .bytes = stackmap,
                                       .size = sizeof stackmap});
    elf_add(file, (struct elf_section){.name = ".eh_frame",
                                       .type = SHT_PROGBITS,
                                       .flags = SHF_ALLOC,
                                       .bytes = eh_frame,
                                       .size = EH_FRAME_BYTES});
    elf_add(file, (struct elf_section){.name = ".symtab",
                                       .type = SHT_SYMTAB,
                                       .link = SYMBOLS + 1,
                                       .info = FUNCTION_SYMBOL,
                                       .bytes = symbols,
                                       .size = sizeof symbols,
                                       .entry_size = sizeof(Elf64_Sym)});
    elf_add(file, (struct elf_section){
                      .name = ".strtab", .type = SHT_STRTAB, .bytes = names, .size = sizeof names});
    add_relocations(file, ".rela.llvm_stackmaps", SYMBOLS, STACKMAP, stackmap_relocation);
    add_relocations(file, ".rela.eh_frame", SYMBOLS, EH_FRAME, frame_relocation);
}

/* Returns the place of some bytes, which must be in the object. */
static uint8_t *find(struct one_function *object, const void *bytes, size_t size)
{
    return memmem(object->bytes, object->size, bytes, size);
}

bool one_function_create(struct one_function *object)
{
    static const uint8_t name[] = "f0000000";
    uint8_t stackmap[STACKMAP_BYTES] = {0};
    const struct machine *machine = find_machine();
    if (machine == NULL)
        return false;
    struct elf_file file = {.machine = machine->machine,
                            .type = ET_REL,
                            .flags = machine->flags,
                            .byte_order = CAIRN_BYTE_ORDER_NATIVE};
    add_sections(&file, machine);
    object->size = elf_write(&file, object->bytes);
    write_stackmap(stackmap, file.byte_order);
    object->id = find(object, stackmap, sizeof stackmap) + STACKMAP_ID;
    object->name = find(object, name, sizeof name) + 1;
    return true;
}

void one_function_number(struct one_function *object, uint64_t id, uint32_t number)
{
    char digits[NAME_DIGITS + 2];
    snprintf(digits, sizeof digits, "%07x", number & 0xFFFFFFF);
    memcpy(object->id, &id, sizeof id);
    memcpy(object->name, digits, NAME_DIGITS);
}
