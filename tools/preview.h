/*
 * tools/preview.h - what Cairn would make of a site in code that is not loaded, of any
 * architecture.
 *
 * By the same tables, and in the same words, as the library does it when it loads code
 * (src/patch/arm.c). What hangs on where the code and its veneers come to lie is left open.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PREVIEW_H
#define TOOLS_PREVIEW_H

#include "llvm/disassemble.h"

#include <cairn/patch.h>

/* The code at a site. */
struct preview_code {
    enum cairn_architecture architecture;
    enum cairn_byte_order byte_order;
    const uint8_t *bytes;
    size_t size;  /* that can be read */
    size_t limit; /* that may be written: to the next record, or the function's end */
    uint64_t address;
    bool is_linked; /* so the address stays */
    struct disassembler *disassembler;
};

struct preview {
    /* Its bytes are the code's and `armed`, its reason is `error`'s sentence; valid until the next
     * preview. */
    struct cairn_site_description site;
    /* The armed bytes hold a no-op where a call will be. */
    bool lacks_call;
    struct cairn_error error;
    uint8_t *armed;
    size_t capacity;
};

/* A site of which kind and size are declared. False: no memory. */
bool preview_site(struct preview *preview, const struct preview_code *code,
                  enum cairn_record_kind kind, uint32_t byte_count);

/* Returns how many bytes, up to 128, from the first one on LLVM may have emitted for a patch point;
 * 0, with the reason in `error`, if they are none, or if the architecture's sites cannot be
 * managed. */
uint32_t preview_find_patchpoint(const struct preview_code *all, struct cairn_error *error);

/* Whether Cairn manages sites of such code; if not, `error` says so. */
bool preview_manages(enum cairn_architecture architecture, enum cairn_byte_order byte_order,
                     struct cairn_error *error);

void preview_release(struct preview *preview);

#endif
