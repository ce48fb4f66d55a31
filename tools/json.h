/*
 * tools/json.h - writing JSON (RFC 8259).
 *
 * The caller sees to it that keys stand in objects and that what is begun is ended; commas are
 * put in here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include "tools/output.h"

#include <stdbool.h>
#include <stdint.h>

struct json {
    struct output *output;
    bool needs_comma; /* before the next value of the innermost array or object */
};

/* The largest integer that a double holds together with all below it. */
#define JSON_NUMBER_MAX ((UINT64_C(1) << 53) - 1)

void json_begin_array(struct json *json);
void json_end_array(struct json *json);
void json_begin_object(struct json *json);
void json_end_object(struct json *json);
void json_key(struct json *json, const char *key);
/* Begins a new line before the next value. */
void json_line(struct json *json, unsigned indentation);

void json_null(struct json *json);
void json_boolean(struct json *json, bool value);
/* From 0 to 1, with six decimals. */
void json_fraction(struct json *json, double value);
void json_signed(struct json *json, int32_t value);
/* A number up to JSON_NUMBER_MAX, above that a string of decimal digits. */
void json_unsigned(struct json *json, uint64_t value);
/* Bytes that are not UTF-8 become U+FFFD; control characters, of which a terminal obeys some, are
 * escaped. Cut as output_name does it. */
void json_string(struct json *json, const char *text);

#endif
