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

/* Once all sites are armed, of any two that are neighbours by address: whether one reaches into the
 * other's patch word. */
void arm_note_neighbours(cairn_site *lower, cairn_site *upper);

/* Then, for each site: notes what is in its patch word besides the instruction. */
void arm_bind(cairn_site *site);

/* Keeps the sentence as the site's reason. CAIRN_OK, or MEMORY. */
enum cairn_status site_refuse(cairn_site *site, struct cairn_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
