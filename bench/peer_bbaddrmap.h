/*
 * bench/peer_bbaddrmap.h - the peer llvm::object::ELFObjectFile::readBBAddrMap.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_PEER_BBADDRMAP_H
#define BENCH_PEER_BBADDRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads all maps of the ELF file and visits each block. `*sum` is a checksum of the blocks.
 * `*read_time` is the thread's time in readBBAddrMap alone, in nanoseconds. False, with a line on
 * standard error, if LLVM rejects the file. */
bool peer_bbaddrmap_walk(const uint8_t *bytes, size_t size, uint64_t *sum, double *read_time);

#ifdef __cplusplus
}
#endif
#endif
