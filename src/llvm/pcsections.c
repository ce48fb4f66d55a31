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
#include "base/error.h"
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

static bool is_other_format(const char *triple)
{
    static const char *const others[] = {"darwin", "macho", "apple", "windows",
                                         "coff",   "wasm",  "aix",   "xcoff"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(triple, others[i]) != NULL)
            return true;
    return false;
}

static LLVMValueRef function_of(LLVMValueRef value)
{
    if (LLVMIsAFunction(value) != NULL)
        return LLVMCountBasicBlocks(value) > 0 ? value : NULL;
    if (LLVMIsAInstruction(value) == NULL)
        return NULL;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(value);
    return block == NULL ? NULL : LLVMGetBasicBlockParent(block);
}

static enum cairn_status find_target(LLVMValueRef value, struct target *target,
                                     struct cairn_error *error)
{
    static const char name[] = "pcsections";
    LLVMValueRef function = value == NULL ? NULL : function_of(value);
    if (function == NULL)
        return error_set(
            error, CAIRN_ERROR_ARGUMENT, 0,
            "PC sections are attached to an instruction in a function, or to a function "
            "with a body");
    if (!LLVM_HAS_PC_SECTIONS)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "LLVM %d has no PC sections: they came with LLVM 16", LLVM_VERSION_MAJOR);
    LLVMModuleRef module = LLVMGetGlobalParent(function);
    if (is_other_format(LLVMGetTarget(module)))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "LLVM has PC sections in ELF alone, and crashes on them for '%.60s'",
                         LLVMGetTarget(module));
    LLVMContextRef context = LLVMGetModuleContext(module);
    *target = (struct target){
        .value = value,
        .function = function,
        .context = context,
        .kind = LLVMGetMDKindIDInContext(context, name, (unsigned)strlen(name)),
        .is_function = value == function,
    };
    return CAIRN_OK;
}

/* ---- Checking the sections ---- */

static enum cairn_status check_constant(const char *section, LLVMValueRef value, uint32_t number,
                                        struct cairn_error *error)
{
    if (value == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, number,
                         "PC section '%.60s': there is no constant %u", section, number);
    bool is_number = LLVMIsAConstantInt(value) != NULL;
    if (is_number && LLVMGetIntTypeWidth(LLVMTypeOf(value)) <= 64)
        return CAIRN_OK;
    char *type = LLVMPrintTypeToString(LLVMTypeOf(value));
    enum cairn_status status =
        error_set(error, CAIRN_ERROR_UNSUPPORTED, number,
                  "PC section '%.60s': value %u is of type %.40s and %s; it has to be an integer "
                  "constant of up to 64 bits",
                  section, number, type, is_number ? "too wide" : "no number");
    LLVMDisposeMessage(type);
    return status;
}

static enum cairn_status check_name(const char *section, struct cairn_error *error)
{
    if (section == NULL || *section == '\0')
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a PC section has to have a name");
    if (strchr(section, '!') != NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "PC section '%.60s': what stands behind a '!', LLVM takes for options",
                         section);
    return CAIRN_OK;
}

static enum cairn_status check_section(const struct cairn_pcsection_metadata *section,
                                       struct cairn_error *error)
{
    enum cairn_status status = check_name(section->section, error);
    if (status == CAIRN_OK && section->tuples == NULL && section->tuple_count > 0)
        status = error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                           "PC section '%.60s': %u tuples, but no array of them", section->section,
                           section->tuple_count);
    uint32_t number = 0;
    for (uint32_t i = 0; i < section->tuple_count && status == CAIRN_OK; i++) {
        const struct cairn_constant_tuple *tuple = &section->tuples[i];
        if (tuple->values == NULL && tuple->count > 0)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i,
                             "PC section '%.60s': tuple %u has %u constants, but no array of them",
                             section->section, i, tuple->count);
        for (uint32_t k = 0; k < tuple->count && status == CAIRN_OK; k++)
            status = check_constant(section->section, tuple->values[k], number++, error);
    }
    if (status == CAIRN_OK && number > CAIRN_PCSECTION_CONSTANTS_MAX)
        status = error_set(error, CAIRN_ERROR_RANGE, number,
                           "PC section '%.60s': %u constants, at most %d can be read",
                           section->section, number, CAIRN_PCSECTION_CONSTANTS_MAX);
    return status;
}

