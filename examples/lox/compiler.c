/*
 * The compiler: reads the source once, and writes bytecode while it reads.
 *
 * Expressions are parsed by the precedence of operators: `rules` says for each token what it does
 * at the beginning of an expression, what it does after one, and how strongly it binds.
 *
 * A local variable is a slot of the stack. Only at the end of its scope is it known whether a
 * closure captures it, so that it must be shared; the accesses are then rewritten (see end_locals).
 *
 * All that the compiler allocates is old, and there are no collections while it runs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "jit.h"
#include "scanner.h"
#include "shape.h"
#include "vm.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ARGUMENTS_MAX = 255,
    LOCALS_MAX = 1 << 14,   /* of a function, at a time */
    NESTING_MAX = 2500,     /* the compiler is recursive, and the stack of C has an end */
    CODE_MAX = OPERAND_MAX, /* so that all jumps, sites and constants fit */
};

enum unit_kind { UNIT_SCRIPT, UNIT_FUNCTION, UNIT_METHOD, UNIT_INITIALIZER };

struct local {
    const struct string *name; /* NULL for the callee */
    const struct unit *unit;
    uint32_t depth;
    uint32_t start;    /* the code from which on it exists */
    uint32_t shadowed; /* the number of the variable that has its name outside of its scope, or 0 */
    bool is_ready;     /* its initialiser has ended */
    bool is_captured;
};

/* A function that is being compiled. */
struct unit {
    struct unit *enclosing;
    struct function *function;
    enum unit_kind kind;
    uint32_t scope_depth;
    uint32_t stack_depth; /* slots in use at the end of the code */
    uint32_t first_local; /* the number of the variable in slot 0 */
    instruction *captures;
    uint32_t capture_count;
};

/* A class that is being compiled. */
struct class_unit {
    struct class_unit *enclosing;
    bool has_superclass;
    struct table *fields; /* what its methods assign to `this` */
};

