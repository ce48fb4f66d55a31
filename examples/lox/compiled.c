/*
 * What compiled code calls for all that it does not do in line: the interpreter's own operations,
 * so that results, errors and feedback are the same; and the handlers of its inline caches.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emit.h"
#include "shape.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct vm *compiled_vm;

uint64_t rt_operation(uint64_t argument)
{
    const struct frame *caller = compiled_vm->frame;
    (void)argument;
    return run_slowly(compiled_vm) &&
           (compiled_vm->frame == caller || run(compiled_vm, caller + 1));
}

uint64_t rt_remember(uint64_t object)
{
    heap_remember(&compiled_vm->heap, (struct object *)(uintptr_t)object);
    return 1;
}

/* ---- Calls ---- */

static struct waiting *all_waiting;

struct waiting *new_waiting(uint32_t slot_count)
{
    struct waiting *made = calloc(1, sizeof *made + slot_count * sizeof *made->slots);
    if (made == NULL)
        heap_exhausted();
    made->next = all_waiting;
    all_waiting = made;
    return made;
}

/* ---- Inline caches ---- */

/* Finds what is in the instance itself, or a method that accepts the arguments. */
static bool find(const struct instance *instance, const struct site *site, enum access access,
                 struct site_case *found)
{
    return instance->object.kind == KIND_INSTANCE &&
           property_find(shape_of(instance), site->name, found) && found->access == access &&
           (access == ACCESS_INLINE ||
            (found->key != NO_KEY && function_of(found->target)->arity == site->argument_count));
}

uint64_t find_field(const struct instance *instance, const struct site *site)
{
    struct site_case found;
    return find(instance, site, ACCESS_INLINE, &found) ? instance->values[found.slot] : UNDEFINED;
}

uint64_t find_method(const struct instance *instance, const struct site *site)
{
    struct site_case found;
    return find(instance, site, ACCESS_METHOD, &found) ? (uintptr_t)found.target : 0;
}

/* If a case cannot be added, the next access misses again. Pinned are at most as many objects as
 * caches can have cases. */
static void add_case(struct cairn_ic_miss *miss, struct cairn_ic_case *added, void *method)
{
    struct shape *shape = shape_of(cairn_value_pointer(&miss->operands[0]));
    added->guard = (struct cairn_ic_guard){.width = 8, .key = (uintptr_t)shape};
    if (cairn_ic_add(miss->ic, added, CAIRN_RELAXED, NULL) != CAIRN_OK)
        return;
    heap_pin(&compiled_vm->heap, shape);
    if (method != NULL)
        heap_pin(&compiled_vm->heap, method);
}

static void finish_miss(struct cairn_ic_miss *miss, uint64_t result)
{
    struct cairn_error error;
    struct cairn_value value = cairn_value_of_integer(64, (int64_t)result);
    if (cairn_ic_return(miss, &value, &error) == CAIRN_OK)
        return;
    fprintf(stderr, "lox: %s\n", error.message);
    abort();
}

void missed_field(struct cairn_ic_miss *miss, void *user)
{
    const struct instance *instance = cairn_value_pointer(&miss->operands[0]);
    struct site_case found;
    if (!find(instance, user, ACCESS_INLINE, &found)) {
        finish_miss(miss, UNDEFINED);
        return;
    }
    size_t offset = offsetof(struct instance, values) + found.slot * sizeof(lox_value);
    struct cairn_ic_case added = {.action = CAIRN_IC_LOAD,
                                  .field = {.offset = (int32_t)offset, .width = 8}};
    add_case(miss, &added, NULL);
    finish_miss(miss, instance->values[found.slot]);
}

void missed_method(struct cairn_ic_miss *miss, void *user)
{
    uint64_t result = find_method(cairn_value_pointer(&miss->operands[0]), user);
    struct cairn_ic_case added = {.action = CAIRN_IC_CONSTANT, .constant = result};
    if (result != 0)
        add_case(miss, &added, (void *)(uintptr_t)result);
    finish_miss(miss, result);
}
