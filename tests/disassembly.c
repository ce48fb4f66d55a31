/* SPDX-License-Identifier: MIT */
#include "tests/disassembly.h"

#include <check.h>
#include <llvm-c/Target.h>
#include <stdbool.h>
#include <string.h>

enum { INSTRUCTION_BYTES_MAX = 16 };

void disassembly_set_up(void)
{
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllDisassemblers();
}

LLVMDisasmContextRef disassembly_open(const char *triple, const char *processor)
{
    LLVMDisasmContextRef disassembler =
        LLVMCreateDisasmCPU(triple, processor == NULL ? "" : processor, NULL, 0, NULL, NULL);
    ck_assert_msg(disassembler != NULL, "LLVM has no disassembler for %s", triple);
    return disassembler;
}

static void tidy(char *text)
{
    char *out = text;
    for (const char *at = text; *at != '\0'; at++) {
        bool blank = *at == ' ' || *at == '\t';
        if (!blank)
            *out++ = *at;
        else if (out > text && out[-1] != ' ')
            *out++ = ' ';
    }
    while (out > text && out[-1] == ' ')
        out--;
    *out = '\0';
}

size_t disassembly_line(LLVMDisasmContextRef disassembler, const uint8_t *bytes, size_t size,
                        uint64_t address, char *text, size_t text_size)
{
    uint8_t copy[INSTRUCTION_BYTES_MAX];
    size_t copied = size < sizeof copy ? size : sizeof copy;
    memcpy(copy, bytes, copied);
    text[0] = '\0';
    size_t length = LLVMDisasmInstruction(disassembler, copy, copied, address, text, text_size);
    tidy(text);
    return length;
}
