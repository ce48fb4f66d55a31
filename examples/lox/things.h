/*
 * Things that compiled code refers to, and names for them that are the same in each process that
 * runs the program: by where the program defines them. So code can be stored (store.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_THINGS_H
#define LOX_THINGS_H

#include "vm.h"

enum thing_kind {
    THING_NEXT,       /* the address of the heap's `next` */
    THING_END,        /* the address of the heap's `end` */
    THING_FRAMES,     /* the address of the first frame */
    THING_STACK,      /* the address of the first slot */
    THING_OPERATION,  /* rt_operation */
    THING_REMEMBER,   /* rt_remember */
    THING_EXIT,       /* the target of the exit */
    THING_CELL,       /* the address of a global variable's value */
    THING_ASSUMPTION, /* that a global variable keeps its value */
    THING_FUNCTION,
    THING_COMPILED, /* a function's struct compiled */
    THING_SITE,     /* a site of a function */
    THING_CACHE,    /* the options of a site's inline cache */
    THING_OBJECT,   /* the address of an object that does not move */
    THING_VALUE,    /* the same object, as a value of the language */
};

struct thing {
    enum thing_kind kind;
    uint32_t number; /* of a global variable, or of a function */
    uint32_t site;
    struct object *object;
};

/* The longest path of a name, in bytes. */
enum { PATH_MAX_BYTES = 192 };

/* What a thing is called. Objects are called by a global variable from which they are reached. What
 * code relies on without a guard is in the name, too. */
struct thing_name {
    uint16_t kind;      /* enum thing_kind */
    uint16_t object;    /* enum kind; 0 for what is no object, nor the value of an assumption */
    uint32_t number;    /* of a function or a global variable */
    uint32_t site;      /* of a shape: how many fields it has, and can have in an instance itself */
    uint32_t path_size; /* in bytes */
    uint64_t value;     /* bits of a value; of a closure, its function's number; see methods_hash */
    char path[PATH_MAX_BYTES]; /* a string; a method's name; the hash of a shape's fields */
};

static inline size_t thing_name_size(const struct thing_name *name)
{
    return offsetof(struct thing_name, path) + name->path_size;
}

/* Names a thing. Returns false if it has no name. */
bool name_thing(const struct vm *vm, const struct thing *thing, struct thing_name *name);

/* Finds what is called so. Returns false if it does not exist yet, or is another than was named. */
bool find_thing(struct vm *vm, const struct thing_name *name, struct thing *thing);

#endif
