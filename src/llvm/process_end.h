/*
 * llvm/process_end.h - keeps threads out of LLVM while the process ends.
 *
 * exit() destroys LLVM's static objects while other threads go on. So a handler of atexit, which is
 * registered after LLVM has made its objects and therefore runs before they are destroyed, waits
 * until no thread is in LLVM, and lets none enter any more.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_PROCESS_END_H
#define LLVM_PROCESS_END_H

#include <stdbool.h>

/* Registers the handler. Called after LLVM has compiled something. */
void process_end_register(void);

/* Registers the handler when this thread calls exit(). Called by threads of the host. */
void process_end_watch_thread(void);

/* Surround what a thread of Cairn does in LLVM. When the process is ending, entering does not
 * return. */
void process_end_enter(void);
void process_end_leave(void);

/* Whether the process is ending, so that threads of Cairn cannot be waited for. */
bool process_is_ending(void);

#endif
