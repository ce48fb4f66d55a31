/*
 * code_cache: code is compiled once, kept in a file, and loaded from there by later processes.
 *
 *     cc code_cache.c $(pkg-config --cflags --libs cairn-llvm)
 *     ./a.out           runs the program below in two processes
 *     ./a.out FILE.o    runs it in this process: the first time it compiles, then it does not
 *
 * The object contains the declarations of its sites and the CPU that it needs. So a queue's thread
 * loads it without LLVM. (examples/load_object.c loads it without a queue, too, and is linked with
 * libcairn alone.) A cache of many
 * objects would name each file by a hash of its IR, and of the versions of Cairn and LLVM.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/llvm.h>
#include <cairn/patch.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

/* int compute(int x) { <patch point 42, which calls nothing>(x); return 7 * x; } */
static const char text[] =
    "declare void @llvm.experimental.patchpoint.void(i64, i32, " PTR ", i32, ...)\n"
    "define i32 @compute(i32 %x) uwtable {\n"
    "  call void (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.void(\n"
    "      i64 42, i32 48, " PTR " null, i32 1, i32 %x)\n"
    "  %r = mul i32 %x, 7\n"
    "  ret i32 %r\n"
    "}\n";

static cairn_runtime *runtime;

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "code_cache: %s\n", message);
    exit(1);
}

/* ---- Loading ---- */

/* Has a thread of the queue load an object. Returns the address of its function, or NULL. */
static void *load_object(cairn_queue *queue, const void *bytes, size_t size)
{
    struct cairn_error error;
    struct cairn_queue_result result;
    uint64_t ticket;
    const struct cairn_queue_job job = {
        .object = bytes, .object_size = size, .function = "compute", .keeps_result = true};
    if (cairn_queue_add(queue, &job, &ticket, &error) != CAIRN_OK)
        fail(error.message);
    cairn_queue_wait(queue, ticket); /* a host would do something else meanwhile */
    if (!cairn_queue_take(queue, &result, &error))
        fail("the result is lost");
    if (result.address == NULL)
        printf("the object cannot be used: %s\n", error.message);
    return result.address;
}

/* Loads the object. Returns NULL if the file does not exist, or is not for this machine. */
static void *load(const char *path)
{
    static char bytes[1 << 20];
    struct cairn_error error;
    cairn_queue *queue;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (cairn_queue_create(runtime, NULL, &queue, &error) != CAIRN_OK)
        fail(error.message);
    void *address = load_object(queue, bytes, size);
    cairn_queue_destroy(queue);
    return address;
}

/* ---- Compiling ---- */

static LLVMModuleRef parse(LLVMContextRef context)
{
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "code_cache", 1);
    LLVMModuleRef parsed;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &parsed, &message) == 0)
        return parsed;
    fail(message);
}

/* Creates a target machine for this machine's CPU, or for any of its architecture. */
static LLVMTargetMachineRef create_machine(bool for_this_cpu)
{
    LLVMTargetRef target;
    char *message;
    char *triple = LLVMGetDefaultTargetTriple();
    char *cpu = LLVMGetHostCPUName();
    char *features = LLVMGetHostCPUFeatures();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    if (LLVMGetTargetFromTriple(triple, &target, &message) != 0)
        fail(message);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
        target, triple, for_this_cpu ? cpu : "", for_this_cpu ? features : "",
        LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    return machine;
}

/* Compiles the text, and writes the object under another name first, because another process may be
 * reading the file. */
static void compile(const char *path)
{
    char temporary[4096];
    char *message;
    struct cairn_error error;
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef parsed = parse(context);
    struct cairn_embed_options options = {.machine = create_machine(true)};
    enum cairn_status status = cairn_check_module(parsed, NULL, &error);
    if (status == CAIRN_OK)
        status = cairn_embed_manifest(parsed, &options, &error);
    if (status == CAIRN_ERROR_UNSUPPORTED) { /* LLVM does not tell what this CPU can do */
        LLVMDisposeTargetMachine(options.machine);
        options.machine = create_machine(false);
        status = cairn_embed_manifest(parsed, &options, &error);
    }
    if (status != CAIRN_OK)
        fail(error.message);
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    if (LLVMTargetMachineEmitToFile(options.machine, parsed, temporary, LLVMObjectFile, &message) !=
        0) {
        fprintf(stderr, "%s: ", temporary);
        fail(message);
    }
    if (rename(temporary, path) != 0)
        fail("cannot write the object");
    LLVMDisposeTargetMachine(options.machine);
    LLVMDisposeModule(parsed);
    LLVMContextDispose(context);
}

/* ---- The program ---- */

static int noted;

static void note(int x) { noted = x; }

static int run(const char *path)
{
    struct cairn_error error;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK)
        fail(error.message);
    void *address = load(path);
    bool is_cached = address != NULL;
    if (!is_cached)
        compile(path);
    if (!is_cached && (address = load(path)) == NULL)
        fail("what was compiled cannot be loaded");
    int (*compute)(int) = (int (*)(int))(uintptr_t)address;
    cairn_site *site = cairn_runtime_find_site(runtime, 42, &error);
    if (site == NULL ||
        cairn_site_call(site, (void *)(uintptr_t)note, CAIRN_SYNC, &error) != CAIRN_OK)
        fail(error.message);
    int result = compute(6);
    printf("%s: compute(6) is %d, and the site saw %d\n",
           is_cached ? "loaded from the cache" : "compiled", result, noted);
    cairn_function_retire(runtime, address);
    cairn_runtime_destroy(runtime);
    return result == 42 && noted == 6 ? 0 : 1;
}

int main(int argument_count, char **arguments)
{
    char path[] = "/tmp/code_cache.XXXXXX";
    int results = 0;
    if (argument_count > 1)
        return run(arguments[1]);
    int file = mkstemp(path);
    if (file < 0 || close(file) != 0 || unlink(path) != 0)
        fail("there is no temporary file");
    for (int i = 0; i < 2; i++) {
        int status = 1;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            exit(run(path));
        if (child < 0 || waitpid(child, &status, 0) != child)
            fail("cannot start a process");
        results |= status;
    }
    unlink(path);
    return results == 0 ? 0 : 1;
}
