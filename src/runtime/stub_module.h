/*
 * runtime/stub_module.h - code that Cairn itself creates in code memory.
 *
 * Such code is a separate module without records, and its description is in the module's read-only
 * data. So both are protected, retired and freed like other code.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_STUB_MODULE_H
#define RUNTIME_STUB_MODULE_H

#include <cairn/module.h>
#include <cairn/runtime.h>
#include <cairn/status.h>

/* Allocates the parts of the module from the loader, and writes them. */
typedef enum cairn_status own_code_filler(cairn_loader *loader, void *user,
                                          struct cairn_error *error);

/* Creates a module, fills it with `fill`, and publishes it. On failure no module remains. */
enum cairn_status own_code_load(cairn_runtime *runtime, const char *name, own_code_filler *fill,
                                void *user, struct cairn_error *error);

/* Retires the module that contains `data`. */
void own_code_retire(cairn_runtime *runtime, const void *data);

#endif
