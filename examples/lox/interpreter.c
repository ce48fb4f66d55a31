/*
 * The interpreter: one label for each operation, and a jump to the next one's after each.
 *
 * Its registers (the frame, the instruction, the top of the stack) are in local variables. They are
 * stored to the VM before whatever can collect, fail or call, and loaded again after it: SAVE and
 * LOAD. So a collection finds all values on the stack, from which they are read again.
 *
 * Operations do the case in line that they have seen last. All else is done by a function that
 * returns false after an error; these also write the feedback.
 *
 * SPDX-License-Identifier: MIT
 */
#include "jit.h"
#include "shape.h"
#include "vm.h"

bool out_of_memory(struct vm *vm) { return runtime_error(vm, "Out of memory."); }

/* Joins strings, and notes in the instruction that it does. */
static bool add(struct vm *vm)
{
    lox_value *operands = vm->top - 2;
    if (!is_kind(operands[0], KIND_STRING) || !is_kind(operands[1], KIND_STRING))
        return runtime_error(vm, "Operands must be two numbers or two strings.");
    struct function *function = vm->frame->function;
    function->code[vm->frame->at - 1 - function->code] = make_instruction(OP_ADD, SEEN_STRINGS);
    const struct string *joined =
        string_join(&vm->heap, as_string(operands[0]), as_string(operands[1]));
    if (joined == NULL)
        return out_of_memory(vm);
    operands[0] = object_value(joined);
    vm->top--;
    return true;
}

/* ---- Closures and boxes ---- */

static void set_box(struct heap *heap, struct box *box, lox_value value)
{
    box->value = value;
    heap_stored(heap, &box->object, value);
}

static bool box_slot(struct vm *vm, lox_value *slot)
{
    if (is_kind(*slot, KIND_BOX))
        return true;
    struct box *box = heap_new(&vm->heap, KIND_BOX, sizeof *box);
    if (box == NULL)
        return false;
    box->value = *slot;
    *slot = object_value(box);
    return true;
}

/* Returns the closure of a function whose captures are in the code after CLOSURE or METHOD, or NULL
 * after an error. */
static struct closure *make_closure(struct vm *vm, struct function *function, bool is_old)
{
    struct frame *frame = vm->frame;
    size_t size = sizeof(struct closure) + function->box_count * sizeof(struct box *);
    for (uint32_t i = 0; i < function->box_count; i++)
        if (operation_of(frame->at[i]) == CAPTURE_LOCAL &&
            !box_slot(vm, &frame->base[operand_of(frame->at[i])]))
            return NULL;
    struct closure *closure = is_old ? heap_new_old(&vm->heap, KIND_CLOSURE, size)
                                     : heap_new(&vm->heap, KIND_CLOSURE, size);
    if (closure == NULL)
        return NULL;
    closure->object.identity = function;
    closure->object.count = function->box_count;
    for (uint32_t i = 0; i < function->box_count; i++) {
        uint32_t index = operand_of(frame->at[i]);
        bool is_local = operation_of(frame->at[i]) == CAPTURE_LOCAL;
        closure->boxes[i] = is_local ? as_box(frame->base[index]) : frame->closure->boxes[index];
    }
    if (is_old && function->box_count > 0)
        heap_remember(&vm->heap, &closure->object);
    frame->at += function->box_count;
    return closure;
}

/* Pushes a new object, or fails if there was no memory for it. */
static bool push_new(struct vm *vm, const void *object)
{
    if (object == NULL)
        return out_of_memory(vm);
    *vm->top++ = object_value(object);
    return true;
}

/* ---- Classes ---- */

static bool inherit(struct vm *vm)
{
    if (!is_kind(vm->top[-2], KIND_CLASS))
        return runtime_error(vm, "Superclass must be a class.");
    if (!class_inherit(&vm->heap, as_class(vm->top[-1]), as_class(vm->top[-2])))
        return out_of_memory(vm);
    vm->top--;
    return true;
}

/* The closure is kept on the stack while the table of methods may grow. */
static bool define_method(struct vm *vm, struct function *function)
{
    struct closure *method = make_closure(vm, function, true);
    if (!push_new(vm, method))
        return false;
    bool has_memory = class_add_method(&vm->heap, as_class(vm->top[-2]), method);
    vm->top--;
    return has_memory || out_of_memory(vm);
}

/* ---- Calls ---- */

static bool accepts(struct vm *vm, uint32_t arity, uint32_t argument_count)
{
    return argument_count == arity || runtime_error(vm, "Expected %u arguments but got %u.",
                                                    (unsigned)arity, (unsigned)argument_count);
}

