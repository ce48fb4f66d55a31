/* SPDX-License-Identifier: MIT */
#include "tests/ic_support.h"
#include "value/representation.h"

#include "runtime/module.h"
#include "llvm/version.h"

#include <inttypes.h>
#include <llvm-c/Linker.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The environment ---- */

uint64_t ic_rounds(uint64_t usual)
{
    enum { NATIVELY = 60 };
    uint64_t rounds = usual * support_read_number("CAIRN_TEST_ROUNDS", NATIVELY) / NATIVELY;
    return rounds == 0 ? 1 : rounds;
}

/* ---- Randomness ---- */

/* SplitMix64 */
uint64_t ic_random(uint64_t *random)
{
    uint64_t mixed = *random += UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

uint32_t ic_below(uint64_t *random, uint32_t bound)
{
    return (uint32_t)((ic_random(random) >> 32) * bound >> 32);
}

/* ---- Types ---- */

static LLVMTypeRef llvm_type(LLVMContextRef context, struct cairn_type type)
{
    if (type.element_count > 0) {
        uint32_t count = type.element_count;
        type.element_count = 0;
        return LLVMVectorType(llvm_type(context, type), count);
    }
    switch (type.kind) {
    case CAIRN_TYPE_VOID:
        return LLVMVoidTypeInContext(context);
    case CAIRN_TYPE_POINTER:
        return version_byte_pointer_type(context);
    case CAIRN_TYPE_FLOAT:
        return LLVMFloatTypeInContext(context);
    case CAIRN_TYPE_DOUBLE:
        return LLVMDoubleTypeInContext(context);
    default:
        return LLVMIntTypeInContext(context, type.bits);
    }
}

static bool is_whole_integer(struct cairn_type type)
{
    return type.kind == CAIRN_TYPE_INTEGER && type.element_count == 0;
}

bool ic_can_pass(struct cairn_type type, uint32_t calling_convention)
{
    bool is_anyreg = calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    bool is_x86_64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    if (!is_anyreg || !is_whole_integer(type) || type.bits >= 32)
        return true;
    return LLVM_PROMOTES_LIVE_INTEGERS || (is_x86_64 && type.bits >= 8);
}

bool ic_can_return(struct cairn_type type)
{
    return LLVM_PATCHPOINT_RETURNS_ANY_TYPE || type.kind == CAIRN_TYPE_VOID ||
           type.kind == CAIRN_TYPE_POINTER || is_whole_integer(type);
}

/* Instruction selection supports only results of the machine's own integer types. */
static bool is_returned_as_it_is(struct cairn_type type, uint32_t calling_convention)
{
    bool is_x86_64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    (void)calling_convention;
    if (!LLVM_PATCHPOINT_RETURNS_ANY_TYPE)
        return false;
    return !is_whole_integer(type) || type.bits >= 32 || (is_x86_64 && type.bits >= 8);
}

struct cairn_type ic_declared_result(struct cairn_type type)
{
    bool is_integer = type.kind == CAIRN_TYPE_POINTER || is_whole_integer(type);
    return is_integer && !is_returned_as_it_is(type, 0) ? CAIRN_INTEGER(64) : type;
}

struct cairn_value ic_value(struct cairn_type type, const void *bytes)
{
    struct cairn_value value;
    ck_assert_ok(value_of_bytes(type, bytes, cairn_type_size(type), &value, NULL));
    return value;
}

static bool is_not_a_number(const struct cairn_value *value)
{
    struct cairn_type type = cairn_type_vector(value->type, 0);
    size_t size = cairn_type_size(type);
    for (uint32_t i = 0; i < value->type.element_count; i++) {
        struct cairn_value element = ic_value(type, value->bytes + i * size);
        if (cairn_value_double(&element) != cairn_value_double(&element))
            return true;
    }
    return cairn_value_double(value) != cairn_value_double(value);
}

static bool is_number(struct cairn_type type)
{
    return type.kind == CAIRN_TYPE_FLOAT || type.kind == CAIRN_TYPE_DOUBLE;
}

struct cairn_value ic_random_value(struct cairn_type type, uint64_t *random)
{
    uint64_t bits[IC_SLOT_BYTES / sizeof(uint64_t)] = {0};
    struct cairn_value value;
    do {
        for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
            bits[i] = ic_random(random);
        value = is_whole_integer(type) ? cairn_value_of_integer(type.bits, (int64_t)*bits)
                                       : ic_value(type, bits);
    } while (is_number(type) && type.element_count == 0 && is_not_a_number(&value));
    return value;
}

/* ---- Building ---- */

struct builder {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef llvm;
    LLVMValueRef function;
    LLVMValueRef access;
    const struct ic_function *made;
    uint64_t number; /* ID of the site */
    uint64_t order;
    LLVMValueRef operands[IC_OPERANDS_MAX];
    LLVMValueRef kept[IC_KEPT_MAX];
    LLVMValueRef signs[IC_SIGNS_MAX];
};

static LLVMTypeRef int64_type(const struct builder *builder)
{
    return LLVMInt64TypeInContext(builder->context);
}

static LLVMValueRef place(const struct builder *builder, size_t offset, LLVMTypeRef type)
{
    LLVMValueRef distance = LLVMConstInt(int64_type(builder), offset, 0);
    LLVMValueRef address = LLVMBuildAdd(builder->llvm, builder->access, distance, "");
    return LLVMBuildIntToPtr(builder->llvm, address, LLVMPointerType(type, 0), "");
}

static LLVMValueRef load(const struct builder *builder, LLVMTypeRef type, size_t offset)
{
    LLVMValueRef value = LLVMBuildLoad2(builder->llvm, type, place(builder, offset, type), "");
    LLVMSetVolatile(value, 1);
    return value;
}

static void store(const struct builder *builder, LLVMValueRef value, size_t offset)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMSetVolatile(LLVMBuildStore(builder->llvm, value, place(builder, offset, type)), 1);
}

