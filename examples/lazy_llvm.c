/*
 * lazy_llvm: a process that never loads LLVM, if an earlier one has stored the code.
 *
 *     cc lazy_llvm.c $(pkg-config --cflags cairn-llvm) $(pkg-config --libs cairn) -ldl
 *     ./a.out           runs the program below in two processes, with a new folder
 *     ./a.out FOLDER    runs it in this process: the first time it compiles, then it does not
 *
 * The program is linked with libcairn alone. When it first compiles, it opens libcairn-llvm, and
 * with it LLVM, which takes longer than all the rest. `llvm` has a pointer for each function that
 * it calls. A host with a large compiler puts it into a shared object of its own instead, which is
 * linked with libcairn-llvm, and opens that.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The key would be the function's source, or its place in a file and that file's version. */
static const char key[] = "compute";
static const char text[] = "define i32 @compute(i32 %x) {\n"
                           "  %r = mul i32 %x, 7\n"
                           "  ret i32 %r\n"
                           "}\n";

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "lazy_llvm: %s\n", message);
    exit(1);
}

/* ---- LLVM, when it is needed ---- */

#define FUNCTIONS(X)                                                                               \
    X(LLVM_NATIVE_TARGETINFO)                                                                      \
    X(LLVM_NATIVE_TARGET)                                                                          \
    X(LLVM_NATIVE_TARGETMC)                                                                        \
    X(LLVM_NATIVE_ASMPRINTER)                                                                      \
    X(LLVMContextCreate)                                                                           \
    X(LLVMContextDispose)                                                                          \
    X(LLVMCreateMemoryBufferWithMemoryRange)                                                       \
    X(LLVMCreateTargetMachine)                                                                     \
    X(LLVMDisposeMemoryBuffer)                                                                     \
    X(LLVMDisposeMessage)                                                                          \
    X(LLVMDisposeModule)                                                                           \
    X(LLVMDisposeTargetMachine)                                                                    \
    X(LLVMGetBufferSize)                                                                           \
    X(LLVMGetBufferStart)                                                                          \
    X(LLVMGetDefaultTargetTriple)                                                                  \
    X(LLVMGetTargetFromTriple)                                                                     \
    X(LLVMParseIRInContext)                                                                        \
    X(LLVMTargetMachineEmitToMemoryBuffer)                                                         \
    X(cairn_check_module)                                                                          \
    X(cairn_embed_manifest)

#define POINTER(name) __typeof__(name) *(name);
static struct {
    FUNCTIONS(POINTER)
} llvm;

static void *library;

static void *find(const char *name)
{
    void *function =
        dlsym(library, name); /* also in LLVM, because libcairn-llvm is linked with it */
    if (function == NULL)
        fail(name);
    return function;
}

#define STRING_OF(text) #text
#define STRING(name) STRING_OF(name)
#define FIND(name) llvm.name = (__typeof__(name) *)(uintptr_t)find(STRING(name));

