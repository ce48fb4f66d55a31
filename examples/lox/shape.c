/*
 * Classes, shapes, properties, and the hash tables that they use. All of these objects are old, so
 * they do not move while this file allocates; only instances do.
 *
 * SPDX-License-Identifier: MIT
 */
#include "shape.h"

/* ---- Tables ---- */

static struct table_entry *find_entry(struct table *table, const struct string *key)
{
    for (uint32_t at = key->hash;; at++) {
        struct table_entry *entry = &table->entries[at & (table->object.count - 1)];
        if (entry->key == key || entry->key == NULL)
            return entry;
    }
}

lox_value *table_find(struct table *table, const struct string *key)
{
    if (table == NULL)
        return NULL;
    struct table_entry *entry = find_entry(table, key);
    return entry->key != NULL ? &entry->value : NULL;
}

/* Returns a table of so many places with the entries of another one, which may be NULL. */
static struct table *table_copy(struct heap *heap, const struct table *table, uint32_t places)
{
    struct table *copy =
        heap_new_old(heap, KIND_TABLE, sizeof *copy + places * sizeof(struct table_entry));
    if (copy == NULL)
        return NULL;
    copy->object.count = places;
    for (uint32_t i = 0; table != NULL && i < table->object.count; i++)
        if (table->entries[i].key != NULL)
            *find_entry(copy, table->entries[i].key) = table->entries[i];
    copy->used = table != NULL ? table->used : 0;
    return copy;
}

bool table_set(struct heap *heap, struct table **table, const struct string *key, lox_value value)
{
    struct table *set = *table;
    if (set == NULL || 2 * (set->used + 1) > set->object.count)
        set = table_copy(heap, set, set == NULL ? 4 : 2 * set->object.count);
    if (set == NULL)
        return false;
    struct table_entry *entry = find_entry(set, key);
    set->used += entry->key == NULL;
    *entry = (struct table_entry){key, value};
    *table = set;
    return true;
}

/* ---- Shapes ---- */

static struct shape *shape_new(struct heap *heap, struct class *class, uint32_t inline_capacity)
{
    struct shape *shape = heap_new_old(heap, KIND_SHAPE, sizeof *shape);
    if (shape == NULL)
        return NULL;
    shape->class = class;
    shape->inline_capacity = inline_capacity;
    return shape;
}

/* Returns the slot, or the shape's number of fields if it does not have the field. */
static uint32_t shape_slot(const struct shape *shape, const struct string *name)
{
    if (shape->fields != NULL) {
        const lox_value *slot = table_find(shape->fields, name);
        return slot != NULL ? (uint32_t)*slot : shape->field_count;
    }
    for (const struct shape *at = shape; at->parent != NULL; at = at->parent)
        if (at->name == name)
            return at->field_count - 1;
    return shape->field_count;
}

/* Instances of the class get more space from now on, since this one had not enough. */
static void class_widen(struct heap *heap, struct class *class, const struct shape *full)
{
    uint32_t capacity = full->inline_capacity < 2 ? 4 : 2 * full->inline_capacity;
    if (class->root->inline_capacity != full->inline_capacity || capacity > INLINE_CAPACITY_MAX)
        return;
    struct shape *root = shape_new(heap, class, capacity);
    if (root != NULL)
        class->root = root;
}

/* Returns a hash of a path and one name more, with its length. */
static uint64_t hash_with(uint64_t hash, const struct string *name)
{
    for (uint32_t i = 0; i <= name->object.count; i++)
        hash = ((hash ^ (uint8_t)name->bytes[i]) + 1) * 0x100000001b3u ^ hash >> 47;
    return hash;
}

/* Returns the shape that has one field more, or NULL without memory. The shape must be a shared
 * one. */
static struct shape *shape_with(struct heap *heap, struct shape *shape, const struct string *name)
{
    const lox_value *known = table_find(shape->transitions, name);
    if (known != NULL)
        return (struct shape *)as_object(*known);
    if (shape->field_count == shape->inline_capacity)
        class_widen(heap, shape->class, shape);
    struct shape *next = shape_new(heap, shape->class, shape->inline_capacity);
    if (next == NULL)
        return NULL;
    next->parent = shape;
    next->name = name;
    next->field_count = shape->field_count + 1;
    next->path_hash = hash_with(shape->path_hash, name);
    heap->is_paused = true; /* only the table will refer to it */
    table_set(heap, &shape->transitions, name, object_value(next));
    heap->is_paused = false;
    shape->class->shape_count++;
    return next;
}

/* ---- Classes ---- */

struct class *class_new(struct heap *heap, struct string *name)
{
    struct class *class = heap_new_old(heap, KIND_CLASS, sizeof *class);
    if (class == NULL)
        return NULL;
    class->object.identity = class;
    class->name = name;
    heap->is_paused = true; /* nothing refers to the class yet */
    class->root = shape_new(heap, class, 0);
    heap->is_paused = false;
    return class;
}

