/*
 * x86-64: the places of registers in contexts and in signal frames.
 *
 * The vector registers of a signal frame are in an XSAVE area. It starts with the FXSAVE area,
 * which includes the kernel's description of the remainder. The XSAVE header and the components
 * follow, at offsets that CPUID reports. If the bit of a component in the header's XSTATE_BV is
 * clear, the component has its initial value, zero, whatever the memory holds. The kernel writes
 * the standard format; this code also reads the compact format.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter
 * "Managing State Using the XSAVE Feature Set"; Linux, arch/x86/include/uapi/asm/sigcontext.h;
 * System V Application Binary Interface, AMD64 Architecture Processor Supplement, figure "DWARF
 * Register Number Mapping".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/x86_64/context.h"

#include "arch/arch.h"
#include "base/error.h"

#include <cpuid.h>
#include <string.h>
#include <ucontext.h>

enum {
    DWARF_RAX = 0,
    DWARF_RBP = 6,
    DWARF_RSP = 7,
    DWARF_GENERAL_END = 16,
    DWARF_RIP = 16,
    DWARF_XMM0 = 17,
    DWARF_XMM0_END = 33,
    DWARF_RFLAGS = 49,
    DWARF_MXCSR = 64,
    DWARF_XMM16 = 67,
    DWARF_XMM16_END = 83,
    DWARF_K0 = 118,
    DWARF_K0_END = 126
};

/* ---- Registers ---- */

static const uint8_t vector_bytes[] = {
    [0] = 0,
    [CONTEXT_LEVEL_SSE] = 16,
    [CONTEXT_LEVEL_AVX] = 32,
    [CONTEXT_LEVEL_AVX512] = 64,
};

static struct arch_register integer(size_t offset, size_t bytes)
{
    return (struct arch_register){.offset = offset, .bytes = bytes, .form = ARCH_REGISTER_INTEGER};
}

static struct arch_register vector(size_t index, size_t bytes)
{
    return (struct arch_register){.offset = CONTEXT_VECTORS + index * CONTEXT_VECTOR_BYTES,
                                  .bytes = bytes,
                                  .form = ARCH_REGISTER_VECTOR};
}

bool arch_host_register(const struct cairn_context *context, uint16_t dwarf,
                        struct arch_register *found)
{
    uint32_t level = ((const struct host_context *)context)->head.vector_level;
    bool has_avx512 = level == CONTEXT_LEVEL_AVX512;
    if (dwarf < DWARF_GENERAL_END)
        *found = integer(CONTEXT_RAX + (size_t)dwarf * 8, 8);
    else if (dwarf == DWARF_RIP)
        *found = integer(CONTEXT_PC, 8);
    else if (dwarf == DWARF_RFLAGS)
        *found = integer(CONTEXT_FLAGS, 8);
    else if (dwarf == DWARF_MXCSR)
        *found = (struct arch_register){
            .offset = CONTEXT_MXCSR, .bytes = 4, .form = ARCH_REGISTER_INTEGER, .is_control = true};
    else if (level != 0 && dwarf >= DWARF_XMM0 && dwarf < DWARF_XMM0_END)
        *found = vector((size_t)dwarf - DWARF_XMM0, vector_bytes[level]);
    else if (has_avx512 && dwarf >= DWARF_XMM16 && dwarf < DWARF_XMM16_END)
        *found = vector((size_t)dwarf - DWARF_XMM16 + 16, vector_bytes[level]);
    else if (has_avx512 && dwarf >= DWARF_K0 && dwarf < DWARF_K0_END)
        *found = integer(CONTEXT_MASKS + ((size_t)dwarf - DWARF_K0) * 8, 8);
    else
        return false;
    return true;
}

#define IN_SIGNAL(name) offsetof(ucontext_t, uc_mcontext.gregs[name])

