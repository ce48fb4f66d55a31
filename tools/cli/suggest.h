/*
 * tools/cli/suggest.h - finding the word that was meant.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CLI_SUGGEST_H
#define TOOLS_CLI_SUGGEST_H

#include <stddef.h>

/* Longer words are not compared. */
enum { SUGGEST_LENGTH_MAX = 32 };

/* The known word that is nearest to a given one. */
struct suggestion {
    const char *word; /* what was given */
    const char *nearest;
    size_t distance;
};

/* Considers a known word. It is too far if more than a third of its characters, but at least one,
 * must be changed, and then `nearest` stays as it is. */
void suggestion_consider(struct suggestion *suggestion, const char *known);

#endif
