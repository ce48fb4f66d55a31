/* SPDX-License-Identifier: MIT */
#include "tests/libunwind_support.h"

#include "unwind/eh_frame.h"

#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tables that loaded modules register ---- */

enum { TABLES_MAX = 64 };

static struct {
    const void *registered[TABLES_MAX];
    size_t registered_count;
    unw_dyn_info_t tables[TABLES_MAX];
    size_t count;
} known;

extern void __register_frame(void *begin); /* NOLINT(bugprone-reserved-identifier,cert-*) */

__attribute__((visibility("default"))) void __register_frame(
    void *begin) /* NOLINT(bugprone-reserved-identifier,cert-*) */
{
    void (*next)(void *) = (void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "__register_frame");
    if (known.registered_count < TABLES_MAX)
        known.registered[known.registered_count++] = begin;
    next(begin);
}

/* ---- Tables of libunwind ---- */

/* An entry of the search table. Addresses are relative to the section. */
struct row {
    int32_t code;
    int32_t entry;
};

static bool is_at_end(const struct eh_frame *frame, size_t offset)
{
    uint32_t length;
    memcpy(&length, frame->section.bytes + offset, sizeof length);
    return length == 0;
}

static bool next_function(const struct eh_frame *frame, size_t *offset,
                          struct eh_frame_description *description)
{
    bool found = false;
    *description = (struct eh_frame_description){0};
    return !is_at_end(frame, *offset) &&
           eh_frame_next(frame, offset, description, &found, NULL) == CAIRN_OK && found;
}

static int compare(const void *left, const void *right)
{
    int32_t a = ((const struct row *)left)->code;
    int32_t b = ((const struct row *)right)->code;
    return (a > b) - (a < b);
}

static void add_row(const struct eh_frame *frame, const struct eh_frame_description *description,
                    struct row *row, unw_dyn_info_t *table)
{
    uint64_t begin = description->function.address;
    uint64_t end = begin + description->function.size;
    row->code = (int32_t)(begin - frame->address);
    row->entry = (int32_t)description->offset;
    table->start_ip = begin < table->start_ip ? begin : table->start_ip;
    table->end_ip = end > table->end_ip ? end : table->end_ip;
}

static bool make_table(const struct eh_frame *frame, unw_dyn_info_t *table)
{
    size_t count = 0;
    size_t offset = 0;
    struct eh_frame_description description;
    while (next_function(frame, &offset, &description))
        count++;
    struct row *rows = calloc(count + 1, sizeof *rows);
    if (rows == NULL || count == 0) {
        free(rows);
        return false;
    }
    *table = (unw_dyn_info_t){.start_ip = UINT64_MAX, .format = UNW_INFO_FORMAT_REMOTE_TABLE};
    offset = 0;
    for (size_t i = 0; i < count && next_function(frame, &offset, &description); i++)
        add_row(frame, &description, &rows[i], table);
    qsort(rows, count, sizeof *rows, compare);
    table->u.rti.segbase = frame->address;
    table->u.rti.table_len = count * sizeof *rows / sizeof(unw_word_t);
    table->u.rti.table_data = (uintptr_t)rows;
    return true;
}

bool libunwind_register(void)
{
    size_t before = known.count;
    for (size_t i = 0; i < known.registered_count; i++) {
        uintptr_t begin = (uintptr_t)known.registered[i];
        struct eh_frame frame = {{known.registered[i], SIZE_MAX / 2, CAIRN_BYTE_ORDER_NATIVE},
                                 begin};
        if (known.count == TABLES_MAX || !make_table(&frame, &known.tables[known.count]))
            continue;
        _U_dyn_register(&known.tables[known.count++]);
    }
    known.registered_count = 0;
    return known.count != before;
}

void libunwind_forget(void)
{
    known.registered_count = 0;
    while (known.count != 0) {
        unw_dyn_info_t *table = &known.tables[--known.count];
        _U_dyn_cancel(table);
        free((void *)(uintptr_t)table->u.rti.table_data);
    }
    unw_flush_cache(unw_local_addr_space, 0, 0);
}
