/*
 * Objects and their layouts in the heap.
 *
 * Every object begins with its identity: one word that says, for caches and compiled code, all
 * that they have to know about it. One comparison therefore guards an access or a call. Identities
 * of different kinds cannot be mistaken for each other, because they are addresses of different
 * things:
 *
 *     instance  its shape           closure  its function        class  itself        others  NULL
 *
 * Strings, classes, shapes, tables and closures of methods are allocated in the old generation,
 * which does not move. So caches and compiled code may contain their addresses.
 *
 * After the header, pointers to objects come first, then values, then all else (see struct layout
 * in heap.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_OBJECT_H
#define LOX_OBJECT_H

#include "value.h"

#include <stddef.h>

enum kind {
    KIND_FREE, /* a cell of the old generation without an object */
    KIND_STRING,
    KIND_NATIVE,
    KIND_CLOSURE,
    KIND_BOX,
    KIND_CLASS,
    KIND_INSTANCE,
    KIND_BOUND_METHOD,
    KIND_SHAPE,
    KIND_TABLE,
    KIND_FIELDS,
};

enum {
    FLAG_MARKED = 1,  /* reached by the major collection that runs */
    FLAG_MOVED = 2,   /* the identity is the address of the copy */
    FLAG_WATCHED = 4, /* old, and not yet remembered: stores must tell the heap */
};

struct object {
    void *identity;
    uint8_t kind;
    uint8_t flags;
    uint16_t spare;
    uint32_t count; /* bytes of a string, boxes of a closure, places of a table or of fields */
};

struct string {
    struct object object;
    uint32_t hash;
    char bytes[]; /* `count` of them, and a zero */
};

struct function; /* code.h */

/* A function of C without parameters. */
struct native {
    struct object object;
    lox_value (*call)(void);
};

/* A variable that closures share. A local variable that is captured is replaced by its box at the
 * first capture, so there are no pointers into the stack. Boxes are no values of the language. */
struct box {
    struct object object;
    lox_value value;
};

struct closure {
    struct object object; /* the identity is the function */
    struct box *boxes[];
};

/* A hash table from strings to values; its places are a power of two. Shared by methods,
 * transitions and fields of unique shapes. */
struct table_entry {
    const struct string *key; /* or NULL */
    lox_value value;
};

struct table {
    struct object object;
    uint32_t used;
    struct table_entry entries[];
};

struct class
{
    struct object object; /* the identity is the class itself */
    struct string *name;
    struct table *methods;    /* inherited ones, too */
    struct closure *init;     /* or NULL */
    struct shape *root;       /* the shape of new instances */
    uint32_t inline_capacity; /* fields in an instance itself; further ones are in an array */
    uint32_t shape_count;
};

/* What is known of an instance: its class, and which fields it has, and where. A shape never
 * changes, except a unique one, which belongs to one instance that has many fields. */
struct shape {
    struct object object;
    struct class *class;
    struct shape *parent;      /* the shape without the last field */
    const struct string *name; /* the last field's */
    struct table *fields;      /* of unique shapes: from names to slots */
    struct table *transitions; /* from names to the shapes that have this field in addition */
    uint32_t field_count;
    uint32_t inline_capacity;
    uint64_t path_hash; /* of the names of its fields, in order */
};

/* An array of values, where fields are that an instance itself has no space for. */
struct fields {
    struct object object;
    lox_value values[];
};

struct instance {
    struct object object; /* the identity is the shape */
    struct fields *more;
    lox_value values[]; /* as many as the shape's `inline_capacity`; `field_count` are valid */
};

struct bound_method {
    struct object object;
    struct closure *method;
    lox_value receiver;
};

static inline bool is_kind(lox_value value, enum kind kind)
{
    return is_object(value) && as_object(value)->kind == kind;
}

static inline struct string *as_string(lox_value value)
{
    return (struct string *)as_object(value);
}

static inline struct closure *as_closure(lox_value value)
{
    return (struct closure *)as_object(value);
}

static inline struct class *as_class(lox_value value) { return (struct class *)as_object(value); }
static inline struct box *as_box(lox_value value) { return (struct box *)as_object(value); }

static inline struct instance *as_instance(lox_value value)
{
    return (struct instance *)as_object(value);
}

static inline struct shape *shape_of(const struct instance *instance)
{
    return instance->object.identity;
}

static inline size_t instance_size(const struct shape *shape)
{
    return sizeof(struct instance) + shape->inline_capacity * sizeof(lox_value);
}

static inline struct function *function_of(const struct closure *closure)
{
    return closure->object.identity;
}

#endif
