/*
 * PPC64: the places of registers in contexts and in signal frames.
 *
 * The floating-point registers of a signal frame are the first doublewords of vs0 to vs31. At the
 * end of the frame, if the processor has AltiVec, are vs32 to vs63, VSCR and VRSAVE. If it has VSX,
 * the second doublewords of vs0 to vs31 follow these. Bits of the frame's MSR tell which of these
 * registers are valid. If a bit is clear, the thread has not used such registers, and they are
 * zero. The kernel checks the same bits when the handler returns.
 *
 * Sources: Linux, arch/powerpc/include/uapi/asm/sigcontext.h and arch/powerpc/kernel/signal_64.c;
 * 64-Bit ELF V2 ABI Specification, section "DWARF Register Number Mapping"; LLVM,
 * lib/Target/PowerPC/PPCRegisterInfo.td (vector-scalar registers).
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/ppc64/context.h"

#include "arch/arch.h"
#include "base/error.h"

#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

enum {
    DWARF_R1 = 1,
    R13 = 13, /* the thread pointer */
    DWARF_F0 = 32,
    DWARF_F0_END = 64,
    DWARF_CR = 64,
    DWARF_LR = 65,
    DWARF_CTR = 66,
    DWARF_CR0 = 68,
    DWARF_CR7 = 75,
    DWARF_XER = 76,
    DWARF_V0 = 77,
    DWARF_V0_END = 109,

    REGISTERS = 32, /* of each kind */

    /* Indexes in a signal frame's gp_regs, after the general registers. */
    FRAME_NIP = 32,
    FRAME_MSR = 33,
    FRAME_CTR = 35,
    FRAME_LR = 36,
    FRAME_XER = 37,
    FRAME_CR = 38,
    FRAME_FPSCR = 32, /* in fp_regs */

    FIRST_FLAG = 31, /* highest bit of CR, counted from its lowest bit */
    FLAGS_IN_FIELD = 4
};

/* ---- Registers ---- */

static struct arch_register integer(size_t offset)
{
    return (struct arch_register){.offset = offset, .bytes = 8, .form = ARCH_REGISTER_INTEGER};
}

/* A field of CR has the place of CR, because frames save CR as a whole, under the number of one of
 * its fields. With ELFv1, the unwind rule for field 2 applies to all three callee-saved fields. */
static struct arch_register field(unsigned number)
{
    struct arch_register found = integer(CONTEXT_CR);
    found.first_flag = (uint8_t)(FIRST_FLAG - FLAGS_IN_FIELD * number);
#if _CALL_ELF == 2
    found.saved_flags = UINT32_C(0xF0000000) >> FLAGS_IN_FIELD * number;
#else
    found.saved_flags = UINT32_C(0x00FFF000);
#endif
    return found;
}

static struct arch_register floating(size_t index, uint32_t level)
{
    if (level < CONTEXT_LEVEL_VSX)
        return integer(CONTEXT_VS(index));
    return (struct arch_register){.offset = CONTEXT_VS(index),
                                  .bytes = CONTEXT_VECTOR_BYTES,
                                  .form = ARCH_REGISTER_DOUBLEWORDS};
}

bool arch_host_register(const struct cairn_context *context, uint16_t dwarf,
                        struct arch_register *found)
{
    uint32_t level = ((const struct host_context *)context)->head.vector_level;
    if (dwarf < REGISTERS)
        *found = integer(CONTEXT_R((size_t)dwarf));
    else if (dwarf < DWARF_F0_END && level >= CONTEXT_LEVEL_FLOAT)
        *found = floating((size_t)dwarf - DWARF_F0, level);
    else if (dwarf >= DWARF_V0 && dwarf < DWARF_V0_END && level >= CONTEXT_LEVEL_ALTIVEC)
        *found = (struct arch_register){.offset = CONTEXT_VS(REGISTERS + (size_t)dwarf - DWARF_V0),
                                        .bytes = CONTEXT_VECTOR_BYTES,
                                        .form = ARCH_REGISTER_QUADWORD};
    else if (dwarf == DWARF_CR)
        *found = integer(CONTEXT_CR);
    else if (dwarf >= DWARF_CR0 && dwarf <= DWARF_CR7)
        *found = field(dwarf - DWARF_CR0);
    else if (dwarf == DWARF_LR)
        *found = integer(CONTEXT_LR);
    else if (dwarf == DWARF_CTR)
        *found = integer(CONTEXT_CTR);
    else if (dwarf == DWARF_XER)
        *found = integer(CONTEXT_XER);
    else
        return false;
    return true;
}

#define IN_SIGNAL(index) offsetof(ucontext_t, uc_mcontext.gp_regs[index])

