/*
 * Registers compiled code with libunwind (https://www.nongnu.org/libunwind), which does not see the
 * tables that are registered with the system's unwinder. The tables that MCJIT registers there are
 * registered with libunwind, too.
 *
 * A program that links this file has its own __register_frame, which MCJIT finds first.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_LIBUNWIND_SUPPORT_H
#define TESTS_LIBUNWIND_SUPPORT_H

#include <stdbool.h>

/* Registers the unwind tables that MCJIT has registered since the last call with libunwind. Returns
 * false if it has registered nothing. The engine that owns the tables must stay alive. */
bool libunwind_register(void);

/* Removes all tables from libunwind. */
void libunwind_forget(void);

#endif
