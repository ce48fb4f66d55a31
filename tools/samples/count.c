/*
 * Counting samples. The block of the last sample is tried first, because samples in hot blocks
 * often follow one another.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/samples/samples.h"

#include "file/object.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define NO_MEMORY "profile: no memory for mappings"

/* ---- Load addresses ---- */

const char *base_name(const char *path, size_t length)
{
    const char *slash = length == 0 ? NULL : memrchr(path, '/', length);
    return slash == NULL ? path : slash + 1;
}

/* Whether two paths have the same file name. Directories are ignored, because the program may have
 * run on another machine. */
static bool names_agree(const char *path, const char *other, size_t other_length)
{
    const char *name = base_name(path, strlen(path));
    const char *other_name = base_name(other, other_length);
    size_t length = strlen(name);
    return length == (size_t)(other + other_length - other_name) &&
           memcmp(name, other_name, length) == 0;
}

static void append(struct loaded_list *list, struct loaded loaded)
{
    if (loaded.begin < loaded.end)
        list->items[list->count++] = loaded;
}

/* Merges two lists. Where they overlap, `newer` counts. False without memory, after an error
 * message. */
static bool merge(const struct loaded_list *older, const struct loaded_list *newer,
                  struct loaded_list *merged)
{
    size_t next = 0;
    uint64_t free_from = 0; /* lower addresses are in the merged list already, or in no mapping */
    /* Each newer mapping can split an older one. */
    *merged =
        (struct loaded_list){calloc(older->count + 2 * newer->count + 1, sizeof(struct loaded)), 0};
    if (merged->items == NULL)
        return complain(NO_MEMORY);
    for (size_t i = 0; i < older->count; i++) {
        struct loaded left = older->items[i];
        for (; next < newer->count && newer->items[next].begin < left.end; next++) {
            struct loaded before = left;
            before.begin = left.begin < free_from ? free_from : left.begin;
            before.end = newer->items[next].begin;
            append(merged, before);
            append(merged, newer->items[next]);
            free_from = newer->items[next].end;
        }
        left.begin = left.begin < free_from ? free_from : left.begin;
        append(merged, left);
    }
    for (; next < newer->count; next++)
        append(merged, newer->items[next]);
    return true;
}

/* Adds a mapping. List number n has about 2^n mappings, and newer mappings are in lists with lower
 * numbers. As in a binary counter, a new list is merged with a list that has the same number, and
 * the result gets the next number. So adding n mappings takes O(n log n) steps in total, and a
 * lookup takes O(log n) steps in each of O(log n) lists. */
static bool add_loaded(struct loaded_lists *lists, struct loaded loaded)
{
    struct loaded_list list = {malloc(sizeof loaded), 0};
    size_t number = 0;
    if (list.items == NULL)
        return complain(NO_MEMORY);
    append(&list, loaded);
    lists->last = (struct loaded){0};
    for (; lists->lists[number].items != NULL; number++) {
        struct loaded_list merged;
        bool is_good = merge(&lists->lists[number], &list, &merged);
        free(list.items);
        if (!is_good)
            return false;
        free(lists->lists[number].items);
        lists->lists[number] = (struct loaded_list){0};
        list = merged;
    }
    lists->lists[number] = list;
    if (number >= lists->count)
        lists->count = number + 1;
    return true;
}

/* Whether the path may be that of the profile's file. */
static bool is_own_name(const struct profile *profile, const struct mapping *mapping)
{
    const char *resolved = profile->resolved_path;
    return names_agree(profile->input->name, mapping->path, mapping->path_length) ||
           (resolved != NULL && names_agree(resolved, mapping->path, mapping->path_length));
}

/* Whether the mapping is of the profile's file: by the build ID if both have one, otherwise by the
 * name. Build IDs of other files with the same name are noted. */
static bool is_own_mapping(struct profile *profile, const struct mapping *mapping)
{
    struct build_id id;
    bool has_name = is_own_name(profile, mapping);
    if (profile->id.size == 0 ||
        !build_id_parse(mapping->build_id, mapping->build_id_length, &id) || id.size == 0)
        return has_name;
    if (build_ids_agree(&id, &profile->id)) {
        profile->has_own_id = true;
        return true;
    }
    if (has_name && profile->other_id.size == 0)
        profile->other_id = id;
    return false;
}

