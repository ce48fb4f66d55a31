/*
 * x86-64: recognising LLVM's code for patch points, and the instructions of armed ones.
 *
 * The patch word is an aligned 8-byte word that contains a whole 5-byte call, jump or no-op. So the
 * instruction begins at an address whose lowest three bits are 0 to 3. Every region of 9 bytes has
 * such a place: in the worst case the region starts 4 bytes past an aligned address, and the next
 * word is 4 bytes away.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (CALL, JMP, NOP,
 * MOV) and volume 3, section "Guaranteed Atomic Operations"; LLVM,
 * lib/Target/X86/X86MCInstLower.cpp.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/x86_64/target.h"

#include "arch/features.h"
#include "arch/registers.h"
#include "arch/relocation.h"
#include "base/error.h"

#include <assert.h>
#include <string.h>

enum {
    WORD_BYTES = 8,
    BRANCH_BYTES = 5,
    LAST_BRANCH_IN_WORD = WORD_BYTES - BRANCH_BYTES,

    OPCODE_CALL = 0xE8,
    OPCODE_JUMP = 0xE9,
    PREFIX_CS = 0x2E,

    MOVABS_BYTES = 10,
    CALL_REGISTER_BYTES = 2, /* without REX */

    LANDING_PAD_BYTES = 4,
    VENEER_BYTES = 16,
    EXIT_BYTES = 16,

    MISS_BYTES = 6,
    INLINE_BYTES_MIN = 16 /* a guard and a jump in two words, and a load */
};

/* Half the reach of rel32. Every place in a slab of this size reaches every other place in it, with
 * a margin. */
#define REACH_BYTES ((size_t)1 << 30)
#define SLAB_BYTES_DEFAULT ((size_t)256 << 20)

/* ---- No-ops ---- */

enum { NOP_BYTES_MAX = 9 };

