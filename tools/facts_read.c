/*
 * Facts by address: reading sections.
 *
 * Tables are created from sections in memory. In relocatable objects, and on PPC64 ELFv1 because of
 * its function descriptors, addresses in sections differ from those of the layout. Such sections
 * are copied, and the addresses in the copies are changed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/blocks.h"
#include "tools/command.h"
#include "tools/facts.h"
#include "tools/sanmd_version.h"

#include <cairn/sanmd.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

static bool complain_of_memory(const struct facts *facts)
{
    complain("%s: there is not enough memory for what its sections say", facts->input->name);
    return false;
}

/* Makes space for one more item of `bytes` bytes. False after an error message. */
static bool make_room(const struct facts *facts, void **list, size_t *capacity, size_t count,
                      size_t bytes)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = realloc(*list, wanted * bytes);
    if (grown == NULL)
        return complain_of_memory(facts);
    *list = grown;
    *capacity = wanted;
    return true;
}

/* Returns a copy of a section that is valid as long as the list; NULL after an error message. */
static uint8_t *copy_section(const struct facts *facts, struct copy_list *list,
                             const struct cairn_section *section)
{
    void *copies = list->copies;
    bool has_room = make_room(facts, &copies, &list->capacity, list->count, sizeof *list->copies);
    list->copies = copies;
    uint8_t *copy = has_room ? malloc(section->size + 1) : NULL;
    if (copy == NULL) {
        if (has_room)
            complain_of_memory(facts);
        return NULL;
    }
    memcpy(copy, section->bytes, section->size);
    list->copies[list->count++] = copy;
    return copy;
}

static void release_copies(struct copy_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->copies[i]);
    free(list->copies);
}

static void store(uint8_t *bytes, unsigned size, uint64_t value, enum cairn_byte_order byte_order)
{
    for (unsigned i = 0; i < size; i++) {
        unsigned place = byte_order == CAIRN_LITTLE_ENDIAN ? i : size - 1 - i;
        bytes[i] = (uint8_t)(value >> 8 * place);
    }
}

/* ---- Sections ---- */

/* Sections that are being gathered for a table. */
struct gathered {
    struct facts *facts;
    struct copy_list copies;
    struct cairn_section *sections;
    size_t count;
    size_t capacity;
};

/* A callback that adds a section. False after an error message. */
typedef bool gather_section(struct gathered *gathered, const struct cairn_object_section *section);

static bool gather(struct gathered *gathered, const struct cairn_object_filter *filter,
                   gather_section *add)
{
    const struct input *input = gathered->facts->input;
    struct cairn_object_section section = {0};
    struct cairn_error error;
    bool is_good = true;
    while (cairn_object_next_matching(input->object, filter, &section, &error) == CAIRN_OK)
        is_good = add(gathered, &section) && is_good;
    if (error.status == CAIRN_ERROR_NOT_FOUND)
        return is_good;
    complain("%s: %s: %s", input->name, filter->name != NULL ? filter->name : filter->prefix,
             error.message);
    return false;
}

static bool gather_name(struct gathered *gathered, const char *name, gather_section *add)
{
    const struct cairn_object_filter filter = {.name = name};
    return gather(gathered, &filter, add);
}

/* Adds the first `size` bytes of the copy. */
static bool keep_section(struct gathered *gathered, const uint8_t *copy, size_t size,
                         enum cairn_byte_order byte_order)
{
    void *sections = gathered->sections;
    bool has_room = make_room(gathered->facts, &sections, &gathered->capacity, gathered->count,
                              sizeof *gathered->sections);
    gathered->sections = sections;
    if (!has_room)
        return false;
    gathered->sections[gathered->count++] = (struct cairn_section){copy, size, byte_order};
    return true;
}

static void release_gathered(struct gathered *gathered)
{
    release_copies(&gathered->copies);
    free(gathered->sections);
}

