/*
 * cairn/bbmap.h - decoding LLVM's basic-block address maps: where the blocks of each function are,
 * and what ends them.
 *
 * clang writes them with -fbasic-block-sections=labels (14 to 18) and -fbasic-block-address-map
 * (19 and later). They are in sections of a separate type, of which a linked program has one with
 * the maps of all its object files, one after the other. Views point into the caller's bytes;
 * nothing is allocated.
 *
 * The usual loop:
 *
 *     struct cairn_bbmap_function function;
 *     struct cairn_bbmap_block block;
 *     size_t offset = 0;
 *     while (offset < section.size) {
 *         if (cairn_bbmap_read(&section, encoding, &offset, &function, &error) != CAIRN_OK)
 *             return complain(&error);
 *         for (bool more = cairn_bbmap_first(&function, &block); more;
 *              more = cairn_bbmap_next(&function, &block))
 *             use(&function, &block);
 *     }
 *
 * Where a function's map is invalid, those before it have been returned.
 *
 * All functions here are thread-safe and async-signal-safe: they touch only their arguments.
 *
 * Sources: LLVM's reviews D85408 (the format), D88199 (the section's type), D121346 (versions,
 * offsets as differences); for IDs, ranges, calls, hashes and profiles llvm/Object/ELFTypes.h of
 * LLVM 22, struct BBAddrMap and struct PGOAnalysisMap, and "Extensions" in LLVM's documents,
 * section "SHT_LLVM_BB_ADDR_MAP".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_BBMAP_H
#define CAIRN_BBMAP_H

#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Types of ELF sections that hold such maps. */
#define CAIRN_BBMAP_SECTION_TYPE_V0 UINT32_C(0x6FFF4C08)
#define CAIRN_BBMAP_SECTION_TYPE UINT32_C(0x6FFF4C0A)

/** How a section is encoded: its type says it. */
enum cairn_bbmap_encoding {
    /** LLVM 13 and 14: no version, offsets from the function's begin. */
    CAIRN_BBMAP_V0 = 0,
    /** LLVM 15 and later: each function has a version (1 to 5 are read) and features. */
    CAIRN_BBMAP_VERSIONED = 1
};

/** What a function's map has in addition to its blocks: bits of `features`. The first five came
 *  with version 2, each of the others with the version that it names. */
enum cairn_bbmap_feature {
    CAIRN_BBMAP_ENTRY_COUNT = 1,
    CAIRN_BBMAP_FREQUENCIES = 2,
    CAIRN_BBMAP_PROBABILITIES = 4,
    /** The blocks are in several ranges of addresses. */
    CAIRN_BBMAP_RANGES = 8,
    /** The map has the number of blocks, and lists none of them. */
    CAIRN_BBMAP_OMITTED_BLOCKS = 16,
    /** Where the calls of each block end; version 3. */
    CAIRN_BBMAP_CALLSITES = 32,
    /** A hash for each block; version 4. */
    CAIRN_BBMAP_HASHES = 64,
    /** Frequencies counted in the linked program, of blocks and of edges, beside FREQUENCIES or
     *  PROBABILITIES; version 5. LLVM 22 leaves those of blocks out where there are no FREQUENCIES:
     *  such maps of its cannot be read, by LLVM neither. */
    CAIRN_BBMAP_POST_LINK = 128
};

/** One function's map, checked from its first to its last byte. */
struct cairn_bbmap_function {
    /** Where it lies in its section, and how long it is, in bytes. */
    size_t offset;
    size_t size;
    /** 0 where the encoding has none. */
    uint8_t version;
    uint16_t features; /**< enum cairn_bbmap_feature */
    /** Of the first range, which begins with the function's entry. */
    uint64_t address;
    uint32_t range_count;
    uint64_t block_count; /**< blocks of all ranges that the map lists */
    /** Blocks of all ranges that the map does not list; 0 without that feature. */
    uint64_t omitted_count;
    /** How often the function was entered when it was profiled; 0 without that feature. */
    uint64_t entry_count;

    /* Cairn's own. */
    const uint8_t *bytes;
    enum cairn_byte_order byte_order;
    size_t ranges_offset;   /* from `bytes` on, like the next one */
    size_t profiles_offset; /* of the first block's; 0: there are none */
};

/** A range of a function's blocks, which follow each other in memory. A plain value. */
struct cairn_bbmap_range {
    uint32_t index;
    uint32_t block_count;   /**< blocks that the map lists */
    uint32_t omitted_count; /**< blocks that it does not list; 0 without that feature */
    uint64_t base;          /**< its address */
    size_t offset;          /**< where that stands in the section */
};

