/*
 * Counting samples. The block of the last sample is tried first, because samples in hot blocks
 * often follow one another.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/addresses.h"
#include "tools/command.h"
#include "tools/profile.h"
#include "tools/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Load addresses ---- */

static const char *last_part(const char *path, size_t length, size_t *part_length)
{
    const char *slash = length == 0 ? NULL : memrchr(path, '/', length);
    const char *part = slash == NULL ? path : slash + 1;
    *part_length = length - (size_t)(part - path);
    return part;
}

/* Whether two paths have the same file name. Directories are ignored, because the program may have
 * run on another machine. */
static bool names_agree(const char *path, const char *other, size_t other_length)
{
    size_t length;
    const char *part = last_part(path, strlen(path), &length);
    size_t other_part_length;
    const char *other_part = last_part(other, other_length, &other_part_length);
    return length == other_part_length && memcmp(part, other_part, length) == 0;
}

static bool is_file_mapped(const struct profile *profile, const struct mapping *mapping)
{
    return names_agree(profile->input->name, mapping->path, mapping->path_length) ||
           (profile->resolved_path != NULL &&
            names_agree(profile->resolved_path, mapping->path, mapping->path_length));
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
    if (merged->items == NULL) {
        complain("profile: no memory for mappings");
        return false;
    }
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
static bool add_loaded(struct profile *profile, struct loaded loaded)
{
    struct loaded_list list = {malloc(sizeof loaded), 0};
    size_t number = 0;
    if (list.items == NULL) {
        complain("profile: no memory for mappings");
        return false;
    }
    append(&list, loaded);
    profile->last_loaded = (struct loaded){0};
    for (; profile->loaded[number].items != NULL; number++) {
        struct loaded_list merged;
        bool is_good = merge(&profile->loaded[number], &list, &merged);
        free(list.items);
        if (!is_good)
            return false;
        free(profile->loaded[number].items);
        profile->loaded[number] = (struct loaded_list){0};
        list = merged;
    }
    profile->loaded[number] = list;
    if (number >= profile->loaded_count)
        profile->loaded_count = number + 1;
    return true;
}

static bool keep_mapping(struct profile *profile, struct loaded loaded)
{
    if (profile->mapping_count == profile->mapping_capacity) {
        size_t capacity = profile->mapping_capacity * 2 + 4;
        struct loaded *grown = realloc(profile->mappings, capacity * sizeof *grown);
        if (grown == NULL) {
            complain("profile: no memory for mappings");
            return false;
        }
        profile->mappings = grown;
        profile->mapping_capacity = capacity;
    }
    profile->mappings[profile->mapping_count++] = loaded;
    return true;
}

static bool take_mapping(struct profile *profile, const struct mapping *mapping)
{
    struct loaded loaded = {.begin = mapping->address, .end = mapping->address + mapping->size};
    if (profile->has_base || !mapping->is_executable || !is_file_mapped(profile, mapping))
        return true;
    if (!cairn_object_load_base(profile->input->object, mapping->address, mapping->file_offset,
                                mapping->size, &loaded.base))
        return true;
    return keep_mapping(profile, loaded) && add_loaded(profile, loaded);
}

/* Finds the mapping that contains `address`. If no mapping does, returns NULL and reduces `*gap` to
 * the part around `address` that has no mapping in the list. */
static const struct loaded *find_in_list(const struct loaded_list *list, uint64_t address,
                                         struct loaded *gap)
{
    size_t low = 0;
    size_t high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < list->count && list->items[low].begin <= address)
        return &list->items[low];
    if (low < list->count && list->items[low].begin < gap->end)
        gap->end = list->items[low].begin;
    if (low > 0 && list->items[low - 1].end > gap->begin)
        gap->begin = list->items[low - 1].end;
    return NULL;
}

/* Finds the newest mapping that contains `address`. Keeps the part of it around `address` that no
 * newer mapping overlaps. */
