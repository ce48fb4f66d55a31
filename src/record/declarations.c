/*
 * Declarations by ID: an open-addressed set over an array that keeps the order in which they were
 * added.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/declarations.h"
#include "base/error.h"
#include "record/layout.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

/* ---- Single declarations: each is one block with its types and its function's name ---- */

static size_t type_count(const struct cairn_declaration *declaration)
{
    return (size_t)declaration->argument_count + declaration->live_value_count;
}

static size_t name_size(const struct cairn_declaration *declaration)
{
    return declaration->function == NULL ? 0 : strlen(declaration->function) + 1;
}

static size_t block_size(const struct cairn_declaration *declaration)
{
    return sizeof *declaration + type_count(declaration) * sizeof *declaration->types +
           name_size(declaration);
}

static struct cairn_declaration *copy(const struct cairn_allocator *allocator,
                                      const struct cairn_declaration *declaration)
{
    struct cairn_declaration *copied = memory_new(allocator, block_size(declaration), 1);
    if (copied == NULL)
        return NULL;
    *copied = *declaration;
    struct cairn_type *types = (struct cairn_type *)(copied + 1);
    size_t count = type_count(declaration);
    copied->types = types;
    if (count > 0)
        memcpy(types, declaration->types, count * sizeof *types);
    if (declaration->function != NULL)
        copied->function = memcpy(types + count, declaration->function, name_size(declaration));
    return copied;
}

/* ---- The set ---- */

