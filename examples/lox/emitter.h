/*
 * The emitter: from bytecode to LLVM's IR by abstract interpretation, in which the slots of the
 * stack are values of LLVM. The code relies on what the sites have seen: a guard tests it, and
 * otherwise leaves to the interpreter.
 *
 * This header is private to the files emit*.c. Each uses only those before it, except that an
 * inlined call emits a whole function again (emit_code):
 *
 *     emit_ir.c           types, constants, loads and stores, blocks
 *     emit_values.c       values and the stack of them; objects that are not made yet
 *     emit_frames.c       how frames are described: guards, calls, the stack in memory
 *     emit_control.c      where ways meet; loops
 *     emit_objects.c      allocation, fields, the write barrier
 *     emit_operations.c   arithmetic, comparisons, variables
 *     emit_analysis.c     what of a function is reached
 *     emit_calls.c        calls of code, and in line
 *     emit_sites.c        a test and the code for each case that a site has seen
 *     emit.c              the walk over the bytecode
 *     emit_queue.c        compiles what is emitted
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_EMITTER_H
#define LOX_EMITTER_H

#include "emit.h"
#include "shape.h"

#include <cairn/llvm.h>

enum {
    SLOTS_MAX = 512,
    WORK_MAX = 24000, /* for one function, with what is inlined: instructions, and guards */
    GUARD_WORK = 8,
    INLINE_DEPTH_MAX = FRAMES_SPARE - 2,
};

/* Memory of different kinds does not overlap: a store to one kind leaves loads of the others
 * unchanged. What is not marked may be any. */
enum memory {
    MEMORY_STACK,
    MEMORY_IDENTITY,
    MEMORY_FIELD,
    MEMORY_GLOBAL,
    MEMORY_HEAP,
    MEMORY_CONSTANT, /* never stored to */
    MEMORY_KINDS
};

/* What is known of a slot. One of the first three is not NULL, unless the object is pending; others
 * are made when needed. */
struct value {
    LLVMValueRef bits;
    LLVMValueRef number; /* a double; NULL if it may be something else */
    LLVMValueRef truth;  /* an i1; NULL if it may be something else */
    const void *identity;
    const struct object *known; /* the object that it is, if that does not move; or NULL */
    bool is_object;
    bool is_new;     /* in the young generation: nothing was allocated since that can collect */
    bool is_pending; /* the object that is not made yet; bits is NULL */
    bool is_clean;   /* the stack in memory has it */
};

/* A new object that is not in memory before something needs its address, such as a guard's frame
 * state. Until then its fields are values of LLVM, too. There is space for it. If nothing needs it,
 * it is never made. */
struct pending {
    const struct shape *shape;
    uint64_t size;
    struct value fields[INLINE_CAPACITY_MAX];
};

struct edge {
    struct edge *next;
    LLVMBasicBlockRef from;
    struct pending *pending;
    uint32_t height;
    struct value slots[];
};

struct target {
    LLVMBasicBlockRef block;
    struct edge *edges; /* all have the same height */
    bool is_loop;
    LLVMValueRef *phis; /* of a loop */
};

/* A call of a function that is being emitted: the outermost, and inlined ones in it. */
struct activation {
    struct activation *parent;
    struct function *function;
    struct closure *closure; /* if it is known */
    uint32_t base;           /* slot 0 */
    uint32_t stop;           /* the instruction at which it is called after all; or 0 */
    uint32_t at;             /* the instruction that is being emitted */
    uint32_t *depths;        /* of the stack at each instruction; 0: not reached */
    uint32_t first_reached, last_reached;
    uint32_t most_depth;
    struct target **targets;
    struct target done; /* gets the results of an inlined function */
};

struct emitter {
    const struct emit_input *input;
    struct chunk *chunks;

    /* IR */
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef function;
    LLVMBasicBlockRef failed;         /* returns UNDEFINED */
    LLVMBuilderRef reference_builder; /* in the first block, which loads what has a name */
    LLVMTypeRef i1, i8, i32, i64, number, pointer, code_type, entry_type;
    LLVMValueRef memory_tags[MEMORY_KINDS]; /* of type-based alias analysis */
    LLVMValueRef closure, base, frame;      /* the parameters */

    /* Where it is */
    struct activation outermost;
    struct activation *top;
    uint32_t loop_end; /* the LOOP of the loop at which the code begins */
    uint32_t depth;    /* inlined activations */
    bool is_live;      /* whether the builder's block can still be added to */
    uint32_t height;
    struct value slots[SLOTS_MAX]; /* the first `height` are valid */
    struct pending *pending;       /* or NULL; then no slot is pending */

