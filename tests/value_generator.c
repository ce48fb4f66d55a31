/* SPDX-License-Identifier: MIT */
#include "value_generator.h"

#include "arch/arch.h"
#include "llvm/features.h"
#include "llvm/ir.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* ---- Chance ---- */

uint32_t generate_below(uint64_t *random, uint32_t bound)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % bound;
}

struct generator {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef int64;
    unsigned optimisation_level;
    const char *features;
    unsigned vector_bits; /* that they have */
    struct generated_buffers *buffers;
    uint64_t *random;
    struct generated_function *made;
    LLVMValueRef function;
    LLVMValueRef values[GENERATED_VALUES_MAX];
    /* Of the site: those of the values, or what has been made of them. */
    LLVMValueRef *live_values;
    uint32_t live_value_count;
    LLVMValueRef rewritten[GENERATED_REWRITTEN_MAX];
};

static uint32_t below(struct generator *generator, uint32_t bound)
{
    return generate_below(generator->random, bound);
}

static bool one_in(struct generator *generator, uint32_t count)
{
    return below(generator, count) == 0;
}

/* ---- Bytes ---- */

static struct cairn_type element_of(struct cairn_type type) { return cairn_type_vector(type, 0); }

static uint32_t element_count(struct cairn_type type)
{
    return type.element_count == 0 ? 1 : type.element_count;
}

static bool is_narrow(struct cairn_type type)
{
    return type.kind == CAIRN_TYPE_HALF || type.kind == CAIRN_TYPE_BFLOAT ||
           type.kind == CAIRN_TYPE_FLOAT;
}

/* The exponent of a number that may be widened is not all ones: NaNs may change then. */
static void make_number(struct cairn_type type, unsigned char *bytes)
{
    bool is_little = CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
    unsigned char *highest = bytes + (is_little ? cairn_type_size(type) - 1 : 0);
    if (is_narrow(type))
        *highest &= 0xBF;
    else if (type.kind == CAIRN_TYPE_INTEGER && type.bits % 8 != 0)
        *highest &= (unsigned char)((1U << type.bits % 8) - 1);
}

void generate_bytes(uint64_t *random, struct cairn_type type, unsigned char *bytes)
{
    struct cairn_type element = element_of(type);
    size_t size = cairn_type_size(element);
    for (uint32_t i = 0; i < element_count(type); i++, bytes += size) {
        for (size_t j = 0; j < size; j++)
            bytes[j] = (unsigned char)generate_below(random, 256);
        make_number(element, bytes);
    }
}

/* ---- Types ---- */

static LLVMTypeRef integer(struct generator *generator, unsigned bits)
{
    return LLVMIntTypeInContext(generator->context, bits);
}

static LLVMTypeRef any_integer(struct generator *generator)
{
    static const unsigned usual[] = {1, 8, 16, 32, 64};
    return integer(generator,
                   one_in(generator, 2) ? usual[below(generator, 5)] : 1 + below(generator, 64));
}

static LLVMTypeRef any_vector(struct generator *generator)
{
    LLVMContextRef context = generator->context;
    LLVMTypeRef elements[] = {
        integer(generator, 8),           integer(generator, 16),
        integer(generator, 32),          generator->int64,
        LLVMFloatTypeInContext(context), LLVMDoubleTypeInContext(context),
        any_integer(generator),          version_byte_pointer_type(context),
        LLVMHalfTypeInContext(context),  LLVMBFloatTypeInContext(context),
    };
    LLVMTypeRef element = elements[below(generator, 10)];
    unsigned bits = types_convert(element).bits;
    unsigned count = one_in(generator, 2) ? 128 / bits : 2U << below(generator, 4);
    return LLVMVectorType(element, count < 2 ? 2 : count);
}

static LLVMTypeRef any_type(struct generator *generator)
{
    LLVMContextRef context = generator->context;
    switch (below(generator, 12)) {
    case 0:
        return version_byte_pointer_type(context);
    case 1:
        return LLVMFloatTypeInContext(context);
    case 2:
        return LLVMDoubleTypeInContext(context);
    case 3:
        return LLVMHalfTypeInContext(context);
    case 4:
        return LLVMBFloatTypeInContext(context);
    case 5:
        return LLVMFP128TypeInContext(context);
    case 6:
    case 7:
    case 8:
        return any_vector(generator);
    default:
        return any_integer(generator);
    }
}

