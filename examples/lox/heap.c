/*
 * The heap. See heap.h for what it guarantees.
 *
 * Old objects are cells of blocks; all cells of a block have the same size. Those of more than
 * SMALL_MAX bytes have a block each.
 *
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    YOUNG_SIZE = 8 << 20,
    CHUNK_BLOCKS = 32, /* blocks are mapped in chunks */
    THRESHOLD_MIN = 16 << 20,
    STRESSED_MINORS = 16, /* a stressed heap has one major collection for this many minor ones */
    POISON = 0xdb,
};

struct block {
    struct block *next;
    size_t cell_size;
    size_t cell_count;
    char cells[];
};

static const size_t cells_size = BLOCK_SIZE - sizeof(struct block);

__attribute__((noreturn)) void fail(const char *message)
{
    fflush(stdout);
    fprintf(stderr, "%s\n", message);
    _exit(70); /* other threads may be at work */
}

__attribute__((noreturn)) void heap_exhausted(void) { fail("Out of memory."); }

void *heap_zeroed(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL)
        heap_exhausted();
    return memory;
}

void *heap_map(size_t size)
{
    void *address = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        heap_exhausted();
    return address;
}

static void list_push(struct object_list *list, struct object *object)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        list->items = realloc(list->items, list->capacity * sizeof(struct object *));
    }
    if (list->items == NULL)
        heap_exhausted();
    list->items[list->count++] = object;
}

/* ---- Set-up ---- */

void heap_init(struct heap *heap, const struct heap_options *options, heap_roots *visit_roots,
               void *user)
{
    size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t limit = options->limit != 0 ? options->limit : memory / 2;
    *heap = (struct heap){
        .young_size = options->young_size != 0 ? options->young_size : YOUNG_SIZE,
        .is_stressed = options->is_stressed,
        .is_paused = true,
        .limit = limit,
        .threshold = limit < THRESHOLD_MIN ? limit : THRESHOLD_MIN,
        .visit_roots = visit_roots,
        .user = user,
    };
    heap->young = heap_map(heap->young_size);
    heap->next = heap->young;
    heap->end = heap->is_stressed ? heap->young : heap->young + heap->young_size;
}

/* ---- Blocks and cells ---- */

static void pool_push(struct heap *heap, struct block *block)
{
    block->next = heap->pool;
    heap->pool = block;
}

static void pool_extend(struct heap *heap)
{
    char *chunk = heap_map((CHUNK_BLOCKS + 1) * (size_t)BLOCK_SIZE);
    chunk += -(uintptr_t)chunk % BLOCK_SIZE;
    for (size_t i = CHUNK_BLOCKS; i-- > 0;)
        pool_push(heap, (struct block *)(void *)(chunk + i * BLOCK_SIZE));
}

/* Gives the class a block of the pool. Its cells must be zeros: a collection sweeps all of them. */
static void class_extend(struct heap *heap, struct size_class *class, size_t cell_size)
{
    if (heap->pool == NULL)
        pool_extend(heap);
    struct block *block = heap->pool;
    heap->pool = block->next;
    memset(block->cells, 0, cells_size);
    block->cell_size = cell_size;
    block->cell_count = cells_size / cell_size;
    block->next = class->blocks;
    class->blocks = block;
    class->next = block->cells;
    class->end = block->cells + block->cell_count * cell_size;
}

static struct object *cell_new(struct heap *heap, size_t size)
{
    struct size_class *class = &heap->classes[size / UNIT - 1];
    struct object *cell = class->free;
    heap->old_bytes += size;
    if (cell != NULL) {
        class->free = cell->identity;
        return cell;
    }
    if (class->next == class->end)
        class_extend(heap, class, size);
    cell = (struct object *)(void *)class->next;
    class->next += size;
    return cell;
}

/* ---- Sizes and contents ---- */

/* What an object of a kind consists of: pointers to objects after its header, then values, then all
 * else, then items, `count` of them. Instances have their own functions. */
struct layout {
    uint8_t size; /* without items */
    uint8_t item_size;
    uint8_t pointer_count;
    uint8_t value_count;
    uint8_t item_pointers; /* likewise, of each item */
    uint8_t item_values;
};

/* The number of pointers before a member. */
#define POINTERS_BEFORE(type, member)                                                              \
    ((offsetof(type, member) - sizeof(struct object)) / sizeof(void *))

