/* SPDX-License-Identifier: MIT */
#include "store/file.h"

#include "base/error.h"
#include "base/file.h"
#include "base/populate.h"
#include "store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIRST_PLACES = 256 };

static const uint8_t zero[STORE_ALIGNMENT];

/* ---- Opening ---- */

static enum cairn_status no_memory(struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the index of a store");
}

static enum cairn_status map(const struct store_settings *settings, struct store_file *file,
                             const char **wrong, struct cairn_error *error)
{
    struct stat found;
    int failure =
        folder_open_file(settings->folder, settings->name, &file->descriptor, &found, wrong);
    if (failure != 0)
        return error_set_system(error, failure, "cannot open %s", settings->name);
    if (*wrong == NULL && (uint64_t)found.st_size > settings->byte_limit)
        *wrong = "it is larger than the limit";
    if (*wrong != NULL)
        return CAIRN_OK;
    void *bytes = mmap(NULL, settings->byte_limit, PROT_READ, MAP_SHARED | MAP_NORESERVE,
                       file->descriptor, 0);
    if (bytes == MAP_FAILED)
        return error_set_system(error, errno, "cannot map %s", settings->name);
    file->bytes = bytes;
    populate_for_reading(bytes, (size_t)found.st_size); /* the index needs most pages */
    file->device = found.st_dev;
    file->number = found.st_ino;
    *wrong = store_decode_file(bytes, (size_t)found.st_size, settings->fingerprint, &file->first);
    atomic_store_explicit(&file->end, file->first, memory_order_relaxed);
    return CAIRN_OK;
}

static enum cairn_status create_table(const struct store_settings *settings,
                                      struct store_file *file, struct cairn_error *error)
{
    struct store_table *table = store_table_create(&settings->allocator, FIRST_PLACES);
    if (table == NULL)
        return no_memory(error);
    atomic_store_explicit(&file->table, table, memory_order_relaxed);
    return CAIRN_OK;
}

enum cairn_status store_file_open(const struct store_settings *settings, struct store_file **file,
                                  const char **wrong, struct cairn_error *error)
{
    *file = NULL;
    struct store_file *opened = memory_new(&settings->allocator, 1, sizeof *opened);
    if (opened == NULL)
        return no_memory(error);
    opened->descriptor = -1;
    enum cairn_status status = map(settings, opened, wrong, error);
    bool is_usable = status == CAIRN_OK && *wrong == NULL;
    if (is_usable)
        status = create_table(settings, opened, error);
    if (status == CAIRN_OK && is_usable) {
        (void)!futimens(opened->descriptor, NULL); /* folder_limit keeps what was used last */
        *file = opened;
        return CAIRN_OK;
    }
    store_file_close(settings, opened);
    return status;
}

void store_file_close(const struct store_settings *settings, struct store_file *file)
{
    while (file != NULL) {
        struct store_file *previous = file->previous;
        store_table_destroy(&settings->allocator, file->table);
        if (file->bytes != NULL)
            munmap((void *)(uintptr_t)file->bytes, settings->byte_limit);
        if (file->descriptor >= 0)
            close(file->descriptor);
        memory_free(&settings->allocator, file, sizeof *file);
        file = previous;
    }
}

bool store_file_is_replaced(const struct store_settings *settings, const struct store_file *file)
{
    struct stat found;
    return fstatat(settings->folder, settings->name, &found, AT_SYMLINK_NOFOLLOW) != 0 ||
           found.st_dev != file->device || found.st_ino != file->number;
}

/* ---- Indexing ---- */

static bool reserve(const struct store_settings *settings, struct store_file *file)
{
    struct store_table *table = atomic_load_explicit(&file->table, memory_order_relaxed);
    struct store_table *reserved = store_table_reserve(&settings->allocator, table);
    if (reserved == NULL)
        return false;
    if (reserved != table)
        atomic_store_explicit(&file->table, reserved, memory_order_release);
    return true;
}

/* Indexes the record at the end. The end is stored first: readers look at nothing after it. */
static void put(const struct store_settings *settings, struct store_file *file,
                const struct store_record *record)
{
    size_t offset = atomic_load_explicit(&file->end, memory_order_relaxed);
    const struct store_bytes mapped = {file->bytes, offset + record->size};
    atomic_store_explicit(&file->end, mapped.size, memory_order_release);
    store_table_put(atomic_load_explicit(&file->table, memory_order_relaxed), &settings->hash_key,
                    mapped, record->key, offset);
}

enum cairn_status store_file_refresh(const struct store_settings *settings, struct store_file *file,
                                     enum store_decoded *end, struct cairn_error *error)
{
    struct stat found;
    struct store_record record;
    if (fstat(file->descriptor, &found) != 0)
        return error_set_system(error, errno, "cannot read the size of %s", settings->name);
    size_t size = (uint64_t)found.st_size < settings->byte_limit ? (size_t)found.st_size
                                                                 : settings->byte_limit;
    for (;;) {
        size_t offset = atomic_load_explicit(&file->end, memory_order_relaxed);
        *end = store_decode_record(file->bytes, size, offset, &record);
        if (*end != STORE_RECORD)
            return CAIRN_OK;
        if (!reserve(settings, file))
            return no_memory(error);
        put(settings, file, &record);
    }
}

/* ---- Finding ---- */

bool store_file_find(const struct store_settings *settings, struct store_file *file,
                     struct store_bytes key, struct store_found *found)
{
    struct store_table *table = atomic_load_explicit(&file->table, memory_order_acquire);
    const struct store_bytes mapped = {file->bytes,
                                       atomic_load_explicit(&file->end, memory_order_acquire)};
    found->place = store_table_find(table, &settings->hash_key, mapped, key);
    found->word = atomic_load_explicit(found->place, memory_order_acquire);
    return found->word != 0 &&
           store_decode_record(mapped.bytes, mapped.size, store_place_offset(found->word),
                               &found->record) == STORE_RECORD;
}