/* With and without VSX, the offsets are those of the first doublewords of vs0 to vs31. */
const struct arch_context_layout arch_host_layout = {
    .stack_pointer = DWARF_R1,
    .entered_bytes = sizeof(struct host_context),
    .scalars_end = DWARF_F0_END,
    .floats_are_doubles = true,
    .offsets = {ARCH_OFFSETS_OF_16(0, CONTEXT_R(0), 8), ARCH_OFFSETS_OF_16(16, CONTEXT_R(16), 8),
                ARCH_OFFSETS_OF_16(DWARF_F0, CONTEXT_VS(0), CONTEXT_VECTOR_BYTES),
                ARCH_OFFSETS_OF_16(DWARF_F0 + 16, CONTEXT_VS(16), CONTEXT_VECTOR_BYTES),
                [DWARF_LR] = CONTEXT_LR, [DWARF_CTR] = CONTEXT_CTR, [DWARF_XER] = CONTEXT_XER,
                ARCH_OFFSETS_OF_16(DWARF_V0, CONTEXT_VS(32), CONTEXT_VECTOR_BYTES),
                ARCH_OFFSETS_OF_16(DWARF_V0 + 16, CONTEXT_VS(48), CONTEXT_VECTOR_BYTES)},
    .in_signal = {ARCH_OFFSETS_OF_16(0, IN_SIGNAL(0), 8),
                  ARCH_OFFSETS_OF_16(16, IN_SIGNAL(16), 8), [DWARF_LR] = IN_SIGNAL(FRAME_LR),
                  [DWARF_CTR] = IN_SIGNAL(FRAME_CTR), [DWARF_XER] = IN_SIGNAL(FRAME_XER)},
    .pc_in_signal = IN_SIGNAL(FRAME_NIP),
    .flags_in_signal = IN_SIGNAL(FRAME_CR),
    .flags_mask = UINT64_MAX,
};

/* Return addresses are never signed on PPC64. */
uint64_t arch_host_strip_return_address(uint64_t address) { return address; }

/* ---- Entering a function ---- */

/* Size of the start of a frame, from the back chain to the arguments, and minimum size of the
 * arguments. */
#if _CALL_ELF == 2
enum { HEADER_BYTES = 32 };
#else
enum { HEADER_BYTES = 48 };
#endif
enum {
    PLACES_BYTES_MIN = 64,
    SAVED_BYTES = 16, /* r2 and r31, at the end of the frame */
    SAVED_R31 = -8,
    SAVED_R2 = -16,
    SAVED_LR = 16, /* in the caller's frame */
    STACK_ALIGNMENT = 16
};

static void store(uint64_t address, uint64_t value)
{
    memcpy((void *)(uintptr_t)address, &value, sizeof value);
}

size_t arch_host_entry_reach(size_t stack_bytes)
{
    size_t places = stack_bytes < PLACES_BYTES_MIN ? (size_t)PLACES_BYTES_MIN : stack_bytes;
    size_t frame = HEADER_BYTES + places + SAVED_BYTES;
    return (frame + STACK_ALIGNMENT - 1) & ~(size_t)(STACK_ALIGNMENT - 1);
}

/* There is always a frame, which saves the TOC pointer. */
void arch_host_enter(struct cairn_context *context, const struct arch_entry *entry)
{
    struct host_context *host = (struct host_context *)context;
    uint64_t caller = host->general[DWARF_R1];
    uint64_t frame = caller - arch_host_entry_reach(entry->stack_bytes);
    store(caller + SAVED_LR, host->head.pc);
    store(caller + (uint64_t)SAVED_R31, host->general[31]);
    store(caller + (uint64_t)SAVED_R2, host->general[2]);
    store(frame, caller);
    memcpy((void *)(uintptr_t)(frame + HEADER_BYTES), entry->stack, entry->stack_bytes);
    host->general[DWARF_R1] = frame;
    host->general[31] = caller;
    /* LR */
    host->head.unused[0] = entry->code + arch_host()->entry_frame.return_offset;
    /* The program counter, and the registers that the code there reads */
#if _CALL_ELF == 2
    host->general[11] = (uintptr_t)entry->function;
    host->head.pc = entry->code;
#else
    uint64_t descriptor[3];
    memcpy(descriptor, entry->function, sizeof descriptor);
    host->general[2] = descriptor[1];
    host->general[11] = descriptor[2];
    host->head.pc = descriptor[0];
#endif
}

/* ---- Vector levels ---- */

#define HAS_ALTIVEC 0x10000000UL
#define HAS_VSX 0x00000080UL

uint32_t arch_host_vector_level(void)
{
    unsigned long capabilities = getauxval(AT_HWCAP);
    if ((capabilities & HAS_VSX) != 0)
        return CONTEXT_LEVEL_VSX;
    return (capabilities & HAS_ALTIVEC) != 0 ? CONTEXT_LEVEL_ALTIVEC : CONTEXT_LEVEL_FLOAT;
}

/* ---- Vector registers of a signal frame ---- */

#define MSR_ALTIVEC (UINT64_C(1) << 25)
#define MSR_VSX (UINT64_C(1) << 23)

enum { ALTIVEC_BYTES = 34 * CONTEXT_VECTOR_BYTES /* includes VSCR and VRSAVE */ };

static uint8_t *altivec_of(const mcontext_t *frame) { return (uint8_t *)frame->v_regs; }

/* Returns the level of vector registers that the frame can hold. */
static uint32_t level_of(const mcontext_t *frame)
{
    uint32_t level = arch_host_vector_level();
    return altivec_of(frame) == NULL ? CONTEXT_LEVEL_FLOAT : level;
}

