/*
 * cairn/exit.h - leaving compiled code at a site: exits, whose handlers can inspect and change the
 * frame, return from it, or replace it.
 *
 * An exit is code that calls a handler of the host, and a target for sites. For example, to return
 * from a function with the result of the interpreter:
 *
 *     static void overflowed(struct cairn_exit_call *call, void *user)
 *     {
 *         struct cairn_value left;
 *         if (cairn_frame_value(&call->frame, call->record, 0, &left, NULL) != CAIRN_OK)
 *             …
 *         struct cairn_value sum = cairn_value_of_double(add(user, &left));
 *         if (cairn_exit_return(call, &sum, 1, &error) != CAIRN_OK)
 *             …
 *     }
 *
 *     cairn_site_leave(site, overflowed, interpreter, CAIRN_SYNC, &exit, &error)
 *
 * The handler runs on the thread's own stack, below the frame, like any function that the code
 * calls. It may call any function, including compiled code that reaches exits itself. It must
 * return normally: it must not leave by longjmp or by an exception.
 *
 * ACTIONS. The handler selects what happens when it returns, by calling one of the functions under
 * "Actions". An action is checked when its function is called, and carried out after the handler
 * has returned. If several actions were accepted, the last one is carried out. Without an action,
 * the code continues after the site.
 *
 * DEOPTIMISATION (OSR exit). If compiled code cannot continue, the handler of an exit reads the
 * live values. There are two ways to continue in the interpreter:
 *
 * - The handler interprets the remainder of the function and returns its result in place of the
 *   function (cairn_exit_return). Meanwhile, the handler is a C frame below the compiled one.
 * - The handler lets the thread enter the interpreter in place of the frame, with the live values
 *   as arguments (cairn_exit_enter). The compiled frame is removed before the interpreter begins.
 *   Use this where a loop often switches between compiled code and the interpreter.
 *
 * THROWING. A VM's error leaves many frames at once: compiled ones, those of the interpreter that
 * called them, and those of C functions in between, up to a C function with a handler for errors.
 * That function saves its context before it calls anything that may throw:
 *
 *     bool run_protected(struct vm *vm, struct function *function)
 *     {
 *         struct protection here = {.outer = vm->protection};
 *         vm->protection = &here;
 *         bool succeeded = cairn_context_save(&here.context) == 0;
 *         if (succeeded)
 *             run(vm, function);                         interpreted or compiled
 *         vm->protection = here.outer;
 *         return succeeded;                              otherwise the error is in vm->error
 *     }
 *
 * The handler of an exit, or of an inline cache's miss, then throws by an action:
 *
 *     vm->error = make_error(…);
 *     status = cairn_exit_resume(call, &vm->protection->context, &error);
 *
 * As with setjmp, run_protected's own variables must be volatile if they are changed after the
 * context was saved and used after a throw. A compiled function that catches errors itself calls
 * such a C function for its protected part, and tests the result. Nothing is unwound: what the VM
 * keeps for each frame (its interpreter's stack, the list of protections, locks) is reset by the
 * function that catches. C functions that hold something else when they call compiled code, such as
 * memory or locks, must be protected themselves. C++ destructors in skipped frames do not run. C
 * functions that compiled code calls directly have no exit; they throw by cairn_context_resume.
 *
 * Compiled code that replaces other compiled code is entered in the same way as the interpreter.
 * cairn/call.h describes how the interpreter enters compiled code. To make all threads leave a
 * function, including those that are waiting in its callees, see cairn/invalidation.h.
 *
 * COST, on Zen 5 (doc/performance.md). An exit whose handler does nothing takes 44 ns, half of it
 * to find the frame and the record. Leaving the frame by cairn_exit_return takes 60 ns more.
 * Reading a value takes 3 ns with cairn_frame_values, and 14 ns with cairn_frame_value. So a
 * deoptimisation takes 100 to 300 ns, and what the interpreter needs to continue. It is for what is
 * rare: code that leaves often should be compiled again without the assumption that fails.
 * cairn_exit_resume copies a context, and its time does not depend on the number of frames that are
 * left. A site that is not patched costs its no-ops.
 *
 * An exit saves the vector registers that the loaded code can hold. In Intel's processors, the
 * first 512-bit store after a pause takes hundreds of nanoseconds. Engines find out for which CPU
 * and features a module is compiled: 128 bits of 16 registers are saved for x86-64's oldest CPU,
 * 256 bits with AVX, and all with AVX-512 (on PPC64, 128 bits of vs0 to vs31 unless all functions
 * have the feature -vsx). What counts is all code that the runtime has loaded so far; one module
 * for AVX-512 lets all exits save everything from then on. So does code of which nothing is known:
 * functions for CPUs that are known only by name (LLVM's "target-cpu", except x86-64 to x86-64-v4),
 * unless their features exclude some ("-avx512f"); code that MCJIT or ORC loads; and objects
 * without a manifest or `features` in their options (cairn/load.h). Reading a register that was not
 * saved fails with NOT_FOUND. Assembly outside of modules that calls an exit must not expect more.
 *
 * REGISTERS. After the handler has returned, all registers that the code can hold are unchanged,
 * including vector registers and flags, with three exceptions: registers that the handler has
 * written through the frame; registers that an action changes; and registers that the ABI reserves
 * for code between caller and callee (x16 and x17 on AArch64; r12 and CTR on PPC64, and r11 with
 * ELFv1; but only r12 at a shadow that holds one instruction). So an exit may be the target of
 * patch points of any calling convention, and of a stack map's shadow.
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
    /** The record of the site, or of the call that has reached the exit (cairn/frame.h, RECORDS).
     *  If there are several at the address, it is the first one; without a record, its table is
     *  NULL. */
    struct cairn_record record;
    /** For the runtime's log (cairn/log.h): why the code was left. The handler may set it to a
     *  string that stays valid until it has returned; NULL before. */
    const char *reason;
};