void profile_note_build_id(struct profile *profile, const struct mapping *mapping)
{
    (void)is_own_mapping(profile, mapping);
}

/* ---- Other files ---- */

/* The name and the build ID of a library, and its index. */
struct library_key {
    struct build_id id;
    uint64_t index;
    char name[];
};

static int compare_keys(const void *left, const void *right)
{
    const struct library_key *a = left;
    const struct library_key *b = right;
    int order = strcmp(a->name, b->name);
    if (order == 0)
        order = compare_numbers(a->id.size, b->id.size);
    return order != 0 ? order : memcmp(a->id.bytes, b->id.bytes, a->id.size);
}

/* Finds the file of a mapping among the libraries, or adds it. NULL without memory. */
static const struct library_key *find_library(struct profile *profile,
                                              const struct mapping *mapping)
{
    const char *path = mapping->path;
    const char *name = base_name(path, mapping->path_length);
    size_t length = (size_t)(path + mapping->path_length - name);
    struct library_key *key = calloc(1, sizeof *key + length + 1);
    if (key == NULL)
        return NULL;
    memcpy(key->name, name, length);
    (void)build_id_parse(mapping->build_id, mapping->build_id_length, &key->id);
    struct library_key **found = tsearch(key, &profile->libraries_by_name, compare_keys);
    if (found == NULL || *found != key) {
        free(key);
        return found == NULL ? NULL : *found;
    }
    const struct library library = {.name = key->name, .id = key->id};
    key->index = profile->libraries.count;
    if (list_append(&profile->libraries, &library, sizeof library))
        return key;
    tdelete(key, &profile->libraries_by_name, compare_keys);
    free(key);
    return NULL;
}

static bool add_other(struct profile *profile, const struct mapping *mapping)
{
    const struct library_key *key = find_library(profile, mapping);
    if (key == NULL)
        return complain(NO_MEMORY);
    return add_loaded(&profile->others, (struct loaded){.begin = mapping->address,
                                                        .end = mapping->address + mapping->size,
                                                        .base = key->index});
}

bool profile_add_mapping(struct profile *profile, const struct mapping *mapping)
{
    struct loaded loaded = {.begin = mapping->address, .end = mapping->address + mapping->size};
    if (!mapping->is_executable)
        return true;
    if (!is_own_mapping(profile, mapping))
        return !profile->keeps_libraries || add_other(profile, mapping);
    if (profile->has_base ||
        !cairn_object_load_base(profile->input->object, mapping->address, mapping->file_offset,
                                mapping->size, &loaded.base))
        return true;
    if (!list_append(&profile->mappings, &loaded, sizeof loaded))
        return complain(NO_MEMORY);
    if (profile->mappings.count == 1)
        profile->mapped_offset = mapping->file_offset;
    return add_loaded(&profile->loaded, loaded);
}

static void forget_mappings(struct loaded_lists *lists)
{
    for (size_t i = 0; i < lists->count; i++)
        free(lists->lists[i].items);
    *lists = (struct loaded_lists){.count = 0};
}

void profile_begin_input(struct profile *profile)
{
    forget_mappings(&profile->loaded);
    forget_mappings(&profile->others);
    profile->other_id.size = 0;
    profile->has_own_id = false;
}

/* Finds the mapping that contains `address`. If no mapping does, returns NULL and reduces `*gap` to
 * the part around `address` that has no mapping in the list. */
static const struct loaded *find_in_list(const struct loaded_list *list, uint64_t address,
                                         struct loaded *gap)
{
    if (list->count == 0)
        return NULL;
    size_t next = first_above(&list->items->end, sizeof *list->items, list->count, address);
    if (next < list->count && list->items[next].begin <= address)
        return &list->items[next];
    if (next < list->count && list->items[next].begin < gap->end)
        gap->end = list->items[next].begin;
    if (next > 0 && list->items[next - 1].end > gap->begin)
        gap->begin = list->items[next - 1].end;
    return NULL;
}

