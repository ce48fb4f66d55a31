/*
 * cairn/pcsection.h - decoding LLVM's PC sections: addresses of instructions and functions, each
 * with constants that the metadata !pcsections gave it.
 *
 * Entries do not say what they are, so the reader has to know: a schema says how wide addresses
 * are, whether functions or instructions have entries, and which constants follow. It can be
 * written as text:
 *
 *     instruction 4                   addresses of 4 bytes and nothing else
 *     function 8 u32 u8               addresses of 8 bytes, the function's size, two constants
 *     function 4 u64 u16 !C           with !C: the size, and constants of 2 to 8 bytes, as ULEB128
 *
 *     struct cairn_pcsection_entry entry;
 *     size_t offset = 0;
 *     while (offset < section.size) {
 *         if (cairn_pcsection_read(&section, address, &schema, &offset, &entry, &error))
 *             return complain(&error);
 *         use(&entry);
 *     }
 *
 * For large sections there is cairn_pcsection_read_many.
 *
 * An address is stored relative to its own place. LLVM takes 4 bytes for it with the small code
 * model and 8 with medium and large ones. Several tuples of constants are the same as one with all
 * of them. LLVM 16 does not know !C: it writes whole constants, to a section that has !C in its
 * name.
 *
 * Instructions that share a node of metadata have one entry, with all their addresses and then the
 * constants once; nothing in the section says so. Here each address is expected to have constants
 * of its own. cairn/pc_table.h reads such runs, if it is told where code is.
 *
 * All functions here are thread-safe and async-signal-safe: they touch only their arguments.
 *
 * Source: LLVM, "PC Sections Metadata", sections "Binary Encoding" and "Encoding Options".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_PCSECTION_H
#define CAIRN_PCSECTION_H

#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /** Constants of one entry at most. */
    CAIRN_PCSECTION_CONSTANTS_MAX = 16,
    /** Bytes of a constant at most. */
    CAIRN_PCSECTION_CONSTANT_BYTES_MAX = 8
};

/** What the entries of a section are like. */
struct cairn_pcsection_schema {
    uint8_t address_bytes; /**< 4 or 8 */
    /** Entries are functions', with their size behind the address; otherwise instructions'. */
    bool has_size;
    /** The size, and constants of 2 to 8 bytes, are ULEB128 numbers. */
    bool is_compressed;
    uint8_t constant_count;
    uint8_t constant_bytes[CAIRN_PCSECTION_CONSTANTS_MAX]; /**< 1 to 8 each */
};

/**
 * The schema that `text` describes, as above. ARGUMENT: the sentence says which word is wrong, and
 * `error->offset` where in the text it begins; `*schema` is then as it was.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_pcsection_parse_schema(
    const char *text, struct cairn_pcsection_schema *schema, struct cairn_error *error);

/** An entry. Plain values; copy it freely. */
struct cairn_pcsection_entry {
    size_t offset;    /**< where it begins in its section */
    uint64_t address; /**< of the instruction, or of the function's first one */
    uint64_t size;    /**< of the function, in bytes; 0 of an instruction */
    uint64_t constants[CAIRN_PCSECTION_CONSTANTS_MAX]; /**< unsigned; 0 beyond the schema's */
};

/**
 * Reads the entry at `*offset` of the section, which is loaded at `section_address`, and moves
 * `*offset` on to the next one. TRUNCATED: the section ends inside the entry, so the schema may be
 * another one; CORRUPT: a number has more bits than the schema says. The sentence names the entry's
 * part, and `error->offset` its place; `*offset` and `*entry` are then as they were. ARGUMENT if
 * `*offset` is not in the section, or the schema is none.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_pcsection_read(
    const struct cairn_section *section, uint64_t section_address,
    const struct cairn_pcsection_schema *schema, size_t *offset,
    struct cairn_pcsection_entry *entry, struct cairn_error *error);

/** Where cairn_pcsection_read_many writes entries to: room for `capacity` of each, in the order of
 *  the section. What is NULL is not wanted. */
struct cairn_pcsection_columns {
    size_t capacity;
    uint64_t *addresses;
    uint64_t *sizes; /**< of functions, in bytes; not written where the schema has none */
    /** Constant number `j` of entry number `i` at `i * schema->constant_count + j`. */
    uint64_t *constants;
};

/**
 * Reads as many entries as there is room for, from `*offset` on, and moves `*offset` behind them:
 * what cairn_pcsection_read gives one by one, several times as fast. `*count` says how many were
 * written, also where the one behind them is no good: the error is then that one's, and `*offset`
 * where it begins. At the section's end `*count` is 0.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_pcsection_read_many(
    const struct cairn_section *section, uint64_t section_address,
    const struct cairn_pcsection_schema *schema, size_t *offset,
    const struct cairn_pcsection_columns *columns, size_t *count, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
