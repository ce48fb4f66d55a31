/*
 * Every kind of symbol and reference that C has. tests/objects/survey compiles it to see which
 * relocations compilers write, and tests/link_objects.c calls its functions.
 *
 * SPDX-License-Identifier: MIT
 */
typedef int (*operation)(int);
#define HIDDEN __attribute__((visibility("hidden")))
#define WEAK __attribute__((weak))

static int counter = 3;
int exported = 5;
int common_number;
long common_array[300];
const int constants[4] = {10, 20, 30, 40};
static char zeros[5000];
HIDDEN int hidden_number = 7;
WEAK int weak_number = 11;
/* As cairn_build_name makes it. */
HIDDEN WEAK __attribute__((section(".cairn.values"))) const long name_value = 77;
extern int host_number;
extern HIDDEN int hidden_elsewhere WEAK;
extern int host_missing(int) WEAK;
int host_add(int a, int b);
static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
WEAK int weak_function(int x) { return x + 1; }
HIDDEN int hidden_function(int x) { return x + 2; }
operation operations[] = {twice, thrice, weak_function, hidden_function};
static int *const pointer = &counter;
int *pointers[] = {&exported, &common_number, &counter + 1, &host_number};
const char *const names[] = {"one", "two", "three"};
static const operation read_only[] = {twice, thrice};
static int bits;

int use_static(int x) { return counter += x; }
int use_exported(int x) { return exported + hidden_number + weak_number + x; }
int use_common(int x) { return (common_number += x) + (int)(common_array[x & 255] += x); }
int use_zeros(int x) { return zeros[x & 4095]++ + (zeros[4999] = (char)x); }
int use_constants(int x) { return constants[x & 3] + *pointer + *pointers[x & 1]; }
int use_host(int x) { return host_add(x, host_number); }
int use_tail(int x) { return host_add(x, 1); }
int use_pointer(int x) { return operations[x & 3](x) + read_only[x & 1](x); }
int use_weak(int x) { return host_missing ? host_missing(x) : -1; }
int use_hidden_weak(void) { return &hidden_elsewhere != 0; }
int use_name(int x) { return (int)name_value + x; }
const char *use_names(int x) { return names[x & 1]; }
double use_double(double x) { return x * 1.2345678901 + 0.33333; }
float use_float(float x) { return x * 1.25f + 0.1f; }
long use_address(void) { return (long)&bits - (long)&counter; }
operation use_function_address(int x) { return x ? twice : hidden_function; }
void *use_host_address(int x) { return x ? (void *)host_add : (void *)&host_number; }
int use_atomic(int *p, int v) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }
_Bool use_exchange(long *p, long a, long b)
{
    return __atomic_compare_exchange_n(p, &a, b, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

int use_switch(int x)
{
    switch (x) {
    case 0:
        return host_add(x, 3);
    case 1:
        return counter;
    case 2:
        return exported * 7;
    case 3:
        return use_host(x);
    case 4:
        return 19;
    case 5:
        return twice(host_add(1, 2));
    case 6:
        return hidden_number;
    case 7:
        return 23 + x;
    default:
        return -1;
    }
}

double use_table(int x)
{
    switch (x) {
    case 0:
        return 1.5;
    case 1:
        return 2.25;
    case 2:
        return -7.125;
    case 3:
        return 99.0625;
    case 4:
        return 0.3;
    default:
        return 0;
    }
}

int use_labels(const unsigned char *code)
{
    static const void *const labels[] = {&&add, &&sub, &&mul, &&end};
    int x = 0;
    goto *labels[*code];
add:
    x += counter;
    goto *labels[*++code];
sub:
    x -= 3;
    goto *labels[*++code];
mul:
    x *= 3;
    goto *labels[*++code];
end:
    return x;
}

struct big {
    long words[40];
};
struct big use_copy(const struct big *from) { return *from; }
__int128 use_divide(__int128 a, __int128 b) { return a / b; }
int use_stack(int n)
{
    volatile char buffer[n + 100];
    buffer[n] = (char)n;
    return buffer[n] + host_add(n, buffer[0] = 0);
}

static int constructed;
__attribute__((constructor)) static void construct(void) { constructed = 1234; }
__attribute__((constructor(200))) static void construct_first(void) { constructed = 5; }
__attribute__((destructor)) static void destruct(void) { constructed = 0; }
int use_constructed(void) { return constructed; }

__attribute__((section("other_code"))) int in_other_code(int x) { return use_static(x) + twice(x); }
__attribute__((section("other_data"))) int in_other_data = 77;
extern int __start_other_data[], __stop_other_data[];
long use_bounds(void) { return __stop_other_data - __start_other_data + in_other_data; }
int alias_of_use_host(int x) __attribute__((alias("use_host")));
int use_alias(int x) { return alias_of_use_host(x); }
#ifdef WITH_TLS
static __thread int local_of_thread = 4;
extern __thread int extern_of_thread;
__thread int own_of_thread;
int use_tls(int x) { return local_of_thread += x + extern_of_thread + own_of_thread; }
#endif
