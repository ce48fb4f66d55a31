/*
 * sections: prints what LLVM and clang have written into ELF files: stack maps, fault maps, PC
 * sections, basic-block address maps, coverage points, sanitizer metadata, and sizes of frames.
 *
 *     cc sections.c $(pkg-config --cflags --libs cairn-file cairn)
 *     ./a.out                                   prints what this program has
 *     ./a.out FILE...                           objects, programs, libraries
 *     ./a.out --pc-section NAME SCHEMA FILE...  also entries of a PC section
 *
 * The functions of this program are the examples of the manual's pages.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/bbmap.h>
#include <cairn/block_table.h>
#include <cairn/fault_table.h>
#include <cairn/faultmap.h>
#include <cairn/object.h>
#include <cairn/pc_table.h>
#include <cairn/pcsection.h>
#include <cairn/sancov.h>
#include <cairn/sanmd.h>
#include <cairn/section.h>
#include <cairn/stack_sizes.h>
#include <cairn/stackmap.h>
#include <cairn/statepoint.h>
#include <cairn/table.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS_MAX = 64 };

static struct cairn_error error;

static void check(enum cairn_status status)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "sections: %s: %s\n", cairn_status_name(status), error.message);
    exit(1);
}

/* Advances to the next section that matches. Returns false after the last one. */
static bool next_section(cairn_object *object, const struct cairn_object_filter *filter,
                         struct cairn_object_section *section)
{
    enum cairn_status status = cairn_object_next_section(object, filter, section, &error);
    if (status == CAIRN_ERROR_NOT_FOUND)
        return false;
    check(status);
    return true;
}

/* Writes the contents of up to SECTIONS_MAX sections with this name. Returns their number. */
static size_t sections_with_name(cairn_object *object, const char *name,
                                 struct cairn_section *contents)
{
    const struct cairn_object_filter filter = {.name = name};
    struct cairn_object_section section = {0};
    size_t count = 0;
    while (count < SECTIONS_MAX && next_section(object, &filter, &section))
        contents[count++] = section.contents;
    return count;
}

/* ---- Stack maps ---- */

static const char *const location_kinds[] = {"?",        "register", "direct",
                                             "indirect", "constant", "constant index"};

static void print_record(const struct cairn_stackmap *map,
                         const struct cairn_stackmap_record *record)
{
    printf("  record %" PRIu64 " at offset %" PRIu32, record->id, record->code_offset);
    for (uint32_t i = 0; i < record->location_count; i++) {
        struct cairn_location location = cairn_stackmap_location(map, record, i);
        printf(", %s of %u bytes", location_kinds[location.kind], location.size);
    }
    for (uint32_t i = 0; i < record->liveout_count; i++)
        printf(", live-out %u", cairn_stackmap_liveout(map, record, i).dwarf);
    puts("");
}

static void print_map(const struct cairn_stackmap *map)
{
    struct cairn_stackmap_record record = {0};
    for (uint32_t i = 0; i < map->function_count; i++) {
        struct cairn_stackmap_function function = cairn_stackmap_function(map, i);
        printf("  function %" PRIu32 ": %" PRIu64 " records\n", i, function.record_count);
    }
    for (uint32_t i = 0; i < map->constant_count; i++)
        printf("  constant %" PRIu32 ": %" PRIu64 "\n", i, cairn_stackmap_constant(map, i));
    while (cairn_stackmap_next(map, &record))
        print_record(map, &record);
}

/* Returns the record at an offset in the map, which was found before. Its function is not known. */
static struct cairn_stackmap_record record_at(const struct cairn_stackmap *map, size_t offset)
{
    struct cairn_stackmap_record record = {.offset = offset};
    cairn_stackmap_load_record(map, &record);
    return record;
}

