/*
 * Dual mapping: code runs in one view of shared pages and is written through another view.
 *
 * The views are made of a memory file or, if those are refused, of shared anonymous pages. The file
 * is closed at once: mremap with an old size of 0 duplicates parts of a view. Two views cover the
 * whole slab from the start: the written one, and the source, which is never accessible. The
 * written view is accessible only where the executed view has pages, so that unused pages take no
 * memory even if the process locks all its memory (mlockall).
 *
 * No part of any view is ever writable and executable, and no part of the executed view was ever
 * writable. Pages of code are mapped read-execute from the start: they never gain the right to be
 * executed by mprotect. So a dual mapping works where the system forbids that (PR_SET_MDWE,
 * systemd's MemoryDenyWriteExecute). For this the memory begins with a page that stays empty and is
 * mapped read-execute, before the source. Code is a duplicate of what follows that page, or of what
 * follows the nearest page of code, since a duplicate may be longer than the mapping of which it is
 * made. Read-only data is a duplicate of the source, made readable.
 *
 * What is written to the address of its use (MCJIT does that) is written to private pages, which
 * are mapped in place of that part of the executed view. When it is complete, it is copied through
 * the written view, and the executed view is mapped again.
 *
 * Source: Linux, mm/mremap.c, include/linux/mman.h (map_deny_write_exec).
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "base/error.h"
#include "base/file.h"
#include "base/populate.h"
#include "code/map.h"
#include "code/write_key.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* since Linux 6.3 */
#endif

enum { READ_WRITE = PROT_READ | PROT_WRITE };

/* ---- Views of the whole slab ---- */

/* Creates a memory file. Returns its descriptor, or -1. If vm.memfd_noexec is 1, a memory file is
 * executable only if MFD_EXEC is given; if it is 2, there are no executable ones. */
static int create_file(size_t size, struct cairn_error *error)
{
    int file = file_create_memory("cairn-code", MFD_EXEC);
    if (file < 0) {
        error_set_system(error, errno, "executable memory files are refused (memfd_create%s)",
                         errno == EACCES ? "; is vm.memfd_noexec 2?" : "");
        return -1;
    }
    int reason = file_resize(file, size);
    if (reason == 0)
        return file;
    close(file);
    if (reason == EFBIG)
        error_set_system(error, reason, "a memory file cannot have %zu bytes (raise RLIMIT_FSIZE)",
                         size);
    else
        map_cannot_reserve(size, "write code through", reason, error);
    return -1;
}

/* The memory of a slab is the empty page and the slab. */
static size_t memory_size(const struct code_slab *slab) { return slab->page_size + slab->size; }

/* Returns the source in the mapping of a slab's memory. */
static uint8_t *source_in(const struct code_slab *slab, uint8_t *memory)
{
    return memory + slab->page_size;
}

static void unmap_memory(const struct code_slab *slab, uint8_t *source)
{
    if (source != NULL)
        munmap(source - slab->page_size, memory_size(slab));
}

static uint8_t *map_pages(uint8_t *place, size_t size, int protection, int flags, int file)
{
    void *view = mmap(place, size, protection, MAP_SHARED | (place == NULL ? 0 : MAP_FIXED) | flags,
                      file, 0);
    return view == MAP_FAILED ? NULL : view;
}

/* Maps a memory file and closes it. Returns the source. */
static uint8_t *map_file(const struct code_slab *slab, int file, struct cairn_error *error)
{
    uint8_t *memory = map_pages(NULL, memory_size(slab), PROT_NONE, 0, file);
    if (memory == NULL)
        map_cannot_reserve(slab->size, "write code through", errno, error);
    else if (map_pages(memory, slab->page_size, slab->read_execute, 0, file) == NULL) {
        error_set_system(error, errno, "memory files may not be executed (SELinux?)");
        munmap(memory, memory_size(slab));
        memory = NULL;
    }
    close(file);
    return memory == NULL ? NULL : source_in(slab, memory);
}

static uint8_t *view_file(const struct code_slab *slab, struct cairn_error *error)
{
    int file = create_file(memory_size(slab), error);
    return file < 0 ? NULL : map_file(slab, file, error);
}

