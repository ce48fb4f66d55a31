/*
 * Sets LLVM's options, and observes a context's diagnostics.
 *
 * If a C++ host has replaced LLVM's handler object by one that does not call the C API's handler,
 * nothing is observed, and that object decides what LLVM does with an error. Source:
 * llvm/lib/IR/LLVMContext.cpp, LLVMContext::diagnose.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/compile.h"

#include "base/error.h"
#include "llvm/ir.h"

#include <llvm-c/Support.h>
#include <pthread.h>
#include <stddef.h>

void diagnostics_keep_first(LLVMDiagnosticInfoRef info, struct cairn_error *first)
{
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || first->status != CAIRN_OK)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    ir_join_lines(text);
    error_set(first, CAIRN_ERROR_LLVM, 0, "LLVM: %s", text);
    LLVMDisposeMessage(text);
}

static void observe(LLVMDiagnosticInfoRef info, void *user)
{
    const struct diagnostics *diagnostics = user;
    diagnostics_keep_first(info, diagnostics->first);
    if (diagnostics->host_handler != NULL)
        diagnostics->host_handler(info, diagnostics->host_user);
}

void diagnostics_begin(struct diagnostics *diagnostics, LLVMContextRef context,
                       struct cairn_error *first)
{
    *diagnostics = (struct diagnostics){
        .context = context,
        .first = first,
        .host_handler = LLVMContextGetDiagnosticHandler(context),
        .host_user = LLVMContextGetDiagnosticContext(context),
    };
    LLVMContextSetDiagnosticHandler(context, observe, diagnostics);
}

void diagnostics_end(const struct diagnostics *diagnostics)
{
    LLVMContextRef context = diagnostics->context;
    if (LLVMContextGetDiagnosticContext(context) == diagnostics)
        LLVMContextSetDiagnosticHandler(context, diagnostics->host_handler, diagnostics->host_user);
}

static void set_option(const char *option)
{
    const char *const arguments[] = {"cairn", option};
    LLVMParseCommandLineOptions(2, arguments, NULL);
}

static void turn_liveness_off(void) { set_option("-enable-patchpoint-liveness=false"); }

/* Turns off PPCVSXSwapRemoval, which leaves vectors in registers with their halves swapped, even in
 * registers that a record names. Turns off loops whose counter is in CTR: LLVM 14 and 15 do not
 * treat a patch point as a call when they choose such loops, but its call sequence changes CTR. */
static void turn_off_ppc64_passes(void)
{
    set_option("-disable-ppc-vsx-swap-removal");
    set_option("-disable-ppc-ctrloops");
}

void compile_turn_liveness_off(enum cairn_architecture architecture)
{
    static pthread_once_t liveness = PTHREAD_ONCE_INIT;
    static pthread_once_t ppc64 = PTHREAD_ONCE_INIT;
    pthread_once(&liveness, turn_liveness_off);
    if (architecture == CAIRN_ARCHITECTURE_PPC64_ELFV2)
        pthread_once(&ppc64, turn_off_ppc64_passes);
}
