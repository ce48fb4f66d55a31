/*
 * Finds code that is known to crash LLVM's code generator, before it is compiled.
 *
 * Each rule was found by compiling with LLVM 14 to 19 and 22. A test compiles the code that the
 * rules reject, to see that it still crashes, and random modules, to see that nothing else crashes.
 *
 * GC strategies are checked first, because LLVM's verifier ends the process at some of them. Then
 * the verifier runs, because the code generator relies on what it verifies. Then the module is
 * walked to count the findings. If there are any, a second walk reports them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/check.h"

#include "base/error.h"
#include "llvm/ir.h"
#include "llvm/site_call.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The input of the rules, and their results. */
struct checker {
    const struct cairn_check_options *options;
    enum cairn_architecture architecture;
    uint32_t minimum_bytes; /* of patch points with a target */
    struct site_call call;  /* the call that is being checked */
    LLVMValueRef function;  /* the function that contains it */
    LLVMValueRef liveness_checked;
    LLVMValueRef selection_checked;
    bool is_left_to_dag; /* whether SelectionDAG compiles `selection_checked` */
    size_t found;
    size_t expected; /* the number of findings; 0 while they are counted */
    struct cairn_error *error;
};

/* ---- Reporting findings ---- */

enum { FUNCTION_WIDTH = 40, INSTRUCTION_WIDTH_MIN = 12, INSTRUCTION_WIDTH_MAX = 60 };

/* Space after the first sentence for " (and 4294967295 more)". */
enum { SUFFIX_SIZE = 24 };

/* Writes the sentence for a finding. The instruction is truncated to the space that the other parts
 * leave in an error message. */
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

/* Counts a finding, or reports it. The error gets the first finding's sentence, and the number of
 * further findings. */
static void report(struct checker *checker, const char *why, const char *instead)
{
    checker->found++;
    if (checker->expected == 0)
        return;
    char *text = LLVMPrintValueToString(checker->call.call);
    char sentence[CAIRN_ERROR_MESSAGE_SIZE];
    struct cairn_finding finding = {
        .function = ir_function_name(checker->call.call),
        .instruction = text + strspn(text, " "),
        .why = why,
        .instead = instead,
        .sentence = sentence,
        .call = checker->call.call,
    };
    write_sentence(&finding, sentence, sizeof sentence);
    if (checker->found == 1) {
        char suffix[SUFFIX_SIZE + 1] = "";
        if (checker->expected > 1)
            snprintf(suffix, sizeof suffix, " (and %u more)", (unsigned)(checker->expected - 1));
        int width = CAIRN_ERROR_MESSAGE_SIZE - 1 - (int)strlen(suffix);
        error_set(checker->error, CAIRN_ERROR_LLVM, 0, "%.*s%s", width, sentence, suffix);
    }
    if (checker->options->finding != NULL)
        checker->options->finding(&finding, checker->options->user);
    LLVMDisposeMessage(text);
}

static void report_problem(struct checker *checker, const struct problem *problem)
{
    if (problem != NULL)
        report(checker, problem->why, problem->instead);
}

static bool is_anyreg(const struct site_call *call)
{
    return call->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
}

/* ---- Types of live values ---- */

/* Whether the value is an integer that the record holds as a constant. Arguments are put into
 * registers, and wide integers of statepoints are stored in memory. */
static bool is_recorded_constant(const struct site_call *call, unsigned index)
{
    LLVMValueRef integer = LLVMIsAConstantInt(site_call_value(call, index));
    if (integer == NULL || index < call->argument_count)
        return false;
    return call->kind != CAIRN_RECORD_STATEPOINT || ir_is_integer(LLVMTypeOf(integer), 64);
}

/* Returns NULL if LLVM can keep argument or live value `index`, otherwise what to write instead.
 * For constants see check_constants. */
static const char *find_instead(const struct checker *checker, unsigned index)
{
    const struct site_call *call = &checker->call;
    LLVMTypeRef type = LLVMTypeOf(site_call_value(call, index));
    if (is_recorded_constant(call, index))
        return NULL;
    return call->kind == CAIRN_RECORD_STATEPOINT
               ? types_statepoint_value(type, checker->architecture)
               : types_live_value(type, checker->architecture, checker->function);
}

