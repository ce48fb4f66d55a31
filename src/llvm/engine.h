/*
 * llvm/engine.h - what queues need of engines.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_ENGINE_H
#define LLVM_ENGINE_H

#include <cairn/llvm.h>

/* Gives the modules that the engine will load another scope than the engine. They do not belong to
 * the engine then: destroying it does not retire them. */
void engine_share(cairn_engine *engine, const void *scope);

/* Compiles, loads and publishes all modules that were added since the last call, as one module, and
 * disposes of them. If none was added, returns what the last call returned. Errors: those of
 * cairn_engine_function, except that of an unknown name. */
CAIRN_MUST_CHECK enum cairn_status engine_finalise(cairn_engine *engine, struct cairn_error *error);

#endif
