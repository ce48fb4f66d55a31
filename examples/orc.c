/*
 * orc: a host with a JIT of LLVM's LLJIT. Functions are compiled when they are first looked up,
 * patched, and removed one by one. Needs LLVM 16 or later.
 *
 *     cc orc.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/llvm.h>
#include <cairn/patch.h>
#include <inttypes.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

/* long compute(long x) { return <patch point 42: add_one>(x); } */
static const char compute_text[] =
    "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, " PTR ", i32, ...)\n"
    "define i64 @compute(i64 %%x) uwtable {\n"
    "  %%r = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 42, i32 48, " PTR " inttoptr (i64 %" PRIuPTR " to " PTR "), i32 1, i64 %%x)\n"
    "  ret i64 %%r\n"
    "}\n";
static const char broken_text[] = "declare i64 @missing(i64)\n"
                                  "define i64 @broken(i64 %x) {\n"
                                  "  %r = call i64 @missing(i64 %x)\n"
                                  "  ret i64 %r\n"
                                  "}\n";

static cairn_orc *orc;
static LLVMOrcLLJITRef jit;
static struct cairn_error error;

static long add_one(long x) { return x + 1; }
static long add_hundred(long x) { return x + 100; }

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "orc: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status)
{
    if (status != CAIRN_OK)
        fail(error.message);
}

/* Fails with Cairn's error, which tells more than LLVM's. */
static void check_llvm(LLVMErrorRef failure) { check(cairn_orc_status(orc, failure, &error)); }

/* Creates a JIT that loads into the runtime. Returns false if this LLVM is too old. */
static bool create_jit(cairn_runtime *runtime)
{
    if (cairn_orc_create(runtime, NULL, &orc, &error) == CAIRN_ERROR_UNSUPPORTED)
        return false;
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator(builder, cairn_orc_layer, orc);
    check_llvm(LLVMOrcCreateLLJIT(&jit, builder));
    LLVMOrcIRTransformLayerSetTransform(LLVMOrcLLJITGetIRTransformLayer(jit), cairn_orc_transform,
                                        orc);
    return true;
}

static void destroy_jit(void)
{
    check_llvm(LLVMOrcDisposeLLJIT(jit));
    cairn_orc_destroy(orc);
}

/* Adds a module with a separate context. What the returned tracker has can be removed. */
static LLVMOrcResourceTrackerRef add(const char *ir)
{
    char *message;
    LLVMModuleRef module;
#if LLVM_VERSION_MAJOR < 21
    LLVMOrcThreadSafeContextRef owner = LLVMOrcCreateNewThreadSafeContext();
    LLVMContextRef context = LLVMOrcThreadSafeContextGetContext(owner);
#else
    LLVMContextRef context = LLVMContextCreate();
    LLVMOrcThreadSafeContextRef owner = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(context);
#endif
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, strlen(ir), "ir");
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        fail(message);
    LLVMOrcResourceTrackerRef tracker =
        LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(jit));
    check_llvm(LLVMOrcLLJITAddLLVMIRModuleWithRT(jit, tracker,
                                                 LLVMOrcCreateNewThreadSafeModule(module, owner)));
    LLVMOrcDisposeThreadSafeContext(owner);
    return tracker;
}

int main(void)
{
    cairn_runtime *runtime;
    uint64_t address = 0;
    check(cairn_runtime_create(NULL, &runtime, &error));
    if (!create_jit(runtime))
        return printf("orc: %s\n", error.message), 77;
    char ir[1024];
    snprintf(ir, sizeof ir, compute_text, (uintptr_t)add_one);
    LLVMOrcResourceTrackerRef compute_code = add(ir);
    LLVMOrcResourceTrackerRef broken_code = add(broken_text);

    check_llvm(LLVMOrcLLJITLookup(jit, &address, "compute"));
    long (*compute)(long) = (long (*)(long))(uintptr_t)address;
    long before = compute(1);
    cairn_site *site = cairn_runtime_find_site(runtime, 42, &error);
    if (site == NULL)
        fail(error.message);
    check(cairn_site_call(site, (void *)(uintptr_t)add_hundred, CAIRN_SYNC, &error));
    long after = compute(1);
    printf("compute(1) was %ld and is %ld\n", before, after);

    bool failed = cairn_orc_status(orc, LLVMOrcLLJITLookup(jit, &address, "broken"), &error) != 0;
    printf("broken: %s\n", failed ? error.message : "was compiled");
    check_llvm(LLVMOrcResourceTrackerRemove(compute_code));
    printf("modules freed: %zu\n", cairn_runtime_quiesce(runtime));

    LLVMOrcReleaseResourceTracker(compute_code);
    LLVMOrcReleaseResourceTracker(broken_code);
    destroy_jit();
    cairn_runtime_destroy(runtime);
    return before == 2 && after == 101 && failed ? 0 : 1;
}
