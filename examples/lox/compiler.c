/*
 * The compiler: reads the source once, and writes bytecode while it reads.
 *
 * Expressions are parsed by the precedence of operators: `rules` says for each token what it does
 * at the beginning of an expression, what it does after one, and how strongly it binds.
 *
 * A local variable is a slot of the stack. Only when a closure captures it is it known that it must
 * be shared; the accesses that were written before are then rewritten (see capture_local).
 *
 * All that the compiler allocates is old, and there are no collections while it runs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "jit.h"
#include "scanner.h"
#include "vm.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ARGUMENTS_MAX = 255,
    LOCALS_MAX = 1 << 14, /* looked up one after the other */
    NESTING_MAX = 2500,   /* the compiler is recursive, and the stack of C has an end */
    COUNTED_FIELDS = 64,
    CODE_MAX = OPERAND_MAX, /* so that all jumps, sites and constants fit */
};

enum unit_kind { UNIT_SCRIPT, UNIT_FUNCTION, UNIT_METHOD, UNIT_INITIALIZER };

struct local {
    const struct string *name;
    uint32_t depth;
    uint32_t start; /* the code from which on it exists */
    bool is_ready;  /* its initialiser has ended */
    bool is_captured;
};

struct capture {
    uint32_t index; /* a slot of the enclosing function, or one of its boxes */
    bool is_local;
};

/* A function that is being compiled. */
struct unit {
    struct unit *enclosing;
    struct function *function;
    enum unit_kind kind;
    uint32_t scope_depth;
    uint32_t stack_depth; /* slots in use at the end of the code */
    struct local *locals; /* by slot */
    uint32_t local_count;
    struct capture *captures;
    uint32_t capture_count;
};

/* A class that is being compiled. */
struct class_unit {
    struct class_unit *enclosing;
    bool has_superclass;
    const struct string *fields[COUNTED_FIELDS]; /* what its methods assign to `this` */
    uint32_t field_count;
};

struct compiler {
    struct vm *vm;
    struct scanner scanner;
    struct token current;
    struct token previous;
    struct unit *unit;
    struct class_unit *class;
    struct string *this_name;
    struct string *super_name;
    uint32_t this_end; /* the code after the last `this` */
    uint32_t nesting;
    bool can_assign; /* the expression that begins may be the target of an assignment */
    bool has_error;
    bool is_panicking; /* after an error, until the next statement */
    bool is_stopped;   /* no more errors: the rest is not read */
};

/* ---- Errors ---- */

/* Prints the text, but only the first line of a string that has several. */
static void print_token(const struct token *token)
{
    const char *end = memchr(token->text, '\n', token->size);
    fputs(" at '", stderr);
    fwrite(token->text, 1, end != NULL ? (size_t)(end - token->text) : token->size, stderr);
    fputc('\'', stderr);
}

static void error_at(struct compiler *c, const struct token *token, const char *message)
{
    if (c->is_panicking || c->is_stopped)
        return;
    c->is_panicking = true;
    c->has_error = true;
    fprintf(stderr, "[line %u] Error", (unsigned)token->line);
    if (token->type == TOKEN_END)
        fputs(" at end", stderr);
    else if (token->type != TOKEN_ERROR)
        print_token(token);
    fprintf(stderr, ": %s\n", message);
}

static void error(struct compiler *c, const char *message) { error_at(c, &c->previous, message); }

/* Reports an error and ends the program there, for what must not go on. */
static void stop(struct compiler *c, const char *message)
{
    error(c, message);
    c->is_stopped = true;
    c->scanner.at = c->scanner.end;
    c->current.type = TOKEN_END;
}

/* ---- Tokens ---- */

static void advance(struct compiler *c)
{
    c->previous = c->current;
    for (;;) {
        c->current = scanner_next(&c->scanner);
        if (c->current.type != TOKEN_ERROR)
            return;
        error_at(c, &c->current, c->current.text);
    }
}

static bool check(const struct compiler *c, enum token_type type)
{
    return c->current.type == type;
}

static bool match(struct compiler *c, enum token_type type)
{
    if (!check(c, type))
        return false;
    advance(c);
    return true;
}