/* If several mappings contain the address, as when the program ran twice, the newest one counts.
 * The part of it around the address that no newer mapping overlaps is kept. Returns NULL if none
 * contains it. */
static const struct loaded *find_loaded(struct loaded_lists *lists, uint64_t address)
{
    struct loaded *last = &lists->last;
    struct loaded gap = {.begin = 0, .end = UINT64_MAX};
    const struct loaded *found = NULL;
    if (address >= last->begin && address < last->end)
        return last;
    for (size_t i = 0; found == NULL && i < lists->count; i++)
        found = find_in_list(&lists->lists[i], address, &gap);
    if (found == NULL)
        return NULL;
    *last = (struct loaded){
        .begin = found->begin > gap.begin ? found->begin : gap.begin,
        .end = found->end < gap.end ? found->end : gap.end,
        .base = found->base,
    };
    return last;
}

bool profile_file_address(struct profile *profile, uint64_t *address)
{
    if (profile->has_base || profile->loaded.count == 0) {
        *address -= profile->base;
        return true;
    }
    const struct loaded *found = find_loaded(&profile->loaded, *address);
    if (found == NULL)
        return false;
    *address -= found->base;
    return true;
}

/* A mapping with its number, to restore the order after sorting. */
struct numbered {
    uint64_t number;
    struct loaded loaded;
};

static int compare_mappings(const void *left, const void *right)
{
    const struct numbered *a = left;
    const struct numbered *b = right;
    int order = compare_numbers(a->loaded.begin, b->loaded.begin);
    if (order == 0)
        order = compare_numbers(a->loaded.end, b->loaded.end);
    if (order == 0)
        order = compare_numbers(a->loaded.base, b->loaded.base);
    return order != 0 ? order : compare_numbers(a->number, b->number);
}

uint64_t *profile_bases(const struct profile *profile, size_t *count)
{
    const struct loaded *mappings = profile->mappings.items;
    size_t mapping_count = profile->mappings.count;
    struct numbered *list = calloc(mapping_count + 1, sizeof *list);
    uint64_t *bases = calloc(mapping_count + 1, sizeof *bases);
    *count = 0;
    if (list == NULL || bases == NULL) {
        complain(NO_MEMORY);
        free(list);
        free(bases);
        return NULL;
    }
    for (size_t i = 0; i < mapping_count; i++)
        list[i] = (struct numbered){i, mappings[i]};
    qsort(list, mapping_count, sizeof *list, compare_mappings);
    /* Of equal mappings only the first is kept. */
    for (size_t i = 0; i < mapping_count; i++)
        if (*count == 0 ||
            memcmp(&list[*count - 1].loaded, &list[i].loaded, sizeof list[i].loaded) != 0)
            list[(*count)++] = list[i];
    qsort(list, *count, sizeof *list, compare_first_numbers);
    for (size_t i = 0; i < *count; i++)
        bases[i] = list[i].loaded.base;
    free(list);
    return bases;
}

/* ---- Samples ---- */

static struct sampled_place find_other(struct profile *profile, uint64_t address)
{
    const struct loaded *found = find_loaded(&profile->others, address);
    if (found == NULL)
        return (struct sampled_place){.kind = PLACE_ELSEWHERE};
    return (struct sampled_place){.kind = PLACE_LIBRARY, .index = (uint32_t)found->base};
}

/* Converts the address of a frame in a call chain. perf writes the offset in the file instead of
 * the address if the frame is in a file. */
static bool frame_file_address(struct profile *profile, const struct frame_text *text,
                               uint64_t *address)
{
    const struct mapping mapping = {.path = text->file, .path_length = text->file_length};
    uint64_t base;
    if (text->file_length == 0)
        return profile_file_address(profile, address);
    if (!is_own_name(profile, &mapping))
        return false;
    if (profile->has_base || find_loaded(&profile->loaded, *address) != NULL)
        return profile_file_address(profile, address);
    if (cairn_object_load_base(profile->input->object, 0, *address, 1, &base))
        *address = 0 - base;
    return true;
}

