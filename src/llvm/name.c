/* Names (symbolic constants) in code. SPDX-License-Identifier: MIT */
#include "llvm/name.h"

#include "base/error.h"
#include "format/names.h"
#include "llvm/build.h"
#include "llvm/ir.h"
#include "llvm/types.h"

#include <cairn/llvm.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOL_PREFIX "cairn.name."
enum { SYMBOL_BYTES = sizeof SYMBOL_PREFIX + 16 };

/* ---- The global ---- */

static enum cairn_status check_name(LLVMModuleRef module, const struct cairn_name *name,
                                    struct cairn_error *error)
{
    const char *triple = LLVMGetTarget(module);
    if (name->bytes == NULL || name->size == 0 || name->size > CAIRN_NAME_BYTES_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, name->size,
                         "a name has 1 to %d bytes, and not %zu%s", CAIRN_NAME_BYTES_MAX,
                         name->size, name->bytes == NULL ? " at NULL" : "");
    if (!types_triple_has_elf(triple))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "objects for '%.60s' are not ELF, and have no names", triple);
    return CAIRN_OK;
}

/* Returns an entry of the section (format/names.h). */
static LLVMValueRef entry_of(LLVMContextRef context, const struct cairn_name *name)
{
    char padded[(CAIRN_NAME_BYTES_MAX + NAME_ALIGNMENT) / NAME_ALIGNMENT * NAME_ALIGNMENT] = {0};
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    memcpy(padded, name->bytes, name->size);
    LLVMValueRef members[] = {
        LLVMConstInt(word, 0, 0),
        LLVMConstInt(word, name->size, 0),
        LLVMConstStringInContext(context, padded, (unsigned)name_padded_size(name->size), 1),
    };
    return LLVMConstStructInContext(context, members, 3, 0);
}

static LLVMValueRef add_global(LLVMModuleRef module, const char *symbol, LLVMValueRef entry)
{
    LLVMValueRef global = LLVMAddGlobal(module, LLVMTypeOf(entry), symbol);
    LLVMSetInitializer(global, entry);
    LLVMSetLinkage(global, LLVMWeakAnyLinkage);
    LLVMSetVisibility(global, LLVMHiddenVisibility);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetExternallyInitialized(global, 1);
    LLVMSetSection(global, NAMES_SECTION);
    LLVMSetAlignment(global, NAME_ALIGNMENT);
    return global;
}

/* Finds the global of a name, which is added if it is new. */
static enum cairn_status find_global(LLVMModuleRef module, const struct cairn_name *name,
                                     LLVMValueRef *found, struct cairn_error *error)
{
    char symbol[SYMBOL_BYTES];
    enum cairn_status status = check_name(module, name, error);
    if (status != CAIRN_OK)
        return status;
    snprintf(symbol, sizeof symbol, SYMBOL_PREFIX "%016" PRIx64, name_id(name->bytes, name->size));
    LLVMValueRef entry = entry_of(LLVMGetModuleContext(module), name);
    *found = LLVMGetNamedGlobal(module, symbol);
    if (*found == NULL)
        *found = add_global(module, symbol, entry);
    if (LLVMGetInitializer(*found) == entry) /* LLVM uniques constants */
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CONFLICT, 0,
                     "another name of the module has the same ID, '%s': change one of them",
                     symbol);
}

enum cairn_status name_add(LLVMModuleRef module, const struct cairn_name *name,
                           struct cairn_error *error)
{
    LLVMValueRef global;
    return find_global(module, name, &global, error);
}

/* ---- Loads ---- */

static void mark_invariant(LLVMContextRef context, LLVMValueRef load)
{
    static const char kind[] = "invariant.load";
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(context, kind, sizeof kind - 1),
                    LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, NULL, 0)));
}

static enum cairn_status check_type(LLVMTypeRef type, struct cairn_error *error)
{
    char text[61];
    if (type != NULL && (LLVMGetTypeKind(type) == LLVMPointerTypeKind ||
                         (ir_is_integer(type, 64) && LLVMGetIntTypeWidth(type) == 64)))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                     "the value of a name is an i64 or a pointer, and not of type %s",
                     type == NULL ? "NULL" : ir_print_type(type, text, sizeof text));
}

LLVMValueRef cairn_build_name(LLVMBuilderRef builder, const struct cairn_name *name,
                              LLVMTypeRef type, struct cairn_error *error)
{
    LLVMValueRef function = build_find_function(builder, error);
    if (function == NULL)
        return NULL;
    if (name == NULL) {
        error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_build_name: `name` is NULL");
        return NULL;
    }
    if (check_type(type, error) != CAIRN_OK)
        return NULL;
    LLVMModuleRef module = LLVMGetGlobalParent(function);
    LLVMValueRef global;
    if (find_global(module, name, &global, error) != CAIRN_OK)
        return NULL;
    LLVMValueRef place = LLVMConstPointerCast(global, LLVMPointerType(type, 0));
    LLVMValueRef load = LLVMBuildLoad2(builder, type, place, "");
    LLVMSetAlignment(load, NAME_ALIGNMENT);
    mark_invariant(LLVMGetModuleContext(module), load);
    return load;
}

/* Returns the global that a constant points to, or NULL if it does not point to a global. LLVM with
 * typed pointers makes the cast a pointer to the entry's first member. */
static LLVMValueRef global_of(LLVMValueRef pointer)
{
    while (LLVMIsAConstantExpr(pointer) != NULL &&
           (LLVMGetConstOpcode(pointer) == LLVMBitCast ||
            LLVMGetConstOpcode(pointer) == LLVMGetElementPtr))
        pointer = LLVMGetOperand(pointer, 0);
    return LLVMIsAGlobalVariable(pointer);
}

bool name_is_global(LLVMValueRef global)
{
    size_t length;
    const char *section = LLVMGetSection(global);
    const char *symbol = LLVMGetValueName2(global, &length);
    return section != NULL && strcmp(section, NAMES_SECTION) == 0 &&
           strncmp(symbol, SYMBOL_PREFIX, sizeof SYMBOL_PREFIX - 1) == 0;
}

bool name_of_value(LLVMValueRef value, uint64_t *id)
{
    size_t length;
    LLVMValueRef global =
        LLVMIsALoadInst(value) == NULL ? NULL : global_of(LLVMGetOperand(value, 0));
    if (global == NULL || !name_is_global(global))
        return false;
    *id = strtoull(LLVMGetValueName2(global, &length) + sizeof SYMBOL_PREFIX - 1, NULL, 16);
    return true;
}
