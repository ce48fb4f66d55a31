/*
 * ic/batch.h - changing many inline caches, without a dependency on runtimes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef IC_BATCH_H
#define IC_BATCH_H

#include "site/site.h"

#include <cairn/ic.h>

enum cairn_status ic_batch_create(struct cache_set *set, cairn_ic_batch **batch,
                                  struct cairn_error *error);

/* Implement cairn_runtime_remove_ic_key and cairn_module_reset_ics. */
enum cairn_status ic_set_remove_key(struct cache_set *set, uint64_t key,
                                    enum cairn_strength strength, size_t *count,
                                    struct cairn_error *error);
enum cairn_status ic_reset_sites(struct site_table *sites, enum cairn_strength strength,
                                 size_t *count, struct cairn_error *error);

#endif
