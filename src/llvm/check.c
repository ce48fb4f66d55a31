/*
 * Finding what is known to crash LLVM's code generator, before it gets to see it.
 *
 * Each rule was found by compiling with LLVM 14 to 19 and 22; a test compiles what the rules
 * refuse, to see that it still crashes, and random modules, to see that nothing else does.
 *
 * A module is gone through once to count, in whatever order its calls come, and only if there is
 * something to say once more to say it in the order of the module.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "llvm/liveness.h"
#include "llvm/site_list.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <cairn/llvm.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* What the rules need to know, and what has come of them. */
struct checker {
    const struct cairn_check_options *options;
    enum cairn_architecture architecture;
    uint32_t minimum_bytes; /* of patch points with a target */
    struct site_call call;  /* that is being checked */
    LLVMValueRef function;  /* that it is in */
    LLVMValueRef liveness_checked;
    size_t found;
    size_t expected; /* 0 while they are counted */
    struct cairn_error *error;
};

/* ---- Saying what is refused ---- */

enum { FUNCTION_WIDTH = 40, INSTRUCTION_WIDTH_MIN = 12, INSTRUCTION_WIDTH_MAX = 60 };

/* Room behind the first sentence for " (and 4294967295 more)". */
enum { SUFFIX_SIZE = 24 };

/* The instruction is cut to what the rest leaves of an error's message. */
static void write_sentence(const struct cairn_finding *finding, char *sentence, size_t size)
{
    static const char form[] = "in '%.*s': %.*s%s: %s; write %s";
    size_t length = strlen(finding->instruction);
    int rest = snprintf(NULL, 0, form, FUNCTION_WIDTH, finding->function, 0, "", "...",
                        finding->why, finding->instead);
    int width = (int)size - SUFFIX_SIZE - rest;
    if (width < INSTRUCTION_WIDTH_MIN)
        width = INSTRUCTION_WIDTH_MIN;
    if (width > INSTRUCTION_WIDTH_MAX)
        width = INSTRUCTION_WIDTH_MAX;
    snprintf(sentence, size, form, FUNCTION_WIDTH, finding->function, width, finding->instruction,
             length > (size_t)width ? "..." : "", finding->why, finding->instead);
}

/* The first sentence, and how many there are besides. */
static void set_error(const struct checker *checker, const char *sentence)
{
    char suffix[SUFFIX_SIZE + 1] = "";
    if (checker->expected > 1)
        snprintf(suffix, sizeof suffix, " (and %u more)", (unsigned)(checker->expected - 1));
    int width = CAIRN_ERROR_MESSAGE_SIZE - 1 - (int)strlen(suffix);
    error_set(checker->error, CAIRN_ERROR_LLVM, 0, "%.*s%s", width, sentence, suffix);
}

static void report(struct checker *checker, const char *why, const char *instead)
{
    checker->found++;
    if (checker->expected == 0)
        return;
    char *text = LLVMPrintValueToString(checker->call.call);
    char sentence[CAIRN_ERROR_MESSAGE_SIZE];
    struct cairn_finding finding = {
        .function = site_call_function(checker->call.call),
        .instruction = text + strspn(text, " "),
        .why = why,
        .instead = instead,
        .sentence = sentence,
        .call = checker->call.call,
    };
    write_sentence(&finding, sentence, sizeof sentence);
    if (checker->found == 1)
        set_error(checker, sentence);
    if (checker->options->finding != NULL)
        checker->options->finding(&finding, checker->options->user);
    LLVMDisposeMessage(text);
}

/* ---- Types of live values ---- */

static bool is_small_constant(LLVMValueRef value)
{
    LLVMValueRef integer = LLVMIsAConstantInt(value);
    return integer != NULL && LLVMGetIntTypeWidth(LLVMTypeOf(integer)) <= 64;
}

