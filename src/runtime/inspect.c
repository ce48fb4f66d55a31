/*
 * The runtime's descriptor for readers in other processes.
 *
 * Its page is a private mapping of a memory file, because the system shows the names of such files
 * in the list of the process's mappings. The file has no descriptor after the mapping was made.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/inspect.h"

#include "base/file.h"
#include "base/inspect.h"
#include "record/table.h"
#include "runtime/module.h"
#include "site/site.h"

#include <cairn/architecture.h>
#include <cairn/cairn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* since Linux 6.3 */
#endif

_Static_assert((int)MODULE_LOADED == INSPECT_LOADED && (int)MODULE_PUBLISHED == INSPECT_PUBLISHED &&
                   (int)MODULE_RETIRED == INSPECT_RETIRED,
               "states of modules have their numbers");
_Static_assert(sizeof(struct inspect_descriptor) <= 4096, "a descriptor fits a page");
_Static_assert(sizeof(INSPECT_MAGIC) == 16, "the magic fills its member");

/* Returns a page of private memory, or NULL. If vm.memfd_noexec is 2, the file must be one that
 * cannot become executable. */
static struct inspect_descriptor *map_page(void)
{
    const size_t size = sizeof(struct inspect_descriptor);
    int file = file_create_memory(INSPECT_FILE, MFD_NOEXEC_SEAL);
    if (file < 0)
        return NULL;
    void *page = MAP_FAILED;
    if (file_resize(file, size) == 0)
        page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    return page == MAP_FAILED ? NULL : page;
}

static void set_fields(struct inspect_field *fields)
{
    fields[INSPECT_RUNTIME_MODULES] = INSPECT_MEMBER(struct cairn_runtime, modules);
    fields[INSPECT_RUNTIME_RETIRED] = INSPECT_MEMBER(struct cairn_runtime, retired);
    fields[INSPECT_RUNTIME_PUBLISHED_COUNT] = INSPECT_MEMBER(struct cairn_runtime, published_count);
    fields[INSPECT_RUNTIME_RETIRED_COUNT] = INSPECT_MEMBER(struct cairn_runtime, retired_count);
    fields[INSPECT_RUNTIME_TABLE_BYTES] = INSPECT_MEMBER(struct cairn_runtime, table_bytes);
    fields[INSPECT_RUNTIME_CACHES] = INSPECT_MEMBER(struct cairn_runtime, ics.first);
    fields[INSPECT_MODULE_RUNTIME] = INSPECT_MEMBER(struct cairn_module, runtime);
    fields[INSPECT_MODULE_NUMBER] = INSPECT_MEMBER(struct cairn_module, number);
    fields[INSPECT_MODULE_TABLE] = INSPECT_MEMBER(struct cairn_module, table);
    fields[INSPECT_MODULE_SITES] = INSPECT_MEMBER(struct cairn_module, sites);
    fields[INSPECT_MODULE_NEXT] = INSPECT_MEMBER(struct cairn_module, next);
    fields[INSPECT_MODULE_PREVIOUS] = INSPECT_MEMBER(struct cairn_module, previous);
    fields[INSPECT_MODULE_STATE] = INSPECT_MEMBER(struct cairn_module, state);
    fields[INSPECT_MODULE_NAME] = INSPECT_PLACE(struct cairn_module, name);
}

void runtime_inspect_create(cairn_runtime *runtime)
{
    struct inspect_descriptor *descriptor = map_page();
    if (descriptor == NULL)
        return;
    descriptor->byte_order = INSPECT_BYTE_ORDER;
    descriptor->version = INSPECT_VERSION;
    snprintf(descriptor->release, sizeof descriptor->release, "%s", cairn_version());
    descriptor->pointer_bytes = sizeof(void *);
    descriptor->architecture = cairn_architecture_host();
    descriptor->code_mode = code_space_mode(runtime->space);
    descriptor->field_count = INSPECT_FIELD_COUNT;
    descriptor->runtime = (uintptr_t)runtime;
    descriptor->space = (uintptr_t)runtime->space;
    set_fields(descriptor->fields);
    table_inspect(descriptor->fields);
    site_table_inspect(descriptor->fields);
    code_space_inspect(descriptor->fields);
    code_block_inspect(descriptor->fields);
    atomic_thread_fence(memory_order_release);
    memcpy(descriptor->magic, INSPECT_MAGIC, sizeof descriptor->magic);
    runtime->descriptor = descriptor;
    runtime->ics.descriptor = descriptor;
}

void runtime_inspect_destroy(cairn_runtime *runtime)
{
    struct inspect_descriptor *descriptor = runtime->descriptor;
    runtime->descriptor = NULL;
    runtime->ics.descriptor = NULL;
    if (descriptor != NULL)
        munmap(descriptor, sizeof *descriptor);
}
