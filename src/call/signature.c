/*
 * Signatures: which types can be passed and returned, the places of arguments and results in
 * registers and on the stack, and calls.
 *
 * Each kind of value has its own registers, which are used in their order; further arguments are
 * passed on the stack. All places are computed when a signature is created, so that a call only
 * copies values.
 *
 * Sources: System V Application Binary Interface, AMD64 Architecture Processor Supplement, section
 * "Parameter Passing"; Procedure Call Standard for the Arm 64-bit Architecture, section "Parameter
 * passing"; 64-Bit ELF V2 ABI Specification, section "Parameter Passing in Registers". For results:
 * lib/Target/…/…CallingConv.td of LLVM, as in result_registers.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "call/signature.h"

#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/type.h"
#include "value/representation.h"

#include <string.h>

enum { WORD_BYTES = 8, WORD_BITS = 64, PAIR_BYTES = 16, TYPE_NAME_BYTES = 64 };

static const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

/* ---- Kinds ---- */

enum signature_kind signature_kind(struct cairn_type type)
{
    if (type.element_count > 0) {
        /* Vectors of other elements are passed in lanes that depend on the machine. */
        bool is_lane =
            type.bits >= 8 && type.bits <= WORD_BITS && (type.bits & (type.bits - 1)) == 0;
        bool is_scalar = type.kind == CAIRN_TYPE_INTEGER || type.kind == CAIRN_TYPE_POINTER ||
                         type.kind == CAIRN_TYPE_FLOAT || type.kind == CAIRN_TYPE_DOUBLE;
        bool is_whole = is_lane && is_scalar && cairn_type_size(type) == SIGNATURE_VECTOR_BYTES;
        return is_whole ? SIGNATURE_VECTOR : SIGNATURE_NONE;
    }
    switch (type.kind) {
    case CAIRN_TYPE_INTEGER:
        if (type.bits >= 1 && type.bits <= WORD_BITS)
            return SIGNATURE_GENERAL;
        return type.bits == 2 * WORD_BITS ? SIGNATURE_PAIR : SIGNATURE_NONE;
    case CAIRN_TYPE_POINTER:
        return type.bits == WORD_BITS ? SIGNATURE_GENERAL : SIGNATURE_NONE;
    case CAIRN_TYPE_FLOAT:
    case CAIRN_TYPE_DOUBLE:
        return SIGNATURE_FLOATING;
    default:
        return SIGNATURE_NONE;
    }
}

/* ---- Places ---- */

/* The registers and the stack bytes that the arguments so far use. If the ABI gives every argument
 * a place in memory (`has_places`), the first 64 bytes of the stack correspond to the general
 * registers. */
struct taken {
    unsigned general;
    unsigned floating;
    unsigned vector;
    size_t stack;
};

static uint16_t general_offset(unsigned index)
{
    return (uint16_t)(CALL_GENERAL + index * WORD_BYTES);
}

static uint16_t take_stack(struct taken *taken, size_t size)
{
    taken->stack = (taken->stack + size - 1) & ~(size - 1);
    size_t offset = CALL_STACK + taken->stack;
    taken->stack += size;
    return (uint16_t)offset;
}

static uint16_t take_word(const struct arch_arguments *arguments, struct taken *taken)
{
    unsigned used = arguments->has_places ? (unsigned)(taken->stack / WORD_BYTES) : taken->general;
    bool has_register = used < arguments->general_count;
    uint16_t place = 0;
    if (arguments->has_places || !has_register)
        place = take_stack(taken, WORD_BYTES);
    if (has_register)
        taken->general = used + 1;
    return has_register ? general_offset(used) : place;
}

static void take_pair(const struct arch_arguments *arguments, struct taken *taken,
                      struct signature_argument *argument)
{
    argument->form = SIGNATURE_HALVES;
    if (arguments->pair == ARCH_PAIR_SPLIT) {
        argument->offset = take_word(arguments, taken);
        argument->second_offset = take_word(arguments, taken);
        return;
    }
    if (arguments->pair == ARCH_PAIR_EVEN)
        taken->general += taken->general % 2;
    if (taken->general + 2 <= arguments->general_count) {
        argument->offset = general_offset(taken->general);
        taken->general += 2;
    } else {
        argument->offset = take_stack(taken, PAIR_BYTES);
        if (arguments->pair == ARCH_PAIR_EVEN)
            taken->general = arguments->general_count;
    }
    argument->second_offset = (uint16_t)(argument->offset + WORD_BYTES);
}

/* Returns the offset in struct arch_call of the next floating-point or vector register of the kind,
 * or of a place on the stack if all are used. */
