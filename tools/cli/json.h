/*
 * tools/cli/json.h - writing JSON (RFC 8259).
 *
 * The caller must write keys in objects only, and must end what it begins. Commas are written here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CLI_JSON_H
#define TOOLS_CLI_JSON_H

#include "tools/cli/output.h"

#include <stdbool.h>
#include <stdint.h>

struct json {
    struct output *output;
    bool needs_comma; /* whether a comma must precede the next value of the innermost array or
                         object */
};

/* The largest n for which a double holds every integer from 0 to n. */
#define JSON_NUMBER_MAX ((UINT64_C(1) << 53) - 1)

/* Each of these writes the key before, unless it is NULL. */
void json_begin_array(struct json *json, const char *key);
void json_begin_object(struct json *json, const char *key);
void json_end_array(struct json *json);
void json_end_object(struct json *json);
void json_key(struct json *json, const char *key);
/* Begins a new line before the next value. */
void json_line(struct json *json, unsigned indentation);

/* Writes keys with their values, as in "address %ju symbol %s". The conversions are %u, %ju and %zu
 * as in json_unsigned; %i for an int; %d for a bool, which becomes true or false; %s as in
 * json_string; and %f, with six decimals. */
void json_fields(struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes a key with a string, or with null if it is NULL. */
void json_name(struct json *json, const char *key, const char *name);
/* Writes a key with a number, or with null if it is not known. */
void json_optional(struct json *json, const char *key, bool is_known, uint64_t value);
/* Writes a number; one above JSON_NUMBER_MAX as a string of decimal digits. */
void json_unsigned(struct json *json, uint64_t value);
/* Writes a string, or null if it is NULL. Bytes that are not UTF-8 become U+FFFD. Control
 * characters are escaped, because terminals interpret some of them. Long strings are cut like names
 * in output_name. */
void json_string(struct json *json, const char *text);

#endif
