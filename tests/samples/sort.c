/*
 * Sorts a million random numbers, five times. README.md shows its profile and the picture of its
 * hottest function.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdint.h>
#include <stdio.h>

enum { COUNT = 1000000, ROUNDS = 5 };

static uint32_t numbers[COUNT];

static void fill(uint32_t state)
{
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525 + 1013904223;
        numbers[i] = state >> 8;
    }
}

static void sort(uint32_t *first, uint32_t *last)
{
    while (first < last) {
        uint32_t pivot = first[(last - first) / 2], *left = first, *right = last;
        while (left <= right) {
            while (*left < pivot)
                left++;
            while (*right > pivot)
                right--;
            if (left > right)
                break;
            uint32_t swapped = *left;
            *left++ = *right;
            *right-- = swapped;
        }
        sort(first, right);
        first = left;
    }
}

int main(void)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        fill(round);
        sort(numbers, numbers + COUNT - 1);
    }
    printf("the median is %u\n", (unsigned)numbers[COUNT / 2]);
    return 0;
}
