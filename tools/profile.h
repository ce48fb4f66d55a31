/*
 * tools/profile.h - cairn profile: samples counted by basic block, the hottest first.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PROFILE_H
#define TOOLS_PROFILE_H

#include "tools/files.h"
#include "tools/layout.h"
#include "tools/output.h"

#include <cairn/block_table.h>

/* Where a process has the file's code: addresses from `begin` up to `end`, which are `base` higher
 * than the file says. */
struct loaded {
    uint64_t begin;
    uint64_t end;
    uint64_t base;
};

/* Mappings by address, of which the last one counts where several hold an address. */
struct loaded_list {
    struct loaded *items; /* in order, without overlaps */
    size_t count;
};

enum { LOADED_LISTS_MAX = 48 };

struct profile {
    const struct input *input;
    const struct layout *layout;
    const cairn_block_table *table;
    uint32_t *first_blocks; /* of each function: its first block's place in `counts`; and the end */
    uint64_t *counts;       /* samples of each block, all functions in order */
    /* Where the file was loaded: as the user says, or as mappings among the samples do. */
    bool has_base;
    uint64_t base;
    struct loaded_list loaded[LOADED_LISTS_MAX]; /* see add_loaded */
    size_t loaded_count;                         /* of lists */
    struct loaded last_loaded;                   /* that held the last sample; at first, nothing */
    struct loaded *mappings;                     /* all of them, in the order in which they came */
    size_t mapping_count;
    size_t mapping_capacity;
    char *resolved_path; /* of the file, without symbolic links; or NULL */
    /* Of all samples. */
    uint64_t sample_count;
    uint64_t block_sample_count; /* in a block */
    uint64_t code_sample_count;  /* in code of the file that no map describes */
    uint64_t caller_count;       /* lines of call chains behind their first, which do not count */
    uint64_t junk_count;         /* lines that cannot be read */
    uint64_t first_junk_line;
};

/* False, with a complaint, without memory. To be released whatever the result. */
bool profile_create(struct profile *profile, const struct input *input, const struct layout *layout,
                    const cairn_block_table *table);
void profile_release(struct profile *profile);

/* Counts what can be read from `descriptor`, to its end; `name` is for complaints. Nothing is kept
 * of a sample. False, with a complaint: reading failed, no memory, or there was no sample. */
bool profile_read(struct profile *profile, int descriptor, const char *name);

/* The bases of the file's mappings, in the order in which the mappings came; of equal mappings only
 * the first counts. To be freed; NULL, with a complaint, without memory. */
uint64_t *profile_bases(const struct profile *profile, size_t *count);

/* Samples that are in no code of the file. */
uint64_t profile_elsewhere_count(const struct profile *profile);

/* Of all samples, in percent. */
double profile_percent(const struct profile *profile, uint64_t samples);

/* ---- The hottest ---- */

struct hot_function {
    uint64_t samples;
    uint32_t index;
    uint32_t sampled_blocks; /* that have samples */
};

struct hot_block {
    uint64_t samples;
    uint64_t address;
    uint32_t function;
    uint32_t index;
};

/* All functions and blocks that have samples, those with the most first, and of equal ones that
 * with the lowest address. */
struct ranking {
    struct hot_function *functions;
    size_t function_count;
    struct hot_block *blocks;
    size_t block_count;
};

/* False, with a complaint, without memory. To be released whatever the result. */
bool ranking_create(struct ranking *ranking, const struct profile *profile);
void ranking_release(struct ranking *ranking);

/* The function's name, or NULL. */
const char *profile_function_name(const struct profile *profile, uint64_t address);

/* ---- What is written ---- */

void write_profile_text(struct output *output, const struct profile *profile,
                        const struct ranking *ranking, size_t limit);
void write_profile_json(struct output *output, const struct profile *profile,
                        const struct ranking *ranking, size_t limit);
/* A picture of one function's blocks, with their heat. False, with a complaint, without memory. */
bool write_profile_svg(struct output *output, const struct profile *profile, uint32_t function);

#endif
