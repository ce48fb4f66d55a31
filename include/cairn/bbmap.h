/*
 * cairn/bbmap.h - decodes LLVM's basic-block address maps: the addresses of the blocks of each
 * function, and how each block ends.
 *
 *     struct cairn_bbmap_function function;
 *     size_t offset = 0;
 *     while (offset < section.size) {
 *         if (cairn_bbmap_read(&section, encoding, &offset, &function, &error) != CAIRN_OK)
 *             return complain(&error);
 *         struct cairn_bbmap_block block = {0};
 *         while (cairn_bbmap_next(&function, &block))
 *             use(&function, &block);
 *     }
 *
 * Blocks, ranges, calls and successors are their own cursors: if one is all zero, it is before the
 * first one, and its `next` function advances it. After the last one, the function returns false,
 * and the element is unchanged.
 *
 * The decoded structs point into the caller's bytes; nothing is allocated.
 *
 * Threads: every function is thread-safe and async-signal-safe: it accesses only its arguments.
 *
 * See cairn-metadata(7) (doc/metadata.md).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_BBMAP_H
#define CAIRN_BBMAP_H

#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The types of the ELF sections that hold such maps. */
#define CAIRN_BBMAP_SECTION_TYPE_V0 UINT32_C(0x6FFF4C08)
#define CAIRN_BBMAP_SECTION_TYPE UINT32_C(0x6FFF4C0A)

/** The encoding of a section, which its type determines. */
enum cairn_bbmap_encoding {
    /** LLVM 13 and 14, CAIRN_BBMAP_SECTION_TYPE_V0: no version; offsets from the start of the
     *  function. */
    CAIRN_BBMAP_V0 = 0,
    /** LLVM 15 and later, CAIRN_BBMAP_SECTION_TYPE: each function has a version, of which 1 to 5
     *  can be read, and features. */
    CAIRN_BBMAP_VERSIONED = 1
};

/** The optional parts of a function's map: bits of `features`. The first five exist since version
 *  2, the others since the version given there. */
enum cairn_bbmap_feature {
    CAIRN_BBMAP_ENTRY_COUNT = 1,
    CAIRN_BBMAP_FREQUENCIES = 2,
    CAIRN_BBMAP_PROBABILITIES = 4,
    CAIRN_BBMAP_RANGES = 8,          /**< several ranges of addresses */
    CAIRN_BBMAP_OMITTED_BLOCKS = 16, /**< the number of blocks without a list of them */
    CAIRN_BBMAP_CALLSITES = 32,      /**< the ends of the calls in each block; version 3 */
    CAIRN_BBMAP_HASHES = 64,         /**< a hash of each block; version 4 */
    /** Frequencies of blocks and edges that were measured in the linked program, in addition to
     *  CAIRN_BBMAP_FREQUENCIES or CAIRN_BBMAP_PROBABILITIES; version 5. LLVM 22 omits those of
     *  blocks without CAIRN_BBMAP_FREQUENCIES. Neither Cairn nor LLVM can read such maps. */
    CAIRN_BBMAP_POST_LINK = 128
};

/** The map of a function. All of its bytes have been checked. */
struct cairn_bbmap_function {
    size_t offset;     /**< offset of the map in its section, in bytes */
    size_t size;       /**< size of the map in bytes */
    uint8_t version;   /**< 0 if the encoding has no versions */
    uint16_t features; /**< bits of enum cairn_bbmap_feature */
    uint64_t address;  /**< address of the first range, which is the function's entry */
    uint32_t range_count;
    uint64_t block_count;   /**< number of listed blocks, of all ranges */
    uint64_t omitted_count; /**< number of blocks, of all ranges, that are not listed; 0 without
                               CAIRN_BBMAP_OMITTED_BLOCKS */
    uint64_t entry_count;   /**< how often the function was entered during profiling; 0 without
                               CAIRN_BBMAP_ENTRY_COUNT */

    /* Internal. */
    const uint8_t *bytes;
    enum cairn_byte_order byte_order;
    size_t ranges_offset;   /* offset of the ranges in `bytes` */
    size_t profiles_offset; /* offset of the first block's profile in `bytes`; 0: no profiles */
};

/** A range of addresses of a function. A plain value. */
struct cairn_bbmap_range {
    uint32_t index;
    uint32_t block_count;   /**< number of listed blocks */
    uint32_t omitted_count; /**< number of blocks that are not listed; 0 without
                               CAIRN_BBMAP_OMITTED_BLOCKS */
    uint64_t base;          /**< address of the range */
    size_t offset;          /**< offset of that address in the section, in bytes */