/* Maps shared pages with access to the first page only. Memory without access may not become
 * executable everywhere; memory that loses its access may always do so. But where all memory is
 * locked, the kernel allocates all pages to which there is access at first. */
static uint8_t *map_shared(const struct code_slab *slab)
{
    enum { FLAGS = MAP_ANONYMOUS | MAP_NORESERVE };
    size_t size = memory_size(slab);
    uint8_t *memory = map_pages(NULL, size, PROT_NONE, FLAGS, -1);
    if (memory == NULL || mprotect(memory, slab->page_size, slab->read_execute) == 0)
        return memory;
    munmap(memory, size);
    memory = map_pages(NULL, size, slab->read_execute, FLAGS, -1);
    if (memory == NULL || mprotect(source_in(slab, memory), slab->size, PROT_NONE) == 0)
        return memory;
    int reason = errno;
    munmap(memory, size);
    errno = reason;
    return NULL;
}

static uint8_t *view_shared(const struct code_slab *slab, struct cairn_error *error)
{
    uint8_t *memory = map_shared(slab);
    if (memory != NULL)
        return source_in(slab, memory);
    error_set_system(error, errno, "cannot map %zu bytes of shared memory to execute", slab->size);
    return NULL;
}

/* Makes a part of the written view writable. */
static enum cairn_status make_writable(struct code_slab *slab, size_t offset, size_t size,
                                       struct cairn_error *error)
{
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK ||
        write_key_make_writable(slab->write_key, slab->alias + offset, size) == 0)
        return status;
    return error_set_system(error, errno, "cannot make %zu bytes writable to write code through",
                            size);
}

/* ---- The executed view ---- */

/* Returns the address of the nearest page before a part that is mapped read-execute, and its
 * distance to the part in bytes. */
static uint8_t *executable_before(const struct code_slab *slab, size_t offset, size_t *distance)
{
    const uint8_t *states = (const uint8_t *)slab->states;
    size_t end = offset / slab->page_size;
    while (end > 0 && states[end - 1] != PAGE_CODE && states[end - 1] != PAGE_SPARE_CODE)
        end--;
    *distance = offset - end * slab->page_size + slab->page_size;
    uint8_t *view = end == 0 ? slab->source : slab->base + end * slab->page_size;
    return view - slab->page_size;
}

/* Both duplicates are at addresses that the kernel chooses. NULL: errno is set. What is between the
 * executable page and the part, if there is anything, is executable at such an address until it is
 * unmapped. The nearest page is taken so that this is little. */
static uint8_t *duplicate_code(const struct code_slab *slab, size_t offset, size_t size)
{
    size_t distance;
    uint8_t *executable = executable_before(slab, offset, &distance);
    uint8_t *view = mremap(executable, 0, distance + size, MREMAP_MAYMOVE);
    if (view == MAP_FAILED)
        return NULL;
    munmap(view, distance);
    return view + distance;
}

static uint8_t *duplicate_read_only(const struct code_slab *slab, size_t offset, size_t size)
{
    void *view = mremap(slab->source + offset, 0, size, MREMAP_MAYMOVE);
    if (view == MAP_FAILED)
        return NULL;
    if (mprotect(view, size, PROT_READ) == 0)
        return view;
    int reason = errno;
    munmap(view, size);
    errno = reason;
    return NULL;
}

/* Puts a duplicate of a part into its place. The duplicate is first made at another address. There
 * the kernel checks all limits, and nothing is lost if it refuses. It is at the same place in the
 * file as its neighbours, so that the kernel merges it with them. */
static enum cairn_status place_duplicate(struct code_slab *slab, bool is_code, size_t offset,
                                         size_t size, struct cairn_error *error)
{
    uint8_t *view =
        is_code ? duplicate_code(slab, offset, size) : duplicate_read_only(slab, offset, size);
    if (view == NULL)
        return error_set_system(error, errno,
                                "cannot map a second view of %zu bytes of code (RLIMIT_AS, "
                                "RLIMIT_MEMLOCK, or too many mappings?)",
                                size);
    if (mremap(view, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, slab->base + offset) != MAP_FAILED)
        return CAIRN_OK;
    error_set_system(error, errno, "cannot put a second view of %zu bytes of code in place", size);
    munmap(view, size);
    return CAIRN_ERROR_SYSTEM;
}

