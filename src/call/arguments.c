/*
 * The places of arguments and results in registers and on the stack.
 *
 * Each kind of value has its own registers, which are used in their order; further arguments are
 * passed on the stack. All places are computed when a signature is created, so that a call only
 * copies values.
 *
 * Sources: System V Application Binary Interface, AMD64 Architecture Processor Supplement, section
 * "Parameter Passing"; Procedure Call Standard for the Arm 64-bit Architecture, section "Parameter
 * passing"; 64-Bit ELF V2 ABI Specification, section "Parameter Passing in Registers". For results:
 * lib/Target/…/…CallingConv.td of LLVM, as in results.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "call/arguments.h"

#include "arch/arch.h"
#include "base/error.h"
#include "value/representation.h"
#include "value/value.h"

#include <string.h>

enum { WORD_BYTES = 8, WORD_BITS = 64, PAIR_BYTES = 16, TYPE_NAME_BYTES = 64 };

static const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

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

/* Assigns the next of `count` registers that begin at offset `registers` in struct arch_call, or a
 * place on the stack if all are used. */
static uint16_t take_wide(const struct arch_arguments *arguments, struct taken *taken,
                          unsigned *used, unsigned count, size_t registers, size_t size)
{
    bool has_register = *used < count;
    uint16_t place = 0;
    if (arguments->has_places || !has_register)
        place = take_stack(taken, size);
    if (!has_register)
        return place;
    return (uint16_t)(registers + (size_t)CALL_REGISTER_BYTES * (*used)++);
}

static bool shares_registers(const struct arch_arguments *arguments)
{
    return arguments->floating == arguments->vector;
}

static uint16_t take_floating(const struct arch_arguments *arguments, struct taken *taken)
{
    return take_wide(arguments, taken, &taken->floating, arguments->floating_count, CALL_FLOATING,
                     WORD_BYTES);
}

static uint16_t take_vector(const struct arch_arguments *arguments, struct taken *taken)
{
    if (shares_registers(arguments))
        return take_wide(arguments, taken, &taken->floating, arguments->floating_count,
                         CALL_FLOATING, SIGNATURE_VECTOR_BYTES);
    return take_wide(arguments, taken, &taken->vector, arguments->vector_count, CALL_VECTOR,
                     SIGNATURE_VECTOR_BYTES);
}

static void place(const struct arch_arguments *arguments, struct taken *taken,
                  struct signature_argument *argument)
{
    switch ((enum signature_kind)argument->kind) {
    case SIGNATURE_PAIR:
        argument->form = SIGNATURE_HALVES;
        take_pair(arguments, taken, argument);
        break;
    case SIGNATURE_FLOATING:
        argument->offset = take_floating(arguments, taken);
        bool is_widened = arguments->widens_floats && argument->offset < CALL_STACK &&
                          argument->type.kind == CAIRN_TYPE_FLOAT;
        argument->form = is_widened ? SIGNATURE_WIDENED : SIGNATURE_WORD;
        break;
    case SIGNATURE_VECTOR:
        argument->form = SIGNATURE_WHOLE;
        argument->offset = take_vector(arguments, taken);
        break;
    default:
        argument->form = SIGNATURE_WORD;
        argument->offset = take_word(arguments, taken);
        break;
    }
}

/* ---- Registers of results ---- */

/* The number of result registers used so far. Two kinds may share their registers. */
struct returned {
    unsigned general;
    unsigned floating;
    unsigned vector;
};

/* Returns the offset in struct arch_call of the next result of this kind. */
static uint16_t take_result(enum signature_kind kind, struct returned *returned)
{
    bool is_shared = shares_registers(&arch_host()->arguments);
    unsigned index;
    switch (kind) {
    case SIGNATURE_GENERAL:
        index = returned->general++;
        return (uint16_t)(CALL_GENERAL_RESULTS + index * WORD_BYTES);
    case SIGNATURE_PAIR:
        index = returned->general;
        returned->general += 2;
        return (uint16_t)(CALL_GENERAL_RESULTS + index * WORD_BYTES);
    case SIGNATURE_VECTOR:
        index = is_shared ? returned->floating++ : returned->vector++;
        return (uint16_t)((is_shared ? CALL_FLOATING_RESULTS : CALL_VECTOR_RESULTS) +
                          index * CALL_REGISTER_BYTES);
    default:
        index = returned->floating++;
        return (uint16_t)(CALL_FLOATING_RESULTS + index * CALL_REGISTER_BYTES);
    }
}

static bool fits(const struct returned *returned)
{
    return returned->general <= ARCH_CALL_RESULTS && returned->floating <= ARCH_CALL_RESULTS &&
           returned->vector <= ARCH_CALL_RESULTS;
}

