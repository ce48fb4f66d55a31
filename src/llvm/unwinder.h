/*
 * llvm/unwinder.h - the system's unwinder, with which RuntimeDyld registers unwind tables.
 *
 * LLVM deregisters a table before it destroys the memory manager of the table's object. But if
 * linking the object fails after the registration, ORC destroys the memory manager without
 * deregistering, up to LLVM 22 (llvm/lib/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.cpp,
 * onObjEmit). The unwinder would then read memory that is freed or reused.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_UNWINDER_H
#define LLVM_UNWINDER_H

#include <stddef.h>

/* Deregisters an .eh_frame section of `size` bytes if it is registered. The section must be as it
 * was when it was registered. NULL is allowed. */
void unwinder_forget(void *table, size_t size);

#endif
