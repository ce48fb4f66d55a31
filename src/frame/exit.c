/*
 * Exits: a stub in code memory that calls the host's handler with the thread's registers.
 *
 * An exit is a separate module without records; the exit itself is in the module's data. So it is
 * protected, retired and freed like other code, and is valid as long as its stub.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/exit.h"

#include "arch/arch.h"
#include "base/error.h"
#include "frame/context.h"
#include "frame/deopt.h"
#include "frame/enter.h"
#include "record/table.h"
#include "runtime/module.h"
#include "runtime/stub_module.h"

#include <cairn/runtime.h>

enum { DESCRIPTOR_WORDS = 3 };

/* Read-only once the module is loaded. */
struct cairn_exit {
    struct arch_exit data; /* the data that the stub reads */
    /* Function descriptor, on architectures where function pointers point to descriptors. */
    uint64_t descriptor[DESCRIPTOR_WORDS];
    const void *target;
    uint64_t entry_code;
    cairn_runtime *runtime;
    cairn_deopt_handler *handler;
    void *user;
};

/* ---- Execution ---- */

static void handle(struct cairn_context *context, void *user)
{
    const cairn_exit *exit = user;
    const struct cairn_arch *arch = arch_host();
    struct cairn_deopt deopt;
    if (arch->has_descriptors) {
        /* Restores the caller's TOC pointer, because an exit's descriptor has none. A caller that
         * uses a descriptor has saved its TOC pointer. */
        const void *saved = (const void *)(uintptr_t)(context_sp(context) + arch->toc_save_offset);
        enum cairn_status status =
            cairn_context_write(context, arch->toc_register, saved, sizeof(uint64_t), NULL);
        (void)status; /* every context has a place for it */
    }
    deopt_begin(&deopt, exit->runtime, context, exit->entry_code);
    exit->handler(&deopt, exit->user);
    deopt_end(&deopt);
}

/* ---- Creating and destroying ---- */

/* ORDER PART: the parts of the module, as `cairn_exit_create` lists them. */
enum {
    PART_STUB,
    PART_ENTRY, /* return address of functions that are entered in place of a frame */
    PART_RULES, /* unwind rules of that code */
    PART_EXIT,
    PART_COUNT
};

static enum cairn_status write_parts(void *const *parts, void *user, struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    cairn_exit *exit = parts[PART_EXIT];
    *exit = *(const cairn_exit *)user;
    exit->entry_code = (uintptr_t)parts[PART_ENTRY];
    enter_write_code(parts[PART_ENTRY], parts[PART_RULES]);
    uint64_t address = (uintptr_t)parts[PART_STUB];
    uint64_t data = (uintptr_t)&exit->data;
    enum cairn_status status = arch_exit_init(&exit->data, handle, exit, error);
    if (status != CAIRN_OK)
        return status;
    if (!arch->encode_exit(arch, address, data, parts[PART_STUB]))
        return error_set(error, CAIRN_ERROR_RANGE, address,
                         "an exit at 0x%llx does not reach its data at 0x%llx",
                         (unsigned long long)address, (unsigned long long)data);
    exit->descriptor[0] = address;
    exit->target = arch->has_descriptors ? (const void *)exit->descriptor : parts[PART_STUB];
    return CAIRN_OK;
}

enum cairn_status cairn_exit_create(cairn_runtime *runtime, cairn_deopt_handler *handler,
                                    void *user, cairn_exit **exit, struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    if (runtime == NULL || handler == NULL || exit == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_exit_create needs a runtime, a handler and a place for the exit");
    if (arch == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "Cairn has no contexts for this machine");
    const struct stub_part parts[PART_COUNT] = {
        {CAIRN_SECTION_CODE, arch->exit_bytes, arch->veneer_alignment},
        {CAIRN_SECTION_CODE, arch->entry_frame.code_bytes, arch->veneer_alignment},
        {CAIRN_SECTION_UNWIND_TABLE, ENTER_RULES_BYTES, _Alignof(uint64_t)},
        {CAIRN_SECTION_READ_ONLY_DATA, sizeof **exit, _Alignof(cairn_exit)},
    };
    cairn_exit wanted = {.runtime = runtime, .handler = handler, .user = user};
    void *made;
    enum cairn_status status =
        stub_module_load(runtime, "exit", parts, PART_COUNT, write_parts, &wanted, &made, error);
    if (status == CAIRN_OK)
        *exit = made;
    return status;
}

enum cairn_status cairn_site_leave(cairn_site *site, cairn_deopt_handler *handler, void *user,
                                   enum cairn_strength strength, cairn_exit **exit,
                                   struct cairn_error *error)
{
    if (site == NULL || exit == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_site_leave needs a site and a place for the exit");
    const cairn_module *module = table_owner(site->table->records);
    cairn_exit *created;
    enum cairn_status status = cairn_exit_create(module->runtime, handler, user, &created, error);
    if (status != CAIRN_OK)
        return status;
    status = cairn_site_call(site, created->target, strength, error);
    if (status == CAIRN_OK)
        *exit = created;
    else
        cairn_exit_destroy(created);
    return status;
}

void cairn_exit_destroy(cairn_exit *exit)
{
    if (exit != NULL)
        stub_module_retire(exit->runtime, exit);
}

const void *cairn_exit_target(const cairn_exit *exit) { return exit->target; }

uint64_t exit_entry_code(const cairn_exit *exit) { return exit->entry_code; }
