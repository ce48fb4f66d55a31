/*
 * runtime/fingerprint.h - whether this machine can execute an object's code.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_FINGERPRINT_H
#define RUNTIME_FINGERPRINT_H

#include "arch/arch.h"
#include "format/manifest.h"

#include <cairn/load.h>

/* Checks that the target's architecture is the host's, and that the CPU has the features. If it
 * has not, calls `note_features` of the options. Errors: UNSUPPORTED; both sides are named. */
CAIRN_MUST_CHECK enum cairn_status fingerprint_check(const struct manifest_target *target,
                                                     const struct cairn_load_options *options,
                                                     struct cairn_error *error);

/* The same for a host with this table that reports these words (arch/features.h). */
CAIRN_MUST_CHECK enum cairn_status fingerprint_compare(const struct manifest_target *target,
                                                       const struct cairn_arch *host,
                                                       const uint64_t *words,
                                                       const struct cairn_load_options *options,
                                                       struct cairn_error *error);

#endif
