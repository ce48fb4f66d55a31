/*
 * gdb's interface for compiled code: a list of ELF files in memory, and a function at which gdb has
 * a breakpoint.
 *
 * A module that was loaded from objects is described by these objects (object/kept_object.h).
 * Everything else (other modules, exits, entries, closures, veneers, the code of caches) gets a
 * small file with its names and unwind rules (debug/symfile.h).
 *
 * The list is global to the process, and changed with `list_lock` held, which is taken last. gdb
 * reads it while all threads are stopped, so each link is changed by one store.
 *
 * Source: gdb's manual, "JIT Compilation Interface".
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/debug.h>

#include "base/adapter.h"
#include "base/error.h"
#include "debug/names.h"
#include "debug/symfile.h"
#include "object/kept_object.h"
#include "runtime/module.h"

#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- What gdb reads: the names are those that it knows ---- */

enum jit_action { JIT_NOACTION = 0, JIT_REGISTER = 1, JIT_UNREGISTER = 2 };

struct jit_code_entry {
    struct jit_code_entry *next_entry;
    struct jit_code_entry *prev_entry;
    const uint8_t *symfile_addr;
    uint64_t symfile_size;
};

struct jit_descriptor {
    uint32_t version;
    uint32_t action_flag;
    struct jit_code_entry *relevant_entry;
    struct jit_code_entry *first_entry;
};

/* LLVM's library has symbols with these names, too, and gdb reads those of each library. Protected:
 * this library uses its own. Weak: a program that links both statically has one of them.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-*) */
extern struct jit_descriptor __jit_debug_descriptor __attribute__((visibility("protected"), weak));
struct jit_descriptor __jit_debug_descriptor = {.version = 1};

void __jit_debug_register_code(void) __attribute__((visibility("protected"), weak, noinline));
void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }
/* NOLINTEND(bugprone-reserved-identifier,cert-*) */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

/* Whether the list is that of the process that has forked this one. */
static bool list_is_inherited;

static void tell(struct jit_code_entry *entry, enum jit_action action)
{
    __jit_debug_descriptor.relevant_entry = entry;
    __jit_debug_descriptor.action_flag = action;
    __jit_debug_register_code();
    __jit_debug_descriptor.action_flag = JIT_NOACTION;
}

/* A thread of the parent may have held the lock. The list itself stays until this process changes
 * it, because gdb may follow the child into the code. */
static void inherit_list(void)
{
    pthread_mutex_init(&list_lock, NULL);
    list_is_inherited = true;
}

__attribute__((constructor)) static void register_handler(void)
{
    (void)pthread_atfork(NULL, NULL, inherit_list);
}

/* Removes what was inherited, from the start of the list: the fork may have come between two
 * changes of links, of which only `first_entry` and `next_entry` are right at any time. */
static void lock_list(void)
{
    pthread_mutex_lock(&list_lock);
    while (list_is_inherited && __jit_debug_descriptor.first_entry != NULL) {
        struct jit_code_entry *entry = __jit_debug_descriptor.first_entry;
        __jit_debug_descriptor.first_entry = entry->next_entry;
        tell(entry, JIT_UNREGISTER);
    }
    list_is_inherited = false;
}

static void add_entry(struct jit_code_entry *entry)
{
    lock_list();
    entry->next_entry = __jit_debug_descriptor.first_entry;
    if (entry->next_entry != NULL)
        entry->next_entry->prev_entry = entry;
    __jit_debug_descriptor.first_entry = entry;
    tell(entry, JIT_REGISTER);
    pthread_mutex_unlock(&list_lock);
}

static void remove_entry(struct jit_code_entry *entry)
{
    lock_list();
    if (entry->prev_entry != NULL)
        entry->prev_entry->next_entry = entry->next_entry;
    else
        __jit_debug_descriptor.first_entry = entry->next_entry;
    if (entry->next_entry != NULL)
        entry->next_entry->prev_entry = entry->prev_entry;
    tell(entry, JIT_UNREGISTER);
    pthread_mutex_unlock(&list_lock);
}

