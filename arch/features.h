/*
 * arch/features.h - features of CPUs by LLVM's names, and which of them the host has.
 *
 * Each architecture has one table of the features that code may need beyond the architecture's
 * oldest CPU. A feature is in the table if a program can find out whether its CPU has it. Not in
 * the table are features that only tune code, those that only kernels use, those whose
 * instructions do nothing on older CPUs (AArch64's BTI), and those that kernels do not report.
 *
 * The tables are pure, so every architecture's is built and tested on every host. Only
 * arch_host_features, in each architecture's host.c, asks the machine.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_FEATURES_H
#define ARCH_FEATURES_H

#include <cairn/architecture.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARCH_FEATURE_WORDS = 16 };

/* A feature. The CPU has it if all of `bits` are set in word `word` of what the host reports, and
 * all of `state` in the last word: the registers that the kernel saves for a thread. */
struct arch_feature {
    char name[22]; /* in the table itself, which then needs no relocations */
    uint8_t word;
    /* The first and the last major version of LLVM that knows the name, of those that Cairn is
     * tested with; 0 if there is no such limit. LLVM prints a warning at other names. */
    uint8_t first_llvm;
    uint8_t last_llvm;
    uint64_t bits;
    uint64_t state;
};

enum { ARCH_FEATURE_STATE = ARCH_FEATURE_WORDS - 1 };

struct arch_feature_table {
    const struct arch_feature *features;
    size_t count;
    const char *base; /* another feature, which all CPUs of the architecture have */
    /* The level of vector registers (arch_host_vector_level) that code for the architecture's
     * oldest CPU can hold. */
    uint32_t base_level;
    /* Returns the level that code with a feature can hold. NULL: no feature changes the level. */
    uint32_t (*feature_level)(const struct arch_feature *feature);
    /* A feature of the oldest CPU without which code can hold only a lower level; or NULL. */
    const char *wide;
    uint32_t narrow_level;
};

extern const struct arch_feature_table x86_64_features;
extern const struct arch_feature_table aarch64_features;
extern const struct arch_feature_table ppc64_features;

/* Returns the architecture's table; an empty one if Cairn does not load code for it. */
const struct arch_feature_table *arch_features(enum cairn_architecture architecture);

/* Returns a feature by its name, which has `length` bytes; NULL if it is not in the table. */
const struct arch_feature *arch_find_feature(const struct arch_feature_table *table,
                                             const char *name, size_t length);

/* Returns the level of vector registers that code can hold which may use these features: names with
 * commas between them, or "-" and the name of the table's feature `wide`, which it does not use.
 * UINT32_MAX if a name is not in the table. */
uint32_t arch_features_level(const struct arch_feature_table *table, const char *names);

/* Whether a machine that reports these words has the feature. */
bool arch_has_feature(const struct arch_feature *feature, const uint64_t words[ARCH_FEATURE_WORDS]);

/* Reads what the host reports. The meaning of the words is at the top of the architecture's
 * features.c. */
void arch_host_features(uint64_t words[ARCH_FEATURE_WORDS]);

#endif
