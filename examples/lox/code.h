/*
 * Bytecode: functions, instructions, lines, and the feedback that the interpreter collects.
 *
 * An instruction is a word: the operation in the low 8 bits, an operand in the other 24. Operations
 * that look up a name or call something have a site, whose number is the operand: what they are
 * (name, number of arguments), the cache of the interpreter, and what they have seen, for a
 * compiler.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_CODE_H
#define LOX_CODE_H

#include "heap.h"

/* Each operation; the values that it pushes, less those that it pops, without those that its
 * operand counts (see stack_change); the function of emit*.c that compiles it; its operand, and the
 * stack before and after it, top on the right. For each kind of variable, SET follows GET. */
#define OPERATIONS(X)                                                                              \
    X(CONSTANT, 1, constant)       /* number of a constant   | → constant */                     \
    X(POP, 0, pop)                 /* count                  | that many values → */             \
    X(GET_LOCAL, 1, local)         /* slot                   | → value */                        \
    X(SET_LOCAL, 0, local)         /* slot                   | value → value */                  \
    X(GET_CAPTURED, 1, captured)   /* slot of a box or value | → value */                        \
    X(SET_CAPTURED, 0, captured)   /* slot of a box or value | value → value */                  \
    X(GET_BOX, 1, box)             /* number of a box        | → value */                        \
    X(SET_BOX, 0, box)             /* number of a box        | value → value */                  \
    X(GET_GLOBAL, 1, get_global)   /* number of a global     | → value */                        \
    X(SET_GLOBAL, 0, set_global)   /* number of a global     | value → value */                  \
    X(DEFINE_GLOBAL, -1, nothing)  /* number of a global     | value → */                        \
    X(GET_PROPERTY, 0, site)       /* site                   | object → value */                 \
    X(SET_PROPERTY, -1, site)      /* site                   | object value → value */           \
    X(GET_SUPER, -1, runtime)      /* site                   | this class → bound method */      \
    X(EQUAL, -1, equality)         /*                        | a b → a == b */                   \
    X(NOT_EQUAL, -1, equality)     /*                        | a b → a != b */                   \
    X(LESS, -1, numeric)           /*                        | a b → a < b */                    \
    X(LESS_EQUAL, -1, numeric)     /*                        | a b → a <= b */                   \
    X(GREATER, -1, numeric)        /*                        | a b → a > b */                    \
    X(GREATER_EQUAL, -1, numeric)  /*                        | a b → a >= b */                   \
    X(ADD, -1, numeric)            /* SEEN_STRINGS, or 0     | a b → a + b */                    \
    X(SUBTRACT, -1, numeric)       /*                        | a b → a - b */                    \
    X(MULTIPLY, -1, numeric)       /*                        | a b → a * b */                    \
    X(DIVIDE, -1, numeric)         /*                        | a b → a / b */                    \
    X(NEGATE, 0, numeric)          /*                        | a → -a */                         \
    X(NOT, 0, opposite)            /*                        | a → !a */                         \
    X(PRINT, -1, runtime)          /*                        | value → */                        \
    X(JUMP, 0, jump)               /* words forward          | */                                  \
    X(JUMP_IF_FALSE, 0, jump)      /* words forward          | value → value */                  \
    X(JUMP_IF_TRUE, 0, jump)       /* words forward          | value → value */                  \
    X(POP_JUMP_IF_FALSE, -1, jump) /* words forward          | value → */                        \
    X(LOOP, 0, loop)               /* words backward         | */                                  \
    X(CALL, 0, site)               /* site                   | callee arguments → result */      \
    X(INVOKE, 0, site)             /* site                   | object arguments → result */      \
    X(INVOKE_SUPER, -1, site)      /* site                   | this arguments class → result */  \
    X(CLOSURE, 1, closure)         /* number of a function   | → closure; captures follow */     \
    X(CLASS, 1, runtime)           /* constant, the name     | → class */                        \
    X(INHERIT, -1, runtime)        /*                        | superclass class → superclass */  \
    X(METHOD, 0, closure)          /* number of a function   | class → class; captures follow */ \
    X(END_CLASS, 0, runtime)       /* fields set by methods  | class → class */                  \
    X(RETURN, -1, result)          /*                        | value → */                        \
    X(HALT, 0, nothing)            /*                        | leaves the interpreter */

