/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

/* Fills in a key if the system has no random bytes, or none yet. The key is made of values that the
 * author of a file does not know either. */
static void fill_without_system(struct hash_key *key)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t state = (uint64_t)(uintptr_t)key ^ (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec;
    uint64_t words[sizeof *key / sizeof(uint64_t)] = {0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        /* splitmix64 */
        state += UINT64_C(0x9E3779B97F4A7C15);
        uint64_t mixed = (state ^ state >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
        words[i] = mixed ^ mixed >> 31;
    }
    memcpy(key, words, sizeof *key);
}

struct hash_key hash_key_create(void)
{
    struct hash_key key;
    int saved_errno = errno;
    if (getrandom(&key, sizeof key, GRND_NONBLOCK) != sizeof key)
        fill_without_system(&key);
    errno = saved_errno;
    return key;
}
