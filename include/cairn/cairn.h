/*
 * cairn/cairn.h - all of libcairn. (libcairn-llvm has cairn/llvm.h.)
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_CAIRN_H
#define CAIRN_CAIRN_H

#include <cairn/allocator.h>
#include <cairn/architecture.h>
#include <cairn/call.h>
#include <cairn/context.h>
#include <cairn/declaration.h>
#include <cairn/deopt.h>
#include <cairn/fault.h>
#include <cairn/fault_table.h>
#include <cairn/faultmap.h>
#include <cairn/frame.h>
#include <cairn/frame_state.h>
#include <cairn/ic.h>
#include <cairn/invalidation.h>
#include <cairn/liveout.h>
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
#define CAIRN_VERSION_MINOR 1
#define CAIRN_VERSION_PATCH 0
#define CAIRN_VERSION_STRING "0.1.0"

/** The version of the library that is running, such as "0.1.0"; static. */
CAIRN_API const char *cairn_version(void);

#ifdef __cplusplus
}
#endif
#endif
