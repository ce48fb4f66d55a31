/*
 * Links objects for tests/check_object_run.pl and tests/check_object_lld.pl, which compile them:
 *
 *   link_objects run BASE FILE...            runs each file's functions, and compares what they
 * return with the same functions in this program link_objects dump BASE SYMBOL=ADDRESS... FILE
 * prints where everything is, and the bytes
 *
 * The first area is at the address BASE, and the others follow. The files of `run` are compiled
 * from tests/objects/sample.c; each is run in its own process, because a wrong relocation may crash
 * it. One line per file: "FILE: 95 calls", or what is wrong. The program may be linked statically,
 * and run under an emulator.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "object/link.h"

#include "objects/sample.c"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SYMBOLS_MAX = 64 };

/* ---- What samples use ---- */

int host_number = 100;
int host_add(int a, int b) { return a + b; }

struct known_symbol {
    const char *name;
    uint64_t address;
};

/* How this program links: its symbols, and where memory is. */
struct linking {
    uint64_t next;
    bool runs;
    struct known_symbol symbols[SYMBOLS_MAX];
    size_t symbol_count;
};

static void fail(const char *what)
{
    printf("link_objects: %s\n", what);
    exit(3);
}

static void add_symbol(struct linking *linking, const char *name, uint64_t address)
{
    if (linking->symbol_count == SYMBOLS_MAX)
        fail("too many symbols");
    linking->symbols[linking->symbol_count++] = (struct known_symbol){name, address};
}

extern __int128 __divti3(__int128 a, __int128 b);

static void add_own_symbols(struct linking *linking)
{
    add_symbol(linking, "host_number", (uintptr_t)&host_number);
    add_symbol(linking, "host_add", (uintptr_t)host_add);
    add_symbol(linking, "memcpy", (uintptr_t)memcpy);
    add_symbol(linking, "memset", (uintptr_t)memset);
    add_symbol(linking, "__divti3", (uintptr_t)__divti3);
}

/* ---- The host of the link ---- */

static enum cairn_status allocate(void *user, enum cairn_section_kind kind, const char *name,
                                  uint64_t size, uint64_t alignment, struct object_memory *memory,
                                  struct cairn_error *error)
{
    enum { PAGE = 1 << 16 };
    struct linking *linking = user;
    uint64_t unit = alignment > PAGE ? alignment : PAGE;
    (void)kind;
    (void)name;
    (void)error;
    memory->address = linking->next = (linking->next + unit - 1) & ~(unit - 1);
    linking->next += size;
    if (linking->runs)
        memory->bytes =
            mmap((void *)(uintptr_t)memory->address, size, PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    else
        memory->bytes = malloc(size);
    if (memory->bytes == NULL || memory->bytes == MAP_FAILED)
        fail("no memory at the wanted address");
    return CAIRN_OK;
}

static bool is_pc_section(void *user, const char *name)
{
    (void)user;
    (void)name;
    return false;
}

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    const struct linking *linking = user;
    for (size_t i = 0; i < linking->symbol_count; i++)
        if (strcmp(linking->symbols[i].name, name) == 0) {
            *address = linking->symbols[i].address;
            return true;
        }
    return false;
}

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail(path);
    *size = (size_t)ftell(file);
    void *bytes = malloc(*size + 1);
    rewind(file);
    if (bytes == NULL || fread(bytes, 1, *size, file) != *size)
        fail(path);
    fclose(file);
    return bytes;
}

/* Returns the architecture of an object. */
static const struct cairn_arch *arch_of(const void *bytes, size_t size)
{
    enum { PPC64_ABI_MASK = 3 };
    struct elf_object elf;
    if (elf_open(bytes, size, &elf, NULL) != CAIRN_OK)
        fail("not an object");
    if (elf.machine == ELF_X86_64)
        return arch_find(CAIRN_ARCHITECTURE_X86_64);
    if (elf.machine == ELF_AARCH64)
        return arch_find(CAIRN_ARCHITECTURE_AARCH64);
    return arch_find((elf.flags & PPC64_ABI_MASK) == 1 || elf.file.byte_order == CAIRN_BIG_ENDIAN
                         ? CAIRN_ARCHITECTURE_PPC64_ELFV1
                         : CAIRN_ARCHITECTURE_PPC64_ELFV2);
}

