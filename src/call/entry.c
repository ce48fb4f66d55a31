/*
 * Entries: stubs that jump to the installed version of a function.
 *
 * An entry is a veneer with a slot, as sites have them, in a stub of its own (code/space.h). The
 * slot holds the version's function pointer and is the only thing that changes: one aligned store
 * of data, which every core sees whole. On PPC64 ELFv1 the pointer is that of a descriptor, which
 * does not change, so entry and TOC pointer belong together. The slot is on a private page, of
 * which a forked child has its own.
 *
 * Invariants, under the runtime's lock:
 *  - The slot holds the code of `installed`.
 *  - If `installed` is in a module, the entry has a reference to it. A thread that replaces a
 *    version takes over the reference of the old one, so the module is in memory while it changes
 *    the old version's sites without the lock.
 *
 * The changes of the old version's sites are planned before the slot is stored, so that nothing can
 * fail after it, and made after it. Otherwise an exit that calls the entry again would reach the
 * old version, and leave it again, until the store.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/entry.h>

#include "arch/arch.h"
#include "base/error.h"
#include "base/type.h"
#include "call/signature.h"
#include "log/event.h"
#include "runtime/invalidation.h"
#include "runtime/module.h"
#include "site/patch.h"

#include <stdio.h>
#include <string.h>

enum { DESCRIPTOR_WORDS = 3, TYPE_BYTES = 80, NAME_BYTES = 48 };

/* A version that is installed, or is about to be. */
struct installed {
    struct cairn_entry_version version;
    cairn_module *module; /* NULL: the code is not in a module */
    uint64_t number;      /* of the installation, counted by the entry */
};

struct cairn_entry {
    struct code_slotted_stub slotted; /* must be first */
    cairn_runtime *runtime;
    const cairn_signature *signature;
    struct installed installed;
    uint64_t last_number;
    char name[];
};

/* ---- Types ---- */

static bool is_equal(const cairn_signature *left, const cairn_signature *right)
{
    if (right == NULL)
        return false;
    if (left->argument_count != right->argument_count ||
        left->results.count != right->results.count)
        return false;
    for (uint32_t i = 0; i < left->argument_count; i++)
        if (!type_equal(left->arguments[i].type, right->arguments[i].type))
            return false;
    for (uint32_t i = 0; i < left->results.count; i++)
        if (!type_equal(left->results.types[i], right->results.types[i]))
            return false;
    return true;
}

/* Appends a type to the text. What does not fit is left out. */
static void append_type(char *text, struct cairn_type type, const char *before)
{
    size_t length = strlen(text);
    length += (size_t)snprintf(text + length, TYPE_BYTES - length, "%s", before);
    if (length < TYPE_BYTES)
        cairn_type_format(type, text + length, TYPE_BYTES - length);
}

static void append(char *text, const char *added)
{
    size_t length = strlen(text);
    snprintf(text + length, TYPE_BYTES - length, "%s", added);
}

/* Returns the number of arguments before the first one in which the signatures differ. */
static uint32_t count_alike(const cairn_signature *left, const cairn_signature *right)
{
    uint32_t count = 0;
    if (left == NULL || right == NULL)
        return 0;
    while (count < left->argument_count && count < right->argument_count &&
           type_equal(left->arguments[count].type, right->arguments[count].type))
        count++;
    return count;
}

/* Formats a signature as LLVM does: "i64 (ptr, i32)". If arguments are left out at the beginning:
 * "i64 (18 alike, i32)". */
static void format(const cairn_signature *signature, uint32_t left_out, char *text)
{
    char alike[24] = "";
    text[0] = '\0';
    if (signature == NULL) {
        append(text, "unknown");
        return;
    }
    const struct cairn_results *results = &signature->results;
    append(text, results->count == 0 ? "void" : results->count > 1 ? "{" : "");
    for (uint32_t i = 0; i < results->count; i++)
        append_type(text, results->types[i], i == 0 ? "" : ", ");
    append(text, results->count > 1 ? "} (" : " (");
    if (left_out > 0)
        snprintf(alike, sizeof alike, "%u alike", left_out);
    append(text, alike);
    for (uint32_t i = left_out; i < signature->argument_count; i++)
        append_type(text, signature->arguments[i].type, i == 0 ? "" : ", ");
    append(text, ")");
}

/* ---- Checking versions ---- */

/* Returns the address of the first instruction of a function. */
static uint64_t code_address(const void *function)
{
    if (arch_host()->has_descriptors)
        return *(const uint64_t *)function;
    return (uintptr_t)function;
}

/* Writes the name of the version's function, or its address if it has no known name. */
static const char *name_of(const struct installed *installed, char *name)
{
    struct cairn_function function = {0};
    uint64_t address = code_address(installed->version.code);
    if (installed->module != NULL)
        (void)module_search_function(installed->module, address, &function);
    if (function.name != NULL)
        snprintf(name, NAME_BYTES, "'%.40s'", function.name);
    else
        snprintf(name, NAME_BYTES, "0x%llx", (unsigned long long)address);
    return name;
}