struct compiler {
    struct vm *vm;
    struct scanner scanner;
    struct token current;
    struct token previous;
    struct unit *unit;
    struct class_unit *class;
    struct local *locals; /* of all units, the innermost last; number 0 has no name */
    uint32_t local_count;
    struct table *visible; /* from names to numbers of local variables; 0 for other names */
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

/* Of a token of several lines, the first one is printed. */
static void error_at(struct compiler *c, const struct token *token, const char *message)
{
    const char *end = memchr(token->text, '\n', token->size);
    size_t size = end != NULL ? (size_t)(end - token->text) : token->size;
    if (c->is_panicking || c->is_stopped)
        return;
    c->is_panicking = true;
    c->has_error = true;
    fprintf(stderr, "[line %u] Error", (unsigned)token->line);
    if (token->type == TOKEN_END) {
        fputs(" at end", stderr);
    } else if (token->type != TOKEN_ERROR) {
        fputs(" at '", stderr);
        fwrite(token->text, 1, size, stderr);
        fputc('\'', stderr);
    }
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

static bool check(const struct compiler *c, int type) { return c->current.type == type; }

static bool match(struct compiler *c, int type)
{
    if (!check(c, type))
        return false;
    advance(c);
    return true;
}

static void expect(struct compiler *c, int type, const char *message)
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
    while (!check(c, TOKEN_END) && c->previous.type != ';' &&
           (check(c, '{') || statements[c->current.type] == NULL))
        advance(c);
}

/* Must be called where the grammar is recursive, and `nesting` be decremented after it. */
static void nest(struct compiler *c)
{
    if (++c->nesting > NESTING_MAX)
        stop(c, "Too much nesting.");
}

static struct string *expect_name(struct compiler *c, const char *message)
{
    expect(c, TOKEN_NAME, message);
    return string_intern(&c->vm->heap, c->previous.text, c->previous.size);
}

/* ---- Writing code ---- */

static uint32_t emit_word(struct compiler *c, instruction word)
{
    struct function *function = c->unit->function;
    uint32_t at = function->code_count;
    if (at == CODE_MAX)
        stop(c, "Too much code in one function.");
    if (c->is_stopped)
        return 0;
    function->code = array_grow(function->code, at, sizeof *function->code);
    function->lines = array_grow(function->lines, at, sizeof *function->lines);
    function->code[at] = word;
    function->lines[at] = c->previous.line;
    return function->code_count++;
}

/* Adjusts the depth of the stack, too. After errors it can be wrong, but not be below zero. */
static uint32_t emit(struct compiler *c, enum operation operation, uint32_t operand)
{
    struct function *function = c->unit->function;
    instruction word = make_instruction(operation, operand);
    int64_t depth = (int64_t)c->unit->stack_depth + stack_change(function, word);
    c->unit->stack_depth = depth > 0 ? (uint32_t)depth : 0;
    if (c->unit->stack_depth > function->stack_size)
        function->stack_size = c->unit->stack_depth;
    return emit_word(c, word);
}

static void emit_constant(struct compiler *c, enum operation operation, lox_value value)
{
    struct function *function = c->unit->function;
    uint32_t number = function->constant_count++;
    function->constants = array_grow(function->constants, number, sizeof *function->constants);
    function->constants[number] = value;
    emit(c, operation, number);
}

static void emit_site(struct compiler *c, enum operation operation, struct string *name,
                      uint32_t argument_count)
{
    struct function *function = c->unit->function;
    uint32_t number = function->site_count++;
    function->sites = array_grow(function->sites, number, sizeof *function->sites);
    function->sites[number] =
        (struct site){.operation = operation, .name = name, .argument_count = argument_count};
    for (uint32_t i = 0; i < SITE_CASES; i++)
        function->sites[number].cases[i].key = NO_KEY;
    emit(c, operation, number);
}

/* Lets the jump at `jump` end at the end of the code. */
static void patch_jump(struct compiler *c, uint32_t jump)
{
    struct function *function = c->unit->function;
    if (c->is_stopped)
        return;
    enum operation operation = operation_of(function->code[jump]);
    function->code[jump] = make_instruction(operation, function->code_count - jump - 1);
}

static void emit_loop(struct compiler *c, uint32_t start)
{
    emit(c, OP_LOOP, c->unit->function->code_count + 1 - start);
}

static void emit_default_return(struct compiler *c)
{
    if (c->unit->kind == UNIT_INITIALIZER)
        emit(c, OP_GET_LOCAL, 0);
    else
        emit_constant(c, OP_CONSTANT, NIL);
    emit(c, OP_RETURN, 0);
}

/* ---- Local variables ---- */

/* Returns the local variable that a name means, or NULL. */
static struct local *find_local(const struct compiler *c, const struct string *name)
{
    const lox_value *number = table_find(c->visible, name);
    return number != NULL && *number != 0 ? &c->locals[*number] : NULL;
}

static uint32_t slot_of(const struct compiler *c, const struct local *local)
{
    return (uint32_t)(local - c->locals) - local->unit->first_local;
}

/* Adds a local variable that is not ready. */
static void add_local(struct compiler *c, const struct string *name)
{
    const struct local *shadowed = name != NULL ? find_local(c, name) : NULL;
    const struct unit *unit = c->unit;
    if (c->local_count - unit->first_local == LOCALS_MAX) {
        error(c, "Too many local variables in function.");
        return;
    }
    struct local added = {name, unit, .depth = unit->scope_depth,
                          .start = unit->function->code_count,
                          .shadowed = shadowed != NULL ? (uint32_t)(shadowed - c->locals) : 0};
    if (name != NULL)
        table_set(&c->vm->heap, &c->visible, name, c->local_count);
    c->locals = array_grow(c->locals, c->local_count, sizeof *c->locals);
    c->locals[c->local_count++] = added;
}

/* At the top level, does nothing. */
static void declare_variable(struct compiler *c, const struct string *name)
{
    const struct local *known = find_local(c, name);
    if (c->unit->scope_depth == 0)
        return;
    if (known != NULL && known->unit == c->unit && known->depth == c->unit->scope_depth)
        error(c, "Already a variable with this name in this scope.");
    add_local(c, name);
}

static void make_ready(struct compiler *c) { c->locals[c->local_count - 1].is_ready = true; }

/* Gives the variable that was declared the value on the stack. */
static void define_variable(struct compiler *c, struct string *name)
{
    if (c->unit->scope_depth > 0)
        make_ready(c);
    else
        emit(c, OP_DEFINE_GLOBAL, global_number(c->vm, name));
}

/* Captures a variable of an enclosing function, in all functions in between, too. Returns the
 * number of its box. */
static uint32_t capture(const struct compiler *c, struct unit *unit, struct local *local)
{
    local->is_captured = true;
    instruction word = local->unit == unit->enclosing
                           ? make_instruction(CAPTURE_LOCAL, slot_of(c, local))
                           : make_instruction(CAPTURE_BOX, capture(c, unit->enclosing, local));
    for (uint32_t i = 0; i < unit->capture_count; i++)
        if (unit->captures[i] == word)
            return i;
    unit->captures = array_grow(unit->captures, unit->capture_count, sizeof *unit->captures);
    unit->captures[unit->capture_count] = word;
    return unit->capture_count++;
}

/* Ends the local variables of a unit from number `first` on, and rewrites the accesses to those
 * that are captured: from its start on, a slot is one variable's only. */
static void end_locals(struct compiler *c, uint32_t first)
{
    struct function *function = c->unit->function;
    const struct local *locals = &c->locals[c->unit->first_local]; /* by slot */
    uint32_t at = function->code_count;
    for (uint32_t i = first; i < c->local_count; i++)
        if (c->locals[i].is_captured && c->locals[i].start < at)
            at = c->locals[i].start;
    for (; at < function->code_count; at++) {
        instruction word = function->code[at];
        enum operation operation = operation_of(word);
        uint32_t slot = operand_of(word);
        bool is_local = (operation == OP_GET_LOCAL || operation == OP_SET_LOCAL) &&
                        slot < c->local_count - c->unit->first_local && locals[slot].start <= at;
        if (is_local && locals[slot].is_captured)
            function->code[at] = make_instruction(
                operation == OP_GET_LOCAL ? OP_GET_CAPTURED : OP_SET_CAPTURED, slot);
        at += words_after(function, word);
    }
    while (c->local_count > first) {
        const struct local *local = &c->locals[--c->local_count];
        if (local->name != NULL)
            *table_find(c->visible, local->name) = local->shadowed;
    }
}

static void end_scope(struct compiler *c)
{
    uint32_t count = 0;
    c->unit->scope_depth--;
    while (c->locals[c->local_count - count - 1].depth > c->unit->scope_depth)
        count++;
    end_locals(c, c->local_count - count);
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
    if (can_assign && match(c, '='))
        error(c, "Invalid assignment target.");
    c->nesting--;
}

static void expression(struct compiler *c) { expression_at(c, LEVEL_ASSIGNMENT); }

static void expression_and(struct compiler *c, int type, const char *message)
{
    expression(c);
    expect(c, type, message);
}

static void number(struct compiler *c)
{
    /* A copy, because strtod would read an exponent that follows. */
    char *text = heap_zeroed(c->previous.size + 1);
    memcpy(text, c->previous.text, c->previous.size);
    emit_constant(c, OP_CONSTANT, number_value(strtod(text, NULL)));
    free(text);
}

static void string(struct compiler *c)
{
    const struct string *text =
        string_intern(&c->vm->heap, c->previous.text + 1, c->previous.size - 2);
    emit_constant(c, OP_CONSTANT, object_value(text));
}

static void literal(struct compiler *c)
{
    bool is_nil = c->previous.type == TOKEN_NIL;
    emit_constant(c, OP_CONSTANT, is_nil ? NIL : bool_value(c->previous.type == TOKEN_TRUE));
}

static void grouping(struct compiler *c) { expression_and(c, ')', "Expect ')' after expression."); }

static void unary(struct compiler *c)
{
    enum operation operation = c->previous.type == '-' ? OP_NEGATE : OP_NOT;
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
    struct local *local = find_local(c, name);
    enum operation operation = OP_GET_GLOBAL;
    uint32_t index;
    if (local != NULL && !local->is_ready)
        error(c, "Can't read local variable in its own initializer.");
    if (local == NULL) {
        index = global_number(c->vm, name);
    } else if (local->unit == c->unit) {
        operation = OP_GET_LOCAL;
        index = slot_of(c, local);
    } else {
        operation = OP_GET_BOX;
        index = capture(c, c->unit, local);
    }
    if (can_assign && match(c, '=')) {
        expression(c);
        operation++; /* SET follows GET */
        if (operation == OP_SET_GLOBAL)
            jit_redefined(c->vm, index);
    }
    emit(c, operation, index);
}

static void variable(struct compiler *c)
{
    struct string *name = string_intern(&c->vm->heap, c->previous.text, c->previous.size);
    named_variable(c, name, c->can_assign);
}

static void this_(struct compiler *c)
{
    if (c->class == NULL) {
        error(c, "Can't use 'this' outside of a class.");
        return;
    }
    named_variable(c, c->this_name, false);
    c->this_end = c->unit->function->code_count;
}

static uint32_t arguments(struct compiler *c)
{
    uint32_t count = 0;
    if (!check(c, ')')) {
        do {
            expression(c);
            if (count == ARGUMENTS_MAX)
                error(c, "Can't have more than 255 arguments.");
            count++;
        } while (match(c, ','));
    }
    expect(c, ')', "Expect ')' after arguments.");
    return count;
}

static void super_(struct compiler *c)
{
    if (c->class == NULL)
        error(c, "Can't use 'super' outside of a class.");
    else if (!c->class->has_superclass)
        error(c, "Can't use 'super' in a class with no superclass.");
    expect(c, '.', "Expect '.' after 'super'.");
    struct string *name = expect_name(c, "Expect superclass method name.");
    named_variable(c, c->this_name, false);
    bool is_call = match(c, '(');
    uint32_t count = is_call ? arguments(c) : 0;
    named_variable(c, c->super_name, false);
    emit_site(c, is_call ? OP_INVOKE_SUPER : OP_GET_SUPER, name, count);
}

static void call(struct compiler *c) { emit_site(c, OP_CALL, NULL, arguments(c)); }

static void dot(struct compiler *c)
{
    /* Counts the fields of `this`, for the space in new instances. It is only an estimate. */
    bool is_this = c->class != NULL && c->this_end == c->unit->function->code_count;
    struct string *name = expect_name(c, "Expect property name after '.'.");
    if (c->can_assign && match(c, '=')) {
        if (is_this)
            table_set(&c->vm->heap, &c->class->fields, name, NIL);
        expression(c);
        emit_site(c, OP_SET_PROPERTY, name, 0);
    } else if (match(c, '(')) {
        emit_site(c, OP_INVOKE, name, arguments(c));
    } else {
        emit_site(c, OP_GET_PROPERTY, name, 0);
    }
}

static const struct rule rules[TOKEN_TYPES] = {
    ['('] = {grouping, call, LEVEL_CALL, 0},
    ['.'] = {NULL, dot, LEVEL_CALL, 0},
    ['-'] = {unary, binary, LEVEL_TERM, OP_SUBTRACT},
    ['+'] = {NULL, binary, LEVEL_TERM, OP_ADD},
    ['/'] = {NULL, binary, LEVEL_FACTOR, OP_DIVIDE},
    ['*'] = {NULL, binary, LEVEL_FACTOR, OP_MULTIPLY},
    ['!'] = {unary, NULL, LEVEL_NONE, 0},
    [TOKEN_BANG_EQUAL] = {NULL, binary, LEVEL_EQUALITY, OP_NOT_EQUAL},
    [TOKEN_EQUAL_EQUAL] = {NULL, binary, LEVEL_EQUALITY, OP_EQUAL},
    ['>'] = {NULL, binary, LEVEL_COMPARISON, OP_GREATER},
    [TOKEN_GREATER_EQUAL] = {NULL, binary, LEVEL_COMPARISON, OP_GREATER_EQUAL},
    ['<'] = {NULL, binary, LEVEL_COMPARISON, OP_LESS},
    [TOKEN_LESS_EQUAL] = {NULL, binary, LEVEL_COMPARISON, OP_LESS_EQUAL},
    [TOKEN_NAME] = {variable, NULL, LEVEL_NONE, 0},
    [TOKEN_STRING] = {string, NULL, LEVEL_NONE, 0},
    [TOKEN_NUMBER] = {number, NULL, LEVEL_NONE, 0},
    [TOKEN_AND] = {NULL, logical, LEVEL_AND, OP_JUMP_IF_FALSE},
    [TOKEN_OR] = {NULL, logical, LEVEL_OR, OP_JUMP_IF_TRUE},
    [TOKEN_FALSE] = {literal, NULL, LEVEL_NONE, 0},
    [TOKEN_TRUE] = {literal, NULL, LEVEL_NONE, 0},
    [TOKEN_NIL] = {literal, NULL, LEVEL_NONE, 0},
    [TOKEN_THIS] = {this_, NULL, LEVEL_NONE, 0},
    [TOKEN_SUPER] = {super_, NULL, LEVEL_NONE, 0},
};

/* ---- Functions ---- */

static void begin_unit(struct compiler *c, struct unit *unit, enum unit_kind kind,
                       struct string *name)
{
    struct function *function = heap_zeroed(sizeof *function);
    function->name = name;
    function->is_initializer = kind == UNIT_INITIALIZER;
    function->hot_invocations = function->hot_loops = UINT64_MAX;
    function->number = c->vm->function_count;
    c->vm->functions = array_grow(c->vm->functions, function->number, sizeof(struct function *));
    c->vm->functions[c->vm->function_count++] = function;
    *unit = (struct unit){
        .enclosing = c->unit, .function = function, .kind = kind, .first_local = c->local_count};
    jit_add_function(function);
    c->unit = unit;
    /* Slot 0 is `this`, or the callee, which has no name. */
    add_local(c, kind >= UNIT_METHOD ? c->this_name : NULL);
    make_ready(c);
    unit->stack_depth = function->stack_size = 1;
}

static void end_unit(struct compiler *c)
{
    struct unit *unit = c->unit;
    emit_default_return(c);
    end_locals(c, unit->first_local);
    unit->function->box_count = unit->capture_count;
    unit->function->stack_size++; /* METHOD pushes the closure meanwhile */
    c->unit = unit->enclosing;
}

static void block(struct compiler *c);

static void parameters(struct compiler *c)
{
    struct function *function = c->unit->function;
    if (check(c, ')'))
        return;
    do {
        if (function->arity == ARGUMENTS_MAX)
            error_at(c, &c->current, "Can't have more than 255 parameters.");
        function->arity++;
        declare_variable(c, expect_name(c, "Expect parameter name."));
        make_ready(c);
        c->unit->stack_depth++;
    } while (match(c, ','));
    function->stack_size = c->unit->stack_depth;
}

/* Compiles the parameters and the body of a function, and what makes the closure. */
static void function(struct compiler *c, enum unit_kind kind, struct string *name,
                     enum operation operation)
{
    struct unit unit;
    nest(c);
    begin_unit(c, &unit, kind, name);
    c->unit->scope_depth++;
    expect(c, '(', "Expect '(' after function name.");
    parameters(c);
    expect(c, ')', "Expect ')' after parameters.");
    expect(c, '{', "Expect '{' before function body.");
    block(c);
    end_unit(c);
    struct function *outer = c->unit->function;
    uint32_t number = outer->function_count++;
    outer->functions = array_grow(outer->functions, number, sizeof(struct function *));
    outer->functions[number] = unit.function;
    emit(c, operation, number);
    for (uint32_t i = 0; i < unit.capture_count; i++)
        emit_word(c, unit.captures[i]);
    free(unit.captures);
    c->nesting--;
}

/* A local function's variable gets its slot before the closure is made, which may capture it. */
static void function_declaration(struct compiler *c)
{
    struct string *name = expect_name(c, "Expect function name.");
    bool is_local = c->unit->scope_depth > 0;
    declare_variable(c, name);
    if (is_local) {
        make_ready(c);
        emit_constant(c, OP_CONSTANT, NIL);
    }
    function(c, UNIT_FUNCTION, name, OP_CLOSURE);
    if (is_local) {
        emit(c, OP_SET_LOCAL, c->local_count - c->unit->first_local - 1);
        emit(c, OP_POP, 1);
    } else {
        define_variable(c, name);
    }
}

/* ---- Classes ---- */

/* The superclass is a hidden local variable, which methods capture. */
static void superclass(struct compiler *c, struct string *class_name)
{
    struct string *name = expect_name(c, "Expect superclass name.");
    if (name == class_name)
        error(c, "A class can't inherit from itself.");
    named_variable(c, name, false);
    c->unit->scope_depth++;
    add_local(c, c->super_name);
    make_ready(c);
    named_variable(c, class_name, false);
    emit(c, OP_INHERIT, 0);
    c->class->has_superclass = true;
}

static void class_declaration(struct compiler *c)
{
    struct class_unit class = {.enclosing = c->class};
    struct string *name = expect_name(c, "Expect class name.");
    declare_variable(c, name);
    emit_constant(c, OP_CLASS, object_value(name));
    define_variable(c, name);
    c->class = &class;
    if (match(c, '<'))
        superclass(c, name);
    named_variable(c, name, false);
    expect(c, '{', "Expect '{' before class body.");
    while (!check(c, '}') && !check(c, TOKEN_END)) {
        struct string *method = expect_name(c, "Expect method name.");
        bool is_init = method == c->vm->init_name;
        function(c, is_init ? UNIT_INITIALIZER : UNIT_METHOD, method, OP_METHOD);
    }
    expect(c, '}', "Expect '}' after class body.");
    emit(c, OP_END_CLASS, class.fields != NULL ? class.fields->used : 0);
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
    while (!check(c, '}') && !check(c, TOKEN_END))
        declaration(c);
    expect(c, '}', "Expect '}' after block.");
}

static void var_declaration(struct compiler *c)
{
    struct string *name = expect_name(c, "Expect variable name.");
    declare_variable(c, name);
    if (match(c, '='))
        expression(c);
    else
        emit_constant(c, OP_CONSTANT, NIL);
    expect(c, ';', "Expect ';' after variable declaration.");
    define_variable(c, name);
}

static void expression_statement(struct compiler *c)
{
    expression_and(c, ';', "Expect ';' after expression.");
    emit(c, OP_POP, 1);
}

static void print_statement(struct compiler *c)
{
    expression_and(c, ';', "Expect ';' after value.");
    emit(c, OP_PRINT, 0);
}

static void return_statement(struct compiler *c)
{
    if (c->unit->kind == UNIT_SCRIPT)
        error(c, "Can't return from top-level code.");
    if (match(c, ';')) {
        emit_default_return(c);
        return;
    }
    if (c->unit->kind == UNIT_INITIALIZER)
        error(c, "Can't return a value from an initializer.");
    expression_and(c, ';', "Expect ';' after return value.");
    emit(c, OP_RETURN, 0);
}

/* Compiles a condition. Returns the jump that is taken if it is false. */
static uint32_t condition(struct compiler *c, const char *message)
{
    expect(c, '(', message);
    expression_and(c, ')', "Expect ')' after condition.");
    return emit(c, OP_POP_JUMP_IF_FALSE, 0);
}

static void if_statement(struct compiler *c)
{
    uint32_t to_else = condition(c, "Expect '(' after 'if'.");
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
    uint32_t start = c->unit->function->code_count;
    uint32_t to_end = condition(c, "Expect '(' after 'while'.");
    statement(c);
    emit_loop(c, start);
    patch_jump(c, to_end);
}

/* Exchanges words from `first` to `middle`, and from there to the end. */
static void exchange(uint32_t *words, uint32_t first, uint32_t middle, uint32_t end)
{
    size_t size = (middle - first) * sizeof *words;
    uint32_t *moved = heap_zeroed(size + 1);
    memcpy(moved, words + first, size);
    memmove(words + first, words + middle, (end - middle) * sizeof *words);
    memcpy(words + end - (middle - first), moved, size);
    free(moved);
}

/* The increment is read before the body, and executed after it. Jumps are relative, so the code of
 * both can be exchanged. */
static void for_statement(struct compiler *c)
{
    struct function *function = c->unit->function;
    uint32_t to_end = 0;
    c->unit->scope_depth++;
    expect(c, '(', "Expect '(' after 'for'.");
    if (match(c, TOKEN_VAR))
        var_declaration(c);
    else if (!match(c, ';'))
        expression_statement(c);
    uint32_t start = function->code_count;
    bool has_condition = !match(c, ';');
    if (has_condition) {
        expression_and(c, ';', "Expect ';' after loop condition.");
        to_end = emit(c, OP_POP_JUMP_IF_FALSE, 0);
    }
    uint32_t increment = function->code_count;
    if (!match(c, ')')) {
        expression(c);
        emit(c, OP_POP, 1);
        expect(c, ')', "Expect ')' after for clauses.");
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
    c->unit->scope_depth++;
    block(c);
    end_scope(c);
}

static void (*const statements[TOKEN_TYPES])(struct compiler *c) = {
    [TOKEN_CLASS] = class_declaration, [TOKEN_FUN] = function_declaration,
    [TOKEN_VAR] = var_declaration,     [TOKEN_PRINT] = print_statement,
    [TOKEN_FOR] = for_statement,       [TOKEN_IF] = if_statement,
    [TOKEN_RETURN] = return_statement, [TOKEN_WHILE] = while_statement,
    ['{'] = block_statement,
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
    struct compiler c = {.vm = vm, .scanner = {source, source + size, 1}};
    struct unit script;
    vm->heap.is_paused = true;
    c.this_name = string_intern(&vm->heap, "this", 4);
    c.super_name = string_intern(&vm->heap, "super", 5);
    begin_unit(&c, &script, UNIT_SCRIPT, NULL);
    advance(&c);
    while (!match(&c, TOKEN_END))
        declaration(&c);
    end_unit(&c);
    free(c.locals);
    vm->heap.is_paused = false;
    return c.has_error ? NULL : script.function;
}
