/*
 * tools/inspect/inspect.h - what `cairn inspect` reads of another process, and the model it makes
 * of it.
 *
 * The process runs meanwhile, and its memory is not trusted: every address is read by the system,
 * every list and count has a limit (enum inspect_limit), and what is allocated grows with what was
 * read.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_INSPECT_INSPECT_H
#define TOOLS_INSPECT_INSPECT_H

#include "base/inspect.h"
#include "tools/cli/list.h"
#include "tools/cli/output.h"

#include <cairn/ic.h>
#include <cairn/patch.h>
#include <sys/types.h>

enum inspect_limit {
    INSPECT_RUNTIMES_MAX = 64,
    INSPECT_MODULES_MAX = 1 << 20,
    INSPECT_SITES_MAX = 1 << 21,
    INSPECT_SPANS_MAX = 1 << 12, /* of a module */
    INSPECT_SLABS_MAX = 1 << 12,
    INSPECT_PAGES_MAX = 1 << 22, /* of all slabs */
    INSPECT_VENEERS_MAX = 64,    /* of a site */
    INSPECT_NAME_BYTES = 256,
    INSPECT_FAULT_BYTES = 256
};

/* ---- Memory of the process (tools/inspect/memory.c) ---- */

struct cached_page;

/* Memory of a process, in a cache of pages. After a failure, all reads return zeros. */
struct process_memory {
    pid_t process;
    struct cached_page *pages;
    int system_error;        /* errno of the first read that failed; 0 if none has */
    uint64_t failed_address; /* its address */
};

/* False after an error message: no memory. */
bool process_memory_open(struct process_memory *memory, pid_t process);
void process_memory_close(struct process_memory *memory);

/* Forgets the pages in the cache, and failures. */
void process_memory_renew(struct process_memory *memory);

/* Reads bytes, the first function from the cache. False, and zeros, after a failure. */
bool process_memory_read(struct process_memory *memory, uint64_t address, void *bytes, size_t size);
bool process_memory_read_now(struct process_memory *memory, uint64_t address, void *bytes,
                             size_t size);

/* ---- The model (tools/inspect/model.c) ---- */

struct inspected_slab {
    uint64_t base;
    uint64_t size;
    uint64_t used_bytes[INSPECT_USE_COUNT];   /* of code, read-only data and data */
    uint64_t mapped_bytes[INSPECT_USE_COUNT]; /* whole pages of them */
};

struct inspected_module {
    uint64_t number;
    uint64_t address; /* of its first code; 0 if it has none */
    uint64_t bytes[INSPECT_USE_COUNT];
    uint32_t state; /* enum inspect_module_state */
    uint32_t record_count;
    uint32_t function_count;
    uint32_t site_count;
    size_t first_site; /* index in the model's `sites` */
    char name[INSPECT_NAME_BYTES];
};

struct inspected_cache {
    uint32_t state; /* enum cairn_ic_state */
    uint32_t case_count;
    uint32_t case_limit;
    uint32_t code_bytes;
    bool is_inline;
    bool counts_hits;
    uint64_t hits;
    uint64_t misses;
};

struct inspected_site {
    uint64_t place; /* first, for sorting: address of its structure, by which caches find it */
    uint64_t id;
    uint64_t address;
    uint64_t target; /* of a call or jump; otherwise 0 */
    uint32_t byte_count;
    uint8_t kind;  /* enum cairn_record_kind */
    uint8_t state; /* enum cairn_site_state */
    bool live;
    bool uses_veneer;
    uint32_t cache; /* index in `caches`, plus 1; 0: none */
};

/* A runtime as it was read. */
struct inspected_runtime {
    struct inspect_descriptor descriptor;
    uint64_t address; /* of the descriptor */
    uint64_t table_bytes;
    uint32_t stub_count;
    uint64_t stub_bytes;
    struct list slabs;   /* struct inspected_slab */
    struct list modules; /* struct inspected_module */
    struct list sites;   /* struct inspected_site */
    struct list caches;  /* struct inspected_cache */
    bool has_changed;    /* lists have changed while they were read */
    /* What was found to be inconsistent, or which limit was reached; "" if nothing. What was read
     * before is in the model. */
    char fault[INSPECT_FAULT_BYTES];
};

enum inspect_result {
    INSPECT_DONE,
    INSPECT_ENDED,   /* the process has ended, or the runtime was destroyed */
    INSPECT_REFUSED, /* `fault` says why the descriptor cannot be used */
    INSPECT_NO_MEMORY
};

/* Reads the runtime whose descriptor is at `address`. If its lists change meanwhile, reads it again
 * a few times. The model must be freed in any case. */
enum inspect_result inspect_runtime(struct process_memory *memory, uint64_t address,
                                    struct inspected_runtime *runtime);
void inspect_free(struct inspected_runtime *runtime);

/* ---- Names of functions (tools/inspect/symbols.c) ---- */

struct process_symbols {
    pid_t process;
    struct list files; /* struct mapped_file, by address */
};

/* Reads which files the process maps. What cannot be read has no names. */
void process_symbols_read(struct process_symbols *symbols, pid_t process);
void process_symbols_release(struct process_symbols *symbols);

/* Returns the name of the function that begins at the address, or NULL. It is valid until the
 * symbols are released. */
const char *process_symbols_find(struct process_symbols *symbols, uint64_t address);

/* ---- Printing (tools/inspect/print.c) ---- */

struct json;

struct inspect_style {
    struct output *output;
    struct json *json; /* NULL for text */
    bool is_summary;   /* without single modules and sites */
    struct process_symbols *symbols;
};

/* Writes one runtime of a process: the one with this number, from 1. */
void inspect_print(const struct inspect_style *style, const struct inspected_runtime *runtime,
                   size_t number);

#endif
