/* SPDX-License-Identifier: MIT */
#include "bench/peer_bbaddrmap.h"

extern "C" {
#include "bench/report.h"
}

#include <cstdio>
#include <llvm/Object/ELFObjectFile.h>

using namespace llvm;

static uint64_t sum_of_blocks(const std::vector<object::BBAddrMap> &functions)
{
    uint64_t sum = 0;
    for (const auto &function : functions)
        for (const auto &range : function.getBBRanges())
            for (const auto &block : range.BBEntries)
                sum += range.BaseAddress + block.Offset + block.Size + block.ID + block.MD.encode();
    return sum;
}

static bool complain(Error error)
{
    std::fprintf(stderr, "cairn-bench-blocks: LLVM: %s\n", toString(std::move(error)).c_str());
    return false;
}

bool peer_bbaddrmap_walk(const uint8_t *bytes, size_t size, uint64_t *sum, double *read_time)
{
    StringRef text(reinterpret_cast<const char *>(bytes), size);
    auto file = object::ObjectFile::createELFObjectFile(MemoryBufferRef(text, "generated"));
    if (!file)
        return complain(file.takeError());
    auto *elf = cast<object::ELFObjectFileBase>(file->get());
    double begin = bench_now_of_thread();
    auto functions = elf->readBBAddrMap();
    *read_time = bench_now_of_thread() - begin;
    if (!functions)
        return complain(functions.takeError());
    *sum = sum_of_blocks(*functions);
    return true;
}
