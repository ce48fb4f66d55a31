/*
 * Tests of the code of inline caches on architectures with instructions of one size (AArch64, PPC64
 * with both ABIs): LLVM's disassembler reads the code back.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "code_support.h"
#include "tests/disassembly.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 128, LINES_MAX = 40, RANDOM_ROUNDS = 1000 };
enum { AARCH64, ELFV2, ELFV1, MACHINE_COUNT };

static const uint64_t address = UINT64_C(0x7F0000000000);
static const uint64_t return_address = UINT64_C(0x7F0000000000) - 0x1234;
static const uint64_t far_away = UINT64_C(0x123456789ABCDEF0);

static const struct {
    enum cairn_architecture architecture;
    const char *triple;
    const char *processor; /* a processor that has all instructions */
} machines[MACHINE_COUNT] = {
    [AARCH64] = {CAIRN_ARCHITECTURE_AARCH64, "aarch64-linux-gnu", ""},
    [ELFV2] = {CAIRN_ARCHITECTURE_PPC64_ELFV2, "powerpc64le-linux-gnu", "pwr8"},
    [ELFV1] = {CAIRN_ARCHITECTURE_PPC64_ELFV1, "powerpc64-linux-gnu", "pwr8"},
};

static const struct cairn_arch *arch;
static const struct arch_cache_encoder *encoder;
static LLVMDisasmContextRef disassembler;
static int machine;

static void open_machine(int index)
{
    machine = index;
    arch = arch_find(machines[index].architecture);
    encoder = arch_find_cache_encoder(machines[index].architecture);
    ck_assert_ptr_nonnull(arch);
    disassembler = disassembly_open(machines[index].triple, machines[index].processor);
}

static void tear_down(void) { LLVMDisasmDispose(disassembler); }

static void disassemble(const uint8_t *bytes, char *text)
{
    size_t length = disassembly_line(disassembler, bytes, 4, address, text, TEXT_SIZE);
    ck_assert_msg(length == 4, "%02x %02x %02x %02x is not an instruction", bytes[0], bytes[1],
                  bytes[2], bytes[3]);
}

static void expect_lines(const char *name, const uint8_t *bytes, size_t size,
                         const char *const *lines)
{
    char text[TEXT_SIZE];
    for (size_t i = 0; i * 4 < size; i++) {
        disassemble(bytes + 4 * i, text);
        ck_assert_uint_lt(i, LINES_MAX);
        ck_assert_msg(lines[i] != NULL && strcmp(text, lines[i]) == 0,
                      "%s: instruction %zu is '%s', not '%s'", name, i, text,
                      lines[i] == NULL ? "(end)" : lines[i]);
    }
    ck_assert_msg(size / 4 == LINES_MAX || lines[size / 4] == NULL, "%s: an instruction is missing",
                  name);
}

/* ---- Cases ---- */

#define GUARD_BITS(at, width, bits, wanted)                                                        \
    .receiver = 3, .key_offset = (at), .key_width = (width), .mask = (bits), .key = (wanted)
#define GUARD(at, width, wanted) GUARD_BITS(at, width, UINT64_MAX >> (64 - 8 * (width)), wanted)
/* The shortest guard. */
#define GUARDED GUARD(0, 4, 0)
#define FIELD(at, bytes) .field = {.offset = (at), .width = (bytes)}

/* Kinds of registers; a number is added. */
enum { FLOAT = 0x100, VECTOR = 0x200 };

struct example {
    const char *name;
    struct arch_cache_case one;
    bool is_called;
    size_t literal_bytes;
    const char *lines[MACHINE_COUNT][LINES_MAX]; /* ELFv1 uses the lines of ELFv2 if it has none */
};

