/* SPDX-License-Identifier: MIT */
#include "bench/peer_map.h"

#include <unordered_map>

struct record {
    const void *table;
    uint32_t index;
};

struct peer_map {
    std::unordered_map<uint64_t, record> records;
};

peer_map *peer_map_create(void) { return new peer_map; }

void peer_map_destroy(peer_map *map) { delete map; }

void peer_map_add(peer_map *map, uint64_t id, const void *table, uint32_t index)
{
    map->records[id] = {table, index};
}

void peer_map_remove(peer_map *map, uint64_t id) { map->records.erase(id); }

uint32_t peer_map_find(const peer_map *map, uint64_t id, const void **table, uint32_t *index)
{
    auto found = map->records.find(id);
    if (found == map->records.end())
        return 0;
    *table = found->second.table;
    *index = found->second.index;
    return 1;
}
