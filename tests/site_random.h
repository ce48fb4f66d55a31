/*
 * What the random tests of sites share, whatever the machine's instructions are.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_SITE_RANDOM_H
#define TESTS_SITE_RANDOM_H

#include <cairn/module.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the `size` bytes are as before, but for those from `begin` up to `end`. */
bool site_is_same_but_for(const uint8_t *code, const uint8_t *before, uint64_t size, uint64_t begin,
                          uint64_t end);

enum { SITE_ANYTHING_BYTES = 8 };

/* Does something to the site, writing `anything` to it perhaps; the bytes of the code that change
 * have to be its own. */
void site_disturb(uint64_t *random, cairn_site *site, const uint8_t *code, size_t code_size,
                  const uint8_t anything[SITE_ANYTHING_BYTES]);

/* Restores all sites of the module, quiescently. Returns how many are live. */
uint32_t site_restore_all(cairn_module *module);

#endif
