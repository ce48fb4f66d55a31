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
#include <stdbool.h>
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

/* PPCVSXSwapRemoval leaves vectors in registers with their halves swapped, even in registers that a
 * record names. LLVM 14 and 15 do not treat a patch point as a call when they choose loops whose
 * counter is in CTR, but its call sequence changes CTR. */
static const struct {
    enum compile_option option;
    bool is_for_ppc64; /* and only for little-endian PPC64 */
    const char *text;
} options[] = {
    {COMPILE_WITHOUT_LIVENESS, false, "-enable-patchpoint-liveness=false"},
    {COMPILE_WITHOUT_LIVENESS, true, "-disable-ppc-vsx-swap-removal"},
    {COMPILE_WITHOUT_LIVENESS, true, "-disable-ppc-ctrloops"},
    {COMPILE_IMPLICIT_NULL_CHECKS, false, "-enable-implicit-null-checks"},
};

void compile_set_option(enum compile_option option, enum cairn_architecture architecture)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_set[sizeof options / sizeof *options];
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *const arguments[] = {"cairn", options[i].text};
        if (options[i].option != option || is_set[i] ||
            (options[i].is_for_ppc64 && architecture != CAIRN_ARCHITECTURE_PPC64_ELFV2))
            continue;
        LLVMParseCommandLineOptions(2, arguments, NULL);
        is_set[i] = true;
    }
    pthread_mutex_unlock(&lock);
}
