/*
 * AArch64: recognising LLVM's code for patch points, and the instructions of armed ones.
 *
 * The patch word is one instruction: B, BL or NOP. The architecture allows a single store to
 * replace these while another core executes them. So every region of 4 bytes has a place for the
 * patch word.
 *
 * LLVM loads only the lower 48 bits of a call's target. It treats a target that is a symbol as a
 * number: LLVM 14 to 19 emit the address of their own description of the symbol as the immediate,
 * so that the recognised call has an invalid target. A target must be an immediate, or null and
 * patched later.
 *
 * Sources: Arm Architecture Reference Manual for A-profile architecture (DDI 0487), section
 * "Concurrent modification and execution of instructions" and the descriptions of the instructions;
 * Procedure Call Standard for the Arm 64-bit Architecture, section "General-purpose Registers"
 * (x16, x17); LLVM, lib/Target/AArch64/AArch64AsmPrinter.cpp, LowerPATCHPOINT.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/aarch64/target.h"

#include "arch/features.h"
#include "arch/registers.h"
#include "arch/relocation.h"

#include <assert.h>

enum { VENEER_BYTES = 16, EXIT_BYTES = 24, PAGE_BITS = 12, ADRP_BITS = 21 };
enum { INLINE_BYTES_MIN = 5 * WORDS_BYTES }; /* ldr, sub, cbz, b, ldr */

#define NOP UINT32_C(0xD503201F)
#define BTI_C UINT32_C(0xD503245F)
#define BRK UINT32_C(0xD4200000)
#define BRANCH UINT32_C(0x14000000)
#define BRANCH_WITH_LINK UINT32_C(0x94000000)

#define REACH_BYTES ((size_t)128 << 20)
#define SLAB_BYTES_DEFAULT REACH_BYTES

/* ---- Calls ---- */

static const struct words_pattern calls[] = {
    {0xFC000000, 0x94000000, "bl"},
    {0xFFFFFC1F, 0xD63F0000, "blr"},
};

/* ---- Instructions that may change while another core executes them ---- */

/* B, BL, BRK, HVC, ISB, NOP, SMC, SVC. Recent issues of the manual add B.cond, CBZ, CBNZ, TBZ and
 * TBNZ; processors designed to an earlier issue do not guarantee anything for these. Source: Arm
 * Architecture Reference Manual for A-profile architecture (DDI 0487, issue K.a), B2.2.5,
 * "Concurrent modification and execution of instructions". */
static const struct words_pattern exchangeable[] = {
    {0xFC000000, BRANCH, "b"},       {0xFC000000, BRANCH_WITH_LINK, "bl"},
    {0xFFE0001F, 0xD4200000, "brk"}, {0xFFE0001F, 0xD4000002, "hvc"},
    {0xFFFFF0FF, 0xD50330DF, "isb"}, {0xFFFFFFFF, NOP, "nop"},
    {0xFFE0001F, 0xD4000003, "smc"}, {0xFFE0001F, 0xD4000001, "svc"},
};

/* ---- LLVM's call ---- */

static const struct words_pattern far_call[] = {
    {0xFFE0001F, 0xD2C00010, "movz x16, #, lsl #32"},
    {0xFFE0001F, 0xF2A00010, "movk x16, #, lsl #16"},
    {0xFFE0001F, 0xF2800010, "movk x16, #"},
    {0xFFFFFFFF, 0xD63F0200, "blr x16"},
};

static const struct words_target words = {
    .nop = NOP,
    .call = BRANCH_WITH_LINK,
    .jump = BRANCH,
    .displacement_bits = 26,
    .displacement_shift = 0,
    .calls = calls,
    .call_count = sizeof calls / sizeof *calls,
    .exchangeable = exchangeable,
    .exchangeable_count = sizeof exchangeable / sizeof *exchangeable,
    .far_call = far_call,
    .far_call_count = sizeof far_call / sizeof *far_call,
};

/* ---- Stubs ---- */

