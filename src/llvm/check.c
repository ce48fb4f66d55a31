/*
 * Finds code that is known to crash LLVM's code generator, or to become wrong code, before it is
 * compiled.
 *
 * Each rule was found by compiling with LLVM 14 to 19, 21 and 22. A test compiles the code that the
 * rules reject, to see that it still crashes, and random modules, to see that nothing else crashes.
 *
 * GC strategies are checked first, because LLVM's verifier ends the process at some of them. Then
 * the verifier runs, because the code generator relies on what it verifies. Then one walk over the
 * module reports the findings.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/check.h"

#include "base/error.h"
#include "llvm/ir.h"
#include "llvm/results.h"
#include "llvm/site_call.h"
#include "llvm/stored_states.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct registers {
    unsigned general;
    unsigned vector;
};

/* ORDER ARCHITECTURE. What the code generator supports. */
static const struct machine {
    /* How many values fit into registers at the same time, in functions with a frame pointer. There
     * is one general register less in a function with a dynamic alloca, which may need a base
     * pointer. (llvm-project #56880) */
    struct registers limits;
    struct registers arguments; /* that pass arguments; the remaining arguments are on the stack */
    unsigned instruction_bytes; /* regions are multiples of this; 0 means that any size is valid */
    bool has_statepoints;
} machines[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = {{UINT_MAX, UINT_MAX}, {0, 0}, 0, false},
    [CAIRN_ARCHITECTURE_X86_64] = {{13, 16}, {6, 8}, 0, true},
    [CAIRN_ARCHITECTURE_AARCH64] = {{27, 32}, {8, 8}, 4, true},
    [CAIRN_ARCHITECTURE_PPC64_ELFV2] = {{27, 64}, {8, 13}, 4, false},
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = {{27, 32}, {8, 13}, 4, false},
    [CAIRN_ARCHITECTURE_SYSTEMZ] = {{11, 16}, {5, 4}, 2, false},
    [CAIRN_ARCHITECTURE_RISCV64] = {{27, 32}, {8, 8}, 4, true},
};

/* The input of the rules, and their results. */
struct checker {
    const struct cairn_check_options *options;
    enum cairn_architecture architecture;
    uint32_t minimum_bytes; /* of patch points with a target */
    LLVMValueRef function;  /* the function that is being checked */
    bool has_checked_selection;
    bool is_left_to_dag;   /* whether SelectionDAG compiles the function; if it was checked */
    bool is_anyreg;        /* whether the call has the calling convention anyregcc */
    struct site_call call; /* the call that is being checked */
    unsigned end;          /* the number of its arguments and live values */
    size_t found;
    struct cairn_error *error;
};

/* ---- Reporting findings ---- */

/* Space at the end of the error message for " (and 4294967295 more)". */
enum { SUFFIX_SIZE = 24 };

/* Reports a finding. The first one's sentence becomes the error message. The instruction is
 * truncated to the space that the other parts leave in an error message. */
static void report(struct checker *checker, const char *why, const char *instead)
{
    enum { FUNCTION_WIDTH = 40, WIDTH_MIN = 12, WIDTH_MAX = 60 };
    static const char form[] = "in '%.*s': %.*s%s: %s; write %s";
    char sentence[CAIRN_ERROR_MESSAGE_SIZE];
    char *text = LLVMPrintValueToString(checker->call.call);
    const char *instruction = text + strspn(text, " ");
    const char *function = ir_function_name(checker->call.call);
    int rest = snprintf(NULL, 0, form, FUNCTION_WIDTH, function, 0, "", "...", why, instead);
    int width = (int)sizeof sentence - SUFFIX_SIZE - rest;
    width = width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
    snprintf(sentence, sizeof sentence, form, FUNCTION_WIDTH, function, width, instruction,
             strlen(instruction) > (size_t)width ? "..." : "", why, instead);
    if (checker->found++ == 0)
        error_set(checker->error, CAIRN_ERROR_LLVM, 0, "%s", sentence);
    if (checker->options->finding != NULL)
        checker->options->finding(&(struct cairn_finding){function, instruction, why, instead,
                                                          sentence, checker->call.call},
                                  checker->options->user);
    LLVMDisposeMessage(text);
}

