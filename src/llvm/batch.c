/*
 * Loads the objects of tasks, and compiles the modules of others together: these are built one by
 * one in one context, linked into one module, and compiled by an engine.
 *
 * Modules that define or use a name of each other are not linked: otherwise the code would depend
 * on which tasks wait at the same time. If the linked module cannot be compiled, each task is built
 * and compiled again by itself, because linking consumes its module.
 *
 * All compilers of the process have one scope for their modules, which no other module has. It only
 * keeps other modules from finding their definitions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/batch.h"

#include "base/adapter.h"
#include "base/error.h"
#include "base/memory.h"
#include "llvm/bindings.h"
#include "llvm/compilation.h"
#include "llvm/compile.h"
#include "llvm/engine.h"
#include "llvm/heap.h"
#include "llvm/modules.h"
#include "llvm/name.h"
#include "llvm/warm_up.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>
#include <string.h>

struct compiler {
    struct cairn_allocator allocator;
    cairn_runtime *runtime;
    struct compiler_callbacks callbacks;
    struct cairn_engine_options options;
    struct cairn_module_options host; /* only its callbacks are used */
    cairn_engine *engine;             /* NULL until a task needs it */
    void *heap;                       /* of heap_populate, from then on */
    cairn_module *published;          /* by the last finalisation, with a reference; NULL: none */
    LLVMContextRef context;           /* of the batch */
    uint64_t compilation_ns;          /* of the last finalisation */
};

/* Tasks whose modules are linked into one. */
struct group {
    struct task **tasks;
    size_t count; /* of tasks, also of those that have ended */
    LLVMModuleRef module;
    bool is_broken; /* modules could not be linked */
};

static const char scope;

/* ---- Creating ---- */

static void before_publish(cairn_module *module, void *user)
{
    const struct compiler *compiler = user;
    if (compiler->host.before_publish != NULL)
        compiler->host.before_publish(module, compiler->host.user);
}

static void after_publish(cairn_module *module, void *user)
{
    struct compiler *compiler = user;
    cairn_module_retain(module);
    compiler->published = module;
    if (compiler->host.after_publish != NULL)
        compiler->host.after_publish(module, compiler->host.user);
}

enum cairn_status compiler_create(cairn_runtime *runtime,
                                  const struct cairn_engine_options *options,
                                  const struct compiler_callbacks *callbacks,
                                  struct compiler **compiler, struct cairn_error *error)
{
    const struct cairn_allocator *allocator = cairn_runtime_allocator(runtime);
    struct compiler *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a compiler");
    created->allocator = *allocator;
    created->runtime = runtime;
    created->callbacks = *callbacks;
    created->host = options->modules;
    created->options = *options;
    created->options.load.ignores_modules = true;
    created->options.modules.before_publish = before_publish;
    created->options.modules.after_publish = after_publish;
    created->options.modules.user = created;
    if (options->modules.name == NULL)
        created->options.modules.name = "queue";
    *compiler = created;
    return CAIRN_OK;
}

/* The engine is created with an empty module that is not compiled. */
enum cairn_status compiler_prepare(struct compiler *compiler, struct cairn_error *error)
{
    if (compiler->engine != NULL)
        return CAIRN_OK;
    if (compiler->heap == NULL)
        compiler->heap = heap_populate();
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef empty = LLVMModuleCreateWithNameInContext("empty", context);
    enum cairn_status status =
        cairn_engine_create(compiler->runtime, empty, &compiler->options, &compiler->engine, error);
    if (status == CAIRN_OK) {
        engine_share(compiler->engine, &scope);
        engine_discard(compiler->engine);
    } else {
        LLVMDisposeModule(empty);
    }
    LLVMContextDispose(context);
    return status;
}

void compiler_warm_up(struct compiler *compiler)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = warm_up_module(context);
    if (cairn_engine_add_module(compiler->engine, module, NULL) == CAIRN_OK)
        engine_warm_up(compiler->engine);
    else
        LLVMDisposeModule(module);
    LLVMContextDispose(context);
}

void compiler_destroy(struct compiler *compiler)
{
    if (compiler == NULL)
        return;
    struct cairn_allocator allocator = compiler->allocator;
    cairn_engine_destroy(compiler->engine);
    heap_release(compiler->heap);
    memory_free(&allocator, compiler, sizeof *compiler);
}

/* ---- Building ---- */

/* Checks the module and the function that the task names, and creates the signature of its type. */
static enum cairn_status check_function(const struct compiler *compiler, struct task *task,
                                        LLVMModuleRef module, struct cairn_error *error)
{
    LLVMValueRef function = LLVMGetNamedFunction(module, task->function);
    if (LLVMGetModuleContext(module) != compiler->context)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the module of '%.80s' was built in another context than the queue's",
                         task->function);
    if (function == NULL || LLVMIsDeclaration(function))
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the module that was built does not define the function '%.80s'",
                         task->function);
    if (LLVMGetLinkage(function) != LLVMExternalLinkage)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the function '%.80s' of a job has no external linkage", task->function);
    /* A task may be built again. */
    if (task->signature != NULL || task->job.version.signature != NULL)
        return CAIRN_OK;
    enum cairn_status status = cairn_signature_of_function(
        &compiler->allocator, LLVMGlobalGetValueType(function), &task->signature, error);
    /* Without a signature, the function can be installed where types are not checked. */
    return status == CAIRN_ERROR_MEMORY ? status : CAIRN_OK;
}