static const struct layout layouts[] = {
    [KIND_STRING] = {sizeof(struct string) + 1, .item_size = 1},
    [KIND_NATIVE] = {.size = sizeof(struct native)},
    [KIND_CLOSURE] = {sizeof(struct closure), sizeof(struct box *), .item_pointers = 1},
    [KIND_BOX] = {sizeof(struct box), .value_count = 1},
    [KIND_CLASS] = {sizeof(struct class),
                    .pointer_count = POINTERS_BEFORE(struct class, inline_capacity)},
    [KIND_BOUND_METHOD] = {sizeof(struct bound_method), .pointer_count = 1, .value_count = 1},
    [KIND_SHAPE] = {sizeof(struct shape),
                    .pointer_count = POINTERS_BEFORE(struct shape, field_count)},
    [KIND_TABLE] = {sizeof(struct table), sizeof(struct table_entry), .item_pointers = 1,
                    .item_values = 1},
    [KIND_FIELDS] = {sizeof(struct fields), sizeof(lox_value), .item_values = 1},
};

static size_t object_size(const struct object *object)
{
    const struct layout *layout = &layouts[object->kind];
    if (object->kind == KIND_INSTANCE)
        return instance_size(object->identity);
    return layout->size + (size_t)object->count * layout->item_size;
}

/* Moves a young object to the old generation, and returns its new address. */
static struct object *promote(struct heap *heap, struct object *object)
{
    if (object->flags & FLAG_MOVED)
        return object->identity;
    size_t size = rounded_size(object_size(object));
    struct object *copy = cell_new(heap, size);
    memcpy(copy, object, size);
    copy->flags = FLAG_WATCHED;
    object->flags |= FLAG_MOVED;
    object->identity = copy;
    list_push(&heap->work, copy);
    return copy;
}

static inline struct object *visited(struct heap *heap, struct object *object)
{
    if (!heap->is_major)
        return heap_is_young(heap, object) ? promote(heap, object) : object;
    if (!(object->flags & FLAG_MARKED)) {
        object->flags |= FLAG_MARKED;
        list_push(&heap->work, object);
    }
    return object;
}

void heap_visit(struct heap *heap, lox_value *root)
{
    if (is_object(*root))
        *root = object_value(visited(heap, as_object(*root)));
}

void heap_visit_object(struct heap *heap, void *root)
{
    struct object *object;
    memcpy(&object, root, sizeof object);
    if (object == NULL)
        return;
    object = visited(heap, object);
    memcpy(root, &object, sizeof object);
}

void heap_visit_values(struct heap *heap, lox_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        heap_visit(heap, &values[i]);
}

static void visit_instance(struct heap *heap, struct instance *instance)
{
    const struct shape *shape = shape_of(instance);
    size_t count =
        shape->field_count < shape->inline_capacity ? shape->field_count : shape->inline_capacity;
    heap_visit_object(heap, &instance->object.identity);
    heap_visit_object(heap, &instance->more);
    heap_visit_values(heap, instance->values, count);
}

/* Visits pointers, and then values, from `at` on. */
static void visit_words(struct heap *heap, void *at, size_t pointer_count, size_t value_count)
{
    lox_value *words = at;
    for (size_t i = 0; i < pointer_count; i++)
        heap_visit_object(heap, &words[i]);
    heap_visit_values(heap, words + pointer_count, value_count);
}

static void visit_contents(struct heap *heap, struct object *object)
{
    const struct layout *layout = &layouts[object->kind];
    if (object->kind == KIND_INSTANCE) {
        visit_instance(heap, (struct instance *)object);
        return;
    }
    visit_words(heap, object + 1, layout->pointer_count, layout->value_count);
    if (layout->item_pointers + layout->item_values == 0)
        return;
    for (size_t i = 0; i < object->count; i++)
        visit_words(heap, (char *)object + layout->size + i * layout->item_size,
                    layout->item_pointers, layout->item_values);
}

/* What an object refers to is moved to neighbouring cells, in the order of its fields, and then
 * likewise what the first of these refers to: the order in which trees are walked. */
static void visit_work(struct heap *heap)
{
    struct object_list *work = &heap->work;
    while (work->count > 0) {
        size_t first = --work->count;
        visit_contents(heap, work->items[first]);
        for (size_t last = work->count; first + 1 < last; first++) {
            struct object *object = work->items[first];
            work->items[first] = work->items[--last];
            work->items[last] = object;
        }
    }
}

/* ---- Collections ---- */

static void minor_collection(struct heap *heap)
{
    heap->is_major = false;
    heap->minor_count++;
    heap->visit_roots(heap, heap->user);
    for (size_t i = 0; i < heap->remembered.count; i++) {
        heap->remembered.items[i]->flags |= FLAG_WATCHED;
        visit_contents(heap, heap->remembered.items[i]);
    }
    heap->remembered.count = 0;
    visit_work(heap);
    if (heap->is_stressed) {
        memset(heap->young, POISON, (size_t)(heap->next - heap->young));
        heap->end = heap->young;
    }
    heap->next = heap->young;
}

