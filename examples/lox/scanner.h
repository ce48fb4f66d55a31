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
#define TOKENS(X)                                                                                  \
    X(END), X(ERROR), X(NAME), X(NUMBER), X(STRING), X(LEFT_PAREN), X(RIGHT_PAREN), X(LEFT_BRACE), \
        X(RIGHT_BRACE), X(COMMA), X(DOT), X(MINUS), X(PLUS), X(SEMICOLON), X(SLASH), X(STAR),      \
        X(BANG), X(BANG_EQUAL), X(EQUAL), X(EQUAL_EQUAL), X(GREATER), X(GREATER_EQUAL), X(LESS),   \
        X(LESS_EQUAL), X(AND), X(CLASS), X(ELSE), X(FALSE), X(FOR), X(FUN), X(IF), X(NIL), X(OR),  \
        X(PRINT), X(RETURN), X(SUPER), X(THIS), X(TRUE), X(VAR), X(WHILE), X(TYPES)

#define TOKEN(name) TOKEN_##name
enum token_type { TOKENS(TOKEN) };
#undef TOKEN

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