static void expect(struct compiler *c, enum token_type type, const char *message)
{
    if (!match(c, type))
        error_at(c, &c->current, message);
}

/* What begins a statement: see below. */
static void (*const statements[TOKEN_TYPES])(struct compiler *c);

/* Goes on to the next statement or declaration after an error. */
static void synchronize(struct compiler *c)
{
    c->is_panicking = false;
    while (!check(c, TOKEN_END) && c->previous.type != TOKEN_SEMICOLON &&
           (check(c, TOKEN_LEFT_BRACE) || statements[c->current.type] == NULL))
        advance(c);
}

/* Must be called where the grammar is recursive, and `nesting` be decremented after it. */
static void nest(struct compiler *c)
{
    if (++c->nesting > NESTING_MAX)
        stop(c, "Too much nesting.");
}

static struct string *intern(struct compiler *c, const char *bytes, size_t size)
{
    struct string *string = string_intern(&c->vm->heap, bytes, size);
    if (string == NULL)
        heap_exhausted();
    return string;
}

static struct string *previous_name(struct compiler *c)
{
    return intern(c, c->previous.text, c->previous.size);
}

/* ---- Writing code ---- */

static struct function *function_of_unit(struct compiler *c) { return c->unit->function; }

/* Adjusts the depth of the stack. After errors it can be wrong, but not be below zero. */
static void count_stack(struct unit *unit, enum operation operation, uint32_t popped)
{
    uint32_t depth = unit->stack_depth;
    int effect = stack_effects[operation];
    depth = depth > popped ? depth - popped : 0;
    depth = effect >= 0 || depth > 0 ? depth + (uint32_t)effect : 0;
    unit->stack_depth = depth;
    if (depth > unit->function->stack_size)
        unit->function->stack_size = depth;
}

static uint32_t emit_word(struct compiler *c, instruction word)
{
    struct function *function = function_of_unit(c);
    if (function->code_count == CODE_MAX)
        stop(c, "Too much code in one function.");
    else if (!c->is_stopped)
        return code_add(function, word, c->previous.line);
    return 0;
}

/* Writes an instruction that pops `popped` values in addition to its fixed effect. */
static uint32_t emit_popping(struct compiler *c, enum operation operation, uint32_t operand,
                             uint32_t popped)
{
    count_stack(c->unit, operation, popped);
    return emit_word(c, make_instruction(operation, operand));
}

static uint32_t emit(struct compiler *c, enum operation operation, uint32_t operand)
{
    return emit_popping(c, operation, operand, operation == OP_POP ? operand : 0);
}

static void emit_constant(struct compiler *c, lox_value value)
{
    emit(c, OP_CONSTANT, constant_add(function_of_unit(c), value));
}

/* Writes an instruction with a new site. */
static void emit_site(struct compiler *c, enum operation operation, struct string *name,
                      uint32_t argument_count)
{
    emit_popping(c, operation, site_add(function_of_unit(c), name, argument_count), argument_count);
}

/* Lets the jump at `jump` end at the end of the code. */
static void patch_jump(struct compiler *c, uint32_t jump)
{
    struct function *function = function_of_unit(c);
    if (c->is_stopped)
        return;
    enum operation operation = operation_of(function->code[jump]);
    function->code[jump] = make_instruction(operation, function->code_count - jump - 1);
}

static void emit_loop(struct compiler *c, uint32_t start)
{
    emit(c, OP_LOOP, function_of_unit(c)->code_count + 1 - start);
}

static void emit_local(struct compiler *c, bool is_set, uint32_t slot)
{
    if (c->unit->locals[slot].is_captured)
        emit(c, is_set ? OP_SET_CAPTURED : OP_GET_CAPTURED, slot);
    else
        emit(c, is_set ? OP_SET_LOCAL : OP_GET_LOCAL, slot);
}

static void emit_default_return(struct compiler *c)
{
    if (c->unit->kind == UNIT_INITIALIZER)
        emit_local(c, false, 0);
    else
        emit(c, OP_PUSH_NIL, 0);
    emit(c, OP_RETURN, 0);
}

/* ---- Local variables ---- */

