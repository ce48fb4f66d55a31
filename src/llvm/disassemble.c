/*
 * Calls LLVM's disassembler through the C API.
 *
 * The API returns only text, without operands. It has no option to print a branch's target as an
 * address: LLVM prints the address on some architectures, and the distance on others. So this file
 * replaces a distance in the last operand of a branch by the address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/disassemble.h"

#include "base/error.h"
#include "llvm/ir.h"
#include "llvm/version.h"

#include <llvm-c/Disassembler.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether `text` is a branch whose last operand, `operand`, is a distance. */
typedef bool finds_distance(const char *text, const char *operand);

struct disassembler {
    LLVMDisasmContextRef llvm;
    enum cairn_architecture architecture;
    finds_distance *finds_distance; /* NULL if LLVM reports targets to note_target */
    bool has_target;                /* for the instruction that LLVM decodes */
    uint64_t target;
};

/* ---- Distances in text ---- */

/* PPC64 prints a distance as ".+16". */
static bool finds_dot(const char *text, const char *operand)
{
    (void)text;
    return operand[0] == '.' && (operand[1] == '+' || operand[1] == '-');
}

/* RISC-V prints a distance as a plain number, which other instructions also have as their last
 * operand. */
static bool finds_number(const char *text, const char *operand)
{
    static const char *const branches[] = {"j",    "jal",  "beq",  "bne",  "blt",  "bge",
                                           "bltu", "bgeu", "beqz", "bnez", "blez", "bgez",
                                           "bltz", "bgtz", "bgt",  "ble",  "bgtu", "bleu"};
    size_t length = strcspn(text, " ");
    char *end;
    strtoll(operand, &end, 0);
    if (end == operand || *end != '\0')
        return false;
    for (size_t i = 0; i < sizeof branches / sizeof *branches; i++)
        if (strlen(branches[i]) == length && strncmp(text, branches[i], length) == 0)
            return true;
    return false;
}

/* ---- Options for LLVM ---- */

/* What LLVM needs to know of an architecture. The features enable the instructions that programs
 * for Linux may contain and that LLVM would not decode by default. */
struct description {
    const char *triple;
    const char *big_endian_triple; /* NULL: the same */
    const char *features;
    finds_distance *finds_distance;
};

/* ORDER ARCHITECTURE. */
static const struct description descriptions[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = {NULL, NULL, NULL, NULL},
    [CAIRN_ARCHITECTURE_X86_64] = {"x86_64-linux-gnu", NULL, "", NULL},
    [CAIRN_ARCHITECTURE_AARCH64] = {"aarch64-linux-gnu", NULL,
                                    LLVM_VERSION_MAJOR >= 16 ? "+all" : "", NULL},
    [CAIRN_ARCHITECTURE_PPC64_ELFV2] = {"powerpc64le-linux-gnu", "powerpc64-linux-gnu", "",
                                        finds_dot},
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = {"powerpc64le-linux-gnu", "powerpc64-linux-gnu", "",
                                        finds_dot},
    [CAIRN_ARCHITECTURE_SYSTEMZ] = {"s390x-linux-gnu", NULL, "", NULL},
    [CAIRN_ARCHITECTURE_RISCV64] = {"riscv64-linux-gnu", NULL, "+m,+a,+f,+d,+c", finds_number},
};

/* Initialises LLVM with full register names on PPC64, where registers are otherwise plain numbers,
 * like constants. The option applies to the whole process; nothing else prints assembly there. */
static void initialise_llvm(void)
{
    static const char *const arguments[] = {"cairn", "-ppc-asm-full-reg-names"};
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllDisassemblers();
    /* LLVM reports an error if an option is given twice. */
    LLVMParseCommandLineOptions(2, arguments, NULL);
}

/* Notes the target of a branch. LLVM calls this function for the name of an address; it returns no
 * name. */
static const char *note_target(void *user, uint64_t value, uint64_t *reference_type,
                               uint64_t address, const char **reference_name)
{
    struct disassembler *disassembler = user;
    (void)address;
    if (*reference_type == LLVMDisassembler_ReferenceType_In_Branch) {
        disassembler->has_target = true;
        disassembler->target = value;
    }
    *reference_type = LLVMDisassembler_ReferenceType_InOut_None;
    *reference_name = NULL;
    return NULL;
}

