/*
 * tools/bbmap.h - declarations that the files of `cairn bbmap` share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_BBMAP_H
#define TOOLS_BBMAP_H

#include "tools/json.h"
#include "tools/output.h"

#include <cairn/bbmap.h>

/* Writes a function's map. `name` is the function's name; NULL if it is unknown. */
void write_bbmap_json(struct json *json, const struct cairn_bbmap_function *function,
                      const char *name);
void write_bbmap_text(struct output *output, const struct cairn_bbmap_function *function,
                      const char *name);

#endif
