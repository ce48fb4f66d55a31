/* Options of loaded modules, and their publication. SPDX-License-Identifier: MIT */
#include "llvm/modules.h"

#include "base/error.h"

#include <string.h>

/* ---- Options ---- */

/* Copies the PC sections, whose names are not NULL. Returns false if memory runs out. */
static bool copy_pc_sections(const struct cairn_pc_section *pc_sections, size_t count,
                             uint8_t address_bytes, const struct cairn_allocator *allocator,
                             struct cairn_module_options *copy)
{
    struct cairn_pc_section *copies = memory_new(allocator, count, sizeof *copies);
    copy->pc_sections = copies;
    copy->pc_section_count = copies == NULL ? 0 : count;
    for (size_t i = 0; i < copy->pc_section_count; i++) {
        const char *name = pc_sections[i].section;
        copies[i] = pc_sections[i];
        copies[i].section = memory_copy_string(allocator, name, strlen(name));
        if (copies[i].section == NULL)
            return false;
        if (copies[i].schema.address_bytes == 0)
            copies[i].schema.address_bytes = address_bytes;
    }
    return copies != NULL;
}

enum cairn_status modules_copy_options(const struct cairn_module_options *options, const char *name,
                                       uint8_t address_bytes,
                                       const struct cairn_allocator *allocator,
                                       struct cairn_module_options *copy, struct cairn_error *error)
{
    size_t count = options->pc_section_count;
    if (options->name != NULL)
        name = options->name;
    *copy = *options;
    copy->pc_sections = NULL;
    copy->pc_section_count = 0;
    copy->name = memory_copy_string(allocator, name, strlen(name));
    if (count > 0 && options->pc_sections == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "`pc_sections` is NULL, and there are %zu",
                         count);
    for (size_t i = 0; i < count; i++)
        if (options->pc_sections[i].section == NULL)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i, "`pc_sections[%zu].section` is NULL",
                             i);
    if (copy->name == NULL || (count > 0 && !copy_pc_sections(options->pc_sections, count,
                                                              address_bytes, allocator, copy)))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a name and %zu PC sections",
                         count);
    return CAIRN_OK;
}

void modules_release_options(const struct cairn_module_options *copy,
                             const struct cairn_allocator *allocator)
{
    for (size_t i = 0; i < copy->pc_section_count; i++)
        memory_free_string(allocator, copy->pc_sections[i].section);
    memory_free(allocator, (struct cairn_pc_section *)(uintptr_t)copy->pc_sections,
                copy->pc_section_count * sizeof *copy->pc_sections);
    memory_free_string(allocator, copy->name);
}

/* Slabs and the symbols of the process may be anywhere in the address space. With the other models
 * RuntimeDyld truncates addresses that do not fit, without an error, or LLVM ends the process. */
enum cairn_status modules_check_code_model(LLVMCodeModel code_model, struct cairn_error *error)
{
    static const char *const names[] = {
        [LLVMCodeModelTiny] = "tiny",
        [LLVMCodeModelSmall] = "small",
        [LLVMCodeModelKernel] = "kernel",
        [LLVMCodeModelMedium] = "medium",
    };
    size_t index = (size_t)code_model;
    if (code_model == LLVMCodeModelDefault || code_model == LLVMCodeModelJITDefault ||
        code_model == LLVMCodeModelLarge)
        return CAIRN_OK;
    if (index >= sizeof names / sizeof *names)
        return error_set(error, CAIRN_ERROR_ARGUMENT, index, "LLVM has no code model %zu", index);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "in LLVM's code model '%s' addresses may be cut to fewer bits than those of "
                     "code memory have: use LLVMCodeModelDefault or LLVMCodeModelLarge",
                     names[index]);
}

/* Sources: llvm/lib/CodeGen/AsmPrinter/AsmPrinter.cpp, emitPCSections; for the default models,
 * functions such as getEffectiveCodeModel in the target machines. */
uint8_t modules_address_bytes(LLVMCodeModel code_model, bool is_jit)
{
    bool is_ppc64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
    if (code_model == LLVMCodeModelLarge)
        return 8;
    return (is_jit || code_model == LLVMCodeModelJITDefault) == is_ppc64 ? 4 : 8;
}

/* ---- Publication ---- */

enum cairn_status modules_publish(cairn_module *module, const struct cairn_module_options *options,
                                  struct cairn_error *error)
{
    if (options->before_publish != NULL)
        options->before_publish(module, options->user);
    enum cairn_status status = cairn_module_publish(module, error);
    if (status == CAIRN_OK && options->after_publish != NULL)
        options->after_publish(module, options->user);
    return status;
}