static LLVMModuleRef read_bitcode(const struct compiler *compiler, const struct task *task,
                                  struct cairn_error *error)
{
    LLVMModuleRef module = NULL;
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRange(
        task->job.bitcode, task->job.bitcode_size, task->function, 0);
    bool is_good = LLVMParseBitcodeInContext2(compiler->context, buffer, &module) == 0;
    LLVMDisposeMemoryBuffer(buffer);
    if (is_good)
        return module;
    error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM cannot read the bitcode of '%.80s'",
              task->function);
    return NULL;
}

/* Builds the task's module. Returns NULL if the task has ended. */
static LLVMModuleRef build(const struct compiler *compiler, struct task *task)
{
    struct diagnostics diagnostics;
    struct cairn_error error = {0}, reported = {0};
    if (!compiler->callbacks.is_wanted(task)) {
        compiler->callbacks.end(task, NULL, &error);
        return NULL;
    }
    diagnostics_begin(&diagnostics, compiler->context, &reported);
    LLVMModuleRef module = task->job.build != NULL
                               ? task->job.build(compiler->context, task->job.user, &error)
                               : read_bitcode(compiler, task, &error);
    diagnostics_end(&diagnostics);
    if (reported.status != CAIRN_OK && (error.status == CAIRN_OK || task->job.build == NULL))
        error = reported;
    if (module != NULL && error.status == CAIRN_OK)
        error.status = check_function(compiler, task, module, &error);
    if (module != NULL && error.status == CAIRN_OK && task->drops_guards)
        error.status = bindings_drop_guards(module, task->job.until_full, &error);
    if (module != NULL && error.status == CAIRN_OK)
        return module;
    if (module != NULL)
        LLVMDisposeModule(module);
    compiler->callbacks.end(task, NULL, &error);
    return NULL;
}

/* ---- Linking ---- */

static bool is_local(LLVMValueRef global)
{
    return LLVMGetLinkage(global) == LLVMInternalLinkage ||
           LLVMGetLinkage(global) == LLVMPrivateLinkage;
}

/* Whether a function or variable is defined in one of the modules and named in the other. Linking
 * makes equal constants with names one (llvm/name.h). */
static bool is_shared(LLVMModuleRef module, LLVMValueRef global)
{
    size_t length;
    const char *name = LLVMGetValueName2(global, &length);
    if (length == 0 || is_local(global) || name_is_global(global))
        return false;
    LLVMValueRef other = LLVMGetNamedFunction(module, name);
    if (other == NULL)
        other = LLVMGetNamedGlobal(module, name);
    return other != NULL && !is_local(other) &&
           (!LLVMIsDeclaration(global) || !LLVMIsDeclaration(other));
}

static bool has_rare_symbols(LLVMModuleRef module)
{
    size_t length;
    LLVMGetModuleInlineAsm(module, &length);
    return length > 0 || LLVMGetFirstGlobalAlias(module) != NULL ||
           LLVMGetFirstGlobalIFunc(module) != NULL;
}

/* Whether the modules may be linked: none has a definition of a name of the other. */
static bool are_separate(LLVMModuleRef module, LLVMModuleRef added)
{
    if (has_rare_symbols(module) || has_rare_symbols(added))
        return false;
    LLVMValueRef global = LLVMGetFirstFunction(added);
    while (global != NULL && !is_shared(module, global))
        global = LLVMGetNextFunction(global);
    if (global != NULL)
        return false;
    global = LLVMGetFirstGlobal(added);
    while (global != NULL && !is_shared(module, global))
        global = LLVMGetNextGlobal(global);
    return global == NULL;
}

/* Links a module, which it consumes, into the group's. */
static void link_module(const struct compiler *compiler, struct group *group, LLVMModuleRef added)
{
    struct diagnostics diagnostics;
    struct cairn_error reported = {0};
    diagnostics_begin(&diagnostics, compiler->context, &reported);
    if (group->module == NULL)
        group->module = added;
    else if (LLVMLinkModules2(group->module, added) || reported.status != CAIRN_OK)
        group->is_broken = true;
    diagnostics_end(&diagnostics);
}

/* ---- Ending ---- */

/* Ends a task whose code is published. Returns whether the code will be used. */
static bool end_loaded(const struct compiler *compiler, struct task *task,
                       const cairn_module *module)
{
    struct cairn_error error = {0};
    void *address = cairn_module_find_symbol(module, task->function);
    if (address == NULL)
        error_set(&error, CAIRN_ERROR_NOT_FOUND, 0,
                  "the code of the job does not define the function '%.80s' for others",
                  task->function);
    return compiler->callbacks.end(task, address, &error);
}

