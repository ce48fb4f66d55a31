/*
 * The names of things. A name that a stored file has, whatever it is, finds a thing of this program
 * or nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "things.h"

#include "shape.h"

#include <string.h>

/* ---- To names ---- */

static bool add_to_path(struct thing_name *name, const char *bytes, size_t size)
{
    if (size > PATH_MAX_BYTES - name->path_size)
        return false;
    memcpy(name->path + name->path_size, bytes, size);
    name->path_size += (uint32_t)size;
    return true;
}

/* Returns whether a global variable's value is an object of this kind. */
static bool has_kind(const struct vm *vm, uint32_t number, enum kind kind)
{
    return number < vm->globals.count && is_kind(vm->globals.values[number], kind);
}

/* Finds the global variable that has an object. If there are two, there may be two objects in
 * another process. */
static bool find_global(const struct vm *vm, const struct object *object, uint32_t *number)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < vm->globals.count && found < 2; i++) {
        if (!has_kind(vm, i, object->kind) || as_object(vm->globals.values[i]) != object)
            continue;
        *number = i;
        found++;
    }
    return found == 1;
}

/* Finds the first global variable that has a class with a method. */
static bool find_method(const struct vm *vm, const struct closure *method, uint32_t *number)
{
    for (*number = 0; *number < vm->globals.count; ++*number)
        if (has_kind(vm, *number, KIND_CLASS) && class_method(as_class(vm->globals.values[*number]),
                                                              function_of(method)->name) == method)
            return true;
    return false;
}

/* Returns a number for a method: its function's, and for a closure that has captured something also
 * where it is found, because there can be others of the function. */
static uint64_t method_number(const struct vm *vm, const struct closure *method)
{
    const struct function *function = function_of(method);
    uint32_t holder = 0;
    if (function->box_count > 0 && find_method(vm, method, &holder))
        holder++;
    return (uint64_t)function->number << 32 | holder;
}

/* Returns a number for a class's methods, with those that it has inherited: code has them in line.
 */
static uint64_t methods_hash(const struct vm *vm, const struct class *class)
{
    const struct table *methods = class->methods;
    uint64_t hash = class->inline_capacity;
    for (uint32_t i = 0; methods != NULL && i < methods->object.count; i++) {
        const struct table_entry *entry = &methods->entries[i];
        if (entry->key != NULL)
            hash += (entry->key->hash + 1) *
                    (method_number(vm, as_closure(entry->value)) * 0x9e3779b97f4a7c15u + 1);
    }
    return hash;
}

static bool name_closure(const struct vm *vm, const struct closure *closure,
                         struct thing_name *name)
{
    const struct string *method = function_of(closure)->name;
    name->value = function_of(closure)->number;
    return find_global(vm, &closure->object, &name->number) ||
           (method != NULL && find_method(vm, closure, &name->number) &&
            add_to_path(name, method->bytes, method->object.count));
}

static bool name_class(const struct vm *vm, const struct class *class, struct thing_name *name)
{
    name->value = methods_hash(vm, class);
    return find_global(vm, &class->object, &name->number);
}

static bool name_shape(const struct vm *vm, const struct shape *shape, struct thing_name *name)
{
    const struct shape *root = shape;
    while (root->parent != NULL)
        root = root->parent;
    name->site = shape->field_count << 16 | shape->inline_capacity;
    return shape->fields == NULL && root == shape->class->root &&
           name_class(vm, shape->class, name) &&
           add_to_path(name, (const char *)&shape->path_hash, sizeof shape->path_hash);
}

static bool name_object(const struct vm *vm, const struct object *object, struct thing_name *name)
{
    name->object = object->kind;
    switch ((enum kind)object->kind) {
    case KIND_STRING:
        return add_to_path(name, ((const struct string *)object)->bytes, object->count);
    case KIND_CLOSURE:
        return name_closure(vm, (const struct closure *)object, name);
    case KIND_CLASS:
        return name_class(vm, (const struct class *)object, name);
    case KIND_SHAPE:
        return name_shape(vm, (const struct shape *)object, name);
    case KIND_NATIVE:
        return find_global(vm, object, &name->number);
    default:
        return false;
    }
}