static const struct example examples[] = {
    {
        .name = "guard: 1 byte",
        .one = {GUARD(5, 1, 7), .action = ARCH_CACHE_LOAD, .value = 4, FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"ldrb w16, [x3, #5]", "sub x16, x16, #7", "cbnz x16, #12",
                             "ldr x4, [x3, #16]", "b #-4676"},
                [ELFV2] = {"lbz 11, 5(3)", "addi 11, 11, -6", "mtctr 11", "bdnz .+12",
                           "ld 4, 16(3)", "b .-4680"},
            },
    },
    {
        .name = "guard: 2 bytes, not aligned",
        .one = {GUARD(-3, 2, 0x1000), .action = ARCH_CACHE_LOAD, .value = 4, FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"ldurh w16, [x3, #-3]", "sub x16, x16, #1, lsl #12", "cbnz x16, #12",
                             "ldr x4, [x3, #16]", "b #-4676"},
                [ELFV2] = {"lhz 11, -3(3)", "addi 11, 11, -4095", "mtctr 11", "bdnz .+12",
                           "ld 4, 16(3)", "b .-4680"},
            },
    },
    {
        .name = "guard: 4 bytes, two halves",
        .one = {GUARD(8, 4, 0x12345678), .action = ARCH_CACHE_LOAD, .value = 4, FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3, #8]", "mov x17, #22136", "movk x17, #4660, lsl #16",
                             "eor x16, x16, x17", "cbnz x16, #12", "ldr x4, [x3, #16]", "b #-4684"},
                [ELFV2] = {"lwz 11, 8(3)", "addis 11, 11, -4660", "addi 11, 11, -22135", "mtctr 11",
                           "bdnz .+12", "ld 4, 16(3)", "b .-4684"},
            },
    },
    {
        .name = "guard: 4 bytes, all ones",
        .one = {GUARD(0, 4, 0xFFFFFFFF), .action = ARCH_CACHE_LOAD, .value = 4, FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "mov x17, #65535", "movk x17, #65535, lsl #16",
                             "eor x16, x16, x17", "cbnz x16, #12", "ldr x4, [x3, #16]", "b #-4684"},
                [ELFV2] = {"lwz 11, 0(3)", "addis 11, 11, -32768", "addis 11, 11, -32768",
                           "addi 11, 11, 2", "mtctr 11", "bdnz .+12", "ld 4, 16(3)", "b .-4688"},
            },
    },
    {
        .name = "guard: 8 bytes, a pointer",
        .one = {GUARD(0, 8, UINT64_C(0x7F1234567890)), .action = ARCH_CACHE_LOAD, .value = 4,
                FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"ldr x16, [x3]", "mov x17, #30864", "movk x17, #13398, lsl #16",
                             "movk x17, #32530, lsl #32", "eor x16, x16, x17", "cbnz x16, #12",
                             "ldr x4, [x3, #16]", "b #-4688"},
                [ELFV2] = {"ld 11, 0(3)", "li 12, -32531", "sldi 12, 12, 32", "oris 12, 12, 52137",
                           "ori 12, 12, 34673", "add 11, 11, 12", "mtctr 11", "bdnz .+12",
                           "ld 4, 16(3)", "b .-4696"},
            },
    },
    {
        .name = "guard: far, not aligned",
        .one = {GUARD(0x123457, 8, 1), .action = ARCH_CACHE_LOAD, .value = 4, FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"mov x17, #13399", "movk x17, #18, lsl #16", "ldr x16, [x3, x17]",
                             "sub x16, x16, #1", "cbnz x16, #12", "ldr x4, [x3, #16]", "b #-4684"},
                [ELFV2] = {"addis 12, 3, 18", "addi 12, 12, 13399", "ld 11, 0(12)", "mtctr 11",
                           "bdnz .+12", "ld 4, 16(3)", "b .-4684"},
            },
    },
    {
        .name = "guard: as far as it gets",
        .one = {GUARD(INT32_MAX, 4, 1), .action = ARCH_CACHE_LOAD, .value = 4, FIELD(INT32_MIN, 1)},
        .lines =
            {
                [AARCH64] = {"mov x17, #65535", "movk x17, #32767, lsl #16", "ldr w16, [x3, x17]",
                             "sub x16, x16, #1", "cbnz x16, #20", "mov x17, #-65536",
                             "movk x17, #32768, lsl #16", "ldrb w4, [x3, x17]", "b #-4692"},
                [ELFV2] = {"addis 12, 3, 32767", "addis 12, 12, 1", "lwz 11, -1(12)", "mtctr 11",
                           "bdnz .+16", "addis 12, 3, -32768", "lbz 4, 0(12)", "b .-4688"},
            },
    },
    {
        .name = "guard: low bits",
        .one = {GUARD_BITS(0, 8, 7, 3), .action = ARCH_CACHE_LOAD, .value = 4, FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"ldr x16, [x3]", "and x16, x16, #0x7", "sub x16, x16, #3",
                             "cbnz x16, #12", "ldr x4, [x3, #16]", "b #-4680"},
                [ELFV2] = {"ld 11, 0(3)", "clrldi 11, 11, 61", "addi 11, 11, -2", "mtctr 11",
                           "bdnz .+12", "ld 4, 16(3)", "b .-4684"},
            },
    },
    {
        .name = "guard: bits in the middle",
        .one = {GUARD_BITS(0, 4, 0xFFF0, 0x1230), .action = ARCH_CACHE_LOAD, .value = 4,
                FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "and x16, x16, #0xfff0", "mov x17, #4656",
                             "eor x16, x16, x17", "cbnz x16, #12", "ldr x4, [x3, #16]", "b #-4684"},
                [ELFV2] = {"lwz 11, 0(3)", "lis 12, 0", "ori 12, 12, 65520", "and 11, 11, 12",
                           "addi 11, 11, -4655", "mtctr 11", "bdnz .+12", "ld 4, 16(3)",
                           "b .-4692"},
            },
    },
    {
        .name = "guard: bits here and there",
        .one = {GUARD_BITS(0, 8, UINT64_C(0xFF00FF00FF00FF01), UINT64_C(0xFF00000000000001)),
                .action = ARCH_CACHE_LOAD, .value = 4, FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"ldr x16, [x3]", "mov x17, #65281", "movk x17, #65280, lsl #16",
                             "movk x17, #65280, lsl #32", "movk x17, #65280, lsl #48",
                             "and x16, x16, x17", "mov x17, #1", "movk x17, #65280, lsl #48",
                             "eor x16, x16, x17", "cbnz x16, #12", "ldr x4, [x3, #16]", "b #-4704"},
                [ELFV2] = {"ld 11, 0(3)", "lis 12, -256", "ori 12, 12, 65280", "sldi 12, 12, 32",
                           "oris 12, 12, 65280", "ori 12, 12, 65281", "and 11, 11, 12",
                           "lis 12, 256", "sldi 12, 12, 32", "add 11, 11, 12", "mtctr 11",
                           "bdnz .+12", "ld 4, 16(3)", "b .-4712"},
            },
    },
    {
        .name = "guard: r0",
        .one = {.key_offset = 8,
                .key_width = 4,
                .mask = UINT32_MAX,
                .action = ARCH_CACHE_LOAD,
                FIELD(16, 8)},
        .lines =
            {
                [AARCH64] = {"ldr w16, [x0, #8]", "cbnz x16, #12", "ldr x0, [x0, #16]", "b #-4672"},
                [ELFV2] = {"mr 12, 0", "lwz 11, 8(12)", "addi 11, 11, 1", "mtctr 11", "bdnz .+16",
                           "mr 12, 0", "ld 0, 16(12)", "b .-4688"},
            },
    },
    {
        .name = "load: 1 byte",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 4, FIELD(3, 1)},
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldrb w4, [x3, #3]", "b #-4672"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "lbz 4, 3(3)",
                           "b .-4680"},
            },
    },
    {
        .name = "load: 2 bytes",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 4, FIELD(3, 2)},
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldurh w4, [x3, #3]", "b #-4672"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "lhz 4, 3(3)",
                           "b .-4680"},
            },
    },
    {
        .name = "load: 4 bytes",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 4, FIELD(4, 4)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldr w4, [x3, #4]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "lwz 4, 4(3)",
                           "blr"},
            },
    },
    {
        .name = "load: 8 bytes, not aligned",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 4, FIELD(1001, 8)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #16", "mov x17, #1001",
                             "ldr x4, [x3, x17]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+16",
                           "addi 12, 3, 1001", "ld 4, 0(12)", "blr"},
            },
    },
    {
        .name = "load: 1 byte, signed",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 4,
                .field = {.offset = 8, .width = 1, .is_signed = true}},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldrsb x4, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+16", "lbz 4, 8(3)",
                           "extsb 4, 4", "blr"},
            },
    },
    {
        .name = "load: 2 bytes, signed",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 4,
                .field = {.offset = 8, .width = 2, .is_signed = true}},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldrsh x4, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "lha 4, 8(3)",
                           "blr"},
            },
    },
    {
        .name = "load: 4 bytes, signed",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 4,
                .field = {.offset = 8, .width = 4, .is_signed = true}},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldrsw x4, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "lwa 4, 8(3)",
                           "blr"},
            },
    },
    {
        .name = "load: 8 bytes, signed",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 4,
                .field = {.offset = 8, .width = 8, .is_signed = true}},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldr x4, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "ld 4, 8(3)",
                           "blr"},
            },
    },
    {
        .name = "load: out of line",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 3,
                .field = {.offset = 24, .width = 8, .is_out_of_line = true, .pointer_offset = 8}},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #16", "ldr x16, [x3, #8]",
                             "ldr x3, [x16, #24]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+16", "ld 12, 8(3)",
                           "ld 3, 24(12)", "blr"},
            },
    },
    {
        .name = "load: out of line, far",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = 3,
                .field = {.offset = -0x12345,
                          .width = 8,
                          .is_out_of_line = true,
                          .pointer_offset = 0x54321}},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #32", "mov x17, #17185",
                             "movk x17, #5, lsl #16", "ldr x16, [x3, x17]", "mov x17, #-9029",
                             "movk x17, #65534, lsl #16", "ldr x3, [x16, x17]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+32",
                           "addis 12, 3, 5", "addi 12, 12, 17185", "ld 12, 0(12)",
                           "addis 12, 12, -1", "addi 12, 12, -9029", "ld 3, 0(12)", "blr"},
            },
    },
    {
        .name = "load: a float",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = FLOAT + 5, FIELD(8, 4)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldr s5, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "lfs 5, 8(3)",
                           "blr"},
            },
    },
    {
        .name = "load: a double",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = FLOAT + 5, FIELD(8, 8)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldr d5, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "lfd 5, 8(3)",
                           "blr"},
            },
    },
    {
        .name = "load: a float into a vector",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = VECTOR + 31, FIELD(8, 4)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldr s31, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+16",
                           "addi 12, 3, 8", "lxsspx 63, 0, 12", "blr"},
            },
    },
    {
        .name = "load: a double into a vector",
        .one = {GUARDED, .action = ARCH_CACHE_LOAD, .value = VECTOR + 31, FIELD(0, 8)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "ldr d31, [x3]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12",
                           "lxsdx 63, 0, 3", "blr"},
            },
    },
    {
        .name = "store: 1 byte",
        .one = {GUARDED, .action = ARCH_CACHE_STORE, .value = 4, FIELD(3, 1)},
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "strb w4, [x3, #3]", "b #-4672"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "stb 4, 3(3)",
                           "b .-4680"},
            },
    },
    {
        .name = "store: 2 bytes",
        .one = {GUARDED, .action = ARCH_CACHE_STORE, .value = 4, FIELD(2, 2)},
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "strh w4, [x3, #2]", "b #-4672"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "sth 4, 2(3)",
                           "b .-4680"},
            },
    },
    {
        .name = "store: 4 bytes",
        .one = {GUARDED, .action = ARCH_CACHE_STORE, .value = 4, FIELD(4, 4)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "str w4, [x3, #4]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "stw 4, 4(3)",
                           "blr"},
            },
    },
    {
        .name = "store: 8 bytes, out of line",
        .one = {GUARDED, .action = ARCH_CACHE_STORE, .value = 0,
                .field = {.offset = 24, .width = 8, .is_out_of_line = true, .pointer_offset = -8}},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #16", "ldur x16, [x3, #-8]",
                             "str x0, [x16, #24]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+16",
                           "ld 12, -8(3)", "std 0, 24(12)", "blr"},
            },
    },
    {
        .name = "store: a float",
        .one = {GUARDED, .action = ARCH_CACHE_STORE, .value = FLOAT + 5, FIELD(8, 4)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "str s5, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12",
                           "stfs 5, 8(3)", "blr"},
            },
    },
    {
        .name = "store: a double",
        .one = {GUARDED, .action = ARCH_CACHE_STORE, .value = FLOAT + 5, FIELD(8, 8)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "str d5, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12",
                           "stfd 5, 8(3)", "blr"},
            },
    },
    {
        .name = "store: a float of a vector",
        .one = {GUARDED, .action = ARCH_CACHE_STORE, .value = VECTOR + 1, FIELD(8, 4)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "str s1, [x3, #8]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+16",
                           "addi 12, 3, 8", "stxsspx 33, 0, 12", "blr"},
            },
    },
    {
        .name = "store: a double of a vector",
        .one = {GUARDED, .action = ARCH_CACHE_STORE, .value = VECTOR + 1, FIELD(0x10000, 8)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #16", "mov x17, #65536",
                             "str d1, [x3, x17]", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+16",
                           "addis 12, 3, 1", "stxsdx 33, 0, 12", "blr"},
            },
    },
    {
        .name = "constant: 0",
        .one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = 4, .constant = 0},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "mov x4, #0", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12",
                           "li 4, 0", "blr"},
            },
    },
    {
        .name = "constant: -1",
        .one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = 4, .constant = UINT64_MAX},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "mov x4, #-1", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "li 4, -1",
                           "blr"},
            },
    },
    {
        .name = "constant: 32 bits",
        .one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = 4, .constant = 0x87654321},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #16", "mov x4, #17185",
                             "movk x4, #34661, lsl #16", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+20",
                           "li 4, 0", "oris 4, 4, 34661", "ori 4, 4, 17185", "blr"},
            },
    },
    {
        .name = "constant: 64 bits",
        .one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = 0,
                .constant = UINT64_C(0xFEDCBA9876543210)},
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #24", "mov x0, #12816",
                             "movk x0, #30292, lsl #16", "movk x0, #47768, lsl #32",
                             "movk x0, #65244, lsl #48", "b #-4684"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+28", "lis 0, -292",
                           "ori 0, 0, 47768", "sldi 0, 0, 32", "oris 0, 0, 30292",
                           "ori 0, 0, 12816", "b .-4696"},
            },
    },
    {
        .name = "constant: a float",
        .one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = FLOAT + 5, .constant = 0x3FC00000,
                .constant_width = 4},
        .is_called = true,
        .literal_bytes = 4,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #16", "mov x16, #1069547520",
                             "fmov s5, w16", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+32", "lis 12, 0",
                           "ori 12, 12, 32512", "sldi 12, 12, 32", "oris 12, 12, 0",
                           "lfs 5, 40(12)", "blr"},
            },
    },
    {
        .name = "constant: a double",
        .one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = FLOAT + 5,
                .constant = UINT64_C(0x400921FB54442D18), .constant_width = 8},
        .is_called = true,
        .literal_bytes = 8,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #28", "mov x16, #11544",
                             "movk x16, #21572, lsl #16", "movk x16, #8699, lsl #32",
                             "movk x16, #16393, lsl #48", "fmov d5, x16", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+36", "lis 12, 0",
                           "ori 12, 12, 32512", "sldi 12, 12, 32", "oris 12, 12, 0",
                           "lfd 5, 40(12)", "blr"},
            },
    },
    {
        .name = "constant: a double for a vector",
        .one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = VECTOR + 5,
                .constant = UINT64_C(0x3FF0000000000000), .constant_width = 8},
        .is_called = true,
        .literal_bytes = 8,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #16", "mov x16, #4607182418800017408",
                             "fmov d5, x16", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+44", "lis 12, 0",
                           "ori 12, 12, 32512", "sldi 12, 12, 32", "oris 12, 12, 0",
                           "addi 12, 12, 48", "lxsdx 37, 0, 12", "blr", "trap"},
            },
    },
    {
        .name = "constant: a float for a vector",
        .one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = VECTOR + 5, .constant = 0x3FC00000,
                .constant_width = 4},
        .is_called = true,
        .literal_bytes = 4,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #16", "mov x16, #1069547520",
                             "fmov s5, w16", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+40", "lis 12, 0",
                           "ori 12, 12, 32512", "sldi 12, 12, 32", "oris 12, 12, 0",
                           "addi 12, 12, 48", "lxsspx 37, 0, 12", "blr", "trap"},
            },
    },
    {
        .name = "jump",
        .one = {GUARDED, .action = ARCH_CACHE_JUMP, .target = UINT64_C(0x123456789ABCDEF0)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #24", "mov x16, #57072",
                             "movk x16, #39612, lsl #16", "movk x16, #22136, lsl #32",
                             "movk x16, #4660, lsl #48", "br x16"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+32",
                           "lis 12, 4660", "ori 12, 12, 22136", "sldi 12, 12, 32",
                           "oris 12, 12, 39613", "addi 12, 12, -8464", "mtctr 12", "bctr"},
                [ELFV1] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+44",
                           "lis 12, 4660", "ori 12, 12, 22136", "sldi 12, 12, 32",
                           "oris 12, 12, 39613", "addi 12, 12, -8464", "ld 11, 0(12)",
                           "ld 2, 8(12)", "mtctr 11", "ld 11, 16(12)", "bctr"},
            },
    },
    {
        .name = "counter",
        .one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = 4, .constant = 1,
                .counter = UINT64_C(0x7F123456FFF8)},
        .is_called = true,
        .lines =
            {
                [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #40", "mov x16, #65528",
                             "movk x16, #13398, lsl #16", "movk x16, #32530, lsl #32",
                             "movk x16, #0, lsl #48", "ldr x17, [x16]", "add x17, x17, #1",
                             "str x17, [x16]", "mov x4, #1", "ret"},
                [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+40", "lis 12, 0",
                           "ori 12, 12, 32530", "sldi 12, 12, 32", "oris 12, 12, 13399",
                           "ld 11, -8(12)", "addi 11, 11, 1", "std 11, -8(12)", "li 4, 1", "blr"},
            },
    },
};
enum { EXAMPLE_COUNT = sizeof examples / sizeof *examples };

