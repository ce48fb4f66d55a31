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

static uint32_t level_of_feature(const struct arch_feature_table *table, const char *name,
                                 size_t length)
{
    const struct arch_feature *feature = arch_find_feature(table, name, length);
    if (feature == NULL)
        return UINT32_MAX;
    return table->feature_level == NULL ? table->base_level : table->feature_level(feature);
}

uint32_t arch_features_level(const struct arch_feature_table *table, const char *names)
{
    uint32_t level = table->base_level;
    while (*names != '\0') {
        size_t length = strcspn(names, ",");
        bool is_narrow = *names == '-' && table->wide != NULL &&
                         length == 1 + strlen(table->wide) &&
                         memcmp(names + 1, table->wide, length - 1) == 0;
        uint32_t own = is_narrow || length == 0 ? 0 : level_of_feature(table, names, length);
        if (is_narrow)
            level = table->narrow_level;
        level = own > level ? own : level;
        names += length + (names[length] == ',');
    }
    return level;
}

bool arch_has_feature(const struct arch_feature *feature, const uint64_t words[ARCH_FEATURE_WORDS])
{
    return (words[feature->word] & feature->bits) == feature->bits &&
           (words[ARCH_FEATURE_STATE] & feature->state) == feature->state;
}
