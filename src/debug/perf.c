/*
 * Names of code for Linux perf: a watcher of the runtime's code that writes a map, a dump, or both.
 *
 * A record is written at once, before its code can be executed. So the files are complete up to
 * the last function also if the process ends by a signal. perf finds the dump because the process
 * maps a page of it as executable.
 *
 * Invariants: `lines` holds the rows of the module that is being written, sorted by address. The
 * files, `index` and the buffers are used with the lock of the watchers held.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/debug.h>

#include "base/adapter.h"
#include "base/array.h"
#include "base/error.h"
#include "debug/jitdump.h"
#include "debug/names.h"
#include "debug/perf_file.h"
#include "object/kept_object.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

struct cairn_perf {
    struct code_watcher watcher; /* must be first */
    cairn_runtime *runtime;
    struct perf_file map;
    struct perf_file dump;
    void *mapping; /* of the dump's first page */
    pid_t process;
    uint64_t index;
    struct jitdump_record record;
    bool lacks_memory; /* for some of the records */
    struct line_row *lines;
    size_t line_count;
    size_t line_capacity;
};

/* ---- Writing ---- */

/* A name in a file of lines, or one that a reader may show on a terminal, has no control
 * characters. */
static void clean(char *name)
{
    for (unsigned char *at = (unsigned char *)name; *at != '\0'; at++)
        if (*at < ' ' || *at == 0x7F)
            *at = '?';
}

static void write_map(struct cairn_perf *perf, const struct named_code *code)
{
    enum { NUMBERS_BYTES = 40 };
    char line[CODE_NAME_BYTES + NUMBERS_BYTES];
    int length = snprintf(line, sizeof line, "%" PRIx64 " %" PRIx64 " %s\n", code->address,
                          code->size, code->name);
    perf_file_write(&perf->map, line, (size_t)length);
}

/* Returns the index of the first row at or after an address. */
static size_t find_row(const struct cairn_perf *perf, uint64_t address)
{
    size_t first = 0;
    size_t last = perf->line_count;
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        if (perf->lines[middle].address < address)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

static void write_lines(struct cairn_perf *perf, const struct named_code *code)
{
    size_t row = find_row(perf, code->address);
    jitdump_lines_begin(&perf->record, code->address);
    for (; row < perf->line_count && perf->lines[row].address - code->address < code->size; row++)
        jitdump_lines_add(&perf->record, &perf->lines[row]);
    if (jitdump_lines_end(&perf->record))
        perf_file_write(&perf->dump, perf->record.bytes, perf->record.size);
}

static void write_dump(struct cairn_perf *perf, const struct named_code *code)
{
    write_lines(perf, code);
    jitdump_load(&perf->record, code, perf->process, perf->index++);
    if (!perf->record.failed)
        perf_file_write(&perf->dump, perf->record.bytes, perf->record.size);
    perf->lacks_memory |= perf->record.failed;
}

static void write_code(const struct named_code *code, void *user)
{
    struct cairn_perf *perf = user;
    char name[CODE_NAME_BYTES];
    const struct named_code cleaned = {code->address, code->size, name};
    snprintf(name, sizeof name, "%s", code->name);
    clean(name);
    if (perf->map.descriptor >= 0)
        write_map(perf, &cleaned);
    if (perf->dump.descriptor >= 0)
        write_dump(perf, &cleaned);
}

/* ---- Lines ---- */

static int compare_rows(const void *one, const void *other)
{
    const struct line_row *a = one;
    const struct line_row *b = other;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return b->is_end - a->is_end; /* the end of a sequence is before the next one */
}

static void keep_row(const struct line_row *row, void *user)
{
    struct cairn_perf *perf = user;
    if (row->is_end || row->line == 0)
        return;
    struct line_row *lines = array_reserve(&perf->runtime->allocator, perf->lines, perf->line_count,
                                           1, &perf->line_capacity, sizeof *lines);
    if (lines == NULL) {
        perf->lacks_memory = true;
        return;
    }
    perf->lines = lines;
    lines[perf->line_count++] = *row;
}

static void read_lines(struct cairn_perf *perf, const cairn_module *module)
{
    perf->line_count = 0;
    const struct kept_object *kept = module->extras == NULL ? NULL : module->extras->kept;
    for (; kept != NULL && perf->dump.descriptor >= 0; kept = kept->next)
        line_table_visit(kept->bytes, kept->size, &perf->runtime->allocator, keep_row, perf);
    if (perf->line_count > 1)
        qsort(perf->lines, perf->line_count, sizeof *perf->lines, compare_rows);
}

/* ---- Watching ---- */

static void add_module(struct code_watcher *watcher, const void *module)
{
    struct cairn_perf *perf = (struct cairn_perf *)watcher;
    read_lines(perf, module);
    named_code_visit(module, write_code, perf);
    perf->line_count = 0;
}

static void add_code(struct code_watcher *watcher, const struct code_note *note)
{
    char name[CODE_NAME_BYTES];
    code_note_name(note, name);
    write_code(&(struct named_code){note->address, note->size, name}, watcher);
}

/* A sample of code that was removed still needs its name. */
static void remove_module(struct code_watcher *watcher, const void *module)
{
    (void)watcher;
    (void)module;
}

static void remove_code(struct code_watcher *watcher, uint64_t address)
{
    (void)watcher;
    (void)address;
}

static void write_note(const struct code_note *note, void *user) { add_code(user, note); }

/* Writes the names of the code that exists, with the locks of the runtime's sites held. */
static void write_existing(struct code_watcher *watcher)
{
    const struct cairn_perf *perf = (const struct cairn_perf *)watcher;
    for (const cairn_module *module = perf->runtime->modules; module != NULL; module = module->next)
        if (module->state == MODULE_PUBLISHED) {
            add_module(watcher, module);
            code_notes_visit(module, write_note, watcher);
        }
}

/* ---- Opening and closing ---- */

static enum cairn_status open_map(struct cairn_perf *perf, const char *folder,
                                  struct cairn_error *error)
{
    char path[PATH_BYTES];
    bool is_new;
    snprintf(path, sizeof path, "%s/perf-%ld.map", folder, (long)perf->process);
    return perf_file_open(path, &perf->map, &is_new, error);
}

static enum cairn_status open_dump(struct cairn_perf *perf, const char *folder,
                                   struct cairn_error *error)
{
    char path[PATH_BYTES];
    uint8_t header[JITDUMP_HEADER_BYTES];
    bool is_new;
    snprintf(path, sizeof path, "%s/jit-%ld.dump", folder, (long)perf->process);
    enum cairn_status status = perf_file_open(path, &perf->dump, &is_new, error);
    if (status != CAIRN_OK)
        return status;
    if (!is_new) {
        perf_file_close(&perf->dump);
        return error_set(error, CAIRN_ERROR_CONFLICT, 0,
                         "%.100s has code of this process already: choose another folder", path);
    }
    jitdump_header(header, perf->process);
    perf_file_write(&perf->dump, header, sizeof header);
    void *mapping = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE,
                         perf->dump.descriptor, 0);
    if (mapping == MAP_FAILED)
        return error_set_system(
            error, errno, "%.100s cannot be mapped as executable, by which perf finds it", path);
    perf->mapping = mapping;
    return CAIRN_OK;
}

