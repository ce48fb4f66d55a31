/*
 * tools/heat.h - a colour scale for heat, from pale yellow to dark brown.
 *
 * Lightness decreases all the way, so that the scale is readable in print and by people with
 * impaired colour vision.
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

/* The colour of blocks without samples: grey, lighter than any heat. */
#define HEAT_NONE ((struct colour){0xf5, 0xf5, 0xf5})

/* Returns the colour of `value`, which is at most `greatest`; HEAT_NONE for 0. `greatest` must not
 * be 0. */
struct colour heat_colour(uint64_t value, uint64_t greatest);

/* Whether white text is easier to read on this colour than black text. */
bool heat_is_dark(struct colour colour);

#endif
