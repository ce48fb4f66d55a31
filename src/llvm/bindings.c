/*
 * Bindings of sites, from when they are built to when their module is published.
 *
 * An element of the named metadata has four operands: the ID, the kind, the name of the function
 * that the site was built in, and the contents, bytes in a string. Those of a cache are its
 * options; those of assumptions are 64-bit addresses: the target, then the assumptions; those of
 * the other kinds are IDs of names (format/bound_sites.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/bindings.h"

#include "base/error.h"
#include "format/names.h"
#include "llvm/embed_section.h"
#include "llvm/ir.h"
#include "llvm/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char metadata_name[] = "cairn.bindings";

/* The kinds from NAMED on are those of format/bound_sites.h. */
enum kind {
    BOUND_TO_CACHE,
    BOUND_TO_ASSUMPTIONS,
    NAMED,
    NAMED_CACHE = NAMED + BOUND_SITE_CACHE,
    NAMED_CALL = NAMED + BOUND_SITE_CALL,
    NAMED_ASSUMPTIONS = NAMED + BOUND_SITE_ASSUMPTIONS
};
enum { OPERAND_ID, OPERAND_KIND, OPERAND_FUNCTION, OPERAND_CONTENTS, OPERANDS };

/* ORDER kind */
static const char *const kind_names[] = {
    "an inline cache",       "assumptions",     "",
    "a name's inline cache", "a name's target", "names of assumptions"};
static const char *const others[] = {"another one", "other ones",  "",
                                     "another one", "another one", "other ones"};
/* What a stored object may have instead. */
static const char *const instead[] = {"`cache_name` of its struct cairn_patchpoint",
                                      "`exit_name` and `assumption_names` of its struct "
                                      "cairn_guard"};

/* The strings are in the LLVM module, and do not end with a zero byte. */
struct binding {
    uint64_t id;
    enum kind kind;
    const char *function;
    unsigned function_length;
    const char *contents;
    unsigned size;
};

static bool is_named(const struct binding *binding) { return binding->kind > NAMED; }

/* ---- Adding ---- */

static LLVMMetadataRef number(LLVMContextRef context, uint64_t value)
{
    return LLVMValueAsMetadata(LLVMConstInt(LLVMInt64TypeInContext(context), value, 0));
}

static void add(LLVMValueRef function, uint64_t id, enum kind kind, const void *contents,
                size_t size)
{
    LLVMModuleRef module = LLVMGetGlobalParent(function);
    LLVMContextRef context = LLVMGetModuleContext(module);
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    LLVMMetadataRef operands[OPERANDS] = {
        [OPERAND_ID] = number(context, id),
        [OPERAND_KIND] = number(context, kind),
        [OPERAND_FUNCTION] = LLVMMDStringInContext2(context, name, length),
        [OPERAND_CONTENTS] = LLVMMDStringInContext2(context, contents, size),
    };
    LLVMAddNamedMetadataOperand(
        module, metadata_name,
        LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, operands, OPERANDS)));
}

void bindings_add_cache(LLVMValueRef function, uint64_t id, const struct cairn_ic_options *options)
{
    struct cairn_ic_options copy;
    _Static_assert(sizeof copy == 48, "a new member must be copied");
    memset(&copy, 0, sizeof copy); /* also the bytes that are no members: bindings are compared */
    copy.handler = options->handler;
    copy.user = options->user;
    copy.light_handler = options->light_handler;
    copy.megamorphic_handler = options->megamorphic_handler;
    copy.megamorphic_target = options->megamorphic_target;
    copy.case_limit = options->case_limit;
    copy.counts_hits = options->counts_hits;
    copy.has_table = options->has_table;
    add(function, id, BOUND_TO_CACHE, &copy, sizeof copy);
}

enum cairn_status bindings_add_assumptions(LLVMValueRef function, uint64_t id, const void *target,
                                           cairn_assumption *const *assumptions, uint32_t count,
                                           struct cairn_error *error)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    uint64_t *addresses = memory_new(&allocator, count + (size_t)1, sizeof *addresses);
    if (addresses == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, id, "no memory for %u assumptions", count);
    addresses[0] = (uintptr_t)target;
    for (uint32_t i = 0; i < count; i++)
        addresses[i + 1] = (uintptr_t)assumptions[i];
    add(function, id, BOUND_TO_ASSUMPTIONS, addresses, (count + (size_t)1) * sizeof *addresses);
    memory_free(&allocator, addresses, (count + (size_t)1) * sizeof *addresses);
    return CAIRN_OK;
}

