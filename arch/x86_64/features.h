/*
 * arch/x86_64/features.h - the words of x86-64's features: results of CPUID.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_X86_64_FEATURES_H
#define ARCH_X86_64_FEATURES_H

#include "arch/features.h"

/* ORDER CPUID: the order of arch_host_features. Each word is one register of a leaf and subleaf. */
enum x86_64_feature_word {
    X86_64_1_ECX,
    X86_64_7_0_EBX,
    X86_64_7_0_ECX,
    X86_64_7_0_EDX,
    X86_64_7_1_EAX,
    X86_64_7_1_EDX,
    X86_64_80000001_ECX,
    X86_64_1E_1_EAX,
    X86_64_24_0_EBX,
    X86_64_FEATURE_WORD_COUNT
};
_Static_assert((int)X86_64_FEATURE_WORD_COUNT <= (int)ARCH_FEATURE_STATE, "the last word is XCR0");

#endif