/* Returns the register's number. `FLOAT` and `VECTOR` are the first numbers of their kind. */
static uint16_t register_of(uint16_t value)
{
    unsigned kind = value & ~31u;
    unsigned number = value & 31u;
    if (kind == FLOAT)
        return (uint16_t)((machine == AARCH64 ? 64 : 32) + number);
    if (kind == VECTOR)
        return (uint16_t)((machine == AARCH64 ? 64 : 77) + number);
    return value;
}

static struct arch_cache cache_of(const struct arch_cache_case *cases, size_t count, bool is_called)
{
    return (struct arch_cache){
        .cases = cases,
        .count = count,
        .is_called = is_called,
        .site_end = return_address,
        .return_address = return_address,
        .exit_data = far_away,
    };
}

static void expect_example(const struct example *example)
{
    uint8_t code[ARCH_CACHE_BYTES_MAX];
    struct arch_cache_size size;
    struct arch_cache_case one = example->one;
    one.value = register_of(one.value);
    struct arch_cache cache = cache_of(&one, 1, example->is_called);
    const char *const *lines = example->lines[machine];
    if (machine == ELFV1 && lines[0] == NULL)
        lines = example->lines[ELFV2];
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
    size_t literal_bytes = machine == AARCH64 ? 0 : example->literal_bytes;
    expect_lines(example->name, code, size.case_bytes - literal_bytes, lines);
    bool is_big_endian = arch->byte_order == CAIRN_BIG_ENDIAN;
    for (size_t i = 0; i < literal_bytes; i++) {
        size_t byte = is_big_endian ? literal_bytes - 1 - i : i;
        ck_assert_uint_eq(code[size.case_bytes - literal_bytes + i],
                          one.constant >> 8 * byte & 0xFF);
    }
}

