/* SPDX-License-Identifier: MIT */
#include "tests/cache_examples.h"

#define EXIT                                                                                       \
    "movabsq $136999436274688, %r11\n"                                                             \
    "pushq %r11\n"                                                                                 \
    "jmpq *(%r11)\n"
#define JUMP_TO_EXIT(displacement)                                                                 \
    "leaq " displacement "(%rip), %r11\n"                                                          \
    "pushq %r11\n" EXIT

/* rdi, rsi, xmm1 */
const struct cache_example_registers cache_registers_x86_64 = {
    .receiver = 5, .value = 4, .vector = 18};

const struct cache_example_lines cache_examples_x86_64[EXAMPLE_COUNT] = {
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
    [EXAMPLE_KEEPS_FLAGS] = {.lines = "leaq -128(%rsp), %rsp\n"
                                      "pushfq\n"
                                      "cmpl $1, (%rdi)\n"
                                      "jne 31\n"
                                      "movabsq $137805744801792, %r11\n"
                                      "incq (%r11)\n"
                                      "popfq\n"
                                      "leaq 128(%rsp), %rsp\n"
                                      "movq 8(%rdi), %rsi\n"
                                      "jmp 4054\n"
                                      "popfq\n"
                                      "leaq 128(%rsp), %rsp\n" JUMP_TO_EXIT("4038")},
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
};
