/*
 * cairn/sanmd_runtime.h - queries in a running program that was compiled with clang's
 * -fexperimental-sanitize-metadata: whether an instruction is an atomic access, and whether a
 * function was compiled with the option. It is a separate library, libcairn-sanmd.
 *
 *     if (cairn_sanmd_find_function(pc, &function) &&
 *         (function.features & CAIRN_SANMD_FEATURE_ATOMICS) != 0 && !cairn_sanmd_is_atomic(pc))
 *         … clang's metadata shows that the instruction at `pc` is a plain access …
 *
 * Threads: any number of threads may call every function, while other threads open and close
 * libraries. It takes no locks, does not wait or allocate, and is async-signal-safe.
 *
 * Functions and accesses of a library are found until it is closed.
 *
 * See cairn-metadata(7) (doc/metadata.md): linking, global state, memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_SANMD_RUNTIME_H
#define CAIRN_SANMD_RUNTIME_H

#include <cairn/sanmd.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returns whether `pc` is the address of an instruction that was generated from an atomic access:
 *  of its first byte, including prefixes. */
CAIRN_API bool cairn_sanmd_is_atomic(uint64_t pc);

/**
 * Finds the covered function that contains `pc`. Returns false if no function does, and `*function`
 * is then unchanged. If a linker has folded several functions into the same code, the one with most
 * features is found.
 */
CAIRN_API bool cairn_sanmd_find_function(uint64_t pc, struct cairn_sanmd_entry *function);

/**
 * Calls `visit` for each covered function that begins in [begin, end), or for each atomic access
 * there, until it returns false: in ascending order of address in each section of metadata. For
 * accesses, only `address` is set. `visit` may do all that the caller may, including queries and
 * dlclose. Libraries that are opened meanwhile are not visited. Returns true if all were visited.
 */
CAIRN_API bool cairn_sanmd_visit(enum cairn_sanmd_kind kind, uint64_t begin, uint64_t end,
                                 bool (*visit)(void *data, const struct cairn_sanmd_entry *entry),
                                 void *data);

/** A section of metadata that was passed to a callback. A plain value. */
struct cairn_sanmd_range {
    enum cairn_sanmd_kind kind;
    /** The version that was passed to the callback. CAIRN_SANMD_WIDE_ADDRESSES is also set if the
     *  caller should have set it. */
    uint32_t version;
    uint64_t section_address; /**< address of the metadata */
    uint64_t section_size;
    uint64_t code_begin; /**< address of the first function or access; 0 without any */
    uint64_t code_end;   /**< address after the last function or access */
    size_t entry_count;  /**< number of functions or accesses that queries find */
    size_t table_bytes;  /**< size of the library's tables for them, in bytes */
    /** CAIRN_OK, or the error in the metadata, as returned by cairn_sanmd_read. Queries find the
     * entries before the error, but not those after it. If it is CAIRN_ERROR_VERSION, there are no
     * entries.
     */
    struct cairn_error error;
};

/** Calls `visit` for each section of metadata, until it returns false. Returns true if all were
 *  visited. */
CAIRN_API bool cairn_sanmd_visit_ranges(bool (*visit)(void *data,
                                                      const struct cairn_sanmd_range *range),
                                        void *data);

/** Numbers about the library's tables. */
struct cairn_sanmd_statistics {
    size_t range_count;
    size_t faulty_range_count; /**< number of sections with an error */
    size_t function_count;
    size_t atomic_count;
    size_t table_bytes;      /**< memory of the tables in use */
    size_t waiting_bytes;    /**< memory of closed libraries' tables that may be in use */
    size_t lost_range_count; /**< sections that were ignored for lack of memory, since the start */
};

/** Writes the current numbers to `*statistics`. Each is read separately, so they may not match each
 *  other. */
CAIRN_API void cairn_sanmd_get_statistics(struct cairn_sanmd_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