static void open_llvm(void)
{
    library = dlopen(CAIRN_LLVM_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail(dlerror());
    FUNCTIONS(FIND)
    llvm.LLVM_NATIVE_TARGETINFO();
    llvm.LLVM_NATIVE_TARGET();
    llvm.LLVM_NATIVE_TARGETMC();
    llvm.LLVM_NATIVE_ASMPRINTER();
}

/* ---- Compiling ---- */

static LLVMTargetMachineRef create_machine(void)
{
    LLVMTargetRef target;
    char *message;
    char *triple = llvm.LLVMGetDefaultTargetTriple();
    if (llvm.LLVMGetTargetFromTriple(triple, &target, &message) != 0)
        fail(message);
    LLVMTargetMachineRef machine = llvm.LLVMCreateTargetMachine(
        target, triple, "", "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    llvm.LLVMDisposeMessage(triple);
    return machine;
}

static LLVMMemoryBufferRef emit(LLVMModuleRef module)
{
    LLVMMemoryBufferRef object;
    struct cairn_error error;
    char *message;
    struct cairn_embed_options options = {.machine = create_machine()};
    if (llvm.cairn_check_module(module, NULL, &error) != CAIRN_OK ||
        llvm.cairn_embed_manifest(module, &options, &error) != CAIRN_OK)
        fail(error.message);
    if (llvm.LLVMTargetMachineEmitToMemoryBuffer(options.machine, module, LLVMObjectFile, &message,
                                                 &object) != 0)
        fail(message);
    llvm.LLVMDisposeTargetMachine(options.machine);
    return object;
}

/* Compiles the text, and adds the object to the store. */
static void compile(cairn_store *store)
{
    LLVMModuleRef module;
    struct cairn_error error;
    char *message;
    open_llvm();
    LLVMContextRef context = llvm.LLVMContextCreate();
    LLVMMemoryBufferRef source =
        llvm.LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "lazy_llvm", 1);
    if (llvm.LLVMParseIRInContext(context, source, &module, &message) != 0)
        fail(message);
    LLVMMemoryBufferRef object = emit(module);
    if (cairn_store_add(store, key, sizeof key, llvm.LLVMGetBufferStart(object),
                        llvm.LLVMGetBufferSize(object), &error) != CAIRN_OK)
        fail(error.message);
    llvm.LLVMDisposeMemoryBuffer(object);
    llvm.LLVMDisposeModule(module);
    llvm.LLVMContextDispose(context);
}

/* ---- Loading ---- */

static void print_note(const char *sentence, void *user)
{
    (void)user;
    fprintf(stderr, "lazy_llvm: %s\n", sentence);
}

/* The program is built for any processor of its architecture; otherwise the fingerprint would have
 * the processor's features, too. */
static cairn_store *open_store(const char *folder)
{
    static const char fingerprint[] = "lazy_llvm 1, LLVM " STRING(LLVM_VERSION_MAJOR);
    const struct cairn_store_options options = {
        .fingerprint = fingerprint, .fingerprint_size = sizeof fingerprint, .note = print_note};
    struct cairn_error error;
    cairn_store *store;
    if (cairn_store_open(folder, &options, &store, &error) != CAIRN_OK)
        fail(error.message);
    return store;
}

/* Loads the object, if the store has it. An object that cannot be loaded is removed. */
static cairn_module *load(cairn_runtime *runtime, cairn_store *store)
{
    struct cairn_error error;
    cairn_loader *loader;
    cairn_module *module;
    size_t size;
    const void *object = cairn_store_find(store, key, sizeof key, &size);
    if (object == NULL)
        return NULL;
    if (cairn_loader_create(runtime, "compute", &loader, &error) != CAIRN_OK)
        fail(error.message);
    if (cairn_loader_add_object(loader, object, size, NULL, &error) == CAIRN_OK &&
        cairn_loader_finish(loader, &module, &error) == CAIRN_OK &&
        cairn_module_publish(module, &error) == CAIRN_OK)
        return module;
    cairn_loader_destroy(loader);
    print_note(error.message, NULL);
    if (cairn_store_remove(store, key, sizeof key, &error) != CAIRN_OK)
        fail(error.message);
    return NULL;
}

/* ---- The program ---- */

static int note_llvm(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (strstr(info->dlpi_name, "LLVM") != NULL)
        *(bool *)found = true;
    return 0;
}

static bool has_llvm(void)
{
    bool found = false;
    dl_iterate_phdr(note_llvm, &found);
    return found;
}

static int run(const char *folder)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK)
        fail(error.message);
    cairn_store *store = open_store(folder);
    cairn_module *module = load(runtime, store);
    bool is_stored = module != NULL;
    if (!is_stored)
        compile(store);
    if (!is_stored && (module = load(runtime, store)) == NULL)
        fail("what was compiled cannot be loaded");
    int (*compute)(int) = (int (*)(int))(uintptr_t)cairn_module_find_symbol(module, "compute");
    int result = compute(6);
    printf("%s %s LLVM: compute(6) is %d\n", is_stored ? "loaded" : "compiled",
           has_llvm() ? "with" : "without", result);
    cairn_module_retire(module);
    cairn_runtime_destroy(runtime);
    cairn_store_close(store);
    return result == 42 && has_llvm() != is_stored ? 0 : 1;
}

/* Runs this program with a folder, in a process of its own. */
static bool run_process(const char *folder)
{
    int status = 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(run(folder));
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail("cannot start a process");
    return status == 0;
}

static bool remove_folder(const char *folder)
{
    DIR *files = opendir(folder);
    if (files == NULL)
        return false;
    for (struct dirent *file; (file = readdir(files)) != NULL;)
        if (file->d_name[0] != '.')
            unlinkat(dirfd(files), file->d_name, 0);
    closedir(files);
    return rmdir(folder) == 0;
}

int main(int argument_count, char **arguments)
{
    char folder[] = "/tmp/lazy_llvm.XXXXXX";
    if (argument_count > 1)
        return run(arguments[1]);
    if (mkdtemp(folder) == NULL)
        fail("there is no temporary folder");
    bool is_right = run_process(folder) && run_process(folder);
    return remove_folder(folder) && is_right ? 0 : 1;
}
