/*
 * perf_map: names compiled code for Linux perf, which reads /tmp/perf-PID.map.
 *
 *     cc perf_map.c $(pkg-config --cflags --libs cairn-llvm)
 *     ./a.out >/tmp/perf-PID.map
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/llvm.h>
#include <cairn/runtime.h>
#include <inttypes.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>

static const char text[] = "define i64 @compute(i64 %x) uwtable {\n"
                           "  %y = mul i64 %x, %x\n  ret i64 %y\n}\n";

/* Writes a line for each range of code: its address, its size, both in hexadecimal, and a name. */
static unsigned write_map(FILE *map, const cairn_module *module)
{
    struct cairn_memory_range range;
    unsigned count = 0;
    for (uint32_t i = 0; cairn_module_memory_range(module, i, &range); i++)
        if (range.executable) {
            fprintf(map, "%" PRIx64 " %zx %s\n", range.address, range.size,
                    cairn_module_name(module));
            count++;
        }
    return count;
}

int main(void)
{
    const struct cairn_engine_options options = {.modules.name = "compute"};
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_engine *engine;
    const void *function = NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "perf_map", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "perf_map: %s\n", message), 1;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_engine_create(runtime, module, &options, &engine, &error) != CAIRN_OK ||
        (function = cairn_engine_function(engine, "compute", &error)) == NULL)
        return fprintf(stderr, "perf_map: %s\n", error.message), 1;
    unsigned count = write_map(stdout, cairn_runtime_find_module(runtime, (uintptr_t)function));
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    cairn_runtime_destroy(runtime);
    return count > 0 ? 0 : 1;
}
