/*
 * cairn/archive.h - the members of archives (ar, .a).
 *
 * Those that GNU's, LLVM's and BSD's tools write, with their ways to keep long names; symbol
 * indices are left out. A file is read member by member, as cairn/object.h says. Thin archives,
 * which hold names only, give the members' files, looked for relative to the archive's folder.
 *
 *     struct cairn_archive_member member;
 *     while (cairn_archive_next(archive, &member, &error) == CAIRN_OK)
 *         … cairn_object_open_memory(member.bytes, member.size, …) …
 *     if (error.status != CAIRN_ERROR_NOT_FOUND)
 *         return complain(&error);
 *
 * Threads: one archive may be used by one thread at a time. Nothing here is async-signal-safe.
 *
 * Source: the manual page ar(5), and for thin archives that of GNU binutils' ar(1).
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
 * Opens the file at `path`, which must be a regular file. `options` NULL means all zero.
 * Errors: SYSTEM (cannot be opened or read, or is a directory), TRUNCATED (empty), CORRUPT (not an
 * archive), UNSUPPORTED (not a regular file), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_archive_open(
    const char *path, const struct cairn_object_options *options, cairn_archive **archive,
    struct cairn_error *error);

/** Opens `size` bytes in memory, which must not change until the archive is closed; otherwise as
 *  cairn_archive_open. UNSUPPORTED also for a thin archive, whose members are elsewhere. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_archive_open_memory(
    const void *bytes, size_t size, const struct cairn_object_options *options,
    cairn_archive **archive, struct cairn_error *error);

/** NULL is allowed. */
CAIRN_API void cairn_archive_close(cairn_archive *archive);

/** A file in an archive. Gone with the next call for the archive, and when it is closed. */
struct cairn_archive_member {
    const char *name; /**< of a thin archive's member, as it stands there: a path */
    const uint8_t *bytes;
    size_t size;
    uint64_t offset; /**< of the member's header in the archive */
};

/**
 * The next member, from the first one on, in the order of the archive; NOT_FOUND after the last.
 * TRUNCATED (the archive ends inside it), CORRUPT (its header is no good), SYSTEM (a thin archive's
 * member cannot be read), MEMORY, ARGUMENT: `error` says which member, and at which offset. Asking
 * again after a member of a thin archive that could not be read gives the one behind it; any other
 * failure stays.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_archive_next(cairn_archive *archive,
                                                                struct cairn_archive_member *member,
                                                                struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
