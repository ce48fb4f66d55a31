/*
 * cairn/cairn.h - all headers of libcairn. (libcairn-llvm has cairn/llvm.h.)
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

#include <cairn/allocator.h>
#include <cairn/architecture.h>
#include <cairn/assumption.h>
#include <cairn/call.h>
#include <cairn/context.h>
#include <cairn/debug.h>
#include <cairn/declaration.h>
#include <cairn/entry.h>
#include <cairn/exit.h>
#include <cairn/fault.h>
#include <cairn/fault_table.h>
#include <cairn/faultmap.h>
#include <cairn/frame.h>
#include <cairn/frame_state.h>
#include <cairn/ic.h>
#include <cairn/invalidation.h>
#include <cairn/load.h>
#include <cairn/log.h>
#include <cairn/module.h>
#include <cairn/patch.h>
#include <cairn/pc_table.h>
#include <cairn/pcsection.h>
#include <cairn/roots.h>
#include <cairn/runtime.h>
#include <cairn/section.h>
#include <cairn/stackmap.h>
#include <cairn/statepoint.h>
#include <cairn/status.h>
#include <cairn/table.h>
#include <cairn/type.h>
#include <cairn/value.h>
#include <cairn/walk.h>

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
