/*
 * llvm/dyld.h - loads what LLVM's RuntimeDyld links, for MCJIT (llvm/mcjit.c) and ORC (llvm/orc.c).
 *
 * RuntimeDyld requests memory for the sections of an object, writes and relocates them, registers
 * the unwind tables with the system's unwinder, and asks to finalise the memory. Until then, a
 * struct dyld_load holds the sections.
 *
 * LLVM ends the process if an allocation of a section fails. So when Cairn cannot allocate memory,
 * the load keeps the error, and gives LLVM scratch memory; dyld_publish then fails. By then LLVM
 * has registered unwind tables in that memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_DYLD_H
#define LLVM_DYLD_H

#include <cairn/llvm.h>

/* What the loads of one memory manager, or of one connection with ORC, have in common. It does not
 * change, so loads may run concurrently. */
struct dyld {
    cairn_runtime *runtime;
    struct cairn_allocator allocator;
    struct cairn_memory_manager_options options; /* with copies of the name and the PC sections */
    uint64_t bindings_key;                       /* of bindings in objects (llvm/bindings.h) */
};

/* Copies the options, and sets LLVM's options for the process. `options` may be NULL.
 * `default_name` is the modules' name if the options have none. The runtime must be valid as long
 * as `dyld`. On failure, dyld_release must still be called. Errors: UNSUPPORTED (the code model),
 * ARGUMENT, MEMORY. */
enum cairn_status dyld_init(struct dyld *dyld, cairn_runtime *runtime,
                            const struct cairn_memory_manager_options *options,
                            const char *default_name, struct cairn_error *error);
void dyld_release(struct dyld *dyld);

/* The sections of one module. All zero, except `dyld`, is one without sections. One thread at a
 * time may use it. */
struct dyld_load {
    struct dyld *dyld;
    cairn_loader *loader;     /* NULL before its first section */
    void *unwind_table;       /* the last section .eh_frame that LLVM has requested */
    size_t unwind_table_size; /* in bytes */
    struct scratch *scratch;
    struct bindings_section *bindings;
    struct cairn_error error; /* the first one; CAIRN_OK without errors */
};

/* Keeps the error, unless there is one already. */
void dyld_keep_error(struct dyld_load *load, const struct cairn_error *error);

/* Allocate memory for a section. NULL only if not even scratch memory can be mapped. */
uint8_t *dyld_allocate_code(struct dyld_load *load, size_t size, unsigned alignment);
uint8_t *dyld_allocate_data(struct dyld_load *load, size_t size, unsigned alignment,
                            const char *section_name, bool is_read_only);

/* Whether there is anything to publish, or an error to report. */
bool dyld_is_used(const struct dyld_load *load);

/* Finishes the loader, binds the sites, and publishes the module, to which `*module` gets a
 * reference. On failure the loader or the module remains, because LLVM holds addresses in it. The
 * load's error is cleared. Errors: those of the load, of cairn_loader_finish, of
 * bindings_apply_sections and of cairn_module_publish. */
enum cairn_status dyld_publish(struct dyld_load *load, cairn_module **module,
                               struct cairn_error *error);

/* Frees the load's own memory. The loader is the caller's. */
void dyld_drop(struct dyld_load *load);

#endif
