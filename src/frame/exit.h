/*
 * frame/exit.h - what an exit has besides its stub.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_EXIT_H
#define FRAME_EXIT_H

#include <cairn/deopt.h>

/* Where enter_write_code has put its code. */
uint64_t exit_entry_code(const cairn_exit *exit);

#endif