/* Prints the IDs of the last records, the last one first. Maps can only be read forwards. */
static void print_last_ids(const struct cairn_stackmap *map)
{
    struct cairn_stackmap_record record = {0};
    size_t offsets[4] = {0};
    while (cairn_stackmap_next(map, &record))
        offsets[record.index % 4] = record.offset;
    for (uint32_t i = 0; i < 4 && i < map->record_count; i++)
        printf("  last but %" PRIu32 ": record %" PRIu64 "\n", i,
               record_at(map, offsets[(map->record_count - 1 - i) % 4]).id);
}

/* Returns the bytes that the functions of a map and the locations of its records take. */
static size_t bytes_of_map(const struct cairn_stackmap *map)
{
    struct cairn_stackmap_record record = {0};
    size_t bytes = map->function_count * cairn_stackmap_function_bytes(map->version);
    while (cairn_stackmap_next(map, &record))
        bytes += record.location_count * cairn_stackmap_location_bytes(map->version);
    return bytes;
}

/* Records of patch points and stack maps do not have the form of a statepoint. */
static void print_statepoints(const struct cairn_stackmap *map)
{
    struct cairn_stackmap_record record = {0};
    struct cairn_statepoint statepoint;
    while (cairn_stackmap_next(map, &record))
        if (cairn_stackmap_statepoint(map, &record, &statepoint, NULL) == CAIRN_OK)
            printf("  statepoint %" PRIu64 ": %" PRIu32 " pointers\n", record.id,
                   statepoint.pair_count);
}

static void print_stack_maps(cairn_object *object)
{
    struct cairn_section sections[SECTIONS_MAX];
    size_t count = sections_with_name(object, CAIRN_OBJECT_STACKMAPS, sections);
    for (size_t i = 0; i < count; i++) {
        struct cairn_stackmap map;
        for (size_t offset = 0; offset < sections[i].size;) {
            check(cairn_stackmap_read(&sections[i], &offset, &map, &error));
            printf("stack map: %zu bytes of functions and locations\n", bytes_of_map(&map));
            print_map(&map);
            print_last_ids(&map);
            print_statepoints(&map);
        }
    }
}

/* ---- Stack maps: a table ---- */

/* Prints the first record at an address, and the function that has it. */
static void look_up(const cairn_table *table, uint64_t address)
{
    struct cairn_record record;
    struct cairn_function function;
    struct cairn_statepoint statepoint;
    if (!cairn_table_find_address(table, address, &record))
        return;
    printf("  0x%" PRIx64 ": record %" PRIu64, address, cairn_record_id(record));
    if (cairn_table_find_function(table, address, &function))
        printf(", frame of %" PRIu64 " bytes", function.stack_size);
    if (cairn_record_statepoint(record, &statepoint, NULL) == CAIRN_OK)
        printf(", %" PRIu32 " values for deoptimisation", statepoint.deopt_count);
    puts("");
}

static void print_table(cairn_object *object)
{
    struct cairn_section sections[SECTIONS_MAX];
    cairn_table *table;
    size_t count = sections_with_name(object, CAIRN_OBJECT_STACKMAPS, sections);
    check(cairn_table_create(sections, count, NULL, &table, &error));
    printf("stack map records by address: %" PRIu32 "\n", cairn_table_record_count(table));
    for (uint32_t i = 0; i < cairn_table_record_count(table); i++)
        look_up(table, cairn_record_address((struct cairn_record){table, i}));
    cairn_table_destroy(table);
}

/* ---- Fault maps ---- */

static void print_fault_map(const struct cairn_section *section)
{
    struct cairn_faultmap map;
    for (size_t offset = 0; offset < section->size;) {
        struct cairn_faultmap_function function = {0};
        check(cairn_faultmap_read(section, &offset, &map, &error));
        while (cairn_faultmap_next(&map, &function))
            for (uint32_t i = 0; i < function.fault_count; i++) {
                struct cairn_fault fault = cairn_faultmap_fault(&map, &function, i);
                printf("  %s at +%" PRIu32 " continues at +%" PRIu32 "\n",
                       cairn_fault_kind_name(fault.kind), fault.faulting_offset,
                       fault.handler_offset);
            }
    }
}

