/*
 * Functions: growing them, their lines, their feedback.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const operation_names[] = {
#define OPERATION(name, effect) #name,
    OPERATIONS(OPERATION)
#undef OPERATION
};

const int stack_effects[] = {
#define OPERATION(name, effect) (effect),
    OPERATIONS(OPERATION)
#undef OPERATION
};

void *array_grow(void *items, uint32_t count, size_t item_size)
{
    bool is_full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
    if (is_full)
        items = realloc(items, (count == 0 ? 8 : 2 * (size_t)count) * item_size);
    if (items == NULL)
        heap_exhausted();
    return items;
}

struct function *function_new(void)
{
    struct function *function = calloc(1, sizeof *function);
    if (function == NULL)
        heap_exhausted();
    function->hot_invocations = UINT64_MAX;
    function->hot_loops = UINT64_MAX;
    return function;
}

uint32_t code_add(struct function *function, instruction word, uint32_t line)
{
    uint32_t count = function->code_count++;
    function->code = array_grow(function->code, count, sizeof *function->code);
    function->lines = array_grow(function->lines, count, sizeof *function->lines);
    function->code[count] = word;
    function->lines[count] = line;
    return count;
}

uint32_t constant_add(struct function *function, lox_value value)
{
    uint32_t count = function->constant_count++;
    function->constants = array_grow(function->constants, count, sizeof *function->constants);
    function->constants[count] = value;
    return count;
}

uint32_t site_add(struct function *function, struct string *name, uint32_t argument_count)
{
    uint32_t count = function->site_count++;
    function->sites = array_grow(function->sites, count, sizeof *function->sites);
    function->sites[count] = (struct site){.name = name, .argument_count = argument_count};
    for (uint32_t i = 0; i < SITE_CASES; i++)
        function->sites[count].cases[i].key = NO_KEY;
    return count;
}

uint32_t function_add(struct function *function, struct function *inner)
{
    uint32_t count = function->function_count++;
    function->functions = array_grow(function->functions, count, sizeof(struct function *));
    function->functions[count] = inner;
    return count;
}

uint32_t values_popped(const struct function *function, instruction word)
{
    switch (operation_of(word)) {
    case OP_POP:
        return operand_of(word);
    case OP_CALL:
    case OP_INVOKE:
    case OP_INVOKE_SUPER:
        return function->sites[operand_of(word)].argument_count;
    default:
        return 0;
    }
}

/* ---- Reading ---- */

uint32_t words_after(const struct function *function, instruction word)
{
    enum operation operation = operation_of(word);
    if (operation != OP_CLOSURE && operation != OP_METHOD)
        return 0;
    return function->functions[operand_of(word)]->box_count;
}

void function_print(const struct function *function)
{
    printf("== %s ==\n", function->name != NULL ? function->name->bytes : "script");
    for (uint32_t at = 0; at < function->code_count; at++) {
        instruction word = function->code[at];
        printf("%4u line %-4u %-18s %u\n", (unsigned)at, (unsigned)function->lines[at],
               operation_names[operation_of(word)], (unsigned)operand_of(word));
        at += words_after(function, word);
    }
    for (uint32_t i = 0; i < function->function_count; i++)
        function_print(function->functions[i]);
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
