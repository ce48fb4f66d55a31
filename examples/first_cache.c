/*
 * The first inline cache: a patch point learns where the objects that it reads have a property.
 *
 *     cc first_cache.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/ic.h>
#include <cairn/llvm.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

/* long width(struct object *object) { return <patch point 42: the width of the object>; } */
static const char text[] =
    "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, " PTR ", i32, ...)\n"
    "define i64 @width(" PTR " %object) uwtable {\n"
    "  %r = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 42, i32 48, " PTR " null, i32 1, " PTR " %object)\n"
    "  ret i64 %r\n"
    "}\n";

struct object {
    unsigned long shape; /* 1 means that fields[0] is the width; 2 means that fields[1] is */
    long fields[2];
};

/* Reads the width of an object whose shape has no case in the cache, and adds a case. */
static void missed(struct cairn_ic_miss *miss, void *user)
{
    const struct object *object = cairn_value_pointer(&miss->operands[0]);
    const long *field = &object->fields[object->shape - 1];
    const struct cairn_value width = cairn_value_of_integer(64, *field);
    const struct cairn_ic_case found = {
        .guard = {.width = sizeof object->shape, .key = object->shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = (int32_t)((const char *)field - (const char *)object), .width = 8},
    };
    ++*(unsigned *)user;
    if (cairn_ic_return(miss, &width, NULL) != CAIRN_OK ||
        cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, NULL) != CAIRN_OK)
        abort();
}

int main(void)
{
    const struct object first = {1, {10, 0}}, second = {2, {0, 20}};
    struct cairn_error error = {0};
    unsigned misses = 0;
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "first_cache", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "first_cache: %s\n", message), 1;
    cairn_engine *engine;
    cairn_site *site = NULL;
    cairn_ic *ic;
    if (cairn_engine_create(NULL, module, NULL, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK ||
        (site = cairn_engine_site(engine, 42, &error)) == NULL ||
        cairn_ic_create(site, &(struct cairn_ic_options){.handler = missed, .user = &misses}, &ic,
                        &error) != CAIRN_OK)
        return fprintf(stderr, "first_cache: %s\n", error.message), 1;
    long (*width)(const struct object *) =
        (long (*)(const struct object *))(uintptr_t)cairn_engine_function(engine, "width", NULL);
    long sum = 0;
    for (int i = 0; i < 50; i++)
        sum += width(&first) + width(&second);
    printf("the sum is %ld, with %u misses in 100 calls\n", sum, misses);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    return sum == 1500 && misses == 2 ? 0 : 1;
}
