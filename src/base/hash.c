/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

struct hash_key hash_key_create(void)
{
    struct hash_key key;
    uint64_t words[sizeof key / sizeof(uint64_t)];
    int saved_errno = errno;
    if (getrandom(words, sizeof words, GRND_NONBLOCK) != sizeof words) {
        /* The system has no random bytes, or none yet. These values are not known to the author of
         * a file either. */
        struct timespec now = {0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t state =
            (uint64_t)(uintptr_t)&key ^ (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            /* splitmix64 */
            state += UINT64_C(0x9E3779B97F4A7C15);
            uint64_t mixed = (state ^ state >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
            mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
            words[i] = mixed ^ mixed >> 31;
        }
    }
    memcpy(&key, words, sizeof key);
    errno = saved_errno;
    return key;
}
