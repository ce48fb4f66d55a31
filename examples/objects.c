/*
 * objects: reads ELF files and archives: sections, functions and their code, debug files.
 *
 *     cc objects.c $(pkg-config --cflags --libs cairn-file cairn)
 *     ./a.out           prints what this program has
 *     ./a.out FILE...   objects, programs, libraries, archives; "-" is standard input
 *
 * The functions of this program are the examples of the manual's pages.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/archive.h>
#include <cairn/object.h>
#include <cairn/stackmap.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cairn_error error;

static void check(enum cairn_status status)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "objects: %s: %s\n", cairn_status_name(status), error.message);
    exit(1);
}

/* ---- Sections ---- */

/* Prints the section table. The sections themselves are not read. */
static void print_section_table(const cairn_object *object)
{
    struct cairn_object_section_header header;
    for (uint32_t i = 1; cairn_object_section_header(object, i, &header); i++)
        printf("  section %" PRIu32 ": %s, %" PRIu64 " bytes\n", i, header.name, header.size);
}

/* Prints the functions that a stack map names, of which each has 8 bytes for its address. */
static void print_functions_of_map(const cairn_object *object,
                                   const struct cairn_object_section *section,
                                   const struct cairn_stackmap *map)
{
    for (uint32_t i = 0; i < map->function_count; i++) {
        size_t offset = map->section_offset + CAIRN_STACKMAP_HEADER_BYTES +
                        i * cairn_stackmap_function_bytes(map->version);
        struct cairn_object_function function = cairn_object_function(object, section, offset);
        printf("  stack map of %s, in section %" PRIu32 "\n",
               function.name == NULL ? "a function without a name" : function.name,
               cairn_object_target_section(object, section, offset));
    }
}

static void print_stack_maps(cairn_object *object)
{
    const struct cairn_object_filter filter = {.name = CAIRN_OBJECT_STACKMAPS};
    struct cairn_object_section section = {0};
    while (cairn_object_next_section(object, &filter, &section, &error) == CAIRN_OK) {
        struct cairn_stackmap map;
        for (size_t offset = 0; offset < section.contents.size;) {
            check(cairn_stackmap_read(&section.contents, &offset, &map, &error));
            print_functions_of_map(object, &section, &map);
        }
    }
    check(error.status == CAIRN_ERROR_NOT_FOUND ? CAIRN_OK : error.status);
}

/* ---- Functions and their code ---- */

/* Prints the symbols that the code of a function refers to, as a disassembler would. */
static void print_references(cairn_object *object, const struct cairn_object_function *function)
{
    struct cairn_object_code code;
    check(cairn_object_code(object, function->section, function->entry, &code, &error));
    for (uint64_t i = 0; i < function->size && i < code.size; i++) {
        const char *symbol =
            cairn_object_relocated_symbol(object, function->section, code.address + i, 1);
        if (symbol != NULL)
            printf("  %s+%" PRIu64 " refers to %s\n", function->name, i, symbol);
    }
}

/* Finds a function by its name, and again by the address of its last byte. */
static void print_function(cairn_object *object, const char *name)
{
    struct cairn_object_function found;
    struct cairn_object_function same;
    if (cairn_object_find_name(object, name, &found, &error) != CAIRN_OK || found.size == 0)
        return;
    check(cairn_object_find_function(object, found.section, found.entry + found.size - 1, &same,
                                     &error));
    printf("  %s: %" PRIu64 " bytes at 0x%" PRIx64 "\n", same.name, found.size, found.entry);
    print_references(object, &found);
}

/* Uses the separate debug file, from which symbols are then taken, if there is one. */
static void use_debug_file(cairn_object *object, const char *path)
{
    const char *found;
    if (cairn_object_find_debug_file(object, path, NULL, &found, &error) != CAIRN_OK) {
        printf("  no debug file: %s\n", error.message);
        return;
    }
    check(cairn_object_attach_debug_file(object, found, &error));
    printf("  debug file: %s\n", found);
}

/* ---- Addresses of this process ---- */

/* Returns where this process has mapped the file, minus where the file has it; 0 if it has not. A
 * line of /proc/self/maps: begin-end r-xp offset device inode path. */
static uint64_t load_base(const cairn_object *object, const char *maps)
{
    char line[512];
    uint64_t base = 0;
    FILE *file = fopen(maps, "r");
    while (file != NULL && base == 0 && fgets(line, sizeof line, file) != NULL) {
        char *rest;
        uint64_t begin = strtoull(line, &rest, 16);
        uint64_t end = strtoull(rest + 1, &rest, 16);
        if (strncmp(rest, " r-xp ", 6) == 0 &&
            cairn_object_load_base(object, begin, strtoull(rest + 6, NULL, 16), end - begin, &base))
            break;
    }
    if (file != NULL)
        fclose(file);
    return base;
}

/* Finds the function of an address of this process in its own file. */
static void print_own_function(cairn_object *object, uintptr_t pc)
{
    struct cairn_object_function function;
    uint64_t address = pc - load_base(object, "/proc/self/maps");
    if (cairn_object_find_function(object, 0, address, &function, &error) == CAIRN_OK)
        printf("  0x%" PRIx64 " is in %s\n", address, function.name);
}

/* ---- Files ---- */

static void print_object(cairn_object *object)
{
    struct cairn_object_header header = cairn_object_header(object);
    printf("  %s, %s-endian\n", cairn_architecture_name(header.architecture),
           header.byte_order == CAIRN_LITTLE_ENDIAN ? "little" : "big");
    print_section_table(object);
    print_stack_maps(object);
    print_function(object, "main");
}

/* Prints the members of an archive. Those that are not ELF files are skipped. */
static void print_members(cairn_archive *archive)
{
    struct cairn_archive_member member;
    cairn_object *object;
    while (cairn_archive_next(archive, &member, &error) == CAIRN_OK) {
        printf("%s: %zu bytes\n", member.name, member.size);
        if (cairn_object_open_memory(member.bytes, member.size, NULL, &object, &error) != CAIRN_OK)
            continue;
        print_object(object);
        cairn_object_destroy(object);
    }
    check(error.status == CAIRN_ERROR_NOT_FOUND ? CAIRN_OK : error.status);
}

/* Reads an archive from standard input. */
static void print_input(void)
{
    static uint8_t bytes[1 << 24];
    cairn_archive *archive;
    size_t size = fread(bytes, 1, sizeof bytes, stdin);
    check(cairn_archive_open_memory(bytes, size, NULL, &archive, &error));
    print_members(archive);
    cairn_archive_destroy(archive);
}

static void print_file(const char *path)
{
    cairn_object *object;
    cairn_archive *archive;
    printf("%s:\n", path);
    if (cairn_archive_open(path, NULL, &archive, &error) == CAIRN_OK) {
        print_members(archive);
        cairn_archive_destroy(archive);
        return;
    }
    check(cairn_object_open(path, NULL, &object, &error));
    if (!cairn_object_header(object).is_relocatable)
        use_debug_file(object, path);
    print_object(object);
    print_own_function(object, (uintptr_t)print_file);
    cairn_object_destroy(object);
}

int main(int argument_count, char **arguments)
{
    if (argument_count == 1)
        print_file("/proc/self/exe");
    for (int i = 1; i < argument_count; i++)
        if (strcmp(arguments[i], "-") == 0)
            print_input();
        else
            print_file(arguments[i]);
    return 0;
}
