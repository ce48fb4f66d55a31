/* SPDX-License-Identifier: MIT */
#include "object_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char strings[] = "\0first\0second\0local";

void sample_begin(struct sample *sample, uint16_t machine, uint16_t type,
                  enum cairn_byte_order byte_order)
{
    memset(sample, 0, sizeof *sample);
    for (size_t i = 0; i < sizeof sample->code; i++)
        sample->code[i] = (uint8_t)i;
    sample->file = (struct elf_file){.machine = machine, .type = type, .byte_order = byte_order};
    sample->symbols_end = elf_put_symbol(sample->symbols, byte_order, 0, 0, 0, 0);
    sample->relocations_end = sample->relocations;
    uint64_t base = type == ET_REL ? 0 : 0x1000;
    sample->text = elf_add(&sample->file, (struct elf_section){.name = ".text",
                                                               .type = SHT_PROGBITS,
                                                               .flags = SHF_ALLOC | SHF_EXECINSTR,
                                                               .address = base,
                                                               .bytes = sample->code,
                                                               .size = sizeof sample->code});
    sample->stackmaps = elf_add(&sample->file, (struct elf_section){.name = ".llvm_stackmaps",
                                                                    .type = SHT_PROGBITS,
                                                                    .flags = SHF_ALLOC,
                                                                    .address = base * 2,
                                                                    .bytes = sample->words,
                                                                    .size = WORD_BYTES});
}

void sample_set_word(struct sample *sample, unsigned index, uint64_t value)
{
    elf_put64(sample->words + index * 8, sample->file.byte_order, value);
}

void sample_add_symbol(struct sample *sample, uint32_t name, unsigned binding, unsigned type,
                       uint32_t section, uint64_t value)
{
    sample->symbols_end = elf_put_symbol(sample->symbols_end, sample->file.byte_order, name,
                                         (uint8_t)(binding << 4 | type), (uint16_t)section, value);
}

/* The last one. */
void sample_set_symbol_size(struct sample *sample, uint64_t size)
{
    elf_put64(sample->symbols_end - 8, sample->file.byte_order, size);
}

void sample_add_rela(struct sample *sample, uint64_t offset, uint32_t symbol, uint32_t type,
                     int64_t addend)
{
    sample->relocations_end = elf_put_rela(sample->relocations_end, sample->file.byte_order, offset,
                                           symbol, type, addend);
}

void sample_add_symbol_section(struct sample *sample, uint32_t type)
{
    uint32_t names = elf_add(&sample->file, (struct elf_section){.name = ".strtab",
                                                                 .type = SHT_STRTAB,
                                                                 .bytes = strings,
                                                                 .size = sizeof strings});
    sample->symbol_section = elf_add(
        &sample->file, (struct elf_section){.name = ".symtab",
                                            .type = type,
                                            .link = names,
                                            .info = 1,
                                            .bytes = sample->symbols,
                                            .size = (size_t)(sample->symbols_end - sample->symbols),
                                            .entry_size = sizeof(Elf64_Sym)});
}

void sample_add_relocation_section(struct sample *sample, uint32_t type, uint64_t flags,
                                   uint32_t target)
{
    elf_add(&sample->file,
            (struct elf_section){.name = ".relocations",
                                 .type = type,
                                 .flags = flags,
                                 .link = sample->symbol_section,
                                 .info = target,
                                 .bytes = sample->relocations,
                                 .size = (size_t)(sample->relocations_end - sample->relocations),
                                 .entry_size =
                                     type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel)});
}

void sample_finish(struct sample *sample)
{
    sample->size = elf_write(&sample->file, sample->bytes);
}

void sample_finish_relocated(struct sample *sample, uint32_t target)
{
    sample_add_symbol_section(sample, SHT_SYMTAB);
    sample_add_relocation_section(sample, SHT_RELA, 0, target);
    sample_finish(sample);
}

/* Relocations of the code: at 0x12 something with `first`, at 0x18 with a section. */
static void add_code_relocations(struct sample *sample)
{
    enum cairn_byte_order byte_order = sample->file.byte_order;
    uint8_t *at = elf_put_rela(sample->code_relocations, byte_order, 0x12, 3, 250, -4);
    elf_put_rela(at, byte_order, 0x18, 1, 251, 0);
    elf_add(&sample->file, (struct elf_section){.name = ".rela.text",
                                                .type = SHT_RELA,
                                                .link = sample->symbol_section,
                                                .info = sample->text,
                                                .bytes = sample->code_relocations,
                                                .size = sizeof sample->code_relocations,
                                                .entry_size = sizeof(Elf64_Rela)});
}

/* A relocatable object: word 0 names `first` itself, word 1 `second` by section and addend. */
void sample_relocatable(struct sample *sample, uint16_t machine, enum cairn_byte_order byte_order,
                        uint32_t type)
{
    sample_begin(sample, machine, ET_REL, byte_order);
    sample_add_symbol(sample, 0, STB_LOCAL, STT_SECTION, sample->text, 0);
    sample_add_symbol(sample, NAME_SECOND, STB_LOCAL, STT_FUNC, sample->text, 0x20);
    sample_add_symbol(sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample->text, 0x10);
    sample_set_symbol_size(sample, 12);
    sample_add_rela(sample, 0, 3, type, 0);
    sample_add_rela(sample, 8, 1, type, 0x20);
    sample_add_symbol_section(sample, SHT_SYMTAB);
    sample_add_relocation_section(sample, SHT_RELA, 0, sample->stackmaps);
    add_code_relocations(sample);
    sample_finish(sample);
}

