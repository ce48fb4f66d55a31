/*
 * Support for the random tests of sites that does not depend on the machine's instructions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_SITE_RANDOM_H
#define TESTS_SITE_RANDOM_H

#include <cairn/module.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the `size` bytes are unchanged, except for those from `begin` up to `end`. */
bool site_is_same_but_for(const uint8_t *code, const uint8_t *before, uint64_t size, uint64_t begin,
                          uint64_t end);

/* Performs a random operation on the site. Only the site's own bytes of the code may change. */
void site_disturb(uint64_t *random, cairn_site *site, const uint8_t *code, size_t code_size);

/* Restores all sites of the module, in quiescence. Returns how many are live. */
uint32_t site_restore_all(cairn_module *module);

#endif
