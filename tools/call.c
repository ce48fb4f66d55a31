/*
 * Arguments from words, a call by libffi, and a result in words.
 *
 * Integers are passed in the smallest C type that holds them, extended as C would: signed, or
 * unsigned where the IR says zeroext.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/call.h"

#include "base/error.h"

#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Types ---- */

static unsigned container_bits(uint32_t bits)
{
    if (bits <= 8)
        return 8;
    if (bits <= 16)
        return 16;
    return bits <= 32 ? 32 : 64;
}

static ffi_type *integer_type(const struct program_value *value)
{
    switch (container_bits(value->type.bits)) {
    case 8:
        return value->is_unsigned ? &ffi_type_uint8 : &ffi_type_sint8;
    case 16:
        return value->is_unsigned ? &ffi_type_uint16 : &ffi_type_sint16;
    case 32:
        return value->is_unsigned ? &ffi_type_uint32 : &ffi_type_sint32;
    default:
        return value->is_unsigned ? &ffi_type_uint64 : &ffi_type_sint64;
    }
}

/* NULL: such a value cannot be passed. */
static ffi_type *find_type(const struct program_value *value)
{
    if (value->type.element_count > 0)
        return NULL;
    switch (value->type.kind) {
    case CAIRN_TYPE_VOID:
        return &ffi_type_void;
    case CAIRN_TYPE_INTEGER:
        return value->type.bits <= 64 ? integer_type(value) : NULL;
    case CAIRN_TYPE_POINTER:
        return &ffi_type_pointer;
    case CAIRN_TYPE_FLOAT:
        return &ffi_type_float;
    case CAIRN_TYPE_DOUBLE:
        return &ffi_type_double;
    default:
        return NULL;
    }
}

static enum cairn_status refuse_type(struct cairn_error *error, const struct program_value *value,
                                     const char *what)
{
    char type[64];
    cairn_type_format(value->type, type, sizeof type);
    if (value->type.kind == CAIRN_TYPE_OTHER)
        snprintf(type, sizeof type, "an aggregate");
    return error_set(
        error, CAIRN_ERROR_UNSUPPORTED, 0,
        "%s is %s: only integers of up to 64 bits, float, double and pointers can be passed", what,
        type);
}

/* ---- Words ---- */

static enum cairn_status refuse_word(struct cairn_error *error, const struct program_value *value,
                                     uint32_t number, const char *word, const char *why)
{
    char type[64];
    cairn_type_format(value->type, type, sizeof type);
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "argument %u, '%.60s', %s %s", number, word,
                     why, type);
}

/* Two's complement of 64 bits. False if it is no number; `*fits` says whether 64 bits hold it. */
static bool parse_integer(const char *word, uint64_t *value, bool *is_negative, bool *fits)
{
    char *end;
    *is_negative = word[0] == '-';
    const char *digits = word + (*is_negative || word[0] == '+' ? 1 : 0);
    if (digits[0] < '0' || digits[0] > '9')
        return false;
    bool is_hexadecimal = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    errno = 0;
    uint64_t magnitude = strtoull(digits, &end, is_hexadecimal ? 16 : 10);
    *fits = errno == 0 && (!*is_negative || magnitude <= UINT64_C(1) << 63);
    *value = *is_negative ? 0 - magnitude : magnitude;
    return *end == '\0' && end != digits + (is_hexadecimal ? 1 : 0);
}

/* From -2^(bits-1) to 2^bits-1. */
static bool fits_bits(uint64_t value, bool is_negative, uint32_t bits)
{
    if (is_negative)
        return 0 - value <= UINT64_C(1) << (bits - 1);
    return bits == 64 || value < UINT64_C(1) << bits;
}

/* The low `bits` of `value`, extended to 64. */
static uint64_t extend(uint64_t value, uint32_t bits, bool is_unsigned)
{
    unsigned unused = 64 - bits;
    value <<= unused;
    if (is_unsigned)
        return value >> unused;
    return (uint64_t)((int64_t)value >> unused);
}

static void store_integer(union call_value *value, uint32_t bits, uint64_t integer)
{
    switch (container_bits(bits)) {
    case 8:
        value->integer8 = (uint8_t)integer;
        break;
    case 16:
        value->integer16 = (uint16_t)integer;
        break;
    case 32:
        value->integer32 = (uint32_t)integer;
        break;
    default:
        value->integer64 = integer;
        break;
    }
}

static enum cairn_status parse_integer_word(const struct program_value *type, const char *word,
                                            uint32_t number, union call_value *value,
                                            struct cairn_error *error)
{
    uint64_t integer = 0;
    bool is_negative = false;
    bool fits = true;
    uint32_t bits = type->type.bits;
    if (bits == 1 && strcmp(word, "true") == 0)
        integer = 1;
    else if ((bits != 1 || strcmp(word, "false") != 0) &&
             !parse_integer(word, &integer, &is_negative, &fits))
        return refuse_word(error, type, number, word, "is no");
    if (!fits || !fits_bits(integer, is_negative, bits))
        return refuse_word(error, type, number, word, "does not fit an");
    store_integer(value, bits, extend(integer, bits, type->is_unsigned));
    return CAIRN_OK;
}

static enum cairn_status parse_float_word(const struct program_value *type, const char *word,
                                          uint32_t number, union call_value *value,
                                          struct cairn_error *error)
{
    char *end;
    if (type->type.kind == CAIRN_TYPE_FLOAT)
        value->single_float = strtof(word, &end);
    else
        value->double_float = strtod(word, &end);
    if (end == word || *end != '\0')
        return refuse_word(error, type, number, word, "is no");
    return CAIRN_OK;
}