static uint16_t take_wide(const struct arch_arguments *arguments, struct taken *taken,
                          enum signature_kind kind)
{
    bool is_floating = kind == SIGNATURE_FLOATING || arguments->floating == arguments->vector;
    unsigned *used = is_floating ? &taken->floating : &taken->vector;
    bool has_register = *used < (is_floating ? arguments->floating_count : arguments->vector_count);
    uint16_t place = 0;
    if (arguments->has_places || !has_register)
        place = take_stack(taken, kind == SIGNATURE_FLOATING ? WORD_BYTES : SIGNATURE_VECTOR_BYTES);
    if (!has_register)
        return place;
    return (uint16_t)((is_floating ? CALL_FLOATING : CALL_VECTOR) +
                      (size_t)CALL_REGISTER_BYTES * (*used)++);
}

static void place(const struct arch_arguments *arguments, struct taken *taken,
                  struct signature_argument *argument)
{
    enum signature_kind kind = (enum signature_kind)argument->kind;
    bool is_integer = argument->type.kind == CAIRN_TYPE_INTEGER;
    argument->form = SIGNATURE_WORD;
    if (kind == SIGNATURE_PAIR) {
        take_pair(arguments, taken, argument);
    } else if (kind == SIGNATURE_VECTOR) {
        argument->form = SIGNATURE_WHOLE;
        argument->offset = take_wide(arguments, taken, kind);
    } else if (kind == SIGNATURE_FLOATING) {
        argument->offset = take_wide(arguments, taken, kind);
        if (arguments->widens_floats && argument->offset < CALL_STACK &&
            argument->type.kind == CAIRN_TYPE_FLOAT)
            argument->form = SIGNATURE_WIDENED;
    } else {
        argument->offset = take_word(arguments, taken);
        if (is_integer && argument->type.extends_sign != 0)
            argument->form = SIGNATURE_SIGNED;
    }
}

/* ---- Registers of results ---- */

/* Sets the places of the results. If there are not enough registers, sets `results_refused`. Two
 * kinds may share their registers. */
static void place_results(cairn_signature *signature)
{
    const struct arch_arguments *arguments = &arch_host()->arguments;
    bool is_shared = arguments->floating == arguments->vector;
    unsigned general = 0;
    unsigned floating = 0;
    unsigned vector = 0;
    for (uint32_t i = 0; i < signature->results.count; i++) {
        struct cairn_type type = signature->results.types[i];
        enum signature_kind kind = signature_kind(type);
        bool is_vector = kind == SIGNATURE_VECTOR;
        bool is_whole = is_vector || kind == SIGNATURE_PAIR;
        bool is_widened = arguments->widens_floats && type.kind == CAIRN_TYPE_FLOAT;
        size_t offset = CALL_GENERAL_RESULTS + (size_t)general * WORD_BYTES;
        if (kind == SIGNATURE_GENERAL || kind == SIGNATURE_PAIR)
            general += kind == SIGNATURE_PAIR ? 2 : 1;
        else if (is_vector && !is_shared)
            offset = CALL_VECTOR_RESULTS + (size_t)vector++ * CALL_REGISTER_BYTES;
        else
            offset = CALL_FLOATING_RESULTS + (size_t)floating++ * CALL_REGISTER_BYTES;
        if (kind == SIGNATURE_NONE || general > ARCH_CALL_RESULTS || floating > ARCH_CALL_RESULTS ||
            vector > ARCH_CALL_RESULTS) {
            char name[TYPE_NAME_BYTES];
            cairn_type_format(type, name, sizeof name);
            error_set(&signature->results_refused, CAIRN_ERROR_UNSUPPORTED, i,
                      "result %u, of type %s, has no register to be returned in", i, name);
            return;
        }
        signature->returned[i] = (struct signature_result){.form = is_whole     ? SIGNATURE_WHOLE
                                                                   : is_widened ? SIGNATURE_WIDENED
                                                                                : SIGNATURE_WORD,
                                                           .offset = (uint16_t)offset,
                                                           .size = (uint16_t)cairn_type_size(type)};
        signature->returns_vector |= is_vector;
    }
}

/* Assigns a place to each argument, and finds out whether there are registers for the results.
 * Kinds and types must be set. UNSUPPORTED if compilers disagree on the place of an argument. */
