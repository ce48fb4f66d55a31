/*
 * A process with an inline cache that is inspected (tests/check_inspect.pl). With each line of its
 * standard input, the cache meets an object of one shape more, and a line is printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/ic.h>
#include <cairn/llvm.h>
#include <cairn/value.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

static const char text[] =
    "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, " PTR ", i32, ...)\n"
    "define i64 @width(" PTR " %object) uwtable {\n"
    "  %r = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 42, i32 48, " PTR " null, i32 1, " PTR " %object)\n"
    "  ret i64 %r\n"
    "}\n";

enum { SHAPES = 4, CALLS = 50 };

struct object {
    unsigned long shape;
    long field;
};

static void missed(struct cairn_ic_miss *miss, void *user)
{
    const struct object *object = cairn_value_pointer(&miss->operands[0]);
    const struct cairn_value width = cairn_value_of_integer(64, object->field);
    const struct cairn_ic_case found = {
        .guard = {.width = sizeof object->shape, .key = object->shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = (int32_t)offsetof(struct object, field), .width = 8},
    };
    (void)user;
    if (cairn_ic_return(miss, &width, NULL) != CAIRN_OK ||
        cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, NULL) != CAIRN_OK)
        abort();
}

int main(void)
{
    struct cairn_error error = {.status = CAIRN_OK};
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "inspected", 1);
    LLVMModuleRef module;
    char *message;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "inspected_cache: %s\n", message), 1;
    cairn_engine *engine;
    cairn_site *site = NULL;
    cairn_ic *ic;
    const struct cairn_ic_options options = {
        .handler = missed, .case_limit = 2, .counts_hits = true};
    if (cairn_engine_create(NULL, module, NULL, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK ||
        (site = cairn_engine_site(engine, 42, &error)) == NULL ||
        cairn_ic_create(site, &options, &ic, &error) != CAIRN_OK)
        return fprintf(stderr, "inspected_cache: %s\n", error.message), 1;
    long (*width)(const struct object *) =
        (long (*)(const struct object *))(uintptr_t)cairn_engine_function(engine, "width", NULL);
    long sum = 0;
    for (unsigned long shape = 1; shape <= SHAPES; shape++) {
        const struct object object = {shape, 10};
        puts("ready");
        fflush(stdout);
        if (getchar() == EOF)
            break;
        for (int i = 0; i < CALLS; i++)
            sum += width(&object);
    }
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    return sum % CALLS == 0 ? 0 : 1;
}
