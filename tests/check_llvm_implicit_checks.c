/*
 * Tests with random functions that ordinary code compiles with implicit null checks, and then does
 * what it does with explicit ones. LLVM's pass crashes on some of it (doc/llvm-faults.md), so each
 * module is compiled and executed in a child process.
 *
 * Environment: CAIRN_TEST_SEED selects other functions (0 means the clock's time), and
 * CAIRN_TEST_ROUNDS is their number.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_engine_support.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Random numbers ---- */

static uint64_t random_state;

static uint32_t below(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % bound;
}

/* ---- A random function ---- */

enum { TEXT_MAX = 8192, VALUES_MAX = 64, WORDS = 64, NULL_RESULT = -1 };

/* The statements after the check. Values are numbered in the order in which they are made. */
struct body {
    char text[TEXT_MAX];
    size_t length;
    unsigned count; /* of names */
    unsigned values[VALUES_MAX];
    unsigned value_count;
};

static void add_text(struct body *body, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    body->length +=
        (size_t)vsnprintf(body->text + body->length, TEXT_MAX - body->length, format, arguments);
    va_end(arguments);
    ck_assert_uint_lt(body->length, TEXT_MAX);
}

static void keep(struct body *body, unsigned value)
{
    if (body->value_count < VALUES_MAX)
        body->values[body->value_count++] = value;
}

static unsigned any(const struct body *body) { return body->values[below(body->value_count)]; }

/* Adds an address in one of the three objects, cast to a pointer to the type. */
static unsigned add_address(struct body *body, const char *type)
{
    static const char *const objects[] = {"a", "b", "object"};
    unsigned bytes = body->count++;
    unsigned address = body->count++;
    add_text(body, "  %%v%u = getelementptr i8, ptr %%%s, i64 %u\n", bytes, objects[below(3)],
             16 * below(4));
    add_text(body, "  %%v%u = bitcast ptr %%v%u to %s%s\n", address, bytes,
             LLVM_HAS_OPAQUE_POINTERS ? "ptr" : type, LLVM_HAS_OPAQUE_POINTERS ? "" : "*");
    return address;
}

static const char *pointer(const char *type)
{
    static char text[40];
    snprintf(text, sizeof text, "%s%s", LLVM_HAS_OPAQUE_POINTERS ? "ptr" : type,
             LLVM_HAS_OPAQUE_POINTERS ? "" : "*");
    return text;
}

static unsigned add_load(struct body *body, const char *type)
{
    unsigned address = add_address(body, type);
    add_text(body, "  %%v%u = load %s, %s %%v%u, align 8\n", body->count, type, pointer(type),
             address);
    return body->count++;
}

static void add_store(struct body *body, const char *type, unsigned value)
{
    unsigned address = add_address(body, type);
    add_text(body, "  store %s %%v%u, %s %%v%u, align 8\n", type, value, pointer(type), address);
}

static void add_select_of_loads(struct body *body, const char *type)
{
    unsigned left = add_load(body, type);
    unsigned right = add_load(body, type);
    unsigned selected = body->count++;
    add_text(body, "  %%v%u = select i1 %%c, %s %%v%u, %s %%v%u\n", selected, type, left, type,
             right);
    add_store(body, type, selected);
}

static void add_element(struct body *body)
{
    unsigned vector = add_load(body, "<2 x i64>");
    unsigned index = body->count++;
    unsigned element = body->count++;
    add_text(body, "  %%v%u = and i64 %%v%u, 1\n", index, any(body));
    add_text(body, "  %%v%u = extractelement <2 x i64> %%v%u, i64 %%v%u\n", element, vector, index);
    keep(body, element);
}

static void add_narrow_load(struct body *body)
{
    unsigned narrow = add_load(body, "i16");
    add_text(body, "  %%v%u = sext i16 %%v%u to i64\n", body->count, narrow);
    keep(body, body->count++);
}

static void add_binary(struct body *body)
{
    static const char *const operations[] = {"add", "sub", "mul", "xor", "and", "or"};
    add_text(body, "  %%v%u = %s i64 %%v%u, ", body->count, operations[below(6)], any(body));
    add_text(body, "%%v%u\n", any(body));
    keep(body, body->count++);
}

static void add_minimum(struct body *body)
{
    static const char *const names[] = {"smin", "smax", "umin", "umax"};
    add_text(body, "  %%v%u = call i64 @llvm.%s.i64(i64 %%v%u, ", body->count, names[below(4)],
             any(body));
    add_text(body, "i64 %%v%u)\n", any(body));
    keep(body, body->count++);
}

static void add_select(struct body *body)
{
    add_text(body, "  %%v%u = select i1 %%c, i64 %%v%u, ", body->count, any(body));
    add_text(body, "i64 %%v%u\n", any(body));
    keep(body, body->count++);
}

static void add_block(struct body *body)
{
    add_text(body, "  br label %%b%u\nb%u:\n", body->count, body->count);
    body->count++;
}

