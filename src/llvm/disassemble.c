/* SPDX-License-Identifier: MIT */
#include "llvm/disassemble.h"

#include <llvm-c/Core.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct disassembler {
    LLVMDisasmContextRef llvm;
};

/* Registers are named as cairn_register_name does: that is Intel's syntax on x86, and the default
 * elsewhere. */
static void choose_syntax(LLVMDisasmContextRef llvm, const char *triple)
{
    if (strncmp(triple, "x86_64", 6) == 0)
        LLVMSetDisasmOptions(llvm, LLVMDisassembler_Option_AsmPrinterVariant);
    /* Afterwards, because choosing a variant forgets the other options. */
    LLVMSetDisasmOptions(llvm, LLVMDisassembler_Option_PrintImmHex);
}

/* Knows no names; but because it is asked, LLVM gives a branch's target as an address and not as
 * a distance. */
static const char *find_no_symbol(void *user, uint64_t value, uint64_t *reference_type,
                                  uint64_t address, const char **reference_name)
{
    (void)user;
    (void)value;
    (void)address;
    *reference_type = LLVMDisassembler_ReferenceType_InOut_None;
    *reference_name = NULL;
    return NULL;
}

struct disassembler *disassembler_create(void)
{
    if (LLVMInitializeNativeTarget() != 0 || LLVMInitializeNativeDisassembler() != 0)
        return NULL;
    struct disassembler *disassembler = calloc(1, sizeof *disassembler);
    if (disassembler == NULL)
        return NULL;
    char *triple = LLVMGetDefaultTargetTriple();
    disassembler->llvm = LLVMCreateDisasm(triple, NULL, 0, NULL, find_no_symbol);
    if (disassembler->llvm != NULL)
        choose_syntax(disassembler->llvm, triple);
    LLVMDisposeMessage(triple);
    if (disassembler->llvm != NULL)
        return disassembler;
    disassembler_destroy(disassembler);
    return NULL;
}

void disassembler_destroy(struct disassembler *disassembler)
{
    if (disassembler == NULL)
        return;
    if (disassembler->llvm != NULL)
        LLVMDisasmDispose(disassembler->llvm);
    free(disassembler);
}

static void make_one_line(char *text)
{
    size_t skipped = strspn(text, " \t");
    memmove(text, text + skipped, strlen(text) - skipped + 1);
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\t')
            *at = ' ';
}

size_t disassembler_next(struct disassembler *disassembler, const uint8_t *bytes, size_t size,
                         uint64_t address, char *text, size_t text_size)
{
    /* LLVM's parameter is not const; it does not write. */
    size_t length = LLVMDisasmInstruction(disassembler->llvm, (uint8_t *)(uintptr_t)bytes, size,
                                          address, text, text_size);
    if (length > 0)
        make_one_line(text);
    return length;
}
