/*
 * cairn/object.h - reads sections, symbols and code from ELF files.
 *
 *     const struct cairn_object_filter filter = {.name = CAIRN_OBJECT_STACKMAPS};
 *     struct cairn_object_section section = {0};
 *     while (cairn_object_next_section(object, &filter, &section, &error) == CAIRN_OK)
 *         … cairn_stackmap_read(&section.contents, …) …
 *     if (error.status != CAIRN_ERROR_NOT_FOUND)
 *         return complain(&error);
 *
 * Reads objects, executables, shared libraries and separate debug files for 64-bit machines, in
 * either byte order. In linked files, an address is that of the program headers. In relocatable
 * objects, it is the number of a section and an offset from its start.
 *
 * Bytes that were returned never change.
 *
 * Threads: an object must be used by one thread at a time, and not by signal handlers. Different
 * threads may use different objects at the same time.
 *
 * See cairn-metadata(7) (doc/metadata.md). For members of archives see cairn/archive.h.
 *
 * Source: System V ABI, chapter Object Files, and the processor supplements for the relocations.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_OBJECT_H
#define CAIRN_OBJECT_H

#include <cairn/allocator.h>
#include <cairn/architecture.h>
#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The names of the section with stack maps in ELF files and on Darwin. */
#define CAIRN_OBJECT_STACKMAPS ".llvm_stackmaps"
#define CAIRN_OBJECT_STACKMAPS_DARWIN "__llvm_stackmaps"

/** An open ELF file. */
typedef struct cairn_object cairn_object;

/** The contents of a file that a hook has opened. */
struct cairn_file_bytes {
    const void *bytes; /**< may be NULL if `size` is 0 */
    size_t size;
    void *handle; /**< data of the hook */
};

/**
 * A hook that opens files in place of the system, for example from a test's memory: files that
 * objects and archives open by a path, the members of a thin archive, and debug files. With a hook,
 * paths are compared and joined, but not resolved by the system.
 */
struct cairn_file_hook {
    /** Opens the file at `path` and writes `*file`, whose bytes must not change until `close` is
     *  called. Returns false if there is no such file; `*file` is then ignored. If the function is
     *  NULL, the system opens the files. */
    bool (*open)(void *user, const char *path, struct cairn_file_bytes *file);
    /** Closes a file that `open` has opened. May be NULL. */
    void (*close)(void *user, const struct cairn_file_bytes *file);
    void *user; /**< first argument of both functions */
};

/** The default memory limit of an object: BASE bytes plus FACTOR times the size of the file. */
#define CAIRN_OBJECT_MEMORY_BASE (UINT64_C(16) << 20)
#define CAIRN_OBJECT_MEMORY_FACTOR 32

/** Options for opening objects and archives, which copy them. All zero is the default. */
struct cairn_object_options {
    /** The allocator; NULL means malloc. libelf, which reads the headers, does not use it. */
    const struct cairn_allocator *allocator;
    /** The memory limit of an object, in bytes, in addition to the size of its file; 0 means the
     *  default. It covers decompressed and relocated sections, relocations and symbols. An
     *  operation that would exceed it fails with CAIRN_ERROR_MEMORY; the message names the section,
     *  the memory needed, and the limit. A debug file has a separate limit. Archives have no limit.
     */
    uint64_t memory_limit;
    struct cairn_file_hook files;
};

/**
 * Opens the ELF file at `path`, which must be a regular file. `options` NULL means all zero. The
 * caller owns `*object`.
 *
 * Errors: SYSTEM (cannot be opened or read, or is a directory), TRUNCATED (empty, or shorter than
 * its headers require), CORRUPT (not an ELF file), UNSUPPORTED (32-bit, an archive, or not a
 * regular file), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_open(
    const char *path, const struct cairn_object_options *options, cairn_object **object,
    struct cairn_error *error);

/** Opens an ELF file of `size` bytes in memory, which must not change until the object is
 * destroyed. Errors: as cairn_object_open. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_open_memory(
    const void *bytes, size_t size, const struct cairn_object_options *options,
    cairn_object **object, struct cairn_error *error);

/** Destroys an object, which may be NULL. All sections and names from it become invalid. */
CAIRN_API void cairn_object_destroy(cairn_object *object);

