/*
 * Loads what RuntimeDyld links: chooses what each section becomes.
 *
 * The stack maps are read when the memory is finalised, and not when it is allocated, because LLVM
 * applies relocations in between.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/dyld.h"

#include "base/adapter.h"
#include "base/error.h"
#include "base/memory.h"
#include "format/manifest.h"
#include "format/names.h"
#include "llvm/bindings.h"
#include "llvm/compile.h"
#include "llvm/modules.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Memory that is never executed. It begins with this header. */
struct scratch {
    struct scratch *next;
    size_t size; /* with the header */
};

/* ---- PC sections to keep ---- */

static const struct cairn_pc_section *find_pc_section(const struct dyld *dyld, const char *name,
                                                      size_t length)
{
    for (size_t i = 0; i < dyld->options.modules.pc_section_count; i++) {
        const struct cairn_pc_section *wanted = &dyld->options.modules.pc_sections[i];
        size_t wanted_length = strlen(wanted->section);
        bool is_long_enough = wanted->is_prefix ? length >= wanted_length : length == wanted_length;
        if (is_long_enough && memcmp(name, wanted->section, wanted_length) == 0)
            return wanted;
    }
    return NULL;
}

/* ---- Allocating sections ---- */

void dyld_keep_error(struct dyld_load *load, const struct cairn_error *error)
{
    if (load->error.status == CAIRN_OK)
        load->error = *error;
}

static void keep_memory_error(struct dyld_load *load, const char *what)
{
    struct cairn_error error;
    error_set(&error, CAIRN_ERROR_MEMORY, 0, "no memory for %s", what);
    dyld_keep_error(load, &error);
}

/* Maps memory, so that LLVM can continue to the finalisation, which fails. It is aligned to 4 KiB,
 * as mapped memory is. */
static uint8_t *allocate_scratch(struct dyld_load *load, size_t size)
{
    enum { OFFSET = 4096 };
    size_t mapped = size + OFFSET;
    if (mapped < size)
        return NULL;
    struct scratch *scratch =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (scratch == MAP_FAILED)
        return NULL;
    *scratch = (struct scratch){load->scratch, mapped};
    load->scratch = scratch;
    return (uint8_t *)scratch + OFFSET;
}

/* Allocates memory for a section. The first section creates the loader. */
static uint8_t *allocate(struct dyld_load *load, enum cairn_section_kind kind, size_t size,
                         unsigned alignment, const struct cairn_pc_table_section *pc_section)
{
    struct cairn_error error = {0};
    uint8_t *memory = NULL;
    enum cairn_status status = load->error.status;
    if (status == CAIRN_OK && load->loader == NULL)
        status = cairn_loader_create(load->dyld->runtime, load->dyld->options.modules.name,
                                     &load->loader, &error);
    if (status == CAIRN_OK)
        memory = cairn_loader_allocate(load->loader, kind, size, alignment == 0 ? 1 : alignment,
                                       pc_section, &error);
    if (memory != NULL)
        return memory;
    dyld_keep_error(load, &error);
    return allocate_scratch(load, size);
}

uint8_t *dyld_allocate_code(struct dyld_load *load, size_t size, unsigned alignment)
{
    return allocate(load, CAIRN_SECTION_CODE, size, alignment, NULL);
}

/* Allocates a section of bindings, which is read in the finalisation. */
static uint8_t *allocate_bindings(struct dyld_load *load, size_t size)
{
    struct bindings_section *section = NULL;
    if (size <= SIZE_MAX - sizeof *section)
        section = memory_new(&load->dyld->allocator, 1, sizeof *section + size);
    if (section == NULL) {
        keep_memory_error(load, "the bindings of sites");
        return allocate_scratch(load, size);
    }
    section->next = load->bindings;
    section->size = size;
    load->bindings = section;
    return (uint8_t *)section->words;
}

/* Nobody would give the names their values. */
static uint8_t *refuse_names(struct dyld_load *load, size_t size)
{
    struct cairn_error error;
    error_set(&error, CAIRN_ERROR_UNSUPPORTED, 0,
              "the module has names (cairn_build_name), which engines and cairn_loader_add_object "
              "load");
    dyld_keep_error(load, &error);
    return allocate_scratch(load, size);
}

/* Allocates a PC section. LLVM 16 takes the options of a PC section as a part of its name
 * ("section!C"). It does not compress numbers, and pads each to its size in memory: a number of 3
 * bytes takes 4, a number of 5 to 7 bytes takes 8. Later versions remove the options from the name,
 * and apply them. */
static uint8_t *allocate_pc_section(struct dyld_load *load, size_t size, unsigned alignment,
                                    const char *section_name, size_t length,
                                    const struct cairn_pc_section *wanted)
{
    char *name = memory_copy_string(&load->dyld->allocator, section_name, length);
    if (name == NULL) {
        keep_memory_error(load, "the name of a PC section");
        return allocate_scratch(load, size);
    }
    struct cairn_pc_table_section pc_section = {.name = name};
    if (wanted->has_schema)
        pc_section.schema = wanted->schema;
    if (section_name[length] != '\0')
        pc_section.schema.is_compressed = false;
    uint8_t count = pc_section.schema.constant_count;
    if (section_name[length] == '\0' || count > CAIRN_PCSECTION_CONSTANTS_MAX)
        count = 0; /* the loader refuses too many */
    for (uint8_t i = 0; i < count; i++) {
        uint8_t *bytes = &pc_section.schema.constant_bytes[i];
        if (*bytes > 2)
            *bytes = *bytes <= 4 ? 4 : 8;
    }
    uint8_t *memory = allocate(load, CAIRN_SECTION_PC_SECTION, size, alignment, &pc_section);
    memory_free_string(&load->dyld->allocator, name);
    return memory;
}