/* Names what a global variable's value is, as far as code relies on it. */
static bool name_value(const struct vm *vm, uint32_t number, struct thing_name *name)
{
    lox_value value = vm->globals.values[number];
    bool is_named = value != UNDEFINED;
    if (!is_object(value)) {
        name->value = value;
    } else {
        name->object = as_object(value)->kind;
        is_named = name->object == KIND_INSTANCE || name->object == KIND_BOUND_METHOD ||
                   name_object(vm, as_object(value), name);
    }
    name->number = number;
    return is_named;
}

bool name_thing(const struct vm *vm, const struct thing *thing, struct thing_name *name)
{
    memset(name, 0, sizeof *name);
    name->kind = (uint16_t)thing->kind;
    if (thing->kind >= THING_OBJECT)
        return name_object(vm, thing->object, name);
    name->number = thing->number;
    name->site = thing->site;
    return thing->kind != THING_ASSUMPTION || name_value(vm, thing->number, name);
}

/* ---- From names ---- */

static bool has_function(const struct vm *vm, const struct thing_name *name)
{
    bool has_site = name->kind == THING_SITE || name->kind == THING_CACHE;
    return name->number < vm->function_count &&
           (!has_site || name->site < vm->functions[name->number]->site_count);
}

/* Returns whether a global variable keeps the value that it had when it was named. */
static bool has_value(const struct vm *vm, const struct thing_name *name)
{
    struct thing_name now = {.kind = name->kind};
    return name->number < vm->globals.count && !vm->globals.are_assigned[name->number] &&
           name_value(vm, name->number, &now) && memcmp(&now, name, sizeof now) == 0;
}

/* Finds the shape among those that instances have got from this one. */
static const struct shape *find_shape(const struct shape *from, uint32_t field_count, uint64_t hash)
{
    const struct table *next = from->transitions;
    const struct shape *found = NULL;
    if (from->field_count >= field_count)
        return from->field_count == field_count && from->path_hash == hash ? from : NULL;
    for (uint32_t i = 0; next != NULL && i < next->object.count && found == NULL; i++)
        if (next->entries[i].key != NULL)
            found = find_shape((const struct shape *)as_object(next->entries[i].value), field_count,
                               hash);
    return found;
}

static const struct shape *shape_named(const struct class *class, const struct thing_name *name)
{
    uint64_t hash;
    if (name->path_size != sizeof hash || class->root->inline_capacity != (name->site & 0xffff))
        return NULL;
    memcpy(&hash, name->path, sizeof hash);
    return find_shape(class->root, name->site >> 16, hash);
}

static struct object *find_closure(struct vm *vm, const struct thing_name *name)
{
    lox_value value = vm->globals.values[name->number];
    if (name->path_size == 0)
        return has_kind(vm, name->number, KIND_CLOSURE) ? as_object(value) : NULL;
    const struct string *method = string_intern(&vm->heap, name->path, name->path_size);
    if (method == NULL || !has_kind(vm, name->number, KIND_CLASS))
        return NULL;
    struct closure *found = class_method(as_class(value), method);
    return found != NULL ? &found->object : NULL;
}

static struct object *find_object(struct vm *vm, const struct thing_name *name)
{
    if (name->object == KIND_STRING)
        return (struct object *)string_intern(&vm->heap, name->path, name->path_size);
    if (name->number >= vm->globals.count)
        return NULL;
    lox_value value = vm->globals.values[name->number];
    if (name->object == KIND_CLOSURE)
        return find_closure(vm, name);
    if (name->object == KIND_SHAPE)
        return is_kind(value, KIND_CLASS)
                   ? (struct object *)(uintptr_t)shape_named(as_class(value), name)
                   : NULL;
    return is_kind(value, name->object) ? as_object(value) : NULL;
}

bool find_thing(struct vm *vm, const struct thing_name *name, struct thing *thing)
{
    struct thing_name now = {.kind = name->kind};
    *thing = (struct thing){.kind = name->kind, .number = name->number, .site = name->site};
    if (name->kind < THING_CELL)
        return true;
    if (name->kind == THING_CELL)
        return name->number < vm->globals.count;
    if (name->kind == THING_ASSUMPTION)
        return has_value(vm, name);
    if (name->kind < THING_OBJECT)
        return has_function(vm, name);
    thing->object = find_object(vm, name);
    return thing->object != NULL && !heap_is_young(&vm->heap, thing->object) &&
           name_object(vm, thing->object, &now) && now.value == name->value;
}
