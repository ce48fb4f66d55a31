/*
 * changes: a compiled function with two sites, changed in all the ways that Cairn has. Each
 * function of this program does one thing, and is an example of the manual's pages.
 *
 *     cc changes.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <inttypes.h>
#include <llvm-c/Target.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* IDs: of the site at the start of `compute`, of the site that reads a field, of a stack map. */
enum { AT_START = 1, READS_FIELD = 2, SHADOW = 3 };

struct object {
    uint64_t shape; /* 1 */
    int64_t field;
};

static struct cairn_error error;
static int calls; /* of functions of this program, by compiled code */

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "changes: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status)
{
    if (status != CAIRN_OK)
        fail(error.message);
}

/* Fails unless the program has come to the expected result. */
static void expect(const char *what, int64_t result, int64_t expected)
{
    printf("%s: %" PRId64 "\n", what, result);
    if (result != expected)
        fail("that is wrong");
}

static void count_call(void) { calls++; }

/* ---- Building code ---- */

/* Builds a patch point that calls nothing until it is changed, with a live value. */
static void build_site(LLVMModuleRef module, LLVMBuilderRef builder, uint64_t id, LLVMValueRef x)
{
    const struct cairn_patchpoint patchpoint = {
        .id = id,
        .byte_count = cairn_patchpoint_minimum_bytes(module, false),
        .live_values = &x,
        .live_value_count = 1,
    };
    if (cairn_build_patchpoint(builder, &patchpoint, &error) == NULL)
        fail(error.message);
}

/* Builds a patch point whose result is a field of an object. An inline cache will read it. */
static LLVMValueRef build_read(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef object)
{
    const struct cairn_patchpoint patchpoint = {
        .id = READS_FIELD,
        .byte_count = cairn_patchpoint_inline_bytes(module),
        .result_type = LLVMInt64TypeInContext(LLVMGetModuleContext(module)),
        .arguments = &object,
        .argument_count = 1,
    };
    LLVMValueRef field = cairn_build_patchpoint(builder, &patchpoint, &error);
    if (field == NULL)
        fail(error.message);
    return field;
}

/* Builds a stack map. The 32 bytes of code that follow it may be patched. */
static void build_shadow(LLVMBuilderRef builder, LLVMValueRef x)
{
    if (cairn_build_stackmap(builder, SHADOW, 32, &x, 1, &error) == NULL)
        fail(error.message);
}

/* Encodes an interpreter's frame with one local. Returns the number of live values that it takes.
 */
static uint32_t encode_frame(LLVMContextRef context, LLVMValueRef local, LLVMValueRef *live_values,
                             uint32_t capacity)
{
    const struct cairn_encoded_frame frame = {
        .function = 7, /* the host's numbers */
        .position = 0,
        .locals = &local,
        .local_count = 1,
    };
    uint32_t count;
    check(cairn_frame_state_encode(context, &frame, 1, live_values, capacity, &count, &error));
    return count;
}

/* Adds a function to the module and positions the builder in it. */
static LLVMValueRef add_function(LLVMModuleRef module, LLVMBuilderRef builder, const char *name,
                                 LLVMTypeRef argument)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef type = LLVMFunctionType(LLVMInt64TypeInContext(context), &argument, 1, 0);
    LLVMValueRef function = LLVMAddFunction(module, name, type);
    cairn_prepare_function(function);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, "entry"));
    return function;
}

/* int64_t compute(int64_t x) { <site AT_START>; <stack map SHADOW>; return 10 * x; }
 * int64_t read_field(struct object *object) { return <site READS_FIELD>; } */
static LLVMModuleRef build_module(LLVMContextRef context)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("changes", context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMTypeRef pointer = LLVMPointerType(LLVMInt8TypeInContext(context), 0);
    LLVMValueRef live_values[16];
    LLVMValueRef x = LLVMGetParam(add_function(module, builder, "compute", word), 0);
    build_site(module, builder, AT_START, x);
    build_shadow(builder, x);
    expect("live values of a frame state", encode_frame(context, x, live_values, 16) > 1, true);
    LLVMBuildRet(builder, LLVMBuildMul(builder, x, LLVMConstInt(word, 10, 0), ""));
    LLVMValueRef object = LLVMGetParam(add_function(module, builder, "read_field", pointer), 0);
    LLVMBuildRet(builder, build_read(module, builder, object));
    LLVMDisposeBuilder(builder);
    return module;
}

