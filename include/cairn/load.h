/*
 * cairn/load.h - loading relocatable objects: what compilers write as `file.o`.
 *
 * An ELF object for the host's architecture (x86-64, AArch64, PPC64 ELFv2 and ELFv1), from LLVM,
 * clang, gcc, a file or a cache, becomes a module without LLVM and without a linker:
 *
 *     cairn_runtime *runtime;
 *     cairn_loader *loader;
 *     cairn_module *module;
 *     struct cairn_error error;
 *     if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
 *         cairn_loader_create(runtime, "f", &loader, &error) != CAIRN_OK ||
 *         cairn_loader_add_object(loader, bytes, size, NULL, &error) != CAIRN_OK ||
 *         cairn_loader_finish(loader, &module, &error) != CAIRN_OK ||
 *         cairn_module_publish(module, &error) != CAIRN_OK)
 *         fail(error.message);
 *     int (*f)(int) = (int (*)(int))(uintptr_t)cairn_module_find_symbol(module, "f");
 *
 * Several objects may be added to one loader. They become one module, as a linker would link them:
 * a symbol that one object defines can be used by the others. Of a name with several weak
 * definitions, or several in COMDAT groups, the first one is used. A common symbol gets the largest
 * size. Stack maps, fault maps, PC sections and .eh_frame become part of the module's tables.
 *
 * SYMBOLS that no object of the loader defines are taken from
 *
 *   1. the published modules of the runtime: the definition in the module that was published last.
 *      An engine's modules (cairn/llvm.h) find those of the same engine first, and are found by
 *      these alone;
 *   2. the host's callback;
 *   3. the process, as dlsym finds them. Not there are functions that the C library adds to each
 *      program, such as atexit and pthread_atfork, and most of libgcc's.
 *
 * Definitions that modules use of each other are global symbols without hidden visibility. They are
 * bound when the loader finishes, and stay bound: a definition that is published later is not used
 * by code that was loaded earlier, and retiring a module does not change its users. Therefore a
 * module keeps a reference to each module that it uses (cairn_module_retain): even if that one is
 * retired, it is not freed before its users. To be able to replace a function, call it through a
 * site (cairn/patch.h) or a pointer, or define it by the callback and set `ignores_modules`.
 *
 * NAMES. cairn_runtime_find_function and cairn_frame_function return the name of the function at a
 * PC, also of a local function, from the objects' tables of symbols.
 *
 * CONSTRUCTORS are run only by cairn_module_run_constructors. C++ code without it has no
 * initialised objects of static storage duration.
 *
 * UNWINDING. Cairn's own walks (cairn/walk.h) need nothing. C++ exceptions and backtrace() of the C
 * library pass through loaded code if `registers_unwind_tables` is set, and the code has unwind
 * tables. They are registered with the unwinder of the process (libgcc's, or LLVM's libunwind)
 * until the module is freed. Register only what exceptions can pass through: until GCC 13, libgcc
 * has a list of what is registered, so that each throw and each release takes time in proportion to
 * its length, and the first throw after n registrations O(n^2) time (measured with GCC 12 and
 * 10,000 modules: 0.5 ms, 0.08 ms and 1 s).
 * nongnu.org's libunwind does not see these tables, and it has functions of its own for exceptions
 * and for backtrace(), which a program that is linked with it before libgcc_s uses. Its lookups
 * take no lock against the removal of a table, so Cairn registers nothing there; the host can, with
 * _U_dyn_register.
 *
 * Not supported, and refused with a message that says so: thread-local storage, functions that are
 * chosen at run time (IFUNC), copy relocations, and relocations that no compiler for these
 * architectures writes.
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

/** Options for loading an object. All zero is the default. What the pointers lead to, except the
 *  name, must remain valid until the loader has finished or is destroyed. */
struct cairn_load_options {
    /** Name of the object, such as "f.o", for messages. It is copied. May be NULL. */
    const char *name;
    /** Finds a symbol that the object uses and no object of the loader defines, and sets
     *  `*address`: of a function, what a function pointer holds. Returns false if the host has no
     *  such symbol. Called by cairn_loader_finish. May be NULL. */
    bool (*find_symbol)(void *user, const char *name, uint64_t *address);
    /** Called by cairn_loader_finish with the name of each symbol that was not found. May be
     *  NULL. */
    void (*note_undefined)(void *user, const char *name);
    /** Called if the object's code needs features of the CPU that this machine does not have: with
     *  the features that it needs, and those that the machine has, by LLVM's names, with commas
     *  between them. May be NULL. */
    void (*note_features)(void *user, const char *needed, const char *available);
    /** LLVM's names of the features that the object's code may use and the architecture's oldest
     *  CPU does not have, with commas between them, such as "avx,avx2,fma"; on PPC64 also "-vsx",
     *  for code that does not use VSX. Exits save only the registers that code with these features
     *  can hold (cairn/exit.h, COST). NULL: the features in the object's manifest, or all that
     *  there are. They are not compared with the machine's. */
    const char *features;
    void *user;
    /** Whether definitions of other modules are not used. */
    bool ignores_modules;
    /** Whether the unwind tables are registered with the process's unwinder (UNWINDING above). */
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
 * architecture, or for a CPU with features that this one lacks, or see above); CONFLICT (a symbol
 * that two objects define; both are named); RANGE (also an alignment of more than a page), MEMORY,
 * STATE. cairn_loader_finish then returns, in addition to its own errors: NOT_FOUND (undefined
 * symbols); RANGE (a relocation's value does not fit: the code model does not allow such
 * distances).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_loader_add_object(
    cairn_loader *loader, const void *bytes, size_t size, const struct cairn_load_options *options,
    struct cairn_error *error);

/** Returns the address of a definition of the module, which other modules may use: of a function,
 *  what a function pointer holds. NULL if no symbol has this name, or only a hidden or local
 *  one. Lock-free and async-signal-safe; takes O(log n) time for n definitions. */
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
 * `.dtors`. NULL is allowed. No other thread may use the module's static objects any more.
 *
 * If this function is not called, the C library calls the registered functions when the process
 * exits, or Cairn when the module is freed, also if the constructors were not run.
 */
CAIRN_API void cairn_module_run_destructors(cairn_module *module);

#ifdef __cplusplus
}
#endif
#endif
