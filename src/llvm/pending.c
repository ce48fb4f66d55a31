/*
 * Declarations of modules that are not loaded yet.
 *
 * The marker is a variable with external linkage. So passes that remove unused globals keep it, and
 * it is preserved when its module is linked into another module or cloned.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/scan.h"

#include "base/adapter.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* The section's name in ELF and COFF, and in Mach-O. In Mach-O, memory managers get only the name
 * after the comma. */
static const char marker_section[] = ".cairn.declared";
static const char mach_o_full_section[] = "__DATA,__cairn_declared";
static const char mach_o_section[] = "__cairn_declared";

/* The first new ID for a call whose ID has two shapes. Hosts usually count from 0, so new IDs
 * rarely equal the host's. New IDs fit into 32 bits, the size of a statepoint's ID before LLVM
 * 19. */
#define FIRST_NEW_ID (UINT64_C(1) << 31)

/* The contents of a marker. A module may have been declared to several memory managers. */
struct marker {
    uint64_t list; /* the address of the list */
    uint64_t number;
};

/* The declarations of one LLVM module. */
struct pending {
    struct pending *next;
    cairn_declarations *declarations;
    uint64_t number;
};

/* ---- Markers ---- */

/* Adds a variable whose name and contents identify the declarations. The section's name depends on
 * whether the triple is for Mach-O: as in LLVM, the format at the end of the triple decides,
 * otherwise the operating system. */
static void add_marker(LLVMModuleRef module, const struct pending_list *list, uint64_t number)
{
    static const char *const mach_o_systems[] = {"darwin", "macos", "ios", "tvos", "watchos"};
    const char *triple = LLVMGetTarget(module);
    const char *format = strrchr(triple, '-');
    bool is_mach_o = false;
    for (size_t i = 0; i < sizeof mach_o_systems / sizeof *mach_o_systems; i++)
        is_mach_o |= strstr(triple, mach_o_systems[i]) != NULL;
    if (format != NULL && (strstr(format, "macho") != NULL || strstr(format, "elf") != NULL))
        is_mach_o = strstr(format, "macho") != NULL;
    char name[64];
    snprintf(name, sizeof name, "cairn.declared.%llx.%llu", (unsigned long long)(uintptr_t)list,
             (unsigned long long)number);
    LLVMTypeRef word = LLVMInt64TypeInContext(LLVMGetModuleContext(module));
    LLVMValueRef words[] = {LLVMConstInt(word, (uintptr_t)list, 0), LLVMConstInt(word, number, 0)};
    LLVMValueRef variable = LLVMAddGlobal(module, LLVMArrayType(word, 2), name);
    LLVMSetInitializer(variable, LLVMConstArray(word, words, 2));
    LLVMSetGlobalConstant(variable, 1);
    LLVMSetSection(variable, is_mach_o ? mach_o_full_section : marker_section);
    LLVMSetAlignment(variable, sizeof(uint64_t));
}

bool pending_is_marker(const char *section_name)
{
    return strcmp(section_name, marker_section) == 0 || strcmp(section_name, mach_o_section) == 0;
}

void pending_take(struct pending_list *list, const void *section, size_t size,
                  struct pending **taken)
{
    struct marker marker;
    for (size_t at = 0; at + sizeof marker <= size; at += sizeof marker) {
        memcpy(&marker, (const uint8_t *)section + at, sizeof marker);
        struct pending **link = &list->first;
        if (marker.list != (uintptr_t)list)
            continue;
        while (*link != NULL && (*link)->number != marker.number)
            link = &(*link)->next;
        struct pending *pending = *link;
        if (pending == NULL)
            continue;
        *link = pending->next;
        pending->next = *taken;
        *taken = pending;
    }
}

/* ---- Scanning ---- */

/* Adds all declarations of `added` to `set`, and treats conflicts as scan_declare does. */
static enum cairn_status merge(cairn_declarations *set, const cairn_declarations *added,
                               bool undeclares, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < cairn_declarations_count(added) && status == CAIRN_OK; i++)
        status = scan_declare(set, cairn_declarations_at(added, i), undeclares, error);
    return status;
}

/* Makes declarations of the module. Checks that no ID has different shapes in it and in a pending
 * module, because both may be loaded together. */
static enum cairn_status scan(const struct pending_list *list, LLVMModuleRef module,
                              cairn_declarations *declarations, struct cairn_error *error)
{
    bool undeclares = list->id_conflicts == CAIRN_ID_CONFLICTS_UNDECLARED;
    enum cairn_status status = scan_module(module, undeclares, declarations, error);
    const struct pending *pending = undeclares ? NULL : list->first;
    for (; pending != NULL && status == CAIRN_OK; pending = pending->next)
        status = scan_check_conflicts(pending->declarations, declarations, &list->allocator, error);
    return status;
}

