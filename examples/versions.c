/*
 * versions: tiers. Functions begin in an interpreter; those that are called often are compiled by
 * threads in the background, and replaced for all of their callers.
 *
 *     cc versions.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * Each function of the program adds a constant to what the next one returns. Callers call entries,
 * whether their callee is interpreted or compiled.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 8, HOT = 20, HOTTER = 40, CALLS = 100, NAME_BYTES = 16 };

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "versions: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- 1. The program, and its interpreter ---- */

struct function {
    int64_t constant;
    int calls;       /* that were interpreted */
    uint64_t ticket; /* of its job */
    cairn_closure *interpreted;
    cairn_entry *entry;
};

static struct function functions[FUNCTIONS];
static cairn_queue *queue;
static _Atomic int compiled;

static int64_t call(const struct function *function, int64_t x)
{
    int64_t (*entry)(int64_t) = (int64_t(*)(int64_t))(uintptr_t)cairn_entry_target(function->entry);
    return entry(x);
}

static void compile(struct function *function);
static void hurry(const struct function *function);

/* The first version of each function: a closure, whose handler interprets. */
static void interpret(const struct cairn_value *arguments, struct cairn_value *results, void *user)
{
    struct function *function = user;
    const struct function *next = function + 1;
    int64_t x = cairn_value_signed(&arguments[0]);
    if (++function->calls == HOT)
        compile(function);
    else if (function->calls == HOTTER)
        hurry(function);
    x += function->constant;
    results[0] = cairn_value_of_integer(64, next < functions + FUNCTIONS ? call(next, x) : x);
}

/* ---- 2. The compiler, which the queue's threads call ---- */

static void name_of(const struct function *function, const char *suffix, char *name)
{
    snprintf(name, NAME_BYTES, "f%d%s", (int)(function - functions), suffix);
}

static LLVMModuleRef build(LLVMContextRef context, void *user, struct cairn_error *error)
{
    const struct function *function = user;
    char name[NAME_BYTES];
    (void)error;
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("versions", context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMTypeRef type = LLVMFunctionType(word, &word, 1, 0);
    name_of(function, ".compiled", name);
    LLVMValueRef f = LLVMAddFunction(module, name, type);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, f, "entry"));
    LLVMValueRef constant = LLVMConstInt(word, (uint64_t)function->constant, 0);
    LLVMValueRef x = LLVMBuildAdd(builder, LLVMGetParam(f, 0), constant, "");
    if (function + 1 < functions + FUNCTIONS) {
        name_of(function + 1, "", name);
        LLVMValueRef next = LLVMAddFunction(module, name, type);
        x = LLVMBuildCall2(builder, type, next, &x, 1, "");
    }
    LLVMBuildRet(builder, x);
    LLVMDisposeBuilder(builder);
    return module;
}

/* Compiled code calls entries by their names: f0, f1, and so on. */
static bool find_entry(void *user, const char *name, uint64_t *address)
{
    char known[NAME_BYTES];
    (void)user;
    for (int i = 0; i < FUNCTIONS; i++) {
        name_of(&functions[i], "", known);
        if (strcmp(known, name) == 0) {
            *address = (uintptr_t)cairn_entry_target(functions[i].entry);
            return true;
        }
    }
    return false;
}

static void note_compiled(const struct cairn_queue_result *result, void *user)
{
    (void)user;
    check(result->error->status, result->error);
    compiled++;
}

/* Adds a job. The version is installed when it is compiled; until then the function is interpreted.
 */
static void compile(struct function *function)
{
    struct cairn_error error;
    char name[NAME_BYTES];
    name_of(function, ".compiled", name);
    const struct cairn_queue_job job = {
        .build = build,
        .done = note_compiled,
        .user = function,
        .function = name,
        .entry = function->entry,
        .version = {.retires = true},
    };
    check(cairn_queue_add(queue, &job, &function->ticket, &error), &error);
}

/* Has the function compiled before others, if its job still waits. */
static void hurry(const struct function *function)
{
    cairn_queue_raise(queue, function->ticket, function->calls);
}

/* ---- 3. Run it ---- */

static void create_functions(cairn_runtime *runtime, const cairn_signature *signature)
{
    struct cairn_error error;
    for (int i = 0; i < FUNCTIONS; i++) {
        struct function *function = &functions[i];
        char name[NAME_BYTES];
        function->constant = 1 << i;
        name_of(function, "", name);
        check(cairn_closure_create(runtime, signature, interpret, function, &function->interpreted,
                                   &error),
              &error);
        check(cairn_entry_create(runtime, name, signature,
                                 cairn_closure_target(function->interpreted), &function->entry,
                                 &error),
              &error);
    }
}

static void destroy_functions(void)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        cairn_entry_destroy(functions[i].entry);
        cairn_closure_destroy(functions[i].interpreted);
    }
}

int main(void)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_signature *signature;
    const struct cairn_type word = CAIRN_INTEGER(64);
    const struct cairn_queue_options options = {
        .engine = {.optimisation_level = 2, .load = {.find_symbol = find_entry}},
        .thread_count = 2,
    };
    int64_t wrong = 0;
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    check(cairn_signature_create(NULL, &word, 1, &word, 1, &signature, &error), &error);
    create_functions(runtime, signature);
    check(cairn_queue_create(runtime, &options, &queue, &error), &error);
    for (int64_t i = 0; i < CALLS || compiled < FUNCTIONS; i++)
        wrong += call(&functions[0], i) != i + (1 << FUNCTIONS) - 1;
    int interpreted = functions[0].calls;
    wrong += call(&functions[0], 0) != (1 << FUNCTIONS) - 1;
    printf("%d functions were compiled; %s\n", (int)compiled,
           functions[0].calls == interpreted ? "nothing is interpreted any more"
                                             : "f0 still is not");
    bool is_right = wrong == 0 && functions[0].calls == interpreted;

    cairn_queue_destroy(queue);
    destroy_functions();
    cairn_runtime_destroy(runtime);
    cairn_signature_destroy(signature);
    return is_right ? 0 : 1;
}
