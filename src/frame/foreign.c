/*
 * Signatures as libffi has them.
 *
 * Narrow integers are returned as the whole register, of which the low bits count; so the members
 * of a structure are 64 bits each, and libffi takes each from a register of its own, as LLVM
 * returns them, and not packed into one, as C would.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/foreign.h"

#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "frame/storage.h"

#include <string.h>

enum { TYPE_NAME_BYTES = 64, PAIR_BYTES = 16, WORD_BYTES = 8 };

static const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

/* ---- Arguments ---- */

static bool is_odd(uint32_t bits) { return bits != 8 && bits != 16 && bits != 32 && bits != 64; }

/* Zeros above the value's bits, and above its bytes, are as good as a larger type in one order. */
static bool is_extended(const struct signature_argument *argument)
{
    bool is_integer = argument->type.kind == CAIRN_TYPE_INTEGER;
    return is_integer && is_odd(argument->type.bits) && (argument->extends_sign || is_big_endian);
}

static ffi_type *integer_type(uint32_t bits, bool extends_sign)
{
    if (bits <= 8)
        return extends_sign ? &ffi_type_sint8 : &ffi_type_uint8;
    if (bits <= 16)
        return extends_sign ? &ffi_type_sint16 : &ffi_type_uint16;
    if (bits <= 32)
        return extends_sign ? &ffi_type_sint32 : &ffi_type_uint32;
    return &ffi_type_uint64;
}

static ffi_type *general_type(const struct signature_argument *argument)
{
    if (argument->type.kind == CAIRN_TYPE_POINTER)
        return &ffi_type_pointer;
    return is_extended(argument) ? &ffi_type_uint64
                                 : integer_type(argument->type.bits, argument->extends_sign);
}

static ffi_type *floating_type(struct cairn_type type)
{
    return type.kind == CAIRN_TYPE_FLOAT ? &ffi_type_float : &ffi_type_double;
}

/* `general` counts registers that are taken, where it makes a difference. */
static void add_pair(struct foreign_call *foreign, uint32_t index, unsigned *general)
{
    const struct arch_arguments *arguments = &arch_host()->arguments;
    if (arguments->pair == ARCH_PAIR_SPLIT) {
        foreign->forms[index] = FOREIGN_SPLIT;
        foreign->types[foreign->count++] = &ffi_type_uint64;
        foreign->types[foreign->count++] = &ffi_type_uint64;
        return;
    }
    /* libffi does not look for an even register. */
    bool is_filled = arguments->pair == ARCH_PAIR_EVEN && *general % 2 == 1;
    foreign->forms[index] = is_filled ? FOREIGN_FILLED : FOREIGN_STRUCTURE;
    if (is_filled)
        foreign->types[foreign->count++] = &ffi_type_uint64;
    foreign->types[foreign->count++] = &foreign->pair;
    *general += is_filled ? 3 : 2;
    if (*general > arguments->general_count)
        *general = arguments->general_count;
}

static void add_general(struct foreign_call *foreign, uint32_t index,
                        const struct signature_argument *argument, unsigned *general)
{
    foreign->forms[index] = is_extended(argument) ? FOREIGN_EXTENDED : FOREIGN_AS_IT_IS;
    foreign->types[foreign->count++] = general_type(argument);
    if (*general < arch_host()->arguments.general_count)
        ++*general;
}

static void add_argument(struct foreign_call *foreign, uint32_t index,
                         const struct signature_argument *argument, unsigned *general)
{
    foreign->first[index] = (uint8_t)foreign->count;
    if (argument->kind == SIGNATURE_PAIR)
        add_pair(foreign, index, general);
    else if (argument->kind == SIGNATURE_GENERAL)
        add_general(foreign, index, argument, general);
    else
        foreign->types[foreign->count++] = floating_type(argument->type);
    if (foreign->forms[index] == FOREIGN_FILLED)
        foreign->first[index]++;
}