/* Makes the frame of a call whose callee and arguments are on the stack. */
static bool enter(struct vm *vm, struct closure *closure, uint32_t argument_count)
{
    struct function *function = function_of(closure);
    lox_value *base = vm->top - argument_count - 1;
    if (!accepts(vm, function->arity, argument_count))
        return false;
    if (vm->frame == vm->frames + FRAMES_MAX - 1 ||
        function->stack_size > (size_t)(vm->stack + STACK_SLOTS - base))
        return runtime_error(vm, "Stack overflow.");
    function->invocation_count++;
    *++vm->frame = (struct frame){closure, function, function->code, base};
    return function->invocation_count < function->hot_invocations || jit_enter(vm);
}

/* Makes an instance, in the place of the class, and calls its init. */
static bool construct(struct vm *vm, uint32_t argument_count)
{
    const struct class *class = as_class(vm->top[-1 - (ptrdiff_t)argument_count]);
    if (class->init == NULL && !accepts(vm, 0, argument_count))
        return false;
    const struct instance *instance = instance_new(&vm->heap, class);
    if (instance == NULL)
        return out_of_memory(vm);
    vm->top[-1 - (ptrdiff_t)argument_count] = object_value(instance);
    return class->init == NULL || enter(vm, class->init, argument_count);
}

static bool call_value(struct vm *vm, uint32_t argument_count)
{
    lox_value *callee = vm->top - argument_count - 1;
    if (is_object(*callee)) {
        struct object *object = as_object(*callee);
        switch ((enum kind)object->kind) {
        case KIND_CLOSURE:
            return enter(vm, (struct closure *)object, argument_count);
        case KIND_CLASS:
            return construct(vm, argument_count);
        case KIND_NATIVE:
            if (!accepts(vm, 0, argument_count))
                return false;
            *callee = ((struct native *)object)->call();
            return true;
        case KIND_BOUND_METHOD:
            *callee = ((struct bound_method *)object)->receiver;
            return enter(vm, ((struct bound_method *)object)->method, argument_count);
        default:
            break;
        }
    }
    return runtime_error(vm, "Can only call functions and classes.");
}

/* Records what is called, if it is a function or a class that accepts the arguments. */
static void note_callee(struct site *site, lox_value callee)
{
    struct site_case seen = {.access = ACCESS_CALL};
    const struct closure *entered = as_closure(callee);
    if (is_kind(callee, KIND_CLASS)) {
        seen.access = ACCESS_CONSTRUCT;
        seen.target = as_class(callee)->init;
        entered = seen.target;
    } else if (!is_kind(callee, KIND_CLOSURE)) {
        site->is_megamorphic = true;
        return;
    }
    seen.key = as_object(callee)->identity;
    if ((entered != NULL ? function_of(entered)->arity : 0) == site->argument_count)
        site_record(site, &seen);
}

static bool call(struct vm *vm, struct site *site)
{
    note_callee(site, vm->top[-1 - (ptrdiff_t)site->argument_count]);
    return call_value(vm, site->argument_count);
}

/* ---- Properties ---- */

static bool undefined(struct vm *vm, const char *what, const struct string *name)
{
    return runtime_error(vm, "Undefined %s '%s'.", what, name->bytes);
}

/* Replaces the receiver on the top of the stack by its bound method. */
static bool bind(struct vm *vm, struct closure *method)
{
    struct bound_method *bound = heap_new(&vm->heap, KIND_BOUND_METHOD, sizeof *bound);
    if (bound == NULL)
        return out_of_memory(vm);
    bound->receiver = vm->top[-1];
    bound->method = method;
    vm->top[-1] = object_value(bound);
    return true;
}

static bool is_call(const struct site *site) { return site->operation >= OP_CALL; }

/* Records a case if it can be cached. For calls, the callee must accept the arguments. */
static void note(struct site *site, const struct site_case *found)
{
    if (found->key == NO_KEY)
        site->is_megamorphic = true;
    else if (!is_call(site) || function_of(found->target)->arity == site->argument_count)
        site_record(site, found);
}

static bool get_property(struct vm *vm, struct site *site)
{
    struct site_case found;
    if (!is_kind(vm->top[-1], KIND_INSTANCE))
        return runtime_error(vm, "Only instances have properties.");
    const struct instance *instance = as_instance(vm->top[-1]);
    const struct site_case *known = site_find(site, vm->top[-1]);
    if (known != NULL)
        found = *known;
    else if (!property_find(shape_of(instance), site->name, &found))
        return undefined(vm, "property", site->name);
    else
        note(site, &found);
    if (found.access == ACCESS_METHOD)
        return bind(vm, found.target);
    vm->top[-1] = field_get(instance, &found);
    return true;
}