enum cairn_status bindings_add_named(LLVMValueRef function, uint64_t id, enum bound_site_kind kind,
                                     const struct cairn_name *const *names, size_t count,
                                     struct cairn_error *error)
{
    LLVMModuleRef module = LLVMGetGlobalParent(function);
    struct cairn_allocator allocator = memory_allocator(NULL);
    enum cairn_status status = CAIRN_OK;
    uint64_t *ids = memory_new(&allocator, count, sizeof *ids);
    if (ids == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, id, "no memory for %zu names", count);
    for (size_t i = 0; i < count && status == CAIRN_OK; i++) {
        status = name_add(module, names[i], error);
        if (status == CAIRN_OK)
            ids[i] = name_id(names[i]->bytes, names[i]->size);
    }
    if (status == CAIRN_OK)
        add(function, id, (enum kind)((int)NAMED + (int)kind), ids, count * sizeof *ids);
    memory_free(&allocator, ids, count * sizeof *ids);
    return status;
}

/* ---- Reading ---- */

struct binding_list {
    struct cairn_allocator allocator;
    struct binding *items;
    size_t count;
    size_t capacity;
};

static bool read_number(LLVMValueRef operand, uint64_t *number)
{
    LLVMValueRef constant = operand == NULL ? NULL : LLVMIsAConstantInt(operand);
    if (constant == NULL || !ir_is_integer(LLVMTypeOf(constant), 64))
        return false;
    *number = LLVMConstIntGetZExtValue(constant);
    return true;
}

static bool read_string(LLVMValueRef operand, const char **text, unsigned *length)
{
    *text = operand == NULL ? NULL : LLVMGetMDString(operand, length);
    return *text != NULL;
}

static bool has_valid_size(const struct binding *binding)
{
    if (binding->kind == BOUND_TO_CACHE)
        return binding->size == sizeof(struct cairn_ic_options);
    if (is_named(binding))
        return binding->size % sizeof(uint64_t) == 0 &&
               bound_site_has_count((enum bound_site_kind)(binding->kind - NAMED),
                                    binding->size / sizeof(uint64_t));
    return binding->size >= 2 * sizeof(uint64_t) && binding->size % sizeof(uint64_t) == 0;
}

/* Returns false if the element does not have the form in which they are added: a host may have
 * written the metadata itself. */
static bool read_element(LLVMValueRef element, struct binding *binding)
{
    LLVMValueRef operands[OPERANDS];
    uint64_t kind = 0;
    if (LLVMGetMDNodeNumOperands(element) != OPERANDS)
        return false;
    LLVMGetMDNodeOperands(element, operands);
    if (!read_number(operands[OPERAND_ID], &binding->id) ||
        !read_number(operands[OPERAND_KIND], &kind) || kind > NAMED_ASSUMPTIONS || kind == NAMED ||
        !read_string(operands[OPERAND_FUNCTION], &binding->function, &binding->function_length) ||
        !read_string(operands[OPERAND_CONTENTS], &binding->contents, &binding->size))
        return false;
    binding->kind = (enum kind)kind;
    return has_valid_size(binding);
}

static unsigned count_elements(LLVMModuleRef module)
{
    return LLVMGetNamedMetadataNumOperands(module, metadata_name);
}

static enum cairn_status say_no_memory(size_t count, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu bindings of sites", count);
}

/* Adds the module's bindings to the list, which has space for them. */
static enum cairn_status read_module(LLVMModuleRef module, struct binding_list *list,
                                     struct cairn_error *error)
{
    unsigned count = count_elements(module);
    if (count == 0)
        return CAIRN_OK;
    LLVMValueRef *elements = memory_new(&list->allocator, count, sizeof *elements);
    if (elements == NULL)
        return say_no_memory(count, error);
    LLVMGetNamedMetadataOperands(module, metadata_name, elements);
    enum cairn_status status = CAIRN_OK;
    for (unsigned i = 0; i < count && status == CAIRN_OK; i++)
        if (!read_element(elements[i], &list->items[list->count++]))
            status =
                error_set(error, CAIRN_ERROR_CORRUPT, i,
                          "element %u of the metadata !%s is not a binding that Cairn has built", i,
                          metadata_name);
    memory_free(&list->allocator, elements, count * sizeof *elements);
    return status;
}

