/*
 * cairn/block_table.h - a lookup table from an address (PC) to its basic block.
 *
 * A builder collects the maps of functions (cairn/bbmap.h) from any number of sections. A table is
 * one allocation, and independent of the builder and the sections.
 *
 *     cairn_block_builder *builder;
 *     cairn_block_table *table;
 *     struct cairn_block block;
 *     cairn_block_builder_create(NULL, &builder, &error);
 *     cairn_block_builder_add(builder, &section, encoding, NULL, NULL, &error);
 *     cairn_block_builder_finish(builder, &table, &error);
 *     cairn_block_builder_destroy(builder);
 *     if (cairn_block_table_find(table, pc, &block))
 *         use(&block, pc - block.address);
 *
 * Functions are numbered in order of address; functions at the same address are numbered in the
 * order in which they were added.
 *
 * Ranges may overlap, for example if identical functions were folded and the map of each still
 * exists. A lookup then finds the range that begins first; of ranges that begin at the same
 * address, the one that was added first. Lookups do not find a range that begins inside another
 * range, or that ends past the last address. Functions and blocks by number include it.
 *
 * Threads: a builder must be used by one thread at a time, and not by signal handlers. A table
 * never changes, so any number of threads and signal handlers may query it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_BLOCK_TABLE_H
#define CAIRN_BLOCK_TABLE_H

#include <cairn/allocator.h>
#include <cairn/bbmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A builder of tables. */
typedef struct cairn_block_builder cairn_block_builder;
/** A table, which never changes. */
typedef struct cairn_block_table cairn_block_table;

/** A function of a table. A plain value. */
struct cairn_block_function {
    uint64_t address; /**< address of the first range, which is the function's entry */
    uint32_t index;   /**< number of the function in the table */
    uint32_t range_count;
    uint32_t block_count; /**< number of listed blocks, of all ranges */
    uint16_t features;    /**< features of the map: bits of enum cairn_bbmap_feature */
    uint64_t entry_count; /**< 0 without CAIRN_BBMAP_ENTRY_COUNT */
};

/** A block of a table. A plain value. */
struct cairn_block {
    uint64_t address;
    uint32_t size;     /**< size in bytes */
    uint32_t id;       /**< as in struct cairn_bbmap_block */
    uint8_t flags;     /**< bits of enum cairn_bbmap_flag */
    uint32_t index;    /**< number of the block in the function */
    uint32_t range;    /**< number of the range in the function */
    uint32_t function; /**< number of the function in the table */
    uint64_t range_address;
    uint64_t function_address;
    uint64_t frequency; /**< 0 without a profile */
};

/** Parts of a block that only some maps have; 0 without their feature. */
struct cairn_block_details {
    uint64_t post_link_frequency; /**< as in struct cairn_bbmap_block */
    uint64_t hash;
};

/** Creates a builder, which the caller owns. The builder and its tables are allocated with
 *  `allocator`; NULL means malloc. Errors: MEMORY, ARGUMENT. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_block_builder_create(
    const struct cairn_allocator *allocator, cairn_block_builder **builder,
    struct cairn_error *error);

/** Destroys a builder, which may be NULL. Its tables remain. */
CAIRN_API void cairn_block_builder_destroy(cairn_block_builder *builder);

/**
 * Returns the address in the table of a range whose address in the map is `address`, at byte
 * `offset` of the section. It is needed for maps that are not linked, or not loaded at their linked
 * address. In relocatable objects, `address` is an offset from the start of a section of code,
 * which the relocation at `offset` identifies (cairn_object_function).
 */
typedef uint64_t cairn_block_place(void *user, size_t offset, uint64_t address);

/**
 * Adds all functions of a section, in its order. If `place` is NULL, addresses are those of the
 * maps.
 *
 * Errors: as cairn_bbmap_read; RANGE (a function of 2^24 blocks or more, or more than 2^29 - 2
 * blocks or ranges in all), CORRUPT (a block begins before the end of the previous one), MEMORY,
 * ARGUMENT. After an error, the functions before the one that failed have been added.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_block_builder_add(
    cairn_block_builder *builder, const struct cairn_section *section,
    enum cairn_bbmap_encoding encoding, cairn_block_place *place, void *user,
    struct cairn_error *error);

/**
 * Builds a table of all functions that were added. The caller owns `*table`. The builder is
 * unchanged: more functions may be added for another table. Errors: MEMORY, ARGUMENT. After an
 * error, `*table` is not written.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_block_builder_finish(
    cairn_block_builder *builder, cairn_block_table **table, struct cairn_error *error);

/** Destroys a table, which may be NULL.
 *
 *  Threads: no thread may be using the table. Signal handlers must not call this. */
CAIRN_API void cairn_block_table_destroy(cairn_block_table *table);

/* Threads: every function that follows is thread-safe and async-signal-safe, takes no locks, and
 * allocates nothing. */

/** The size of a table. */
struct cairn_block_table_counts {
    uint32_t functions;
    uint32_t blocks;        /**< blocks of all functions */
    uint32_t hidden_ranges; /**< ranges with blocks that no lookup finds, because of overlaps */
    size_t size_bytes;      /**< size of the table in memory */
};
/** Returns the size of the table. */
CAIRN_API struct cairn_block_table_counts cairn_block_table_counts(const cairn_block_table *table);

/** Finds the block that contains `pc`. Returns false, and writes nothing, if no block does. Takes
 *  O(log n) time; with a million blocks, this is mostly the time of one cache miss. */
CAIRN_API bool cairn_block_table_find(const cairn_block_table *table, uint64_t pc,
                                      struct cairn_block *block);

/** Returns function number `index` in `*function`; false if `index` is too large. */
CAIRN_API bool cairn_block_table_function(const cairn_block_table *table, uint32_t index,
                                          struct cairn_block_function *function);
/** Returns block number `index` of function number `function`, in the order of its map, in
 * `*block`; false if there is no such block. */
CAIRN_API bool cairn_block_table_block(const cairn_block_table *table, uint32_t function,
                                       uint32_t index, struct cairn_block *block);
/** Returns the details of block number `index` of function number `function` in `*details`; false
 *  if there is no such block. */
CAIRN_API bool cairn_block_table_details(const cairn_block_table *table, uint32_t function,
                                         uint32_t index, struct cairn_block_details *details);

#ifdef __cplusplus
}
#endif
#endif
