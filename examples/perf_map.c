/*
 * perf_map: names compiled code for Linux perf, and for gdb.
 *
 *     cc perf_map.c $(pkg-config --cflags --libs cairn-llvm)
 *     perf record -e cpu-clock ./a.out
 *     perf report --stdio                    most samples are in `compute`
 *
 * With CAIRN_PERF_DUMP in place of CAIRN_PERF_MAP, perf also shows the code (cairn/debug.h). If gdb
 * stops the program, `backtrace` has the name, too.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/debug.h>
#include <cairn/llvm.h>
#include <inttypes.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>

static const char text[] = "define i64 @compute(i64 %n) uwtable {\n"
                           "entry:\n  br label %loop\n"
                           "loop:\n"
                           "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
                           "  %sum = phi i64 [ 1, %entry ], [ %product, %loop ]\n"
                           "  %product = mul i64 %sum, 3\n"
                           "  %next = add i64 %i, 1\n"
                           "  %is_last = icmp uge i64 %next, %n\n"
                           "  br i1 %is_last, label %end, label %loop\n"
                           "end:\n  ret i64 %product\n}\n";

enum { ROUNDS = 30000000 };

int main(void)
{
    const struct cairn_perf_options perf_options = {.format = CAIRN_PERF_MAP};
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_perf *perf;
    cairn_debugger *debugger;
    cairn_engine *engine;
    const void *function;
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "perf_map", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "perf_map: %s\n", message), 1;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_perf_open(runtime, &perf_options, &perf, &error) != CAIRN_OK ||
        cairn_debugger_attach(runtime, &debugger, &error) != CAIRN_OK ||
        cairn_engine_create(runtime, module, NULL, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK ||
        (function = cairn_engine_function(engine, "compute", &error)) == NULL)
        return fprintf(stderr, "perf_map: %s\n", error.message), 1;
    printf("3 to the power of %d, modulo 2 to the power of 64: %" PRIu64 "\n", ROUNDS,
           ((uint64_t(*)(uint64_t))(uintptr_t)function)(ROUNDS));
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    cairn_debugger_destroy(debugger);
    if (cairn_perf_destroy(perf, &error) != CAIRN_OK)
        return fprintf(stderr, "perf_map: %s\n", error.message), 1;
    cairn_runtime_destroy(runtime);
    return 0;
}
