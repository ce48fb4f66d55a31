/* SPDX-License-Identifier: MIT */
#include "sanmd/readers.h"

uint64_t readers_changes(const struct readers *readers) { return atomic_load(&readers->changes); }

uint64_t readers_deadline(const struct readers *readers)
{
    return readers_changes(readers) + READERS_PHASES;
}

static bool is_drained(const struct readers *readers, uint64_t phase)
{
    for (unsigned i = 0; i < READERS_STRIPES; i++)
        if (atomic_load(&readers->stripes[i].running[phase]) != 0)
            return false;
    return true;
}

void readers_advance(struct readers *readers)
{
    for (unsigned i = 0; i < READERS_PHASES; i++) {
        uint64_t changes = readers_changes(readers);
        if (!is_drained(readers, (changes + 1) % READERS_PHASES))
            return;
        atomic_store(&readers->changes, changes + 1);
    }
}