/* int64_t double_it(int64_t x) { return x + x; } */
static LLVMModuleRef build_second_module(LLVMContextRef context)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("second", context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMValueRef x = LLVMGetParam(add_function(module, builder, "double_it", word), 0);
    LLVMBuildRet(builder, LLVMBuildAdd(builder, x, x, ""));
    LLVMDisposeBuilder(builder);
    return module;
}

/* Adds a module to an engine that has compiled others, and compiles it. */
static void add_second_module(cairn_engine *engine, LLVMContextRef context)
{
    check(cairn_engine_add_module(engine, build_second_module(context), &error));
    check(cairn_engine_compile(engine, &error));
}

/* ---- Records and modules ---- */

/* Prints the record at an address, with the types of its values. */
static void print_record(const cairn_runtime *runtime, uint64_t address)
{
    struct cairn_record record;
    char text[32];
    if (!cairn_runtime_find_address(runtime, address, &record))
        return;
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    printf("record %" PRIu64 ":", cairn_record_id(record));
    for (uint32_t i = 0; declaration != NULL && i < declaration->live_value_count; i++) {
        cairn_type_format(declaration->types[declaration->argument_count + i], text, sizeof text);
        printf(" %s", text);
    }
    puts("");
}

/* Keeps the module of a code address in memory, for example while its name is displayed. */
static cairn_module *keep_module(const cairn_runtime *runtime, uint64_t pc)
{
    cairn_module *module = cairn_runtime_find_module(runtime, pc);
    if (module != NULL)
        cairn_module_retain(module);
    return module;
}

/* Allows the module to be freed again, once it is retired. */
static void drop_module(cairn_module *module)
{
    printf("module '%s'\n", cairn_module_name(module));
    cairn_module_release(module);
}

/* Frees what was retired before. Between start and end, each thread must have been outside of
 * retired code. Here there is one thread. */
static void free_retired(cairn_runtime *runtime)
{
    uint64_t token = cairn_runtime_grace_start(runtime);
    /* … every other thread passes its safepoint … */
    printf("modules freed: %zu\n", cairn_runtime_grace_end(runtime, token));
}

/* ---- Changing sites ---- */

/* Makes all sites of a list call the same function, with one barrier. */
static void call_at_all(cairn_site *const *sites, uint32_t count, void (*target)(void))
{
    struct cairn_site_change changes[8] = {0};
    for (uint32_t i = 0; i < count && i < 8; i++)
        changes[i] = (struct cairn_site_change){
            .site = sites[i],
            .state = CAIRN_SITE_CALL,
            .target = (const void *)(uintptr_t)target,
        };
    check(cairn_sites_change(changes, count, CAIRN_SYNC, &error));
}

static void restore_all(cairn_site *const *sites, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        check(cairn_site_restore(sites[i], CAIRN_SYNC, &error));
}

static struct cairn_context before_the_call;

#if __has_attribute(force_align_arg_pointer)
#define JUMP_TARGET __attribute__((force_align_arg_pointer)) /* a jump pushes no return address */
#else
#define JUMP_TARGET
#endif

/* The target of a jump does not return to the site. This one leaves the compiled code. */
JUMP_TARGET static void give_up(void) { cairn_context_resume(&before_the_call); }

/* Makes a site leave its function, and calls that. Returns -1, to which give_up continues. */
static int64_t call_and_give_up(cairn_site *site, int64_t (*function)(int64_t))
{
    check(cairn_site_jump(site, (const void *)(uintptr_t)give_up, CAIRN_SYNC, &error));
    if (cairn_context_save(&before_the_call) != 0)
        return -1;
    return function(1);
}

/* ---- Exits ---- */

