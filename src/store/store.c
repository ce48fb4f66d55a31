/*
 * Stores: finding in the newest file that this process has opened, and changing it under the
 * folder's lock.
 *
 * Only the holder of the lock changes `file`, and what readers may be in is not freed before the
 * store is closed. There is no lock of the process's own, so a forked child has none to inherit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "store/file.h"
#include "store/folder.h"

#include <cairn/store.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { SENTENCE_BYTES = 512 };

#define LIMIT_DEFAULT (UINT64_C(64) << 20)
#define LIMIT_MIN (UINT64_C(64) << 10)

struct cairn_store {
    struct store_settings settings;
    _Atomic(struct store_file *) file; /* NULL: none that can be used */
    void (*note)(const char *sentence, void *user);
    void *user;
};

static struct store_file *file_of(cairn_store *store)
{
    return atomic_load_explicit(&store->file, memory_order_acquire);
}

static void note(const cairn_store *store, const char *what, const char *wrong)
{
    char sentence[SENTENCE_BYTES];
    if (store->note == NULL)
        return;
    snprintf(sentence, sizeof sentence, "%s in the store %s is ignored: %s", what,
             store->settings.name, wrong);
    store->note(sentence, store->user);
}

/* ---- Opening and closing ---- */

static enum cairn_status check_options(const char *folder,
                                       const struct cairn_store_options *options,
                                       struct cairn_error *error)
{
    if (folder == NULL || options == NULL || options->fingerprint == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_store_open: a folder, options or a fingerprint is NULL");
    if (options->fingerprint_size == 0 || options->fingerprint_size > STORE_FINGERPRINT_BYTES_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_store_open: the fingerprint has %zu bytes (1 to %d are allowed)",
                         options->fingerprint_size, STORE_FINGERPRINT_BYTES_MAX);
    if (options->byte_limit != 0 &&
        (options->byte_limit < LIMIT_MIN || options->byte_limit > STORE_FILE_BYTES_MAX))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_store_open: `byte_limit` is %" PRIu64 " (%" PRIu64 " to %" PRIu64
                         " are allowed)",
                         options->byte_limit, LIMIT_MIN, STORE_FILE_BYTES_MAX);
    return CAIRN_OK;
}

static bool copy_fingerprint(struct store_settings *settings, struct store_bytes fingerprint)
{
    void *copy = memory_new(&settings->allocator, 1, fingerprint.size);
    if (copy == NULL)
        return false;
    memcpy(copy, fingerprint.bytes, fingerprint.size);
    settings->fingerprint = (struct store_bytes){copy, fingerprint.size};
    return true;
}

static void set_names(struct store_settings *settings, struct store_bytes fingerprint)
{
    uint64_t hash = store_checksum(0, fingerprint.bytes, fingerprint.size);
    snprintf(settings->name, sizeof settings->name, "cairn-%016" PRIx64 ".store", hash);
    snprintf(settings->temporary, sizeof settings->temporary, "cairn-%016" PRIx64 ".store.new",
             hash);
}

static cairn_store *create(const struct cairn_store_options *options)
{
    const struct store_bytes fingerprint = {options->fingerprint, options->fingerprint_size};
    struct cairn_allocator allocator = memory_allocator(&options->allocator);
    cairn_store *store = memory_new(&allocator, 1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->note = options->note;
    store->user = options->user;
    store->settings.folder = -1;
    store->settings.allocator = allocator;
    store->settings.hash_key = hash_key_create();
    store->settings.byte_limit = options->byte_limit == 0 ? LIMIT_DEFAULT : options->byte_limit;
    set_names(&store->settings, fingerprint);
    if (copy_fingerprint(&store->settings, fingerprint))
        return store;
    memory_free(&allocator, store, sizeof *store);
    return NULL;
}

/* Opens the folder's file; NULL if it cannot be used. */
static enum cairn_status open_file(const cairn_store *store, struct store_file **file,
                                   struct cairn_error *error)
{
    const char *wrong;
    enum cairn_status status = store_file_open(&store->settings, file, &wrong, error);
    if (status == CAIRN_OK && wrong != NULL && wrong[0] != '\0')
        note(store, "a file", wrong);
    return status;
}

/* Indexes a file with the lock, so that damage is not a record that is just being written. */
static enum cairn_status index_locked(const cairn_store *store, struct store_file *file,
                                      struct cairn_error *error)
{
    int lock;
    enum store_decoded end;
    int failure = folder_lock(store->settings.folder, &lock);
    if (failure != 0)
        return error_set_system(error, failure, "cannot lock the folder of a store");
    enum cairn_status status = store_file_refresh(&store->settings, file, &end, error);
    folder_unlock(lock);
    if (status == CAIRN_OK && end == STORE_DAMAGED)
        note(store, "the rest of a file", "it is damaged");
    return status;
}

/* Opens and indexes the file for a store that is not used yet. */
static enum cairn_status open_first(cairn_store *store, struct cairn_error *error)
{
    struct store_file *file;
    enum store_decoded end;
    enum cairn_status status = open_file(store, &file, error);
    if (status != CAIRN_OK || file == NULL)
        return status;
    atomic_store_explicit(&store->file, file, memory_order_release);
    status = store_file_refresh(&store->settings, file, &end, error);
    return status == CAIRN_OK && end == STORE_DAMAGED ? index_locked(store, file, error) : status;
}

enum cairn_status cairn_store_open(const char *folder, const struct cairn_store_options *options,
                                   cairn_store **store, struct cairn_error *error)
{
    if (store == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_store_open: `store` is NULL");
    enum cairn_status status = check_options(folder, options, error);
    if (status != CAIRN_OK)
        return status;
    cairn_store *opened = create(options);
    if (opened == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a store");
    status = folder_open(folder, &opened->settings.folder, error);
    if (status == CAIRN_OK)
        status = open_first(opened, error);
    if (status == CAIRN_OK)
        *store = opened;
    else
        cairn_store_close(opened);
    return status;
}

void cairn_store_close(cairn_store *store)
{
    if (store == NULL)
        return;
    struct store_settings *settings = &store->settings;
    const struct cairn_allocator allocator = settings->allocator;
    store_file_close(settings, file_of(store));
    if (settings->folder >= 0)
        close(settings->folder);
    memory_free(&allocator, (void *)(uintptr_t)settings->fingerprint.bytes,
                settings->fingerprint.size);
    memory_free(&allocator, store, sizeof *store);
}

/* ---- Finding ---- */

/* Finds an intact object in the newest file. */
static bool find(cairn_store *store, struct store_bytes key, struct store_record *record)
{
    bool is_new;
    struct store_found found;
    struct store_file *file = file_of(store);
    if (file == NULL || !store_file_find(&store->settings, file, key, &found) ||
        found.record.kind != STORE_OBJECT)
        return false;
    bool is_intact = store_file_verify(&found, &is_new);
    *record = found.record;
    if (is_new)
        note(store, "an object", "it is damaged");
    return is_intact;
}

const void *cairn_store_find(cairn_store *store, const void *key, size_t key_size, size_t *size)
{
    struct store_record record;
    if (store == NULL || key == NULL || size == NULL ||
        !find(store, (struct store_bytes){key, key_size}, &record))
        return NULL;
    *size = record.object.size;
    return record.object.bytes;
}

/* ---- Changing ---- */

/* Makes the folder's file that of this store. `*file` is NULL if it cannot be used. */
static enum cairn_status switch_file(cairn_store *store, struct store_file **file,
                                     enum store_decoded *end, struct cairn_error *error)
{
    enum cairn_status status = open_file(store, file, error);
    if (status != CAIRN_OK || *file == NULL)
        return status;
    status = store_file_refresh(&store->settings, *file, end, error);
    if (status != CAIRN_OK) {
        store_file_close(&store->settings, *file);
        return status;
    }
    (*file)->previous = file_of(store);
    atomic_store_explicit(&store->file, *file, memory_order_release);
    return CAIRN_OK;
}

/* Makes a new file with the newest objects of `*file`, which may be NULL, and switches to it. */
static enum cairn_status replace(cairn_store *store, struct store_file **file,
                                 struct cairn_error *error)
{
    enum store_decoded end;
    const struct store_settings *settings = &store->settings;
    enum cairn_status status = store_file_replace(settings, *file, error);
    if (status != CAIRN_OK)
        return status;
    folder_limit(settings->folder, settings->name, settings->byte_limit, &settings->allocator);
    status = switch_file(store, file, &end, error);
    if (status == CAIRN_OK && *file == NULL)
        status = error_set(error, CAIRN_ERROR_SYSTEM, 0, "%s was written and cannot be used",
                           settings->name);
    return status;
}

/* Makes the folder's file that of this store, if it is not, and indexes what others have added. */
static enum cairn_status refresh(cairn_store *store, struct store_file **file,
                                 enum store_decoded *end, struct cairn_error *error)
{
    *file = file_of(store);
    if (*file == NULL || store_file_is_replaced(&store->settings, *file))
        return switch_file(store, file, end, error);
    return store_file_refresh(&store->settings, *file, end, error);
}

/* Whether adding or removing this record changes anything. */
static bool is_change(cairn_store *store, const struct store_record *record)
{
    struct store_record found;
    return find(store, record->key, &found) == (record->kind == STORE_REMOVAL);
}

static enum cairn_status append(cairn_store *store, const struct store_record *record,
                                struct cairn_error *error)
{
    struct store_file *file;
    enum store_decoded end = STORE_END;
    enum cairn_status status = refresh(store, &file, &end, error);
    bool is_needed = file == NULL ? record->kind == STORE_OBJECT : is_change(store, record);
    if (status != CAIRN_OK || !is_needed)
        return status;
    if (file == NULL || end == STORE_DAMAGED ||
        !store_file_has_space(&store->settings, file, record))
        status = replace(store, &file, error);
    return status != CAIRN_OK ? status : store_file_append(&store->settings, file, record, error);
}

static enum cairn_status change(cairn_store *store, const struct store_record *record,
                                struct cairn_error *error)
{
    int lock;
    int failure = folder_lock(store->settings.folder, &lock);
    if (failure != 0)
        return error_set_system(error, failure, "cannot lock the folder of a store");
    enum cairn_status status = append(store, record, error);
    folder_unlock(lock);
    return status;
}

static enum cairn_status check_key(const cairn_store *store, struct store_bytes key,
                                   struct cairn_error *error)
{
    if (store == NULL || key.bytes == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a store or a key is NULL");
    if (key.size == 0 || key.size > STORE_KEY_BYTES_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a key of %zu bytes (1 to %d are allowed)",
                         key.size, STORE_KEY_BYTES_MAX);
    return CAIRN_OK;
}

enum cairn_status cairn_store_add(cairn_store *store, const void *key, size_t key_size,
                                  const void *object, size_t object_size, struct cairn_error *error)
{
    const struct store_record record = {
        .kind = STORE_OBJECT, .key = {key, key_size}, .object = {object, object_size}};
    enum cairn_status status = check_key(store, record.key, error);
    if (status != CAIRN_OK)
        return status;
    if (object == NULL || object_size == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "the object is empty");
    if (object_size > store->settings.byte_limit / 4)
        return error_set(error, CAIRN_ERROR_RANGE, 0,
                         "the object has %zu bytes, more than a quarter of the limit, %" PRIu64,
                         object_size, store->settings.byte_limit);
    return change(store, &record, error);
}

enum cairn_status cairn_store_remove(cairn_store *store, const void *key, size_t key_size,
                                     struct cairn_error *error)
{
    const struct store_record record = {
        .kind = STORE_REMOVAL, .key = {key, key_size}, .object = {"", 0}};
    enum cairn_status status = check_key(store, record.key, error);
    return status != CAIRN_OK ? status : change(store, &record, error);
}