/* Whether a value from `first` on, before `index`, has the same type as value `index` and does not
 * fit either. The report on that value covers both. */
static bool is_reported(const struct checker *checker, unsigned first, unsigned index)
{
    LLVMTypeRef type = LLVMTypeOf(site_call_value(&checker->call, index));
    for (unsigned i = first; i < index; i++)
        if (LLVMTypeOf(site_call_value(&checker->call, i)) == type &&
            find_instead(checker, i) != NULL)
            return true;
    return false;
}

static void check_live_values(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    /* With anyregcc, arguments are recorded like live values. */
    unsigned first = is_anyreg(call) ? 0 : call->argument_count;
    unsigned end = call->argument_count + call->live_value_count;
    for (unsigned i = first; i < end; i++) {
        const char *instead = find_instead(checker, i);
        if (instead == NULL || is_reported(checker, first, i))
            continue;
        char type[25];
        char why[80];
        snprintf(why, sizeof why, "LLVM %d crashes on a live value of type %s", LLVM_VERSION_MAJOR,
                 ir_print_type(LLVMTypeOf(site_call_value(call, i)), type, sizeof type));
        report(checker, why, instead);
    }
}

/* Checks the constants, because a wrong number in a record is as bad as a crash. Reports only the
 * first one: the others have the same reason. */
static void check_constants(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    unsigned end = call->argument_count + call->live_value_count;
    for (unsigned i = call->argument_count; i < end; i++) {
        const char *why =
            is_recorded_constant(call, i) ? types_live_constant(site_call_value(call, i)) : NULL;
        if (why == NULL)
            continue;
        report(checker, why, LIVE_CONSTANT_INSTEAD);
        return;
    }
}

/* ---- Registers (llvm-project #56880) ---- */

struct registers {
    unsigned general;
    unsigned vector;
    unsigned x87;
};

/* ORDER ARCHITECTURE. How many values fit into registers at the same time, in functions with a
 * frame pointer. There is one general register less in a function with a dynamic alloca, which may
 * need a base pointer. */
static const struct registers register_limits[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = {UINT_MAX, UINT_MAX, UINT_MAX},
    [CAIRN_ARCHITECTURE_X86_64] = {13, 16, 7},
    [CAIRN_ARCHITECTURE_AARCH64] = {27, 32, 0},
    [CAIRN_ARCHITECTURE_PPC64_ELFV2] = {27, 64, 0},
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = {27, 32, 0},
    [CAIRN_ARCHITECTURE_SYSTEMZ] = {11, 16, 0},
    [CAIRN_ARCHITECTURE_RISCV64] = {27, 32, 0},
};

/* ORDER ARCHITECTURE. How many registers pass arguments; the remaining arguments are on the
 * stack. */
static const struct registers argument_registers[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = {0, 0, 0},      [CAIRN_ARCHITECTURE_X86_64] = {6, 8, 0},
    [CAIRN_ARCHITECTURE_AARCH64] = {8, 8, 0},      [CAIRN_ARCHITECTURE_PPC64_ELFV2] = {8, 13, 0},
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = {8, 13, 0}, [CAIRN_ARCHITECTURE_SYSTEMZ] = {5, 4, 0},
    [CAIRN_ARCHITECTURE_RISCV64] = {8, 8, 0},
};

static unsigned minimum(unsigned left, unsigned right) { return left < right ? left : right; }

/* Adds the registers that one value takes: a structure or an array takes registers for each
 * element. More elements than are counted exceed the limits of every architecture. */
static void count_type(LLVMTypeRef type, struct registers *count)
{
    enum { COUNTED_MAX = 128 };
    LLVMTypeRef types[COUNTED_MAX];
    unsigned values = ir_flatten(type, types, COUNTED_MAX);
    for (unsigned i = 0; i < values; i++) {
        LLVMTypeKind kind = LLVMGetTypeKind(types[i]);
        bool is_general = kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind;
        count->x87 += kind == LLVMX86_FP80TypeKind;
        count->vector += !is_general && kind != LLVMX86_FP80TypeKind;
        /* On x86-64, the bits of a bfloat take a general register, too. */
        count->general += is_general || kind == LLVMBFloatTypeKind;
    }
}