/* An address, null, or "text" for a copy of the text that ends with a zero byte. */
static enum cairn_status parse_pointer_word(const struct program_value *type, const char *word,
                                            uint32_t number, union call_value *value, char **string,
                                            struct cairn_error *error)
{
    size_t length = strlen(word);
    uint64_t address = 0;
    bool is_negative;
    bool fits;
    if (length >= 2 && word[0] == '"' && word[length - 1] == '"') {
        *string = strndup(word + 1, length - 2);
        value->pointer = *string;
        return *string != NULL ? CAIRN_OK
                               : error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a string");
    }
    if (strcmp(word, "null") != 0 && (!parse_integer(word, &address, &is_negative, &fits) || !fits))
        return refuse_word(error, type, number, word,
                           "is no address, null or \"text\" in double quotes, for a");
    value->pointer = (void *)(uintptr_t)address;
    return CAIRN_OK;
}

static enum cairn_status parse_word(const struct program_value *type, const char *word,
                                    uint32_t number, union call_value *value, char **string,
                                    struct cairn_error *error)
{
    switch (type->type.kind) {
    case CAIRN_TYPE_INTEGER:
        return parse_integer_word(type, word, number, value, error);
    case CAIRN_TYPE_POINTER:
        return parse_pointer_word(type, word, number, value, string, error);
    default:
        return parse_float_word(type, word, number, value, error);
    }
}

/* ---- The call ---- */

static enum cairn_status allocate(struct call *call, uint32_t count, struct cairn_error *error)
{
    call->types = calloc(count + 1, sizeof *call->types);
    call->values = calloc(count + 1, sizeof *call->values);
    call->places = calloc(count + 1, sizeof *call->places);
    call->strings = calloc(count + 1, sizeof *call->strings);
    if (call->types == NULL || call->values == NULL || call->places == NULL ||
        call->strings == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u arguments", count);
    return CAIRN_OK;
}

static enum cairn_status prepare_argument(struct call *call, uint32_t index, const char *word,
                                          struct cairn_error *error)
{
    const struct program_value *type = &call->signature->parameters[index];
    call->types[index] = find_type(type);
    if (call->types[index] == NULL) {
        char what[32];
        snprintf(what, sizeof what, "parameter %u", index + 1);
        return refuse_type(error, type, what);
    }
    call->places[index] = &call->values[index];
    return parse_word(type, word, index + 1, &call->values[index], &call->strings[index], error);
}

static enum cairn_status prepare_interface(struct call *call, struct cairn_error *error)
{
    uint32_t count = call->signature->parameter_count;
    ffi_type *result = find_type(&call->signature->result);
    ffi_status status;
    if (result == NULL)
        return refuse_type(error, &call->signature->result, "the result");
    if (call->signature->is_variadic)
        status =
            ffi_prep_cif_var(&call->interface, FFI_DEFAULT_ABI, count, count, result, call->types);
    else
        status = ffi_prep_cif(&call->interface, FFI_DEFAULT_ABI, count, result, call->types);
    if (status != FFI_OK)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "libffi cannot make this call (status %d)", (int)status);
    return CAIRN_OK;
}

enum cairn_status call_prepare(const struct program_signature *signature, char **words,
                               uint32_t word_count, struct call *call, struct cairn_error *error)
{
    *call = (struct call){.signature = signature};
    if (word_count != signature->parameter_count)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the function takes %u argument%s; %u %s given",
                         signature->parameter_count, signature->parameter_count == 1 ? "" : "s",
                         word_count, word_count == 1 ? "is" : "are");
    enum cairn_status status = allocate(call, word_count, error);
    for (uint32_t i = 0; i < word_count && status == CAIRN_OK; i++)
        status = prepare_argument(call, i, words[i], error);
    if (status == CAIRN_OK)
        status = prepare_interface(call, error);
    return status;
}

void call_make(struct call *call, void *function)
{
    ffi_call(&call->interface, FFI_FN(function), &call->result, call->places);
}

void call_release(struct call *call)
{
    for (uint32_t i = 0; call->strings != NULL && i < call->signature->parameter_count; i++)
        free(call->strings[i]);
    free(call->strings);
    free(call->places);
    free(call->values);
    free(call->types);
}

/* ---- The result ---- */

static void write_integer(const struct call *call, struct output *output)
{
    const struct program_value *type = &call->signature->result;
    uint64_t value = type->type.bits > 32 ? call->result.integer64 : (uint64_t)call->result.widened;
    value = extend(value, type->type.bits, type->is_unsigned);
    if (type->type.bits == 1)
        output_text(output, (value & 1) != 0 ? "true" : "false");
    else if (type->is_unsigned)
        output_unsigned(output, value);
    else
        output_signed(output, (int64_t)value);
}

/* As few digits as give the same value back. */
static void write_double(struct output *output, double value)
{
    char text[64];
    for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    output_text(output, text);
}

static void write_float(struct output *output, float value)
{
    char text[64];
    for (int digits = FLT_DIG; digits <= FLT_DECIMAL_DIG; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    output_text(output, text);
}

void call_write_result(const struct call *call, struct output *output)
{
    switch (call->signature->result.type.kind) {
    case CAIRN_TYPE_INTEGER:
        write_integer(call, output);
        break;
    case CAIRN_TYPE_POINTER:
        output_hexadecimal(output, (uint64_t)(uintptr_t)call->result.pointer);
        break;
    case CAIRN_TYPE_FLOAT:
        write_float(output, call->result.single_float);
        break;
    case CAIRN_TYPE_DOUBLE:
        write_double(output, call->result.double_float);
        break;
    default:
        return;
    }
    output_character(output, '\n');
}