static void release(struct binding_list *list)
{
    memory_free(&list->allocator, list->items, list->capacity * sizeof *list->items);
}

/* Makes the list of a module's bindings. On success, the caller releases it. */
static enum cairn_status read_one(LLVMModuleRef module, struct binding_list *list,
                                  struct cairn_error *error)
{
    *list = (struct binding_list){.allocator = memory_allocator(NULL),
                                  .capacity = count_elements(module)};
    if (list->capacity == 0)
        return CAIRN_OK;
    list->items = memory_new(&list->allocator, list->capacity, sizeof *list->items);
    if (list->items == NULL)
        return say_no_memory(list->capacity, error);
    enum cairn_status status = read_module(module, list, error);
    if (status != CAIRN_OK)
        release(list);
    return status;
}

enum cairn_status bindings_check_free(LLVMModuleRef module, uint64_t id, struct cairn_error *error)
{
    struct binding_list list;
    enum cairn_status status = read_one(module, &list, error);
    if (status != CAIRN_OK)
        return status;
    for (size_t i = 0; i < list.count && status == CAIRN_OK; i++) {
        const struct binding *bound = &list.items[i];
        if (bound->id == id)
            status = error_set(error, CAIRN_ERROR_CONFLICT, id,
                               "site %llu of '%.*s' is bound to %s, so it cannot get a new ID, and "
                               "another site has its ID and another shape",
                               (unsigned long long)id, (int)bound->function_length, bound->function,
                               kind_names[bound->kind]);
    }
    release(&list);
    return status;
}

enum cairn_status bindings_refuse(LLVMModuleRef module, struct cairn_error *error)
{
    struct binding_list list;
    enum cairn_status status = read_one(module, &list, error);
    for (size_t i = 0; i < list.count && status == CAIRN_OK; i++) {
        const struct binding *next = &list.items[i];
        if (!is_named(next))
            status = error_set(error, CAIRN_ERROR_UNSUPPORTED, next->id,
                               "site %llu of '%.*s' was built with %s of this process, and an "
                               "object that is kept cannot have that: give it a name (%s)",
                               (unsigned long long)next->id, (int)next->function_length,
                               next->function, kind_names[next->kind], instead[next->kind]);
    }
    release(&list);
    return status;
}

/* Writes the bindings to names as format/bound_sites.h defines it; without bytes, only returns
 * their size. */
static size_t write_named(const struct binding_list *list, uint8_t *bytes)
{
    size_t word = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct binding *next = &list->items[i];
        size_t count = next->size / sizeof(uint64_t);
        uint64_t head[BOUND_SITE_WORDS] = {next->id, (uint64_t)(next->kind - NAMED), count};
        for (size_t k = 0; is_named(next) && k < BOUND_SITE_WORDS + count; k++, word++) {
            uint64_t value = k < BOUND_SITE_WORDS ? head[k] : 0;
            if (k >= BOUND_SITE_WORDS)
                memcpy(&value, next->contents + (k - BOUND_SITE_WORDS) * sizeof value,
                       sizeof value);
            for (unsigned byte = 0; bytes != NULL && byte < sizeof value; byte++)
                bytes[word * sizeof value + byte] = (uint8_t)(value >> 8 * byte);
        }
    }
    return word * sizeof(uint64_t);
}

enum cairn_status bindings_embed_named(LLVMModuleRef module, struct cairn_error *error)
{
    struct binding_list list;
    enum cairn_status status = read_one(module, &list, error);
    if (status != CAIRN_OK)
        return status;
    size_t size = write_named(&list, NULL);
    uint8_t *bytes = size == 0 ? NULL : memory_new(&list.allocator, size, 1);
    if (size > 0 && bytes == NULL) {
        status = say_no_memory(list.count, error);
    } else if (size > 0) {
        write_named(&list, bytes);
        status = embed_section(module, "cairn.sites", BOUND_SITES_SECTION, bytes, size, error);
    }
    memory_free(&list.allocator, bytes, size);
    release(&list);
    return status;
}

/* ---- In objects ---- */

