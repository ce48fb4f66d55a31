/* SPDX-License-Identifier: MIT */
#include "llvm_support.h"

#include "llvm/version.h"

#include <fcntl.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- IR ---- */

static bool is_word(char character)
{
    return character == '_' || character == '.' || (character >= '0' && character <= '9') ||
           (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
}

/* Writes LLVM 14's spelling of a pointer type. Returns the number of characters read. */
static size_t write_typed_pointer(const char *text, char **out)
{
    static const char space[] = "ptr addrspace(1)";
    bool in_space = strncmp(text, space, strlen(space)) == 0;
    *out = stpcpy(*out, in_space ? "i8 addrspace(1)*" : "i8*");
    return in_space ? strlen(space) : strlen("ptr");
}

static char *with_typed_pointers(const char *text)
{
    char *result = malloc(2 * strlen(text) + 1);
    char *out = result;
    for (size_t i = 0; text[i] != '\0';) {
        bool starts = i == 0 || (!is_word(text[i - 1]) && text[i - 1] != '%');
        if (starts && strncmp(text + i, "ptr", 3) == 0 && !is_word(text[i + 3]))
            i += write_typed_pointer(text + i, &out);
        else
            *out++ = text[i++];
    }
    *out = '\0';
    return result;
}

LLVMModuleRef support_parse(LLVMContextRef context, const char *text)
{
    char *spelt = LLVM_HAS_OPAQUE_POINTERS ? strdup(text) : with_typed_pointers(text);
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(spelt, strlen(spelt), "test");
    LLVMModuleRef module = NULL;
    char *message = NULL;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        ck_abort_msg("%s\n%s", message, spelt);
    free(spelt);
    return module;
}

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    const struct support_symbol *symbol = user;
    while (symbol->name != NULL && strcmp(symbol->name, name) != 0)
        symbol++;
    *address = (uintptr_t)symbol->address;
    return symbol->name != NULL;
}

struct cairn_load_options support_symbols(const struct support_symbol *symbols)
{
    return (struct cairn_load_options){.find_symbol = find_symbol,
                                       .user = (void *)(uintptr_t)symbols};
}

void support_verify(LLVMModuleRef module)
{
    char *message = NULL;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message) != 0)
        ck_abort_msg("%s", message);
    LLVMDisposeMessage(message);
}

LLVMModuleRef support_parse_valid(LLVMContextRef context, const char *text)
{
    LLVMModuleRef module = support_parse(context, text);
    support_verify(module);
    return module;
}

LLVMModuleRef support_print_and_parse(LLVMModuleRef module)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    char *text = LLVMPrintModuleToString(module);
    LLVMDisposeModule(module);
    LLVMModuleRef parsed = support_parse(context, text);
    LLVMDisposeMessage(text);
    return parsed;
}

/* ---- Compiling ---- */

static pthread_once_t initialised = PTHREAD_ONCE_INIT;

static void initialise(void)
{
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
}

static LLVMTargetMachineRef create_machine(const char *triple, unsigned optimisation_level)
{
    LLVMTargetRef target = NULL;
    char *message = NULL;
    pthread_once(&initialised, initialise); /* LLVM's list of targets has no lock */
    if (LLVMGetTargetFromTriple(triple, &target, &message) != 0) {
        LLVMDisposeMessage(message);
        return NULL;
    }
    return LLVMCreateTargetMachine(target, triple, "", "", (LLVMCodeGenOptLevel)optimisation_level,
                                   LLVMRelocPIC, LLVMCodeModelDefault);
}

bool support_has_target(const char *triple)
{
    LLVMTargetMachineRef machine = create_machine(triple, 0);
    if (machine == NULL)
        return false;
    LLVMDisposeTargetMachine(machine);
    return true;
}

static LLVMMemoryBufferRef compile(LLVMModuleRef module,
                                   const struct support_compilation *compilation)
{
    static const char *const no_liveness[] = {"test", "-enable-patchpoint-liveness=false"};
    if (compilation->liveness == CAIRN_LIVENESS_OFF)
        LLVMParseCommandLineOptions(2, no_liveness, NULL);
    char *host = LLVMGetDefaultTargetTriple();
    const char *triple = compilation->triple == NULL ? host : compilation->triple;
    LLVMTargetMachineRef machine = create_machine(triple, compilation->optimisation_level);
    LLVMSetTarget(module, triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    char *layout_text = LLVMCopyStringRepOfTargetData(layout);
    LLVMSetDataLayout(module, layout_text);
    LLVMMemoryBufferRef object = NULL;
    char *message = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &object) !=
        0)
        object = NULL;
    LLVMDisposeMessage(layout_text);
    LLVMDisposeTargetData(layout);
    LLVMDisposeTargetMachine(machine);
    LLVMDisposeMessage(host);
    return object;
}