/** What the ELF header says. */
struct cairn_object_header {
    /** CAIRN_ARCHITECTURE_UNKNOWN for others, in which case stack maps can still be decoded. */
    enum cairn_architecture architecture;
    enum cairn_byte_order byte_order; /**< of the file and of its sections */
    bool is_relocatable;              /**< the file is a relocatable object */
};

/** Returns what the ELF header says. */
CAIRN_API struct cairn_object_header cairn_object_header(const cairn_object *object);

/** The system's directory of separate debug files. */
#define CAIRN_OBJECT_DEBUG_DIRECTORY "/usr/lib/debug"

/**
 * Searches for the separate debug file of `object`, which was opened from `path`.
 *
 * The candidates are, in this order: DIRECTORY/.build-id/xx/yyyy.debug, by the build ID (the
 * linker's --build-id, which the debug file also has); then the name in .gnu_debuglink, in the
 * folder of the file, in its folder .debug, and in DIRECTORY/folder. A candidate must have the same
 * build ID or, if there are no build IDs, the checksum in .gnu_debuglink. `directories` is an array
 * that ends with NULL; NULL means CAIRN_OBJECT_DEBUG_DIRECTORY alone. The path in `*found` is valid
 * until the next call for the object, or until the object is destroyed.
 *
 * Errors: NOT_FOUND (the message gives the reason), SYSTEM (the current folder cannot be
 * determined), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_find_debug_file(
    cairn_object *object, const char *path, const char *const *directories, const char **found,
    struct cairn_error *error);

/**
 * Attaches the debug file at `path` to `object`, which must be a linked file. The debug file stays
 * open until the object is destroyed.
 *
 * It supplies what the object lacks: symbols, if the object has no symbol table (.symtab); and
 * sections that the object does not have, or has without bytes. These sections follow the object's
 * own, and their numbers continue the object's. Names and functions that are found after this call
 * may differ from those found before.
 *
 * Errors: as cairn_object_open; also CONFLICT (the build ID differs; or there are no build IDs, and
 * the checksum differs from that in the object's .gnu_debuglink; or the machine differs), STATE (a
 * debug file is already attached), UNSUPPORTED (the object is relocatable).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_attach_debug_file(
    cairn_object *object, const char *path, struct cairn_error *error);

/**
 * Computes the difference between the addresses in a process, which has mapped `size` bytes of the
 * file, from `file_offset` on, at `address` as executable, and those in the file. Lines with an x
 * in /proc/PID/maps, and events of perf, contain these numbers. `*base` is 0 for programs that are
 * not position-independent. Returns false, and writes nothing, if no executable segment contains
 * these bytes, as in relocatable objects.
 */
CAIRN_API bool cairn_object_load_base(const cairn_object *object, uint64_t address,
                                      uint64_t file_offset, uint64_t size, uint64_t *base);

/** A section of an object. A plain value; its pointers are valid until the object is destroyed. */
struct cairn_object_section {
    uint32_t index; /**< number in the section table; 0 before the first section is found */
    struct cairn_section contents; /**< bytes, decompressed and relocated */
    uint64_t address;              /**< 0 in relocatable objects */
    const char *name;
    uint32_t type; /**< SHT_…, from the section table */
    /** The number of the section of code that this section describes (SHF_LINK_ORDER); 0 if the
     *  file does not have it. */
    uint32_t linked_section;
};

/** An entry of the section table. A plain value; `name` is valid until the object is destroyed. */
struct cairn_object_section_header {
    const char *name;        /**< "" if it has no name */
    uint64_t address;        /**< as in struct cairn_object_section */
    uint64_t size;           /**< bytes in the file, before decompression */
    uint64_t flags;          /**< SHF_… */
    uint32_t type;           /**< SHT_… */
    uint32_t linked_section; /**< as in struct cairn_object_section */
};

/** Returns the header of section number `index`, from 1 on, in `*header`; false if there is no such
 *  section. The section itself is not read. */
CAIRN_API bool cairn_object_section_header(const cairn_object *object, uint32_t index,
                                           struct cairn_object_section_header *header);

/** A filter for sections. A member that is NULL or 0 matches all sections. */
struct cairn_object_filter {
    const char *name;   /**< the full name */
    const char *prefix; /**< a prefix of the name */
    uint32_t type;      /**< SHT_… */
};

