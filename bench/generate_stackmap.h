/*
 * bench/generate_stackmap.h - a generated stack map section of any size, similar to those of real
 * programs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_GENERATE_STACKMAP_H
#define BENCH_GENERATE_STACKMAP_H

#include <stddef.h>
#include <stdint.h>

/* The order of the records' IDs. */
enum generated_ids { GENERATED_IDS_ASCENDING, GENERATED_IDS_RANDOM };

/* Returns a map of version 3 with `record_count` records in the host's byte order, which has about
 * ten records for each function and eight locations for each record. The same arguments give the
 * same bytes. The caller frees it with free(). NULL without memory. */
uint8_t *generate_stackmap(uint32_t record_count, enum generated_ids ids, uint64_t base_address,
                           size_t *size);

#endif
