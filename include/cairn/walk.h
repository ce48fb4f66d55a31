/*
 * cairn/walk.h - walking over a whole stack: over compiled code, and over the host's own code
 * between and outside of it, up to the outermost frame.
 *
 *     struct cairn_walk walk;
 *     cairn_walk_begin(&walk, &frame);
 *     walk.foreign = cairn_walk_native;
 *     while ((status = cairn_walk_next(&walk, &error)) == CAIRN_OK && !walk.has_ended)
 *         use(&walk.frame);
 *
 * A walk visits the frames of compiled code, the innermost first; cairn/frame.h has the functions
 * for them. At all other frames, which are foreign, the walk calls the hook `foreign`.
 *
 * A walk may begin at any instruction: also in code of Cairn's own, such as entries, exits,
 * closures, veneers and inline caches. Its first frame is then the caller's.
 *
 * Threads: a thread may walk its own stack, or the stack of a thread that is stopped meanwhile.
 * Every function is async-signal-safe and allocates nothing, with one exception: without
 * _dl_find_object (glibc 2.35), stepping over a native frame takes a lock and is not
 * async-signal-safe.
 *
 * See cairn-walks-and-roots(7) (doc/walks-and-roots.md): foreign frames, invalid stacks, times.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_WALK_H
#define CAIRN_WALK_H

#include <cairn/frame.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cairn_walk;

/** The answer of a hook. */
enum cairn_walk_answer {
    /** The walk ends at this frame. */
    CAIRN_WALK_END = 0,
    /** A frame of native code: the walk steps over it with cairn_frame_caller. */
    CAIRN_WALK_NATIVE = 1,
    /** The hook has changed `walk->frame` to an outer frame on the same stack. */
    CAIRN_WALK_MOVED = 2,
    /** The hook has changed `walk->frame` to a frame on another stack, and `walk->stack_end` to the
     *  end of that stack. */
    CAIRN_WALK_SWITCHED = 3
};

/** A hook, called at each foreign frame, `walk->frame`, which has a PC, a stack pointer, and the
 *  known registers. It must be async-signal-safe if walks begin in signal handlers. */
typedef enum cairn_walk_answer cairn_walk_hook(struct cairn_walk *walk, void *user);

enum { CAIRN_WALK_KNOWN = 8 };

/** A walk over a stack. */
struct cairn_walk {
    /** The current frame: after cairn_walk_next, a frame of a module, or the last frame. */
    struct cairn_frame frame;
    /** The walk has reached its end. `frame` is then the frame at which the hook has ended the
     *  walk, or, after the outermost frame, its PC is 0. */
    bool has_ended;
    uint64_t stack_end; /**< address after the stack, which no frame may exceed; 0 if unknown */
    cairn_walk_hook *foreign; /**< the hook; NULL: the walk ends at foreign frames */
    void *user;               /**< the hook's argument */

    /* Internal. */
    bool has_begun;
    uint32_t switches;
    /* A cache of unwind rules by PC. `next` is the number of the entry that was used after this
     * one, because the same functions call each other again and again. */
    struct {
        uint64_t pc;
        cairn_module *module;
        const void *row;
        uint8_t next;
        bool is_plain;
    } known[CAIRN_WALK_KNOWN];
    uint8_t known_count;
    uint8_t at;
    uint8_t misses;
};

/** Initialises a walk that begins with `frame`, which is copied. The walk has no hook, and the end
 *  of the stack is not known; the caller may set both afterwards. */
CAIRN_API void cairn_walk_begin(struct cairn_walk *walk, const struct cairn_frame *frame);

/**
 * Advances to the next frame of a module. The first call finds the frame that the walk began with,
 * if it belongs to a module; otherwise the nearest caller that does. Sets `has_ended` if no frame
 * is left.
 *
 * Errors: NOT_FOUND, UNSUPPORTED, CORRUPT as cairn_frame_caller; also CORRUPT if the frame would
 * end outside of the stack, if the hook has moved the frame inwards, or if the walk has changed
 * stacks more than 64 times; ARGUMENT if the hook's answer is unknown. After an error,
 * `walk->frame` is the last frame that was found, and another call searches its caller again.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_walk_next(struct cairn_walk *walk,
                                                             struct cairn_error *error);

/** Returns CAIRN_WALK_NATIVE: a hook for walks on which all foreign frames are native. */
CAIRN_API enum cairn_walk_answer cairn_walk_native(struct cairn_walk *walk, void *user);

/* ---- Freeing what nobody is in ---- */

/**
 * Frees each retired module in which no frame of these stacks is, and which has no references
 * (cairn_module_retain). Each walk must be at its beginning, at the innermost frame of a stack, and
 * have a hook: cairn_walk_native, if the stack has no code without unwind tables. The walks are at
 * their ends afterwards. Sets `*freed`, which may be NULL, to the number of freed modules.
 *
 * What is retired during the call is not freed, and neither is anything that is not a module:
 * exits, closures, entries and the code of inline caches wait for a grace period, because such code
 * is left without a frame (cairn/runtime.h). Takes time in proportion to the frames and to all
 * that is retired. Frees nothing if a visitor of caches calls it.
 *
 * The host guarantees, until this returns:
 *  - The stacks are all that can have frames in retired code: those of every thread, including the
 *    calling one, and those that are suspended, such as coroutines'.
 *  - The calling thread runs. The threads of other stacks are stopped, in a call or at a site, and
 *    not at any instruction. So none of them is about to branch to an address of retired code.
 *  - No retired module that has no frame is entered again: not by a site, cache, entry or pointer,
 *    also of retired code that has frames, and not by an action that a handler has selected
 *    (cairn_exit_enter, cairn_exit_resume).
 *  - Nobody uses records, sites, caches or function names of retired modules that have no frame.
 *
 * Signal handlers may meanwhile walk the stacks that they have interrupted, and look up any PC.
 *
 * Errors: ARGUMENT if a walk has no hook, has been advanced, or is of another runtime; others as
 * cairn_walk_next. Nothing is freed after an error, which tells at which PC the walk has ended.
 *
 * Threads: one thread at a time may call this for a runtime, and no signal handler. Threads that
 * are not in compiled code may call all other functions meanwhile, for example to load modules.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_runtime_free_unused(cairn_runtime *runtime,
                                                                       struct cairn_walk *walks,
                                                                       size_t count, size_t *freed,
                                                                       struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