/* Nothing is freed, and so nothing must look for leaks. */
static _Noreturn void end(int status)
{
    fflush(stdout);
    _exit(status);
}

static struct object_link *link_file(struct linking *linking, const char *path)
{
    const struct object_host host = {allocate, is_pc_section, find_symbol, NULL, linking, 0};
    const struct cairn_allocator allocator = memory_allocator(NULL);
    struct cairn_error error;
    struct object_link *link;
    size_t size;
    void *bytes = read_file(path, &size);
    if (object_link_create(arch_of(bytes, size), &allocator, &link, &error) != CAIRN_OK ||
        object_link_add(link, bytes, size, NULL, &host, &error) != CAIRN_OK ||
        object_link_finish(link, &error) != CAIRN_OK) {
        printf("%s: refused: %s: %s\n", path, cairn_status_name(error.status), error.message);
        end(2);
    }
    free(bytes);
    return link;
}

/* ---- Running ---- */

typedef void any_function(void);

/* What a function returns for a number. */
typedef double caller(any_function *function, int argument);

static double call_int(any_function *function, int argument)
{
    return ((int (*)(int))function)(argument);
}
static double call_none(any_function *function, int argument)
{
    (void)argument;
    return ((int (*)(void))function)();
}
static double call_long(any_function *function, int argument)
{
    (void)argument;
    return (double)((long (*)(void))function)();
}
static double call_double(any_function *function, int argument)
{
    return ((double (*)(double))function)(argument);
}
static double call_float(any_function *function, int argument)
{
    return (double)((float (*)(float))function)((float)argument);
}
static double call_table(any_function *function, int argument)
{
    return ((double (*)(int))function)(argument);
}
static double call_names(any_function *function, int argument)
{
    return *((const char *(*)(int))function)(argument);
}
static double call_address(any_function *function, int argument)
{
    return (double)(uintptr_t)((void *(*)(int))function)(argument);
}
static double call_returned(any_function *function, int argument)
{
    return ((operation(*)(int))function)(argument)(21);
}
static double call_atomic(any_function *function, int argument)
{
    int number = 5;
    return ((int (*)(int *, int))function)(&number, argument) * 1000 + number;
}
static double call_exchange(any_function *function, int argument)
{
    long number = 3;
    return ((_Bool(*)(long *, long, long))function)(&number, argument, 7) * 1000 + (int)number;
}
static double call_labels(any_function *function, int argument)
{
    const unsigned char code[] = {0, 1, 2, (unsigned char)(argument & 1), 0, 3};
    return ((int (*)(const unsigned char *))function)(code);
}
static double call_copy(any_function *function, int argument)
{
    struct big from;
    for (int i = 0; i < 40; i++)
        from.words[i] = argument + i;
    struct big to = ((struct big(*)(const struct big *))function)(&from);
    return (double)(to.words[39] * 1000 + to.words[0]);
}
static double call_divide(any_function *function, int argument)
{
    __int128 number = (__int128)1 << (64 + argument);
    return (double)((__int128 (*)(__int128, __int128))function)(number, 12345);
}

/* The functions of sample.c. Some depend on those before them. */
#define CALL(function, how)                                                                        \
    {                                                                                              \
#function, (any_function *)function, how                                                   \
    }
static const struct {
    const char *name;
    any_function *own;
    caller *call;
} calls[] = {
    CALL(use_static, call_int),
    CALL(use_exported, call_int),
    CALL(use_common, call_int),
    CALL(use_zeros, call_int),
    CALL(use_constants, call_int),
    CALL(use_host, call_int),
    CALL(use_tail, call_int),
    CALL(use_pointer, call_int),
    CALL(use_weak, call_int),
    CALL(use_hidden_weak, call_none),
    CALL(use_name, call_int),
    CALL(use_names, call_names),
    CALL(use_double, call_double),
    CALL(use_float, call_float),
    CALL(use_address, call_none),
    CALL(use_atomic, call_atomic),
    CALL(use_exchange, call_exchange),
    CALL(use_switch, call_int),
    CALL(use_table, call_table),
    CALL(use_labels, call_labels),
    CALL(use_copy, call_copy),
    CALL(use_divide, call_divide),
    CALL(use_stack, call_int),
    CALL(use_constructed, call_none),
    CALL(in_other_code, call_int),
    CALL(use_bounds, call_long),
    CALL(use_alias, call_int),
    CALL(use_host_address, call_address),
    CALL(use_function_address, call_returned),
};