    /* What it has used */
    uint32_t words; /* emitted instructions */
    uint32_t work;  /* the same and guards, each with its weight */
    uint32_t most_slots;
    bool has_failed; /* what is built then is not used */
    const struct reference *assumptions[32];
    uint32_t assumption_count;
    struct reference *first_reference; /* those with a name */
    bool has_unnamed;                  /* it refers to something without a name */
};

/* What the code refers to. */
struct reference {
    struct reference *next;
    struct thing thing;
    const void *address;
    struct thing_name name;
    LLVMValueRef word;    /* the address */
    LLVMValueRef pointer; /* the same */
};

/* ---- emit_ir.c ---- */

/* Returns zeroed memory that is freed with the emitter. */
void *allocate(struct emitter *e, size_t size);
void free_allocated(struct emitter *e);

void make_types(struct emitter *e);
void make_memory_tags(struct emitter *e);

LLVMValueRef word(const struct emitter *e, uint64_t value);

/* Returns a reference to a thing. Its name is used only if the code refers by names. */
const struct reference *refer(struct emitter *e, struct thing thing);

/* Returns addresses: of what a function has, and of an object that does not move. */
LLVMValueRef address_of(struct emitter *e, struct thing thing);
LLVMValueRef object_word(struct emitter *e, const void *object);
LLVMValueRef object_address(struct emitter *e, const void *object);
LLVMValueRef object_bits(struct emitter *e, const void *object);

struct cairn_name name_of(const struct reference *reference);
bool is_always(LLVMValueRef condition);

LLVMValueRef at_offset(const struct emitter *e, LLVMTypeRef type, LLVMValueRef base,
                       uint64_t offset);
LLVMValueRef load(const struct emitter *e, LLVMTypeRef type, LLVMValueRef base, uint64_t offset);
LLVMValueRef store(const struct emitter *e, LLVMValueRef value, LLVMValueRef base, uint64_t offset);

/* Marks a load or store, and returns it. */
LLVMValueRef mark(const struct emitter *e, enum memory memory, LLVMValueRef access);

LLVMValueRef pointer_to(const struct emitter *e, LLVMValueRef bits);
LLVMValueRef compare(const struct emitter *e, LLVMIntPredicate predicate, LLVMValueRef a,
                     uint64_t b);
LLVMValueRef equals(const struct emitter *e, LLVMValueRef a, LLVMValueRef b);

LLVMBasicBlockRef new_block(const struct emitter *e);
void begin(struct emitter *e, LLVMBasicBlockRef block);

/* Goes to the block unless the condition is true, which it nearly always is. */
void go_unless(struct emitter *e, LLVMValueRef condition, LLVMBasicBlockRef otherwise);

LLVMValueRef call_entry(struct emitter *e, enum thing_kind entry, LLVMValueRef argument);

/* ---- emit_values.c ---- */

/* Returns whether nothing moves it, so that it need not be read again. */
bool is_immovable(const struct value *value);

/* Returns the offset of a field in an instance. */
uint64_t offset_of_slot(uint32_t slot);

LLVMValueRef bits_of(struct emitter *e, struct value *value);

/* Makes the pending object if one of the slots holds it. */
void settle(struct emitter *e, struct pending **pending, struct value *slots, uint32_t height);

void push(struct emitter *e, struct value value);
void push_bits(struct emitter *e, LLVMValueRef bits);
void push_constant(struct emitter *e, lox_value constant);
void push_truth(struct emitter *e, LLVMValueRef truth);

/* Returns a value of the stack; 1 is the top. */
struct value *operand(struct emitter *e, uint32_t from_top);

/* Notes what was found out of a value in all slots that hold it. */
void learn(struct emitter *e, LLVMValueRef bits, const struct value *known);

LLVMValueRef truth_of(struct emitter *e, struct value *value);
LLVMValueRef is_number_test(struct emitter *e, struct value *value);

/* Tests whether the operands are numbers. The result may be the constant true. */
LLVMValueRef are_numbers_test(struct emitter *e, uint32_t count);

/* Sets the numbers of the operands, of which it is known that they are numbers. */
void make_numbers(struct emitter *e, uint32_t count);

/* Returns the address of a closure that is known, or else in a slot. */
LLVMValueRef closure_address(struct emitter *e, const struct closure *closure, uint32_t slot);

/* ---- emit_frames.c ---- */

/* Builds a guard. Without a condition, it relies on the assumptions. */
void build_guard(struct emitter *e, LLVMValueRef condition, uint32_t flags);