static void report_problem(struct checker *checker, const struct problem *problem)
{
    if (problem != NULL)
        report(checker, problem->why, problem->instead);
}

/* ---- Regions and targets ---- */

/* Checks that the architecture has such calls, the size of the region, and the target. Not every
 * wrong size is a crash. If the region is too small on x86-64, or has a negative size on any
 * architecture, LLVM fills all memory with no-ops. If it is too small on another architecture, or
 * ends within an instruction, LLVM writes more bytes than requested, and a patch would not replace
 * the last ones. A bad target may do worse: the call branches to a wrong address, or disappears. */
static void check_region(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    bool emits_call = call->kind == CAIRN_RECORD_PATCHPOINT && call->has_target;
    unsigned unit = machines[checker->architecture].instruction_bytes;
    if (checker->architecture == CAIRN_ARCHITECTURE_RISCV64 && !LLVM_HAS_RISCV_STACKMAPS)
        report(checker, "LLVM has no stack maps for RISC-V before version 18",
               "code without them, or compile it with a later one");
    else if (call->kind == CAIRN_RECORD_STATEPOINT &&
             !machines[checker->architecture].has_statepoints)
        report(checker, "LLVM cannot select statepoints for this architecture",
               "patch points with the roots as live values");
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
    if (call->target != NULL)
        report_problem(checker, target_find_problem(call->target, checker->architecture));
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

/* Returns NULL if LLVM can keep argument or live value `index`, otherwise what to write instead. */
static const char *find_instead(const struct checker *checker, unsigned index)
{
    const struct site_call *call = &checker->call;
    LLVMTypeRef type = LLVMTypeOf(site_call_value(call, index));
    if (is_recorded_constant(call, index))
        return NULL;
    if (call->is_live_in && types_is_unrecorded(type, checker->architecture))
        return "flags without bit 1, or a pointer to it";
    return call->kind == CAIRN_RECORD_STATEPOINT
               ? types_statepoint_value(type, checker->architecture)
               : types_live_value(type, checker->architecture, checker->function);
}

/* Checks the live values; with anyregcc also the arguments, which are recorded like them. Reports
 * each type once. Then checks the constants, because a wrong number in a record is as bad as a
 * crash. Reports only the first one: the others have the same reason. */
static void check_live_values(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    unsigned first = checker->is_anyreg ? 0 : call->argument_count;
    for (unsigned i = first; i < checker->end; i++) {
        LLVMTypeRef type = LLVMTypeOf(site_call_value(call, i));
        const char *instead = find_instead(checker, i);
        unsigned same = first;
        if (instead == NULL)
            continue;
        while (same < i && (LLVMTypeOf(site_call_value(call, same)) != type ||
                            find_instead(checker, same) == NULL))
            same++;
        if (same < i)
            continue;
        char name[25];
        char why[80];
        snprintf(why, sizeof why, "LLVM %d %s a live value of type %s", LLVM_VERSION_MAJOR,
                 types_is_unrecorded(type, checker->architecture) ? "does not record"
                                                                  : "crashes on",
                 ir_print_type(type, name, sizeof name));
        report(checker, why, instead);
    }
    const char *why = NULL;
    for (unsigned i = call->argument_count; i < checker->end && why == NULL; i++)
        if (is_recorded_constant(call, i))
            why = types_live_constant(site_call_value(call, i));
    if (why != NULL)
        report(checker, why, LIVE_CONSTANT_INSTEAD);
}

/* ---- Registers (llvm-project #56880) ---- */

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
        count->vector += !is_general && kind != LLVMX86_FP80TypeKind;
        /* On x86-64, the bits of a bfloat take a general register, too. */
        count->general += is_general || kind == LLVMBFloatTypeKind;
    }
}

/* Whether the value takes a register. Variables may be spilled, except at -O0. Arguments of
 * anyregcc always take registers, unless the optimiser sees that they are undefined. At -O0, LLVM
 * loads all constants but integers and null into registers; with optimisation it loads addresses,
 * vectors, and floating-point numbers that one instruction loads from memory. Statepoints record
 * small numbers as constants. */
