/* Loads objects into a loader's memory. SPDX-License-Identifier: MIT */
#include "arch/arch.h"
#include "arch/features.h"
#include "base/error.h"
#include "base/memory.h"
#include "code/write_key.h"
#include "format/names.h"
#include "object/kept_object.h"
#include "object/link.h"
#include "runtime/bound_sites.h"
#include "runtime/linked_names.h"
#include "runtime/linked_objects.h"
#include "runtime/load_manifest.h"
#include "runtime/loader.h"
#include "runtime/module.h"

#include <assert.h>
#include <cairn/load.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* What the loader does for one object. */
struct request {
    cairn_loader *loader;
    struct cairn_load_options options;
    struct object_pc_sections pc_sections; /* of the object's manifest */
    struct request *next;
};

struct loader_objects {
    struct object_link *link;
    struct request *requests;
};

/* LLVM 16 takes the options of a PC section as a part of its name ("section!C"). It does not
 * compress numbers, and pads each to its size in memory: a number of 3 bytes takes 4, a number of 5
 * to 7 bytes takes 8. */
static struct cairn_pcsection_schema without_options(struct cairn_pcsection_schema schema)
{
    schema.is_compressed = false;
    for (uint8_t i = 0; i < schema.constant_count; i++) {
        uint8_t *bytes = &schema.constant_bytes[i];
        if (*bytes > 2)
            *bytes = *bytes <= 4 ? 4 : 8;
    }
    return schema;
}

/* Whether an entry of a manifest names a section. Takes time in proportion to the shorter name. */
static bool is_named(const struct manifest_pc_section *entry, const char *name, size_t length)
{
    size_t same = 0;
    while (same < length && entry->name[same] == name[same])
        same++;
    return entry->name[same] == '\0' && (entry->is_prefix || same == length);
}

/* Finds the schema of a PC section: among the options, and then in the object's manifest. Sets
 * `*length` to the length of the name without what LLVM 16 has added. */
static bool find_pc_section(const struct request *request, const char *name, size_t *length,
                            struct cairn_pcsection_schema *schema)
{
    const struct cairn_load_options *options = &request->options;
    *length = strlen(name);
    for (size_t i = 0; i < options->pc_section_count; i++)
        if (strcmp(options->pc_sections[i].name, name) == 0) {
            *schema = options->pc_sections[i].schema;
            return true;
        }
    *length = strcspn(name, "!");
    for (size_t i = 0; i < request->pc_sections.count; i++) {
        const struct manifest_pc_section *entry = &request->pc_sections.entries[i];
        if (!is_named(entry, name, *length))
            continue;
        *schema = name[*length] == '\0' ? entry->schema : without_options(entry->schema);
        return true;
    }
    return false;
}

/* Returns the key of the memory that objects are loaded into. It is open while they are placed and
 * linked, but not while the host is called. */
static int write_key(const cairn_loader *loader)
{
    return code_space_write_key(loader->runtime->space);
}

static bool is_pc_section(void *user, const char *name)
{
    size_t length;
    struct cairn_pcsection_schema schema;
    return strcmp(name, NAMES_SECTION) != 0 && find_pc_section(user, name, &length, &schema);
}

