/*
 * Opens what needs LLVM, in a thread of its own, when something is hot for the first time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emit.h"
#include "shared.h"

#include <pthread.h>

/* The thread writes `functions` before `state`. */
static struct {
    enum { EMITTER_CLOSED, EMITTER_OPENING, EMITTER_OPEN, EMITTER_ABSENT } state;
    cairn_runtime *runtime;
    bool has_names;
    pthread_t thread; /* from EMITTER_OPENING on */
    const struct emitter_functions *functions;
} emitter;

static void *open_in_thread(void *argument)
{
    emitter.functions =
        &lox_emitter != NULL ? &lox_emitter : shared_open(EMITTER_FILE, "lox_emitter");
    if (emitter.functions != NULL)
        emitter.functions->prepare(emitter.runtime, emitter.has_names);
    __atomic_store_n(&emitter.state, emitter.functions != NULL ? EMITTER_OPEN : EMITTER_ABSENT,
                     __ATOMIC_RELEASE);
    return argument;
}

const struct emitter_functions *emitter_open(cairn_runtime *runtime, bool has_names)
{
    if (emitter.state == EMITTER_CLOSED) {
        emitter.state = EMITTER_OPENING;
        emitter.runtime = runtime;
        emitter.has_names = has_names;
        if (pthread_create(&emitter.thread, NULL, open_in_thread, NULL) != 0)
            fail("No thread can be started.");
    }
    return __atomic_load_n(&emitter.state, __ATOMIC_ACQUIRE) == EMITTER_OPEN ? emitter.functions
                                                                             : NULL;
}

bool emitter_is_opening(void)
{
    return __atomic_load_n(&emitter.state, __ATOMIC_ACQUIRE) == EMITTER_OPENING;
}

void emitter_close(void)
{
    if (emitter.state != EMITTER_CLOSED)
        pthread_join(emitter.thread, NULL);
    if (emitter.functions != NULL)
        emitter.functions->end();
}
