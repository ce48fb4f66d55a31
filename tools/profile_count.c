/*
 * Counting samples. Hot blocks come again and again, so the block of the last sample is looked at
 * first.
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

/* ---- Where the file was loaded ---- */

static const char *last_part(const char *path, size_t length, size_t *part_length)
{
    const char *slash = length == 0 ? NULL : memrchr(path, '/', length);
    const char *part = slash == NULL ? path : slash + 1;
    *part_length = length - (size_t)(part - path);
    return part;
}

/* Files are told by their last names only: the program may have run somewhere else. */
static bool names_agree(const char *path, const char *other, size_t other_length)
{
    size_t length;
    const char *part = last_part(path, strlen(path), &length);
    size_t other_part_length;
    const char *other_part = last_part(other, other_length, &other_part_length);
    return length == other_part_length && memcmp(part, other_part, length) == 0;
}

static bool is_file_mapped(const struct input *input, const struct mapping *mapping)
{
    if (names_agree(input->name, mapping->path, mapping->path_length))
        return true;
    char *resolved = realpath(input->name, NULL);
    bool agree = resolved != NULL && names_agree(resolved, mapping->path, mapping->path_length);
    free(resolved);
    return agree;
}

static bool add_loaded(struct profile *profile, struct loaded loaded)
{
    if (profile->loaded_count == profile->loaded_capacity) {
        size_t capacity = profile->loaded_capacity * 2 + 4;
        struct loaded *grown = realloc(profile->loaded, capacity * sizeof *grown);
        if (grown == NULL) {
            complain("profile: no memory for mappings");
            return false;
        }
        profile->loaded = grown;
        profile->loaded_capacity = capacity;
    }
    profile->loaded[profile->loaded_count++] = loaded;
    return true;
}

static bool is_known(const struct profile *profile, const struct loaded *loaded)
{
    for (size_t i = 0; i < profile->loaded_count; i++)
        if (memcmp(&profile->loaded[i], loaded, sizeof *loaded) == 0)
            return true;
    return false;
}

static bool take_mapping(struct profile *profile, const struct mapping *mapping)
{
    struct loaded loaded = {.begin = mapping->address, .end = mapping->address + mapping->size};
    if (profile->has_base || !mapping->is_executable || !is_file_mapped(profile->input, mapping))
        return true;
    if (!cairn_object_load_base(profile->input->object, mapping->address, mapping->file_offset,
                                mapping->size, &loaded.base))
        return true;
    return is_known(profile, &loaded) || add_loaded(profile, loaded);
}

/* The address as the file has it; false: it is in none of the file's mappings. Of several that
 * hold it, as when a program ran again, the last one counts. */
static bool find_file_address(const struct profile *profile, uint64_t *address)
{
    if (profile->has_base || profile->loaded_count == 0) {
        *address -= profile->base;
        return true;
    }
    for (size_t i = profile->loaded_count; i-- > 0;) {
        const struct loaded *loaded = &profile->loaded[i];
        if (*address < loaded->begin || *address >= loaded->end)
            continue;
        *address -= loaded->base;
        return true;
    }
    return false;
}

/* ---- Samples ---- */

/* The block that was found last; no address is in it at first. */
struct last_block {
    uint64_t address;
    uint32_t size;
    uint64_t *count;
};

/* Not, as layout_section has it, also right behind it: samples are no return addresses. */
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

/* Complains where nothing could be read. */
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

/* ---- What is counted ---- */

bool profile_create(struct profile *profile, const struct input *input, const struct layout *layout,
                    const cairn_block_table *table)
{
    uint32_t function_count = cairn_block_table_function_count(table);
    uint32_t next = 0;
    *profile = (struct profile){.input = input, .layout = layout, .table = table};
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
    free(profile->loaded);
}

const char *profile_function_name(const struct profile *profile, uint64_t address)
{
    return cairn_object_symbol(profile->input->object, 0, address);
}
