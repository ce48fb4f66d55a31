/*
 * cairn/sanmd_runtime.h - asking a running program: is this PC an atomic access, and was this
 * function compiled with clang's -fexperimental-sanitize-metadata? A library of its own,
 * libcairn-sanmd, which needs neither LLVM, nor libelf, nor libcairn.
 *
 *     clang -fexperimental-sanitize-metadata=covered,atomics,uar host.c \
 *         $(pkg-config --cflags --libs cairn-sanmd)
 *
 *     struct cairn_sanmd_function function;
 *     if (cairn_sanmd_find_function(pc, &function) &&
 *         (function.features & CAIRN_SANMD_FEATURE_ATOMICS) != 0 && !cairn_sanmd_is_atomic(pc))
 *         … the instruction at `pc` is a plain access, which clang has said …
 *
 * The compiler gives each program and each shared library constructors that tell where its metadata
 * is (the callbacks at the end of this header), and destructors. They call the library if it is in
 * the process, and do nothing otherwise: their references to it are weak. So
 *
 * - whatever asks links the library, as above. A program that itself asks nothing (the one that
 *   asks is a plug-in, say) has to keep it: -Wl,--no-as-needed -lcairn-sanmd;
 * - shared libraries, linked and opened with dlopen, need not name it: they find the program's.
 *   Only where the program has it not, and a plug-in of RTLD_LOCAL has, must each plug-in name it;
 * - a static libcairn-sanmd.a in a program that does not ask needs
 *   -Wl,-u,__sanitizer_metadata_covered_add. The callbacks of such a program are found by its
 *   shared libraries if it is linked with -rdynamic.
 *
 * Global state. The callbacks have no argument for a context, so this library, unlike all else of
 * Cairn, has state that is global to the process. It is initialised statically: callbacks may come
 * before main and before the library's own constructor. It uses no malloc. Once loaded, it stays
 * until the process ends, even where it came with dlopen.
 *
 * What it knows. A callback reads the metadata once, into tables of the library's own; the metadata
 * itself is not looked at again. From then on until its destructor runs (at dlclose, or at the end
 * of the process), its functions and accesses are found.
 *
 * Threads. All may be called by any number of threads, while others open and close libraries.
 * Queries take no lock, do not wait, and do not allocate; they are async-signal-safe. A query that
 * runs while a library is opened or closed answers as before or as after that, for each of its
 * sections of metadata. Callbacks take a lock among each other and must not be called from a signal
 * handler, as dlopen and dlclose.
 *
 * Memory. Tables of a closed library are given back when no query of before runs any more. Nothing
 * waits for that: what is still in use is looked at again at the next callback. So a thread may
 * close a library while a query of its own is interrupted, or inside a visitor; and one that leaves
 * a query for good (by longjmp out of a visitor or out of the handler of a signal that interrupted
 * it, or by fork in another thread, in the child) costs no more than tables that are never given
 * back.
 *
 * Source: for callbacks and versions, which no document has, what clang 16 and 19 emit.
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

/** Whether `pc` is the address of an instruction that an atomic access became: of its first byte,
 *  prefixes included. */
CAIRN_API bool cairn_sanmd_is_atomic(uint64_t pc);

/** A covered function in this process. A plain value. */
struct cairn_sanmd_function {
    uint64_t address;              /**< of its first instruction */
    uint32_t size;                 /**< of its code, in bytes */
    uint32_t features;             /**< CAIRN_SANMD_FEATURE_… */
    uint32_t stack_argument_bytes; /**< 0 where the metadata does not have it */
};

/**
 * The covered function that holds `pc`; false, and `*function` as it was, if `pc` is in none. Where
 * a linker has given several functions the same code, it is the one with most features.
 */
CAIRN_API bool cairn_sanmd_find_function(uint64_t pc, struct cairn_sanmd_function *function);

/**
 * Calls `visit` for each covered function that begins in [begin, end), upwards in each section of
 * metadata, until it returns false. It may do all that the caller may, queries and dlclose
 * included; what is opened meanwhile is not visited. Returns whether all were visited.
 */
CAIRN_API bool cairn_sanmd_visit_functions(
    uint64_t begin, uint64_t end,
    bool (*visit)(void *data, const struct cairn_sanmd_function *function), void *data);

/** The same for atomic accesses. */
CAIRN_API bool cairn_sanmd_visit_atomics(uint64_t begin, uint64_t end,
                                         bool (*visit)(void *data, uint64_t pc), void *data);

/** A section of metadata that a callback told of. A plain value. */
struct cairn_sanmd_range {
    enum cairn_sanmd_kind kind;
    /** As the callback got it, with CAIRN_SANMD_WIDE_ADDRESSES also where it only should have. */
    uint32_t version;
    uint64_t section_address; /**< of the metadata */
    uint64_t section_size;
    uint64_t code_begin; /**< of the first function or access; 0 if there is none */
    uint64_t code_end;   /**< behind the last function or access */
    size_t entry_count;  /**< functions or accesses that are found */
    size_t table_bytes;  /**< memory of the library's for them */
    /**
     * OK; otherwise what is wrong with the metadata, as cairn_sanmd_read_covered and
     * cairn_sanmd_read_atomic say it: the entries before it are found, those behind it are not.
     * VERSION means that there are none.
     */
    struct cairn_error error;
};

/** Calls `visit` for each section of metadata, as above. */
CAIRN_API bool cairn_sanmd_visit_ranges(bool (*visit)(void *data,
                                                      const struct cairn_sanmd_range *range),
                                        void *data);

/** What the library knows and takes. */
struct cairn_sanmd_statistics {
    size_t range_count;
    size_t faulty_range_count; /**< those with an error */
    size_t function_count;
    size_t atomic_count;
    size_t table_bytes;      /**< memory that queries look at */
    size_t waiting_bytes;    /**< memory of closed libraries that queries of before may look at */
    size_t lost_range_count; /**< since the start: sections there was no memory for */
};

/** The numbers of this moment, each by itself. Never fails. */
CAIRN_API void cairn_sanmd_get_statistics(struct cairn_sanmd_statistics *statistics);

/*
 * The callbacks. Clang's constructors and destructors call them; so may a loader of its own (a JIT)
 * that has such sections in memory, under the same rules.
 */

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-*): clang has given them their names. */

/** There are covered functions, as [start, end) says, which has to stay as it is until this
 *  returns. The same section may be added several times. An empty one is ignored. */
CAIRN_API void __sanitizer_metadata_covered_add(uint32_t version, const void *start,
                                                const void *end);

/** They are no more: to be called once for each _add with the same section, before other code comes
 *  to where they were. What was not added is ignored. */
CAIRN_API void __sanitizer_metadata_covered_del(uint32_t version, const void *start,
                                                const void *end);

/** The same for atomic accesses. */
CAIRN_API void __sanitizer_metadata_atomics_add(uint32_t version, const void *start,
                                                const void *end);

/** The same for atomic accesses. */
CAIRN_API void __sanitizer_metadata_atomics_del(uint32_t version, const void *start,
                                                const void *end);

/* NOLINTEND(bugprone-reserved-identifier,cert-*) */

#ifdef __cplusplus
}
#endif
#endif
