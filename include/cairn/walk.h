/*
 * cairn/walk.h - walking over a whole stack: through compiled code, through the host's own code
 * between its pieces, to the outermost frame.
 *
 *     struct cairn_walk walk;
 *     cairn_walk_begin(&walk, &frame);
 *     walk.foreign = cairn_walk_native;
 *     while ((status = cairn_walk_next(&walk, &error)) == CAIRN_OK && !walk.has_ended)
 *         use(&walk.frame);
 *
 * visits the frames of compiled code, from the innermost one on. Of each, the functions of
 * cairn/frame.h tell the function, the record (of frames that wait, that of the call: RECORDS
 * there), values and roots; registers that calls leave as they
 * are can be read and written wherever a function further in has saved them, the host's included.
 *
 * FOREIGN FRAMES are all others: what compiled code has called, and what has called it. A walk asks
 * the host's hook at each of them, and the hook answers
 *  - that the walk ends there;
 *  - that it is a frame of native code, with unwind tables, which the walk is to step over: what
 *    cairn_walk_native answers always;
 *  - that it has moved the frame itself.
 * Without a hook a walk ends at the first foreign frame.
 *
 * NATIVE FRAMES are those of the program and its libraries, from C or any other language. Their
 * rules are in .eh_frame, which compilers write for x86-64 and AArch64 unless they are told not to,
 * and for others with -fasynchronous-unwind-tables. A walk finds them through the dynamic linker;
 * code that was generated in memory by others than Cairn is not found. On x86-64 signal handlers
 * are stepped over like any function, to what the signal has interrupted; elsewhere the rules of
 * what they return through do not say all that is needed, and walks end there with UNSUPPORTED.
 *
 * CODE WITHOUT UNWIND TABLES between compiled frames (another JIT, assembly, an interpreter that
 * was compiled without) needs entry frames: the host keeps a list, on the stack or in its thread's
 * data, of where compiled code was left. The recommended way:
 *  - Compiled code is left through code that notes its PC and stack pointer: an exit
 *    (cairn/deopt.h), whose handler puts the address of `deopt->frame` into the list for as long as
 *    it runs; or a stub that makes a context of what it knows (cairn_context_set_pc,
 *    cairn_context_set_sp, cairn_context_write) with the PC that the call returns to.
 *  - The hook, at a foreign frame, takes from the list the first entry above the frame's stack
 *    pointer, puts it into `walk->frame` (a copy of the frame, or cairn_frame_calling of the
 *    context), and answers CAIRN_WALK_MOVED; with nothing left, CAIRN_WALK_END.
 * Registers that such an entry does not have are not known further out, until a frame has saved
 * them: reading them is refused. So code at whose calls values live in registers (not statepoints,
 * whose values are on the stack but for LLVM 16 and later, if asked to) should be left with all of
 * them noted.
 *
 * THREADS. A thread walks its own stack, or that of a thread that does not run meanwhile: one that
 * waits in the handler of a signal, from the context that cairn_context_from_signal makes of the
 * handler's ucontext.
 *
 * Modules are found while they are published. Frames that wait in a retired module are foreign, and
 * no tables of the system know them.
 *
 * BAD STACKS. What is read is checked: each frame ends above the one before, and below `stack_end`
 * where that is known. A stack that was overwritten gives CORRUPT, or ends the walk early; only
 * where `stack_end` is not known can a frame of wrong size be one that cannot be read.
 *
 * All functions here are async-signal-safe and allocate nothing. Stepping over a native frame takes
 * about 16 KiB of the stack that it runs on; and it takes a lock where the C library does not have
 * _dl_find_object (glibc 2.35): there it is not async-signal-safe.
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

enum cairn_walk_answer {
    /** The walk ends here. */
    CAIRN_WALK_END = 0,
    /** A frame of native code: cairn_frame_native_caller. */
    CAIRN_WALK_NATIVE = 1,
    /** The hook has moved the frame outwards on the same stack. */
    CAIRN_WALK_MOVED = 2,
    /** The hook has moved it to another stack, and set the walk's `stack_end` to that one's. */
    CAIRN_WALK_SWITCHED = 3
};

/** Asked at each foreign frame, `walk->frame`: its pc, sp, and what registers are known. May be
 *  called in a signal handler if walks begin there. */
typedef enum cairn_walk_answer cairn_walk_hook(struct cairn_walk *walk, void *user);

enum { CAIRN_WALK_KNOWN = 8 };

struct cairn_walk {
    /** Where the walk is: after cairn_walk_next a frame of a module, or the last one. */
    struct cairn_frame frame;
    /** There are no further frames. `frame` is then where the hook has ended the walk, or has 0 for
     *  its pc: it lies behind the outermost one. */
    bool has_ended;
    /** The address behind the stack: no frame reaches further. 0: not known. */
    uint64_t stack_end;
    /** NULL: the walk ends at foreign frames. */
    cairn_walk_hook *foreign;
    void *user;

    /* Cairn's own. */
    bool has_begun;
    uint32_t switches;
    /* Rules that were used, by PC, and after each the number of those that were used next:
     * functions call each other again and again. */
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

/** A walk that begins with `frame`, which is copied. It has no hook and knows no end of the stack:
 *  both may be set then. */
CAIRN_API void cairn_walk_begin(struct cairn_walk *walk, const struct cairn_frame *frame);

/**
 * Moves to the next frame of a module: at first the one that the walk began with, if it is one,
 * then its callers. Sets `has_ended` if there is none.
 *
 * After an error `walk->frame` is the frame that could not be left, and may be looked at; another
 * call tries again. NOT_FOUND, UNSUPPORTED, CORRUPT: as cairn_frame_caller and
 * cairn_frame_native_caller. CORRUPT: the frame would end outside of the stack, the hook has moved
 * it inwards, or the walk has gone from stack to stack 64 times. ARGUMENT: an unknown answer.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_walk_next(struct cairn_walk *walk,
                                                             struct cairn_error *error);

/** The hook that takes every foreign frame for a native one. */
CAIRN_API enum cairn_walk_answer cairn_walk_native(struct cairn_walk *walk, void *user);

/**
 * Moves to the caller of a frame of native code, which may be code of a module again. Behind the
 * outermost frame `frame->pc` is 0.
 *
 * NOT_FOUND: nothing is loaded there, the function has no unwind rules, or they begin with a
 * register that is not known. UNSUPPORTED: its rules are such as Cairn cannot follow, CORRUPT: they
 * contradict themselves or the stack; the sentence says which. The frame stays as it was.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_native_caller(struct cairn_frame *frame,
                                                                       struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
