/* Forks while threads are busy: limits on time, and what sanitizers cannot do in children. */

#ifndef CAIRN_TESTS_FORK_SUPPORT_H
#define CAIRN_TESTS_FORK_SUPPORT_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Whether the build's allocator cannot be used in the child of a process whose threads allocate:
 * GCC's sanitizers do not take their locks before a fork, so the child may wait for a lock that
 * nobody holds. Says so if it returns true. */
static inline bool fork_breaks_the_allocator(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("skipped: GCC's AddressSanitizer does not renew its own locks in children\n");
    return true;
#else
    return false;
#endif
}

/* How many children a test forks that forks `usual` ones natively. An emulator takes a second for
 * some. */
static inline int fork_rounds(int usual)
{
    return getenv("CAIRN_TEST_EMULATED") != NULL ? (usual + 3) / 4 : usual;
}

/* Ends the calling child by SIGALRM after `seconds`. Check's own handler of that signal, which the
 * child inherits, would end the test's whole process group. */
static inline void fork_limit_time(unsigned seconds)
{
    signal(SIGALRM, SIG_DFL);
    alarm(seconds);
}

#endif
