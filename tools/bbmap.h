/*
 * tools/bbmap.h - what the parts of `cairn bbmap` share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_BBMAP_H
#define TOOLS_BBMAP_H

#include "tools/json.h"
#include "tools/output.h"

#include <cairn/bbmap.h>

/* `name` is the function's; NULL where it is not known. */
void write_bbmap_json(struct json *json, const struct cairn_bbmap_function *function,
                      const char *name);
void write_bbmap_text(struct output *output, const struct cairn_bbmap_function *function,
                      const char *name);

#endif
