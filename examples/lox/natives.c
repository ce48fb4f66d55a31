/*
 * Functions of C that programs can call.
 *
 * SPDX-License-Identifier: MIT
 */
#include "vm.h"

#include <time.h>

static lox_value clock_native(struct vm *vm, const lox_value *arguments)
{
    (void)vm;
    (void)arguments;
    return number_value((double)clock() / CLOCKS_PER_SEC);
}

void define_natives(struct vm *vm) { define_native(vm, "clock", 0, clock_native); }
