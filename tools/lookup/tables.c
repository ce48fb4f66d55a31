/*
 * Reading and searching the tables of a lookup.
 *
 * Tables are created from sections in memory. In relocatable objects, and on PPC64 ELFv1 because of
 * its function descriptors, addresses in sections differ from those of the layout. Such sections
 * are copied, and the addresses in the copies are changed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/lookup/lookup.h"

#include "arch/arch.h"
#include "tools/read/blocks.h"

#include <stdlib.h>
#include <string.h>

static bool complain_of_memory(const struct input *input)
{
    return complain("%s: no memory for the tables of its sections", input->name);
}

static void store(uint8_t *bytes, unsigned size, uint64_t value, enum cairn_byte_order byte_order)
{
    for (unsigned i = 0; i < size; i++) {
        unsigned place = byte_order == CAIRN_LITTLE_ENDIAN ? i : size - 1 - i;
        bytes[i] = (uint8_t)(value >> 8 * place);
    }
}

/* ---- Stack maps and fault maps ---- */

/* Copies of sections for a table. */
struct gathered {
    struct tables *tables;
    struct list sections; /* items are struct cairn_section */
};

/* Adds a copy of a section, whose bytes are at `*copy`. Returns it; NULL after an error message. */
static struct cairn_section *copy_section(struct gathered *gathered,
                                          const struct cairn_section *section, uint8_t **copy)
{
    *copy = malloc(section->size + 1);
    struct cairn_section *item = *copy == NULL ? NULL : list_add(&gathered->sections, sizeof *item);
    if (item == NULL) {
        free(*copy);
        complain_of_memory(gathered->tables->input);
        return NULL;
    }
    memcpy(*copy, section->bytes, section->size);
    *item = (struct cairn_section){*copy, section->size, section->byte_order};
    return item;
}

static void release_gathered(struct gathered *gathered)
{
    const struct cairn_section *sections = gathered->sections.items;
    for (size_t i = 0; i < gathered->sections.count; i++)
        free((void *)(uintptr_t)sections[i].bytes);
    list_release(&gathered->sections);
}

/* Changes the address of a function, at `offset` in a section, to its address in the layout. */
static void place_function(const struct tables *tables, const struct cairn_object_section *section,
                           size_t offset, uint8_t *copy, struct lost_addresses *lost)
{
    struct cairn_object_function function =
        cairn_object_function(tables->input->object, section, offset);
    check_address(tables->input->object, section, offset, lost);
    uint64_t address = layout_address(&tables->layout, function.section, function.entry);
    store(copy + offset, 8, address, section->contents.byte_order);
}

static bool add_stackmaps(const struct input *input, const struct cairn_object_section *section,
                          void *user)
{
    struct gathered *gathered = user;
    const struct cairn_section *contents = &section->contents;
    uint8_t *copy;
    struct cairn_section *kept = copy_section(gathered, contents, &copy);
    struct cairn_error error = {.status = CAIRN_OK};
    struct lost_addresses lost = {0};
    struct cairn_stackmap map;
    size_t offset = 0;
    if (kept == NULL)
        return false;
    while (offset < contents->size && error.status == CAIRN_OK) {
        error.status = cairn_stackmap_read(contents, &offset, &map, &error);
        for (uint32_t i = 0; error.status == CAIRN_OK && i < map.function_count; i++)
            place_function(gathered->tables, section,
                           map.section_offset + CAIRN_STACKMAP_HEADER_BYTES +
                               i * cairn_stackmap_function_bytes(map.version),
                           copy, &lost);
    }
    kept->size = offset;
    return check_section(input, section, &lost, &error);
}

static bool read_records(struct tables *tables)
{
    struct gathered gathered = {.tables = tables};
    struct cairn_error error;
    bool is_good = visit_named_sections(tables->input, CAIRN_OBJECT_STACKMAPS,
                                        CAIRN_OBJECT_STACKMAPS_DARWIN, add_stackmaps, &gathered);
    if (gathered.sections.count > 0 &&
        cairn_table_create(gathered.sections.items, gathered.sections.count, NULL, &tables->records,
                           &error) != CAIRN_OK)
        is_good =
            complain("%s: " CAIRN_OBJECT_STACKMAPS ": %s", tables->input->name, error.message);
    release_gathered(&gathered);
    return is_good;
}

