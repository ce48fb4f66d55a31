/*
 * bench/peer_map.h - the peer for finding records by ID: std::unordered_map, which is neither
 * thread-safe nor usable in signal handlers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_PEER_MAP_H
#define BENCH_PEER_MAP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A map from IDs to one record each: any pointer, and a number. */
struct peer_map *peer_map_create(void);
void peer_map_destroy(struct peer_map *map);
void peer_map_add(struct peer_map *map, uint64_t id, const void *table, uint32_t index);
void peer_map_remove(struct peer_map *map, uint64_t id);
/* Returns the number of records found: 0 or 1. */
uint32_t peer_map_find(const struct peer_map *map, uint64_t id, const void **table,
                       uint32_t *index);

#ifdef __cplusplus
}
#endif
#endif
