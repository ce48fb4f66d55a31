/* SPDX-License-Identifier: MIT */
#include "tests/cache_examples.h"

/* DWARF numbers: rdi, rsi, xmm1 and others. */
enum { RECEIVER = 5, VALUE = 4, RBP = 6, R12 = 12, R13 = 13, VECTOR = 18, XMM17 = 68, XMM31 = 82 };

#define GUARD(width, offset, the_key)                                                              \
    .receiver = RECEIVER, .key_width = (width), .key_offset = (offset),                            \
    .mask = UINT64_MAX >> (64 - 8 * (width)), .key = (the_key)
#define MASKED_GUARD(width, offset, the_mask, the_key)                                             \
    .receiver = RECEIVER, .key_width = (width), .key_offset = (offset), .mask = (the_mask),        \
    .key = (the_key)
#define FIELD(at, bytes) .field = {.offset = (at), .width = (bytes)}
#define LOAD .action = ARCH_CACHE_LOAD, .value = VALUE
#define STORE .action = ARCH_CACHE_STORE, .value = VALUE
#define CONSTANT .action = ARCH_CACHE_CONSTANT, .value = VALUE

static const struct cache_example_code examples[EXAMPLE_COUNT] = {
    [EXAMPLE_EMPTY] = {.cache = {.count = 0}},
    [EXAMPLE_EMPTY_CALLED] = {.cache = {.count = 0, .is_called = true}},
    [EXAMPLE_EMPTY_WITH_TARGET] = {.cache = {.is_called = true,
                                             .miss_target = UINT64_C(0x123456789AB0)}},
    [EXAMPLE_LOAD] = {.cache = {.count = 2},
                      .cases = {{GUARD(4, 8, 0x12345678), LOAD, FIELD(16, 8)},
                                {GUARD(4, 8, 5), LOAD, FIELD(0, 4)}}},
    [EXAMPLE_LOAD_SIGNED] = {.cache = {.count = 3},
                             .cases = {{GUARD(1, 0, 0xFF), LOAD,
                                        .field = {.offset = 1, .width = 1, .is_signed = true}},
                                       {GUARD(2, 2, 0xFFFF), LOAD,
                                        .field = {.offset = 2, .width = 2, .is_signed = true}},
                                       {GUARD(4, 4, 0xFFFFFFFF), LOAD,
                                        .field = {.offset = 4, .width = 4, .is_signed = true}}}},
    [EXAMPLE_LOAD_OUT_OF_LINE] =
        {.cache = {.count = 2},
         .cases =
             {{GUARD(8, 0, UINT64_C(0x7F1234567890)), LOAD,
               .field = {.offset = -2, .width = 2, .is_out_of_line = true, .pointer_offset = 24}},
              {GUARD(8, 0, 42), LOAD, .field = {.offset = 0, .width = 1, .is_out_of_line = true}}}},
    [EXAMPLE_LOAD_VECTOR] =
        {.cache = {.count = 2},
         .cases = {{GUARD(2, 6, 0x8001), .action = ARCH_CACHE_LOAD, .value = VECTOR, FIELD(32, 8)},
                   {GUARD(2, 6, 7), .action = ARCH_CACHE_LOAD, .value = VECTOR, FIELD(40, 4)}}},
    [EXAMPLE_STORE_BYTE] = {.cache = {.count = 3},
                            .cases = {{GUARD(4, 0, 1), STORE, FIELD(9, 1)},
                                      {GUARD(4, 0, 2), STORE, FIELD(10, 2)},
                                      {GUARD(4, 0, 3), STORE, FIELD(12, 4)}}},
    [EXAMPLE_STORE_OUT_OF_LINE] = {.cache = {.count = 1},
                                   .cases = {{GUARD(4, 0, 1), STORE,
                                              .field = {.offset = 128,
                                                        .width = 8,
                                                        .is_out_of_line = true,
                                                        .pointer_offset = -8}}}},
    [EXAMPLE_STORE_VECTOR] =
        {.cache = {.count = 2},
         .cases = {{GUARD(4, 0, 1), .action = ARCH_CACHE_STORE, .value = VECTOR, FIELD(16, 4)},
                   {GUARD(4, 0, 2), .action = ARCH_CACHE_STORE, .value = VECTOR, FIELD(24, 8)}}},
    [EXAMPLE_CONSTANTS] = {.cache = {.count = 3},
                           .cases = {{GUARD(4, 0, 1), CONSTANT, .constant = 7},
                                     {GUARD(4, 0, 2), CONSTANT, .constant = UINT64_MAX - 1},
                                     {GUARD(4, 0, 3), CONSTANT,
                                      .constant = UINT64_C(0x123456789ABCDEF0)}}},
    [EXAMPLE_CONSTANT_VECTOR] = {.cache = {.count = 2},
                                 .cases = {{GUARD(4, 0, 1), .action = ARCH_CACHE_CONSTANT,
                                            .value = VECTOR,
                                            .constant = UINT64_C(0x3FF8000000000000), /* 1.5 */
                                            .constant_width = 8},
                                           {GUARD(4, 0, 2), .action = ARCH_CACHE_CONSTANT,
                                            .value = VECTOR, .constant = 0x3FC00000, /* 1.5 */
                                            .constant_width = 4}}},
    [EXAMPLE_CALLED] = {.cache = {.count = 1, .is_called = true},
                        .cases = {{GUARD(4, 0, 1), LOAD, FIELD(8, 8)}}},
    [EXAMPLE_JUMP_COUNTED] = {.cache = {.count = 1, .is_called = true},
                              .cases = {{GUARD(4, 0, 1), .action = ARCH_CACHE_JUMP,
                                         .target = UINT64_C(0x7E1122334400),
                                         .counter = UINT64_C(0x7D5566778800)}}},
    [EXAMPLE_MASKS] = {.cache = {.count = 3},
                       .cases = {{MASKED_GUARD(1, 0, 0xF0, 0x80), LOAD, FIELD(8, 8)},
                                 {MASKED_GUARD(4, 0, 0xFFFF00, 0x123400), LOAD, FIELD(8, 8)},
                                 {MASKED_GUARD(8, 0, UINT64_C(0xFFFFFFFFFFFFFFF8), 0), LOAD,
                                  FIELD(8, 8)}}},
    [EXAMPLE_WIDE_MASK] = {.cache = {.count = 1},
                           .cases = {{MASKED_GUARD(8, 16, UINT64_C(0x0000FFFFFFFFFFF0),
                                                   UINT64_C(0x00007F1234567890)),
                                      LOAD, FIELD(8, 8)}}},
    [EXAMPLE_FAR_OFFSETS] = {.cache = {.count = 2},
                             .cases = {{GUARD(4, INT32_MIN, 1), LOAD, FIELD(INT32_MAX, 8)},
                                       {GUARD(4, 0x12345, 1), LOAD, FIELD(-0x12345, 8)}}},
    [EXAMPLE_EXIT] = {.cache = {.count = 1},
                      .cases = {{GUARD(4, 0, 1), .action = ARCH_CACHE_EXIT,
                                 .target = UINT64_C(0x7C99AABBCC40)}}},
    /* Registers that are encoded differently as a base or as a byte. */
    [EXAMPLE_BASES] = {.cache = {.count = 3},
                       .cases = {{.receiver = R12,
                                  .key_width = 4,
                                  .mask = UINT32_MAX,
                                  .key = 1,
                                  .action = ARCH_CACHE_LOAD,
                                  .value = R13,
                                  FIELD(0, 8)},
                                 {.receiver = R13,
                                  .key_width = 4,
                                  .mask = UINT32_MAX,
                                  .key = 1,
                                  .action = ARCH_CACHE_LOAD,
                                  .value = R12,
                                  FIELD(0, 1)},
                                 {.receiver = RBP,
                                  .key_width = 4,
                                  .mask = UINT32_MAX,
                                  .key = 1,
                                  .action = ARCH_CACHE_STORE,
                                  .value = RBP,
                                  FIELD(0, 1)}}},
    /* xmm16 to xmm31. Short displacements are multiples of the width. */
    [EXAMPLE_NEW_VECTORS] =
        {.cache = {.count = 3},
         .cases = {{GUARD(4, 0, 1), .action = ARCH_CACHE_LOAD, .value = XMM17, FIELD(1016, 8)},
                   {.receiver = R13,
                    .key_width = 4,
                    .mask = UINT32_MAX,
                    .key = 1,
                    .action = ARCH_CACHE_STORE,
                    .value = XMM31,
                    FIELD(6, 4)},
                   {GUARD(4, 0, 1), .action = ARCH_CACHE_CONSTANT, .value = XMM31,
                    .constant = 0x3FC00000, .constant_width = 4}}},
    [EXAMPLE_SELECTION] = {.cache = {.count = 3},
                           .cases = {{GUARD(4, 0, 0x101), LOAD, FIELD(8, 8)},
                                     {GUARD(4, 0, 0x102), LOAD, FIELD(-16, 8)},
                                     {GUARD(4, 0, 0x103), LOAD, FIELD(24, 8)}}},
    [EXAMPLE_SELECTION_OUT_OF_LINE] = {.cache = {.count = 3, .is_called = true},
                                       .cases = {{GUARD(8, 0, 0x101), LOAD,
                                                  .field = {.offset = 8,
                                                            .width = 4,
                                                            .is_signed = true,
                                                            .is_out_of_line = true,
                                                            .pointer_offset = 16}},
                                                 {GUARD(8, 0, 0x102), LOAD,
                                                  .field = {.offset = 12,
                                                            .width = 4,
                                                            .is_signed = true,
                                                            .is_out_of_line = true,
                                                            .pointer_offset = 16}},
                                                 {GUARD(8, 0, 0x103), LOAD,
                                                  .field = {.offset = 16,
                                                            .width = 4,
                                                            .is_signed = true,
                                                            .is_out_of_line = true,
                                                            .pointer_offset = 16}}}},
    [EXAMPLE_SELECTION_WIDE] =
        {.cache = {.count = 3},
         .cases = {{GUARD(8, 0, UINT64_C(0x7F0000000001)), LOAD, FIELD(8, 8)},
                   {GUARD(8, 0, UINT64_C(0x7F0000000040)), LOAD, FIELD(16, 8)},
                   {GUARD(8, 0, UINT64_C(0x7F0000000080)), LOAD, FIELD(24, 8)}}},
    [EXAMPLE_TABLE] = {.cache = {.table = {.address = UINT64_C(0x7E0000000040),
                                           .bits = 6,
                                           .multiplier = 0x61C88647,
                                           .access = {GUARD(4, 8, 0), LOAD, FIELD(0, 8)}}}},
    [EXAMPLE_TABLE_WIDE] = {.cache = {.table = {.address = UINT64_C(0x7E0000000040),
                                                .bits = 6,
                                                .multiplier = 0x61C88647,
                                                .access = {GUARD(8, 8, 0), LOAD, FIELD(0, 8)}}}},
};

