/*
 * cairn/stack_sizes.h - decodes the section .stack_sizes, in which LLVM writes the size of each
 * function's frame (clang -fstack-size-section).
 *
 * An entry is the address of a function, in the size of the target's pointers, and the size of its
 * frame in bytes as a ULEB128 number. It does not contain the return address that a call pushes.
 * Functions whose frames have no constant size have no entry. A relocatable object may have a
 * section for each function; a linked file has one section, in which functions that the linker has
 * removed have the address 0.
 *
 *     struct cairn_stack_size entry;
 *     for (size_t offset = 0; offset < section.size; use(&entry))
 *         if (cairn_stack_size_read(&section, 8, &offset, &entry, &error) != CAIRN_OK)
 *             return complain(&error);
 *
 * Threads: every function is thread-safe and async-signal-safe: it accesses only its arguments.
 *
 * Source: LLVM, "LLVM Code Generator", section "Emitting function stack size information".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_STACK_SIZES_H
#define CAIRN_STACK_SIZES_H

#include <cairn/section.h>
#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The name of the section in ELF files. */
#define CAIRN_STACK_SIZES_SECTION ".stack_sizes"

/** The size of a function's frame. A plain value, which may be copied. */
struct cairn_stack_size {
    size_t offset;    /**< offset of the entry in its section, in bytes */
    uint64_t address; /**< address of the function; in PPC64 ELFv1, of its code */
    uint64_t size;    /**< size of the frame in bytes */
};

/**
 * Reads the entry at `*offset` of the section, and advances `*offset` to the next entry.
 * `address_bytes` is the size of the target's pointers, 4 or 8.
 *
 * Errors: TRUNCATED (the section ends inside the entry); CORRUPT (the size has more than 64 bits);
 * ARGUMENT (`*offset` is not in the section, or another size of pointers). The message names the
 * entry, and `error->offset` is the place in the section. `*offset` and `*entry` are unchanged
 * after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_stack_size_read(
    const struct cairn_section *section, unsigned address_bytes, size_t *offset,
    struct cairn_stack_size *entry, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