const struct arch_context_layout arch_host_layout = {
    .stack_pointer = DWARF_RSP,
    /* No register after xmm15 holds arguments or is callee-saved. */
    .entered_bytes = CONTEXT_VECTORS + 16 * CONTEXT_VECTOR_BYTES,
    .scalars_end = DWARF_XMM16_END,
    .offsets = {ARCH_OFFSETS_OF_16(0, CONTEXT_RAX, 8), [DWARF_RIP] = CONTEXT_PC,
                ARCH_OFFSETS_OF_16(DWARF_XMM0, CONTEXT_VECTORS, CONTEXT_VECTOR_BYTES),
                ARCH_OFFSETS_OF_16(DWARF_XMM16, CONTEXT_VECTORS + 16 * CONTEXT_VECTOR_BYTES,
                                   CONTEXT_VECTOR_BYTES)},
    .in_signal = {IN_SIGNAL(REG_RAX), IN_SIGNAL(REG_RDX), IN_SIGNAL(REG_RCX), IN_SIGNAL(REG_RBX),
                  IN_SIGNAL(REG_RSI), IN_SIGNAL(REG_RDI), IN_SIGNAL(REG_RBP), IN_SIGNAL(REG_RSP),
                  IN_SIGNAL(REG_R8), IN_SIGNAL(REG_R9), IN_SIGNAL(REG_R10), IN_SIGNAL(REG_R11),
                  IN_SIGNAL(REG_R12), IN_SIGNAL(REG_R13), IN_SIGNAL(REG_R14), IN_SIGNAL(REG_R15)},
    .pc_in_signal = IN_SIGNAL(REG_RIP),
    .flags_in_signal = IN_SIGNAL(REG_EFL),
    .flags_mask = UINT64_MAX,
};

/* Return addresses are never signed on x86-64. */
uint64_t arch_host_strip_return_address(uint64_t address) { return address; }

/* ---- Entering a function ---- */

/* BELOW_RED_ZONE_END is the number of bytes that resuming writes; see context.S. */
enum { BELOW_RED_ZONE_END = 128 + 40, FRAME_BYTES = 16, STACK_ALIGNMENT = 16 };

size_t arch_host_entry_reach(size_t stack_bytes)
{
    size_t frame = stack_bytes == 0 ? 0 : FRAME_BYTES + STACK_ALIGNMENT - 1 + stack_bytes;
    return frame + sizeof(uint64_t) + BELOW_RED_ZONE_END;
}

/* Arguments on the stack must be directly above the return address, so they need a call frame.
 * Functions with variable arguments expect the number of vector registers in rax. */
void arch_host_enter(struct cairn_context *context, const struct arch_entry *entry)
{
    struct host_context *host = (struct host_context *)context;
    uint64_t sp = host->general[DWARF_RSP];
    if (entry->stack_bytes > 0) {
        uint64_t frame = sp - FRAME_BYTES;
        const uint64_t saved[] = {host->general[DWARF_RBP], host->head.pc};
        sp = (frame - entry->stack_bytes) & ~(uint64_t)(STACK_ALIGNMENT - 1);
        memcpy((void *)(uintptr_t)frame, saved, sizeof saved);
        memcpy((void *)(uintptr_t)sp, entry->stack, entry->stack_bytes);
        host->general[DWARF_RBP] = frame;
        host->head.pc = entry->code + arch_host()->entry_frame.return_offset;
    }
    sp -= sizeof(uint64_t);
    memcpy((void *)(uintptr_t)sp, &host->head.pc, sizeof host->head.pc);
    host->general[DWARF_RSP] = sp;
    host->general[DWARF_RAX] = entry->floating_count;
    host->head.pc = (uintptr_t)entry->function;
}

/* ---- Vector levels ---- */

/* The compiler's library has executed CPUID when the program was started, and also knows which
 * states the kernel has enabled. Under a hypervisor, each CPUID takes several microseconds. Exits
 * move mask registers only as 64 bits, which needs AVX-512BW. */
uint32_t arch_host_vector_level(void)
{
    __builtin_cpu_init(); /* does nothing except in a constructor that runs before the library's */
    if (!__builtin_cpu_supports("avx"))
        return CONTEXT_LEVEL_SSE;
    if (!__builtin_cpu_supports("avx512f"))
        return CONTEXT_LEVEL_AVX;
    return __builtin_cpu_supports("avx512bw") ? CONTEXT_LEVEL_AVX512 : 0;
}

/* ---- Vector registers of a signal frame ---- */

enum {
    STATE_AVX = 1 << 2,
    STATE_MASKS = 1 << 5,
    STATE_ZMM_UPPER = 1 << 6,
    STATE_ZMM_16 = 1 << 7,
    STATES_AVX512 = STATE_MASKS | STATE_ZMM_UPPER | STATE_ZMM_16
};

enum {
    COMPONENT_SSE = 1,
    COMPONENT_AVX = 2,
    COMPONENT_MASKS = 5,
    COMPONENT_ZMM_UPPER = 6,
    COMPONENT_ZMM_16 = 7,
    COMPONENTS_MAX = 63,

