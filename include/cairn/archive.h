/*
 * cairn/archive.h - reads the members of archives (ar, .a).
 *
 * Reads all forms of archives that GNU's, LLVM's and BSD's tools write, including their encodings
 * of long names. Symbol tables are skipped. Thin archives hold only the names of their members,
 * whose files are opened relative to the folder of the archive. Files are read member by member;
 * see cairn/object.h for files that change while they are open.
 *
 *     struct cairn_archive_member member;
 *     while (cairn_archive_next(archive, &member, &error) == CAIRN_OK)
 *         … cairn_object_open_memory(member.bytes, member.size, …) …
 *     if (error.status != CAIRN_ERROR_NOT_FOUND)
 *         return complain(&error);
 *
 * Threads: an archive must be used by one thread at a time, and not by signal handlers.
 *
 * Source: the manual page ar(5), and for thin archives the manual page of GNU binutils' ar(1).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_ARCHIVE_H
#define CAIRN_ARCHIVE_H

#include <cairn/object.h>
#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An open archive. */
typedef struct cairn_archive cairn_archive;

/**
 * Opens the archive at `path`, which must be a regular file. `options` NULL means all zero. The
 * caller owns `*archive`.
 *
 * Errors: SYSTEM (cannot be opened or read, or is a directory), TRUNCATED (empty), CORRUPT (not an
 * archive), UNSUPPORTED (not a regular file), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_archive_open(
    const char *path, const struct cairn_object_options *options, cairn_archive **archive,
    struct cairn_error *error);

/**
 * Opens an archive of `size` bytes in memory, which must not change until the archive is destroyed.
 *
 * Errors: as cairn_archive_open; also UNSUPPORTED for a thin archive, because its members are
 * files.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_archive_open_memory(
    const void *bytes, size_t size, const struct cairn_object_options *options,
    cairn_archive **archive, struct cairn_error *error);

/** Destroys an archive, which may be NULL. */
CAIRN_API void cairn_archive_destroy(cairn_archive *archive);

/** A member of an archive. Valid until the next call with the archive, or until it is destroyed. */
struct cairn_archive_member {
    const char *name; /**< name; for a member of a thin archive, the path that the archive holds */
    const uint8_t *bytes;
    size_t size;
    uint64_t offset; /**< offset of the member's header in the archive, in bytes */
};

/**
 * Advances to the next member in the order of the archive, and returns it in `*member`. The first
 * call returns the first member.
 *
 * Errors: NOT_FOUND after the last member; TRUNCATED (the archive ends inside the member), CORRUPT
 * (its header is invalid; its name is in the table of long names and has 4096 bytes or more; or the
 * file of a thin archive's member is that of an earlier member), SYSTEM (the file of a thin
 * archive's member cannot be read), MEMORY, ARGUMENT. The message names the member, and
 * `error->offset` is its offset.
 *
 * If the file of a thin archive's member cannot be read, or is that of an earlier one, the next
 * call continues with the following member. After any other error, further calls fail in the same
 * way. Files that the hook of the options opens are not compared with those of earlier members.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_archive_next(cairn_archive *archive,
                                                                struct cairn_archive_member *member,
                                                                struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
