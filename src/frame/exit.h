/*
 * frame/exit.h - the parts of an exit other than its stub.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_EXIT_H
#define FRAME_EXIT_H

#include <cairn/deopt.h>

/* Returns the address of the code that enter_write_code has written. */
uint64_t exit_entry_code(const cairn_exit *exit);

#endif
