/*
 * From bytecode to LLVM's IR.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_EMIT_H
#define LOX_EMIT_H

#include "jit.h"
#include "things.h"

#include <cairn/cairn.h>

enum {
    FRAME_IS_BLAMELESS = 1 << 29, /* flags of frame states: the code remains right */
    FRAME_IS_LOOP_TYPE = 1 << 28, /* a loop's variable was no number any more */
    FRAME_OFFSET = (1 << 28) - 1, /* slots between this frame's base and the first frame's */
};

struct emit_input {
    struct vm *vm;
    struct function *function;
    uint32_t start;         /* AT_CALL, or the head of a loop, at which the newest frame is */
    uint32_t depth;         /* of the stack there */
    const char *name;       /* of the compiled function */
    uint32_t version;       /* a number for it */
    bool avoids_loop_types; /* variables of loops need not remain numbers */
    bool is_general;        /* it never leaves because of what was not seen yet */
    bool is_part;   /* only the loop that begins at `start`; of a call, nothing is in line */
    bool has_names; /* refers to things by name, so that the code can be stored */
    const cairn_exit *exit;
    uint64_t *next_id;
    /* Returns the address of a thing, or NULL. */
    const void *(*address)(const struct thing *thing);
};

struct emit_output {
    const void
        *code; /* NULL after an error, which was printed, or if it has a large native frame */
    const void *object; /* to be stored, until the next begins; NULL if something had no name */
    size_t object_size;
};

/* The functions that need LLVM. They are in a shared object, which is opened when something is hot
 * for the first time: loading LLVM takes longer than many programs. */
struct emitter_functions {
    /* Lets LLVM initialise itself, in another thread. */
    void (*prepare)(cairn_runtime *runtime, bool has_names);
    /* Begins to compile, in another thread. The last code must have been taken. Returns false if
     * the code is too large. */
    bool (*begin)(const struct emit_input *input);
    /* Waits for the code. */
    void (*wait)(void);
    /* Takes the code. Returns false if it is not compiled yet. */
    bool (*take)(struct emit_output *output);
    void (*end)(void);
};

/* NULL in a program that opens the shared object. */
extern const struct emitter_functions lox_emitter __attribute__((weak));

/* ---- open_emitter.c ---- */

#define EMITTER_FILE "lox-emitter.so"

/* Returns the functions, or NULL while they are not there: then begins to open the shared object in
 * another thread, if that has not begun. */
const struct emitter_functions *emitter_open(cairn_runtime *runtime, bool has_names);

bool emitter_is_opening(void);
void emitter_close(void);

/* ---- compiled.c: what compiled code calls ---- */

typedef uint64_t runtime_entry(uint64_t argument);

extern struct vm *compiled_vm;

/* Does the operation at which a frame waits; a call, up to its return. Returns 0 after an error. */
runtime_entry rt_operation;
runtime_entry rt_remember; /* heap_remember */

/* ---- Inline caches, at sites that have seen too many shapes for guards ---- */

/* Finds a field that is in the instance itself: returns its value or, for stores, its offset. For
 * calls, returns the address of the closure of a method that accepts the arguments. Returns
 * UNDEFINED for all else. */
uint64_t find_cacheable(const struct instance *instance, const struct site *site);
cairn_ic_handler missed; /* `user` is the site */

#endif
