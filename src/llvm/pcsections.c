/*
 * Attaches !pcsections metadata: a node of section names, each followed by tuples of constants.
 *
 * LLVM's code generator crashes if a tuple contains an operand that is not a constant, or if an
 * operand of the node is neither a name nor a tuple. So all input is checked before anything is
 * attached.
 *
 * Source: LLVM, "PC Sections Metadata"; llvm/lib/CodeGen/AsmPrinter/AsmPrinter.cpp, emitPCSections.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/error.h"
#include "llvm/ir.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <cairn/llvm.h>
#include <llvm-c/DebugInfo.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The function or instruction ---- */

struct target {
    LLVMValueRef value;
    LLVMValueRef function; /* the function, or the function that contains the instruction */
    LLVMContextRef context;
    unsigned kind;
    bool is_function;
};

static enum cairn_status find_target(LLVMValueRef value, struct target *target,
                                     struct cairn_error *error)
{
    static const char name[] = "pcsections";
    LLVMValueRef function = NULL;
    if (value != NULL && LLVMIsAFunction(value) != NULL && LLVMCountBasicBlocks(value) > 0)
        function = value;
    else if (value != NULL && LLVMIsAInstruction(value) != NULL)
        function = ir_function_of(value);
    if (function == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "PC sections are attached to an instruction in a function, or to a "
                         "function with a body");
    if (!LLVM_HAS_PC_SECTIONS)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "LLVM %d has no PC sections: they came with LLVM 16", LLVM_VERSION_MAJOR);
    const char *triple = LLVMGetTarget(LLVMGetGlobalParent(function));
    if (!types_triple_has_elf(triple))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "LLVM has PC sections in ELF alone, and crashes on them for '%.60s'",
                         triple);
    target->function = function;
    target->context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    target->kind = LLVMGetMDKindIDInContext(target->context, name, sizeof name - 1);
    target->is_function = value == function;
    return CAIRN_OK;
}

/* ---- Checking the sections ---- */

static enum cairn_status check_section(const struct cairn_pcsection_metadata *section,
                                       struct cairn_error *error)
{
    const char *name = section->section;
    if (name == NULL || *name == '\0')
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a PC section has to have a name");
    if (strchr(name, '!') != NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "PC section '%.60s': LLVM takes what follows a '!' for options", name);
    if (section->tuples == NULL && section->tuple_count > 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "PC section '%.60s': %u tuples, but no array of them", name,
                         section->tuple_count);
    uint32_t number = 0;
    for (uint32_t i = 0; i < section->tuple_count; i++) {
        const struct cairn_constant_tuple *tuple = &section->tuples[i];
        if (tuple->values == NULL && tuple->count > 0)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i,
                             "PC section '%.60s': tuple %u has %u constants, but no array of them",
                             name, i, tuple->count);
        for (uint32_t k = 0; k < tuple->count; k++, number++) {
            LLVMValueRef value = tuple->values[k];
            char type[41];
            if (value == NULL)
                return error_set(error, CAIRN_ERROR_ARGUMENT, number,
                                 "PC section '%.60s': constant %u is NULL", name, number);
            bool is_number = LLVMIsAConstantInt(value) != NULL;
            if (!is_number || !ir_is_integer(LLVMTypeOf(value), 64))
                return error_set(error, CAIRN_ERROR_UNSUPPORTED, number,
                                 "PC section '%.60s': value %u is of type %s and %s; it has to be "
                                 "an integer constant of up to 64 bits",
                                 name, number, ir_print_type(LLVMTypeOf(value), type, sizeof type),
                                 is_number ? "too wide" : "not a constant number");
        }
    }
    if (number > CAIRN_PCSECTION_CONSTANTS_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, number,
                         "PC section '%.60s': %u constants, at most %d can be read", name, number,
                         CAIRN_PCSECTION_CONSTANTS_MAX);
    return CAIRN_OK;
}

/* ---- The node ---- */

/* Operands of a node. `failed` is set if there was no memory for one of them. */
struct operands {
    struct cairn_allocator allocator;
    LLVMMetadataRef *entries;
    size_t count;
    size_t capacity;
    bool failed;
};

static void push(struct operands *operands, LLVMMetadataRef operand)
{
    void *entries = array_reserve(&operands->allocator, operands->entries, operands->count, 1,
                                  &operands->capacity, sizeof operand);
    operands->failed |= entries == NULL;
    if (entries == NULL)
        return;
    operands->entries = entries;
    operands->entries[operands->count++] = operand;
}

/* Pushes the operands that are attached already. The C API returns a tuple of one constant as the
 * constant. */