/* With AVX-512 they are in mask registers, where Cairn reads no vectors. */
static bool is_mask(struct generator *generator, LLVMTypeRef type)
{
    struct cairn_type vector = types_convert(type);
    return vector.element_count > 0 && vector.bits == 1 &&
           features_vector_bits(generator->function) > 256;
}

/* One that can be a live value. Not x86_fp80: LLVM leaves it out of records where it has it in x87
 * registers, and nothing of such a record can then be read. */
static LLVMTypeRef live_type(struct generator *generator)
{
    for (;;) {
        LLVMTypeRef type = any_type(generator);
        bool fits = types_live_value(type, cairn_architecture_host(), generator->function) == NULL;
        if ((fits || ir_is_integer(type, 64)) && !is_mask(generator, type) &&
            cairn_type_size(types_convert(type)) <= GENERATED_SLOT_BYTES)
            return type;
    }
}

static bool is_scalar(LLVMTypeRef type) { return LLVMGetTypeKind(type) != LLVMVectorTypeKind; }

static bool is_bfloat(LLVMTypeRef type) { return types_convert(type).kind == CAIRN_TYPE_BFLOAT; }

/* In a register that the function asks for. */
static bool is_wide(struct generator *generator, LLVMTypeRef type)
{
    struct cairn_type vector = types_convert(type);
    unsigned bits = vector.bits * vector.element_count;
    if ((bits != 256 && bits != 512) || bits > generator->vector_bits || 128 % vector.bits != 0)
        return false;
    LLVMTypeRef usual = LLVMVectorType(LLVMGetElementType(type), 128 / vector.bits);
    return types_fits_register(usual, cairn_architecture_host());
}

/* One that is in one register, as it is: for arguments and results. For bfloat x86-64 would
 * call __truncsfbf2, which few systems have. */
static LLVMTypeRef register_type(struct generator *generator)
{
    for (;;) {
        LLVMTypeRef type = any_type(generator);
        if ((types_fits_register(type, cairn_architecture_host()) || is_wide(generator, type)) &&
            !is_bfloat(type))
            return type;
    }
}

/* ---- Loads and stores ---- */

static LLVMValueRef address_of(struct generator *generator, const void *place, LLVMTypeRef type)
{
    return LLVMConstIntToPtr(LLVMConstInt(generator->int64, (uintptr_t)place, 0),
                             LLVMPointerType(type, 0));
}

static LLVMValueRef load(struct generator *generator, LLVMTypeRef type, const void *place)
{
    LLVMValueRef value =
        LLVMBuildLoad2(generator->builder, type, address_of(generator, place, type), "");
    LLVMSetVolatile(value, 1);
    LLVMSetAlignment(value, (uintptr_t)place % 16 == 0 ? 16 : 1);
    return value;
}

static void store(struct generator *generator, LLVMValueRef value, const void *place)
{
    LLVMValueRef stored =
        LLVMBuildStore(generator->builder, value, address_of(generator, place, LLVMTypeOf(value)));
    LLVMSetVolatile(stored, 1);
    LLVMSetAlignment(stored, (uintptr_t)place % 16 == 0 ? 16 : 1);
}

/* Sometimes of the second byte, which x86-64 can take from a register such as AH. */
static LLVMValueRef load_integer(struct generator *generator, LLVMTypeRef type, const void *place)
{
    LLVMValueRef loaded = load(generator, generator->int64, place);
    if (LLVMGetIntTypeWidth(type) == 64)
        return loaded;
    if (one_in(generator, 4))
        loaded =
            LLVMBuildLShr(generator->builder, loaded, LLVMConstInt(generator->int64, 8, 0), "");
    return LLVMBuildTrunc(generator->builder, loaded, type, "");
}

static LLVMValueRef load_number(struct generator *generator, LLVMTypeRef type, const void *place)
{
    unsigned count = types_convert(type).bits;
    LLVMTypeRef bits = integer(generator, count);
    LLVMValueRef loaded = load(generator, bits, place);
    LLVMValueRef mask = LLVMConstInt(bits, ~(UINT64_C(1) << (count - 2)), 0);
    loaded = LLVMBuildAnd(generator->builder, loaded, mask, "");
    return LLVMBuildBitCast(generator->builder, loaded, type, "");
}