/* A binding in a section. The contents and the name of the function follow, each filled with zeros
 * to a multiple of 8 bytes. */
struct embedded {
    uint64_t key;
    uint64_t id;
    uint64_t kind;
    uint64_t size;
    uint64_t function_length;
};

static size_t filled(size_t size) { return (size + 7) / 8 * 8; }

static size_t embedded_size(const struct binding *binding)
{
    return sizeof(struct embedded) + filled(binding->size) + filled(binding->function_length);
}

static void write_embedded(const struct binding *binding, uint64_t key, uint8_t *bytes)
{
    const struct embedded head = {.key = key,
                                  .id = binding->id,
                                  .kind = binding->kind,
                                  .size = binding->size,
                                  .function_length = binding->function_length};
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, binding->contents, binding->size);
    memcpy(bytes + sizeof head + filled(binding->size), binding->function,
           binding->function_length);
}

enum cairn_status bindings_embed(LLVMModuleRef module, uint64_t key, struct cairn_error *error)
{
    struct binding_list list;
    size_t size = 0;
    enum cairn_status status = read_one(module, &list, error);
    if (status != CAIRN_OK || list.count == 0)
        return status;
    for (size_t i = 0; i < list.count; i++)
        size += embedded_size(&list.items[i]);
    uint8_t *bytes = memory_new(&list.allocator, size, 1);
    size_t at = 0;
    for (size_t i = 0; bytes != NULL && i < list.count; i++) {
        write_embedded(&list.items[i], key, bytes + at);
        at += embedded_size(&list.items[i]);
    }
    status = bytes == NULL
                 ? say_no_memory(list.count, error)
                 : embed_section(module, "cairn.bindings", BINDINGS_SECTION, bytes, size, error);
    memory_free(&list.allocator, bytes, size);
    release(&list);
    return status;
}

/* Reads the binding at `*at`, and advances it. Returns false if its form is wrong. */
static bool read_embedded(const struct bindings_section *section, size_t *at, uint64_t *key,
                          struct binding *binding)
{
    struct embedded head;
    const char *bytes = (const char *)section->words;
    size_t left = section->size - *at;
    if (left < sizeof head)
        return false;
    memcpy(&head, bytes + *at, sizeof head);
    left -= sizeof head;
    if (head.size > left || head.function_length > left ||
        filled(head.size) + filled(head.function_length) > left)
        return false;
    *key = head.key;
    *binding = (struct binding){
        .id = head.id,
        .kind = (enum kind)head.kind,
        .contents = bytes + *at + sizeof head,
        .size = (unsigned)head.size,
        .function = bytes + *at + sizeof head + filled(head.size),
        .function_length = (unsigned)head.function_length,
    };
    *at += embedded_size(binding);
    return head.kind <= NAMED_ASSUMPTIONS && head.kind != NAMED && has_valid_size(binding);
}

/* Adds the section's bindings that have the key to the list, which has space for them. `*other` is
 * one with another key. */
static enum cairn_status read_section(const struct bindings_section *section, uint64_t key,
                                      struct binding_list *list, struct binding *other,
                                      struct cairn_error *error)
{
    for (size_t at = 0; at < section->size;) {
        struct binding next;
        uint64_t its_key;
        size_t before = at;
        if (!read_embedded(section, &at, &its_key, &next))
            return error_set(error, CAIRN_ERROR_CORRUPT, before,
                             "section " BINDINGS_SECTION ", offset %zu: not a binding that Cairn "
                             "has written",
                             before);
        if (its_key == key)
            list->items[list->count++] = next;
        else
            *other = next;
    }
    return CAIRN_OK;
}

static enum cairn_status read_sections(const struct bindings_section *first, uint64_t key,
                                       struct binding_list *list, struct cairn_error *error)
{
    struct binding other = {.function = NULL};
    enum cairn_status status = CAIRN_OK;
    for (const struct bindings_section *next = first; next != NULL; next = next->next)
        list->capacity += next->size / sizeof(struct embedded) + 1;
    list->items = memory_new(&list->allocator, list->capacity, sizeof *list->items);
    if (list->items == NULL)
        return say_no_memory(list->capacity, error);
    for (; first != NULL && status == CAIRN_OK; first = first->next)
        status = read_section(first, key, list, &other, error);
    if (status != CAIRN_OK || other.function == NULL || list->count > 0)
        return status;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, other.id,
                     "site %llu of '%.*s' was bound to %s for another memory manager, or in "
                     "another process",
                     (unsigned long long)other.id, (int)other.function_length, other.function,
                     kind_names[other.kind]);
}

