/*
 * tools/samples/samples.h - samples counted by basic block, the hottest first.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SAMPLES_SAMPLES_H
#define TOOLS_SAMPLES_SAMPLES_H

#include "tools/read/addresses.h"
#include "tools/read/blocks.h"
#include "tools/read/build_id.h"

/* A range of addresses at which a process has code: of the file, where they are `base` higher than
 * in the file, or of another one, where `base` is the index in `libraries`. */
struct loaded {
    uint64_t begin;
    uint64_t end;
    uint64_t base;
};

/* Mappings by address. Where mappings overlap, the newest one counts. */
struct loaded_list {
    struct loaded *items; /* sorted, without overlaps */
    size_t count;
};

enum { LOADED_LISTS_MAX = 48 };

struct loaded_lists {
    struct loaded_list lists[LOADED_LISTS_MAX]; /* see add_loaded */
    size_t count;                               /* number of lists */
    struct loaded last; /* the mapping that was found last; empty at first */
};

/* Another file that was sampled: a library, another program, or the kernel. */
struct library {
    const char *name; /* without folders */
    struct build_id id;
    uint64_t samples;
};

struct profile {
    const struct input *input;
    const struct layout *layout;
    const cairn_block_table *table;
    uint32_t *first_blocks; /* index in `counts` of each function's first block, followed by the
                               number of blocks */
    uint64_t *counts;       /* samples of each block, in the order of functions */
    /* The load base that the user gave. Without it, mappings among the samples supply it. */
    bool has_base;
    uint64_t base;
    /* The mappings of one input. Those of another input are of other processes. Those of the file
     * are separate and come first, because mappings of other processes can overlap them. */
    struct loaded_lists loaded;
    struct loaded_lists others;
    struct list mappings;    /* the file's, of all inputs, struct loaded, in the order in which they
                                were read */
    uint64_t mapped_offset;  /* file offset of the first one */
    bool keeps_libraries;    /* whether samples in other files are counted by file */
    struct list libraries;   /* struct library, in the order in which they were read */
    void *libraries_by_name; /* tree of struct library_key */
    struct build_id id;      /* of the file; its size is 0 if the file has none */
    /* What the build IDs in the input are. */
    bool has_own_id;                /* whether one is that of the file */
    struct build_id other_id;       /* the first one of another file with the same name */
    struct branch_counts *branches; /* counts of branches, or NULL if they are not needed */
    struct stacks *stacks;          /* samples with their callers, or NULL if they are not needed */
    char *resolved_path;            /* the file's path without symbolic links, or NULL */
    /* Numbers of samples, and of lines that are not counted as samples. */
    uint64_t sample_count;
    uint64_t block_sample_count; /* samples in a block */
    uint64_t code_sample_count;  /* samples in code of the file for which there is no map */
    uint64_t caller_count; /* lines of call chains after the first one, which are not counted */
    uint64_t junk_count;   /* lines that cannot be parsed */
    uint64_t first_junk_line;
    const char *first_junk_name; /* the input with that line */
};

/* Creates the profile. False without memory, after an error message. The caller releases it in
 * either case. */
bool profile_create(struct profile *profile, const struct input *input, const struct layout *layout,
                    const cairn_block_table *table);
void profile_release(struct profile *profile);

/* ---- Inputs ---- */

/* Counts all samples of the inputs at these paths, of which "-" is standard input. Single samples
 * are not kept. False, after an error message: if an input cannot be read, if one has samples of
 * another build of the file, if there is no sample, or without memory. */
bool profile_read(struct profile *profile, const char *const *paths, size_t count);

/* Returns the input's name for error messages. */
const char *profile_input_name(const char *path);

/* Returns the part after the last slash of a path of `length` bytes. */
const char *base_name(const char *path, size_t length);

/* ---- Counting ---- */

/* The block that was found last, with executed padding after it. Empty at first. */
struct last_block {
    uint64_t address;
    uint32_t size;
    uint32_t index; /* in the profile's order */
};

/* Begins an input: the mappings and build IDs of the one before are forgotten. */
void profile_begin_input(struct profile *profile);

/* Adds a mapping, if it is one of the file's. False without memory, after an error message. */
bool profile_add_mapping(struct profile *profile, const struct mapping *mapping);

/* Notes the build ID of a file in the input. */
void profile_note_build_id(struct profile *profile, const struct mapping *mapping);

/* Converts an address in a process to an address of the file. False if it is in none of the file's
 * mappings. */
bool profile_file_address(struct profile *profile, uint64_t *address);

/* Where an address is. */
enum place_kind { PLACE_ELSEWHERE, PLACE_LIBRARY, PLACE_CODE, PLACE_BLOCK };

struct sampled_place {
    enum place_kind kind;
    uint32_t index;   /* of the library, or of the block in the profile's order */
    uint64_t address; /* in the file, unless it is elsewhere */
};

/* Finds the place of a line's address less `distance`. */
struct sampled_place profile_find_place(struct profile *profile, struct last_block *last,
                                        const struct address_line *line, uint64_t distance);

/* Counts a sample at a place. */
void profile_count_sample(struct profile *profile, struct sampled_place place);

/* ---- Totals ---- */

/* Returns the load bases of the file's mappings, in the order in which the mappings were read and
 * without repetitions of equal mappings. The caller frees them. NULL without memory, after an error
 * message. */
uint64_t *profile_bases(const struct profile *profile, size_t *count);

/* Returns the number of samples outside the file's code. */
uint64_t profile_elsewhere_count(const struct profile *profile);

/* Returns `samples` as a percentage of all samples. */
double profile_percent(const struct profile *profile, uint64_t samples);

/* ---- Ranking ---- */

struct hot_function {
    uint64_t samples;
    uint32_t index;
    uint32_t sampled_blocks; /* number of blocks with samples */
};

struct hot_block {
    uint64_t samples;
    uint64_t address;
    uint32_t function;
    uint32_t index;
};

/* All functions and blocks that have samples, sorted by samples in descending order, then by
 * address. */
struct ranking {
    struct hot_function *functions;
    size_t function_count;
    struct hot_block *blocks;
    size_t block_count;
};

/* Creates the ranking. False without memory, after an error message. The caller releases it in
 * either case. */
bool ranking_create(struct ranking *ranking, const struct profile *profile);
void ranking_release(struct ranking *ranking);

/* Returns the block's flags without HAS_RETURN if it ends in a tail call, for which LLVM sets that
 * flag, too. */
uint8_t profile_block_flags(const struct cairn_block *block);

/* Returns the function's name, or NULL. */
const char *profile_function_name(const struct profile *profile, uint64_t address);

#endif
