/* SPDX-License-Identifier: MIT */
#include "runtime/stub_module.h"

static enum cairn_status load(cairn_runtime *runtime, const char *name, own_code_filler *fill,
                              void *user, cairn_module **module, struct cairn_error *error)
{
    cairn_loader *loader;
    enum cairn_status status = cairn_loader_create(runtime, name, &loader, error);
    if (status != CAIRN_OK)
        return status;
    status = fill(loader, user, error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, module, error);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    return status;
}

enum cairn_status own_code_load(cairn_runtime *runtime, const char *name, own_code_filler *fill,
                                void *user, struct cairn_error *error)
{
    cairn_module *module = NULL;
    enum cairn_status status = load(runtime, name, fill, user, &module, error);
    if (status != CAIRN_OK)
        return status;
    status = cairn_module_publish(module, error);
    if (status != CAIRN_OK)
        cairn_module_retire(module);
    return status;
}

void own_code_retire(cairn_runtime *runtime, const void *data)
{
    cairn_module_retire(cairn_runtime_find_module(runtime, (uintptr_t)data));
}