static bool add_fault_maps(const struct input *input, const struct cairn_object_section *section,
                           void *user)
{
    enum { COUNT_OFFSET = 4 };
    struct gathered *gathered = user;
    const struct cairn_section *contents = &section->contents;
    uint8_t *copy;
    struct cairn_section *kept = copy_section(gathered, contents, &copy);
    struct cairn_error error = {.status = CAIRN_OK};
    struct lost_addresses lost = {0};
    if (kept == NULL)
        return false;
    kept->size = 0;
    for (size_t offset = 0; offset < contents->size && error.status == CAIRN_OK;) {
        struct cairn_faultmap map;
        struct cairn_faultmap_function function = {0};
        error.status = cairn_faultmap_read(contents, &offset, &map, &error);
        if (map.bytes == NULL)
            break;
        /* A map that ends in an invalid function has fewer functions than its count says. */
        store(copy + map.section_offset + COUNT_OFFSET, 4, map.function_count, map.byte_order);
        while (cairn_faultmap_next(&map, &function))
            place_function(gathered->tables, section, map.section_offset + function.offset, copy,
                           &lost);
        kept->size = map.section_offset + map.size;
    }
    return check_section(input, section, &lost, &error);
}

static int compare_handlers(const void *left, const void *right)
{
    const struct handler *a = left;
    const struct handler *b = right;
    int order = compare_numbers(a->address, b->address);
    return order != 0 ? order : compare_numbers(a->fault, b->fault);
}

static bool read_faults(struct tables *tables)
{
    struct gathered gathered = {.tables = tables};
    struct cairn_fault_entry entry;
    struct cairn_error error;
    bool is_good = visit_named_sections(tables->input, CAIRN_FAULTMAP_SECTION,
                                        CAIRN_FAULTMAP_SECTION_DARWIN, add_fault_maps, &gathered);
    if (gathered.sections.count > 0 &&
        cairn_fault_table_create(gathered.sections.items, gathered.sections.count, NULL,
                                 &tables->faults, &error) != CAIRN_OK)
        is_good =
            complain("%s: " CAIRN_FAULTMAP_SECTION ": %s", tables->input->name, error.message);
    release_gathered(&gathered);
    uint32_t count = 0;
    while (cairn_fault_table_entry(tables->faults, count, &entry))
        count++;
    tables->handlers = malloc((count + (size_t)1) * sizeof *tables->handlers);
    if (tables->handlers == NULL) {
        cairn_fault_table_destroy(tables->faults);
        tables->faults = NULL;
        return complain_of_memory(tables->input);
    }
    for (uint32_t i = 0; cairn_fault_table_entry(tables->faults, i, &entry); i++)
        tables->handlers[i] = (struct handler){entry.handler_address, i};
    tables->handler_count = count;
    qsort(tables->handlers, count, sizeof *tables->handlers, compare_handlers);
    return is_good;
}

/* ---- PC sections ---- */

/* Distance of the copies from the code, as if they were loaded there. It is so large that small
 * constants in the copies do not look like addresses of code. */
#define COPIES_GAP (UINT64_C(1) << 30)

/* Copies a section of a relocatable object as if it were loaded at `added->address`, with distances
 * to the code in the layout. */
static bool place_entries(const struct tables *tables, const struct cairn_object_section *section,
                          struct cairn_pc_table_section *added)
{
    const struct cairn_section *contents = &section->contents;
    uint8_t width = added->schema.address_bytes;
    uint8_t *copy = malloc(contents->size + 1);
    if (copy == NULL)
        return complain_of_memory(tables->input);
    memcpy(copy, contents->bytes, contents->size);
    for (size_t at = 0; at + width <= contents->size; at++) {
        const uint8_t *bytes = contents->bytes + at;
        uint32_t target = cairn_object_target_section(tables->input->object, section, at);
        if (target == 0)
            continue;
        uint64_t distance =
            width == 8 ? cairn_load_u64(bytes, contents->byte_order)
                       : (uint64_t)(int64_t)(int32_t)cairn_load_u32(bytes, contents->byte_order);
        uint64_t address = layout_address(&tables->layout, target, at + distance);
        store(copy + at, width, address - (added->address + at), contents->byte_order);
    }
    added->section.bytes = copy;
    return true;
}