/* Puts the value into the register of this name, and then into any register that LLVM chooses. LLVM
 * has no reason to move it. */
static LLVMValueRef put_into(const struct builder *builder, LLVMValueRef value, const char *name)
{
    char constraints[32];
    char nothing[] = "";
    LLVMTypeRef type = LLVMTypeOf(value);
    if (name == NULL)
        return value;
    int length = snprintf(constraints, sizeof constraints, "={%s},0", name);
    LLVMTypeRef assembly_type = LLVMFunctionType(type, &type, 1, 0);
    LLVMValueRef assembly = LLVMGetInlineAsm(assembly_type, nothing, 0, constraints, (size_t)length,
                                             1, 0, LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(builder->llvm, assembly_type, assembly, &value, 1, "");
}

/* ---- The order of loads and stores ---- */

static void shuffle(struct builder *builder, uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i;
    for (uint32_t i = count; builder->order != 0 && i > 1; i--) {
        uint32_t other = ic_below(&builder->order, i);
        uint32_t number = numbers[i - 1];
        numbers[i - 1] = numbers[other];
        numbers[other] = number;
    }
}

/* Loads value number `index`: operands come first, then kept values, then signs. */
static void load_value(struct builder *builder, uint32_t index)
{
    const struct ic_function *made = builder->made;
    if (index < made->operand_count) {
        builder->operands[index] =
            load(builder, llvm_type(builder->context, made->operands[index]),
                 offsetof(struct ic_access, operands) + index * sizeof(ic_slot));
        return;
    }
    index -= made->operand_count;
    if (index < made->kept_count) {
        builder->kept[index] = load(builder, llvm_type(builder->context, made->kept[index]),
                                    offsetof(struct ic_access, kept) + index * sizeof(ic_slot));
        return;
    }
    index -= made->kept_count;
    LLVMValueRef number = load(builder, int64_type(builder),
                               offsetof(struct ic_access, signs) + index * sizeof(int64_t));
    builder->signs[index] =
        LLVMBuildICmp(builder->llvm, LLVMIntSLT, number, LLVMConstNull(int64_type(builder)), "");
}

static uint32_t value_count(const struct ic_function *made)
{
    return made->operand_count + made->kept_count + made->sign_count;
}

static void load_values(struct builder *builder)
{
    uint32_t numbers[IC_OPERANDS_MAX + IC_KEPT_MAX + IC_SIGNS_MAX];
    uint32_t count = value_count(builder->made);
    shuffle(builder, numbers, count);
    for (uint32_t i = 0; i < count; i++)
        load_value(builder, numbers[i]);
    for (uint32_t i = 0; i < builder->made->operand_count; i++)
        builder->operands[i] =
            put_into(builder, builder->operands[i], builder->made->operand_registers[i]);
}

/* Stores whether the comparison was true, by a branch on the comparison's kept result. */
static void store_sign(struct builder *builder, LLVMValueRef sign, size_t offset)
{
    LLVMBasicBlockRef blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = LLVMAppendBasicBlockInContext(builder->context, builder->function, "");
    LLVMBuildCondBr(builder->llvm, sign, blocks[0], blocks[1]);
    for (unsigned i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(builder->llvm, blocks[i]);
        store(builder, LLVMConstInt(int64_type(builder), i + 1, 0), offset);
        LLVMBuildBr(builder->llvm, blocks[2]);
    }
    LLVMPositionBuilderAtEnd(builder->llvm, blocks[2]);
}

static void store_value(struct builder *builder, uint32_t index)
{
    const struct ic_function *made = builder->made;
    if (index < made->operand_count) {
        if (made->keeps_operands)
            store(builder, builder->operands[index],
                  offsetof(struct ic_access, operands_after) + index * sizeof(ic_slot));
        return;
    }
    index -= made->operand_count;
    if (index < made->kept_count) {
        store(builder, builder->kept[index],
              offsetof(struct ic_access, kept_after) + index * sizeof(ic_slot));
        return;
    }
    index -= made->kept_count;
    store_sign(builder, builder->signs[index],
               offsetof(struct ic_access, signs_after) + index * sizeof(int64_t));
}

static void store_values(struct builder *builder)
{
    uint32_t numbers[IC_OPERANDS_MAX + IC_KEPT_MAX + IC_SIGNS_MAX];
    uint32_t count = value_count(builder->made);
    shuffle(builder, numbers, count);
    for (uint32_t i = 0; i < count; i++)
        store_value(builder, numbers[i]);
}

/* ---- The site ---- */

static uint32_t site_bytes(const struct builder *builder)
{
    enum { SOME_MORE = 4 };
    const struct ic_function *made = builder->made;
    if (made->byte_count != 0)
        return made->byte_count;
    if (made->target == NULL && builder->number % 2 == 0)
        return cairn_patchpoint_inline_bytes(builder->module) + SOME_MORE;
    return cairn_patchpoint_minimum_bytes(builder->module, made->target != NULL) + SOME_MORE;
}

/* Builds the patch point with the result's own type. cairn_build_patchpoint uses i64 where every
 * LLVM supports it. */
static LLVMValueRef build_overloaded(struct builder *builder, uint64_t id)
{
    enum { FIXED = 4 };
    static const char name[] = "llvm.experimental.patchpoint.i64";
    const struct ic_function *made = builder->made;
    LLVMValueRef operands[FIXED + IC_OPERANDS_MAX];
    LLVMTypeRef result = llvm_type(builder->context, made->result);
    LLVMTypeRef int32 = LLVMInt32TypeInContext(builder->context);
    LLVMValueRef intrinsic = LLVMGetIntrinsicDeclaration(
        builder->module, LLVMLookupIntrinsicID(name, sizeof name - 1), &result, 1);
    operands[0] = LLVMConstInt(int64_type(builder), id, 0);
    operands[1] = LLVMConstInt(int32, site_bytes(builder), 0);
    operands[2] = LLVMConstNull(version_byte_pointer_type(builder->context));
    operands[3] = LLVMConstInt(int32, made->operand_count, 0);
    memcpy(operands + FIXED, builder->operands, made->operand_count * sizeof *operands);
    LLVMValueRef call = LLVMBuildCall2(builder->llvm, LLVMGlobalGetValueType(intrinsic), intrinsic,
                                       operands, FIXED + made->operand_count, "");
    LLVMSetInstructionCallConv(call, made->calling_convention);
    return call;
}

static LLVMValueRef build_usual(struct builder *builder, uint64_t id)
{
    const struct ic_function *made = builder->made;
    struct cairn_error error = {0};
    const struct cairn_patchpoint patchpoint = {
        .id = id,
        .byte_count = site_bytes(builder),
        .target = made->target == NULL
                      ? NULL
                      : LLVMConstInt(int64_type(builder), (uintptr_t)made->target, 0),
        .result_type = llvm_type(builder->context, made->result),
        .calling_convention = made->calling_convention,
        .arguments = builder->operands,
        .argument_count = made->operand_count,
    };
    LLVMValueRef result = cairn_build_patchpoint(builder->llvm, &patchpoint, &error);
    ck_assert_msg(result != NULL, "%s", error.message);
    return result;
}

static void build_site(struct builder *builder, uint64_t id)
{
    const struct ic_function *made = builder->made;
    bool is_exact = made->result.kind != CAIRN_TYPE_VOID && made->target == NULL &&
                    is_returned_as_it_is(made->result, made->calling_convention);
    LLVMValueRef result = is_exact ? build_overloaded(builder, id) : build_usual(builder, id);
    if (made->result.kind != CAIRN_TYPE_VOID)
        store(builder, put_into(builder, result, made->result_register),
              offsetof(struct ic_access, result));
}

/* ---- Functions ---- */

static void add_features(LLVMValueRef function, const char *features)
{
    static const char name[] = "target-features";
    if (features == NULL)
        return;
    LLVMAddAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(LLVMGetModuleContext(LLVMGetGlobalParent(function)), name,
                                  sizeof name - 1, features, (unsigned)strlen(features)));
}

