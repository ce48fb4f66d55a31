/*
 * bench/ic_heap.h - objects with shapes, as in a VM, and the hash table in which a VM without
 * caches looks up their properties.
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
    uint32_t flags; /* always IC_FLAGS */
    int64_t fields[IC_FIELDS];
};

/* The offset of the property differs between shapes. The field that is written is not the property
 * of any shape. */
extern const uint32_t ic_shapes[IC_SHAPES];
extern const uint32_t ic_offsets[IC_SHAPES];
enum { IC_WRITTEN_OFFSET = offsetof(struct ic_object, fields[5]) };

/* Adjacent objects, as in a nursery, and pointers to them in random order. The property is a
 * number, or in lists the next object in that order. The last object is followed by the first
 * one. */
struct ic_heap {
    size_t count;
    struct ic_object *objects;
    struct ic_object **order;
    int64_t
        sum; /* sum of the property over all objects; in lists, the address of the first object */
    int64_t element_sum; /* sum of field `i % IC_ELEMENTS` of object number i in the order */
};

/* Objects as arrays, whose elements are the fields and whose length is in the flags. */
enum { IC_ELEMENTS = 4 };

/* An object that has the property, at the offset of shape 0. */
extern const struct ic_object ic_prototype;

/* Creates a heap. Each object has a random one of the first `shape_count` shapes. */
void ic_heap_create(struct ic_heap *heap, size_t count, uint32_t shape_count, bool is_list);
void ic_heap_destroy(struct ic_heap *heap);

/* ---- The table: (shape, name) to offset ---- */

/* Numbers of shapes in the table, and of properties of each shape. */
enum { IC_TABLE_SHAPES = 256, IC_TABLE_NAMES = 8 };

void ic_table_create(void);
void ic_table_destroy(void);

/* Looks up the property of one object in the table. */
int64_t ic_look_up(const struct ic_object *object);
/* Loops with the same lookup inlined. The first one returns the sum; the second one follows a list
 * and returns its end. */
int64_t ic_look_up_all(struct ic_object *const *objects, int64_t count);
int64_t ic_look_up_along(struct ic_object *const *objects, int64_t count);

#endif