static enum cairn_status check_sections(const struct cairn_pcsection_metadata *sections,
                                        uint32_t count, struct cairn_error *error)
{
    if (sections == NULL || count == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no PC section to attach");
    for (uint32_t i = 0; i < count; i++) {
        enum cairn_status status = check_section(&sections[i], error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* ---- The node ---- */

/* Operands of a node. `failed` is set if there was no memory for one of them. */
struct operands {
    LLVMMetadataRef *entries;
    size_t count;
    size_t capacity;
    bool failed;
};

static void push(struct operands *operands, LLVMMetadataRef operand)
{
    if (operands->count == operands->capacity) {
        size_t capacity = operands->capacity == 0 ? 16 : 2 * operands->capacity;
        LLVMMetadataRef *grown = realloc(operands->entries, capacity * sizeof *grown);
        operands->failed |= grown == NULL;
        if (grown == NULL)
            return;
        operands->entries = grown;
        operands->capacity = capacity;
    }
    operands->entries[operands->count++] = operand;
}

/* Returns the node that is attached to the function; NULL if it has none. */
static LLVMMetadataRef function_node(const struct target *target)
{
    size_t count;
    LLVMMetadataRef node = NULL;
    LLVMValueMetadataEntry *entries = LLVMGlobalCopyAllMetadata(target->value, &count);
    for (unsigned i = 0; i < count; i++)
        if (LLVMValueMetadataEntriesGetKind(entries, i) == target->kind)
            node = LLVMValueMetadataEntriesGetMetadata(entries, i);
    LLVMDisposeValueMetadataEntries(entries);
    return node;
}

static LLVMValueRef attached_node(const struct target *target)
{
    if (!target->is_function)
        return LLVMGetMetadata(target->value, target->kind);
    LLVMMetadataRef node = function_node(target);
    return node == NULL ? NULL : LLVMMetadataAsValue(target->context, node);
}

/* Converts a value to an operand of a node. The C API returns a tuple of one constant as the
 * constant. */
static LLVMMetadataRef operand_of(const struct target *target, LLVMValueRef value)
{
    LLVMMetadataRef operand = LLVMValueAsMetadata(value);
    bool is_constant = LLVMGetMetadataKind(operand) == LLVMConstantAsMetadataMetadataKind;
    return is_constant ? LLVMMDNodeInContext2(target->context, &operand, 1) : operand;
}

static void push_attached(const struct target *target, struct operands *operands)
{
    LLVMValueRef node = attached_node(target);
    unsigned count = node == NULL ? 0 : LLVMGetMDNodeNumOperands(node);
    if (count == 0)
        return;
    LLVMValueRef *values = calloc(count, sizeof *values);
    operands->failed |= values == NULL;
    if (values == NULL)
        return;
    LLVMGetMDNodeOperands(node, values);
    for (unsigned i = 0; i < count; i++)
        push(operands, operand_of(target, values[i]));
    free(values);
}

static void push_name(const struct target *target, const struct cairn_pcsection_metadata *section,
                      struct operands *operands)
{
    const char *option = section->is_compressed ? "!C" : "";
    size_t length = strlen(section->section) + strlen(option);
    char *name = malloc(length + 1);
    operands->failed |= name == NULL;
    if (name == NULL)
        return;
    snprintf(name, length + 1, "%s%s", section->section, option);
    push(operands, LLVMMDStringInContext2(target->context, name, length));
    free(name);
}

static void push_tuple(const struct target *target, const struct cairn_constant_tuple *tuple,
                       struct operands *operands)
{
    LLVMMetadataRef constants[CAIRN_PCSECTION_CONSTANTS_MAX];
    for (uint32_t i = 0; i < tuple->count; i++)
        constants[i] = LLVMValueAsMetadata(tuple->values[i]);
    push(operands, LLVMMDNodeInContext2(target->context, constants, tuple->count));
}

/* ---- One node for each instruction ---- */

static const char counter_name[] = "cairn-pcsections";

static unsigned long read_counter(LLVMValueRef function)
{
    LLVMAttributeRef attribute =
        LLVMGetStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                      counter_name, (unsigned)strlen(counter_name));
    unsigned length;
    return attribute == NULL ? 0
                             : strtoul(LLVMGetStringAttributeValue(attribute, &length), NULL, 10);
}

static void write_counter(const struct target *target, unsigned long number)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%lu", number);
    LLVMAddAttributeAtIndex(target->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(target->context, counter_name,
                                                      (unsigned)strlen(counter_name), text,
                                                      (unsigned)length));
}

/* Appends a tuple that is different for each instruction of the function, because instructions with
 * the same constants must not share a node. LLVM emits nothing for the tuple's constant: an array
 * of 0 arrays of `number` bytes. */
static void push_number(const struct target *target, struct operands *operands)
{
    unsigned long number = read_counter(target->function) + 1;
    LLVMTypeRef bytes = LLVMArrayType(LLVMInt8TypeInContext(target->context), (unsigned)number);
    LLVMMetadataRef nothing = LLVMValueAsMetadata(LLVMConstNull(LLVMArrayType(bytes, 0)));
    push(operands, LLVMMDNodeInContext2(target->context, &nothing, 1));
    if (!operands->failed)
        write_counter(target, number);
}

static bool has_constants(const struct cairn_pcsection_metadata *section)
{
    for (uint32_t i = 0; i < section->tuple_count; i++)
        if (section->tuples[i].count > 0)
            return true;
    return false;
}

static void push_section(const struct target *target,
                         const struct cairn_pcsection_metadata *section, struct operands *operands)
{
    push_name(target, section, operands);
    for (uint32_t i = 0; i < section->tuple_count; i++)
        push_tuple(target, &section->tuples[i], operands);
}

static bool any_has_constants(const struct cairn_pcsection_metadata *sections, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (has_constants(&sections[i]))
            return true;
    return false;
}

static void attach(const struct target *target, LLVMMetadataRef node)
{
    if (target->is_function)
        LLVMGlobalSetMetadata(target->value, target->kind, node);
    else
        LLVMSetMetadata(target->value, target->kind, LLVMMetadataAsValue(target->context, node));
}

enum cairn_status cairn_attach_pcsections(LLVMValueRef value,
                                          const struct cairn_pcsection_metadata *sections,
                                          uint32_t count, struct cairn_error *error)
{
    struct target target = {.value = value};
    enum cairn_status status = check_sections(sections, count, error);
    if (status == CAIRN_OK)
        status = find_target(value, &target, error);
    if (status != CAIRN_OK)
        return status;
    struct operands operands = {.entries = NULL};
    push_attached(&target, &operands);
    for (uint32_t i = 0; i < count; i++)
        push_section(&target, &sections[i], &operands);
    /* A function has only one entry, so it needs no number. */
    if (!target.is_function && any_has_constants(sections, count))
        push_number(&target, &operands);
    if (operands.failed)
        status =
            error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to attach %u PC sections", count);
    else
        attach(&target, LLVMMDNodeInContext2(target.context, operands.entries, operands.count));
    free(operands.entries);
    return status;
}
