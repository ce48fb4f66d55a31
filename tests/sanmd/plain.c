/*
 * Accesses for objects of any machine, which are not run. What is atomic says so in its name.
 *
 * SPDX-License-Identifier: MIT
 */
int atomic_add(int *pointer, int value);
int atomic_load(int *pointer);
int plain_add(int *pointer, int value);
int uncovered(int *pointer);
long plain_arguments(long a, long b, long c, long d, long e, long f, long g, long h, long i,
                     long j);
void keep_address(void *address);

int atomic_add(int *pointer, int value)
{
    return __atomic_fetch_add(pointer, value, __ATOMIC_SEQ_CST);
}

int atomic_load(int *pointer) { return __atomic_load_n(pointer, __ATOMIC_RELAXED); }

int plain_add(int *pointer, int value) { return *pointer += value; }

__attribute__((disable_sanitizer_instrumentation)) int uncovered(int *pointer)
{
    return __atomic_load_n(pointer, __ATOMIC_RELAXED);
}

long plain_arguments(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
    long locals[2] = {a + b + c + d, e + f + g + h};
    keep_address(locals);
    return locals[1] + i + j;
}
