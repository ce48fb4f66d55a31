/* SPDX-License-Identifier: MIT */
#include "store/record.h"

#include <stdbool.h>
#include <string.h>

enum { VERSION = 1, BYTE_ORDER_MARK = 0x01020304, WORD = sizeof(uint64_t) };

static const char magic[8] = {'C', 'A', 'I', 'R', 'N', 'O', 'B', 'J'};

/* Both headers end with the checksum of the bytes before it and of what belongs to the header. */
struct file_header {
    char magic[8];
    uint32_t byte_order;
    uint32_t version;
    uint64_t fingerprint_size;
    uint64_t reserved[4];
    uint64_t checksum;
};

struct record_header {
    uint32_t kind;
    uint32_t key_size;
    uint64_t object_size;
    uint64_t object_checksum;
    uint64_t reserved[4];
    uint64_t checksum;
};

_Static_assert(sizeof(struct file_header) == STORE_ALIGNMENT, "the format of the file");
_Static_assert(sizeof(struct record_header) == STORE_ALIGNMENT, "the format of the file");

/* ---- Checksums ---- */

__extension__ typedef unsigned __int128 wide;

static uint64_t fold(uint64_t state, uint64_t word)
{
    wide product = (wide)(state ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return ((uint64_t)product ^ (uint64_t)(product >> 64)) + UINT64_C(0xD1B54A32D192ED03);
}

static uint64_t load(const uint8_t *bytes, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, bytes, size);
    return word;
}

uint64_t store_checksum(uint64_t seed, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t even = fold(seed, size);
    uint64_t odd = fold(~seed, size);
    const size_t step = (size_t)2 * WORD;
    size_t left = size;
    for (; left >= step; at += step, left -= step) {
        even = fold(even, load(at, WORD)); /* two chains, which the processor computes at once */
        odd = fold(odd, load(at + WORD, WORD));
    }
    if (left >= WORD) {
        even = fold(even, load(at, WORD));
        at += WORD;
        left -= WORD;
    }
    if (left > 0)
        odd = fold(odd, load(at, left));
    return fold(fold(even, odd), size);
}

static uint64_t header_checksum(const void *header, struct store_bytes more)
{
    uint64_t checksum = store_checksum(0, header, STORE_ALIGNMENT - sizeof(uint64_t));
    return store_checksum(checksum, more.bytes, more.size);
}

int store_is_intact(const struct store_record *record)
{
    return store_checksum(0, record->object.bytes, record->object.size) == record->object_checksum;
}

/* ---- The header of the file ---- */

void store_encode_file(struct store_bytes fingerprint, void *header)
{
    struct file_header written = {
        .byte_order = BYTE_ORDER_MARK,
        .version = VERSION,
        .fingerprint_size = fingerprint.size,
    };
    memcpy(written.magic, magic, sizeof magic);
    written.checksum = header_checksum(&written, fingerprint);
    memcpy(header, &written, sizeof written);
}

static bool is_other_fingerprint(const uint8_t *bytes, size_t size, struct store_bytes fingerprint)
{
    struct file_header header;
    memcpy(&header, bytes, sizeof header);
    return header.fingerprint_size != fingerprint.size ||
           fingerprint.size > size - STORE_ALIGNMENT ||
           memcmp(bytes + STORE_ALIGNMENT, fingerprint.bytes, fingerprint.size) != 0;
}

const char *store_decode_file(const void *bytes, size_t size, struct store_bytes fingerprint,
                              size_t *first)
{
    struct file_header header;
    if (size < sizeof header)
        return "it is too short";
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.magic, magic, sizeof magic) != 0)
        return "it is not a store";
    if (header.byte_order != BYTE_ORDER_MARK)
        return "it has another byte order";
    if (header.version != VERSION)
        return "it has another version";
    if (is_other_fingerprint(bytes, size, fingerprint))
        return "it has another fingerprint";
    if (header.checksum != header_checksum(&header, fingerprint))
        return "its header is damaged";
    *first = STORE_ALIGNMENT + store_align(fingerprint.size);
    return NULL;
}

/* ---- Records ---- */

void store_encode_record(const struct store_record *record, void *header)
{
    struct record_header written = {
        .kind = record->kind,
        .key_size = (uint32_t)record->key.size,
        .object_size = record->object.size,
        .object_checksum = store_checksum(0, record->object.bytes, record->object.size),
    };
    written.checksum = header_checksum(&written, record->key);
    memcpy(header, &written, sizeof written);
}

static bool is_zero(const void *header)
{
    static const uint8_t zero[STORE_ALIGNMENT];
    return memcmp(header, zero, sizeof zero) == 0;
}

/* Whether object and key are inside of the `left` bytes after the header. */
static bool fits(const struct record_header *header, size_t left)
{
    return header->object_size <= left && store_align(header->object_size) <= left &&
           store_align(header->key_size) <= left - store_align(header->object_size);
}

static bool is_valid_kind(const struct record_header *header)
{
    return (header->kind == STORE_OBJECT && header->object_size > 0) ||
           (header->kind == STORE_REMOVAL && header->object_size == 0);
}

enum store_decoded store_decode_record(const void *bytes, size_t size, size_t offset,
                                       struct store_record *record)
{
    struct record_header header;
    if (offset > size || size - offset < sizeof header)
        return STORE_END;
    const uint8_t *at = (const uint8_t *)bytes + offset;
    memcpy(&header, at, sizeof header);
    if (is_zero(&header))
        return STORE_END;
    if (!is_valid_kind(&header) || header.key_size == 0 || header.key_size > STORE_KEY_BYTES_MAX)
        return STORE_DAMAGED;
    if (!fits(&header, size - offset - sizeof header))
        return STORE_DAMAGED;
    const uint8_t *object = at + sizeof header;
    *record = (struct store_record){
        .kind = header.kind == STORE_OBJECT ? STORE_OBJECT : STORE_REMOVAL,
        .object = {object, header.object_size},
        .key = {object + store_align(header.object_size), header.key_size},
        .object_checksum = header.object_checksum,
        .size = sizeof header + store_align(header.object_size) + store_align(header.key_size),
    };
    return header.checksum == header_checksum(&header, record->key) ? STORE_RECORD : STORE_DAMAGED;
}
