/*
 * backtrace: an error in compiled code prints its callers, with the line and the variables of each.
 *
 *     cc backtrace.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/exit.h>
#include <cairn/llvm.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif
/* The live values of each call are its line and the variables that are needed after it. */
static const char text[] =
    "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, " PTR ", i32, ...)\n"
    /* long outer(long x) { return <patch point 1: inner>(x + 1) + x; } */
    "define i64 @outer(i64 %x) uwtable {\n  %argument = add i64 %x, 1\n"
    "  %r = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 1, i32 48, " PTR " null, i32 1, i64 %argument, i64 12, i64 %x)\n"
    "  %s = add i64 %r, %x\n  ret i64 %s\n}\n"
    /* long inner(long y) { long z = y * 10; <patch point 2: failed>; return z; } */
    "define i64 @inner(i64 %y) uwtable {\n  %z = mul i64 %y, 10\n"
    "  %r = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 2, i32 48, " PTR " null, i32 0, i64 34, i64 %y, i64 %z)\n"
    "  ret i64 %z\n}\n";

static unsigned variables;

static void print_frame(const struct cairn_frame *frame, struct cairn_record record)
{
    struct cairn_value value;
    if (cairn_frame_value(frame, record, 0, &value, NULL) == CAIRN_OK)
        printf("line %u:", (unsigned)cairn_value_bits(&value));
    for (uint32_t i = 1; i < cairn_record_live_value_count(record); i++)
        if (cairn_frame_value(frame, record, i, &value, NULL) == CAIRN_OK)
            variables += printf(" %ld", (long)cairn_value_signed(&value)) > 0;
    puts("");
}

static void failed(struct cairn_exit_call *call, void *user)
{
    struct cairn_frame frame = call->frame;
    struct cairn_record record;
    (void)user;
    do
        if (cairn_frame_record(&frame, &record))
            print_frame(&frame, record);
    while (cairn_frame_caller(&frame, NULL) == CAIRN_OK && frame.module != NULL);
}

int main(void)
{
    struct cairn_error error;
    cairn_engine *engine;
    cairn_exit *exit;
    cairn_site *call = NULL, *check = NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "backtrace", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "backtrace: %s\n", message), 1;
    if (cairn_engine_create(NULL, module, &(struct cairn_engine_options){.optimisation_level = 2},
                            &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK ||
        (call = cairn_engine_site(engine, 1, &error)) == NULL ||
        (check = cairn_engine_site(engine, 2, &error)) == NULL ||
        cairn_site_call(call, cairn_engine_function(engine, "inner", &error), CAIRN_SYNC, &error) !=
            CAIRN_OK ||
        cairn_site_leave(check, failed, NULL, CAIRN_SYNC, &exit, &error) != CAIRN_OK)
        return fprintf(stderr, "backtrace: %s\n", error.message), 1;
    long (*outer)(long) = (long (*)(long))(uintptr_t)cairn_engine_function(engine, "outer", &error);
    outer(4);
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    return variables == 3 ? 0 : 1;
}
