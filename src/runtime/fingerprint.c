/* Compares fingerprints of code with a machine. SPDX-License-Identifier: MIT */
#include "runtime/fingerprint.h"

#include "arch/features.h"
#include "base/error.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Names with commas between them, as many as there is space for. */
struct list {
    char text[2048]; /* enough for all features of any architecture */
    size_t length;
    size_t count; /* of all names */
};

static void add_name(struct list *list, const char *name, size_t length)
{
    size_t left = sizeof list->text - list->length;
    list->count++;
    if (length + 2 > left)
        return;
    list->length += (size_t)snprintf(list->text + list->length, left, "%s%.*s",
                                     list->length > 0 ? "," : "", (int)length, name);
}

/* Lists the needed features that the machine lacks, or that Cairn does not know. */
static void list_missing(const char *needed, const struct arch_feature_table *table,
                         const uint64_t *words, struct list *missing)
{
    while (*needed != '\0') {
        size_t length = strcspn(needed, ",");
        const struct arch_feature *feature = arch_find_feature(table, needed, length);
        if (length > 0 && (feature == NULL || !arch_has_feature(feature, words)))
            add_name(missing, needed, length);
        needed += length + (needed[length] == ',');
    }
}

enum cairn_status fingerprint_compare(const struct manifest_target *target,
                                      const struct cairn_arch *host, const uint64_t *words,
                                      const struct cairn_load_options *options,
                                      struct cairn_error *error)
{
    const struct arch_feature_table *table = host->features;
    struct list missing = {.length = 0};
    struct list available = {.length = 0};
    if (target->architecture != host->architecture)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "the object was compiled for %s (%.80s), this process runs on %s",
                         cairn_architecture_name(target->architecture), target->triple,
                         cairn_architecture_name(host->architecture));
    list_missing(target->features, table, words, &missing);
    if (missing.count == 0)
        return CAIRN_OK;
    for (size_t i = 0; i < table->count; i++)
        if (arch_has_feature(&table->features[i], words))
            add_name(&available, table->features[i].name, strlen(table->features[i].name));
    if (options->note_features != NULL)
        options->note_features(options->user, target->features, available.text);
    return error_set(
        error, CAIRN_ERROR_UNSUPPORTED, 0,
        "the object's code needs features that this CPU lacks: %.72s (needed: %.60s%s; "
        "this CPU has: %.60s%s)",
        missing.text, target->features, strlen(target->features) > 60 ? "..." : "", available.text,
        available.length > 60 ? "..." : "");
}

static uint64_t host_words[ARCH_FEATURE_WORDS];

static void read_host(void) { arch_host_features(host_words); }

/* CPUID traps on virtual machines, and takes 70 us in total there, so it is executed once in a
 * process, and not for objects that need nothing. */
enum cairn_status fingerprint_check(const struct manifest_target *target,
                                    const struct cairn_load_options *options,
                                    struct cairn_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (target->features[0] == '\0' && target->architecture == arch_host()->architecture)
        return CAIRN_OK;
    pthread_once(&once, read_host);
    return fingerprint_compare(target, arch_host(), host_words, options, error);
}
