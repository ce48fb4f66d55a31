/*
 * lazy_link: the first execution of a call finds its callee, and patches the call. Where the
 * processor has memory protection keys, no other code of the process can write to the code.
 *
 *     cc lazy_link.c $(pkg-config --cflags --libs cairn-llvm)
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
/* long compute(long x) { return <patch point 2>(<patch point 1>(x)); } The IDs are the numbers of
 * the callees. */
static const char text[] =
    "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, " PTR ", i32, ...)\n"
    "define i64 @compute(i64 %x) uwtable {\n"
    "  %y = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 1, i32 48, " PTR " null, i32 1, i64 %x)\n"
    "  %z = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 2, i32 48, " PTR " null, i32 1, i64 %y)\n"
    "  ret i64 %z\n}\n";

static long add_one(long x) { return x + 1; }
static long twice(long x) { return 2 * x; }
static long (*const functions[])(long) = {[1] = add_one, [2] = twice};

static cairn_runtime *runtime;
static unsigned resolved;

/* Finds the calling site by the return address. A VM would compile the callee here. */
static long resolve(long x)
{
    struct cairn_record record;
    uint64_t address = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
    cairn_module *module = cairn_runtime_find_module(runtime, address);
    if (module == NULL ||
        !cairn_table_find_return_address(cairn_module_table(module), address, &record))
        abort();
    long (*callee)(long) = functions[cairn_record_id(record)];
    if (cairn_site_call(cairn_record_site(record), (void *)(uintptr_t)callee, CAIRN_SYNC, NULL) !=
        CAIRN_OK)
        abort();
    resolved++;
    return callee(x);
}

/* Creates a runtime whose code only a thread that patches it can write to, and only while it does,
 * on processors and kernels with memory protection keys; otherwise one without. */
static enum cairn_status create_runtime(cairn_runtime **created, struct cairn_error *error)
{
    struct cairn_runtime_options options = {.protects_writes = true};
    enum cairn_status status = cairn_runtime_create(&options, created, error);
    if (status != CAIRN_ERROR_UNSUPPORTED)
        return status;
    printf("without a memory protection key: %s\n", error->message);
    options.protects_writes = false;
    return cairn_runtime_create(&options, created, error);
}

int main(void)
{
    struct cairn_error error;
    cairn_engine *engine;
    cairn_site *site = NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "lazy_link", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "lazy_link: %s\n", message), 1;
    if (create_runtime(&runtime, &error) != CAIRN_OK ||
        cairn_engine_create(runtime, module, NULL, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK)
        return fprintf(stderr, "lazy_link: %s\n", error.message), 1;
    for (uint64_t id = 1; id <= 2; id++)
        if ((site = cairn_engine_site(engine, id, &error)) == NULL ||
            cairn_site_call(site, (void *)(uintptr_t)resolve, CAIRN_SYNC, &error) != CAIRN_OK)
            return fprintf(stderr, "lazy_link: %s\n", error.message), 1;
    long (*compute)(long) =
        (long (*)(long))(uintptr_t)cairn_engine_function(engine, "compute", &error);
    long first = compute(20), second = compute(20);
    printf("compute(20) is %ld, then %ld; %u calls were resolved\n", first, second, resolved);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    cairn_runtime_destroy(runtime);
    return first == 42 && second == 42 && resolved == 2 ? 0 : 1;
}
