/*
 * The scanner. The source may contain any bytes, zeros included; it ends at its size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scanner.h"

#include <stdbool.h>
#include <string.h>

/* ORDER KEYWORDS */
static const char *const keywords[] = {"and",  "class", "else", "false", "for",    "fun",
                                       "if",   "nil",   "or",   "print", "return", "super",
                                       "this", "true",  "var",  "while"};

_Static_assert(sizeof keywords / sizeof *keywords == TOKEN_TYPES - TOKEN_AND, "a name for each");

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
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

/* Returns a token from `start` to the current place. */
static struct token token(const struct scanner *scanner, int type, const char *start)
{
    return (struct token){type, start, (size_t)(scanner->at - start), scanner->line};
}

static struct token error(const struct scanner *scanner, const char *message)
{
    return (struct token){TOKEN_ERROR, message, strlen(message), scanner->line};
}

static struct token string(struct scanner *scanner, const char *start)
{
    while (scanner->at < scanner->end) {
        char c = *scanner->at++;
        if (c == '"')
            return token(scanner, TOKEN_STRING, start);
        scanner->line += c == '\n';
    }
    return error(scanner, "Unterminated string.");
}

static void skip_digits(struct scanner *scanner)
{
    while (is_digit(peek(scanner, 0)))
        scanner->at++;
}

static struct token number(struct scanner *scanner, const char *start)
{
    skip_digits(scanner);
    if (peek(scanner, 0) == '.' && is_digit(peek(scanner, 1))) {
        scanner->at++;
        skip_digits(scanner);
    }
    return token(scanner, TOKEN_NUMBER, start);
}

static struct token name(struct scanner *scanner, const char *start)
{
    while (is_name(peek(scanner, 0)))
        scanner->at++;
    struct token result = token(scanner, TOKEN_NAME, start);
    for (int i = 0; i < TOKEN_TYPES - TOKEN_AND; i++)
        if (keywords[i][0] == *start && strlen(keywords[i]) == result.size &&
            memcmp(keywords[i], start, result.size) == 0)
            result.type = TOKEN_AND + i;
    return result;
}

struct token scanner_next(struct scanner *scanner)
{
    /* Characters that are tokens. Those that are also tokens together with `=` come first, in the
     * order of these. */
    static const char characters[] = "!=><(){},.-+;/*";
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
    const char *found = memchr(characters, c, sizeof characters - 1);
    if (found == NULL)
        return error(scanner, "Unexpected character.");
    if (found - characters >= 4 || peek(scanner, 0) != '=')
        return token(scanner, c, start);
    scanner->at++;
    return token(scanner, TOKEN_BANG_EQUAL + (int)(found - characters), start);
}
