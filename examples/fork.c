/*
 * fork: a server loads code once, and a child patches its own copy of it.
 *
 *     cc fork.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/llvm.h>
#include <cairn/patch.h>
#include <cairn/runtime.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

/* long compute(long x) { return <patch point 42>(x); } */
static const char text[] =
    "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, " PTR ", i32, ...)\n"
    "define i64 @compute(i64 %x) uwtable {\n"
    "  %r = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 42, i32 48, " PTR " null, i32 1, i64 %x)\n"
    "  ret i64 %r\n"
    "}\n";

static long add_one(long x) { return x + 1; }
static long add_hundred(long x) { return x + 100; }

static void link_call(cairn_site *site, long (*target)(long))
{
    if (cairn_site_call(site, (void *)(uintptr_t)target, CAIRN_SYNC, NULL) != CAIRN_OK)
        abort();
}

int main(void)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_engine *engine;
    cairn_site *site = NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "fork", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "fork: %s\n", message), 1;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_engine_create(runtime, module, NULL, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK ||
        (site = cairn_engine_site(engine, 42, &error)) == NULL)
        return fprintf(stderr, "fork: %s\n", error.message), 1;
    long (*compute)(long) =
        (long (*)(long))(uintptr_t)cairn_engine_function(engine, "compute", &error);
    link_call(site, add_one);
    pid_t child = fork();
    if (child == 0) {
        /* Fails if the system had no memory for a copy of the code, and still has none. */
        if (cairn_runtime_after_fork(runtime, NULL) != CAIRN_OK)
            abort();
        link_call(site, add_hundred);
        _exit(compute(1) == 101 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    long result = compute(1);
    printf("the child's code %s; here compute(1) is %ld\n", status == 0 ? "changed" : "failed",
           result);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    cairn_runtime_destroy(runtime);
    return status == 0 && result == 2 ? 0 : 1;
}
