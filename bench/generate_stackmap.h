/*
 * bench/generate_stackmap.h - a stack map section like those of real programs, of any size.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_GENERATE_STACKMAP_H
#define BENCH_GENERATE_STACKMAP_H

#include <stddef.h>
#include <stdint.h>

/* How the records' IDs come. */
enum generated_ids { GENERATED_IDS_ASCENDING, GENERATED_IDS_RANDOM };

/* A version 3 map of `record_count` records in the host's byte order: about ten records a
 * function and eight locations a record. The same arguments give the same bytes. To be freed with
 * free(); NULL without memory. */
uint8_t *generate_stackmap(uint32_t record_count, enum generated_ids ids, uint64_t base_address,
                           size_t *size);

#endif
