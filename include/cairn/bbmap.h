/*
 * cairn/bbmap.h - decoding LLVM's basic-block address maps: where the blocks of each function are,
 * and what ends them.
 *
 * clang writes them with -fbasic-block-sections=labels (14 to 18) and -fbasic-block-address-map
 * (19). They are in sections of a type of their own, of which a linked program has one with the
 * maps of all its object files, one behind the other. Views point into the caller's bytes; nothing
 * is allocated.
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
 * Where a function's map is no good, those before it have been given.
 *
 * All functions here are thread-safe and async-signal-safe: they touch only their arguments.
 *
 * Sources: LLVM's reviews D85408 (the format), D88199 (the section's type), D121346 (versions,
 * offsets as differences); for IDs, ranges and profiles llvm/Object/ELFTypes.h, struct BBAddrMap
 * and struct PGOAnalysisMap, and "Extensions" in LLVM's documents, section "SHT_LLVM_BB_ADDR_MAP".
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
    /** LLVM 15 and later: each function has a version (1 and 2 are read) and features. */
    CAIRN_BBMAP_VERSIONED = 1
};

/** What a function's map has besides its blocks: bits of `features`. */
enum cairn_bbmap_feature {
    CAIRN_BBMAP_ENTRY_COUNT = 1,
    CAIRN_BBMAP_FREQUENCIES = 2,
    CAIRN_BBMAP_PROBABILITIES = 4,
    /** The blocks are in several ranges of addresses. */
    CAIRN_BBMAP_RANGES = 8
};

/** One function's map, checked from its first to its last byte. */
struct cairn_bbmap_function {
    /** Where it lies in its section, and how long it is, in bytes. */
    size_t offset;
    size_t size;
    /** 0 where the encoding has none. */
    uint8_t version;
    uint8_t features;
    /** Of the first range, which begins with the function's entry. */
    uint64_t address;
    uint32_t range_count;
    uint64_t block_count; /**< of all ranges */
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
    uint32_t block_count;
    uint64_t base; /**< its address */
    size_t offset; /**< where that stands in the section */
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
    /** Of a profile; 0 without that feature. */
    uint64_t frequency;
    uint64_t successor_count;

    /* Cairn's own. */
    size_t end;        /* where the next block begins, from the function's bytes on */
    uint32_t left;     /* blocks of the range that follow */
    size_t successors; /* of the profile, and where the next block's begins */
    size_t next_profile;
};

/** A way out of a block, of a profile. */
struct cairn_bbmap_successor {
    uint32_t id;
    /** In units of 2^-31. */
    uint32_t probability;
};

/**
 * Reads and checks the whole map of the function at `*offset` of the section, and moves `*offset`
 * on to the next one, or to the section's end. TRUNCATED, VERSION, CORRUPT (a feature or a flag
 * that is none, a number that is too large, no range): the sentence says of which function and
 * block, and `error->offset` where; `*offset` and `*function` are then as they were. ARGUMENT if
 * `*offset` is not in the section.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_bbmap_read(const struct cairn_section *section,
                                                              enum cairn_bbmap_encoding encoding,
                                                              size_t *offset,
                                                              struct cairn_bbmap_function *function,
                                                              struct cairn_error *error);

/** The function's first block; false if it has none. */
CAIRN_API bool cairn_bbmap_first(const struct cairn_bbmap_function *function,
                                 struct cairn_bbmap_block *block);
/** Moves on to the next block, of the same range or of the next; false behind the last one, and
 *  `*block` is then as it was. */
CAIRN_API bool cairn_bbmap_next(const struct cairn_bbmap_function *function,
                                struct cairn_bbmap_block *block);

/** The function's first range: each function has one. */
CAIRN_API void cairn_bbmap_first_range(const struct cairn_bbmap_function *function,
                                       struct cairn_bbmap_range *range);
/** Moves on to the next range, also to one without blocks; false behind the last one, and `*range`
 *  is then as it was. Takes as long as going through the range's blocks. */
CAIRN_API bool cairn_bbmap_next_range(const struct cairn_bbmap_function *function,
                                      struct cairn_bbmap_range *range);

/** Way out number `index` of a block, as its profile says; false beyond the last. The time grows
 * with `index`. */
CAIRN_API bool cairn_bbmap_successor(const struct cairn_bbmap_function *function,
                                     const struct cairn_bbmap_block *block, uint64_t index,
                                     struct cairn_bbmap_successor *successor);

#ifdef __cplusplus
}
#endif
#endif