/* Constants among the arguments are put into registers, and not just recorded. */
static bool fits(const struct checker *checker, unsigned index, const char **instead)
{
    const struct site_call *call = &checker->call;
    LLVMValueRef value = site_call_value(call, index);
    LLVMTypeRef type = LLVMTypeOf(value);
    if (index >= call->argument_count && is_small_constant(value))
        return true;
    if (call->kind == CAIRN_RECORD_STATEPOINT)
        return types_statepoint_value(type, checker->architecture, instead) == LIVE_VALUE_FITS;
    return types_live_value(type, checker->architecture,
                            LLVMGetBasicBlockParent(LLVMGetInstructionParent(call->call)),
                            instead) == LIVE_VALUE_FITS;
}

/* Whether a value from `first` on, and before `index`, is of the type of value `index` and does
 * not fit either: it has been reported for both. */
static bool is_reported(const struct checker *checker, unsigned first, unsigned index)
{
    const char *instead;
    LLVMTypeRef type = LLVMTypeOf(site_call_value(&checker->call, index));
    for (unsigned i = first; i < index; i++)
        if (LLVMTypeOf(site_call_value(&checker->call, i)) == type && !fits(checker, i, &instead))
            return true;
    return false;
}

static void report_live_value(struct checker *checker, unsigned index, const char *instead)
{
    char why[80];
    char *type = LLVMPrintTypeToString(LLVMTypeOf(site_call_value(&checker->call, index)));
    snprintf(why, sizeof why, "LLVM %d crashes on a live value of type %.24s", LLVM_VERSION_MAJOR,
             type);
    LLVMDisposeMessage(type);
    report(checker, why, instead);
}

static void check_live_values(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    /* Operands that anyregcc puts into any register are recorded like live values. */
    bool anyreg = call->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    unsigned first = anyreg ? 0 : call->argument_count;
    unsigned end = call->argument_count + call->live_value_count;
    for (unsigned i = first; i < end; i++) {
        const char *instead = "";
        if (!fits(checker, i, &instead) && !is_reported(checker, first, i))
            report_live_value(checker, i, instead);
    }
}

/* ---- Registers (llvm-project #56880) ---- */

struct registers {
    unsigned general;
    unsigned vector;
    unsigned x87;
};

/* ORDER ARCHITECTURE. How many values fit at once, in functions with a frame pointer. One general
 * register less where the stack has a part of variable size, which may take a base pointer. */
static const struct registers register_limits[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = {UINT_MAX, UINT_MAX, UINT_MAX},
    [CAIRN_ARCHITECTURE_X86_64] = {13, 16, 7},
    [CAIRN_ARCHITECTURE_AARCH64] = {27, 32, 0},
    [CAIRN_ARCHITECTURE_PPC64_ELFV2] = {27, 64, 0},
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = {27, 32, 0},
    [CAIRN_ARCHITECTURE_SYSTEMZ] = {11, 16, 0},
    [CAIRN_ARCHITECTURE_RISCV64] = {27, 32, 0},
};

/* ORDER ARCHITECTURE. Those in which calls take their arguments; the others are on the stack. */
static const struct registers argument_registers[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = {0, 0, 0},      [CAIRN_ARCHITECTURE_X86_64] = {6, 8, 0},
    [CAIRN_ARCHITECTURE_AARCH64] = {8, 8, 0},      [CAIRN_ARCHITECTURE_PPC64_ELFV2] = {8, 13, 0},
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = {8, 13, 0}, [CAIRN_ARCHITECTURE_SYSTEMZ] = {5, 4, 0},
    [CAIRN_ARCHITECTURE_RISCV64] = {8, 8, 0},
};

static unsigned minimum(unsigned left, unsigned right) { return left < right ? left : right; }

/* Registers that one value takes; a structure or an array takes some for each element. */
static void count_type(LLVMTypeRef type, struct registers *count)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMStructTypeKind) {
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            count_type(LLVMStructGetTypeAtIndex(type, i), count);
    } else if (kind == LLVMArrayTypeKind) {
        for (unsigned i = 0; i < LLVMGetArrayLength(type); i++)
            count_type(LLVMGetElementType(type), count);
    } else if (kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind) {
        count->general++;
    } else if (kind == LLVMBFloatTypeKind) {
        count->vector++;
        count->general++; /* where x86-64 has its bits */
    } else if (kind == LLVMX86_FP80TypeKind) {
        count->x87++;
    } else {
        count->vector++;
    }
}