static void release(struct cairn_perf *perf)
{
    cairn_runtime *runtime = perf->runtime;
    const struct cairn_allocator *allocator = &runtime->allocator;
    if (perf->mapping != NULL)
        munmap(perf->mapping, (size_t)sysconf(_SC_PAGESIZE));
    perf_file_close(&perf->map);
    perf_file_close(&perf->dump);
    jitdump_release(&perf->record);
    memory_free(allocator, perf->lines, perf->line_capacity * sizeof *perf->lines);
    memory_free(allocator, perf, sizeof *perf);
    cairn_runtime_destroy(runtime);
}

/* Begins to watch, after writing what exists. */
static void watch(struct cairn_perf *perf)
{
    bool is_taken = runtime_lock_sites(perf->runtime);
    code_watchers_add(code_space_watchers(perf->runtime->space), &perf->watcher, write_existing);
    runtime_unlock_sites(perf->runtime, is_taken);
}

enum cairn_status cairn_perf_open(cairn_runtime *runtime, const struct cairn_perf_options *options,
                                  cairn_perf **perf, struct cairn_error *error)
{
    static const struct cairn_perf_options defaults;
    if (options == NULL)
        options = &defaults;
    if (runtime == NULL || perf == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_perf_open: `%s` is NULL",
                         runtime == NULL ? "runtime" : "perf");
    if (options->format > CAIRN_PERF_BOTH)
        return error_set(error, CAIRN_ERROR_ARGUMENT, options->format,
                         "cairn_perf_open: `options->format` is %u, which is not a format",
                         (unsigned)options->format);
    const char *folder = options->directory == NULL ? "/tmp" : options->directory;
    if (strlen(folder) > PATH_BYTES / 2)
        return error_set(error, CAIRN_ERROR_ARGUMENT, strlen(folder),
                         "the name of the folder for perf has %zu bytes (at most %d expected)",
                         strlen(folder), PATH_BYTES / 2);
    struct cairn_perf *opened = memory_new(&runtime->allocator, 1, sizeof *opened);
    if (opened == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for perf's files");
    cairn_runtime_retain(runtime);
    *opened = (struct cairn_perf){.watcher = {.keeps_objects = options->format != CAIRN_PERF_MAP,
                                              .module_added = add_module,
                                              .module_removed = remove_module,
                                              .code_added = add_code,
                                              .code_removed = remove_code},
                                  .runtime = runtime,
                                  .map = {.descriptor = -1},
                                  .dump = {.descriptor = -1},
                                  .process = getpid(),
                                  .record = {.allocator = &runtime->allocator}};
    enum cairn_status status = CAIRN_OK;
    if (options->format != CAIRN_PERF_DUMP)
        status = open_map(opened, folder, error);
    if (status == CAIRN_OK && options->format != CAIRN_PERF_MAP)
        status = open_dump(opened, folder, error);
    if (status == CAIRN_OK && options->format != CAIRN_PERF_DUMP)
        status = code_space_make_visible(runtime->space, error);
    if (status != CAIRN_OK) {
        release(opened);
        return status;
    }
    watch(opened);
    *perf = opened;
    return CAIRN_OK;
}

enum cairn_status cairn_perf_destroy(cairn_perf *perf, struct cairn_error *error)
{
    uint8_t close_record[JITDUMP_CLOSE_BYTES];
    if (perf == NULL)
        return CAIRN_OK;
    code_watchers_remove(code_space_watchers(perf->runtime->space), &perf->watcher);
    jitdump_close(close_record);
    if (perf->process == getpid())
        perf_file_write(&perf->dump, close_record, sizeof close_record);
    int failure = perf->map.failure != 0 ? perf->map.failure : perf->dump.failure;
    bool lacks_memory = perf->lacks_memory;
    release(perf);
    if (failure != 0)
        return error_set_system(error, failure,
                                "the names of some code could not be written for perf%s",
                                failure == EFBIG ? " (raise RLIMIT_FSIZE)" : "");
    if (lacks_memory)
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory to write the names of some code for perf");
    return CAIRN_OK;
}