/* The forms that the manual recommends ("Recommended Multi-Byte Sequence of NOP"), by length. */
static const uint8_t nops[NOP_BYTES_MAX + 1][NOP_BYTES_MAX] = {
    [1] = {0x90},
    [2] = {0x66, 0x90},
    [3] = {0x0F, 0x1F, 0x00},
    [4] = {0x0F, 0x1F, 0x40, 0x00},
    [5] = {0x0F, 0x1F, 0x44, 0x00, 0x00},
    [6] = {0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00},
    [7] = {0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00},
    [8] = {0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
    [9] = {0x66, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
};

static void fill_nops(const struct cairn_arch *arch, uint8_t *bytes, size_t size)
{
    (void)arch;
    while (size > 0) {
        size_t length = size < NOP_BYTES_MAX ? size : NOP_BYTES_MAX;
        memcpy(bytes, nops[length], length);
        bytes += length;
        size -= length;
    }
}

/* Returns the total size of ModRM, SIB and displacement of the operand that starts at `modrm`. */
static size_t memory_operand_length(const uint8_t *modrm, size_t size)
{
    if (size == 0)
        return 0;
    unsigned mode = modrm[0] >> 6;
    unsigned register_or_memory = modrm[0] & 7;
    bool has_sib = mode != 3 && register_or_memory == 4;
    size_t length = has_sib ? 2 : 1;
    if (mode == 1)
        length += 1;
    else if (mode == 2 || (mode == 0 && register_or_memory == 5))
        length += 4;
    else if (mode == 0 && has_sib && size > 1 && (modrm[1] & 7) == 5)
        length += 4;
    return length;
}

/* Returns the length of the no-op at the start of `bytes`, in any of the forms that assemblers
 * emit; 0 if there is no no-op. */
static size_t nop_length(const uint8_t *bytes, size_t size)
{
    size_t prefixes = 0;
    while (prefixes < size && (bytes[prefixes] == 0x66 || bytes[prefixes] == 0x2E))
        prefixes++;
    const uint8_t *opcode = bytes + prefixes;
    size_t left = size - prefixes;
    if (left >= 1 && opcode[0] == 0x90)
        return prefixes + 1;
    bool is_long_nop =
        left >= 3 && opcode[0] == 0x0F && opcode[1] == 0x1F && (opcode[2] & 0x38) == 0;
    if (!is_long_nop)
        return 0;
    size_t length = prefixes + 2 + memory_operand_length(opcode + 2, left - 2);
    return length <= size ? length : 0;
}

static size_t leading_nops(const struct cairn_arch *arch, const uint8_t *bytes, size_t size)
{
    (void)arch;
    size_t offset = 0;
    while (offset < size) {
        size_t length = nop_length(bytes + offset, size - offset);
        if (length == 0)
            break;
        offset += length;
    }
    return offset;
}

/* ---- Calls ---- */

enum { OPCODE_GROUP_5 = 0xFF, GROUP_5_CALL = 2, DIRECT_CALL_BYTES = 5 };

static size_t call_length(const struct cairn_arch *arch, const uint8_t *bytes, size_t size)
{
    (void)arch;
    /* Prefixes that do not change a call, or change only how an address is computed: notrack,
     * addr32, segment overrides, and 0x66 with REX.W. */
    static const uint8_t prefixes[] = {0x66, 0x67, 0x2E, 0x3E, 0x64, 0x65};
    size_t at = 0;
    bool is_short = false; /* 0x66 without REX.W, which processors decode differently */
    for (; at < size && memchr(prefixes, bytes[at], sizeof prefixes) != NULL; at++)
        is_short |= bytes[at] == 0x66;
    if (at < size && (bytes[at] & 0xF0) == 0x40)
        is_short &= (bytes[at++] & 0x08) == 0;
    size_t length = 0;
    if (is_short || at == size)
        return 0;
    if (bytes[at] == OPCODE_CALL)
        length = at + DIRECT_CALL_BYTES;
    else if (bytes[at] == OPCODE_GROUP_5 && size - at > 1 &&
             (bytes[at + 1] >> 3 & 7) == GROUP_5_CALL)
        length = at + 1 + memory_operand_length(bytes + at + 1, size - at - 1);
    return length <= size && length <= ARCH_CALL_BYTES_MAX ? length : 0;
}

/* ---- Instructions that may change while another core executes them ---- */

/* No manual lists such instructions. The only condition is that one aligned word contains the whole
 * instruction, which the caller ensures. Intel's and AMD's guarantees are in doc/patching.md. */
static bool may_be_exchanged(const struct cairn_arch *arch, const uint8_t *bytes, size_t length)
{
    (void)arch;
    (void)bytes;
    return length >= BRANCH_BYTES && length <= WORD_BYTES;
}

/* ---- Recognising LLVM's code ---- */

/* Recognises `movabs $target, %register; call *%register`. The lowest bit of a REX prefix selects
 * the upper eight registers. */
static enum cairn_status recognise_call(const uint8_t *region, size_t size, uint64_t address,
                                        struct arch_patchpoint *patchpoint,
                                        struct cairn_error *error)
{
    const uint8_t *call = region + MOVABS_BYTES;
    size_t prefix = region[0] & 1;
    size_t length = prefix + CALL_REGISTER_BYTES;
    bool is_whole = size >= MOVABS_BYTES + length;
    if (!is_whole || (prefix != 0 && call[0] != 0x41) || call[prefix] != OPCODE_GROUP_5 ||
        call[prefix + 1] != (0xD0 | (region[1] & 7)))
        return error_set(error, CAIRN_ERROR_CORRUPT, address + MOVABS_BYTES,
                         "byte %d of the region, after a movabs, is not LLVM's call of the "
                         "register that it loads",
                         MOVABS_BYTES);
    patchpoint->has_call = true;
    for (unsigned i = 0; i < 8; i++)
        patchpoint->target |= (uint64_t)region[2 + i] << (8 * i);
    patchpoint->return_offset = MOVABS_BYTES + length;
    return CAIRN_OK;
}

static enum cairn_status recognise(const struct cairn_arch *arch, const uint8_t *region,
                                   size_t size, uint64_t address,
                                   struct arch_patchpoint *patchpoint, struct cairn_error *error)
{
    struct arch_patchpoint found = {.has_call = false};
    /* REX.W, with REX.B for the upper eight registers */
    if (size >= MOVABS_BYTES && (region[0] & 0xFE) == 0x48 && (region[1] & 0xF8) == 0xB8) {
        enum cairn_status status = recognise_call(region, size, address, &found, error);
        if (status != CAIRN_OK)
            return status;
    }
    size_t sequence = found.return_offset;
    size_t end = sequence + leading_nops(arch, region + sequence, size - sequence);
    if (end != size)
        return error_set(error, CAIRN_ERROR_CORRUPT, address + end,
                         "byte %zu of the region, 0x%02x, is not a no-op: this is not what LLVM "
                         "emits for a patch point",
                         end, region[end]);
    *patchpoint = found;
    return CAIRN_OK;
}

/* ---- Arming ---- */

static enum cairn_status place(const struct cairn_arch *arch,
                               const struct arch_patchpoint *patchpoint, size_t size,
                               uint64_t address, struct arch_placement *placement,
                               struct cairn_error *error)
{
    (void)arch;
    (void)patchpoint;
    size_t in_word = address % WORD_BYTES;
    size_t offset = in_word <= LAST_BRANCH_IN_WORD ? 0 : WORD_BYTES - in_word;
    if (offset + BRANCH_BYTES > size)
        return error_set(
            error, CAIRN_ERROR_RANGE, address,
            "a region of %zu bytes at 0x%llx has no space for a 5-byte call in one aligned "
            "8-byte word: reserve 9 bytes or more",
            size, (unsigned long long)address);
    placement->instruction_offset = offset;
    placement->return_offset = offset + BRANCH_BYTES;
    return CAIRN_OK;
}

/* Code after the instruction must not share its word, because a patch stores all of it. */
static void place_inline(const struct cairn_arch *arch, uint64_t address,
                         struct arch_placement *placement)
{
    (void)arch;
    placement->instruction_offset =
        (size_t)(LAST_BRANCH_IN_WORD + WORD_BYTES - address % WORD_BYTES) % WORD_BYTES;
    placement->return_offset = placement->instruction_offset + BRANCH_BYTES;
}

static void arm(const struct cairn_arch *arch, uint8_t *region, size_t size,
                const struct arch_patchpoint *patchpoint, const struct arch_placement *placement)
{
    (void)patchpoint;
    size_t before = placement->instruction_offset;
    size_t after = before + BRANCH_BYTES;
    fill_nops(arch, region, before);
    fill_nops(arch, region + before, BRANCH_BYTES);
    fill_nops(arch, region + after, size - after);
}

/* ---- Branches ---- */

static void write_u32(uint8_t *bytes, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

/* Displacements are relative to the end of the instruction. */
static bool displacement_fits(uint64_t from, uint64_t to, uint32_t *displacement)
{
    int64_t difference = (int64_t)(to - from);
    *displacement = (uint32_t)difference;
    return difference == (int32_t)difference;
}

static uint64_t nop_bits(size_t length)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < length; i++)
        bits |= (uint64_t)nops[length][i] << (8 * i);
    return bits;
}

/* Returns CS prefixes, which near branches ignore, as padding: the result is still one
 * instruction. */
static uint64_t prefix_bits(size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++)
        bits |= (uint64_t)PREFIX_CS << (8 * i);
    return bits;
}