bool store_file_verify(const struct store_found *found, bool *is_new)
{
    *is_new = false;
    if (store_place_state(found->word) != STORE_UNKNOWN)
        return store_place_state(found->word) == STORE_INTACT;
    bool is_intact = store_is_intact(&found->record);
    store_place_set_state(found->place, found->word, is_intact ? STORE_INTACT : STORE_BAD);
    *is_new = !is_intact;
    return is_intact;
}

/* ---- Appending ---- */

static size_t record_size(const struct store_record *record)
{
    return STORE_ALIGNMENT + store_align(record->object.size) + store_align(record->key.size);
}

bool store_file_has_space(const struct store_settings *settings, const struct store_file *file,
                          const struct store_record *record)
{
    size_t end = atomic_load_explicit(&file->end, memory_order_relaxed);
    return settings->byte_limit - end >= record_size(record) + sizeof zero;
}

/* Writes bytes and the zero bytes up to the next multiple. */
static int write_part(int file, struct store_bytes part, size_t *offset)
{
    size_t padding = store_align(part.size) - part.size;
    int failure = file_write_at(file, part.bytes, part.size, *offset);
    if (failure == 0)
        failure = file_write_at(file, zero, padding, *offset + part.size);
    *offset += part.size + padding;
    return failure;
}

/* Writes a record in the order of (B). */
static int write_record(int file, const struct store_record *record, size_t offset)
{
    const struct store_bytes end = {zero, sizeof zero};
    uint8_t header[STORE_ALIGNMENT];
    size_t at = offset + sizeof header;
    int failure = write_part(file, record->object, &at);
    if (failure == 0)
        failure = write_part(file, record->key, &at);
    if (failure == 0)
        failure = write_part(file, end, &at);
    store_encode_record(record, header);
    return failure != 0 ? failure : file_write_at(file, header, sizeof header, offset);
}

enum cairn_status store_file_append(const struct store_settings *settings, struct store_file *file,
                                    const struct store_record *record, struct cairn_error *error)
{
    struct store_record written = *record;
    size_t offset = atomic_load_explicit(&file->end, memory_order_relaxed);
    if (!reserve(settings, file))
        return no_memory(error);
    int failure = write_record(file->descriptor, record, offset);
    if (failure != 0)
        return error_set_system(error, failure, "cannot write %s", settings->name);
    written.size = record_size(record);
    put(settings, file, &written);
    return CAIRN_OK;
}

/* ---- Replacing ---- */

/* Whether the record at `offset` is the newest object of its key. */
static bool is_live(const struct store_settings *settings, struct store_file *file, size_t offset,
                    struct store_record *record)
{
    bool is_new;
    struct store_found newest;
    size_t end = atomic_load_explicit(&file->end, memory_order_relaxed);
    if (store_decode_record(file->bytes, end, offset, record) != STORE_RECORD)
        return false;
    return store_file_find(settings, file, record->key, &newest) &&
           newest.record.object.bytes == record->object.bytes && record->kind == STORE_OBJECT &&
           store_file_verify(&newest, &is_new);
}

/* Returns the number of bytes of live objects in the file. */
static size_t live_bytes(const struct store_settings *settings, struct store_file *file)
{
    struct store_record record = {.size = 0};
    size_t total = 0;
    size_t end = atomic_load_explicit(&file->end, memory_order_relaxed);
    for (size_t offset = file->first; offset < end; offset += record.size)
        total += is_live(settings, file, offset, &record) ? record.size : 0;
    return total;
}

/* Copies the live objects that were added last, up to half of the limit. */
static int copy_live(const struct store_settings *settings, struct store_file *old, int file,
                     size_t at)
{
    struct store_record record = {.size = 0};
    size_t left = live_bytes(settings, old);
    size_t end = atomic_load_explicit(&old->end, memory_order_relaxed);
    int failure = 0;
    for (size_t offset = old->first; offset < end && failure == 0; offset += record.size) {
        if (!is_live(settings, old, offset, &record))
            continue;
        bool is_kept = left <= settings->byte_limit / 2;
        left -= record.size;
        if (!is_kept)
            continue;
        failure = write_record(file, &record, at);
        at += record.size;
    }
    return failure;
}

static int write_new(const struct store_settings *settings, struct store_file *old, int file)
{
    uint8_t header[STORE_ALIGNMENT];
    size_t at = sizeof header;
    store_encode_file(settings->fingerprint, header);
    int failure = file_write_at(file, header, sizeof header, 0);
    if (failure == 0)
        failure = write_part(file, settings->fingerprint, &at);
    return failure != 0 || old == NULL ? failure : copy_live(settings, old, file, at);
}

enum cairn_status store_file_replace(const struct store_settings *settings, struct store_file *old,
                                     struct cairn_error *error)
{
    int file;
    int failure = folder_create_file(settings->folder, settings->temporary, &file);
    if (failure != 0)
        return error_set_system(error, failure, "cannot create %s", settings->temporary);
    failure = write_new(settings, old, file);
    close(file);
    if (failure == 0 &&
        renameat(settings->folder, settings->temporary, settings->folder, settings->name) != 0)
        failure = errno;
    if (failure == 0)
        return CAIRN_OK;
    unlinkat(settings->folder, settings->temporary, 0);
    return error_set_system(error, failure, "cannot replace %s", settings->name);
}
