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

/* A section that is kept. */
struct capture {
    char *name; /* without options; owned, see capture_release */
    bool has_schema;
    struct cairn_pcsection_schema schema; /* as the LLVM in use writes this section */
};

/* Copies the sections to keep from `options`. The caller releases `captures` on failure, too.
 * ARGUMENT, MEMORY. */
enum cairn_status captures_create(const struct cairn_memory_manager_options *options,
                                  const struct cairn_allocator *allocator,
                                  struct captures *captures, struct cairn_error *error);
void captures_release(struct captures *captures);

/* Finds the section's entry. `*is_captured` is false if there is no entry with that name, and on
 * failure. MEMORY. */
enum cairn_status captures_find(const struct captures *captures, const char *section_name,
                                struct capture *capture, bool *is_captured,
                                struct cairn_error *error);
void capture_release(const struct captures *captures, struct capture *capture);

#endif
