/*
 * Keys from one generator, which the system seeds: a call of the system for each table would take
 * longer than filling a small one.
 *
 * Process-wide state: the generator's. A forked child continues with its parent's.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/hash.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/random.h>
#include <time.h>

/* splitmix64 (Steele, Lea and Flood 2014): the state advances by a constant. */
enum { KEY_WORDS = sizeof(struct hash_key) / sizeof(uint64_t) };
static const uint64_t step = UINT64_C(0x9E3779B97F4A7C15);

static uint64_t mix(uint64_t state)
{
    uint64_t mixed = (state ^ state >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

/* Sets the seed. Returns false if the system has no random bytes, or none yet: then the seed is
 * one that is not known to the author of a file either. */
static bool find_seed(uint64_t *seed)
{
    struct timespec now = {0};
    if (getrandom(seed, sizeof *seed, GRND_NONBLOCK) == sizeof *seed)
        return true;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *seed = (uint64_t)(uintptr_t)&now ^ (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec;
    return false;
}

struct hash_key hash_key_create(void)
{
    static uint64_t state; /* 0 if it has no seed yet */
    uint64_t words[KEY_WORDS];
    struct hash_key key;
    uint64_t none = 0;
    uint64_t seed;
    int saved_errno = errno;
    bool is_seeded = __atomic_load_n(&state, __ATOMIC_RELAXED) != 0;
    if (!is_seeded && find_seed(&seed)) {
        __atomic_compare_exchange_n(&state, &none, seed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        is_seeded = true;
    }
    if (is_seeded)
        seed = __atomic_fetch_add(&state, KEY_WORDS * step, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < KEY_WORDS; i++)
        words[i] = mix(seed + (i + 1) * step);
    memcpy(&key, words, sizeof key);
    errno = saved_errno;
    return key;
}
