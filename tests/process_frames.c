/* SPDX-License-Identifier: MIT */
#include "process_frames.h"

#include "stackmap_support.h"

#include <link.h>
#include <stdlib.h>
#include <unwind.h>

/* ---- The system's unwinder ---- */

enum { DWARF_TOC = 2 };

/* It tells general registers; their numbers are lower than those of others, everywhere. The TOC
 * pointer it takes from where the caller has saved it; by the rules it is the callee's, until the
 * caller brings it back itself. */
static bool is_told(uint16_t dwarf)
{
    bool is_toc = arch_host()->toc_save_offset != 0 && dwarf == DWARF_TOC;
    return !is_toc && dwarf < (arch_host()->has_link_register ? 32 : 16);
}

struct collected {
    struct process_frame *frames;
    size_t count;
};

static _Unwind_Reason_Code collect(struct _Unwind_Context *context, void *user)
{
    struct collected *collected = user;
    const struct cairn_arch *arch = arch_host();
    if (collected->count == PROCESS_FRAMES_MAX || _Unwind_GetIP(context) == 0)
        return _URC_END_OF_STACK;
    struct process_frame *frame = &collected->frames[collected->count++];
    *frame = (struct process_frame){.pc = _Unwind_GetIP(context)};
    frame->slots[ARCH_UNWIND_STACK_POINTER] = _Unwind_GetCFA(context);
    frame->slots[ARCH_UNWIND_RETURN_ADDRESS] = frame->pc;
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS + 1; i < arch->unwind_slot_count; i++)
        if (is_told(arch->unwind_slots[i].dwarf))
            frame->slots[i] = _Unwind_GetGR(context, arch->unwind_slots[i].dwarf);
    return _URC_NO_REASON;
}

/* The first frame that is told is this function's own. */
__attribute__((noinline)) size_t process_frames_reference(struct process_frame *frames)
{
    struct process_frame all[PROCESS_FRAMES_MAX];
    struct collected collected = {all, 0};
    _Unwind_Backtrace(collect, &collected);
    size_t count = collected.count == 0 ? 0 : collected.count - 1;
    for (size_t i = 0; i < count; i++)
        frames[i] = all[i + 1];
    return count;
}

void process_frame_assert_same(const struct process_frame *found,
                               const struct process_frame *expected)
{
    const struct cairn_arch *arch = arch_host();
    ck_assert_uint_eq(found->pc, expected->pc);
    ck_assert_uint_eq(found->slots[ARCH_UNWIND_STACK_POINTER],
                      expected->slots[ARCH_UNWIND_STACK_POINTER]);
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS + 1; i < arch->unwind_slot_count; i++)
        if (is_told(arch->unwind_slots[i].dwarf))
            ck_assert_uint_eq(found->slots[i], expected->slots[i]);
}

/* ---- Tables of everything that is loaded ---- */

enum { OBJECTS_MAX = 32 };

struct process_tables {
    size_t count;
    struct unwind *tables[OBJECTS_MAX];
};

/* .eh_frame_hdr as linkers write it, up to its sorted table. */
struct header {
    uint8_t version;
    uint8_t frame_encoding; /* 0x1B: PC-relative, 4 bytes */
    uint8_t count_encoding; /* 0x03: 4 bytes */
    uint8_t table_encoding;
    int32_t frame;
    uint32_t count;
};

/* Where the last function's description ends: the header does not say how large the section is. The
 * linker of PPC64 leaves half of a description after the others where a library has stubs. */
static void set_size(struct eh_frame *frame, uint32_t count)
{
    struct eh_frame_description description = {0};
    size_t offset = 0;
    frame->section.size = SIZE_MAX / 2 - frame->address;
    for (uint32_t i = 0; i < count; i++) {
        size_t next = offset;
        bool found = false;
        if (eh_frame_next(frame, &next, &description, &found, NULL) != CAIRN_OK || !found)
            break;
        offset = next;
    }
    frame->section.size = offset;
}

static void add_table(struct process_tables *tables, const struct header *header)
{
    uintptr_t begin = (uintptr_t)&header->frame + (uintptr_t)(intptr_t)header->frame;
    struct eh_frame frame = {{(const uint8_t *)begin, 0, CAIRN_BYTE_ORDER_NATIVE}, begin};
    set_size(&frame, header->count);
    struct cairn_allocator allocator = memory_allocator(NULL);
    struct cairn_error error = {0};
    struct function_list list;
    ck_assert_ok(function_list_read(&frame, 1, &allocator, &list, &error));
    ck_assert_uint_lt(tables->count, OBJECTS_MAX);
    enum cairn_status status =
        unwind_create(&list, arch_host(), &tables->tables[tables->count++], &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    function_list_release(&list);
}

static int add_object(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size;
    for (ElfW(Half) i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_GNU_EH_FRAME)
            continue;
        const struct header *header =
            (const struct header *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        if (header->version == 1 && header->frame_encoding == 0x1B &&
            header->count_encoding == 0x03)
            add_table(user, header);
    }
    return 0;
}

struct process_tables *process_tables_create(void)
{
    struct process_tables *tables = calloc(1, sizeof *tables);
    dl_iterate_phdr(add_object, tables);
    return tables;
}

void process_tables_destroy(struct process_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        unwind_destroy(tables->tables[i]);
    free(tables);
}

/* ---- Walking ---- */

void process_frame_step_by(const struct unwind *table, struct process_frame *frame)
{
    const struct unwind_row *row = unwind_find_return(table, frame->pc);
    struct cairn_error error = {0};
    enum cairn_status status = unwind_explain(row, arch_host(), frame->pc, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert((row->flags & UNWIND_RETURN_FOUND) != 0);
    uint64_t cfa = unwind_cfa(row, frame->slots);
    ck_assert_uint_gt(cfa, frame->slots[ARCH_UNWIND_STACK_POINTER]);
    unwind_apply(row, cfa, frame->slots);
    frame->pc = frame->slots[ARCH_UNWIND_RETURN_ADDRESS];
}

void process_frame_step(const struct process_tables *tables, struct process_frame *frame)
{
    size_t i = 0;
    while (i + 1 < tables->count &&
           unwind_find_return(tables->tables[i], frame->pc)->problem == UNWIND_NO_RULES)
        i++;
    process_frame_step_by(tables->tables[i], frame);
}
