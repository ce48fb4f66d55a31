/* SPDX-License-Identifier: MIT */
#include "object_ir.h"

#include <llvm-c/Target.h>

/* Constants are loaded from memory, and calls are not inlined, because LLVM's passes do not run. */
static const char text[] =
    "@counter = internal global i32 3\n"
    "@exported = global i32 5\n"
    "@hidden = hidden global i32 7\n"
    "@weak_number = weak global i32 11\n"
    "@common_number = common global i32 0\n"
    "@zeros = internal global [5000 x i8] zeroinitializer\n"
    "@constants = internal constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]\n"
    "@host_byte = external global i32\n"
    "@missing = extern_weak global i32\n"
    "@functions = internal constant [2 x ptr] [ptr @twice, ptr @host_twice]\n"
    "@blocks = internal constant [2 x ptr] [ptr blockaddress(@use_blocks, %one),"
    " ptr blockaddress(@use_blocks, %two)]\n"
    "@comdat_number = linkonce_odr global i32 13, comdat\n"
    "$comdat_number = comdat any\n"
    "$in_comdat = comdat any\n"
    "declare i32 @host_add(i32, i32)\n"
    "define internal i32 @twice(i32 %x) noinline { %r = mul i32 %x, 2 ret i32 %r }\n"
    "define hidden i32 @host_twice(i32 %x) { %r = call i32 @host_add(i32 %x, i32 %x) ret i32 %r }\n"
    "define linkonce_odr i32 @in_comdat(i32 %x) comdat {"
    " %c = load i32, ptr @comdat_number %r = add i32 %x, %c ret i32 %r }\n"
    "define weak i32 @weak_function(i32 %x) { %r = add i32 %x, 1 ret i32 %r }\n"
    "define i32 @use_static(i32 %x) {"
    " %a = load i32, ptr @counter %b = add i32 %a, %x store i32 %b, ptr @counter ret i32 %b }\n"
    "define i32 @use_numbers(i32 %x) {"
    " %a = load i32, ptr @exported %b = load i32, ptr @hidden %c = load i32, ptr @weak_number"
    " %d = add i32 %a, %b %e = add i32 %c, %d %f = add i32 %e, %x ret i32 %f }\n"
    "define i32 @use_common(i32 %x) {"
    " %a = load i32, ptr @common_number %b = add i32 %a, %x store i32 %b, ptr @common_number"
    " ret i32 %b }\n"
    "define i32 @use_zeros(i32 %x) {"
    " %p = getelementptr [5000 x i8], ptr @zeros, i64 0, i64 4999 %a = load i8, ptr %p"
    " %t = trunc i32 %x to i8 store i8 %t, ptr %p %r = zext i8 %a to i32 ret i32 %r }\n"
    "define i32 @use_constants(i32 %x) { %i = zext i32 %x to i64"
    " %p = getelementptr [4 x i32], ptr @constants, i64 0, i64 %i %a = load i32, ptr %p"
    " ret i32 %a }\n"
    "define i32 @use_host(i32 %x) { %h = load i32, ptr @host_byte"
    " %r = call i32 @host_add(i32 %x, i32 %h) %s = add i32 %r, 1 ret i32 %s }\n"
    "define i32 @use_tail(i32 %x) { %r = tail call i32 @host_add(i32 %x, i32 100) ret i32 %r }\n"
    "define i32 @use_missing(i32 %x) { %c = icmp eq ptr @missing, null"
    " %r = select i1 %c, i32 %x, i32 -1 ret i32 %r }\n"
    "define i32 @use_functions(i32 %x) { %i = zext i32 %x to i64"
    " %p = getelementptr [2 x ptr], ptr @functions, i64 0, i64 %i %f = load ptr, ptr %p"
    " %r = call i32 %f(i32 21) ret i32 %r }\n"
    "define i32 @use_calls(i32 %x) { %a = call i32 @twice(i32 %x)"
    " %b = call i32 @weak_function(i32 %a) %c = call i32 @in_comdat(i32 %b) ret i32 %c }\n"
    "define i32 @use_double(i32 %x) { %d = sitofp i32 %x to double"
    " %m = fmul double %d, 0x3FF3C0CA428C59FB %r = fptosi double %m to i32 ret i32 %r }\n"
    "define i32 @use_vector(i32 %x) { %v = insertelement <4 x i32> <i32 1, i32 20, i32 300, i32 "
    "4000>,"
    " i32 %x, i32 0 %w = mul <4 x i32> %v, <i32 3, i32 5, i32 7, i32 9>"
    " %a = extractelement <4 x i32> %w, i32 0 %b = extractelement <4 x i32> %w, i32 3"
    " %r = add i32 %a, %b ret i32 %r }\n"
    "define i32 @use_blocks(i32 %x) { %i = zext i32 %x to i64"
    " %p = getelementptr [2 x ptr], ptr @blocks, i64 0, i64 %i %b = load ptr, ptr %p"
    " indirectbr ptr %b, [label %one, label %two]\n"
    "one: ret i32 111\n"
    "two: ret i32 222 }\n"
    "define i32 @use_switch(i32 %x) {"
    " switch i32 %x, label %other [ i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d"
    " i32 4, label %e i32 5, label %f ]\n"
    "a: %ra = call i32 @host_add(i32 1, i32 2) ret i32 %ra\n"
    "b: %rb = load i32, ptr @exported ret i32 %rb\n"
    "c: ret i32 77\n"
    "d: %rd = call i32 @twice(i32 9) ret i32 %rd\n"
    "e: ret i32 -3\n"
    "f: %rf = load i32, ptr @hidden ret i32 %rf\n"
    "other: ret i32 -1 }\n"
    "define double @use_sine(double %x) { %r = call double @llvm.sqrt.f64(double %x)"
    " ret double %r }\n"
    "declare double @llvm.sqrt.f64(double)\n";

