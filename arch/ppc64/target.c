/*
 * PPC64, ABIs ELFv2 and ELFv1: recognising LLVM's code for patch points, and the instructions of
 * armed ones. The tables at the end contain the differences between the ABIs.
 *
 * The patch word is one instruction: `b`, `bl` or the preferred no-op. The architecture allows
 * changing these into each other while other processors execute them ("patch class").
 *
 * THE TOC. r2 points to the table of contents of the module, and a callee in another module has
 * another one. So the armed form is three instructions:
 *
 *     std r2, save(r1)        save: 24 with ELFv2, 40 with ELFv1
 *     bl / b / nop            the patch word
 *     ld r2, save(r1)
 *
 * This takes 12 bytes. Every region has this form, including that of a null target: LLVM's no-ops
 * have neither the save nor the reload, so that a call into another module would return with r2 of
 * that module. The save and the reload are executed whatever the patch word is. So a thread that is
 * stopped anywhere in the region, or in a callee, reloads the value that it has stored itself.
 * Together they change nothing, whatever r2 holds. The slot is in the function's own frame: LLVM
 * gives every function with a patch point or a stack map a frame, and uses the slot only for r2.
 * The target of a jump finds in the slot the r2 of the function that the jump left.
 *
 * The instruction of a stack map has no space for the save and the reload around it. A call in its
 * place calls a framed veneer, which contains both; a jump reaches a veneer that saves r2, as an
 * armed region does.
 *
 * THE PLACE OF LLVM'S RELOAD. LLVM emits 4 bytes more than requested (llvm-project #177453), so
 * with a region of the smallest size the reload follows the region. The armed form is completely
 * inside the region. If the reload after the region is also executed, it loads the same value
 * again.
 *
 * TARGETS. For a target that is a symbol, LLVM emits `bl` and a no-op, which a linker replaces by
 * the reload if it inserts a stub that saves r2. The target of this call is the address of an
 * instruction (`is_direct`): with ELFv2 possibly past the entry that sets up r2; with ELFv1 not a
 * descriptor. All other targets are called through a veneer: the entry that an ELFv2 function
 * pointer points to computes its TOC pointer from its own address in r12, and with ELFv1 the TOC
 * pointer is in the descriptor.
 *
 * Sources: Power ISA, Book I (the instructions) and Book II, section "Concurrent Modification and
 * Execution of Instructions"; 64-Bit ELF V2 ABI Specification, sections "Function Call Linkage
 * Protocols" and "The Stack Frame"; 64-bit PowerPC ELF Application Binary Interface Supplement
 * (ELFv1), sections "Function Descriptors" and "Function Calling Sequence"; LLVM,
 * lib/Target/PowerPC/PPCAsmPrinter.cpp, LowerPATCHPOINT.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/ppc64/target.h"

#include "arch/features.h"
#include "arch/registers.h"
#include "arch/relocation.h"

#include <assert.h>

enum {
    CALL_BYTES = 3 * WORDS_BYTES,
    INLINE_BYTES_MIN = 6 * WORDS_BYTES, /* lwz, addi, mtctr, bdz, b, ld */

    VENEER_ALIGNMENT = 16,
    EXIT_BYTES = 48,
    ELFV2_VENEER_BYTES = 32,
    ELFV1_VENEER_BYTES = 48,
    ELFV2_FRAMED_VENEER_BYTES = 80,
    ELFV1_FRAMED_VENEER_BYTES = 112,

    /* The frame of a framed veneer: the ABI's header, space for 8 parameters of a callee, and two
     * doublewords for CTR and r11. */
    ELFV2_FRAME_BYTES = 112,
    ELFV1_FRAME_BYTES = 128,
    CTR_BELOW_END = 16,
    R11_BELOW_END = 8,
    LINK_SAVE = 16,

    ELFV2_TOC_SAVE = 24,
    ELFV1_TOC_SAVE = 40,

    /* Bytes from the start of a framed veneer to the return address of its call. */
    ELFV2_FRAMED_RETURN = 13 * WORDS_BYTES,
    ELFV1_FRAMED_RETURN = 17 * WORDS_BYTES,

    /* From its start to the first instruction with the frame, with r2 in it, and after it. */
    FRAMED_MADE = 3 * WORDS_BYTES,
    FRAMED_SAVED = 4 * WORDS_BYTES,
    ELFV2_FRAMED_LEFT = 17 * WORDS_BYTES,
    ELFV1_FRAMED_LEFT = 22 * WORDS_BYTES,

    DWARF_TOC = 2,
    DWARF_R11 = 11,
    DWARF_CTR = 66
};

