/*
 * cairn/sanmd.h - decoding what clang's -fexperimental-sanitize-metadata leaves in a program: which
 * functions were compiled with it, and which instructions are atomic accesses.
 *
 * Every function compiled with the option has an entry in a section of "covered" functions, every
 * instruction that an atomic access became has one in a section of "atomics". Both are PC sections
 * (cairn/pcsection.h). How their entries are written depends on a version, which is a number with
 * flags in its upper half:
 *
 *     version       from        sections                     numbers           address
 *     1             clang 16    sanmd_covered, _atomics      4 bytes           4 bytes
 *     1 | 1 << 16   clang 16    sanmd_covered, _atomics      4 bytes           8 bytes
 *     2             clang 19    sanmd_covered2, _atomics2    ULEB128           4 bytes
 *     2 | 1 << 16   clang 19    sanmd_covered65538, …        ULEB128           8 bytes
 *
 * Addresses of 8 bytes come from the medium and large code models. A program tells the version to
 * whoever asks at run time (cairn/sanmd_runtime.h), and in a file sections' names tell it. But
 * where the flag is missing, addresses may be wide nevertheless: clang 16 has one name for both,
 * and for PPC64, where the medium code model is the default, clang leaves the flag away unless
 * -mcmodel=medium is given. cairn_sanmd_has_wide_addresses finds that out.
 *
 *     struct cairn_sanmd_covered function;
 *     size_t offset = 0;
 *     while (offset < section.size) {
 *         if (cairn_sanmd_read_covered(&section, address, version, &offset, &function, &error) !=
 * CAIRN_OK) return complain(&error); use(&function);
 *     }
 *
 * All functions here are thread-safe and async-signal-safe: they touch only their arguments.
 *
 * Source: LLVM, "PC Sections Metadata"; for versions and features, which no document has, what
 * clang 16 and 19 write.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_SANMD_H
#define CAIRN_SANMD_H

#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the names of all these sections begin with. */
#define CAIRN_SANMD_PREFIX "sanmd_"

/** What a section is about. */
enum cairn_sanmd_kind {
    /** Functions that were compiled with the option. */
    CAIRN_SANMD_COVERED = 0,
    /** Instructions that are atomic accesses. */
    CAIRN_SANMD_ATOMICS = 1
};

enum {
    /** Flag of a version: addresses have 8 bytes. */
    CAIRN_SANMD_WIDE_ADDRESSES = 1 << 16,
    /** What is left of a version without its flags. */
    CAIRN_SANMD_VERSION_MASK = 0xFFFF
};

/** What is known about a covered function: bits. */
enum cairn_sanmd_feature {
    /** Its atomic accesses are in a section of atomics. Clang 19 leaves the bit away where a
     *  function has no access to memory at all. */
    CAIRN_SANMD_FEATURE_ATOMICS = 1 << 0,
    /** Something of its frame may be used after its return: it could be looked for. */
    CAIRN_SANMD_FEATURE_USE_AFTER_RETURN = 1 << 1,
    /** With version 2: it has arguments on the stack, whose size is in the entry. In version 1 the
     *  entry has it with each CAIRN_SANMD_FEATURE_USE_AFTER_RETURN. */
    CAIRN_SANMD_FEATURE_STACK_ARGUMENTS = 1 << 2
};

/** A word or two for one of the bits, such as "atomics"; NULL for what is none. Static. */
CAIRN_API const char *cairn_sanmd_feature_name(uint32_t feature);

/** What the name of a section says. */
struct cairn_sanmd_format {
    enum cairn_sanmd_kind kind;
    /** The version, which may be one that Cairn does not know: reading then says so. Without
     *  CAIRN_SANMD_WIDE_ADDRESSES, addresses may be wide or not. */
    uint32_t version;
};

/** What a section with this name is; false if it is none of these. */
CAIRN_API bool cairn_sanmd_parse_name(const char *section_name, struct cairn_sanmd_format *format);

/** A covered function. Plain values; copy it freely. */
struct cairn_sanmd_covered {
    size_t offset;                 /**< where its entry begins in its section */
    uint64_t address;              /**< of its first instruction */
    uint32_t size;                 /**< of its code, in bytes */
    uint32_t features;             /**< CAIRN_SANMD_FEATURE_… */
    uint32_t stack_argument_bytes; /**< 0 where the entry does not have it */
};

/**
 * Reads the entry at `*offset` of a section of covered functions, which is loaded at
 * `section_address`, and moves `*offset` on to the next one. VERSION: Cairn does not know the
 * version. TRUNCATED: the section ends inside the entry. CORRUPT: a number is too large, or there
 * is a feature that the version does not have, so that the entry's end is not known. The sentence
 * names the function and what was expected, and `error->offset` is the place in the section;
 * `*offset` and `*covered` are then as they were. ARGUMENT if `*offset` is not in the section.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_sanmd_read_covered(
    const struct cairn_section *section, uint64_t section_address, uint32_t version, size_t *offset,
    struct cairn_sanmd_covered *covered, struct cairn_error *error);

/** An atomic access. Plain values; copy it freely. */
struct cairn_sanmd_atomic {
    size_t offset;    /**< where its entry begins in its section */
    uint64_t address; /**< of the instruction, with its prefixes */
};

/** The same for a section of atomic accesses. CORRUPT does not occur. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_sanmd_read_atomic(
    const struct cairn_section *section, uint64_t section_address, uint32_t version, size_t *offset,
    struct cairn_sanmd_atomic *atomic, struct cairn_error *error);

/**
 * Whether a section whose `version` does not say so has addresses of 8 bytes: its first entries can
 * be read so, and what they are about is less than 4 GiB away. For linked code alone: read with the
 * wrong width, an entry would then be about itself. In a relocatable object, relocations tell (see
 * cairn_object_target_section).
 */
CAIRN_API bool cairn_sanmd_has_wide_addresses(const struct cairn_section *section,
                                              uint64_t section_address, enum cairn_sanmd_kind kind,
                                              uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