static bool find_loaded(struct profile *profile, uint64_t address)
{
    struct loaded gap = {.begin = 0, .end = UINT64_MAX};
    for (size_t i = 0; i < profile->loaded_count; i++) {
        const struct loaded *found = find_in_list(&profile->loaded[i], address, &gap);
        if (found == NULL)
            continue;
        profile->last_loaded = (struct loaded){
            .begin = found->begin > gap.begin ? found->begin : gap.begin,
            .end = found->end < gap.end ? found->end : gap.end,
            .base = found->base,
        };
        return true;
    }
    return false;
}

/* Converts an address to an address of the file. False if it is in none of the file's mappings. If
 * several mappings contain it, as when the program ran twice, the newest one counts. */
static bool find_file_address(struct profile *profile, uint64_t *address)
{
    if (profile->has_base || profile->loaded_count == 0) {
        *address -= profile->base;
        return true;
    }
    const struct loaded *last = &profile->last_loaded;
    if ((*address < last->begin || *address >= last->end) && !find_loaded(profile, *address))
        return false;
    *address -= last->base;
    return true;
}

/* A mapping with its number, to restore the order after sorting. */
struct numbered {
    struct loaded loaded;
    size_t number;
};

static int compare_mappings(const void *left, const void *right)
{
    const struct numbered *a = left;
    const struct numbered *b = right;
    if (a->loaded.begin != b->loaded.begin)
        return a->loaded.begin < b->loaded.begin ? -1 : 1;
    if (a->loaded.end != b->loaded.end)
        return a->loaded.end < b->loaded.end ? -1 : 1;
    if (a->loaded.base != b->loaded.base)
        return a->loaded.base < b->loaded.base ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int compare_numbers(const void *left, const void *right)
{
    const struct numbered *a = left;
    const struct numbered *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* Removes all but the first of equal mappings. Returns the number of mappings that remain. */
static size_t drop_equal(struct numbered *list, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 ||
            memcmp(&list[kept - 1].loaded, &list[i].loaded, sizeof list[i].loaded) != 0)
            list[kept++] = list[i];
    return kept;
}

uint64_t *profile_bases(const struct profile *profile, size_t *count)
{
    struct numbered *list = calloc(profile->mapping_count + 1, sizeof *list);
    uint64_t *bases = calloc(profile->mapping_count + 1, sizeof *bases);
    if (list == NULL || bases == NULL) {
        complain("profile: no memory for mappings");
        free(list);
        free(bases);
        return NULL;
    }
    for (size_t i = 0; i < profile->mapping_count; i++)
        list[i] = (struct numbered){profile->mappings[i], i};
    qsort(list, profile->mapping_count, sizeof *list, compare_mappings);
    *count = drop_equal(list, profile->mapping_count);
    qsort(list, *count, sizeof *list, compare_numbers);
    for (size_t i = 0; i < *count; i++)
        bases[i] = list[i].loaded.base;
    free(list);
    return bases;
}

/* ---- Samples ---- */

/* The block that was found last. Empty at first. */
struct last_block {
    uint64_t address;
    uint32_t size;
    uint64_t *count;
};

/* Whether the address is in code. Unlike in layout_section, the end of a section is excluded,
 * because samples are not return addresses. */
static bool is_code(const struct profile *profile, uint64_t address)
{
    const struct code_section *section = layout_section(profile->layout, address);
    return section != NULL && address - section->address < section->size;
}

static void count_sample(struct profile *profile, struct last_block *last, uint64_t address)
{
    struct cairn_block block;
    profile->sample_count++;
    if (!find_file_address(profile, &address))
        return;
    if (address - last->address < last->size) {
        ++*last->count;
    } else if (cairn_block_table_find(profile->table, address, &block)) {
        last->address = block.address;
        last->size = block.size;
        last->count = &profile->counts[profile->first_blocks[block.function] + block.index];
        ++*last->count;
    } else {
        profile->code_sample_count += is_code(profile, address);
        return;
    }
    profile->block_sample_count++;
}

static void note_junk(struct profile *profile, uint64_t line_number)
{
    if (profile->junk_count++ == 0)
        profile->first_junk_line = line_number;
}

static bool read_lines(struct profile *profile, struct line_reader *reader,
                       struct progress *progress)
{
    struct last_block last = {0};
    struct address_line line;
    const char *text;
    size_t length;
    bool was_frame = false;
    while (line_reader_next(reader, &text, &length)) {
        parse_address_line(text, length, &line);
        bool is_address = line.kind == ADDRESS_LINE_ADDRESS;
        bool is_caller = is_address && line.is_frame && was_frame;
        was_frame = is_address && line.is_frame;
        if (is_caller)
            profile->caller_count++;
        else if (is_address)
            count_sample(profile, &last, line.address);
        else if (line.kind == ADDRESS_LINE_JUNK)
            note_junk(profile, reader->line_number);
        else if (line.kind == ADDRESS_LINE_MAPPING && !take_mapping(profile, &line.mapping))
            return false;
        progress_move(progress, progress->total > 0 ? reader->bytes_read : profile->sample_count);
    }
    return true;
}

static uint64_t size_of(int descriptor)
{
    struct stat status;
    bool is_file = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    return is_file ? (uint64_t)status.st_size : 0;
}

/* Prints an error message if no sample could be read. */
static bool check_samples(const struct profile *profile, const char *name)
{
    if (profile->sample_count > 0)
        return true;
    if (profile->junk_count > 0)
        complain("%s: there is no address in it, nor in line %llu, which is the first that says "
                 "anything: 'perf script -F ip' writes what is read here, and so does whatever "
                 "prints an address a line in hexadecimal",
                 name, (unsigned long long)profile->first_junk_line);
    else
        complain("%s: there are no samples in it", name);
    return false;
}

bool profile_read(struct profile *profile, int descriptor, const char *name)
{
    static struct line_reader reader;
    struct progress progress;
    uint64_t total = size_of(descriptor);
    line_reader_open(&reader, descriptor);
    progress_begin(&progress, total > 0 ? "bytes" : "samples", total);
    bool is_good = read_lines(profile, &reader, &progress);
    progress_end(&progress);
    if (!is_good)
        return false;
    if (reader.system_error != 0) {
        complain("%s: cannot be read: %s", name, strerror(reader.system_error));
        return false;
    }
    return check_samples(profile, name);
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
    uint32_t function_count = cairn_block_table_function_count(table);
    uint32_t next = 0;
    *profile = (struct profile){.input = input, .layout = layout, .table = table};
    profile->resolved_path = realpath(input->name, NULL);
    profile->first_blocks = calloc((size_t)function_count + 1, sizeof *profile->first_blocks);
    profile->counts =
        calloc((size_t)cairn_block_table_block_count(table) + 1, sizeof *profile->counts);
    if (profile->first_blocks == NULL || profile->counts == NULL) {
        complain("profile: no memory for the counts of %u blocks",
                 cairn_block_table_block_count(table));
        return false;
    }
    for (uint32_t i = 0; i < function_count; i++) {
        struct cairn_block_function function = {0};
        cairn_block_table_function(table, i, &function);
        profile->first_blocks[i] = next;
        next += function.block_count;
    }
    profile->first_blocks[function_count] = next;
    return true;
}

void profile_release(struct profile *profile)
{
    free(profile->first_blocks);
    free(profile->counts);
    for (size_t i = 0; i < profile->loaded_count; i++)
        free(profile->loaded[i].items);
    free(profile->mappings);
    free(profile->resolved_path);
}

const char *profile_function_name(const struct profile *profile, uint64_t address)
{
    return cairn_object_symbol(profile->input->object, 0, address);
}
