/*
 * file/compression.h - decompresses the bytes of sections.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_COMPRESSION_H
#define FILE_COMPRESSION_H

#include "file/elf_file.h"
#include "file/memory_budget.h"

/* Decompresses `compressed`, which are all bytes of a section of `file`. The memory of `*bytes`
 * comes from `budget`, and the caller must free it; `*bytes` is NULL if the result is empty.
 * Errors: CORRUPT, UNSUPPORTED (a compression type that libelf does not know), MEMORY. */
enum cairn_status compression_undo(const struct file *file, const struct file_bytes *compressed,
                                   struct budget *budget, uint8_t **bytes, size_t *size,
                                   struct cairn_error *error);

#endif
