/*
 * ic/report.h - what the inline caches of a runtime do.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef IC_REPORT_H
#define IC_REPORT_H

#include "ic/cache.h"

/* Implement cairn_runtime_visit_ics and cairn_runtime_format_ics. */
void ic_set_visit(struct cache_set *set, cairn_ic_visitor *visit, void *user);
size_t ic_set_format(struct cache_set *set, char *text, size_t size);

#endif