/* Runs the constructors: those with a priority are in sections whose names have a suffix. */
static void run_constructors(const struct object_image *image, bool with_priority)
{
    for (uint32_t i = 1; i < image->elf.section_count; i++) {
        const struct object_section *section = &image->sections[i];
        if (section->header.type != ELF_INIT_ARRAY ||
            (strcmp(section->header.name, ".init_array") != 0) != with_priority)
            continue;
        for (uint64_t at = 0; at < section->header.size; at += sizeof(any_function *)) {
            any_function *function;
            memcpy(&function, section->memory.bytes + at, sizeof function);
            function();
        }
    }
}

static any_function *find_function(const struct object_link *link, const char *name)
{
    for (size_t i = 0; i < link->symbol_count; i++)
        if (link->symbols[i].name != NULL && strcmp(link->symbols[i].name, name) == 0)
            return (any_function *)(uintptr_t)link->symbols[i].address;
    fail(name);
    return NULL;
}

static int compare_calls(const struct object_link *link, const char *path)
{
    enum { ARGUMENTS = 10 };
    int count = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int argument = 0; argument < ARGUMENTS; argument++, count++) {
            any_function *function = find_function(link, calls[i].name);
            /* Addresses of the two programs' variables are not the same distance apart. */
            bool differs = calls[i].own == (any_function *)use_address;
            double expected = calls[i].call(calls[i].own, argument);
            double returned = calls[i].call(function, argument);
            if (returned != expected && !differs) {
                printf("%s: %s(%d) returns %.17g, but %.17g in this program\n", path, calls[i].name,
                       argument, returned, expected);
                return 1;
            }
        }
    printf("%s: %d calls\n", path, count);
    return 0;
}

static int run_file(const char *path, uint64_t base)
{
    struct linking linking = {.next = base, .runs = true};
    add_own_symbols(&linking);
    struct object_link *link = link_file(&linking, path);
    const struct object_area *code = &link->areas[CAIRN_SECTION_CODE];
    __builtin___clear_cache((char *)code->memory.bytes, (char *)code->memory.bytes + code->size);
    run_constructors(link->images[0], true);
    run_constructors(link->images[0], false);
    return compare_calls(link, path);
}

static void run_in_child(const char *path, uint64_t base)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(run_file(path, base));
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail("no child process");
    if (WIFSIGNALED(status))
        printf("%s: signal %d\n", path, WTERMSIG(status));
}

/* ---- Printing ---- */

static void dump(const struct object_link *link)
{
    printf("table %" PRIx64 "\n", link->table);
    const struct object_image *image = link->images[0];
    for (uint32_t i = 1; i < image->elf.section_count; i++) {
        const struct object_section *section = &image->sections[i];
        if (section->kind == OBJECT_NOT_LOADED || section->header.size == 0)
            continue;
        printf("section %u %s %" PRIx64 " ", i, section->header.name, section->memory.address);
        for (uint64_t at = 0; at < section->header.size; at++)
            printf("%02x", section->memory.bytes[at]);
        printf("\n");
    }
    printf("slots %" PRIx64 " ", link->slots.address);
    for (uint64_t at = 0; at < (uint64_t)link->slot_count * 8; at++)
        printf("%02x", link->slots.bytes[at]);
    printf("\n");
}

int main(int count, char **arguments)
{
    struct linking linking = {.runs = false};
    if (count < 4)
        fail("usage: link_objects run|dump BASE [SYMBOL=ADDRESS]... FILE...");
    uint64_t base = strtoull(arguments[2], NULL, 0);
    if (strcmp(arguments[1], "run") == 0) {
        for (int i = 3; i < count; i++)
            run_in_child(arguments[i], base);
        return 0;
    }
    linking.next = base;
    for (int i = 3; i < count - 1; i++) {
        char *equals = strchr(arguments[i], '=');
        if (equals == NULL)
            fail("a symbol has no address");
        *equals = '\0';
        add_symbol(&linking, arguments[i], strtoull(equals + 1, NULL, 0));
    }
    struct object_link *link = link_file(&linking, arguments[count - 1]);
    dump(link);
    end(0);
}