static enum cairn_status reserve_pc_section(const struct request *request, const char *name,
                                            size_t size, size_t alignment, struct code_place *place,
                                            struct cairn_error *error)
{
    size_t length;
    struct cairn_pc_table_section pc_section = {0};
    const struct cairn_allocator *allocator = &request->loader->runtime->allocator;
    bool found = find_pc_section(request, name, &length, &pc_section.schema);
    assert(found); /* is_pc_section has found it */
    char *copy = memory_copy_string(allocator, name, length);
    pc_section.name = copy;
    if (!found || copy == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory for the name of PC section '%.60s'", name);
    enum cairn_status status = loader_reserve(request->loader, CAIRN_SECTION_PC_SECTION, size,
                                              alignment, &pc_section, place, error);
    memory_free_string(allocator, copy);
    return status;
}

static enum cairn_status allocate(void *user, enum cairn_section_kind kind, const char *name,
                                  uint64_t size, uint64_t alignment, struct object_memory *memory,
                                  struct cairn_error *error)
{
    /* The system's unwinder expects the table to end with a length of 0. */
    enum { TABLE_END_BYTES = 4 };
    const struct request *request = user;
    struct code_place place;
    bool registers = kind == CAIRN_SECTION_UNWIND_TABLE && request->options.registers_unwind_tables;
    if (registers && size <= SIZE_MAX - TABLE_END_BYTES)
        size += TABLE_END_BYTES;
    enum cairn_status status =
        kind == CAIRN_SECTION_PC_SECTION
            ? reserve_pc_section(request, name, size, alignment, &place, error)
            : loader_reserve(request->loader, kind, size, alignment, NULL, &place, error);
    if (status != CAIRN_OK)
        return status;
    *memory = (struct object_memory){place.bytes, place.address};
    if (!registers)
        return CAIRN_OK;
    memset(place.bytes + size - TABLE_END_BYTES, 0, TABLE_END_BYTES);
    if (attachment_list_add(&request->loader->linked.attached, &request->loader->runtime->allocator,
                            ATTACHED_UNWIND_TABLE, memory->address))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to register an unwind table");
}

/* Finds a definition in a published module, and adds a reference to the module. */
static bool find_in_modules(cairn_loader *loader, const char *name, uint64_t *address)
{
    cairn_runtime *runtime = loader->runtime;
    struct loader_linked *linked = &loader->linked;
    runtime_lock(runtime);
    const struct definition *found = module_find_definition(runtime, linked->scope.key, name);
    cairn_module *module = found == NULL ? NULL : definition_symbols(found)->owner;
    if (module != NULL) {
        *address = definition_address(found);
        module->shares++;
    }
    runtime_unlock(runtime);
    if (module != NULL && !attachment_list_add(&linked->attached, &runtime->allocator,
                                               ATTACHED_MODULE, (uintptr_t)module))
        linked->has_no_memory = true;
    return module != NULL;
}

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    const struct request *request = user;
    const struct cairn_load_options *options = &request->options;
    if (!options->ignores_modules && find_in_modules(request->loader, name, address))
        return true;
    int key = write_key(request->loader);
    int rights = write_key_suspend(key);
    bool is_found =
        options->find_symbol != NULL && options->find_symbol(options->user, name, address);
    write_key_close(key, rights);
    if (is_found)
        return true;
    const void *found = dlsym(RTLD_DEFAULT, name);
    *address = (uintptr_t)found;
    return found != NULL;
}

static void note_undefined(void *user, const char *name)
{
    const struct cairn_load_options *options = &((const struct request *)user)->options;
    int key = write_key(((const struct request *)user)->loader);
    int rights = write_key_suspend(key);
    if (options->note_undefined != NULL)
        options->note_undefined(options->user, name);
    write_key_close(key, rights);
}

/* Asks the host for the values of an object's names. */
static size_t find_names(void *user, const struct cairn_name *names, size_t count, uint64_t *values)
{
    const struct cairn_load_options *options = &((const struct request *)user)->options;
    return options->find_names == NULL ? 0
                                       : options->find_names(options->user, names, count, values);
}

/* ---- Adding ---- */

void loader_objects_destroy(const struct cairn_allocator *allocator, struct loader_objects *objects)
{
    if (objects == NULL)
        return;
    object_link_destroy(objects->link);
    while (objects->requests != NULL) {
        struct request *request = objects->requests;
        objects->requests = request->next;
        object_pc_sections_release(&request->pc_sections, allocator);
        memory_free(allocator, request, sizeof *request);
    }
    memory_free(allocator, objects, sizeof *objects);
}

