/*
 * The barrier after which no core executes an older instruction: each core that runs a thread of
 * this process executes a core-serialising event.
 *
 * Source: membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE (Linux 4.16, on architectures
 * that have it). The kernel copies the registration to a forked child with the rest of the address
 * space's description. A child that has lost it registers again. A registration that was refused,
 * for example in a child for which the kernel had no memory, is tried again at the next request: it
 * takes one system call, and no other thread has to know.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "code/slab.h"
#include "code/state.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static int membarrier(int command) { return (int)syscall(SYS_membarrier, command, 0, 0); }

static bool register_process(void)
{
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) == 0;
}

void barrier_register(struct code_space *space)
{
    atomic_store_explicit(&space->has_barrier, register_process(), memory_order_relaxed);
}

/* Needed in single mapping, too. Invalidating a page on other cores is not a core-serialising
 * event: AArch64 and newer AMD processors (INVLPGB) do it without interrupting them. */
bool code_space_can_synchronise(struct code_space *space)
{
    if (!atomic_load_explicit(&space->has_barrier, memory_order_relaxed))
        barrier_register(space);
    return atomic_load_explicit(&space->has_barrier, memory_order_relaxed);
}

enum cairn_status code_space_synchronise(struct code_space *space, struct cairn_error *error)
{
    if (!code_space_can_synchronise(space))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "this system has no membarrier with SYNC_CORE (Linux 4.16), so other "
                         "cores cannot be made to see a patch at once: patch with "
                         "CAIRN_RELAXED");
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE) == 0 ||
        (errno == EPERM && register_process() &&
         membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE) == 0))
        return CAIRN_OK;
    return error_set_system(error, errno,
                            "the barrier was refused, and what was patched stays so (membarrier)");
}

enum cairn_status space_publish_code(struct code_space *space, struct cairn_error *error)
{
    return code_space_can_synchronise(space) ? code_space_synchronise(space, error) : CAIRN_OK;
}

enum cairn_status space_forget_code(struct code_space *space, struct code_slab *slab,
                                    struct cairn_error *error)
{
    if (!slab->has_released_code && !space->arch->new_code_needs_barrier)
        return CAIRN_OK;
    enum cairn_status status = space_publish_code(space, error);
    if (status == CAIRN_OK)
        slab->has_released_code = false;
    return status;
}
