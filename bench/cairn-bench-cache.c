/*
 * cairn-bench-cache: the time to load 1,000 functions from a code cache, beside the time to compile
 * them at -O2, as one object and as one object for each function; the time of a queue for a job of
 * a batch, beside one that is compiled alone; the time to add, raise and cancel a job among 10,000
 * that wait, beside 100; the time to load and publish a function with 10 names (four in code, five
 * in a frame state, a cache and an exit); and the time from the creation of a queue to the end of
 * its first job, in processes that have not used LLVM.
 *
 * Each function has a loop, a call, branches and a patch point with live values, about 40
 * instructions. Compiling is LLVM's default<O2> and its code generator, from modules that are
 * parsed already. Loading is everything from the bytes in memory to the published module with its
 * sites, and finding each function by its name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <cairn/load.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FUNCTIONS = 1000, FUNCTION_TEXT_BYTES = 2048, ROUNDS = 5 };

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#define I64_PTR "i64*"
#else
#define PTR "ptr"
#define I64_PTR "ptr"
#endif

static const struct bench_options options = {.json = false};

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "cairn-bench-cache: %s\n", message);
    exit(1);
}

/* ---- Compiling ---- */

static const char intrinsic[] =
    "declare void @llvm.experimental.patchpoint.void(i64, i32, " PTR ", i32, ...)\n";

/* A sum over an array, whose elements are treated differently by their values, until one is 0. */
static const char function_text[] =
    "define i64 @f%d(" I64_PTR " %%a, i64 %%n, double %%d) uwtable {\n"
    "entry:\n"
    "  br label %%loop\n"
    "loop:\n"
    "  %%i = phi i64 [ 0, %%entry ], [ %%next, %%join ]\n"
    "  %%s = phi i64 [ %d, %%entry ], [ %%t, %%join ]\n"
    "  %%e = phi double [ %%d, %%entry ], [ %%g, %%join ]\n"
    "  %%p = getelementptr i64, " I64_PTR " %%a, i64 %%i\n"
    "  %%x = load i64, " I64_PTR " %%p\n"
    "  %%zero = icmp eq i64 %%x, 0\n"
    "  br i1 %%zero, label %%slow, label %%fast\n"
    "slow:\n"
    "  call void (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 16,\n"
    "      " PTR " null, i32 0, i64 %%i, i64 %%s, double %%e, " I64_PTR " %%a)\n"
    "  ret i64 %%s\n"
    "fast:\n"
    "  %%big = icmp ugt i64 %%x, %d\n"
    "  br i1 %%big, label %%more, label %%less\n"
    "more:\n"
    "  %%m1 = mul i64 %%x, %d\n"
    "  %%m2 = xor i64 %%m1, %%s\n"
    "  %%m3 = lshr i64 %%m2, 7\n"
    "  %%m4 = add i64 %%m3, %%i\n"
    "  br label %%join\n"
    "less:\n"
    "  %%l1 = sub i64 %%s, %%x\n"
    "  %%l2 = and i64 %%l1, 65535\n"
    "  %%l3 = shl i64 %%l2, 3\n"
    "  store i64 %%l3, " I64_PTR " %%p\n"
    "  br label %%join\n"
    "join:\n"
    "  %%t = phi i64 [ %%m4, %%more ], [ %%l3, %%less ]\n"
    "  %%f = sitofp i64 %%t to double\n"
    "  %%g = fadd double %%e, %%f\n"
    "  %%next = add i64 %%i, 1\n"
    "  %%end = icmp eq i64 %%next, %%n\n"
    "  br i1 %%end, label %%exit, label %%loop\n"
    "exit:\n"
    "  %%r = fptosi double %%g to i64\n"
    "  %%u = add i64 %%t, %%r\n"
    "  ret i64 %%u\n"
    "}\n";

/* Parses a module of `count` functions from number `first` on. */
static LLVMModuleRef parse(LLVMContextRef context, int first, int count)
{
    size_t capacity = sizeof intrinsic + (size_t)count * FUNCTION_TEXT_BYTES;
    char *text = malloc(capacity);
    char *message;
    LLVMModuleRef module;
    if (text == NULL)
        fail("no memory for IR");
    size_t size = (size_t)snprintf(text, capacity, "%s", intrinsic);
    for (int i = first; i < first + count; i++)
        size += (size_t)snprintf(text + size, capacity - size, function_text, i, i, i, 1000 + i,
                                 2 * i + 3);
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, size, "cache");
    free(text);
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        fail(message);
    return module;
}

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