#define NOP UINT32_C(0x60000000)
#define BRANCH UINT32_C(0x48000000)
#define BRANCH_WITH_LINK UINT32_C(0x48000001)
#define MTCTR_R12 UINT32_C(0x7D8903A6)

#define SAVE_TOC(offset) (UINT32_C(0xF8410000) | (uint32_t)(offset)) /* std r2, offset(r1) */
#define LOAD_TOC(offset) (UINT32_C(0xE8410000) | (uint32_t)(offset)) /* ld r2, offset(r1) */
#define SAVE_R11(offset) (UINT32_C(0xF9610000) | (uint32_t)(offset)) /* std r11, offset(r1) */
#define LOAD_R11(offset) (UINT32_C(0xE9610000) | (uint32_t)(offset)) /* ld r11, offset(r1) */
#define SAVE_R12(offset) (UINT32_C(0xF9810000) | (uint32_t)(offset)) /* std r12, offset(r1) */
#define LOAD_R12(offset) (UINT32_C(0xE9810000) | (uint32_t)(offset)) /* ld r12, offset(r1) */
#define MAKE_FRAME(bytes) (UINT32_C(0xF8210001) | (-(uint32_t)(bytes)&0xFFFC)) /* stdu r1 */
#define LEAVE_FRAME(bytes) (UINT32_C(0x38210000) | (uint32_t)(bytes)) /* addi r1, r1, bytes */

#define REACH_BYTES ((size_t)32 << 20)
#define SLAB_BYTES_DEFAULT REACH_BYTES

/* ---- Calls ---- */

static const struct words_pattern calls[] = {
    {0xFC000001, 0x48000001, "bl"},
    {0xFC0007FF, 0x4C000421, "bctrl"},
};

/* ---- Instructions that may change while another core executes them ---- */

/* The "patch class": I-form branches (b, ba, bl, bla), and the preferred no-op. Source: Power ISA
 * (version 3.0B), Book II, "Concurrent Modification and Execution of Instructions". */
static const struct words_pattern exchangeable[] = {
    {0xFC000000, BRANCH, "b"},
    {0xFFFFFFFF, NOP, "nop"},
};

/* ---- LLVM's call ---- */

static const struct words_pattern elfv2_far_call[] = {
    {0xFFFF0000, 0x39800000, "li r12, #"},
    {0xFFFFFFFF, 0x798C040A, "rldic r12, r12, 32, 16"},
    {0xFFFF0000, 0x658C0000, "oris r12, r12, #"},
    {0xFFFF0000, 0x618C0000, "ori r12, r12, #"},
    {0xFFFFFFFF, SAVE_TOC(ELFV2_TOC_SAVE), "std r2, save(r1)"},
    {0xFFFFFFFF, 0x7D8903A6, "mtctr r12"},
    {0xFFFFFFFF, 0x4E800421, "bctrl"},
    {0xFFFFFFFF, LOAD_TOC(ELFV2_TOC_SAVE), "ld r2, save(r1)"},
};

static const struct words_pattern elfv1_far_call[] = {
    {0xFFFF0000, 0x39800000, "li r12, #"},
    {0xFFFFFFFF, 0x798C040A, "rldic r12, r12, 32, 16"},
    {0xFFFF0000, 0x658C0000, "oris r12, r12, #"},
    {0xFFFF0000, 0x618C0000, "ori r12, r12, #"},
    {0xFFFFFFFF, SAVE_TOC(ELFV1_TOC_SAVE), "std r2, save(r1)"},
    {0xFFFFFFFF, 0xE84C0008, "ld r2, 8(r12)"},
    {0xFFFFFFFF, 0xE98C0000, "ld r12, 0(r12)"},
    {0xFFFFFFFF, 0x7D8903A6, "mtctr r12"},
    {0xFFFFFFFF, 0x4E800421, "bctrl"},
    {0xFFFFFFFF, LOAD_TOC(ELFV1_TOC_SAVE), "ld r2, save(r1)"},
};

static const struct words_target elfv2_words = {
    .nop = NOP,
    .call = BRANCH_WITH_LINK,
    .jump = BRANCH,
    .displacement_bits = 24,
    .displacement_shift = 2,
    .calls = calls,
    .call_count = sizeof calls / sizeof *calls,
    .exchangeable = exchangeable,
    .exchangeable_count = sizeof exchangeable / sizeof *exchangeable,
    .far_call = elfv2_far_call,
    .far_call_count = sizeof elfv2_far_call / sizeof *elfv2_far_call,
    .save = SAVE_TOC(ELFV2_TOC_SAVE),
    .reload = LOAD_TOC(ELFV2_TOC_SAVE),
};