/* Frees what is not marked in the block. Returns whether there is an object left. */
static bool block_sweep(struct heap *heap, struct size_class *class, struct block *block)
{
    struct object *free_before = class->free;
    size_t live = 0;
    for (size_t i = 0; i < block->cell_count; i++) {
        struct object *cell = (struct object *)(void *)&block->cells[i * block->cell_size];
        if (cell->kind != KIND_FREE && cell->flags & FLAG_MARKED) {
            cell->flags &= (uint8_t)~FLAG_MARKED;
            live++;
            continue;
        }
        if (cell->kind != KIND_FREE)
            heap->old_bytes -= block->cell_size;
        if (heap->is_stressed)
            memset(cell, POISON, block->cell_size);
        cell->kind = KIND_FREE;
        cell->identity = class->free;
        class->free = cell;
    }
    if (live == 0)
        class->free = free_before;
    return live > 0;
}

static void class_sweep(struct heap *heap, struct size_class *class)
{
    struct block *blocks = class->blocks;
    *class = (struct size_class){.free = NULL};
    while (blocks != NULL) {
        struct block *block = blocks;
        blocks = block->next;
        if (block_sweep(heap, class, block)) {
            block->next = class->blocks;
            class->blocks = block;
        } else if (class == &heap->large) {
            free(block);
        } else {
            pool_push(heap, block);
        }
    }
}

/* The young generation must be empty, so the remembered set is empty, too. */
static void major_collection(struct heap *heap)
{
    heap->is_major = true;
    heap->major_count++;
    heap->visit_roots(heap, heap->user);
    for (size_t i = 0; i < heap->pinned.count; i++)
        heap_visit_object(heap, &heap->pinned.items[i]);
    visit_work(heap);
    strings_before_sweep(heap);
    for (size_t i = 0; i < SIZE_CLASSES; i++)
        class_sweep(heap, &heap->classes[i]);
    class_sweep(heap, &heap->large);
    heap->threshold = 2 * heap->old_bytes;
    if (heap->threshold < THRESHOLD_MIN)
        heap->threshold = THRESHOLD_MIN;
    if (heap->threshold > heap->limit)
        heap->threshold = heap->limit;
}

void heap_collect(struct heap *heap, bool is_major)
{
    if (heap->is_paused)
        return;
    minor_collection(heap);
    if (is_major || heap->old_bytes >= heap->threshold ||
        (heap->is_stressed && heap->minor_count % STRESSED_MINORS == 0))
        major_collection(heap);
}

/* ---- Allocation ---- */

static struct object *large_new(struct heap *heap, size_t size)
{
    struct block *block = heap_zeroed(sizeof *block + size);
    *block = (struct block){.next = heap->large.blocks, .cell_size = size, .cell_count = 1};
    heap->large.blocks = block;
    heap->old_bytes += size;
    return (struct object *)(void *)block->cells;
}

void *heap_new_old(struct heap *heap, enum kind kind, size_t size)
{
    size = rounded_size(size);
    bool is_full = size > heap->threshold || heap->old_bytes > heap->threshold - size;
    if (is_full || heap->is_stressed)
        heap_collect(heap, is_full);
    if (!heap->is_paused && (size > heap->limit || heap->old_bytes > heap->limit - size))
        return NULL;
    struct object *object =
        size > SMALL_MAX ? large_new(heap, size) : memset(cell_new(heap, size), 0, size);
    object->kind = (uint8_t)kind;
    object->flags = FLAG_WATCHED;
    return object;
}

void heap_pin(struct heap *heap, void *object) { list_push(&heap->pinned, object); }

/* Objects that cannot be in the young generation are old, and remembered from the beginning. */
void *heap_new_slow(struct heap *heap, enum kind kind, size_t size)
{
    if (size > SMALL_MAX || heap->is_paused) {
        struct object *object = heap_new_old(heap, kind, size);
        if (object != NULL)
            heap_remember(heap, object);
        return object;
    }
    heap_collect(heap, false);
    if (heap->old_bytes > heap->limit)
        return NULL;
    heap->end = heap->young + (heap->is_stressed ? size : heap->young_size);
    return heap_new(heap, kind, size);
}

void heap_remember(struct heap *heap, struct object *object)
{
    object->flags &= (uint8_t)~FLAG_WATCHED;
    list_push(&heap->remembered, object);
}
