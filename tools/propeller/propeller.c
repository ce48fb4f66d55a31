/*
 * Writing the directives.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/propeller/propeller.h"

#include "tools/cli/save.h"
#include "tools/propeller/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What is written to both files. */
struct directives {
    const struct profile *profile;
    const struct placement *placement;
    const struct function_names *names;
    enum propeller_version version;
    size_t nameless_count; /* functions without a name */
    size_t shared_count;   /* functions that are left out, because others have the same name */
};

/* ---- The version ---- */

/* Reads the version of the first map. */
static bool visit_map(const struct input *input, const struct cairn_object_section *section,
                      void *user)
{
    enum propeller_version *version = user;
    struct cairn_bbmap_function function;
    struct cairn_error error;
    size_t offset = 0;
    (void)input;
    if (section->type != CAIRN_BBMAP_SECTION_TYPE || *version != PROPELLER_BY_MAP ||
        cairn_bbmap_read(&section->contents, CAIRN_BBMAP_VERSIONED, &offset, &function, &error) !=
            CAIRN_OK)
        return true;
    *version = function.version >= 2 ? PROPELLER_V1 : PROPELLER_V0;
    return true;
}

/* Maps of version 2 and later are from LLVM 17 or later, and LLVM 18 and later read version 1 of
 * the directives. */
static enum propeller_version choose_version(const struct profile *profile)
{
    enum propeller_version version = PROPELLER_BY_MAP;
    (void)visit_block_maps(profile->input, visit_map, &version);
    return version == PROPELLER_BY_MAP ? PROPELLER_V0 : version;
}

/* ---- Names ---- */

static uint64_t address_of(const struct directives *directives,
                           const struct placed_function *placed)
{
    struct cairn_block_function function = {.address = 0};
    cairn_block_table_function(directives->profile->table, placed->index, &function);
    return function.address;
}

/* Returns the index after the function's last name, and its first one in `*first`. */
static size_t find_names(const struct directives *directives, const struct placed_function *placed,
                         size_t *first)
{
    const struct function_names *names = directives->names;
    uint64_t address = address_of(directives, placed);
    size_t end = function_names_find(names, address);
    *first = end;
    while (end < names->count && names->items[end].address == address)
        end++;
    return end;
}

static bool is_shared(const struct directives *directives, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        if (directives->names->items[i].is_shared)
            return true;
    return false;
}

/* ---- Files ---- */

/* Writes the function's names and the IDs of its hot blocks. All of them follow each other; the
 * compiler moves the others to another section. */
static void write_function(struct output *output, const struct directives *directives,
                           const struct placed_function *placed, size_t first, size_t end)
{
    bool is_old = directives->version == PROPELLER_V0;
    output_text(output, is_old ? "!" : "f");
    for (size_t i = first; i < end; i++)
        output_format(output, "%s%s", is_old ? (i > first ? "/" : "") : " ",
                      directives->names->items[i].name);
    output_text(output, is_old ? "\n!!" : "\nc");
    for (uint32_t i = 0; i < placed->block_count; i++) {
        struct cairn_block block = {.id = 0};
        cairn_block_table_block(directives->profile->table, placed->index,
                                directives->placement->blocks[placed->first + i], &block);
        output_format(output, is_old && i == 0 ? "%u" : " %u", block.id);
    }
    output_character(output, '\n');
}

static bool write_clusters(struct output *output, void *user)
{
    struct directives *directives = user;
    if (directives->version == PROPELLER_V1)
        output_text(output, "v1\n");
    for (size_t i = 0; i < directives->placement->function_count; i++) {
        const struct placed_function *placed = &directives->placement->functions[i];
        size_t first;
        size_t end = find_names(directives, placed, &first);
        bool is_left_out = is_shared(directives, first, end);
        directives->nameless_count += first == end;
        directives->shared_count += is_left_out;
        if (first < end && !is_left_out)
            write_function(output, directives, placed, first, end);
    }
    return true;
}

/* Each name is written once. Names that several functions have are written for the hottest. */
static bool write_order(struct output *output, void *user)
{
    const struct directives *directives = user;
    for (size_t i = 0; i < directives->placement->function_count; i++) {
        size_t first;
        size_t end = find_names(directives, &directives->placement->functions[i], &first);
        if (first < end && !is_shared(directives, first, end))
            output_format(output, "%s\n", directives->names->items[first].name);
    }
    return true;
}

static bool save(const char *folder, const char *name, write_contents *write,
                 struct directives *directives)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return complain("%s: cannot be written: no memory", folder);
    bool is_good = save_output(path, write, directives);
    free(path);
    return is_good;
}

/* ---- Messages ---- */

static void report(const struct directives *directives)
{
    const char *name = directives->profile->input->name;
    const struct branch_counts *counts = directives->profile->branches;
    if (counts->record_count == 0)
        complain("%s: there are no branches among the samples, so their counts are estimated; "
                 "'perf record -b' and 'perf script -F ip,brstack' give them",
                 name);
    if (counts->broken_count > counts->record_count / 10)
        complain("%s: %llu of %llu branches do not fit the code: the samples may be of another "
                 "build",
                 name, (unsigned long long)counts->broken_count,
                 (unsigned long long)counts->record_count);
    if (counts->dropped_count > 0)
        complain("%s: ignored %llu branches, because there are more than %zu different ones", name,
                 (unsigned long long)counts->dropped_count, counts->edge_limit);
    if (directives->nameless_count + directives->shared_count > 0)
        complain("%s: left out %zu functions without a name and %zu whose name another function "
                 "has, too",
                 name, directives->nameless_count, directives->shared_count);
}

/* ---- The command ---- */

static bool name_functions(struct function_names *names, const struct directives *directives)
{
    size_t count = directives->placement->function_count;
    uint64_t *addresses = calloc(count + 1, sizeof *addresses);
    if (addresses == NULL)
        return complain("profile: no memory for the names of functions");
    for (size_t i = 0; i < count; i++)
        addresses[i] = address_of(directives, &directives->placement->functions[i]);
    qsort(addresses, count, sizeof *addresses, compare_first_numbers);
    bool is_good = function_names_create(names, directives->profile->input, addresses, count);
    free(addresses);
    return is_good;
}

static bool write_placement(const char *folder, const struct profile *profile,
                            const struct placement *placement, enum propeller_version version)
{
    struct function_names names = {.items = NULL};
    struct directives directives = {.profile = profile, .placement = placement, .names = &names};
    directives.version = version == PROPELLER_BY_MAP ? choose_version(profile) : version;
    if (placement->function_count == 0)
        return complain("%s: no sample is in a block, so there is nothing to place",
                        profile->input->name);
    bool is_good = name_functions(&names, &directives);
    if (is_good && mkdir(folder, 0777) != 0 && errno != EEXIST)
        is_good = complain("%s: cannot be created: %s", folder, strerror(errno));
    is_good = is_good && save(folder, "cc_profile.txt", write_clusters, &directives) &&
              save(folder, "ld_profile.txt", write_order, &directives);
    if (is_good)
        report(&directives);
    free(names.items);
    return is_good;
}

bool write_propeller(const char *folder, const struct profile *profile,
                     enum propeller_version version)
{
    struct flow flow;
    struct placement placement;
    bool is_good = flow_create(&flow, profile);
    if (is_good) {
        is_good = placement_create(&placement, profile, &flow) &&
                  write_placement(folder, profile, &placement, version);
        placement_release(&placement);
    }
    flow_release(&flow);
    return is_good;
}