/* Changes the address of a function, at `offset` in a section, to its address in the layout. */
static void place_function(const struct facts *facts, const struct cairn_object_section *section,
                           size_t offset, uint8_t *copy, struct lost_addresses *lost)
{
    struct cairn_object_function function =
        cairn_object_function(facts->input->object, section, offset);
    check_address(facts->input->object, section, offset, lost);
    uint64_t address = layout_address(&facts->layout, function.section, function.entry);
    store(copy + offset, 8, address, section->contents.byte_order);
}

/* ---- Stack maps ---- */

static void place_map(const struct facts *facts, const struct cairn_object_section *section,
                      const struct cairn_stackmap *map, uint8_t *copy, struct lost_addresses *lost)
{
    for (uint32_t i = 0; i < map->function_count; i++)
        place_function(facts, section,
                       map->section_offset + CAIRN_STACKMAP_HEADER_BYTES +
                           i * cairn_stackmap_function_bytes(map->version),
                       copy, lost);
}

static bool add_stackmaps(struct gathered *gathered, const struct cairn_object_section *section)
{
    const struct cairn_section *contents = &section->contents;
    uint8_t *copy = copy_section(gathered->facts, &gathered->copies, contents);
    struct cairn_error error = {.status = CAIRN_OK};
    struct lost_addresses lost = {0};
    size_t offset = 0;
    if (copy == NULL)
        return false;
    while (offset < contents->size) {
        struct cairn_stackmap map;
        error.status = cairn_stackmap_read(contents, &offset, &map, &error);
        if (error.status != CAIRN_OK)
            break;
        place_map(gathered->facts, section, &map, copy, &lost);
    }
    if (error.status != CAIRN_OK)
        complain_of_section(gathered->facts->input, section, &error);
    bool is_good = complain_of_lost(gathered->facts->input->name, section, &lost);
    return keep_section(gathered, copy, offset, contents->byte_order) && error.status == CAIRN_OK &&
           is_good;
}

static bool read_records(struct facts *facts)
{
    struct gathered gathered = {.facts = facts};
    struct cairn_error error;
    bool is_good = gather_name(&gathered, CAIRN_OBJECT_STACKMAPS, add_stackmaps);
    is_good = gather_name(&gathered, CAIRN_OBJECT_STACKMAPS_DARWIN, add_stackmaps) && is_good;
    if (gathered.count > 0 && cairn_table_create(gathered.sections, gathered.count, NULL,
                                                 &facts->records, &error) != CAIRN_OK) {
        complain("%s: " CAIRN_OBJECT_STACKMAPS ": %s", facts->input->name, error.message);
        is_good = false;
    }
    release_gathered(&gathered);
    return is_good;
}

/* ---- Fault maps ---- */

static void place_fault_map(const struct facts *facts, const struct cairn_object_section *section,
                            const struct cairn_faultmap *map, uint8_t *copy,
                            struct lost_addresses *lost)
{
    enum { COUNT_OFFSET = 4 };
    struct cairn_faultmap_function function;
    /* A map that ends in an invalid function has fewer functions than its count says. */
    store(copy + map->section_offset + COUNT_OFFSET, 4, map->function_count, map->byte_order);
    for (bool more = cairn_faultmap_first(map, &function); more;
         more = cairn_faultmap_next(map, &function))
        place_function(facts, section, map->section_offset + function.offset, copy, lost);
}