/* Ends tasks whose code is published. The reference keeps the module from being retired with its
 * first versions while others are not installed yet. If none of the code is used, the module is
 * retired. */
static void end_all(struct compiler *compiler, struct task *const *tasks, size_t count)
{
    cairn_module *module = compiler->published;
    bool is_used = false;
    for (size_t i = 0; i < count; i++)
        is_used |= end_loaded(compiler, tasks[i], module);
    if (!is_used)
        cairn_module_retire(module);
    cairn_module_release(module);
}

/* ---- Objects ---- */

static enum cairn_status load_object(struct compiler *compiler, const struct task *task,
                                     struct cairn_error *error)
{
    const struct engine_object object = {task->function, task->job.object, task->job.object_size};
    cairn_module *module;
    enum cairn_status status =
        engine_load_object(compiler->runtime, &compiler->options, &scope, &object, &module, error);
    if (status != CAIRN_OK)
        return status;
    cairn_module_retain(module);
    status = modules_publish(module, &compiler->options.modules, error);
    if (status != CAIRN_OK)
        cairn_module_retire(module);
    cairn_module_release(module);
    return status;
}

static void run_object(struct compiler *compiler, struct task *task)
{
    struct cairn_error error = {0};
    if (compiler->callbacks.is_wanted(task) && load_object(compiler, task, &error) == CAIRN_OK)
        end_all(compiler, &task, 1);
    else
        compiler->callbacks.end(task, NULL, &error);
}

/* Loads the objects of tasks, and ends these. Returns the number of the others, which it moves to
 * the front of the list. */
static size_t run_objects(struct compiler *compiler, struct task **tasks, size_t count)
{
    size_t others = 0;
    for (size_t i = 0; i < count; i++)
        if (tasks[i]->job.object != NULL)
            run_object(compiler, tasks[i]);
        else
            tasks[others++] = tasks[i];
    return others;
}

/* ---- Compiling ---- */

/* Compiles, loads and publishes a module, which it consumes. */
static enum cairn_status load(struct compiler *compiler, LLVMModuleRef module,
                              struct cairn_error *error)
{
    compiler->published = NULL;
    uint64_t start = compilation_time();
    enum cairn_status status = cairn_engine_add_module(compiler->engine, module, error);
    if (status != CAIRN_OK)
        LLVMDisposeModule(module);
    else
        status = cairn_engine_compile(compiler->engine, error);
    compiler->compilation_ns = compilation_time() - start;
    return status;
}

/* Ends tasks that were compiled together. */
static void end_compiled(struct compiler *compiler, struct task *const *tasks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        compilation_note(compiler->runtime, tasks[i]->function, compiler->compilation_ns, "queue");
    end_all(compiler, tasks, count);
}

static void compile_alone(struct compiler *compiler, struct task *task)
{
    struct cairn_error error = {0};
    LLVMModuleRef module = build(compiler, task);
    if (module == NULL)
        return;
    if (load(compiler, module, &error) == CAIRN_OK)
        end_compiled(compiler, &task, 1);
    else
        compiler->callbacks.end(task, NULL, &error);
}

/* Compiles a group, and ends its tasks. Makes the group empty. */
static void compile_group(struct compiler *compiler, struct group *group)
{
    struct cairn_error error = {0};
    enum cairn_status status = CAIRN_ERROR_LLVM;
    if (group->is_broken)
        LLVMDisposeModule(group->module);
    else if (group->count > 0)
        status = load(compiler, group->module, &error);
    if (status == CAIRN_OK)
        end_compiled(compiler, group->tasks, group->count);
    else if (group->count == 1)
        compiler->callbacks.end(group->tasks[0], NULL, &error);
    for (size_t i = 0; status != CAIRN_OK && group->count > 1 && i < group->count; i++)
        compile_alone(compiler, group->tasks[i]);
    *group = (struct group){.tasks = group->tasks + group->count};
}

/* Compiles the modules of tasks. Tasks that end while they are built are not in a group. So the
 * group's tasks are copied to the front of the list that has been read already. */
static void run_modules(struct compiler *compiler, struct task **tasks, size_t count)
{
    struct group group = {.tasks = tasks};
    compiler->context = LLVMContextCreate();
    for (size_t i = 0; i < count; i++) {
        struct task *task = tasks[i];
        LLVMModuleRef module = build(compiler, task);
        if (module == NULL)
            continue;
        if (group.module != NULL && !are_separate(group.module, module))
            compile_group(compiler, &group);
        tasks[(size_t)(group.tasks - tasks) + group.count++] = task;
        link_module(compiler, &group, module);
        if (group.is_broken)
            compile_group(compiler, &group);
    }
    compile_group(compiler, &group);
    LLVMContextDispose(compiler->context);
}

void compiler_run(struct compiler *compiler, struct task **tasks, size_t count)
{
    struct cairn_error error = {0};
    count = run_objects(compiler, tasks, count);
    if (count > 0 && compiler_prepare(compiler, &error) == CAIRN_OK)
        run_modules(compiler, tasks, count);
    else
        for (size_t i = 0; i < count; i++)
            compiler->callbacks.end(tasks[i], NULL, &error);
}
