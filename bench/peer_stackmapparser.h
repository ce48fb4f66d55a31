/*
 * bench/peer_stackmapparser.h - the peer llvm::StackMapParser.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_PEER_STACKMAPPARSER_H
#define BENCH_PEER_STACKMAPPARSER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a parser for a map of version 3 in little-endian order, and visits every record and
 * location. Returns a checksum of them. The map must be valid, because LLVM does not check it. */
uint64_t peer_stackmapparser_walk(const uint8_t *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
