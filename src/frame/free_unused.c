/*
 * Frees retired modules in which no frame is.
 *
 * Each walk marks the modules that it finds. A grace period was started before the walks. When it
 * ends, what was retired before its start and has no mark is freed. So a module that another thread
 * retires during the walks is kept.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "runtime/module.h"

#include <cairn/walk.h>

static enum cairn_status check(const cairn_runtime *runtime, const struct cairn_walk *walks,
                               size_t count, struct cairn_error *error)
{
    if (runtime == NULL || (walks == NULL && count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_runtime_free_unused: `%s` is NULL",
                         runtime == NULL ? "runtime" : "walks");
    for (size_t i = 0; i < count; i++) {
        const char *problem = walks[i].frame.runtime != runtime ? "is of another runtime"
                              : walks[i].has_begun              ? "has been advanced already"
                              : walks[i].foreign == NULL ? "has no hook, and would end too early"
                                                         : NULL;
        if (problem != NULL)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i, "walk %zu %s", i, problem);
    }
    return CAIRN_OK;
}

static enum cairn_status mark_modules(struct cairn_walk *walk, struct cairn_error *error)
{
    enum cairn_status status;
    while ((status = cairn_walk_next(walk, error)) == CAIRN_OK && !walk->has_ended)
        walk->frame.module->has_frame = true;
    return status;
}

enum cairn_status cairn_runtime_free_unused(cairn_runtime *runtime, struct cairn_walk *walks,
                                            size_t count, size_t *freed, struct cairn_error *error)
{
    enum cairn_status status = check(runtime, walks, count, error);
    if (status != CAIRN_OK)
        return status;
    const uint64_t token = cairn_runtime_grace_start(runtime);
    modules_forget_frames(runtime);
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = mark_modules(&walks[i], error);
    if (status != CAIRN_OK)
        return status;
    const size_t freed_count = runtime_end_grace(runtime, token, module_is_unused);
    if (freed != NULL)
        *freed = freed_count;
    return CAIRN_OK;
}
