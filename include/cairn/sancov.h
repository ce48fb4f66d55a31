/*
 * cairn/sancov.h - decodes the section __sancov_pcs, in which clang's SanitizerCoverage writes the
 * address of each coverage point (clang -fsanitize-coverage=…,pc-table).
 *
 * An entry is an address and a number with flags, each in the size of the target's pointers. Entry
 * i of a linked program or library is that of guard, counter or flag number i, which are in the
 * sections __sancov_guards, __sancov_cntrs and __sancov_bools.
 *
 *     struct cairn_sancov_point point;
 *     for (size_t offset = 0; offset < section.size; use(&point))
 *         if (cairn_sancov_read(&section, 8, &offset, &point, &error) != CAIRN_OK)
 *             return complain(&error);
 *
 * In position-independent programs and libraries, the addresses are the results of dynamic
 * relocations, which cairn/object.h applies to the sections that it reads.
 *
 * Threads: every function is thread-safe and async-signal-safe: it accesses only its arguments.
 *
 * Source: Clang, "SanitizerCoverage", section "PC-Table".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_SANCOV_H
#define CAIRN_SANCOV_H

#include <cairn/section.h>
#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The name of the section in ELF files. */
#define CAIRN_SANCOV_SECTION "__sancov_pcs"

/** Flags of a coverage point: bits. LLVM 14 to 22 write no other ones. */
enum {
    CAIRN_SANCOV_FUNCTION_ENTRY = 1 << 0 /**< the point is the entry of a function */
};

/** A coverage point. A plain value, which may be copied. */
struct cairn_sancov_point {
    uint64_t index;   /**< number of the point in its section, from 0 */
    uint64_t address; /**< address of the basic block, or of the function if the point is its entry;
                           in PPC64 ELFv1, the latter is that of a function descriptor */
    uint64_t flags;   /**< bits CAIRN_SANCOV_… */
};

/**
 * Reads the coverage point at `*offset` of the section, and advances `*offset` to the next one.
 * `address_bytes` is the size of the target's pointers, 4 or 8. Unknown flags are not an error.
 *
 * Errors: TRUNCATED (the section ends inside the entry); ARGUMENT (`*offset` is not in the section
 * or not that of an entry, or another size of pointers). The message names the entry, and
 * `error->offset` is the place in the section. `*offset` and `*point` are unchanged after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_sancov_read(const struct cairn_section *section,
                                                               unsigned address_bytes,
                                                               size_t *offset,
                                                               struct cairn_sancov_point *point,
                                                               struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
