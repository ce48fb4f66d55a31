/*
 * Keeps threads out of LLVM while the process ends.
 *
 * Either a thread that enters sees `is_ending`, or the handler sees the thread in `inside`, because
 * each writes its own before it reads the other's (sequentially consistent).
 *
 * exit() runs handlers in the reverse order of their registration, and LLVM registers destructors
 * of some objects when it compiles something for the first time. A handler that was registered
 * earlier would run too late. So the handler is registered again: after the first jobs, and by
 * exit() itself, which calls destructors of the calling thread's thread-local objects before any
 * handler.
 *
 * This state is the process's, as LLVM's static objects are. A forked child has none of the
 * threads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/process_end.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { POLL_NS = 200 * 1000, REGISTRATIONS_MAX = 64 };

/* What C++ compilers call for thread-local objects. Not every C library has it. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-*) */
extern int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));
/* NOLINTEND(bugprone-reserved-identifier,cert-*) */

static _Atomic unsigned inside; /* threads in LLVM */
static _Atomic bool is_ending;
static _Thread_local bool is_inside;  /* this thread is one of them */
static _Thread_local bool is_watched; /* this thread has the destructor */

/* A callback of the host in this thread may have called exit(). */
static void wait_for_threads(void)
{
    const struct timespec a_while = {.tv_nsec = POLL_NS};
    atomic_store(&is_ending, true);
    while (atomic_load(&inside) > (is_inside ? 1U : 0U))
        nanosleep(&a_while, NULL);
}

static void forget_threads(void) { atomic_store(&inside, is_inside ? 1U : 0U); }

void process_end_register(void)
{
    static _Atomic unsigned count;
    unsigned number = atomic_load(&count);
    if (number < REGISTRATIONS_MAX)
        number = atomic_fetch_add(&count, 1);
    if (number == 0)
        (void)pthread_atfork(NULL, NULL, forget_threads);
    if (number < REGISTRATIONS_MAX)
        (void)atexit(wait_for_threads);
}

/* The thread calls exit(), or only ends. */
static void register_again(void *unused)
{
    (void)unused;
    process_end_register();
}

void process_end_watch_thread(void)
{
    if (is_watched || __cxa_thread_atexit_impl == NULL)
        return;
    is_watched = true;
    (void)__cxa_thread_atexit_impl(register_again, NULL, &__dso_handle);
}

void process_end_enter(void)
{
    atomic_fetch_add(&inside, 1);
    is_inside = true;
    if (!atomic_load(&is_ending))
        return;
    process_end_leave();
    for (;;)
        pause();
}

void process_end_leave(void)
{
    is_inside = false;
    atomic_fetch_sub(&inside, 1);
}

bool process_is_ending(void) { return atomic_load(&is_ending); }
