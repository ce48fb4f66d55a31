/*
 * frame/own_code.h - code that Cairn has made itself, in code memory.
 *
 * Such code is a module of its own, without records, and what describes it lies in the module's
 * read-only data: so both are protected, retired and given back as other code is.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_OWN_CODE_H
#define FRAME_OWN_CODE_H

#include <cairn/module.h>
#include <cairn/runtime.h>
#include <cairn/status.h>

/* Allocates what the module consists of from the loader, and writes it. */
typedef enum cairn_status own_code_filler(cairn_loader *loader, void *user,
                                          struct cairn_error *error);

/* A published module that `fill` has filled. On failure there is none. */
enum cairn_status own_code_load(cairn_runtime *runtime, const char *name, own_code_filler *fill,
                                void *user, struct cairn_error *error);

/* Retires the module that `data` lies in. */
void own_code_retire(cairn_runtime *runtime, const void *data);

#endif
