/*
 * Loaders: everything that belongs to one finalisation, from the first section to the module.
 *
 * Nothing in a loader is visible to lookups. Stack maps, fault maps and manifests are outside the
 * slab: small ones in memory from the runtime's allocator, each of the others in its own mapping.
 * They are freed as soon as the module's tables have been built. PC sections are in the slab,
 * within reach of a 4-byte offset to the code, and stay there.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/loader.h"
#include "arch/arch.h"
#include "base/adapter.h"
#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"
#include "format/pcsection.h"
#include "object/kept_object.h"
#include "record/declarations.h"
#include "record/fault_table.h"
#include "record/table.h"
#include "runtime/load_manifest.h"
#include "runtime/module.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps up to this size are allocated, because mapping and unmapping takes longer than reading
 * them. */
enum { SMALL_MAP = 64 << 10 };

/* A section that is read when the loader finishes. */
struct section {
    enum cairn_section_kind kind;
    size_t mapped_size; /* of a map in its own mapping: whole pages; otherwise 0 */
    struct cairn_pc_table_section contents; /* the name is a copy, or NULL */
};

struct cairn_loader {
    cairn_runtime *runtime;
    const char *name; /* in `module` */
    struct code_block *block;
    cairn_module *module;             /* in `block` */
    cairn_declarations *declarations; /* NULL before the first is added */
    struct loader_objects *objects;
    struct loader_linked linked;
    struct section *sections;
    size_t section_count;
    size_t section_capacity;
    /* Whether an allocation or an object has failed, so that the loaded code is not complete. */
    bool incomplete;
    /* The highest level of vector registers that the code can hold, as far as it is known (0:
     * nothing is known); whether there is other code; and whether both were set once and for all.
     */
    uint32_t code_level;
    bool has_unknown_level;
    bool has_fixed_level;
};

/* ---- Creating and destroying ---- */

enum cairn_status cairn_loader_create(cairn_runtime *runtime, const char *name,
                                      cairn_loader **loader, struct cairn_error *error)
{
    if (runtime == NULL || loader == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_loader_create: `%s` is NULL",
                         runtime == NULL ? "runtime" : "loader");
    if (name == NULL)
        name = "";
    const struct cairn_allocator *allocator = &runtime->allocator;
    cairn_loader *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a loader");
    created->runtime = runtime;
    cairn_runtime_retain(runtime);
    enum cairn_status status = code_block_create(
        runtime->space, offsetof(cairn_module, name) + strlen(name) + 1, &created->block, error);
    if (status != CAIRN_OK) {
        cairn_loader_destroy(created);
        return status;
    }
    created->module = code_block_user(created->block);
    created->module->runtime = runtime;
    created->name = strcpy(created->module->name, name);
    *loader = created;
    return CAIRN_OK;
}

static bool is_map(enum cairn_section_kind kind)
{
    return kind == CAIRN_SECTION_STACKMAP || kind == CAIRN_SECTION_FAULTMAP ||
           kind == CAIRN_SECTION_MANIFEST;
}

void cairn_loader_destroy(cairn_loader *loader)
{
    if (loader == NULL)
        return;
    cairn_runtime *runtime = loader->runtime;
    const struct cairn_allocator *allocator = &runtime->allocator;
    for (size_t i = 0; i < loader->section_count; i++) {
        const struct section *section = &loader->sections[i];
        void *bytes = (void *)(uintptr_t)section->contents.section.bytes;
        memory_free_string(allocator, section->contents.name);
        if (section->mapped_size > 0)
            munmap(bytes, section->mapped_size);
        else if (is_map(section->kind))
            memory_free(allocator, bytes, section->contents.section.size);
    }
    memory_free(allocator, loader->sections, loader->section_capacity * sizeof *loader->sections);
    loader_objects_destroy(allocator, loader->objects);
    module_symbols_destroy(loader->linked.symbols, allocator);
    kept_objects_free(loader->linked.kept, allocator);
    attachment_list_release(&loader->linked.attached, allocator);
    cairn_declarations_destroy(loader->declarations);
    code_block_destroy(loader->block);
    memory_free(allocator, loader, sizeof *loader);
    cairn_runtime_destroy(runtime);
}

cairn_runtime *loader_runtime(const cairn_loader *loader) { return loader->runtime; }

struct loader_objects **loader_objects(cairn_loader *loader) { return &loader->objects; }

struct loader_linked *loader_linked(cairn_loader *loader) { return &loader->linked; }