/* Limits of a search, in bytes and in blocks. The alignment of a loop is at most as many bytes. */
enum { PADDING_MAX = 64 };

/* Returns the distance from the block to the next one of its range that begins after `address`; 0
 * if no block does. */
static uint64_t distance_to_next(const struct profile *profile, const struct cairn_block *block,
                                 uint64_t address)
{
    struct cairn_block next;
    for (uint32_t i = block->index + 1;
         i <= block->index + PADDING_MAX &&
         cairn_block_table_block(profile->table, block->function, i, &next) &&
         next.range == block->range;
         i++)
        if (next.address > address)
            return next.address - block->address;
    return 0;
}

/* Finds the block whose code executes the no-ops at `address` that align the next block: maps leave
 * them out. */
static bool find_padded_block(const struct profile *profile, uint64_t address,
                              struct last_block *found)
{
    struct cairn_block block;
    uint64_t step = 1;
    while (step < PADDING_MAX && step <= address &&
           !cairn_block_table_find(profile->table, address - step, &block))
        step++;
    if (step == PADDING_MAX || step > address || (block.flags & CAIRN_BBMAP_CAN_FALL_THROUGH) == 0)
        return false;
    uint64_t size = distance_to_next(profile, &block, address);
    *found = (struct last_block){block.address, (uint32_t)size,
                                 profile->first_blocks[block.function] + block.index};
    return size > 0;
}

/* Finds the block at an address of the file. Returns false, and changes nothing, if no block has
 * it.
 */
static bool find_block(const struct profile *profile, uint64_t address, struct last_block *found)
{
    struct cairn_block block;
    struct last_block padded;
    if (cairn_block_table_find(profile->table, address, &block))
        *found = (struct last_block){block.address, block.size,
                                     profile->first_blocks[block.function] + block.index};
    else if (find_padded_block(profile, address, &padded))
        *found = padded;
    else
        return false;
    return true;
}

/* Finds the place of an address of the file. */
static bool find_in_file(const struct profile *profile, struct last_block *last, uint64_t address,
                         struct sampled_place *place)
{
    place->kind = PLACE_BLOCK;
    place->address = address;
    if (address - last->address < last->size || find_block(profile, address, last)) {
        place->index = last->index;
        return true;
    }
    /* Unlike in layout_section, the end of a section is excluded, because samples are not return
     * addresses. */
    const struct code_section *section = layout_section(profile->layout, address);
    place->kind = PLACE_CODE;
    place->index = 0;
    return section != NULL && address - section->address < section->size;
}

struct sampled_place profile_find_place(struct profile *profile, struct last_block *last,
                                        const struct address_line *line, uint64_t distance)
{
    struct frame_text text = parse_frame_text(line);
    uint64_t loaded = line->address - distance;
    uint64_t address = loaded;
    struct sampled_place place;
    bool is_own = frame_file_address(profile, &text, &address) &&
                  find_in_file(profile, last, address, &place);
    return is_own ? place : find_other(profile, loaded);
}

void profile_count_sample(struct profile *profile, struct sampled_place place)
{
    profile->sample_count++;
    if (place.kind == PLACE_BLOCK) {
        profile->counts[place.index]++;
        profile->block_sample_count++;
    } else if (place.kind == PLACE_CODE) {
        profile->code_sample_count++;
    } else if (place.kind == PLACE_LIBRARY) {
        ((struct library *)profile->libraries.items)[place.index].samples++;
    }
}

uint64_t profile_elsewhere_count(const struct profile *profile)
{
    return profile->sample_count - profile->block_sample_count - profile->code_sample_count;
}

double profile_percent(const struct profile *profile, uint64_t samples)
{
    if (profile->sample_count == 0)
        return 0;
    return 100.0 * (double)samples / (double)profile->sample_count;
}

/* ---- Profiles ---- */