/* Compiles a module, and disposes of it. */
static LLVMMemoryBufferRef compile(LLVMTargetMachineRef machine, LLVMModuleRef module)
{
    const struct cairn_embed_options embed = {.machine = machine};
    struct cairn_error error;
    LLVMMemoryBufferRef object;
    char *message;
    LLVMPassBuilderOptionsRef passes = LLVMCreatePassBuilderOptions();
    if (LLVMRunPasses(module, "default<O2>", machine, passes) != NULL)
        fail("LLVM cannot run its passes");
    LLVMDisposePassBuilderOptions(passes);
    if (cairn_embed_manifest(module, &embed, &error) != CAIRN_OK)
        fail(error.message);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &object) !=
        0)
        fail(message);
    LLVMDisposeModule(module);
    return object;
}

/* ---- Loading ---- */

static cairn_module *load(cairn_runtime *runtime, LLVMMemoryBufferRef object,
                          const struct cairn_load_options *chosen)
{
    struct cairn_error error;
    cairn_loader *loader;
    cairn_module *module;
    if (cairn_loader_create(runtime, "cached", &loader, &error) != CAIRN_OK ||
        cairn_loader_add_object(loader, LLVMGetBufferStart(object), LLVMGetBufferSize(object),
                                chosen, &error) != CAIRN_OK ||
        cairn_loader_finish(loader, &module, &error) != CAIRN_OK ||
        cairn_module_publish(module, &error) != CAIRN_OK)
        fail(error.message);
    return module;
}

/* Loads all objects into a new runtime. Returns nanoseconds. */
static double load_all(LLVMMemoryBufferRef *objects, int object_count)
{
    int functions = FUNCTIONS / object_count;
    struct cairn_error error;
    cairn_runtime *runtime;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK)
        fail(error.message);
    double begun = bench_now_of_thread();
    for (int i = 0; i < object_count; i++) {
        cairn_module *module = load(runtime, objects[i], NULL);
        for (int k = 0; k < functions; k++) {
            char name[16];
            snprintf(name, sizeof name, "f%d", i * functions + k);
            if (cairn_module_find_symbol(module, name) == NULL)
                fail("a function is not there");
        }
    }
    double took = bench_now_of_thread() - begun;
    if (cairn_runtime_find_site(runtime, FUNCTIONS - 1, &error) == NULL)
        fail(error.message);
    cairn_runtime_destroy(runtime);
    return took;
}

/* ---- Figures ---- */

static void measure(const char *name, int object_count)
{
    enum { NANOSECONDS = 1000000 };
    static LLVMMemoryBufferRef objects[FUNCTIONS];
    static LLVMModuleRef modules[FUNCTIONS];
    double loading[ROUNDS];
    LLVMContextRef context = LLVMContextCreate();
    LLVMTargetMachineRef machine = create_machine();
    size_t bytes = 0;
    for (int i = 0; i < object_count; i++)
        modules[i] = parse(context, i * (FUNCTIONS / object_count), FUNCTIONS / object_count);
    double begun = bench_now_of_thread();
    for (int i = 0; i < object_count; i++)
        objects[i] = compile(machine, modules[i]);
    double compiling = bench_now_of_thread() - begun;
    for (int round = 0; round < ROUNDS; round++)
        loading[round] = load_all(objects, object_count);
    for (int i = 0; i < object_count; i++) {
        bytes += LLVMGetBufferSize(objects[i]);
        LLVMDisposeMemoryBuffer(objects[i]);
    }
    bench_print(&options, &(struct bench_figure){
                              .name = name,
                              .value = bench_percentile(loading, ROUNDS, 0.5) / (double)NANOSECONDS,
                              .unit = "ms",
                              .peer = "compiling at -O2",
                              .peer_value = compiling / (double)NANOSECONDS,
                              .ratio_limit = 1.0 / 200,
                          });
    char text[64];
    snprintf(text, sizeof text, "%s.object_bytes", name);
    bench_print(&options, &(struct bench_figure){.name = text,
                                                 .value = (double)bytes / (double)FUNCTIONS,
                                                 .unit = "bytes/function"});
    LLVMDisposeTargetMachine(machine);
    LLVMContextDispose(context);
}

/* ---- Names ---- */

enum { NAMES = 10, CODE_NAMES = 4, FRAME_NAMES = 3, NAMED_LOADS = 2000 };

static uint64_t host_values[NAMES]; /* of names, whose bytes are their numbers */

static size_t find_names(void *user, const struct cairn_name *names, size_t count, uint64_t *found)
{
    (void)user;
    for (size_t i = 0; i < count; i++)
        found[i] = host_values[*(const uint8_t *)names[i].bytes];
    return count;
}

