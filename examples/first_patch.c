/*
 * The first patch: a call in compiled code is made to go to another function.
 *
 *     cc first_patch.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/llvm.h>
#include <cairn/patch.h>
#include <inttypes.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

/* long compute(long x) { return <patch point 42: add_one>(x); } */
static const char text[] =
    "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, " PTR ", i32, ...)\n"
    "define i64 @compute(i64 %%x) uwtable {\n"
    "  %%r = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 42, i32 48, " PTR " inttoptr (i64 %" PRIuPTR " to " PTR "), i32 1, i64 %%x)\n"
    "  ret i64 %%r\n"
    "}\n";

static long add_one(long x) { return x + 1; }
static long add_hundred(long x) { return x + 100; }

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "first_patch: %s\n", message);
    exit(1);
}

static struct cairn_error error;

static void check(enum cairn_status status)
{
    if (status != CAIRN_OK)
        fail(error.message);
}

static LLVMModuleRef parse(LLVMContextRef context)
{
    static char ir[1024];
    int size = snprintf(ir, sizeof ir, text, (uintptr_t)add_one);
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(ir, (size_t)size, "first_patch", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) == 0)
        return module;
    fail(message);
}

int main(void)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = parse(context);
    cairn_engine *engine;

    check(cairn_engine_create(NULL, module, NULL, &engine, &error));
    check(cairn_engine_compile(engine, &error));
    long (*compute)(long) =
        (long (*)(long))(uintptr_t)cairn_engine_function(engine, "compute", &error);
    long before = compute(1);

    cairn_site *site = cairn_engine_site(engine, 42, &error);
    if (site == NULL)
        fail(error.message);
    check(cairn_site_call(site, (void *)(uintptr_t)add_hundred, CAIRN_SYNC, &error));
    long after = compute(1);
    printf("compute(1) was %ld and is %ld\n", before, after);

    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    return before == 2 && after == 101 ? 0 : 1;
}
