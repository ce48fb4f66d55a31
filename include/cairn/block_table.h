/*
 * cairn/block_table.h - from a PC to the basic block that it is in.
 *
 * A builder takes the maps of functions (cairn/bbmap.h) from any number of sections, one function
 * after the other or a whole section at once. The table that it makes is one allocation in Cairn's
 * own form; neither the builder nor the sections are needed afterwards. A table never changes, so
 * any number of threads, and signal handlers, may look things up in it.
 *
 *     cairn_block_builder *builder;
 *     cairn_block_table *table;
 *     struct cairn_block block;
 *     cairn_block_builder_create(NULL, &builder, &error);
 *     cairn_block_builder_add_section(builder, &section, encoding, NULL, NULL, &error);
 *     cairn_block_builder_finish(builder, &table, &error);
 *     cairn_block_builder_destroy(builder);
 *     if (cairn_block_table_find(table, pc, &block))
 *         use(&block, pc - block.address);
 *
 * Functions are numbered by address, lowest first, and those with one address in the order in which
 * they were added. Maps may say that a PC is in more than one range, as those of folded functions
 * that are there twice do. It is then in the one that begins first; of several that begin at the
 * same address, in the one that was added first. A range that begins inside another one, or ends
 * beyond the last address, is in no lookup; it is there when the functions are gone through.
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

/** What a table is made from. One thread at a time. */
typedef struct cairn_block_builder cairn_block_builder;
typedef struct cairn_block_table cairn_block_table;

/** A function of a table. A plain value. */
struct cairn_block_function {
    uint64_t address; /**< of its first range, with which it is entered */
    uint32_t index;
    uint32_t range_count;
    uint32_t block_count; /**< blocks of all ranges that its map lists */
    uint16_t features;    /**< enum cairn_bbmap_feature: what its map had */
    uint64_t entry_count; /**< 0 without that feature */
};

/** A block of a table. A plain value. */
struct cairn_block {
    uint64_t address;
    uint32_t size;  /**< bytes */
    uint32_t id;    /**< as in struct cairn_bbmap_block */
    uint8_t flags;  /**< enum cairn_bbmap_flag */
    uint32_t index; /**< of all the function's blocks */
    uint32_t range; /**< number among the function's */
    uint32_t function;
    uint64_t range_address;
    uint64_t function_address;
    uint64_t frequency; /**< of a profile; 0 where there is none */
};

/** What only some maps say of a block; 0 without the feature of its function. */
struct cairn_block_details {
    uint64_t post_link_frequency; /**< as in struct cairn_bbmap_block */
    uint64_t hash;
};

/** `allocator` NULL means malloc; the table is made with it, too. MEMORY, ARGUMENT. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_block_builder_create(
    const struct cairn_allocator *allocator, cairn_block_builder **builder,
    struct cairn_error *error);

/** NULL is allowed. */
CAIRN_API void cairn_block_builder_destroy(cairn_block_builder *builder);

/**
 * Where the range is in the table, whose address `address` stands at byte `offset` of its section.
 * For maps that are not linked, or not at the address that they are loaded at: in relocatable
 * objects addresses count from the begin of a section of code each, and the relocation at `offset`
 * (cairn_object_function) says of which one.
 */
typedef uint64_t cairn_block_place(void *user, size_t offset, uint64_t address);

/**
 * Adds a function, as cairn_bbmap_read gave it. `place` NULL: addresses are as they stand in the
 * section. On failure the builder is as it was. RANGE (a function of 2^24 blocks or more, or
 * more than 2^29 - 2 blocks or ranges in all), CORRUPT (a block begins before the end of the one
 * before it), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_block_builder_add(
    cairn_block_builder *builder, const struct cairn_bbmap_function *function,
    cairn_block_place *place, void *user, struct cairn_error *error);

/**
 * Adds all functions of a section, in its order. Where one cannot be read or added those before it
 * have been, and the error is that one's. As cairn_bbmap_read and cairn_block_builder_add.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_block_builder_add_section(
    cairn_block_builder *builder, const struct cairn_section *section,
    enum cairn_bbmap_encoding encoding, cairn_block_place *place, void *user,
    struct cairn_error *error);

/**
 * Makes a table of what has been added. The builder stays as it is: more may be added, for another
 * table. MEMORY, ARGUMENT; `*table` is then not written.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_block_builder_finish(
    cairn_block_builder *builder, cairn_block_table **table, struct cairn_error *error);

/** NULL is allowed. */
CAIRN_API void cairn_block_table_destroy(cairn_block_table *table);

/* All of the following: no locks, no allocation, async-signal-safe. */

/** How many functions the table has. */
CAIRN_API uint32_t cairn_block_table_function_count(const cairn_block_table *table);
/** How many blocks they have. */
CAIRN_API uint32_t cairn_block_table_block_count(const cairn_block_table *table);
/** How many ranges with blocks are in no lookup, because others have their addresses. */
CAIRN_API uint32_t cairn_block_table_hidden_count(const cairn_block_table *table);
/** Bytes of memory that the table occupies. */
CAIRN_API size_t cairn_block_table_size_bytes(const cairn_block_table *table);

/** The block that `pc` is in: false, and nothing written, between blocks and outside of them. In
 *  O(log n); a million blocks take what the memory takes, mostly one line of it that is in no
 * cache.
 */
CAIRN_API bool cairn_block_table_find(const cairn_block_table *table, uint64_t pc,
                                      struct cairn_block *block);

/**
 * The same for `count` PCs, whose memory is asked for at once: for many, several times as fast
 * where it is in no cache. `blocks[i]` is all zero, also its size, where PC number `i` is in none.
 * Returns how many are in one.
 */
CAIRN_API size_t cairn_block_table_find_all(const cairn_block_table *table, const uint64_t *pcs,
                                            size_t count, struct cairn_block *blocks);

/** Function number `index`; false if there is none. */
CAIRN_API bool cairn_block_table_function(const cairn_block_table *table, uint32_t index,
                                          struct cairn_block_function *function);
/** The first of the functions whose first range begins at `address`; false if there is none. */
CAIRN_API bool cairn_block_table_find_function(const cairn_block_table *table, uint64_t address,
                                               struct cairn_block_function *function);
/** Block number `index` of function number `function`, in the order of its map; false if there is
 *  none. */
CAIRN_API bool cairn_block_table_block(const cairn_block_table *table, uint32_t function,
                                       uint32_t index, struct cairn_block *block);
/** The same block's details. */
CAIRN_API bool cairn_block_table_details(const cairn_block_table *table, uint32_t function,
                                         uint32_t index, struct cairn_block_details *details);

#ifdef __cplusplus
}
#endif
#endif