/* Arguments stand in registers of their own, whatever else keeps their values. */
static struct registers count_arguments(const struct checker *checker)
{
    struct registers count = {0};
    const struct registers *there_are = &argument_registers[checker->architecture];
    for (unsigned i = 0; i < checker->call.argument_count; i++)
        count_type(LLVMTypeOf(site_call_value(&checker->call, i)), &count);
    count.general = minimum(count.general, there_are->general);
    count.vector = minimum(count.vector, there_are->vector);
    count.x87 = minimum(count.x87, there_are->x87);
    return count;
}

/* Constants that LLVM loads into registers before a record, and neither records as they are nor
 * finds another place for: at -O0 all but integers and null, otherwise addresses, and numbers that
 * come from memory in one instruction. Statepoints record small numbers as they are. */
static bool is_loaded(const struct checker *checker, LLVMValueRef constant)
{
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(constant));
    bool is_statepoint = checker->call.kind == CAIRN_RECORD_STATEPOINT;
    bool is_small = kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind ||
                    kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind;
    if (LLVMIsAConstantInt(constant) != NULL || LLVMIsAConstantPointerNull(constant) != NULL ||
        (is_statepoint && (is_small || LLVMIsUndef(constant))))
        return false;
    if (checker->options->optimisation_level == 0)
        return true;
    if (LLVMIsUndef(constant))
        return false;
    return LLVMIsAGlobalValue(constant) != NULL || kind == LLVMVectorTypeKind || is_small ||
           kind == LLVMFP128TypeKind;
}

/* Variables find a place on the stack, unless nobody optimises. Arguments of anyregcc are put into
 * registers in any case, if the optimiser does not see that they have no value. */
static bool needs_register(const struct checker *checker, unsigned index)
{
    LLVMValueRef value = site_call_value(&checker->call, index);
    bool is_optimised = checker->options->optimisation_level > 0;
    if (index < checker->call.argument_count)
        return !LLVMIsUndef(value) || !is_optimised;
    if (LLVMIsConstant(value))
        return is_loaded(checker, value);
    return !is_optimised && LLVMIsAAllocaInst(value) == NULL;
}

static bool is_repeated(const struct site_call *call, unsigned first, unsigned index)
{
    for (unsigned i = first; i < index; i++)
        if (site_call_value(call, i) == site_call_value(call, index))
            return true;
    return false;
}

/* Adds those of the arguments and live values from `first` up to `end`. */
static void count_values(const struct checker *checker, unsigned first, unsigned end,
                         struct registers *count)
{
    for (unsigned i = first; i < end; i++)
        if (needs_register(checker, i) && !is_repeated(&checker->call, first, i))
            count_type(LLVMTypeOf(site_call_value(&checker->call, i)), count);
}

static bool is_dynamic(LLVMValueRef alloca, LLVMBasicBlockRef entry)
{
    return LLVMGetInstructionParent(alloca) != entry ||
           LLVMIsAConstantInt(LLVMGetOperand(alloca, 0)) == NULL;
}

static bool has_dynamic_alloca(LLVMValueRef function)
{
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function);
    for (LLVMBasicBlockRef block = entry; block != NULL; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef instruction = LLVMGetFirstInstruction(block); instruction != NULL;
             instruction = LLVMGetNextInstruction(instruction))
            if (LLVMIsAAllocaInst(instruction) != NULL && is_dynamic(instruction, entry))
                return true;
    return false;
}

/* The general registers that there are for the function's `wanted` values. */
static unsigned limit_general(const struct checker *checker, unsigned wanted)
{
    unsigned limit = register_limits[checker->architecture].general;
    return wanted == limit && has_dynamic_alloca(checker->function) ? limit - 1 : limit;
}

