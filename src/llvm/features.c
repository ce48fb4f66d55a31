/*
 * Reads a function's "target-features", such as "+avx2,-avx512f". Later entries override earlier
 * ones.
 *
 * Sources: llvm/lib/Target/X86/X86.td (which feature implies which), X86Subtarget.h
 * (useAVX512Regs), and trials with LLVM 14 to 19.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/ir.h"
#include "llvm/types.h"

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