/* Prints the instructions in order of address, each found again by its address. */
static void print_fault_table(const struct cairn_section *sections, size_t count)
{
    cairn_fault_table *table;
    struct cairn_fault_entry entry;
    struct cairn_fault_entry found;
    check(cairn_fault_table_create(sections, count, NULL, &table, &error));
    for (uint32_t i = 0; cairn_fault_table_entry(table, i, &entry); i++)
        if (cairn_fault_table_find(table, entry.address, &found))
            printf("  0x%" PRIx64 " continues at 0x%" PRIx64 "\n", found.address,
                   found.handler_address);
    cairn_fault_table_destroy(table);
}

static void print_fault_maps(cairn_object *object)
{
    struct cairn_section sections[SECTIONS_MAX];
    size_t count = sections_with_name(object, CAIRN_FAULTMAP_SECTION, sections);
    if (count > 0)
        puts("fault map:");
    for (size_t i = 0; i < count; i++)
        print_fault_map(&sections[i]);
    print_fault_table(sections, count);
}

/* ---- PC sections ---- */

static void print_pc_entries(const struct cairn_object_section *section,
                             const struct cairn_pcsection_schema *schema)
{
    struct cairn_pcsection_entry entry;
    for (size_t offset = 0; offset < section->contents.size;) {
        check(cairn_pcsection_read(&section->contents, section->address, schema, &offset, &entry,
                                   &error));
        printf("  0x%" PRIx64 ":", entry.address);
        for (int i = 0; i < schema->constant_count; i++)
            printf(" %" PRIu64, entry.constants[i]);
        puts("");
    }
}

/* Prints how many entries the address of each entry has, in its function and itself. */
static void print_pc_table(const struct cairn_object_section *section,
                           const struct cairn_pcsection_schema *schema)
{
    const struct cairn_pc_table_section described = {
        .name = section->name,
        .section = section->contents,
        .address = section->address,
        .schema = *schema,
    };
    cairn_pc_table *table;
    struct cairn_pc_table_entry entry;
    check(cairn_pc_table_create(&described, 1, NULL, &table, &error));
    printf("  table of %s\n", cairn_pc_table_section(table, 0)->name);
    for (uint32_t i = 0; cairn_pc_table_entry(table, i, &entry); i++)
        printf("  0x%" PRIx64 ": %zu entries\n", entry.value.address,
               cairn_pc_table_find(table, entry.value.address, NULL, 0));
    cairn_pc_table_destroy(table);
}

static void print_pc_section(cairn_object *object, const char *name, const char *schema_text)
{
    const struct cairn_object_filter filter = {.name = name};
    struct cairn_object_section section = {0};
    struct cairn_pcsection_schema schema;
    check(cairn_pcsection_parse_schema(schema_text, &schema, &error));
    while (next_section(object, &filter, &section)) {
        printf("PC section %s:\n", name);
        print_pc_entries(&section, &schema);
        print_pc_table(&section, &schema);
    }
}

/* ---- Basic-block address maps ---- */

/* Prints a block with its calls and its successors in the profile. */
static void print_block(const struct cairn_bbmap_function *function,
                        const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_callsite callsite = {0};
    struct cairn_bbmap_successor successor = {0};
    printf("    block %" PRIu32 ": %" PRIu32 " bytes", block->id, block->size);
    while (cairn_bbmap_next_callsite(function, block, &callsite))
        printf(", a call ends at +%" PRIu32, callsite.end_offset);
    while (cairn_bbmap_next_successor(function, block, &successor))
        printf(", may go to %" PRIu32, successor.id);
    puts("");
}

