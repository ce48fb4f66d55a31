/* SPDX-License-Identifier: MIT */
#include "llvm/site_list.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdint.h>

enum { FIRST_CAPACITY = 64 };

/* ---- Uses of the intrinsics ---- */

static enum cairn_status append(struct site_list *list, struct site_use use,
                                struct cairn_error *error)
{
    if (list->count == list->capacity) {
        struct cairn_allocator allocator = memory_allocator(NULL);
        size_t capacity = list->capacity == 0 ? FIRST_CAPACITY : 2 * list->capacity;
        void *resized = memory_resize(&allocator, list->uses, list->capacity * sizeof *list->uses,
                                      capacity * sizeof *list->uses);
        if (resized == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu calls", capacity);
        list->uses = resized;
        list->capacity = capacity;
    }
    list->uses[list->count++] = use;
    return CAIRN_OK;
}

/* Returns the function that contains the call; NULL if the call is not in a function. */
static LLVMValueRef function_of(LLVMValueRef call)
{
    LLVMBasicBlockRef block = LLVMGetInstructionParent(call);
    return block == NULL ? NULL : LLVMGetBasicBlockParent(block);
}

static enum cairn_status append_calls(LLVMValueRef intrinsic, enum cairn_record_kind kind,
                                      struct site_list *list, struct cairn_error *error)
{
    for (LLVMUseRef use = LLVMGetFirstUse(intrinsic); use != NULL; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!site_call_calls(user, intrinsic))
            continue;
        const struct site_use found = {user, function_of(user), kind};
        enum cairn_status status = found.function == NULL ? CAIRN_OK : append(list, found, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* Appends a function's calls with a "deopt" bundle. No list of uses contains them. */
static enum cairn_status append_deopt_calls(LLVMValueRef function, struct site_list *list,
                                            struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != NULL;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef instruction = LLVMGetFirstInstruction(block);
             instruction != NULL && status == CAIRN_OK;
             instruction = LLVMGetNextInstruction(instruction))
            if (site_call_has_deopt_bundle(instruction))
                status = append(
                    list, (struct site_use){instruction, function, CAIRN_RECORD_STATEPOINT}, error);
    return status;
}

static enum cairn_status append_all(LLVMModuleRef module, struct site_list *list,
                                    struct cairn_error *error)
{
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function)) {
        enum cairn_record_kind kind = site_call_intrinsic_kind(function);
        enum cairn_status status = kind == CAIRN_RECORD_UNDECLARED
                                       ? append_deopt_calls(function, list, error)
                                       : append_calls(function, kind, list, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* ---- By function ---- */

/* The calls of one function, as a linked list. Indexes are plus 1: `first` and `next` hold i + 1
 * for use i, and 0 at the end. */
struct group {
    LLVMValueRef function; /* NULL in a free place */
    size_t first;
};

/* A hash table of functions. Invariant: the number of places is a power of two, and at least half
 * of the places are free. */
struct groups {
    struct group *places;
    size_t place_count;
    size_t *next;
};

/* Returns the function's place, or the free place to insert it at. */
static struct group *find_group(const struct groups *groups, LLVMValueRef function)
{
    size_t mask = groups->place_count - 1;
    uint64_t hash = (uint64_t)(uintptr_t)function * UINT64_C(0x9E3779B97F4A7C15);
    size_t place = (size_t)(hash >> 32) & mask;
    while (groups->places[place].function != NULL && groups->places[place].function != function)
        place = (place + 1) & mask;
    return &groups->places[place];
}

/* Links each use to its function's list. LLVM lists the latest use first; prepending reverses that
 * order. */
static void fill_groups(struct groups *groups, const struct site_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct group *group = find_group(groups, list->uses[i].function);
        group->function = list->uses[i].function;
        groups->next[i] = group->first;
        group->first = i + 1;
    }
}

/* Orders the calls by function. Returns their number, which excludes calls in functions outside the
 * module. */
static size_t put_in_order(LLVMModuleRef module, const struct groups *groups,
                           const struct site_list *list, struct site_use *ordered)
{
    size_t count = 0;
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function))
        for (size_t i = find_group(groups, function)->first; i != 0; i = groups->next[i - 1])
            ordered[count++] = list->uses[i - 1];
    return count;
}

static enum cairn_status order_by_function(LLVMModuleRef module, struct site_list *list,
                                           struct cairn_error *error)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    struct groups groups = {.place_count = FIRST_CAPACITY};
    while (groups.place_count < 2 * list->count)
        groups.place_count *= 2;
    groups.places = memory_new(&allocator, groups.place_count, sizeof *groups.places);
    groups.next = memory_new(&allocator, list->count, sizeof *groups.next);
    struct site_list ordered = {.capacity = list->count};
    ordered.uses = memory_new(&allocator, ordered.capacity, sizeof *ordered.uses);
    enum cairn_status status = CAIRN_OK;
    if (groups.places != NULL && groups.next != NULL && ordered.uses != NULL) {
        fill_groups(&groups, list);
        ordered.count = put_in_order(module, &groups, list, ordered.uses);
        site_list_release(list);
        *list = ordered;
    } else {
        memory_free(&allocator, ordered.uses, ordered.capacity * sizeof *ordered.uses);
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu calls", list->count);
    }
    memory_free(&allocator, groups.next, list->count * sizeof *groups.next);
    memory_free(&allocator, groups.places, groups.place_count * sizeof *groups.places);
    return status;
}

enum cairn_status site_list_create(LLVMModuleRef module, struct site_list *list,
                                   struct cairn_error *error)
{
    *list = (struct site_list){0};
    enum cairn_status status = append_all(module, list, error);
    if (status == CAIRN_OK && list->count > 0)
        status = order_by_function(module, list, error);
    if (status != CAIRN_OK)
        site_list_release(list);
    return status;
}

void site_list_drop_unemitted(struct site_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (LLVMGetLinkage(list->uses[i].function) != LLVMAvailableExternallyLinkage)
            list->uses[kept++] = list->uses[i];
    list->count = kept;
}

void site_list_release(struct site_list *list)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    memory_free(&allocator, list->uses, list->capacity * sizeof *list->uses);
    *list = (struct site_list){0};
}

/* ---- Within a function ---- */

/* Writes the calls of `function` in order, at most `count` of them. Returns the number written. */
static size_t walk_function(LLVMValueRef function, struct site_use *uses, size_t count)
{
    size_t found = 0;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != NULL;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef instruction = LLVMGetFirstInstruction(block);
             instruction != NULL && found < count;
             instruction = LLVMGetNextInstruction(instruction)) {
            enum cairn_record_kind kind = site_call_kind(instruction);
            if (kind != CAIRN_RECORD_UNDECLARED)
                uses[found++] = (struct site_use){instruction, function, kind};
        }
    return found;
}

void site_list_sort(struct site_list *list)
{
    size_t sorted = 0;
    for (size_t begin = 0, end; begin < list->count; begin = end) {
        LLVMValueRef function = list->uses[begin].function;
        for (end = begin + 1; end < list->count && list->uses[end].function == function;)
            end++;
        if (end - begin == 1)
            list->uses[sorted++] = list->uses[begin];
        else /* if an argument is the intrinsic, too, the list has the call twice */
            sorted += walk_function(function, &list->uses[sorted], end - begin);
    }
    list->count = sorted;
}
