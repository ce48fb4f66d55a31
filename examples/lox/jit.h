/*
 * The compiler, as the interpreter sees it: counters that reach their limit call it.
 *
 * Compiled code is a function of C. It gets its frame, in which the caller has written nothing, and
 * the slots from the callee on, of which the first few are not in memory, but arguments; those that
 * the function does not have are unspecified. It returns the result, or UNDEFINED after an error,
 * which was printed. It finds all else at addresses that do not change.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_JIT_H
#define LOX_JIT_H

#include "vm.h"

enum jit_mode {
    JIT_OFF,
    JIT_ON,     /* compiles what is hot */
    JIT_ALWAYS, /* compiles at the first call, and again after each failed guard */
    JIT_LOOPS,  /* compiles at the first back edge only */
};

typedef lox_value compiled_code(struct closure *closure, lox_value *base, struct frame *frame,
                                lox_value slot_0, lox_value slot_1, lox_value slot_2);

#define AT_CALL UINT32_MAX

/* A version of a function that begins with a call of it, or at the head of a loop with the values
 * that the interpreter has. */
struct entry {
    uint32_t start;      /* AT_CALL, or an instruction */
    uint32_t countdown;  /* how often it is asked for before it is hot */
    compiled_code *code; /* NULL: it is interpreted */
    bool is_refused;     /* never compile it */
};

/* What the compiler knows of a function. */
struct compiled {
    compiled_code *code; /* called by compiled code; the interpreter's entry, if there is none */
    bool is_large;       /* all of it was too large: compile loops alone, and nothing in line */
    bool avoids_loop_types;
    uint32_t left_count;             /* failed speculations */
    uint32_t searches_left;          /* for stored code */
    struct cairn_ic_options *caches; /* of the sites; NULL: not needed yet */
    uint32_t inlined_into;           /* the number of the newest version with it in line */
    uint32_t entry_count;
    struct entry *entries; /* the last that was asked for is the first */
};

enum {
    HOT_INVOCATIONS = 8000, /* more calls than a hot loop makes, into which they are inlined */
    HOT_LOOPS = 200,
};

struct jit_options {
    enum jit_mode mode;
    bool names_code;        /* writes the names of compiled code for perf */
    bool has_debugger;      /* tells debuggers about compiled code */
    const char *log_path;   /* NULL: no log */
    bool has_cache;         /* keeps compiled code for later runs */
    const char *cache_path; /* the folder; NULL: the user's own */
};

#ifdef CAIRN_WITH_LLVM

#define JIT_DEFAULT JIT_ON

/* The compiler, in a shared object that open_jit.c opens. The functions are those below. */
struct jit_functions {
    void (*init)(struct vm *vm, const struct jit_options *options);
    void (*begin_program)(const char *source, size_t size);
    void (*destroy)(void);
    void (*print_statistics)(void);
    void (*add_function)(struct function *function);
    bool (*enter)(struct vm *vm);
    bool (*loop)(struct vm *vm);
    void (*redefined)(uint32_t global);
};

/* NULL in a program that opens the shared object. */
extern const struct jit_functions lox_jit __attribute__((weak));

void jit_init(struct vm *vm, const struct jit_options *options);
/* Called before a program is compiled that is in a file. */
void jit_begin_program(const char *source, size_t size);

void jit_destroy(void);
void jit_print_statistics(void);

void jit_add_function(struct function *function);

/* Called for a new frame whose function is hot. May run it to its end: then its result is on the
 * stack. Returns false after an error. */
bool jit_enter(struct vm *vm);

/* The same for the newest frame, at the beginning of a hot loop. */
bool jit_loop(struct vm *vm);

/* Called before a global variable is defined again. */
void jit_redefined(struct vm *vm, uint32_t global);

#else

#define JIT_DEFAULT JIT_OFF

#define jit_init(vm, options) ((void)(vm), (void)(options))
#define jit_begin_program(source, size) ((void)(source), (void)(size))
#define jit_destroy() (void)0
#define jit_print_statistics() (void)0
#define jit_add_function(function) (void)(function)
#define jit_enter(vm) ((vm) != NULL)
#define jit_loop(vm) ((vm) != NULL)
#define jit_redefined(vm, global) ((void)(vm), (void)(global))

#endif
#endif
