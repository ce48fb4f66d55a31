/*
 * bench/peer_stackmapparser.h - llvm::StackMapParser, to compare with.
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

/* Constructs a parser over a version 3 map in little-endian order and visits every record and
 * location; returns a checksum of what it saw. The map is trusted, as LLVM does. */
uint64_t peer_stackmapparser_walk(const uint8_t *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
