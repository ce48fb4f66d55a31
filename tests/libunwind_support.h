/*
 * Compiled code for libunwind (https://www.nongnu.org/libunwind), which does not know what is told
 * to the system's unwinder: what MCJIT registers there is registered here too.
 *
 * A program that links this has a __register_frame of its own, which MCJIT finds first.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_LIBUNWIND_SUPPORT_H
#define TESTS_LIBUNWIND_SUPPORT_H

#include <stdbool.h>

/* Tells libunwind of the unwind tables that MCJIT has registered since the last call; false if
 * there are none. Their engine must stay. */
bool libunwind_register(void);

/* It forgets them all. */
void libunwind_forget(void);

#endif
