/*
 * tools/heat.h - a scale of colours for heat, from pale yellow to dark brown.
 *
 * It gets darker all the way, so that it is read the same by those who do not tell colours apart,
 * and in print.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_HEAT_H
#define TOOLS_HEAT_H

#include <stdbool.h>
#include <stdint.h>

struct colour {
    uint8_t red;
    uint8_t green;
    uint8_t blue;
};

/* Of what is cold: grey, lighter than any heat. */
#define HEAT_NONE ((struct colour){0xf5, 0xf5, 0xf5})

/* For `value` of at most `greatest`, which is not 0; HEAT_NONE for 0. */
struct colour heat_colour(uint64_t value, uint64_t greatest);

/* Whether white text is easier to read on it than black. */
bool heat_is_dark(struct colour colour);

#endif
