/*
 * The modes of code memory that are tested.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_MODE_SUPPORT_H
#define TESTS_MODE_SUPPORT_H

#include <cairn/runtime.h>

/* The modes, for tests that loop over them from `site_first_mode()` to SITE_MODES. Under an
 * emulator (CAIRN_TEST_EMULATED is set), modes that the runtime does not have are left out, and the
 * runtime's reason is printed. */
extern const enum cairn_code_mode site_modes[2];
enum { SITE_MODES = 2 };
int site_first_mode(void);

#endif
