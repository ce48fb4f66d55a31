/* SPDX-License-Identifier: MIT */
#include "bench/peer_stackmapparser.h"

/* The accessors of LLVM's parser assert the kind of a location, but the fields are the same for all
 * kinds. */
#ifndef NDEBUG
#define NDEBUG
#endif
#include <llvm/Object/StackMapParser.h>

uint64_t peer_stackmapparser_walk(const uint8_t *bytes, size_t size)
{
    using Parser = llvm::StackMapParser<llvm::endianness::little>;
    Parser parser(llvm::ArrayRef<uint8_t>(bytes, size));
    uint64_t sum = 0;
    for (const auto &record : parser.records()) {
        sum += record.getID() + record.getInstructionOffset();
        for (const auto &location : record.locations()) {
            sum += static_cast<uint64_t>(location.getKind());
            sum += location.getDwarfRegNum();
            sum += location.getSmallConstant();
        }
    }
    return sum;
}
