/*
 * runtime/inspect.h - the runtime's descriptor for readers in other processes (base/inspect.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_INSPECT_H
#define RUNTIME_INSPECT_H

#include "runtime/runtime.h"

/* Gives a complete runtime its descriptor. If the system refuses the mapping, the runtime has none,
 * and other processes do not find it. */
void runtime_inspect_create(cairn_runtime *runtime);

/* Removes the descriptor, before anything that it leads to is freed. */
void runtime_inspect_destroy(cairn_runtime *runtime);

#endif
