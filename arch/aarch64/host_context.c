/*
 * AArch64: the places of registers in contexts and in signal frames.
 *
 * After the general registers, a signal frame contains records, each with a magic number and a
 * size. The kernel always writes a record of the V registers. If the thread uses SVE registers,
 * there is also a record of those, which may be in an extra space that another record points to.
 * The lower 128 bits of the SVE registers are the V registers. When the signal handler returns, the
 * kernel takes these bits from the V registers' record; this code keeps both records equal.
 *
 * Sources: Linux, arch/arm64/include/uapi/asm/sigcontext.h and Documentation/arch/arm64/sve.rst;
 * DWARF for the Arm 64-bit Architecture (AArch64), section "DWARF register names".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/aarch64/context.h"

#include "arch/arch.h"
#include "base/error.h"

#include <string.h>
#include <ucontext.h>

enum {
    DWARF_FP = 29,
    DWARF_LR = 30,
    DWARF_SP = 31,
    DWARF_GENERAL_END = 32,
    DWARF_V0 = 64,
    DWARF_V0_END = 96,
    VECTORS = 32
};

/* ---- Registers ---- */

bool arch_host_register(const struct cairn_context *context, uint16_t dwarf,
                        struct arch_register *found)
{
    const struct host_context *host = (const struct host_context *)context;
    if (dwarf < DWARF_GENERAL_END)
        *found = (struct arch_register){
            .offset = CONTEXT_X((size_t)dwarf), .bytes = 8, .form = ARCH_REGISTER_INTEGER};
    else if (dwarf >= DWARF_V0 && dwarf < DWARF_V0_END && host->head.vector_level != 0)
        *found = (struct arch_register){.offset = CONTEXT_Q((size_t)dwarf - DWARF_V0),
                                        .bytes = CONTEXT_VECTOR_BYTES,
                                        .form = ARCH_REGISTER_VECTOR};
    else
        return false;
    return true;
}

uint16_t arch_host_stack_pointer(void) { return DWARF_SP; }

const struct arch_context_layout arch_host_layout = {
    .stack_pointer = DWARF_SP,
    .scalars_end = DWARF_V0_END,
    .offsets = {ARCH_OFFSETS_OF_16(0, CONTEXT_X(0), 8), ARCH_OFFSETS_OF_16(16, CONTEXT_X(16), 8),
                ARCH_OFFSETS_OF_16(DWARF_V0, CONTEXT_Q(0), CONTEXT_VECTOR_BYTES),
                ARCH_OFFSETS_OF_16(DWARF_V0 + 16, CONTEXT_Q(16), CONTEXT_VECTOR_BYTES)},
};

/* Contexts hold these registers as functions store them. */
void arch_host_restore_slot(struct cairn_context *context, const struct arch_unwind_slot *slot,
                            uint64_t bytes)
{
    struct arch_register place;
    if (arch_host_register(context, slot->dwarf, &place))
        memcpy(context->bytes + place.offset + slot->byte, &bytes, sizeof bytes);
}

/* The instruction is XPACLRI, a no-op on processors without pointer authentication. */
uint64_t arch_host_strip_return_address(uint64_t address)
{
    register uint64_t link __asm__("x30") = address;
    __asm__("hint #7" : "+r"(link));
    return link;
}

/* ---- Entering a function ---- */

enum { FRAME_BYTES = 16, STACK_ALIGNMENT = 16 };

size_t arch_host_entry_reach(size_t stack_bytes)
{
    return stack_bytes == 0 ? 0 : FRAME_BYTES + STACK_ALIGNMENT - 1 + stack_bytes;
}

size_t arch_host_entered_bytes(void) { return sizeof(struct host_context); }