static enum cairn_status place_all(cairn_signature *signature, struct cairn_error *error)
{
    const struct arch_arguments *arguments = &arch_host()->arguments;
    struct taken taken = {0};
    for (uint32_t i = 0; i < signature->argument_count; i++) {
        /* If only one register is left for a pair, the ABI leaves the register to later arguments,
         * and so does GCC. LLVM up to 17 passes half of the pair in it; LLVM 18 and later leave it
         * unused. */
        if (signature->arguments[i].kind == SIGNATURE_PAIR && arguments->pair == ARCH_PAIR_WHOLE &&
            taken.general + 1 == arguments->general_count)
            return error_set(error, CAIRN_ERROR_UNSUPPORTED, i,
                             "argument %u is i%u with one register left for it, where compilers "
                             "do not agree on its place",
                             i, signature->arguments[i].type.bits);
        place(arguments, &taken, &signature->arguments[i]);
    }
    size_t places = arguments->has_places ? arguments->general_count * (size_t)WORD_BYTES : 0;
    size_t stack = taken.stack < places ? places : taken.stack;
    signature->stack_bytes = (uint32_t)((stack + PAIR_BYTES - 1) & ~(size_t)(PAIR_BYTES - 1));
    signature->general_count = (uint8_t)taken.general;
    signature->floating_count = (uint8_t)taken.floating;
    signature->vector_count = (uint8_t)taken.vector;
    place_results(signature);
    return CAIRN_OK;
}

/* ---- Creating a signature ---- */

static enum cairn_status refuse(const char *what, uint32_t index, struct cairn_type type,
                                const char *why, struct cairn_error *error)
{
    char name[TYPE_NAME_BYTES];
    cairn_type_format(type, name, sizeof name);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, index, "%s %u is %s, which %s", what, index,
                     name, why);
}

static enum cairn_status check(const struct cairn_type *results, uint32_t result_count,
                               const struct cairn_type *arguments, uint32_t argument_count,
                               struct cairn_error *error)
{
    if (argument_count > CAIRN_SIGNATURE_ARGUMENTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, argument_count,
                         "a signature has at most %d arguments, not %u",
                         CAIRN_SIGNATURE_ARGUMENTS_MAX, argument_count);
    if (result_count > CAIRN_FUNCTION_RESULTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, result_count,
                         "a signature has at most %d results, not %u", CAIRN_FUNCTION_RESULTS_MAX,
                         result_count);
    for (uint32_t i = 0; i < result_count; i++)
        if (cairn_type_size(results[i]) == 0)
            return refuse("result", i, results[i], "is not returned in registers", error);
    for (uint32_t i = 0; i < argument_count; i++)
        if (signature_kind(arguments[i]) == SIGNATURE_NONE)
            return refuse("argument", i, arguments[i], "Cairn does not pass", error);
    return CAIRN_OK;
}

static size_t bytes_of(uint32_t argument_count)
{
    return sizeof(cairn_signature) + argument_count * sizeof(struct signature_argument);
}