/* Types that are too long are named from their first difference on. */
static enum cairn_status say_types(const cairn_entry *entry, const struct installed *new,
                                   struct cairn_error *error)
{
    char name[NAME_BYTES], expected[TYPE_BYTES], given[TYPE_BYTES];
    const cairn_signature *signature = new->version.signature;
    format(entry->signature, 0, expected);
    format(signature, 0, given);
    if (strlen(expected) == TYPE_BYTES - 1 || strlen(given) == TYPE_BYTES - 1) {
        uint32_t alike = count_alike(entry->signature, signature);
        format(entry->signature, alike, expected);
        format(signature, alike, given);
    }
    return error_set(error, CAIRN_ERROR_ARGUMENT, (uintptr_t) new->version.code,
                     "entry '%.40s' has the type %s, and the version %s the type %s", entry->name,
                     expected, name_of(new, name), given);
}

static enum cairn_status check(const cairn_entry *entry, const struct installed *new,
                               struct cairn_error *error)
{
    char name[NAME_BYTES];
    if (new->version.code == cairn_entry_target(entry))
        return error_set(error, CAIRN_ERROR_ARGUMENT, (uintptr_t) new->version.code,
                         "entry '%.40s' cannot have itself as a version", entry->name);
    if (entry->signature != NULL && !is_equal(entry->signature, new->version.signature))
        return say_types(entry, new, error);
    if (new->version.leave != NULL &&new->module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, (uintptr_t) new->version.code,
                         "the version %s of entry '%.40s' has no sites at which frames can leave: "
                         "it is not in a module",
                         name_of(new, name), entry->name);
    return CAIRN_OK;
}

/* ---- Installing ---- */

/* Whether the sites of the old version call its exit when the new one is installed. */
static bool leaves(const struct installed *old, const struct installed *new)
{
    return old->version.leave != NULL && old->version.code != new->version.code;
}

/* Installs a version that was checked. Called with the runtime's lock held. */
static void store(cairn_entry *entry, struct installed *new)
{
    new->number = ++entry->last_number;
    entry->installed = *new;
    atomic_store_explicit(entry->slotted.slot, (uintptr_t) new->version.code, memory_order_seq_cst);
    event_version(code_space_sink(entry->runtime->space), entry->name, new->number,
                  code_address(new->version.code), new->module == NULL ? 0 : new->module->number);
}

/* Checks the version and takes a reference to its module. Installs it, which sets its number,
 * unless the sites of the old version must change. */
static enum cairn_status begin(cairn_entry *entry, struct installed *new, struct installed *old,
                               struct cairn_error *error)
{
    runtime_lock(entry->runtime);
    new->module = runtime_find_frame_module(entry->runtime, code_address(new->version.code));
    enum cairn_status status = check(entry, new, error);
    if (status == CAIRN_OK && new->module != NULL)
        status = module_use(new->module, error);
    if (status != CAIRN_OK)
        new->module = NULL;
    *old = entry->installed;
    if (status == CAIRN_OK && !leaves(old, new))
        store(entry, new);
    runtime_unlock(entry->runtime);
    return status;
}

/* Whether a version has no sites that could change, which is not an error. */
static bool has_no_sites(enum cairn_status status)
{
    return status == CAIRN_ERROR_NOT_FOUND || status == CAIRN_ERROR_CONFLICT;
}

/* Installs the version and makes the chosen sites of the old one call its exit; `leaving` is NULL
 * if no site was chosen. Everything that can fail comes before the store of the slot. If another
 * version was installed meanwhile, only sets `*old` to that. */
static enum cairn_status exchange(cairn_entry *entry, struct installed *new, struct installed *old,
                                  cairn_invalidation *leaving,
                                  const struct cairn_invalidation_options *options,
                                  enum cairn_strength strength, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    bool is_taken = runtime_lock_sites(entry->runtime);
    if (entry->installed.number != old->number) {
        *old = entry->installed;
        runtime_unlock_sites(entry->runtime, is_taken);
        return CAIRN_OK;
    }
    if (leaving != NULL)
        status = invalidation_plan(leaving, options, strength, error);
    bool has_sites = leaving != NULL && status == CAIRN_OK;
    if (status == CAIRN_OK || has_no_sites(status)) {
        store(entry, new);
        status = has_sites ? invalidation_commit(leaving, options, strength, error) : CAIRN_OK;
    }
    runtime_unlock_sites(entry->runtime, is_taken);
    return status;
}

/* Does the same, after choosing the sites, for which no lock may be held. */
static enum cairn_status install_and_leave(cairn_entry *entry, struct installed *new,
                                           struct installed *old, enum cairn_strength strength,
                                           struct cairn_error *error)
{
    cairn_invalidation *leaving = NULL;
    const struct cairn_invalidation_options options = {
        .function = code_address(old->version.code),
        .target = old->version.leave,
        .accepts = old->version.accepts,
        .user = old->version.user,
        .reason = "version replaced",
    };
    enum cairn_status status = CAIRN_OK;
    if (leaves(old, new))
        status = invalidation_choose(entry->runtime, &options, &leaving, error);
    if (status == CAIRN_OK || has_no_sites(status))
        status = exchange(entry, new, old, leaving, &options, strength, error);
    cairn_invalidation_destroy(leaving);
    return status;
}