static const struct words_target elfv1_words = {
    .nop = NOP,
    .call = BRANCH_WITH_LINK,
    .jump = BRANCH,
    .displacement_bits = 24,
    .displacement_shift = 2,
    .calls = calls,
    .call_count = sizeof calls / sizeof *calls,
    .exchangeable = exchangeable,
    .exchangeable_count = sizeof exchangeable / sizeof *exchangeable,
    .far_call = elfv1_far_call,
    .far_call_count = sizeof elfv1_far_call / sizeof *elfv1_far_call,
    .save = SAVE_TOC(ELFV1_TOC_SAVE),
    .reload = LOAD_TOC(ELFV1_TOC_SAVE),
};

/* ---- Stubs ---- */

/* The address is absolute, because only POWER10 and later have PC-relative instructions. */
void ppc64_append_address(struct words_code *code, uint64_t address, uint32_t last)
{
    /* The lower part is sign-extended when it is added, so the upper parts compensate for its
     * sign. */
    uint64_t low = address & 0xFFFF;
    uint64_t rest = address - ((low ^ 0x8000) - 0x8000);
    const uint32_t load[] = {
        0x3D800000 | (uint32_t)(rest >> 48 & 0xFFFF), /* lis r12, # */
        0x618C0000 | (uint32_t)(rest >> 32 & 0xFFFF), /* ori r12, r12, # */
        0x798C07C6,                                   /* sldi r12, r12, 32 */
        0x658C0000 | (uint32_t)(rest >> 16 & 0xFFFF), /* oris r12, r12, # */
        last | (uint32_t)low,
    };
    _Static_assert(sizeof load == PPC64_ADDRESS_BYTES, "one size for all addresses");
    words_append_all(code, load, sizeof load);
}

void ppc64_append_entering(struct words_code *code)
{
    static const uint32_t by_descriptor[] = {
        0xE96C0000, /* ld r11, 0(r12): the entry's address */
        0xE84C0008, /* ld r2, 8(r12): the TOC pointer */
        0x7D6903A6, /* mtctr r11 */
        0xE96C0010, /* ld r11, 16(r12): the environment */
    };
    if (code->arch->has_descriptors)
        words_append_all(code, by_descriptor, sizeof by_descriptor);
    else
        words_append(code, MTCTR_R12);
}

/* Appends the instructions that enter the function whose pointer is in the slot, except for the
 * branch to CTR. */
static void append_entering_slot(struct words_code *code, uint64_t slot_address)
{
    assert(slot_address % sizeof(uint64_t) == 0);
    ppc64_append_address(code, slot_address, PPC64_LOAD);
    ppc64_append_entering(code);
}

/*
 * With ELFv2, the veneer passes the function's address in r12. With ELFv1, it loads CTR, r2 and r11
 * from the descriptor; libffi's closures need r11. The ABIs reserve r11, r12 and CTR for this
 * purpose. A descriptor never changes, and the slot is read once, so entry and TOC pointer belong
 * to the same function.
 *
 * The veneer first saves r2 in its slot in the frame. A function that is jumped to from a shadow
 * expects it there. After the save of an armed region, this stores the same value again.
 */
static bool encode_veneer(const struct cairn_arch *arch, uint64_t address, uint64_t slot_address,
                          uint8_t *code)
{
    struct words_code out = {.arch = arch, .bytes = code, .address = address};
    words_append(&out, arch->words->save);
    append_entering_slot(&out, slot_address);
    words_append(&out, PPC64_BCTR);
    words_append_until(&out, arch->veneer_bytes, PPC64_TRAP);
    return true;
}

/* Bytes from a framed veneer's start to the first instruction that loads the slot's address. */
static size_t framed_load_offset(const struct cairn_arch *arch)
{
    return (arch->has_descriptors ? 7 : 6) * (size_t)WORDS_BYTES;
}