static void print_block_map(const struct cairn_section *section, enum cairn_bbmap_encoding encoding)
{
    for (size_t offset = 0; offset < section->size;) {
        struct cairn_bbmap_function function;
        struct cairn_bbmap_range range = {0};
        struct cairn_bbmap_block block = {0};
        check(cairn_bbmap_read(section, encoding, &offset, &function, &error));
        printf("  function at 0x%" PRIx64 "\n", function.address);
        while (cairn_bbmap_next_range(&function, &range))
            printf("    range of %" PRIu32 " blocks\n", range.block_count);
        while (cairn_bbmap_next(&function, &block))
            print_block(&function, &block);
    }
}

/* Returns a table of the section's functions. The caller destroys it. */
static cairn_block_table *build_block_table(const struct cairn_section *section,
                                            enum cairn_bbmap_encoding encoding)
{
    cairn_block_builder *builder;
    cairn_block_table *table;
    check(cairn_block_builder_create(NULL, &builder, &error));
    check(cairn_block_builder_add(builder, section, encoding, NULL, NULL, &error));
    check(cairn_block_builder_finish(builder, &table, &error));
    cairn_block_builder_destroy(builder);
    return table;
}

/* Prints the blocks of a function with their frequencies. */
static void print_frequencies(const cairn_block_table *table,
                              const struct cairn_block_function *function)
{
    struct cairn_block block;
    struct cairn_block_details details;
    for (uint32_t i = 0; cairn_block_table_block(table, function->index, i, &block); i++)
        if (cairn_block_table_details(table, function->index, i, &details))
            printf("    block %" PRIu32 ": frequency %" PRIu64 ", hash %" PRIx64 "\n", block.id,
                   block.frequency, details.hash);
}

static void print_block_table(const cairn_block_table *table)
{
    struct cairn_block_function function;
    struct cairn_block block;
    struct cairn_block_table_counts counts = cairn_block_table_counts(table);
    printf("  %" PRIu32 " functions, %" PRIu32 " blocks\n", counts.functions, counts.blocks);
    for (uint32_t i = 0; cairn_block_table_function(table, i, &function); i++) {
        print_frequencies(table, &function);
        if (cairn_block_table_find(table, function.address, &block))
            printf("    entered at block %" PRIu32 "\n", block.id);
    }
}

static void print_block_maps(cairn_object *object)
{
    const struct cairn_object_filter filter = {.type = CAIRN_BBMAP_SECTION_TYPE};
    struct cairn_object_section section = {0};
    while (next_section(object, &filter, &section)) {
        puts("basic-block address map:");
        print_block_map(&section.contents, CAIRN_BBMAP_VERSIONED);
        cairn_block_table *table = build_block_table(&section.contents, CAIRN_BBMAP_VERSIONED);
        print_block_table(table);
        cairn_block_table_destroy(table);
    }
}

/* ---- Coverage points, sizes of frames, sanitizer metadata ---- */

static void print_coverage(cairn_object *object)
{
    const struct cairn_object_filter filter = {.name = CAIRN_SANCOV_SECTION};
    struct cairn_object_section section = {0};
    while (next_section(object, &filter, &section)) {
        struct cairn_sancov_point point;
        for (size_t offset = 0; offset < section.contents.size;) {
            check(cairn_sancov_read(&section.contents, 8, &offset, &point, &error));
            printf("coverage point %" PRIu64 "%s\n", point.index,
                   point.flags & CAIRN_SANCOV_FUNCTION_ENTRY ? ", a function's entry" : "");
        }
    }
}

static void print_stack_sizes(cairn_object *object)
{
    const struct cairn_object_filter filter = {.name = CAIRN_STACK_SIZES_SECTION};
    struct cairn_object_section section = {0};
    while (next_section(object, &filter, &section)) {
        struct cairn_stack_size entry;
        for (size_t offset = 0; offset < section.contents.size;) {
            check(cairn_stack_size_read(&section.contents, 8, &offset, &entry, &error));
            printf("frame of %" PRIu64 " bytes\n", entry.size);
        }
    }
}