/* ---- Registrations ---- */

/* A file that gdb is told about. `made` is NULL if it belongs to a kept object. */
struct registration {
    struct jit_code_entry entry;
    struct registration *next; /* in its bucket */
    uintptr_t key;             /* address of code, or the module */
    uint8_t *made;
};

enum { BUCKET_COUNT = 4096, BUCKET_SHIFT = 4 };

struct cairn_debugger {
    struct code_watcher watcher; /* must be first */
    cairn_runtime *runtime;
    pid_t process;
    struct registration *buckets[BUCKET_COUNT]; /* by key */
};

static struct registration **bucket_of(struct cairn_debugger *debugger, uintptr_t key)
{
    uint64_t hash = (uint64_t)(key >> BUCKET_SHIFT) * UINT64_C(0x9E3779B97F4A7C15);
    return &debugger->buckets[hash >> 52];
}

/* Tells gdb about a file, which it does not see without memory. */
static void add_file(struct cairn_debugger *debugger, uintptr_t key, uint8_t *bytes, size_t size,
                     bool is_made)
{
    const struct cairn_allocator *allocator = &debugger->runtime->allocator;
    struct registration **bucket = bucket_of(debugger, key);
    struct registration *added = bytes == NULL ? NULL : memory_new(allocator, 1, sizeof *added);
    if (added == NULL) {
        if (is_made)
            memory_free(allocator, bytes, size);
        return;
    }
    *added = (struct registration){.entry = {.symfile_addr = bytes, .symfile_size = size},
                                   .next = *bucket,
                                   .key = key,
                                   .made = is_made ? bytes : NULL};
    *bucket = added;
    add_entry(&added->entry);
}

static void free_registration(const struct cairn_debugger *debugger,
                              struct registration *registration)
{
    const struct cairn_allocator *allocator = &debugger->runtime->allocator;
    if (debugger->process == getpid())
        remove_entry(&registration->entry);
    memory_free(allocator, registration->made, registration->entry.symfile_size);
    memory_free(allocator, registration, sizeof *registration);
}

static void remove_files(struct cairn_debugger *debugger, uintptr_t key)
{
    struct registration **link = bucket_of(debugger, key);
    while (*link != NULL) {
        struct registration *registration = *link;
        if (registration->key != key) {
            link = &registration->next;
            continue;
        }
        *link = registration->next;
        free_registration(debugger, registration);
    }
}

/* ---- Modules ---- */

/* What is known while a file is made for one range of a module. */
struct described_range {
    struct symfile file;
    const cairn_module *module;
};

static void describe_code(const struct named_code *code, void *user)
{
    struct described_range *range = user;
    if (code->address - range->file.address >= range->file.size)
        return;
    symfile_add_symbol(&range->file, code);
    symfile_add_rules(&range->file, code, range->module->unwind);
}

static void describe_module(struct cairn_debugger *debugger, const cairn_module *module)
{
    struct memory_range memory;
    for (uint32_t i = 0; module_memory_range(module, i, &memory); i++) {
        size_t size;
        struct described_range range = {.module = module};
        if (!memory.executable)
            continue;
        symfile_begin(&range.file, &debugger->runtime->allocator,
                      code_space_arch(debugger->runtime->space), memory.address, memory.size);
        named_code_visit(module, describe_code, &range);
        uint8_t *bytes = symfile_end(&range.file, &size);
        add_file(debugger, (uintptr_t)module, bytes, size, true);
    }
}

static void add_module(struct code_watcher *watcher, const void *user)
{
    struct cairn_debugger *debugger = (struct cairn_debugger *)watcher;
    const cairn_module *module = user;
    const struct kept_object *kept = module->extras == NULL ? NULL : module->extras->kept;
    if (kept == NULL)
        describe_module(debugger, module);
    for (; kept != NULL; kept = kept->next)
        add_file(debugger, (uintptr_t)module, kept->bytes, kept->size, false);
}