enum operation {
#define OPERATION(name, effect, emitter) OP_##name,
    OPERATIONS(OPERATION)
#undef OPERATION
};

enum { OPERAND_MAX = (1 << 24) - 1 };

typedef uint32_t instruction;

static inline enum operation operation_of(instruction word) { return word & 0xff; }
static inline uint32_t operand_of(instruction word) { return word >> 8; }

static inline instruction make_instruction(enum operation operation, uint32_t operand)
{
    return operand << 8 | (uint32_t)operation;
}

/* Captures are the words after CLOSURE and METHOD: a slot of the frame, or a box of its closure. */
#define CAPTURE_BOX ((enum operation)0)
#define CAPTURE_LOCAL ((enum operation)1)

/* The operand of arithmetic that has seen strings, and not only numbers. */
enum { SEEN_STRINGS = 1 };

/* ---- Feedback ---- */

enum access {
    ACCESS_INLINE,    /* field `slot` of the instance itself; `target` is the shape after a store */
    ACCESS_MORE,      /* the same in the instance's array */
    ACCESS_METHOD,    /* `target` is the method's closure */
    ACCESS_CALL,      /* the key is the function that is called */
    ACCESS_CONSTRUCT, /* the key is the class; `target` is the closure of its init, or NULL */
};

/* One thing that a site has seen: what an object with this identity means there. Nothing in it
 * moves. */
struct site_case {
    void *key; /* NO_KEY in unused cases, which no object has */
    void *target;
    uint32_t slot;
    enum access access;
};

enum { SITE_CASES = 4 };
#define NO_KEY ((void *)1)

/* Calls are recorded only with a number of arguments that the callee accepts. */
struct site {
    struct site_case cases[SITE_CASES];
    uint32_t case_count;
    enum operation operation;
    struct string *name; /* of the property; NULL for CALL */
    uint32_t argument_count;
    bool is_megamorphic; /* it has seen more, or what cannot be in a case */
};

/* ---- Functions ---- */

/* The code of a function: made by the compiler, and kept to the end of the process. */
struct function {
    uint32_t number;     /* in the order of the program */
    struct string *name; /* NULL for a script */
    uint32_t arity;
    uint32_t box_count;
    uint32_t stack_size; /* slots, with the callee's own */
    bool is_initializer;
    uint64_t invocation_count;
    uint64_t loop_count; /* executed LOOPs */
    /* Counts at which the interpreter asks jit.c for compiled code. */
    uint64_t hot_invocations;
    uint64_t hot_loops;
    struct compiled *compiled; /* jit.h; NULL without a compiler */

    instruction *code;
    uint32_t *lines; /* of each instruction */
    uint32_t code_count;
    lox_value *constants; /* strings among them are old */
    uint32_t constant_count;
    struct site *sites;
    uint32_t site_count;
    struct function **functions;
    uint32_t function_count;
};

/* Returns an array that grew by this function only, with space for one item more. Its capacity is
 * 8, or the power of two that is not below `count`. */
void *array_grow(void *items, uint32_t count, size_t item_size);

/* Returns by how many values an instruction changes the depth of the stack. */
int32_t stack_change(const struct function *function, instruction word);

/* Returns how many words after the instruction belong to it: captures. */
uint32_t words_after(const struct function *function, instruction word);

/* Returns what the site has seen of such an object, or NULL. */
static inline const struct site_case *site_find(const struct site *site, lox_value value)
{
    if (__builtin_expect(is_object(value), 1)) {
        const void *key = as_object(value)->identity;
        for (uint32_t i = 0; i < SITE_CASES; i++)
            if (__builtin_expect(site->cases[i].key == key, i == 0))
                return &site->cases[i];
    }
    return NULL;
}

/* Adds a case that the site has not seen yet. */
void site_record(struct site *site, const struct site_case *seen);

/* Visits what a function refers to. Only for major collections: all of it is old. */
void function_visit(struct heap *heap, struct function *function);

#endif
