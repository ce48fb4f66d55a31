/*
 * Fuzzes basic-block address maps. An accepted section can be iterated twice with the same result,
 * and the numbers of ranges, blocks, calls and successors match their counts.
 *
 * Input: flags (byte order, encoding), the section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/bbmap.h>

static void go_through_block(const struct cairn_bbmap_function *function,
                             const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_callsite callsite = {0};
    struct cairn_bbmap_successor successor = {0};
    uint64_t count = 0;
    uint32_t end = 0;
    while (cairn_bbmap_next_callsite(function, block, &callsite)) {
        require(callsite.end_offset >= end && callsite.end_offset <= block->size);
        end = callsite.end_offset;
        count++;
    }
    require(count == block->callsite_count);
    count = 0;
    while (cairn_bbmap_next_successor(function, block, &successor))
        count++;
    require(count == block->successor_count);
}

static void go_through(const struct cairn_bbmap_function *function)
{
    struct cairn_bbmap_range range = {0};
    struct cairn_bbmap_block block = {0};
    uint64_t blocks = 0;
    uint64_t omitted = 0;
    uint32_t ranges = 0;
    while (cairn_bbmap_next_range(function, &range)) {
        require(range.index == ranges++);
        require(ranges > 1 || range.base == function->address);
        omitted += range.omitted_count;
        for (uint32_t i = 0; i < range.block_count; i++) {
            require(cairn_bbmap_next(function, &block));
            require(block.range == range.index && block.base == range.base);
            require(block.index == blocks++);
            go_through_block(function, &block);
        }
    }
    require(!cairn_bbmap_next(function, &block));
    require(blocks == function->block_count && omitted == function->omitted_count);
    require(ranges == function->range_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    const struct cairn_section section = fuzz_section(&input, flags);
    enum cairn_bbmap_encoding encoding = (flags & 2) != 0 ? CAIRN_BBMAP_V0 : CAIRN_BBMAP_VERSIONED;
    size_t offset = 0;
    while (offset < section.size) {
        struct cairn_bbmap_function function;
        struct cairn_bbmap_function again;
        struct cairn_error error;
        size_t begin = offset;
        size_t other = offset;
        enum cairn_status status = cairn_bbmap_read(&section, encoding, &offset, &function, &error);
        require(cairn_bbmap_read(&section, encoding, &other, &again, NULL) == status);
        require(offset == other);
        if (status != CAIRN_OK) {
            require(offset == begin && error.offset >= begin && error.offset <= section.size);
            break;
        }
        require(offset > begin && offset - begin == function.size);
        require(function.block_count == again.block_count && function.address == again.address);
        go_through(&function);
    }
    return 0;
}
