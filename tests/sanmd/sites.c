/*
 * Functions with accesses between labels; a part of the program, and all of the library that it
 * opens.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sites.h"

enum { ATOMICS = 1, USE_AFTER_RETURN = 2, STACK_ARGUMENTS = 4 };

static volatile long result;

NOT_INLINED static void fetch_and_add(long *pointer, long value)
{
    SITE_BEGIN(pointer, value);
    long before = __atomic_fetch_add(pointer, value, __ATOMIC_SEQ_CST);
    SITE_END(1);
    result = before;
}

NOT_INLINED static void exchange(int *pointer, int value)
{
    SITE_BEGIN(pointer, value);
    int before = __atomic_exchange_n(pointer, value, __ATOMIC_SEQ_CST);
    SITE_END(1);
    result = before;
}

NOT_INLINED static void load(int *pointer, int value)
{
    SITE_BEGIN(pointer, value);
    value = __atomic_load_n(pointer, __ATOMIC_ACQUIRE);
    SITE_END(1);
    result = value;
}

NOT_INLINED static void store(int *pointer, int value)
{
    SITE_BEGIN(pointer, value);
    __atomic_store_n(pointer, value, __ATOMIC_RELAXED);
    SITE_END(1);
}

NOT_INLINED static void plain_load(int *pointer, int value)
{
    SITE_BEGIN(pointer, value);
    value = *pointer;
    SITE_END(0);
    result = value;
}

NOT_INLINED static void plain_store(int *pointer, int value)
{
    SITE_BEGIN(pointer, value);
    *pointer = value;
    SITE_END(0);
}

NOT_COVERED static void add_uncovered(long *pointer, long value)
{
    SITE_BEGIN(pointer, value);
    long before = __atomic_fetch_add(pointer, value, __ATOMIC_SEQ_CST);
    SITE_END(0);
    result = before;
}

/* Two of the arguments are on the stack. */
NOT_INLINED static long with_arguments(long a, long b, long c, long d, long e, long f, long g,
                                       long h)
{
    volatile long locals[4] = {a, b, c, d};
    keep_address((void *)locals);
    return locals[1] + e + f + g + h;
}

#ifdef __cplusplus
/* Of this file, also where another has the same: the linker keeps one of those in it. */
template <typename type>
__attribute__((noinline, visibility("hidden"))) void add_as(type *pointer, type value)
{
    SITE_BEGIN(pointer, value);
    type before = __atomic_fetch_add(pointer, value, __ATOMIC_RELAXED);
    SITE_END(1);
    result = before;
}
#endif

static struct expected_function expected(uint64_t address, uint32_t features,
                                         uint32_t stack_argument_bytes)
{
    struct expected_function function;
    function.address = address;
    function.features = features;
    function.stack_argument_bytes = stack_argument_bytes;
    return function;
}

#define ADDRESS(function) ((uint64_t)(uintptr_t)(void *)(function))

#ifdef __cplusplus
extern "C"
#endif
    void
    tell(struct told *told)
{
    long wide = 1;
    int narrow = 1;
    fetch_and_add(&wide, 2);
    exchange(&narrow, 3);
    load(&narrow, 0);
    store(&narrow, 4);
    plain_load(&narrow, 0);
    plain_store(&narrow, 5);
    add_uncovered(&wide, 6);
    result = with_arguments(1, 2, 3, 4, 5, 6, 7, 8);
    told->sites = first_site;
    told->site_count = (size_t)(last_site - first_site);
    struct expected_function *functions = told->functions;
    size_t count = 0;
    functions[count++] = expected(ADDRESS(fetch_and_add), ATOMICS, 0);
    functions[count++] = expected(ADDRESS(load), ATOMICS, 0);
    functions[count++] = expected(ADDRESS(plain_store), ATOMICS, 0);
    functions[count++] = expected(ADDRESS(add_uncovered), UINT32_MAX, 0);
    functions[count++] = expected(ADDRESS(with_arguments), ATOMICS | USE_AFTER_RETURN, 16);
#ifdef __cplusplus
    add_as<long>(&wide, 1);
    add_as<int>(&narrow, 1);
    functions[count++] = expected(ADDRESS(add_as<long>), ATOMICS, 0);
#endif
    told->function_count = count;
}
