/*
 * site/batch.h - creating a batch, without a dependency on runtimes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_BATCH_H
#define SITE_BATCH_H

#include "base/memory.h"
#include "code/space.h"

#include <cairn/patch.h>

enum cairn_status batch_create(const struct cairn_allocator *allocator, struct code_space *space,
                               cairn_batch **batch, struct cairn_error *error);

#endif
