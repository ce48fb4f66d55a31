/*
 * llvm/heap.h - memory for what LLVM allocates in a thread.
 *
 * The C library extends the heap of a thread page by page: each takes a system call and a page
 * fault. A thread that compiles for the first time would spend a quarter of its time there.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_HEAP_H
#define LLVM_HEAP_H

/* Adds 2 MiB of free memory that is populated to the calling thread's heap. Returns what
 * heap_release gets when the thread compiles no more. It may be NULL. */
void *heap_populate(void);
void heap_release(void *last);

#endif
