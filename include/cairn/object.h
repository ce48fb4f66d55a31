/*
 * cairn/object.h - sections of ELF files that LLVM wrote, and the code that they are about.
 *
 * Objects, executables and shared libraries of 64-bit machines in either byte order; their separate
 * debug files; members of archives come from cairn/archive.h. Of a file, only the parts that are
 * used are read, when they are first used. A section's bytes are the file's own unless relocations
 * have to be applied to them (relocatable objects, and position-independent programs with text
 * relocations), or it is compressed. The input itself is never written to.
 *
 *     struct cairn_object_section section = {0};
 *     const char *name = CAIRN_OBJECT_STACKMAPS;
 *     while (cairn_object_next_section(object, name, &section, &error) == CAIRN_OK)
 *         … cairn_stackmap_read(&section.contents, …) …
 *     if (error.status != CAIRN_ERROR_NOT_FOUND)
 *         return complain(&error);
 *
 * Threads: one object may be used by one thread at a time; different objects by different
 * threads. Nothing here is async-signal-safe.
 *
 * Files that change: what has been read of a file is a private copy, and no file is mapped. A file
 * that another process changes or shortens while it is open gives old or new bytes, or TRUNCATED,
 * but no signal (SIGBUS), and bytes that have been handed out never change. The file stays open
 * (one descriptor) until the object is closed.
 *
 * Source: System V ABI, chapter Object Files, and the processor supplements for the relocations.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_OBJECT_H
#define CAIRN_OBJECT_H

#include <cairn/allocator.h>
#include <cairn/architecture.h>
#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The section's name as LLVM writes it to ELF files, and on Darwin. */
#define CAIRN_OBJECT_STACKMAPS ".llvm_stackmaps"
#define CAIRN_OBJECT_STACKMAPS_DARWIN "__llvm_stackmaps"

/** An open ELF file. */
typedef struct cairn_object cairn_object;

/** The bytes of a file that a hook has opened. */
struct cairn_file_bytes {
    const void *bytes; /**< may be NULL if `size` is 0 */
    size_t size;
    void *handle; /**< the hook's own */
};

/**
 * Finds files in the place of the system, such as in a test's memory. Every file that an object or
 * an archive opens by a path is opened by its hook: the file itself, the members of a thin archive,
 * and debug files, both those that are looked for and the one that is attached. With a hook, paths
 * are only compared and joined: nothing asks the system what they lead to.
 */
struct cairn_file_hook {
    /** Opens the file at `path`: fills in `*file`, whose bytes must not change until it is closed.
     *  Returns false if there is no such file; `*file` is then ignored. NULL: the system's files.
     */
    bool (*open)(void *user, const char *path, struct cairn_file_bytes *file);
    /** Closes what `open` has opened. NULL: there is nothing to do. */
    void (*close)(void *user, const struct cairn_file_bytes *file);
    void *user; /**< first argument of both */
};

/** The default memory limit of an object, in bytes: BASE, and FACTOR times the file's size. */
#define CAIRN_OBJECT_MEMORY_BASE (UINT64_C(16) << 20)
#define CAIRN_OBJECT_MEMORY_FACTOR 32

/** How objects and archives are opened. All zero is the default. It is copied. */
struct cairn_object_options {
    /** NULL: malloc. libelf, which reads the headers, has memory of its own. */
    const struct cairn_allocator *allocator;
    /** How many bytes of memory an object may take in addition to those of its file: for sections
     *  that are decompressed or relocated, for relocations and for symbols. What needs more fails
     *  with MEMORY, and the error says which section it was, how much is needed, and the limit. A
     *  debug file has a limit of its own, by the same rule. 0: the default. Archives have none. */
    uint64_t memory_limit;
    struct cairn_file_hook files;
};

/**
 * Opens the file at `path`, which must be a regular file. `options` NULL means all zero.
 * Errors: SYSTEM (cannot be opened or read, or is a directory), TRUNCATED (empty, or shorter than
 * its headers say), CORRUPT (not an ELF file), UNSUPPORTED (32-bit, an archive, or not a regular
 * file), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_open(
    const char *path, const struct cairn_object_options *options, cairn_object **object,
    struct cairn_error *error);

/** Opens `size` bytes in memory, which must not change until the object is closed; otherwise as
 *  cairn_object_open. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_open_memory(
    const void *bytes, size_t size, const struct cairn_object_options *options,
    cairn_object **object, struct cairn_error *error);

/** Sections and names that came from the object are gone afterwards. NULL is allowed. */
CAIRN_API void cairn_object_close(cairn_object *object);

