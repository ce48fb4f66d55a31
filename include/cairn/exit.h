/*
 * cairn/exit.h - leaving compiled code at a site: exits, whose handlers can inspect and change the
 * frame, return from it, or replace it.
 *
 *     static void overflowed(struct cairn_exit_call *call, void *user)
 *     {
 *         struct cairn_value left, sum;
 *         if (cairn_frame_value(&call->frame, call->record, 0, &left, &error) != CAIRN_OK)
 *             …
 *         sum = cairn_value_of_double(add(user, &left));
 *         status = cairn_exit_return(call, &sum, 1, &error);
 *     }
 *
 *     status = cairn_site_leave(site, overflowed, interpreter, CAIRN_SYNC, &exit, &error);
 *
 * The handler runs on the thread's own stack, below the frame. It may call any function, including
 * compiled code, but it must return: not leave by longjmp or an exception. It selects what happens
 * then by cairn_exit_continue, cairn_exit_return, cairn_exit_enter or cairn_exit_resume: the last
 * accepted action is carried out after the handler has returned. Without an action, the code
 * continues after the site. Other C functions that compiled code calls may longjmp over its frames.
 *
 * Threads: every function is thread-safe, but signal handlers must not call it.
 *
 * See cairn-exits-and-frames(7) (doc/exits-and-frames.md): deoptimisation, throwing, registers,
 * times.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_EXIT_H
#define CAIRN_EXIT_H

#include <cairn/call.h>
#include <cairn/frame.h>
#include <cairn/module.h>
#include <cairn/patch.h>
#include <cairn/status.h>
#include <cairn/value.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum number of results of a function. */
enum { CAIRN_EXIT_RESULTS_MAX = CAIRN_FUNCTION_RESULTS_MAX };

/** A thread's call of an exit. Cairn keeps more about the call after it, so the handler passes the
 *  pointer on and does not copy the struct. */
struct cairn_exit_call {
    /** The frame of the function that contains the site. If the exit was called from elsewhere, the
     *  frame's module is NULL, and the only possible actions are to continue and to resume. */
    struct cairn_frame frame;
    /** The record of the site, or of the call that has reached the exit
     *  (cairn-exits-and-frames(7)). If there are several at the address, it is the first one;
     *  without a record, its table is NULL. */
    struct cairn_record record;
    /** The reason why the code was left, for the runtime's log (cairn/log.h). NULL; the handler may
     *  set it to a string that stays valid until it has returned. */
    const char *reason;
};

/** The handler of an exit. `call` is valid until the handler returns; `user` is the argument of
 *  cairn_exit_create or cairn_site_leave. */
typedef void cairn_exit_handler(struct cairn_exit_call *call, void *user);

/** An exit. */
typedef struct cairn_exit cairn_exit;

/**
 * Creates an exit that calls `handler`, in the runtime of the site, and makes the site call it. The
 * caller owns `*exit`. Errors: as cairn_exit_create and cairn_site_call.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_leave(
    cairn_site *site, cairn_exit_handler *handler, void *user, enum cairn_strength strength,
    cairn_exit **exit, struct cairn_error *error);

/**
 * Creates an exit that calls `handler`, for sites of one runtime, in the runtime's code memory. It
 * takes about 128 bytes. The caller owns `*exit`. Errors: ARGUMENT; UNSUPPORTED (Cairn cannot save
 * all registers of this machine); others as cairn_loader_finish.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_exit_create(cairn_runtime *runtime,
                                                               cairn_exit_handler *handler,
                                                               void *user, cairn_exit **exit,
                                                               struct cairn_error *error);

/**
 * Destroys an exit, which may be NULL. It must be called before the runtime is destroyed.
 *
 * The exit's code and handler remain in use, by threads that are in them and by sites that still
 * call the exit, until a grace period that began later ends (cairn/runtime.h). Such sites must be
 * patched before that. The exit's own handler may destroy it. Another call for the same exit is
 * allowed until then.
 */
CAIRN_API void cairn_exit_destroy(cairn_exit *exit);

/**
 * Returns the address of the exit, valid as long as the exit: the target for cairn_site_call, or in
 * LLVM the address of a function without arguments and result that the code declares and calls
 * (cairn-walks-and-roots(7)). Thread-safe and async-signal-safe.
 */
CAIRN_API const void *cairn_exit_target(const cairn_exit *exit);

/* ---- Actions: called by the handler, on its thread ----
 *
 * Threads: only the handler calls this, in its own thread. Async-signal-safe. */

/**
 * Continues after the site, with `result` as the result of the patch point's call, which must have
 * the declared type. If `result` is NULL, the call's result is the value in the result register.
 * Errors: ARGUMENT if the types differ (the message names both), or the site has no result;
 * NOT_FOUND if the site has no declaration.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_exit_continue(struct cairn_exit_call *call,
                                                                 const struct cairn_value *result,
                                                                 struct cairn_error *error);

/**
 * Returns from the frame's function to its caller, with these results; several are the members of a
 * structure that is returned in registers. The frame is removed. The caller's stack pointer and
 * callee-saved registers are restored.
 *
 * Errors: ARGUMENT if the results do not have the declared type of the function (the message names
 * both); NOT_FOUND if the function has no unwind rules (the message names the missing attribute);
 * UNSUPPORTED if its rules do not contain the places of all registers of the caller, or a result
 * has no register; CORRUPT if the stack is invalid. Nothing is changed after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_exit_return(struct cairn_exit_call *call,
                                                               const struct cairn_value *results,
                                                               uint32_t result_count,
                                                               struct cairn_error *error);

/**
 * Enters another function in place of the frame: after the handler has returned, the frame is
 * removed, and `function` (a function pointer, to C or compiled code) runs as if the frame's caller
 * had called it with these arguments. Its result is returned to that caller unchanged. The caller's
 * stack pointer and callee-saved registers are the same as after any call. The values are copied;
 * the signature is not needed after this function has returned.
 *
 * There may be a frame of Cairn's between the function and the caller (for arguments on the stack;
 * always on PPC64). Its code is in a module of the runtime's, which the first exit or inline cache
 * creates, and walks can step over it. If a function that was entered in this way is replaced
 * again, that frame is replaced, too: the stack does not grow.
 *
 * Errors: ARGUMENT if the values do not match the signature's arguments, or its results do not
 * match the declared results of the frame's function (the message names both); others as
 * cairn_exit_return. Nothing is changed after an error. It is not checked whether the function
 * extends a narrow result as the caller expects (LLVM's signext and zeroext).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_exit_enter(
    struct cairn_exit_call *call, const cairn_signature *signature, const void *function,
    const struct cairn_value *arguments, uint32_t argument_count, struct cairn_error *error);

/**
 * Resumes the thread at a context that was made earlier (cairn-exits-and-frames(7)): after the
 * handler has returned, all frames further in than the context's are removed, and the thread
 * continues with the registers of the context. In a context of cairn_context_save, that call
 * returns 1. The context is read after the handler has returned, and must stay valid and unchanged
 * until then. Its stack pointer must be in the thread's current stack. See also
 * cairn_context_resume.
 *
 * Errors: ARGUMENT if the context's stack pointer is further in than the site's; NOT_FOUND if the
 * context does not hold a stack pointer and a program counter. Nothing is changed after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_exit_resume(struct cairn_exit_call *call,
                                                               const struct cairn_context *context,
                                                               struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
