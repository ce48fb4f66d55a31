/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CROSS_EXECUTE_CONTEXT_H
#define TESTS_CROSS_EXECUTE_CONTEXT_H

#include <stdint.h>

/* Goes through exits, which are written to `code` and have their data at `data`. Returns what was
 * wrong, or NULL; adds to `checks`. */
const char *execute_contexts(uint8_t *code, void *data, unsigned long *checks);

#endif
