/*
 * sanmd/callbacks.h - what constructors and destructors of code with metadata call.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SANMD_CALLBACKS_H
#define SANMD_CALLBACKS_H

#include <cairn/status.h>
#include <stdint.h>

/* Clang declares them in each program. A loader (a JIT) that has such sections in memory may do the
 * same, and call them under the same rules. */

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-*): clang has given them their names. */

/*
 * Adds the covered functions of the section of metadata in [start, end), which must not change
 * until this function returns. The same section may be added several times. An empty section is
 * ignored.
 */
CAIRN_API void __sanitizer_metadata_covered_add(uint32_t version, const void *start,
                                                const void *end);

/* Removes covered functions. It must be called once for each _add with the same section, before
 * other code is loaded at their addresses. A section that was not added is ignored. */
CAIRN_API void __sanitizer_metadata_covered_del(uint32_t version, const void *start,
                                                const void *end);

/* Adds atomic accesses, as __sanitizer_metadata_covered_add. */
CAIRN_API void __sanitizer_metadata_atomics_add(uint32_t version, const void *start,
                                                const void *end);

/* Removes atomic accesses, as __sanitizer_metadata_covered_del. */
CAIRN_API void __sanitizer_metadata_atomics_del(uint32_t version, const void *start,
                                                const void *end);

/* NOLINTEND(bugprone-reserved-identifier,cert-*) */

#endif
