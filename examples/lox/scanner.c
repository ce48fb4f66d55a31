/*
 * The scanner. The source may contain any bytes, zeros included; it ends at its size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scanner.h"

#include <stdbool.h>
#include <string.h>

static const char *const keywords[TOKEN_TYPES] = {
    [TOKEN_AND] = "and",     [TOKEN_CLASS] = "class",   [TOKEN_ELSE] = "else",
    [TOKEN_FALSE] = "false", [TOKEN_FOR] = "for",       [TOKEN_FUN] = "fun",
    [TOKEN_IF] = "if",       [TOKEN_NIL] = "nil",       [TOKEN_OR] = "or",
    [TOKEN_PRINT] = "print", [TOKEN_RETURN] = "return", [TOKEN_SUPER] = "super",
    [TOKEN_THIS] = "this",   [TOKEN_TRUE] = "true",     [TOKEN_VAR] = "var",
    [TOKEN_WHILE] = "while",
};

static const enum token_type single_tokens[256] = {
    ['('] = TOKEN_LEFT_PAREN,  [')'] = TOKEN_RIGHT_PAREN, ['{'] = TOKEN_LEFT_BRACE,
    ['}'] = TOKEN_RIGHT_BRACE, [','] = TOKEN_COMMA,       ['.'] = TOKEN_DOT,
    ['-'] = TOKEN_MINUS,       ['+'] = TOKEN_PLUS,        [';'] = TOKEN_SEMICOLON,
    ['/'] = TOKEN_SLASH,       ['*'] = TOKEN_STAR,        ['!'] = TOKEN_BANG,
    ['='] = TOKEN_EQUAL,       ['>'] = TOKEN_GREATER,     ['<'] = TOKEN_LESS,
};

/* The token of `X=`, if there is one. */
static const enum token_type equal_tokens[TOKEN_TYPES] = {
    [TOKEN_BANG] = TOKEN_BANG_EQUAL,
    [TOKEN_EQUAL] = TOKEN_EQUAL_EQUAL,
    [TOKEN_GREATER] = TOKEN_GREATER_EQUAL,
    [TOKEN_LESS] = TOKEN_LESS_EQUAL,
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

void scanner_init(struct scanner *scanner, const char *source, size_t size)
{
    *scanner = (struct scanner){.at = source, .end = source + size, .line = 1};
}

/* Returns the byte at a distance, or 0 after the end. */
static char peek(const struct scanner *scanner, ptrdiff_t distance)
{
    if (scanner->end - scanner->at <= distance)
        return '\0';
    return scanner->at[distance];
}

static void skip_blanks(struct scanner *scanner)
{
    for (; scanner->at < scanner->end; scanner->at++) {
        char c = *scanner->at;
        if (c == '/' && peek(scanner, 1) == '/') {
            const char *end = memchr(scanner->at, '\n', (size_t)(scanner->end - scanner->at));
            scanner->at = end != NULL ? end : scanner->end;
            if (end == NULL)
                return;
            c = '\n';
        }
        if (c == '\n')
            scanner->line++;
        else if (c != ' ' && c != '\t' && c != '\r')
            return;
    }
}

/* Returns a token from `start` to the current place. Its line is that of its end. */
static struct token token(const struct scanner *scanner, enum token_type type, const char *start)
{
    return (struct token){
        .type = type, .text = start, .size = (size_t)(scanner->at - start), .line = scanner->line};
}

static struct token error(const struct scanner *scanner, const char *message)
{
    return (struct token){
        .type = TOKEN_ERROR, .text = message, .size = strlen(message), .line = scanner->line};
}

static struct token string(struct scanner *scanner, const char *start)
{
    for (; scanner->at < scanner->end; scanner->at++) {
        if (*scanner->at == '"') {
            scanner->at++;
            return token(scanner, TOKEN_STRING, start);
        }
        scanner->line += *scanner->at == '\n';
    }
    return error(scanner, "Unterminated string.");
}

static struct token number(struct scanner *scanner, const char *start)
{
    while (is_digit(peek(scanner, 0)))
        scanner->at++;
    if (peek(scanner, 0) == '.' && is_digit(peek(scanner, 1))) {
        scanner->at++;
        while (is_digit(peek(scanner, 0)))
            scanner->at++;
    }
    return token(scanner, TOKEN_NUMBER, start);
}

static struct token name(struct scanner *scanner, const char *start)
{
    while (is_name(peek(scanner, 0)))
        scanner->at++;
    struct token result = token(scanner, TOKEN_NAME, start);
    for (enum token_type type = TOKEN_AND; type < TOKEN_TYPES; type++)
        if (keywords[type][0] == *start && strlen(keywords[type]) == result.size &&
            memcmp(keywords[type], start, result.size) == 0)
            result.type = type;
    return result;
}

struct token scanner_next(struct scanner *scanner)
{
    skip_blanks(scanner);
    const char *start = scanner->at;
    if (start == scanner->end)
        return token(scanner, TOKEN_END, start);
    char c = *scanner->at++;
    if (c == '"')
        return string(scanner, start);
    if (is_digit(c))
        return number(scanner, start);
    if (is_name(c))
        return name(scanner, start);
    enum token_type type = single_tokens[(unsigned char)c];
    if (type == TOKEN_END)
        return error(scanner, "Unexpected character.");
    if (equal_tokens[type] != TOKEN_END && peek(scanner, 0) == '=') {
        scanner->at++;
        type = equal_tokens[type];
    }
    return token(scanner, type, start);
}
