/* SPDX-License-Identifier: MIT */
#include "record/declarations.h"

#include "base/adapter.h"
#include "base/array.h"
#include "base/error.h"
#include "base/type.h"
#include "record/record_values.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- Single declarations: each is one block with its types and its function's name ---- */

static size_t type_count(const struct cairn_declaration *declaration)
{
    return (size_t)declaration->argument_count + declaration->live_value_count;
}

static size_t block_size(const struct cairn_declaration *declaration)
{
    size_t name_size = declaration->function == NULL ? 0 : strlen(declaration->function) + 1;
    return sizeof *declaration + type_count(declaration) * sizeof *declaration->types + name_size;
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
        copied->function = strcpy((char *)(types + count), declaration->function);
    return copied;
}

/* ---- The set ---- */

enum cairn_status cairn_declarations_create(const struct cairn_allocator *allocator,
                                            cairn_declarations **declarations,
                                            struct cairn_error *error)
{
    if (declarations == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_declarations_create: `declarations` is NULL");
    struct cairn_allocator chosen = memory_allocator(allocator);
    cairn_declarations *created = memory_new(&chosen, 1, sizeof *created);
    if (created != NULL)
        created->allocator = chosen;
    if (created == NULL || !hash_set_init(&created->ids, &chosen, 0)) {
        cairn_declarations_destroy(created);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a set of declarations");
    }
    *declarations = created;
    return CAIRN_OK;
}

void cairn_declarations_destroy(cairn_declarations *declarations)
{
    if (declarations == NULL)
        return;
    struct cairn_allocator allocator = declarations->allocator;
    for (size_t i = 0; i < declarations->count; i++)
        memory_free(&allocator, declarations->entries[i].declaration,
                    block_size(declarations->entries[i].declaration));
    memory_free(&allocator, declarations->entries,
                declarations->capacity * sizeof *declarations->entries);
    hash_set_release(&declarations->ids, &allocator);
    memory_free(&allocator, declarations->record_numbers,
                declarations->record_count * sizeof *declarations->record_numbers);
    memory_free(&allocator, declarations, sizeof *declarations);
}

static uint32_t hash_of(const cairn_declarations *declarations, uint64_t id)
{
    return (uint32_t)(hash_u64(&declarations->ids.key, id) >> 32);
}

/* Returns the number of the ID's entry plus 1, or 0. */
static uint32_t find_number(const cairn_declarations *declarations, uint64_t id)
{
    const struct hash_set *ids = &declarations->ids;
    const struct hash_place *place = hash_set_first(ids, hash_of(declarations, id));
    while (place->number != 0 && declarations->entries[place->number - 1].id != id)
        place = hash_set_next(ids, place);
    return place->number;
}

const struct cairn_declaration *cairn_declarations_find(const cairn_declarations *declarations,
                                                        uint64_t id)
{
    uint32_t number = find_number(declarations, id);
    if (number == 0 || declarations->entries[number - 1].kind == CAIRN_RECORD_UNDECLARED)
        return NULL;
    return declarations->entries[number - 1].declaration;
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

/* Returns false if memory runs out. */
static bool free_what_adding_needs(cairn_declarations *declarations)
{
    const struct cairn_allocator *allocator = &declarations->allocator;
    const size_t entry_bytes = sizeof *declarations->entries;
    hash_set_release(&declarations->ids, allocator);
    declarations->ids = (struct hash_set){0};
    struct declaration_entry *entries =
        memory_resize(allocator, declarations->entries, declarations->capacity * entry_bytes,
                      declarations->count * entry_bytes);
    if (entries == NULL)
        return false;
    declarations->entries = entries;
    declarations->capacity = declarations->count;
    return true;
}

/* LLVM records nothing of a value in an x87 register, so that all values after it would be read
 * from the wrong places. */
static enum cairn_status check_locations(const struct declaration_entry *entry,
                                         struct cairn_record record, struct cairn_error *error)
{
    if (entry->kind != CAIRN_RECORD_PATCHPOINT && entry->kind != CAIRN_RECORD_STACKMAP)
        return CAIRN_OK;
    struct record_values values = record_values_of(record);
    uint32_t count = record_values_location_count(&values);
    const struct cairn_declaration *declaration = entry->declaration;
    uint32_t needed = declaration_first_live_value(declaration) + declaration->live_value_count;
    if (count == needed)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CORRUPT, cairn_record_address(record),
                     "record %llu at 0x%llx has %u locations and its declaration needs %u: LLVM "
                     "does not record live values of some types, such as x86_fp80",
                     (unsigned long long)entry->id,
                     (unsigned long long)cairn_record_address(record), count, needed);
}

enum cairn_status declarations_bind(cairn_declarations *declarations, const cairn_table *table,
                                    struct cairn_error *error)
{
    if (declarations == NULL || declarations->count == 0 || table->record_count == 0)
        return CAIRN_OK;
    uint32_t *numbers =
        memory_resize(&declarations->allocator, NULL, 0, table->record_count * sizeof *numbers);
    if (numbers == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory for the declarations of %u records", table->record_count);
    /* LLVM emits most calls in the order of the IR, so that most records have the declaration after
     * the last record's, or the same. Only the others are looked up. */
    uint32_t number = 0;
    enum cairn_status status = CAIRN_OK;
    for (uint32_t i = 0; i < table->record_count && status == CAIRN_OK; i++) {
        uint64_t id = table_id(table, i);
        if (number < declarations->count && declarations->entries[number].id == id)
            number++;
        else if (number == 0 || declarations->entries[number - 1].id != id)
            number = find_number(declarations, id);
        numbers[i] = number;
        if (number == 0)
            continue;
        const struct declaration_entry *entry = &declarations->entries[number - 1];
        declarations->kinds |= UINT32_C(1) << entry->kind;
        declarations->have_sites |= entry->has_site;
        status = check_locations(entry, (struct cairn_record){table, i}, error);
    }
    declarations->record_numbers = numbers;
    declarations->record_count = table->record_count;
    if (status != CAIRN_OK)
        return status;
    return free_what_adding_needs(declarations)
               ? CAIRN_OK
               : error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u declarations",
                           declarations->count);
}

size_t declarations_bound_bytes(const cairn_declarations *declarations)
{
    return declarations == NULL ? 0
                                : declarations->record_count * sizeof *declarations->record_numbers;
}

/* ---- Two declarations of one ID ---- */

static bool same_type(struct cairn_type left, struct cairn_type right)
{
    return type_equal(left, right) && left.address_space == right.address_space;
}

enum { DIFFERENCE_SIZE = 96 };

static bool differ_in_numbers(const struct cairn_declaration *known,
                              const struct cairn_declaration *added, char *difference)
{
    if (known->kind != added->kind)
        snprintf(difference, DIFFERENCE_SIZE, "a %s and a %s", record_kind_name(known->kind),
                 record_kind_name(added->kind));
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

static bool differ_in_types(const struct cairn_declaration *known,
                            const struct cairn_declaration *added, char *difference)
{
    size_t count = type_count(known); /* the same for both */
    assert(count == 0 || known->types != NULL);
    assert(count == 0 || added->types != NULL);
    for (size_t i = 0; i <= count; i++) {
        struct cairn_type left = i == 0 ? known->result : known->types[i - 1];
        struct cairn_type right = i == 0 ? added->result : added->types[i - 1];
        if (same_type(left, right))
            continue;
        char left_name[24];
        char right_name[24];
        bool is_argument = i <= known->argument_count;
        cairn_type_format(left, left_name, sizeof left_name);
        cairn_type_format(right, right_name, sizeof right_name);
        snprintf(difference, DIFFERENCE_SIZE, "%s %zu of type %s and %s",
                 i == 0        ? "result"
                 : is_argument ? "argument"
                               : "live value",
                 i == 0        ? 0
                 : is_argument ? i - 1
                               : i - 1 - known->argument_count,
                 left_name, right_name);
        return true;
    }
    return false;
}

/* Joins two declarations of an ID. An undeclared ID stays undeclared. Its entry keeps its counts,
 * because they determine the size of its block. */
static enum cairn_status join(struct declaration_entry *known,
                              const struct cairn_declaration *added, struct cairn_error *error)
{
    struct cairn_declaration *declaration = known->declaration;
    char difference[DIFFERENCE_SIZE];
    if (added->kind == CAIRN_RECORD_UNDECLARED) {
        known->kind = CAIRN_RECORD_UNDECLARED;
        declaration->kind = CAIRN_RECORD_UNDECLARED;
    }
    if (known->kind == CAIRN_RECORD_UNDECLARED)
        return CAIRN_OK;
    if (differ_in_numbers(declaration, added, difference) ||
        differ_in_types(declaration, added, difference))
        return error_set(error, CAIRN_ERROR_CONFLICT, added->id,
                         "ID %llu has two shapes: in '%.48s' and in '%.48s' it has %s",
                         (unsigned long long)added->id,
                         declaration->function == NULL ? "?" : declaration->function,
                         added->function == NULL ? "?" : added->function, difference);
    /* A record does not tell which of its functions a frame belongs to. */
    struct cairn_results *left = &declaration->function_results;
    const struct cairn_results *right = &added->function_results;
    bool same = left->is_known == right->is_known && left->extends_sign == right->extends_sign &&
                left->count == right->count;
    for (size_t i = 0; i < left->count && same; i++)
        same = same_type(left->types[i], right->types[i]);
    if (!same)
        *left = (struct cairn_results){.is_known = false};
    return CAIRN_OK;
}

enum cairn_status cairn_declarations_add(cairn_declarations *declarations,
                                         const struct cairn_declaration *declaration,
                                         struct cairn_error *error)
{
    if (declarations == NULL || declaration == NULL ||
        (declaration->types == NULL && type_count(declaration) > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_declarations_add: `%s` is NULL",
                         declarations == NULL  ? "declarations"
                         : declaration == NULL ? "declaration"
                                               : "declaration->types");
    uint32_t number = find_number(declarations, declaration->id);
    if (number != 0)
        return join(&declarations->entries[number - 1], declaration, error);
    const struct cairn_allocator *allocator = &declarations->allocator;
    struct cairn_declaration *copied = copy(allocator, declaration);
    struct declaration_entry *entries =
        array_reserve(allocator, declarations->entries, declarations->count, 1,
                      &declarations->capacity, sizeof *entries);
    if (entries != NULL)
        declarations->entries = entries;
    if (copied == NULL || entries == NULL ||
        !hash_set_add(&declarations->ids, allocator, hash_of(declarations, declaration->id),
                      declarations->count)) {
        memory_free(allocator, copied, block_size(declaration));
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the declaration of ID %llu",
                         (unsigned long long)declaration->id);
    }
    entries[declarations->count++] = (struct declaration_entry){
        .id = copied->id,
        .declaration = copied,
        .kind = (uint8_t)copied->kind,
        .has_site = copied->kind == CAIRN_RECORD_PATCHPOINT || copied->byte_count > 0,
    };
    return CAIRN_OK;
}

void cairn_declarations_truncate(cairn_declarations *declarations, size_t count)
{
    if (count >= declarations->count)
        return;
    while (declarations->count > count) {
        struct cairn_declaration *last = declarations->entries[--declarations->count].declaration;
        memory_free(&declarations->allocator, last, block_size(last));
    }
    hash_set_clear(&declarations->ids);
    for (uint32_t i = 0; i < count; i++)
        hash_set_put(&declarations->ids, hash_of(declarations, declarations->entries[i].id), i);
}

/* ---- The results of functions ---- */

enum { TYPE_NAME_BYTES = 64, TYPE_NAMES_BYTES = 80 };

/* Formats a list of types, such as "i64, double"; "nothing" if it is empty. */
static void format_types(const struct cairn_type *types, uint32_t count, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "%s", count == 0 ? "nothing" : "");
    for (uint32_t i = 0; i < count && length < size; i++) {
        char name[TYPE_NAME_BYTES];
        cairn_type_format(types[i], name, sizeof name);
        length += (size_t)snprintf(text + length, size - length, "%s%s", i == 0 ? "" : ", ", name);
    }
}

enum cairn_status declaration_check_results(const struct cairn_declaration *declaration,
                                            const struct cairn_results *given,
                                            struct cairn_error *error)
{
    if (declaration == NULL || !declaration->function_results.is_known)
        return CAIRN_OK;
    const struct cairn_results *declared = &declaration->function_results;
    bool is_same = declared->count == given->count;
    for (uint32_t i = 0; is_same && i < given->count; i++)
        is_same = type_equal(declared->types[i], given->types[i]);
    if (is_same)
        return CAIRN_OK;
    char declared_names[TYPE_NAMES_BYTES];
    char given_names[TYPE_NAMES_BYTES];
    format_types(declared->types, declared->count, declared_names, sizeof declared_names);
    format_types(given->types, given->count, given_names, sizeof given_names);
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "'%.48s' returns %s, and not %s",
                     declaration->function == NULL ? "?" : declaration->function, declared_names,
                     given_names);
}