/** CAIRN_ARCHITECTURE_UNKNOWN for a machine that Cairn does not know: its records decode. */
CAIRN_API enum cairn_architecture cairn_object_architecture(const cairn_object *object);

/** The order that the file's numbers, and its sections', are in. */
CAIRN_API enum cairn_byte_order cairn_object_byte_order(const cairn_object *object);

/** Not linked yet: addresses count from the start of the section that they point into. */
CAIRN_API bool cairn_object_is_relocatable(const cairn_object *object);

/**
 * The bytes that name this build of the file (the linker's --build-id), which its separate debug
 * file has too: from a section of notes, or from the notes that are loaded where the sections are
 * stripped. False, and nothing written, if there are none. They are the file's own.
 */
CAIRN_API bool cairn_object_build_id(const cairn_object *object, const uint8_t **bytes,
                                     size_t *size);

/** Where the separate debug files of a system lie. */
#define CAIRN_OBJECT_DEBUG_DIRECTORY "/usr/lib/debug"

/**
 * Looks for the file with the symbols and sections that were taken away from `object`, which was
 * opened from `path`: by build ID, as DIRECTORY/.build-id/xx/yyyy.debug; then by the name in
 * .gnu_debuglink, in the file's folder, its folder .debug, and DIRECTORY/folder, taking only a file
 * that has the build ID or, if there are none, the checksum that the link says. `directories` ends
 * with NULL; NULL itself means CAIRN_OBJECT_DEBUG_DIRECTORY. `*found` is a path, valid until the
 * next call for the object, and until it is closed.
 * NOT_FOUND (the sentence says why), SYSTEM (the current folder is not known), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_find_debug_file(
    cairn_object *object, const char *path, const char *const *directories, const char **found,
    struct cairn_error *error);

/**
 * Opens the file at `path` beside `object` (a linked one), until that is closed: what the object
 * lacks comes from there, namely its symbols, if it has no table of its own (.symtab), and sections
 * that it does not have, or without bytes. Those come behind its own, with numbers that follow on
 * its own. Names and functions that were found before may differ from those found now.
 * As cairn_object_open; and CONFLICT (its build ID is another one or, if neither has one, its
 * checksum is not that in the object's .gnu_debuglink; it is for another machine), STATE (one is
 * attached), UNSUPPORTED (the object is relocatable).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_attach_debug_file(
    cairn_object *object, const char *path, struct cairn_error *error);

/**
 * How much higher than the file's addresses say its code was loaded by a process that has mapped
 * `size` bytes of the file, from `file_offset` on, at `address`, in order to execute them: what
 * /proc/PID/maps has in its lines with an x, and perf in its events. 0 for programs that are not
 * position-independent. False, and nothing written, where no executable segment has such bytes, as
 * in relocatable objects. By the program headers of the file.
 */
CAIRN_API bool cairn_object_load_base(const cairn_object *object, uint64_t address,
                                      uint64_t file_offset, uint64_t size, uint64_t *base);

/** A section of an object. A plain value; valid until the object is closed. */
struct cairn_object_section {
    /** Number in the file's section table; 0 before the first section was found. */
    uint32_t index;
    /** The bytes, decompressed, with relocations applied. */
    struct cairn_section contents;
    /** Where the section is to be loaded; 0 in relocatable objects. */
    uint64_t address;
    const char *name;
    uint32_t type; /**< as the file's section table has it: SHT_… */
    /** Number of the section of code that it is about, where the file says so (SHF_LINK_ORDER);
     *  otherwise 0. */
    uint32_t linked_section;
};

/** What the file's section table says of a section. A plain value; valid until the object is
 *  closed. */
struct cairn_object_section_header {
    const char *name;        /**< "" if it has none */
    uint64_t address;        /**< as in struct cairn_object_section */
    uint64_t size;           /**< bytes in the file, before decompression */
    uint64_t flags;          /**< SHF_… */
    uint32_t type;           /**< SHT_… */
    uint32_t linked_section; /**< as in struct cairn_object_section */
};

/** Of section number `index`, 1 being the first; false beyond the last. Nothing is read of the
 *  section itself. */
CAIRN_API bool cairn_object_section_header(const cairn_object *object, uint32_t index,
                                           struct cairn_object_section_header *header);

/** Which sections are looked for: what is zero matches all. */
struct cairn_object_filter {
    const char *name;   /**< the whole name */
    const char *prefix; /**< what the name begins with */
    uint32_t type;      /**< SHT_… */
};

