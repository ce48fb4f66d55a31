/*
 * format/bound_sites.h - the section `.cairn.sites` of an object: what its sites are bound to when
 * it is loaded, by names (format/names.h).
 *
 * The section is a sequence of entries of little-endian words of 8 bytes: the ID of the site, the
 * kind of what it is bound to, the number of names, and the IDs of the names. A section may have
 * several entries for an ID, which must be equal.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_BOUND_SITES_H
#define FORMAT_BOUND_SITES_H

#include <stdbool.h>
#include <stdint.h>

#define BOUND_SITES_SECTION ".cairn.sites"

enum { BOUND_SITE_WORDS = 3, BOUND_SITE_WORD_BYTES = 8 };

enum bound_site_kind {
    BOUND_SITE_CACHE = 1,       /* options of an inline cache */
    BOUND_SITE_CALL = 2,        /* a target that the site calls */
    BOUND_SITE_ASSUMPTIONS = 3, /* a target, then assumptions */
    BOUND_SITE_KIND_LAST = BOUND_SITE_ASSUMPTIONS
};

/* Whether a site of a valid kind may have so many names. */
static inline bool bound_site_has_count(enum bound_site_kind kind, uint64_t count)
{
    return kind == BOUND_SITE_ASSUMPTIONS ? count >= 2 : count == 1;
}

#endif
