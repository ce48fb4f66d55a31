/* SPDX-License-Identifier: MIT */
#include "runtime/attachments.h"

#include "base/array.h"
#include "base/error.h"
#include "runtime/module.h"
#include "runtime/unwinder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Itanium C++ ABI, section 3.3.6.3. */
extern void __cxa_finalize(void *); /* NOLINT(bugprone-reserved-identifier,cert-*) */

static cairn_module *module_of(uint64_t item) { return (cairn_module *)(uintptr_t)item; }

static void *address_of(uint64_t item) { return (void *)(uintptr_t)item; }

/* ---- While a module is loaded ---- */

bool attachment_list_add(struct attachment_list *list, const struct cairn_allocator *allocator,
                         enum attachment kind, uint64_t item)
{
    uint64_t *items = array_reserve(allocator, list->lists[kind].items, list->lists[kind].count, 1,
                                    &list->lists[kind].capacity, sizeof *items);
    if (items == NULL) {
        if (kind == ATTACHED_MODULE)
            cairn_module_release(module_of(item));
        return false;
    }
    list->lists[kind].items = items;
    items[list->lists[kind].count++] = item;
    return true;
}

static void free_lists(struct attachment_list *list, const struct cairn_allocator *allocator)
{
    for (int kind = 0; kind < ATTACHMENT_KINDS; kind++)
        memory_free(allocator, list->lists[kind].items,
                    list->lists[kind].capacity * sizeof *list->lists[kind].items);
    *list = (struct attachment_list){0};
}

void attachment_list_release(struct attachment_list *list, const struct cairn_allocator *allocator)
{
    for (size_t i = 0; i < list->lists[ATTACHED_MODULE].count; i++)
        cairn_module_release(module_of(list->lists[ATTACHED_MODULE].items[i]));
    free_lists(list, allocator);
}

static int compare_items(const void *one, const void *other)
{
    uint64_t a;
    uint64_t b;
    memcpy(&a, one, sizeof a);
    memcpy(&b, other, sizeof b);
    return a < b ? -1 : a > b;
}

/* Keeps one reference to each module. */
static void remove_duplicates(struct attachment_list *list)
{
    uint64_t *items = list->lists[ATTACHED_MODULE].items;
    size_t count = list->lists[ATTACHED_MODULE].count;
    size_t kept = 0;
    if (count > 1)
        qsort(items, count, sizeof *items, compare_items);
    for (size_t i = 0; i < count; i++)
        if (kept > 0 && items[kept - 1] == items[i])
            cairn_module_release(module_of(items[i]));
        else
            items[kept++] = items[i];
    list->lists[ATTACHED_MODULE].count = kept;
}

/* ---- Of a module ---- */

static size_t item_count(const struct attachments *attachments)
{
    size_t count = 0;
    for (int kind = 0; kind < ATTACHMENT_KINDS; kind++)
        count += attachments->counts[kind];
    return count;
}

size_t attachments_size_bytes(const struct attachments *attachments)
{
    if (attachments == NULL)
        return 0;
    return sizeof *attachments + item_count(attachments) * sizeof *attachments->items;
}

/* Sets `*count` to the number of items of a kind, and returns the first one. */
static const uint64_t *items_of(const struct attachments *attachments, enum attachment kind,
                                uint32_t *count)
{
    const uint64_t *items = attachments->items;
    for (int before = 0; before < (int)kind; before++)
        items += attachments->counts[before];
    *count = attachments->counts[kind];
    return items;
}

static enum cairn_status register_tables(struct attachments *attachments, cairn_runtime *runtime,
                                         struct cairn_error *error)
{
    uint32_t count;
    struct unwinder unwinder;
    const uint64_t *tables = items_of(attachments, ATTACHED_UNWIND_TABLE, &count);
    if (count == 0)
        return CAIRN_OK;
    enum cairn_status status = unwinder_find(&unwinder, error);
    if (status != CAIRN_OK)
        return status;
    runtime_lock(runtime);
    runtime->unwinder = unwinder;
    runtime_unlock(runtime);
    for (uint32_t i = 0; i < count; i++)
        unwinder_add(&unwinder, address_of(tables[i]));
    attachments->is_registered = true;
    return CAIRN_OK;
}

enum cairn_status attachments_create(struct attachment_list *list, cairn_runtime *runtime,
                                     struct attachments **attachments, struct cairn_error *error)
{
    struct attachments sizes = {.dso_handle = list->dso_handle};
    *attachments = NULL;
    remove_duplicates(list);
    for (int kind = 0; kind < ATTACHMENT_KINDS; kind++)
        sizes.counts[kind] = (uint32_t)list->lists[kind].count;
    if (sizes.dso_handle == 0 && item_count(&sizes) == 0)
        return CAIRN_OK;
    struct attachments *created =
        memory_new(&runtime->allocator, 1, attachments_size_bytes(&sizes));
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory for a module's references and constructors");
    *created = sizes;
    uint64_t *next = created->items;
    for (int kind = 0; kind < ATTACHMENT_KINDS; kind++)
        for (size_t i = 0; i < list->lists[kind].count; i++)
            *next++ = list->lists[kind].items[i];
    enum cairn_status status = register_tables(created, runtime, error);
    if (status != CAIRN_OK) {
        memory_free(&runtime->allocator, created, attachments_size_bytes(&sizes));
        return status;
    }
    free_lists(list, &runtime->allocator);
    *attachments = created;
    return CAIRN_OK;
}

void attachments_detach(struct attachments *attachments, cairn_runtime *runtime)
{
    uint32_t count;
    if (attachments == NULL)
        return;
    if (attachments->dso_handle != 0)
        __cxa_finalize(address_of(attachments->dso_handle));
    if (!attachments->is_registered)
        return;
    runtime_lock(runtime);
    struct unwinder unwinder = runtime->unwinder;
    runtime_unlock(runtime);
    const uint64_t *tables = items_of(attachments, ATTACHED_UNWIND_TABLE, &count);
    for (uint32_t i = 0; i < count; i++)
        unwinder_remove(&unwinder, address_of(tables[i]));
    attachments->is_registered = false;
}

void attachments_destroy(struct attachments *attachments, cairn_runtime *runtime)
{
    uint32_t count;
    if (attachments == NULL)
        return;
    const uint64_t *modules = items_of(attachments, ATTACHED_MODULE, &count);
    for (uint32_t i = 0; i < count && !runtime->is_destroyed; i++)
        cairn_module_release(module_of(modules[i]));
    memory_free(&runtime->allocator, attachments, attachments_size_bytes(attachments));
}

/* ---- Constructors and destructors ---- */

/* Calls functions as the C library does. */
static void call_all(const struct attachments *attachments, enum attachment kind)
{
    static char *arguments[] = {NULL};
    uint32_t count;
    const uint64_t *functions = items_of(attachments, kind, &count);
    for (uint32_t i = 0; i < count; i++)
        ((void (*)(int, char **, char **))(uintptr_t)functions[i])(0, arguments, environ);
}

void attachments_construct(const struct attachments *attachments)
{
    call_all(attachments, ATTACHED_CONSTRUCTOR);
}

void attachments_destruct(const struct attachments *attachments)
{
    if (attachments->dso_handle != 0)
        __cxa_finalize(address_of(attachments->dso_handle));
    call_all(attachments, ATTACHED_DESTRUCTOR);
}
