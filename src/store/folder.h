/*
 * store/folder.h - the folder of a store: permissions, its lock, opening and deleting files.
 *
 * The lock is flock on the folder. Each taking opens the folder again: so threads, processes and
 * forked children exclude each other, because a lock belongs to an opening.
 *
 * Functions that return an int return 0 or an errno.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STORE_FOLDER_H
#define STORE_FOLDER_H

#include <cairn/allocator.h>
#include <cairn/status.h>
#include <stdint.h>
#include <sys/stat.h>

/* Opens a folder that only the effective user can write to, and creates it if necessary. */
enum cairn_status folder_open(const char *path, int *folder, struct cairn_error *error);

/* Takes the lock, and waits for it. `*lock` is for folder_unlock. */
int folder_lock(int folder, int *lock);
void folder_unlock(int lock);

/* Opens a file for reading and writing. Sets `*wrong` to NULL, or to why the file cannot be used,
 * "" if it does not exist; then `*file` is -1. */
int folder_open_file(int folder, const char *name, int *file, struct stat *found,
                     const char **wrong);

/* Creates an empty file that only the effective user can read and write. One of this name is
 * deleted. */
int folder_create_file(int folder, const char *name, int *file);

/* Whether a name is that of a store's file, complete or not. */
int folder_is_store(const char *name);

/* Deletes files of stores, except `kept`, until they have at most `limit` bytes together: those
 * that were changed longest ago first. What cannot be deleted, remains. */
void folder_limit(int folder, const char *kept, uint64_t limit,
                  const struct cairn_allocator *allocator);

#endif
