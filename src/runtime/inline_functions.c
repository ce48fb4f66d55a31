/*
 * The functions that public headers define inline, for languages that call C without its headers.
 *
 * SPDX-License-Identifier: MIT
 */
#define CAIRN_INLINE CAIRN_API

#include <cairn/runtime.h>
#include <cairn/section.h>
#include <cairn/stackmap.h>
#include <cairn/type.h>