/* Writes the call frame that the arguments need, because they are above the stack pointer. */
static void make_frame(struct host_context *host, const struct arch_entry *entry)
{
    uint64_t frame = host->general[DWARF_SP] - FRAME_BYTES;
    uint64_t arguments = (frame - entry->stack_bytes) & ~(uint64_t)(STACK_ALIGNMENT - 1);
    const uint64_t saved[] = {host->general[DWARF_FP], host->head.pc};
    memcpy((void *)(uintptr_t)frame, saved, sizeof saved);
    memcpy((void *)(uintptr_t)arguments, entry->stack, entry->stack_bytes);
    host->general[DWARF_FP] = frame;
    host->general[DWARF_SP] = arguments;
    host->head.pc = entry->code + arch_host()->entry_frame.return_offset;
}

void arch_host_enter(struct cairn_context *context, const struct arch_entry *entry)
{
    struct host_context *host = (struct host_context *)context;
    if (entry->stack_bytes > 0)
        make_frame(host, entry);
    host->general[DWARF_LR] = host->head.pc;
    host->head.pc = (uintptr_t)entry->function;
}

/* ---- Vector levels ---- */

uint32_t arch_host_vector_level(void) { return CONTEXT_LEVEL_SIMD; }

extern const uint64_t arch_exit_entries[CONTEXT_LEVELS];

uint64_t arch_host_exit_entry(uint32_t vector_level) { return arch_exit_entries[vector_level - 1]; }

/* ---- Records of a signal frame ---- */

/* These structures are those of the kernel's header. */
struct record {
    uint32_t magic;
    uint32_t size;
};
struct extra_record {
    struct record head;
    uint64_t address;
    uint32_t size;
    uint32_t reserved[3];
};
struct simd_record {
    struct record head;
    uint32_t fpsr;
    uint32_t fpcr;
    uint8_t vectors[VECTORS][CONTEXT_VECTOR_BYTES];
};
struct sve_record {
    struct record head;
    uint16_t vector_bytes;
    uint16_t flags;
    uint16_t reserved[2];
    uint8_t vectors[];
};

#define MAGIC_SIMD UINT32_C(0x46508001)
#define MAGIC_SVE UINT32_C(0x53564501)
#define MAGIC_EXTRA UINT32_C(0x45585401)

enum { FLAGS_SHIFT = 28, FLAGS_MASK = 15, EXTRA_BYTES_MAX = 1 << 20 };

struct records {
    struct simd_record *simd; /* or NULL */
    struct sve_record *sve;   /* NULL if there are no SVE registers in the frame */
    uint8_t *extra;           /* or NULL */
    size_t extra_size;
};

static void take_sve(struct sve_record *sve, struct records *records)
{
    size_t needed = sizeof *sve + (size_t)VECTORS * sve->vector_bytes;
    if (sve->vector_bytes >= CONTEXT_VECTOR_BYTES && sve->head.size >= needed)
        records->sve = sve;
}

static void take_record(struct record *record, struct records *records)
{
    if (record->magic == MAGIC_SIMD && record->size >= sizeof(struct simd_record))
        records->simd = (struct simd_record *)(void *)record;
    else if (record->magic == MAGIC_SVE && record->size >= sizeof(struct sve_record))
        take_sve((struct sve_record *)(void *)record, records);
    else if (record->magic == MAGIC_EXTRA && record->size >= sizeof(struct extra_record)) {
        const struct extra_record *extra = (const struct extra_record *)(void *)record;
        records->extra = (uint8_t *)(uintptr_t)extra->address;
        records->extra_size = extra->size;
    }
}

/* Reads the records up to the terminating one; false if it is not within `size` bytes. */
static bool take_records(uint8_t *bytes, size_t size, struct records *records)
{
    size_t at = 0;
    while (at <= size - sizeof(struct record)) {
        struct record *record = (struct record *)(void *)(bytes + at);
        if (record->magic == 0)
            return true;
        if (record->size < sizeof *record || record->size % 16 != 0 || record->size > size - at)
            return false;
        take_record(record, records);
        at += record->size;
    }
    return false;
}

