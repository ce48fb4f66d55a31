/*
 * index/block_table.h - the form of a table of blocks.
 *
 *     PC --regions--> region --directory--> begins of lines --> line: up to eight blocks
 *
 * What a lookup costs is going to memory. All that it needs of a block is in one line, which is as
 * long as a processor's: where it begins, its size, ID and flags, and which function it is of. The
 * directory and the begins of the lines, which lead there, have about a bit more than one byte a
 * block, so that they mostly stay in the processor's second cache. On the way no branch depends on
 * what a line says but whether the PC is in a block at all: so lookups that do not wait for each
 * other have their lines brought at the same time. How many, is up to how little of a lookup has to
 * wait for its line in the processor's queues: what can be known before is computed before, and
 * what is left are loads and vectors more than arithmetic.
 *
 * A region is a stretch of addresses without wide gaps: a program's image, or a section of code
 * that was placed far from the others. It is cut into buckets of equal size, a power of two; a
 * bucket says which line begins last at or before it.
 *
 * A block's position is its line's number times eight plus its place there. Blocks are in the order
 * of the ranges: those that lookups know come first, sorted by address, without overlaps; then the
 * others, whose lines no bucket leads to.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_BLOCK_TABLE_H
#define INDEX_BLOCK_TABLE_H

#include <cairn/block_table.h>

enum { LINE_BLOCKS = 8, LINE_BYTES = 64 };

/* A block's size and flags. */
enum {
    SIZE_SHIFT = 5, /* below are the flags */
    SIZE_MAX_NARROW = (1 << 11) - 1,
    SIZE_WIDE = 0, /* in place of the size: it is 0, or it or the ID do not fit: among the wide */
    ID_MAX_NARROW = 0xFFFF
};

enum { BEGIN_NONE = 0x7FFF, BEGIN_MAX = BEGIN_NONE - 1 };

/* Blocks of one function are below this many, so that a line has room for what begins in it. */
enum { FUNCTION_BLOCKS_MAX = (1 << 24) - 1 };

/* The line's first block is of a range that is not its function's first: `owner` is a piece. */
#define OWNER_IS_PIECE (UINT32_C(1) << 31)

struct line {
    uint32_t base; /* of its first block, from the region's begin on; of a hidden range: its
                      address, the lower half */
    /* The first block's function; those that begin in the line follow it by number. With
     * OWNER_IS_PIECE the first block's piece; the same holds for pieces. */
    uint32_t owner;
    uint32_t back; /* from the first block to its range's address */
    /* The first block's index, times 256; bit N is set where a range begins in place N + 1. */
    uint32_t index_and_begun;
    uint16_t begins[LINE_BLOCKS]; /* from the base on; BEGIN_NONE where there is no block */
    uint16_t ids[LINE_BLOCKS];
    uint16_t sizes[LINE_BLOCKS]; /* and flags */
};
_Static_assert(sizeof(struct line) == LINE_BYTES, "a line is a processor's line");

/* Blocks of a range at positions that follow each other: mostly all of them. */
struct piece {
    uint64_t base;   /* the range's address */
    uint32_t offset; /* of the first block, from there on */
    uint32_t position;
    uint32_t first_index; /* of the first block, among the function's */
    uint32_t function;
    uint32_t range; /* number among the function's */
};

struct packed_function {
    uint64_t address;
    uint64_t entry_count;
    uint32_t first_piece; /* in `function_pieces` */
    uint32_t piece_count; /* without ranges that have no blocks */
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
    uint32_t first_bucket; /* one more than it has follows: the region's last line */
    uint32_t padding;      /* from a line's number to its place in `bases` */
};

/* Numbers of blocks that only some maps have. ORDER COLUMNS: as column_features. */
enum { COLUMN_FREQUENCY, COLUMN_POST_LINK_FREQUENCY, COLUMN_HASH, COLUMN_COUNT };

/* Behind each region's begins of lines there are as many that nothing is behind. */
enum { BASES_PADDING = 4 };

struct cairn_block_table {
    struct cairn_allocator allocator;
    size_t size; /* of the allocation, this struct included */
    uint32_t region_count;
    uint32_t function_count;
    uint32_t block_count;
    uint32_t hidden_count;
    uint32_t wide_count;
    const struct region *regions;
    const uint32_t *buckets;
    const uint32_t *bases; /* of the lines, and the padding */
    const struct line *lines;
    const struct piece *pieces;
    const struct packed_function *functions; /* by address */
    const uint32_t *function_pieces;
    const struct wide_block *wide;         /* by position */
    const uint64_t *columns[COLUMN_COUNT]; /* by position; NULL: no map has such numbers */
};

#endif
