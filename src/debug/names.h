/*
 * debug/names.h - the names of all code in memory, for debuggers and profilers.
 *
 *     fib                a function of a module: its symbol, or the function that its records name
 *     script+0x40        code of module `script` without a name, from offset 0x40
 *     ic:get@fib+0x12    code of an inline cache of the site at that place
 *     exit@fib+0x12      the exit of a site; "exit" is one that any site may call
 *     veneer@fib+0x12    code through which a site reaches a far function
 *     entry:fib          an entry
 *     closure            a C function pointer to a handler
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DEBUG_NAMES_H
#define DEBUG_NAMES_H

#include "code/watch.h"
#include "runtime/module.h"

/* Longer names are cut off. */
enum { CODE_NAME_BYTES = 1024 };

struct named_code {
    uint64_t address;
    uint64_t size;
    const char *name;
};

typedef void named_code_visitor(const struct named_code *code, void *user);

/* Visits the functions of a module, and its code that is in no function. The ranges do not overlap.
 */
void named_code_visit(const cairn_module *module, named_code_visitor *visit, void *user);

/* Visits the veneers of a module's sites, and the code of its caches. Called with the locks of the
 * runtime's sites held. */
typedef void code_note_visitor(const struct code_note *note, void *user);
void code_notes_visit(const cairn_module *module, code_note_visitor *visit, void *user);

/* Writes the name of code of Cairn's own. */
void code_note_name(const struct code_note *note, char name[CODE_NAME_BYTES]);

#endif
