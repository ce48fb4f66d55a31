/*
 * llvm/captures.h - which of the sections that LLVM asks memory for are to be kept as PC sections,
 * and how they are read.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_CAPTURES_H
#define LLVM_CAPTURES_H

#include <cairn/llvm.h>

struct captures {
    struct cairn_allocator allocator;
    struct cairn_capture *entries; /* names are copies */
    size_t count;
    size_t capacity;
};

/* A section that is kept. */
struct capture {
    char *name; /* without options; for capture_release */
    bool has_schema;
    struct cairn_pcsection_schema schema; /* as this section is written */
};

/* Copies what `options` say of them. On failure there is something to release. ARGUMENT, MEMORY. */
enum cairn_status captures_create(const struct cairn_memory_manager_options *options,
                                  const struct cairn_allocator *allocator,
                                  struct captures *captures, struct cairn_error *error);
void captures_release(struct captures *captures);

/* `*is_captured` is false if no capture fits the name, and on failure. MEMORY. */
enum cairn_status captures_find(const struct captures *captures, const char *section_name,
                                struct capture *capture, bool *is_captured,
                                struct cairn_error *error);
void capture_release(const struct captures *captures, struct capture *capture);

#endif
