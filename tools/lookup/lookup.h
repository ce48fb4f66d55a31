/*
 * tools/lookup/lookup.h - cairn lookup: what an object's sections contain about addresses of its
 * code.
 *
 * All sections are read once, into tables by address. Addresses are those of the layout
 * (tools/read/layout.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LOOKUP_LOOKUP_H
#define TOOLS_LOOKUP_LOOKUP_H

#include "tools/lookup/function_sections.h"
#include "tools/lookup/lines.h"
#include "tools/read/layout.h"
#include "tools/read/pcsection_entries.h"
#include "tools/read/sanmd.h"

#include <cairn/block_table.h>
#include <cairn/fault_table.h>
#include <cairn/pc_table.h>
#include <cairn/table.h>

/* The handler of a fault, and the number of the fault in its table. */
struct handler {
    uint64_t address; /* first, for first_above */
    uint32_t fault;
};

/* Tables of an object. A table is NULL if the object has no such section. */
struct tables {
    const struct input *input;
    struct layout layout;
    cairn_block_table *blocks;
    cairn_table *records;
    cairn_fault_table *faults;
    struct handler *handlers; /* of all faults, sorted by address */
    uint32_t handler_count;
    cairn_pc_table *entries;
    struct list entry_sections;  /* items are struct cairn_pc_table_section, of `entries` */
    struct sanmd_contents sanmd; /* the addresses are those of the layout, and sections are 0 */
    struct list stack_sizes;     /* items are struct cairn_stack_size, sorted by address */
    struct source_lines lines;
    struct list coverage; /* items are struct cairn_sancov_point, sorted by address */
};

/* Reads all sections. False if one is invalid, after an error message; all other tables are then
 * complete. The caller releases `tables` in either case. */
bool tables_read(const struct input *input, const struct wanted_sections *wanted,
                 struct tables *tables);
void tables_release(struct tables *tables);

/* An address to look up. */
struct target {
    uint64_t address; /* the address in the layout */
    uint64_t loaded;  /* the address in the process, which is `address` plus --base */
};

enum { TARGET_COMPLAINT_BYTES = 256 };

/* Finds the target that a word names: an address, SECTION:ADDRESS, SECTION+OFFSET, FUNCTION or
 * FUNCTION+OFFSET, with hexadecimal numbers. `base` is subtracted from addresses. False with the
 * reason in `complaint`, which has TARGET_COMPLAINT_BYTES bytes. */
bool find_target(const struct tables *tables, uint64_t base, const char *word,
                 struct target *target, char *complaint);

/* How many records, handled faults, coverage points and PC entries an answer has at most, each.
 * Many questions may be about one address, and all entries of a file, too. */
enum { LOOKUP_ITEMS_MAX = 64 };

/* How many locations, and how many live-outs, all records of an answer have together. */
enum { LOOKUP_VALUES_MAX = 256 };

/* What is known about a target. */
struct answer {
    const struct tables *tables;
    struct target target;
    struct place place;
    bool has_function;
    struct cairn_object_function function; /* its `entry` is an address as in `place` */
    bool has_line;
    struct source_line line; /* of the source */
    bool has_block;
    struct cairn_block block;
    unsigned block_features; /* enum cairn_bbmap_feature */
    struct cairn_block_details block_details;
    bool has_frame;
    uint64_t stack_size;                           /* of the frame */
    const struct cairn_stack_size *declared_frame; /* entry of .stack_sizes, or NULL */
    struct cairn_record record; /* first of `record_count` consecutive records at the address */
    uint32_t record_count;
    struct cairn_record call; /* record of the patch point whose call returns to the address */
    bool has_call;
    struct cairn_fault_entry fault; /* fault of the instruction at the address */
    bool has_fault;
    const struct handler
        *handled; /* first of `handled_count` faults whose handler is the address */
    size_t handled_count;
    const struct cairn_sanmd_entry *covered; /* function that contains the address; or NULL */
    uint64_t covered_address;                /* of this function in the layout */
    bool is_atomic;
    const struct cairn_sancov_point
        *points; /* first of `point_count` coverage points at the address */
    size_t point_count;
    struct cairn_pc_table_entry entries[LOOKUP_ITEMS_MAX];
    size_t entry_count; /* number of all entries, of which `entries` has the first */
};

void find_answer(const struct tables *tables, const struct target *target, struct answer *answer);

/* `has_base` is whether --base was given. */
void write_answer_text(struct output *output, const struct answer *answer, bool has_base);
void write_answer_json(struct json *json, const struct answer *answer, bool has_base);

#endif