/* Builds a guard of a speculation, unless the condition is always true. */
void guard(struct emitter *e, LLVMValueRef condition);

/* Always leaves: for what was never executed. */
void leave(struct emitter *e);

/* Always leaves, and the code remains. */
void leave_blamelessly(struct emitter *e);

void expect_object(struct emitter *e, struct value *value);

/* Writes a slot to the stack in memory, unless that has it. */
void flush_slot(struct emitter *e, uint32_t i);

/* Describes the frames and the stack before a call, and writes the slots that a collection must
 * find, or all of them. */
void describe_call(struct emitter *e, bool writes_all);

/* Reads the slots that can have moved in a call. */
void reload(struct emitter *e);

/* Lets the interpreter do the operation. */
void call_runtime(struct emitter *e);

/* ---- emit_control.c ---- */

/* Goes to a target that comes later. */
void go(struct emitter *e, struct target *target);

/* Goes to the target if the condition is `when`, and continues otherwise. */
void go_if(struct emitter *e, LLVMValueRef condition, bool when, struct target *target);

/* Begins a target's block, with the values of all ways to it. */
void begin_target(struct emitter *e, struct target *target);

/* Guards that a loop's variable is still a number. */
void expect_number(struct emitter *e, struct value *value);

/* Goes back to the head of a loop. */
void go_back(struct emitter *e, struct target *head);

/* ---- emit_objects.c ---- */

/* The write barrier. */
void emit_stored(struct emitter *e, LLVMValueRef object, struct value *value);

/* Pushes a new instance, for which the young generation must have space; otherwise, the interpreter
 * allocates: that is rare, and so nothing can move here. If the class has got another root since,
 * its instances have less space than they could have. */
void new_instance(struct emitter *e, const struct class *class);

/* Stores a field of an instance, at an offset, and leaves the value. */
void store_at(struct emitter *e, LLVMValueRef offset);

void emit_get_case(struct emitter *e, const struct site_case *seen);
void emit_set_case(struct emitter *e, const struct site_case *seen);

/* ---- emit_operations.c ---- */

void emit_constant(struct emitter *e, instruction code);
void emit_pop(struct emitter *e, instruction code);
void emit_runtime(struct emitter *e, instruction code);
void emit_closure(struct emitter *e, instruction code);
void emit_numeric(struct emitter *e, instruction code);
void emit_equality(struct emitter *e, instruction code);
void emit_opposite(struct emitter *e, instruction code);
void emit_get_global(struct emitter *e, instruction code);
void emit_set_global(struct emitter *e, instruction code);
void emit_local(struct emitter *e, instruction code);
void emit_captured(struct emitter *e, instruction code);
void emit_box(struct emitter *e, instruction code);

/* ---- emit_analysis.c ---- */

/* Analyses what is emitted of a function: from the instruction `first` on, where the stack has this
 * depth. */
void analyse(struct emitter *e, struct activation *a, uint32_t first, uint32_t depth);

/* Returns whether an instruction is in the loop at which the code begins; for code that begins at a
 * call, in the function. */
bool is_in_loop(const struct emitter *e, const struct activation *a, uint32_t at);

/* Returns where the loop ends that begins at an instruction. */
uint32_t end_of_loop(const struct function *function, uint32_t start);

struct target *target_at(struct emitter *e, struct activation *a, uint32_t at);

/* ---- emit_calls.c ---- */

/* Calls the code of a function, compiled or not, whose callee is in the slot `base`. */
void call_code(struct emitter *e, LLVMValueRef compiled, LLVMValueRef closure, uint32_t base);

/* Calls the function that is being emitted in line, with the same arguments. */
void call_after_all(struct emitter *e);

void call_case(struct emitter *e, const struct site_case *seen);
void call_method(struct emitter *e, const struct site_case *seen);
void call_super(struct emitter *e, const struct site_case *seen);
void emit_result(struct emitter *e, instruction code);

/* ---- emit_sites.c ---- */

void emit_site(struct emitter *e, instruction code);

/* ---- emit.c ---- */

/* Emits the top activation from its lowest instruction on, in the order of the code. The state is
 * that at `first`. */
void emit_code(struct emitter *e, uint32_t first);

struct named_address {
    struct thing_name name;
    const void *address;
};

/* What was emitted. The caller frees the names. */
struct emitted {
    LLVMModuleRef module; /* NULL: it is not possible */
    struct named_address *names;
    uint32_t name_count;
    bool has_unnamed; /* it cannot be stored */
};

/* Emits a module with the function. */
struct emitted emit_function(LLVMContextRef context, const struct emit_input *input);

#endif
