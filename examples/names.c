/*
 * names: code that outlives the process, although it uses objects of its host.
 *
 *     cc names.c $(pkg-config --cflags --libs cairn-llvm)
 *     ./a.out                     compiles, and runs the object in two other processes
 *     ./a.out FILE.o OFFSET       runs the object
 *
 * The host's global variables are in a heap that is elsewhere in each process, and so are its exit
 * and its functions. The compiled code has names for them: {kind, number}. Whoever loads the object
 * tells what the names stand for.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/frame_state.h>
#include <cairn/llvm.h>
#include <cairn/load.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "names: %s\n", message);
    exit(1);
}

/* ---- The host's names ---- */

enum kind { GLOBAL, FUNCTION, EXIT, CACHE };
struct key {
    unsigned char kind; /* enum kind */
    unsigned char number;
};

/* What the names stand for, elsewhere in each process. */
struct function {
    const char *name;
};
static int64_t *globals;
static struct function functions[8];
static cairn_exit *overflow_exit;
static const struct cairn_ic_options reading;

/* Finds what the names of an object stand for in this process. */
static size_t find_names(void *user, const struct cairn_name *names, size_t count, uint64_t *values)
{
    (void)user;
    for (size_t i = 0; i < count; i++) {
        const struct key *key = names[i].bytes;
        if (names[i].size != sizeof *key)
            return i;
        switch ((enum kind)key->kind) {
        case GLOBAL:
            values[i] = (uintptr_t)&globals[key->number];
            break;
        case FUNCTION:
            values[i] = (uintptr_t)&functions[key->number];
            break;
        case EXIT:
            values[i] = (uintptr_t)cairn_exit_target(overflow_exit);
            break;
        case CACHE:
            values[i] = (uintptr_t)&reading;
            break;
        default:
            return i;
        }
    }
    return count;
}

/* ---- Compiling ---- */

static LLVMContextRef context;
static struct cairn_error error;

/* Builds the address of a global variable or a function. */
static LLVMValueRef build_address(LLVMBuilderRef builder, enum kind kind, unsigned char number)
{
    const struct key key = {(unsigned char)kind, number};
    const struct cairn_name name = {&key, sizeof key};
    LLVMTypeRef pointer = LLVMPointerType(LLVMInt64TypeInContext(context), 0);
    LLVMValueRef address = cairn_build_name(builder, &name, pointer, &error);
    if (address == NULL)
        fail(error.message);
    return address;
}

/* Builds a guard at which threads leave `function` if the sum, its local, is too large. */
static void build_guard(LLVMBuilderRef builder, LLVMValueRef sum)
{
    const struct key key = {EXIT, 0};
    const struct cairn_name name = {&key, sizeof key};
    LLVMValueRef limit = LLVMConstInt(LLVMTypeOf(sum), 1000, 0);
    const struct cairn_encoded_frame frame = {
        .function_name = build_address(builder, FUNCTION, 3), .locals = &sum, .local_count = 1};
    const struct cairn_guard guard = {
        .id = 1, .exit_name = &name, .frames = &frame, .frame_count = 1};
    LLVMValueRef holds = LLVMBuildICmp(builder, LLVMIntSLT, sum, limit, "");
    if (cairn_build_guard(builder, holds, &guard, &error) == NULL)
        fail(error.message);
}

/* Builds a read of a property of the object at `object`, with an inline cache. */
static LLVMValueRef build_read(LLVMBuilderRef builder, LLVMModuleRef module, LLVMValueRef object)
{
    const struct key key = {CACHE, 0};
    const struct cairn_name name = {&key, sizeof key};
    const struct cairn_patchpoint site = {
        .id = 2,
        .byte_count = cairn_patchpoint_minimum_bytes(module, false),
        .result_type = LLVMInt64TypeInContext(context),
        .calling_convention = CAIRN_CALLING_CONVENTION_ANYREG,
        .arguments = &object,
        .argument_count = 1,
        .cache_name = &name,
    };
    LLVMValueRef value = cairn_build_patchpoint(builder, &site, &error);
    if (value == NULL)
        fail(error.message);
    return value;
}

/* Builds int64_t add(object), which adds a property of the object to global variable 2, and returns
 * the sum. */
static LLVMModuleRef build(const char *triple)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("names", context);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMTypeRef pointer = LLVMPointerType(word, 0);
    LLVMValueRef function = LLVMAddFunction(module, "add", LLVMFunctionType(word, &pointer, 1, 0));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMSetTarget(module, triple);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, ""));
    LLVMValueRef cell = build_address(builder, GLOBAL, 2);
    LLVMValueRef old = LLVMBuildLoad2(builder, word, cell, "");
    LLVMValueRef read = build_read(builder, module, LLVMGetParam(function, 0));
    LLVMValueRef sum = LLVMBuildAdd(builder, old, read, "");
    build_guard(builder, sum);
    LLVMBuildStore(builder, sum, cell);
    LLVMBuildRet(builder, sum);
    LLVMDisposeBuilder(builder);
    return module;
}

