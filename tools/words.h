/*
 * tools/words.h - phrases that several text forms share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_WORDS_H
#define TOOLS_WORDS_H

#include "tools/json.h"
#include "tools/output.h"

#include <stdint.h>

/* Writes "1 record" or "2 records". */
void write_count(struct output *output, uint64_t count, const char *one, const char *many);

/* Writes "frame of 24 bytes" or "frame of dynamic size". */
void write_frame(struct output *output, uint64_t stack_size);

/* Writes `name`, or "(no symbol)" if it is NULL. */
void write_name(struct output *output, const char *name);

/* Writes "name + 0x12". */
void write_name_offset(struct output *output, const char *name, uint64_t offset);

/* Writes a string, or null if it is NULL. */
void write_json_name(struct json *json, const char *name);

#endif
