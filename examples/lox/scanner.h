/*
 * The scanner: source text to tokens.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_SCANNER_H
#define LOX_SCANNER_H

#include <stddef.h>
#include <stdint.h>

/* The type of a token of one character is that character. */
enum {
    TOKEN_END,
    TOKEN_ERROR = 128, /* its text is a message */
    TOKEN_NAME,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_BANG_EQUAL,
    TOKEN_EQUAL_EQUAL,
    TOKEN_GREATER_EQUAL,
    TOKEN_LESS_EQUAL,
    TOKEN_AND, /* keywords from here on; ORDER KEYWORDS in scanner.c */
    TOKEN_CLASS,
    TOKEN_ELSE,
    TOKEN_FALSE,
    TOKEN_FOR,
    TOKEN_FUN,
    TOKEN_IF,
    TOKEN_NIL,
    TOKEN_OR,
    TOKEN_PRINT,
    TOKEN_RETURN,
    TOKEN_SUPER,
    TOKEN_THIS,
    TOKEN_TRUE,
    TOKEN_VAR,
    TOKEN_WHILE,
    TOKEN_TYPES
};

/* The text is part of the source. */
struct token {
    int type;
    const char *text;
    size_t size;
    uint32_t line; /* of its end */
};

/* At the beginning, what is to be read, and line 1. */
struct scanner {
    const char *at;
    const char *end;
    uint32_t line;
};

struct token scanner_next(struct scanner *scanner);

#endif
