/*
 * store/file.h - one file of a store: mapped, indexed, appended to, and replaced.
 *
 * Guarantees:
 *  (A) Bytes that a header has published are never changed, and a file never becomes shorter. So
 *      what is mapped in any process remains valid. What needs another content gets a new file,
 *      which is renamed.
 *  (B) A record's object, its key and 64 zero bytes after them are written before its header. So a
 *      reader without the lock sees the record or the end; and what a failed or killed writer has
 *      left after the end never becomes a record.
 *  (C) Only the holder of the folder's lock writes, and it reads first what others have written.
 *  (D) The mapping is as large as the largest size of the file, so the file grows into it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include "store/table.h"

#include <cairn/status.h>
#include <sys/stat.h>

/* What all files of a store have in common. */
struct store_settings {
    int folder;
    char name[40];       /* of the file in the folder */
    char temporary[40];  /* of a file that is not complete */
    uint64_t byte_limit; /* of a file */
    struct hash_key hash_key;
    struct store_bytes fingerprint;
    struct cairn_allocator allocator;
};

struct store_file {
    struct store_file *previous; /* replaced by this one; its objects remain mapped */
    int descriptor;
    dev_t device;
    ino_t number;
    const uint8_t *bytes; /* mapped for reading: `byte_limit` bytes */
    size_t first;         /* offset of the first record */
    _Atomic size_t end;   /* after the last indexed record */
    _Atomic(struct store_table *) table;
};

/* Opens the file, without its records. A file that cannot be used is NULL: `*wrong` is why, and ""
 * if it does not exist. Fails with MEMORY and SYSTEM. */
enum cairn_status store_file_open(const struct store_settings *settings, struct store_file **file,
                                  const char **wrong, struct cairn_error *error);

/* Unmaps and frees a file and those that it has replaced. NULL is allowed. */
void store_file_close(const struct store_settings *settings, struct store_file *file);

/* Whether the folder's file of this name is another one, or does not exist. */
bool store_file_is_replaced(const struct store_settings *settings, const struct store_file *file);

/* Indexes what was added since, up to the end or the first damage. The lock must be held, unless no
 * other thread has the file; without it, a header that is being written may look like damage. */
enum cairn_status store_file_refresh(const struct store_settings *settings, struct store_file *file,
                                     enum store_decoded *end, struct cairn_error *error);

/* A record in the index. */
struct store_found {
    struct store_record record;
    _Atomic uint64_t *place;
    uint64_t word; /* what was in the place */
};

/* Finds the newest record of a key. */
bool store_file_find(const struct store_settings *settings, struct store_file *file,
                     struct store_bytes key, struct store_found *found);

/* Whether an object that was found has its checksum, which is computed once. `*is_new`: this call
 * has detected damage. */
bool store_file_verify(const struct store_found *found, bool *is_new);

/* Whether the file has space for a record. */
bool store_file_has_space(const struct store_settings *settings, const struct store_file *file,
                          const struct store_record *record);

/* Appends a record to a refreshed file with space for it, and indexes it. */
enum cairn_status store_file_append(const struct store_settings *settings, struct store_file *file,
                                    const struct store_record *record, struct cairn_error *error);

/* Writes a new file with the newest objects of `old`, which may be NULL, and puts it in the place
 * of what has its name. */
enum cairn_status store_file_replace(const struct store_settings *settings, struct store_file *old,
                                     struct cairn_error *error);

#endif