START_TEST(cases_are_encoded_as_expected)
{
    open_machine(_i);
    for (size_t i = 0; i < EXAMPLE_COUNT; i++)
        expect_example(&examples[i]);
}
END_TEST

/* ---- Several cases ---- */

START_TEST(a_miss_continues_with_the_next_case)
{
    static const char *const lines[MACHINE_COUNT][LINES_MAX] = {
        [AARCH64] = {"ldr w16, [x3]", "cbnz x16, #12", "mov x4, #1", "ret", "ldr w16, [x3]",
                     "sub x16, x16, #1", "cbnz x16, #12", "mov x4, #2", "ret"},
        [ELFV2] = {"lwz 11, 0(3)", "addi 11, 11, 1", "mtctr 11", "bdnz .+12", "li 4, 1", "blr",
                   "lwz 11, 0(3)", "mtctr 11", "bdnz .+12", "li 4, 2", "blr"},
    };
    open_machine(_i);
    const struct arch_cache_case cases[] = {
        {GUARD(0, 4, 0), .action = ARCH_CACHE_CONSTANT, .value = 4, .constant = 1},
        {GUARD(0, 4, 1), .action = ARCH_CACHE_CONSTANT, .value = 4, .constant = 2},
    };
    struct arch_cache cache = cache_of(cases, 2, true);
    uint8_t code[ARCH_CACHE_BYTES_MAX];
    struct arch_cache_size size;
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
    expect_lines("two cases", code, size.case_bytes, lines[machine == ELFV1 ? ELFV2 : machine]);
}
END_TEST

