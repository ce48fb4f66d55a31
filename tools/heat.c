/*
 * The colours are ColorBrewer's YlOrBr (Cynthia Brewer, Mark Harrower: ColorBrewer.org), except the
 * palest one. The scale is designed for people with impaired colour vision.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/heat.h"

#include <stddef.h>

enum { STEPS = 1024 };

static const struct colour stops[] = {
    {0xff, 0xf7, 0xbc}, {0xfe, 0xe3, 0x91}, {0xfe, 0xc4, 0x4f}, {0xfe, 0x99, 0x29},
    {0xec, 0x70, 0x14}, {0xcc, 0x4c, 0x02}, {0x99, 0x34, 0x04}, {0x66, 0x25, 0x06},
};
enum { INTERVALS = sizeof stops / sizeof *stops - 1 };

static uint8_t mix(uint8_t from, uint8_t to, uint32_t part)
{
    return (uint8_t)((from * (STEPS - part) + to * part + STEPS / 2) / STEPS);
}

struct colour heat_colour(uint64_t value, uint64_t greatest)
{
    if (value == 0)
        return HEAT_NONE;
    double place = (double)value / (double)greatest * (double)INTERVALS;
    size_t interval = place < (double)INTERVALS ? (size_t)place : INTERVALS - 1;
    uint32_t part = (uint32_t)((place - (double)interval) * (double)STEPS);
    const struct colour *from = &stops[interval];
    const struct colour *to = &stops[interval + 1];
    return (struct colour){.red = mix(from->red, to->red, part),
                           .green = mix(from->green, to->green, part),
                           .blue = mix(from->blue, to->blue, part)};
}

bool heat_is_dark(struct colour colour)
{
    enum { MIDDLE = 130000 };
    return 299 * colour.red + 587 * colour.green + 114 * colour.blue < MIDDLE;
}
