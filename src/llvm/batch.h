/*
 * llvm/batch.h - loads the objects of tasks, and compiles the modules of several tasks together.
 *
 * A compiler has an engine once a task needs it, and must be used by one thread at a time. Several
 * compilers work concurrently.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_BATCH_H
#define LLVM_BATCH_H

#include <cairn/llvm.h>

struct compiler;

/* A function to compile or to load. */
struct task {
    struct cairn_queue_job job; /* `bitcode` and `object` are copies */
    char *function;             /* its name */
    bool drops_guards;          /* of `until_full` */
    cairn_signature *signature; /* of its type; NULL: none, or the module was not built */
};

struct compiler_callbacks {
    /* Whether the task is still to be compiled. */
    bool (*is_wanted)(struct task *task);
    /* Called once for each task. `address` is NULL after an error, and if the status is OK, when
     * the task is not wanted any more. Returns whether the code at the address will be used. */
    bool (*end)(struct task *task, void *address, const struct cairn_error *error);
};

/* Creates a compiler whose engine will have these options. Does not use LLVM. Errors: MEMORY. */
CAIRN_MUST_CHECK enum cairn_status compiler_create(cairn_runtime *runtime,
                                                   const struct cairn_engine_options *options,
                                                   const struct compiler_callbacks *callbacks,
                                                   struct compiler **compiler,
                                                   struct cairn_error *error);

/* Creates the engine, unless there is one. LLVM takes milliseconds for that. Errors: those of
 * cairn_engine_create. */
CAIRN_MUST_CHECK enum cairn_status compiler_prepare(struct compiler *compiler,
                                                    struct cairn_error *error);

/* Compiles a function with the engine, so that the first task finds LLVM initialised. */
void compiler_warm_up(struct compiler *compiler);

/* Leaves what was loaded. NULL is allowed. */
void compiler_destroy(struct compiler *compiler);

/* Builds, compiles, loads and publishes the code of the tasks, and ends each of them. Changes the
 * list. */
void compiler_run(struct compiler *compiler, struct task **tasks, size_t count);

#endif
