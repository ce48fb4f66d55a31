/*
 * cairn/log.h - an event log: what runtimes do, with time, thread, site and reason, in a file.
 *
 *     status = cairn_log_create("vm.log", NULL, &log, &error);
 *     if (status == CAIRN_OK)
 *         status = cairn_log_attach(log, runtime, &error);
 *     cairn_log_destroy(log);             the runtime goes on recording
 *
 * `cairn report vm.log -o report.html` makes a page of it. The file has a fixed size: when it is
 * full, events are counted and not recorded. It must not be made shorter while its process runs
 * (SIGBUS).
 *
 * Threads: events are recorded without locks and without allocating, in any number of threads, in
 * signal handlers and in handlers of exits. Every function is thread-safe, but signal handlers must
 * not call it.
 *
 * What a forked child does is not recorded in its parent's log.
 *
 * See cairn-events(7) (doc/events.md): the form of the file, crashes, forked children.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_LOG_H
#define CAIRN_LOG_H

#include <cairn/allocator.h>
#include <cairn/runtime.h>
#include <cairn/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The file ---- */

#define CAIRN_LOG_MAGIC "CAIRNLOG"

enum {
    CAIRN_LOG_VERSION = 1,
    CAIRN_LOG_BYTE_ORDER = 0x01020304,
    CAIRN_LOG_SLOT_BYTES = 64,
    CAIRN_LOG_STRING_BYTES = 56,       /**< bytes of a string in its first slot */
    CAIRN_LOG_STRING_BYTES_MAX = 1000, /**< longer strings are cut */
};

/** The start of the file: 128 bytes. */
struct cairn_log_header {
    char magic[8];          /**< CAIRN_LOG_MAGIC without a zero byte */
    uint32_t byte_order;    /**< CAIRN_LOG_BYTE_ORDER */
    uint32_t version;       /**< CAIRN_LOG_VERSION */
    uint32_t header_bytes;  /**< offset of the first slot: 128 */
    uint32_t slot_bytes;    /**< CAIRN_LOG_SLOT_BYTES */
    uint64_t slot_count;    /**< number of slots in the file */
    uint64_t start_time_ns; /**< CLOCK_REALTIME when the log was created */
    uint64_t start_clock;   /**< the events' clock at that time */
    uint64_t clock_hz;      /**< ticks of the events' clock in a second */
    uint64_t process;       /**< process ID */
    char cairn_version[16]; /**< such as "0.1.0", filled with zero bytes */
    uint64_t next;          /**< number of slots that are used; may exceed `slot_count` */
    char architecture[16];  /**< such as "x86-64", filled with zero bytes */
    uint64_t lost;          /**< number of events that found the log full */
    uint64_t end_clock;     /**< the clock when the log was destroyed; 0: it was not */
    uint64_t reserved;      /**< 0 */
};

/** Kinds of slots. Comments give the meaning of an event's fields; others are 0. */
enum cairn_log_kind {
    CAIRN_LOG_INCOMPLETE = 0, /**< not used, or its thread has not finished it */
    CAIRN_LOG_STRING = 1,     /**< struct cairn_log_string */
    /** A module is published. `module`, `name`; `address`: start of its code; `a`: bytes of code;
     *  `b`: nanoseconds of compilation, 0 if unknown. */
    CAIRN_LOG_MODULE_LOADED = 2,
    /** A module is retired. `module`, `name`. */
    CAIRN_LOG_MODULE_RETIRED = 3,
    /** A function of a published module. `module`, `name`, `address`; `a`: bytes of code. */
    CAIRN_LOG_FUNCTION = 4,
    /** A site is patched. `address`, `id`, `module`; `a`: enum cairn_site_state; `b`: target. Its
     *  function is the CAIRN_LOG_FUNCTION of the module that contains the address. */
    CAIRN_LOG_SITE_PATCHED = 5,
    /** The cases of an inline cache change, or it is created (empty to empty). `address`: its site;
     * `id`, `module`; `name`: the site's function; `a`: old state << 32 | new state (enum
     * cairn_ic_state); `b`: key of the case that was added last, 0 if none was; `text`: what
     * `describe_key` says of it. */
    CAIRN_LOG_CACHE = 6,
    /** A thread reaches an exit. `address`: the frame's PC; `id`, `module`, `name`: function; `a`:
     *  position in the interpreter of the record's innermost frame, UINT64_MAX if unknown; `text`:
     *  what `describe_position` says of it. */
    CAIRN_LOG_EXIT = 7,
    /** The exit's handler has returned. `address`, `id`, `module`, `name` as for CAIRN_LOG_EXIT;
     *  `text`: the host's reason (cairn_exit_call, `reason`); `a`: enum cairn_log_action, and in
     *  its upper 32 bits the position + 1, 0 if unknown or too large; `b`: nanoseconds since
     *  CAIRN_LOG_EXIT.
     */
    CAIRN_LOG_DEOPT = 8,
    /** Sites were invalidated, or an assumption was broken. `a`: its number in the log; `b`: number
     *  of changed sites; `text`: "invalidation" or "assumption". */
    CAIRN_LOG_INVALIDATION = 9,
    /** One function that an invalidation has hit, after its CAIRN_LOG_INVALIDATION. `a`: its
     *  number; `b`: number of sites in the function; `module`, `name`; `address`: start of the
     *  function. */
    CAIRN_LOG_INVALIDATED = 10,
    /** A grace period. `a`: 0 if it is started, 1 if it has ended; `b`: number of modules that were
     *  freed; `id`: its token. */
    CAIRN_LOG_GRACE = 11,
    /** A version is installed in an entry. `name`: the entry's; `address`: the version's code;
     *  `module`: its module; `a`: number of the installation, from 1; `b`: 1 if the code is in a
     *  module, otherwise 0 (an interpreter's). */
    CAIRN_LOG_VERSION_INSTALLED = 12,
    /** The host's own event: cairn_log_write. `address`, `id`, `name`, `text`, `a`, `b`. */
    CAIRN_LOG_HOST = 13,
    /** Something was compiled, by libcairn-llvm (`name`: a module's or a function's) or by the host
     *  (cairn_log_write). `a`, `b`: clock at start and end; `text`: what has compiled it. */
    CAIRN_LOG_COMPILATION = 14,
};

