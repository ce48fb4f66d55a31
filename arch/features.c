/* Finds features of CPUs. SPDX-License-Identifier: MIT */
#include "arch/features.h"

#include <string.h>

const struct arch_feature_table *arch_features(enum cairn_architecture architecture)
{
    static const struct arch_feature_table none;
    switch (architecture) {
    case CAIRN_ARCHITECTURE_X86_64:
        return &x86_64_features;
    case CAIRN_ARCHITECTURE_AARCH64:
        return &aarch64_features;
    case CAIRN_ARCHITECTURE_PPC64_ELFV2:
    case CAIRN_ARCHITECTURE_PPC64_ELFV1:
        return &ppc64_features;
    case CAIRN_ARCHITECTURE_UNKNOWN:
    case CAIRN_ARCHITECTURE_SYSTEMZ:
    case CAIRN_ARCHITECTURE_RISCV64:
        break;
    }
    return &none;
}

const struct arch_feature *arch_find_feature(const struct arch_feature_table *table,
                                             const char *name, size_t length)
{
    for (size_t i = 0; i < table->count; i++)
        if (strncmp(table->features[i].name, name, length) == 0 &&
            table->features[i].name[length] == '\0')
            return &table->features[i];
    return NULL;
}

bool arch_has_feature(const struct arch_feature *feature, const uint64_t words[ARCH_FEATURE_WORDS])
{
    return (words[feature->word] & feature->bits) == feature->bits &&
           (words[ARCH_FEATURE_STATE] & feature->state) == feature->state;
}