const struct object_ir_call object_ir_calls[] = {
    {"use_static", 4, 7},     {"use_static", 1, 8},     {"use_numbers", 1, 24},
    {"use_common", 9, 9},     {"use_common", 1, 10},    {"use_zeros", 33, 0},
    {"use_zeros", 1, 33},     {"use_constants", 2, 30}, {"use_host", 2, 53},
    {"use_tail", 5, 105},     {"use_missing", 6, 6},    {"use_functions", 0, 42},
    {"use_functions", 1, 42}, {"use_calls", 10, 34},    {"use_double", 1000, 1234},
    {"use_vector", 2, 36006}, {"use_blocks", 0, 111},   {"use_blocks", 1, 222},
    {"use_switch", 0, 3},     {"use_switch", 1, 5},     {"use_switch", 2, 77},
    {"use_switch", 3, 18},    {"use_switch", 4, -3},    {"use_switch", 5, 7},
    {"use_switch", 6, -1},
};
const size_t object_ir_call_count = sizeof object_ir_calls / sizeof *object_ir_calls;

static LLVMTargetMachineRef create_machine(const struct object_ir_options *options)
{
    char *own = LLVMGetDefaultTargetTriple();
    LLVMTargetRef target = NULL;
    LLVMTargetMachineRef machine = NULL;
    char *message = NULL;
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
    const char *triple = options->triple == NULL ? own : options->triple;
    if (LLVMGetTargetFromTriple(triple, &target, &message) == 0)
        machine = LLVMCreateTargetMachine(target, triple, "", "", options->level,
                                          options->relocation_model, options->code_model);
    LLVMDisposeMessage(message);
    LLVMDisposeMessage(own);
    return machine;
}

LLVMMemoryBufferRef object_ir_compile(const struct object_ir_options *options)
{
    LLVMTargetMachineRef machine = LLVM_VERSION_MAJOR >= 15 ? create_machine(options) : NULL;
    LLVMMemoryBufferRef object = NULL;
    char *message = NULL;
    if (machine == NULL)
        return NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = support_parse_valid(context, text);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &object) !=
        0)
        ck_abort_msg("%s", message);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    LLVMDisposeTargetMachine(machine);
    return object;
}