static enum cairn_status find_records(const ucontext_t *signal, struct records *records,
                                      struct cairn_error *error)
{
    *records = (struct records){.simd = NULL};
    uint8_t *bytes = (uint8_t *)(uintptr_t)signal->uc_mcontext.__reserved;
    bool whole = take_records(bytes, sizeof signal->uc_mcontext.__reserved, records);
    if (whole && records->extra != NULL)
        whole = records->extra_size >= sizeof(struct record) &&
                records->extra_size <= EXTRA_BYTES_MAX &&
                take_records(records->extra, records->extra_size, records);
    if (!whole)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0,
                         "the signal frame's records do not fit into it");
    return CAIRN_OK;
}

static void read_vectors(const struct simd_record *simd, struct host_context *host)
{
    memcpy(host->vectors, simd->vectors, sizeof host->vectors);
    host->head.control = simd->fpcr;
    host->head.unused[0] = simd->fpsr;
    host->head.vector_level = CONTEXT_LEVEL_SIMD;
    host->head.present[1] = CONTEXT_PRESENT_VECTORS;
}

static void write_vectors(const struct records *records, const struct host_context *host)
{
    for (size_t i = 0; i < VECTORS; i++) {
        if ((host->head.present[1] >> i & 1) == 0)
            continue;
        memcpy(records->simd->vectors[i], host->vectors[i], CONTEXT_VECTOR_BYTES);
        if (records->sve != NULL)
            memcpy(records->sve->vectors + i * records->sve->vector_bytes, host->vectors[i],
                   CONTEXT_VECTOR_BYTES);
    }
    records->simd->fpcr = host->head.control;
    records->simd->fpsr = (uint32_t)host->head.unused[0];
}

/* ---- General registers ---- */

static void read_general(const mcontext_t *frame, struct host_context *host)
{
    for (size_t i = 0; i < DWARF_SP; i++)
        host->general[i] = frame->regs[i];
    host->general[DWARF_SP] = frame->sp;
    host->head.pc = frame->pc;
    host->head.flags = frame->pstate & (uint64_t)FLAGS_MASK << FLAGS_SHIFT;
    host->head.present[0] = CONTEXT_PRESENT_GENERAL;
}

static void write_general(mcontext_t *frame, const struct host_context *host)
{
    const uint64_t flags = (uint64_t)FLAGS_MASK << FLAGS_SHIFT;
    uint64_t present = host->head.present[0];
    for (size_t i = 0; i < DWARF_SP; i++)
        if ((present >> i & 1) != 0)
            frame->regs[i] = host->general[i];
    if ((present >> DWARF_SP & 1) != 0)
        frame->sp = host->general[DWARF_SP];
    frame->pc = host->head.pc;
    frame->pstate = (frame->pstate & ~flags) | (host->head.flags & flags);
}

enum cairn_status arch_host_from_signal(struct cairn_context *context, const void *ucontext,
                                        struct cairn_error *error)
{
    struct host_context *host = (struct host_context *)context;
    const ucontext_t *signal = ucontext;
    struct records records;
    host->head = (struct arch_context_head){.vector_level = 0};
    enum cairn_status status = find_records(signal, &records, error);
    if (status != CAIRN_OK)
        return status;
    read_general(&signal->uc_mcontext, host);
    if (records.simd == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the signal frame has no record of the vector registers");
    read_vectors(records.simd, host);
    return CAIRN_OK;
}

enum cairn_status arch_host_to_signal(const struct cairn_context *context, void *ucontext,
                                      struct cairn_error *error)
{
    const struct host_context *host = (const struct host_context *)context;
    ucontext_t *signal = ucontext;
    struct records records;
    enum cairn_status status = find_records(signal, &records, error);
    if (status != CAIRN_OK)
        return status;
    bool has_vectors = host->head.vector_level != 0;
    if (has_vectors && records.simd == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the context has vector registers, the signal frame no record of them");
    write_general(&signal->uc_mcontext, host);
    if (has_vectors)
        write_vectors(&records, host);
    return CAIRN_OK;
}

uint64_t arch_host_signal_pc(const void *ucontext)
{
    return ((const ucontext_t *)ucontext)->uc_mcontext.pc;
}

void arch_host_set_signal_pc(void *ucontext, uint64_t pc)
{
    ((ucontext_t *)ucontext)->uc_mcontext.pc = pc;
}
