/*
 * ic/slow_path.h - what the handlers of an inline cache need: for threads that no case matched, and
 * for functions that cases call through a handler.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef IC_SLOW_PATH_H
#define IC_SLOW_PATH_H

#include "call/signature.h"
#include "ic/cache.h"

#include <cairn/call.h>

/* Invariant: `locations` are the places of the cache's operands. */
struct slow_path {
    cairn_runtime *runtime;
    struct cairn_record record;
    const struct cairn_declaration *declaration;
    /* The signature of the site's calls; NULL if there cannot be one. `refused` is the error with
     * which calls are refused, or OK. */
    cairn_signature *signature;
    struct cairn_error refused;
    struct cairn_location locations[CAIRN_IC_OPERANDS_MAX];
    /* For the light handler: offsets in a context of the operands and of the result. */
    uint16_t offsets[CAIRN_IC_OPERANDS_MAX];
    uint16_t result_offset;
};

/* Sets the types and the places of the cache's operands and of its result, and the signature of its
 * calls (ic/operands.c). UNSUPPORTED, CORRUPT, MEMORY. */
enum cairn_status ic_place_operands(cairn_ic *ic, struct slow_path *slow,
                                    struct cairn_error *error);

/* Makes the exits that call the cache's handlers (ic/miss.c). */
enum cairn_status ic_make_exits(cairn_ic *ic, struct cairn_error *error);

#endif