/* Makes the kernel tell profilers about pages of code, which no thread executes yet. It does so
 * when pages become executable and when executable pages are mapped, and not when they are moved.
 * So where they may not become executable again, empty ones are mapped in their place first. */
static enum cairn_status report(struct code_slab *slab, size_t offset, size_t size,
                                struct cairn_error *error)
{
    uint8_t *address = slab->base + offset;
    if (mprotect(address, size, PROT_READ) == 0 && mprotect(address, size, slab->read_execute) == 0)
        return CAIRN_OK;
    if (map_pages(address, size, slab->read_execute, MAP_ANONYMOUS, -1) == NULL)
        return error_set_system(error, errno, "cannot map %zu bytes of code for profilers", size);
    return place_duplicate(slab, true, offset, size, error);
}

/* Maps pages of the executed view. */
static enum cairn_status map_executed(struct code_slab *slab, bool is_code, size_t offset,
                                      size_t size, struct cairn_error *error)
{
    enum cairn_status status = place_duplicate(slab, is_code, offset, size, error);
    if (status != CAIRN_OK || !is_code || !slab->is_visible)
        return status;
    return report(slab, offset, size, error);
}

static enum cairn_status add(struct code_slab *slab, enum page_use use, size_t offset, size_t size,
                             struct cairn_error *error)
{
    enum cairn_status status = make_writable(slab, offset, size, error);
    return status == CAIRN_OK ? map_executed(slab, use == PAGES_FOR_CODE, offset, size, error)
                              : status;
}

/* ---- Pages that are being loaded: private pages in place of the executed view ---- */

/* The private pages, too, are first mapped at another address. */
static enum cairn_status open_pages(struct code_slab *slab, size_t offset, size_t size,
                                    struct cairn_error *error)
{
    void *pages = mmap(NULL, size, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED && mremap(pages, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
                                      slab->base + offset) != MAP_FAILED) {
        populate(slab->base + offset, size);
        return CAIRN_OK;
    }
    error_set_system(error, errno, "cannot map %zu bytes to load code", size);
    if (pages != MAP_FAILED)
        munmap(pages, size);
    return CAIRN_ERROR_SYSTEM;
}

static enum cairn_status abandon_pages(struct code_slab *slab, enum page_use use, size_t offset,
                                       size_t size, struct cairn_error *error)
{
    return map_executed(slab, use == PAGES_FOR_CODE, offset, size, error);
}

static enum cairn_status close_pages(struct code_slab *slab, enum page_use use, size_t offset,
                                     size_t size, struct cairn_error *error)
{
    int rights = write_key_open(slab->write_key);
    populate(slab->alias + offset, size);
    memcpy(slab->alias + offset, slab->base + offset, size);
    if (use == PAGES_FOR_CODE)
        arch_host_code_written(slab->alias + offset, slab->base + offset, size);
    write_key_close(slab->write_key, rights);
    return abandon_pages(slab, use, offset, size, error);
}

static void discard(struct code_slab *slab, size_t offset, size_t size)
{
    if (madvise(slab->alias + offset, size, MADV_REMOVE) == 0)
        return;
    int rights = write_key_open(slab->write_key);
    memset(slab->alias + offset, 0, size);
    write_key_close(slab->write_key, rights);
}

static enum cairn_status write_alias(struct code_slab *slab, size_t offset, const void *bytes,
                                     size_t size, struct cairn_error *error)
{
    (void)error;
    int rights = write_key_open(slab->write_key);
    map_store(slab->alias + offset, bytes, size);
    arch_host_code_written(slab->alias + offset, slab->base + offset, size);
    write_key_close(slab->write_key, rights);
    return CAIRN_OK;
}

/* ---- Runs of pages ---- */

static bool is_data(uint8_t state)
{
    return state == PAGE_FREE || state == PAGE_DATA || state == PAGE_SPARE_DATA ||
           state == PAGE_LOST;
}

