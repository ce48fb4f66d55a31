/*
 * cairn/pcsection.h - decoding of LLVM's PC sections: addresses of instructions and functions, each
 * with constants from the metadata !pcsections.
 *
 *     status = cairn_pcsection_parse_schema("function 8 u32 u8", &schema, &error);
 *     for (size_t offset = 0; status == CAIRN_OK && offset < section.size; use(&entry))
 *         status = cairn_pcsection_read(&section, address, &schema, &offset, &entry, &error);
 *
 * The entries of a section do not describe their form, so the reader needs a schema. The functions
 * of this header expect constants after each address; cairn/pc_table.h can read runs of addresses
 * that share their constants.
 *
 * Threads: every function is thread-safe and async-signal-safe: it accesses only its arguments.
 *
 * See cairn-metadata(7) (doc/metadata.md): schemas, widths of addresses, runs.
 *
 * Source: LLVM, "PC Sections Metadata", sections "Binary Encoding" and "Encoding Options".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_PCSECTION_H
#define CAIRN_PCSECTION_H

#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /** Maximum number of constants in an entry. */
    CAIRN_PCSECTION_CONSTANTS_MAX = 16,
    /** Maximum size of a constant in bytes. */
    CAIRN_PCSECTION_CONSTANT_BYTES_MAX = 8
};

/** The form of a section's entries. */
struct cairn_pcsection_schema {
    uint8_t address_bytes; /**< 4 or 8 */
    /** The entries are for functions, and have the function's size after the address. Otherwise
     *  they are for instructions. */
    bool has_size;
    /** The size, and constants of 2 to 8 bytes, are ULEB128 numbers. */
    bool is_compressed;
    uint8_t constant_count;
    uint8_t constant_bytes[CAIRN_PCSECTION_CONSTANTS_MAX]; /**< sizes in bytes, 1 to 8 each */
};

/** Parses the text of a schema. Errors: ARGUMENT (the message names the invalid word, and
 *  `error->offset` is its offset in the text). `*schema` is then unchanged.
 *
 *      instruction 4                   addresses of 4 bytes and nothing else
 *      function 8 u32 u8               addresses of 8 bytes, the function's size, two constants
 *      function 4 u64 u16 !C           with !C: the size, and constants of 2 to 8 bytes, as ULEB128
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_pcsection_parse_schema(
    const char *text, struct cairn_pcsection_schema *schema, struct cairn_error *error);

/** An entry. A plain value, which may be copied. */
struct cairn_pcsection_entry {
    size_t offset;    /**< offset of the entry in its section, in bytes */
    uint64_t address; /**< address of the instruction, or of the function's first one */
    uint64_t size;    /**< size of the function in bytes; 0 for an instruction */
    uint64_t constants[CAIRN_PCSECTION_CONSTANTS_MAX]; /**< zero-extended */
};

/**
 * Reads the entry at `*offset` of the section, which is loaded at `section_address`, and advances
 * `*offset` to the next entry. Only those constants of `*entry` that the schema has are written.
 *
 * Errors: TRUNCATED (the section ends inside the entry, so the schema may be wrong), CORRUPT (a
 * number has more bits than the schema allows). The message names the part of the entry, and
 * `error->offset` is its place in the section. ARGUMENT if `*offset` is not in the section, or the
 * schema is invalid. After an error, `*offset` is unchanged, and `*entry` is unspecified.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_pcsection_read(
    const struct cairn_section *section, uint64_t section_address,
    const struct cairn_pcsection_schema *schema, size_t *offset,
    struct cairn_pcsection_entry *entry, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