void cairn_loader_set_scope(cairn_loader *loader, struct cairn_scope scope)
{
    loader->linked.scope = scope;
}

bool loader_is_incomplete(const cairn_loader *loader) { return loader->incomplete; }

void loader_note_level(cairn_loader *loader, uint32_t level)
{
    if (level > loader->code_level && !loader->has_fixed_level)
        loader->code_level = level;
}

void loader_note_unknown_level(cairn_loader *loader) { loader->has_unknown_level = true; }

void loader_set_level(cairn_loader *loader, uint32_t level)
{
    loader->code_level = level;
    loader->has_fixed_level = true;
}

/* Tells the runtime what the code can hold, if there is code. */
static void note_level(const cairn_loader *loader)
{
    bool is_known = loader->has_fixed_level || !loader->has_unknown_level;
    runtime_note_level(loader->runtime,
                       is_known ? loader->code_level : loader->runtime->vector_level);
}

void loader_set_incomplete(cairn_loader *loader) { loader->incomplete = true; }

/* ---- Memory ---- */

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static enum cairn_status check_request(enum cairn_section_kind kind, size_t size, size_t alignment,
                                       const struct cairn_pc_table_section *pc_section,
                                       struct cairn_error *error)
{
    if (size == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a section of 0 bytes was requested");
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > page_size())
        return error_set(error, CAIRN_ERROR_ARGUMENT, alignment,
                         "alignment %zu is not a power of two up to the size of a page", alignment);
    if ((unsigned)kind > CAIRN_SECTION_MANIFEST)
        return error_set(error, CAIRN_ERROR_ARGUMENT, kind, "%d is not a kind of section",
                         (int)kind);
    if (kind != CAIRN_SECTION_PC_SECTION)
        return CAIRN_OK;
    if (pc_section == NULL || pc_section->name == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a PC section must have a name");
    if (pc_section->schema.address_bytes != 0 && !pcsection_is_schema(&pc_section->schema))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "PC section '%.60s': a schema has addresses of 4 or 8 bytes, and up to %d "
                         "constants of 1 to 8 bytes",
                         pc_section->name, CAIRN_PCSECTION_CONSTANTS_MAX);
    return CAIRN_OK;
}

/* Allocates a map outside the slab, because it is freed when the loader finishes. */
static enum cairn_status allocate_map(const struct cairn_allocator *allocator, size_t size,
                                      size_t alignment, struct section *section, void **bytes,
                                      struct cairn_error *error)
{
    if (size <= SMALL_MAP && alignment <= _Alignof(max_align_t)) {
        *bytes = memory_new(allocator, size, 1);
        return *bytes != NULL ? CAIRN_OK
                              : error_set(error, CAIRN_ERROR_MEMORY, 0,
                                          "no memory for a map section of %zu bytes", size);
    }
    if (size > SIZE_MAX - page_size())
        return error_set(error, CAIRN_ERROR_ARGUMENT, size, "a map section of %zu bytes", size);
    size_t mapped_size = (size + page_size() - 1) & ~(page_size() - 1);
    *bytes = mmap(NULL, mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*bytes == MAP_FAILED)
        return error_set_system(error, errno, "no memory for a map section of %zu bytes", size);
    madvise(*bytes, mapped_size, MADV_HUGEPAGE); /* fewer faults; a failure does not matter */
    section->mapped_size = mapped_size;
    return CAIRN_OK;
}

/* Allocates memory for a section: in the slab, at the address of its use if `is_in_place`, or else
 * with a known size; or outside. */
static enum cairn_status allocate(cairn_loader *loader, struct section *section, size_t size,
                                  size_t alignment, bool is_in_place, struct code_place *place,
                                  struct cairn_error *error)
{
    enum page_use use = section->kind == CAIRN_SECTION_CODE   ? PAGES_FOR_CODE
                        : section->kind == CAIRN_SECTION_DATA ? PAGES_FOR_DATA
                                                              : PAGES_FOR_READ_ONLY;
    void *bytes = NULL;
    if (!is_map(section->kind) && !is_in_place)
        return code_block_reserve(loader->block, use, size, alignment, place, error);
    enum cairn_status status =
        is_map(section->kind)
            ? allocate_map(&loader->runtime->allocator, size, alignment, section, &bytes, error)
            : code_block_allocate(loader->block, use, size, alignment, &bytes, error);
    *place = (struct code_place){bytes, (uintptr_t)bytes};
    return status;
}

