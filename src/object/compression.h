/*
 * object/compression.h - the bytes of compressed sections.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_COMPRESSION_H
#define OBJECT_COMPRESSION_H

#include "object/budget.h"
#include "object/file.h"

/* Decompresses `compressed`, which is all of a section of `file`. `*bytes` (NULL if there are none)
 * comes from `budget`, and is the caller's to free. CORRUPT, UNSUPPORTED (in a way that libelf does
 * not know), MEMORY. */
enum cairn_status compression_undo(const struct file *file, const struct file_bytes *compressed,
                                   struct budget *budget, uint8_t **bytes, size_t *size,
                                   struct cairn_error *error);

#endif
