/*
 * tools/site/preview.h - previewing the code that Cairn would make of a site, in code of any
 * architecture that is not loaded.
 *
 * The preview uses the tables and the messages of the library (src/site/arm.c). It leaves open
 * what depends on the addresses of the code and of its veneers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SITE_PREVIEW_H
#define TOOLS_SITE_PREVIEW_H

#include "llvm/disassemble.h"

#include <cairn/patch.h>

/* The code at a site. */
struct preview_code {
    enum cairn_architecture architecture;
    enum cairn_byte_order byte_order;
    const uint8_t *bytes;
    size_t size;  /* bytes that can be read */
    size_t limit; /* bytes that may be written, up to the next record or the end of the function */
    uint64_t address;
    bool is_linked; /* whether `address` is final */
    struct disassembler *disassembler;
};

struct preview {
    /* The site. Its bytes are those of the code and `armed`, and its reason is the message in
     * `error`. Valid until the next preview. */
    struct cairn_site_description site;
    /* Whether the armed bytes hold a no-op in place of the call. */
    bool lacks_call;
    struct cairn_error error;
    uint8_t *armed;
};

/* Previews a site whose kind and size are declared. False without memory. */
bool preview_site(struct preview *preview, const struct preview_code *code,
                  enum cairn_record_kind kind, uint32_t byte_count);

/* Returns how many of the first bytes, up to 128, LLVM may have emitted for a patch point. 0, with
 * the reason in `error`, if LLVM does not emit these bytes, or if Cairn does not manage sites of
 * the architecture. */
uint32_t preview_find_patchpoint(const struct preview_code *all, struct cairn_error *error);

/* Whether Cairn manages sites of such code. If not, `error` has the reason. */
bool preview_manages(enum cairn_architecture architecture, enum cairn_byte_order byte_order,
                     struct cairn_error *error);

void preview_release(struct preview *preview);

#endif