static enum cairn_status add_section(cairn_loader *loader, struct section *section, size_t size,
                                     size_t alignment, bool is_in_place, struct code_place *place,
                                     struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &loader->runtime->allocator;
    const char *name = section->contents.name;
    struct section *sections = array_reserve(allocator, loader->sections, loader->section_count, 1,
                                             &loader->section_capacity, sizeof *sections);
    if (sections != NULL)
        loader->sections = sections;
    if (sections == NULL || (name != NULL && (section->contents.name = memory_copy_string(
                                                  allocator, name, strlen(name))) == NULL))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a section");
    enum cairn_status status =
        allocate(loader, section, size, alignment, is_in_place, place, error);
    if (status != CAIRN_OK) {
        memory_free_string(allocator, section->contents.name);
        return status;
    }
    section->contents.address = place->address;
    section->contents.section =
        (struct cairn_section){.bytes = (const uint8_t *)(uintptr_t)place->address,
                               .size = size,
                               .byte_order = CAIRN_BYTE_ORDER_NATIVE};
    loader->sections[loader->section_count++] = *section;
    return CAIRN_OK;
}

static enum cairn_status add(cairn_loader *loader, enum cairn_section_kind kind, size_t size,
                             size_t alignment, const struct cairn_pc_table_section *pc_section,
                             bool is_in_place, struct code_place *place, struct cairn_error *error)
{
    struct section section = {.kind = kind};
    enum cairn_status status = check_request(kind, size, alignment, pc_section, error);
    if (status == CAIRN_OK && kind == CAIRN_SECTION_PC_SECTION)
        section.contents =
            (struct cairn_pc_table_section){.name = pc_section->name, .schema = pc_section->schema};
    if (status == CAIRN_OK)
        status = add_section(loader, &section, size, alignment, is_in_place, place, error);
    if (status != CAIRN_OK)
        loader->incomplete = true;
    return status;
}

void *cairn_loader_allocate(cairn_loader *loader, enum cairn_section_kind kind, size_t size,
                            size_t alignment, const struct cairn_pc_table_section *pc_section,
                            struct cairn_error *error)
{
    struct code_place place;
    enum cairn_status status = add(loader, kind, size, alignment, pc_section, true, &place, error);
    if (kind == CAIRN_SECTION_CODE && loader != NULL)
        loader_note_unknown_level(loader);
    return status == CAIRN_OK ? place.bytes : NULL;
}

enum cairn_status loader_reserve(cairn_loader *loader, enum cairn_section_kind kind, size_t size,
                                 size_t alignment, const struct cairn_pc_table_section *pc_section,
                                 struct code_place *place, struct cairn_error *error)
{
    return add(loader, kind, size, alignment, pc_section, false, place, error);
}

enum cairn_status loader_add_declaration(cairn_loader *loader,
                                         const struct cairn_declaration *declaration,
                                         struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (loader->declarations == NULL)
        status =
            cairn_declarations_create(&loader->runtime->allocator, &loader->declarations, error);
    return status == CAIRN_OK ? cairn_declarations_add(loader->declarations, declaration, error)
                              : status;
}

enum cairn_status cairn_loader_declare(cairn_loader *loader, const cairn_declarations *declarations,
                                       struct cairn_error *error)
{
    size_t count = cairn_declarations_count(declarations);
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = loader_add_declaration(loader, cairn_declarations_at(declarations, i), error);
    return status;
}

/* ---- Function descriptors (PPC64 ELFv1) ---- */

/* Reads the entry of the function whose descriptor is at an address: the first of its three words,
 * which are followed by the TOC pointer and the environment. */
static enum cairn_status read_descriptor(const struct code_block *block, uint32_t number,
                                         uint64_t descriptor, uint64_t *entry,
                                         struct cairn_error *error)
{
    enum { DESCRIPTOR_BYTES = 24, DESCRIPTOR_ALIGNMENT = 8 };
    if (descriptor % DESCRIPTOR_ALIGNMENT != 0 ||
        !code_block_holds_data(block, descriptor, DESCRIPTOR_BYTES))
        return error_set(error, CAIRN_ERROR_CORRUPT, descriptor,
                         "function %u of a stack map is named by 0x%llx, which is neither in the "
                         "code that was loaded nor a function descriptor in its data",
                         number, (unsigned long long)descriptor);
    memcpy(entry, (const void *)(uintptr_t)descriptor, sizeof *entry);
    if (code_block_holds_code(block, *entry, 1))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CORRUPT, descriptor,
                     "function %u of a stack map has its descriptor at 0x%llx, which leads to "
                     "0x%llx, not in the code that was loaded",
                     number, (unsigned long long)descriptor, (unsigned long long)*entry);
}

