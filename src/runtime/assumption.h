/*
 * runtime/assumption.h - assumptions, as the modules of their sites see them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_ASSUMPTION_H
#define RUNTIME_ASSUMPTION_H

#include "runtime/runtime.h"
#include "site/site.h"

/* Removes the sites of a module that is being freed from their assumptions. `sites` may be NULL.
 * Takes O(registrations of these sites) time. */
void assumption_forget(cairn_runtime *runtime, struct site_table *sites);

#endif
