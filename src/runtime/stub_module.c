/* SPDX-License-Identifier: MIT */
#include "runtime/stub_module.h"

#include "base/error.h"

static enum cairn_status fill(cairn_loader *loader, const struct stub_part *parts, size_t count,
                              stub_module_writer *write, void *user, void **description,
                              struct cairn_error *error)
{
    void *addresses[STUB_PARTS_MAX];
    struct cairn_error failed = {0};
    for (size_t i = 0; i < count; i++) {
        addresses[i] = cairn_loader_allocate(loader, parts[i].kind, parts[i].size,
                                             parts[i].alignment, NULL, &failed);
        if (addresses[i] == NULL)
            return error_set(error, failed.status, failed.offset, "%s", failed.message);
    }
    *description = addresses[count - 1];
    return write(addresses, user, error);
}

enum cairn_status stub_module_load(cairn_runtime *runtime, const char *name,
                                   const struct stub_part *parts, size_t count,
                                   stub_module_writer *write, void *user, void **description,
                                   struct cairn_error *error)
{
    cairn_loader *loader;
    cairn_module *module;
    enum cairn_status status = cairn_loader_create(runtime, name, &loader, error);
    if (status != CAIRN_OK)
        return status;
    status = fill(loader, parts, count, write, user, description, error);
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
