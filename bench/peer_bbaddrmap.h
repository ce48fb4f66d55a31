/*
 * bench/peer_bbaddrmap.h - llvm::object::ELFObjectFile's readBBAddrMap, to compare with.
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

/* Reads all maps of the ELF file and visits each block: `*sum` is a checksum of what it saw,
 * `*read_time` the nanoseconds of the thread's time that readBBAddrMap alone took. False, and a
 * line on standard error, if LLVM refuses the file. */
bool peer_bbaddrmap_walk(const uint8_t *bytes, size_t size, uint64_t *sum, double *read_time);

#ifdef __cplusplus
}
#endif
#endif
