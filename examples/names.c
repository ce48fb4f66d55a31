/*
 * names: code that outlives the process, although it uses objects of its host.
 *
 *     cc names.c $(pkg-config --cflags --libs cairn-llvm)
 *     ./a.out                     compiles, and runs the object in another process
 *     ./a.out FILE.o OFFSET       runs the object
 *
 * The host's global variables are in a heap that is elsewhere in each process. The compiled code
 * has names for them: {kind, number}. Whoever loads the object tells what the names stand for.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/llvm.h>
#include <cairn/load.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "names: %s\n", message);
    exit(1);
}

/* ---- The host's names ---- */

enum kind { GLOBAL };
struct key {
    unsigned char kind; /* enum kind */
    unsigned char number;
};

static int64_t *globals; /* elsewhere in each process */

/* Finds what the names of an object stand for in this process. */
static size_t find_names(void *user, const struct cairn_name *names, size_t count, uint64_t *values)
{
    (void)user;
    for (size_t i = 0; i < count; i++) {
        const struct key *key = names[i].bytes;
        if (names[i].size != sizeof *key)
            return i;
        switch ((enum kind)key->kind) {
        case GLOBAL:
            values[i] = (uintptr_t)&globals[key->number];
            break;
        default:
            return i;
        }
    }
    return count;
}

/* ---- Compiling ---- */

static LLVMContextRef context;
static struct cairn_error error;

/* Builds the address of global variable `number`. */
static LLVMValueRef build_global(LLVMBuilderRef builder, unsigned char number)
{
    const struct key key = {GLOBAL, number};
    const struct cairn_name name = {&key, sizeof key};
    LLVMTypeRef pointer = LLVMPointerType(LLVMInt64TypeInContext(context), 0);
    LLVMValueRef cell = cairn_build_name(builder, &name, pointer, &error);
    if (cell == NULL)
        fail(error.message);
    return cell;
}

/* Builds int64_t add(int64_t x), which adds x to global variable 2, and returns the sum. */
static LLVMModuleRef build(const char *triple)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("names", context);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMValueRef function = LLVMAddFunction(module, "add", LLVMFunctionType(word, &word, 1, 0));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMSetTarget(module, triple);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, ""));
    LLVMValueRef cell = build_global(builder, 2);
    LLVMValueRef old = LLVMBuildLoad2(builder, word, cell, "");
    LLVMValueRef sum = LLVMBuildAdd(builder, old, LLVMGetParam(function, 0), "");
    LLVMBuildStore(builder, sum, cell);
    LLVMBuildRet(builder, sum);
    LLVMDisposeBuilder(builder);
    return module;
}

/* Compiles the function for any CPU of this architecture, to a file. */
static void compile(const char *path)
{
    LLVMTargetRef target;
    char *message;
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    if (LLVMGetTargetFromTriple(triple, &target, &message) != 0)
        fail(message);
    context = LLVMContextCreate();
    LLVMModuleRef module = build(triple);
    const struct cairn_embed_options options = {
        .machine = LLVMCreateTargetMachine(target, triple, "", "", LLVMCodeGenLevelDefault,
                                           LLVMRelocPIC, LLVMCodeModelDefault),
    };
    if (cairn_embed_manifest(module, &options, &error) != CAIRN_OK)
        fail(error.message);
    if (LLVMTargetMachineEmitToFile(options.machine, module, (char *)(uintptr_t)path,
                                    LLVMObjectFile, &message) != 0)
        fail(message);
    LLVMDisposeTargetMachine(options.machine);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    LLVMDisposeMessage(triple);
}

/* ---- Running, without LLVM ---- */

/* Loads the object in a file. */
static cairn_module *load(cairn_runtime *runtime, const char *path)
{
    static char bytes[1 << 20];
    const struct cairn_load_options options = {.name = path, .find_names = find_names};
    cairn_loader *loader;
    cairn_module *module;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail("there is no object");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (cairn_loader_create(runtime, "names", &loader, &error) != CAIRN_OK ||
        cairn_loader_add_object(loader, bytes, size, &options, &error) != CAIRN_OK ||
        cairn_loader_finish(loader, &module, &error) != CAIRN_OK ||
        cairn_module_publish(module, &error) != CAIRN_OK)
        fail(error.message);
    return module;
}

/* Runs the object with the globals `offset` words into the heap. */
static int run(const char *path, long offset)
{
    static int64_t heap[100];
    cairn_runtime *runtime;
    globals = heap + offset;
    globals[2] = 40;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK)
        fail(error.message);
    cairn_module *module = load(runtime, path);
    int64_t (*add)(int64_t) =
        (int64_t(*)(int64_t))(uintptr_t)cairn_module_find_symbol(module, "add");
    int64_t result = add(2);
    printf("process %ld: add(2) is %lld, and the global variable is %lld\n", (long)getpid(),
           (long long)result, (long long)globals[2]);
    cairn_module_retire(module);
    cairn_runtime_destroy(runtime);
    return result == 42 && globals[2] == 42 ? 0 : 1;
}

/* Runs the object in a new process. */
static int run_elsewhere(char *program, char *path, const char *offset)
{
    int status = 1;
    char *const arguments[] = {program, path, (char *)(uintptr_t)offset, NULL};
    pid_t child = fork();
    if (child == 0) {
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail("cannot start a process");
    return status;
}

int main(int argument_count, char **arguments)
{
    char path[] = "/tmp/names.XXXXXX";
    if (argument_count > 2)
        return run(arguments[1], strtol(arguments[2], NULL, 10));
    int file = mkstemp(path);
    if (file < 0 || close(file) != 0)
        fail("there is no temporary file");
    compile(path);
    int status = run_elsewhere(arguments[0], path, "10");
    status |= run_elsewhere(arguments[0], path, "50");
    unlink(path);
    return status == 0 ? 0 : 1;
}