/* ---- The entry ---- */

static size_t code_bytes(const struct cairn_arch *arch)
{
    return arch->veneer_bytes + (arch->has_descriptors ? DESCRIPTOR_WORDS * sizeof(uint64_t) : 0);
}

static enum cairn_status encode(struct code_stub *stub, void *user, uint8_t *code, size_t *size,
                                struct cairn_error *error)
{
    const struct cairn_arch *arch = user;
    /* The veneer loads the callee's TOC pointer, so the descriptor of the entry has none. Callers
     * have loaded that, so the veneer must not save it in the place of their own. */
    const uint64_t descriptor[DESCRIPTOR_WORDS] = {stub->address + arch->veneer_save_bytes};
    if (!arch->encode_veneer(arch, stub->address,
                             (uintptr_t)((const struct code_slotted_stub *)stub)->slot, code))
        return error_set(error, CAIRN_ERROR_RANGE, stub->address,
                         "an entry at 0x%llx does not reach its slot",
                         (unsigned long long)stub->address);
    *size = code_bytes(arch);
    memcpy(code + arch->veneer_bytes, descriptor, *size - arch->veneer_bytes);
    return CAIRN_OK;
}

enum cairn_status cairn_entry_create(cairn_runtime *runtime, const char *name,
                                     const cairn_signature *signature, const void *code,
                                     cairn_entry **entry, struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    if (runtime == NULL || code == NULL || entry == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_entry_create: `%s` is NULL",
                         runtime == NULL ? "runtime"
                         : code == NULL  ? "code"
                                         : "entry");
    if (arch == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "cairn_entry_create: unsupported host architecture %s",
                         cairn_architecture_name(cairn_architecture_host()));
    if (name == NULL)
        name = "";
    size_t length = strnlen(name, CAIRN_ERROR_MESSAGE_SIZE);
    char label[sizeof "entry:" + CAIRN_ERROR_MESSAGE_SIZE];
    snprintf(label, sizeof label, "entry:%.*s", (int)length, name);
    const struct code_stub_request request = {.encode = encode,
                                              .user = (void *)arch,
                                              .code_bytes = code_bytes(arch),
                                              .has_slot = true,
                                              .label = label,
                                              .description_bytes = sizeof **entry + length + 1};
    struct code_stub *stub;
    enum cairn_status status = code_space_add_stub(runtime->space, &request, &stub, error);
    if (status != CAIRN_OK)
        return status;
    cairn_entry *created = (cairn_entry *)(void *)stub;
    created->runtime = runtime;
    created->signature = signature;
    memcpy(created->name, name, length);
    struct installed none;
    struct installed first = {.version = {.code = code, .signature = signature}};
    status = begin(created, &first, &none, error);
    if (status == CAIRN_OK)
        *entry = created;
    else
        code_stub_free(stub);
    return status;
}

const void *cairn_entry_target(const cairn_entry *entry)
{
    const struct cairn_arch *arch = arch_host();
    return (const void *)(uintptr_t)(entry->slotted.stub.address +
                                     (arch->has_descriptors ? arch->veneer_bytes : 0));
}

enum cairn_status cairn_entry_install(cairn_entry *entry, const struct cairn_entry_version *version,
                                      enum cairn_strength strength, struct cairn_error *error)
{
    if (entry == NULL || version == NULL || version->code == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_entry_install: `%s` is NULL",
                         entry == NULL     ? "entry"
                         : version == NULL ? "version"
                                           : "version->code");
    struct installed new = {.version = *version}, old;
    enum cairn_status status = begin(entry, &new, &old, error);
    while (status == CAIRN_OK && new.number == 0)
        status = install_and_leave(entry, &new, &old, strength, error);
    if (new.number == 0) {
        module_unuse(new.module, false);
        return status;
    }
    /* A version that is installed again was not replaced. */
    bool is_again = old.version.code == version->code;
    module_unuse(old.module, !is_again && old.version.retires);
    return is_again ? patch_barrier(entry->runtime->space, strength, error) : status;
}

void cairn_entry_destroy(cairn_entry *entry)
{
    if (entry == NULL)
        return;
    module_unuse(entry->installed.module, entry->installed.version.retires);
    code_stub_retire(&entry->slotted.stub);
}

void cairn_function_retire(cairn_runtime *runtime, const void *code)
{
    if (runtime == NULL || code == NULL)
        return;
    runtime_lock(runtime);
    cairn_module *module = runtime_find_frame_module(runtime, code_address(code));
    if (module != NULL)
        module_retire_use(module);
    runtime_unlock(runtime);
}
