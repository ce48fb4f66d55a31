/*
 * bench/ic_heap.h - objects with shapes, as a VM has them, and the table in which a VM without
 * caches looks their properties up.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_IC_HEAP_H
#define BENCH_IC_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IC_FIELDS = 6, IC_SHAPES = 4, IC_FLAGS = 0x7A5A };

struct ic_object {
    uint32_t shape;
    uint32_t flags; /* IC_FLAGS */
    int64_t fields[IC_FIELDS];
};

/* The property is in another field in each shape; the field that is written in none of them. */
extern const uint32_t ic_shapes[IC_SHAPES];
extern const uint32_t ic_offsets[IC_SHAPES];
enum { IC_WRITTEN_OFFSET = offsetof(struct ic_object, fields[5]) };

/* Objects one behind the other, as a nursery has them, and pointers to them in random order. The
 * property is a number; or the next object in that order, after the last one the first. */
struct ic_heap {
    size_t count;
    struct ic_object *objects;
    struct ic_object **order;
    int64_t sum; /* of the property over all objects; of lists, the address of the first */
};

/* Each object has one of the first `shape_count` shapes, all equally often at random. */
void ic_heap_create(struct ic_heap *heap, size_t count, uint32_t shape_count, bool is_list);
void ic_heap_destroy(struct ic_heap *heap);

/* ---- The table: (shape, name) to offset ---- */

/* What is in it besides, in shapes and in names of properties of each. */
enum { IC_TABLE_SHAPES = 256, IC_TABLE_NAMES = 8 };

void ic_table_create(void);
void ic_table_destroy(void);

/* The property of one object, by the table. */
int64_t ic_look_up(const struct ic_object *object);
/* Of many: the same lookup in the loop itself. Along a list: where it ends. */
int64_t ic_look_up_all(struct ic_object *const *objects, int64_t count);
int64_t ic_look_up_along(struct ic_object *const *objects, int64_t count);

#endif
