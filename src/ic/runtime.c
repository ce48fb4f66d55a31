/*
 * Operations on all inline caches of a runtime or of a module.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "ic/batch.h"
#include "ic/report.h"
#include "runtime/module.h"

enum cairn_status cairn_module_reset_ics(cairn_module *module, enum cairn_strength strength,
                                         size_t *count, struct cairn_error *error)
{
    if (module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no module to reset");
    return ic_reset_sites(module->sites, strength, count, error);
}

enum cairn_status cairn_runtime_remove_ic_key(cairn_runtime *runtime, uint64_t key,
                                              enum cairn_strength strength, size_t *count,
                                              struct cairn_error *error)
{
    if (runtime == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "there is no runtime to remove a key from");
    return ic_set_remove_key(&runtime->ics, key, strength, count, error);
}

enum cairn_status cairn_ic_batch_create(cairn_runtime *runtime, cairn_ic_batch **batch,
                                        struct cairn_error *error)
{
    if (runtime == NULL || batch == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_ic_batch_create needs a runtime and a place for the batch");
    return ic_batch_create(&runtime->ics, batch, error);
}

void cairn_runtime_visit_ics(cairn_runtime *runtime, cairn_ic_visitor *visit, void *user)
{
    /* The visitor may release the host's reference to the runtime. */
    cairn_runtime_retain(runtime);
    ic_set_visit(&runtime->ics, visit, user);
    cairn_runtime_destroy(runtime);
}

size_t cairn_runtime_format_ics(cairn_runtime *runtime, char *text, size_t size)
{
    return ic_set_format(&runtime->ics, text, size);
}
