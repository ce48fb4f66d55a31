/*
 * trap: a load through null in compiled code ends the code, and becomes an error of the host.
 *
 *     cc trap.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/context.h>
#include <cairn/fault.h>
#include <cairn/frame.h>
#include <cairn/llvm.h>
#include <inttypes.h>
#include <llvm-c/IRReader.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#if LLVM_VERSION_MAJOR < 15
#define POINTER "i64*"
#else
#define POINTER "ptr"
#endif
static const char text[] = "define i64 @read(" POINTER " %p) uwtable {\n"
                           "  %v = load i64, " POINTER " %p\n  ret i64 %v\n}\n";

static cairn_runtime *runtime;
static struct cairn_context before;  /* the registers before the call */
static struct cairn_context trapped; /* the registers at the load */
static volatile sig_atomic_t has_trapped;

static void handle(int number, siginfo_t *info, void *ucontext)
{
    struct cairn_frame frame;
    enum cairn_status status = cairn_context_from_signal(&trapped, ucontext, NULL);
    if ((status != CAIRN_OK && status != CAIRN_ERROR_NOT_FOUND) || /* without vector registers */
        cairn_frame_from_context(runtime, &trapped, false, &frame, NULL) != CAIRN_OK ||
        frame.module == NULL || !cairn_fault_is_null(info, 0) ||
        cairn_context_to_signal(&before, ucontext, NULL) != CAIRN_OK)
        signal(number, SIG_DFL); /* an error of the host: the instruction faults again */
    has_trapped = 1;
}

/* Returns -1 if the code has accessed null. The handler resumes the thread after
 * cairn_context_save. */
static long call_safely(long (*function)(const long *), const long *argument)
{
    has_trapped = 0;
    cairn_context_save(&before);
    return has_trapped ? -1 : function(argument);
}

static void print_registers(void)
{
    enum cairn_architecture host = cairn_architecture_host();
    uint64_t value;
    for (uint16_t i = 0; i < 32; i++)
        if (cairn_context_register_size(&trapped, i) == sizeof value &&
            cairn_context_read(&trapped, i, &value, sizeof value, NULL) == CAIRN_OK)
            printf("    %-4s %016" PRIx64 "\n", cairn_register_name(host, i), value);
}

int main(void)
{
    const struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    struct cairn_error error;
    cairn_engine *engine;
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "trap", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "trap: %s\n", message), 1;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_engine_create(runtime, module, NULL, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK)
        return fprintf(stderr, "trap: %s\n", error.message), 1;
    long (*read)(const long *) =
        (long (*)(const long *))(uintptr_t)cairn_engine_function(engine, "read", &error);
    sigaction(SIGSEGV, &action, NULL);
    long forty_two = 42;
    long number = call_safely(read, &forty_two), null = call_safely(read, NULL);
    printf("read returns %ld; null results in %ld, with these registers:\n", number, null);
    print_registers();
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    cairn_runtime_destroy(runtime);
    return number == 42 && null == -1 ? 0 : 1;
}