static void report_registers(struct checker *checker, struct registers limits)
{
    char instead[120];
    bool is_optimised = checker->options->optimisation_level > 0;
    bool anyreg = checker->call.calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    int length = snprintf(instead, sizeof instead, "at most %u (%u in vector registers",
                          limits.general, limits.vector);
    if (checker->architecture == CAIRN_ARCHITECTURE_X86_64)
        length += snprintf(instead + length, sizeof instead - (size_t)length, ", %u x86_fp80",
                           limits.x87);
    snprintf(instead + length, sizeof instead - (size_t)length, "), %s",
             !is_optimised ? "or compile at -O1"
             : anyreg      ? "and the others as live values"
                           : "and no more addresses and numbers");
    report(checker,
           !is_optimised ? "at -O0 LLVM runs out of registers for so many values"
           : anyreg      ? "anyregcc has no registers for so many arguments"
                         : "LLVM runs out of registers for so many constants",
           instead);
}

static void check_limits(struct checker *checker, struct registers count)
{
    struct registers limits = register_limits[checker->architecture];
    limits.general = limit_general(checker, count.general);
    if (count.general > limits.general || count.vector > limits.vector || count.x87 > limits.x87)
        report_registers(checker, limits);
}

/* At -O0 all live values are kept in registers at once, with anyregcc the arguments always, and
 * some constants always too. */
static void check_registers(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    bool anyreg = call->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    struct registers count = {0};
    if (call->kind == CAIRN_RECORD_STATEPOINT)
        return;
    if (!anyreg && checker->options->optimisation_level == 0)
        count = count_arguments(checker);
    count_values(checker, anyreg ? 0 : call->argument_count,
                 call->argument_count + call->live_value_count, &count);
    check_limits(checker, count);
}

/* Values of the x87 stack from `first` up to `end`, constants and undefined ones too. */
static unsigned count_x87(const struct checker *checker, unsigned first, unsigned end)
{
    unsigned count = 0;
    for (unsigned i = first; i < end; i++) {
        LLVMValueRef value = site_call_value(&checker->call, i);
        if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMX86_FP80TypeKind &&
            !is_repeated(&checker->call, first, i))
            count++;
    }
    return count;
}

/* Deopt values of statepoints whose flags keep them in registers. On the x87 stack LLVM can keep
 * one of them, and none beside several GC pointers. */
static void check_live_in(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    if (!call->is_live_in)
        return;
    unsigned first = call->argument_count;
    unsigned end = first + call->live_values.count;
    unsigned x87 = count_x87(checker, first, end);
    struct registers count = {0};
    if (x87 > 1 || (x87 == 1 && call->gc_live_values.count > 1)) {
        report(checker, "LLVM crashes on values of type x86_fp80 that are to stay in registers",
               "flags without bit 1, or pointers to them");
        return;
    }
    count_values(checker, first, end, &count);
    check_limits(checker, count);
}

/* The x87 stack is none of the registers in which anyregcc may leave a result, and a bfloat has
 * none of its own. */
static void check_result(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(call->call));
    bool anyreg = call->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    if (!anyreg || checker->architecture != CAIRN_ARCHITECTURE_X86_64)
        return;
    if (kind == LLVMX86_FP80TypeKind)
        report(checker, "anyregcc has no register for a result of type x86_fp80",
               "a double, or another calling convention");
    if (kind == LLVMBFloatTypeKind)
        report(checker, "anyregcc has no register for a result of type bfloat",
               "an integer, or another calling convention");
}

/* ---- Bytes ---- */

/* ORDER ARCHITECTURE. Bytes of which regions are multiples; 0: they may have any number. */
static const unsigned instruction_bytes[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = 0,     [CAIRN_ARCHITECTURE_X86_64] = 0,
    [CAIRN_ARCHITECTURE_AARCH64] = 4,     [CAIRN_ARCHITECTURE_PPC64_ELFV2] = 4,
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = 4, [CAIRN_ARCHITECTURE_SYSTEMZ] = 2,
    [CAIRN_ARCHITECTURE_RISCV64] = 4,
};