/** What ends a block: bits of its `flags`. */
enum cairn_bbmap_flag {
    CAIRN_BBMAP_HAS_RETURN = 1, /**< of a tail call, too */
    CAIRN_BBMAP_HAS_TAIL_CALL = 2,
    CAIRN_BBMAP_IS_EH_PAD = 4,
    CAIRN_BBMAP_CAN_FALL_THROUGH = 8,
    CAIRN_BBMAP_HAS_INDIRECT_BRANCH = 16
};

/** A block. Plain values; copy it freely. */
struct cairn_bbmap_block {
    /** LLVM's number of the block, which stays the same when blocks are moved; before version 2 its
     *  place in the function's range. */
    uint32_t id;
    uint32_t range;  /**< number of its range */
    uint64_t base;   /**< the range's address */
    uint32_t offset; /**< bytes from the range's address on */
    uint32_t size;   /**< bytes */
    uint8_t flags;   /**< enum cairn_bbmap_flag */
    uint64_t index;  /**< of all the function's blocks */
    /** The following are 0 without their feature. */
    uint32_t callsite_count;
    uint64_t hash;
    uint64_t frequency;           /**< the compiler's */
    uint64_t post_link_frequency; /**< of a profile of the linked program */
    uint64_t successor_count;

    /* Cairn's own. */
    size_t end;        /* where the next block begins, from the function's bytes on */
    uint32_t left;     /* blocks of the range that follow */
    size_t callsites;  /* where they begin */
    size_t successors; /* of the profile, and where the next block's begins */
    size_t next_profile;
};

/** A call in a block. A plain value. */
struct cairn_bbmap_callsite {
    /** Bytes from the block's begin to the end of the call: to its return address. */
    uint32_t end_offset;

    /* Cairn's own. */
    uint32_t left; /* calls of the block that follow */
    size_t next;
};

/** A successor of a block, of a profile. A plain value. */
struct cairn_bbmap_successor {
    uint32_t id;
    /** In units of 2^-31. */
    uint32_t probability;
    /** How often the edge was taken in a profile of the linked program; 0 without that feature. */
    uint64_t post_link_frequency;

    /* Cairn's own. */
    uint64_t left; /* successors of the block that follow */
    size_t next;
};

/**
 * Reads and checks the whole map of the function at `*offset` of the section, and moves `*offset`
 * on to the next one, or to the section's end. Errors: TRUNCATED, VERSION, CORRUPT (an unknown
 * feature or flag, a feature that the version does not have, a number that is too large, no range):
 * the sentence names the function and the block, and `error->offset` is where; `*offset` and
 * `*function` are then unchanged. ARGUMENT if `*offset` is not in the section.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_bbmap_read(const struct cairn_section *section,
                                                              enum cairn_bbmap_encoding encoding,
                                                              size_t *offset,
                                                              struct cairn_bbmap_function *function,
                                                              struct cairn_error *error);

/** The function's first block; false if it has none. */
CAIRN_API bool cairn_bbmap_first(const struct cairn_bbmap_function *function,
                                 struct cairn_bbmap_block *block);
/** Moves on to the next block, of the same range or of the next; false after the last one, and
 *  `*block` is then unchanged. */
CAIRN_API bool cairn_bbmap_next(const struct cairn_bbmap_function *function,
                                struct cairn_bbmap_block *block);

/** The function's first range: each function has one. */
CAIRN_API void cairn_bbmap_first_range(const struct cairn_bbmap_function *function,
                                       struct cairn_bbmap_range *range);
/** Moves on to the next range, also to one without blocks; false after the last one, and `*range`
 *  is then unchanged. Takes as long as going through the range's blocks. */
CAIRN_API bool cairn_bbmap_next_range(const struct cairn_bbmap_function *function,
                                      struct cairn_bbmap_range *range);

/** Returns the block's first call in `*callsite`; false if the map has none. */
CAIRN_API bool cairn_bbmap_first_callsite(const struct cairn_bbmap_function *function,
                                          const struct cairn_bbmap_block *block,
                                          struct cairn_bbmap_callsite *callsite);
/** Moves on to the block's next call; false after the last one, and `*callsite` is then unchanged.
 */
CAIRN_API bool cairn_bbmap_next_callsite(const struct cairn_bbmap_function *function,
                                         struct cairn_bbmap_callsite *callsite);

/** Returns the block's first successor in `*successor`; false if the map has none. */
CAIRN_API bool cairn_bbmap_first_successor(const struct cairn_bbmap_function *function,
                                           const struct cairn_bbmap_block *block,
                                           struct cairn_bbmap_successor *successor);
/** Moves on to the block's next successor; false after the last one, and `*successor` is then
 *  unchanged. */
CAIRN_API bool cairn_bbmap_next_successor(const struct cairn_bbmap_function *function,
                                          struct cairn_bbmap_successor *successor);

#ifdef __cplusplus
}
#endif
#endif
