/*
 * llvm/engine.h - what queues need of engines.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_ENGINE_H
#define LLVM_ENGINE_H

#include <cairn/llvm.h>

/* Gives the modules that the engine will load a scope with this key instead of the engine's own,
 * and without a list: destroying the engine does not retire them. */
void engine_share(cairn_engine *engine, const void *key);

/* Checks what can be checked without LLVM's target. ARGUMENT, LLVM. */
CAIRN_MUST_CHECK enum cairn_status engine_check_options(const struct cairn_engine_options *options,
                                                        struct cairn_error *error);

/* An object that was compiled before. */
struct engine_object {
    const char *name; /* of the function that it is loaded for */
    const void *bytes;
    size_t size;
};

/* Loads an object as an engine with these options and a shared scope does, without LLVM.
 * `modules.name` must be set. The module is not published. Errors: as cairn_loader_add_object and
 * cairn_loader_finish. */
CAIRN_MUST_CHECK enum cairn_status engine_load_object(
    cairn_runtime *runtime, const struct cairn_engine_options *options, const void *scope,
    const struct engine_object *object, cairn_module **module, struct cairn_error *error);

/* Disposes of the modules that were added and not compiled. */
void engine_discard(cairn_engine *engine);

/* Compiles the modules that were added, so that LLVM initialises what it needs for that, and
 * disposes of them and their code. Ignores errors: jobs will have them, too. */
void engine_warm_up(cairn_engine *engine);

#endif