static bool add_fault_maps(struct gathered *gathered, const struct cairn_object_section *section)
{
    const struct cairn_section *contents = &section->contents;
    uint8_t *copy = copy_section(gathered->facts, &gathered->copies, contents);
    struct cairn_error error = {.status = CAIRN_OK};
    struct lost_addresses lost = {0};
    size_t offset = 0;
    size_t end = 0;
    if (copy == NULL)
        return false;
    while (offset < contents->size && error.status == CAIRN_OK) {
        struct cairn_faultmap map;
        error.status = cairn_faultmap_read(contents, &offset, &map, &error);
        if (map.bytes == NULL)
            break;
        place_fault_map(gathered->facts, section, &map, copy, &lost);
        end = map.section_offset + map.size;
    }
    if (error.status != CAIRN_OK)
        complain_of_section(gathered->facts->input, section, &error);
    bool is_good = complain_of_lost(gathered->facts->input->name, section, &lost);
    return keep_section(gathered, copy, end, contents->byte_order) && error.status == CAIRN_OK &&
           is_good;
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

static bool sort_handlers(struct facts *facts)
{
    uint32_t count = cairn_fault_table_count(facts->faults);
    if (count == 0)
        return true;
    struct handler *sorted = malloc(count * sizeof *sorted);
    facts->handlers = malloc(count * sizeof *facts->handlers);
    if (sorted == NULL || facts->handlers == NULL) {
        free(sorted);
        cairn_fault_table_destroy(facts->faults);
        facts->faults = NULL;
        return complain_of_memory(facts);
    }
    struct cairn_fault_entry entry;
    for (uint32_t i = 0; cairn_fault_table_entry(facts->faults, i, &entry); i++)
        sorted[i] = (struct handler){entry.handler_address, i};
    qsort(sorted, count, sizeof *sorted, compare_handlers);
    for (uint32_t i = 0; i < count; i++)
        facts->handlers[i] = sorted[i].entry;
    free(sorted);
    return true;
}

static bool read_faults(struct facts *facts)
{
    struct gathered gathered = {.facts = facts};
    struct cairn_error error;
    bool is_good = gather_name(&gathered, CAIRN_FAULTMAP_SECTION, add_fault_maps);
    is_good = gather_name(&gathered, CAIRN_FAULTMAP_SECTION_DARWIN, add_fault_maps) && is_good;
    if (gathered.count > 0 && cairn_fault_table_create(gathered.sections, gathered.count, NULL,
                                                       &facts->faults, &error) != CAIRN_OK) {
        complain("%s: " CAIRN_FAULTMAP_SECTION ": %s", facts->input->name, error.message);
        is_good = false;
    }
    release_gathered(&gathered);
    return sort_handlers(facts) && is_good;
}

/* ---- PC sections ---- */

/* Distance of the copies from the code, as if they were loaded there. It is so large that small
 * constants in the copies do not look like addresses of code. */
#define COPIES_GAP (UINT64_C(1) << 30)

struct entry_sections {
    struct cairn_pc_table_section *sections;
    size_t count;
    size_t capacity;
    uint64_t next_address;
};

/* Finds how many bytes of a section are valid. False, after an error message, if not all of them
 * are. */
static bool check_entries(const struct facts *facts, const struct wanted_section *wanted,
                          const struct cairn_object_section *section, size_t *size)
{
    struct entry_reader reader;
    struct section_entry entry;
    struct cairn_error error;
    entry_reader_open(&reader, facts->input, &facts->layout, wanted, section);
    while (entry_reader_next(&reader, &entry, &error))
        ;
    *size = reader.offset;
    if (error.status == CAIRN_OK)
        return true;
    entry_reader_complain(&reader, &error);
    return false;
}

static uint64_t load_distance(const uint8_t *bytes, uint8_t size, enum cairn_byte_order byte_order)
{
    if (size == 8)
        return cairn_load_u64(bytes, byte_order);
    return (uint64_t)(int64_t)(int32_t)cairn_load_u32(bytes, byte_order);
}

/* Copies a section as if it were loaded at `loaded_at`, with distances to the code in the
 * layout. */
static bool place_entries(struct facts *facts, const struct cairn_object_section *section,
                          const struct cairn_pcsection_schema *schema, uint64_t loaded_at,
                          struct cairn_section *placed)
{
    const struct cairn_section *contents = &section->contents;
    uint8_t width = schema->address_bytes;
    uint8_t *copy = copy_section(facts, &facts->copies, contents);
    if (copy == NULL)
        return false;
    for (size_t at = 0; at + width <= contents->size; at++) {
        uint32_t target = cairn_object_target_section(facts->input->object, section, at);
        if (target == 0)
            continue;
        uint64_t offset = at + load_distance(contents->bytes + at, width, contents->byte_order);
        uint64_t address = layout_address(&facts->layout, target, offset);
        store(copy + at, width, address - (loaded_at + at), contents->byte_order);
    }
    placed->bytes = copy;
    return true;
}

static bool add_entries(struct facts *facts, struct entry_sections *list,
                        const struct wanted_section *wanted,
                        const struct cairn_object_section *section)
{
    void *sections = list->sections;
    bool is_good =
        make_room(facts, &sections, &list->capacity, list->count, sizeof *list->sections);
    list->sections = sections;
    if (!is_good)
        return false;
    struct cairn_pc_table_section added = {.name = section->name,
                                           .section = section->contents,
                                           .address = section->address,
                                           .schema = wanted->schema};
    is_good = check_entries(facts, wanted, section, &added.section.size);
    if (facts->layout.is_made_up) {
        added.address = list->next_address;
        list->next_address += section->contents.size + 1;
        if (!place_entries(facts, section, &wanted->schema, added.address, &added.section))
            return false;
    }
    list->sections[list->count++] = added;
    return is_good;
}

static bool add_wanted(struct facts *facts, struct entry_sections *list,
                       const struct wanted_section *wanted)
{
    struct cairn_object_section section = {0};
    struct cairn_error error;
    bool is_good = true;
    while (cairn_object_next_section(facts->input->object, wanted->name, &section, &error) ==
           CAIRN_OK)
        is_good = add_entries(facts, list, wanted, &section) && is_good;
    if (error.status == CAIRN_ERROR_NOT_FOUND && section.index != 0)
        return is_good;
    complain("%s: %s", facts->input->name, error.message);
    return false;
}

static bool is_code(uint64_t address, void *user) { return layout_section(user, address) != NULL; }

static bool create_entries(struct facts *facts, const struct entry_sections *list)
{
    struct cairn_error error;
    const struct cairn_pc_table_options options = {.is_code = is_code, .user = &facts->layout};
    if (list->count == 0 || cairn_pc_table_create(list->sections, list->count, &options,
                                                  &facts->entries, &error) == CAIRN_OK)
        return true;
    complain("%s: PC sections: %s", facts->input->name, error.message);
    return false;
}

static bool read_entries(struct facts *facts, const struct wanted_sections *wanted)
{
    const struct layout *layout = &facts->layout;
    struct entry_sections list = {.sections = NULL};
    bool is_good = true;
    if (layout->count > 0) {
        const struct code_section *last = &layout->sections[layout->count - 1];
        list.next_address = last->address + last->size + COPIES_GAP;
    }
    for (size_t i = 0; i < wanted->count; i++)
        is_good = add_wanted(facts, &list, &wanted->sections[i]) && is_good;
    is_good = create_entries(facts, &list) && is_good;
    free(list.sections);
    return is_good;
}

/* ---- Sanitizer metadata ---- */

static uint64_t place_entry(const struct facts *facts, const struct cairn_object_section *section,
                            size_t offset, uint64_t address)
{
    uint32_t target = cairn_object_target_section(facts->input->object, section, offset);
    return layout_address(&facts->layout, target != 0 ? target : section->linked_section, address);
}

static bool add_covered(struct facts *facts, const struct cairn_object_section *section,
                        const struct cairn_sanmd_covered *covered)
{
    void *list = facts->covered;
    bool has_room = make_room(facts, &list, &facts->covered_capacity, facts->covered_count,
                              sizeof *facts->covered);
    facts->covered = list;
    if (has_room)
        facts->covered[facts->covered_count++] = (struct covered_function){
            .address = place_entry(facts, section, covered->offset, covered->address),
            .size = covered->size,
            .features = covered->features,
            .stack_argument_bytes = covered->stack_argument_bytes,
        };
    return has_room;
}

static bool add_atomic(struct facts *facts, const struct cairn_object_section *section,
                       const struct cairn_sanmd_atomic *atomic)
{
    void *list = facts->atomics;
    bool has_room = make_room(facts, &list, &facts->atomic_capacity, facts->atomic_count,
                              sizeof *facts->atomics);
    facts->atomics = list;
    if (has_room)
        facts->atomics[facts->atomic_count++] =
            place_entry(facts, section, atomic->offset, atomic->address);
    return has_room;
}

static enum cairn_status read_metadata_entry(struct facts *facts,
                                             const struct cairn_object_section *section,
                                             enum cairn_sanmd_kind kind, uint32_t version,
                                             size_t *offset, struct cairn_error *error)
{
    struct cairn_sanmd_covered covered;
    struct cairn_sanmd_atomic atomic;
    enum cairn_status status;
    bool is_kept;
    if (kind == CAIRN_SANMD_COVERED) {
        status = cairn_sanmd_read_covered(&section->contents, section->address, version, offset,
                                          &covered, error);
        is_kept = status != CAIRN_OK || add_covered(facts, section, &covered);
    } else {
        status = cairn_sanmd_read_atomic(&section->contents, section->address, version, offset,
                                         &atomic, error);
        is_kept = status != CAIRN_OK || add_atomic(facts, section, &atomic);
    }
    if (is_kept)
        return status;
    error->offset = *offset;
    strcpy(error->message, "there is not enough memory");
    return CAIRN_ERROR_MEMORY;
}

static bool add_metadata(struct gathered *gathered, const struct cairn_object_section *section)
{
    struct facts *facts = gathered->facts;
    struct cairn_sanmd_format format;
    struct cairn_error error;
    size_t offset = 0;
    if (!cairn_sanmd_parse_name(section->name, &format))
        return true;
    facts->has_sanitizer_metadata = true;
    uint32_t version = find_sanmd_version(facts->input->object, section, &format);
    while (offset < section->contents.size) {
        if (read_metadata_entry(facts, section, format.kind, version, &offset, &error) == CAIRN_OK)
            continue;
        complain_of_section(facts->input, section, &error);
        return false;
    }
    return true;
}

static int compare_covered(const void *left, const void *right)
{
    const struct covered_function *a = left;
    const struct covered_function *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static int compare_atomics(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return (*a > *b) - (*a < *b);
}

static bool read_metadata(struct facts *facts)
{
    struct gathered gathered = {.facts = facts};
    const struct cairn_object_filter filter = {.prefix = CAIRN_SANMD_PREFIX};
    bool is_good = gather(&gathered, &filter, add_metadata);
    if (facts->covered_count > 1)
        qsort(facts->covered, facts->covered_count, sizeof *facts->covered, compare_covered);
    if (facts->atomic_count > 1)
        qsort(facts->atomics, facts->atomic_count, sizeof *facts->atomics, compare_atomics);
    return is_good;
}

/* ---- All facts ---- */

bool facts_read(const struct input *input, const struct wanted_sections *wanted,
                struct facts *facts)
{
    *facts = (struct facts){.input = input};
    if (!layout_create(input, &facts->layout))
        return false;
    bool is_good = blocks_create(input, &facts->layout, &facts->blocks);
    is_good = read_records(facts) && is_good;
    is_good = read_faults(facts) && is_good;
    is_good = read_metadata(facts) && is_good;
    return read_entries(facts, wanted) && is_good;
}

void facts_release(struct facts *facts)
{
    cairn_block_table_destroy(facts->blocks);
    cairn_table_destroy(facts->records);
    cairn_fault_table_destroy(facts->faults);
    free(facts->handlers);
    cairn_pc_table_destroy(facts->entries);
    free(facts->covered);
    free(facts->atomics);
    release_copies(&facts->copies);
    layout_destroy(&facts->layout);
}