static LLVMValueRef load_scalar(struct generator *generator, LLVMTypeRef type, const void *place)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return load_integer(generator, type, place);
    case LLVMPointerTypeKind:
        return LLVMBuildIntToPtr(generator->builder, load(generator, generator->int64, place), type,
                                 "");
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        return load_number(generator, type, place);
    default:
        return load(generator, type, place);
    }
}

static LLVMValueRef index_of(struct generator *generator, uint32_t index)
{
    return LLVMConstInt(integer(generator, 32), index, 0);
}

/* Elements may be widened on their way into the vector. */
static LLVMValueRef load_element(struct generator *generator, LLVMTypeRef type, const void *place)
{
    return is_narrow(types_convert(type)) ? load_number(generator, type, place)
                                          : load_scalar(generator, type, place);
}

static LLVMValueRef load_value(struct generator *generator, LLVMTypeRef type,
                               const unsigned char *place)
{
    if (is_scalar(type))
        return load_scalar(generator, type, place);
    LLVMTypeRef element = LLVMGetElementType(type);
    size_t size = cairn_type_size(types_convert(element));
    LLVMValueRef vector = LLVMGetUndef(type);
    for (uint32_t i = 0; i < LLVMGetVectorSize(type); i++)
        vector = LLVMBuildInsertElement(generator->builder, vector,
                                        load_element(generator, element, place + i * size),
                                        index_of(generator, i), "");
    return vector;
}

static void store_scalar(struct generator *generator, LLVMValueRef value, const void *place)
{
    LLVMBuilderRef builder = generator->builder;
    LLVMTypeRef type = LLVMTypeOf(value);
    unsigned bytes = (unsigned)cairn_type_size(types_convert(type));
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        value = LLVMBuildIntCast2(builder, value, integer(generator, 8 * bytes), 0, "");
        break;
    case LLVMPointerTypeKind:
        value = LLVMBuildPtrToInt(builder, value, generator->int64, "");
        break;
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        value = LLVMBuildBitCast(builder, value, integer(generator, 16), "");
        break;
    default:
        break;
    }
    store(generator, value, place);
}

static void store_value(struct generator *generator, LLVMValueRef value, unsigned char *place)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    if (is_scalar(type)) {
        store_scalar(generator, value, place);
        return;
    }
    size_t size = cairn_type_size(types_convert(LLVMGetElementType(type)));
    for (uint32_t i = 0; i < LLVMGetVectorSize(type); i++)
        store_scalar(generator,
                     LLVMBuildExtractElement(generator->builder, value, index_of(generator, i), ""),
                     place + i * size);
}

/* ---- What is called ---- */

static LLVMTypeRef noise_type(struct generator *generator)
{
    LLVMTypeRef pointer = version_byte_pointer_type(generator->context);
    return LLVMFunctionType(LLVMVoidTypeInContext(generator->context), &pointer, 1, 0);
}

/* A function that does nothing of interest, for calls that go by the ABI. */
static LLVMValueRef find_noise(struct generator *generator)
{
    LLVMValueRef noise = LLVMGetNamedFunction(generator->module, "noise");
    if (noise != NULL)
        return noise;
    noise = LLVMAddFunction(generator->module, "noise", noise_type(generator));
    cairn_prepare_function(noise);
    LLVMBuilderRef builder = generator->builder;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(builder);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(generator->context, noise, ""));
    store(generator, LLVMBuildPtrToInt(builder, LLVMGetParam(noise, 0), generator->int64, ""),
          &generator->buffers->scratch);
    LLVMBuildRetVoid(builder);
    LLVMPositionBuilderAtEnd(builder, here);
    return noise;
}

static void call_noise(struct generator *generator, LLVMValueRef pointer)
{
    LLVMTypeRef type = version_byte_pointer_type(generator->context);
    pointer = LLVMBuildBitCast(generator->builder, pointer, type, "");
    LLVMBuildCall2(generator->builder, noise_type(generator), find_noise(generator), &pointer, 1,
                   "");
}

/* ---- Frames ---- */