enum cairn_status cairn_signature_create(const struct cairn_allocator *allocator,
                                         const struct cairn_type *results, uint32_t result_count,
                                         const struct cairn_type *arguments,
                                         uint32_t argument_count, cairn_signature **signature,
                                         struct cairn_error *error)
{
    if (signature == NULL || (results == NULL && result_count > 0) ||
        (arguments == NULL && argument_count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_signature_create: `%s` is NULL",
                         signature == NULL                     ? "signature"
                         : results == NULL && result_count > 0 ? "results"
                                                               : "arguments");
    if (arch_host() == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "cairn_signature_create: unsupported host architecture %s",
                         cairn_architecture_name(cairn_architecture_host()));
    enum cairn_status status = check(results, result_count, arguments, argument_count, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_allocator chosen = memory_allocator(allocator);
    cairn_signature *made = memory_new(&chosen, 1, bytes_of(argument_count));
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a signature");
    made->allocator = chosen;
    made->results.is_known = true;
    made->results.count = (uint8_t)result_count;
    made->argument_count = argument_count;
    for (uint32_t i = 0; i < result_count; i++) {
        made->results.types[i] = results[i];
        made->results.extends_sign |=
            results[i].kind == CAIRN_TYPE_INTEGER && results[i].extends_sign != 0;
    }
    for (uint32_t i = 0; i < argument_count; i++) {
        made->arguments[i].type = arguments[i];
        made->arguments[i].kind = (uint8_t)signature_kind(arguments[i]);
    }
    status = place_all(made, error);
    if (status != CAIRN_OK) {
        cairn_signature_destroy(made);
        return status;
    }
    *signature = made;
    return CAIRN_OK;
}

void cairn_signature_destroy(cairn_signature *signature)
{
    if (signature == NULL)
        return;
    struct cairn_allocator allocator = signature->allocator;
    struct closure_type *type =
        atomic_load_explicit(&signature->closure_type, memory_order_relaxed);
    if (type != NULL)
        memory_free(&allocator, type, type->bytes);
    memory_free(&allocator, signature, bytes_of(signature->argument_count));
}

/* ---- Checking ---- */

enum cairn_status signature_check(const cairn_signature *signature,
                                  const struct cairn_value *arguments, uint32_t argument_count,
                                  struct cairn_error *error)
{
    if (argument_count != signature->argument_count)
        return error_set(error, CAIRN_ERROR_ARGUMENT, argument_count,
                         "the function takes %u argument%s, and not %u", signature->argument_count,
                         signature->argument_count == 1 ? "" : "s", argument_count);
    for (uint32_t i = 0; i < argument_count; i++) {
        struct cairn_type expected = signature->arguments[i].type;
        struct cairn_type given = arguments[i].type;
        if (type_equal(given, expected))
            continue;
        char expected_name[TYPE_NAME_BYTES];
        char given_name[TYPE_NAME_BYTES];
        cairn_type_format(expected, expected_name, sizeof expected_name);
        cairn_type_format(given, given_name, sizeof given_name);
        return error_set(error, CAIRN_ERROR_ARGUMENT, i, "argument %u is %s, and not %s", i,
                         given_name, expected_name);
    }
    return CAIRN_OK;
}

/* ---- Writing ---- */

/* The bytes past a value's size must be zero. */
static void write(const struct signature_argument *argument, const struct cairn_value *value,
                  unsigned char *call)
{
    uint64_t word = 0;
    uint64_t sign = UINT64_C(1) << ((argument->type.bits - 1) % WORD_BITS);
    unsigned char *place = call + argument->offset;
    if (is_big_endian)
        value_copy_low(&word, sizeof word, value->bytes, value->size);
    else
        memcpy(&word, value->bytes, sizeof word);
    switch ((enum signature_form)argument->form) {
    case SIGNATURE_WHOLE:
        memcpy(place, value->bytes, SIGNATURE_VECTOR_BYTES);
        return;
    case SIGNATURE_HALVES:
        memcpy(place, value->bytes, WORD_BYTES);
        memcpy(call + argument->second_offset, value->bytes + WORD_BYTES, WORD_BYTES);
        return;
    case SIGNATURE_WIDENED:
        storage_write(value, (struct storage){STORAGE_DOUBLE, WORD_BYTES}, &word);
        break;
    case SIGNATURE_SIGNED:
        word = (word ^ sign) - sign;
        break;
    default:
        break;
    }
    memcpy(place, &word, sizeof word);
}

void signature_write(const cairn_signature *signature, const struct cairn_value *values,
                     struct arch_call *call)
{
    call->stack_bytes = signature->stack_bytes;
    call->floating_count = signature->floating_count;
    call->vector_count = signature->vector_count;
    call->returns_vector = signature->returns_vector;
    for (uint32_t i = 0; i < signature->argument_count; i++)
        write(&signature->arguments[i], &values[i], (unsigned char *)call);
}

/* ---- Reading ---- */

static void read_results(const cairn_signature *signature, const struct arch_call *call,
                         struct cairn_value *results)
{
    for (uint32_t i = 0; i < signature->results.count; i++) {
        const struct signature_result *returned = &signature->returned[i];
        const unsigned char *place = (const unsigned char *)call + returned->offset;
        struct cairn_type type = signature->results.types[i];
        struct cairn_value *result = &results[i];
        uint64_t word;
        if (returned->form == SIGNATURE_WIDENED) {
            storage_read(type, (struct storage){STORAGE_DOUBLE, WORD_BYTES}, place, result);
            continue;
        }
        *result = (struct cairn_value){.type = type, .size = returned->size};
        if (returned->form == SIGNATURE_WHOLE) {
            memcpy(result->bytes, place, SIGNATURE_VECTOR_BYTES);
            continue;
        }
        memcpy(&word, place, sizeof word);
        word &= UINT64_MAX >> (WORD_BITS - type.bits); /* the bits above are unspecified */
        if (is_big_endian)
            value_copy_low(result->bytes, result->size, &word, sizeof word);
        else
            memcpy(result->bytes, &word, sizeof word);
    }
}

/* ---- Calling ---- */

enum cairn_status cairn_call(const cairn_signature *signature, const void *function,
                             const struct cairn_value *arguments, uint32_t argument_count,
                             struct cairn_value *results, struct cairn_error *error)
{
    struct arch_call call;
    enum cairn_status status = signature_check(signature, arguments, argument_count, error);
    if (status != CAIRN_OK)
        return status;
    const struct cairn_error *refused = &signature->results_refused;
    if (refused->status != CAIRN_OK)
        return error_set(error, refused->status, refused->offset, "%s", refused->message);
    call.function = function;
    signature_write(signature, arguments, &call);
    arch_call_function(&call);
    read_results(signature, &call, results);
    return CAIRN_OK;
}