static void add_local(struct compiler *c, const struct string *name)
{
    struct unit *unit = c->unit;
    if (unit->local_count == LOCALS_MAX) {
        error(c, "Too many local variables in function.");
        return;
    }
    unit->locals = array_grow(unit->locals, unit->local_count, sizeof *unit->locals);
    unit->locals[unit->local_count++] = (struct local){
        .name = name, .depth = unit->scope_depth, .start = unit->function->code_count};
}

/* Adds a local variable that is not ready; at the top level, does nothing. */
static void declare_variable(struct compiler *c, const struct string *name)
{
    struct unit *unit = c->unit;
    if (unit->scope_depth == 0)
        return;
    for (uint32_t i = unit->local_count; i-- > 0;) {
        if (unit->locals[i].depth < unit->scope_depth)
            break;
        if (unit->locals[i].name == name)
            error(c, "Already a variable with this name in this scope.");
    }
    add_local(c, name);
}

static void make_ready(struct compiler *c)
{
    c->unit->locals[c->unit->local_count - 1].is_ready = true;
}

static uint32_t number_of_global(struct compiler *c, struct string *name)
{
    uint32_t number = global_number(c->vm, name);
    if (number > OPERAND_MAX)
        stop(c, "Too many global variables.");
    return number;
}

/* Gives the variable that was declared the value on the stack. */
static void define_variable(struct compiler *c, struct string *name)
{
    if (c->unit->scope_depth > 0)
        make_ready(c);
    else
        emit(c, OP_DEFINE_GLOBAL, number_of_global(c, name));
}

static bool find_local(struct compiler *c, const struct unit *unit, const struct string *name,
                       uint32_t *slot)
{
    for (uint32_t i = unit->local_count; i-- > 0;) {
        if (unit->locals[i].name != name)
            continue;
        if (!unit->locals[i].is_ready)
            error(c, "Can't read local variable in its own initializer.");
        *slot = i;
        return true;
    }
    return false;
}

/* Rewrites the accesses to captured variables in the code from `start` on. */
static void rewrite_captured(const struct unit *unit, uint32_t start)
{
    struct function *function = unit->function;
    for (uint32_t at = start; at < function->code_count; at++) {
        instruction word = function->code[at];
        uint32_t slot = operand_of(word);
        if (operation_of(word) == OP_GET_LOCAL && unit->locals[slot].is_captured)
            function->code[at] = make_instruction(OP_GET_CAPTURED, slot);
        else if (operation_of(word) == OP_SET_LOCAL && unit->locals[slot].is_captured)
            function->code[at] = make_instruction(OP_SET_CAPTURED, slot);
        at += words_after(function, word);
    }
}

/* From its declaration on, the slot is this variable's only. */
static void capture_local(struct unit *unit, uint32_t slot)
{
    if (unit->locals[slot].is_captured)
        return;
    unit->locals[slot].is_captured = true;
    rewrite_captured(unit, unit->locals[slot].start);
}

static uint32_t add_capture(struct unit *unit, struct capture capture)
{
    for (uint32_t i = 0; i < unit->capture_count; i++)
        if (unit->captures[i].index == capture.index &&
            unit->captures[i].is_local == capture.is_local)
            return i;
    unit->captures = array_grow(unit->captures, unit->capture_count, sizeof *unit->captures);
    unit->captures[unit->capture_count] = capture;
    return unit->capture_count++;
}

/* Finds a variable of an enclosing function, and captures it in all functions in between. */
static bool find_captured(struct compiler *c, struct unit *unit, const struct string *name,
                          uint32_t *box)
{
    struct capture capture = {.is_local = true};
    if (unit->enclosing == NULL)
        return false;
    if (find_local(c, unit->enclosing, name, &capture.index))
        capture_local(unit->enclosing, capture.index);
    else if (find_captured(c, unit->enclosing, name, &capture.index))
        capture.is_local = false;
    else
        return false;
    *box = add_capture(unit, capture);
    return true;
}

static void begin_scope(struct compiler *c) { c->unit->scope_depth++; }

static void end_scope(struct compiler *c)
{
    struct unit *unit = c->unit;
    uint32_t count = 0;
    unit->scope_depth--;
    while (unit->local_count > 0 && unit->locals[unit->local_count - 1].depth > unit->scope_depth) {
        unit->local_count--;
        count++;
    }
    if (count > 0)
        emit(c, OP_POP, count);
}

