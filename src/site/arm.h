/*
 * site/arm.h - rewriting a site into the form in which it can be patched live.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_ARM_H
#define SITE_ARM_H

#include "site/site.h"

/* Arm a site of each kind. They write to the region at its run-time address. Afterwards the site is
 * live, or has a reason why it is not. Errors: MEMORY, FULL, SYSTEM. */
enum cairn_status arm_patchpoint(cairn_site *site, const struct cairn_declaration *declaration,
                                 struct cairn_error *error);
enum cairn_status arm_shadow(cairn_site *site, struct cairn_error *error);
enum cairn_status arm_statepoint(cairn_site *site, struct cairn_error *error);

/* Notes, for two sites with adjacent addresses, whether one of them reaches into the other's patch
 * word. All sites must be armed. */
void arm_note_neighbours(cairn_site *lower, cairn_site *upper);

/* Notes the bytes of the site's patch word outside the instruction. All neighbours must be noted.
 */
void arm_bind(cairn_site *site);

/* Keeps the message as the site's reason. CAIRN_OK, or MEMORY. */
enum cairn_status site_refuse(cairn_site *site, struct cairn_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