static void push_attached(const struct target *target, struct operands *operands)
{
    LLVMValueRef node = NULL;
    if (target->is_function) {
        size_t count;
        LLVMValueMetadataEntry *entries = LLVMGlobalCopyAllMetadata(target->value, &count);
        for (unsigned i = 0; i < count; i++)
            if (LLVMValueMetadataEntriesGetKind(entries, i) == target->kind)
                node = LLVMMetadataAsValue(target->context,
                                           LLVMValueMetadataEntriesGetMetadata(entries, i));
        LLVMDisposeValueMetadataEntries(entries);
    } else {
        node = LLVMGetMetadata(target->value, target->kind);
    }
    unsigned count = node == NULL ? 0 : LLVMGetMDNodeNumOperands(node);
    LLVMValueRef *values = calloc(count + 1, sizeof *values);
    operands->failed |= values == NULL;
    if (values != NULL && count > 0)
        LLVMGetMDNodeOperands(node, values);
    for (unsigned i = 0; values != NULL && i < count; i++) {
        LLVMMetadataRef operand = LLVMValueAsMetadata(values[i]);
        bool is_constant = LLVMGetMetadataKind(operand) == LLVMConstantAsMetadataMetadataKind;
        push(operands, is_constant ? LLVMMDNodeInContext2(target->context, &operand, 1) : operand);
    }
    free(values);
}

/* Returns the number of the section's constants. */
static uint32_t push_section(const struct target *target,
                             const struct cairn_pcsection_metadata *section,
                             struct operands *operands)
{
    LLVMMetadataRef constants[CAIRN_PCSECTION_CONSTANTS_MAX];
    size_t size = strlen(section->section) + sizeof "!C";
    char *name = malloc(size);
    uint32_t constant_count = 0;
    operands->failed |= name == NULL;
    if (name == NULL)
        return 0;
    snprintf(name, size, "%s%s", section->section, section->is_compressed ? "!C" : "");
    push(operands, LLVMMDStringInContext2(target->context, name, strlen(name)));
    free(name);
    for (uint32_t i = 0; i < section->tuple_count; i++) {
        const struct cairn_constant_tuple *tuple = &section->tuples[i];
        for (uint32_t k = 0; k < tuple->count; k++)
            constants[k] = LLVMValueAsMetadata(tuple->values[k]);
        push(operands, LLVMMDNodeInContext2(target->context, constants, tuple->count));
        constant_count += tuple->count;
    }
    return constant_count;
}

/* ---- One node for each instruction ---- */

/* Appends a tuple that is different for each instruction of the function, because instructions with
 * the same constants must not share a node. LLVM emits nothing for the tuple's constant: an array
 * of 0 arrays of `number` bytes. An attribute of the function counts the numbers. */
static void push_number(const struct target *target, struct operands *operands)
{
    static const char counter[] = "cairn-pcsections";
    char text[32];
    unsigned length;
    const char *last = ir_string_attribute(target->function, counter, &length);
    unsigned long number = (last == NULL ? 0 : strtoul(last, NULL, 10)) + 1;
    LLVMTypeRef bytes = LLVMArrayType(LLVMInt8TypeInContext(target->context), (unsigned)number);
    LLVMMetadataRef nothing = LLVMValueAsMetadata(LLVMConstNull(LLVMArrayType(bytes, 0)));
    push(operands, LLVMMDNodeInContext2(target->context, &nothing, 1));
    snprintf(text, sizeof text, "%lu", number);
    if (!operands->failed)
        ir_set_string_attribute(target->function, counter, text);
}

enum cairn_status cairn_attach_pcsections(LLVMValueRef value,
                                          const struct cairn_pcsection_metadata *sections,
                                          uint32_t count, struct cairn_error *error)
{
    struct target target = {.value = value};
    enum cairn_status status = CAIRN_OK;
    if (sections == NULL || count == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_attach_pcsections: `sections` is empty");
    for (uint32_t i = 0; i < count && status == CAIRN_OK; i++)
        status = check_section(&sections[i], error);
    if (status == CAIRN_OK)
        status = find_target(value, &target, error);
    if (status != CAIRN_OK)
        return status;
    struct operands operands = {.allocator = memory_allocator(NULL)};
    uint32_t constant_count = 0;
    push_attached(&target, &operands);
    for (uint32_t i = 0; i < count; i++)
        constant_count += push_section(&target, &sections[i], &operands);
    /* A function has only one entry, so it needs no number. */
    if (!target.is_function && constant_count > 0)
        push_number(&target, &operands);
    LLVMMetadataRef node = NULL;
    if (!operands.failed)
        node = LLVMMDNodeInContext2(target.context, operands.entries, operands.count);
    memory_free(&operands.allocator, operands.entries,
                operands.capacity * sizeof *operands.entries);
    if (node == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to attach %u PC sections", count);
    if (target.is_function)
        LLVMGlobalSetMetadata(value, target.kind, node);
    else
        LLVMSetMetadata(value, target.kind, LLVMMetadataAsValue(target.context, node));
    return CAIRN_OK;
}