enum cairn_status cairn_declarations_create(const struct cairn_allocator *allocator,
                                            cairn_declarations **declarations,
                                            struct cairn_error *error)
{
    if (declarations == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_declarations_create needs a place for the set");
    struct cairn_allocator chosen = memory_allocator(allocator);
    cairn_declarations *created = memory_new(&chosen, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a set of declarations");
    created->allocator = chosen;
    created->key = hash_key_create();
    *declarations = created;
    return CAIRN_OK;
}

static void free_arrays(cairn_declarations *declarations)
{
    memory_free(&declarations->allocator, declarations->entries,
                declarations->capacity * sizeof *declarations->entries);
    memory_free(&declarations->allocator, declarations->places,
                2 * (size_t)declarations->capacity * sizeof *declarations->places);
}

void cairn_declarations_destroy(cairn_declarations *declarations)
{
    if (declarations == NULL)
        return;
    struct cairn_allocator allocator = declarations->allocator;
    for (uint32_t i = 0; i < declarations->count; i++)
        memory_free(&allocator, declarations->entries[i].declaration,
                    block_size(declarations->entries[i].declaration));
    free_arrays(declarations);
    memory_free(&allocator, declarations->record_numbers,
                declarations->record_count * sizeof *declarations->record_numbers);
    memory_free(&allocator, declarations, sizeof *declarations);
}

/* Returns the place of the ID, or the empty place where it belongs. `places` must not be NULL. */
static uint32_t *find_place(const cairn_declarations *declarations, uint64_t id)
{
    uint32_t mask = 2 * declarations->capacity - 1;
    uint32_t place = (uint32_t)(hash_u64(&declarations->key, id) >> 32) & mask;
    while (declarations->places[place] != 0 &&
           declarations->entries[declarations->places[place] - 1].id != id)
        place = (place + 1) & mask;
    return &declarations->places[place];
}

static enum cairn_status grow(cairn_declarations *declarations, struct cairn_error *error)
{
    cairn_declarations grown = *declarations;
    grown.capacity = declarations->capacity == 0 ? FIRST_CAPACITY : 2 * declarations->capacity;
    grown.entries = memory_new(&grown.allocator, grown.capacity, sizeof *grown.entries);
    grown.places = memory_new(&grown.allocator, 2 * (size_t)grown.capacity, sizeof *grown.places);
    if (grown.entries == NULL || grown.places == NULL) {
        free_arrays(&grown);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u declarations",
                         grown.capacity);
    }
    for (uint32_t i = 0; i < declarations->count; i++) {
        grown.entries[i] = declarations->entries[i];
        *find_place(&grown, grown.entries[i].id) = i + 1;
    }
    free_arrays(declarations);
    *declarations = grown;
    return CAIRN_OK;
}

static struct declaration_entry *find_entry(const cairn_declarations *declarations, uint64_t id)
{
    if (declarations->count == 0)
        return NULL;
    uint32_t entry = *find_place(declarations, id);
    return entry == 0 ? NULL : &declarations->entries[entry - 1];
}

const struct cairn_declaration *cairn_declarations_find(const cairn_declarations *declarations,
                                                        uint64_t id)
{
    const struct declaration_entry *found = find_entry(declarations, id);
    return found == NULL || found->kind == CAIRN_RECORD_UNDECLARED ? NULL : found->declaration;
}

size_t cairn_declarations_count(const cairn_declarations *declarations)
{
    return declarations->count;
}

const struct cairn_declaration *cairn_declarations_at(const cairn_declarations *declarations,
                                                      size_t index)
{
    return index < declarations->count ? declarations->entries[index].declaration : NULL;
}

/* ---- By record ---- */

enum cairn_status declarations_bind(cairn_declarations *declarations, const cairn_table *table,
                                    struct cairn_error *error)
{
    if (declarations->count == 0 || table->record_count == 0)
        return CAIRN_OK;
    uint32_t *numbers =
        memory_resize(&declarations->allocator, NULL, 0, table->record_count * sizeof *numbers);
    if (numbers == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory for the declarations of %u records", table->record_count);
    /* LLVM emits most calls in the order of the IR, so that most records have the declaration after
     * the last record's, or the same. Only the others are looked up. */
    uint32_t number = 0;
    for (uint32_t i = 0; i < table->record_count; i++) {
        uint64_t id = table_id(table, i);
        if (number < declarations->count && declarations->entries[number].id == id)
            number++;
        else if (number == 0 || declarations->entries[number - 1].id != id)
            number = *find_place(declarations, id);
        numbers[i] = number;
    }
    declarations->record_numbers = numbers;
    declarations->record_count = table->record_count;
    return CAIRN_OK;
}

size_t declarations_bound_bytes(const cairn_declarations *declarations)
{
    return declarations->record_count * sizeof *declarations->record_numbers;
}

/* ---- Two declarations of one ID ---- */

static bool same_type(struct cairn_type left, struct cairn_type right)
{
    return left.kind == right.kind && left.bits == right.bits &&
           left.element_count == right.element_count && left.address_space == right.address_space;
}

enum { DIFFERENCE_SIZE = 96 };

static bool differ_in_numbers(const struct cairn_declaration *known,
                              const struct cairn_declaration *added, char *difference)
{
    if (known->kind != added->kind)
        snprintf(difference, DIFFERENCE_SIZE, "a %s and a %s", cairn_record_kind_name(known->kind),
                 cairn_record_kind_name(added->kind));
    else if (known->byte_count != added->byte_count)
        snprintf(difference, DIFFERENCE_SIZE, "%u and %u bytes", known->byte_count,
                 added->byte_count);
    else if (known->calling_convention != added->calling_convention)
        snprintf(difference, DIFFERENCE_SIZE, "calling conventions %u and %u",
                 known->calling_convention, added->calling_convention);
    else if (known->has_target != added->has_target)
        snprintf(difference, DIFFERENCE_SIZE, "%s and %s", known->has_target ? "a target" : "none",
                 added->has_target ? "a target" : "none");
    else if (known->argument_count != added->argument_count)
        snprintf(difference, DIFFERENCE_SIZE, "%u and %u arguments", known->argument_count,
                 added->argument_count);
    else if (known->live_value_count != added->live_value_count)
        snprintf(difference, DIFFERENCE_SIZE, "%u and %u live values", known->live_value_count,
                 added->live_value_count);
    else
        return false;
    return true;
}

static void describe_types(struct cairn_type known, struct cairn_type added, const char *what,
                           size_t index, char *difference)
{
    char left[24];
    char right[24];
    cairn_type_format(known, left, sizeof left);
    cairn_type_format(added, right, sizeof right);
    snprintf(difference, DIFFERENCE_SIZE, "%s %zu of type %s and %s", what, index, left, right);
}

static bool differ_in_types(const struct cairn_declaration *known,
                            const struct cairn_declaration *added, char *difference)
{
    if (!same_type(known->result, added->result)) {
        describe_types(known->result, added->result, "result", 0, difference);
        return true;
    }
    size_t count = type_count(known); /* the same for both */
    assert(count == 0 || known->types != NULL);
    assert(count == 0 || added->types != NULL);
    for (size_t i = 0; i < count; i++) {
        if (same_type(known->types[i], added->types[i]))
            continue;
        bool is_argument = i < known->argument_count;
        describe_types(known->types[i], added->types[i], is_argument ? "argument" : "live value",
                       is_argument ? i : i - known->argument_count, difference);
        return true;
    }
    return false;
}

static bool same_results(const struct cairn_results *left, const struct cairn_results *right)
{
    if (left->is_known != right->is_known || left->extends_sign != right->extends_sign ||
        left->count != right->count)
        return false;
    for (size_t i = 0; i < left->count; i++)
        if (!same_type(left->types[i], right->types[i]))
            return false;
    return true;
}

/* Joins the results of functions. A record does not tell which of its functions a frame belongs
 * to. */
static void join_function_results(struct cairn_results *known, const struct cairn_results *added)
{
    if (!same_results(known, added))
        *known = (struct cairn_results){.is_known = false};
}

static const char *function_name(const struct cairn_declaration *declaration)
{
    return declaration->function == NULL ? "?" : declaration->function;
}

static enum cairn_status compare(const struct cairn_declaration *known,
                                 const struct cairn_declaration *added, struct cairn_error *error)
{
    char difference[DIFFERENCE_SIZE];
    if (!differ_in_numbers(known, added, difference) && !differ_in_types(known, added, difference))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CONFLICT, added->id,
                     "ID %llu has two shapes: in '%.48s' and in '%.48s' it has %s",
                     (unsigned long long)added->id, function_name(known), function_name(added),
                     difference);
}

/* Joins two declarations of an ID. An undeclared ID stays undeclared. Its entry keeps its counts,
 * because they determine the size of its block. */
static enum cairn_status join(struct declaration_entry *known,
                              const struct cairn_declaration *added, struct cairn_error *error)
{
    if (added->kind == CAIRN_RECORD_UNDECLARED) {
        known->kind = CAIRN_RECORD_UNDECLARED;
        known->declaration->kind = CAIRN_RECORD_UNDECLARED;
    }
    if (known->kind == CAIRN_RECORD_UNDECLARED)
        return CAIRN_OK;
    enum cairn_status status = compare(known->declaration, added, error);
    if (status == CAIRN_OK)
        join_function_results(&known->declaration->function_results, &added->function_results);
    return status;
}

enum cairn_status cairn_declarations_add(cairn_declarations *declarations,
                                         const struct cairn_declaration *declaration,
                                         struct cairn_error *error)
{
    if (declarations == NULL || declaration == NULL ||
        (declaration->types == NULL && type_count(declaration) > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_declarations_add needs a set, a declaration and its types");
    struct declaration_entry *known = find_entry(declarations, declaration->id);
    if (known != NULL)
        return join(known, declaration, error);
    if (declarations->count == declarations->capacity) {
        enum cairn_status status = grow(declarations, error);
        if (status != CAIRN_OK)
            return status;
    }
    struct cairn_declaration *copied = copy(&declarations->allocator, declaration);
    if (copied == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the declaration of ID %llu",
                         (unsigned long long)declaration->id);
    declarations->entries[declarations->count] = (struct declaration_entry){
        .id = copied->id,
        .declaration = copied,
        .kind = (uint8_t)copied->kind,
        .has_site = copied->kind == CAIRN_RECORD_PATCHPOINT || copied->byte_count > 0,
    };
    *find_place(declarations, copied->id) = ++declarations->count;
    return CAIRN_OK;
}

/* Removes the entries after the first `count`. Removing single places would break the sequences of
 * places after them, so all places are set again. */
void cairn_declarations_truncate(cairn_declarations *declarations, size_t count)
{
    if (count >= declarations->count)
        return;
    while (declarations->count > count) {
        struct cairn_declaration *last = declarations->entries[--declarations->count].declaration;
        memory_free(&declarations->allocator, last, block_size(last));
    }
    memset(declarations->places, 0,
           2 * (size_t)declarations->capacity * sizeof *declarations->places);
    for (uint32_t i = 0; i < declarations->count; i++)
        *find_place(declarations, declarations->entries[i].id) = i + 1;
}

/* ---- Names ---- */

static const char *const kind_names[] = {
    [CAIRN_RECORD_UNDECLARED] = "undeclared",
    [CAIRN_RECORD_STACKMAP] = "stackmap",
    [CAIRN_RECORD_PATCHPOINT] = "patchpoint",
    [CAIRN_RECORD_STATEPOINT] = "statepoint",
};
_Static_assert(sizeof kind_names / sizeof *kind_names == CAIRN_RECORD_STATEPOINT + 1,
               "one name for each kind");

const char *cairn_record_kind_name(enum cairn_record_kind kind)
{
    return (unsigned)kind > CAIRN_RECORD_STATEPOINT ? "unknown" : kind_names[kind];
}