/* Neighbouring pages of code or read-only data in the same state: in use, open or spare. */
struct run {
    size_t first_page;
    size_t page_count;
    enum page_state state;
};

/* Finds the next run after `*run`, which is zero at first; false after the last. The space's lock
 * is held, so the states do not change meanwhile. */
static bool next_run(const struct code_slab *slab, struct run *run)
{
    const uint8_t *states = (const uint8_t *)slab->states;
    size_t page = run->first_page + run->page_count;
    while (page < slab->page_count && is_data(states[page]))
        page++;
    if (page >= slab->page_count)
        return false;
    size_t first = page++;
    while (page < slab->page_count && states[page] == states[first])
        page++;
    *run = (struct run){first, page - first, (enum page_state)states[first]};
    return true;
}

/* ---- Replacing the memory of a slab ---- */

/* Makes both views of the whole slab views of the memory of `source`, without access. The executed
 * view does not change. Takes `source`. */
static enum cairn_status replace_views(struct code_slab *slab, uint8_t *source,
                                       struct cairn_error *error)
{
    if (source == NULL)
        return CAIRN_ERROR_SYSTEM;
    if (mprotect(source, slab->size, PROT_NONE) != 0 ||
        mremap(source, 0, slab->size, MREMAP_MAYMOVE | MREMAP_FIXED, slab->alias) == MAP_FAILED) {
        error_set_system(error, errno, "cannot put a new written view in place");
        unmap_memory(slab, source);
        return CAIRN_ERROR_SYSTEM;
    }
    unmap_memory(slab, slab->source);
    slab->source = source;
    return CAIRN_OK;
}

/* Gives a run of pages in the same state its place in both views. Pages that are being loaded are
 * private, and stay in place of the executed view. */
static enum cairn_status add_run(struct code_slab *slab, const struct run *run,
                                 struct cairn_error *error)
{
    size_t offset = run->first_page * slab->page_size;
    size_t size = run->page_count * slab->page_size;
    bool is_code = run->state == PAGE_CODE || run->state == PAGE_SPARE_CODE;
    if (run->state == PAGE_OPEN_CODE || run->state == PAGE_OPEN_READ_ONLY)
        return make_writable(slab, offset, size, error);
    return add(slab, is_code ? PAGES_FOR_CODE : PAGES_FOR_READ_ONLY, offset, size, error);
}

/* ---- Forked children ---- */

/* Whether the pages of a run are copied. Open ones are private, and spare ones hold nothing. */
static bool is_copied(const struct run *run)
{
    return run->state == PAGE_CODE || run->state == PAGE_READ_ONLY;
}

/* Writes the code to a memory file, which takes less time than page faults in a view of it. A word
 * that is patched meanwhile is written anew in the child. */
static bool write_code(const struct code_slab *slab, int file)
{
    for (struct run run = {0}; next_run(slab, &run);) {
        size_t offset = run.first_page * slab->page_size;
        size_t size = run.page_count * slab->page_size;
        if (is_copied(&run) &&
            file_write_at(file, slab->base + offset, size, slab->page_size + offset) != 0)
            return false;
    }
    return true;
}

/* Returns a view of memory with a copy of the code. It is a memory file, or shared memory if the
 * system now refuses that, and then `*is_empty` is true. */
static uint8_t *create_copy(const struct code_slab *slab, bool *is_empty, struct cairn_error *error)
{
    int file = create_file(memory_size(slab), NULL);
    bool is_written = file >= 0 && write_code(slab, file);
    uint8_t *source = is_written ? map_file(slab, file, NULL) : NULL;
    if (file >= 0 && !is_written)
        close(file);
    *is_empty = source == NULL;
    return source == NULL ? view_shared(slab, error) : source;
}

void map_drop_copy(struct code_slab *slab)
{
    unmap_memory(slab, slab->copy);
    slab->copy = NULL;
}

void map_close_source(struct code_slab *slab)
{
    unmap_memory(slab, slab->source);
    slab->source = NULL;
}

