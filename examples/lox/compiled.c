/*
 * What compiled code calls for all that it does not do in line: the interpreter's own operations,
 * so that results, errors and feedback are the same; and the handlers of its inline caches.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emit.h"
#include "shape.h"

#include <stddef.h>

struct vm *compiled_vm;

uint64_t rt_operation(uint64_t waiting_frame)
{
    struct vm *vm = compiled_vm;
    struct frame *first = (struct frame *)(uintptr_t)waiting_frame;
    vm->top = first->base + waiting_of(first)->height;
    vm->frame = complete_frames(vm, first);
    const struct frame *caller = vm->frame;
    return run_slowly(vm) && (vm->frame == caller || run(vm, caller + 1));
}

uint64_t rt_remember(uint64_t object)
{
    heap_remember(&compiled_vm->heap, (struct object *)(uintptr_t)object);
    return 1;
}

/* ---- Inline caches ---- */

static bool find(const struct instance *instance, const struct site *site, struct site_case *found)
{
    if (instance->object.kind != KIND_INSTANCE ||
        !property_find(shape_of(instance), site->name, found))
        return false;
    if (site->operation != OP_INVOKE)
        return found->access == ACCESS_INLINE;
    return found->access == ACCESS_METHOD && found->key != NO_KEY &&
           function_of(found->target)->arity == site->argument_count;
}

/* Returns what calls and stores need: a method, or the offset of a field. */
static uint64_t constant_of(const struct site_case *found)
{
    if (found->access == ACCESS_METHOD)
        return (uintptr_t)found->target;
    return offsetof(struct instance, values) + found->slot * sizeof(lox_value);
}

uint64_t find_cacheable(const struct instance *instance, const struct site *site)
{
    struct site_case found;
    if (!find(instance, site, &found))
        return UNDEFINED;
    return site->operation == OP_GET_PROPERTY ? instance->values[found.slot] : constant_of(&found);
}

/* Adds what find_cacheable returns for the instance's shape; UNDEFINED, too, so that it is not
 * asked again. Pinned are at most as many objects as caches can have cases. If a case cannot be
 * added, the next access misses again. */
static void add_case(struct cairn_ic_miss *miss, const struct instance *instance,
                     const struct site *site)
{
    struct site_case found;
    struct shape *shape = shape_of(instance);
    bool is_found = find(instance, site, &found);
    bool is_load = is_found && site->operation == OP_GET_PROPERTY;
    struct cairn_ic_case added = {
        .guard = {.width = 8, .key = (uintptr_t)shape},
        .action = is_load ? CAIRN_IC_LOAD : CAIRN_IC_CONSTANT,
        .constant = is_found ? constant_of(&found) : UNDEFINED,
        .field = {.offset = is_load ? (int32_t)constant_of(&found) : 0, .width = 8},
    };
    if (cairn_ic_add(miss->ic, &added, CAIRN_RELAXED, NULL) != CAIRN_OK)
        return;
    heap_pin(&compiled_vm->heap, shape);
    if (is_found && found.access == ACCESS_METHOD)
        heap_pin(&compiled_vm->heap, found.target);
}

void missed(struct cairn_ic_miss *miss, void *user)
{
    const struct instance *instance = cairn_value_pointer(&miss->operands[0]);
    struct cairn_error error;
    if (instance->object.kind == KIND_INSTANCE)
        add_case(miss, instance, user);
    struct cairn_value value = cairn_value_of_integer(64, (int64_t)find_cacheable(instance, user));
    if (cairn_ic_return(miss, &value, &error) != CAIRN_OK)
        fail(error.message);
}