/**
 * Moves `*section` on to the next section that matches `filter`, in the order of the file; else as
 * cairn_object_next_section.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_next_matching(
    cairn_object *object, const struct cairn_object_filter *filter,
    struct cairn_object_section *section, struct cairn_error *error);

/**
 * Moves `*section` on to the next section with this name, in the order of the file; from a
 * zeroed struct to the first. NOT_FOUND after the last one; `*section` then stays as it was.
 * TRUNCATED (it lies outside of the file), CORRUPT (its relocations or symbols are no good),
 * UNSUPPORTED (a kind of relocation that Cairn cannot apply, or no bytes in this file), MEMORY.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_next_section(
    cairn_object *object, const char *name, struct cairn_object_section *section,
    struct cairn_error *error);

/** A function whose address stands in a section. */
struct cairn_object_function {
    /** From the symbol table, or from the relocation; NULL where neither knows one. */
    const char *name;
    /** Of its first instruction. On PPC64 ELFv1 a stack map names a function descriptor: this is
     *  where the descriptor leads. Everywhere else it is the address in the section. */
    uint64_t entry;
    /** Number of the section that `entry` counts from the start of; 0 in linked files, where it is
     *  an address. */
    uint32_t section;
    /** Bytes of its code, as the symbol table says; 0 where it does not. */
    uint64_t size;
};

/**
 * The function whose address the 8 bytes at `offset` of `section` hold: in a stack map, the
 * address of function `i` is at map.section_offset + CAIRN_STACKMAP_HEADER_BYTES +
 * i * cairn_stackmap_function_bytes(map.version). Zero and no name where fewer than 8 bytes are
 * left.
 */
CAIRN_API struct cairn_object_function cairn_object_function(
    const cairn_object *object, const struct cairn_object_section *section, size_t offset);

/**
 * Number of the section that the address or distance at `offset` of `section` leads to: in
 * relocatable objects, addresses count from the start of it. All sections begin at 0 there, so a
 * distance (such as in PC sections), of 4 or 8 bytes, gives the place in it as `offset` + distance.
 * 0 in linked files, where nothing was relocated, for symbols of other files, and for differences
 * of labels.
 */
CAIRN_API uint32_t cairn_object_target_section(const cairn_object *object,
                                               const struct cairn_object_section *section,
                                               size_t offset);

/**
 * The function whose code holds `address`: as in struct cairn_object_function, in relocatable
 * objects it counts from the start of section number `section`; elsewhere `section` is not looked
 * at. Of functions inside of each other it is the innermost; labels inside of functions are none. A
 * symbol without a size goes on to the next one, or to the section's end. The first call reads all
 * symbols, the others take O(log n).
 * NOT_FOUND (no function is known there), TRUNCATED, CORRUPT, UNSUPPORTED (the symbol table, or
 * PPC64's descriptors, are no good), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_find_function(
    cairn_object *object, uint32_t section, uint64_t address,
    struct cairn_object_function *function, struct cairn_error *error);

/**
 * The first function, by address, with this name. Takes O(n). NOT_FOUND; else as
 * cairn_object_find_function.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_find_name(
    cairn_object *object, const char *name, struct cairn_object_function *function,
    struct cairn_error *error);

/** Code in an object. A plain value; valid until the object is closed. */
struct cairn_object_code {
    /** Of the first byte. */
    uint64_t address;
    /** To the end of the section, as they stand in the file: no relocations are applied. */
    const uint8_t *bytes;
    size_t size;
};

/**
 * The code at `address`: as in struct cairn_object_function, in relocatable objects it counts from
 * the start of section number `section`; elsewhere `section` is not looked at.
 * NOT_FOUND (no section of code has bytes there), TRUNCATED (it lies outside of the file), CORRUPT
 * (its relocations are no good), UNSUPPORTED (no bytes in this file), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_object_code(cairn_object *object,
                                                               uint32_t section, uint64_t address,
                                                               struct cairn_object_code *code,
                                                               struct cairn_error *error);

/** The function that begins at `address`, of which `section` is as above; NULL where none is known.
 *  To be asked once cairn_object_next_section has found something. */
CAIRN_API const char *cairn_object_symbol(const cairn_object *object, uint32_t section,
                                          uint64_t address);

/** The symbol that the code in `size` bytes from `address` on will be linked to, such as a call's
 *  target: that of the first relocation there, in a relocatable object. NULL where there is none,
 *  where it has no name, and unless cairn_object_code has found code of the section. */
CAIRN_API const char *cairn_object_relocated_symbol(const cairn_object *object, uint32_t section,
                                                    uint64_t address, size_t size);

#ifdef __cplusplus
}
#endif
#endif