bool profile_create(struct profile *profile, const struct input *input, const struct layout *layout,
                    const cairn_block_table *table)
{
    const struct cairn_block_table_counts counts = cairn_block_table_counts(table);
    uint32_t next = 0;
    *profile = (struct profile){.input = input, .layout = layout, .table = table};
    build_id_of_object(input->object, &profile->id);
    profile->resolved_path = realpath(input->name, NULL);
    profile->first_blocks = calloc((size_t)counts.functions + 1, sizeof *profile->first_blocks);
    profile->counts = calloc((size_t)counts.blocks + 1, sizeof *profile->counts);
    if (profile->first_blocks == NULL || profile->counts == NULL)
        return complain("profile: no memory for the counts of %u blocks", counts.blocks);
    for (uint32_t i = 0; i < counts.functions; i++) {
        struct cairn_block_function function = {0};
        cairn_block_table_function(table, i, &function);
        profile->first_blocks[i] = next;
        next += function.block_count;
    }
    profile->first_blocks[counts.functions] = next;
    return true;
}

void profile_release(struct profile *profile)
{
    free(profile->first_blocks);
    free(profile->counts);
    forget_mappings(&profile->loaded);
    forget_mappings(&profile->others);
    tdestroy(profile->libraries_by_name, free);
    list_release(&profile->libraries);
    list_release(&profile->mappings);
    free(profile->resolved_path);
}

const char *profile_function_name(const struct profile *profile, uint64_t address)
{
    return object_symbol(profile->input->object, 0, address);
}

uint8_t profile_block_flags(const struct cairn_block *block)
{
    bool is_tail_call = (block->flags & CAIRN_BBMAP_HAS_TAIL_CALL) != 0;
    return is_tail_call ? block->flags & (uint8_t)~CAIRN_BBMAP_HAS_RETURN : block->flags;
}

/* ---- Ranking ---- */

/* Compares functions. Their numbers are in the order of addresses. */
static int compare_functions(const void *left, const void *right)
{
    const struct hot_function *a = left;
    const struct hot_function *b = right;
    int order = compare_numbers(b->samples, a->samples);
    return order != 0 ? order : compare_numbers(a->index, b->index);
}

static int compare_blocks(const void *left, const void *right)
{
    const struct hot_block *a = left;
    const struct hot_block *b = right;
    int order = compare_numbers(b->samples, a->samples);
    if (order == 0)
        order = compare_numbers(a->address, b->address);
    if (order == 0)
        order = compare_numbers(a->function, b->function);
    return order != 0 ? order : compare_numbers(a->index, b->index);
}

bool ranking_create(struct ranking *ranking, const struct profile *profile)
{
    uint32_t function_count = cairn_block_table_counts(profile->table).functions;
    size_t sampled = 0;
    *ranking = (struct ranking){0};
    for (uint32_t i = 0; i < profile->first_blocks[function_count]; i++)
        sampled += profile->counts[i] > 0;
    size_t sampled_functions = sampled < function_count ? sampled : function_count;
    ranking->functions = calloc(sampled_functions + 1, sizeof *ranking->functions);
    ranking->blocks = calloc(sampled + 1, sizeof *ranking->blocks);
    if (ranking->functions == NULL || ranking->blocks == NULL)
        return complain("profile: no memory for the order of blocks");
    for (uint32_t function = 0; function < function_count; function++) {
        struct hot_function hot = {.index = function};
        uint32_t first = profile->first_blocks[function];
        for (uint32_t i = first; i < profile->first_blocks[function + 1]; i++) {
            struct cairn_block block = {0};
            if (profile->counts[i] == 0)
                continue;
            cairn_block_table_block(profile->table, function, i - first, &block);
            ranking->blocks[ranking->block_count++] = (struct hot_block){
                profile->counts[i], block.address, .function = function, .index = i - first};
            hot.samples += profile->counts[i];
            hot.sampled_blocks++;
        }
        if (hot.samples > 0)
            ranking->functions[ranking->function_count++] = hot;
    }
    qsort(ranking->functions, ranking->function_count, sizeof *ranking->functions,
          compare_functions);
    qsort(ranking->blocks, ranking->block_count, sizeof *ranking->blocks, compare_blocks);
    return true;
}

void ranking_release(struct ranking *ranking)
{
    free(ranking->functions);
    free(ranking->blocks);
}