/* ---- One binding for each ID ---- */

static int compare_ids(const void *one, const void *other)
{
    uint64_t a = ((const struct binding *)one)->id;
    uint64_t b = ((const struct binding *)other)->id;
    return a < b ? -1 : a > b;
}

static bool is_same(const struct binding *one, const struct binding *other)
{
    return one->kind == other->kind && one->size == other->size &&
           memcmp(one->contents, other->contents, one->size) == 0;
}

/* Sorts the list, which has items, by ID. Equal bindings of an ID become one. */
static enum cairn_status unite(struct binding_list *list, struct cairn_error *error)
{
    size_t kept = 0;
    qsort(list->items, list->count, sizeof *list->items, compare_ids);
    for (size_t i = 0; i < list->count; i++) {
        const struct binding *next = &list->items[i];
        const struct binding *last = kept == 0 ? NULL : &list->items[kept - 1];
        if (last == NULL || last->id != next->id)
            list->items[kept++] = *next;
        else if (!is_same(last, next))
            return error_set(
                error, CAIRN_ERROR_CONFLICT, next->id,
                "site %llu is bound to %s in '%.*s', and to %s in '%.*s': give each its "
                "own ID",
                (unsigned long long)next->id, kind_names[last->kind], (int)last->function_length,
                last->function,
                last->kind == next->kind ? others[next->kind] : kind_names[next->kind],
                (int)next->function_length, next->function);
    }
    list->count = kept;
    return CAIRN_OK;
}

static enum cairn_status read_all(LLVMModuleRef *modules, size_t count, struct binding_list *list,
                                  struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < count; i++)
        list->capacity += count_elements(modules[i]);
    if (list->capacity == 0)
        return CAIRN_OK;
    list->items = memory_new(&list->allocator, list->capacity, sizeof *list->items);
    if (list->items == NULL)
        return say_no_memory(list->capacity, error);
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = read_module(modules[i], list, error);
    return status == CAIRN_OK ? unite(list, error) : status;
}

/* ---- Dropping guards ---- */

/* Whether the binding is to the assumption, and perhaps to others. */
static bool is_bound_to(const struct binding *binding, const cairn_assumption *assumption)
{
    const uint64_t wanted = (uintptr_t)assumption;
    uint64_t word;
    if (binding->kind != BOUND_TO_ASSUMPTIONS)
        return false;
    for (unsigned at = sizeof word; at < binding->size; at += (unsigned)sizeof word) {
        memcpy(&word, binding->contents + at, sizeof word);
        if (word == wanted)
            return true;
    }
    return false;
}

/* Reduces the list to the bindings to the assumption, sorted by ID. */
static enum cairn_status choose(struct binding_list *list, const cairn_assumption *assumption,
                                struct cairn_error *error)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct binding *next = &list->items[i];
        if (!is_bound_to(next, assumption))
            continue;
        if (next->size > 2 * sizeof(uint64_t))
            return error_set(error, CAIRN_ERROR_ARGUMENT, next->id,
                             "guard %llu of '%.*s' relies on until_full and on another assumption",
                             (unsigned long long)next->id, (int)next->function_length,
                             next->function);
        list->items[kept++] = *next;
    }
    list->count = kept;
    if (kept > 0)
        qsort(list->items, kept, sizeof *list->items, compare_ids);
    return CAIRN_OK;
}

/* Whether the instruction is a patch point whose ID is in the list. */
static bool is_listed(LLVMValueRef instruction, const struct binding_list *list)
{
    struct binding wanted = {.id = 0};
    return ir_is_intrinsic(ir_called_function(instruction), "llvm.experimental.patchpoint.") &&
           read_number(LLVMGetOperand(instruction, 0), &wanted.id) &&
           bsearch(&wanted, list->items, list->count, sizeof wanted, compare_ids) != NULL;
}