static enum cairn_status copy(struct code_slab *slab, struct cairn_error *error)
{
    bool is_empty;
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK)
        return status;
    slab->copy = create_copy(slab, &is_empty, error);
    if (slab->copy == NULL)
        return CAIRN_ERROR_SYSTEM;
    for (struct run run = {0}; next_run(slab, &run);) {
        size_t offset = run.first_page * slab->page_size;
        size_t size = run.page_count * slab->page_size;
        if (!is_copied(&run))
            continue;
        if (mprotect(slab->copy + offset, size, READ_WRITE) != 0) {
            error_set_system(error, errno, "cannot copy %zu bytes of code for a forked child",
                             size);
            map_drop_copy(slab);
            return CAIRN_ERROR_SYSTEM;
        }
        if (is_empty)
            map_copy_words(slab->copy + offset, slab->base + offset, size);
    }
    return CAIRN_OK;
}

/* If this function fails half way, some pages are views of the new memory and the others are
 * unchanged. All of them hold the right code. */
static enum cairn_status after_fork(struct code_slab *slab, struct cairn_error *error)
{
    uint8_t *source = slab->copy;
    for (struct run run = {0}; next_run(slab, &run);) {
        uint8_t *code = source + run.first_page * slab->page_size;
        if (run.state == PAGE_CODE)
            arch_host_code_written(code, code, run.page_count * slab->page_size);
    }
    slab->copy = NULL;
    slab->is_visible = false; /* the code is in use, and no profiler of the child has asked */
    enum cairn_status status = replace_views(slab, source, error);
    for (struct run run = {0}; status == CAIRN_OK && next_run(slab, &run);)
        status = add_run(slab, &run, error);
    return status;
}

/* ---- The two kinds ---- */

static enum cairn_status open_views(struct code_slab *slab, uint8_t *source,
                                    struct cairn_error *error)
{
    if (source == NULL)
        return CAIRN_ERROR_SYSTEM;
    slab->source = source;
    void *alias = mremap(source, 0, slab->size, MREMAP_MAYMOVE);
    if (alias == MAP_FAILED)
        return map_cannot_reserve(slab->size, "write code through", errno, error);
    slab->alias = alias;
    return CAIRN_OK;
}

static enum cairn_status open_file(struct code_slab *slab, struct cairn_error *error)
{
    return open_views(slab, view_file(slab, error), error);
}

static enum cairn_status open_shared(struct code_slab *slab, struct cairn_error *error)
{
    return open_views(slab, view_shared(slab, error), error);
}

/* The members that are the same for both kinds of memory. */
#define OF_BOTH_KINDS                                                                              \
    .mode = CAIRN_CODE_MODE_DUAL, .copy = copy, .after_fork = after_fork, .add = add,              \
    .open_pages = open_pages, .close_pages = close_pages, .abandon_pages = abandon_pages,          \
    .discard = discard, .write = write_alias

const struct code_map code_map_dual_file = {
    .name = "two views of a memory file", .open = open_file, OF_BOTH_KINDS};

const struct code_map code_map_dual_shared = {
    .name = "two views of shared memory", .open = open_shared, OF_BOTH_KINDS};

/* perf looks for names only in mappings that it takes for anonymous: those of memory files are not.
 */
enum cairn_status map_make_visible(struct code_slab *slab, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    struct run run = {0};
    if (slab->map->mode != CAIRN_CODE_MODE_DUAL || slab->is_visible)
        return CAIRN_OK;
    while (next_run(slab, &run))
        if (run.state != PAGE_SPARE_CODE && run.state != PAGE_SPARE_READ_ONLY &&
            run.state != PAGE_FREE && run.state != PAGE_LOST)
            return CAIRN_OK;
    if (slab->map == &code_map_dual_file)
        status = replace_views(slab, view_shared(slab, error), error);
    if (status != CAIRN_OK)
        return status;
    slab->map = &code_map_dual_shared;
    slab->is_visible = true;
    run = (struct run){0};
    while (status == CAIRN_OK && next_run(slab, &run))
        if (run.state == PAGE_SPARE_CODE || run.state == PAGE_SPARE_READ_ONLY)
            status = add_run(slab, &run, error);
    return status;
}