/* Prints the entries of a linked file. In an object, relocations determine the form of entries. */
static void print_sanitizer_metadata(cairn_object *object)
{
    const struct cairn_object_filter filter = {.prefix = CAIRN_SANMD_PREFIX};
    struct cairn_object_section section = {0};
    while (!cairn_object_header(object).is_relocatable && next_section(object, &filter, &section)) {
        struct cairn_sanmd_format format;
        struct cairn_sanmd_entry entry;
        if (!cairn_sanmd_parse_name(section.name, &section.contents, section.address, &format))
            continue;
        for (size_t offset = 0; offset < section.contents.size;) {
            check(cairn_sanmd_read(&section.contents, section.address, format, &offset, &entry,
                                   &error));
            printf("%s at 0x%" PRIx64 "\n",
                   format.kind == CAIRN_SANMD_ATOMICS ? "atomic access" : "covered function",
                   entry.address);
        }
    }
}

/* ---- Sections without a decoder: numbers in the byte order of the file ---- */

/* The note has three numbers of 32 bits, a name, and the ID. */
static void print_build_id(const struct cairn_section *note)
{
    if (note->size < 12)
        return;
    uint32_t name_size = cairn_load_u32(note->bytes, note->byte_order);
    uint32_t size = cairn_load_u32(note->bytes + 4, note->byte_order);
    printf("build ID: ");
    for (size_t i = 0; i < size && 12 + name_size + i < note->size; i++)
        printf("%02x", note->bytes[12 + name_size + i]);
    puts("");
}

/* Prints the addresses of the functions that run before main. */
static void print_constructors(const struct cairn_section *array)
{
    for (size_t offset = 0; offset + 8 <= array->size; offset += 8)
        printf("constructor at 0x%" PRIx64 "\n",
               cairn_load_u64(array->bytes + offset, array->byte_order));
}

/* Prints how many symbols have each version: the section holds a number of 16 bits for each. */
static void print_versions(const struct cairn_section *versions)
{
    unsigned counts[16] = {0};
    for (size_t offset = 0; offset + 2 <= versions->size; offset += 2)
        counts[cairn_load_u16(versions->bytes + offset, versions->byte_order) % 16]++;
    for (int i = 0; i < 16; i++)
        if (counts[i] > 0)
            printf("version %d: %u symbols\n", i, counts[i]);
}

static void print_numbers(cairn_object *object)
{
    struct cairn_section sections[SECTIONS_MAX];
    if (sections_with_name(object, ".note.gnu.build-id", sections) > 0)
        print_build_id(sections);
    if (sections_with_name(object, ".init_array", sections) > 0)
        print_constructors(sections);
    if (sections_with_name(object, ".gnu.version", sections) > 0)
        print_versions(sections);
}

/* ---- Files ---- */

static void print_file(const char *path, const char *pc_section, const char *schema)
{
    cairn_object *object;
    check(cairn_object_open(path, NULL, &object, &error));
    struct cairn_object_header header = cairn_object_header(object);
    printf("%s: %s%s\n", path, cairn_architecture_name(header.architecture),
           header.is_relocatable ? ", relocatable" : "");
    print_stack_maps(object);
    print_table(object);
    print_fault_maps(object);
    if (pc_section != NULL)
        print_pc_section(object, pc_section, schema);
    print_block_maps(object);
    print_coverage(object);
    print_stack_sizes(object);
    print_sanitizer_metadata(object);
    print_numbers(object);
    cairn_object_destroy(object);
}

int main(int argument_count, char **arguments)
{
    const char *pc_section = NULL;
    const char *schema = NULL;
    int first = 1;
    if (argument_count > 3 && strcmp(arguments[1], "--pc-section") == 0) {
        pc_section = arguments[2];
        schema = arguments[3];
        first = 4;
    }
    if (first == argument_count)
        print_file("/proc/self/exe", pc_section, schema);
    for (int i = first; i < argument_count; i++)
        print_file(arguments[i], pc_section, schema);
    return 0;
}
