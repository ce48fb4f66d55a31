/*
 * llvm/captures.h - finds which of the sections that LLVM asks memory for are to be kept as PC
 * sections, and their schemas.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_CAPTURES_H
#define LLVM_CAPTURES_H

#include <cairn/llvm.h>

struct captures {
    struct cairn_allocator allocator;
    struct cairn_capture *entries; /* with copies of the names */
    size_t count;
    size_t capacity;
};

/* Copies the sections to keep from `options`. The caller releases `captures` on failure, too.
 * ARGUMENT, MEMORY. */
enum cairn_status captures_create(const struct cairn_memory_manager_options *options,
                                  const struct cairn_allocator *allocator,
                                  struct captures *captures, struct cairn_error *error);
void captures_release(struct captures *captures);

/* Finds whether a section is to be kept. If so, sets `section` to its name without options, which
 * the caller frees with capture_release, and to its schema as the LLVM in use writes it; otherwise,
 * and on failure, `*is_captured` is false. Errors: MEMORY. */
enum cairn_status captures_find(const struct captures *captures, const char *section_name,
                                struct cairn_pc_table_section *section, bool *is_captured,
                                struct cairn_error *error);
void capture_release(const struct captures *captures, const struct cairn_pc_table_section *section);

#endif