static uint64_t veneer_slot(const struct cairn_arch *arch, uint64_t address, bool is_framed,
                            const uint8_t *code)
{
    static const unsigned shifts[] = {48, 32, 0, 16, 0};
    const uint8_t *load = code + (is_framed ? framed_load_offset(arch) : WORDS_BYTES);
    uint64_t slot = 0;
    (void)address;
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        uint64_t immediate = words_read(arch, load + i * WORDS_BYTES) & 0xFFFF;
        if (i == 4)
            slot += (immediate ^ 0x8000) - 0x8000;
        else if (i != 2) /* the shift */
            slot |= immediate << shifts[i];
    }
    return slot;
}

/*
 * Writes a function with a frame. LLVM may keep values across a stack map in registers that a call
 * in its place would change even if the called function preserved them: r2 and CTR, and with ELFv1
 * r11. The frame saves these. r12 and LR are free there (arch/README.md); r0, CR and XER are not
 * changed. The site's return address is where a callee saves it, in the frame of the site's
 * function. r2 is where a caller saves it, in the veneer's own frame. So the back chain is
 * complete.
 */
static bool encode_framed_veneer(const struct cairn_arch *arch, uint64_t address,
                                 uint64_t slot_address, uint8_t *code)
{
    uint32_t frame = arch->has_descriptors ? ELFV1_FRAME_BYTES : ELFV2_FRAME_BYTES;
    uint32_t link = LINK_SAVE;
    const uint32_t enter[] = {
        0x7D8802A6, /* mflr r12 */
        SAVE_R12(link),
        MAKE_FRAME(frame),
        SAVE_TOC(arch->toc_save_offset),
        0x7D8902A6, /* mfctr r12 */
        SAVE_R12(frame - CTR_BELOW_END),
    };
    const uint32_t call[] = {
        0x4E800421, /* bctrl */
        LOAD_TOC(arch->toc_save_offset),
        LOAD_R12(frame - CTR_BELOW_END),
        MTCTR_R12,
    };
    const uint32_t leave[] = {
        LEAVE_FRAME(frame), LOAD_R12(link), 0x7D8803A6, /* mtlr r12 */
        0x4E800020,                                     /* blr */
    };
    struct words_code out = {.arch = arch, .bytes = code, .address = address};
    words_append_all(&out, enter, sizeof enter);
    if (arch->has_descriptors)
        words_append(&out, SAVE_R11(frame - R11_BELOW_END));
    append_entering_slot(&out, slot_address);
    words_append_all(&out, call, sizeof call);
    if (arch->has_descriptors)
        words_append(&out, LOAD_R11(frame - R11_BELOW_END));
    words_append_all(&out, leave, sizeof leave);
    words_append_until(&out, arch->framed_veneer_bytes, PPC64_TRAP);
    return true;
}

static const struct arch_veneer_frame elfv2_veneer_frame = {
    .return_offset = ELFV2_FRAMED_RETURN,
    .made_offset = FRAMED_MADE,
    .saved_offset = FRAMED_SAVED,
    .left_offset = ELFV2_FRAMED_LEFT,
    .bytes = ELFV2_FRAME_BYTES,
    .return_address = LINK_SAVE,
    .registers = {{DWARF_TOC, ELFV2_TOC_SAVE}, {DWARF_CTR, ELFV2_FRAME_BYTES - CTR_BELOW_END}},
    .register_count = 2,
};

static const struct arch_veneer_frame elfv1_veneer_frame = {
    .return_offset = ELFV1_FRAMED_RETURN,
    .made_offset = FRAMED_MADE,
    .saved_offset = FRAMED_SAVED,
    .left_offset = ELFV1_FRAMED_LEFT,
    .bytes = ELFV1_FRAME_BYTES,
    .return_address = LINK_SAVE,
    .registers = {{DWARF_TOC, ELFV1_TOC_SAVE},
                  {DWARF_CTR, ELFV1_FRAME_BYTES - CTR_BELOW_END},
                  {DWARF_R11, ELFV1_FRAME_BYTES - R11_BELOW_END}},
    .register_count = 3,
};

/* Loads the entry into CTR, which is the address of an instruction whatever function pointers are,
 * and then the data's address into r12. The veneers of both ABIs change these two registers as
 * well. */
static bool encode_exit(const struct cairn_arch *arch, uint64_t address, uint64_t data_address,
                        uint8_t *code)
{
    struct words_code out = {.arch = arch, .bytes = code, .address = address};
    assert(data_address % sizeof(uint64_t) == 0);
    ppc64_append_address(&out, data_address + ARCH_EXIT_ENTRY, PPC64_LOAD);
    words_append(&out, MTCTR_R12);
    ppc64_append_address(&out, data_address, PPC64_ADD);
    words_append(&out, PPC64_BCTR);
    return true;
}

