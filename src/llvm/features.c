/*
 * Reads a function's "target-features", such as "+avx2,-avx512f". Later entries override earlier
 * ones.
 *
 * Sources: llvm/lib/Target/X86/X86.td (which feature implies which), X86Subtarget.h
 * (useAVX512Regs), and trials with LLVM 14 to 19.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/features.h"

#include <stdlib.h>
#include <string.h>

enum { SSE_BITS = 128, AVX_BITS = 256, AVX512_BITS = 512 };

static const char *attribute(LLVMValueRef function, const char *name, unsigned *length)
{
    LLVMAttributeRef found = LLVMGetStringAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, name, (unsigned)strlen(name));
    return found == NULL ? NULL : LLVMGetStringAttributeValue(found, length);
}

static bool begins_with(const char *text, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

static bool is(const char *text, size_t length, const char *name)
{
    return length == strlen(name) && begins_with(text, length, name);
}

static unsigned at_least(unsigned bits, unsigned others) { return bits > others ? bits : others; }

static unsigned at_most(unsigned bits, unsigned others) { return bits < others ? bits : others; }

/* Returns the register width after a feature is turned on. Every AVX-512 feature implies registers
 * of 512 bits. */
static unsigned add_feature(unsigned bits, const char *name, size_t length)
{
    if (begins_with(name, length, "avx512"))
        return AVX512_BITS;
    return begins_with(name, length, "avx") ? at_least(bits, AVX_BITS) : bits;
}

/* Returns the register width after a feature is turned off, which turns off every feature that
 * implies it. */
static unsigned take_feature(unsigned bits, const char *name, size_t length)
{
    if (is(name, length, "avx") || begins_with(name, length, "sse"))
        return SSE_BITS;
    if (is(name, length, "avx2") || is(name, length, "avx512f") || is(name, length, "evex512"))
        return at_most(bits, AVX_BITS);
    return bits;
}

static bool has_word(const char *text, size_t length, const char *word)
{
    return text != NULL && memmem(text, length, word, strlen(word)) != NULL;
}

/* Whether LLVM may avoid the widest registers, because the function asks for that or the processor
 * prefers it. */
static bool may_prefer_narrow(LLVMValueRef function, const char *features, size_t features_length)
{
    unsigned length;
    const char *processor = attribute(function, "target-cpu", &length);
    bool is_plain = processor == NULL || is(processor, length, "x86-64");
    return !is_plain || attribute(function, "prefer-vector-width", &length) != NULL ||
           has_word(features, features_length, "+prefer-");
}

/* Whether the function may have vectors of the widest registers. An attribute can exclude them. */
static bool needs_widest(LLVMValueRef function)
{
    unsigned length;
    const char *wanted = attribute(function, "min-legal-vector-width", &length);
    return wanted == NULL || strtoul(wanted, NULL, 10) >= AVX512_BITS;
}

static unsigned limit(LLVMValueRef function, const char *features, size_t length)
{
    bool has_widest = needs_widest(function) || !may_prefer_narrow(function, features, length);
    return has_widest ? AVX512_BITS : AVX_BITS;
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

/* Returns the register width in bits that the list alone implies. */
static unsigned read_features(const char *features, size_t length)
{
    unsigned bits = SSE_BITS;
    struct feature feature;
    for (const char *end = features + length; next_feature(&features, end, &feature);) {
        if (feature.sign == '+')
            bits = add_feature(bits, feature.name, feature.length);
        else if (feature.sign == '-')
            bits = take_feature(bits, feature.name, feature.length);
    }
    return bits;
}

unsigned features_vector_bits(LLVMValueRef function)
{
    unsigned length;
    const char *features =
        function == NULL ? NULL : attribute(function, "target-features", &length);
    if (features == NULL)
        return SSE_BITS;
    return at_most(read_features(features, length), limit(function, features, length));
}

bool features_has(LLVMValueRef function, const char *name, bool by_default)
{
    unsigned length;
    bool has = by_default;
    struct feature feature;
    const char *features =
        function == NULL ? NULL : attribute(function, "target-features", &length);
    if (features == NULL)
        return has;
    for (const char *end = features + length; next_feature(&features, end, &feature);)
        if (is(feature.name, feature.length, name) && (feature.sign == '+' || feature.sign == '-'))
            has = feature.sign == '+';
    return has;
}