/* PPC64 keeps an operand in r11 in LR while r11 is in use. */
START_TEST(an_operand_in_r11_is_preserved)
{
    static const char *const lines[] = {"mtlr 11",   "lwz 11, 0(11)", "addi 11, 11, 1", "mtctr 11",
                                        "bdnz .+16", "mflr 11",       "li 4, 1",        "b .-4688",
                                        "mflr 11",   "lwz 11, 0(11)", "mtctr 11",       "bdnz .+16",
                                        "mflr 11",   "li 4, 2",       "b .-4716",       NULL};
    static const uint16_t operands[] = {3, 11};
    open_machine(_i);
    if (machine == AARCH64)
        return;
    struct arch_cache_case cases[] = {
        {GUARD(0, 4, 0), .action = ARCH_CACHE_CONSTANT, .value = 4, .constant = 1},
        {GUARD(0, 4, 1), .action = ARCH_CACHE_CONSTANT, .value = 4, .constant = 2},
    };
    cases[0].receiver = cases[1].receiver = 11;
    struct arch_cache cache = cache_of(cases, 2, false);
    cache.operands = operands;
    cache.operand_count = 2;
    uint8_t code[ARCH_CACHE_BYTES_MAX];
    struct arch_cache_size size;
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
    expect_lines("an operand in r11", code, size.case_bytes, lines);
}
END_TEST