static void set_text(struct generator *generator, const char *key, const char *value)
{
    LLVMAddAttributeAtIndex(generator->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(generator->context, key,
                                                      (unsigned)strlen(key), value,
                                                      (unsigned)strlen(value)));
}

static void begin_function(struct generator *generator, const char *name, LLVMTypeRef type)
{
    static const char *const frame_pointers[] = {"all", "none", "non-leaf"};
    generator->function = LLVMAddFunction(generator->module, name, type);
    cairn_prepare_function(generator->function);
    set_text(generator, "frame-pointer", frame_pointers[below(generator, 3)]);
    if (*generator->features != '\0')
        set_text(generator, "target-features", generator->features);
    LLVMPositionBuilderAtEnd(generator->builder, LLVMAppendBasicBlockInContext(
                                                     generator->context, generator->function, ""));
}

static void add_dynamic_alloca(struct generator *generator)
{
    LLVMTypeRef byte = integer(generator, 8);
    LLVMValueRef size = load(generator, byte, &generator->buffers->input[0]);
    size = LLVMBuildZExt(generator->builder, size, generator->int64, "");
    call_noise(generator, LLVMBuildArrayAlloca(generator->builder, byte, size, ""));
}

static void add_aligned_alloca(struct generator *generator)
{
    LLVMValueRef place = LLVMBuildAlloca(generator->builder, generator->int64, "");
    LLVMSetAlignment(place, 64);
    call_noise(generator, place);
}

static void choose_frame(struct generator *generator)
{
    uint32_t kind = below(generator, 8);
    if (kind < 2)
        add_aligned_alloca(generator);
    if (kind >= 1 && kind < 3)
        add_dynamic_alloca(generator);
}

/* ---- Values ---- */

static LLVMValueRef make_constant(struct generator *generator)
{
    LLVMTypeRef type = any_integer(generator);
    uint64_t large = (uint64_t)below(generator, UINT32_C(1) << 31) << 33 | below(generator, 1000);
    switch (below(generator, 5)) {
    case 0:
        return LLVMConstNull(version_byte_pointer_type(generator->context));
    case 1:
        return LLVMConstReal(LLVMDoubleTypeInContext(generator->context), below(generator, 99));
    case 2:
        return LLVMConstInt(type, large, 0);
    default:
        return LLVMConstInt(type, (uint64_t)(int64_t)-1 - below(generator, 300), 0);
    }
}

/* Also in its middle. */
static LLVMValueRef make_alloca(struct generator *generator)
{
    LLVMTypeRef type = LLVMArrayType(integer(generator, 8), 8 + below(generator, 40));
    LLVMValueRef place = LLVMBuildAlloca(generator->builder, type, "");
    LLVMValueRef indices[] = {index_of(generator, 0), index_of(generator, below(generator, 8))};
    if (one_in(generator, 2))
        return place;
    return LLVMBuildGEP2(generator->builder, type, place, indices, 2, "");
}

/* So that it is not only loaded. */
static LLVMValueRef compute(struct generator *generator, LLVMValueRef value,
                            const unsigned char *place)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind)
        return LLVMBuildMul(generator->builder, value, load_value(generator, type, place), "");
    if (LLVMGetTypeKind(type) == LLVMDoubleTypeKind)
        return LLVMBuildFAdd(generator->builder, value, load_value(generator, type, place), "");
    return value;
}

static void make_value(struct generator *generator, uint32_t index)
{
    const unsigned char *place = generator->buffers->input[index];
    bool is_argument = index < generator->made->argument_count;
    bool is_changeable = !is_argument;
    LLVMValueRef value;
    if (!is_argument && one_in(generator, 7)) {
        is_changeable = false;
        value = one_in(generator, 3) ? make_alloca(generator) : make_constant(generator);
    } else {
        LLVMTypeRef type = is_argument ? register_type(generator) : live_type(generator);
        value = load_value(generator, type, place);
        if (one_in(generator, 3))
            value = compute(generator, value, place);
    }
    generator->values[index] = value;
    generator->made->values[index] =
        (struct generated_value){types_convert(LLVMTypeOf(value)), is_changeable};
}

static uint32_t value_count(const struct generated_function *made)
{
    return made->argument_count + made->live_value_count;
}

