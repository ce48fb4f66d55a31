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

#endif