static bool encode_branch(const struct cairn_arch *arch, enum cairn_site_state branch,
                          uint64_t address, uint64_t target, size_t length, uint64_t *bits)
{
    (void)arch;
    if (branch == CAIRN_SITE_NOP) {
        *bits = nop_bits(length);
        return true;
    }
    uint32_t displacement;
    if (!displacement_fits(address + length, target, &displacement))
        return false;
    uint64_t opcode = branch == CAIRN_SITE_CALL ? OPCODE_CALL : OPCODE_JUMP;
    uint64_t instruction = opcode | (uint64_t)displacement << 8;
    size_t padding = length - BRANCH_BYTES;
    *bits = prefix_bits(padding) | instruction << (8 * padding);
    return true;
}

static bool decode_branch(const struct cairn_arch *arch, uint64_t bits, uint64_t address,
                          size_t length, enum cairn_site_state *branch, uint64_t *target)
{
    (void)arch;
    assert(length >= BRANCH_BYTES);
    assert(length <= sizeof bits);
    *target = 0;
    if (bits == nop_bits(length)) {
        *branch = CAIRN_SITE_NOP;
        return true;
    }
    size_t padding = length - BRANCH_BYTES;
    uint64_t prefixes = padding == 0 ? 0 : bits & (UINT64_MAX >> (64 - 8 * padding));
    uint64_t instruction = bits >> (8 * padding);
    uint64_t opcode = instruction & 0xFF;
    if (prefixes != prefix_bits(padding) || (opcode != OPCODE_CALL && opcode != OPCODE_JUMP))
        return false;
    *branch = opcode == OPCODE_CALL ? CAIRN_SITE_CALL : CAIRN_SITE_JUMP;
    int32_t displacement = (int32_t)(uint32_t)(instruction >> 8);
    *target = address + length + (uint64_t)(int64_t)displacement;
    return true;
}