static void make_values(struct generator *generator)
{
    bool has_calls = one_in(generator, 2);
    uint32_t count = value_count(generator->made);
    for (uint32_t i = 0; i < count; i++) {
        make_value(generator, i);
        if (has_calls && one_in(generator, 5))
            call_noise(generator, LLVMConstNull(version_byte_pointer_type(generator->context)));
    }
}

/* ---- Sites ---- */

/* The second one has LLVM fill the shadow of the first with no-ops. */
static bool build_stackmap(struct generator *generator, struct cairn_error *error)
{
    struct generated_function *made = generator->made;
    return cairn_build_stackmap(generator->builder, made->id, 32, generator->live_values,
                                generator->live_value_count, error) != NULL &&
           cairn_build_stackmap(generator->builder, made->id + 1, 0, NULL, 0, error) != NULL;
}

/* LLVM keeps values of type half live on PPC64, but crashes on such results in any register. */
static bool is_refused_result(LLVMTypeRef type, bool is_anyreg)
{
    return is_anyreg && LLVMGetTypeKind(type) == LLVMHalfTypeKind &&
           cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
}

static LLVMTypeRef site_result_type(struct generator *generator, bool is_anyreg)
{
    if (one_in(generator, 2))
        return LLVMVoidTypeInContext(generator->context);
    for (;;) {
        LLVMTypeRef type = one_in(generator, 2) ? any_integer(generator) : register_type(generator);
        LLVMTypeKind kind = LLVMGetTypeKind(type);
        bool is_small = kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind;
        bool is_whole = is_scalar(type) || cairn_type_size(types_convert(type)) == 16;
        if (is_small ||
            (is_whole && LLVM_PATCHPOINT_RETURNS_ANY_TYPE && !is_refused_result(type, is_anyreg)))
            return type;
    }
}

/* Arguments of the C convention are not recorded: these are for its registers to be in use. */
static bool build_patchpoint(struct generator *generator, bool is_anyreg, struct cairn_error *error)
{
    struct generated_function *made = generator->made;
    LLVMValueRef ordinary[] = {load(generator, generator->int64, generator->buffers->input),
                               LLVMConstInt(generator->int64, 7, 0)};
    LLVMTypeRef result_type = site_result_type(generator, is_anyreg);
    struct cairn_patchpoint patchpoint = {
        .id = made->id,
        .byte_count =
            cairn_patchpoint_minimum_bytes(generator->module, false) + 4 * below(generator, 6),
        .result_type = result_type,
        .calling_convention =
            is_anyreg ? CAIRN_CALLING_CONVENTION_ANYREG : CAIRN_CALLING_CONVENTION_C,
        .arguments = is_anyreg ? generator->values : ordinary,
        .argument_count = is_anyreg ? made->argument_count : below(generator, 3),
        .live_values = generator->live_values,
        .live_value_count = generator->live_value_count,
    };
    LLVMValueRef result = cairn_build_patchpoint(generator->builder, &patchpoint, error);
    if (result == NULL)
        return false;
    made->site_result = types_convert(result_type);
    if (LLVMGetTypeKind(result_type) != LLVMVoidTypeKind)
        store_value(generator, result, generator->buffers->site_result);
    return true;
}

static void store_values(struct generator *generator, generated_slot *slots)
{
    for (uint32_t i = 0; i < value_count(generator->made); i++)
        store_value(generator, generator->values[i], slots[i]);
}

/* ---- The function ---- */

/* Without optimisation LLVM has each operand in a register, and fails where there are not enough.
 */
static void choose_counts(struct generator *generator, uint32_t kind)
{
    struct generated_function *made = generator->made;
    bool is_optimised = generator->optimisation_level > 0;
    uint32_t many = one_in(generator, 2) ? GENERATED_VALUES_MAX - 4 : 12;
    made->argument_count = kind == 2 ? 1 + below(generator, 3) : 0;
    made->live_value_count = 1 + below(generator, is_optimised ? many : 4);
}

/* On PPC64 a half has another register since LLVM 22, and takes another away from later results. */
static LLVMTypeRef any_result(struct generator *generator, uint32_t count)
{
    if (count == 1 && one_in(generator, 3))
        return any_integer(generator);
    LLVMTypeRef type = register_type(generator);
    bool is_refused = count > 1 && LLVMGetTypeKind(type) == LLVMHalfTypeKind &&
                      cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
    return is_refused ? LLVMFloatTypeInContext(generator->context) : type;
}