/*
 * Replaces the addresses of descriptors in a stack map section by the entries of their functions.
 *
 * LLVM's stack maps name a function by a pointer to it. If the block's architecture has
 * descriptors, that is the address of a descriptor in the module's data. Addresses in the module's
 * code stay unchanged. Errors in the maps themselves are ignored here; the reader of the maps
 * reports them. The section and the descriptors are in the host's byte order. Errors: CORRUPT (an
 * address is not a descriptor in the data, or its entry is not in the code).
 *
 * Source: 64-bit PowerPC ELF Application Binary Interface Supplement (ELFv1), section "Function
 * Descriptors"; the code that LLVM 14 to 19 emit for powerpc64-linux-gnu.
 */
static enum cairn_status resolve_descriptors(const struct code_block *block,
                                             const struct cairn_section *section,
                                             struct cairn_error *error)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)section->bytes;
    size_t offset = 0;
    struct cairn_stackmap map;
    if (!code_space_arch(code_block_space(block))->has_descriptors)
        return CAIRN_OK;
    while (offset < section->size &&
           cairn_stackmap_read(section, &offset, &map, NULL) == CAIRN_OK) {
        uint8_t *place = bytes + map.section_offset + CAIRN_STACKMAP_HEADER_BYTES;
        for (uint32_t i = 0; i < map.function_count; i++) {
            uint64_t address = cairn_stackmap_function(&map, i).address;
            enum cairn_status status = CAIRN_OK;
            if (!code_block_holds_code(block, address, 1))
                status = read_descriptor(block, i, address, &address, error);
            if (status != CAIRN_OK)
                return status;
            memcpy(place, &address, sizeof address);
            place += cairn_stackmap_function_bytes(map.version);
        }
    }
    return CAIRN_OK;
}

/* ---- Finishing ---- */

/* The loader's sections by kind, each in the order of allocation. */
struct inputs {
    struct cairn_section *stackmaps;
    struct cairn_section *faultmaps;
    struct eh_frame *unwind_tables;
    struct cairn_pc_table_section *pc_sections;
    size_t stackmap_count;
    size_t faultmap_count;
    size_t unwind_table_count;
    size_t pc_section_count;
};

enum {
    INPUT_BYTES = 2 * sizeof(struct cairn_section) + sizeof(struct eh_frame) +
                  sizeof(struct cairn_pc_table_section)
};

/* Returns NULL if there is no memory; the caller frees it, INPUT_BYTES for each section. */
static void *sort_sections(const cairn_loader *loader, struct inputs *inputs)
{
    size_t count = loader->section_count;
    uint8_t *memory = memory_new(&loader->runtime->allocator, count, INPUT_BYTES);
    if (memory == NULL)
        return NULL;
    *inputs = (struct inputs){.stackmaps = (struct cairn_section *)(void *)memory};
    inputs->faultmaps = inputs->stackmaps + count;
    inputs->unwind_tables = (struct eh_frame *)(inputs->faultmaps + count);
    inputs->pc_sections = (struct cairn_pc_table_section *)(inputs->unwind_tables + count);
    for (size_t i = 0; i < count; i++) {
        const struct cairn_pc_table_section *contents = &loader->sections[i].contents;
        switch (loader->sections[i].kind) {
        case CAIRN_SECTION_STACKMAP:
            inputs->stackmaps[inputs->stackmap_count++] = contents->section;
            break;
        case CAIRN_SECTION_FAULTMAP:
            inputs->faultmaps[inputs->faultmap_count++] = contents->section;
            break;
        case CAIRN_SECTION_UNWIND_TABLE:
            inputs->unwind_tables[inputs->unwind_table_count++] =
                (struct eh_frame){.section = contents->section, .address = contents->address};
            break;
        case CAIRN_SECTION_PC_SECTION:
            inputs->pc_sections[inputs->pc_section_count++] = *contents;
            break;
        case CAIRN_SECTION_CODE:
        case CAIRN_SECTION_DATA:
        case CAIRN_SECTION_READ_ONLY_DATA:
        case CAIRN_SECTION_MANIFEST:
            break;
        }
    }
    return memory;
}

/* Builds the table of records. Checks that its functions are in the module's code: if they were
 * not, the module would have sites and addresses that belong to other code. */