/**
 * Advances `*section` to the next section that matches `filter`, in the order of the file; to the
 * first one if `*section` is all zero.
 *
 * Errors: NOT_FOUND after the last section; TRUNCATED (the section is outside of the file), CORRUPT
 * (its relocations or symbols are invalid), UNSUPPORTED (a type of relocation that Cairn cannot
 * apply, or the section has no bytes in this file), MEMORY, ARGUMENT. `*section` is unchanged after
 * an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_next_section(
    cairn_object *object, const struct cairn_object_filter *filter,
    struct cairn_object_section *section, struct cairn_error *error);

/** A function whose address is in a section. */
struct cairn_object_function {
    /** The name in the symbol table, or of the relocation; NULL if neither has one. */
    const char *name;
    /** The address of the first instruction, which is the address that the section holds. In PPC64
     *  ELFv1, the section holds the address of a function descriptor, and this is the address in
     *  the descriptor. */
    uint64_t entry;
    /** The number of the section from whose start `entry` is an offset; 0 in linked files, where
     *  `entry` is an address. */
    uint32_t section;
    /** The size of the code in bytes, from the symbol table; 0 if it is not known. */
    uint64_t size;
};

/**
 * Returns the function whose address is in the 8 bytes at `offset` of `section`; all zero if fewer
 * than 8 bytes are left. In a stack map, the address of function `i` is at map.section_offset +
 * CAIRN_STACKMAP_HEADER_BYTES + i * cairn_stackmap_function_bytes(map.version).
 */
CAIRN_API struct cairn_object_function cairn_object_function(
    const cairn_object *object, const struct cairn_object_section *section, size_t offset);

/**
 * Returns the number of the section that the address or the relative address at `offset` of
 * `section` refers to, in relocatable objects. An address there is an offset from the start of the
 * returned section. A relative address, as in PC sections, has 4 or 8 bytes; `offset` plus its
 * value is an offset from the start of the returned section.
 *
 * Returns 0 in linked files, without a relocation, for symbols of other files, and for differences
 * of labels.
 */
CAIRN_API uint32_t cairn_object_target_section(const cairn_object *object,
                                               const struct cairn_object_section *section,
                                               size_t offset);

/**
 * Finds the function whose code contains `address`. In relocatable objects, `address` is an offset
 * from the start of section number `section`; otherwise `section` is ignored.
 *
 * If functions are nested, the innermost one is found. Labels inside of functions are not
 * functions. A symbol without a size extends to the next symbol, or to the end of the section. The
 * first call reads all symbols; later calls take O(log n) time.
 *
 * Errors: NOT_FOUND (no function is known there); TRUNCATED, CORRUPT, UNSUPPORTED (the symbol
 * table, or PPC64's descriptors, cannot be read); MEMORY; ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_find_function(
    cairn_object *object, uint32_t section, uint64_t address,
    struct cairn_object_function *function, struct cairn_error *error);

/** Finds the function with this name; if there are several, the one with the lowest address. The
 *  first call sorts the names in O(n log n) time; later calls take O(log n). Errors: NOT_FOUND;
 *  others as cairn_object_find_function. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_find_name(
    cairn_object *object, const char *name, struct cairn_object_function *function,
    struct cairn_error *error);

/** Code in an object. A plain value; `bytes` is valid until the object is destroyed. */
struct cairn_object_code {
    uint64_t address;     /**< address of the first byte */
    const uint8_t *bytes; /**< bytes up to the end of the section, without relocations */
    size_t size;
};

/**
 * Finds the code at `address`. In relocatable objects, `address` is an offset from the start of
 * section number `section`; otherwise `section` is ignored.
 *
 * Errors: NOT_FOUND (no section of code has bytes there), TRUNCATED (the section is outside of the
 * file), CORRUPT (its relocations are invalid), UNSUPPORTED (the section has no bytes in this
 * file), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_code(cairn_object *object,
                                                               uint32_t section, uint64_t address,
                                                               struct cairn_object_code *code,
                                                               struct cairn_error *error);

/**
 * Returns the name of the symbol that `size` bytes of code at `address` refer to, such as the
 * target of a call. In a relocatable object, it is that of the first relocation in these bytes.
 * Returns NULL if there is no relocation, if its symbol has no name, or if cairn_object_code has
 * not yet found code of the section.
 */
CAIRN_API const char *cairn_object_relocated_symbol(const cairn_object *object, uint32_t section,
                                                    uint64_t address, size_t size);

#ifdef __cplusplus
}
#endif
#endif