/* ---- Expressions ---- */

enum level {
    LEVEL_NONE,
    LEVEL_ASSIGNMENT,
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_EQUALITY,
    LEVEL_COMPARISON,
    LEVEL_TERM,
    LEVEL_FACTOR,
    LEVEL_UNARY,
    LEVEL_CALL,
};

struct rule {
    void (*prefix)(struct compiler *c);
    void (*infix)(struct compiler *c);
    enum level level;         /* of the infix */
    enum operation operation; /* of a binary operator */
};

static const struct rule rules[TOKEN_TYPES];

/* Compiles an expression whose operators bind at least as strongly as `level`. */
static void expression_at(struct compiler *c, enum level level)
{
    advance(c);
    bool can_assign = level <= LEVEL_ASSIGNMENT;
    if (rules[c->previous.type].prefix == NULL) {
        error(c, "Expect expression.");
        return;
    }
    nest(c);
    c->can_assign = can_assign;
    rules[c->previous.type].prefix(c);
    while (level <= rules[c->current.type].level) {
        advance(c);
        c->can_assign = can_assign;
        rules[c->previous.type].infix(c);
    }
    if (can_assign && match(c, TOKEN_EQUAL))
        error(c, "Invalid assignment target.");
    c->nesting--;
}

static void expression(struct compiler *c) { expression_at(c, LEVEL_ASSIGNMENT); }

static void number(struct compiler *c)
{
    /* A copy, because strtod would read an exponent that follows. */
    char *text = malloc(c->previous.size + 1);
    if (text == NULL)
        heap_exhausted();
    memcpy(text, c->previous.text, c->previous.size);
    text[c->previous.size] = '\0';
    emit_constant(c, number_value(strtod(text, NULL)));
    free(text);
}

static void string(struct compiler *c)
{
    emit_constant(c, object_value(intern(c, c->previous.text + 1, c->previous.size - 2)));
}

static void literal(struct compiler *c) { emit(c, rules[c->previous.type].operation, 0); }

static void grouping(struct compiler *c)
{
    expression(c);
    expect(c, TOKEN_RIGHT_PAREN, "Expect ')' after expression.");
}

static void unary(struct compiler *c)
{
    enum operation operation = c->previous.type == TOKEN_MINUS ? OP_NEGATE : OP_NOT;
    expression_at(c, LEVEL_UNARY);
    emit(c, operation, 0);
}

static void binary(struct compiler *c)
{
    const struct rule *rule = &rules[c->previous.type];
    expression_at(c, rule->level + 1);
    emit(c, rule->operation, 0);
}

/* `and` and `or`: the left operand is the result, or is popped. */
static void logical(struct compiler *c)
{
    const struct rule *rule = &rules[c->previous.type];
    uint32_t end = emit(c, rule->operation, 0);
    emit(c, OP_POP, 1);
    expression_at(c, rule->level);
    patch_jump(c, end);
}

static void named_variable(struct compiler *c, struct string *name, bool can_assign)
{
    uint32_t index;
    bool is_local = find_local(c, c->unit, name, &index);
    bool is_box = !is_local && find_captured(c, c->unit, name, &index);
    bool is_global = !is_local && !is_box;
    if (is_global)
        index = number_of_global(c, name);
    bool is_set = can_assign && match(c, TOKEN_EQUAL);
    if (is_set)
        expression(c);
    if (is_set && is_global)
        jit_redefined(c->vm, index);
    if (is_local)
        emit_local(c, is_set, index);
    else if (is_box)
        emit(c, is_set ? OP_SET_BOX : OP_GET_BOX, index);
    else
        emit(c, is_set ? OP_SET_GLOBAL : OP_GET_GLOBAL, index);
}

static void variable(struct compiler *c) { named_variable(c, previous_name(c), c->can_assign); }

static void this_(struct compiler *c)
{
    if (c->class == NULL) {
        error(c, "Can't use 'this' outside of a class.");
        return;
    }
    named_variable(c, c->this_name, false);
    c->this_end = function_of_unit(c)->code_count;
}

