/*
 * bench/ic_code.h - loops over objects as LLVM IR: `int64_t loop(struct ic_object **, int64_t)`.
 *
 * All are the same but for what they do with each object; those that read return the sum of the
 * property, those that write return how many objects there were. Those along a list have the next
 * object from the property, and return the last one of `count`.
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
    IC_LOOP_SITE,          /* a patch point with anyregcc, without a target */
    IC_LOOP_SITE_C,        /* with the C calling convention */
    IC_LOOP_SITE_STORE,    /* of an object and what is to be stored; no result */
    IC_LOOP_WRITTEN,       /* guard and load; where the guard fails, a call */
    IC_LOOP_WRITTEN_FOUR,  /* four guards, one after the other */
    IC_LOOP_WRITTEN_STORE, /* guard and store */
    IC_LOOP_CALLED         /* a call of ic_look_up */
};

struct ic_loop {
    enum ic_loop_kind kind;
    const char *name;
    uint64_t id; /* of the patch point */
    bool is_along_list;
};

LLVMModuleRef ic_build_module(LLVMContextRef context, const struct ic_loop *loops, size_t count);

#endif
