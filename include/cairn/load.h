/*
 * cairn/load.h - loading relocatable objects: what compilers write as `file.o`.
 *
 *     if (cairn_loader_create(runtime, "f", &loader, &error) != CAIRN_OK ||
 *         cairn_loader_add_object(loader, bytes, size, NULL, &error) != CAIRN_OK ||
 *         cairn_loader_finish(loader, &module, &error) != CAIRN_OK ||
 *         cairn_module_publish(module, &error) != CAIRN_OK)
 *         fail(error.message);
 *     int (*f)(int) = (int (*)(int))(uintptr_t)cairn_module_find_symbol(module, "f");
 *
 * ELF objects for the host's architecture (x86-64, AArch64, PPC64) become a module without LLVM and
 * without a linker. The objects of one loader are linked with each other. Other symbols are taken
 * from the published modules of the runtime, from the host's callback, and from the process, in
 * this order. Constructors are run only by cairn_module_run_constructors.
 *
 * Not supported, and refused with a message: thread-local storage, functions that are chosen at run
 * time (IFUNC), copy relocations, and relocations that no compiler for these architectures writes.
 *
 * Threads: a loader must be used by one thread at a time; other functions are thread-safe. Signal
 * handlers must not call them.
 *
 * See cairn-loading(7) (doc/loading.md): symbols, exceptions, manifests.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_LOAD_H
#define CAIRN_LOAD_H

#include <cairn/module.h>
#include <cairn/pc_table.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A symbolic constant: bytes of the host's own, such as {kind, number of a function, slot}. */
struct cairn_name {
    const void *bytes;
    size_t size; /**< 1 to CAIRN_NAME_BYTES_MAX */
};

enum { CAIRN_NAME_BYTES_MAX = 255 };

/** Options for loading an object. All zero is the default. What the pointers lead to, except the
 *  name, must remain valid until the loader has finished or is destroyed. */
struct cairn_load_options {
    /** Name of the object, such as "f.o", for messages. It is copied. May be NULL. */
    const char *name;
    /** Finds a symbol that the object uses and no object of the loader defines, and sets
     *  `*address`: of a function, what a function pointer holds. Returns false if the host has no
     *  such symbol. Called by cairn_loader_finish. May be NULL. */
    bool (*find_symbol)(void *user, const char *name, uint64_t *address);
    /** Finds the values of the names that the object has (cairn_build_name), whose bytes are those
     *  of the compiler, and writes them to `values`. Returns `count`, or the number of the first
     *  name that has no value; then the object is not loaded. Called once for each object with
     *  names, by cairn_loader_finish, before anything is loaded. NULL: no name has a value. */
    size_t (*find_names)(void *user, const struct cairn_name *names, size_t count,
                         uint64_t *values);
    /** Called by cairn_loader_finish with the name of each symbol that was not found. May be
     *  NULL. */
    void (*note_undefined)(void *user, const char *name);
    /** Called if the object's code needs features of the CPU that this machine does not have: with
     *  the features that it needs, and the features that the machine has, by LLVM's names, with
     *  commas between them. May be NULL. */
    void (*note_features)(void *user, const char *needed, const char *available);
    /** LLVM's names of the features that the object's code may use and the architecture's oldest
     *  CPU does not have, with commas between them, such as "avx,avx2,fma"; on PPC64 also "-vsx",
     *  for code that does not use VSX. Exits save only the registers that code with these features
     *  can hold (cairn-exits-and-frames(7)). NULL: the features in the object's manifest, or all
     *  that there are. They are not compared with the machine's. */
    const char *features;
    void *user;
    /** Symbols are found only in the objects of this loader, by `find_symbol`, and in the process,
     *  not in other modules. */
    bool ignores_modules;
    /** The unwind tables are registered with the process's unwinder, for C++ exceptions and
     *  backtrace() (cairn-loading(7)). */
    bool registers_unwind_tables;
    /** PC sections: names and schemas; the other members are ignored. Loaded sections with other
     *  names are data. */
    const struct cairn_pc_table_section *pc_sections;
    size_t pc_section_count;
};

/**
 * Adds an object to what the loader loads. The bytes are copied. `options` NULL means all zero.
 * Checks the object; cairn_loader_finish links it with the loader's other objects, and allocates
 * its memory.
 *
 * Takes O(n log n) time for an object of n bytes, whatever it contains. On failure the loader can
 * only be destroyed. Messages name the section and its entry, or the symbol.
 *
 * Errors: TRUNCATED, CORRUPT; VERSION (also of the manifest); UNSUPPORTED (an object for another
 * architecture, or for a CPU with features that this one lacks, or thread-local storage, IFUNC,
 * copy relocations or other unusual relocations); CONFLICT (a symbol that two objects define; both
 * are named); RANGE (also an alignment of more than a page), MEMORY, STATE.
 *
 * Errors that cairn_loader_finish then returns, in addition to its own:
 * NOT_FOUND: there are undefined symbols, or names that `find_names` has no value for.
 * CONFLICT: two names have the same ID, or definitions the same symbol.
 * RANGE: a relocation's value does not fit; the code model does not allow such distances.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_add_object(
    cairn_loader *loader, const void *bytes, size_t size, const struct cairn_load_options *options,
    struct cairn_error *error);

/** Returns the address of a definition of the module, which other modules may use: of a function,
 *  what a function pointer holds. NULL if no symbol has this name, or only a hidden or local one.
 *  Takes O(log n) time for n definitions. Thread-safe, lock-free and async-signal-safe. */
CAIRN_API void *cairn_module_find_symbol(const cairn_module *module, const char *name);

/**
 * Runs the constructors of the module's objects, in the calling thread, as a C library does for a
 * shared library: `.init_array` and `.ctors`, by their priorities. Has no effect if they have been
 * run. The module may be published or not. From then until cairn_module_run_destructors, the module
 * has a reference to itself. Errors: STATE (the module is retired).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_module_run_constructors(
    cairn_module *module, struct cairn_error *error);

/**
 * Runs the destructors of a module whose constructors have been run, once: first the functions that
 * its code has registered with `__cxa_atexit` (C++ does that for objects), then `.fini_array` and
 * `.dtors`. NULL is allowed. No other thread may use the module's static objects after that.
 *
 * If this function is not called, the C library calls the registered functions when the process
 * exits, or Cairn when the module is freed, also if the constructors were not run.
 */
CAIRN_API void cairn_module_run_destructors(cairn_module *module);

#ifdef __cplusplus
}
#endif
#endif
