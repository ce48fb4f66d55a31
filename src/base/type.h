/* base/type.h - comparing types. SPDX-License-Identifier: MIT */
#ifndef BASE_TYPE_H
#define BASE_TYPE_H

#include <cairn/type.h>
#include <stdbool.h>

/* Whether two types are equal. Address spaces are not compared. */
static inline bool type_equal(struct cairn_type left, struct cairn_type right)
{
    return left.kind == right.kind && left.bits == right.bits &&
           left.element_count == right.element_count;
}

#endif