/* Compiles the arguments of a call, and returns their number. */
static uint32_t arguments(struct compiler *c)
{
    uint32_t count = 0;
    if (!check(c, TOKEN_RIGHT_PAREN)) {
        do {
            expression(c);
            if (count == ARGUMENTS_MAX)
                error(c, "Can't have more than 255 arguments.");
            count++;
        } while (match(c, TOKEN_COMMA));
    }
    expect(c, TOKEN_RIGHT_PAREN, "Expect ')' after arguments.");
    return count;
}

static void super_(struct compiler *c)
{
    if (c->class == NULL)
        error(c, "Can't use 'super' outside of a class.");
    else if (!c->class->has_superclass)
        error(c, "Can't use 'super' in a class with no superclass.");
    expect(c, TOKEN_DOT, "Expect '.' after 'super'.");
    expect(c, TOKEN_NAME, "Expect superclass method name.");
    struct string *name = previous_name(c);
    named_variable(c, c->this_name, false);
    if (match(c, TOKEN_LEFT_PAREN)) {
        uint32_t count = arguments(c);
        named_variable(c, c->super_name, false);
        emit_site(c, OP_INVOKE_SUPER, name, count);
    } else {
        named_variable(c, c->super_name, false);
        emit_site(c, OP_GET_SUPER, name, 0);
    }
}

static void call(struct compiler *c) { emit_site(c, OP_CALL, NULL, arguments(c)); }

/* Counts a field for the space in new instances. It is only an estimate. */
static void count_field(struct class_unit *class, const struct string *name)
{
    for (uint32_t i = 0; i < class->field_count; i++)
        if (class->fields[i] == name)
            return;
    if (class->field_count < COUNTED_FIELDS)
        class->fields[class->field_count++] = name;
}

static void dot(struct compiler *c)
{
    bool is_this = c->class != NULL && c->this_end == function_of_unit(c)->code_count;
    expect(c, TOKEN_NAME, "Expect property name after '.'.");
    struct string *name = previous_name(c);
    if (c->can_assign && match(c, TOKEN_EQUAL)) {
        if (is_this)
            count_field(c->class, name);
        expression(c);
        emit_site(c, OP_SET_PROPERTY, name, 0);
    } else if (match(c, TOKEN_LEFT_PAREN)) {
        emit_site(c, OP_INVOKE, name, arguments(c));
    } else {
        emit_site(c, OP_GET_PROPERTY, name, 0);
    }
}

static const struct rule rules[TOKEN_TYPES] = {
    [TOKEN_LEFT_PAREN] = {grouping, call, LEVEL_CALL, 0},
    [TOKEN_DOT] = {NULL, dot, LEVEL_CALL, 0},
    [TOKEN_MINUS] = {unary, binary, LEVEL_TERM, OP_SUBTRACT},
    [TOKEN_PLUS] = {NULL, binary, LEVEL_TERM, OP_ADD},
    [TOKEN_SLASH] = {NULL, binary, LEVEL_FACTOR, OP_DIVIDE},
    [TOKEN_STAR] = {NULL, binary, LEVEL_FACTOR, OP_MULTIPLY},
    [TOKEN_BANG] = {unary, NULL, LEVEL_NONE, 0},
    [TOKEN_BANG_EQUAL] = {NULL, binary, LEVEL_EQUALITY, OP_NOT_EQUAL},
    [TOKEN_EQUAL_EQUAL] = {NULL, binary, LEVEL_EQUALITY, OP_EQUAL},
    [TOKEN_GREATER] = {NULL, binary, LEVEL_COMPARISON, OP_GREATER},
    [TOKEN_GREATER_EQUAL] = {NULL, binary, LEVEL_COMPARISON, OP_GREATER_EQUAL},
    [TOKEN_LESS] = {NULL, binary, LEVEL_COMPARISON, OP_LESS},
    [TOKEN_LESS_EQUAL] = {NULL, binary, LEVEL_COMPARISON, OP_LESS_EQUAL},
    [TOKEN_NAME] = {variable, NULL, LEVEL_NONE, 0},
    [TOKEN_STRING] = {string, NULL, LEVEL_NONE, 0},
    [TOKEN_NUMBER] = {number, NULL, LEVEL_NONE, 0},
    [TOKEN_AND] = {NULL, logical, LEVEL_AND, OP_JUMP_IF_FALSE},
    [TOKEN_OR] = {NULL, logical, LEVEL_OR, OP_JUMP_IF_TRUE},
    [TOKEN_FALSE] = {literal, NULL, LEVEL_NONE, OP_PUSH_FALSE},
    [TOKEN_TRUE] = {literal, NULL, LEVEL_NONE, OP_PUSH_TRUE},
    [TOKEN_NIL] = {literal, NULL, LEVEL_NONE, OP_PUSH_NIL},
    [TOKEN_THIS] = {this_, NULL, LEVEL_NONE, 0},
    [TOKEN_SUPER] = {super_, NULL, LEVEL_NONE, 0},
};