/* An exit's handler that changes x, as a debugger does, and lets the code continue. */
static void set_to_seven(struct cairn_exit_call *call, void *user)
{
    const struct cairn_value seven = cairn_value_of_integer(64, 7);
    struct cairn_location location = cairn_record_location(call->record, 0);
    struct cairn_value x;
    (void)user;
    check(cairn_frame_at_location(&call->frame, location, CAIRN_INTEGER(64), &x, &error));
    printf("x is %" PRId64 "\n", cairn_value_signed(&x));
    calls++;
    check(cairn_frame_set_value(&call->frame, call->record, 0, &seven, &error));
    check(cairn_exit_continue(call, NULL, &error));
}

/* Makes a site call an exit for one execution. */
static void leave_once(cairn_site *site, int64_t (*function)(int64_t))
{
    cairn_exit *exit;
    check(cairn_site_leave(site, set_to_seven, NULL, CAIRN_SYNC, &exit, &error));
    printf("compute(1) is %" PRId64 "\n", function(1));
    check(cairn_site_restore(site, CAIRN_SYNC, &error));
    cairn_exit_destroy(exit);
}

/* Returns an exit for any number of sites. */
static cairn_exit *create_exit(cairn_runtime *runtime)
{
    cairn_exit *exit;
    check(cairn_exit_create(runtime, set_to_seven, NULL, &exit, &error));
    return exit;
}

/* Makes a function leave at all its sites, until that is undone. */
static cairn_invalidation *invalidate(cairn_runtime *runtime, uint64_t function,
                                      const cairn_exit *exit)
{
    const struct cairn_invalidation_options options = {
        .function = function,
        .target = cairn_exit_target(exit),
        .reason = "its source was edited",
    };
    cairn_invalidation *invalidation;
    check(cairn_invalidate(runtime, &options, CAIRN_SYNC, &invalidation, &error));
    return invalidation;
}

static void make_valid(cairn_invalidation *invalidation)
{
    check(cairn_invalidation_undo(invalidation, CAIRN_SYNC, &error));
    cairn_invalidation_destroy(invalidation);
}

/* Makes a site call an exit as soon as an assumption is broken, and breaks it. */
static void assume(cairn_runtime *runtime, cairn_site *site, const cairn_exit *exit)
{
    cairn_assumption *no_subclass;
    check(cairn_assumption_create(runtime, &no_subclass, &error));
    check(cairn_assumption_add(no_subclass, site, cairn_exit_target(exit), CAIRN_SYNC, &error));
    /* … a subclass is loaded … */
    check(cairn_assumption_break(no_subclass, CAIRN_SYNC, &error));
    cairn_assumption_destroy(no_subclass);
}

/* ---- Inline caches ---- */

/* Reads the field of an object for which the cache has no case, and adds a case. */
static void missed(struct cairn_ic_miss *miss, void *user)
{
    const struct object *object = cairn_value_pointer(&miss->operands[0]);
    const struct cairn_value field = cairn_value_of_integer(64, object->field);
    const struct cairn_ic_case added = {
        .guard = {.width = 8, .key = object->shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = (int32_t)offsetof(struct object, field), .width = 8},
    };
    (void)user;
    calls++;
    check(cairn_ic_return(miss, &field, &error));
    check(cairn_ic_add(miss->ic, &added, CAIRN_SYNC, &error));
}

static void create_cache(cairn_site *site)
{
    const struct cairn_ic_options options = {.handler = missed};
    cairn_ic *ic;
    check(cairn_ic_create(site, &options, &ic, &error));
}

/* Destroys the site's cache, if it has one. */
static void destroy_cache(cairn_site *site)
{
    cairn_ic *ic = cairn_site_ic(site);
    if (ic == NULL)
        return;
    printf("the cache is %s\n", cairn_ic_state_name(cairn_ic_state(ic)));
    check(cairn_ic_destroy(ic, CAIRN_SYNC, &error));
}

/* ---- Calls and entries ---- */