/* ---- Code after the last case ---- */

static void expect_end(struct arch_cache cache, const char *const *lines)
{
    uint8_t code[ARCH_CACHE_BYTES_MAX];
    struct arch_cache_size size;
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
    ck_assert_uint_eq(size.case_bytes, 0);
    ck_assert_uint_le(size.bytes, ARCH_CACHE_END_BYTES_MAX);
    expect_lines("the end", code, size.bytes, lines);
}

#define EXIT_OF_PPC64                                                                              \
    "lis 12, 4660", "ori 12, 12, 22136", "sldi 12, 12, 32", "oris 12, 12, 39613",                  \
        "ld 12, -8464(12)", "mtctr 12", "lis 12, 4660", "ori 12, 12, 22136", "sldi 12, 12, 32",    \
        "oris 12, 12, 39613", "addi 12, 12, -8464", "bctr"

START_TEST(a_called_cache_ends_with_an_exit)
{
    static const char *const lines[MACHINE_COUNT][LINES_MAX] = {
        [AARCH64] = {"mov x16, #57072", "movk x16, #39612, lsl #16", "movk x16, #22136, lsl #32",
                     "movk x16, #4660, lsl #48", "ldr x17, [x16]", "br x17"},
        [ELFV2] = {EXIT_OF_PPC64},
        [ELFV1] = {EXIT_OF_PPC64},
    };
    open_machine(_i);
    expect_end(cache_of(NULL, 0, true), lines[machine]);
}
END_TEST

START_TEST(an_exit_gets_the_return_address_of_a_call)
{
    static const char *const lines[MACHINE_COUNT][LINES_MAX] = {
        [AARCH64] = {"adrp x30, #-8192", "add x30, x30, #3532", "mov x16, #57072",
                     "movk x16, #39612, lsl #16", "movk x16, #22136, lsl #32",
                     "movk x16, #4660, lsl #48", "ldr x17, [x16]", "br x17"},
        [ELFV2] = {"lis 12, 0", "ori 12, 12, 32512", "sldi 12, 12, 32", "oris 12, 12, 0",
                   "addi 12, 12, -4660", "mtlr 12", EXIT_OF_PPC64},
        [ELFV1] = {"lis 12, 0", "ori 12, 12, 32512", "sldi 12, 12, 32", "oris 12, 12, 0",
                   "addi 12, 12, -4660", "mtlr 12", EXIT_OF_PPC64},
    };
    open_machine(_i);
    expect_end(cache_of(NULL, 0, false), lines[machine]);
}
END_TEST

START_TEST(a_cache_may_end_with_a_function)
{
    static const char *const lines[MACHINE_COUNT][LINES_MAX] = {
        [AARCH64] = {"mov x16, #22136", "movk x16, #4660, lsl #16", "movk x16, #0, lsl #32",
                     "movk x16, #0, lsl #48", "br x16"},
        [ELFV2] = {"lis 12, 0", "ori 12, 12, 0", "sldi 12, 12, 32", "oris 12, 12, 4660",
                   "addi 12, 12, 22136", "mtctr 12", "bctr"},
        [ELFV1] = {"lis 12, 0", "ori 12, 12, 0", "sldi 12, 12, 32", "oris 12, 12, 4660",
                   "addi 12, 12, 22136", "ld 11, 0(12)", "ld 2, 8(12)", "mtctr 11", "ld 11, 16(12)",
                   "bctr"},
    };
    open_machine(_i);
    struct arch_cache cache = cache_of(NULL, 0, true);
    cache.miss_target = 0x12345678;
    expect_end(cache, lines[machine]);
}
END_TEST