/** What the handler of an exit has chosen (CAIRN_LOG_DEOPT). */
enum cairn_log_action {
    CAIRN_LOG_ACTION_CONTINUE = 0,
    CAIRN_LOG_ACTION_RETURN = 1,
    CAIRN_LOG_ACTION_ENTER = 2,
    CAIRN_LOG_ACTION_RESUME = 3,
};

/** A slot that is an event: 64 bytes. */
struct cairn_log_event {
    uint32_t kind;    /**< enum cairn_log_kind */
    uint32_t thread;  /**< Linux's thread ID */
    uint64_t clock;   /**< ticks; see `clock_hz` */
    uint64_t address; /**< of code */
    uint64_t id;      /**< ID of a record, or another number */
    uint64_t a;       /**< see enum cairn_log_kind */
    uint64_t b;       /**< see enum cairn_log_kind */
    uint32_t name;    /**< index of a string's first slot, plus 1; 0: none */
    uint32_t text;    /**< likewise */
    uint64_t module;  /**< number of a module in this log, from 1; 0: none */
};

/** The first slot of a string. The remaining bytes are in the following slots, 64 in each, which
 *  have no kinds. */
struct cairn_log_string {
    uint32_t kind;                      /**< CAIRN_LOG_STRING */
    uint32_t length;                    /**< bytes of the whole string */
    char bytes[CAIRN_LOG_STRING_BYTES]; /**< not terminated */
};

/* ---- Recording ---- */

/** Options for creating a log. All zero is the default. */
struct cairn_log_options {
    /** The number of slots of 64 bytes; 0 means 262144 (16 MiB). Each event takes one, and each
     *  string as many as it needs, once. From 64 to 2^26. */
    uint64_t slot_count;
    /** The allocator for the table of strings; a NULL function means malloc. */
    struct cairn_allocator allocator;
    /** Writes what a key of an inline cache stands for, such as the name of a shape, to `text`, as
     * a string that is shorter than `size` bytes. "" is for none. Called in any thread that adds a
     *  case, with a lock held: it must not call Cairn. NULL: keys are only numbers. */
    void (*describe_key)(uint64_t key, char *text, size_t size, void *user);
    /** Writes where the host's source has a position in the interpreter, such as "fib.lox:3", in
     * the same way. The function and the position are those of the innermost interpreter frame
     *  (cairn/frame_state.h). Called before the handler of an exit, in its thread, and in a signal
     *  handler if the exit was reached by a fault. NULL: positions are only numbers. */
    void (*describe_position)(uint64_t function, uint64_t position, char *text, size_t size,
                              void *user);
    void *user; /**< the last argument of both */
};

/** A log. */
typedef struct cairn_log cairn_log;

/**
 * Creates a log in a new file. A regular file of that name is replaced; a process that maps it
 * keeps the old one. `options` NULL means all zero. The caller owns `*log`.
 *
 * Errors: ARGUMENT, MEMORY; SYSTEM (the path is not of a regular file, it cannot be created, or
 * there is no space for it).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_log_create(
    const char *path, const struct cairn_log_options *options, cairn_log **log,
    struct cairn_error *error);

/**
 * Records the events of a runtime from now on, until the runtime is destroyed. Its present modules
 * are recorded first. Several runtimes may have one log.
 *
 * Errors: ARGUMENT; STATE if the runtime has a log already (in a forked child, the parent's log is
 * replaced), or the log belongs to another process.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_log_attach(cairn_log *log,
                                                              cairn_runtime *runtime,
                                                              struct cairn_error *error);

/** An event of the host's. All fields are optional. */
struct cairn_log_message {
    const char *text;        /**< what has happened, or why; copied; NULL: none */
    const char *name;        /**< what it is about, such as a function; copied; NULL: none */
    uint64_t address;        /**< of code; 0: none */
    uint64_t id;             /**< ID of a record; 0: none */
    uint64_t values[2];      /**< the host's numbers: fields `a` and `b` */
    uint64_t compilation_ns; /**< not 0: a compilation, by the host's own compiler, that ends now
                              *   and has taken so long; `values` are not used */
};

/** Records an event of kind CAIRN_LOG_HOST or CAIRN_LOG_COMPILATION in the runtime's log. Does
 * nothing if the runtime is NULL or has no log, or the log is full or belongs to another process.
 * Thread-safe and async-signal-safe. */
CAIRN_API void cairn_log_write(cairn_runtime *runtime, const struct cairn_log_message *message);

/** Destroys the log. Runtimes that it was attached to record in it until they are destroyed, too;
 * then the file is closed. NULL is allowed. */
CAIRN_API void cairn_log_destroy(cairn_log *log);

#ifdef __cplusplus
}
#endif
#endif