void foreign_extend_sign(cairn_signature *signature, uint32_t argument)
{
    struct foreign_call *foreign = signature->foreign;
    const struct signature_argument *changed = &signature->arguments[argument];
    if (foreign == NULL || changed->kind != SIGNATURE_GENERAL)
        return;
    foreign->types[foreign->first[argument]] = general_type(changed);
    foreign->forms[argument] = is_extended(changed) ? FOREIGN_EXTENDED : FOREIGN_AS_IT_IS;
}

/* ---- Results ---- */

static bool is_floating(struct cairn_type type)
{
    return signature_kind(type) == SIGNATURE_FLOATING;
}

static bool is_scalar(struct cairn_type type)
{
    return is_floating(type) || signature_kind(type) == SIGNATURE_GENERAL;
}

static bool returns_structure(const struct cairn_results *results)
{
    enum arch_structures structures = arch_host()->arguments.structures;
    if (structures == ARCH_STRUCTURES_NONE || results->count != 2)
        return false;
    return is_scalar(results->types[0]) && is_scalar(results->types[1]) &&
           (structures == ARCH_STRUCTURES_OF_ANY_KIND ||
            is_floating(results->types[0]) == is_floating(results->types[1]));
}

static bool returns_pair(const struct cairn_results *results)
{
    return results->count == 1 && signature_kind(results->types[0]) == SIGNATURE_PAIR &&
           arch_host()->arguments.structures != ARCH_STRUCTURES_NONE;
}

/* What one register is returned as. */
static ffi_type *word_type(struct cairn_type type)
{
    return is_floating(type) ? &ffi_type_double : &ffi_type_uint64;
}

static ffi_type *structure_type(struct foreign_call *foreign, struct cairn_type first,
                                struct cairn_type second)
{
    foreign->structure_members[0] = word_type(first);
    foreign->structure_members[1] = word_type(second);
    foreign->structure =
        (ffi_type){.type = FFI_TYPE_STRUCT, .elements = foreign->structure_members};
    return &foreign->structure;
}

/* NULL if libffi does not return such results. */
static ffi_type *result_type(const struct cairn_results *results, struct foreign_call *foreign)
{
    foreign->result = results->count == 0 ? FOREIGN_NOTHING : FOREIGN_WORDS;
    if (results->count == 0)
        return &ffi_type_void;
    if (returns_pair(results))
        return structure_type(foreign, cairn_type_integer(64), cairn_type_integer(64));
    if (returns_structure(results))
        return structure_type(foreign, results->types[0], results->types[1]);
    if (results->count != 1 || !is_scalar(results->types[0]))
        return NULL;
    if (results->types[0].kind != CAIRN_TYPE_FLOAT)
        return word_type(results->types[0]);
    foreign->result = FOREIGN_FLOAT;
    return &ffi_type_float;
}

/* Where a register has a floating-point number that libffi takes for a double. */
static struct storage floating_storage(void)
{
    return (struct storage){arch_host()->arguments.widens_floats ? STORAGE_DOUBLE : STORAGE_VECTOR,
                            WORD_BYTES};
}

static void read_word(struct cairn_type type, uint64_t word, struct cairn_value *result)
{
    if (is_floating(type))
        storage_read(type, floating_storage(), &word, result);
    else if (type.kind == CAIRN_TYPE_POINTER)
        *result = cairn_value_of_pointer((void *)(uintptr_t)word);
    else
        *result = cairn_value_of_integer(type.bits, (int64_t)word);
    result->type = type;
}

void foreign_read_results(const cairn_signature *signature, const union foreign_results *from,
                          struct cairn_value *results)
{
    const struct cairn_results *types = &signature->results;
    if (signature->foreign->result == FOREIGN_FLOAT)
        results[0] = cairn_value_of_float(from->single);
    else if (returns_pair(types)) {
        results[0] = (struct cairn_value){.type = types->types[0], .size = PAIR_BYTES};
        memcpy(results[0].bytes, from->words, PAIR_BYTES);
    } else
        for (uint32_t i = 0; i < types->count; i++)
            read_word(types->types[i], from->words[i], &results[i]);
}