static LLVMTypeRef choose_results(struct generator *generator, LLVMTypeRef *types)
{
    struct generated_function *made = generator->made;
    made->result_count = below(generator, GENERATED_RESULTS_MAX + 1);
    for (uint32_t i = 0; i < made->result_count; i++) {
        types[i] = any_result(generator, made->result_count);
        made->results[i] = types_convert(types[i]);
    }
    if (made->result_count == 0)
        return LLVMVoidTypeInContext(generator->context);
    if (made->result_count == 1)
        return types[0];
    return LLVMStructTypeInContext(generator->context, types, made->result_count, 0);
}

static LLVMValueRef make_result(struct generator *generator, uint32_t index, LLVMTypeRef type)
{
    struct generated_buffers *buffers = generator->buffers;
    LLVMValueRef result = load_value(generator, type, buffers->result_input[index]);
    store_value(generator, result, buffers->own_results[index]);
    return result;
}

static void build_return(struct generator *generator, LLVMTypeRef type, const LLVMTypeRef *types)
{
    uint32_t count = generator->made->result_count;
    LLVMBuilderRef builder = generator->builder;
    LLVMValueRef all = LLVMGetUndef(type);
    if (count == 0) {
        LLVMBuildRetVoid(builder);
        return;
    }
    if (count == 1)
        all = make_result(generator, 0, types[0]);
    for (uint32_t i = 0; count > 1 && i < count; i++)
        all = LLVMBuildInsertValue(builder, all, make_result(generator, i, types[i]), i, "");
    LLVMBuildRet(builder, all);
}

static void choose_live_values(struct generator *generator,
                               const struct generated_rewriting *rewriting)
{
    generator->live_values = generator->values + generator->made->argument_count;
    generator->live_value_count = generator->made->live_value_count;
    if (rewriting == NULL)
        return;
    generator->live_value_count =
        rewriting->rewrite(rewriting->user, generator->context, generator->live_values,
                           generator->live_value_count, generator->rewritten);
    generator->live_values = generator->rewritten;
}

static LLVMTypeRef build_function(struct generator *generator,
                                  const struct generated_rewriting *rewriting)
{
    struct generated_function *made = generator->made;
    struct cairn_error error = {0};
    LLVMTypeRef types[GENERATED_RESULTS_MAX] = {NULL};
    uint32_t kind = below(generator, 3);
    LLVMTypeRef result = choose_results(generator, types);
    LLVMTypeRef type = LLVMFunctionType(result, NULL, 0, 0);
    made->is_stackmap = kind == 0;
    choose_counts(generator, kind);
    begin_function(generator, made->name, type);
    choose_frame(generator);
    make_values(generator);
    store_values(generator, generator->buffers->stored);
    choose_live_values(generator, rewriting);
    bool is_built = kind == 0 ? build_stackmap(generator, &error)
                              : build_patchpoint(generator, kind == 2, &error);
    ck_assert_msg(is_built, "%s", error.message);
    store_values(generator, generator->buffers->again);
    build_return(generator, result, types);
    return type;
}

/* ---- Features ---- */

/* Some of those that this machine has: wider vectors on x86-64. */
static void choose_features(struct generator *generator)
{
    static const struct {
        const char *features;
        unsigned vector_bits;
    } choices[] = {{"", 128}, {"", 128}, {"+avx", 256}, {"+avx512f,+avx512bw,+avx512vl", 512}};
    bool is_x86_64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    uint32_t choice = is_x86_64 ? below(generator, arch_host_vector_level() + 1) : 0;
    generator->features = choices[choice].features;
    generator->vector_bits = choices[choice].vector_bits;
}

/* ---- Its caller ---- */

/* Types of the registers that calls keep. */
static LLVMTypeRef kept_type(struct generator *generator)
{
    switch (below(generator, 4)) {
    case 0:
        return LLVMDoubleTypeInContext(generator->context);
    case 1:
        return LLVMVectorType(integer(generator, 32), 4);
    default:
        return generator->int64;
    }
}

