/*
 * Functions: reading their instructions, and recording feedback.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code.h"

#include <stdlib.h>

void *array_grow(void *items, uint32_t count, size_t item_size)
{
    bool is_full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
    if (is_full)
        items = realloc(items, (count == 0 ? 8 : 2 * (size_t)count) * item_size);
    if (items == NULL)
        heap_exhausted();
    return items;
}

int32_t stack_change(const struct function *function, instruction word)
{
    static const int32_t effects[] = {
#define OPERATION(name, effect, emitter) (effect),
        OPERATIONS(OPERATION)
#undef OPERATION
    };
    enum operation operation = operation_of(word);
    int32_t effect = effects[operation];
    if (operation == OP_POP)
        effect -= (int32_t)operand_of(word);
    else if (operation == OP_CALL || operation == OP_INVOKE || operation == OP_INVOKE_SUPER)
        effect -= (int32_t)function->sites[operand_of(word)].argument_count;
    return effect;
}

uint32_t words_after(const struct function *function, instruction word)
{
    enum operation operation = operation_of(word);
    if (operation != OP_CLOSURE && operation != OP_METHOD)
        return 0;
    return function->functions[operand_of(word)]->box_count;
}

/* ---- Feedback ---- */

void site_record(struct site *site, const struct site_case *seen)
{
    if (site->case_count < SITE_CASES)
        site->cases[site->case_count++] = *seen;
    else
        site->is_megamorphic = true;
}

void function_visit(struct heap *heap, struct function *function)
{
    heap_visit_object(heap, &function->name);
    for (uint32_t i = 0; i < function->constant_count; i++)
        heap_visit(heap, &function->constants[i]);
    for (uint32_t i = 0; i < function->site_count; i++) {
        struct site *site = &function->sites[i];
        heap_visit_object(heap, &site->name);
        for (uint32_t j = 0; j < site->case_count; j++) {
            struct site_case *seen = &site->cases[j];
            if (seen->access != ACCESS_CALL)
                heap_visit_object(heap, &seen->key);
            heap_visit_object(heap, &seen->target);
        }
    }
}
