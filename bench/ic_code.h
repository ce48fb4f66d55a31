/*
 * bench/ic_code.h - loops over objects as LLVM IR: `int64_t loop(struct ic_object **, int64_t)`.
 *
 * The loops differ only in the access to each object. Loops that read return the sum of the
 * property, and loops that write return the number of objects. Loops along a list read the next
 * object from the property, and return the last of `count` objects.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_IC_CODE_H
#define BENCH_IC_CODE_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ic_loop_kind {
    IC_LOOP_SITE,        /* a patch point with anyregcc and without a target */
    IC_LOOP_SITE_NARROW, /* the same, too small for the first case of a cache */
    IC_LOOP_SITE_C,      /* a patch point with the C calling convention */
    IC_LOOP_SITE_STORE,  /* a patch point that stores; arguments are the object and the value */
    IC_LOOP_SITE_FORM,   /* a patch point with space for a case that reads a prototype */
    IC_LOOP_SITE_FORM_STORE,
    IC_LOOP_SITE_ELEMENT,       /* a patch point with an object and an index */
    IC_LOOP_WRITTEN,            /* guard and load, and a call if the guard fails */
    IC_LOOP_WRITTEN_TWO,        /* two guards, one after another */
    IC_LOOP_WRITTEN_FOUR,       /* four guards, one after another */
    IC_LOOP_WRITTEN_STORE,      /* guard and store */
    IC_LOOP_WRITTEN_CALL,       /* guard and a direct call of ic_method_name */
    IC_LOOP_WRITTEN_TRANSITION, /* guard, store, and store of the shape */
    IC_LOOP_WRITTEN_PROTOTYPE,  /* guards of the object and of ic_prototype, and load from that */
    IC_LOOP_WRITTEN_ELEMENT,    /* guard, bounds check, and load */
    IC_LOOP_CALLED              /* a call of ic_look_up */
};

struct ic_loop {
    enum ic_loop_kind kind;
    const char *name;
    uint64_t id; /* ID of the patch point */
    bool is_along_list;
    unsigned padding; /* number of no-ops before the loop, which move it in its cache line */
};

/* Name of a compiled function that takes an object and returns the property. */
extern const char ic_method_name[];

LLVMModuleRef ic_build_module(LLVMContextRef context, const struct ic_loop *loops, size_t count);

#endif
