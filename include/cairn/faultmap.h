/*
 * cairn/faultmap.h - decoding of LLVM's fault maps, which list the instructions that may fault
 * instead of a null check, and the addresses at which execution continues after such a fault.
 *
 * LLVM emits a fault map to the section `.llvm_faultmaps` for functions with implicit null checks
 * (the option -enable-implicit-null-checks, and branches with the metadata make.implicit). The
 * section of a linked program holds the maps of all its object files, one after the other.
 *
 *     struct cairn_faultmap map;
 *     size_t offset = 0;
 *     while (offset < section.size) {
 *         if (cairn_faultmap_read(&section, &offset, &map, &error) != CAIRN_OK)
 *             return complain(&error);
 *         struct cairn_faultmap_function function = {0};
 *         while (cairn_faultmap_next(&map, &function))
 *             for (uint32_t i = 0; i < function.fault_count; i++)
 *                 use(&function, cairn_faultmap_fault(&map, &function, i));
 *     }
 *
 * The decoded structs point into the caller's bytes; nothing is allocated.
 *
 * Threads: every function is thread-safe and async-signal-safe: it accesses only its arguments.
 *
 * Source: LLVM, "FaultMaps and implicit checks", section "The FaultMap Section".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_FAULTMAP_H
#define CAIRN_FAULTMAP_H

#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Names of the section in ELF files, and on Darwin. */
#define CAIRN_FAULTMAP_SECTION ".llvm_faultmaps"
#define CAIRN_FAULTMAP_SECTION_DARWIN "__llvm_faultmaps"

/** A fault map of a section. All of its bytes have been checked. */
struct cairn_faultmap {
    const uint8_t *bytes;
    size_t size;
    size_t section_offset; /**< bytes from the start of the section */
    enum cairn_byte_order byte_order;
    uint8_t version; /**< always 1 */
    uint32_t function_count;
};

/** A function of a fault map. A plain value, which may be copied. */
struct cairn_faultmap_function {
    uint64_t address;
    uint32_t fault_count;
    uint32_t index; /**< number of the function in the map, from 0 */
    size_t offset;  /**< bytes from the start of the map */
};

/** The kind of memory access of an instruction that may fault. */
enum cairn_fault_kind { CAIRN_FAULT_LOAD = 1, CAIRN_FAULT_LOAD_STORE = 2, CAIRN_FAULT_STORE = 3 };

/** Returns the name of a kind: "load", "load and store", "store", or "unknown"; a static string. */
CAIRN_API const char *cairn_fault_kind_name(enum cairn_fault_kind kind);

/** An instruction that may fault. */
struct cairn_fault {
    enum cairn_fault_kind kind;
    uint32_t faulting_offset; /**< the instruction, in bytes from the function's start */
    uint32_t handler_offset;  /**< where execution continues, in bytes from the function's start */
};

/**
 * Reads and checks the map at `*offset` of the section, and advances `*offset` to the next map, or
 * to the end of the section.
 *
 * Errors: TRUNCATED, VERSION, CORRUPT (unknown kind of access). The message names the function, and
 * `error->offset` is the place in the section. `*offset` is then unchanged, and `*map` holds the
 * functions before the invalid one, or no function if the header is invalid. ARGUMENT if `*offset`
 * is not in the section; `*map` is then not written.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_faultmap_read(
    const struct cairn_section *section, size_t *offset, struct cairn_faultmap *map,
    struct cairn_error *error);

/** Advances `*function` to the next function; to the first one if `*function` is all zero. Returns
 *  false after the last one, and `*function` is then unchanged. */
CAIRN_API bool cairn_faultmap_next(const struct cairn_faultmap *map,
                                   struct cairn_faultmap_function *function);

/** Returns instruction number `index` of the function. `index` must be less than `fault_count`. */
CAIRN_API struct cairn_fault cairn_faultmap_fault(const struct cairn_faultmap *map,
                                                  const struct cairn_faultmap_function *function,
                                                  uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
