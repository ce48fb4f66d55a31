/*
 * The scanner: source text to tokens.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_SCANNER_H
#define LOX_SCANNER_H

#include <stddef.h>
#include <stdint.h>

/* Those from AND on are keywords. The text of an ERROR is a message. */
enum token_type {
    TOKEN_END,
    TOKEN_ERROR,
    TOKEN_NAME,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_LEFT_PAREN,
    TOKEN_RIGHT_PAREN,
    TOKEN_LEFT_BRACE,
    TOKEN_RIGHT_BRACE,
    TOKEN_COMMA,
    TOKEN_DOT,
    TOKEN_MINUS,
    TOKEN_PLUS,
    TOKEN_SEMICOLON,
    TOKEN_SLASH,
    TOKEN_STAR,
    TOKEN_BANG,
    TOKEN_BANG_EQUAL,
    TOKEN_EQUAL,
    TOKEN_EQUAL_EQUAL,
    TOKEN_GREATER,
    TOKEN_GREATER_EQUAL,
    TOKEN_LESS,
    TOKEN_LESS_EQUAL,
    TOKEN_AND,
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
    enum token_type type;
    const char *text;
    size_t size;
    uint32_t line;
};

struct scanner {
    const char *at;
    const char *end;
    uint32_t line;
};

void scanner_init(struct scanner *scanner, const char *source, size_t size);
struct token scanner_next(struct scanner *scanner);

#endif
