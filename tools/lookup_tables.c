/*
 * Reading and searching the tables of a lookup.
 *
 * Tables are created from sections in memory. In relocatable objects, and on PPC64 ELFv1 because of
 * its function descriptors, addresses in sections differ from those of the layout. Such sections
 * are copied, and the addresses in the copies are changed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/lookup_tables.h"

#include "arch/arch.h"
#include "tools/blocks.h"

#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

static bool complain_of_memory(const struct input *input)
{
    return complain("%s: there is not enough memory for the tables of its sections", input->name);
}

/* Returns a copy of a section that is valid as long as the list; NULL after an error message. */
static uint8_t *copy_section(const struct input *input, struct list *copies,
                             const struct cairn_section *section)
{
    uint8_t *copy = malloc(section->size + 1);
    uint8_t **item = copy == NULL ? NULL : list_add(copies, sizeof *item);
    if (item == NULL) {
        free(copy);
        complain_of_memory(input);
        return NULL;
    }
    memcpy(copy, section->bytes, section->size);
    return *item = copy;
}

static void release_copies(struct list *list)
{
    uint8_t **copies = list->items;
    for (size_t i = 0; i < list->count; i++)
        free(copies[i]);
    free(copies);
}

static void store(uint8_t *bytes, unsigned size, uint64_t value, enum cairn_byte_order byte_order)
{
    for (unsigned i = 0; i < size; i++) {
        unsigned place = byte_order == CAIRN_LITTLE_ENDIAN ? i : size - 1 - i;
        bytes[i] = (uint8_t)(value >> 8 * place);
    }
}

/* ---- Stack maps and fault maps ---- */

/* Sections that are being gathered for a table. */
struct gathered {
    struct tables *tables;
    struct list copies;
    struct list sections; /* items are struct cairn_section */
};

/* Adds the first `size` bytes of the copy. False after an error message. */
static bool keep_section(struct gathered *gathered, const uint8_t *copy, size_t size,
                         enum cairn_byte_order byte_order)
{
    struct cairn_section *section = list_add(&gathered->sections, sizeof *section);
    if (section == NULL)
        return complain_of_memory(gathered->tables->input);
    *section = (struct cairn_section){copy, size, byte_order};
    return true;
}

static void release_gathered(struct gathered *gathered)
{
    release_copies(&gathered->copies);
    free(gathered->sections.items);
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
    uint8_t *copy = copy_section(input, &gathered->copies, contents);
    struct cairn_error error = {.status = CAIRN_OK};
    struct lost_addresses lost = {0};
    struct cairn_stackmap map;
    size_t offset = 0;
    if (copy == NULL)
        return false;
    while (offset < contents->size && error.status == CAIRN_OK) {
        error.status = cairn_stackmap_read(contents, &offset, &map, &error);
        for (uint32_t i = 0; error.status == CAIRN_OK && i < map.function_count; i++)
            place_function(gathered->tables, section,
                           map.section_offset + CAIRN_STACKMAP_HEADER_BYTES +
                               i * cairn_stackmap_function_bytes(map.version),
                           copy, &lost);
    }
    bool is_good = check_section(input, section, &lost, &error);
    return keep_section(gathered, copy, offset, contents->byte_order) && is_good;
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
    uint8_t *copy = copy_section(input, &gathered->copies, contents);
    struct cairn_error error = {.status = CAIRN_OK};
    struct lost_addresses lost = {0};
    size_t end = 0;
    if (copy == NULL)
        return false;
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
        end = map.section_offset + map.size;
    }
    bool is_good = check_section(input, section, &lost, &error);
    return keep_section(gathered, copy, end, contents->byte_order) && is_good;
}

/* The address is next to the number because qsort passes no context to the comparison. */
struct handler {
    uint64_t address;
    uint32_t entry;
};

