/*
 * Finds out which features a CPU has that is known by its name.
 *
 * LLVM's C API does not tell. But LLVM's inliner knows: it inlines a function only if the caller's
 * CPU has all features of the callee. So for each feature in question there is a pair of functions
 * in a module that is used for nothing else: a caller with the CPU and the features that are
 * asked about, and a callee with one feature more. If the call is gone afterwards, the CPU has that
 * feature, be it by its name or because another feature implies it.
 *
 * One more pair, whose callee has a feature that all CPUs have, shows whether this works at all. It
 * does on x86-64 and AArch64, and on PPC64 from LLVM 21 on: before that, LLVM inlines there only if
 * the lists are equal as texts. (20 has not been tried.) Where it does not work, features are taken
 * from the list as they are, and names of CPUs are refused.
 *
 * On x86-64 the inliner does not compare cx16 and sahf, so that they count as needed whenever a CPU
 * or a feature is named. Machines that lack them are older than SSSE3.
 *
 * Source: the functions areInlineCompatible of llvm/lib/Target, by trial with LLVM 14 to 22.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/cpu.h"

#include "arch/features.h"
#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"
#include "llvm/ir.h"
#include "llvm/types.h"

#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>
#include <stdio.h>
#include <string.h>

/* ---- Asking LLVM ---- */

/* What functions of a module are compiled for. */
struct cpu {
    char *name;     /* "" is the architecture's oldest CPU */
    char *features; /* as in "target-features" */
};

/* Adds a function with the attributes of a CPU, and with one more feature unless it is NULL. */
static LLVMValueRef add_function(LLVMModuleRef module, const char *name, const struct cpu *cpu,
                                 const char *feature, char *text, size_t size)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
    LLVMValueRef function = LLVMAddFunction(module, name, type);
    LLVMAppendBasicBlockInContext(context, function, "");
    snprintf(text, size, "%s%s%s%s", cpu->features,
             cpu->features[0] != '\0' && feature != NULL ? "," : "", feature == NULL ? "" : "+",
             feature == NULL ? "" : feature);
    if (cpu->name[0] != '\0')
        ir_set_string_attribute(function, "target-cpu", cpu->name);
    if (text[0] != '\0')
        ir_set_string_attribute(function, "target-features", text);
    return function;
}

/* Adds a pair of functions, and returns the caller's first instruction, which is the call. */
static LLVMValueRef add_pair(LLVMModuleRef module, LLVMBuilderRef builder, const struct cpu *cpu,
                             const char *feature, char *text, size_t size)
{
    LLVMValueRef callee = add_function(module, "callee", cpu, feature, text, size);
    LLVMValueRef caller = add_function(module, "caller", cpu, NULL, text, size);
    LLVMPositionBuilderAtEnd(builder, LLVMGetFirstBasicBlock(callee));
    LLVMBuildRetVoid(builder);
    LLVMPositionBuilderAtEnd(builder, LLVMGetFirstBasicBlock(caller));
    LLVMBuildCall2(builder, LLVMGlobalGetValueType(callee), callee, NULL, 0, "");
    LLVMBuildRetVoid(builder);
    return caller;
}

static bool is_inlined(LLVMValueRef caller)
{
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetFirstBasicBlock(caller));
    return LLVMGetInstructionOpcode(first) == LLVMRet;
}

static bool is_known_to_llvm(const struct arch_feature *feature)
{
    return LLVM_VERSION_MAJOR >= feature->first_llvm &&
           (feature->last_llvm == 0 || LLVM_VERSION_MAJOR <= feature->last_llvm);
}

/* Inlines in all pairs. `callers` has space for one more than the table has features; the last one
 * is the pair whose callee has the base feature. */