enum cairn_status disassembler_create(enum cairn_architecture architecture,
                                      enum cairn_byte_order byte_order,
                                      struct disassembler **disassembler, struct cairn_error *error)
{
    const struct description *description = &descriptions[architecture];
    const char *triple = description->triple;
    if (byte_order == CAIRN_BIG_ENDIAN && description->big_endian_triple != NULL)
        triple = description->big_endian_triple;
    if (triple == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "disassembling is not supported for architecture '%s'",
                         cairn_architecture_name(architecture));
    struct disassembler *created = calloc(1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a disassembler");
    static pthread_once_t initialised = PTHREAD_ONCE_INIT;
    pthread_once(&initialised, initialise_llvm);
    created->architecture = architecture;
    created->finds_distance = description->finds_distance;
    created->llvm = LLVMCreateDisasmCPUFeatures(triple, "", description->features, created, 0, NULL,
                                                note_target);
    if (created->llvm == NULL) {
        free(created);
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "this LLVM %d was built without a disassembler for %s", LLVM_VERSION_MAJOR,
                         cairn_architecture_name(architecture));
    }
    if (architecture == CAIRN_ARCHITECTURE_X86_64) /* Intel's syntax, with registers without '%' */
        LLVMSetDisasmOptions(created->llvm, LLVMDisassembler_Option_AsmPrinterVariant);
    /* This call must be the last, because choosing a variant resets the other options. */
    LLVMSetDisasmOptions(created->llvm, LLVMDisassembler_Option_PrintImmHex);
    *disassembler = created;
    return CAIRN_OK;
}

void disassembler_destroy(struct disassembler *disassembler)
{
    if (disassembler == NULL)
        return;
    LLVMDisasmDispose(disassembler->llvm);
    free(disassembler);
}

/* ---- One instruction ---- */

/* Makes one line of the text, and finds the target of a branch. */
static void complete(const struct disassembler *disassembler, uint64_t address,
                     struct instruction *instruction)
{
    size_t blanks = strspn(instruction->text, " \t");
    memmove(instruction->text, instruction->text + blanks, strlen(instruction->text + blanks) + 1);
    ir_join_lines(instruction->text);
    char *blank = strrchr(instruction->text, ' ');
    char *operand = blank == NULL ? instruction->text + strlen(instruction->text) : blank + 1;
    if (disassembler->has_target) {
        instruction->has_target = true;
        instruction->target = disassembler->target;
    } else if (disassembler->finds_distance != NULL &&
               disassembler->finds_distance(instruction->text, operand)) {
        const char *number = operand + (operand[0] == '.' ? 1 : 0);
        instruction->has_target = true;
        instruction->target = address + (uint64_t)strtoll(number, NULL, 0);
    }
    if (!instruction->has_target)
        return;
    size_t space = sizeof instruction->text - (size_t)(operand - instruction->text);
    snprintf(operand, space, "0x%llx", (unsigned long long)instruction->target);
}

/* On x86-64, LLVM decodes prefixes whose instruction is cut off as instructions of their own; from
 * version 22 on REX.W, too. */
bool disassembler_next(struct disassembler *disassembler, const uint8_t *bytes, size_t size,
                       uint64_t address, struct instruction *instruction)
{
    static const uint8_t prefixes[] = {0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65,
                                       0x66, 0x67, 0xF0, 0xF2, 0xF3};
    *instruction = (struct instruction){0};
    disassembler->has_target = false;
    /* LLVM's parameter is not const, but LLVM does not write to it. */
    instruction->length =
        LLVMDisasmInstruction(disassembler->llvm, (uint8_t *)(uintptr_t)bytes, size, address,
                              instruction->text, sizeof instruction->text);
    size_t prefix_count = 0;
    while (prefix_count < size && ((bytes[prefix_count] & 0xF0) == 0x40 ||
                                   memchr(prefixes, bytes[prefix_count], sizeof prefixes) != NULL))
        prefix_count++;
    bool is_cut_off = disassembler->architecture == CAIRN_ARCHITECTURE_X86_64 &&
                      instruction->length >= size && prefix_count == size;
    if (instruction->length == 0 || is_cut_off) {
        *instruction = (struct instruction){0};
        return false;
    }
    complete(disassembler, address, instruction);
    return true;
}