/* Only some of this is a crash. What LLVM does with too few bytes is to fill all memory with
 * no-ops on x86-64, as it does everywhere with a number that was meant to be negative; on other
 * architectures, and with a part of an instruction, it writes more bytes than it was told to, and
 * a patch would then leave the rest of them. */
static void check_bytes(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    bool emits_call = call->kind == CAIRN_RECORD_PATCHPOINT && call->has_target;
    unsigned unit = instruction_bytes[checker->architecture];
    if (call->byte_count > CAIRN_PATCHPOINT_BYTES_MAX)
        report(checker, "LLVM fills that many bytes with no-ops",
               "a number of bytes up to 1048576");
    else if (emits_call && call->byte_count < checker->minimum_bytes)
        report(checker, "LLVM's call of the target does not fit into its bytes",
               "the number that cairn_patchpoint_minimum_bytes gives, or more");
    else if (unit != 0 && call->byte_count % unit != 0)
        report(checker,
               unit == 4 ? "instructions have 4 bytes here"
                         : "instructions have 2, 4 or 6 bytes here",
               unit == 4 ? "a multiple of 4" : "an even number");
}

/* ---- Targets ---- */

static LLVMValueRef without_casts(LLVMValueRef value)
{
    while (LLVMIsAConstantExpr(value) != NULL && (LLVMGetConstOpcode(value) == LLVMBitCast ||
                                                  LLVMGetConstOpcode(value) == LLVMAddrSpaceCast))
        value = LLVMGetOperand(value, 0);
    return value;
}

/* Not a crash, but worse: with 14 to 19 and 22 the code calls the address of what LLVM itself
 * knows the symbol by. */
static void check_target(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    if (checker->architecture != CAIRN_ARCHITECTURE_AARCH64 || call->target == NULL)
        return;
    if (LLVMIsAGlobalValue(without_casts(call->target)) != NULL)
        report(checker, "on AArch64, LLVM takes a symbol as target for an address of its own",
               "the target's address as an integer cast to a pointer, or null and cairn_site_call");
}

/* ---- What the architecture has ---- */

static void check_architecture(struct checker *checker)
{
    enum cairn_architecture architecture = checker->architecture;
    bool has_statepoints = architecture == CAIRN_ARCHITECTURE_X86_64 ||
                           architecture == CAIRN_ARCHITECTURE_AARCH64 ||
                           architecture == CAIRN_ARCHITECTURE_RISCV64;
    if (architecture == CAIRN_ARCHITECTURE_RISCV64 && !LLVM_HAS_RISCV_STACKMAPS)
        report(checker, "LLVM has no stack maps for RISC-V before version 18",
               "code without them, or compile it with a later one");
    else if (checker->call.kind == CAIRN_RECORD_STATEPOINT && !has_statepoints)
        report(checker, "LLVM cannot select statepoints for this architecture",
               "patch points with the roots as live values");
}

/* ---- GC transitions ---- */

/* The nodes by which LLVM marks a transition are x86-64's alone, and take what is in registers. */
static void check_transition(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    if (!call->is_transition)
        return;
    if (checker->architecture != CAIRN_ARCHITECTURE_X86_64) {
        report(checker, "LLVM cannot select GC transitions for this architecture",
               "flags without bit 0");
        return;
    }
    for (unsigned i = 0; i < call->transition_values.count; i++) {
        LLVMValueRef value = LLVMGetOperand(call->call, call->transition_values.first + i);
        if (types_transition_value(LLVMTypeOf(value), checker->architecture))
            continue;
        report(checker, "LLVM crashes on GC transition values that fit no register",
               "pointers to them");
        return;
    }
}

/* ---- Operand bundles ---- */

static void check_bundles(struct checker *checker)
{
    char tag[BUNDLE_TAG_SIZE];
    char why[100];
    if (!bundles_find_foreign(checker->call.call, tag))
        return;
    snprintf(why, sizeof why, "LLVM %d ends the process at the operand bundle \"%s\"",
             LLVM_VERSION_MAJOR, tag);
    report(checker, why, "the same without it");
}