/* ---- Stubs ---- */

enum { RELATIVE_BYTES = 6, MODRM_JUMP = 0x25, MODRM_PUSH = 0x35 };

/* `endbr64` */
#define LANDING_PAD                                                                                \
    {                                                                                              \
        0xF3, 0x0F, 0x1E, 0xFA                                                                     \
    }

/* Appends the landing pad to `code`, and returns where the code continues. */
static uint8_t *put_landing_pad(uint8_t *code)
{
    static const uint8_t pad[LANDING_PAD_BYTES] = LANDING_PAD;
    memcpy(code, pad, sizeof pad);
    return code + sizeof pad;
}

/* Writes `opcode *target(%rip)` in 6 bytes, with opcode 0xFF and its extension in ModRM; false if
 * the target is out of reach. */
static bool write_relative(uint8_t modrm, uint64_t address, uint64_t target, uint8_t *code)
{
    uint32_t displacement;
    if (!displacement_fits(address + RELATIVE_BYTES, target, &displacement))
        return false;
    code[0] = 0xFF;
    code[1] = modrm;
    write_u32(code + 2, displacement);
    return true;
}

/* Writes `endbr64; jmp *slot(%rip)`, and int3 as padding, so that execution cannot run past the
 * end. */
static bool encode_veneer(const struct cairn_arch *arch, uint64_t address, uint64_t slot_address,
                          uint8_t *code)
{
    (void)arch;
    uint8_t *jump = put_landing_pad(code);
    if (!write_relative(MODRM_JUMP, address + LANDING_PAD_BYTES, slot_address, jump))
        return false;
    memset(jump + RELATIVE_BYTES, 0xCC, VENEER_BYTES - LANDING_PAD_BYTES - RELATIVE_BYTES);
    return true;
}

static uint64_t veneer_slot(const struct cairn_arch *arch, uint64_t address, bool is_framed,
                            const uint8_t *code)
{
    (void)arch;
    (void)is_framed;
    uint32_t displacement = 0;
    for (unsigned i = 0; i < 4; i++)
        displacement |= (uint32_t)code[LANDING_PAD_BYTES + 2 + i] << (8 * i);
    return address + LANDING_PAD_BYTES + RELATIVE_BYTES + (uint64_t)(int64_t)(int32_t)displacement;
}

/* Writes `endbr64; pushq self(%rip); jmp *entry(%rip)`, which changes no registers and no flags. */
static bool encode_exit(const struct cairn_arch *arch, uint64_t address, uint64_t data_address,
                        uint8_t *code)
{
    (void)arch;
    _Static_assert(LANDING_PAD_BYTES + 2 * RELATIVE_BYTES == EXIT_BYTES, "no padding");
    uint8_t *push = put_landing_pad(code);
    uint64_t push_address = address + LANDING_PAD_BYTES;
    return write_relative(MODRM_PUSH, push_address, data_address + ARCH_EXIT_SELF, push) &&
           write_relative(MODRM_JUMP, push_address + RELATIVE_BYTES, data_address + ARCH_EXIT_ENTRY,
                          push + RELATIVE_BYTES);
}