/* ---- Functions ---- */

static void begin_unit(struct compiler *c, struct unit *unit, enum unit_kind kind,
                       struct string *name)
{
    *unit = (struct unit){.enclosing = c->unit, .function = function_new(), .kind = kind};
    unit->function->name = name;
    unit->function->is_initializer = kind == UNIT_INITIALIZER;
    unit->function->next = c->vm->functions;
    c->vm->functions = unit->function;
    jit_add_function(unit->function);
    c->unit = unit;
    /* Slot 0 is `this`, or the callee, which has no name. */
    add_local(c, kind >= UNIT_METHOD ? c->this_name : NULL);
    make_ready(c);
    unit->stack_depth = unit->function->stack_size = 1;
}

static void end_unit(struct compiler *c)
{
    struct unit *unit = c->unit;
    emit_default_return(c);
    unit->function->box_count = unit->capture_count;
    unit->function->stack_size++; /* METHOD pushes the closure meanwhile */
    c->unit = unit->enclosing;
    free(unit->locals);
}

static void block(struct compiler *c);

static void parameters(struct compiler *c)
{
    struct function *function = function_of_unit(c);
    if (check(c, TOKEN_RIGHT_PAREN))
        return;
    do {
        if (function->arity == ARGUMENTS_MAX)
            error_at(c, &c->current, "Can't have more than 255 parameters.");
        function->arity++;
        expect(c, TOKEN_NAME, "Expect parameter name.");
        declare_variable(c, previous_name(c));
        make_ready(c);
        c->unit->stack_depth++;
    } while (match(c, TOKEN_COMMA));
    function->stack_size = c->unit->stack_depth;
}

/* Compiles the parameters and the body of a function, and the instruction that makes the closure.
 */
static void function(struct compiler *c, enum unit_kind kind, struct string *name,
                     enum operation operation)
{
    struct unit unit;
    nest(c);
    begin_unit(c, &unit, kind, name);
    begin_scope(c);
    expect(c, TOKEN_LEFT_PAREN, "Expect '(' after function name.");
    parameters(c);
    expect(c, TOKEN_RIGHT_PAREN, "Expect ')' after parameters.");
    expect(c, TOKEN_LEFT_BRACE, "Expect '{' before function body.");
    block(c);
    end_unit(c);
    emit(c, operation, function_add(function_of_unit(c), unit.function));
    for (uint32_t i = 0; i < unit.capture_count; i++)
        emit_word(c, make_instruction(unit.captures[i].is_local ? CAPTURE_LOCAL : CAPTURE_BOX,
                                      unit.captures[i].index));
    free(unit.captures);
    c->nesting--;
}

/* A local function's variable gets its slot before the closure is made, which may capture it. */
static void function_declaration(struct compiler *c)
{
    expect(c, TOKEN_NAME, "Expect function name.");
    struct string *name = previous_name(c);
    declare_variable(c, name);
    if (c->unit->scope_depth == 0) {
        function(c, UNIT_FUNCTION, name, OP_CLOSURE);
        define_variable(c, name);
        return;
    }
    uint32_t slot = c->unit->local_count - 1;
    make_ready(c);
    emit(c, OP_PUSH_NIL, 0);
    function(c, UNIT_FUNCTION, name, OP_CLOSURE);
    emit_local(c, true, slot);
    emit(c, OP_POP, 1);
}

/* ---- Classes ---- */

