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

#define IN_SIGNAL(member) offsetof(ucontext_t, uc_mcontext.member)
_Static_assert(IN_SIGNAL(sp) == IN_SIGNAL(regs[31]), "the stack pointer follows x30");

const struct arch_context_layout arch_host_layout = {
    .stack_pointer = DWARF_SP,
    .entered_bytes = sizeof(struct host_context),
    .scalars_end = DWARF_V0_END,
    .offsets = {ARCH_OFFSETS_OF_16(0, CONTEXT_X(0), 8), ARCH_OFFSETS_OF_16(16, CONTEXT_X(16), 8),
                ARCH_OFFSETS_OF_16(DWARF_V0, CONTEXT_Q(0), CONTEXT_VECTOR_BYTES),
                ARCH_OFFSETS_OF_16(DWARF_V0 + 16, CONTEXT_Q(16), CONTEXT_VECTOR_BYTES)},
    .in_signal = {ARCH_OFFSETS_OF_16(0, IN_SIGNAL(regs), 8),
                  ARCH_OFFSETS_OF_16(16, IN_SIGNAL(regs[16]), 8)},
    .pc_in_signal = IN_SIGNAL(pc),
    .flags_in_signal = IN_SIGNAL(pstate),
    .flags_mask = UINT64_C(0xF0000000),
};

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

/* Arguments on the stack are above the stack pointer, so they need a call frame. */
void arch_host_enter(struct cairn_context *context, const struct arch_entry *entry)
{
    struct host_context *host = (struct host_context *)context;
    if (entry->stack_bytes > 0) {
        uint64_t frame = host->general[DWARF_SP] - FRAME_BYTES;
        uint64_t arguments = (frame - entry->stack_bytes) & ~(uint64_t)(STACK_ALIGNMENT - 1);
        const uint64_t saved[] = {host->general[DWARF_FP], host->head.pc};
        memcpy((void *)(uintptr_t)frame, saved, sizeof saved);
        memcpy((void *)(uintptr_t)arguments, entry->stack, entry->stack_bytes);
        host->general[DWARF_FP] = frame;
        host->general[DWARF_SP] = arguments;
        host->head.pc = entry->code + arch_host()->entry_frame.return_offset;
    }
    host->general[DWARF_LR] = host->head.pc;
    host->head.pc = (uintptr_t)entry->function;
}

/* ---- Vector levels ---- */

uint32_t arch_host_vector_level(void) { return CONTEXT_LEVEL_SIMD; }

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

enum { EXTRA_BYTES_MAX = 1 << 20 };

struct records {
    struct simd_record *simd; /* or NULL */
    struct sve_record *sve;   /* NULL if there are no SVE registers in the frame */
    uint8_t *extra;           /* or NULL */
    size_t extra_size;
};

static void take_record(struct record *record, struct records *records)
{
    struct sve_record *sve = (struct sve_record *)(void *)record;
    const struct extra_record *extra = (const struct extra_record *)(void *)record;
    if (record->magic == MAGIC_SIMD && record->size >= sizeof(struct simd_record))
        records->simd = (struct simd_record *)(void *)record;
    else if (record->magic == MAGIC_SVE && record->size >= sizeof *sve &&
             sve->vector_bytes >= CONTEXT_VECTOR_BYTES &&
             record->size >= sizeof *sve + (size_t)VECTORS * sve->vector_bytes)
        records->sve = sve;
    else if (record->magic == MAGIC_EXTRA && record->size >= sizeof *extra) {
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

/* ---- Signal frames ---- */

enum cairn_status arch_host_from_signal(struct cairn_context *context, const void *ucontext,
                                        struct cairn_error *error)
{
    struct host_context *host = (struct host_context *)context;
    struct records records;
    host->head = (struct arch_context_head){.vector_level = 0};
    enum cairn_status status = find_records(ucontext, &records, error);
    if (status != CAIRN_OK)
        return status;
    arch_read_signal(context, ucontext);
    host->head.present[0] = CONTEXT_PRESENT_GENERAL;
    if (records.simd == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the signal frame has no record of the vector registers");
    memcpy(host->vectors, records.simd->vectors, sizeof host->vectors);
    host->head.control = records.simd->fpcr;
    host->head.unused[0] = records.simd->fpsr;
    host->head.vector_level = CONTEXT_LEVEL_SIMD;
    host->head.present[1] = CONTEXT_PRESENT_VECTORS;
    return CAIRN_OK;
}

enum cairn_status arch_host_to_signal(const struct cairn_context *context, void *ucontext,
                                      struct cairn_error *error)
{
    const struct host_context *host = (const struct host_context *)context;
    struct records records;
    enum cairn_status status = find_records(ucontext, &records, error);
    if (status != CAIRN_OK)
        return status;
    bool has_vectors = host->head.vector_level != 0;
    if (has_vectors && records.simd == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the context has vector registers, the signal frame no record of them");
    arch_write_signal(context, ucontext);
    if (has_vectors)
        write_vectors(&records, host);
    return CAIRN_OK;
}