/* Calls a function of the host's with a type that is known at run time only. */
static double call_half(double (*half)(double), double x)
{
    const struct cairn_type number = CAIRN_DOUBLE;
    const struct cairn_value argument = cairn_value_of_double(x);
    cairn_signature *signature;
    struct cairn_value result;
    check(cairn_signature_create(NULL, &number, 1, &number, 1, &signature, &error));
    check(cairn_call(signature, (const void *)(uintptr_t)half, &argument, 1, &result, &error));
    cairn_signature_destroy(signature);
    return cairn_value_double(&result);
}

static double half(double x) { return x / 2; }

static int64_t add_to_field(const struct object *object, int64_t x) { return object->field + x; }

/* Calls a function with a pointer and an integer. */
static int64_t call_add(const struct object *object, int64_t x)
{
    const struct cairn_type word = CAIRN_INTEGER(64);
    const struct cairn_type types[] = {CAIRN_POINTER, word};
    const struct cairn_value arguments[] = {cairn_value_of_pointer(object),
                                            cairn_value_of_integer(64, x)};
    cairn_signature *signature;
    struct cairn_value sum;
    check(cairn_signature_create(NULL, &word, 1, types, 2, &signature, &error));
    check(cairn_call(signature, (const void *)(uintptr_t)add_to_field, arguments, 2, &sum, &error));
    cairn_signature_destroy(signature);
    return cairn_value_signed(&sum);
}

/* Returns the signature of int64_t f(int64_t), from LLVM's type. */
static cairn_signature *signature_of_compute(LLVMContextRef context)
{
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    cairn_signature *signature;
    check(
        cairn_signature_of_function(NULL, LLVMFunctionType(word, &word, 1, 0), &signature, &error));
    return signature;
}

static int64_t interpret(int64_t x) { return 100 * x; }

/* Calls a function through an entry, before and after its version is replaced. */
static int64_t call_two_versions(cairn_runtime *runtime, const cairn_signature *signature,
                                 const void *compiled)
{
    const struct cairn_entry_version version = {.code = compiled, .signature = signature};
    cairn_entry *entry;
    check(cairn_entry_create(runtime, "f", signature, (const void *)(uintptr_t)interpret, &entry,
                             &error));
    int64_t (*f)(int64_t) = (int64_t(*)(int64_t))(uintptr_t)cairn_entry_target(entry);
    int64_t sum = f(1);
    check(cairn_entry_install(entry, &version, CAIRN_SYNC, &error));
    sum += f(1);
    cairn_entry_destroy(entry);
    return sum;
}

/* ---- A queue ---- */

static LLVMModuleRef build_for_queue(LLVMContextRef context, void *user,
                                     struct cairn_error *problem)
{
    (void)user;
    (void)problem;
    return build_second_module(context);
}

/* Compiles in another thread. A job that the thread has not begun yet is cancelled. */
static void compile_in_background(cairn_runtime *runtime)
{
    const struct cairn_queue_options options = {.engine = {.optimisation_level = 2}};
    const struct cairn_queue_job job = {.build = build_for_queue, .function = "double_it"};
    cairn_queue *queue;
    uint64_t ticket;
    check(cairn_queue_create(runtime, &options, &queue, &error));
    check(cairn_queue_add(queue, &job, &ticket, &error));
    printf("cancelled: %s\n", cairn_queue_cancel(queue, ticket) ? "yes" : "no");
    cairn_queue_destroy(queue);
}

/* ---- Objects with constructors ---- */

/* Returns a machine for any processor of this architecture. */
static LLVMTargetMachineRef create_machine(void)
{
    LLVMTargetRef target;
    char *message;
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    if (LLVMGetTargetFromTriple(triple, &target, &message) != 0)
        fail(message);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
        target, triple, "", "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    LLVMDisposeMessage(triple);
    return machine;
}

/* Compiles a module to an object that a loader can read in any process on such a machine. */
static LLVMMemoryBufferRef compile_to_object(LLVMModuleRef module)
{
    const struct cairn_embed_options options = {.machine = create_machine()};
    LLVMMemoryBufferRef object;
    char *message;
    check(cairn_check_module(module, NULL, &error));
    check(cairn_embed_manifest(module, &options, &error));
    if (LLVMTargetMachineEmitToMemoryBuffer(options.machine, module, LLVMObjectFile, &message,
                                            &object) != 0)
        fail(message);
    LLVMDisposeTargetMachine(options.machine);
    return object;
}

