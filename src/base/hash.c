/*
 * Keys from the random bytes that the kernel gives each process, and from the time: a call of the
 * system for each table would take longer than filling a small one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/hash.h"

#include <errno.h>
#include <sys/auxv.h>
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

struct hash_key hash_key_create(void)
{
    const void *process = (const void *)(uintptr_t)getauxval(AT_RANDOM);
    uint64_t random[2] = {0}; /* AT_RANDOM has 16 bytes */
    uint64_t words[KEY_WORDS] = {0};
    struct timespec now = {0};
    struct hash_key key;
    int saved_errno = errno;
    if (process != NULL)
        memcpy(random, process, sizeof random);
    clock_gettime(CLOCK_MONOTONIC, &now);
    /* Tables that are created at the same time have different addresses. */
    uint64_t table = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec ^ (uintptr_t)&key;
    uint64_t seed = mix(random[0]) ^ mix(mix(random[1]) + table);
    for (unsigned i = 0; i < KEY_WORDS; i++)
        words[i] = mix(seed + (i + 1) * step);
    memcpy(&key, words, sizeof key);
    errno = saved_errno;
    return key;
}