/** The handler of an exit. `call` is valid until the handler returns; `user` is the argument of
 *  cairn_exit_create or cairn_site_leave. */
typedef void cairn_exit_handler(struct cairn_exit_call *call, void *user);

/** An exit. */
typedef struct cairn_exit cairn_exit;

/**
 * Creates an exit that calls `handler`, in the runtime of the site, and makes the site call it. The
 * caller owns `*exit`. Errors: those of cairn_exit_create and cairn_site_call. Thread-safe.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_leave(
    cairn_site *site, cairn_exit_handler *handler, void *user, enum cairn_strength strength,
    cairn_exit **exit, struct cairn_error *error);

/**
 * Creates an exit that calls `handler`, for sites of one runtime, in the runtime's code memory. It
 * takes about 128 bytes. The caller owns `*exit`. Errors: ARGUMENT; UNSUPPORTED (Cairn cannot save
 * all registers of this machine); others as cairn_loader_finish. Thread-safe.
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
 * (cairn/roots.h).
 */
CAIRN_API const void *cairn_exit_target(const cairn_exit *exit);

/* ---- Actions: called by the handler, on its thread ---- */

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
 * Errors: ARGUMENT if the results do not have the type of the function, where that was declared
 * (the message names both); NOT_FOUND if the function has no unwind rules (the message names the
 * missing attribute); UNSUPPORTED if its rules do not contain the places of all registers of the
 * caller, or a result has no register; CORRUPT if the stack is invalid. Nothing is changed after an
 * error.
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
 * creates, and walks can step over it. If a function that
 * was entered in this way is replaced again, that frame is replaced, too: the stack does not grow.
 *
 * Errors: ARGUMENT if the values do not match the signature's arguments, or its results do not
 * match those of the frame's function, where these were declared (the message names both); others
 * as cairn_exit_return. Nothing is changed after an error. It is not checked whether the function
 * extends a narrow result as the caller expects (LLVM's signext and zeroext).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_exit_enter(
    struct cairn_exit_call *call, const cairn_signature *signature, const void *function,
    const struct cairn_value *arguments, uint32_t argument_count, struct cairn_error *error);

/**
 * Resumes the thread at a context that was made earlier (THROWING above): after the handler has
 * returned, all frames further in than the context's are removed, and the thread continues with the
 * registers of the context. In a context of cairn_context_save, that call returns 1. The context is
 * read after the handler has returned, and must stay valid and unchanged until then. Its stack
 * pointer must be in the thread's current stack. See also cairn_context_resume.
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