/* Whether LLVM loads the constant into a register before a record. At -O0 it loads all constants
 * but integers and null. With optimisation it loads addresses, vectors, and floating-point numbers
 * that one instruction loads from memory. Statepoints record small numbers as constants. */
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

/* Whether the value takes a register. Variables may be spilled, except at -O0. Arguments of
 * anyregcc always take registers, unless the optimiser sees that they are undefined. */
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

/* Adds the registers for the arguments and live values from `first` up to `end`. */
static void count_values(const struct checker *checker, unsigned first, unsigned end,
                         struct registers *count)
{
    for (unsigned i = first; i < end; i++)
        if (needs_register(checker, i) && !is_repeated(&checker->call, first, i))
            count_type(LLVMTypeOf(site_call_value(&checker->call, i)), count);
}

static bool has_dynamic_alloca(LLVMValueRef function)
{
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function);
    for (LLVMValueRef instruction = NULL;
         (instruction = ir_next_instruction(function, instruction)) != NULL;)
        if (LLVMIsAAllocaInst(instruction) != NULL &&
            (LLVMGetInstructionParent(instruction) != entry ||
             LLVMIsAConstantInt(LLVMGetOperand(instruction, 0)) == NULL))
            return true;
    return false;
}

/* Checks that there are as many registers as the call needs. */
static void check_limits(struct checker *checker, struct registers count)
{
    struct registers limits = register_limits[checker->architecture];
    if (count.general == limits.general && has_dynamic_alloca(checker->function))
        limits.general--;
    if (count.general <= limits.general && count.vector <= limits.vector && count.x87 <= limits.x87)
        return;
    char x87[20] = "";
    char instead[120];
    bool is_optimised = checker->options->optimisation_level > 0;
    bool anyreg = is_anyreg(&checker->call);
    if (checker->architecture == CAIRN_ARCHITECTURE_X86_64)
        snprintf(x87, sizeof x87, ", %u x86_fp80", limits.x87);
    snprintf(instead, sizeof instead, "at most %u (%u in vector registers%s), %s", limits.general,
             limits.vector, x87,
             !is_optimised ? "or compile at -O1"
             : anyreg      ? "and the others as live values"
                           : "and no more addresses and numbers");
    report(checker,
           !is_optimised ? "at -O0 LLVM runs out of registers for so many values"
           : anyreg      ? "anyregcc has no registers for so many arguments"
                         : "LLVM runs out of registers for so many constants",
           instead);
}

/* Checks that the values fit into registers. At -O0 all live values are in registers at the same
 * time. Arguments of anyregcc, and some constants, always are. An argument has a register of its
 * own, even if another register also holds its value. */
static void check_registers(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    const struct registers *there_are = &argument_registers[checker->architecture];
    struct registers count = {0};
    if (call->kind == CAIRN_RECORD_STATEPOINT)
        return;
    if (!is_anyreg(call) && checker->options->optimisation_level == 0) {
        for (unsigned i = 0; i < call->argument_count; i++)
            count_type(LLVMTypeOf(site_call_value(call, i)), &count);
        count.general = minimum(count.general, there_are->general);
        count.vector = minimum(count.vector, there_are->vector);
        count.x87 = minimum(count.x87, there_are->x87);
    }
    count_values(checker, is_anyreg(call) ? 0 : call->argument_count,
                 call->argument_count + call->live_value_count, &count);
    check_limits(checker, count);
}

/* Checks the deopt values of a statepoint whose flags keep them in registers. LLVM can keep one of
 * them on the x87 stack, constant, undefined or not, but not together with several GC pointers. */
static void check_live_in(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    unsigned first = call->argument_count;
    unsigned end = first + call->live_values.count;
    unsigned x87 = 0;
    if (!call->is_live_in)
        return;
    for (unsigned i = first; i < end; i++)
        if (LLVMGetTypeKind(LLVMTypeOf(site_call_value(call, i))) == LLVMX86_FP80TypeKind &&
            !is_repeated(call, first, i))
            x87++;
    if (x87 > 1 || (x87 == 1 && call->gc_live_values.count > 1)) {
        report(checker, "LLVM crashes on values of type x86_fp80 that are to stay in registers",
               "flags without bit 1, or pointers to them");
        return;
    }
    struct registers count = {0};
    count_values(checker, first, end, &count);
    check_limits(checker, count);
}

