/*
 * The first deoptimisation: a patch point leaves a function, with a result from its live values.
 *
 *     cc first_deopt.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/exit.h>
#include <cairn/llvm.h>
#include <llvm-c/IRReader.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

/* long compute(long x) { long y = 10 * x; <patch point 42, live values x and y>; return y; } */
static const char text[] =
    "declare void @llvm.experimental.patchpoint.void(i64, i32, " PTR ", i32, ...)\n"
    "define i64 @compute(i64 %x) uwtable {\n"
    "  %y = mul i64 %x, 10\n"
    "  call void (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.void(\n"
    "      i64 42, i32 48, " PTR " null, i32 0, i64 %x, i64 %y)\n"
    "  ret i64 %y\n"
    "}\n";

/* Returns x + y from compute. */
static void leave(struct cairn_exit_call *call, void *user)
{
    struct cairn_value values[2];
    (void)user;
    if (cairn_frame_values(&call->frame, call->record, 0, 2, values, NULL) != CAIRN_OK)
        abort();
    struct cairn_value sum =
        cairn_value_of_integer(64, cairn_value_signed(&values[0]) + cairn_value_signed(&values[1]));
    if (cairn_exit_return(call, &sum, 1, NULL) != CAIRN_OK)
        abort();
}

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "first_deopt: %s\n", message);
    exit(1);
}

static LLVMModuleRef parse(LLVMContextRef context)
{
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "first_deopt", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) == 0)
        return module;
    fail(message);
}

int main(void)
{
    struct cairn_error error;
    cairn_engine *engine;
    LLVMContextRef context = LLVMContextCreate();
    if (cairn_engine_create(NULL, parse(context), NULL, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK)
        fail(error.message);
    long (*compute)(long) =
        (long (*)(long))(uintptr_t)cairn_engine_function(engine, "compute", &error);
    long before = compute(1);
    cairn_site *site = cairn_engine_site(engine, 42, &error);
    cairn_exit *exit;
    if (site == NULL || cairn_site_leave(site, leave, NULL, CAIRN_SYNC, &exit, &error) != CAIRN_OK)
        fail(error.message);
    long after = compute(1);
    printf("compute(1) was %ld and is %ld\n", before, after);
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    return before == 10 && after == 11 ? 0 : 1;
}