uint32_t aarch64_in_page(uint64_t address)
{
    return (uint32_t)address & ((UINT32_C(1) << PAGE_BITS) - 1);
}

bool aarch64_append_page(struct words_code *code, uint32_t general, uint64_t target)
{
    uint64_t address = code->address + code->size;
    int64_t pages = (int64_t)(target >> PAGE_BITS) - (int64_t)(address >> PAGE_BITS);
    int64_t reach = INT64_C(1) << (ADRP_BITS - 1);
    if (pages < -reach || pages >= reach)
        return false;
    uint32_t low = (uint32_t)pages & 3;
    uint32_t high = (uint32_t)(pages >> 2) & 0x7FFFF;
    words_append(code, UINT32_C(0x90000000) | low << 29 | high << 5 | general);
    return true;
}

/*
 * Writes `bti c; adrp x16, slot; ldr x16, [x16, #slot]; br x16`. A load of a literal would take
 * only two instructions, but it reaches 1 MiB, which is less than a slab. The procedure call
 * standard reserves x16 for this purpose, LLVM assumes that patch points and stack maps clobber it,
 * and a BR through it may land on `bti c`.
 */
static bool encode_veneer(const struct cairn_arch *arch, uint64_t address, uint64_t slot_address,
                          uint8_t *code)
{
    struct words_code out = {.arch = arch, .bytes = code, .address = address};
    uint32_t slot = aarch64_in_page(slot_address) / (uint32_t)sizeof(uint64_t);
    const uint32_t load_and_branch[] = {UINT32_C(0xF9400210) | slot << 10, 0xD61F0200};
    assert(slot_address % sizeof(uint64_t) == 0);
    words_append(&out, BTI_C);
    if (!aarch64_append_page(&out, 16, slot_address))
        return false;
    words_append_all(&out, load_and_branch, sizeof load_and_branch);
    return true;
}

static uint64_t veneer_slot(const struct cairn_arch *arch, uint64_t address, bool is_framed,
                            const uint8_t *code)
{
    uint32_t page = words_read(arch, code + WORDS_BYTES);
    uint32_t load = words_read(arch, code + 2 * (size_t)WORDS_BYTES);
    uint32_t pages = (page >> 5 & 0x7FFFF) << 2 | (page >> 29 & 3);
    uint64_t distance =
        ((uint64_t)pages ^ UINT64_C(1) << (ADRP_BITS - 1)) - (UINT64_C(1) << (ADRP_BITS - 1));
    (void)is_framed;
    address += WORDS_BYTES;
    return (((address >> PAGE_BITS) + distance) << PAGE_BITS) +
           (load >> 10 & 0xFFF) * sizeof(uint64_t);
}

/* Writes `bti c; adrp x16, data; add x16, x16, #data; ldr x17, [x16]; br x17`, which passes the
 * data's address in x16, and a brk as padding. The ABI reserves both registers for this purpose,
 * and LLVM assumes that both are clobbered. */
static bool encode_exit(const struct cairn_arch *arch, uint64_t address, uint64_t data_address,
                        uint8_t *code)
{
    _Static_assert(ARCH_EXIT_ENTRY == 0, "the load has no offset");
    struct words_code out = {.arch = arch, .bytes = code, .address = address};
    const uint32_t pass_and_branch[] = {UINT32_C(0x91000210) | aarch64_in_page(data_address) << 10,
                                        0xF9400211, 0xD61F0220, BRK};
    assert(data_address % sizeof(uint64_t) == 0);
    words_append(&out, BTI_C);
    if (!aarch64_append_page(&out, 16, data_address))
        return false;
    words_append_all(&out, pass_and_branch, sizeof pass_and_branch);
    return true;
}

/* `nop; mov sp, x29; ldp x29, x30, [sp], #16; ret` */
enum { ENTRY_RETURN = 4, ENTRY_LEFT = 12, ENTRY_BYTES = 16 };