static void load_kept(struct generator *generator, LLVMValueRef *values)
{
    struct generated_function *made = generator->made;
    made->kept_count = 1 + below(generator, GENERATED_KEPT_MAX);
    for (uint32_t i = 0; i < made->kept_count; i++) {
        LLVMTypeRef type = kept_type(generator);
        made->kept[i] = types_convert(type);
        values[i] = load(generator, type, generator->buffers->kept_input[i]);
    }
}

static void load_signs(struct generator *generator, LLVMValueRef *signs)
{
    struct generated_function *made = generator->made;
    made->sign_count = below(generator, GENERATED_SIGNS_MAX + 1);
    for (uint32_t i = 0; i < made->sign_count; i++)
        signs[i] = LLVMBuildICmp(generator->builder, LLVMIntSLT,
                                 load(generator, generator->int64, &generator->buffers->signs[i]),
                                 LLVMConstNull(generator->int64), "");
}

static LLVMBasicBlockRef append_block(struct generator *generator)
{
    return LLVMAppendBasicBlockInContext(generator->context, generator->function, "");
}

/* A branch each, which takes the comparison from a field of the condition register. */
static void store_sign(struct generator *generator, LLVMValueRef sign, int64_t *place)
{
    LLVMBasicBlockRef blocks[] = {append_block(generator), append_block(generator)};
    LLVMBasicBlockRef next = append_block(generator);
    LLVMBuildCondBr(generator->builder, sign, blocks[0], blocks[1]);
    for (unsigned i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(generator->builder, blocks[i]);
        store(generator, LLVMConstInt(generator->int64, i + 1, 0), place);
        LLVMBuildBr(generator->builder, next);
    }
    LLVMPositionBuilderAtEnd(generator->builder, next);
}

static void store_results(struct generator *generator, LLVMValueRef result)
{
    uint32_t count = generator->made->result_count;
    for (uint32_t i = 0; i < count; i++)
        store_value(generator,
                    count == 1 ? result : LLVMBuildExtractValue(generator->builder, result, i, ""),
                    generator->buffers->returned[i]);
}

static void build_caller(struct generator *generator, LLVMTypeRef callee_type)
{
    const struct generated_function *made = generator->made;
    LLVMValueRef callee = generator->function;
    LLVMValueRef kept[GENERATED_KEPT_MAX];
    LLVMValueRef signs[GENERATED_SIGNS_MAX];
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(generator->context), NULL, 0, 0);
    begin_function(generator, made->caller, type);
    load_kept(generator, kept);
    load_signs(generator, signs);
    LLVMValueRef result = LLVMBuildCall2(generator->builder, callee_type, callee, NULL, 0, "");
    for (uint32_t i = 0; i < made->sign_count; i++)
        store_sign(generator, signs[i], &generator->buffers->seen_signs[i]);
    for (uint32_t i = 0; i < made->kept_count; i++)
        store_value(generator, kept[i], generator->buffers->kept[i]);
    store_results(generator, result);
    LLVMBuildRetVoid(generator->builder);
}

void generate_function_rewriting(LLVMModuleRef module, unsigned optimisation_level,
                                 struct generated_buffers *buffers, uint64_t id, uint64_t *random,
                                 const struct generated_rewriting *rewriting,
                                 struct generated_function *made)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    struct generator generator = {
        .context = context,
        .module = module,
        .builder = LLVMCreateBuilderInContext(context),
        .int64 = LLVMInt64TypeInContext(context),
        .optimisation_level = optimisation_level,
        .buffers = buffers,
        .random = random,
        .made = made,
    };
    *made = (struct generated_function){.id = id};
    snprintf(made->name, sizeof made->name, "f%llu", (unsigned long long)id);
    snprintf(made->caller, sizeof made->caller, "g%llu", (unsigned long long)id);
    choose_features(&generator);
    LLVMTypeRef type = build_function(&generator, rewriting);
    build_caller(&generator, type);
    LLVMDisposeBuilder(generator.builder);
}

void generate_function(LLVMModuleRef module, unsigned optimisation_level,
                       struct generated_buffers *buffers, uint64_t id, uint64_t *random,
                       struct generated_function *made)
{
    generate_function_rewriting(module, optimisation_level, buffers, id, random, NULL, made);
}
