/* SPDX-License-Identifier: MIT */
#include "bench/ic_heap.h"

#include <stdio.h>
#include <stdlib.h>

const uint32_t ic_shapes[IC_SHAPES] = {0x51, 0x1052, 0x2053, 0x3054};
const uint32_t ic_offsets[IC_SHAPES] = {
    offsetof(struct ic_object, fields[2]),
    offsetof(struct ic_object, fields[4]),
    offsetof(struct ic_object, fields[1]),
    offsetof(struct ic_object, fields[3]),
};

static void *allocate(size_t count, size_t size)
{
    void *memory = aligned_alloc(64, (count * size + 63) / 64 * 64);
    if (memory == NULL) {
        fputs("cairn-bench-ic: no memory\n", stderr);
        exit(1);
    }
    return memory;
}

const struct ic_object ic_prototype = {.shape = 0x4055, .fields = {0, 0, 17}};

/* The state of xorshift64, with the same seed in each run. */
static uint64_t random_state;
static uint64_t random_below(uint64_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

static void shuffle(struct ic_object **order, size_t count)
{
    for (size_t left = count; left > 1; left--) {
        size_t other = (size_t)random_below(left);
        struct ic_object *object = order[left - 1];
        order[left - 1] = order[other];
        order[other] = object;
    }
}

static int64_t *property_of(struct ic_object *object)
{
    size_t shape = 0;
    while (ic_shapes[shape] != object->shape)
        shape++;
    return (int64_t *)((char *)object + ic_offsets[shape]);
}

static void make_list(struct ic_heap *heap)
{
    for (size_t i = 0; i < heap->count; i++)
        *property_of(heap->order[i]) = (intptr_t)heap->order[(i + 1) % heap->count];
    heap->sum = (intptr_t)heap->order[0];
}

void ic_heap_create(struct ic_heap *heap, size_t count, uint32_t shape_count, bool is_list)
{
    random_state = 20250701;
    heap->count = count;
    heap->objects = allocate(count, sizeof *heap->objects);
    heap->order = allocate(count, sizeof(void *));
    heap->sum = 0;
    for (size_t i = 0; i < count; i++) {
        struct ic_object *object = &heap->objects[i];
        uint32_t shape = ic_shapes[random_below(shape_count)];
        *object = (struct ic_object){.shape = shape, .flags = IC_FLAGS};
        for (size_t j = 0; j < IC_FIELDS; j++)
            object->fields[j] = (int64_t)random_below(1000);
        heap->order[i] = object;
        heap->sum += *property_of(object);
    }
    shuffle(heap->order, count);
    heap->element_sum = 0;
    for (size_t i = 0; i < count; i++)
        heap->element_sum += heap->order[i]->fields[i % IC_ELEMENTS];
    if (is_list)
        make_list(heap);
}

void ic_heap_destroy(struct ic_heap *heap)
{
    free(heap->objects);
    free(heap->order);
}

/* ---- The table ---- */

/* At most half of the slots are used. */
enum { SLOT_BITS = 12, SLOTS = 1 << SLOT_BITS };
_Static_assert(IC_TABLE_SHAPES *IC_TABLE_NAMES * 2 <= SLOTS, "the table is half empty");

struct slot {
    const char *name; /* NULL if the slot is free */
    uint32_t shape;
    uint32_t offset;
};

static struct slot *slots;
static const char *names[IC_TABLE_NAMES] = {"x", "y", "next", "length", "a", "b", "name", "value"};
/* The name of the property that is read. It is volatile so that the compiler cannot compute its
 * hash in advance. */
static const char *volatile wanted_name;

/* Returns the upper bits of a multiplicative hash. The part for the name is constant in a loop. */
static inline size_t slot_of(uint32_t shape, const char *name)
{
    uint64_t hash = shape * UINT64_C(0x9E3779B97F4A7C15);
    hash += (uintptr_t)name * UINT64_C(0xC2B2AE3D27D4EB4F);
    return (size_t)(hash >> (64 - SLOT_BITS));
}

static inline bool is_of(const struct slot *slot, uint32_t shape, const char *name)
{
    return slot->shape == shape && slot->name == name;
}

static inline const struct slot *find(uint32_t shape, const char *name)
{
    size_t i = slot_of(shape, name);
    while (__builtin_expect(!is_of(&slots[i], shape, name), 0)) {
        if (slots[i].name == NULL)
            return NULL;
        i = (i + 1) % SLOTS;
    }
    return &slots[i];
}

static void insert(uint32_t shape, const char *name, uint32_t offset)
{
    size_t i = slot_of(shape, name);
    while (slots[i].name != NULL)
        i = (i + 1) % SLOTS;
    slots[i] = (struct slot){.name = name, .shape = shape, .offset = offset};
}

void ic_table_create(void)
{
    slots = allocate(SLOTS, sizeof *slots);
    for (size_t i = 0; i < SLOTS; i++)
        slots[i] = (struct slot){.name = NULL};
    wanted_name = names[0];
    for (size_t i = 0; i < IC_SHAPES; i++)
        for (size_t j = 0; j < IC_TABLE_NAMES; j++)
            insert(ic_shapes[i], names[j], ic_offsets[(i + j) % IC_SHAPES]);
    for (uint32_t i = IC_SHAPES; i < IC_TABLE_SHAPES; i++)
        for (size_t j = 0; j < IC_TABLE_NAMES; j++)
            insert(0x10000 + i, names[j], ic_offsets[j % IC_SHAPES]);
}

void ic_table_destroy(void) { free(slots); }

static inline int64_t look_up(const struct ic_object *object, const char *name)
{
    const struct slot *slot = find(object->shape, name);
    if (__builtin_expect(slot == NULL, 0))
        abort();
    return *(const int64_t *)((const char *)object + slot->offset);
}

int64_t ic_look_up(const struct ic_object *object) { return look_up(object, wanted_name); }

int64_t ic_look_up_all(struct ic_object *const *objects, int64_t count)
{
    const char *name = wanted_name;
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += look_up(objects[i], name);
    return sum;
}

int64_t ic_look_up_along(struct ic_object *const *objects, int64_t count)
{
    const char *name = wanted_name;
    const struct ic_object *object = objects[0];
    for (int64_t i = 0; i < count; i++)
        object = (const struct ic_object *)(intptr_t)look_up(object, name);
    return (intptr_t)object;
}