enum cairn_status bindings_drop_guards(LLVMModuleRef module, const cairn_assumption *assumption,
                                       struct cairn_error *error)
{
    struct binding_list list;
    enum cairn_status status = read_one(module, &list, error);
    if (status != CAIRN_OK || list.capacity == 0)
        return status;
    status = choose(&list, assumption, error);
    LLVMValueRef instruction =
        status != CAIRN_OK || list.count == 0 ? NULL : ir_next_in_module(module, NULL);
    while (instruction != NULL) {
        LLVMValueRef next = ir_next_in_module(module, instruction);
        if (is_listed(instruction, &list))
            LLVMInstructionEraseFromParent(instruction);
        instruction = next;
    }
    release(&list);
    return status;
}

/* ---- Binding ---- */

static enum cairn_status bind_cache(cairn_site *site, const struct binding *binding,
                                    struct cairn_error *error)
{
    struct cairn_ic_options options;
    cairn_ic *ic;
    memcpy(&options, binding->contents, sizeof options);
    return cairn_ic_create(site, &options, &ic, error);
}

static enum cairn_status bind_assumptions(cairn_site *site, const struct binding *binding,
                                          struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    uint64_t target;
    memcpy(&target, binding->contents, sizeof target);
    for (size_t at = sizeof target; at < binding->size && status == CAIRN_OK; at += sizeof target) {
        uint64_t assumption;
        memcpy(&assumption, binding->contents + at, sizeof assumption);
        status = cairn_assumption_add((cairn_assumption *)(uintptr_t)assumption, site,
                                      (const void *)(uintptr_t)target, CAIRN_RELAXED, error);
    }
    return status;
}

static enum cairn_status bind_record(struct cairn_record record, const struct binding *binding,
                                     struct cairn_error *error)
{
    struct cairn_error reason = {0};
    cairn_site *site = cairn_record_site(record);
    enum cairn_status status;
    if (is_named(binding))
        return CAIRN_OK; /* by the loader */
    if (site == NULL)
        status = error_set(&reason, CAIRN_ERROR_NOT_FOUND, binding->id,
                           "its record has no declaration, or its ID has two shapes");
    else if (binding->kind == BOUND_TO_CACHE)
        status = bind_cache(site, binding, &reason);
    else
        status = bind_assumptions(site, binding, &reason);
    if (status == CAIRN_OK)
        return CAIRN_OK;
    error_set(error, status, reason.offset, "site %llu of '%.*s' cannot have %s: %.160s",
              (unsigned long long)binding->id, (int)binding->function_length, binding->function,
              kind_names[binding->kind], reason.message);
    if (error != NULL)
        error->system_error = reason.system_error;
    return status;
}

/* Binds all sites of the module whose IDs are in the sorted list. */
static enum cairn_status bind_records(const struct binding_list *list, const cairn_module *module,
                                      struct cairn_error *error)
{
    const cairn_table *table = cairn_module_table(module);
    enum cairn_status status = CAIRN_OK;
    uint32_t record_count = list->count == 0 ? 0 : cairn_table_record_count(table);
    for (uint32_t i = 0; i < record_count && status == CAIRN_OK; i++) {
        const struct cairn_record record = {table, i};
        const struct binding key = {.id = cairn_record_id(record)};
        const struct binding *found =
            bsearch(&key, list->items, list->count, sizeof key, compare_ids);
        if (found != NULL)
            status = bind_record(record, found, error);
    }
    return status;
}

enum cairn_status bindings_apply(LLVMModuleRef *modules, size_t count, const cairn_module *module,
                                 const struct cairn_allocator *allocator, struct cairn_error *error)
{
    struct binding_list list = {.allocator = *allocator};
    enum cairn_status status = read_all(modules, count, &list, error);
    if (status == CAIRN_OK)
        status = bind_records(&list, module, error);
    release(&list);
    return status;
}

enum cairn_status bindings_apply_sections(const struct bindings_section *first, uint64_t key,
                                          const cairn_module *module,
                                          const struct cairn_allocator *allocator,
                                          struct cairn_error *error)
{
    struct binding_list list = {.allocator = *allocator};
    if (first == NULL)
        return CAIRN_OK;
    enum cairn_status status = read_sections(first, key, &list, error);
    if (status == CAIRN_OK)
        status = unite(&list, error);
    if (status == CAIRN_OK)
        status = bind_records(&list, module, error);
    release(&list);
    return status;
}
