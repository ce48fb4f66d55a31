/*
 * tools/lookup/function_sections.h - reading the two sections that compilers write about functions
 * in addition to maps: .stack_sizes, and the coverage points of __sancov_pcs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LOOKUP_FUNCTION_SECTIONS_H
#define TOOLS_LOOKUP_FUNCTION_SECTIONS_H

#include "tools/read/layout.h"

#include <cairn/sancov.h>
#include <cairn/stack_sizes.h>

/* Reads the stack sizes of all sections .stack_sizes into `list`, sorted by address: items are
 * struct cairn_stack_size, with addresses of the layout. False if a section is invalid, after an
 * error message; the list then has what precedes the invalid parts. The caller releases the items
 * in either case. */
bool stack_sizes_read(const struct input *input, const struct layout *layout, struct list *list);

/* Reads all coverage points, as stack_sizes_read: items are struct cairn_sancov_point. */
bool coverage_read(const struct input *input, const struct layout *layout, struct list *list);

#endif
