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
 * This loop visits the frames of compiled code, the innermost first. The functions of cairn/frame.h
 * return each frame's function, record, values and roots. For a frame that waits for a callee, the
 * record is the call's (RECORDS there). Callee-saved registers can be read and written even if a
 * function further in, such as one of the host's, has saved them.
 *
 * FOREIGN FRAMES are all frames that do not belong to a module: callees and callers of compiled
 * code. At each of them, a walk calls the host's hook, whose answer (enum cairn_walk_answer) ends
 * the walk, or lets it step over native code, or says that the hook has moved the walk's frame.
 * Without a hook, a walk ends at the first foreign frame.
 *
 * NATIVE FRAMES are frames of the program and its libraries, in C or any other language. Their
 * unwind rules are in .eh_frame. Compilers write it by default for x86-64 and AArch64, and for
 * other architectures with -fasynchronous-unwind-tables. A walk finds the rules through the dynamic
 * linker, so it does not find code that was generated in memory, except for Cairn's. On x86-64, a
 * walk steps over a signal handler to the interrupted frame. On other architectures, the rules of
 * the signal trampoline are incomplete, and walks fail there with UNSUPPORTED.
 *
 * CODE WITHOUT UNWIND TABLES between compiled frames (another JIT, assembly, an interpreter that
 * was compiled without them) needs entry frames: the host keeps a list, on the stack or in
 * thread-local data, of the places at which compiled code was left. The recommended method:
 * - Compiled code is left through code that records its PC and stack pointer. This can be an exit
 *   (cairn/exit.h), whose handler keeps the address of `call->frame` in the list while it runs. Or
 *   it can be a stub that writes the registers it has to a context (cairn_context_write), where
 *   CAIRN_REGISTER_PC is the return address of the call.
 * - At a foreign frame, the hook takes the first entry of the list above the frame's stack pointer,
 *   writes it to `walk->frame` (a copy of the frame, or cairn_frame_from_context), and
 *   returns CAIRN_WALK_MOVED. If there is no such entry, it returns CAIRN_WALK_END.
 *
 * Registers that such an entry does not hold are unknown in the outer frames, up to the first frame
 * that has saved them; reading them fails. So if live values of a call are in registers, the entry
 * should hold all registers. Values of statepoints are on the stack, unless LLVM 16 or later was
 * told otherwise.
 *
 * COST (doc/performance.md). A step from a frame of a module to its caller takes 6 to 10 ns while
 * the stack consists of few different functions, and 18 ns otherwise; 12 to 25 ns with the frame's
 * function and record. A step over a native frame reads the program's unwind tables, and takes
 * 460 ns. So a walk that passes many of them should use entry frames.
 *
 * THREADS. A thread may walk its own stack, or that of a thread that is stopped meanwhile: for
 * example one that waits in a signal handler, from the context that cairn_context_from_signal makes
 * of the handler's ucontext.
 *
 * RETIRED MODULES are found, too: their frames are visited like others until a grace period frees
 * the module, which must not happen while such a frame is on any stack (cairn/runtime.h).
 *
 * INVALID STACKS. The walk checks what it reads: each frame must end above the previous one, and
 * below `stack_end` if that is known. An overwritten stack results in CORRUPT, or in an early end
 * of the walk. If `stack_end` is not known, a frame of wrong size can make the walk read
 * inaccessible memory.
 *
 * All functions are async-signal-safe and allocate nothing, with one exception: if the C library
 * does not have _dl_find_object (glibc 2.35), stepping over a native frame takes a lock and is not
 * async-signal-safe. Stepping over a native frame needs about 16 KiB of stack.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_WALK_H
#define CAIRN_WALK_H

#include <cairn/frame.h>
#include <cairn/status.h>
#include <stdbool.h>
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
    /** Whether there are no further frames. `frame` is then the frame at which the hook has ended
     *  the walk, or, after the outermost frame, its PC is 0. */
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
 * if it belongs to a module; otherwise the nearest caller that does. Sets `has_ended` if there is
 * none.
 *
 * Errors: NOT_FOUND, UNSUPPORTED, CORRUPT as cairn_frame_caller; also CORRUPT if the frame would
 * end outside of the stack, if the hook has moved the frame inwards, or if the walk has changed
 * stacks more than 64 times; ARGUMENT if the hook's answer is unknown. After an error,
 * `walk->frame` is the frame whose caller was not found, and another call tries again.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_walk_next(struct cairn_walk *walk,
                                                             struct cairn_error *error);

/** Returns CAIRN_WALK_NATIVE: a hook for walks on which all foreign frames are native. */
CAIRN_API enum cairn_walk_answer cairn_walk_native(struct cairn_walk *walk, void *user);

#ifdef __cplusplus
}
#endif
#endif
