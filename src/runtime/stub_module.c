/* SPDX-License-Identifier: MIT */
#include "runtime/stub_module.h"

#include "base/error.h"

enum cairn_status stub_module_load(cairn_runtime *runtime, const char *name,
                                   const struct stub_part *parts, size_t count,
                                   stub_module_writer *write, void *user, void **description,
                                   struct cairn_error *error)
{
    cairn_loader *loader;
    cairn_module *module;
    struct cairn_error failure = {0};
    void *addresses[STUB_PARTS_MAX] = {NULL};
    enum cairn_status status = cairn_loader_create(runtime, name, &loader, error);
    if (status != CAIRN_OK)
        return status;
    for (size_t i = 0; i < count && failure.status == CAIRN_OK; i++)
        addresses[i] = cairn_loader_allocate(loader, parts[i].kind, parts[i].size,
                                             parts[i].alignment, NULL, &failure);
    if (failure.status != CAIRN_OK)
        status = error_set(error, failure.status, failure.offset, "%s", failure.message);
    *description = addresses[count - 1];
    if (status == CAIRN_OK)
        status = write(addresses, user, error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, &module, error);
    if (status != CAIRN_OK) {
        cairn_loader_destroy(loader);
        return status;
    }
    status = cairn_module_publish(module, error);
    if (status != CAIRN_OK)
        cairn_module_retire(module);
    return status;
}

void stub_module_retire(cairn_runtime *runtime, const void *description)
{
    cairn_module_retire(cairn_runtime_find_module(runtime, (uintptr_t)description));
}
