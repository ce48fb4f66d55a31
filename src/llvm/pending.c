/*
 * Declarations of modules that are not loaded yet.
 *
 * The marker is a variable with external linkage. So passes that remove unused globals keep it, and
 * it is preserved when its module is linked into another module or cloned.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/pending.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* The section's name in ELF and COFF, and in Mach-O. In Mach-O, memory managers get only the name
 * after the comma. */
static const char marker_section[] = ".cairn.declared";
static const char mach_o_segment[] = "__DATA,";
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
    bool is_loaded;
};

/* ---- Markers ---- */

/* Whether the triple is for Mach-O. As in LLVM, the format at the end of the triple decides,
 * otherwise the operating system. */
static bool is_mach_o(const char *triple)
{
    static const char *const systems[] = {"darwin", "macos", "ios", "tvos", "watchos"};
    const char *environment = strrchr(triple, '-');
    if (environment != NULL && strstr(environment, "macho") != NULL)
        return true;
    if (environment != NULL && strstr(environment, "elf") != NULL)
        return false;
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (strstr(triple, systems[i]) != NULL)
            return true;
    return false;
}

static void set_section(LLVMModuleRef module, LLVMValueRef variable)
{
    char name[sizeof mach_o_segment + sizeof mach_o_section];
    snprintf(name, sizeof name, "%s%s", mach_o_segment, mach_o_section);
    LLVMSetSection(variable, is_mach_o(LLVMGetTarget(module)) ? name : marker_section);
}

static void add_marker(LLVMModuleRef module, struct marker marker)
{
    char name[64];
    snprintf(name, sizeof name, "cairn.declared.%llx.%llu", (unsigned long long)marker.list,
             (unsigned long long)marker.number);
    LLVMTypeRef word = LLVMInt64TypeInContext(LLVMGetModuleContext(module));
    LLVMValueRef words[] = {LLVMConstInt(word, marker.list, 0),
                            LLVMConstInt(word, marker.number, 0)};
    LLVMValueRef variable = LLVMAddGlobal(module, LLVMArrayType(word, 2), name);
    LLVMSetInitializer(variable, LLVMConstArray(word, words, 2));
    LLVMSetGlobalConstant(variable, 1);
    set_section(module, variable);
    LLVMSetAlignment(variable, sizeof(uint64_t));
}

bool pending_is_marker(const char *section_name)
{
    return strcmp(section_name, marker_section) == 0 || strcmp(section_name, mach_o_section) == 0;
}

static struct marker marker_of(const struct pending_list *list, uint64_t number)
{
    return (struct marker){(uintptr_t)list, number};
}

void pending_note_loaded(struct pending_list *list, const void *section, size_t size)
{
    struct marker marker;
    for (size_t at = 0; at + sizeof marker <= size; at += sizeof marker) {
        memcpy(&marker, (const uint8_t *)section + at, sizeof marker);
        for (struct pending *pending = list->first; pending != NULL; pending = pending->next)
            if (marker.list == (uintptr_t)list && marker.number == pending->number)
                pending->is_loaded = true;
    }
}

/* ---- Conflicts between modules ---- */

/* Adds all declarations of `added` to `set`. An ID with two shapes becomes undeclared if
 * `undeclares` is set; otherwise it is a CONFLICT. */
