/*
 * cairn/cairn.h - all headers of libcairn. (libcairn-llvm has cairn/llvm.h.)
 *
 * HANDLES. What …_create, …_open or …_attach returns ends with …_destroy. The host must not use the
 * handle after that call. The memory is freed when nobody can be in it any more: at once, if only
 * the caller has used it (tables, files, loaders); at the end of a grace period (cairn/runtime.h),
 * if threads may execute it (exits, closures, entries, caches); with its last user, if other
 * handles refer to it (runtimes, logs). A module has no owner: it is retired (cairn_module_retire),
 * and is valid until a grace period has ended.
 *
 * There is one idiom for what can be iterated:
 *
 *   - The items of a table have numbers from 0. One function returns item number `index`, and false
 *     after the last one:
 *
 *         for (uint32_t i = 0; cairn_fault_table_entry(table, i, &entry); i++)
 *
 *   - The items of a section have different sizes. An item is its own cursor: if it is all zero, it
 *     is before the first one, and the function …_next advances it:
 *
 *         struct cairn_stackmap_record record = {0};
 *         while (cairn_stackmap_next(&map, &record))
 *
 *   - What is checked while it is read has a cursor `size_t *offset`, and its function returns a
 *     status:
 *
 *         while (offset < section.size)
 *             status = cairn_stackmap_read(&section, &offset, &map, &error);
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_CAIRN_H
#define CAIRN_CAIRN_H

/* The headers, in the order in which a VM needs them. */
/* clang-format off */

/* Loading code. */
#include <cairn/status.h>
#include <cairn/runtime.h>
#include <cairn/load.h>
#include <cairn/module.h>
#include <cairn/declaration.h>

/* Changing it, leaving it and entering it. */
#include <cairn/patch.h>
#include <cairn/exit.h>
#include <cairn/frame.h>
#include <cairn/frame_state.h>
#include <cairn/value.h>
#include <cairn/type.h>
#include <cairn/call.h>
#include <cairn/context.h>
#include <cairn/ic.h>
#include <cairn/entry.h>
#include <cairn/invalidation.h>
#include <cairn/assumption.h>

/* Walking, collecting, and handling faults. */
#include <cairn/walk.h>
#include <cairn/roots.h>
#include <cairn/fault.h>

/* Watching. */
#include <cairn/log.h>
#include <cairn/debug.h>

/* What LLVM has recorded. */
#include <cairn/table.h>
#include <cairn/stackmap.h>
#include <cairn/statepoint.h>
#include <cairn/fault_table.h>
#include <cairn/faultmap.h>
#include <cairn/pc_table.h>
#include <cairn/pcsection.h>
#include <cairn/section.h>

/* The rest. */
#include <cairn/allocator.h>
#include <cairn/architecture.h>
/* clang-format on */

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_VERSION_MAJOR 0
#define CAIRN_VERSION_MINOR 9
#define CAIRN_VERSION_PATCH 0
#define CAIRN_VERSION_STRING "0.9.0"

/** Returns the version of the library that is running, such as "0.9.0"; a static string. */
CAIRN_API const char *cairn_version(void);

#ifdef __cplusplus
}
#endif
#endif