/* ---- Their code ---- */

#define EXIT                                                                                       \
    "movabsq $136999436274688, %r11\n"                                                             \
    "pushq %r11\n"                                                                                 \
    "jmpq *(%r11)\n"
#define JUMP_TO_EXIT(displacement)                                                                 \
    "leaq " displacement "(%rip), %r11\n"                                                          \
    "pushq %r11\n" EXIT

const struct cache_example_lines cache_example_lines[EXAMPLE_COUNT] = {
    [EXAMPLE_EMPTY] = {.lines = JUMP_TO_EXIT("4089")},
    [EXAMPLE_EMPTY_CALLED] = {.lines = EXIT},
    [EXAMPLE_EMPTY_WITH_TARGET] = {.lines = "movabsq $20015998343856, %r11\n"
                                            "jmpq *%r11\n"},
    [EXAMPLE_LOAD] = {.lines = "cmpl $305419896, 8(%rdi)\n"
                               "jne 9\n"
                               "movq 16(%rdi), %rsi\n"
                               "jmp 4078\n"
                               "cmpl $5, 8(%rdi)\n"
                               "jne 7\n"
                               "movl (%rdi), %esi\n"
                               "jmp 4065\n" JUMP_TO_EXIT("4058")},
    [EXAMPLE_LOAD_SIGNED] = {.lines = "cmpb $-1, (%rdi)\n"
                                      "jne 10\n"
                                      "movsbq 1(%rdi), %rsi\n"
                                      "jmp 4081\n"
                                      "movzwl 2(%rdi), %r11d\n"
                                      "cmpl $65535, %r11d\n"
                                      "jne 10\n"
                                      "movswq 2(%rdi), %rsi\n"
                                      "jmp 4057\n"
                                      "cmpl $-1, 4(%rdi)\n"
                                      "jne 9\n"
                                      "movslq 4(%rdi), %rsi\n"
                                      "jmp 4042\n" JUMP_TO_EXIT("4035")},
    [EXAMPLE_LOAD_OUT_OF_LINE] = {.lines = "movabsq $139716164221072, %r11\n"
                                           "cmpq %r11, (%rdi)\n"
                                           "jne 14\n"
                                           "movq 24(%rdi), %r11\n"
                                           "movzwl -2(%r11), %esi\n"
                                           "jmp 4067\n"
                                           "cmpq $42, (%rdi)\n"
                                           "jne 12\n"
                                           "movq (%rdi), %r11\n"
                                           "movzbl (%r11), %esi\n"
                                           "jmp 4049\n" JUMP_TO_EXIT("4042")},
    [EXAMPLE_LOAD_VECTOR] = {.lines = "movzwl 6(%rdi), %r11d\n"
                                      "cmpl $32769, %r11d\n"
                                      "jne 10\n"
                                      "movsd 32(%rdi), %xmm1\n"
                                      "jmp 4072\n"
                                      "movzwl 6(%rdi), %r11d\n"
                                      "cmpl $7, %r11d\n"
                                      "jne 10\n"
                                      "movss 40(%rdi), %xmm1\n"
                                      "jmp 4051\n" JUMP_TO_EXIT("4044")},
    [EXAMPLE_STORE_BYTE] = {.lines = "cmpl $1, (%rdi)\n"
                                     "jne 9\n"
                                     "movb %sil, 9(%rdi)\n"
                                     "jmp 4082\n"
                                     "cmpl $2, (%rdi)\n"
                                     "jne 9\n"
                                     "movw %si, 10(%rdi)\n"
                                     "jmp 4068\n"
                                     "cmpl $3, (%rdi)\n"
                                     "jne 8\n"
                                     "movl %esi, 12(%rdi)\n"
                                     "jmp 4055\n" JUMP_TO_EXIT("4048")},
    [EXAMPLE_STORE_OUT_OF_LINE] = {.lines = "cmpl $1, (%rdi)\n"
                                            "jne 16\n"
                                            "movq -8(%rdi), %r11\n"
                                            "movq %rsi, 128(%r11)\n"
                                            "jmp 4075\n" JUMP_TO_EXIT("4068")},
    [EXAMPLE_STORE_VECTOR] = {.lines = "cmpl $1, (%rdi)\n"
                                       "jne 10\n"
                                       "movss %xmm1, 16(%rdi)\n"
                                       "jmp 4081\n"
                                       "cmpl $2, (%rdi)\n"
                                       "jne 10\n"
                                       "movsd %xmm1, 24(%rdi)\n"
                                       "jmp 4066\n" JUMP_TO_EXIT("4059")},
    [EXAMPLE_CONSTANTS] = {.lines = "cmpl $1, (%rdi)\n"
                                    "jne 10\n"
                                    "movl $7, %esi\n"
                                    "jmp 4081\n"
                                    "cmpl $2, (%rdi)\n"
                                    "jne 12\n"
                                    "movq $-2, %rsi\n"
                                    "jmp 4064\n"
                                    "cmpl $3, (%rdi)\n"
                                    "jne 15\n"
                                    "movabsq $1311768467463790320, %rsi\n"
                                    "jmp 4044\n" JUMP_TO_EXIT("4037")},
    [EXAMPLE_CONSTANT_VECTOR] = {.lines = "cmpl $1, (%rdi)\n"
                                          "jne 13\n"
                                          "movsd 51(%rip), %xmm1\n"
                                          "jmp 4078\n"
                                          "cmpl $2, (%rdi)\n"
                                          "jne 13\n"
                                          "movss 41(%rip), %xmm1\n"
                                          "jmp 4060\n" JUMP_TO_EXIT("4053") "int3\n"
                                                                            "int3\n"
                                                                            "int3\n",
                                 .data = {UINT64_C(0x3FF8000000000000), 0x3FC00000},
                                 .data_count = 2},
    [EXAMPLE_CALLED] = {.lines = "cmpl $1, (%rdi)\n"
                                 "jne 5\n"
                                 "movq 8(%rdi), %rsi\n"
                                 "retq\n" EXIT},
    [EXAMPLE_JUMP_COUNTED] = {.lines = "cmpl $1, (%rdi)\n"
                                       "jne 26\n"
                                       "movabsq $137805744801792, %r11\n"
                                       "incq (%r11)\n"
                                       "movabsq $138612053328896, %r11\n"
                                       "jmpq *%r11\n" EXIT},
    [EXAMPLE_MASKS] = {.lines = "movzbl (%rdi), %r11d\n"
                                "andl $-16, %r11d\n"
                                "cmpl $128, %r11d\n"
                                "jne 9\n"
                                "movq 8(%rdi), %rsi\n"
                                "jmp 4070\n"
                                "movl (%rdi), %r11d\n"
                                "andl $16776960, %r11d\n"
                                "cmpl $1192960, %r11d\n"
                                "jne 9\n"
                                "movq 8(%rdi), %rsi\n"
                                "jmp 4042\n"
                                "movq (%rdi), %r11\n"
                                "andq $-8, %r11\n"
                                "jne 9\n"
                                "movq 8(%rdi), %rsi\n"
                                "jmp 4024\n" JUMP_TO_EXIT("4017")},
    [EXAMPLE_WIDE_MASK] = {.lines = "movabsq $281474976710640, %r11\n"
                                    "andq 16(%rdi), %r11\n"
                                    "cmpq 43(%rip), %r11\n"
                                    "jne 9\n"
                                    "movq 8(%rdi), %rsi\n"
                                    "jmp 4064\n" JUMP_TO_EXIT("4057") "int3\n"
                                                                      "int3\n"
                                                                      "int3\n"
                                                                      "int3\n"
                                                                      "int3\n"
                                                                      "int3\n"
                                                                      "int3\n",
                           .data = {UINT64_C(0x00007F1234567890)},
                           .data_count = 1},
    [EXAMPLE_FAR_OFFSETS] = {.lines = "cmpl $1, -2147483648(%rdi)\n"
                                      "jne 12\n"
                                      "movq 2147483647(%rdi), %rsi\n"
                                      "jmp 4075\n"
                                      "cmpl $1, 74565(%rdi)\n"
                                      "jne 12\n"
                                      "movq -74565(%rdi), %rsi\n"
                                      "jmp 4054\n" JUMP_TO_EXIT("4047")},
    [EXAMPLE_EXIT] = {.lines = "cmpl $1, (%rdi)\n"
                               "jne 25\n"
                               "leaq 4084(%rip), %r11\n"
                               "pushq %r11\n"
                               "movabsq $136999436274752, %r11\n"
                               "pushq %r11\n"
                               "jmpq *(%r11)\n" JUMP_TO_EXIT("4059")},
    [EXAMPLE_BASES] = {.lines = "cmpl $1, (%r12)\n"
                                "jne 9\n"
                                "movq (%r12), %r13\n"
                                "jmp 4080\n"
                                "cmpl $1, (%r13)\n"
                                "jne 10\n"
                                "movzbl (%r13), %r12d\n"
                                "jmp 4063\n"
                                "cmpl $1, (%rbp)\n"
                                "jne 9\n"
                                "movb %bpl, (%rbp)\n"
                                "jmp 4048\n" JUMP_TO_EXIT("4041")},
    [EXAMPLE_NEW_VECTORS] = {.lines = "cmpl $1, (%rdi)\n"
                                      "jne 12\n"
                                      "vmovsd 1016(%rdi), %xmm17\n"
                                      "jmp 4079\n"
                                      "cmpl $1, (%r13)\n"
                                      "jne 15\n"
                                      "vmovss %xmm31, 6(%r13)\n"
                                      "jmp 4057\n"
                                      "cmpl $1, (%rdi)\n"
                                      "jne 15\n"
                                      "vmovss 34(%rip), %xmm31\n"
                                      "jmp 4037\n" JUMP_TO_EXIT("4030") "int3\n"
                                                                        "int3\n"
                                                                        "int3\n"
                                                                        "int3\n",
                             .data = {0x3FC00000},
                             .data_count = 1},
    [EXAMPLE_SELECTION] = {.lines = "xorl %r11d, %r11d\n"
                                    "cmpl $259, (%rdi)\n"
                                    "cmovel 71(%rip), %r11d\n"
                                    "cmpl $258, (%rdi)\n"
                                    "cmovel 61(%rip), %r11d\n"
                                    "cmpl $257, (%rdi)\n"
                                    "cmovel 51(%rip), %r11d\n"
                                    "testl %r11d, %r11d\n"
                                    "je 10\n"
                                    "movq -17(%rdi,%r11), %rsi\n"
                                    "jmp 4036\n" JUMP_TO_EXIT("4029") "int3\n"
                                                                      "int3\n"
                                                                      "int3\n",
                           .data = {41, 1, 25},
                           .data_count = 3,
                           .data_bytes = 4},
    [EXAMPLE_SELECTION_OUT_OF_LINE] = {.lines = "xorl %r11d, %r11d\n"
                                                "cmpq $259, (%rdi)\n"
                                                "cmovel 62(%rip), %r11d\n"
                                                "cmpq $258, (%rdi)\n"
                                                "cmovel 51(%rip), %r11d\n"
                                                "cmpq $257, (%rdi)\n"
                                                "cmovel 40(%rip), %r11d\n"
                                                "testl %r11d, %r11d\n"
                                                "je 9\n"
                                                "addq 16(%rdi), %r11\n"
                                                "movslq 7(%r11), %rsi\n"
                                                "retq\n" EXIT "int3\n"
                                                "int3\n",
                                       .data = {9, 5, 1},
                                       .data_count = 3,
                                       .data_bytes = 4},
    [EXAMPLE_SELECTION_WIDE] = {.lines = "movq (%rdi), %r11\n"
                                         "cmpl $2, %r11d\n"
                                         "je 65\n"
                                         "cmpq 84(%rip), %r11\n"
                                         "cmoveq 84(%rip), %r11\n"
                                         "cmpq 85(%rip), %r11\n"
                                         "cmoveq 85(%rip), %r11\n"
                                         "cmpq 86(%rip), %r11\n"
                                         "cmoveq 86(%rip), %r11\n"
                                         "cmpl $2, %r11d\n"
                                         "jne 14\n"
                                         "shrq $32, %r11\n"
                                         "movq 7(%rdi,%r11), %rsi\n"
                                         "jmp 4018\n" JUMP_TO_EXIT("4011") "int3\n",
                                .data = {UINT64_C(0x7F0000000001), UINT64_C(0x100000002),
                                         UINT64_C(0x7F0000000040), UINT64_C(0x900000002),
                                         UINT64_C(0x7F0000000080), UINT64_C(0x1100000002)},
                                .data_count = 6},
    [EXAMPLE_TABLE] = {.lines = "movl 8(%rdi), %r11d\n"
                                "imulq $1640531527, %r11, %r11\n"
                                "shrq $17, %r11\n"
                                "andl $504, %r11d\n"
                                "addq 51(%rip), %r11\n"
                                "movq (%r11), %r11\n"
                                "cmpl %r11d, 8(%rdi)\n"
                                "jne 13\n"
                                "shrq $32, %r11\n"
                                "movq (%rdi,%r11), %rsi\n"
                                "jmp 4045\n" JUMP_TO_EXIT("4038") "int3\n"
                                                                  "int3\n"
                                                                  "int3\n"
                                                                  "int3\n",
                       .data = {UINT64_C(0x7E0000000040)},
                       .data_count = 1},
    [EXAMPLE_TABLE_WIDE] = {.lines = "leaq 4089(%rip), %r11\n"
                                     "pushq %r11\n"
                                     "movq 8(%rdi), %r11\n"
                                     "imulq $1640531527, %r11, %r11\n"
                                     "shrq $17, %r11\n"
                                     "andl $504, %r11d\n"
                                     "addq 66(%rip), %r11\n"
                                     "movq (%r11), %r11\n"
                                     "pushq %rax\n"
                                     "movq 8(%rdi), %rax\n"
                                     "xorq %r11, %rax\n"
                                     "shrq $48, %r11\n"
                                     "rolq $16, %rax\n"
                                     "cmpq %rax, %r11\n"
                                     "popq %rax\n"
                                     "leaq 8(%rsp), %rsp\n"
                                     "jne 9\n"
                                     "movq (%rdi,%r11), %rsi\n"
                                     "jmp 4019\n" JUMP_TO_EXIT("4012") "int3\n"
                                                                       "int3\n",
                            .data = {UINT64_C(0x7E0000000040)},
                            .data_count = 1},
};

void cache_example_get(enum cache_example example, struct cache_example_code *code)
{
    *code = examples[example];
    code->cache.cases = code->cases;
    code->cache.return_address = EXAMPLE_RETURN_ADDRESS;
    code->cache.site_end = EXAMPLE_RETURN_ADDRESS;
    code->cache.exit_data = UINT64_C(0x7C99AABBCC00);
}