static enum cairn_status build_records(const cairn_loader *loader, const struct inputs *inputs,
                                       cairn_module *module, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < inputs->stackmap_count && status == CAIRN_OK; i++)
        status = resolve_descriptors(loader->block, &inputs->stackmaps[i], error);
    if (status == CAIRN_OK)
        status = table_create(inputs->stackmaps, inputs->stackmap_count,
                              &loader->runtime->allocator, true, &module->table, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_function function;
    for (uint32_t i = 0; table_function_at(module->table, i, &function); i++)
        if (!code_block_holds_code(loader->block, function.address, 1))
            return error_set(error, CAIRN_ERROR_CORRUPT, function.address,
                             "the stack map of '%s' names a function at 0x%llx, which is not in "
                             "the code that was loaded",
                             loader->name, (unsigned long long)function.address);
    return declarations_bind(loader->declarations, module->table, error);
}

/* Checks that an unwind table is only about the loaded code, because the system's unwinder would
 * use it for other code, too. */
static enum cairn_status check_registered(const struct code_block *block,
                                          const struct eh_frame *table, bool *has_functions,
                                          struct cairn_error *error)
{
    struct eh_frame_description description = {.commons = NULL};
    const struct eh_frame_function *function = &description.function;
    size_t offset = 0;
    bool found = true;
    *has_functions = false;
    for (;;) {
        enum cairn_status status = eh_frame_next(table, &offset, &description, &found, error);
        if (status != CAIRN_OK || !found)
            return status;
        if (function->size == 0)
            continue;
        *has_functions = true;
        if (!code_block_holds_code(block, function->address, function->size))
            return error_set(error, CAIRN_ERROR_CORRUPT, description.offset,
                             "section .eh_frame, offset %zu: %llu bytes of code at 0x%llx are not "
                             "in the code that was loaded",
                             description.offset, (unsigned long long)function->size,
                             (unsigned long long)function->address);
    }
}

/* Checks the unwind tables to be registered, which are in the order of their allocation. Does not
 * register those without functions, which some unwinders refuse. */
static enum cairn_status choose_registered(cairn_loader *loader, const struct inputs *inputs,
                                           struct cairn_error *error)
{
    uint64_t *chosen = loader->linked.attached.lists[ATTACHED_UNWIND_TABLE].items;
    size_t count = loader->linked.attached.lists[ATTACHED_UNWIND_TABLE].count;
    size_t kept = 0;
    size_t next = 0;
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < inputs->unwind_table_count && next < count && status == CAIRN_OK; i++) {
        const struct eh_frame *table = &inputs->unwind_tables[i];
        bool has_functions = false;
        if (table->address != chosen[next])
            continue;
        next++;
        status = check_registered(loader->block, table, &has_functions, error);
        if (has_functions)
            chosen[kept++] = table->address;
    }
    loader->linked.attached.lists[ATTACHED_UNWIND_TABLE].count = kept;
    return status;
}

/* Builds everything that needs the unwind tables, which are read only once. */
static enum cairn_status build_functions(cairn_loader *loader, const struct inputs *inputs,
                                         cairn_module *module, struct cairn_error *error)
{
    struct function_list list;
    enum cairn_status status = function_list_read(inputs->unwind_tables, inputs->unwind_table_count,
                                                  &loader->runtime->allocator, &list, error);
    if (status != CAIRN_OK)
        return status;
    status = choose_registered(loader, inputs, error);
    if (status == CAIRN_OK)
        status = functions_create(&list, &module->functions, error);
    if (status == CAIRN_OK)
        status = unwind_create(&list, arch_host(), &module->unwind, error);
    function_list_release(&list);
    return status;
}

static enum cairn_status build_faults(const cairn_loader *loader, const struct inputs *inputs,
                                      cairn_fault_table **faults, struct cairn_error *error)
{
    enum cairn_status status = fault_table_create(inputs->faultmaps, inputs->faultmap_count,
                                                  &loader->runtime->allocator, true, faults, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_fault_entry entry;
    for (uint32_t i = 0; cairn_fault_table_entry(*faults, i, &entry); i++)
        if (!code_block_holds_code(loader->block, entry.address, 1) ||
            !code_block_holds_code(loader->block, entry.handler_address, 1))
            return error_set(
                error, CAIRN_ERROR_CORRUPT, entry.address,
                "the fault map of '%s' names an instruction at 0x%llx and a handler at "
                "0x%llx, which are not both in the code that was loaded",
                loader->name, (unsigned long long)entry.address,
                (unsigned long long)entry.handler_address);
    return CAIRN_OK;
}

static bool is_code(uint64_t address, void *block)
{
    return code_block_holds_code(block, address, 1);
}

static enum cairn_status read_manifests(cairn_loader *loader, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < loader->section_count && status == CAIRN_OK; i++) {
        const struct cairn_section *section = &loader->sections[i].contents.section;
        if (loader->sections[i].kind == CAIRN_SECTION_MANIFEST)
            status = load_manifest_section(loader, section->bytes, section->size, error);
    }
    return status;
}