/* An executable: words 0 and 1 hold the addresses of `first` and `second`. */
void sample_executable(struct sample *sample, uint32_t symbol_type)
{
    sample_begin(sample, EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN);
    sample_set_word(sample, 0, 0x1010);
    sample_set_word(sample, 1, 0x1020);
    sample_set_word(sample, 2, 0x1011);
    sample_add_symbol(sample, NAME_SECOND, STB_GLOBAL, STT_FUNC, sample->text, 0x1020);
    sample_add_symbol(sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample->text, 0x1010);
    sample_add_symbol_section(sample, symbol_type);
    sample_finish(sample);
}

/* PPC64 ELFv1: `first` and `second` are descriptors; word 2 is the code of `second`. */
void sample_descriptors(struct sample *sample, uint16_t type)
{
    uint64_t base = type == ET_REL ? 0 : 0x3000;
    uint64_t code = type == ET_REL ? 0 : 0x1000;
    sample_begin(sample, EM_PPC64, type, CAIRN_BIG_ENDIAN);
    sample->descriptor_section =
        elf_add(&sample->file, (struct elf_section){.name = ".opd",
                                                    .type = SHT_PROGBITS,
                                                    .flags = SHF_ALLOC | SHF_WRITE,
                                                    .address = base,
                                                    .bytes = sample->descriptors,
                                                    .size = 48});
    sample_add_symbol(sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample->descriptor_section, base);
    sample_add_symbol(sample, NAME_SECOND, STB_GLOBAL, STT_FUNC, sample->descriptor_section,
                      base + 24);
    if (type == ET_REL) {
        sample_add_symbol(sample, 0, STB_LOCAL, STT_SECTION, sample->text, 0);
        return;
    }
    elf_put64(sample->descriptors, CAIRN_BIG_ENDIAN, code + 0x10);
    elf_put64(sample->descriptors + 24, CAIRN_BIG_ENDIAN, code + 0x20);
    sample_set_word(sample, 0, base);
    sample_set_word(sample, 1, base + 24);
    sample_set_word(sample, 2, code + 0x20);
}

cairn_object *sample_open(const struct sample *sample)
{
    cairn_object *object = NULL;
    struct cairn_error error;
    if (cairn_object_open_memory(sample->bytes, sample->size, NULL, &object, &error) != CAIRN_OK)
        ck_abort_msg("%s", error.message);
    return object;
}

struct cairn_object_section sample_section(cairn_object *object)
{
    struct cairn_object_section section = {0};
    struct cairn_error error;
    if (cairn_object_next_section(object,
                                  &(struct cairn_object_filter){.name = CAIRN_OBJECT_STACKMAPS},
                                  &section, &error) != CAIRN_OK)
        ck_abort_msg("%s", error.message);
    return section;
}

uint64_t sample_word(const struct cairn_object_section *section, unsigned index)
{
    return cairn_load_u64(section->contents.bytes + index * 8, section->contents.byte_order);
}

/* The copy ends where a page ends that cannot be read. */
uint8_t *sample_copy_to_guard(const uint8_t *bytes, size_t size, uint8_t **mapping)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (size + page - 1) / page * page;
    *mapping = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(*mapping, MAP_FAILED);
    ck_assert_int_eq(mprotect(*mapping + room, page, PROT_NONE), 0);
    if (size > 0)
        memcpy(*mapping + room - size, bytes, size);
    return *mapping + room - size;
}

void sample_drop_guarded(uint8_t *mapping, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(mapping, (size + page - 1) / page * page + page);
}

static uint32_t adler32(const uint8_t *bytes, size_t size)
{
    uint32_t a = 1;
    uint32_t b = 0;
    for (size_t i = 0; i < size; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

size_t sample_compress(const uint8_t *bytes, uint16_t size, uint8_t *compressed)
{
    uint8_t *at = elf_put32(compressed, CAIRN_LITTLE_ENDIAN, ELFCOMPRESS_ZLIB);
    at = elf_put32(at, CAIRN_LITTLE_ENDIAN, 0);
    at = elf_put64(at, CAIRN_LITTLE_ENDIAN, size);
    at = elf_put64(at, CAIRN_LITTLE_ENDIAN, 8);
    *at++ = 0x78;
    *at++ = 0x01;
    *at++ = 0x01; /* the last block, stored */
    at = elf_put16(at, CAIRN_LITTLE_ENDIAN, size);
    at = elf_put16(at, CAIRN_LITTLE_ENDIAN, (uint16_t)~size);
    memcpy(at, bytes, size);
    at = elf_put32(at + size, CAIRN_BIG_ENDIAN, adler32(bytes, size));
    return (size_t)(at - compressed);
}

unsigned sample_time_seed(void)
{
    const char *given = getenv("CAIRN_TEST_SEED");
    unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);
    fprintf(stderr, "seed %u (CAIRN_TEST_SEED repeats it)\n", seed);
    return seed;
}

int sample_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