/* ---- Reach and size ---- */

START_TEST(a_return_address_out_of_reach_is_refused)
{
    open_machine(_i);
    const struct arch_cache_case one = {GUARDED, .action = ARCH_CACHE_CONSTANT, .value = 4};
    struct arch_cache cache = cache_of(&one, 1, false);
    uint8_t code[ARCH_CACHE_BYTES_MAX];
    struct arch_cache_size size;
    cache.return_address = address + arch->reach_bytes - 4;
    cache.site_end = cache.return_address;
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
    cache.return_address = address + arch->reach_bytes;
    cache.site_end = cache.return_address;
    ck_assert(!encoder->encode_cache(arch, &cache, address, code, &size));
    cache.return_address = address + ARCH_CACHE_BYTES_MAX - arch->reach_bytes;
    cache.site_end = cache.return_address;
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
    cache.return_address = address - arch->reach_bytes;
    cache.site_end = cache.return_address;
    ck_assert(!encoder->encode_cache(arch, &cache, address, code, &size));
    cache.count = 0;
    ck_assert(!encoder->encode_cache(arch, &cache, address, code, &size));
    cache.is_called = true;
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
}
END_TEST

START_TEST(the_longest_cases_have_the_expected_size)
{
    static const size_t bytes[MACHINE_COUNT] = {[AARCH64] = 112, [ELFV2] = 144, [ELFV1] = 144};
    open_machine(_i);
    struct arch_cache_case one = {
        .receiver = 0,
        .key_offset = 0x7FFFFFFD,
        .key_width = 8,
        .mask = UINT64_C(0xFEDCBA9876543211),
        .key = UINT64_C(0x8ECCBA9876543210),
        .action = ARCH_CACHE_STORE,
        .value = register_of(VECTOR + 1),
        .field = {.offset = 0x7FFFFFFD,
                  .width = 8,
                  .is_out_of_line = true,
                  .pointer_offset = 0x7FFFFFF1},
        .counter = far_away,
    };
    struct arch_cache cache = cache_of(&one, 1, false);
    uint8_t code[ARCH_CACHE_BYTES_MAX];
    struct arch_cache_size size;
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
    ck_assert_uint_eq(size.case_bytes, bytes[machine]);
    one.action = ARCH_CACHE_JUMP;
    cache.is_called = true;
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
    ck_assert_uint_le(size.case_bytes, bytes[machine]);
    one.action = ARCH_CACHE_CONSTANT;
    one.constant_width = 8;
    one.constant = far_away;
    ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
    ck_assert_uint_le(size.case_bytes, bytes[machine]);
}
END_TEST

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return (uint64_t)support_random(&random_state) << 32 | support_random(&random_state);
}

static uint32_t random_below(uint32_t end) { return support_random(&random_state) % end; }

/* Returns numbers of random length, so that short forms occur. */
static uint64_t random_number(void) { return random_u64() >> random_below(64); }

static int32_t random_offset(void)
{
    uint32_t magnitude = (uint32_t)random_u64() >> random_below(32);
    return (int32_t)(random_below(2) == 0 ? magnitude : -magnitude);
}

static uint8_t random_width(void) { return (uint8_t)(1u << random_below(4)); }

/* Width of a floating-point number. */
static uint8_t random_float_width(void) { return random_below(2) == 0 ? 4 : 8; }

/* Returns a register that cases may use on every machine. */
static uint16_t random_register(uint16_t kind)
{
    static const uint16_t general[] = {0, 2, 3, 4, 10, 14, 15, 18, 29};
    if (kind == 0)
        return general[random_below(sizeof general / sizeof *general)];
    return register_of((uint16_t)(kind + random_below(32)));
}

static void make_random(struct arch_cache_case *one, bool is_called)
{
    uint16_t kind = (uint16_t)(random_below(3) * FLOAT);
    one->receiver = random_register(0);
    one->key_width = random_width();
    one->key_offset = random_offset();
    one->mask = UINT64_MAX >> (64 - 8 * one->key_width);
    if (random_below(2) == 0)
        one->mask &= random_number();
    one->key = random_number() & one->mask;
    one->action =
        (enum arch_cache_action)random_below(is_called ? ARCH_CACHE_JUMP + 1 : ARCH_CACHE_JUMP);
    one->value = random_register(kind);
    one->field.width = kind == 0 ? random_width() : random_float_width();
    one->field.offset = random_offset();
    one->field.is_signed = random_below(2) == 0;
    one->field.is_out_of_line = random_below(2) == 0;
    one->field.pointer_offset = random_offset();
    one->constant = random_number();
    one->constant_width = random_float_width();
    one->target = random_u64() & ~UINT64_C(7);
    one->counter = random_below(2) == 0 ? 0 : random_u64() & ~UINT64_C(7);
}

