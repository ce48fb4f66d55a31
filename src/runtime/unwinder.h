/*
 * runtime/unwinder.h - the unwinder of the process, which C++ exceptions and backtrace() use.
 *
 * Two unwinders exist. In libgcc's, __register_frame takes a section `.eh_frame` that ends with a
 * length of 0; in LLVM's libunwind it takes one function's entry in such a section. (The latter
 * also has __unw_add_dynamic_eh_frame_section, which reads past the end of the section in LLVM 14.)
 * The functions are looked up when they are needed, so that libcairn does not depend on either
 * library.
 *
 * Source: gcc, libgcc/unwind-dw2-fde.c; LLVM, libunwind/src/libunwind.cpp and
 * UnwindLevel1-gcc-ext.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_UNWINDER_H
#define RUNTIME_UNWINDER_H

#include <cairn/status.h>
#include <stdbool.h>

struct unwinder {
    void (*add)(const void *table);
    void (*remove)(const void *table);
    bool takes_entries; /* instead of sections */
};

/* Finds the functions, in the process or in libgcc_s.so.1, which is loaded if necessary. Errors:
 * UNSUPPORTED (there is no unwinder). */
CAIRN_MUST_CHECK enum cairn_status unwinder_find(struct unwinder *unwinder,
                                                 struct cairn_error *error);

/* Registers and unregisters a section, which must be valid, end with a length of 0, and be in
 * memory until it is unregistered. */
void unwinder_add(const struct unwinder *unwinder, const void *section);
void unwinder_remove(const struct unwinder *unwinder, const void *section);

#endif