    FXSAVE_MXCSR = 24,
    FXSAVE_XMM0 = 160,
    FXSAVE_DESCRIPTION = 464,
    HEADER_XSTATE_BV = 512,
    HEADER_XCOMP_BV = 520,
    HEADER_END = 576,

    CPUID_XSAVE = 0xD,
    CPUID_IS_ALIGNED = 1 << 1 /* of a component in the compact format */
};

#define MAGIC_BEGIN UINT32_C(0x46505853)
#define MAGIC_END UINT32_C(0x46505845)
#define COMPACT (UINT64_C(1) << 63)

/* The kernel's description, in the FXSAVE area. */
struct description {
    uint32_t magic;
    uint32_t extended_size;
    uint64_t features;
    uint32_t state_size;
};

/* An XSAVE area, and the offsets of its components. */
struct area {
    uint8_t *bytes;
    uint32_t level;
    /* Whether there is an XSAVE header; `in_use` is its XSTATE_BV. */
    bool has_header;
    uint64_t in_use;
    size_t avx;
    size_t masks;
    size_t zmm_upper;
    size_t zmm_16;
};

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Returns the offset of a component; `size` if the component is not within the area. */
static size_t place_component(unsigned number, uint64_t compact, size_t size)
{
    size_t at = HEADER_END;
    unsigned bytes;
    unsigned offset;
    unsigned flags;
    unsigned reserved;
    for (unsigned i = compact == 0 ? number : COMPONENT_AVX; i <= number; i++) {
        __cpuid_count(CPUID_XSAVE, i, bytes, offset, flags, reserved);
        if (compact == 0)
            at = offset;
        else if ((compact >> i & 1) == 0)
            continue;
        else if ((flags & CPUID_IS_ALIGNED) != 0)
            at = (at + 63) & ~(size_t)63;
        if (at > size || bytes > size - at)
            return size;
        if (i < number)
            at += bytes;
    }
    return at;
}

static enum cairn_status corrupt(struct cairn_error *error, const char *what)
{
    return error_set(error, CAIRN_ERROR_CORRUPT, 0, "the signal frame's vector registers: %s",
                     what);
}

static enum cairn_status place_components(struct area *area, uint64_t features, size_t size,
                                          struct cairn_error *error)
{
    uint64_t compact = read_u64(area->bytes + HEADER_XCOMP_BV);
    if ((compact & COMPACT) == 0)
        compact = 0;
    else
        features &= compact;
    area->in_use = read_u64(area->bytes + HEADER_XSTATE_BV);
    if ((features & STATE_AVX) == 0)
        return CAIRN_OK;
    area->level = CONTEXT_LEVEL_AVX;
    area->avx = place_component(COMPONENT_AVX, compact, size);
    if (area->avx == size)
        return corrupt(error, "those of AVX are past their end");
    if ((features & STATES_AVX512) != STATES_AVX512)
        return CAIRN_OK;
    area->level = CONTEXT_LEVEL_AVX512;
    area->masks = place_component(COMPONENT_MASKS, compact, size);
    area->zmm_upper = place_component(COMPONENT_ZMM_UPPER, compact, size);
    area->zmm_16 = place_component(COMPONENT_ZMM_16, compact, size);
    if (area->masks == size || area->zmm_upper == size || area->zmm_16 == size)
        return corrupt(error, "those of AVX-512 are past their end");
    return CAIRN_OK;
}

static enum cairn_status find_area(const ucontext_t *signal, struct area *area,
                                   struct cairn_error *error)
{
    struct description description;
    uint32_t end;
    *area = (struct area){.bytes = (uint8_t *)signal->uc_mcontext.fpregs};
    if (area->bytes == NULL)
        return CAIRN_OK;
    area->level = CONTEXT_LEVEL_SSE;
    memcpy(&description, area->bytes + FXSAVE_DESCRIPTION, sizeof description);
    if (description.magic != MAGIC_BEGIN)
        return CAIRN_OK;
    if (description.state_size < HEADER_END || description.extended_size < description.state_size)
        return corrupt(error, "their sizes contradict each other");
    memcpy(&end, area->bytes + description.state_size, sizeof end);
    if (end != MAGIC_END)
        return corrupt(error, "the mark at their end is missing");
    area->has_header = true;
    return place_components(area, description.features, description.state_size, error);
}

/* ---- Reading and writing them, component by component ---- */

