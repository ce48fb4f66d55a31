/*
 * The virtual machine: set-up, global variables, errors, printing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "vm.h"

#include "shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- Roots ---- */

static void visit_stack(struct heap *heap, const struct vm *vm)
{
    struct frame *frame = vm->frames;
    while (frame <= vm->frame) {
        const struct waiting *waiting = waiting_of(frame);
        heap_visit_object(heap, &frame->closure);
        if (waiting == NULL) {
            const lox_value *end = frame == vm->frame ? vm->top : frame[1].base;
            heap_visit_values(heap, frame->base, (size_t)(end - frame->base));
            frame++;
            continue;
        }
        for (uint32_t i = 0; i < waiting->slot_count; i++)
            heap_visit(heap, &frame->base[waiting_slots(waiting)[i]]);
        frame += waiting->frame_count;
    }
}

/* Functions have no young objects. */
static void visit_roots(struct heap *heap, void *user)
{
    struct vm *vm = user;
    visit_stack(heap, vm);
    heap_visit_values(heap, vm->globals.values, vm->globals.count);
    if (!heap->is_major)
        return;
    heap_visit_object(heap, &vm->init_name);
    heap_visit_object(heap, &vm->globals.numbers);
    for (uint32_t i = 0; i < vm->globals.count; i++)
        heap_visit_object(heap, &vm->globals.names[i]);
    for (uint32_t i = 0; i < vm->function_count; i++)
        function_visit(heap, vm->functions[i]);
}

/* ---- Global variables ---- */

uint32_t global_number(struct vm *vm, struct string *name)
{
    struct globals *globals = &vm->globals;
    const lox_value *known = table_find(globals->numbers, name);
    if (known != NULL)
        return (uint32_t)*known;
    globals->names = array_grow(globals->names, globals->count, sizeof *globals->names);
    if (globals->count == GLOBALS_MAX)
        heap_exhausted();
    table_set(&vm->heap, &globals->numbers, name, globals->count);
    globals->values[globals->count] = UNDEFINED;
    globals->names[globals->count] = name;
    return globals->count++;
}

/* Elapsed time: the processor's would include that of the thread that compiles. */
static lox_value clock_native(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return number_value((double)now.tv_sec + (double)now.tv_nsec * 1e-9);
}

/* ---- Set-up ---- */

void vm_init(struct vm *vm, const struct heap_options *options)
{
    *vm = (struct vm){.stack = heap_map((STACK_SLOTS + REGISTER_SLOTS) * sizeof *vm->stack),
                      .frames = heap_map((FRAMES_MAX + FRAMES_SPARE) * sizeof *vm->frames)};
    vm->globals.values = heap_map(GLOBALS_MAX * sizeof *vm->globals.values);
    vm->globals.are_assigned = heap_map(GLOBALS_MAX);
    heap_init(&vm->heap, options, visit_roots, vm);
    vm->init_name = string_intern(&vm->heap, "init", 4);
    struct native *native = heap_new_old(&vm->heap, KIND_NATIVE, sizeof *native);
    native->call = clock_native;
    uint32_t number = global_number(vm, string_intern(&vm->heap, "clock", 5));
    vm->globals.values[number] = object_value(native);
}

/* ---- Errors ---- */

struct frame *complete_frames(const struct vm *vm, struct frame *frame)
{
    const struct waiting *waiting = waiting_of(frame);
    if (waiting == NULL)
        return frame;
    lox_value *base = frame->base;
    for (uint32_t i = 0; i < waiting->frame_count; i++) {
        const struct described_frame *described = &waiting->frames[i];
        struct function *function = vm->functions[described->function];
        frame[i].base = base + described->base;
        if (!described->has_closure)
            frame[i].closure = as_closure(*frame[i].base);
        frame[i].function = function;
        frame[i].at = function->code + described->at;
    }
    return frame + waiting->frame_count - 1;
}

/* Prints the stack, innermost first, but not the middle of a very deep one. */
static void print_stack(const struct vm *vm)
{
    size_t depth = (size_t)(vm->frame - vm->frames);
    for (size_t i = 0; i < depth; i++) {
        if (i == TRACE_LINES && depth > 2 * (size_t)TRACE_LINES) {
            i = depth - TRACE_LINES;
            fprintf(stderr, "... %zu more calls ...\n", i - TRACE_LINES);
        }
        const struct frame *frame = vm->frame - i;
        const struct function *function = frame->function;
        bool is_script = function->name == NULL;
        fprintf(stderr, "[line %u] in %s%s\n",
                (unsigned)function->lines[frame->at - 1 - function->code],
                is_script ? "script" : function->name->bytes, is_script ? "" : "()");
    }
}

bool runtime_error(struct vm *vm, const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    for (struct frame *frame = vm->frames; frame <= vm->frame; frame++) {
        frame = complete_frames(vm, frame);
        if (frame > vm->frame)
            vm->frame = frame;
    }
    print_stack(vm);
    return false;
}

/* ---- Printing ---- */

static void print_object(const struct object *object)
{
    switch ((enum kind)object->kind) {
    case KIND_STRING:
        fwrite(((const struct string *)object)->bytes, 1, object->count, stdout);
        break;
    case KIND_NATIVE:
        fputs("<native fn>", stdout);
        break;
    case KIND_CLOSURE: {
        const struct string *name = ((const struct function *)object->identity)->name;
        printf(name != NULL ? "<fn %s>" : "<script>", name != NULL ? name->bytes : "");
        break;
    }
    case KIND_BOUND_METHOD:
        print_object(&((const struct bound_method *)object)->method->object);
        break;
    case KIND_CLASS:
        fputs(((const struct class *)object)->name->bytes, stdout);
        break;
    case KIND_INSTANCE:
        printf("%s instance", ((const struct shape *)object->identity)->class->name->bytes);
        break;
    default: /* not values of the language */
        abort();
    }
}

void print_value(lox_value value)
{
    if (is_object(value))
        print_object(as_object(value));
    else if (!is_number(value))
        fputs(value == NIL ? "nil" : value == TRUE ? "true" : "false", stdout);
    else if (as_number(value) != as_number(value))
        fputs("nan", stdout); /* C prints the sign, which depends on the processor */
    else
        printf("%.14g", as_number(value));
    fputc('\n', stdout);
}
