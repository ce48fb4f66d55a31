/*
 * A host on which Cairn can neither patch code nor use contexts. arch_host() returns NULL, so
 * arch_host_code_written is never called.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "arch/call.h"
#include "arch/features.h"

#include "base/error.h"

#include <string.h>

const struct cairn_arch *arch_host(void) { return NULL; }

const struct arch_cache_encoder *arch_host_cache_encoder(void) { return NULL; }

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    (void)written;
    (void)executed;
    (void)size;
}

void arch_host_features(uint64_t words[ARCH_FEATURE_WORDS])
{
    memset(words, 0, ARCH_FEATURE_WORDS * sizeof *words);
}

int arch_host_landing_protection(void) { return 0; }

bool arch_host_has_clock(void) { return false; }

uint64_t arch_host_clock(void) { return 0; }

/* ---- Contexts: they hold no registers ---- */

bool arch_host_register(const struct cairn_context *context, uint16_t dwarf,
                        struct arch_register *found)
{
    (void)context;
    (void)dwarf;
    (void)found;
    return false;
}

const struct arch_context_layout arch_host_layout = {0};

size_t arch_host_entry_reach(size_t stack_bytes) { return stack_bytes; }

void arch_host_enter(struct cairn_context *context, const struct arch_entry *entry)
{
    (void)context;
    (void)entry;
}

/* Is never called, because signatures exist only on supported hosts. */
void arch_call_function(struct arch_call *call)
{
    (void)call;
    __builtin_trap();
}

/* Return addresses are never signed here. */
uint64_t arch_host_strip_return_address(uint64_t address) { return address; }

static enum cairn_status refuse(struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "Cairn has no contexts for this machine");
}

enum cairn_status arch_host_from_signal(struct cairn_context *context, const void *ucontext,
                                        struct cairn_error *error)
{
    (void)ucontext;
    memset(context, 0, sizeof *context);
    return refuse(error);
}

enum cairn_status arch_host_to_signal(const struct cairn_context *context, void *ucontext,
                                      struct cairn_error *error)
{
    (void)context;
    (void)ucontext;
    return refuse(error);
}

uint32_t arch_host_vector_level(void) { return 0; }

const uint64_t arch_exit_entry = 0;
const uint64_t arch_light_entry = 0;

int cairn_context_save(struct cairn_context *context)
{
    memset(context, 0, sizeof *context);
    return 0;
}

/* Is never called, because no context holds a program counter. */
void cairn_context_resume(const struct cairn_context *context)
{
    (void)context;
    __builtin_trap();
}