static void remove_module(struct code_watcher *watcher, const void *module)
{
    remove_files((struct cairn_debugger *)watcher, (uintptr_t)module);
}

/* ---- Code of Cairn's own ---- */

static void describe_note(struct symfile *file, const struct code_note *note,
                          const struct named_code *code)
{
    enum { EXIT_PUSH_BYTES = 6, EXIT_PUSHED = 8 };
    const cairn_site *site = note->site;
    if (site != NULL && !note->is_called && strncmp(note->label, "ic", 2) == 0)
        symfile_add_site_rules(file, code, site->address + site->byte_count);
    else if (strcmp(note->label, "exit") == 0 && !file->arch->has_link_register)
        symfile_add_call_rules(file, code, EXIT_PUSH_BYTES, EXIT_PUSHED);
    else
        symfile_add_call_rules(file, code, 0, 0);
}

static void add_code(struct code_watcher *watcher, const struct code_note *note)
{
    struct cairn_debugger *debugger = (struct cairn_debugger *)watcher;
    char name[CODE_NAME_BYTES];
    size_t size;
    struct symfile file;
    const struct named_code code = {note->address, note->size, name};
    code_note_name(note, name);
    symfile_begin(&file, &debugger->runtime->allocator, code_space_arch(debugger->runtime->space),
                  note->address, note->size);
    symfile_add_symbol(&file, &code);
    describe_note(&file, note, &code);
    uint8_t *bytes = symfile_end(&file, &size);
    remove_files(debugger, note->address);
    add_file(debugger, note->address, bytes, size, true);
}

static void remove_code(struct code_watcher *watcher, uint64_t address)
{
    remove_files((struct cairn_debugger *)watcher, address);
}

static void add_note(const struct code_note *note, void *user) { add_code(user, note); }

static void add_existing(struct code_watcher *watcher)
{
    const struct cairn_debugger *debugger = (const struct cairn_debugger *)watcher;
    const cairn_module *const lists[] = {debugger->runtime->modules, debugger->runtime->retired};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const cairn_module *module = lists[i]; module != NULL; module = module->next)
            if (module->state != MODULE_LOADED) {
                add_module(watcher, module);
                code_notes_visit(module, add_note, watcher);
            }
}

/* ---- Attaching and detaching ---- */

enum cairn_status cairn_debugger_attach(cairn_runtime *runtime, cairn_debugger **debugger,
                                        struct cairn_error *error)
{
    if (runtime == NULL || debugger == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_debugger_attach: `%s` is NULL",
                         runtime == NULL ? "runtime" : "debugger");
    struct cairn_debugger *attached = memory_new(&runtime->allocator, 1, sizeof *attached);
    if (attached == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a debugger's list of code");
    cairn_runtime_retain(runtime);
    attached->watcher = (struct code_watcher){.keeps_objects = true,
                                              .module_added = add_module,
                                              .module_removed = remove_module,
                                              .code_added = add_code,
                                              .code_removed = remove_code};
    attached->runtime = runtime;
    attached->process = getpid();
    bool is_taken = runtime_lock_sites(runtime);
    code_watchers_add(code_space_watchers(runtime->space), &attached->watcher, add_existing);
    runtime_unlock_sites(runtime, is_taken);
    *debugger = attached;
    return CAIRN_OK;
}

void cairn_debugger_destroy(cairn_debugger *debugger)
{
    if (debugger == NULL)
        return;
    cairn_runtime *runtime = debugger->runtime;
    code_watchers_remove(code_space_watchers(runtime->space), &debugger->watcher);
    lock_list(); /* a child must have removed its parent's entries before they are freed */
    pthread_mutex_unlock(&list_lock);
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        while (debugger->buckets[i] != NULL) {
            struct registration *registration = debugger->buckets[i];
            debugger->buckets[i] = registration->next;
            free_registration(debugger, registration);
        }
    memory_free(&runtime->allocator, debugger, sizeof *debugger);
    cairn_runtime_destroy(runtime);
}
