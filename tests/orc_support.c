/* SPDX-License-Identifier: MIT */
#include "tests/orc_support.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <llvm-c/Error.h>
#include <llvm-c/Target.h>

#if LLVM_HAS_ORC_CALLBACKS

/* ---- Unwind tables ---- */

static atomic_int registered;

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-*) */
extern void __register_frame(void *table);
extern void __deregister_frame(void *table);

__attribute__((visibility("default"))) void __register_frame(void *table)
{
    atomic_fetch_add(&registered, 1);
    ((void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "__register_frame"))(table);
}

__attribute__((visibility("default"))) void __deregister_frame(void *table)
{
    atomic_fetch_sub(&registered, 1);
    ((void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "__deregister_frame"))(table);
}
/* NOLINTEND(bugprone-reserved-identifier,cert-*) */

int orc_registered_tables(void) { return atomic_load(&registered); }

/* ---- JITs ---- */

void orc_assert_success(LLVMErrorRef failure)
{
    if (failure != LLVMErrorSuccess)
        ck_abort_msg("%s", LLVMGetErrorMessage(failure));
}

static void initialise(void)
{
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNativeAsmParser();
}

LLVMOrcLLJITRef orc_create_jit(cairn_orc *orc)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialise);
    LLVMOrcLLJITRef jit;
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator(builder, cairn_orc_layer, orc);
    orc_assert_success(LLVMOrcCreateLLJIT(&jit, builder));
    LLVMOrcIRTransformLayerSetTransform(LLVMOrcLLJITGetIRTransformLayer(jit), cairn_orc_transform,
                                        orc);
    return jit;
}

void orc_dispose(LLVMOrcLLJITRef jit) { orc_assert_success(LLVMOrcDisposeLLJIT(jit)); }

static LLVMOrcThreadSafeContextRef create_context(LLVMContextRef *context)
{
#if LLVM_VERSION_MAJOR >= 21
    *context = LLVMContextCreate();
    return LLVMOrcCreateNewThreadSafeContextFromLLVMContext(*context);
#else
    LLVMOrcThreadSafeContextRef result = LLVMOrcCreateNewThreadSafeContext();
    *context = LLVMOrcThreadSafeContextGetContext(result);
    return result;
#endif
}

LLVMOrcThreadSafeModuleRef orc_parse(const char *format, ...)
{
    char text[8192];
    va_list arguments;
    LLVMContextRef context;
    LLVMOrcThreadSafeContextRef owner = create_context(&context);
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ck_assert_int_lt(length, (int)sizeof text);
    LLVMOrcThreadSafeModuleRef module =
        LLVMOrcCreateNewThreadSafeModule(support_parse_valid(context, text), owner);
    LLVMOrcDisposeThreadSafeContext(owner);
    return module;
}

static int64_t identity(int64_t x) { return x; }

LLVMOrcThreadSafeModuleRef orc_parse_site(const char *name, unsigned id)
{
    return orc_parse(
        SUPPORT_INTRINSICS
        "define i64 @%s(i64 %%x) uwtable {\n"
        "  %%r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"
        "      i64 %u, i32 48, ptr inttoptr (i64 %llu to ptr), i32 1, i64 %%x)\n"
        "  ret i64 %%r\n"
        "}\n",
        name, id, (unsigned long long)(uintptr_t)identity);
}

void orc_add(LLVMOrcLLJITRef jit, LLVMOrcThreadSafeModuleRef module,
             LLVMOrcResourceTrackerRef *tracker)
{
    LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(jit);
    if (tracker == NULL) {
        orc_assert_success(LLVMOrcLLJITAddLLVMIRModule(jit, library, module));
        return;
    }
    *tracker = LLVMOrcJITDylibCreateResourceTracker(library);
    orc_assert_success(LLVMOrcLLJITAddLLVMIRModuleWithRT(jit, *tracker, module));
}

void orc_remove(LLVMOrcResourceTrackerRef tracker)
{
    orc_assert_success(LLVMOrcResourceTrackerRemove(tracker));
    LLVMOrcReleaseResourceTracker(tracker);
}

orc_function *orc_lookup(cairn_orc *orc, LLVMOrcLLJITRef jit, const char *name)
{
    uint64_t address = 0;
    struct cairn_error error = {0};
    enum cairn_status status =
        cairn_orc_status(orc, LLVMOrcLLJITLookup(jit, &address, name), &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return (orc_function *)(uintptr_t)address;
}

struct cairn_error orc_lookup_failure(cairn_orc *orc, LLVMOrcLLJITRef jit, const char *name)
{
    uint64_t address = 0;
    struct cairn_error error = {0};
    enum cairn_status status =
        cairn_orc_status(orc, LLVMOrcLLJITLookup(jit, &address, name), &error);
    ck_assert_int_ne(status, CAIRN_OK);
    ck_assert_int_eq(status, error.status);
    return error;
}

void orc_define(LLVMOrcLLJITRef jit, const char *name, const void *address)
{
    LLVMOrcCSymbolMapPair symbol = {
        .Name = LLVMOrcLLJITMangleAndIntern(jit, name),
        .Sym = {.Address = (uintptr_t)address,
                .Flags = {.GenericFlags = LLVMJITSymbolGenericFlagsExported |
                                          LLVMJITSymbolGenericFlagsCallable}},
    };
    orc_assert_success(LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit),
                                             LLVMOrcAbsoluteSymbols(&symbol, 1)));
}

#endif