/* Decodes the sections, arms the sites, and protects the code. On failure, `module` and `extras`
 * hold what was built; the caller must release it. */
static enum cairn_status build_module(cairn_loader *loader, cairn_module *module,
                                      struct module_extras *extras, struct cairn_error *error)
{
    struct inputs inputs = {0};
    void *memory = loader->section_count == 0 ? NULL : sort_sections(loader, &inputs);
    if (memory == NULL && loader->section_count > 0)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu sections",
                         loader->section_count);
    enum cairn_status status = read_manifests(loader, error);
    if (status == CAIRN_OK)
        status = build_records(loader, &inputs, module, error);
    if (status == CAIRN_OK)
        status = build_functions(loader, &inputs, module, error);
    if (status == CAIRN_OK && inputs.faultmap_count > 0)
        status = build_faults(loader, &inputs, &extras->faults, error);
    const struct cairn_pc_table_options options = {
        .allocator = loader->runtime->allocator, .is_code = is_code, .user = loader->block};
    if (status == CAIRN_OK && inputs.pc_section_count > 0)
        status = cairn_pc_table_create(inputs.pc_sections, inputs.pc_section_count, &options,
                                       &extras->pcs, error);
    memory_free(&loader->runtime->allocator, memory, loader->section_count * INPUT_BYTES);
    if (status != CAIRN_OK)
        return status;
    status = site_table_create(&module->sites, module->table, module->functions, loader->block,
                               loader->declarations, &loader->runtime->allocator, error);
    if (status != CAIRN_OK)
        return status;
    if (module->sites != NULL)
        module->sites->ics = &loader->runtime->ics;
    return code_block_protect(loader->block, error);
}

/* Copies the extras to the module, if there are any. */
static enum cairn_status keep_extras(cairn_module *module, const struct module_extras *extras,
                                     struct cairn_error *error)
{
    if (extras->pcs == NULL && extras->faults == NULL && extras->attachments == NULL &&
        extras->scope.key == NULL && extras->kept == NULL)
        return CAIRN_OK;
    module->extras = memory_new(&module->runtime->allocator, 1, sizeof *extras);
    if (module->extras == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a module");
    *module->extras = *extras;
    return CAIRN_OK;
}

/* Moves to the module what it keeps of the loader, and frees the loader. */
static cairn_module *take_module(cairn_loader *loader)
{
    cairn_module *module = loader->module;
    module->declarations = loader->declarations;
    module->symbols = loader->linked.symbols;
    if (module->symbols != NULL)
        module->symbols->owner = module;
    table_set_owner(module->table, module);
    module_add(module);
    loader->block = NULL;
    loader->declarations = NULL;
    loader->linked.symbols = NULL;
    loader->linked.kept = NULL;
    cairn_loader_destroy(loader);
    return module;
}

enum cairn_status cairn_loader_finish(cairn_loader *loader, cairn_module **module,
                                      struct cairn_error *error)
{
    if (loader == NULL || module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_loader_finish: `%s` is NULL",
                         loader == NULL ? "loader" : "module");
    if (loader->incomplete)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "'%s' is not complete: an allocation or an object has failed",
                         loader->name);
    /* What the loader reserved before a fork is in memory of the parent. */
    enum cairn_status status = code_space_check_own(loader->runtime->space, error);
    if (status == CAIRN_OK)
        status = loader_link_objects(loader, error);
    if (status != CAIRN_OK)
        return status;
    note_level(loader);
    cairn_module *built = loader->module;
    struct module_extras extras = {.scope = loader->linked.scope, .kept = loader->linked.kept};
    status = build_module(loader, built, &extras, error);
    if (status == CAIRN_OK)
        status = attachments_create(&loader->linked.attached, loader->runtime, &extras.attachments,
                                    error);
    if (status == CAIRN_OK)
        status = keep_extras(built, &extras, error);
    if (status != CAIRN_OK) {
        module_release(built, &extras);
        attachments_destroy(extras.attachments, loader->runtime);
        loader->incomplete = true;
        return status;
    }
    *module = take_module(loader);
    return CAIRN_OK;
}