/* Adds the entries before the first invalid one. `*next_address` is where the next copy is placed.
 */
static bool add_entries(struct tables *tables, const struct wanted_section *wanted,
                        const struct cairn_object_section *section, uint64_t *next_address)
{
    struct cairn_pc_table_section added = {.name = section->name,
                                           .section = section->contents,
                                           .address = section->address,
                                           .schema = wanted->schema};
    struct entry_reader reader;
    struct section_entry entry;
    struct cairn_error error;
    entry_reader_open(&reader, tables->input, &tables->layout, wanted, section);
    while (entry_reader_next(&reader, &entry, &error))
        ;
    bool is_good = error.status == CAIRN_OK || entry_reader_complain(&reader, &error);
    added.section.size = reader.offset;
    bool is_copy = tables->layout.is_made_up;
    if (is_copy) {
        added.address = *next_address;
        *next_address += section->contents.size + 1;
        if (!place_entries(tables, section, &added))
            return false;
    }
    if (list_append(&tables->entry_sections, &added, sizeof added))
        return is_good;
    if (is_copy)
        free((void *)(uintptr_t)added.section.bytes);
    return complain_of_memory(tables->input);
}

static bool is_code(uint64_t address, void *user) { return layout_section(user, address) != NULL; }

static bool read_entries(struct tables *tables, const struct wanted_sections *wanted)
{
    const struct layout *layout = &tables->layout;
    const struct cairn_pc_table_options options = {.is_code = is_code, .user = &tables->layout};
    uint64_t next_address = 0;
    struct cairn_error error;
    bool is_good = true;
    if (layout->count > 0) {
        const struct code_section *last = &layout->sections[layout->count - 1];
        next_address = last->address + last->size + COPIES_GAP;
    }
    for (size_t i = 0; i < wanted->count; i++) {
        const struct cairn_object_filter filter = {.name = wanted->sections[i].name};
        struct cairn_object_section section = {0};
        while (cairn_object_next_section(tables->input->object, &filter, &section, &error) ==
               CAIRN_OK)
            is_good = add_entries(tables, &wanted->sections[i], &section, &next_address) && is_good;
        if (error.status != CAIRN_ERROR_NOT_FOUND || section.index == 0)
            is_good = complain("%s: %s", tables->input->name, error.message);
    }
    if (tables->entry_sections.count > 0 &&
        cairn_pc_table_create(tables->entry_sections.items, tables->entry_sections.count, &options,
                              &tables->entries, &error) != CAIRN_OK)
        is_good = complain("%s: PC sections: %s", tables->input->name, error.message);
    return is_good;
}

/* ---- All tables ---- */

static void place_metadata(const struct layout *layout, struct sanmd_place *place)
{
    *place = (struct sanmd_place){0, layout_address(layout, place->section, place->address)};
}

bool tables_read(const struct input *input, const struct wanted_sections *wanted,
                 struct tables *tables)
{
    *tables = (struct tables){.input = input};
    if (!layout_create(input, &tables->layout))
        return false;
    source_lines_read(&tables->lines, input);
    bool is_good = blocks_create(input, &tables->layout, &tables->blocks);
    is_good = read_records(tables) && is_good;
    is_good = read_faults(tables) && is_good;
    is_good = sanmd_read(input, &tables->sanmd) && is_good;
    is_good = stack_sizes_read(input, &tables->layout, &tables->stack_sizes) && is_good;
    is_good = coverage_read(input, &tables->layout, &tables->coverage) && is_good;
    struct sanmd_function *functions = tables->sanmd.functions.items;
    struct sanmd_place *atomics = tables->sanmd.atomics.items;
    /* Metadata is sorted by the addresses of the layout; those outside code become 0. */
    for (size_t i = 0; i < tables->sanmd.functions.count; i++)
        place_metadata(&tables->layout, &functions[i].place);
    for (size_t i = 0; i < tables->sanmd.atomics.count; i++)
        place_metadata(&tables->layout, &atomics[i]);
    sanmd_sort(&tables->sanmd);
    return read_entries(tables, wanted) && is_good;
}

