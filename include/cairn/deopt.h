/*
 * cairn/deopt.h - leaving compiled code at a site: to look at its frame, to change it, to return
 * from it.
 *
 * An exit is what a site calls to get to the host's handler with the whole frame:
 *
 *     static void overflowed(struct cairn_deopt *deopt, void *user)
 *     {
 *         struct cairn_value left;
 *         if (cairn_frame_value(&deopt->frame, deopt->record, 0, &left, NULL) != CAIRN_OK)
 *             …
 *         struct cairn_value sum = cairn_value_of_double(add(user, &left));
 *         if (cairn_deopt_return(deopt, &sum, 1, &error) != CAIRN_OK)
 *             …
 *     }
 *
 *     cairn_exit_create(runtime, overflowed, interpreter, &exit, &error)
 *     cairn_site_call(site, cairn_exit_target(exit), CAIRN_SYNC, &error)
 *
 * The handler runs on the thread's own stack, below the frame, as any function that the code calls.
 * It may call anything: compiled code too, which may come to exits itself. It must return: it must
 * not leave by longjmp or by an exception.
 *
 * WHAT HAPPENS NEXT the handler says with one of the actions; with none, the code goes on behind
 * the site. An action is checked when it is asked for, and done when the handler has returned. The
 * last one that was accepted counts.
 *
 * OSR EXIT. Compiled code that cannot go on comes to an exit whose handler reads the live values.
 * Either the handler interprets the rest of the function itself and returns its result in the
 * function's place (cairn_deopt_return); the handler is then a C frame below the compiled one until
 * that is done. Or it enters the interpreter as a function in the frame's place, with the live
 * values as arguments (cairn_deopt_enter): the compiled frame is gone before the interpreter
 * begins, which is what a loop wants that goes from one to the other often. Compiled code that
 * replaces compiled code is entered in the same way. How the interpreter enters compiled code
 * stands in cairn/call.h.
 *
 * REGISTERS. The code finds every register as it was, vector registers and flags included, but for
 * what the handler has written to the frame, and what an action changes; and for those that the ABI
 * leaves to code between caller and callee (x16 and x17 on AArch64; r12 and CTR on PPC64, r11 too
 * with ELFv1, but at a shadow that holds one instruction r12 alone). So an exit may be the target
 * of a patch point of any calling convention, and of a stack map's shadow.
 *
 * To have all threads leave a function, those too that are in functions which it has called:
 * cairn/invalidation.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_DEOPT_H
#define CAIRN_DEOPT_H

#include <cairn/call.h>
#include <cairn/frame.h>
#include <cairn/module.h>
#include <cairn/status.h>
#include <cairn/value.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Results of one function. */
enum { CAIRN_DEOPT_RESULTS_MAX = CAIRN_FUNCTION_RESULTS_MAX };

/** Cairn's own: what a function is entered with. */
enum { CAIRN_DEOPT_ENTRY_BYTES = 1600 };

/** A thread that has come to an exit. */
struct cairn_deopt {
    /** The frame of the function that the site is in. Its module is NULL, and no action but going
     *  on is possible, if the exit was called from elsewhere. */
    struct cairn_frame frame;
    /** The record of the site, or of the call that has led here (cairn/frame.h, RECORDS); its table
     * is NULL if there is none. Of records at the same address, the first. */
    struct cairn_record record;

    /* Cairn's own. */
    uint8_t action;
    uint8_t result_count;
    bool extends_sign;
    uint64_t entry_code;
    struct cairn_frame caller;
    struct cairn_value results[CAIRN_DEOPT_RESULTS_MAX];
#ifdef __cplusplus
    alignas(16) unsigned char entry[CAIRN_DEOPT_ENTRY_BYTES];
#else
    _Alignas(16) unsigned char entry[CAIRN_DEOPT_ENTRY_BYTES];
#endif
};

/** What an exit calls. `deopt` is valid until it returns; `user` is the exit's. */
typedef void cairn_deopt_handler(struct cairn_deopt *deopt, void *user);

typedef struct cairn_exit cairn_exit;

/** An exit to `handler`, for sites of one runtime, in a page of its code memory. Thread-safe.
 *  ARGUMENT, UNSUPPORTED (Cairn cannot save all registers that this machine has), and what
 *  cairn_loader_finish gives. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_exit_create(cairn_runtime *runtime,
                                                               cairn_deopt_handler *handler,
                                                               void *user, cairn_exit **exit,
                                                               struct cairn_error *error);

/** Gives the exit up, before its runtime goes. Its code and its handler are still in use until the
 *  next quiescent point: by threads that are in it, and by sites that still call it, which must
 * have been changed by then. Its own handler may destroy it. NULL is allowed, and a second call
 * before that quiescent point. */
CAIRN_API void cairn_exit_destroy(cairn_exit *exit);

/** What to give cairn_site_call as target; or LLVM as the address of a function without arguments
 *  and result that the code declares and calls (cairn/roots.h). As long-lived as the exit. */
CAIRN_API const void *cairn_exit_target(const cairn_exit *exit);

/* ---- Actions: to be called by the handler, on its thread ---- */

/** The code goes on behind the site; `result` is what the patch point's call returns, of the type
 *  that was declared. NULL: the result, if the site has one, is what the register holds. ARGUMENT
 *  if the types differ (the sentence names both), or the site has no result. NOT_FOUND without a
 *  declaration. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_deopt_continue(struct cairn_deopt *deopt,
                                                                  const struct cairn_value *result,
                                                                  struct cairn_error *error);

/**
 * The frame's function returns to its caller, with these results: none for void, one, or the
 * members of a structure that is returned in registers. The caller finds all registers that calls
 * leave as they are as it had left them, and its stack pointer; the frame is gone.
 *
 * ARGUMENT: the results are not of the function's type, as far as it was declared (the sentence
 * names both). NOT_FOUND: the function has no unwind rules; the sentence says which attribute is
 * missing. UNSUPPORTED: its rules do not say where all of the caller's registers are, or a result
 * has no register; CORRUPT: the stack does not look like one. Nothing was changed then.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_deopt_return(struct cairn_deopt *deopt,
                                                                const struct cairn_value *results,
                                                                uint32_t result_count,
                                                                struct cairn_error *error);

/**
 * Another function is entered in the frame's place: when the handler has returned, the frame is
 * gone, and `function` (a function pointer: C's or compiled) runs as if the frame's caller had
 * called it with these arguments. What it returns goes to the caller as it is, which finds its
 * registers and its stack as after any call. The values are copied; the signature is not needed any
 * more when this has returned.
 *
 * Between the function and the caller there may be a frame of Cairn's (arguments on the stack; on
 * PPC64 always), in code of the exit's, through which walks go on. A function that is entered in
 * the place of one that was entered takes the place of that frame, too: the stack does not grow.
 *
 * ARGUMENT: the values are not the signature's arguments, or its results are not what the frame's
 * function returns, as far as that was declared (the sentence names both). Others as for
 * cairn_deopt_return. Nothing was changed then. Whether the function extends a narrow result as the
 * caller expects it (LLVM's signext and zeroext) is not known and not checked.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_deopt_enter(
    struct cairn_deopt *deopt, const cairn_signature *signature, const void *function,
    const struct cairn_value *arguments, uint32_t argument_count, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