static void encode_entry(const struct cairn_arch *arch, uint8_t *code)
{
    static const uint32_t entry[] = {NOP, 0x910003BF, 0xA8C17BFD, 0xD65F03C0};
    struct words_code out = {.arch = arch, .bytes = code};
    words_append_all(&out, entry, sizeof entry);
}

/* `mov w0, #value; ret` */
static size_t encode_self_test(const struct cairn_arch *arch, int value, uint8_t *code)
{
    struct words_code out = {.arch = arch, .bytes = code};
    words_append(&out, UINT32_C(0x52800000) | (uint32_t)value << 5);
    words_append(&out, 0xD65F03C0);
    return out.size;
}

/* ---- Unwinding ---- */

/* The stack pointer and the return address, in the order of ARCH_UNWIND_STACK_POINTER and so on;
 * x19 to x29, and d8 to d15, the lower halves of v8 to v15. Source: Procedure Call Standard for the
 * Arm 64-bit Architecture, "Registers". */
static const struct arch_unwind_slot unwind_slots[] = {
    {31, 0}, {30, 0}, {19, 0}, {20, 0}, {21, 0}, {22, 0}, {23, 0},
    {24, 0}, {25, 0}, {26, 0}, {27, 0}, {28, 0}, {29, 0}, {72, 0},
    {73, 0}, {74, 0}, {75, 0}, {76, 0}, {77, 0}, {78, 0}, {79, 0}};

const struct cairn_arch aarch64_arch = {
    .architecture = CAIRN_ARCHITECTURE_AARCH64,
    .byte_order = CAIRN_LITTLE_ENDIAN,
    .registers = &aarch64_registers,
    .relocations = &aarch64_relocations,
    .features = &aarch64_features,
    .word_bytes = WORDS_BYTES,
    .instruction_bytes = WORDS_BYTES,
    .instruction_bytes_max = WORDS_BYTES,
    .fixed_instruction_bytes = WORDS_BYTES,
    .words = &words,
    .call_bytes = WORDS_BYTES,
    .reach_bytes = REACH_BYTES,
    .slab_bytes_default = SLAB_BYTES_DEFAULT,
    .landing_pad = {WORDS_BYTES, {0x5F, 0x24, 0x03, 0xD5}}, /* BTI_C */
    .veneer_bytes = VENEER_BYTES,
    .veneer_alignment = VENEER_BYTES,
    .exit_bytes = EXIT_BYTES,
    .unwind_slots = unwind_slots,
    .unwind_slot_count = sizeof unwind_slots / sizeof *unwind_slots,
    .has_link_register = true,
    .signs_return_addresses = true,
    .results = {.general = {0, 1}, .floating = {64, 65}, .vector = {64, 65}},
    .arguments = {.general = {0, 1, 2, 3, 4, 5, 6, 7},
                  .general_count = 8,
                  .floating = 64,
                  .floating_count = 8,
                  .vector = 64,
                  .vector_count = 8,
                  .pair = ARCH_PAIR_EVEN,
                  .structures = ARCH_STRUCTURES_OF_ONE_KIND},
    .entry_frame = {.code_bytes = ENTRY_BYTES,
                    .return_offset = ENTRY_RETURN,
                    .frame_register = 29,
                    .cfa_offset = 16,
                    .left_offset = ENTRY_LEFT,
                    .left_cfa_offset = 0,
                    .saved_count = 2,
                    .saved = {{29, -2}, {30, -1}}},
    .recognise = words_recognise,
    .place = words_place,
    .arm = words_arm,
    .encode_branch = words_encode_branch,
    .decode_branch = words_decode_branch,
    .fill_nops = words_fill_nops,
    .leading_nops = words_leading_nops,
    .call_length = words_call_length,
    .may_be_exchanged = words_may_be_exchanged,
    .encode_veneer = encode_veneer,
    .veneer_slot = veneer_slot,
    .encode_exit = encode_exit,
    .encode_entry = encode_entry,
    .inline_bytes_min = INLINE_BYTES_MIN,
    .miss_bytes = WORDS_BYTES,
    .encode_self_test = encode_self_test,
};