/* Whether anyregcc can return the type. LLVM promotes only integers in results. So some types are
 * supported as live values and not as results: half on PPC64 and RISC-V, and bfloat on all
 * architectures except AArch64. */
static bool is_result_in_any_register(const struct checker *checker, LLVMTypeRef type)
{
    enum cairn_architecture architecture = checker->architecture;
    bool is_ppc64 = architecture == CAIRN_ARCHITECTURE_PPC64_ELFV2 ||
                    architecture == CAIRN_ARCHITECTURE_PPC64_ELFV1;
    unsigned bits;
    switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
    case LLVMStructTypeKind:
    case LLVMArrayTypeKind:
        return true;
    case LLVMIntegerTypeKind:
        bits = LLVMGetIntTypeWidth(type);
        /* LLVM has put integers of other widths into registers without a class before it promotes
         * them. Some work if they are used in the same block, others do not. */
        if (is_ppc64 && checker->options->optimisation_level == 0)
            return bits == 32 || bits == 64 ||
                   (bits == 1 && architecture == CAIRN_ARCHITECTURE_PPC64_ELFV2);
        return bits <= 64;
    case LLVMX86_FP80TypeKind: /* anyregcc never returns on the x87 stack */
        return false;
    case LLVMBFloatTypeKind:
        return architecture == CAIRN_ARCHITECTURE_AARCH64;
    case LLVMHalfTypeKind:
        if (is_ppc64 || architecture == CAIRN_ARCHITECTURE_RISCV64)
            return false;
        break;
    default:
        break;
    }
    return types_live_value(type, architecture, checker->function) == NULL;
}

static void check_result(struct checker *checker)
{
    LLVMTypeRef type = LLVMTypeOf(checker->call.call);
    if (!is_anyreg(&checker->call) || checker->architecture == CAIRN_ARCHITECTURE_UNKNOWN ||
        is_result_in_any_register(checker, type))
        return;
    char name[25];
    char why[100];
    snprintf(why, sizeof why, "anyregcc has no register for a result of type %s",
             ir_print_type(type, name, sizeof name));
    report(checker, why,
           LLVMGetTypeKind(type) == LLVMX86_FP80TypeKind
               ? "a double, or another calling convention"
               : "an integer of 64 bits, or another calling convention");
}

/* ---- Region sizes ---- */

/* ORDER ARCHITECTURE. Regions are multiples of this number of bytes; 0 means that any size is
 * valid. */
static const unsigned instruction_bytes[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = 0,     [CAIRN_ARCHITECTURE_X86_64] = 0,
    [CAIRN_ARCHITECTURE_AARCH64] = 4,     [CAIRN_ARCHITECTURE_PPC64_ELFV2] = 4,
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = 4, [CAIRN_ARCHITECTURE_SYSTEMZ] = 2,
    [CAIRN_ARCHITECTURE_RISCV64] = 4,
};

/* Checks the size of the region. Not every wrong size is a crash. If the region is too small on
 * x86-64, or has a negative size on any architecture, LLVM fills all memory with no-ops. If it is
 * too small on another architecture, or ends within an instruction, LLVM writes more bytes than
 * requested, and a patch would not replace the last ones. */
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

/* Checks the target. LLVM does not crash on every bad target. It may do worse: the call branches to
 * a wrong address, or disappears. */
static void check_target(struct checker *checker)
{
    LLVMValueRef target = checker->call.target;
    if (target != NULL)
        report_problem(checker, target_find_problem(target, checker->architecture));
}

/* ---- Support by architecture ---- */

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

/* Checks GC transitions. Only x86-64 has the nodes by which LLVM marks a transition, and their
 * operands must be in registers. */
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

/* ---- Tail calls ---- */

/* Checks for statepoints that must be tail calls. They have code after the call, so LLVM makes an
 * ordinary call, and 22 then ends the process. */
static void check_tail_call(struct checker *checker)
{
    if (checker->call.kind == CAIRN_RECORD_STATEPOINT &&
        site_call_must_be_tail_call(checker->call.call))
        report(checker, "LLVM cannot make a tail call of a call with a \"deopt\" bundle",
               "it without musttail, or without the bundle");
}

/* ---- Liveness (llvm-project #53828, #85828) ---- */