void tables_release(struct tables *tables)
{
    cairn_block_table_destroy(tables->blocks);
    cairn_table_destroy(tables->records);
    cairn_fault_table_destroy(tables->faults);
    free(tables->handlers);
    cairn_pc_table_destroy(tables->entries);
    const struct cairn_pc_table_section *sections = tables->entry_sections.items;
    for (size_t i = 0; tables->layout.is_made_up && i < tables->entry_sections.count; i++)
        free((void *)(uintptr_t)sections[i].section.bytes);
    list_release(&tables->entry_sections);
    sanmd_release(&tables->sanmd);
    list_release(&tables->stack_sizes);
    list_release(&tables->coverage);
    source_lines_release(&tables->lines);
    layout_destroy(&tables->layout);
}

/* ---- Answers ---- */

/* Returns the first of the records from `low` to `high` whose address is `address` or higher. */
static uint32_t first_record(const struct tables *tables, uint32_t low, uint32_t high,
                             uint64_t address)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cairn_record_address((struct cairn_record){tables->records, middle}) < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the record of the patch point whose call returns to `address`: the code at the record, up
 * to there, must be LLVM's code for a patch point. The call may be followed by instructions that
 * belong to it, such as the load of a TOC pointer. Statepoints are not found, because their records
 * are at the return address. */
static bool find_call(const struct tables *tables, uint64_t address, struct cairn_record *record)
{
    enum { CALL_BYTES_MAX = 64, FOLLOWING_MAX = 8 };
    cairn_object *object = tables->input->object;
    const struct cairn_arch *arch = arch_find(cairn_object_header(object).architecture);
    struct cairn_function function;
    struct cairn_object_code code;
    struct arch_patchpoint found;
    if (tables->records == NULL || address == 0 || arch == NULL || arch->recognise == NULL ||
        !cairn_table_find_function(tables->records, address - 1, &function))
        return false;
    uint32_t next = first_record(tables, function.first_record,
                                 function.first_record + function.record_count, address);
    if (next == function.first_record)
        return false;
    *record = (struct cairn_record){tables->records, next - 1};
    uint64_t distance = address - cairn_record_address(*record);
    struct place place = layout_place(&tables->layout, cairn_record_address(*record));
    if (distance > CALL_BYTES_MAX ||
        cairn_object_code(object, place.section == NULL ? 0 : place.section->index, place.address,
                          &code, NULL) != CAIRN_OK)
        return false;
    for (size_t size = distance; size <= distance + FOLLOWING_MAX && size <= code.size; size++)
        if (arch->recognise(arch, code.bytes, size, code.address, &found, NULL) == CAIRN_OK &&
            found.has_call && found.return_offset == distance)
            return true;
    return false;
}

/* Finds the frame size of the function that contains `address`. `function` is the function from the
 * symbol table, or NULL. */
static bool find_frame(const struct tables *tables, uint64_t address,
                       const struct cairn_object_function *function, uint64_t *stack_size)
{
    struct cairn_function found;
    if (tables->records == NULL || !cairn_table_find_function(tables->records, address, &found))
        return false;
    *stack_size = found.stack_size;
    if (function != NULL)
        return layout_address(&tables->layout, function->section, function->entry) == found.address;
    /* Without symbols the end of the function is unknown, but it is after the last record. */
    if (found.record_count == 0)
        return address == found.address;
    struct cairn_record last = {tables->records, found.first_record + found.record_count - 1};
    return address <= cairn_record_address(last);
}

/* Returns the entry of .stack_sizes for the function that contains `address`, or NULL. Without
 * symbols the end of a function is unknown, so only its first address is found. */