static void read_component(const struct area *area, unsigned number, size_t offset, void *to,
                           size_t stride, size_t bytes, size_t count)
{
    bool in_use = !area->has_header || (area->in_use >> number & 1) != 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t *one = (uint8_t *)to + i * stride;
        if (in_use)
            memcpy(one, area->bytes + offset + i * bytes, bytes);
        else
            memset(one, 0, bytes);
    }
}

static void write_component(struct area *area, unsigned number, size_t offset, const void *from,
                            size_t stride, size_t bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(area->bytes + offset + i * bytes, (const uint8_t *)from + i * stride, bytes);
    area->in_use |= UINT64_C(1) << number;
}

static void read_vectors(const struct area *area, struct host_context *host)
{
    enum { STRIDE = CONTEXT_VECTOR_BYTES };
    memcpy(&host->head.control, area->bytes + FXSAVE_MXCSR, sizeof host->head.control);
    host->head.present[0] |= CONTEXT_PRESENT_VECTORS;
    host->head.present[1] |= CONTEXT_PRESENT_CONTROL;
    host->head.vector_level = area->level;
    read_component(area, COMPONENT_SSE, FXSAVE_XMM0, host->vectors, STRIDE, 16, 16);
    if (area->level >= CONTEXT_LEVEL_AVX)
        read_component(area, COMPONENT_AVX, area->avx, host->vectors[0] + 16, STRIDE, 16, 16);
    if (area->level < CONTEXT_LEVEL_AVX512)
        return;
    host->head.present[1] |= CONTEXT_PRESENT_AVX512;
    read_component(area, COMPONENT_MASKS, area->masks, host->masks, 8, 8, 8);
    read_component(area, COMPONENT_ZMM_UPPER, area->zmm_upper, host->vectors[0] + 32, STRIDE, 32,
                   16);
    read_component(area, COMPONENT_ZMM_16, area->zmm_16, host->vectors[16], STRIDE, 64, 16);
}

static void write_vectors(struct area *area, const struct host_context *host)
{
    enum { STRIDE = CONTEXT_VECTOR_BYTES };
    uint32_t level = host->head.vector_level;
    if (level >= CONTEXT_LEVEL_SSE)
        write_component(area, COMPONENT_SSE, FXSAVE_XMM0, host->vectors, STRIDE, 16, 16);
    if (level >= CONTEXT_LEVEL_AVX)
        write_component(area, COMPONENT_AVX, area->avx, host->vectors[0] + 16, STRIDE, 16, 16);
    if (level >= CONTEXT_LEVEL_AVX512) {
        write_component(area, COMPONENT_MASKS, area->masks, host->masks, 8, 8, 8);
        write_component(area, COMPONENT_ZMM_UPPER, area->zmm_upper, host->vectors[0] + 32, STRIDE,
                        32, 16);
        write_component(area, COMPONENT_ZMM_16, area->zmm_16, host->vectors[16], STRIDE, 64, 16);
    }
    if (area->has_header)
        memcpy(area->bytes + HEADER_XSTATE_BV, &area->in_use, sizeof area->in_use);
}

/* ---- Signal frames ---- */

enum cairn_status arch_host_from_signal(struct cairn_context *context, const void *ucontext,
                                        struct cairn_error *error)
{
    struct host_context *host = (struct host_context *)context;
    struct area area;
    host->head = (struct arch_context_head){.vector_level = 0};
    enum cairn_status status = find_area(ucontext, &area, error);
    if (status != CAIRN_OK)
        return status;
    arch_read_signal(context, ucontext);
    host->head.present[0] = CONTEXT_PRESENT_GENERAL;
    if (area.level == 0)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the signal frame has no vector registers");
    read_vectors(&area, host);
    return CAIRN_OK;
}

enum cairn_status arch_host_to_signal(const struct cairn_context *context, void *ucontext,
                                      struct cairn_error *error)
{
    const struct host_context *host = (const struct host_context *)context;
    struct area area;
    enum cairn_status status = find_area(ucontext, &area, error);
    if (status != CAIRN_OK)
        return status;
    if (area.level < host->head.vector_level)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the context has vector registers of %u bytes, the signal frame of %u",
                         vector_bytes[host->head.vector_level], vector_bytes[area.level]);
    arch_write_signal(context, ucontext);
    if (area.level == 0)
        return CAIRN_OK;
    if ((host->head.present[1] & CONTEXT_PRESENT_CONTROL) != 0)
        memcpy(area.bytes + FXSAVE_MXCSR, &host->head.control, sizeof host->head.control);
    write_vectors(&area, host);
    return CAIRN_OK;
}
