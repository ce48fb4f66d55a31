/*
 * Initialisation of exits. The entry of an exit is chosen once, when it is initialised.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include "base/error.h"

void arch_exit_init_level(struct arch_exit *data, arch_exit_handler *handler, void *user,
                          uint32_t vector_level)
{
    *data = (struct arch_exit){
        .entry = arch_host_exit_entry(vector_level),
        .self = data,
        .handler = handler,
        .user = user,
    };
}

enum cairn_status arch_exit_init(struct arch_exit *data, arch_exit_handler *handler, void *user,
                                 struct cairn_error *error)
{
    uint32_t vector_level = arch_host_vector_level();
    if (vector_level == 0)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "Cairn cannot save all vector registers that this machine has");
    arch_exit_init_level(data, handler, user, vector_level);
    return CAIRN_OK;
}