static void format_name(uint64_t id, char *name, size_t size)
{
    snprintf(name, size, "f%" PRIu64, id);
}

static void build_function(LLVMModuleRef module, const struct ic_function *made, uint64_t id)
{
    char name[24];
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef parameter = LLVMInt64TypeInContext(context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), &parameter, 1, 0);
    format_name(id, name, sizeof name);
    LLVMValueRef function = LLVMAddFunction(module, name, type);
    cairn_prepare_function(function);
    add_features(function, made->features);
    struct builder builder = {
        .context = context,
        .module = module,
        .llvm = LLVMCreateBuilderInContext(context),
        .function = function,
        .access = LLVMGetParam(function, 0),
        .made = made,
        .number = id,
        .order = made->order,
    };
    LLVMPositionBuilderAtEnd(builder.llvm, LLVMAppendBasicBlockInContext(context, function, ""));
    load_values(&builder);
    build_site(&builder, id);
    store_values(&builder);
    LLVMBuildRetVoid(builder.llvm);
    LLVMDisposeBuilder(builder.llvm);
}

/* ---- Programs ---- */

const void *ic_find(struct ic_program *program, const char *name)
{
    struct cairn_error error = {0};
    const void *address = support_compiled_function(program->engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return address;
}

static void find_all(struct ic_program *program, cairn_runtime *runtime, uint32_t count,
                     uint64_t first_site)
{
    struct cairn_error error = {0};
    for (uint32_t i = 0; i < count; i++) {
        char name[24];
        format_name(first_site + i, name, sizeof name);
        const void *address = ic_find(program, name);
        memcpy(&program->functions[i], &address, sizeof address);
        program->sites[i] = cairn_runtime_find_site(runtime, first_site + i, &error);
        ck_assert_msg(program->sites[i] != NULL, "%s", error.message);
    }
}

void ic_load_with(struct ic_program *program, cairn_runtime *runtime,
                  const struct ic_function *functions, uint32_t count, uint64_t first_site,
                  const char *text)
{
    struct cairn_error error = {0};
    const struct cairn_engine_options options = {.optimisation_level = 2};
    *program = (struct ic_program){.context = LLVMContextCreate()};
    LLVMModuleRef module = support_parse(program->context, text == NULL ? "" : text);
    for (uint32_t i = 0; i < count; i++)
        build_function(module, &functions[i], first_site + i);
    support_verify(module);
    if (getenv("CAIRN_TEST_DUMP") != NULL)
        LLVMDumpModule(module);
    ic_assert_done(cairn_engine_create(runtime, module, &options, &program->engine, &error), error);
    find_all(program, runtime, count, first_site);
}

void ic_load(struct ic_program *program, cairn_runtime *runtime,
             const struct ic_function *functions, uint32_t count, uint64_t first_site)
{
    ic_load_with(program, runtime, functions, count, first_site, NULL);
}

void ic_unload(struct ic_program *program)
{
    cairn_engine_destroy(program->engine);
    LLVMContextDispose(program->context);
}

/* ---- Running ---- */

void ic_set_operand(struct ic_access *access, uint32_t index, const struct cairn_value *value)
{
    memset(access->operands[index], 0, sizeof access->operands[index]);
    memcpy(access->operands[index], value->bytes, value->size);
}

void ic_set_pointer(struct ic_access *access, uint32_t index, const void *pointer)
{
    struct cairn_value value = cairn_value_of_pointer(pointer);
    ic_set_operand(access, index, &value);
}

void ic_fill_kept(const struct ic_function *function, struct ic_access *access, uint64_t *random)
{
    for (uint32_t i = 0; i < function->kept_count; i++) {
        struct cairn_value value = ic_random_value(function->kept[i], random);
        memcpy(access->kept[i], value.bytes, value.size);
    }
    for (uint32_t i = 0; i < function->sign_count; i++)
        access->signs[i] = (int64_t)ic_random(random);
    memset(access->kept_after, 0xEE, sizeof access->kept_after);
    memset(access->operands_after, 0xEE, sizeof access->operands_after);
    memset(access->signs_after, 0xEE, sizeof access->signs_after);
}

void ic_check_kept(const struct ic_function *function, const struct ic_access *access,
                   const char *what)
{
    for (uint32_t i = 0; i < function->kept_count; i++)
        ck_assert_msg(
            memcmp(access->kept[i], access->kept_after[i], cairn_type_size(function->kept[i])) == 0,
            "kept value %u has changed: %s", i, what);
    for (uint32_t i = 0; function->keeps_operands && i < function->operand_count; i++)
        ck_assert_msg(memcmp(access->operands[i], access->operands_after[i],
                             cairn_type_size(function->operands[i])) == 0,
                      "operand %u has changed: %s", i, what);
    for (uint32_t i = 0; i < function->sign_count; i++)
        ck_assert_msg(access->signs_after[i] == (access->signs[i] < 0 ? 1 : 2),
                      "sign %u has changed: %s", i, what);
}

/* ---- Changes of caches ---- */

uint32_t ic_case_count(cairn_ic *ic)
{
    struct cairn_ic_description description;
    cairn_ic_describe(ic, NULL, 0, &description);
    return description.case_count;
}

struct cairn_ic_change ic_adding(cairn_ic *ic, const struct cairn_ic_case *added)
{
    return (struct cairn_ic_change){ic, CAIRN_IC_CHANGE_ADD, *added};
}

struct cairn_ic_change ic_removing(cairn_ic *ic, const struct cairn_ic_guard *guard)
{
    return (struct cairn_ic_change){ic, CAIRN_IC_CHANGE_REMOVE, {.guard = *guard}};
}

struct cairn_ic_change ic_resetting(cairn_ic *ic)
{
    return (struct cairn_ic_change){.ic = ic, .kind = CAIRN_IC_CHANGE_RESET};
}

enum cairn_status ic_remove(cairn_ic *ic, const struct cairn_ic_guard *guard,
                            enum cairn_strength strength, struct cairn_error *error)
{
    const struct cairn_ic_change change = ic_removing(ic, guard);
    return cairn_ics_change(&change, 1, strength, error);
}

enum cairn_status ic_reset(cairn_ic *ic, enum cairn_strength strength, struct cairn_error *error)
{
    const struct cairn_ic_change change = ic_resetting(ic);
    return cairn_ics_change(&change, 1, strength, error);
}

struct collected {
    const cairn_module *module; /* whose caches are to be reset; NULL to remove a key */
    uint64_t key;
    struct cairn_ic_change changes[256];
    size_t count;
};

static bool collect(const struct cairn_ic_description *description, void *user)
{
    struct collected *collected = user;
    struct cairn_site_description site;
    cairn_site_describe(description->site, &site);
    if (collected->module != NULL && description->state != CAIRN_IC_EMPTY &&
        record_module(site.record) == collected->module)
        collected->changes[collected->count++] = ic_resetting(description->ic);
    for (uint32_t i = 0; i < description->case_count && collected->module == NULL; i++)
        if (description->seen[i].entry.guard.key == collected->key)
            collected->changes[collected->count++] =
                ic_removing(description->ic, &description->seen[i].entry.guard);
    return true;
}

static enum cairn_status collect_and_change(cairn_runtime *runtime, struct collected *collected,
                                            enum cairn_strength strength, size_t *count,
                                            struct cairn_error *error)
{
    cairn_runtime_visit_ics(runtime, collect, collected);
    if (count != NULL)
        *count = collected->count;
    return cairn_ics_change(collected->changes, collected->count, strength, error);
}

enum cairn_status ic_reset_module(cairn_runtime *runtime, const cairn_module *module,
                                  enum cairn_strength strength, size_t *count,
                                  struct cairn_error *error)
{
    struct collected collected = {.module = module};
    return collect_and_change(runtime, &collected, strength, count, error);
}

enum cairn_status ic_remove_key(cairn_runtime *runtime, uint64_t key, enum cairn_strength strength,
                                size_t *count, struct cairn_error *error)
{
    struct collected collected = {.key = key};
    return collect_and_change(runtime, &collected, strength, count, error);
}