/* Checks each function that has patch points once, at one of them. */
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

/* ---- Calls for which no record is made ---- */

static void check_library_call(struct checker *checker)
{
    if (site_call_has_deopt_bundle(checker->call.call) && selection_may_replace(checker->call.call))
        report(checker, "LLVM may replace the library function by instructions, without a record",
               "nobuiltin after the arguments, or another function that calls it");
}

/* Checks for calls whose "deopt" bundle GlobalISel would ignore. AArch64 uses GlobalISel at -O0,
 * even with EnableFastISel. */
static enum cairn_status check_selection(struct checker *checker)
{
    LLVMValueRef call = checker->call.call;
    enum cairn_status status = CAIRN_OK;
    if (checker->architecture != CAIRN_ARCHITECTURE_AARCH64 ||
        checker->options->optimisation_level > 0 || LLVMIsACallInst(call) == NULL ||
        !site_call_has_deopt_bundle(call))
        return CAIRN_OK;
    if (checker->selection_checked != checker->function)
        status =
            selection_leaves_to_dag(checker->function, &checker->is_left_to_dag, checker->error);
    if (status != CAIRN_OK)
        return status;
    checker->selection_checked = checker->function;
    if (!checker->is_left_to_dag)
        report(checker, "at -O0 LLVM makes no record of calls with a \"deopt\" bundle on AArch64",
               "a call of llvm.experimental.gc.statepoint, or compile at -O1");
    return CAIRN_OK;
}

/* ---- A module ---- */

static void (*const rules[])(struct checker *checker) = {
    check_architecture, check_transition, check_bytes,        check_target, check_live_values,
    check_constants,    check_registers,  check_live_in,      check_result, check_bundles,
    check_tail_call,    check_liveness,   check_library_call,
};

static enum cairn_status check_instruction(struct checker *checker, LLVMValueRef instruction)
{
    enum cairn_status status = CAIRN_OK;
    if (site_call_kind(instruction) != CAIRN_RECORD_UNDECLARED) {
        status = site_call_read(instruction, &checker->call, checker->error);
        if (status != CAIRN_OK)
            return status;
        for (size_t rule = 0; rule < sizeof rules / sizeof *rules; rule++)
            rules[rule](checker);
        status = check_selection(checker);
    } else {
        checker->call.call = instruction;
        if (LLVM_ENDS_AT_FOREIGN_BUNDLES && ir_is_call(instruction))
            check_bundles(checker);
    }
    if (status == CAIRN_OK)
        report_problem(checker,
                       unsupported_find(instruction, checker->architecture, checker->options));
    return status;
}

/* Checks all functions in the order of the module. LLVM emits no code for those that are available
 * externally. */
static enum cairn_status check_functions(struct checker *checker, LLVMModuleRef module)
{
    enum cairn_status status = CAIRN_OK;
    checker->found = 0;
    checker->liveness_checked = NULL;
    checker->selection_checked = NULL;
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function)) {
        checker->function = function;
        LLVMValueRef instruction = NULL;
        if (LLVMGetLinkage(function) == LLVMAvailableExternallyLinkage)
            continue;
        while (status == CAIRN_OK &&
               (instruction = ir_next_instruction(function, instruction)) != NULL)
            status = check_instruction(checker, instruction);
    }
    return status;
}

enum cairn_status cairn_check_module(LLVMModuleRef module,
                                     const struct cairn_check_options *options,
                                     struct cairn_error *error)
{
    static const struct cairn_check_options defaults;
    if (module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no module to check");
    struct checker checker = {
        .options = options == NULL ? &defaults : options,
        .architecture = types_architecture(module),
        .minimum_bytes = cairn_patchpoint_minimum_bytes(module, true),
        .error = error,
    };
    if (verify_strategies(module, checker.options, error) != CAIRN_OK ||
        (!checker.options->is_verified &&
         verify_module(module, checker.options, error) != CAIRN_OK))
        return CAIRN_ERROR_LLVM;
    /* The first walk counts the findings, so that the error of the second can hold their number. */
    enum cairn_status status = check_functions(&checker, module);
    checker.expected = checker.found;
    if (checker.expected == 0)
        return status;
    status = check_functions(&checker, module);
    return status == CAIRN_OK ? CAIRN_ERROR_LLVM : status;
}
