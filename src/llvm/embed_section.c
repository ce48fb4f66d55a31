/* SPDX-License-Identifier: MIT */
#include "llvm/embed_section.h"

#include "base/error.h"
#include "base/memory.h"
#include "llvm/types.h"
#include "llvm/version.h"

/* Adds a global to the list of those that passes must keep, although nothing refers to them. LLVM
 * has such a list as an array of pointers, which cannot grow: it is replaced. */
static enum cairn_status keep(LLVMModuleRef module, LLVMValueRef global, struct cairn_error *error)
{
    static const char list_name[] = "llvm.compiler.used";
    struct cairn_allocator allocator = memory_allocator(NULL);
    LLVMTypeRef pointer = version_byte_pointer_type(LLVMGetModuleContext(module));
    LLVMValueRef list = LLVMGetNamedGlobal(module, list_name);
    LLVMValueRef values = list == NULL ? NULL : LLVMGetInitializer(list);
    unsigned count = values == NULL ? 0 : (unsigned)LLVMGetNumOperands(values);
    LLVMValueRef *kept = memory_new(&allocator, count + (size_t)1, sizeof *kept);
    if (kept == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a list of globals");
    for (unsigned i = 0; i < count; i++)
        kept[i] = LLVMGetOperand(values, i);
    kept[count] = LLVMConstBitCast(global, pointer);
    if (list != NULL)
        LLVMDeleteGlobal(list);
    list = LLVMAddGlobal(module, LLVMArrayType(pointer, count + 1), list_name);
    LLVMSetLinkage(list, LLVMAppendingLinkage);
    LLVMSetInitializer(list, LLVMConstArray(pointer, kept, count + 1));
    LLVMSetSection(list, "llvm.metadata");
    memory_free(&allocator, kept, (count + (size_t)1) * sizeof *kept);
    return CAIRN_OK;
}

enum cairn_status embed_section(LLVMModuleRef module, const char *name, const char *section,
                                const void *bytes, size_t size, struct cairn_error *error)
{
    const char *triple = LLVMGetTarget(module);
    if (!types_triple_has_elf(triple))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "objects for '%.60s' are not ELF, which Cairn loads", triple);
    LLVMValueRef contents =
        LLVMConstStringInContext(LLVMGetModuleContext(module), bytes, (unsigned)size, 1);
    LLVMValueRef global = LLVMAddGlobal(module, LLVMTypeOf(contents), name);
    LLVMSetInitializer(global, contents);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMInternalLinkage); /* RuntimeDyld drops what has no symbol */
    LLVMSetSection(global, section);
    LLVMSetAlignment(global, EMBED_ALIGNMENT);
    enum cairn_status status = keep(module, global, error);
    if (status != CAIRN_OK)
        LLVMDeleteGlobal(global);
    return status;
}
