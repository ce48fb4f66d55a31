/* Adds manifests to modules. SPDX-License-Identifier: MIT */
#include "llvm/embed.h"

#include "base/adapter.h"
#include "base/error.h"
#include "base/memory.h"
#include "llvm/bindings.h"
#include "llvm/cpu.h"
#include "llvm/embed_section.h"
#include "llvm/scan.h"
#include "llvm/types.h"
#include "llvm/version.h"

enum cairn_status embed_manifest(LLVMModuleRef module, const struct manifest *manifest,
                                 struct cairn_error *error)
{
    _Static_assert((int)EMBED_ALIGNMENT == (int)MANIFEST_ALIGNMENT, "manifests are aligned");
    struct cairn_allocator allocator = memory_allocator(NULL);
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum cairn_status status = manifest_write(manifest, &allocator, &bytes, &size, error);
    if (status != CAIRN_OK)
        return status;
    status = embed_section(module, "cairn.manifest", MANIFEST_SECTION, bytes, size, error);
    memory_free(&allocator, bytes, size);
    return status;
}

/* The size of addresses in the PC sections of a machine's default code model: medium on PPC64,
 * otherwise small. */
static uint8_t default_address_bytes(enum cairn_architecture architecture)
{
    return architecture == CAIRN_ARCHITECTURE_PPC64_ELFV1 ||
                   architecture == CAIRN_ARCHITECTURE_PPC64_ELFV2
               ? 8
               : 4;
}

/* Makes the manifest's list of PC sections, which the caller frees. Returns false if memory runs
 * out. */
static bool list_pc_sections(const struct cairn_pc_section *wanted, size_t count,
                             uint8_t address_bytes, const struct cairn_allocator *allocator,
                             struct manifest_pc_section **listed)
{
    *listed = count == 0 ? NULL : memory_new(allocator, count, sizeof **listed);
    if (count > 0 && *listed == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        (*listed)[i] = (struct manifest_pc_section){
            .name = wanted[i].section,
            .is_prefix = wanted[i].is_prefix,
        };
        if (!wanted[i].has_schema)
            continue;
        (*listed)[i].schema = wanted[i].schema;
        if (wanted[i].schema.address_bytes == 0)
            (*listed)[i].schema.address_bytes = address_bytes;
    }
    return true;
}

/* Adds a manifest with these declarations, features and PC sections. */
static enum cairn_status embed(LLVMModuleRef module, const struct manifest_target *target,
                               const cairn_declarations *declarations,
                               const struct cairn_pc_section *wanted, size_t wanted_count,
                               struct cairn_error *error)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    struct manifest_pc_section *pc_sections;
    uint8_t address_bytes = default_address_bytes(target->architecture);
    if (!list_pc_sections(wanted, wanted_count, address_bytes, &allocator, &pc_sections))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu PC sections",
                         wanted_count);
    const struct manifest manifest = {
        .target = *target,
        .pc_sections = pc_sections,
        .pc_section_count = wanted_count,
        .declarations = declarations,
    };
    enum cairn_status status = embed_manifest(module, &manifest, error);
    memory_free(&allocator, pc_sections, wanted_count * sizeof *pc_sections);
    return status;
}

/* Scans a module that is loaded by itself. */
static enum cairn_status scan(LLVMModuleRef module, enum cairn_id_conflicts id_conflicts,
                              cairn_declarations **declarations, struct cairn_error *error)
{
    struct pending_list none;
    enum cairn_status status = cairn_declarations_create(NULL, declarations, error);
    if (status != CAIRN_OK)
        return status;
    pending_init(&none, NULL, id_conflicts);
    status = pending_scan(&none, module, *declarations, error);
    if (status != CAIRN_OK)
        cairn_declarations_destroy(*declarations);
    return status;
}

enum cairn_status embed_scanned(LLVMModuleRef module, enum cairn_id_conflicts id_conflicts,
                                struct cairn_error *error)
{
    cairn_declarations *declarations;
    enum cairn_status status = scan(module, id_conflicts, &declarations, error);
    if (status != CAIRN_OK)
        return status;
    if (cairn_declarations_count(declarations) > 0)
        status = embed_declarations(module, declarations, NULL, 0, error);
    cairn_declarations_destroy(declarations);
    return status;
}

enum cairn_status embed_declarations(LLVMModuleRef module, const cairn_declarations *declarations,
                                     const struct cairn_pc_section *wanted, size_t wanted_count,
                                     struct cairn_error *error)
{
    const struct manifest_target target = {.architecture = types_architecture(module),
                                           .llvm_version = LLVM_VERSION_MAJOR,
                                           .triple = LLVMGetTarget(module),
                                           .cpu = MANIFEST_CPU_UNKNOWN,
                                           .features = ""};
    return embed(module, &target, declarations, wanted, wanted_count, error);
}

/* Adds the manifest with the fingerprint of the machine's code. */
static enum cairn_status embed_fingerprint(LLVMModuleRef module,
                                           const struct cairn_embed_options *options,
                                           const cairn_declarations *declarations,
                                           struct cairn_error *error)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    char *features = NULL;
    enum cairn_status status =
        cpu_features_of_module(module, options->machine, &allocator, &features, error);
    if (status != CAIRN_OK)
        return status;
    char *triple = LLVMGetTargetMachineTriple(options->machine);
    char *cpu = LLVMGetTargetMachineCPU(options->machine);
    const struct manifest_target target = {.architecture = types_triple_architecture(triple),
                                           .llvm_version = LLVM_VERSION_MAJOR,
                                           .triple = triple,
                                           .cpu = cpu,
                                           .features = features};
    status = embed(module, &target, declarations, options->pc_sections, options->pc_section_count,
                   error);
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(cpu);
    memory_free_string(&allocator, features);
    return status;
}

enum cairn_status cairn_embed_manifest(LLVMModuleRef module,
                                       const struct cairn_embed_options *options,
                                       struct cairn_error *error)
{
    cairn_declarations *declarations;
    if (module == NULL || options == NULL || options->machine == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_embed_manifest: `%s` is NULL",
                         module == NULL    ? "module"
                         : options == NULL ? "options"
                                           : "options->machine");
    if (options->pc_sections == NULL && options->pc_section_count > 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_embed_manifest: `options->pc_sections` is NULL, and there are %zu",
                         options->pc_section_count);
    enum cairn_status status = bindings_refuse(module, error);
    if (status == CAIRN_OK)
        status = bindings_embed_named(module, error);
    if (status == CAIRN_OK)
        status = scan(module, options->id_conflicts, &declarations, error);
    if (status != CAIRN_OK)
        return status;
    status = embed_fingerprint(module, options, declarations, error);
    cairn_declarations_destroy(declarations);
    return status;
}
