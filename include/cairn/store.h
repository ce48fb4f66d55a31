/*
 * cairn/store.h - a store of objects in a folder: compiled code that later processes load.
 *
 *     status = cairn_store_open(folder, &options, &store, &error);
 *     object = cairn_store_find(store, key, key_size, &size);
 *     if (object == NULL) {
 *         ... compile ...
 *         status = cairn_store_add(store, key, key_size, compiled, compiled_size, &error);
 *     }
 *     cairn_store_close(store);           after the last use of found objects
 *
 * Found objects are mapped, not copied. A file that is damaged, cut off, or not this host's is
 * ignored, and the next addition replaces it: at worst, code is compiled again.
 *
 * Whoever can write to the folder decides what code the process executes. So the folder must belong
 * to the effective user, and nobody else may be allowed to write to it; cairn_store_open refuses
 * other folders (SECURITY.md). The checksums of the files are against damage, not against attacks.
 *
 * Threads: every function is thread-safe, and any number of processes may use one folder at the
 * same time. Signal handlers may call only cairn_store_find. A forked child may use its parent's
 * stores.
 *
 * See cairn-loading(7) (doc/loading.md): keys, the form of the files, what happens when a store is
 * full.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_STORE_H
#define CAIRN_STORE_H

#include <cairn/allocator.h>
#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A store. */
typedef struct cairn_store cairn_store;

/** Options for opening a store. */
struct cairn_store_options {
    /** Everything that must be the same for an object to be usable: the host and its version, what
     *  compiled code assumes of it, the versions of Cairn and LLVM, the processor and its features.
     *  It is compared byte by byte; objects with other fingerprints are in other files. */
    const void *fingerprint;
    size_t fingerprint_size; /**< from 1 to 4096 bytes */
    /** The largest size of the file, in bytes, from 64 KiB to 64 GiB; 0 means 64 MiB. When the file
     *  is full, the oldest half is dropped. When a file is created, files of other fingerprints are
     *  deleted until they have at most this size together, those that were opened longest ago
     *  first. So many bytes of address space are reserved. */
    uint64_t byte_limit;
    /** The allocator for the index; a NULL function means malloc. */
    struct cairn_allocator allocator;
    /** Receives a sentence for each file or object that is ignored, with its reason. Called in the
     *  thread that uses the store. NULL: none. */
    void (*note)(const char *sentence, void *user);
    void *user; /**< the last argument of `note` */
};

/**
 * Opens the store in a folder of a local file system. If only the last component of `folder` does
 * not exist, it is created. The caller owns `*store`, and must not change the process's effective
 * user while the store is open.
 *
 * Errors: ARGUMENT, MEMORY; SYSTEM (the folder cannot be created or opened, or is a symbolic link;
 * the file cannot be opened or mapped); STATE (the folder belongs to another user, or others may
 * write to it).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_store_open(
    const char *folder, const struct cairn_store_options *options, cairn_store **store,
    struct cairn_error *error);

/**
 * Returns the object that was added with this key, and sets `*size` to its bytes. Returns NULL if
 * the store has no such object, or it is damaged. The object begins at a multiple of 64 bytes and
 * is valid until the store is closed. Objects that other processes add are found after the next
 * addition or removal by this store.
 *
 * The first search for an object reads all of it, to compare its checksum. Allocates nothing. If
 * another program makes the file shorter, reading the object raises SIGBUS; Cairn never does that.
 *
 * Threads: thread-safe, lock-free, and async-signal-safe if `note` is NULL.
 */
CAIRN_API const void *cairn_store_find(cairn_store *store, const void *key, size_t key_size,
                                       size_t *size);

/**
 * Adds an object, which is copied, with a key of 1 to 4096 bytes. If the store has an object with
 * this key, by this process or another, does nothing and returns OK: remove that first. Waits while
 * another thread or process adds or removes.
 *
 * Errors: ARGUMENT, MEMORY; RANGE (the object is larger than a quarter of the limit); SYSTEM (the
 * file cannot be written). Then the store is unchanged.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_store_add(cairn_store *store, const void *key,
                                                             size_t key_size, const void *object,
                                                             size_t object_size,
                                                             struct cairn_error *error);

/**
 * Removes the object with this key, such as code that was compiled under a wrong assumption, so
 * that later processes do not find it. Where it was found it remains valid. Does nothing and
 * returns OK if the store has no such object. Waits as cairn_store_add does.
 *
 * Errors: ARGUMENT, MEMORY; SYSTEM (the file cannot be written).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_store_remove(cairn_store *store, const void *key,
                                                                size_t key_size,
                                                                struct cairn_error *error);

/** Closes the store, and unmaps all objects that were found. No other thread may use it. NULL is
 *  allowed. */
CAIRN_API void cairn_store_close(cairn_store *store);

#ifdef __cplusplus
}
#endif
#endif
