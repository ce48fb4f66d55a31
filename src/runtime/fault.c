/* SPDX-License-Identifier: MIT */
#include <cairn/fault.h>

#include "arch/arch.h"
#include "runtime/runtime.h"

#include <signal.h>

bool cairn_fault_is_null(const void *siginfo, uint64_t null_bytes)
{
    const siginfo_t *info = siginfo;
    bool is_access =
        info->si_signo == SIGSEGV && (info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR);
    if (!is_access)
        return false;
    if (null_bytes == 0)
        null_bytes = CAIRN_FAULT_NULL_BYTES;
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    return address < null_bytes || -address < null_bytes;
}

bool cairn_fault_continue(const cairn_runtime *runtime, const void *siginfo, void *ucontext,
                          uint64_t null_bytes, struct cairn_fault_entry *entry)
{
    struct cairn_fault_entry found;
    if (!cairn_fault_is_null(siginfo, null_bytes))
        return false;
    uint64_t pc = arch_signal_pc(ucontext);
    const cairn_module *module = runtime_find_frame_module(runtime, pc);
    if (!cairn_fault_table_find(cairn_module_fault_table(module), pc, &found))
        return false;
    arch_set_signal_pc(ucontext, found.handler_address);
    if (entry != NULL)
        *entry = found;
    return true;
}
