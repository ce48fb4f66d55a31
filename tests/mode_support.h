/*
 * The modes of code memory that there are to be tested.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_MODE_SUPPORT_H
#define TESTS_MODE_SUPPORT_H

#include <cairn/runtime.h>

/* The modes, for tests that loop over them from `site_first_mode()` to SITE_MODES: all of them, or,
 * under an emulator (CAIRN_TEST_EMULATED is set), those that the runtime says it has. What is left
 * out is printed, with the runtime's reason. */
extern const enum cairn_code_mode site_modes[2];
enum { SITE_MODES = 2 };
int site_first_mode(void);

#endif
