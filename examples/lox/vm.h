/*
 * The virtual machine: the stack, the frames, global variables, errors.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_VM_H
#define LOX_VM_H

#include "code.h"

enum {
    STACK_SLOTS = 1 << 25, /* 100,000 calls with 300 slots each */
    GLOBALS_MAX = OPERAND_MAX + 1,
    FRAMES_MAX = 1 << 18,
    REGISTER_SLOTS = 3, /* compiled code gets so many slots in registers; also the spare ones */
    FRAMES_SPARE = 16,  /* mapped, too, for compiled code, which checks after it has made frames */
    TRACE_LINES = 64,   /* of a deep stack, the first and last so many frames are printed */
};

/* A call of the interpreter. This is all that it knows of a call, so whoever makes frames (a
 * compiled function that leaves) fills in these four, and the slots from `base` on. A frame of
 * compiled code that waits for a call has its closure and its base; `at` is a struct waiting,
 * tagged. */
struct frame {
    struct closure *closure; /* NULL in the frame that leaves the interpreter */
    struct function *function;
    const instruction *at; /* the next instruction; for the newest frame only if it was saved */
    lox_value *base;       /* slot 0: the callee or `this`, then the arguments, then locals */
};

/* A frame that is not written yet. What is the same each time is in the code (see emit_frames.c).
 */
struct described_frame {
    uint32_t function; /* its number */
    uint32_t at;       /* the index of the next instruction */
    uint32_t base;     /* slots from the first frame's base */
    bool has_closure;  /* its closure is in the frame in memory; otherwise it is in slot `base` */
};

/* What compiled code waits for at a certain call: its frames, and which slots of the stack can be
 * objects that move. */
struct waiting {
    uint32_t frame_count;
    uint32_t height; /* of the stack, from the first frame's base */
    uint32_t slot_count;
    struct described_frame frames[]; /* the slots follow, from the first frame's base */
};

#define WAITING_TAG 1 /* added to the address of a struct waiting, instead of an instruction's */

/* Returns NULL for a frame that the interpreter has written. */
static inline const struct waiting *waiting_of(const struct frame *frame)
{
    uintptr_t at = (uintptr_t)frame->at;
    return at & WAITING_TAG ? (const struct waiting *)(at - WAITING_TAG) : NULL;
}

static inline const uint32_t *waiting_slots(const struct waiting *waiting)
{
    return (const uint32_t *)&waiting->frames[waiting->frame_count];
}

struct globals {
    struct table *numbers; /* from names */
    lox_value *values;     /* at a fixed address; UNDEFINED if only named so far */
    bool *are_assigned;    /* whether there is code that assigns it after its definition */
    struct string **names;
    uint32_t count;
};

struct vm {
    struct frame *frame; /* the newest; while the interpreter runs, it has its own copy */
    struct frame *frames;
    lox_value *top; /* the first free slot; likewise */
    lox_value *stack;
    struct globals globals;
    struct function **functions; /* all that were compiled, by number */
    uint32_t function_count;
    struct string *init_name;
    struct heap heap;
};

/* What a VM has is released by the end of the process. */
void vm_init(struct vm *vm, const struct heap_options *options);

/* Writes the frames of compiled code that waits, and returns the newest of them; for another frame,
 * returns that. */
struct frame *complete_frames(const struct vm *vm, struct frame *frame);

/* Returns the number of a global variable. */
uint32_t global_number(struct vm *vm, struct string *name);

/* Prints a message and the stack, whose newest frame must be saved. Returns false. */
bool runtime_error(struct vm *vm, const char *format, ...) __attribute__((format(printf, 2, 3)));

void print_value(lox_value value);

/* ---- compiler.c ---- */

/* Returns the function of a script, or NULL after errors, which were printed. */
struct function *compile(struct vm *vm, const char *source, size_t size);

/* ---- interpreter.c ---- */

/* Runs from the saved state until the frame `last` has returned; its result is on the top. Returns
 * false after an error. */
bool run(struct vm *vm, const struct frame *last);

/* Does the operation before the newest frame's instruction in the general way, and records what it
 * has seen. It finds its operands on the stack, and leaves its result there, which for calls may be
 * a new frame. Returns false after an error, which was printed. */
bool run_slowly(struct vm *vm);
bool out_of_memory(struct vm *vm);

/* Runs a script. Returns false after a run-time error, which was printed. */
bool interpret(struct vm *vm, struct function *script);

#endif
