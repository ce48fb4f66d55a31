/*
 * What a VM that only patches and deoptimises uses of libcairn: bench/size-libcairn links it with
 * the static library, and measures how much of the library is in the program. It loads an object,
 * patches a site, and leaves a function with a result.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/exit.h>
#include <cairn/frame.h>
#include <cairn/load.h>
#include <cairn/patch.h>
#include <cairn/runtime.h>

static void leave(struct cairn_exit_call *call, void *user)
{
    struct cairn_value *values = user;
    if (cairn_frame_values(&call->frame, call->record, 0, 1, values, NULL) == CAIRN_OK &&
        cairn_exit_return(call, values, 1, NULL) == CAIRN_OK)
        call = NULL;
}

/* Returns 0, or which step failed. */
int run_small_vm(const void *object, size_t size, const void *target);

int run_small_vm(const void *object, size_t size, const void *target)
{
    static struct cairn_value values[16];
    cairn_runtime *runtime;
    cairn_loader *loader;
    cairn_module *module;
    cairn_exit *exit;
    if (cairn_runtime_create(NULL, &runtime, NULL) != CAIRN_OK)
        return 1;
    if (cairn_loader_create(runtime, "f.o", &loader, NULL) != CAIRN_OK ||
        cairn_loader_add_object(loader, object, size, NULL, NULL) != CAIRN_OK ||
        cairn_loader_finish(loader, &module, NULL) != CAIRN_OK ||
        cairn_module_publish(module, NULL) != CAIRN_OK)
        return 2;
    cairn_site *site = cairn_runtime_find_site(runtime, 1, NULL);
    if (cairn_site_call(site, target, CAIRN_SYNC, NULL) != CAIRN_OK ||
        cairn_site_restore(site, CAIRN_SYNC, NULL) != CAIRN_OK ||
        cairn_site_leave(site, leave, values, CAIRN_SYNC, &exit, NULL) != CAIRN_OK)
        return 3;
    cairn_module_retire(module);
    cairn_runtime_quiesce(runtime);
    cairn_runtime_destroy(runtime);
    return 0;
}

int main(int argument_count, char **arguments)
{
    return run_small_vm(arguments[argument_count], 0, arguments);
}
