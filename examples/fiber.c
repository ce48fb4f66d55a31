/*
 * fiber: compiled code yields values from the middle of a loop, on a stack of its own.
 *
 *     cc fiber.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/context.h>
#include <cairn/llvm.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Support.h>
#include <stdio.h>
#include <stdlib.h>

/* void count(long n) { for (long i = 0; i < n; i++) yield(i); } */
static const char text[] = "declare void @yield(i64)\n"
                           "define void @count(i64 %n) uwtable {\nentry:\n  br label %loop\nloop:\n"
                           "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
                           "  call void @yield(i64 %i)\n"
                           "  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, %n\n"
                           "  br i1 %more, label %loop, label %end\nend:\n  ret void\n}\n";

static _Alignas(16) unsigned char stack[65536];
static struct cairn_context host, fiber; /* the registers of each while the other runs */
static void (*count)(long);
static long yielded; /* -1 at the end */
/* Returns when the other side switches back. */
static void switch_sides(struct cairn_context *from, const struct cairn_context *to)
{
    if (cairn_context_save(from) == 0)
        cairn_context_resume(to);
}

static void yield(long value)
{
    yielded = value;
    switch_sides(&fiber, &host);
}

static void run(void)
{
    count(5);
    yielded = -1;
    cairn_context_resume(&host);
}

/* Makes the first context of the fiber, which enters run() as a call does. */
static void start(void)
{
    uint64_t pc = (uintptr_t)run;
    uint64_t sp = (uintptr_t)(stack + sizeof stack) - 128;
    sp -= cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64 ? 8 : 0; /* return address */
    cairn_context_save(&fiber);
    if (cairn_context_write(&fiber, CAIRN_REGISTER_PC, &pc, sizeof pc, NULL) != CAIRN_OK ||
        cairn_context_write(&fiber, CAIRN_REGISTER_SP, &sp, sizeof sp, NULL) != CAIRN_OK)
        abort();
}

int main(void)
{
    struct cairn_error error;
    cairn_engine *engine;
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "fiber", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "fiber: %s\n", message), 1;
    LLVMAddSymbol("yield", (void *)(uintptr_t)yield);
    if (cairn_engine_create(NULL, module, NULL, &engine, &error) != CAIRN_OK)
        return fprintf(stderr, "fiber: %s\n", error.message), 1;
    count = (void (*)(long))(uintptr_t)cairn_engine_function(engine, "count", &error);
    start();
    long sum = 0;
    for (switch_sides(&host, &fiber); yielded >= 0; switch_sides(&host, &fiber))
        sum += yielded;
    printf("the fiber has yielded numbers with the sum %ld\n", sum);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    return sum == 10 ? 0 : 1;
}
