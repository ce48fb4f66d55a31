/*
 * file/block_table.h - the format of a table of blocks.
 *
 *     PC --regions--> region --directory--> begins of lines --> line: up to eight blocks
 *
 * The cost of a lookup is its memory accesses. All data of a block that a lookup needs is in one
 * line, which has the size of a cache line: begin, size, ID, flags, and function. The directory and
 * the begins of the lines lead there. They take little more than one byte per block, so they mostly
 * stay in the L2 cache.
 *
 * A lookup has no branch that depends on the line, except on whether the PC is in a block. So the
 * cache misses of independent lookups overlap. How many overlap depends on how few instructions of
 * a lookup wait for its line in the processor's queues. Therefore as much as possible is computed
 * before the line arrives, and what follows uses loads and vectors rather than scalar arithmetic.
 *
 * A region is an address range without wide gaps: a program's image, or a code section that was
 * placed far from the others. It is divided into buckets of one size, a power of two. A bucket
 * holds the last line that begins at or before it.
 *
 * The position of a block is eight times its line's number plus its place in the line. Blocks are
 * in the order of the ranges. First come the ranges that lookups find, sorted by address and
 * without overlaps. The others follow; no bucket leads to their lines.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_BLOCK_TABLE_H
#define FILE_BLOCK_TABLE_H

#include <cairn/block_table.h>

enum { LINE_BLOCKS = 8, LINE_BYTES = 64 };

/* The size and flags of a block. */
enum {
    SIZE_SHIFT = 5, /* the flags are in the bits below */
    SIZE_MAX_NARROW = (1 << 11) - 1,
    SIZE_WIDE = 0, /* instead of the size, if the size is 0, or the size or the ID does not fit: see
                    * `wide` */
    ID_MAX_NARROW = 0xFFFF
};

enum { BEGIN_NONE = 0x7FFF, BEGIN_MAX = BEGIN_NONE - 1 };

/* A function has fewer blocks than this, so that a line has space for the bits of the ranges that
 * begin in it. */
enum { FUNCTION_BLOCKS_MAX = (1 << 24) - 1 };

/* Flag: the first block of the line is not in its function's first range, and `owner` is a
 * piece. */
#define OWNER_IS_PIECE (UINT32_C(1) << 31)

struct line {
    uint32_t base; /* of its first block, from the region's begin; in a hidden range, the lower half
                    * of the block's address */
    /* The function of the first block. The functions that begin in the line have the following
     * numbers. With OWNER_IS_PIECE, all of these are pieces instead. */
    uint32_t owner;
    uint32_t back; /* from the first block to the address of its range */
    /* The index of the first block times 256. Bit N is set if a range begins in place N + 1. */
    uint32_t index_and_begun;
    uint16_t begins[LINE_BLOCKS]; /* from the base; BEGIN_NONE if there is no block */
    uint16_t ids[LINE_BLOCKS];
    uint16_t sizes[LINE_BLOCKS]; /* with the flags */
};
_Static_assert(sizeof(struct line) == LINE_BYTES, "a line is a processor's line");

/* Blocks of a range at consecutive positions: mostly all of its blocks. */
struct piece {
    uint64_t base;   /* address of the range */
    uint32_t offset; /* of the first block, from `base` */
    uint32_t position;
    uint32_t first_index; /* of the first block, among the function's blocks */
    uint32_t function;
    uint32_t range; /* number among the function's ranges */
};

struct packed_function {
    uint64_t address;
    uint64_t entry_count;
    uint32_t first_piece; /* in `function_pieces` */
    uint32_t piece_count; /* excluding ranges without blocks */
    uint32_t range_count;
    uint32_t block_count;
    uint16_t features;
};

struct wide_block {
    uint32_t position;
    uint32_t size;
    uint32_t id;
};

struct region {
    uint64_t begin;
    uint32_t span;
    uint32_t shift;        /* a bucket has 2^shift bytes */
    uint32_t first_bucket; /* an additional bucket follows the region's buckets: its last line */
    uint32_t padding;      /* from a line's number to its index in `bases` */
};

/* Numbers of blocks that only some maps have. ORDER COLUMNS: the order of column_features. */
enum { COLUMN_FREQUENCY, COLUMN_POST_LINK_FREQUENCY, COLUMN_HASH, COLUMN_COUNT };

/* Number of padding entries after each region's begins of lines. No address is after them. */
enum { BASES_PADDING = 4 };

struct cairn_block_table {
    struct cairn_allocator allocator;
    size_t size; /* of the allocation, including this struct */
    uint32_t region_count;
    uint32_t function_count;
    uint32_t block_count;
    uint32_t hidden_count;
    uint32_t wide_count;
    struct region *regions;
    uint32_t *buckets;
    uint32_t *bases; /* begins of lines, with padding */
    struct line *lines;
    struct piece *pieces;
    struct packed_function *functions; /* by address */
    uint32_t *function_pieces;
    struct wide_block *wide;         /* by position */
    uint64_t *columns[COLUMN_COUNT]; /* by position; NULL if no map has such numbers */
};

#endif