/* ---- Liveness (llvm-project #53828, #85828) ---- */

/* Once for each function that has patch points, at one of them. */
static void check_liveness(struct checker *checker)
{
    LLVMValueRef function = checker->function;
    if (checker->options->liveness != CAIRN_LIVENESS_KEEP ||
        checker->call.kind != CAIRN_RECORD_PATCHPOINT || checker->liveness_checked == function)
        return;
    checker->liveness_checked = function;
    if (liveness_find_culprit(function, checker->architecture) == NULL)
        return;
    bool is_x86_64 = checker->architecture == CAIRN_ARCHITECTURE_X86_64;
    report(checker,
           is_x86_64 ? "with patch point liveness on, LLVM crashes on calls and floating point "
                       "behind it"
                     : "with patch point liveness on, LLVM crashes on floating point behind it",
           is_x86_64 ? "neither in this function, or leave liveness off (CAIRN_LIVENESS_OFF)"
                     : "none in this function, or leave liveness off (CAIRN_LIVENESS_OFF)");
}

/* ---- A module ---- */

static void (*const rules[])(struct checker *checker) = {
    check_architecture, check_transition, check_bytes,  check_target,  check_live_values,
    check_registers,    check_live_in,    check_result, check_bundles, check_liveness,
};

static enum cairn_status check_list(struct checker *checker, const struct site_list *list)
{
    checker->found = 0;
    checker->liveness_checked = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct site_use *use = &list->uses[i];
        enum cairn_status status =
            site_call_read(use->call, use->kind, &checker->call, checker->error);
        if (status != CAIRN_OK)
            return status;
        checker->function = use->function;
        for (size_t rule = 0; rule < sizeof rules / sizeof *rules; rule++)
            rules[rule](checker);
    }
    return CAIRN_OK;
}

/* The calls that make no record. */
static void check_other_calls(struct checker *checker, LLVMValueRef function)
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != NULL;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef instruction = LLVMGetFirstInstruction(block); instruction != NULL;
             instruction = LLVMGetNextInstruction(instruction)) {
            bool is_call =
                LLVMIsACallInst(instruction) != NULL || LLVMIsAInvokeInst(instruction) != NULL;
            if (!is_call || site_call_kind(instruction) != CAIRN_RECORD_UNDECLARED)
                continue;
            checker->call = (struct site_call){.call = instruction};
            check_bundles(checker);
        }
}

/* Those that make records first. */
static enum cairn_status check_all(struct checker *checker, LLVMModuleRef module,
                                   const struct site_list *list)
{
    enum cairn_status status = check_list(checker, list);
    if (status != CAIRN_OK || !LLVM_ENDS_AT_FOREIGN_BUNDLES)
        return status;
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function))
        check_other_calls(checker, function);
    return CAIRN_OK;
}

/* In the order of the module, so that the first one is. */
static enum cairn_status report_all(struct checker *checker, LLVMModuleRef module,
                                    struct site_list *list)
{
    checker->expected = checker->found;
    site_list_sort(list);
    enum cairn_status status = check_all(checker, module, list);
    return status == CAIRN_OK ? CAIRN_ERROR_LLVM : status;
}

enum cairn_status cairn_check_module(LLVMModuleRef module,
                                     const struct cairn_check_options *options,
                                     struct cairn_error *error)
{
    static const struct cairn_check_options defaults;
    if (module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no module to check");
    struct site_list list;
    enum cairn_status status = site_list_create(module, &list, error);
    if (status != CAIRN_OK)
        return status;
    struct checker checker = {
        .options = options == NULL ? &defaults : options,
        .architecture = types_architecture(module),
        .minimum_bytes = cairn_patchpoint_minimum_bytes(module, true),
        .error = error,
    };
    status = check_all(&checker, module, &list);
    if (status != CAIRN_OK || checker.found > 0)
        status = report_all(&checker, module, &list);
    site_list_release(&list);
    return status;
}