static bool set_property(struct vm *vm, struct site *site)
{
    lox_value *operands = vm->top - 2;
    struct site_case found;
    if (!is_kind(operands[0], KIND_INSTANCE))
        return runtime_error(vm, "Only instances have fields.");
    const struct site_case *known = site_find(site, operands[0]);
    if (known != NULL)
        found = *known;
    else if (!property_find_store(&vm->heap, &operands[0], site->name, &found))
        return out_of_memory(vm);
    else
        note(site, &found);
    if (!field_set(&vm->heap, &operands[0], &operands[1], &found))
        return out_of_memory(vm);
    operands[0] = operands[1];
    vm->top--;
    return true;
}

/* Calls a method, or what a field holds. Fields are not recorded. */
static bool invoke(struct vm *vm, struct site *site)
{
    struct site_case found;
    lox_value *receiver = vm->top - site->argument_count - 1;
    if (!is_kind(*receiver, KIND_INSTANCE))
        return runtime_error(vm, "Only instances have methods.");
    if (!property_find(shape_of(as_instance(*receiver)), site->name, &found))
        return undefined(vm, "property", site->name);
    if (found.access != ACCESS_METHOD) {
        site->is_megamorphic = true;
        *receiver = field_get(as_instance(*receiver), &found);
        return call_value(vm, site->argument_count);
    }
    note(site, &found);
    return enter(vm, found.target, site->argument_count);
}

/* Pops a superclass and finds a method of it, which is bound or called. */
static bool access_super(struct vm *vm, struct site *site)
{
    lox_value superclass = *--vm->top;
    struct site_case found = {.key = as_object(superclass), .access = ACCESS_METHOD};
    found.target = class_method(as_class(superclass), site->name);
    if (found.target == NULL)
        return undefined(vm, "property", site->name);
    if (site_find(site, superclass) == NULL)
        note(site, &found);
    return is_call(site) ? enter(vm, found.target, site->argument_count) : bind(vm, found.target);
}

/* ---- Operations that are not in line ---- */

bool run_slowly(struct vm *vm)
{
    const struct frame *frame = vm->frame;
    instruction word = frame->at[-1];
    uint32_t index = operand_of(word);
    struct site *sites = frame->function->sites;
    switch (operation_of(word)) {
    case OP_GET_GLOBAL:
    case OP_SET_GLOBAL:
        return undefined(vm, "variable", vm->globals.names[index]);
    case OP_GET_PROPERTY:
        return get_property(vm, &sites[index]);
    case OP_SET_PROPERTY:
        return set_property(vm, &sites[index]);
    case OP_GET_SUPER:
    case OP_INVOKE_SUPER:
        return access_super(vm, &sites[index]);
    case OP_ADD:
        return add(vm);
    case OP_NEGATE:
        return runtime_error(vm, "Operand must be a number.");
    case OP_PRINT:
        print_value(*--vm->top);
        return true;
    case OP_CALL:
        return call(vm, &sites[index]);
    case OP_INVOKE:
        return invoke(vm, &sites[index]);
    case OP_CLOSURE:
        return push_new(vm, make_closure(vm, frame->function->functions[index], false));
    case OP_CLASS:
        return push_new(vm, class_new(&vm->heap, as_string(frame->function->constants[index])));
    case OP_INHERIT:
        return inherit(vm);
    case OP_METHOD:
        return define_method(vm, frame->function->functions[index]);
    case OP_END_CLASS:
        return class_end(&vm->heap, as_class(vm->top[-1]), index) || out_of_memory(vm);
    default:
        return runtime_error(vm, "Operands must be numbers.");
    }
}

/* ---- The loop ---- */

#define SAVE() (frame->at = at, vm->frame = frame, vm->top = top)
#define LOAD()                                                                                     \
    (frame = vm->frame, at = frame->at, top = vm->top, base = frame->base,                         \
     function = frame->function)
#define NEXT()                                                                                     \
    do {                                                                                           \
        word = *at++;                                                                              \
        goto *labels[operation_of(word)];                                                          \
    } while (false)
#define OPERAND operand_of(word)

/* Calls a function that does the operation, and goes on with what it has left, unless it has run
 * the last frame to its end. */
#define DO(call)                                                                                   \
    do {                                                                                           \
        SAVE();                                                                                    \
        if (!(call))                                                                               \
            return false;                                                                          \
        if (vm->frame < last)                                                                      \
            return true;                                                                           \
        LOAD();                                                                                    \
        NEXT();                                                                                    \
    } while (false)