static int compare_handlers(const void *left, const void *right)
{
    const struct handler *a = left;
    const struct handler *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

static bool sort_handlers(struct tables *tables)
{
    uint32_t count = cairn_fault_table_count(tables->faults);
    if (count == 0)
        return true;
    struct handler *sorted = malloc(count * sizeof *sorted);
    tables->handlers = malloc(count * sizeof *tables->handlers);
    if (sorted == NULL || tables->handlers == NULL) {
        free(sorted);
        cairn_fault_table_destroy(tables->faults);
        tables->faults = NULL;
        return complain_of_memory(tables->input);
    }
    struct cairn_fault_entry entry;
    for (uint32_t i = 0; cairn_fault_table_entry(tables->faults, i, &entry); i++)
        sorted[i] = (struct handler){entry.handler_address, i};
    qsort(sorted, count, sizeof *sorted, compare_handlers);
    for (uint32_t i = 0; i < count; i++)
        tables->handlers[i] = sorted[i].entry;
    free(sorted);
    return true;
}

static bool read_faults(struct tables *tables)
{
    struct gathered gathered = {.tables = tables};
    struct cairn_error error;
    bool is_good = visit_named_sections(tables->input, CAIRN_FAULTMAP_SECTION,
                                        CAIRN_FAULTMAP_SECTION_DARWIN, add_fault_maps, &gathered);
    if (gathered.sections.count > 0 &&
        cairn_fault_table_create(gathered.sections.items, gathered.sections.count, NULL,
                                 &tables->faults, &error) != CAIRN_OK)
        is_good =
            complain("%s: " CAIRN_FAULTMAP_SECTION ": %s", tables->input->name, error.message);
    release_gathered(&gathered);
    return sort_handlers(tables) && is_good;
}

/* ---- PC sections ---- */

/* Distance of the copies from the code, as if they were loaded there. It is so large that small
 * constants in the copies do not look like addresses of code. */
#define COPIES_GAP (UINT64_C(1) << 30)

struct entry_sections {
    struct list list;      /* items are struct cairn_pc_table_section */
    uint64_t next_address; /* of the next copy */
};

/* Finds how many bytes of a section are valid. False, after an error message, if not all of them
 * are. */
static bool check_entries(const struct tables *tables, const struct wanted_section *wanted,
                          const struct cairn_object_section *section, size_t *size)
{
    struct entry_reader reader;
    struct section_entry entry;
    struct cairn_error error;
    entry_reader_open(&reader, tables->input, &tables->layout, wanted, section);
    while (entry_reader_next(&reader, &entry, &error))
        ;
    *size = reader.offset;
    return error.status == CAIRN_OK || entry_reader_complain(&reader, &error);
}

static uint64_t load_distance(const uint8_t *bytes, uint8_t size, enum cairn_byte_order byte_order)
{
    if (size == 8)
        return cairn_load_u64(bytes, byte_order);
    return (uint64_t)(int64_t)(int32_t)cairn_load_u32(bytes, byte_order);
}

/* Copies a section as if it were loaded at `loaded_at`, with distances to the code in the
 * layout. */
static bool place_entries(struct tables *tables, const struct cairn_object_section *section,
                          const struct cairn_pcsection_schema *schema, uint64_t loaded_at,
                          struct cairn_section *placed)
{
    const struct cairn_section *contents = &section->contents;
    uint8_t width = schema->address_bytes;
    uint8_t *copy = copy_section(tables->input, &tables->copies, contents);
    if (copy == NULL)
        return false;
    for (size_t at = 0; at + width <= contents->size; at++) {
        uint32_t target = cairn_object_target_section(tables->input->object, section, at);
        if (target == 0)
            continue;
        uint64_t offset = at + load_distance(contents->bytes + at, width, contents->byte_order);
        uint64_t address = layout_address(&tables->layout, target, offset);
        store(copy + at, width, address - (loaded_at + at), contents->byte_order);
    }
    placed->bytes = copy;
    return true;
}

static bool add_entries(struct tables *tables, struct entry_sections *sections,
                        const struct wanted_section *wanted,
                        const struct cairn_object_section *section)
{
    struct cairn_pc_table_section added = {.name = section->name,
                                           .section = section->contents,
                                           .address = section->address,
                                           .schema = wanted->schema};
    bool is_good = check_entries(tables, wanted, section, &added.section.size);
    if (tables->layout.is_made_up) {
        added.address = sections->next_address;
        sections->next_address += section->contents.size + 1;
        if (!place_entries(tables, section, &wanted->schema, added.address, &added.section))
            return false;
    }
    struct cairn_pc_table_section *item = list_add(&sections->list, sizeof *item);
    if (item == NULL)
        return complain_of_memory(tables->input);
    *item = added;
    return is_good;
}

static bool add_wanted(struct tables *tables, struct entry_sections *sections,
                       const struct wanted_section *wanted)
{
    struct cairn_object_section section = {0};
    struct cairn_error error;
    const struct cairn_object_filter filter = {.name = wanted->name};
    bool is_good = true;
    while (cairn_object_next_section(tables->input->object, &filter, &section, &error) == CAIRN_OK)
        is_good = add_entries(tables, sections, wanted, &section) && is_good;
    if (error.status == CAIRN_ERROR_NOT_FOUND && section.index != 0)
        return is_good;
    return complain("%s: %s", tables->input->name, error.message);
}

static bool is_code(uint64_t address, void *user) { return layout_section(user, address) != NULL; }

static bool read_entries(struct tables *tables, const struct wanted_sections *wanted)
{
    const struct layout *layout = &tables->layout;
    const struct cairn_pc_table_options options = {.is_code = is_code, .user = &tables->layout};
    struct entry_sections sections = {.next_address = 0};
    struct cairn_error error;
    bool is_good = true;
    if (layout->count > 0) {
        const struct code_section *last = &layout->sections[layout->count - 1];
        sections.next_address = last->address + last->size + COPIES_GAP;
    }
    for (size_t i = 0; i < wanted->count; i++)
        is_good = add_wanted(tables, &sections, &wanted->sections[i]) && is_good;
    if (sections.list.count > 0 &&
        cairn_pc_table_create(sections.list.items, sections.list.count, &options, &tables->entries,
                              &error) != CAIRN_OK)
        is_good = complain("%s: PC sections: %s", tables->input->name, error.message);
    free(sections.list.items);
    return is_good;
}

/* ---- Sanitizer metadata ---- */

static void place_metadata(const struct layout *layout, struct sanmd_place *place)
{
    *place = (struct sanmd_place){0, layout_address(layout, place->section, place->address)};
}

/* Reads the metadata, and sorts it by the addresses of the layout. Addresses outside code become 0.
 */
static bool read_metadata(struct tables *tables)
{
    bool is_good = sanmd_read(tables->input, &tables->sanmd);
    struct sanmd_function *functions = tables->sanmd.functions.items;
    struct sanmd_place *atomics = tables->sanmd.atomics.items;
    for (size_t i = 0; i < tables->sanmd.functions.count; i++)
        place_metadata(&tables->layout, &functions[i].place);
    for (size_t i = 0; i < tables->sanmd.atomics.count; i++)
        place_metadata(&tables->layout, &atomics[i]);
    sanmd_sort(&tables->sanmd);
    return is_good;
}

/* ---- All tables ---- */

bool tables_read(const struct input *input, const struct wanted_sections *wanted,
                 struct tables *tables)
{
    *tables = (struct tables){.input = input};
    if (!layout_create(input, &tables->layout))
        return false;
    bool is_good = blocks_create(input, &tables->layout, &tables->blocks);
    is_good = read_records(tables) && is_good;
    is_good = read_faults(tables) && is_good;
    is_good = read_metadata(tables) && is_good;
    return read_entries(tables, wanted) && is_good;
}

void tables_release(struct tables *tables)
{
    cairn_block_table_destroy(tables->blocks);
    cairn_table_destroy(tables->records);
    cairn_fault_table_destroy(tables->faults);
    free(tables->handlers);
    cairn_pc_table_destroy(tables->entries);
    sanmd_release(&tables->sanmd);
    release_copies(&tables->copies);
    layout_destroy(&tables->layout);
}

bool tables_has_metadata(const struct tables *tables)
{
    return tables->blocks != NULL || tables->records != NULL || tables->faults != NULL ||
           tables->entries != NULL || tables->sanmd.section_count > 0;
}

/* ---- Lookups: records ---- */

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

uint32_t tables_find_records(const struct tables *tables, uint64_t address,
                             struct cairn_record *first)
{
    if (tables->records == NULL || !cairn_table_find_address(tables->records, address, first))
        return 0;
    uint32_t count = cairn_table_record_count(tables->records);
    uint32_t end =
        address == UINT64_MAX ? count : first_record(tables, first->index + 1, count, address + 1);
    return end - first->index;
}

/* Whether the code at `address` is LLVM's code for a patch point whose call returns `distance`
 * bytes after it. The call may be followed by instructions that belong to it, such as the load of a
 * TOC pointer. */
static bool is_call(const struct tables *tables, uint64_t address, size_t distance)
{
    enum { FOLLOWING_MAX = 8 };
    const struct cairn_arch *arch = arch_find(cairn_object_architecture(tables->input->object));
    struct place place = layout_place(&tables->layout, address);
    struct cairn_object_code code;
    struct arch_patchpoint found;
    if (arch == NULL || arch->recognise == NULL)
        return false;
    if (cairn_object_code(tables->input->object, place.section == NULL ? 0 : place.section->index,
                          place.address, &code, NULL) != CAIRN_OK)
        return false;
    for (size_t size = distance; size <= distance + FOLLOWING_MAX && size <= code.size; size++)
        if (arch->recognise(arch, code.bytes, size, code.address, &found, NULL) == CAIRN_OK &&
            found.has_call && found.return_offset == distance)
            return true;
    return false;
}

bool tables_find_call(const struct tables *tables, uint64_t address, struct cairn_record *record)
{
    enum { CALL_BYTES_MAX = 64 };
    struct cairn_function function;
    if (tables->records == NULL || address == 0 ||
        !cairn_table_find_function(tables->records, address - 1, &function))
        return false;
    uint32_t next = first_record(tables, function.first_record,
                                 function.first_record + function.record_count, address);
    if (next == function.first_record)
        return false;
    *record = (struct cairn_record){tables->records, next - 1};
    uint64_t distance = address - cairn_record_address(*record);
    return distance <= CALL_BYTES_MAX &&
           is_call(tables, cairn_record_address(*record), (size_t)distance);
}

bool tables_find_frame(const struct tables *tables, uint64_t address,
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

/* ---- Lookups: faults ---- */

/* Returns the number of the first fault, in the order of handlers, whose handler is at `address` or
 * higher. */
static uint32_t first_handled(const struct tables *tables, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = cairn_fault_table_count(tables->faults);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tables_handled(tables, middle).handler_address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t tables_find_handled(const struct tables *tables, uint64_t address, uint32_t *number)
{
    *number = first_handled(tables, address);
    uint32_t end = address == UINT64_MAX ? cairn_fault_table_count(tables->faults)
                                         : first_handled(tables, address + 1);
    return end - *number;
}

struct cairn_fault_entry tables_handled(const struct tables *tables, uint32_t number)
{
    struct cairn_fault_entry fault = {0};
    (void)cairn_fault_table_entry(tables->faults, tables->handlers[number], &fault);
    return fault;
}

/* ---- Lookups: sanitizer metadata ---- */

const struct cairn_sanmd_entry *tables_find_covered(const struct tables *tables, uint64_t address,
                                                    uint64_t *function)
{
    const struct sanmd_function *functions = tables->sanmd.functions.items;
    size_t low = 0;
    size_t high = tables->sanmd.functions.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (functions[middle].place.address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address - functions[low - 1].place.address >= functions[low - 1].covered.size)
        return NULL;
    *function = functions[low - 1].place.address;
    return &functions[low - 1].covered;
}

bool tables_is_atomic(const struct tables *tables, uint64_t address)
{
    const struct sanmd_place place = {0, address};
    return tables->sanmd.atomics.count > 0 &&
           bsearch(&place, tables->sanmd.atomics.items, tables->sanmd.atomics.count, sizeof place,
                   sanmd_compare_places) != NULL;
}
