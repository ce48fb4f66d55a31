/*
 * cairn/cairn.h - all headers of libcairn, and its version. (libcairn-llvm has cairn/llvm.h.)
 *
 * Threads: every function is thread-safe and async-signal-safe.
 *
 * See cairn-conventions(7) (doc/conventions.md): errors, handles, and iteration.
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
#include <cairn/store.h>
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