/* An operation on two numbers. The right operand is popped, and the left one replaced by the
 * result. */
#define ARITHMETIC(name, expression, make)                                                         \
    op_##name:                                                                                     \
    {                                                                                              \
        lox_value left = top[-2];                                                                  \
        lox_value right = top[-1];                                                                 \
        if (__builtin_expect(!is_number(left) || !is_number(right), 0))                            \
            goto slow;                                                                             \
        double a = as_number(left);                                                                \
        double b = as_number(right);                                                               \
        top--;                                                                                     \
        top[-1] = make(expression);                                                                \
        NEXT();                                                                                    \
    }

/* Makes the frame for a callee that accepts the number of arguments. */
#define ENTER(callee, argument_count)                                                              \
    do {                                                                                           \
        struct closure *entered = (callee);                                                        \
        struct function *inner = function_of(entered);                                             \
        lox_value *inner_base = top - (argument_count)-1;                                          \
        if (__builtin_expect(                                                                      \
                frame == last_frame || (size_t)(stack_end - inner_base) < inner->stack_size, 0))   \
            DO(enter(vm, entered, argument_count));                                                \
        frame->at = at;                                                                            \
        frame++;                                                                                   \
        frame->closure = entered;                                                                  \
        frame->function = function = inner;                                                        \
        frame->base = base = inner_base;                                                           \
        at = function->code;                                                                       \
        if (__builtin_expect(++function->invocation_count >= function->hot_invocations, 0))        \
            DO(jit_enter(vm));                                                                     \
        NEXT();                                                                                    \
    } while (false)

/* The addresses of labels are GNU C. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

bool run(struct vm *vm, const struct frame *last)
{
    static const void *const labels[] = {
#define OPERATION(name, effect, emitter) &&op_##name,
        OPERATIONS(OPERATION)
#undef OPERATION
    };
    const struct frame *last_frame = vm->frames + FRAMES_MAX - 1;
    const lox_value *stack_end = vm->stack + STACK_SLOTS;
    struct frame *frame;
    struct function *function;
    const instruction *at;
    lox_value *top;
    lox_value *base;
    instruction word;
    LOAD();
    NEXT();

op_CONSTANT:
    *top++ = function->constants[OPERAND];
    NEXT();
op_POP:
    top -= OPERAND;
    NEXT();

op_GET_LOCAL:
    *top++ = base[OPERAND];
    NEXT();
op_SET_LOCAL:
    base[OPERAND] = top[-1];
    NEXT();
op_GET_CAPTURED:
    *top++ = is_kind(base[OPERAND], KIND_BOX) ? as_box(base[OPERAND])->value : base[OPERAND];
    NEXT();
op_SET_CAPTURED:
    if (is_kind(base[OPERAND], KIND_BOX))
        set_box(&vm->heap, as_box(base[OPERAND]), top[-1]);
    else
        base[OPERAND] = top[-1];
    NEXT();
op_GET_BOX:
    *top++ = frame->closure->boxes[OPERAND]->value;
    NEXT();
op_SET_BOX:
    set_box(&vm->heap, frame->closure->boxes[OPERAND], top[-1]);
    NEXT();

op_GET_GLOBAL:
    if (__builtin_expect(vm->globals.values[OPERAND] == UNDEFINED, 0))
        goto slow;
    *top++ = vm->globals.values[OPERAND];
    NEXT();
op_SET_GLOBAL:
    if (__builtin_expect(vm->globals.values[OPERAND] == UNDEFINED, 0))
        goto slow;
    vm->globals.values[OPERAND] = top[-1];
    NEXT();
op_DEFINE_GLOBAL:
    if (__builtin_expect(vm->globals.values[OPERAND] != UNDEFINED, 0))
        jit_redefined(vm, OPERAND);
    vm->globals.values[OPERAND] = *--top;
    NEXT();

op_GET_PROPERTY : {
    const struct site_case *seen = site_find(&function->sites[OPERAND], top[-1]);
    if (__builtin_expect(seen == NULL || seen->access != ACCESS_INLINE, 0))
        goto slow;
    top[-1] = as_instance(top[-1])->values[seen->slot];
    NEXT();
}
op_SET_PROPERTY : {
    const struct site_case *seen = site_find(&function->sites[OPERAND], top[-2]);
    if (__builtin_expect(seen == NULL || seen->access >= ACCESS_MORE, 0))
        goto slow;
    struct instance *instance = as_instance(top[-2]);
    lox_value value = top[-1];
    instance->values[seen->slot] = value;
    instance->object.identity = seen->target; /* unchanged, if no field is added */
    heap_stored(&vm->heap, &instance->object, value);
    top--;
    top[-1] = value;
    NEXT();
}

