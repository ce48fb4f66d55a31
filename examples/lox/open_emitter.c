/*
 * Opens what needs LLVM, in a thread of its own, when something is hot for the first time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char file_name[] = "lox-emitter.so";

/* The thread writes `functions` before `state`. */
static struct {
    enum { EMITTER_CLOSED, EMITTER_OPENING, EMITTER_OPEN, EMITTER_ABSENT } state;
    cairn_runtime *runtime;
    bool has_names;
    pthread_t thread; /* from EMITTER_OPENING on */
    const struct emitter_functions *functions;
} emitter;

void emitter_path(char path[EMITTER_PATH_SIZE])
{
    ssize_t length = readlink("/proc/self/exe", path, EMITTER_PATH_SIZE - sizeof file_name);
    while (length > 0 && path[length - 1] != '/')
        length--;
    memcpy(path + (length < 0 ? 0 : length), file_name, sizeof file_name);
}

static const struct emitter_functions *find_functions(void)
{
    char path[EMITTER_PATH_SIZE];
    if (&lox_emitter != NULL)
        return &lox_emitter;
    emitter_path(path);
    void *object = dlopen(path, RTLD_NOW);
    const struct emitter_functions *found = object == NULL ? NULL : dlsym(object, "lox_emitter");
    if (found == NULL)
        fprintf(stderr, "lox: nothing is compiled: %s\n", dlerror());
    return found;
}

static void *open_in_thread(void *argument)
{
    emitter.functions = find_functions();
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
