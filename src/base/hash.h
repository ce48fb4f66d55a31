/*
 * base/hash.h - hashing of numbers from input, with a key that the input cannot know.
 *
 * Each table has its own key, from random bytes of the process and the time. For any two
 * different numbers, the probability that the upper 32 bits of hash_u64 are the same is 2^-32
 * (Dietzfelbinger 1996, "Universal hashing and k-wise independent random variables via integer
 * arithmetic without primes"). So no input can be constructed that puts many numbers into one
 * bucket of a table, and lookups take expected O(1) time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef unsigned __int128 hash_wide;

/* The multiplier and the addend, of 128 bits each. */
struct hash_key {
    uint64_t multiplier_low;
    uint64_t multiplier_high;
    uint64_t added_low;
    uint64_t added_high;
};

/* Returns a random key. Async-signal-safe. */
struct hash_key hash_key_create(void);

/* Returns the upper 64 of the 128 bits of multiplier × number + addend. */
static inline uint64_t hash_u64(const struct hash_key *key, uint64_t number)
{
    hash_wide low = (hash_wide)key->multiplier_low * number + key->added_low;
    return (uint64_t)(low >> 64) + key->multiplier_high * number + key->added_high;
}

/* Returns the hash of `size` bytes, a multiple of 4. */
static inline uint64_t hash_words(const struct hash_key *key, const void *words, size_t size)
{
    uint64_t hash = size;
    for (size_t at = 0; at < size; at += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, (const uint8_t *)words + at, sizeof word);
        hash = hash_u64(key, hash ^ word);
    }
    return hash;
}

/* Returns the hash of text of any length. */
static inline uint64_t hash_text(const struct hash_key *key, const char *text, size_t length)
{
    size_t whole = length & ~(size_t)3;
    uint32_t rest = 0;
    memcpy(&rest, text + whole, length - whole);
    return hash_u64(key, hash_words(key, text, whole) ^ rest ^ (uint64_t)length << 32);
}

#endif
