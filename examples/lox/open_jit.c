/*
 * The interpreter's side of the compiler: opens it when something is hot, or an option needs it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "jit.h"
#include "shared.h"

static struct {
    struct vm *vm;
    const struct jit_options *options;
    const struct jit_functions *functions; /* NULL while it is not open */
    bool is_absent;
} jit;

static void set_limits(struct function *function)
{
    if (jit.options->mode == JIT_OFF)
        return;
    function->hot_invocations = function->invocation_count + HOT_INVOCATIONS;
    function->hot_loops = function->loop_count + HOT_LOOPS;
}

static bool open_jit(void)
{
    if (jit.functions != NULL || jit.is_absent)
        return !jit.is_absent;
    jit.functions = &lox_jit != NULL ? &lox_jit : shared_open("lox-jit.so", "lox_jit");
    jit.is_absent = jit.functions == NULL;
    if (jit.is_absent)
        return false;
    jit.functions->init(jit.vm, jit.options);
    for (uint32_t i = 0; i < jit.vm->function_count; i++)
        jit.functions->add_function(jit.vm->functions[i]);
    return true;
}

void jit_init(struct vm *vm, const struct jit_options *options)
{
    bool is_observed = options->names_code || options->has_debugger || options->log_path != NULL;
    jit.vm = vm;
    jit.options = options;
    if (options->mode != JIT_OFF && (options->mode != JIT_ON || options->has_cache || is_observed))
        open_jit();
}

void jit_begin_program(const char *source, size_t size)
{
    if (jit.functions != NULL)
        jit.functions->begin_program(source, size);
}

void jit_add_function(struct function *function)
{
    if (jit.functions != NULL)
        jit.functions->add_function(function);
    else
        set_limits(function);
}

/* Without a compiler, everything is interpreted. */
static void never_enter(struct function *function)
{
    function->hot_invocations = function->hot_loops = UINT64_MAX;
}

bool jit_enter(struct vm *vm)
{
    if (open_jit())
        return jit.functions->enter(vm);
    never_enter(vm->frame->function);
    return true;
}

bool jit_loop(struct vm *vm)
{
    if (open_jit())
        return jit.functions->loop(vm);
    never_enter(vm->frame->function);
    return true;
}

void jit_redefined(struct vm *vm, uint32_t global)
{
    vm->globals.are_assigned[global] = true;
    if (jit.functions != NULL)
        jit.functions->redefined(global);
}

void jit_destroy(void)
{
    if (jit.functions != NULL)
        jit.functions->destroy();
}

void jit_print_statistics(void)
{
    if (jit.functions != NULL)
        jit.functions->print_statistics();
}