    /* Internal. */
    size_t blocks; /* offset of its first block in the function's bytes */
};

/** How a block begins and ends: bits of its `flags`. */
enum cairn_bbmap_flag {
    CAIRN_BBMAP_HAS_RETURN = 1, /**< also set for a tail call */
    CAIRN_BBMAP_HAS_TAIL_CALL = 2,
    CAIRN_BBMAP_IS_EH_PAD = 4,
    CAIRN_BBMAP_CAN_FALL_THROUGH = 8,
    CAIRN_BBMAP_HAS_INDIRECT_BRANCH = 16
};

/** A block. A plain value, which may be copied. */
struct cairn_bbmap_block {
    /** LLVM's number of the block, which does not change when blocks are moved. Before version 2,
     *  the block's number in its range. */
    uint32_t id;
    uint32_t range;  /**< number of the range */
    uint64_t base;   /**< address of the range */
    uint32_t offset; /**< bytes from the start of the range */
    uint32_t size;   /**< size in bytes */
    uint8_t flags;   /**< bits of enum cairn_bbmap_flag */
    uint64_t index;  /**< number of the block in the function */
    /** The following members are 0 without their feature. */
    uint32_t callsite_count;
    uint64_t hash;
    uint64_t frequency;           /**< frequency from the compiler */
    uint64_t post_link_frequency; /**< frequency from a profile of the linked program */
    uint64_t successor_count;

    /* Internal. Offsets are from the start of the function's bytes. */
    size_t end;        /* offset of the next block */
    uint32_t left;     /* number of blocks that follow in the range */
    size_t callsites;  /* offset of the block's calls */
    size_t successors; /* offset of the block's successors in the profile */
    size_t next_profile;
};

/** A call in a block. A plain value. */
struct cairn_bbmap_callsite {
    /** The return address of the call, in bytes from the start of the block. */
    uint32_t end_offset;

    /* Internal. */
    uint32_t left; /* number of calls that follow in the block */
    size_t next;
};

/** A successor of a block in a profile. A plain value. */
struct cairn_bbmap_successor {
    uint32_t id;
    /** The probability of the edge, in units of 2^-31. */
    uint32_t probability;
    /** How often the edge was taken in a profile of the linked program; 0 without
     *  CAIRN_BBMAP_POST_LINK. */
    uint64_t post_link_frequency;

    /* Internal. */
    uint64_t left; /* number of successors that follow in the block */
    size_t next;
};

/**
 * Reads and checks the map of the function at `*offset` of the section, and advances `*offset` to
 * the next map, or to the end of the section.
 *
 * Errors: TRUNCATED, VERSION, CORRUPT (an unknown feature or flag, a feature that the version does
 * not have, a number that is too large, no range). The message names the function and the block,
 * and `error->offset` is the place in the section. ARGUMENT if `*offset` is not in the section.
 * `*offset` and `*function` are unchanged after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_bbmap_read(const struct cairn_section *section,
                                                              enum cairn_bbmap_encoding encoding,
                                                              size_t *offset,
                                                              struct cairn_bbmap_function *function,
                                                              struct cairn_error *error);

/** Advances `*block` to the next block, of the same range or of a following one. Returns false
 *  after the last one, and `*block` is then unchanged. */
CAIRN_API bool cairn_bbmap_next(const struct cairn_bbmap_function *function,
                                struct cairn_bbmap_block *block);

/** Advances `*range` to the next range, which may have no blocks. Takes O(n) time for n blocks in
 *  the range before it. Returns false after the last one, and `*range` is then unchanged. */
CAIRN_API bool cairn_bbmap_next_range(const struct cairn_bbmap_function *function,
                                      struct cairn_bbmap_range *range);

/** Advances `*callsite` to the block's next call. Returns false after the last one, and `*callsite`
 *  is then unchanged. */
CAIRN_API bool cairn_bbmap_next_callsite(const struct cairn_bbmap_function *function,
                                         const struct cairn_bbmap_block *block,
                                         struct cairn_bbmap_callsite *callsite);

/** Advances `*successor` to the block's next successor. Returns false after the last one, and
 *  `*successor` is then unchanged. */
CAIRN_API bool cairn_bbmap_next_successor(const struct cairn_bbmap_function *function,
                                          const struct cairn_bbmap_block *block,
                                          struct cairn_bbmap_successor *successor);

#ifdef __cplusplus
}
#endif
#endif