op_EQUAL:
    top--;
    top[-1] = bool_value(values_equal(top[-1], top[0]));
    NEXT();
op_NOT_EQUAL:
    top--;
    top[-1] = bool_value(!values_equal(top[-1], top[0]));
    NEXT();
    ARITHMETIC(LESS, a < b, bool_value);
    ARITHMETIC(LESS_EQUAL, a <= b, bool_value);
    ARITHMETIC(GREATER, a > b, bool_value);
    ARITHMETIC(GREATER_EQUAL, a >= b, bool_value);
    ARITHMETIC(ADD, a + b, number_value);
    ARITHMETIC(SUBTRACT, a - b, number_value);
    ARITHMETIC(MULTIPLY, a * b, number_value);
    ARITHMETIC(DIVIDE, a / b, number_value);
op_NEGATE:
    if (__builtin_expect(!is_number(top[-1]), 0))
        goto slow;
    top[-1] = number_value(-as_number(top[-1]));
    NEXT();
op_NOT:
    top[-1] = bool_value(is_falsy(top[-1]));
    NEXT();

op_JUMP:
    at += OPERAND;
    NEXT();
op_JUMP_IF_FALSE:
    if (is_falsy(top[-1]))
        at += OPERAND;
    NEXT();
op_JUMP_IF_TRUE:
    if (!is_falsy(top[-1]))
        at += OPERAND;
    NEXT();
op_POP_JUMP_IF_FALSE:
    if (is_falsy(*--top))
        at += OPERAND;
    NEXT();
op_LOOP:
    at -= OPERAND;
    if (__builtin_expect(++function->loop_count >= function->hot_loops, 0))
        DO(jit_loop(vm));
    NEXT();

op_CALL : {
    struct site *site = &function->sites[OPERAND];
    uint32_t count = site->argument_count;
    lox_value callee = top[-1 - (ptrdiff_t)count];
    const struct site_case *seen = site_find(site, callee);
    if (__builtin_expect(seen == NULL, 0))
        goto slow;
    if (seen->access == ACCESS_CALL)
        ENTER(as_closure(callee), count);
    SAVE();
    const struct instance *instance = instance_new(&vm->heap, as_class(callee));
    if (__builtin_expect(instance == NULL, 0))
        return out_of_memory(vm);
    top[-1 - (ptrdiff_t)count] = object_value(instance);
    if (seen->target != NULL)
        ENTER(seen->target, count);
    NEXT();
}
op_INVOKE : {
    struct site *site = &function->sites[OPERAND];
    uint32_t count = site->argument_count;
    const struct site_case *seen = site_find(site, top[-1 - (ptrdiff_t)count]);
    if (__builtin_expect(seen == NULL, 0))
        goto slow;
    ENTER(seen->target, count);
}
op_INVOKE_SUPER : {
    struct site *site = &function->sites[OPERAND];
    const struct site_case *seen = site_find(site, top[-1]);
    if (__builtin_expect(seen == NULL, 0))
        goto slow;
    top--;
    ENTER(seen->target, site->argument_count);
}
op_RETURN : {
    lox_value result = top[-1];
    top = base;
    *top++ = result;
    if (__builtin_expect(frame-- == last, 0)) {
        at = frame->at;
        SAVE();
        return true;
    }
    function = frame->function;
    base = frame->base;
    at = frame->at;
    NEXT();
}

op_GET_SUPER:
op_PRINT:
op_CLOSURE:
op_CLASS:
op_INHERIT:
op_METHOD:
op_END_CLASS:
slow:
    DO(run_slowly(vm));
op_HALT: /* after the last return, nothing is executed */
    SAVE();
    return true;
}
#pragma GCC diagnostic pop

/* The oldest frame has no code but a HALT. */
bool interpret(struct vm *vm, struct function *script)
{
    static instruction halt_code[] = {OP_HALT};
    static struct function halt = {.code = halt_code, .code_count = 1};
    vm->top = vm->stack;
    vm->frame = vm->frames;
    *vm->frame = (struct frame){NULL, &halt, halt_code, vm->stack};
    struct closure *closure = heap_new(&vm->heap, KIND_CLOSURE, sizeof *closure);
    if (closure == NULL)
        return out_of_memory(vm);
    closure->object.identity = script;
    *vm->top++ = object_value(closure);
    struct frame *first = vm->frame + 1;
    return enter(vm, closure, 0) && (vm->frame < first || run(vm, first));
}
