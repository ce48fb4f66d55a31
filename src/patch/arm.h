/*
 * patch/arm.h - giving one site the form in which it can be patched live.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_ARM_H
#define PATCH_ARM_H

#include "patch/site.h"

/* These write to the region at its run-time address, and end with a site that is live or says why
 * it is not. MEMORY, FULL, SYSTEM. */
enum cairn_status arm_patchpoint(cairn_site *site, struct cairn_error *error);
enum cairn_status arm_shadow(cairn_site *site, struct cairn_error *error);
enum cairn_status arm_statepoint(cairn_site *site, struct cairn_error *error);

/* Once all sites are armed: notes the patch word of number `index` and puts its first branch there.
 */
void arm_bind(struct site_table *sites, uint32_t index);

/* Keeps the sentence as the site's reason. CAIRN_OK, or MEMORY. */
enum cairn_status site_refuse(cairn_site *site, struct cairn_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
