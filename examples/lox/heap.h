/*
 * The heap: a young generation in which allocating is adding to a pointer, and an old one whose
 * objects never move.
 *
 * A minor collection moves all young objects that are reachable to the old generation. After it the
 * young generation is empty, so no object in it has an age, and no old object has pointers to
 * young ones. A major collection marks and sweeps the old generation.
 *
 * Guarantees, to which the code refers by their letters:
 *
 * A. Objects move only inside heap_new and heap_new_old. Whoever holds an object across these calls
 *    has it in a root, or knows that it is old.
 * B. Old objects keep their addresses, so bytecode, caches and compiled code may contain them.
 * C. An old object with a pointer to a young one is in the remembered set: heap_stored after every
 *    store of a value into an object that may be old. An object that heap_new returns needs no such
 *    call until the next allocation.
 * D. An allocation that would exceed the limit returns NULL, after a collection. While the heap is
 *    paused there is no limit, so allocations succeed. Where the system has no more memory, the
 *    process ends.
 *
 * Roots are found by a callback of the VM's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_HEAP_H
#define LOX_HEAP_H

#include "object.h"

enum {
    UNIT = 8,         /* sizes and addresses of objects are multiples of it */
    SMALL_MAX = 1024, /* larger objects are allocated one by one */
    SIZE_CLASSES = SMALL_MAX / UNIT,
    BLOCK_SIZE = 32 * 1024,
};

struct heap;

/* Calls heap_visit or heap_visit_object for each root. */
typedef void heap_roots(struct heap *heap, void *user);

struct size_class {
    struct object *free; /* linked by identity */
    char *next;          /* cells of a new block that were never used */
    char *end;
    struct block *blocks;
};

struct string_set {
    struct string **places;
    size_t capacity; /* a power of two, or 0 */
    size_t used;     /* at most half of them */
};

struct object_list {
    struct object **items;
    size_t count;
    size_t capacity;
};

struct heap_options {
    size_t young_size; /* bytes; 0 for the default */
    size_t limit;      /* bytes of old objects, at most; 0 for half of the machine's memory */
    bool is_stressed;  /* collect at each allocation, and overwrite what is freed */
};

struct heap {
    char *next; /* free part of the young generation */
    char *end;
    char *young;
    size_t young_size;
    bool is_stressed;
    bool is_paused; /* no collections, and so no limit: what is garbage would count */
    bool is_major;  /* what the collection that runs is */

    struct size_class classes[SIZE_CLASSES];
    struct block *pool;      /* empty blocks */
    struct size_class large; /* only blocks, of one object each */
    size_t old_bytes;
    size_t threshold; /* old bytes at which a major collection begins */
    size_t limit;

    struct object_list remembered;
    struct object_list work;   /* objects whose contents were not yet visited */
    struct object_list pinned; /* old objects that are kept to the end */
    struct string_set strings;
    heap_roots *visit_roots;
    void *user; /* its argument */
    size_t minor_count;
    size_t major_count;
};

/* Makes a heap that is paused. */
void heap_init(struct heap *heap, const struct heap_options *options, heap_roots *visit_roots,
               void *user);

/* Visits a root. It is changed if the object moves. */
void heap_visit(struct heap *heap, lox_value *root);
void heap_visit_values(struct heap *heap, lox_value *roots, size_t count);

/* The same for a pointer to an object, or NULL. */
void heap_visit_object(struct heap *heap, void *root);

void heap_collect(struct heap *heap, bool is_major);

void *heap_new_slow(struct heap *heap, enum kind kind, size_t size);
void heap_remember(struct heap *heap, struct object *object);

/* Returns a new object in the old generation, filled with zeros but for its header, or NULL. */
void *heap_new_old(struct heap *heap, enum kind kind, size_t size);

/* Keeps an old object to the end: for addresses in inline caches. */
void heap_pin(struct heap *heap, void *object);

/* End the process; the second one because the system has no more memory. */
__attribute__((noreturn)) void fail(const char *message);
__attribute__((noreturn)) void heap_exhausted(void);

/* Return zeros: of calloc, or pages, of which those take memory that are touched. */
void *heap_zeroed(size_t size);
void *heap_map(size_t size);

static inline size_t rounded_size(size_t size) { return (size + UNIT - 1) & ~(size_t)(UNIT - 1); }

/* Returns a new object, or NULL if there is no memory left. All but its header is unspecified. */
static inline void *heap_new(struct heap *heap, enum kind kind, size_t size)
{
    size = rounded_size(size);
    if (__builtin_expect(size > (size_t)(heap->end - heap->next) || size > SMALL_MAX, 0))
        return heap_new_slow(heap, kind, size);
    struct object *object = (struct object *)(void *)heap->next;
    heap->next += size;
    *object = (struct object){.kind = (uint8_t)kind};
    return object;
}

static inline bool heap_is_young(const struct heap *heap, const void *object)
{
    return (uintptr_t)object - (uintptr_t)heap->young < heap->young_size;
}

/* The write barrier: must follow each store of `value` into `object` (see C). */
static inline void heap_stored(struct heap *heap, struct object *object, lox_value value)
{
    if (__builtin_expect(object->flags & FLAG_WATCHED, 0) && is_object(value))
        heap_remember(heap, object);
}

/* ---- intern.c ---- */

/* Return the string with these bytes, or that joins both; or NULL if it is too long or there is not
 * enough memory. */
struct string *string_intern(struct heap *heap, const char *bytes, size_t size);
struct string *string_join(struct heap *heap, const struct string *left,
                           const struct string *right);

/* For collections: removes the strings that are not marked. */
void strings_before_sweep(struct heap *heap);

#endif