LLVMMemoryBufferRef support_compile_to_memory(LLVMModuleRef module,
                                              const struct support_compilation *compilation)
{
    LLVMMemoryBufferRef object = compile(module, compilation);
    ck_assert_ptr_nonnull(object);
    return object;
}

/* Discards output, and disables symbolization, which makes LLVM's crashes very slow. */
static void silence(bool is_confined)
{
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    setenv("LLVM_DISABLE_SYMBOLIZATION", "1", 1);
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
#ifndef __SANITIZE_ADDRESS__
    /* Limits memory, because LLVM fills all of it with no-ops for some inputs that Cairn
     * refuses. */
    const rlim_t bytes = (rlim_t)(is_confined ? 384 : 768) << 20;
    const struct rlimit enough = {bytes, bytes};
    setrlimit(RLIMIT_AS, &enough);
#else
    (void)is_confined;
#endif
    /* Resets SIGALRM, too, because Check's handler would end the test instead of this child. */
    const int signals[] = {SIGSEGV, SIGABRT, SIGILL, SIGBUS, SIGFPE, SIGTRAP, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
}

enum support_outcome support_compile(LLVMModuleRef module,
                                     const struct support_compilation *compilation)
{
    enum { SECONDS = 10 };
    pid_t child = fork();
    if (child == 0) {
        static const char *const fast_isel[] = {"test", "-fast-isel"};
        silence(compilation->is_confined);
        if (compilation->uses_fast_isel)
            LLVMParseCommandLineOptions(2, fast_isel, NULL);
        alarm(SECONDS);
        _exit(compile(module, compilation) != NULL ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return SUPPORT_HUNG;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? SUPPORT_COMPILED : SUPPORT_CRASHED;
}

/* ---- Running ---- */

/* Compiles a module with what most tests use. Each test runs in a child, and under an emulator most
 * of a child's time would be the translation of LLVM's code. A child inherits what its parent has
 * translated. */
static void compile_before_forking(unsigned optimisation_level)
{
    static const char text[] = SUPPORT_INTRINSICS
        "define void @callee(i64 %a) noinline uwtable {\n"
        "  ret void\n"
        "}\n"
        "define i64 @caller(i64 %a, double %b) uwtable gc \"statepoint-example\" {\n"
        "entry:\n"
        "  br label %loop\n"
        "loop:\n"
        "  %i = phi i64 [0, %entry], [%next, %loop]\n"
        "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 "
        "48,\n"
        "      ptr inttoptr (i64 64 to ptr), i32 1, i64 %i, i64 %a)\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 16, double %b)\n"
        "  call void @callee(i64 %r) [\"deopt\"(i64 %a, double %b)]\n"
        "  %next = add i64 %i, %r\n"
        "  %more = icmp ult i64 %next, %a\n"
        "  br i1 %more, label %loop, label %done\n"
        "done:\n"
        "  ret i64 %next\n"
        "}\n";
    /* The default liveness would change an option of LLVM for all tests. */
    const struct cairn_engine_options options = {.optimisation_level = optimisation_level,
                                                 .enable_fast_isel = optimisation_level == 0,
                                                 .liveness = CAIRN_LIVENESS_OFF_BY_HOST};
    LLVMContextRef context = LLVMContextCreate();
    cairn_engine *engine;
    if (cairn_engine_create(NULL, support_parse(context, text), &options, &engine, NULL) ==
        CAIRN_OK) {
        support_compiled_function(engine, "caller", NULL);
        cairn_engine_destroy(engine);
    }
    LLVMContextDispose(context);
}

uint64_t support_read_number(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

uint64_t support_seed_or(uint64_t usual)
{
    uint64_t seed = support_read_number("CAIRN_TEST_SEED", usual);
    if (seed == 0)
        seed = (uint64_t)time(NULL) << 20;
    printf("CAIRN_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

int support_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int support_main(Suite *suite)
{
    if (getenv("CAIRN_TEST_EMULATED") != NULL) {
        compile_before_forking(0);
        compile_before_forking(2);
    }
    return support_run(suite);
}
