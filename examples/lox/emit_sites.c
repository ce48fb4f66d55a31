/*
 * Sites: a test for each case that was seen, and its code; an inline cache for all else, if there
 * is more.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <stdio.h>

/* Compile a case of a site, and leave the state after the operation. */
static void (*const emit_cases[])(struct emitter *e, const struct site_case *seen) = {
    [OP_GET_PROPERTY] = emit_get_case, [OP_SET_PROPERTY] = emit_set_case, [OP_CALL] = call_case,
    [OP_INVOKE] = call_method,         [OP_INVOKE_SUPER] = call_super,
};

/* Returns where the object is whose identity the cases are for, from the top. */
static uint32_t object_of(const struct site *site)
{
    return site->operation == OP_SET_PROPERTY   ? 2
           : site->operation == OP_INVOKE_SUPER ? 1
                                                : site->argument_count + 1;
}

/* Asks the inline cache of a site. Goes to `others` if only the runtime can do it. */
static LLVMValueRef ask_cache(struct emitter *e, const struct site *site, struct target *others)
{
    struct cairn_error error;
    LLVMValueRef bits = bits_of(e, operand(e, object_of(site)));
    go_if(e, compare(e, LLVMIntULT, bits, OBJECT_TAG), true, others);
    struct thing thing = {.kind = THING_SITE,
                          .number = e->top->function->number,
                          .site = (uint32_t)(site - e->top->function->sites)};
    LLVMValueRef arguments[] = {pointer_to(e, bits), address_of(e, thing)};
    thing.kind = THING_CACHE;
    const struct reference *cache = refer(e, thing);
    const struct cairn_name name = name_of(cache);
    const struct cairn_patchpoint patchpoint = {
        .id = (*e->input->next_id)++,
        .byte_count = cairn_patchpoint_inline_bytes(e->module) + 16,
        .result_type = e->i64,
        .arguments = arguments,
        .argument_count = 2,
        .cache = e->input->has_names ? NULL : cache->address,
        .cache_name = e->input->has_names ? &name : NULL,
    };
    LLVMValueRef result = cairn_build_patchpoint(e->builder, &patchpoint, &error);
    if (result == NULL) {
        fprintf(stderr, "lox: %s\n", error.message);
        e->has_failed = true;
        return word(e, 0);
    }
    go_if(e, compare(e, LLVMIntEQ, result, UNDEFINED), true, others);
    return result;
}

/* Calls the closure of any function that accepts the arguments. */
static void call_closure(struct emitter *e, const struct site *site, struct target *others)
{
    LLVMValueRef bits = bits_of(e, operand(e, object_of(site)));
    go_if(e, compare(e, LLVMIntULT, bits, OBJECT_TAG), true, others);
    LLVMValueRef closure = pointer_to(e, bits);
    LLVMValueRef kind = load(e, e->i8, closure, offsetof(struct object, kind));
    LLVMValueRef closure_kind = LLVMConstInt(e->i8, KIND_CLOSURE, 0);
    go_if(e, LLVMBuildICmp(e->builder, LLVMIntEQ, kind, closure_kind, ""), false, others);
    LLVMValueRef function = load(e, e->pointer, closure, offsetof(struct object, identity));
    LLVMValueRef arity = load(e, e->i32, function, offsetof(struct function, arity));
    LLVMValueRef count = LLVMConstInt(e->i32, site->argument_count, 0);
    go_if(e, LLVMBuildICmp(e->builder, LLVMIntEQ, arity, count, ""), false, others);
    call_code(e, load(e, e->pointer, function, offsetof(struct function, compiled)), closure,
              e->height - object_of(site));
}

/* Returns whether objects that no case is for are expected. */
static bool is_open(const struct emitter *e, const struct site *site)
{
    return site->is_megamorphic || e->input->is_general;
}

/* For objects that no case is for. */
static void emit_others(struct emitter *e, const struct site *site)
{
    struct target others = {.edges = NULL};
    struct target done = {.edges = NULL};
    if (site->operation == OP_GET_PROPERTY) {
        LLVMValueRef value = ask_cache(e, site, &others);
        e->height--;
        push_bits(e, value);
        go(e, &done);
    } else if (site->operation == OP_INVOKE) {
        LLVMValueRef method = ask_cache(e, site, &others);
        LLVMValueRef closure = LLVMBuildIntToPtr(e->builder, method, e->pointer, "");
        LLVMValueRef function = load(e, e->pointer, closure, offsetof(struct object, identity));
        LLVMValueRef compiled = load(e, e->pointer, function, offsetof(struct function, compiled));
        call_code(e, compiled, closure, e->height - object_of(site));
        go(e, &done);
    } else if (site->operation == OP_SET_PROPERTY) {
        store_at(e, ask_cache(e, site, &others));
        go(e, &done);
    } else if (site->operation == OP_CALL) {
        call_closure(e, site, &others);
        go(e, &done);
    } else {
        go(e, &others);
    }
    begin_target(e, &others);
    call_runtime(e);
    go(e, &done);
    begin_target(e, &done);
}

/* Emits a site if it is known without a test what the object is. Returns false for others. */
static bool emit_known(struct emitter *e, const struct site *site)
{
    const struct value *object = operand(e, object_of(site));
    uint32_t count = site->case_count;
    bool is_never = count == 0 || object->number != NULL || object->truth != NULL;
    if (is_never && is_open(e, site))
        emit_others(e, site);
    else if (is_never)
        leave(e);
    for (uint32_t i = 0; i < count && !is_never && object->identity != NULL; i++) {
        if (site->cases[i].key == object->identity) {
            emit_cases[site->operation](e, &site->cases[i]);
            return true;
        }
    }
    return is_never;
}

/* Returns the word at the beginning of the objects that a case is for. */
static LLVMValueRef identity_word(struct emitter *e, const struct site_case *seen)
{
    const struct function *function = seen->key;
    if (seen->access != ACCESS_CALL)
        return object_word(e, seen->key);
    return refer(e, (struct thing){.kind = THING_FUNCTION, .number = function->number})->word;
}

void emit_site(struct emitter *e, instruction code)
{
    const struct site *site = &e->top->function->sites[operand_of(code)];
    struct target done = {.edges = NULL};
    struct target miss = {.edges = NULL};
    if (emit_known(e, site))
        return;
    if (is_open(e, site))
        go_if(e, compare(e, LLVMIntULT, bits_of(e, operand(e, object_of(site))), OBJECT_TAG), true,
              &miss);
    else
        expect_object(e, operand(e, object_of(site)));
    LLVMValueRef bits = bits_of(e, operand(e, object_of(site)));
    LLVMValueRef identity = mark(e, MEMORY_IDENTITY, load(e, e->i64, pointer_to(e, bits), 0));
    for (uint32_t i = 0; i < site->case_count; i++) {
        struct target next = {.edges = NULL};
        void *key = site->cases[i].key;
        LLVMValueRef is_equal = equals(e, identity, identity_word(e, &site->cases[i]));
        if (i + 1 < site->case_count || is_open(e, site))
            go_if(e, is_equal, false, &next);
        else
            guard(e, is_equal);
        learn(e, bits, &(struct value){.identity = key, .is_object = true});
        emit_cases[site->operation](e, &site->cases[i]);
        if (e->is_live)
            go(e, &done);
        begin_target(e, &next);
    }
    if (is_open(e, site)) {
        go(e, &miss);
        begin_target(e, &miss);
        emit_others(e, site);
        go(e, &done);
    }
    begin_target(e, &done);
}
