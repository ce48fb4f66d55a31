/*
 * store/record.h - the form of a store's file, version 1.
 *
 * A file is a header, the fingerprint, and records, each a header, the object and the key; a header
 * of zero bytes ends them. Each part begins at a multiple of 64 bytes, and the bytes between are
 * zero. Numbers have the byte order of the process.
 *
 * Decoding is pure, and takes O(1) for each record and O(n) for n bytes of its key.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum {
    STORE_ALIGNMENT = 64, /* also the size of both headers */
    STORE_FINGERPRINT_BYTES_MAX = 4096,
    STORE_KEY_BYTES_MAX = 4096,
};

#define STORE_FILE_BYTES_MAX (UINT64_C(1) << 36)

struct store_bytes {
    const void *bytes;
    size_t size;
};

enum store_kind {
    STORE_OBJECT = 1,
    STORE_REMOVAL = 2, /* of the key, without an object */
};

struct store_record {
    enum store_kind kind;
    struct store_bytes key;
    struct store_bytes object;
    uint64_t object_checksum;
    size_t size; /* of the whole record */
};

/* Returns the next multiple of STORE_ALIGNMENT. */
static inline size_t store_align(size_t size)
{
    return (size + STORE_ALIGNMENT - 1) & ~(size_t)(STORE_ALIGNMENT - 1);
}

/* Returns a checksum that damage changes with a probability of 1 - 2^-64. */
uint64_t store_checksum(uint64_t seed, const void *bytes, size_t size);

/* Whether the object of a record has its checksum. */
int store_is_intact(const struct store_record *record);

/* ---- The header of the file ---- */

/* Writes the header to 64 bytes; the fingerprint follows it. */
void store_encode_file(struct store_bytes fingerprint, void *header);

/* Returns NULL, or what is wrong with the start of a file; then the rest must not be read. Sets the
 * offset of the first record. */
const char *store_decode_file(const void *bytes, size_t size, struct store_bytes fingerprint,
                              size_t *first);

/* ---- Records ---- */

/* Writes the header of a record to 64 bytes, from its kind, key and object. */
void store_encode_record(const struct store_record *record, void *header);

enum store_decoded {
    STORE_RECORD, /* complete, except that the object's checksum was not compared */
    STORE_END,
    STORE_DAMAGED,
};

/* Decodes the record at `offset`, a multiple of STORE_ALIGNMENT, in a file of `size` bytes. */
enum store_decoded store_decode_record(const void *bytes, size_t size, size_t offset,
                                       struct store_record *record);

#endif
