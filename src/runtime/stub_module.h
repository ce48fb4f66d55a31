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

/* A part of the module: its description is the last one. */
struct stub_part {
    enum cairn_section_kind kind;
    size_t size;
    size_t alignment;
};
enum { STUB_PARTS_MAX = 4 };

/* Writes the parts, which have these addresses. */
typedef enum cairn_status stub_module_writer(void *const *parts, void *user,
                                             struct cairn_error *error);

/* Creates a module with at most STUB_PARTS_MAX parts, writes and publishes it. `*description` is
 * the address of the last part. On failure no module remains. */
enum cairn_status stub_module_load(cairn_runtime *runtime, const char *name,
                                   const struct stub_part *parts, size_t count,
                                   stub_module_writer *write, void *user, void **description,
                                   struct cairn_error *error);

/* Retires the module with this description. */
void stub_module_retire(cairn_runtime *runtime, const void *description);

#endif
