/*
 * fuzz/fuzz.h - what the fuzz targets share: taking an input apart, and saying what does not hold.
 *
 * A target is one file with LLVMFuzzerTestOneInput. It is linked with an engine, libFuzzer or
 * another one, or with fuzz/replay.c, which runs it on files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <cairn/section.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process if the condition does not hold: engines keep the input. */
#define require(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

/* The next byte; 0 at the end. */
static inline uint8_t fuzz_u8(struct fuzz_input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

/* The next number of `size` bytes, with zeros after the end. */
static inline uint64_t fuzz_number(struct fuzz_input *input, unsigned size)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < size; i++)
        number |= (uint64_t)fuzz_u8(input) << 8 * i;
    return number;
}

/* All bytes that are left. The byte order is the lowest bit of `flags`. */
static inline struct cairn_section fuzz_section(const struct fuzz_input *input, unsigned flags)
{
    return (struct cairn_section){input->at, input->left,
                                  (flags & 1) != 0 ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN};
}

/* A copy that is exactly as long as the bytes, so that sanitizers see what is read after their end.
 * To be freed. */
static inline void *fuzz_copy(const void *bytes, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);
    require(copy != NULL);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

#endif
