/*
 * Classes, shapes and the properties of instances.
 *
 * An instance has a shape, which says which fields it has and where. Instances that got the same
 * fields in the same order share it. Adding a field is a transition to another shape. So a site
 * that has seen a shape knows what a name means there without looking it up.
 *
 * Programs that would make endless shapes (many fields, or fields in ever different orders) get
 * unique shapes, with a hash table, that belong to one instance.
 *
 * Functions that can allocate take values from roots, and return false or NULL if there is no
 * memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_SHAPE_H
#define LOX_SHAPE_H

#include "code.h"

enum {
    INLINE_CAPACITY_MAX = 120, /* an instance is never a large object */
    SHARED_FIELDS_MAX = 128,   /* lookups in shared shapes take linear time */
    SHAPES_PER_CLASS_MAX = 1024,
};

/* ---- Tables ---- */

/* Returns the value, or NULL. */
lox_value *table_find(struct table *table, const struct string *key);

/* Sets a value. The key is a string of the program's text, the value is old or a number. */
bool table_set(struct heap *heap, struct table **table, const struct string *key, lox_value value);

/* ---- Classes ---- */

struct class *class_new(struct heap *heap, struct string *name);

/* Copies the methods of the superclass to a class that has no methods. */
bool class_inherit(struct heap *heap, struct class *class, const struct class *superclass);

bool class_add_method(struct heap *heap, struct class *class, struct closure *method);

/* Ends a class: it can have instances, and their methods set `field_count` more fields than those
 * of the superclass. */
bool class_end(struct heap *heap, struct class *class, uint32_t field_count);

struct closure *class_method(const struct class *class, const struct string *name);

/* ---- Properties ---- */

/* Finds a property: a field, or else a method. Returns false if it does not exist. */
bool property_find(const struct shape *shape, const struct string *name, struct site_case *found);

/* Finds what a store does: sets a field, or adds one. For a shape that cannot be cached, the key
 * of the case is NO_KEY. The store must be the next thing that happens to the instance. */
bool property_find_store(struct heap *heap, lox_value *instance, const struct string *name,
                         struct site_case *found);

lox_value field_get(const struct instance *instance, const struct site_case *found);

/* Stores into a field that property_find_store found, for this instance or another one of the same
 * shape. */
bool field_set(struct heap *heap, lox_value *instance, const lox_value *value,
               const struct site_case *found);

/* Returns a new instance without fields. */
static inline struct instance *instance_new(struct heap *heap, const struct class *class)
{
    struct shape *shape = class->root;
    struct instance *instance = heap_new(heap, KIND_INSTANCE, instance_size(shape));
    if (instance == NULL)
        return NULL;
    instance->object.identity = shape;
    instance->more = NULL;
    return instance;
}

#endif
