/*
 * tools/words.h - what readable forms say in the same words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_WORDS_H
#define TOOLS_WORDS_H

#include "tools/json.h"
#include "tools/output.h"

#include <stdint.h>

/* "1 record", "2 records". */
void write_count(struct output *output, uint64_t count, const char *one, const char *many);

/* "frame of 24 bytes", "frame of dynamic size". */
void write_frame(struct output *output, uint64_t stack_size);

/* `name`, or where that is NULL "(no symbol)". */
void write_name(struct output *output, const char *name);

/* "name + 0x12". */
void write_name_offset(struct output *output, const char *name, uint64_t offset);

/* A string, or null. */
void write_json_name(struct json *json, const char *name);

#endif
