/*
 * lox: runs a Lox program, or what is typed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "jit.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_USAGE = 64, EXIT_STATIC = 65, EXIT_RUN_TIME = 70, EXIT_FILE = 74 };
enum { SOURCE_MAX = 1 << 30 }; /* bytes, so no string is too long */

struct options {
    struct heap_options heap;
    struct jit_options jit;
    const char *path; /* NULL: read lines */
    bool prints_statistics;
    bool wants_help;
};

static const char usage[] =
    "usage: lox [OPTION]... [FILE]\n"
    "  --cache[=DIR]      keep compiled code for later runs, in DIR or ~/.cache/lox\n"
    "  --debugger         tell gdb and lldb about compiled code\n"
    "  --gc-stress        collect garbage at each allocation\n"
    "  --help             print this\n"
    "  --heap-limit=MIB   memory for objects, at most\n"
    "  --young=KIB        size of the young generation\n"
    "  --jit=MODE         off, on, always (at the first call), loops (at the first back edge)\n"
    "  --log=FILE         record what compiled code does, for cairn report\n"
    "  --perf             write the names of compiled code for Linux perf, in /tmp\n"
    "  --statistics       print figures of the heap at the end, on standard error\n";

/* Reads a number of units. Returns false if it is not one, or too large. */
static bool parse_size(const char *text, size_t unit, size_t *size)
{
    char *end;
    unsigned long count = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || *text == '-' || count == 0 || count > SIZE_MAX / 4 / unit)
        return false;
    *size = count * unit;
    return true;
}

static bool parse_mode(const char *name, enum jit_mode *mode)
{
    static const char *const names[] = {"off", "on", "always", "loops"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *mode = (enum jit_mode)i;
        if (strcmp(name, names[i]) == 0)
            return *mode == JIT_OFF || JIT_DEFAULT != JIT_OFF;
    }
    return false;
}

static bool parse_options(struct options *options, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"gc-stress", no_argument, NULL, 's'},
        {"heap-limit", required_argument, NULL, 'l'},
        {"young", required_argument, NULL, 'y'},
        {"perf", no_argument, NULL, 'p'},
        {"statistics", no_argument, NULL, 't'},
        {"jit", required_argument, NULL, 'j'},
        {"log", required_argument, NULL, 'g'},
        {"debugger", no_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {"cache", optional_argument, NULL, 'c'},
        {NULL, 0, NULL, 0},
    };
    bool is_right = true;
    for (int option;
         is_right && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        is_right = option != '?';
        options->heap.is_stressed |= option == 's';
        options->prints_statistics |= option == 't';
        options->jit.names_code |= option == 'p';
        options->jit.has_debugger |= option == 'd';
        options->wants_help |= option == 'h';
        options->jit.has_cache |= option == 'c';
        if (option == 'g')
            options->jit.log_path = optarg;
        else if (option == 'c')
            options->jit.cache_path = optarg;
        else if (option == 'l')
            is_right = parse_size(optarg, 1 << 20, &options->heap.limit);
        else if (option == 'y')
            is_right = parse_size(optarg, 1 << 10, &options->heap.young_size) &&
                       options->heap.young_size >= 4 * (size_t)SMALL_MAX;
        else if (option == 'j')
            is_right = parse_mode(optarg, &options->jit.mode);
    }
    return is_right && argc - optind <= 1;
}

/* Returns the exit status. */
static int run_source(struct vm *vm, const char *source, size_t size)
{
    struct function *script = compile(vm, source, size);
    if (script == NULL)
        return EXIT_STATIC;
    return interpret(vm, script) ? EXIT_SUCCESS : EXIT_RUN_TIME;
}

static int run_file(struct vm *vm, const char *path)
{
    FILE *file = fopen(path, "rb");
    char *source = heap_map(SOURCE_MAX);
    size_t size = file != NULL ? fread(source, 1, SOURCE_MAX, file) : 0;
    bool is_read = file != NULL && feof(file);
    if (file != NULL)
        fclose(file);
    if (is_read)
        jit_begin_program(source, size);
    if (is_read)
        return run_source(vm, source, size);
    fprintf(stderr, "Could not read file \"%s\".\n", path);
    return EXIT_FILE;
}

/* Runs each line. Errors end the line, and not the session. */
static void run_lines(struct vm *vm)
{
    char *line = NULL;
    size_t capacity = 0;
    bool is_terminal = isatty(STDIN_FILENO);
    for (;;) {
        if (is_terminal)
            fputs("> ", stdout);
        fflush(stdout);
        ssize_t size = getline(&line, &capacity, stdin);
        if (size < 0 || size > SOURCE_MAX)
            break;
        run_source(vm, line, (size_t)size);
    }
    if (is_terminal)
        putchar('\n');
    free(line);
}

/* ---- The thread, with a stack that is large enough for the native frames of all calls ---- */

/* Each call has at most a frame of compiled code and one of the interpreter's. Pages that are not
 * used take no memory. */
static const size_t stack_bytes = (size_t)FRAMES_MAX * 4096;

static void *run_all(void *argument)
{
    static struct vm vm;
    static int status;
    const struct options *options = argument;
    vm_init(&vm, &options->heap);
    jit_init(&vm, &options->jit);
    if (options->path != NULL)
        status = run_file(&vm, options->path);
    else
        run_lines(&vm);
    if (options->prints_statistics) {
        fprintf(stderr, "collections: %zu minor, %zu major; old objects: %zu bytes\n",
                vm.heap.minor_count, vm.heap.major_count, vm.heap.old_bytes);
        jit_print_statistics();
    }
    jit_destroy();
    return &status;
}

int main(int argc, char **argv)
{
    struct options options = {.jit = {.mode = JIT_DEFAULT}};
    if (!parse_options(&options, argc, argv)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (options.wants_help)
        return fputs(usage, stdout) == EOF ? EXIT_FAILURE : EXIT_SUCCESS;
    options.path = optind < argc ? argv[optind] : NULL;
    pthread_t thread;
    pthread_attr_t attributes;
    void *status;
    void *stack = heap_map(stack_bytes);
    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstack(&attributes, stack, stack_bytes) != 0 ||
        pthread_create(&thread, &attributes, run_all, &options) != 0)
        heap_exhausted();
    pthread_join(thread, &status);
    return *(int *)status;
}
