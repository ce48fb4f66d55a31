/*
 * What is emitted is compiled by a queue of Cairn's, in another thread. The IR is built by the
 * program's thread, because that reads the heap and the feedback, and given to the queue as
 * bitcode. One job runs at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <llvm-c/BitWriter.h>
#include <stdio.h>

enum { NATIVE_FRAME_MAX = 3000 }; /* bytes; see STACK_BYTES in main.c */

/* The passes are those that remove guards, loads and boxes that are not needed. */
static const char passes[] = "early-cse<memssa>,simplifycfg,loop-mssa(licm),gvn,simplifycfg";

static struct {
    cairn_queue *queue;
    uint32_t result_count;
    uint64_t ticket; /* of the job */
} state;

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

static void prepare(cairn_runtime *runtime)
{
    static const struct cairn_queue_options options = {
        .engine = {.optimisation_level = 2, .enable_fast_isel = true, .passes = passes},
        .warms_up = true,
        .result_count = &state.result_count};
    struct cairn_error error;
    check(cairn_queue_create(runtime, &options, &state.queue, &error), &error);
}

static void add_job(const char *name, LLVMModuleRef module)
{
    struct cairn_error error;
    LLVMMemoryBufferRef bitcode = LLVMWriteBitcodeToMemoryBuffer(module);
    const struct cairn_queue_job added = {.bitcode = LLVMGetBufferStart(bitcode),
                                          .bitcode_size = LLVMGetBufferSize(bitcode),
                                          .keeps_result = true,
                                          .function = name,
                                          .frame_limit = NATIVE_FRAME_MAX};
    check(cairn_queue_add(state.queue, &added, &state.ticket, &error), &error);
    LLVMDisposeMemoryBuffer(bitcode);
}

static bool begin_job(const struct emit_input *input)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = emit_function(context, input);
    if (module != NULL) {
        add_job(input->name, module);
        LLVMDisposeModule(module);
    }
    LLVMContextDispose(context);
    return module != NULL;
}

static void wait_for_job(void) { cairn_queue_wait(state.queue, state.ticket); }

static bool take_code(const void **code)
{
    struct cairn_queue_result result;
    struct cairn_error error;
    if (__atomic_load_n(&state.result_count, __ATOMIC_ACQUIRE) == 0 ||
        !cairn_queue_take(state.queue, &result, &error))
        return false;
    *code = result.address;
    if (*code == NULL && error.status != CAIRN_ERROR_RANGE) /* too large a frame */
        fprintf(stderr, "lox: %s\n", result.error->message);
    return true;
}

static void end_queue(void) { cairn_queue_destroy(state.queue); }

const struct emitter_functions lox_emitter = {
    .prepare = prepare,
    .begin = begin_job,
    .wait = wait_for_job,
    .take = take_code,
    .end = end_queue,
};
