/*
 * Parsing the arguments of calls, and printing results. A structure, array or vector is written in
 * the form in which it is printed: its elements in brackets, with commas between them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/run/call.h"

#include "base/error.h"
#include "tools/run/number.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Scalars ---- */

/* An argument's position in the list, for error messages. */
struct place {
    uint32_t number;
    struct cairn_error *error;
};

static enum cairn_status refuse(const struct place *place, const char *word, const char *why,
                                const char *type)
{
    return error_set(place->error, CAIRN_ERROR_ARGUMENT, 0, "argument %u, '%.60s', %s %s",
                     place->number, word, why, type);
}

static enum cairn_status parse_integer(const struct place *place, const struct cairn_type *type,
                                       const char *word, union call_slot *scalar)
{
    char name[64];
    struct number_integer integer = {.fits = true};
    cairn_type_format(*type, name, sizeof name);
    bool is_word = type->bits == 1 && (strcmp(word, "true") == 0 || strcmp(word, "false") == 0);
    if (is_word)
        integer.low = word[0] == 't';
    else if (!number_parse_integer(word, &integer))
        return refuse(place, word, "is not of type", name);
    if (!number_fits(&integer, type->bits)) {
        char range[128];
        number_format_range(type->bits, range, sizeof range);
        strcat(name, range);
        return refuse(place, word, "does not fit an", name);
    }
    scalar->words[0] = integer.low;
    scalar->words[1] = integer.high;
    return CAIRN_OK;
}

/* Parses an address, null, or a "text" in quotes. A text is copied, with a terminating null
 * byte. */
static enum cairn_status parse_pointer(const struct place *place, const char *word,
                                       union call_slot *scalar, char **text)
{
    size_t length = strlen(word);
    struct number_integer address;
    if (length >= 2 && word[0] == '"' && word[length - 1] == '"') {
        *text = strndup(word + 1, length - 2);
        scalar->words[0] = (uintptr_t)*text;
        return *text != NULL
                   ? CAIRN_OK
                   : error_set(place->error, CAIRN_ERROR_MEMORY, 0, "no memory for a string");
    }
    if (strcmp(word, "null") == 0)
        return CAIRN_OK;
    if (!number_parse_integer(word, &address) || !number_fits(&address, 64))
        return refuse(place, word, "is not an address, null or \"text\" in double quotes, for a",
                      "pointer");
    scalar->words[0] = address.low;
    return CAIRN_OK;
}

static enum cairn_status parse_scalar(struct call *call, const struct place *place,
                                      const struct cairn_type *type, const char *word)
{
    union call_slot *scalar = &call->arguments[call->scalar_count];
    char **text = &call->texts[call->scalar_count];
    char name[64];
    call->scalar_count++;
    if (type->kind == CAIRN_TYPE_INTEGER)
        return parse_integer(place, type, word, scalar);
    if (type->kind == CAIRN_TYPE_POINTER)
        return parse_pointer(place, word, scalar, text);
    cairn_type_format(*type, name, sizeof name);
    if (!number_is_floating(word))
        return refuse(place, word, "is not of type", name);
    return number_parse_floating(word, type->kind, scalar->bytes)
               ? CAIRN_OK
               : error_set(place->error, CAIRN_ERROR_MEMORY, 0, "no memory for a number");
}

/* ---- Structures, arrays and vectors ---- */

