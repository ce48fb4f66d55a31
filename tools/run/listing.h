/*
 * tools/run/listing.h - the records and sites that `cairn run --sites` lists: of a loaded module,
 * and of an object that is not loaded.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_RUN_LISTING_H
#define TOOLS_RUN_LISTING_H

#include "tools/read/files.h"

#include <cairn/module.h>
#include <cairn/runtime.h>

/* Lists the records and sites of a module of the runtime. */
enum exit_status list_module(const cairn_runtime *runtime, const cairn_module *module,
                             struct output *output);

/* Lists the records of an object or linked file, and what is known about their sites. If it has a
 * manifest, the records are declared. */
enum exit_status list_object(cairn_object *object, const char *path, struct printer *printer);

/* Whether the object has a manifest. */
bool has_manifest(cairn_object *object);

#endif
