/* SPDX-License-Identifier: MIT */
#include "tools/cli/suggest.h"

#include <string.h>

static size_t least(size_t one, size_t other) { return one < other ? one : other; }

/* Returns how many characters must be added, removed, changed, or exchanged with the next one, to
 * make one word of the other. Both have at most SUGGEST_LENGTH_MAX characters. */
static size_t edit_distance(const char *one, const char *other)
{
    size_t rows[3][SUGGEST_LENGTH_MAX + 1] = {
        {0}}; /* of the prefix before last, the last, and this one */
    size_t other_length = strlen(other);
    for (size_t j = 0; j <= other_length; j++)
        rows[2][j] = j;
    for (size_t i = 1; one[i - 1] != '\0'; i++) {
        memmove(rows[0], rows[1], 2 * sizeof rows[0]);
        rows[2][0] = i;
        for (size_t j = 1; j <= other_length; j++) {
            size_t changed = rows[1][j - 1] + (one[i - 1] != other[j - 1]);
            rows[2][j] = least(changed, least(rows[1][j], rows[2][j - 1]) + 1);
            if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
                rows[2][j] = least(rows[2][j], rows[0][j - 2] + 1);
        }
    }
    return rows[2][other_length];
}

void suggestion_consider(struct suggestion *suggestion, const char *known)
{
    size_t length = strlen(known);
    size_t limit = length / 3 > 0 ? length / 3 : 1;
    if (length > SUGGEST_LENGTH_MAX || strlen(suggestion->word) > SUGGEST_LENGTH_MAX)
        return;
    size_t distance = edit_distance(suggestion->word, known);
    if (distance > limit || (suggestion->nearest != NULL && distance >= suggestion->distance))
        return;
    suggestion->nearest = known;
    suggestion->distance = distance;
}