static bool needs_register(const struct checker *checker, unsigned index)
{
    LLVMValueRef value = site_call_value(&checker->call, index);
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(value));
    bool is_optimised = checker->options->optimisation_level > 0;
    bool is_statepoint = checker->call.kind == CAIRN_RECORD_STATEPOINT;
    bool is_small = kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind ||
                    kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind;
    if (index < checker->call.argument_count)
        return !LLVMIsUndef(value) || !is_optimised;
    if (!LLVMIsConstant(value))
        return !is_optimised && LLVMIsAAllocaInst(value) == NULL;
    if (LLVMIsAConstantInt(value) != NULL || LLVMIsAConstantPointerNull(value) != NULL ||
        (is_statepoint && (is_small || LLVMIsUndef(value))))
        return false;
    return !is_optimised ||
           (!LLVMIsUndef(value) && (LLVMIsAGlobalValue(value) != NULL || is_small ||
                                    kind == LLVMVectorTypeKind || kind == LLVMFP128TypeKind));
}

static bool is_repeated(const struct site_call *call, unsigned first, unsigned index)
{
    for (unsigned i = first; i < index; i++)
        if (site_call_value(call, i) == site_call_value(call, index))
            return true;
    return false;
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

/* Whether there are registers for the arguments and live values from `first` up to `end`, and for
 * `count`. Sets `*limits` to how many there are. */
static bool has_registers(const struct checker *checker, unsigned first, unsigned end,
                          struct registers count, struct registers *limits)
{
    *limits = machines[checker->architecture].limits;
    for (unsigned i = first;
         i < end && count.general <= limits->general && count.vector <= limits->vector; i++)
        if (needs_register(checker, i) && !is_repeated(&checker->call, first, i))
            count_type(LLVMTypeOf(site_call_value(&checker->call, i)), &count);
    if (count.general == limits->general && has_dynamic_alloca(checker->function))
        limits->general--;
    return count.general <= limits->general && count.vector <= limits->vector;
}

/* Checks that there are registers, and at -O0 stores the values of frame states if there are not.
 */
static void check_limits(struct checker *checker, unsigned first, unsigned end,
                         struct registers count)
{
    struct registers limits;
    bool is_optimised = checker->options->optimisation_level > 0;
    if (has_registers(checker, first, end, count, &limits) ||
        (!is_optimised && checker->call.kind != CAIRN_RECORD_STATEPOINT &&
         stored_states_make(&checker->call) && has_registers(checker, first, end, count, &limits)))
        return;
    static const struct problem level_0 = {"at -O0 LLVM runs out of registers for so many values",
                                           "or compile at -O1"};
    static const struct problem anyreg = {"anyregcc has no registers for so many arguments",
                                          "and the others as live values"};
    static const struct problem constants = {"LLVM runs out of registers for so many constants",
                                             "and no more addresses and numbers"};
    const struct problem *problem = checker->options->optimisation_level == 0 ? &level_0
                                    : checker->is_anyreg                      ? &anyreg
                                                                              : &constants;
    char instead[120];
    snprintf(instead, sizeof instead, "at most %u (%u in vector registers), %s", limits.general,
             limits.vector, problem->instead);
    report(checker, problem->why, instead);
}

/* Checks that the values fit into registers. At -O0 all live values are in registers at the same
 * time. Arguments of anyregcc, some constants, and the deopt values of a statepoint whose flags
 * keep them there always are. An argument has a register of its own, even if another register also
 * holds its value. */
static void check_registers(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    struct registers count = {0};
    unsigned first = call->argument_count;
    unsigned end = checker->end;
    if (call->kind == CAIRN_RECORD_STATEPOINT) {
        if (!call->is_live_in)
            return;
        end = first + call->live_values.count;
    } else if (checker->is_anyreg) {
        first = 0;
    } else if (checker->options->optimisation_level == 0) {
        const struct registers *passed = &machines[checker->architecture].arguments;
        for (unsigned i = 0; i < first; i++)
            count_type(LLVMTypeOf(site_call_value(call, i)), &count);
        count.general = minimum(count.general, passed->general);
        count.vector = minimum(count.vector, passed->vector);
    }
    check_limits(checker, first, end, count);
}

/* Whether anyregcc can return the type. LLVM promotes only integers in results. So some types are
 * supported as live values and not as results: half on PPC64 and RISC-V, and bfloat on all
 * architectures except AArch64. */
static bool is_result_in_any_register(const struct checker *checker, LLVMTypeRef type)
{
    enum cairn_architecture architecture = checker->architecture;
    bool is_ppc64 = architecture == CAIRN_ARCHITECTURE_PPC64_ELFV2 ||
                    architecture == CAIRN_ARCHITECTURE_PPC64_ELFV1;
    switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
    case LLVMStructTypeKind:
    case LLVMArrayTypeKind:
        return true;
    case LLVMIntegerTypeKind:
        /* LLVM has put integers of other widths into registers without a class before it promotes
         * them. Some work if they are used in the same block, others do not. */
        if (is_ppc64 && checker->options->optimisation_level == 0) {
            unsigned bits = LLVMGetIntTypeWidth(type);
            return bits == 32 || bits == 64 ||
                   (bits == 1 && architecture == CAIRN_ARCHITECTURE_PPC64_ELFV2);
        }
        return ir_is_integer(type, 64);
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

/* Checks that LLVM takes the result of a call from the registers in which it is returned. */
static void check_returned(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    char why[120];
    char name[25];
    if (call->result == NULL || checker->is_anyreg)
        return;
    if (call->kind == CAIRN_RECORD_STATEPOINT &&
        !results_fit_statepoint(call->result, checker->architecture, checker->function))
        snprintf(why, sizeof why,
                 "LLVM returns %s in memory, and then crashes on a statepoint, or calls address 0",
                 ir_print_type(call->result, name, sizeof name));
    else if (call->kind == CAIRN_RECORD_PATCHPOINT &&
             !results_fit_patchpoint(call->result, checker->architecture, checker->function))
        snprintf(why, sizeof why, "LLVM has no patch points with a result of type %s",
                 ir_print_type(call->result, name, sizeof name));
    else
        return;
    report(checker, why, "a pointer as argument, to where the callee puts the result");
}

/* Checks that an argument of a variadic function needs no special treatment. LLVM calls the callee
 * of a gc.statepoint as if it had fixed arguments. On x86-64, it does not set the number of vector
 * registers then, and on RISC-V it passes numbers in other registers. */
static void check_variadic(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    LLVMValueRef function = ir_called_function(call->call);
    if (call->kind != CAIRN_RECORD_STATEPOINT ||
        checker->architecture == CAIRN_ARCHITECTURE_AARCH64 ||
        !ir_is_intrinsic(function, "llvm.experimental.gc.statepoint"))
        return;
    LLVMTypeRef callee = version_statepoint_callee_type(
        call->call, LLVMGetOperand(call->call, call->callee_operand));
    if (callee == NULL || !LLVMIsFunctionVarArg(callee))
        return;
    for (unsigned i = LLVMCountParamTypes(callee); i < call->argument_count; i++) {
        LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(site_call_value(call, i)));
        if (kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind)
            continue;
        report(checker, "LLVM passes this to a variadic function as to one with fixed arguments",
               "a call of a function that calls it");
        return;
    }
}

static void check_any_register_result(struct checker *checker)
{
    LLVMTypeRef type = LLVMTypeOf(checker->call.call);
    if (!checker->is_anyreg || checker->architecture == CAIRN_ARCHITECTURE_UNKNOWN ||
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

/* ---- GC transitions, operand bundles ---- */

/* Checks GC transitions. Only x86-64 has the nodes by which LLVM marks a transition, and their
 * operands must be in registers. */
static void check_transition(struct checker *checker)
{
    const struct site_call *call = &checker->call;
    bool has_transitions = checker->architecture == CAIRN_ARCHITECTURE_X86_64;
    bool fits = true;
    for (unsigned i = 0; i < call->transition_values.count; i++) {
        LLVMValueRef value = LLVMGetOperand(call->call, call->transition_values.first + i);
        fits &= types_transition_value(LLVMTypeOf(value), checker->architecture);
    }
    if (call->is_transition && !has_transitions)
        report(checker, "LLVM cannot select GC transitions for this architecture",
               "flags without bit 0");
    else if (call->is_transition && !fits)
        report(checker, "LLVM crashes on GC transition values that fit no register",
               "pointers to them");
}

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

/* ---- Calls with a "deopt" bundle ---- */

/* Checks for statepoints that must be tail calls: they have code after the call, so LLVM makes an
 * ordinary call, and 22 then ends the process. Checks for calls with a "deopt" bundle without a
 * record: of library functions, and, on AArch64 at -O0, even with EnableFastISel, those that
 * GlobalISel compiles. */
static enum cairn_status check_deopt_call(struct checker *checker)
{
    LLVMValueRef call = checker->call.call;
    enum cairn_status status = CAIRN_OK;
    if (checker->call.kind != CAIRN_RECORD_STATEPOINT)
        return CAIRN_OK;
    if (site_call_must_be_tail_call(call))
        report(checker, "LLVM cannot make a tail call of a call with a \"deopt\" bundle",
               "it without musttail, or without the bundle");
    if (!site_call_has_deopt_bundle(call))
        return CAIRN_OK;
    if (selection_may_replace(call))
        report(checker, "LLVM may replace the library function by instructions, without a record",
               "nobuiltin after the arguments, or another function that calls it");
    if (checker->architecture != CAIRN_ARCHITECTURE_AARCH64 ||
        checker->options->optimisation_level > 0 || LLVMIsACallInst(call) == NULL)
        return CAIRN_OK;
    if (!checker->has_checked_selection)
        status =
            selection_leaves_to_dag(checker->function, &checker->is_left_to_dag, checker->error);
    checker->has_checked_selection = true;
    if (status == CAIRN_OK && !checker->is_left_to_dag)
        report(checker, "at -O0 LLVM makes no record of calls with a \"deopt\" bundle on AArch64",
               "a call of llvm.experimental.gc.statepoint, or compile at -O1");
    return status;
}

/* ---- A module ---- */

static enum cairn_status check_instruction(struct checker *checker, LLVMValueRef instruction)
{
    enum cairn_status status = CAIRN_OK;
    struct site_call *call = &checker->call;
    if (site_call_kind(instruction) != CAIRN_RECORD_UNDECLARED) {
        status = site_call_read(instruction, call, checker->error);
        if (status != CAIRN_OK)
            return status;
        checker->is_anyreg = call->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
        checker->end = call->argument_count + call->live_value_count;
        check_region(checker);
        check_transition(checker);
        check_live_values(checker);
        check_registers(checker);
        check_returned(checker);
        check_variadic(checker);
        check_any_register_result(checker);
        check_bundles(checker);
        status = check_deopt_call(checker);
    } else {
        call->call = instruction;
        if (LLVM_ENDS_AT_FOREIGN_BUNDLES && ir_is_call(instruction))
            check_bundles(checker);
    }
    if (status == CAIRN_OK)
        report_problem(checker,
                       unsupported_find(instruction, checker->architecture, checker->options));
    return status;
}

static enum cairn_status check_function(struct checker *checker, LLVMValueRef function)
{
    enum cairn_status status = CAIRN_OK;
    checker->function = function;
    checker->has_checked_selection = false;
    for (LLVMValueRef instruction = NULL;
         status == CAIRN_OK &&
         (instruction = ir_next_instruction(function, instruction)) != NULL;) {
        if (unsupported_may_be(LLVMGetInstructionOpcode(instruction)))
            status = check_instruction(checker, instruction);
        checker->call.call = instruction;
        report_problem(checker, foreign_type_find(instruction, checker->architecture));
    }
    return status;
}

enum cairn_status cairn_check_module(LLVMModuleRef module,
                                     const struct cairn_check_options *options,
                                     struct cairn_error *error)
{
    static const struct cairn_check_options defaults;
    if (module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_check_module: `module` is NULL");
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
    enum cairn_status status = CAIRN_OK;
    for (LLVMValueRef function = LLVMGetFirstFunction(module);
         status == CAIRN_OK && function != NULL; function = LLVMGetNextFunction(function))
        if (LLVMGetLinkage(function) != LLVMAvailableExternallyLinkage) /* LLVM emits code */
            status = check_function(&checker, function);
    if (status != CAIRN_OK || checker.found == 0)
        return status;
    if (error != NULL && checker.found > 1) {
        size_t length = strlen(error->message);
        size_t limit = sizeof error->message - SUFFIX_SIZE;
        snprintf(error->message + (length < limit ? length : limit), SUFFIX_SIZE, " (and %u more)",
                 (unsigned)(checker.found - 1));
    }
    return CAIRN_ERROR_LLVM;
}