static const struct cairn_stack_size *find_stack_size(const struct tables *tables, uint64_t address,
                                                      const struct cairn_object_function *function)
{
    const struct cairn_stack_size *sizes = tables->stack_sizes.items;
    uint64_t entry = function == NULL
                         ? address
                         : layout_address(&tables->layout, function->section, function->entry);
    if (tables->stack_sizes.count == 0)
        return NULL;
    size_t above = first_above(&sizes->address, sizeof *sizes, tables->stack_sizes.count, entry);
    return above > 0 && sizes[above - 1].address == entry ? &sizes[above - 1] : NULL;
}

static void find_points(const struct list *coverage, uint64_t address, struct answer *answer)
{
    const struct cairn_sancov_point *points = coverage->items;
    if (coverage->count == 0 || address == 0)
        return;
    size_t begin = first_above(&points->address, sizeof *points, coverage->count, address - 1);
    size_t end = first_above(&points->address, sizeof *points, coverage->count, address);
    answer->points = points + begin;
    answer->point_count = end - begin;
}

static void find_faults(const struct tables *tables, uint64_t address, struct answer *answer)
{
    const struct handler *handlers = tables->handlers;
    size_t count = tables->handler_count;
    size_t begin = address == 0 ? 0 : first_above(handlers, sizeof *handlers, count, address - 1);
    answer->has_fault = cairn_fault_table_find(tables->faults, address, &answer->fault);
    answer->handled = handlers + begin;
    answer->handled_count = first_above(handlers, sizeof *handlers, count, address) - begin;
}

static void find_metadata(const struct sanmd_contents *sanmd, uint64_t address,
                          struct answer *answer)
{
    const struct sanmd_function *functions = sanmd->functions.items;
    const struct sanmd_place place = {0, address};
    size_t count = sanmd->functions.count;
    size_t above =
        count == 0 ? 0 : first_above(&functions->place.address, sizeof *functions, count, address);
    if (above > 0 &&
        address - functions[above - 1].place.address < functions[above - 1].covered.size) {
        answer->covered = &functions[above - 1].covered;
        answer->covered_address = functions[above - 1].place.address;
    }
    answer->is_atomic =
        sanmd->atomics.count > 0 && bsearch(&place, sanmd->atomics.items, sanmd->atomics.count,
                                            sizeof place, sanmd_compare_places) != NULL;
}

void find_answer(const struct tables *tables, const struct target *target, struct answer *answer)
{
    uint64_t address = target->address;
    struct cairn_block_function function = {0};
    *answer = (struct answer){
        .tables = tables, .target = *target, .place = layout_place(&tables->layout, address)};
    answer->has_function = layout_function(&tables->layout, address, &answer->function);
    answer->has_line = source_lines_find(&tables->lines, address, &answer->line);
    answer->has_block =
        tables->blocks != NULL && cairn_block_table_find(tables->blocks, address, &answer->block);
    if (answer->has_block) {
        (void)cairn_block_table_function(tables->blocks, answer->block.function, &function);
        (void)cairn_block_table_details(tables->blocks, answer->block.function, answer->block.index,
                                        &answer->block_details);
        answer->block_features = function.features;
    }
    answer->has_frame = find_frame(tables, address, answer->has_function ? &answer->function : NULL,
                                   &answer->stack_size);
    answer->declared_frame =
        find_stack_size(tables, address, answer->has_function ? &answer->function : NULL);
    if (tables->records != NULL &&
        cairn_table_find_address(tables->records, address, &answer->record)) {
        uint32_t count = cairn_table_record_count(tables->records);
        uint32_t end = address == UINT64_MAX
                           ? count
                           : first_record(tables, answer->record.index + 1, count, address + 1);
        answer->record_count = end - answer->record.index;
    }
    answer->has_call = find_call(tables, address, &answer->call);
    if (tables->faults != NULL)
        find_faults(tables, address, answer);
    find_metadata(&tables->sanmd, address, answer);
    find_points(&tables->coverage, address, answer);
    answer->entry_count =
        cairn_pc_table_find(tables->entries, address, answer->entries, LOOKUP_ITEMS_MAX);
}
