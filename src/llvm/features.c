/*
 * Reads a function's "target-features", such as "+avx2,-avx512f". Later entries override earlier
 * ones.
 *
 * What a function can hold in vector registers is an upper bound: exits save it
 * (doc/exits-and-frames.md).
 *
 * Sources: llvm/lib/Target/X86/X86.td (which feature implies which), X86Subtarget.h
 * (useAVX512Regs), and trials with LLVM 14 to 19.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/features.h"

#include "arch/features.h"
#include "llvm/ir.h"

#include <stdlib.h>
#include <string.h>

enum { SSE_BITS = 128, AVX_BITS = 256, AVX512_BITS = 512 };

static bool begins_with(const char *text, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

static bool is(const char *text, size_t length, const char *name)
{
    return length == strlen(name) && begins_with(text, length, name);
}

/* One entry of the list, as "+name" or "-name". */
struct feature {
    char sign; /* '+' or '-'; any other character if the entry is neither */
    const char *name;
    size_t length;
};

/* Removes the first entry from the list. Returns false at the end of the list. */
static bool next_feature(const char **features, const char *end, struct feature *feature)
{
    if (*features >= end)
        return false;
    const char *comma = memchr(*features, ',', (size_t)(end - *features));
    const char *stop = comma == NULL ? end : comma;
    size_t name_length = (size_t)(stop - *features) - (stop > *features);
    *feature = (struct feature){**features, *features + 1, name_length};
    *features = stop + 1;
    return true;
}

/* Returns the register width after an entry of the list. Every AVX-512 feature implies registers of
 * 512 bits. Turning a feature off turns off every feature that implies it. */
static unsigned apply(unsigned bits, const struct feature *feature)
{
    const char *name = feature->name;
    size_t length = feature->length;
    if (feature->sign == '+' && begins_with(name, length, "avx512"))
        return AVX512_BITS;
    if (feature->sign == '+' && begins_with(name, length, "avx"))
        return bits > AVX_BITS ? bits : AVX_BITS;
    if (feature->sign != '-')
        return bits;
    if (is(name, length, "avx") || begins_with(name, length, "sse"))
        return SSE_BITS;
    if (is(name, length, "avx2") || is(name, length, "avx512f") || is(name, length, "evex512"))
        return bits < AVX_BITS ? bits : AVX_BITS;
    return bits;
}

/* LLVM may use only 256 bits of AVX-512's registers: if the function contains no wider vectors and
 * prefers narrow ones, or its processor may. */
unsigned features_vector_bits(LLVMValueRef function)
{
    unsigned length;
    unsigned bits = SSE_BITS;
    struct feature feature;
    const char *features = ir_string_attribute(function, "target-features", &length);
    if (features == NULL)
        return bits;
    for (const char *at = features; next_feature(&at, features + length, &feature);)
        bits = apply(bits, &feature);
    unsigned other;
    const char *wanted = ir_string_attribute(function, "min-legal-vector-width", &other);
    if (bits <= AVX_BITS || wanted == NULL || strtoul(wanted, NULL, 10) >= AVX512_BITS)
        return bits;
    bool prefers_narrow = ir_string_attribute(function, "prefer-vector-width", &other) != NULL ||
                          memmem(features, length, "+prefer-", strlen("+prefer-")) != NULL;
    const char *processor = ir_string_attribute(function, "target-cpu", &other);
    return prefers_narrow || (processor != NULL && !is(processor, other, "x86-64")) ? AVX_BITS
                                                                                    : bits;
}

bool features_has(LLVMValueRef function, const char *name, bool by_default)
{
    unsigned length;
    bool has = by_default;
    struct feature feature;
    const char *features = ir_string_attribute(function, "target-features", &length);
    if (features == NULL)
        return has;
    for (const char *at = features; next_feature(&at, features + length, &feature);)
        if (is(feature.name, feature.length, name) && (feature.sign == '+' || feature.sign == '-'))
            has = feature.sign == '+';
    return has;
}

/* ---- Registers that code can hold ---- */

/* What a function's registers are, from what code for any CPU has to the least. Functions of a
 * module are compared by it, so that the widest decides. */
enum width { WIDTH_BASE, WIDTH_AVX, WIDTH_ANY };

static bool is_one_of(const char *text, size_t length, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is(text, length, names[i]))
            return true;
    return false;
}

