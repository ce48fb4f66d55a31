/*
 * Fuzzes the file of a store. All parts of a record are inside of the file, records follow each
 * other, and encoding a record again gives its header, except for a damaged object.
 *
 * Input: flags, the file. With the lowest bit of the flags, the headers get the checksums of what
 * follows them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"
#include "store/record.h"

static const struct store_bytes fingerprint = {"fuzz", 4};

enum { FIRST = 128, KEY_SIZE_AT = 4, OBJECT_SIZE_AT = 8 };

/* Gives the record at `offset` a valid header, if its sizes fit. Returns the size of the record, 0
 * if they do not. */
static size_t repair_record(uint8_t *file, size_t size, size_t offset)
{
    uint32_t key_size;
    uint64_t object_size;
    if (size - offset < STORE_ALIGNMENT)
        return 0;
    memcpy(&key_size, file + offset + KEY_SIZE_AT, sizeof key_size);
    memcpy(&object_size, file + offset + OBJECT_SIZE_AT, sizeof object_size);
    size_t left = size - offset - STORE_ALIGNMENT;
    if (object_size > left || key_size > left ||
        store_align(object_size) + store_align(key_size) > left)
        return 0;
    const uint8_t *object = file + offset + STORE_ALIGNMENT;
    const struct store_record record = {
        .kind = object_size == 0 ? STORE_REMOVAL : STORE_OBJECT,
        .object = {object, object_size},
        .key = {object + store_align(object_size), key_size},
    };
    store_encode_record(&record, file + offset);
    return STORE_ALIGNMENT + store_align(object_size) + store_align(key_size);
}

static void repair(uint8_t *file, size_t size)
{
    if (size < FIRST)
        return;
    memcpy(file + STORE_ALIGNMENT, fingerprint.bytes, fingerprint.size);
    store_encode_file(fingerprint, file);
    size_t repaired = 1;
    for (size_t offset = FIRST; offset <= size && repaired > 0; offset += repaired)
        repaired = repair_record(file, size, offset);
}

static void require_inside(const uint8_t *file, size_t size, struct store_bytes part)
{
    const uint8_t *bytes = part.bytes;
    require(bytes >= file && bytes <= file + size);
    require(part.size <= (size_t)(file + size - bytes));
}

static void check_record(const uint8_t *file, size_t size, size_t offset,
                         const struct store_record *record)
{
    uint8_t header[STORE_ALIGNMENT];
    require(record->size <= size - offset);
    require(record->size % STORE_ALIGNMENT == 0);
    require_inside(file, size, record->key);
    require_inside(file, size, record->object);
    require(record->key.size > 0 && record->key.size <= STORE_KEY_BYTES_MAX);
    require((record->kind == STORE_REMOVAL) == (record->object.size == 0));
    store_encode_record(record, header);
    require(!store_is_intact(record) || memcmp(header, file + offset, KEY_SIZE_AT) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    size_t file_size = input.left;
    uint8_t *file = fuzz_copy(input.at, file_size);
    size_t offset;
    if ((flags & 1) != 0)
        repair(file, file_size);
    if (store_decode_file(file, file_size, fingerprint, &offset) == NULL) {
        struct store_record record;
        require(offset == FIRST);
        for (; store_decode_record(file, file_size, offset, &record) == STORE_RECORD;
             offset += record.size)
            check_record(file, file_size, offset, &record);
    }
    free(file);
    return 0;
}
