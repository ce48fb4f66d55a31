/*
 * Observes a context's diagnostics.
 *
 * If a C++ host has replaced LLVM's handler object by one that does not call the C API's handler,
 * nothing is observed, and that object decides what LLVM does with an error. Source:
 * llvm/lib/IR/LLVMContext.cpp, LLVMContext::diagnose.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/diagnostics.h"

#include "base/error.h"

#include <string.h>

/* Joins the lines of LLVM's text, which shows the source in further lines. */
static void join_lines(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    for (char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
}

void diagnostics_keep_first(LLVMDiagnosticInfoRef info, struct cairn_error *first)
{
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || first->status != CAIRN_OK)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    join_lines(text);
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