static void method(struct compiler *c)
{
    expect(c, TOKEN_NAME, "Expect method name.");
    struct string *name = previous_name(c);
    function(c, name == c->vm->init_name ? UNIT_INITIALIZER : UNIT_METHOD, name, OP_METHOD);
}

/* The superclass is a hidden local variable, which methods capture. */
static void superclass(struct compiler *c, struct string *class_name)
{
    expect(c, TOKEN_NAME, "Expect superclass name.");
    struct string *name = previous_name(c);
    if (name == class_name)
        error(c, "A class can't inherit from itself.");
    named_variable(c, name, false);
    begin_scope(c);
    add_local(c, c->super_name);
    make_ready(c);
    named_variable(c, class_name, false);
    emit(c, OP_INHERIT, 0);
    c->class->has_superclass = true;
}

static void class_declaration(struct compiler *c)
{
    struct class_unit class = {.enclosing = c->class};
    expect(c, TOKEN_NAME, "Expect class name.");
    struct string *name = previous_name(c);
    declare_variable(c, name);
    emit(c, OP_CLASS, constant_add(function_of_unit(c), object_value(name)));
    define_variable(c, name);
    c->class = &class;
    if (match(c, TOKEN_LESS))
        superclass(c, name);
    named_variable(c, name, false);
    expect(c, TOKEN_LEFT_BRACE, "Expect '{' before class body.");
    while (!check(c, TOKEN_RIGHT_BRACE) && !check(c, TOKEN_END))
        method(c);
    expect(c, TOKEN_RIGHT_BRACE, "Expect '}' after class body.");
    emit(c, OP_END_CLASS, class.field_count);
    emit(c, OP_POP, 1);
    if (class.has_superclass)
        end_scope(c);
    c->class = class.enclosing;
}

/* ---- Statements ---- */

static void declaration(struct compiler *c);
static void statement(struct compiler *c);

static void block(struct compiler *c)
{
    while (!check(c, TOKEN_RIGHT_BRACE) && !check(c, TOKEN_END))
        declaration(c);
    expect(c, TOKEN_RIGHT_BRACE, "Expect '}' after block.");
}

static void var_declaration(struct compiler *c)
{
    expect(c, TOKEN_NAME, "Expect variable name.");
    struct string *name = previous_name(c);
    declare_variable(c, name);
    if (match(c, TOKEN_EQUAL))
        expression(c);
    else
        emit(c, OP_PUSH_NIL, 0);
    expect(c, TOKEN_SEMICOLON, "Expect ';' after variable declaration.");
    define_variable(c, name);
}

static void expression_statement(struct compiler *c)
{
    expression(c);
    expect(c, TOKEN_SEMICOLON, "Expect ';' after expression.");
    emit(c, OP_POP, 1);
}

static void print_statement(struct compiler *c)
{
    expression(c);
    expect(c, TOKEN_SEMICOLON, "Expect ';' after value.");
    emit(c, OP_PRINT, 0);
}

static void return_statement(struct compiler *c)
{
    if (c->unit->kind == UNIT_SCRIPT)
        error(c, "Can't return from top-level code.");
    if (match(c, TOKEN_SEMICOLON)) {
        emit_default_return(c);
        return;
    }
    if (c->unit->kind == UNIT_INITIALIZER)
        error(c, "Can't return a value from an initializer.");
    expression(c);
    expect(c, TOKEN_SEMICOLON, "Expect ';' after return value.");
    emit(c, OP_RETURN, 0);
}

static void if_statement(struct compiler *c)
{
    expect(c, TOKEN_LEFT_PAREN, "Expect '(' after 'if'.");
    expression(c);
    expect(c, TOKEN_RIGHT_PAREN, "Expect ')' after condition.");
    uint32_t to_else = emit(c, OP_POP_JUMP_IF_FALSE, 0);
    statement(c);
    if (match(c, TOKEN_ELSE)) {
        uint32_t to_end = emit(c, OP_JUMP, 0);
        patch_jump(c, to_else);
        statement(c);
        patch_jump(c, to_end);
    } else {
        patch_jump(c, to_else);
    }
}