/* Loads an object as a module, as dlopen does: its constructors are run. */
static cairn_module *open_object(cairn_runtime *runtime, LLVMMemoryBufferRef object)
{
    cairn_loader *loader;
    cairn_module *module;
    check(cairn_loader_create(runtime, "object", &loader, &error));
    check(cairn_loader_add_object(loader, LLVMGetBufferStart(object), LLVMGetBufferSize(object),
                                  NULL, &error));
    check(cairn_loader_finish(loader, &module, &error));
    check(cairn_module_publish(module, &error));
    check(cairn_module_run_constructors(module, &error));
    return module;
}

/* Unloads the module, as dlclose does. */
static void close_object(cairn_runtime *runtime, cairn_module *module)
{
    cairn_module_run_destructors(module);
    cairn_module_retire(module);
    cairn_runtime_quiesce(runtime);
}

static void use_object(cairn_runtime *runtime, LLVMContextRef context)
{
    LLVMModuleRef built = build_module(context);
    LLVMMemoryBufferRef object = compile_to_object(built);
    cairn_module *module = open_object(runtime, object);
    expect("definition found", cairn_module_find_symbol(module, "compute") != NULL, true);
    close_object(runtime, module);
    LLVMDisposeMemoryBuffer(object);
    LLVMDisposeModule(built);
}

/* ---- Runtimes ---- */

static atomic_size_t allocated;

/* An allocator that counts bytes. Several threads may call it. */
static void *reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    (void)user;
    void *moved = new_size == 0 ? NULL : realloc(block, new_size);
    if (new_size == 0)
        free(block);
    if (new_size == 0 || moved != NULL)
        allocated += new_size - old_size;
    return moved;
}

/* Creates a runtime with an allocator of the host's. */
static cairn_runtime *create_runtime(void)
{
    const struct cairn_allocator counting = {.reallocate = reallocate, .user = NULL};
    const struct cairn_runtime_options options = {.allocator = counting};
    cairn_runtime *runtime;
    check(cairn_runtime_create(&options, &runtime, &error));
    return runtime;
}

static void print_statistics(cairn_runtime *runtime)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(runtime, &statistics);
    printf("%" PRIu32 " modules, %zu bytes of code, %s\n", statistics.module_count,
           statistics.code_bytes,
           statistics.code_mode == CAIRN_CODE_MODE_DUAL ? "two views" : "one mapping");
}

/* Ends the use of compiled code. No thread executes it any more. */
static void clean_up(cairn_engine *engine, cairn_runtime *runtime)
{
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
}

/* Records an event of the host's in the log of its runtime. */
static void record_event(cairn_runtime *runtime, const char *path)
{
    const struct cairn_log_message message = {.text = "loaded a class", .values = {1, 2}};
    cairn_log *log;
    check(cairn_log_create(path, NULL, &log, &error));
    check(cairn_log_attach(log, runtime, &error));
    cairn_log_write(runtime, &message);
    cairn_log_destroy(log);
}

/* Called in a child that was made by clone() or _Fork(), before all other functions of Cairn. */
static void begin_child(cairn_runtime *runtime)
{
    if (cairn_runtime_after_fork(runtime, NULL) != CAIRN_OK)
        _exit(1);
}

/* A handler of a signal could do this: it makes the interrupted code continue elsewhere. */
static void continue_at(struct cairn_context *context, uint64_t pc)
{
    check(cairn_context_write(context, CAIRN_REGISTER_PC, &pc, sizeof pc, &error));
}

/* ---- Types ---- */

/* Prints the type of four floats, as LLVM writes it, and its size. */
static void print_vector_type(void)
{
    struct cairn_type type = cairn_type_vector(CAIRN_FLOAT, 4);
    char text[32];
    cairn_type_format(type, text, sizeof text);
    printf("%s has %zu bytes\n", text, cairn_type_size(type));
}

static void check_version(void)
{
    if (strcmp(cairn_version(), CAIRN_VERSION_STRING) != 0)
        printf("compiled with Cairn " CAIRN_VERSION_STRING ", runs with %s\n", cairn_version());
}