bool class_inherit(struct heap *heap, struct class *class, const struct class *superclass)
{
    class->init = superclass->init;
    class->inline_capacity = superclass->inline_capacity;
    if (superclass->methods == NULL)
        return true;
    class->methods = table_copy(heap, superclass->methods, superclass->methods->object.count);
    return class->methods != NULL;
}

bool class_add_method(struct heap *heap, struct class *class, struct closure *method)
{
    if (function_of(method)->is_initializer)
        class->init = method;
    return table_set(heap, &class->methods, function_of(method)->name, object_value(method));
}

bool class_end(struct heap *heap, struct class *class, uint32_t field_count)
{
    class->inline_capacity += field_count;
    if (class->inline_capacity > INLINE_CAPACITY_MAX)
        class->inline_capacity = INLINE_CAPACITY_MAX;
    struct shape *root = shape_new(heap, class, class->inline_capacity);
    if (root != NULL)
        class->root = root;
    return root != NULL;
}

struct closure *class_method(const struct class *class, const struct string *name)
{
    const lox_value *method = table_find(class->methods, name);
    return method != NULL ? as_closure(*method) : NULL;
}

/* ---- Properties ---- */

bool property_find(const struct shape *shape, const struct string *name, struct site_case *found)
{
    uint32_t slot = shape_slot(shape, name);
    *found = (struct site_case){.key = (void *)(uintptr_t)shape, .slot = slot};
    if (slot < shape->field_count) {
        found->access = slot < shape->inline_capacity ? ACCESS_INLINE : ACCESS_MORE;
        return true;
    }
    found->access = ACCESS_METHOD;
    found->target = class_method(shape->class, name);
    if (shape->fields != NULL)
        found->key = NO_KEY; /* a unique shape may get a field of that name */
    return found->target != NULL;
}

lox_value field_get(const struct instance *instance, const struct site_case *found)
{
    if (found->access == ACCESS_INLINE)
        return instance->values[found->slot];
    return instance->more->values[found->slot - shape_of(instance)->inline_capacity];
}

/* Makes sure that the instance's array has a place. */
static bool reserve_more(struct heap *heap, lox_value *root, uint32_t place)
{
    const struct fields *old = as_instance(*root)->more;
    uint32_t count = old == NULL ? 0 : old->object.count;
    if (place < count)
        return true;
    uint32_t grown = count == 0 ? 4 : 2 * count;
    struct fields *more = heap_new(heap, KIND_FIELDS, sizeof *more + grown * sizeof(lox_value));
    if (more == NULL)
        return false;
    struct instance *instance = as_instance(*root);
    more->object.count = grown;
    for (uint32_t i = 0; i < grown; i++)
        more->values[i] = i < count ? instance->more->values[i] : NIL;
    instance->more = more;
    heap_stored(heap, &instance->object, object_value(more));
    return true;
}

/* Adds a field to a shape that belongs to one instance, or to a copy of a shared shape, which must
 * be in use before the next allocation. */
static struct shape *unique_with(struct heap *heap, struct shape *shape, const struct string *name)
{
    struct shape *unique = shape;
    if (shape->fields == NULL)
        unique = shape_new(heap, shape->class, shape->inline_capacity);
    if (unique == NULL)
        return NULL;
    heap->is_paused = true; /* nothing refers to a new shape yet */
    for (const struct shape *at = shape; at->parent != NULL; at = at->parent)
        table_set(heap, &unique->fields, at->name, at->field_count - 1);
    table_set(heap, &unique->fields, name, shape->field_count);
    heap->is_paused = false;
    unique->field_count = shape->field_count;
    return unique;
}

bool property_find_store(struct heap *heap, lox_value *root, const struct string *name,
                         struct site_case *found)
{
    struct shape *shape = shape_of(as_instance(*root));
    uint32_t slot = shape_slot(shape, name);
    *found = (struct site_case){.key = shape, .target = shape, .slot = slot};
    found->access = slot < shape->inline_capacity ? ACCESS_INLINE : ACCESS_MORE;
    if (slot < shape->field_count)
        return true;
    if (found->access == ACCESS_MORE && !reserve_more(heap, root, slot - shape->inline_capacity))
        return false;
    if (shape->fields == NULL && shape->field_count < SHARED_FIELDS_MAX &&
        shape->class->shape_count < SHAPES_PER_CLASS_MAX) {
        found->target = shape_with(heap, shape, name);
    } else {
        found->key = NO_KEY;
        found->target = unique_with(heap, shape, name);
    }
    return found->target != NULL;
}

bool field_set(struct heap *heap, lox_value *root, const lox_value *value,
               const struct site_case *found)
{
    struct shape *shape = found->target;
    struct object *changed = as_object(*root);
    if (found->access == ACCESS_INLINE) {
        as_instance(*root)->values[found->slot] = *value;
    } else {
        uint32_t place = found->slot - shape->inline_capacity;
        if (!reserve_more(heap, root, place))
            return false;
        as_instance(*root)->more->values[place] = *value;
        changed = &as_instance(*root)->more->object;
    }
    heap_stored(heap, changed, *value);
    as_object(*root)->identity = shape;
    if (found->slot >= shape->field_count)
        shape->field_count++; /* of a unique shape */
    return true;
}