/* Changes the addresses. */
static void move(struct arch_cache *cache, struct arch_cache_case *cases)
{
    cache->return_address = address + random_below(1 << 20) * 4;
    cache->site_end = address + random_below(1 << 20) * 4;
    cache->exit_data = random_u64() & ~UINT64_C(7);
    for (size_t i = 0; i < cache->count; i++) {
        cases[i].target = random_u64() & ~UINT64_C(7);
        if (cases[i].counter != 0)
            cases[i].counter = (random_u64() & ~UINT64_C(7)) | 8;
    }
}

START_TEST(sizes_do_not_depend_on_addresses_and_have_a_limit)
{
    open_machine(_i);
    random_state = support_seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        struct arch_cache_case cases[3];
        uint8_t code[ARCH_CACHE_BYTES_MAX];
        struct arch_cache_size size;
        struct arch_cache_size moved;
        bool is_called = random_below(2) == 0;
        memset(cases, 0, sizeof cases);
        struct arch_cache cache = cache_of(cases, random_below(4), is_called);
        for (size_t i = 0; i < cache.count; i++)
            make_random(&cases[i], is_called);
        ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
        move(&cache, cases);
        ck_assert(encoder->encode_cache(arch, &cache, address + random_below(999) * UINT64_C(32),
                                        code, &moved));
        bool is_same = size.bytes == moved.bytes && size.case_bytes == moved.case_bytes;
        bool is_small = size.case_bytes <= cache.count * ARCH_CACHE_CASE_BYTES_MAX &&
                        size.bytes - size.case_bytes <= ARCH_CACHE_END_BYTES_MAX;
        if (!is_same || !is_small)
            ck_abort_msg("%zu bytes, then %zu", size.bytes, moved.bytes);
    }
}
END_TEST

/* All instructions that a case may contain. None of them changes flags. */
static const char *const instructions[] = {
    /* AArch64 */
    "ldrb", "ldrh", "ldr", "ldrsb", "ldrsh", "ldrsw", "ldurb", "ldurh", "ldur", "ldursb", "ldursh",
    "ldursw", "strb", "strh", "str", "sturb", "sturh", "stur", "mov", "movk", "and", "sub", "eor",
    "cbnz", "add", "fmov", "b", "br", "ret",
    /* PPC64 */
    "lbz", "lhz", "lwz", "ld", "lha", "lwa", "lfs", "lfd", "lxsspx", "lxsdx", "stb", "sth", "stw",
    "std", "stfs", "stfd", "stxsspx", "stxsdx", "mr", "li", "lis", "ori", "oris", "sldi", "addi",
    "addis", "clrldi", "extsb", "mtctr", "bdnz", "bctr", "blr"};

static bool is_known(const char *text)
{
    size_t length = strcspn(text, " ");
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        if (strlen(instructions[i]) == length && strncmp(text, instructions[i], length) == 0)
            return true;
    return false;
}

START_TEST(no_instruction_of_a_case_changes_flags)
{
    open_machine(_i);
    random_state = support_seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        struct arch_cache_case one = {0};
        uint8_t code[ARCH_CACHE_BYTES_MAX];
        struct arch_cache_size size;
        bool is_called = random_below(2) == 0;
        make_random(&one, is_called);
        if (one.value >= 32 && one.action == ARCH_CACHE_CONSTANT)
            one.value = random_register(0); /* no literals, which are not instructions */
        if (one.action == ARCH_CACHE_EXIT)
            one.action = ARCH_CACHE_LOAD; /* an action that does not have to preserve flags */
        struct arch_cache cache = cache_of(&one, 1, is_called);
        ck_assert(encoder->encode_cache(arch, &cache, address, code, &size));
        for (size_t at = 0; at < size.case_bytes; at += 4) {
            char text[TEXT_SIZE];
            disassemble(code + at, text);
            if (!is_known(text))
                ck_abort_msg("'%s'", text);
        }
    }
}
END_TEST

#define ADD(tests, test) tcase_add_loop_test((tests), test, 0, MACHINE_COUNT)

int main(void)
{
    Suite *suite = suite_create("cache words");
    TCase *tests = tcase_create("cache words");
    tcase_add_checked_fixture(tests, disassembly_set_up, tear_down);
    ADD(tests, cases_are_encoded_as_expected);
    ADD(tests, a_miss_continues_with_the_next_case);
    ADD(tests, an_operand_in_r11_is_preserved);
    ADD(tests, a_called_cache_ends_with_an_exit);
    ADD(tests, an_exit_gets_the_return_address_of_a_call);
    ADD(tests, a_cache_may_end_with_a_function);
    ADD(tests, a_return_address_out_of_reach_is_refused);
    ADD(tests, the_longest_cases_have_the_expected_size);
    ADD(tests, sizes_do_not_depend_on_addresses_and_have_a_limit);
    ADD(tests, no_instruction_of_a_case_changes_flags);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
