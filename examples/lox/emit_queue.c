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
#include <stdlib.h>
#include <string.h>

enum { NATIVE_FRAME_MAX = 3000 }; /* bytes; see STACK_BYTES in main.c */

/* The passes are those that remove guards, loads and boxes that are not needed. */
static const char passes[] = "early-cse<memssa>,simplifycfg,loop-mssa(licm),gvn,simplifycfg";

static struct {
    cairn_queue *queue;
    uint32_t result_count;
    uint64_t ticket; /* of the job */
    /* What the job refers to, and its object. The queue's thread uses them until the job is done.
     */
    struct emitted emitted;
    void *object;
    size_t object_size;
} state;

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- In the queue's thread ---- */

static bool find_name(const struct cairn_name *name, uint64_t *value)
{
    for (uint32_t i = 0; i < state.emitted.name_count; i++) {
        const struct named_address *known = &state.emitted.names[i];
        if (thing_name_size(&known->name) == name->size &&
            memcmp(&known->name, name->bytes, name->size) == 0) {
            *value = (uintptr_t)known->address;
            return true;
        }
    }
    return false;
}

static size_t find_names(void *user, const struct cairn_name *names, size_t count, uint64_t *values)
{
    size_t i = 0;
    (void)user;
    while (i < count && find_name(&names[i], &values[i]))
        i++;
    return i;
}

/* Keeps a copy of the object. */
static void keep_object(const char *name, const void *bytes, size_t size, void *user)
{
    (void)name;
    (void)user;
    if (state.emitted.has_unnamed)
        return;
    state.object = memcpy(heap_zeroed(size), bytes, size);
    state.object_size = size;
}

/* ---- In the program's thread ---- */

static void prepare(cairn_runtime *runtime, bool has_names)
{
    const struct cairn_queue_options options = {
        .engine = {.optimisation_level = 2,
                   .enable_fast_isel = true,
                   .passes = passes,
                   .load = {.find_names = find_names},
                   .object = has_names ? keep_object : NULL},
        .warms_up = true,
        .result_count = &state.result_count};
    struct cairn_error error;
    check(cairn_queue_create(runtime, &options, &state.queue, &error), &error);
}

static void add_job(const char *name)
{
    struct cairn_error error;
    LLVMMemoryBufferRef bitcode = LLVMWriteBitcodeToMemoryBuffer(state.emitted.module);
    const struct cairn_queue_job added = {.bitcode = LLVMGetBufferStart(bitcode),
                                          .bitcode_size = LLVMGetBufferSize(bitcode),
                                          .keeps_result = true,
                                          .function = name,
                                          .frame_limit = NATIVE_FRAME_MAX};
    check(cairn_queue_add(state.queue, &added, &state.ticket, &error), &error);
    LLVMDisposeMemoryBuffer(bitcode);
}

static void forget_last_job(void)
{
    free(state.object);
    free(state.emitted.names);
    state.object = NULL;
    state.emitted.names = NULL;
}

static bool begin_job(const struct emit_input *input)
{
    LLVMContextRef context = LLVMContextCreate();
    forget_last_job();
    state.emitted = emit_function(context, input);
    bool is_possible = state.emitted.module != NULL;
    if (is_possible) {
        add_job(input->name);
        LLVMDisposeModule(state.emitted.module);
    }
    LLVMContextDispose(context);
    return is_possible;
}

static void wait_for_job(void) { cairn_queue_wait(state.queue, state.ticket); }

static bool take_output(struct emit_output *output)
{
    struct cairn_queue_result result;
    struct cairn_error error;
    if (__atomic_load_n(&state.result_count, __ATOMIC_ACQUIRE) == 0 ||
        !cairn_queue_take(state.queue, &result, &error))
        return false;
    *output = (struct emit_output){result.address, state.object, state.object_size};
    if (result.address == NULL && error.status != CAIRN_ERROR_RANGE) /* too large a frame */
        fprintf(stderr, "lox: %s\n", result.error->message);
    return true;
}

static void end_queue(void)
{
    cairn_queue_destroy(state.queue);
    forget_last_job();
}

const struct emitter_functions lox_emitter = {
    .prepare = prepare,
    .begin = begin_job,
    .wait = wait_for_job,
    .take = take_output,
    .end = end_queue,
};