static LLVMValueRef build_name(LLVMBuilderRef builder, LLVMTypeRef type, uint8_t number)
{
    const struct cairn_name name = {&number, 1};
    struct cairn_error error;
    LLVMValueRef value = cairn_build_name(builder, &name, type, &error);
    if (value == NULL)
        fail(error.message);
    return value;
}

/* Builds a guard with names 0 to 4: its exit, function, and locals. */
static void build_named_guard(LLVMBuilderRef builder, LLVMTypeRef word, LLVMValueRef condition)
{
    const uint8_t number = 0;
    const struct cairn_name exit_name = {&number, 1};
    struct cairn_error error;
    LLVMValueRef locals[FRAME_NAMES];
    for (unsigned i = 0; i < FRAME_NAMES; i++)
        locals[i] = build_name(builder, word, (uint8_t)(2 + i));
    const struct cairn_encoded_frame frame = {.function_name = build_name(builder, word, 1),
                                              .locals = locals,
                                              .local_count = FRAME_NAMES};
    const struct cairn_guard guard = {
        .id = 1, .exit_name = &exit_name, .frames = &frame, .frame_count = 1};
    if (cairn_build_guard(builder, condition, &guard, &error) == NULL)
        fail(error.message);
}

/* Builds a patch point whose cache has name 5. */
static LLVMValueRef build_named_cache(LLVMBuilderRef builder, LLVMTypeRef word, LLVMValueRef object)
{
    const uint8_t number = 5;
    const struct cairn_name name = {&number, 1};
    struct cairn_error error;
    const struct cairn_patchpoint site = {.id = 2,
                                          .byte_count = 32,
                                          .result_type = word,
                                          .calling_convention = CAIRN_CALLING_CONVENTION_ANYREG,
                                          .arguments = &object,
                                          .argument_count = 1,
                                          .cache_name = &name};
    LLVMValueRef read = cairn_build_patchpoint(builder, &site, &error);
    if (read == NULL)
        fail(error.message);
    return read;
}

static LLVMModuleRef build_with_names(LLVMContextRef context)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("names", context);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMValueRef function = LLVMAddFunction(module, "f0", LLVMFunctionType(word, &word, 1, 0));
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMSetTarget(module, triple);
    LLVMDisposeMessage(triple);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, ""));
    LLVMValueRef sum = LLVMGetParam(function, 0);
    LLVMValueRef zero = LLVMConstNull(word);
    build_named_guard(builder, word, LLVMBuildICmp(builder, LLVMIntNE, sum, zero, ""));
    sum = build_named_cache(builder, word, sum);
    for (unsigned i = NAMES - CODE_NAMES; i < NAMES; i++)
        sum = LLVMBuildAdd(builder, sum, build_name(builder, word, (uint8_t)i), "");
    LLVMBuildRet(builder, sum);
    LLVMDisposeBuilder(builder);
    return module;
}

static void missed(struct cairn_ic_miss *miss, void *user) { (void)miss, (void)user; }

static void leave(struct cairn_exit_call *call, void *user) { (void)call, (void)user; }

/* Loads an object many times. Returns the median of nanoseconds. */
static double load_with_names(cairn_runtime *runtime, LLVMMemoryBufferRef object)
{
    static double took[NAMED_LOADS];
    const struct cairn_load_options chosen = {.find_names = find_names};
    for (int i = 0; i < NAMED_LOADS; i++) {
        double begun = bench_now_of_thread();
        load(runtime, object, &chosen);
        took[i] = bench_now_of_thread() - begun;
    }
    return bench_percentile(took, NAMED_LOADS, 0.5);
}

static void measure_names(void)
{
    const struct cairn_ic_options cache = {.handler = missed};
    struct cairn_error error;
    cairn_exit *exit;
    cairn_runtime *runtime;
    LLVMContextRef context = LLVMContextCreate();
    LLVMTargetMachineRef machine = create_machine();
    LLVMModuleRef module = build_with_names(context);
    double begun = bench_now_of_thread();
    LLVMMemoryBufferRef object = compile(machine, module);
    double compiling = bench_now_of_thread() - begun;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_exit_create(runtime, leave, NULL, &exit, &error) != CAIRN_OK)
        fail(error.message);
    host_values[0] = (uintptr_t)cairn_exit_target(exit);
    host_values[5] = (uintptr_t)&cache;
    bench_print(&options, &(struct bench_figure){.name = "cache.function_with_10_names",
                                                 .value = load_with_names(runtime, object) / 1e3,
                                                 .unit = "us",
                                                 .peer = "compiling at -O2",
                                                 .peer_value = compiling / 1e3,
                                                 .limit = 20});
    cairn_exit_destroy(exit);
    cairn_runtime_destroy(runtime);
    LLVMDisposeMemoryBuffer(object);
    LLVMDisposeTargetMachine(machine);
    LLVMContextDispose(context);
}

