/*
 * object/slots.h - slots, which hold addresses of symbols, and stubs, which branch to what slots
 * hold.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_SLOTS_H
#define OBJECT_SLOTS_H

#include "object/image.h"

enum { OBJECT_SLOT_BYTES = 8 };

/* Whether a branch to a symbol may need a stub: because its address may be out of reach, or because
 * the callee has another TOC pointer. */
bool object_may_need_stub(const struct object_link *link, const struct object_symbol *symbol,
                          enum object_need branch);

/* Returns the distance between the two entries of an ELFv2 function. */
uint64_t object_local_entry(const struct object_symbol *symbol);

/* Numbers the slots and stubs that the symbols need. */
void object_count_slots(struct object_link *link);

/* Writes the slots and stubs. Errors: RANGE. */
CAIRN_MUST_CHECK enum cairn_status object_write_slots(const struct object_link *link,
                                                      struct cairn_error *error);

#endif