static enum width width_of_x86_64_cpu(const char *name, size_t length)
{
    static const char *const without_avx[] = {"", "generic", "x86-64", "x86-64-v2"};
    if (is_one_of(name, length, without_avx, sizeof without_avx / sizeof *without_avx))
        return WIDTH_BASE;
    return is(name, length, "x86-64-v3") ? WIDTH_AVX : WIDTH_ANY;
}

/* A feature that Cairn does not know may be a new one that implies AVX-512 if its name is like
 * that of a vector extension. */
static enum width width_of_x86_64_feature(const struct feature *feature)
{
    const struct arch_feature_table *table = arch_features(CAIRN_ARCHITECTURE_X86_64);
    const struct arch_feature *known = arch_find_feature(table, feature->name, feature->length);
    if (known == NULL)
        return begins_with(feature->name, feature->length, "avx") ||
                       begins_with(feature->name, feature->length, "amx")
                   ? WIDTH_ANY
                   : WIDTH_BASE;
    uint32_t level = table->feature_level(known);
    return level == table->base_level ? WIDTH_BASE : WIDTH_BASE + (level - table->base_level);
}

/* Returns the width of x86-64 code. A feature that is turned off turns off those that imply it. */
static enum width width_on_x86_64(const char *cpu, size_t cpu_length, const char *features,
                                  size_t length)
{
    enum width width = width_of_x86_64_cpu(cpu, cpu_length);
    struct feature feature;
    for (const char *at = features; next_feature(&at, features + length, &feature);) {
        enum width own = WIDTH_BASE;
        if (feature.sign == '+')
            own = width_of_x86_64_feature(&feature);
        else if (feature.sign == '-' && (is(feature.name, feature.length, "avx") ||
                                         begins_with(feature.name, feature.length, "sse")))
            width = WIDTH_BASE;
        else if (feature.sign == '-' && width == WIDTH_ANY &&
                 (is(feature.name, feature.length, "avx2") ||
                  is(feature.name, feature.length, "avx512f")))
            width = WIDTH_AVX;
        width = own > width ? own : width;
    }
    return width;
}

/* Returns the width of PPC64 code: "any" unless VSX is turned off, and no feature after that may
 * imply it. */
static enum width width_on_ppc64(const char *features, size_t length)
{
    enum width width = WIDTH_ANY;
    struct feature feature;
    for (const char *at = features; next_feature(&at, features + length, &feature);)
        if (feature.sign == '-' && (is(feature.name, feature.length, "vsx") ||
                                    is(feature.name, feature.length, "altivec")))
            width = WIDTH_BASE;
        else if (feature.sign == '+' && !is(feature.name, feature.length, "altivec"))
            width = WIDTH_ANY;
    return width;
}

static enum width width_of_function(LLVMValueRef function, enum cairn_architecture architecture,
                                    const char *default_cpu, const char *default_features)
{
    unsigned cpu_length;
    unsigned length;
    const char *cpu = ir_string_attribute(function, "target-cpu", &cpu_length);
    const char *features = ir_string_attribute(function, "target-features", &length);
    if (cpu == NULL)
        cpu_length = (unsigned)strlen(cpu = default_cpu);
    if (features == NULL)
        length = (unsigned)strlen(features = default_features);
    return architecture == CAIRN_ARCHITECTURE_X86_64
               ? width_on_x86_64(cpu, cpu_length, features, length)
               : width_on_ppc64(features, length);
}

const char *features_of_vectors(LLVMModuleRef module, enum cairn_architecture architecture,
                                LLVMTargetMachineRef machine)
{
    enum width width = WIDTH_BASE;
    if (architecture == CAIRN_ARCHITECTURE_AARCH64)
        return "";
    char *cpu = LLVMGetTargetMachineCPU(machine);
    char *features = LLVMGetTargetMachineFeatureString(machine);
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function)) {
        enum width own = LLVMIsDeclaration(function)
                             ? WIDTH_BASE
                             : width_of_function(function, architecture, cpu, features);
        width = own > width ? own : width;
    }
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    if (width == WIDTH_ANY)
        return NULL;
    if (architecture != CAIRN_ARCHITECTURE_X86_64)
        return "-vsx";
    return width == WIDTH_AVX ? "avx" : "";
}