/* Cairn reads some sections by their names, in ELF and COFF or in Mach-O. */
uint8_t *dyld_allocate_data(struct dyld_load *load, size_t size, unsigned alignment,
                            const char *section_name, bool is_read_only)
{
    static const struct {
        const char *name;
        enum cairn_section_kind kind;
    } known[] = {
        {".llvm_stackmaps", CAIRN_SECTION_STACKMAP},
        {"__llvm_stackmaps", CAIRN_SECTION_STACKMAP},
        {".eh_frame", CAIRN_SECTION_UNWIND_TABLE},
        {"__eh_frame", CAIRN_SECTION_UNWIND_TABLE},
        {CAIRN_FAULTMAP_SECTION, CAIRN_SECTION_FAULTMAP},
        {CAIRN_FAULTMAP_SECTION_DARWIN, CAIRN_SECTION_FAULTMAP},
        {MANIFEST_SECTION, CAIRN_SECTION_MANIFEST},
    };
    size_t length = strcspn(section_name, "!");
    if (strcmp(section_name, NAMES_SECTION) == 0)
        return refuse_names(load, size);
    if (strcmp(section_name, BINDINGS_SECTION) == 0)
        return allocate_bindings(load, size);
    enum cairn_section_kind kind = is_read_only ? CAIRN_SECTION_READ_ONLY_DATA : CAIRN_SECTION_DATA;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(section_name, known[i].name) == 0)
            kind = known[i].kind;
    const struct cairn_pc_section *wanted = find_pc_section(load->dyld, section_name, length);
    if (wanted != NULL && kind <= CAIRN_SECTION_READ_ONLY_DATA)
        return allocate_pc_section(load, size, alignment, section_name, length, wanted);
    uint8_t *memory = allocate(load, kind, size, alignment, NULL);
    if (kind == CAIRN_SECTION_UNWIND_TABLE) {
        load->unwind_table = memory;
        load->unwind_table_size = size;
    }
    return memory;
}

bool dyld_is_used(const struct dyld_load *load)
{
    return load->loader != NULL || load->error.status != CAIRN_OK;
}

/* ---- Publishing ---- */

static void free_bindings(struct dyld_load *load)
{
    while (load->bindings != NULL) {
        struct bindings_section *section = load->bindings;
        load->bindings = section->next;
        memory_free(&load->dyld->allocator, section, sizeof *section + section->size);
    }
}

enum cairn_status dyld_publish(struct dyld_load *load, cairn_module **module,
                               struct cairn_error *error)
{
    enum cairn_status status = load->error.status;
    if (status != CAIRN_OK)
        *error = load->error;
    else
        status = cairn_loader_finish(load->loader, module, error);
    load->error.status = CAIRN_OK;
    if (status == CAIRN_OK) {
        load->loader = NULL;
        cairn_module_retain(*module);
        status = bindings_apply_sections(load->bindings, load->dyld->bindings_key, *module,
                                         &load->dyld->allocator, error);
    }
    free_bindings(load);
    return status == CAIRN_OK ? modules_publish(*module, &load->dyld->options.modules, error)
                              : status;
}

void dyld_drop(struct dyld_load *load)
{
    free_bindings(load);
    while (load->scratch != NULL) {
        struct scratch *scratch = load->scratch;
        load->scratch = scratch->next;
        munmap(scratch, scratch->size);
    }
}

/* ---- Creating and destroying ---- */

/* Returns a number that no other memory manager has, also of another process. */
static uint64_t create_key(const struct dyld *dyld)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) ^ (uintptr_t)dyld << 16;
}

enum cairn_status dyld_init(struct dyld *dyld, cairn_runtime *runtime,
                            const struct cairn_memory_manager_options *options,
                            const char *default_name, struct cairn_error *error)
{
    static const struct cairn_memory_manager_options defaults;
    const struct cairn_allocator *allocator = cairn_runtime_allocator(runtime);
    if (options == NULL)
        options = &defaults;
    *dyld = (struct dyld){.runtime = runtime, .allocator = *allocator, .options = *options};
    dyld->options.modules = (struct cairn_module_options){0};
    dyld->bindings_key = create_key(dyld);
    enum cairn_status status = modules_check_code_model(options->code_model, error);
    if (status != CAIRN_OK)
        return status;
    if (options->liveness == CAIRN_LIVENESS_OFF)
        compile_set_option(COMPILE_WITHOUT_LIVENESS, cairn_architecture_host());
    return modules_copy_options(&options->modules, default_name,
                                modules_address_bytes(options->code_model, true), allocator,
                                &dyld->options.modules, error);
}

void dyld_release(struct dyld *dyld)
{
    modules_release_options(&dyld->options.modules, &dyld->allocator);
}
