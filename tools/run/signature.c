/*
 * Parses types in LLVM's syntax. The text comes from a file, so nesting and the number of pieces
 * are limited.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/run/signature.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 256, DEPTH_MAX = 64, PARAMETERS_MAX = 4096, BITS_MAX = 128 };

/* ---- Pieces ---- */

static bool add_piece(struct signature_value *value, struct signature_piece piece)
{
    if (value->pieces == NULL)
        value->pieces = calloc(PIECES_MAX, sizeof *value->pieces);
    if (value->pieces == NULL || value->piece_count == PIECES_MAX)
        return false;
    value->pieces[value->piece_count++] = piece;
    value->scalar_count += piece.kind == PIECE_SCALAR;
    return true;
}

static bool add_bracket(struct signature_value *value, enum piece_kind kind, char bracket)
{
    return add_piece(value, (struct signature_piece){.kind = kind, .bracket = bracket});
}

/* ---- Types ---- */

static bool skip(const char **at, const char *word)
{
    *at += strspn(*at, " ");
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    return true;
}

static bool parse_scalar(const char **at, struct signature_value *value)
{
    static const struct {
        const char *name;
        enum cairn_type_kind kind;
        uint32_t bits;
    } known[] = {
        {"ptr", CAIRN_TYPE_POINTER, 64},   {"half", CAIRN_TYPE_HALF, 16},
        {"bfloat", CAIRN_TYPE_BFLOAT, 16}, {"float", CAIRN_TYPE_FLOAT, 32},
        {"double", CAIRN_TYPE_DOUBLE, 64}, {"x86_fp80", CAIRN_TYPE_X86_FP80, 80},
        {"fp128", CAIRN_TYPE_FP128, 128},
    };
    struct signature_piece piece = {.kind = PIECE_SCALAR};
    for (size_t i = 0; i < sizeof known / sizeof *known && piece.type.bits == 0; i++)
        if (skip(at, known[i].name))
            piece.type = CAIRN_TYPE(known[i].kind, known[i].bits, 0, 0);
    if (piece.type.kind == CAIRN_TYPE_POINTER && skip(at, "addrspace(")) {
        *at += strspn(*at, "0123456789");
        if (!skip(at, ")"))
            return false;
    }
    if (piece.type.bits == 0 && skip(at, "i") && **at >= '1' && **at <= '9') {
        char *end;
        unsigned long bits = strtoul(*at, &end, 10);
        *at = end;
        if (bits > BITS_MAX)
            return false;
        piece.type = CAIRN_INTEGER((uint32_t)bits);
    }
    return piece.type.bits != 0 && add_piece(value, piece);
}

static bool parse_type(const char **at, struct signature_value *value, unsigned depth);

/* Parses "N x TYPE" and the closing bracket. The type is parsed N times. */
static bool parse_array(const char **at, struct signature_value *value, char closing,
                        unsigned depth)
{
    const char close[] = {closing, '\0'};
    char *end;
    *at += strspn(*at, " ");
    if (**at < '0' || **at > '9')
        return false;
    unsigned long count = strtoul(*at, &end, 10);
    *at = end;
    if (!skip(at, "x ") || count > PIECES_MAX)
        return false;
    struct signature_value unused = {.pieces = NULL};
    const char *begin = *at;
    bool fits = parse_type(at, count == 0 ? &unused : value, depth);
    for (unsigned long i = 1; i < count && fits; i++) {
        *at = begin;
        fits = parse_type(at, value, depth);
    }
    free(unused.pieces);
    return fits && skip(at, close) && add_bracket(value, PIECE_CLOSE, closing);
}

static bool parse_type(const char **at, struct signature_value *value, unsigned depth)
{
    if (depth++ == DEPTH_MAX)
        return false;
    if (skip(at, "[") || skip(at, "<")) {
        char opening = (*at)[-1];
        return add_bracket(value, PIECE_OPEN, opening) &&
               parse_array(at, value, opening == '[' ? ']' : '>', depth);
    }
    if (!skip(at, "{"))
        return parse_scalar(at, value);
    if (!add_bracket(value, PIECE_OPEN, '{'))
        return false;
    for (bool is_first = true; !skip(at, "}"); is_first = false)
        if ((!is_first && !skip(at, ",")) || !parse_type(at, value, depth))
            return false;
    return add_bracket(value, PIECE_CLOSE, '}');
}

/* ---- Signatures ---- */

static bool parse_value(const char **at, struct signature_value *value)
{
    *at += strspn(*at, " ");
    const char *begin = *at;
    if (!parse_type(at, value, 0))
        return false;
    int length = snprintf(value->type, sizeof value->type, "%.*s", (int)(*at - begin), begin);
    if (length >= (int)sizeof value->type)
        memcpy(value->type + sizeof value->type - sizeof "...", "...", sizeof "...");
    return true;
}

static bool parse_parameters(const char **at, struct signature *signature)
{
    size_t capacity = 1;
    for (const char *comma = *at; *comma != '\0'; comma++)
        capacity += *comma == ',';
    if (capacity > PARAMETERS_MAX)
        return false;
    signature->parameters = calloc(capacity, sizeof *signature->parameters);
    if (signature->parameters == NULL)
        return false;
    for (bool is_first = true; !skip(at, ")"); is_first = false) {
        if (!is_first && !skip(at, ","))
            return false;
        if (skip(at, "..."))
            signature->is_variadic = true;
        else if (!parse_value(at, &signature->parameters[signature->parameter_count++]))
            return false;
    }
    return **at == '\0';
}

enum cairn_status signature_parse(const char *text, struct signature *signature,
                                  struct cairn_error *error)
{
    const char *at = text;
    *signature = (struct signature){0};
    signature->result.is_unsigned = skip(&at, "zeroext ");
    bool fits = skip(&at, "void") || parse_value(&at, &signature->result);
    if (fits && skip(&at, "(") && parse_parameters(&at, signature))
        return CAIRN_OK;
    signature_release(signature);
    return error_set(error, CAIRN_ERROR_CORRUPT, (uint64_t)(at - text),
                     "'%.120s' does not list the types of a function, or there is no memory for it",
                     text);
}

void signature_release(struct signature *signature)
{
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        free(signature->parameters[i].pieces);
    free(signature->parameters);
    free(signature->result.pieces);
    *signature = (struct signature){0};
}