/* Gives new IDs to calls whose ID has two shapes in the module, or in it and the pending ones. */
static enum cairn_status renumber(struct pending_list *list, LLVMModuleRef module,
                                  struct cairn_error *error)
{
    cairn_declarations *known;
    enum cairn_status status = cairn_declarations_create(&list->allocator, &known, error);
    if (status != CAIRN_OK)
        return status;
    const struct pending *pending = list->first;
    for (; pending != NULL && status == CAIRN_OK; pending = pending->next)
        status = merge(known, pending->declarations, true, error);
    if (status == CAIRN_OK)
        status =
            scan_renumber_conflicts(module, list->id_conflicts != CAIRN_ID_CONFLICTS_RENUMBERED,
                                    known, &list->new_ids, error);
    cairn_declarations_destroy(known);
    return status;
}

enum cairn_status pending_scan(struct pending_list *list, LLVMModuleRef module,
                               cairn_declarations *declarations, struct cairn_error *error)
{
    static const char choice[] = ": number the calls, or choose id_conflicts in the options of the "
                                 "memory manager or the engine (cairn/llvm.h)";
    enum cairn_status status = scan(list, module, declarations, error);
    /* Whether a call of the module has an ID that was given to a call of another module. That
     * module may be loaded, so that its shapes are no longer known here. */
    bool has_given_id = false;
    for (size_t i = 0; status == CAIRN_OK && i < cairn_declarations_count(declarations); i++)
        has_given_id |= scan_is_new_id(&list->new_ids, cairn_declarations_at(declarations, i)->id);
    has_given_id &= list->id_conflicts == CAIRN_ID_CONFLICTS_RENUMBERED;
    if (status != CAIRN_ERROR_CONFLICT && !has_given_id)
        return status;
    cairn_declarations_truncate(declarations, 0);
    status = renumber(list, module, error);
    if (status == CAIRN_OK)
        status = scan(list, module, declarations, error);
    if (status == CAIRN_ERROR_CONFLICT && error != NULL) {
        size_t length = strlen(error->message);
        if (length > sizeof error->message - sizeof choice)
            length = sizeof error->message - sizeof choice;
        memcpy(error->message + length, choice, sizeof choice);
    }
    return status;
}

/* ---- The list of pending modules ---- */

void pending_init(struct pending_list *list, const struct cairn_allocator *allocator,
                  enum cairn_id_conflicts id_conflicts)
{
    *list = (struct pending_list){
        .allocator = memory_allocator(allocator),
        .id_conflicts = id_conflicts,
        .new_ids = {.first = FIRST_NEW_ID, .next = FIRST_NEW_ID},
    };
}

enum cairn_status pending_add(struct pending_list *list, LLVMModuleRef module, bool marks,
                              struct cairn_error *error)
{
    cairn_declarations *declarations;
    struct pending *pending = NULL;
    enum cairn_status status = cairn_declarations_create(&list->allocator, &declarations, error);
    if (status != CAIRN_OK)
        return status;
    status = pending_scan(list, module, declarations, error);
    if (status == CAIRN_OK && cairn_declarations_count(declarations) > 0) {
        pending = memory_new(&list->allocator, 1, sizeof *pending);
        if (pending == NULL)
            status = error_set(error, CAIRN_ERROR_MEMORY, 0,
                               "no memory to note a module's declarations");
    }
    if (pending == NULL) {
        cairn_declarations_destroy(declarations);
        return status;
    }
    *pending = (struct pending){list->first, declarations, ++list->last_number};
    list->first = pending;
    if (marks)
        add_marker(module, list, pending->number);
    return CAIRN_OK;
}

enum cairn_status pending_declare(const struct pending_list *list, const struct pending *first,
                                  cairn_loader *loader, struct cairn_error *error)
{
    bool undeclares = list->id_conflicts == CAIRN_ID_CONFLICTS_UNDECLARED;
    cairn_declarations *merged;
    if (first == NULL)
        return CAIRN_OK;
    if (first->next == NULL)
        return cairn_loader_declare(loader, first->declarations, error);
    enum cairn_status status = cairn_declarations_create(&list->allocator, &merged, error);
    if (status != CAIRN_OK)
        return status;
    for (; first != NULL && status == CAIRN_OK; first = first->next)
        status = merge(merged, first->declarations, undeclares, error);
    if (status == CAIRN_OK)
        status = cairn_loader_declare(loader, merged, error);
    cairn_declarations_destroy(merged);
    return status;
}

void pending_destroy(const struct pending_list *list, struct pending *first)
{
    while (first != NULL) {
        struct pending *pending = first;
        first = pending->next;
        cairn_declarations_destroy(pending->declarations);
        memory_free(&list->allocator, pending, sizeof *pending);
    }
}
