/*
 * value/value.h - copying integers of different sizes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VALUE_VALUE_H
#define VALUE_VALUE_H

#include <cairn/value.h>

/* Copies the low bytes of an integer, as many as both sides have. Other bytes of `to` stay
 * unchanged. */
void value_copy_low(void *to, size_t to_size, const void *from, size_t from_size);

#endif