/* ---- Queues ---- */

enum { JOBS = 200 };

static _Atomic int jobs_done;

static LLVMModuleRef build(LLVMContextRef context, void *user, struct cairn_error *error)
{
    (void)error;
    return parse(context, (int)(uintptr_t)user, 1);
}

static void count_done(const struct cairn_queue_result *result, void *user)
{
    (void)user;
    if (result->error->status != CAIRN_OK)
        fail(result->error->message);
    jobs_done++;
}

/* Returns nanoseconds for each of JOBS functions that a queue's only thread compiles. */
static double run_queue(uint32_t batch_limit)
{
    const struct cairn_queue_options chosen = {
        .engine = {.optimisation_level = 2, .passes = "default<O2>"}, .batch_limit = batch_limit};
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_queue *queue;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_queue_create(runtime, &chosen, &queue, &error) != CAIRN_OK)
        fail(error.message);
    jobs_done = 0;
    double begun = bench_now();
    for (uintptr_t i = 0; i < JOBS; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", (int)i);
        const struct cairn_queue_job job = {
            .build = build, .done = count_done, .user = (void *)i, .function = name};
        if (cairn_queue_add(queue, &job, NULL, &error) != CAIRN_OK)
            fail(error.message);
    }
    while (jobs_done < JOBS)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    double took = bench_now() - begun;
    cairn_queue_destroy(queue);
    cairn_runtime_destroy(runtime);
    return took / (double)JOBS;
}

/* Both are measured in turn, so that other load of the machine hits both. */
static void measure_queues(void)
{
    enum { NANOSECONDS = 1000000 };
    double batches[ROUNDS], single[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        batches[round] = run_queue(JOBS);
        single[round] = run_queue(1);
    }
    bench_print(&options,
                &(struct bench_figure){
                    .name = "queue.job_of_a_batch",
                    .value = bench_percentile(batches, ROUNDS, 0.5) / (double)NANOSECONDS,
                    .unit = "ms",
                    .peer = "compiled alone",
                    .peer_value = bench_percentile(single, ROUNDS, 0.5) / (double)NANOSECONDS,
                    .ratio_limit = 1.0,
                });
}

/* ---- Presets ---- */

/* Returns nanoseconds to compile and load a module of 270 instructions with a tier's preset. */
static double compile_tier(enum cairn_tier tier)
{
    enum { COUNT = 10 };
    const struct cairn_engine_options preset = cairn_engine_preset(tier);
    struct cairn_error error;
    cairn_engine *engine;
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = parse(context, 0, COUNT);
    double begun = bench_now();
    if (cairn_engine_create(NULL, module, &preset, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK)
        fail(error.message);
    double took = bench_now() - begun;
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    return took;
}

static void measure_presets(void)
{
    double quick[ROUNDS], full[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        quick[round] = compile_tier(CAIRN_TIER_QUICK);
        full[round] = compile_tier(CAIRN_TIER_FULL);
    }
    bench_print(&options, &(struct bench_figure){
                              .name = "preset.quick",
                              .value = bench_percentile(quick, ROUNDS, 0.5) / 1e6,
                              .unit = "ms",
                              .peer = "preset.full",
                              .peer_value = bench_percentile(full, ROUNDS, 0.5) / 1e6,
                              .ratio_limit = 1.0,
                          });
}

/* ---- Jobs that wait ---- */

static _Atomic bool build_waits;

/* Keeps the queue's thread, so that other jobs wait. */
static LLVMModuleRef build_later(LLVMContextRef context, void *user, struct cairn_error *error)
{
    while (build_waits)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return build(context, user, error);
}

/* Adds, raises and cancels `count` jobs that wait. Returns nanoseconds for each. */
static double measure_waiting_jobs(uint64_t count)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_queue *queue;
    uint64_t first = 0, ticket;
    const struct cairn_queue_job job = {.build = build_later, .function = "f0"};
    build_waits = true;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_queue_create(runtime, NULL, &queue, &error) != CAIRN_OK ||
        cairn_queue_add(queue, &job, &first, &error) != CAIRN_OK)
        fail(error.message);
    while (cairn_queue_raise(queue, first, 0))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    double begun = bench_now();
    for (uint64_t i = 0; i < count; i++)
        if (cairn_queue_add(queue, &job, &ticket, &error) != CAIRN_OK)
            fail(error.message);
    for (uint64_t i = 1; i <= count; i++)
        cairn_queue_raise(queue, first + i, (int32_t)(i % 100));
    for (uint64_t i = count; i > 0; i--)
        cairn_queue_cancel(queue, first + i);
    double took = bench_now() - begun;
    build_waits = false;
    cairn_queue_destroy(queue);
    cairn_runtime_destroy(runtime);
    return took / (double)count;
}