/*
 * With ELFv2, an entered function expects its address in r12, which resuming clobbers, so r11 holds
 * it. A function with another TOC returns with its own TOC pointer in r2, and a caller that called
 * within its module does not reload r2.
 */
enum { ENTRY_RETURN = 16, ENTRY_LEFT = 28, ENTRY_BYTES = 40 };

static void encode_entry(const struct cairn_arch *arch, uint8_t *code)
{
    static const uint32_t entry[] = {
        0x7D6C5B78,                              /* mr r12, r11 */
        MTCTR_R12,  PPC64_BCTR, NOP, 0x7FE1FB78, /* mr r1, r31 */
        0xE841FFF0,                              /* ld r2, -16(r1) */
        0xEBE1FFF8,                              /* ld r31, -8(r1) */
        0xE8010010,                              /* ld r0, 16(r1) */
        0x7C0803A6,                              /* mtlr r0 */
        0x4E800020,                              /* blr */
    };
    _Static_assert(sizeof entry == ENTRY_BYTES, "the size in the tables");
    struct words_code out = {.arch = arch, .bytes = code};
    words_append_all(&out, entry, sizeof entry);
}

#define ENTRY_FRAME                                                                                \
    {                                                                                              \
        .code_bytes = ENTRY_BYTES, .return_offset = ENTRY_RETURN, .frame_register = 31,            \
        .cfa_offset = 0, .left_offset = ENTRY_LEFT, .left_cfa_offset = 0, .saved_count = 3,        \
        .saved = {{31, -1}, {2, -2}, {65, 2}},                                                     \
    }

/* ---- Arguments ---- */

/* Source: 64-Bit ELF V2 ABI Specification, "Parameter Passing in Registers", which agrees with
 * ELFv1. */
#define ARGUMENTS_OF_BOTH                                                                          \
    .general = {3, 4, 5, 6, 7, 8, 9, 10}, .general_count = 8, .floating = 33,                      \
    .floating_count = 13, .vector = 79, .vector_count = 12, .has_places = true,                    \
    .widens_floats = true, .pair = ARCH_PAIR_SPLIT

/* `li r3, value; blr` */
static size_t encode_self_test(const struct cairn_arch *arch, int value, uint8_t *code)
{
    struct words_code out = {.arch = arch, .bytes = code};
    words_append(&out, UINT32_C(0x38600000) | (uint32_t)value);
    words_append(&out, 0x4E800020);
    return out.size;
}

/* ---- Unwinding ---- */

/*
 * Source: 64-Bit ELF V2 ABI Specification, "Register Roles", which agrees with ELFv1: r14 to r31,
 * f14 to f31, v20 to v31, and fields 2 to 4 of the condition register. Functions store the whole
 * condition register in their caller's frame. With ELFv2, each field that is valid there has a
 * rule; with ELFv1, the rule for field 2 applies to all three.
 *
 * The slots include r2, the TOC pointer: functions without a TOC may use it for any value, and LLVM
 * saves and restores it there, because calls within a module rely on it.
 */
#define SLOTS_OF_BOTH                                                                              \
    [ARCH_UNWIND_STACK_POINTER] = {1, 0}, [ARCH_UNWIND_RETURN_ADDRESS] = {65, 0}, {2, 0}, {14, 0}, \
    {15, 0}, {16, 0}, {17, 0}, {18, 0}, {19, 0}, {20, 0}, {21, 0}, {22, 0}, {23, 0}, {24, 0},      \
    {25, 0}, {26, 0}, {27, 0}, {28, 0}, {29, 0}, {30, 0}, {31, 0}, {46, 0}, {47, 0}, {48, 0},      \
    {49, 0}, {50, 0}, {51, 0}, {52, 0}, {53, 0}, {54, 0}, {55, 0}, {56, 0}, {57, 0}, {58, 0},      \
    {59, 0}, {60, 0}, {61, 0}, {62, 0}, {63, 0}, {97, 0}, {97, 8}, {98, 0}, {98, 8}, {99, 0},      \
    {99, 8}, {100, 0}, {100, 8}, {101, 0}, {101, 8}, {102, 0}, {102, 8}, {103, 0}, {103, 8},       \
    {104, 0}, {104, 8}, {105, 0}, {105, 8}, {106, 0}, {106, 8}, {107, 0}, {107, 8}, {108, 0},      \
    {                                                                                              \
        108, 8                                                                                     \
    }