static enum cairn_status merge(cairn_declarations *set, const cairn_declarations *added,
                               bool undeclares, struct cairn_error *error)
{
    size_t count = cairn_declarations_count(added);
    for (size_t i = 0; i < count; i++) {
        const struct cairn_declaration *declaration = cairn_declarations_at(added, i);
        enum cairn_status status = cairn_declarations_add(set, declaration, error);
        if (status == CAIRN_ERROR_CONFLICT && undeclares)
            status = cairn_declarations_add(
                set,
                &(struct cairn_declaration){.id = declaration->id, .kind = CAIRN_RECORD_UNDECLARED},
                error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* Adds both declarations to a new set, which detects a conflict and sets the error. */
static enum cairn_status check_pair(const struct cairn_allocator *allocator,
                                    const struct cairn_declaration *known,
                                    const struct cairn_declaration *added,
                                    struct cairn_error *error)
{
    cairn_declarations *both;
    enum cairn_status status = cairn_declarations_create(allocator, &both, error);
    if (status != CAIRN_OK)
        return status;
    status = cairn_declarations_add(both, known, error);
    if (status == CAIRN_OK)
        status = cairn_declarations_add(both, added, error);
    cairn_declarations_destroy(both);
    return status;
}

/* Checks that no ID has different shapes in the new module and in a pending one, because both may
 * be loaded together. */
static enum cairn_status check_against_pending(const struct pending_list *list,
                                               const cairn_declarations *added,
                                               struct cairn_error *error)
{
    for (const struct pending *pending = list->first; pending != NULL; pending = pending->next) {
        for (size_t i = 0; i < cairn_declarations_count(added); i++) {
            const struct cairn_declaration *declaration = cairn_declarations_at(added, i);
            const struct cairn_declaration *known =
                cairn_declarations_find(pending->declarations, declaration->id);
            if (known == NULL)
                continue;
            enum cairn_status status = check_pair(&list->allocator, known, declaration, error);
            if (status != CAIRN_OK)
                return status;
        }
    }
    return CAIRN_OK;
}

/* ---- Scanning ---- */

static enum cairn_status scan(const struct pending_list *list, LLVMModuleRef module,
                              cairn_declarations *declarations, struct cairn_error *error)
{
    if (list->id_conflicts == CAIRN_ID_CONFLICTS_UNDECLARED)
        return scan_leaving_conflicts_undeclared(module, declarations, error);
    enum cairn_status status = cairn_scan_module(module, declarations, error);
    return status == CAIRN_OK ? check_against_pending(list, declarations, error) : status;
}

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
        status = scan_renumber_conflicts(module,
                                         list->id_conflicts == CAIRN_ID_CONFLICTS_RENUMBERED
                                             ? SCAN_RENUMBERED_ALL
                                             : SCAN_RENUMBERED_DEFAULTS,
                                         known, &list->new_ids, error);
    cairn_declarations_destroy(known);
    return status;
}

/* Whether a call of the module has an ID that was given to a call of another module. That module
 * may be loaded, so that its shapes are no longer known here. */
static bool has_given_id(const struct pending_list *list, const cairn_declarations *declarations)
{
    if (list->id_conflicts != CAIRN_ID_CONFLICTS_RENUMBERED)
        return false;
    for (size_t i = 0; i < cairn_declarations_count(declarations); i++)
        if (scan_is_new_id(&list->new_ids, cairn_declarations_at(declarations, i)->id))
            return true;
    return false;
}

static void name_the_choice(struct cairn_error *error)
{
    static const char choice[] = ": number the calls, or choose id_conflicts in the options of the "
                                 "memory manager or the engine (cairn/llvm.h)";
    if (error == NULL)
        return;
    size_t length = strlen(error->message);
    if (length > sizeof error->message - sizeof choice)
        length = sizeof error->message - sizeof choice;
    memcpy(error->message + length, choice, sizeof choice);
}

enum cairn_status pending_scan(struct pending_list *list, LLVMModuleRef module,
                               cairn_declarations *declarations, struct cairn_error *error)
{
    enum cairn_status status = scan(list, module, declarations, error);
    if (status != CAIRN_ERROR_CONFLICT && !(status == CAIRN_OK && has_given_id(list, declarations)))
        return status;
    cairn_declarations_truncate(declarations, 0);
    status = renumber(list, module, error);
    if (status == CAIRN_OK)
        status = scan(list, module, declarations, error);
    if (status == CAIRN_ERROR_CONFLICT)
        name_the_choice(error);
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

/* Appends a module's declarations. Takes ownership of `declarations` on success only. */
static enum cairn_status append(struct pending_list *list, cairn_declarations *declarations,
                                LLVMModuleRef module, struct cairn_error *error)
{
    struct pending *pending = memory_new(&list->allocator, 1, sizeof *pending);
    if (pending == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a module's declarations");
    pending->declarations = declarations;
    pending->number = ++list->last_number;
    pending->next = list->first;
    list->first = pending;
    add_marker(module, marker_of(list, pending->number));
    return CAIRN_OK;
}

enum cairn_status pending_add(struct pending_list *list, LLVMModuleRef module,
                              struct cairn_error *error)
{
    cairn_declarations *declarations;
    enum cairn_status status = cairn_declarations_create(&list->allocator, &declarations, error);
    if (status != CAIRN_OK)
        return status;
    status = pending_scan(list, module, declarations, error);
    bool has_any = status == CAIRN_OK && cairn_declarations_count(declarations) > 0;
    if (has_any)
        status = append(list, declarations, module, error);
    if (!has_any || status != CAIRN_OK)
        cairn_declarations_destroy(declarations);
    return status;
}

enum cairn_status pending_declare_loaded(const struct pending_list *list, cairn_loader *loader,
                                         struct cairn_error *error)
{
    bool undeclares = list->id_conflicts == CAIRN_ID_CONFLICTS_UNDECLARED;
    cairn_declarations *loaded;
    enum cairn_status status = cairn_declarations_create(&list->allocator, &loaded, error);
    if (status != CAIRN_OK)
        return status;
    const struct pending *pending = list->first;
    for (; pending != NULL && status == CAIRN_OK; pending = pending->next)
        if (pending->is_loaded)
            status = merge(loaded, pending->declarations, undeclares, error);
    if (status == CAIRN_OK)
        status = cairn_loader_declare(loader, loaded, error);
    cairn_declarations_destroy(loaded);
    return status;
}

static void destroy(const struct pending_list *list, struct pending *pending)
{
    cairn_declarations_destroy(pending->declarations);
    memory_free(&list->allocator, pending, sizeof *pending);
}

void pending_drop_loaded(struct pending_list *list)
{
    struct pending **link = &list->first;
    while (*link != NULL) {
        struct pending *pending = *link;
        if (!pending->is_loaded) {
            link = &pending->next;
            continue;
        }
        *link = pending->next;
        destroy(list, pending);
    }
}

void pending_release(struct pending_list *list)
{
    while (list->first != NULL) {
        struct pending *next = list->first->next;
        destroy(list, list->first);
        list->first = next;
    }
}