static void measure_waiting(void)
{
    enum { FEW = 100, MANY = 10000 };
    double few[ROUNDS], many[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        few[round] = measure_waiting_jobs(FEW);
        many[round] = measure_waiting_jobs(MANY);
    }
    bench_print(&options, &(struct bench_figure){
                              .name = "queue.waiting_job_of_10000",
                              .value = bench_percentile(many, ROUNDS, 0.5),
                              .unit = "ns",
                              .peer = "of 100",
                              .peer_value = bench_percentile(few, ROUNDS, 0.5),
                          });
}

/* ---- Starting ---- */

/* What a process measures that uses LLVM for the first time, in nanoseconds. */
struct start {
    double create; /* the queue */
    double first;  /* from its creation, or when it is warm from adding the job, to its end */
    double second; /* from adding another job to its end */
};

static double run_job(cairn_queue *queue, uintptr_t number)
{
    struct cairn_error error;
    char name[16];
    snprintf(name, sizeof name, "f%d", (int)number);
    const struct cairn_queue_job job = {
        .build = build, .done = count_done, .user = (void *)number, .function = name};
    int before = jobs_done;
    double begun = bench_now();
    if (cairn_queue_add(queue, &job, NULL, &error) != CAIRN_OK)
        fail(error.message);
    while (jobs_done == before)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    return bench_now() - begun;
}

static struct start start_queue(bool warms_up)
{
    const struct cairn_queue_options chosen = {.engine = {.optimisation_level = 1},
                                               .warms_up = warms_up};
    struct start start;
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_queue *queue;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK)
        fail(error.message);
    double begun = bench_now();
    if (cairn_queue_create(runtime, &chosen, &queue, &error) != CAIRN_OK)
        fail(error.message);
    start.create = bench_now() - begun;
    if (warms_up)
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    start.first = run_job(queue, 0) + (warms_up ? 0 : start.create);
    start.second = run_job(queue, 1);
    return start;
}

/* Returns what another process has measured. */
static struct start start_in_process(bool warms_up)
{
    struct start start;
    int ends[2];
    if (pipe(ends) != 0)
        fail("no pipe");
    pid_t process = fork();
    if (process == 0) {
        start = start_queue(warms_up);
        _exit(write(ends[1], &start, sizeof start) == (ssize_t)sizeof start ? 0 : 1);
    }
    close(ends[1]);
    if (process < 0 || read(ends[0], &start, sizeof start) != (ssize_t)sizeof start)
        fail("a process that starts a queue has failed");
    close(ends[0]);
    waitpid(process, NULL, 0);
    return start;
}

static void print_start(const char *name, double *values, const char *unit, double nanoseconds,
                        const char *peer, double *peer_values, double limit)
{
    bench_print(&options,
                &(struct bench_figure){
                    .name = name,
                    .value = bench_percentile(values, ROUNDS, 0.5) / nanoseconds,
                    .unit = unit,
                    .peer = peer,
                    .peer_value = bench_percentile(peer_values, ROUNDS, 0.5) / nanoseconds,
                    .limit = limit,
                });
}

static void measure_starts(void)
{
    double create[ROUNDS], cold[ROUNDS], warm[ROUNDS], later[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        struct start of_cold = start_in_process(false), of_warm = start_in_process(true);
        create[round] = of_warm.create;
        cold[round] = of_cold.first;
        warm[round] = of_warm.first;
        later[round] = of_warm.second;
    }
    print_start("queue.create", create, "us", 1e3, "the first job, cold", cold, 200);
    print_start("queue.first_job.cold", cold, "ms", 1e6, "a later job", later, 0);
    print_start("queue.first_job.warm", warm, "ms", 1e6, "a later job", later, 6);
}

int main(void)
{
    bench_begin(&options);
    measure_starts();
    measure("cache.one_object_of_1000", 1);
    measure("cache.1000_objects", FUNCTIONS);
    measure_names();
    measure_queues();
    measure_presets();
    measure_waiting();
    bench_end(&options);
    return 0;
}
