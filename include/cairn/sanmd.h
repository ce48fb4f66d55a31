/*
 * cairn/sanmd.h - decodes the metadata that clang's -fexperimental-sanitize-metadata adds to a
 * program: the functions that were compiled with the option, and the instructions that are atomic
 * accesses.
 *
 *     struct cairn_sanmd_format format;
 *     struct cairn_sanmd_entry entry;
 *     if (!cairn_sanmd_parse_name(name, &section, address, &format))
 *         return;
 *     for (size_t offset = 0; offset < section.size; use(&entry))
 *         if (cairn_sanmd_read(&section, address, format, &offset, &entry, &error) != CAIRN_OK)
 *             return complain(&error);
 *
 * Threads: every function is thread-safe and async-signal-safe: it accesses only its arguments.
 *
 * See cairn-metadata(7) (doc/metadata.md): versions, and sources.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_SANMD_H
#define CAIRN_SANMD_H

#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The prefix of the names of these sections. */
#define CAIRN_SANMD_PREFIX "sanmd_"

/** The kind of a section. */
enum cairn_sanmd_kind {
    CAIRN_SANMD_COVERED = 0, /**< functions that were compiled with the option */
    CAIRN_SANMD_ATOMICS = 1  /**< instructions that are atomic accesses */
};

/** The parts of a version. */
enum {
    CAIRN_SANMD_WIDE_ADDRESSES = 1 << 16, /**< flag: addresses have 8 bytes */
    CAIRN_SANMD_VERSION_MASK = 0xFFFF     /**< mask for the version without its flags */
};

/** The properties of a covered function: bits. */
enum cairn_sanmd_feature {
    /** Its atomic accesses are in a section of atomics. Clang 19 does not set the bit if a function
     *  does not access memory. */
    CAIRN_SANMD_FEATURE_ATOMICS = 1 << 0,
    /** The function may be checked for uses of its frame after it has returned. */
    CAIRN_SANMD_FEATURE_USE_AFTER_RETURN = 1 << 1,
    /** In version 2: the function has arguments on the stack, and the entry has their size. In
     *  version 1, an entry has the size if CAIRN_SANMD_FEATURE_USE_AFTER_RETURN is set. */
    CAIRN_SANMD_FEATURE_STACK_ARGUMENTS = 1 << 2
};

/** The form of a section. */
struct cairn_sanmd_format {
    enum cairn_sanmd_kind kind;
    /** The version. If Cairn does not support it, reading entries fails. If
     *  CAIRN_SANMD_WIDE_ADDRESSES is not set, addresses may have 4 or 8 bytes. */
    uint32_t version;
};

/**
 * Finds the form of a section by its name, into `*format`. Returns false if it is not a section of
 * sanitizer metadata.
 *
 * `linked` is the contents of the section, at `section_address`, in a linked file or a process. Its
 * addresses have 8 bytes, also without the flag in the name, if its first entries can be read with
 * this width, and then refer to addresses less than 4 GiB away: an entry that is read with the
 * wrong width refers to itself. NULL for a relocatable object, whose relocations determine the
 * width (cairn_object_target_section).
 */
CAIRN_API bool cairn_sanmd_parse_name(const char *section_name, const struct cairn_section *linked,
                                      uint64_t section_address, struct cairn_sanmd_format *format);

/** A covered function, or an atomic access. A plain value, which may be copied. */
struct cairn_sanmd_entry {
    size_t offset;    /**< offset of the entry in its section, in bytes */
    uint64_t address; /**< address of the first instruction, or of the access with its prefixes */
    /** The following members are 0 for accesses. */
    uint32_t size;                 /**< size of the function's code in bytes */
    uint32_t features;             /**< bits CAIRN_SANMD_FEATURE_… */
    uint32_t stack_argument_bytes; /**< 0 if the entry does not have it */
};

/**
 * Reads the entry at `*offset` of a section, which is loaded at `section_address`, and advances
 * `*offset` to the next entry.
 *
 * Errors: VERSION (Cairn does not support the version); TRUNCATED (the section ends inside the
 * entry); CORRUPT (a number is too large, or the version does not have a feature, so that the end
 * of the entry is not known); ARGUMENT (`*offset` is not in the section). The message names the
 * entry and what was expected, and `error->offset` is the place in the section. `*offset` and
 * `*entry` are unchanged after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_sanmd_read(
    const struct cairn_section *section, uint64_t section_address, struct cairn_sanmd_format format,
    size_t *offset, struct cairn_sanmd_entry *entry, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