static void add_statement(struct body *body)
{
    switch (below(12)) {
    case 0:
        add_select_of_loads(body, below(2) != 0 ? "i64" : "double");
        break;
    case 1:
        add_element(body);
        break;
    case 2:
        add_narrow_load(body);
        break;
    case 3:
        add_minimum(body);
        break;
    case 4:
        add_select(body);
        break;
    case 5:
        add_block(body);
        break;
    case 6:
    case 7:
        add_store(body, "i64", any(body));
        break;
    case 8:
        add_binary(body);
        break;
    default:
        keep(body, add_load(body, "i64"));
        break;
    }
}

static void fill(struct body *body)
{
    unsigned count = 1 + below(6);
    *body = (struct body){.count = 1, .values = {0}, .value_count = 1};
    for (unsigned i = 0; i < count; i++)
        add_statement(body);
    if (below(2) != 0)
        add_store(body, "i64", any(body));
    add_text(body, "  ret i64 %%v%u\n", any(body));
}

/* The function "f" has an implicit check, and "g" the same code with an explicit one. */
static LLVMModuleRef build(const struct body *body)
{
    static char text[4 * TEXT_MAX];
    size_t length = (size_t)snprintf(text, sizeof text,
                                     "declare i64 @llvm.smin.i64(i64, i64)\n"
                                     "declare i64 @llvm.smax.i64(i64, i64)\n"
                                     "declare i64 @llvm.umin.i64(i64, i64)\n"
                                     "declare i64 @llvm.umax.i64(i64, i64)\n");
    for (unsigned i = 0; i < 2; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "define i64 @%c(i1 zeroext %%c, i64 %%v0, ptr %%a, ptr %%b, "
                                   "ptr %%object) uwtable {\n"
                                   "  %%is.null = icmp eq ptr %%object, null\n"
                                   "  br i1 %%is.null, label %%null, label %%there%s\n"
                                   "there:\n%snull:\n  ret i64 -1\n}\n",
                                   'f' + (int)i, i == 0 ? ", !make.implicit !0" : "", body->text);
    snprintf(text + length, sizeof text - length, "!0 = !{}\n");
    return support_parse_valid(context, text);
}

/* ---- Running ---- */

typedef int64_t checked(bool c, int64_t n, void *a, void *b, void *object);

static void catch (int number, siginfo_t *info, void *ucontext)
{
    if (!cairn_fault_continue(runtime, info, ucontext, 0, NULL))
        signal(number, SIG_DFL);
}

static checked *find(cairn_engine *engine, const char *name)
{
    return (checked *)(uintptr_t)get(engine, name);
}

/* The memory of the three objects, and the results of a call with it. */
struct memory {
    _Alignas(16) uint64_t objects[3][WORDS];
    int64_t result;
};

static void call(checked *f, bool c, bool is_null, struct memory *memory)
{
    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < WORDS; j++)
            memory->objects[i][j] = UINT64_C(0x0102030405060708) * (i + 1) + j;
    memory->result =
        f(c, 77, memory->objects[0], memory->objects[1], is_null ? NULL : memory->objects[2]);
}

static bool is_same(checked *f, checked *g)
{
    bool is_same = true;
    for (unsigned i = 0; i < 4; i++) {
        static struct memory memories[2];
        bool is_null = (i & 2) != 0;
        call(f, (i & 1) != 0, is_null, &memories[0]);
        call(g, (i & 1) != 0, is_null, &memories[1]);
        is_same &=
            memories[0].result == memories[1].result &&
            (!is_null || memories[0].result == NULL_RESULT) &&
            memcmp(memories[0].objects, memories[1].objects, sizeof memories[0].objects) == 0;
    }
    return is_same;
}

/* Returns whether the child compiled the functions, and both did the same. */
static bool run(const struct body *body, unsigned level)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        const struct sigaction action = {.sa_sigaction = catch, .sa_flags = SA_SIGINFO};
        const struct cairn_engine_options options = {.optimisation_level = level,
                                                     .implicit_null_checks = true};
        cairn_engine *engine = NULL;
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(3);
        signal(SIGABRT, SIG_DFL);
        if (cairn_engine_create(runtime, build(body), &options, &engine, NULL) != CAIRN_OK)
            _exit(2);
        checked *f = find(engine, "f");
        checked *g = find(engine, "g");
        sigaction(SIGSEGV, &action, NULL);
        _exit(is_same(f, g) ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

START_TEST(code_compiles_with_implicit_null_checks)
{
    uint64_t seed = support_seed_or(20261128);
    uint64_t rounds = support_read_number("CAIRN_TEST_ROUNDS", 300);
    for (uint64_t i = 0; i < rounds; i++) {
        static struct body body;
        random_state = (seed + i) * 0x9e3779b97f4a7c15u;
        unsigned level = 1 + below(3);
        fill(&body);
        ck_assert_msg(run(&body, level), "level %u; CAIRN_TEST_SEED=%" PRIu64 "\n%s", level,
                      seed + i, body.text);
    }
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, code_compiles_with_implicit_null_checks);
}

int main(void) { return engine_main("implicit null checks", add_tests); }