static const char *skip_spaces(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static bool skip_character(const char **text, char character)
{
    *text = skip_spaces(*text);
    if (**text != character)
        return false;
    ++*text;
    return true;
}

/* Parses a list. An element ends at the next comma, bracket or space, or is a quoted text. */
static enum cairn_status parse_pieces(struct call *call, const struct place *place,
                                      const struct signature_value *value, const char *word)
{
    const char *at = word;
    bool is_next = false; /* whether an element precedes this one in the list */
    for (uint32_t i = 0; i < value->piece_count; i++) {
        const struct signature_piece *piece = &value->pieces[i];
        bool closes = piece->kind == PIECE_CLOSE;
        if (is_next && !closes && !skip_character(&at, ','))
            return refuse(place, word, "is not of type", value->type);
        if (piece->kind != PIECE_SCALAR && !skip_character(&at, piece->bracket))
            return refuse(place, word, "is not of type", value->type);
        is_next = piece->kind != PIECE_OPEN;
        if (piece->kind != PIECE_SCALAR)
            continue;
        const char *begin = skip_spaces(at);
        const char *quote = *begin == '"' ? strchr(begin + 1, '"') : NULL;
        at = quote != NULL ? quote + 1 : begin + strcspn(begin, ",{}[]<> \t");
        char *element = strndup(begin, (size_t)(at - begin));
        if (element == NULL)
            return error_set(place->error, CAIRN_ERROR_MEMORY, 0, "no memory for an element");
        enum cairn_status status = parse_scalar(call, place, &piece->type, element);
        free(element);
        if (status != CAIRN_OK)
            return status;
    }
    return *skip_spaces(at) == '\0' ? CAIRN_OK : refuse(place, word, "is not of type", value->type);
}

/* ---- The call ---- */

enum cairn_status call_prepare(const struct signature *signature, char **words, uint32_t word_count,
                               struct call *call, struct cairn_error *error)
{
    *call = (struct call){.signature = signature};
    uint32_t count = signature->parameter_count;
    enum cairn_status status = CAIRN_OK;
    size_t scalars = 1;
    size_t results = signature->result.scalar_count + (size_t)1;
    if (word_count != count)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the function takes %u argument%s%s; %u %s given", count,
                         count == 1 ? "" : "s",
                         signature->is_variadic ? " (variable ones cannot be given)" : "",
                         word_count, word_count == 1 ? "is" : "are");
    for (uint32_t i = 0; i < count; i++)
        scalars += signature->parameters[i].scalar_count;
    call->arguments = aligned_alloc(sizeof *call->arguments, scalars * sizeof *call->arguments);
    call->texts = calloc(scalars, sizeof *call->texts);
    call->results = aligned_alloc(sizeof *call->results, results * sizeof *call->results);
    if (call->arguments == NULL || call->texts == NULL || call->results == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a call");
    memset(call->arguments, 0, scalars * sizeof *call->arguments);
    memset(call->results, 0, results * sizeof *call->results);
    for (uint32_t i = 0; i < word_count && status == CAIRN_OK; i++) {
        const struct signature_value *value = &signature->parameters[i];
        const struct place place = {i + 1, error};
        status = value->piece_count == 1
                     ? parse_scalar(call, &place, &value->pieces[0].type, words[i])
                     : parse_pieces(call, &place, value, words[i]);
    }
    return status;
}

void call_make(struct call *call, calling_function *function)
{
    function(call->arguments, call->results);
}

void call_release(struct call *call)
{
    for (uint32_t i = 0; call->texts != NULL && i < call->scalar_count; i++)
        free(call->texts[i]);
    free(call->texts);
    free(call->arguments);
    free(call->results);
    *call = (struct call){0};
}

/* ---- The result ---- */

void call_write_result(const struct call *call, struct output *output)
{
    const struct signature_value *result = &call->signature->result;
    const union call_slot *slot = call->results;
    bool is_next = false;
    for (uint32_t i = 0; i < result->piece_count; i++) {
        const struct signature_piece *piece = &result->pieces[i];
        const char *brackets = piece->bracket == '{' ? "{ " : is_next ? " }" : "}";
        const char bracket[] = {piece->bracket, '\0'};
        char text[NUMBER_TEXT_BYTES] = "";
        if (is_next && piece->kind != PIECE_CLOSE)
            output_text(output, ", ");
        if (piece->kind != PIECE_SCALAR)
            output_text(output,
                        piece->bracket == '{' || piece->bracket == '}' ? brackets : bracket);
        else if (piece->type.kind == CAIRN_TYPE_POINTER)
            output_hexadecimal(output, slot++->words[0]);
        else if (piece->type.kind != CAIRN_TYPE_INTEGER)
            number_format_floating(piece->type.kind, slot++->bytes, text);
        else if (piece->type.bits != 1)
            number_format_integer(slot++->words, result->is_unsigned, text);
        else
            strcpy(text, (slot++->words[0] & 1) != 0 ? "true" : "false");
        output_text(output, text);
        is_next = piece->kind != PIECE_OPEN;
    }
    if (result->piece_count > 0)
        output_character(output, '\n');
}