static enum signature_form form_of_result(enum signature_kind kind, struct cairn_type type)
{
    if (kind == SIGNATURE_PAIR || kind == SIGNATURE_VECTOR)
        return SIGNATURE_WHOLE;
    bool is_widened = arch_host()->arguments.widens_floats && type.kind == CAIRN_TYPE_FLOAT;
    return is_widened ? SIGNATURE_WIDENED : SIGNATURE_WORD;
}

static void refuse_result(cairn_signature *signature, uint32_t index)
{
    char name[TYPE_NAME_BYTES];
    cairn_type_format(signature->results.types[index], name, sizeof name);
    enum cairn_status status =
        error_set(&signature->results_refused, CAIRN_ERROR_UNSUPPORTED, index,
                  "result %u, of type %s, has no register to be returned in", index, name);
    (void)status;
}

static void place_results(cairn_signature *signature)
{
    struct returned returned = {0};
    for (uint32_t i = 0; i < signature->results.count; i++) {
        struct cairn_type type = signature->results.types[i];
        enum signature_kind kind = signature_kind(type);
        uint16_t offset = take_result(kind, &returned);
        if (kind == SIGNATURE_NONE || !fits(&returned)) {
            refuse_result(signature, i);
            return;
        }
        signature->returned[i] =
            (struct signature_result){.form = (uint8_t)form_of_result(kind, type),
                                      .offset = offset,
                                      .size = (uint16_t)cairn_type_size(type)};
        signature->returns_vector |= kind == SIGNATURE_VECTOR;
    }
}

/* Whether compilers disagree on the place of the argument. If only one register is left for a pair,
 * the ABI leaves the register to later arguments, and so does GCC. LLVM up to 17 passes half of the
 * pair in it; LLVM 18 and later leave it unused. */
static bool is_ambiguous(const struct arch_arguments *arguments, const struct taken *taken,
                         const struct signature_argument *argument)
{
    return argument->kind == SIGNATURE_PAIR && arguments->pair == ARCH_PAIR_WHOLE &&
           taken->general + 1 == arguments->general_count;
}

enum cairn_status arguments_place(cairn_signature *signature, struct cairn_error *error)
{
    const struct arch_arguments *arguments = &arch_host()->arguments;
    struct taken taken = {0};
    for (uint32_t i = 0; i < signature->argument_count; i++) {
        if (is_ambiguous(arguments, &taken, &signature->arguments[i]))
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

/* ---- Writing ---- */

/* Returns the value's bytes as an integer. The bytes past the value's size must be zero. */
static uint64_t word_of(const struct cairn_value *value)
{
    uint64_t word = 0;
    if (is_big_endian)
        value_copy_low(&word, sizeof word, value->bytes, value->size);
    else
        memcpy(&word, value->bytes, sizeof word);
    return word;
}

static uint64_t extend_sign(uint64_t word, uint32_t bits)
{
    uint64_t sign = (uint64_t)1 << (bits - 1);
    return bits == WORD_BITS ? word : (word ^ sign) - sign;
}

static void write(const struct signature_argument *argument, const struct cairn_value *value,
                  unsigned char *call)
{
    uint64_t word = word_of(value);
    unsigned char *place = call + argument->offset;
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
        word = extend_sign(word, argument->type.bits);
        break;
    default:
        break;
    }
    memcpy(place, &word, sizeof word);
}

void arguments_write(const cairn_signature *signature, const struct cairn_value *values,
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

/* Reads a value whose bits above the type's width are unspecified. */
static void read_word(const unsigned char *place, struct cairn_value *result)
{
    uint64_t word;
    memcpy(&word, place, sizeof word);
    word &= UINT64_MAX >> (WORD_BITS - result->type.bits);
    if (is_big_endian)
        value_copy_low(result->bytes, result->size, &word, sizeof word);
    else
        memcpy(result->bytes, &word, sizeof word);
}

static void read(const struct signature_result *returned, struct cairn_type type,
                 const unsigned char *place, struct cairn_value *result)
{
    if (returned->form == SIGNATURE_WIDENED) {
        storage_read(type, (struct storage){STORAGE_DOUBLE, WORD_BYTES}, place, result);
        return;
    }
    *result = (struct cairn_value){.type = type, .size = returned->size};
    if (returned->form == SIGNATURE_WHOLE)
        memcpy(result->bytes, place, SIGNATURE_VECTOR_BYTES);
    else
        read_word(place, result);
}

void arguments_read_results(const cairn_signature *signature, const struct arch_call *call,
                            struct cairn_value *results)
{
    for (uint32_t i = 0; i < signature->results.count; i++) {
        const struct signature_result *returned = &signature->returned[i];
        read(returned, signature->results.types[i], (const unsigned char *)call + returned->offset,
             &results[i]);
    }
}