/* Copies the registers, or zeros if they are not in use. */
static void read_or_clear(void *to, const uint8_t *from, size_t size, bool in_use)
{
    if (in_use)
        memcpy(to, from, size);
    else
        memset(to, 0, size);
}

static void read_vectors(const mcontext_t *frame, struct host_context *host)
{
    const uint8_t *altivec = altivec_of(frame);
    uint64_t msr = frame->gp_regs[FRAME_MSR];
    uint32_t level = level_of(frame);
    for (size_t i = 0; i < REGISTERS; i++) {
        memcpy(&host->vectors[i][0], &frame->fp_regs[i], sizeof(uint64_t));
        if (level == CONTEXT_LEVEL_VSX)
            read_or_clear(&host->vectors[i][1], altivec + ALTIVEC_BYTES + i * sizeof(uint64_t),
                          sizeof(uint64_t), (msr & MSR_VSX) != 0);
    }
    memcpy(&host->fpscr, &frame->fp_regs[FRAME_FPSCR], sizeof host->fpscr);
    host->head.vector_level = level;
    host->head.present[0] |= CONTEXT_PRESENT_FLOAT;
    if (level == CONTEXT_LEVEL_FLOAT)
        return;
    read_or_clear(host->vectors[REGISTERS], altivec, (size_t)REGISTERS * CONTEXT_VECTOR_BYTES,
                  (msr & MSR_ALTIVEC) != 0);
    host->head.present[1] |= CONTEXT_PRESENT_VECTORS;
}

/* Marks the registers of the level as in use. Those that were not in use become zero. */
static void use_vectors(mcontext_t *frame, uint32_t level)
{
    uint8_t *altivec = altivec_of(frame);
    uint64_t msr = frame->gp_regs[FRAME_MSR];
    if (level >= CONTEXT_LEVEL_ALTIVEC && (msr & MSR_ALTIVEC) == 0)
        memset(altivec, 0, ALTIVEC_BYTES);
    if (level >= CONTEXT_LEVEL_VSX && (msr & MSR_VSX) == 0)
        memset(altivec + ALTIVEC_BYTES, 0, REGISTERS * sizeof(uint64_t));
    if (level >= CONTEXT_LEVEL_ALTIVEC)
        msr |= MSR_ALTIVEC;
    if (level >= CONTEXT_LEVEL_VSX)
        msr |= MSR_VSX;
    frame->gp_regs[FRAME_MSR] = msr;
}

static void write_vectors(mcontext_t *frame, const struct cairn_context *context)
{
    const struct host_context *host = (const struct host_context *)context;
    uint32_t level = host->head.vector_level;
    use_vectors(frame, level);
    for (uint16_t i = 0; i < REGISTERS; i++) {
        bool has_float = arch_context_has(context, DWARF_F0 + i);
        if (has_float)
            memcpy(&frame->fp_regs[i], &host->vectors[i][0], sizeof(uint64_t));
        if (has_float && level == CONTEXT_LEVEL_VSX)
            memcpy(altivec_of(frame) + ALTIVEC_BYTES + i * sizeof(uint64_t), &host->vectors[i][1],
                   sizeof(uint64_t));
        if (level >= CONTEXT_LEVEL_ALTIVEC && arch_context_has(context, DWARF_V0 + i))
            memcpy(altivec_of(frame) + (size_t)i * CONTEXT_VECTOR_BYTES,
                   host->vectors[REGISTERS + i], CONTEXT_VECTOR_BYTES);
    }
    memcpy(&frame->fp_regs[FRAME_FPSCR], &host->fpscr, sizeof host->fpscr);
}

/* ---- Signal frames ---- */

enum cairn_status arch_host_from_signal(struct cairn_context *context, const void *ucontext,
                                        struct cairn_error *error)
{
    struct host_context *host = (struct host_context *)context;
    const mcontext_t *frame = &((const ucontext_t *)ucontext)->uc_mcontext;
    host->head = (struct arch_context_head){.vector_level = 0};
    arch_read_signal(context, ucontext);
    host->head.present[0] = CONTEXT_PRESENT_GENERAL;
    host->head.present[1] = CONTEXT_PRESENT_SPECIAL;
    read_vectors(frame, host);
    if (altivec_of(frame) == NULL && arch_host_vector_level() > CONTEXT_LEVEL_FLOAT)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the signal frame has no record of the vector registers");
    return CAIRN_OK;
}

enum cairn_status arch_host_to_signal(const struct cairn_context *context, void *ucontext,
                                      struct cairn_error *error)
{
    const struct host_context *host = (const struct host_context *)context;
    mcontext_t *frame = &((ucontext_t *)ucontext)->uc_mcontext;
    uint64_t thread_pointer = frame->gp_regs[R13];
    if (host->head.vector_level > level_of(frame))
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the context has vector registers that the signal frame has no record of");
    arch_write_signal(context, ucontext);
    frame->gp_regs[R13] = thread_pointer;
    if (host->head.vector_level != 0)
        write_vectors(frame, context);
    return CAIRN_OK;
}