static uint64_t write_word(const struct cairn_value *result, bool extends_sign)
{
    uint64_t word = 0;
    if (is_floating(result->type))
        storage_write(result, floating_storage(), &word);
    else
        word = extends_sign ? (uint64_t)cairn_value_signed(result) : cairn_value_unsigned(result);
    return word;
}

void foreign_write_results(const cairn_signature *signature, const struct cairn_value *results,
                           union foreign_results *to)
{
    const struct cairn_results *types = &signature->results;
    if (signature->foreign->result == FOREIGN_FLOAT)
        memcpy(&to->single, results[0].bytes, sizeof to->single);
    else if (returns_pair(types))
        memcpy(to->words, results[0].bytes, PAIR_BYTES);
    else
        for (uint32_t i = 0; i < types->count; i++)
            to->words[i] = write_word(&results[i], types->extends_sign);
}

/* ---- Preparing ---- */

static void refuse(cairn_signature *signature, const char *what, uint32_t index,
                   struct cairn_type type)
{
    char name[TYPE_NAME_BYTES];
    cairn_type_format(type, name, sizeof name);
    enum cairn_status status =
        error_set(&signature->refused, CAIRN_ERROR_UNSUPPORTED, index,
                  "%s %u is %s, which cannot be called with", what, index, name);
    (void)status;
}

static bool check_arguments(cairn_signature *signature)
{
    for (uint32_t i = 0; i < signature->argument_count; i++) {
        if (signature->arguments[i].kind == SIGNATURE_VECTOR) {
            refuse(signature, "argument", i, signature->arguments[i].type);
            return false;
        }
    }
    return true;
}

/* The first result that stands alone in being refused, or the second of two. */
static void refuse_results(cairn_signature *signature)
{
    const struct cairn_results *results = &signature->results;
    uint32_t index = 0;
    while (index + 1 < results->count && is_scalar(results->types[index]))
        index++;
    refuse(signature, "result", index, results->types[index]);
}

static bool prepare(cairn_signature *signature, struct foreign_call *foreign)
{
    ffi_type *result = result_type(&signature->results, foreign);
    unsigned general = 0;
    if (result == NULL) {
        refuse_results(signature);
        return false;
    }
    foreign->pair_members[0] = &ffi_type_uint64;
    foreign->pair_members[1] = &ffi_type_uint64;
    foreign->pair = (ffi_type){.size = PAIR_BYTES,
                               .alignment = PAIR_BYTES,
                               .type = FFI_TYPE_STRUCT,
                               .elements = foreign->pair_members};
    for (uint32_t i = 0; i < signature->argument_count; i++)
        add_argument(foreign, i, &signature->arguments[i], &general);
    if (ffi_prep_cif(&foreign->cif, FFI_DEFAULT_ABI, foreign->count, result, foreign->types) ==
        FFI_OK)
        return true;
    enum cairn_status status = error_set(&signature->refused, CAIRN_ERROR_UNSUPPORTED, 0,
                                         "libffi does not call functions of these types");
    (void)status;
    return false;
}

enum cairn_status foreign_create(cairn_signature *signature, struct cairn_error *error)
{
    if (arch_host() == NULL) {
        enum cairn_status status = error_set(&signature->refused, CAIRN_ERROR_UNSUPPORTED, 0,
                                             "Cairn has no calls on this machine");
        (void)status;
        return CAIRN_OK;
    }
    if (!check_arguments(signature))
        return CAIRN_OK;
    struct foreign_call *foreign = memory_new(&signature->allocator, 1, sizeof *foreign);
    if (foreign == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a signature");
    if (prepare(signature, foreign))
        signature->foreign = foreign;
    else
        memory_free(&signature->allocator, foreign, sizeof *foreign);
    return CAIRN_OK;
}

void foreign_destroy(cairn_signature *signature)
{
    memory_free(&signature->allocator, signature->foreign, sizeof *signature->foreign);
}