static void while_statement(struct compiler *c)
{
    uint32_t start = function_of_unit(c)->code_count;
    expect(c, TOKEN_LEFT_PAREN, "Expect '(' after 'while'.");
    expression(c);
    expect(c, TOKEN_RIGHT_PAREN, "Expect ')' after condition.");
    uint32_t to_end = emit(c, OP_POP_JUMP_IF_FALSE, 0);
    statement(c);
    emit_loop(c, start);
    patch_jump(c, to_end);
}

/* Exchanges words from `first` to `middle`, and from there to the end. */
static void exchange(uint32_t *words, uint32_t first, uint32_t middle, uint32_t end)
{
    size_t size = (middle - first) * sizeof *words;
    uint32_t *moved = malloc(size + 1);
    if (moved == NULL)
        heap_exhausted();
    memcpy(moved, words + first, size);
    memmove(words + first, words + middle, (end - middle) * sizeof *words);
    memcpy(words + end - (middle - first), moved, size);
    free(moved);
}

/* The increment is read before the body, and executed after it. Jumps are relative, so the code of
 * both can be exchanged. */
static void for_statement(struct compiler *c)
{
    struct function *function = function_of_unit(c);
    uint32_t to_end = 0;
    begin_scope(c);
    expect(c, TOKEN_LEFT_PAREN, "Expect '(' after 'for'.");
    if (match(c, TOKEN_VAR))
        var_declaration(c);
    else if (!match(c, TOKEN_SEMICOLON))
        expression_statement(c);
    uint32_t start = function->code_count;
    bool has_condition = !match(c, TOKEN_SEMICOLON);
    if (has_condition) {
        expression(c);
        expect(c, TOKEN_SEMICOLON, "Expect ';' after loop condition.");
        to_end = emit(c, OP_POP_JUMP_IF_FALSE, 0);
    }
    uint32_t increment = function->code_count;
    if (!match(c, TOKEN_RIGHT_PAREN)) {
        expression(c);
        emit(c, OP_POP, 1);
        expect(c, TOKEN_RIGHT_PAREN, "Expect ')' after for clauses.");
    }
    uint32_t body = function->code_count;
    statement(c);
    exchange(function->code, increment, body, function->code_count);
    exchange(function->lines, increment, body, function->code_count);
    emit_loop(c, start);
    if (has_condition)
        patch_jump(c, to_end);
    end_scope(c);
}

static void block_statement(struct compiler *c)
{
    begin_scope(c);
    block(c);
    end_scope(c);
}

static void (*const statements[TOKEN_TYPES])(struct compiler *c) = {
    [TOKEN_CLASS] = class_declaration,    [TOKEN_FUN] = function_declaration,
    [TOKEN_VAR] = var_declaration,        [TOKEN_PRINT] = print_statement,
    [TOKEN_FOR] = for_statement,          [TOKEN_IF] = if_statement,
    [TOKEN_RETURN] = return_statement,    [TOKEN_WHILE] = while_statement,
    [TOKEN_LEFT_BRACE] = block_statement,
};

static void statement(struct compiler *c)
{
    bool is_declaration = check(c, TOKEN_CLASS) || check(c, TOKEN_FUN) || check(c, TOKEN_VAR);
    nest(c);
    if (is_declaration || statements[c->current.type] == NULL) {
        expression_statement(c);
    } else {
        advance(c);
        statements[c->previous.type](c);
    }
    c->nesting--;
}

static void declaration(struct compiler *c)
{
    if (match(c, TOKEN_CLASS) || match(c, TOKEN_FUN) || match(c, TOKEN_VAR))
        statements[c->previous.type](c);
    else
        statement(c);
    if (c->is_panicking)
        synchronize(c);
}

struct function *compile(struct vm *vm, const char *source, size_t size)
{
    struct compiler c = {.vm = vm};
    struct unit script;
    vm->heap.is_paused = true;
    c.this_name = intern(&c, "this", 4);
    c.super_name = intern(&c, "super", 5);
    scanner_init(&c.scanner, source, size);
    begin_unit(&c, &script, UNIT_SCRIPT, NULL);
    advance(&c);
    while (!match(&c, TOKEN_END))
        declaration(&c);
    end_unit(&c);
    free(script.captures);
    vm->heap.is_paused = false;
    return c.has_error ? NULL : script.function;
}
