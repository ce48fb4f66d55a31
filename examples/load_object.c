/*
 * load_object: an object file becomes a module, without LLVM and without a linker, and is called.
 *
 *     cc load_object.c $(pkg-config --cflags --libs cairn)
 *     ./a.out                  compiles a few lines of C, and calls them
 *     ./a.out FILE.o FUNCTION  calls int FUNCTION(int) with 6
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/load.h>
#include <cairn/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char source[] = "int factor(int);\n"
                             "static int square(int x) { return x * x; }\n"
                             "int compute(int x) { return square(x) * factor(x) + 1; }\n";

static cairn_runtime *runtime;

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "load_object: %s\n", message);
    exit(1);
}

/* Compiles the lines above. Returns the name of the object. */
static const char *compile(void)
{
    static char name[] = "/tmp/load_object.XXXXXX";
    char command[512];
    const char *compiler = getenv("CC");
    int file = mkstemp(name);
    snprintf(command, sizeof command, "%s -O1 -fPIC -c -x c -o %s -",
             compiler == NULL ? "cc" : compiler, name);
    /* NOLINTNEXTLINE(cert-env33-c): the compiler is the user's. */
    FILE *input = file < 0 ? NULL : popen(command, "w");
    if (input == NULL || fputs(source, input) < 0 || pclose(input) != 0 || close(file) != 0)
        fail("cannot compile");
    return name;
}

static size_t read_file(const char *name, char *bytes, size_t capacity)
{
    FILE *file = fopen(name, "rb");
    size_t size = file == NULL ? 0 : fread(bytes, 1, capacity, file);
    if (file == NULL || ferror(file) || fclose(file) != 0) {
        perror(name);
        exit(1);
    }
    if (size == capacity)
        fail("the object is too large for this example");
    return size;
}

/* Used by the object. Shows who calls it. */
static int factor(int x)
{
    struct cairn_function caller;
    uintptr_t pc = (uintptr_t)__builtin_return_address(0) - 1;
    if (cairn_runtime_find_function(runtime, pc, &caller) && caller.name != NULL)
        printf("factor(%d) is called by %s\n", x, caller.name);
    return 2;
}

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    (void)user;
    *address = (uintptr_t)factor;
    return strcmp(name, "factor") == 0;
}

/* Loads and publishes an object. A loader that has failed can only be destroyed. */
static cairn_module *load(const char *name, const void *bytes, size_t size,
                          const struct cairn_load_options *options)
{
    struct cairn_error error;
    cairn_loader *loader;
    cairn_module *module;
    if (cairn_loader_create(runtime, name, &loader, &error) != CAIRN_OK)
        fail(error.message);
    if (cairn_loader_add_object(loader, bytes, size, options, &error) != CAIRN_OK ||
        cairn_loader_finish(loader, &module, &error) != CAIRN_OK) {
        cairn_loader_destroy(loader);
        fail(error.message);
    }
    if (cairn_module_publish(module, &error) != CAIRN_OK)
        fail(error.message);
    return module;
}

int main(int argument_count, char **arguments)
{
    static char bytes[1 << 20];
    const struct cairn_load_options options = {.find_symbol = find_symbol};
    if (argument_count == 2)
        fail("usage: load_object [FILE.o FUNCTION]");
    const char *file = argument_count > 2 ? arguments[1] : compile();
    const char *name = argument_count > 2 ? arguments[2] : "compute";
    size_t size = read_file(file, bytes, sizeof bytes);
    struct cairn_error error;
    if (argument_count <= 2)
        unlink(file);
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK)
        fail(error.message);
    const cairn_module *module = load(name, bytes, size, &options);
    int (*function)(int) = (int (*)(int))(uintptr_t)cairn_module_find_symbol(module, name);
    if (function == NULL)
        fail("the object does not define the function");
    int result = function(6);
    printf("%s(6) is %d\n", name, result);
    cairn_runtime_destroy(runtime);
    return argument_count > 2 || result == 73 ? 0 : 1;
}