/* `nop; leave; ret` */
enum { ENTRY_RETURN = 1, ENTRY_LEFT = 2, ENTRY_BYTES = 3 };

static void encode_entry(const struct cairn_arch *arch, uint8_t *code)
{
    static const uint8_t bytes[ENTRY_BYTES] = {0x90, 0xC9, 0xC3};
    (void)arch;
    memcpy(code, bytes, sizeof bytes);
}

/* `mov $value, %eax; ret` */
static size_t encode_self_test(const struct cairn_arch *arch, int value, uint8_t *code)
{
    (void)arch;
    code[0] = 0xB8;
    write_u32(code + 1, (uint32_t)value);
    code[5] = 0xC3;
    return 6;
}

/* ---- Unwinding ---- */

/* The stack pointer and the return address, in the order of ARCH_UNWIND_STACK_POINTER and so on;
 * rbx, rbp, r12 to r15. Source: System V ABI, AMD64 supplement, "Registers". */
static const struct arch_unwind_slot unwind_slots[] = {{7, 0},  {16, 0}, {3, 0},  {6, 0},
                                                       {12, 0}, {13, 0}, {14, 0}, {15, 0}};

const struct cairn_arch x86_64_arch = {
    .architecture = CAIRN_ARCHITECTURE_X86_64,
    .byte_order = CAIRN_LITTLE_ENDIAN,
    .registers = &x86_64_registers,
    .relocations = &x86_64_relocations,
    .features = &x86_64_features,
    .word_bytes = WORD_BYTES,
    .instruction_bytes = BRANCH_BYTES,
    .instruction_bytes_max = WORD_BYTES,
    .call_bytes = BRANCH_BYTES,
    .reach_bytes = REACH_BYTES,
    .slab_bytes_default = SLAB_BYTES_DEFAULT,
    .landing_pad = {LANDING_PAD_BYTES, LANDING_PAD},
    .veneer_bytes = VENEER_BYTES,
    .veneer_alignment = VENEER_BYTES,
    .exit_bytes = EXIT_BYTES,
    .exit_pushed_offset = LANDING_PAD_BYTES + RELATIVE_BYTES,
    .unwind_slots = unwind_slots,
    .unwind_slot_count = sizeof unwind_slots / sizeof *unwind_slots,
    .fetch_is_coherent = true,
    .results = {.general = {0, 1}, .floating = {17, 18}, .vector = {17, 18}},
    .arguments = {.general = {5, 4, 1, 2, 8, 9},
                  .general_count = 6,
                  .floating = 17,
                  .floating_count = 8,
                  .vector = 17,
                  .vector_count = 8,
                  .pair = ARCH_PAIR_WHOLE,
                  .structures = ARCH_STRUCTURES_OF_ANY_KIND},
    .entry_frame = {.code_bytes = ENTRY_BYTES,
                    .return_offset = ENTRY_RETURN,
                    .frame_register = 6,
                    .cfa_offset = 16,
                    .left_offset = ENTRY_LEFT,
                    .left_cfa_offset = 8,
                    .saved_count = 2,
                    .saved = {{6, -2}, {16, -1}}},
    .recognise = recognise,
    .place = place,
    .arm = arm,
    .encode_branch = encode_branch,
    .decode_branch = decode_branch,
    .fill_nops = fill_nops,
    .leading_nops = leading_nops,
    .call_length = call_length,
    .may_be_exchanged = may_be_exchanged,
    .encode_veneer = encode_veneer,
    .veneer_slot = veneer_slot,
    .encode_exit = encode_exit,
    .encode_entry = encode_entry,
    .inline_bytes_min = INLINE_BYTES_MIN,
    .miss_bytes = MISS_BYTES,
    .place_inline = place_inline,
    .encode_self_test = encode_self_test,
};