/* ---- The program ---- */

static cairn_site *find_site(const cairn_runtime *runtime, uint64_t id)
{
    cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
    if (site == NULL)
        fail(error.message);
    return site;
}

/* Calls the function, which must leave at one of its sites or more. */
static void expect_exit(const char *what, int64_t (*compute)(int64_t))
{
    calls = 0;
    printf("%s: compute(1) is %" PRId64 "\n", what, compute(1));
    expect("has left", calls > 0, true);
}

static void change_sites(cairn_runtime *runtime, int64_t (*compute)(int64_t))
{
    cairn_site *site = find_site(runtime, AT_START);
    call_at_all(&site, 1, count_call);
    expect("with a call", compute(1), 10);
    expect("calls", calls, 1);
    restore_all(&site, 1);
    expect("restored", compute(1) + calls, 11);
    expect("given up", call_and_give_up(site, compute), -1);
    restore_all(&site, 1);
    leave_once(site, compute);
    expect("calls", calls, 2);
    cairn_exit *exit = create_exit(runtime);
    cairn_invalidation *invalidation = invalidate(runtime, (uintptr_t)compute, exit);
    expect_exit("invalid", compute);
    make_valid(invalidation);
    expect("valid again", compute(1), 10);
    assume(runtime, site, exit);
    expect_exit("without the assumption", compute);
    restore_all(&site, 1);
    cairn_exit_destroy(exit);
}

static void use_cache(cairn_runtime *runtime, int64_t (*read_field)(const struct object *))
{
    static const struct object object = {.shape = 1, .field = 5};
    cairn_site *site = find_site(runtime, READS_FIELD);
    calls = 0;
    create_cache(site);
    expect("field", read_field(&object) + read_field(&object), 10);
    expect("misses", calls, 1);
    destroy_cache(site);
}

static uint64_t address_of(cairn_engine *engine, const char *name)
{
    void *address = cairn_engine_function(engine, name, &error);
    if (address == NULL)
        fail(error.message);
    return (uintptr_t)address;
}

static void use_runtime(cairn_runtime *runtime, LLVMContextRef context)
{
    struct cairn_context registers = {0};
    char path[] = "/tmp/changes.XXXXXX";
    int file = mkstemp(path);
    use_object(runtime, context);
    compile_in_background(runtime);
    if (file < 0 || close(file) != 0)
        fail("there is no temporary file");
    record_event(runtime, path);
    unlink(path);
    begin_child(runtime); /* has no effect in this process */
    continue_at(&registers, 1);
    print_vector_type();
    check_version();
    expect("half", call_half(half, 3.0) == 1.5, true);
    expect("sum", call_add(&(struct object){.field = 2}, 3), 5);
}

int main(void)
{
    const struct cairn_engine_options options = {.optimisation_level = 2};
    cairn_engine *engine;
    cairn_runtime *runtime = create_runtime();
    LLVMContextRef context = LLVMContextCreate();
    cairn_signature *signature = signature_of_compute(context);
    check(cairn_engine_create(runtime, build_module(context), &options, &engine, &error));
    check(cairn_engine_compile(engine, &error));
    add_second_module(engine, context);
    uint64_t compute = address_of(engine, "compute");
    struct cairn_site_description description;
    cairn_site_describe(find_site(runtime, AT_START), &description);
    print_record(runtime, description.address);
    change_sites(runtime, (int64_t(*)(int64_t))(uintptr_t)compute);
    use_cache(runtime,
              (int64_t(*)(const struct object *))(uintptr_t)address_of(engine, "read_field"));
    expect("two versions", call_two_versions(runtime, signature, (const void *)(uintptr_t)compute),
           110);
    cairn_module *module = keep_module(runtime, compute);
    cairn_module_retire(module);
    drop_module(module);
    free_retired(runtime);
    use_runtime(runtime, context);
    print_statistics(runtime);
    cairn_signature_destroy(signature);
    clean_up(engine, runtime);
    LLVMContextDispose(context);
    expect("bytes that are still allocated", (int64_t)allocated, 0);
    return 0;
}
