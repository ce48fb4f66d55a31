/*
 * cairn/faultmap.h - decoding LLVM's fault maps: which instructions may fault instead of a check
 * for null, and where the code goes on if they do.
 *
 * LLVM writes them to `.llvm_faultmaps` where a function has implicit null checks
 * (-enable-implicit-null-checks, and branches with the metadata make.implicit). A linked program
 * has one map for each of its object files, one behind the other. Views point into the caller's
 * bytes; nothing is allocated.
 *
 *     struct cairn_faultmap map;
 *     struct cairn_faultmap_function function;
 *     size_t offset = 0;
 *     while (offset < section.size) {
 *         if (cairn_faultmap_read(&section, &offset, &map, &error) != CAIRN_OK)
 *             return complain(&error);
 *         for (bool more = cairn_faultmap_first(&map, &function); more;
 *              more = cairn_faultmap_next(&map, &function))
 *             for (uint32_t i = 0; i < function.fault_count; i++)
 *                 use(&function, cairn_faultmap_fault(&map, &function, i));
 *     }
 *
 * All functions here are thread-safe and async-signal-safe: they touch only their arguments.
 *
 * Source: LLVM, "FaultMaps and implicit checks", section "The FaultMap Section".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_FAULTMAP_H
#define CAIRN_FAULTMAP_H

#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The section's name as LLVM writes it to ELF files, and on Darwin. */
#define CAIRN_FAULTMAP_SECTION ".llvm_faultmaps"
#define CAIRN_FAULTMAP_SECTION_DARWIN "__llvm_faultmaps"

/** One map of a section, checked from its first to its last byte. */
struct cairn_faultmap {
    const uint8_t *bytes;
    size_t size;
    size_t section_offset; /**< where it begins in its section */
    enum cairn_byte_order byte_order;
    uint8_t version; /**< 1 */
    uint32_t function_count;
};

/** A function with such instructions. Plain values; copy it freely. */
struct cairn_faultmap_function {
    uint64_t address;
    uint32_t fault_count;
    uint32_t index; /**< of the map's functions */
    size_t offset;  /**< from the map's first byte */
};

/** What the instruction does that may fault. */
enum cairn_fault_kind { CAIRN_FAULT_LOAD = 1, CAIRN_FAULT_LOAD_STORE = 2, CAIRN_FAULT_STORE = 3 };

/** "load", "load and store", "store"; "unknown" for others; static. */
CAIRN_API const char *cairn_fault_kind_name(enum cairn_fault_kind kind);

struct cairn_fault {
    enum cairn_fault_kind kind;
    uint32_t faulting_offset; /**< bytes, of the instruction from the function's begin on */
    uint32_t handler_offset;  /**< of where the code goes on if it faults */
};

/**
 * Reads and checks the whole map at `*offset` of the section, and moves `*offset` on to the next
 * one, or to the section's end. TRUNCATED, VERSION, CORRUPT (a kind that is none): the sentence
 * says of which function, and `error->offset` where; `*offset` is then as it was, and `*map` has
 * the functions before that one, none if the header is no good. ARGUMENT if `*offset` is not in the
 * section; nothing is written then.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_faultmap_read(
    const struct cairn_section *section, size_t *offset, struct cairn_faultmap *map,
    struct cairn_error *error);

/** The map's first function; false if it has none. */
CAIRN_API bool cairn_faultmap_first(const struct cairn_faultmap *map,
                                    struct cairn_faultmap_function *function);
/** Moves on to the next one; false behind the last, and `*function` is then as it was. */
CAIRN_API bool cairn_faultmap_next(const struct cairn_faultmap *map,
                                   struct cairn_faultmap_function *function);

/** Number `index` of the function's, which has to be less than `fault_count`. */
CAIRN_API struct cairn_fault cairn_faultmap_fault(const struct cairn_faultmap *map,
                                                  const struct cairn_faultmap_function *function,
                                                  uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
