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

/* Each operation with its operand and the effect on the stack, whose top is on the right. */
#define OPERATIONS(X)                                                                              \
    X(CONSTANT)          /* number of a constant   | → constant */                               \
    X(PUSH_NIL)          /*                        | → nil */                                    \
    X(PUSH_TRUE)         /*                        | → true */                                   \
    X(PUSH_FALSE)        /*                        | → false */                                  \
    X(POP)               /* count                  | that many values → */                       \
    X(GET_LOCAL)         /* slot                   | → value */                                  \
    X(SET_LOCAL)         /* slot                   | value → value */                            \
    X(GET_CAPTURED)      /* slot of a box or value | → value */                                  \
    X(SET_CAPTURED)      /* slot of a box or value | value → value */                            \
    X(GET_BOX)           /* number of a box        | → value */                                  \
    X(SET_BOX)           /* number of a box        | value → value */                            \
    X(GET_GLOBAL)        /* number of a global     | → value */                                  \
    X(SET_GLOBAL)        /* number of a global     | value → value */                            \
    X(DEFINE_GLOBAL)     /* number of a global     | value → */                                  \
    X(GET_PROPERTY)      /* site                   | object → value */                           \
    X(SET_PROPERTY)      /* site                   | object value → value */                     \
    X(GET_SUPER)         /* site                   | this class → bound method */                \
    X(EQUAL)             /*                        | a b → a == b */                             \
    X(NOT_EQUAL)         /*                        | a b → a != b */                             \
    X(LESS)              /* seen operands          | a b → a < b */                              \
    X(LESS_EQUAL)        /* seen operands          | a b → a <= b */                             \
    X(GREATER)           /* seen operands          | a b → a > b */                              \
    X(GREATER_EQUAL)     /* seen operands          | a b → a >= b */                             \
    X(ADD)               /* seen operands          | a b → a + b */                              \
    X(SUBTRACT)          /* seen operands          | a b → a - b */                              \
    X(MULTIPLY)          /* seen operands          | a b → a * b */                              \
    X(DIVIDE)            /* seen operands          | a b → a / b */                              \
    X(NEGATE)            /* seen operands          | a → -a */                                   \
    X(NOT)               /*                        | a → !a */                                   \
    X(PRINT)             /*                        | value → */                                  \
    X(JUMP)              /* words forward          | */                                            \
    X(JUMP_IF_FALSE)     /* words forward          | value → value */                            \
    X(JUMP_IF_TRUE)      /* words forward          | value → value */                            \
    X(POP_JUMP_IF_FALSE) /* words forward          | value → */                                  \
    X(LOOP)              /* words backward         | */                                            \
    X(CALL)              /* site                   | callee arguments → result */                \
    X(INVOKE)            /* site                   | object arguments → result */                \
    X(INVOKE_SUPER)      /* site                   | this arguments class → result */            \
    X(CLOSURE)           /* number of a function   | → closure; captures follow */               \
    X(CLASS)             /* constant, the name     | → class */                                  \
    X(INHERIT)           /*                        | superclass class → superclass */            \
    X(METHOD)            /* number of a function   | class → class; captures follow */           \
    X(END_CLASS)         /* fields set by methods  | class → */                                  \
    X(RETURN)            /*                        | value → */                                  \
    X(HALT)              /*                        | leaves the interpreter */

enum operation {
#define OPERATION(name) OP_##name,
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

/* What arithmetic has seen, in its operand. None: numbers, or not executed. */
enum { SEEN_STRINGS = 1, SEEN_OTHERS = 2 };

/* ---- Feedback ---- */

enum access {
    ACCESS_NONE,
    ACCESS_INLINE, /* field `slot` of the instance itself; `target` is the shape after a store */
    ACCESS_ADD_INLINE, /* the same, and the store adds the field */
    ACCESS_MORE,       /* field `slot` of the instance's array */
    ACCESS_ADD_MORE,
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
    struct string *name; /* of the property; NULL for CALL */
    uint32_t argument_count;
    bool is_megamorphic; /* it has seen more, or what cannot be in a case */
};

/* ---- Functions ---- */

struct line_run {
    uint32_t first; /* the first instruction of that line */
    uint32_t line;
};

/* The code of a function: made by the compiler, and kept to the end of the process. */
struct function {
    struct function *next; /* in the list of all functions */
    struct string *name;   /* NULL for a script */
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
    uint32_t code_count;
    lox_value *constants; /* numbers, and strings in the old generation */
    uint32_t constant_count;
    struct site *sites;
    uint32_t site_count;
    struct function **functions;
    uint32_t function_count;
    struct line_run *lines;
    uint32_t line_count;
    uint32_t code_capacity, constant_capacity, site_capacity, function_capacity, line_capacity;
};

/* ---- For the compiler; functions that add something return its number ---- */

/* Returns the array with space for one item more; its capacity is doubled if needed. */
void *array_grow(void *items, uint32_t count, uint32_t *capacity, size_t item_size);

struct function *function_new(void);
void function_free(struct function *function);
uint32_t code_add(struct function *function, instruction word, uint32_t line);
uint32_t constant_add(struct function *function, lox_value value);
uint32_t site_add(struct function *function, struct string *name, uint32_t argument_count);
uint32_t function_add(struct function *function, struct function *inner);

/* ---- For all ---- */

/* The values that each operation pushes, less those that it pops, without the counted ones, which
 * values_popped returns. */
extern const int stack_effects[];
uint32_t values_popped(const struct function *function, instruction word);

/* Returns the line of an instruction. */
uint32_t line_of(const struct function *function, const instruction *at);

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

/* Prints the instructions of a function. */
void function_print(const struct function *function);

#endif