/* Compiles the function for any CPU of this architecture, to a file. */
static void compile(const char *path)
{
    LLVMTargetRef target;
    char *message;
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    if (LLVMGetTargetFromTriple(triple, &target, &message) != 0)
        fail(message);
    context = LLVMContextCreate();
    LLVMModuleRef module = build(triple);
    const struct cairn_embed_options options = {
        .machine = LLVMCreateTargetMachine(target, triple, "", "", LLVMCodeGenLevelDefault,
                                           LLVMRelocPIC, LLVMCodeModelDefault),
    };
    if (cairn_embed_manifest(module, &options, &error) != CAIRN_OK)
        fail(error.message);
    if (LLVMTargetMachineEmitToFile(options.machine, module, (char *)(uintptr_t)path,
                                    LLVMObjectFile, &message) != 0)
        fail(message);
    LLVMDisposeTargetMachine(options.machine);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    LLVMDisposeMessage(triple);
}

/* ---- Running, without LLVM ---- */

/* An object has a shape, which tells where its property is. */
struct object {
    int64_t shape;
    int64_t property;
};

/* Reads the property, and adds a case for later objects of the shape. */
static void read_missed(struct cairn_ic_miss *miss, void *user)
{
    const struct object *object = cairn_value_pointer(&miss->operands[0]);
    const struct cairn_value value = cairn_value_of_integer(64, object->property);
    const struct cairn_ic_case found = {
        .guard = {.width = 8, .key = (uint64_t)object->shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = offsetof(struct object, property), .width = 8},
    };
    (void)user;
    if (cairn_ic_return(miss, &value, &error) != CAIRN_OK ||
        cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, &error) != CAIRN_OK)
        fail(error.message);
}

static const struct cairn_ic_options reading = {.handler = read_missed};

/* Returns -1 instead of a sum that is too large. An interpreter would continue here. */
static void overflowed(struct cairn_exit_call *call, void *user)
{
    const struct cairn_value result = cairn_value_of_integer(64, -1);
    struct cairn_frame_state state;
    struct cairn_interpreter_frame frame;
    struct cairn_value sum;
    (void)user;
    if (cairn_frame_state_read(&call->frame, call->record, 0, &state, &error) != CAIRN_OK ||
        cairn_frame_state_frame(&state, 0, &frame, &error) != CAIRN_OK ||
        cairn_frame_state_value(&state, &frame, 0, &sum, &error) != CAIRN_OK ||
        cairn_exit_return(call, &result, 1, &error) != CAIRN_OK)
        fail(error.message);
    const struct function *function = (const struct function *)(uintptr_t)frame.function;
    printf("  left '%s' with the sum %lld\n", function->name, (long long)cairn_value_bits(&sum));
}

/* Loads the object in a file. */
static cairn_module *load(cairn_runtime *runtime, const char *path)
{
    static char bytes[1 << 20];
    const struct cairn_load_options options = {.name = path, .find_names = find_names};
    cairn_loader *loader;
    cairn_module *module;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail("there is no object");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (cairn_loader_create(runtime, "names", &loader, &error) != CAIRN_OK ||
        cairn_loader_add_object(loader, bytes, size, &options, &error) != CAIRN_OK ||
        cairn_loader_finish(loader, &module, &error) != CAIRN_OK ||
        cairn_module_publish(module, &error) != CAIRN_OK)
        fail(error.message);
    return module;
}

/* Calls the function three times. Returns 0 if the results are right. */
static int call(const cairn_module *module)
{
    static const struct object objects[] = {{7, 2}, {7, 100}, {7, 2000}};
    int64_t (*add)(const struct object *) =
        (int64_t(*)(const struct object *))(uintptr_t)cairn_module_find_symbol(module, "add");
    int64_t sums[3];
    for (int i = 0; i < 3; i++)
        sums[i] = add(&objects[i]);
    printf("process %ld: the sums are %lld, %lld and %lld; the global variable is %lld\n",
           (long)getpid(), (long long)sums[0], (long long)sums[1], (long long)sums[2],
           (long long)globals[2]);
    return sums[0] == 42 && sums[1] == 142 && sums[2] == -1 && globals[2] == 142 ? 0 : 1;
}

/* Runs the object with the globals `offset` words into the heap. */
static int run(const char *path, long offset)
{
    static int64_t heap[100];
    cairn_runtime *runtime;
    globals = heap + offset;
    globals[2] = 40;
    functions[3].name = "add";
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_exit_create(runtime, overflowed, NULL, &overflow_exit, &error) != CAIRN_OK)
        fail(error.message);
    cairn_module *module = load(runtime, path);
    int result = call(module);
    cairn_module_retire(module);
    cairn_exit_destroy(overflow_exit);
    cairn_runtime_destroy(runtime);
    return result;
}

/* Runs the object in a new process. Returns 0 if that is right. */
static int run_elsewhere(const char *path, long offset)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        exit(run(path, offset));
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail("cannot start a process");
    return status;
}

int main(int argument_count, char **arguments)
{
    char path[] = "/tmp/names.XXXXXX";
    if (argument_count > 2)
        return run(arguments[1], strtol(arguments[2], NULL, 10));
    int file = mkstemp(path);
    if (file < 0 || close(file) != 0)
        fail("there is no temporary file");
    compile(path);
    int status = run_elsewhere(path, 10);
    status |= run_elsewhere(path, 50);
    unlink(path);
    return status == 0 ? 0 : 1;
}