static enum cairn_status inline_pairs(LLVMModuleRef module, LLVMTargetMachineRef machine,
                                      const struct arch_feature_table *table, const struct cpu *cpu,
                                      LLVMValueRef *callers,
                                      const struct cairn_allocator *allocator,
                                      struct cairn_error *error)
{
    enum { FEATURE_NAME_MAX = 32 };
    size_t size = strlen(cpu->features) + FEATURE_NAME_MAX;
    char *text = memory_new(allocator, size, 1);
    if (text == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a list of features");
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
    for (size_t i = 0; i < table->count; i++)
        if (is_known_to_llvm(&table->features[i]))
            callers[i] = add_pair(module, builder, cpu, table->features[i].name, text, size);
    callers[table->count] = add_pair(module, builder, cpu, table->base, text, size);
    LLVMDisposeBuilder(builder);
    memory_free(allocator, text, size);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef failure = LLVMRunPasses(module, "inline", machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (failure == NULL)
        return CAIRN_OK;
    char *message = LLVMGetErrorMessage(failure);
    error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM: %s", message);
    LLVMDisposeErrorMessage(message);
    return CAIRN_ERROR_LLVM;
}

/* ---- The features of one CPU ---- */

/* Whether LLVM's name means the oldest CPU of the architecture and ABI. */
static bool is_base_cpu(const char *name)
{
    static const char *const names[] = {"", "generic", "x86-64", "ppc64", "ppc64le"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Marks the features that a list turns on; a later entry overrides an earlier one. */
static void mark_listed(const char *list, const struct arch_feature_table *table, bool *needed)
{
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        const struct arch_feature *feature =
            length == 0 ? NULL : arch_find_feature(table, list + 1, length - 1);
        if (feature != NULL && (*list == '+' || *list == '-'))
            needed[feature - table->features] = *list == '+';
        list += length + (list[length] == ',');
    }
}

/* Marks the CPU's features. */
static enum cairn_status mark_features(const struct cpu *cpu, LLVMTargetMachineRef machine,
                                       const struct arch_feature_table *table,
                                       const struct cairn_allocator *allocator, bool *needed,
                                       struct cairn_error *error)
{
    if (table->count == 0 || (is_base_cpu(cpu->name) && cpu->features[0] == '\0'))
        return CAIRN_OK;
    size_t size = (table->count + 1) * sizeof(LLVMValueRef);
    LLVMValueRef *callers = memory_new(allocator, size, 1);
    if (callers == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a list of features");
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("cairn", context);
    char *triple = LLVMGetTargetMachineTriple(machine);
    LLVMSetTarget(module, triple);
    LLVMDisposeMessage(triple);
    enum cairn_status status = inline_pairs(module, machine, table, cpu, callers, allocator, error);
    if (status == CAIRN_OK && is_inlined(callers[table->count]))
        for (size_t i = 0; i < table->count; i++)
            needed[i] |= callers[i] != NULL && is_inlined(callers[i]);
    else if (status == CAIRN_OK && is_base_cpu(cpu->name))
        mark_listed(cpu->features, table, needed);
    else if (status == CAIRN_OK)
        status = error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                           "LLVM %d does not tell which features the CPU '%.60s' has: name the "
                           "features that the code may use instead",
                           LLVM_VERSION_MAJOR, cpu->name);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    memory_free(allocator, callers, size);
    return status;
}

/* ---- The CPUs of a module ---- */

struct cpu_list {
    const struct cairn_allocator *allocator;
    struct cpu *cpus; /* all are different */
    size_t count;
    size_t capacity;
};

static void release(struct cpu_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        memory_free_string(list->allocator, list->cpus[i].name);
        memory_free_string(list->allocator, list->cpus[i].features);
    }
    memory_free(list->allocator, list->cpus, list->capacity * sizeof *list->cpus);
}

static bool equals(const char *text, const char *other, unsigned length)
{
    return strncmp(text, other, length) == 0 && text[length] == '\0';
}

/* Adds the CPU of a function, which has the given texts where it has no attributes. Returns false
 * if memory runs out. */
static bool add_cpu(struct cpu_list *list, LLVMValueRef function, const char *default_name,
                    const char *default_features)
{
    unsigned name_length;
    unsigned features_length;
    const char *name = ir_string_attribute(function, "target-cpu", &name_length);
    const char *features = ir_string_attribute(function, "target-features", &features_length);
    if (name == NULL)
        name_length = (unsigned)strlen(name = default_name);
    if (features == NULL)
        features_length = (unsigned)strlen(features = default_features);
    for (size_t i = 0; i < list->count; i++)
        if (equals(list->cpus[i].name, name, name_length) &&
            equals(list->cpus[i].features, features, features_length))
            return true;
    struct cpu *cpus =
        array_reserve(list->allocator, list->cpus, list->count, 1, &list->capacity, sizeof *cpus);
    if (cpus == NULL)
        return false;
    list->cpus = cpus;
    struct cpu *cpu = &cpus[list->count++];
    *cpu = (struct cpu){memory_copy_string(list->allocator, name, name_length),
                        memory_copy_string(list->allocator, features, features_length)};
    return cpu->name != NULL && cpu->features != NULL;
}

/* Lists the CPUs that the module's functions are compiled for. */
static bool list_cpus(LLVMModuleRef module, LLVMTargetMachineRef machine, struct cpu_list *list)
{
    char *name = LLVMGetTargetMachineCPU(machine);
    char *features = LLVMGetTargetMachineFeatureString(machine);
    bool fits = true;
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL && fits;
         function = LLVMGetNextFunction(function))
        if (!LLVMIsDeclaration(function) &&
            LLVMGetLinkage(function) != LLVMAvailableExternallyLinkage)
            fits = add_cpu(list, function, name, features);
    LLVMDisposeMessage(name);
    LLVMDisposeMessage(features);
    return fits;
}

/* Returns the names of the marked features, or NULL. */
static char *join_names(const struct arch_feature_table *table, const bool *needed,
                        const struct cairn_allocator *allocator)
{
    char text[4096]; /* enough for all features of any architecture */
    size_t length = 0;
    for (size_t i = 0; i < table->count; i++)
        if (needed[i] && length < sizeof text)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s",
                                       length > 0 ? "," : "", table->features[i].name);
    return memory_copy_string(allocator, text, length);
}

enum cairn_status cpu_features_of_module(LLVMModuleRef module, LLVMTargetMachineRef machine,
                                         const struct cairn_allocator *allocator, char **features,
                                         struct cairn_error *error)
{
    const struct arch_feature_table *table = arch_features(types_architecture(module));
    struct cpu_list list = {.allocator = allocator};
    bool *needed = memory_new(allocator, table->count + 1, sizeof *needed);
    enum cairn_status status = CAIRN_OK;
    if (needed == NULL || !list_cpus(module, machine, &list))
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a list of CPUs");
    for (size_t i = 0; i < list.count && status == CAIRN_OK; i++)
        status = mark_features(&list.cpus[i], machine, table, allocator, needed, error);
    if (status == CAIRN_OK && (*features = join_names(table, needed, allocator)) == NULL)
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a list of features");
    memory_free(allocator, needed, (table->count + 1) * sizeof *needed);
    release(&list);
    return status;
}