static const struct arch_unwind_slot elfv2_unwind_slots[] = {
    SLOTS_OF_BOTH,
    {70, 0},
    {71, 0},
    {72, 0},
};

static const struct arch_unwind_slot elfv1_unwind_slots[] = {
    SLOTS_OF_BOTH,
    {70, 0},
    {70, 0},
    {70, 0},
};

/* The members that are the same for both ABIs. */
#define OF_BOTH_ABIS                                                                               \
    .word_bytes = WORDS_BYTES, .instruction_bytes = WORDS_BYTES, .registers = &ppc64_registers,    \
    .relocations = &ppc64_relocations, .features = &ppc64_features,                                \
    .instruction_bytes_max = WORDS_BYTES, .fixed_instruction_bytes = WORDS_BYTES,                  \
    .call_bytes = CALL_BYTES, .reach_bytes = REACH_BYTES,                                          \
    .slab_bytes_default = SLAB_BYTES_DEFAULT, .veneer_alignment = VENEER_ALIGNMENT,                \
    .exit_bytes = EXIT_BYTES, .calls_need_veneer = true, .toc_register = DWARF_TOC,                \
    .has_link_register = true, .has_back_chain = true,                                             \
    .results = {.general = {3, 4},                                                                 \
                .floating = {33, 34},                                                              \
                .vector = {79, 80},                                                                \
                .halves_are_in_either = true},                                                     \
    .entry_frame = ENTRY_FRAME, .new_code_needs_barrier = true, .recognise = words_recognise,      \
    .place = words_place, .arm = words_arm, .encode_branch = words_encode_branch,                  \
    .decode_branch = words_decode_branch, .fill_nops = words_fill_nops,                            \
    .leading_nops = words_leading_nops, .call_length = words_call_length,                          \
    .may_be_exchanged = words_may_be_exchanged, .encode_veneer = encode_veneer,                    \
    .encode_framed_veneer = encode_framed_veneer, .veneer_slot = veneer_slot,                      \
    .encode_exit = encode_exit, .encode_entry = encode_entry,                                      \
    .inline_bytes_min = INLINE_BYTES_MIN, .miss_bytes = WORDS_BYTES,                               \
    .encode_self_test = encode_self_test

/*
 * Spilled vectors: on little-endian POWER8, LLVM always spills with stxvd2x, which swaps the
 * doublewords (PPCInstrInfo::storeRegToStackSlot). For POWER9 and later, selected by "target-cpu",
 * it uses stxv, which does not swap. Records do not distinguish the two.
 *
 * Linux also has big-endian ELFv2, which would need one more table.
 */
const struct cairn_arch ppc64_elfv2_arch = {
    OF_BOTH_ABIS,
    .architecture = CAIRN_ARCHITECTURE_PPC64_ELFV2,
    .byte_order = CAIRN_LITTLE_ENDIAN,
    .words = &elfv2_words,
    .veneer_bytes = ELFV2_VENEER_BYTES,
    .framed_veneer_bytes = ELFV2_FRAMED_VENEER_BYTES,
    .veneer_frame = &elfv2_veneer_frame,
    .toc_save_offset = ELFV2_TOC_SAVE,
    .unwind_slots = elfv2_unwind_slots,
    .unwind_slot_count = sizeof elfv2_unwind_slots / sizeof *elfv2_unwind_slots,
    .arguments = {ARGUMENTS_OF_BOTH, .structures = ARCH_STRUCTURES_OF_ONE_KIND},
    .swaps_spilled_vectors = true,
};

const struct cairn_arch ppc64_elfv1_arch = {
    OF_BOTH_ABIS,
    .architecture = CAIRN_ARCHITECTURE_PPC64_ELFV1,
    .byte_order = CAIRN_BIG_ENDIAN,
    .words = &elfv1_words,
    .veneer_bytes = ELFV1_VENEER_BYTES,
    .veneer_save_bytes = sizeof(uint32_t),
    .framed_veneer_bytes = ELFV1_FRAMED_VENEER_BYTES,
    .veneer_frame = &elfv1_veneer_frame,
    .has_descriptors = true,
    .toc_save_offset = ELFV1_TOC_SAVE,
    .unwind_slots = elfv1_unwind_slots,
    .unwind_slot_count = sizeof elfv1_unwind_slots / sizeof *elfv1_unwind_slots,
    .arguments = {ARGUMENTS_OF_BOTH, .structures = ARCH_STRUCTURES_NONE},
};
