/* SPDX-License-Identifier: MIT */
#include "runtime/unwinder.h"

#include "base/error.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Whether the function is in LLVM's library, which has a function that libgcc does not have. The
 * process may have loaded both libraries. */
static bool is_llvm(const void *function)
{
    Dl_info library;
    Dl_info llvm;
    const void *only_in_llvm = dlsym(RTLD_DEFAULT, "__unw_add_dynamic_fde");
    return only_in_llvm != NULL && dladdr(function, &library) != 0 &&
           dladdr(only_in_llvm, &llvm) != 0 && library.dli_fbase == llvm.dli_fbase;
}

static bool find_in(void *library, struct unwinder *unwinder)
{
    void *add = dlsym(library, "__register_frame");
    void *remove = dlsym(library, "__deregister_frame");
    if (add == NULL || remove == NULL)
        return false;
    /* ISO C has no conversion from a pointer to data to one to a function. */
    memcpy(&unwinder->add, &add, sizeof add);
    memcpy(&unwinder->remove, &remove, sizeof remove);
    unwinder->takes_entries = is_llvm(add);
    return true;
}

enum cairn_status unwinder_find(struct unwinder *unwinder, struct cairn_error *error)
{
    if (find_in(RTLD_DEFAULT, unwinder))
        return CAIRN_OK;
    /* The C library opens this one for backtrace(). It stays open, because it is used until the
     * process ends. */
    void *library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL && find_in(library, unwinder))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "unwind tables cannot be registered: the process has no __register_frame, "
                     "and libgcc_s.so.1 cannot be loaded");
}

/* Calls a function for each function's entry of a section. An entry begins with its length, of 4
 * bytes, or of 8 bytes that follow 4 bytes 0xFF. Then comes the distance to the common information,
 * which is 0 in the common information itself. */
static void visit_entries(const void *section, void (*visit)(const void *entry))
{
    const uint8_t *entry = section;
    for (;;) {
        uint32_t length;
        uint64_t long_length;
        uint32_t distance;
        const uint8_t *contents = entry + sizeof length;
        memcpy(&length, entry, sizeof length);
        if (length == 0)
            return;
        long_length = length;
        if (length == UINT32_MAX) {
            memcpy(&long_length, contents, sizeof long_length);
            contents += sizeof long_length;
        }
        memcpy(&distance, contents, sizeof distance);
        if (distance != 0)
            visit(entry);
        entry = contents + long_length;
    }
}

void unwinder_add(const struct unwinder *unwinder, const void *section)
{
    if (unwinder->takes_entries)
        visit_entries(section, unwinder->add);
    else
        unwinder->add(section);
}

void unwinder_remove(const struct unwinder *unwinder, const void *section)
{
    if (unwinder->takes_entries)
        visit_entries(section, unwinder->remove);
    else
        unwinder->remove(section);
}
