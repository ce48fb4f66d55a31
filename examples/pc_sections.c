/*
 * PC sections: data that a front end attaches to instructions, found by PC while the code runs.
 * Each load of the loop has a line number. The handler of a timer's signal finds the line of the PC
 * that the signal has interrupted.
 *
 * This needs LLVM 16 or later; older versions have no PC sections.
 *
 *     cc pc_sections.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { FIRST_LINE = 10, LOADS = 3, FUNCTION_NUMBER = 7, TURNS = 200000, SAMPLES = 100 };

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "pc_sections: %s: %s\n", cairn_status_name(status), error->message);
    exit(status == CAIRN_ERROR_UNSUPPORTED ? 77 : 1);
}

/* ---- 1. IR with metadata: a loop of volatile loads, each with a line of its own ---- */

static void attach(LLVMValueRef value, const char *section, uint32_t number)
{
    struct cairn_error error;
    LLVMTypeRef int32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(value)));
    LLVMValueRef constant = LLVMConstInt(int32, number, 0);
    const struct cairn_constant_tuple tuple = {&constant, 1};
    const struct cairn_pcsection_metadata metadata = {
        .section = section, .is_compressed = true, .tuples = &tuple, .tuple_count = 1};
    check(cairn_attach_pcsections(value, &metadata, 1, &error), &error);
}

static LLVMValueRef build_loads(LLVMBuilderRef builder, LLVMValueRef pointer, LLVMValueRef sum)
{
    LLVMTypeRef int64 = LLVMTypeOf(sum);
    for (uint32_t i = 0; i < LOADS; i++) {
        LLVMValueRef load = LLVMBuildLoad2(builder, int64, pointer, "");
        LLVMSetVolatile(load, 1);
        attach(load, "line", FIRST_LINE + i);
        sum = LLVMBuildAdd(builder, sum, load, "");
    }
    return sum;
}

static LLVMModuleRef build_module(LLVMContextRef context)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("pc_sections", context);
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    LLVMTypeRef parameters[] = {LLVMPointerType(int64, 0), int64};
    LLVMValueRef function =
        LLVMAddFunction(module, "sum", LLVMFunctionType(int64, parameters, 2, 0));
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(context, function, "entry");
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(context, function, "loop");
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(context, function, "end");
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMValueRef zero = LLVMConstInt(int64, 0, 0);

    cairn_prepare_function(function);
    attach(function, "function", FUNCTION_NUMBER);
    LLVMPositionBuilderAtEnd(builder, entry);
    LLVMBuildBr(builder, loop);
    LLVMPositionBuilderAtEnd(builder, loop);
    LLVMValueRef turn = LLVMBuildPhi(builder, int64, "turn");
    LLVMValueRef sum = LLVMBuildPhi(builder, int64, "sum");
    LLVMValueRef next = LLVMBuildAdd(builder, turn, LLVMConstInt(int64, 1, 0), "next");
    LLVMValueRef added = build_loads(builder, LLVMGetParam(function, 0), sum);
    LLVMValueRef more = LLVMBuildICmp(builder, LLVMIntULT, next, LLVMGetParam(function, 1), "more");
    LLVMBuildCondBr(builder, more, loop, end);
    LLVMAddIncoming(turn, (LLVMValueRef[]){zero, next}, (LLVMBasicBlockRef[]){entry, loop}, 2);
    LLVMAddIncoming(sum, (LLVMValueRef[]){zero, added}, (LLVMBasicBlockRef[]){entry, loop}, 2);
    LLVMPositionBuilderAtEnd(builder, end);
    LLVMBuildRet(builder, added);
    LLVMDisposeBuilder(builder);
    return module;
}

/* ---- 2. The sections that are kept, and their schemas ---- */

static const struct cairn_pc_section pc_sections[] = {
    {.section = "line",
     .has_schema = true,
     .schema = {.constant_count = 1, .constant_bytes = {4}, .is_compressed = true}},
    {.section = "function",
     .has_schema = true,
     .schema =
         {.has_size = true, .constant_count = 1, .constant_bytes = {4}, .is_compressed = true}},
};

/* ---- 3. The signal handler, which takes no lock and allocates no memory ---- */

static cairn_runtime *runtime;
static volatile sig_atomic_t samples_in_function;
static volatile sig_atomic_t samples_at_line[LOADS];

static void sample(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal;
    (void)info;
    struct cairn_context context;
    uint64_t pc;
    if (cairn_context_from_signal(&context, ucontext, NULL) != CAIRN_OK ||
        cairn_context_read(&context, CAIRN_REGISTER_PC, &pc, sizeof pc, NULL) != CAIRN_OK)
        return;
    struct cairn_pc_table_entry found[4];
    const cairn_module *module = cairn_runtime_find_module(runtime, pc);
    size_t count = cairn_pc_table_find(cairn_module_pc_table(module), pc, found, 4);
    for (size_t i = 0; i < count && i < 4; i++) {
        uint64_t number = found[i].value.constants[0];
        if (strcmp(found[i].section->name, "function") == 0)
            samples_in_function = samples_in_function + (number == FUNCTION_NUMBER);
        else if (number - FIRST_LINE < LOADS)
            samples_at_line[number - FIRST_LINE] = samples_at_line[number - FIRST_LINE] + 1;
    }
}

static void set_timer(suseconds_t microseconds)
{
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_PROF, &timer, NULL);
}

static void print_table(uint64_t function)
{
    cairn_module *module = cairn_runtime_find_module(runtime, function);
    const cairn_pc_table *table = cairn_module_pc_table(module);
    struct cairn_pc_table_entry entry;
    for (uint32_t i = 0; cairn_pc_table_entry(table, i, &entry); i++)
        printf("sum+%-3" PRIu64 " %s %" PRIu64 "\n", entry.value.address - function,
               entry.section->name, entry.value.constants[0]);
}

int main(void)
{
    struct cairn_error error;
    cairn_engine *engine;
    int64_t (*sum)(const int64_t *pointer, int64_t turns);
    int64_t number = 1;
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    LLVMContextRef context = LLVMContextCreate();
    const struct cairn_engine_options options = {
        .optimisation_level = 2,
        .modules = {.pc_sections = pc_sections, .pc_section_count = 2},
    };
    check(cairn_engine_create(runtime, build_module(context), &options, &engine, &error), &error);
    check(cairn_engine_compile(engine, &error), &error);
    *(void **)&sum = cairn_engine_function(engine, "sum", &error);
    if (sum == NULL) {
        check(error.status, &error);
        return 1;
    }
    print_table((uintptr_t)sum);

    struct sigaction action = {.sa_sigaction = sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    set_timer(1000);
    while (samples_in_function < SAMPLES)
        if (sum(&number, TURNS) != (int64_t)LOADS * TURNS)
            exit(1);
    set_timer(0);
    signal(SIGPROF, SIG_IGN);
    printf("%d samples in function %d", (int)samples_in_function, FUNCTION_NUMBER);
    for (int i = 0; i < LOADS; i++)
        printf(", %d at line %d", (int)samples_at_line[i], FIRST_LINE + i);
    printf("\n");

    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    return 0;
}
