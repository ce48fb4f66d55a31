/*
 * A process to be inspected (tests/check_inspect.pl). Its code is written by hand in the form in
 * which LLVM emits it for the host, so it does not need LLVM.
 *
 *     inspected MODE [damage]
 *
 * MODE is what it does until its standard input ends: "dual" or "single" (nothing, with code of
 * that mode), "patching", "churning" (loads and retires modules), "forking" (a child
 * patches its copy), "two" (runtimes), "version", "empty" or "order" (descriptors that are not
 * valid), or what is damaged in the runtime's structures. It prints a line when it is ready: the
 * addresses of the site and of the two targets, and the process to be inspected.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "base/inspect.h"
#include "machine.h"
#include "record/declarations.h"
#include "runtime/module.h"
#include "section_writer.h"
#include "site/veneers.h"

#include <cairn/cairn.h>
#include <cairn/patch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE_BYTES = 128, ODD_OFFSET = 64, SITE_ID = 42, CHURNED = 200 };
#define SITE_OFFSET machine_enter_bytes
#define SITE_BYTES machine_patchpoint_bytes

static long one(void) { return 1; }
static long two(void) { return 2; }

static const void *const targets[] = {(const void *)(uintptr_t)one, (const void *)(uintptr_t)two};

static void require(bool is_done, const char *what)
{
    if (is_done)
        return;
    fprintf(stderr, "inspected: %s\n", what);
    exit(3);
}

/* ---- Modules ---- */

static void write_code(uint8_t *code)
{
    memset(code, 0xF4, CODE_BYTES);
    uint8_t *site = code + machine_enter(code);
    uint8_t *tail = site + SITE_BYTES;
    size_t size = machine_call(site, targets[0]);
    arch_host()->fill_nops(arch_host(), site + size, SITE_BYTES - size);
    machine_return(tail + machine_leave_frame(tail));
}

static void write_stackmap(cairn_loader *loader, uint64_t function, uint64_t id)
{
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, 2);
    writer_function(&writer, function, 8, 2);
    writer_record(&writer, id, SITE_OFFSET, NULL, 0, NULL, 0);
    writer_record(&writer, id + 1, ODD_OFFSET, NULL, 0, NULL, 0);
    void *section =
        cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, writer.size, 8, NULL, NULL);
    require(section != NULL, "no memory for a stack map");
    memcpy(section, writer.bytes, writer.size);
    writer_end(&writer);
}

static void declare(cairn_loader *loader, uint64_t id)
{
    cairn_declarations *declarations;
    struct cairn_declaration declaration = {
        .id = id, .kind = CAIRN_RECORD_PATCHPOINT, .byte_count = SITE_BYTES, .function = "f"};
    require(cairn_declarations_create(NULL, &declarations, NULL) == CAIRN_OK, "no declarations");
    for (int i = 0; i < 2; i++, declaration.id++)
        require(cairn_declarations_add(declarations, &declaration, NULL) == CAIRN_OK,
                "cannot declare");
    require(cairn_loader_declare(loader, declarations, NULL) == CAIRN_OK, "cannot declare");
    cairn_declarations_destroy(declarations);
}

static cairn_module *load(cairn_runtime *runtime, const char *name, uint64_t id)
{
    cairn_loader *loader;
    cairn_module *module;
    require(cairn_loader_create(runtime, name, &loader, NULL) == CAIRN_OK, "no loader");
    uint8_t *code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, CODE_BYTES, 64, NULL, NULL);
    require(code != NULL, "no memory for code");
    write_code(code);
    write_stackmap(loader, (uintptr_t)code, id);
    declare(loader, id);
    require(cairn_loader_finish(loader, &module, NULL) == CAIRN_OK, "cannot load");
    require(cairn_module_publish(module, NULL) == CAIRN_OK, "cannot publish");
    return module;
}

/* ---- What the process does ---- */

/* Whether standard input has ended. */
static bool is_over(void)
{
    char byte;
    return read(STDIN_FILENO, &byte, 1) <= 0;
}

static void patch(cairn_site *site, unsigned number)
{
    enum cairn_status status =
        number % 3 == 2 ? cairn_site_nop(site, CAIRN_RELAXED, NULL)
                        : cairn_site_call(site, targets[number % 3], CAIRN_RELAXED, NULL);
    require(status == CAIRN_OK, "cannot patch");
}

/* Churns a part of the time, or all of it. */
static void churn(cairn_runtime *runtime)
{
    static cairn_module *modules[CHURNED];
    for (unsigned i = 0;; i = (i + 1) % CHURNED) {
        cairn_module_retire(modules[i]);
        modules[i] = load(runtime, "churned", 1000 + 2 * i);
        cairn_runtime_grace_end(runtime, cairn_runtime_grace_start(runtime));
    }
}

static void announce(const cairn_site *site, pid_t process)
{
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    printf("%llx %llx %llx %d\n", (unsigned long long)description.address,
           (unsigned long long)(uintptr_t)targets[0], (unsigned long long)(uintptr_t)targets[1],
           (int)process);
    fflush(stdout);
}