/* Returns the loader's objects, which are created for the first one. */
static enum cairn_status get_objects(cairn_loader *loader, struct loader_objects **objects,
                                     struct cairn_error *error)
{
    const cairn_runtime *runtime = loader->runtime;
    struct loader_objects **kept = &loader->objects;
    if (*kept == NULL) {
        struct loader_objects *created = memory_new(&runtime->allocator, 1, sizeof *created);
        if (created == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an object");
        *kept = created;
        enum cairn_status status = object_link_create(code_space_arch(runtime->space),
                                                      &runtime->allocator, &created->link, error);
        if (status != CAIRN_OK)
            return status;
    }
    *objects = *kept;
    return CAIRN_OK;
}

static enum cairn_status add_object(cairn_loader *loader, const void *bytes, size_t size,
                                    const struct cairn_load_options *options,
                                    struct cairn_error *error)
{
    struct loader_objects *objects = NULL;
    enum cairn_status status = get_objects(loader, &objects, error);
    if (status != CAIRN_OK)
        return status;
    struct request *request = memory_new(&loader->runtime->allocator, 1, sizeof *request);
    if (request == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an object");
    *request = (struct request){loader, *options, {0}, objects->requests};
    objects->requests = request;
    const struct object_host host = {.allocate = allocate,
                                     .is_pc_section = is_pc_section,
                                     .find_symbol = find_symbol,
                                     .note_undefined = note_undefined,
                                     .user = request,
                                     .alignment_max = (uint64_t)sysconf(_SC_PAGESIZE)};
    status = load_manifest(loader, bytes, size, options, &request->pc_sections, error);
    if (status != CAIRN_OK)
        return error_name(error, status, options->name == NULL ? "" : options->name);
    if (options->features != NULL)
        loader_note_level(loader, arch_features_level(arch_host()->features, options->features));
    else if (!request->pc_sections.has_manifest)
        loader_note_unknown_level(loader);
    int rights = write_key_open(write_key(loader));
    status = object_link_add(objects->link, bytes, size, options->name, &host, error);
    write_key_close(write_key(loader), rights);
    return status;
}

enum cairn_status cairn_loader_add_object(cairn_loader *loader, const void *bytes, size_t size,
                                          const struct cairn_load_options *options,
                                          struct cairn_error *error)
{
    static const struct cairn_load_options none = {0};
    if (loader == NULL || (bytes == NULL && size > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_loader_add_object: `%s` is NULL",
                         loader == NULL ? "loader" : "bytes");
    if (loader->incomplete)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "the loader has failed earlier and can only be destroyed");
    enum cairn_status status =
        add_object(loader, bytes, size, options == NULL ? &none : options, error);
    if (status != CAIRN_OK)
        loader->incomplete = true;
    return status;
}

/* Links the objects in the loader's memory, with the values of their names. */
static enum cairn_status finish_link(cairn_loader *loader, struct object_link *link,
                                     struct cairn_error *error)
{
    struct linked_names names;
    enum cairn_status status =
        linked_names_find(link, find_names, &names, &loader->linked.names, error);
    if (status == CAIRN_OK)
        status = bound_sites_read(link, loader->linked.names, &loader->linked.bound, error);
    if (status == CAIRN_OK) {
        int rights = write_key_open(write_key(loader));
        status = object_link_finish(link, error);
        if (status == CAIRN_OK)
            linked_names_write(link, &names);
        write_key_close(write_key(loader), rights);
    }
    linked_names_release(&names, &loader->runtime->allocator);
    return status;
}

/* Links the objects, and keeps what the module needs of them. */
static enum cairn_status link_objects(cairn_loader *loader, struct object_link *link,
                                      struct cairn_error *error)
{
    cairn_runtime *runtime = loader->runtime;
    struct loader_linked *linked = &loader->linked;
    enum cairn_status status = finish_link(loader, link, error);
    if (status == CAIRN_OK && linked->has_no_memory)
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note the modules in use");
    if (status == CAIRN_OK)
        status = linked_symbols(link, &runtime->symbols.key, &linked->symbols, error);
    if (status == CAIRN_OK)
        status = linked_constructors(link, &linked->attached, error);
    return status;
}

enum cairn_status loader_link_objects(cairn_loader *loader, struct cairn_error *error)
{
    struct loader_objects **objects = &loader->objects;
    if (*objects == NULL)
        return CAIRN_OK;
    enum cairn_status status = link_objects(loader, (*objects)->link, error);
    if (status != CAIRN_OK) {
        loader->incomplete = true;
        return status;
    }
    if (code_watchers_keep(code_space_watchers(loader->runtime->space)))
        loader->linked.kept = kept_objects_take((*objects)->link);
    loader_objects_destroy(&loader->runtime->allocator, *objects);
    *objects = NULL;
    return CAIRN_OK;
}