static void act(const char *mode, cairn_runtime *runtime, cairn_site *site)
{
    if (strcmp(mode, "forking") == 0) {
        pid_t child = fork();
        if (child != 0) {
            waitpid(child, NULL, 0);
            return;
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        patch(site, 1);
    }
    announce(site, getpid());
    if (strcmp(mode, "churning") == 0)
        churn(runtime);
    for (unsigned i = 0; strcmp(mode, "patching") == 0; i++)
        patch(site, i);
    for (bool over = false; !over;)
        over = is_over();
}

/* ---- Damage ---- */

static void *map_zeros(size_t size)
{
    void *zeros = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(zeros != MAP_FAILED, "no address space");
    return zeros;
}

static void damage_descriptor(const char *mode, struct inspect_descriptor *descriptor)
{
    if (strcmp(mode, "version") == 0)
        descriptor->version = 77;
    if (strcmp(mode, "empty") == 0)
        memset(descriptor, 0, sizeof *descriptor);
    if (strcmp(mode, "order") == 0)
        descriptor->byte_order = __builtin_bswap32(descriptor->byte_order);
    if (strcmp(mode, "pointers") == 0)
        descriptor->pointer_bytes = 4;
    if (strcmp(mode, "fields") == 0)
        descriptor->field_count = UINT32_MAX;
    if (strcmp(mode, "offset") == 0)
        descriptor->fields[INSPECT_SITE_ADDRESS].offset = UINT32_MAX;
    if (strcmp(mode, "bits") == 0)
        descriptor->fields[INSPECT_SPAN_USE].shift = 200;
    if (strcmp(mode, "constant") == 0)
        descriptor->fields[INSPECT_PART_BYTES].offset = 0;
    if (strcmp(mode, "architecture") == 0)
        descriptor->architecture = 5000;
    if (strcmp(mode, "units") == 0)
        descriptor->fields[INSPECT_PART_BYTES].offset = 1;
    if (strcmp(mode, "wild") == 0)
        descriptor->runtime = UINT64_MAX - 7;
    if (strcmp(mode, "changing") == 0)
        atomic_store(&descriptor->changes[INSPECT_MODULES], 1);
}

static void damage_lists(const char *mode, cairn_runtime *runtime)
{
    cairn_module *module = runtime->modules;
    if (strcmp(mode, "circle") == 0)
        module->next->next = module;
    if (strcmp(mode, "self") == 0)
        module->next = module;
    if (strcmp(mode, "states") == 0)
        module->state = 200;
    if (strcmp(mode, "count") == 0)
        module->sites->count = UINT32_MAX;
    if (strcmp(mode, "endless") == 0) {
        module->sites->sites = map_zeros((size_t)UINT32_MAX * sizeof(struct cairn_site));
        module->sites->count = UINT32_MAX;
    }
    if (strcmp(mode, "word") == 0)
        module->sites->sites[0].word_shift = 255;
    if (strcmp(mode, "veneers") == 0) {
        struct site_veneer *veneer = map_zeros(sizeof *veneer);
        veneer->next = veneer;
        atomic_store(&module->sites->sites[0].veneers, veneer);
    }
    if (strcmp(mode, "caches") == 0) {
        runtime->ics.first = map_zeros(1 << 16);
        memcpy(&runtime->descriptor->fields[INSPECT_CACHE_SITE],
               &runtime->descriptor->fields[INSPECT_MODULE_NEXT], sizeof(struct inspect_field));
    }
}

/* ---- The process ---- */

static enum cairn_code_mode code_mode(const char *mode)
{
    if (strcmp(mode, "dual") == 0)
        return CAIRN_CODE_MODE_DUAL;
    return strcmp(mode, "single") == 0 ? CAIRN_CODE_MODE_SINGLE : CAIRN_CODE_MODE_AUTOMATIC;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "dual";
    const struct cairn_runtime_options options = {.code_mode = code_mode(mode)};
    cairn_runtime *runtime;
    cairn_runtime *other = NULL;
    /* Where only descendants may be traced, the command is not this process's parent. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (cairn_runtime_create(&options, &runtime, NULL) != CAIRN_OK)
        return 77;
    if (strcmp(mode, "two") == 0 && cairn_runtime_create(&options, &other, NULL) != CAIRN_OK)
        return 77;
    if (runtime->descriptor == NULL)
        return 77;
    cairn_module *module = load(runtime, "first\033[31m", SITE_ID);
    cairn_module_retire(load(runtime, "second", SITE_ID + 10));
    load(runtime, "third", SITE_ID + 20);
    cairn_site *site = cairn_module_site(module, 0);
    patch(site, 1);
    damage_lists(mode, runtime);
    damage_descriptor(mode, runtime->descriptor);
    act(mode, runtime, site);
    _exit(0);
}
