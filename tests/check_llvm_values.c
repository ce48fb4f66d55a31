/*
 * Tests with random functions that every live value that Cairn reads at a site equals what the
 * function itself has stored just before. Then the function continues with a result or with changed
 * values, or returns to its caller, whose callee-saved registers must be unchanged.
 *
 * Environment: CAIRN_TEST_SEED selects other functions (0 means the clock's time), and
 * CAIRN_TEST_MODULES is the number of modules.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/type.h"
#include "llvm_support.h"
#include "value/representation.h"
#include "value_generator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 16, RUNS = 3, MODULES = 130, BITS_IN_BYTE = 8 };

/* ---- A run ---- */

enum action { ACTION_NONE, ACTION_RESULT, ACTION_CHANGE, ACTION_RETURN, ACTIONS };

static struct run {
    const struct generated_function *function;
    uint64_t seed; /* of the module */
    enum action action;
    /* The call replaces an instruction of the function, which cannot continue without it. */
    bool replaces_instruction;
    unsigned calls;
    struct cairn_value site_result;
    struct cairn_value results[GENERATED_RESULTS_MAX];
    uint64_t caller_address;
} run;

static struct generated_buffers buffers;
static uint64_t random_state;

static cairn_runtime *runtime;
static cairn_exit *the_exit;

/* ---- Counting ---- */

enum place {
    PLACE_GENERAL,
    PLACE_PART, /* of a general register */
    PLACE_VECTOR,
    PLACE_DIRECT,
    PLACE_INDIRECT,
    PLACE_CONSTANT,
    PLACE_CONSTANT_INDEX,
    PLACES
};
static const char *const place_names[PLACES] = {
    [PLACE_GENERAL] = "general registers",
    [PLACE_PART] = "parts of general registers",
    [PLACE_VECTOR] = "vector registers",
    [PLACE_DIRECT] = "addresses in frames",
    [PLACE_INDIRECT] = "spilled",
    [PLACE_CONSTANT] = "small constants",
    [PLACE_CONSTANT_INDEX] = "large constants",
};
static unsigned places[PLACES];
static unsigned wide; /* number of values of more than 16 bytes */
static unsigned actions[ACTIONS];
static unsigned unpatched;

static enum place place_of(struct cairn_location location)
{
    switch (location.kind) {
    case CAIRN_LOCATION_DIRECT:
        return PLACE_DIRECT;
    case CAIRN_LOCATION_INDIRECT:
        return PLACE_INDIRECT;
    case CAIRN_LOCATION_CONSTANT:
        return PLACE_CONSTANT;
    case CAIRN_LOCATION_CONSTANT_INDEX:
        return PLACE_CONSTANT_INDEX;
    case CAIRN_LOCATION_REGISTER:
        break;
    }
    if (location.size > sizeof(uint64_t))
        return PLACE_VECTOR;
    return location.size < sizeof(uint64_t) ? PLACE_PART : PLACE_GENERAL;
}

/* ---- Comparing ---- */

static void print_bytes(const char *what, const unsigned char *bytes, size_t size)
{
    printf("  %s:", what);
    for (size_t i = 0; i < size; i++)
        printf(" %02x", bytes[i]);
    printf("\n");
}

static void check_bytes(const char *what, uint32_t index, struct cairn_type type,
                        const void *expected, const void *seen)
{
    char name[64];
    size_t size = cairn_type_size(type);
    if (memcmp(expected, seen, size) == 0)
        return;
    cairn_type_format(type, name, sizeof name);
    print_bytes("expected", expected, size);
    print_bytes("seen", seen, size);
    ck_abort_msg("%s %u of %s, of type %s, differs; action %d; CAIRN_TEST_SEED=%" PRIu64, what,
                 index, run.function->name, name, (int)run.action, run.seed);
}

static void check_ok(enum cairn_status status, const struct cairn_error *error)
{
    ck_assert_msg(status == CAIRN_OK, "%s; %s; CAIRN_TEST_SEED=%" PRIu64, error->message,
                  run.function->name, run.seed);
}

static struct cairn_value random_value(struct cairn_type type)
{
    struct cairn_value value;
    unsigned char bytes[GENERATED_SLOT_BYTES];
    generate_bytes(&random_state, type, bytes);
    ck_assert_ok(value_of_bytes(type, bytes, cairn_type_size(type), &value, NULL));
    return value;
}

/* ---- The handler ---- */

static void check_argument(const struct cairn_exit_call *call, uint32_t index)
{
    struct cairn_value value;
    struct cairn_error error = {0};
    struct cairn_type type = run.function->values[index].type;
    uint32_t number = index + (run.function->site_result.kind != CAIRN_TYPE_VOID);
    struct cairn_location location = cairn_record_location(call->record, number);
    check_ok(cairn_frame_at_location(&call->frame, location, type, &value, &error), &error);
    check_bytes("argument", index, type, buffers.stored[index], value.bytes);
}

/* Index of the first live value among the record's locations. */
static uint32_t first_location(void)
{
    bool has_result = run.function->site_result.kind != CAIRN_TYPE_VOID;
    uint32_t count = run.function->argument_count;
    return count == 0 ? 0 : count + has_result;
}

static void check_value(const struct cairn_exit_call *call, uint32_t index)
{
    struct cairn_value value;
    struct cairn_error error = {0};
    struct cairn_location location = cairn_record_location(call->record, first_location() + index);
    uint32_t number = run.function->argument_count + index;
    struct cairn_type type = run.function->values[number].type;
    enum place place = place_of(location);
    enum cairn_status status = cairn_frame_value(&call->frame, call->record, index, &value, &error);
    places[place]++;
    wide += cairn_type_size(type) > 16;
    check_ok(status, &error);
    ck_assert(type_equal(value.type, type));
    if (memcmp(buffers.stored[number], value.bytes, value.size) != 0)
        printf("  register %u, %u bytes, offset %d\n", location.dwarf, location.size,
               location.offset);
    check_bytes("live value", index, type, buffers.stored[number], value.bytes);
}

/* Reading all values at once, and reading by location, must give the same as reading them one by
 * one. */
static void check_ways(const struct cairn_exit_call *call)
{
    static struct cairn_value values[GENERATED_VALUES_MAX];
    struct cairn_error error = {0};
    uint32_t first = generate_below(&random_state, run.function->live_value_count + 1);
    uint32_t count = generate_below(&random_state, run.function->live_value_count - first + 1);
    memset(values, 0xA5, sizeof values);
    check_ok(cairn_frame_values(&call->frame, call->record, first, count, values, &error), &error);
    for (uint32_t i = 0; i < count; i++) {
        struct cairn_value one;
        struct cairn_value located;
        uint32_t number = run.function->argument_count + first + i;
        struct cairn_type type = run.function->values[number].type;
        struct cairn_location location =
            cairn_record_location(call->record, first_location() + first + i);
        check_ok(cairn_frame_value(&call->frame, call->record, first + i, &one, &error), &error);
        check_ok(cairn_frame_at_location(&call->frame, location, type, &located, &error), &error);
        ck_assert(type_equal(values[i].type, one.type) && values[i].size == one.size);
        ck_assert(type_equal(located.type, type) && located.size == one.size);
        ck_assert_mem_eq(values[i].bytes, one.bytes, sizeof one.bytes);
        ck_assert_mem_eq(located.bytes, one.bytes, sizeof one.bytes);
    }
}

static bool is_changeable(const struct cairn_exit_call *call, uint32_t index)
{
    uint32_t number = run.function->argument_count + index;
    enum place place = place_of(cairn_record_location(call->record, first_location() + index));
    return run.function->values[number].is_changeable && place != PLACE_DIRECT &&
           place != PLACE_CONSTANT && place != PLACE_CONSTANT_INDEX;
}

static void change_values(struct cairn_exit_call *call)
{
    static struct cairn_value written[GENERATED_VALUES_MAX];
    struct cairn_error error = {0};
    uint32_t count = run.function->live_value_count;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_changeable(call, i))
            continue;
        written[i] = random_value(run.function->values[run.function->argument_count + i].type);
        check_ok(cairn_frame_set_value(&call->frame, call->record, i, &written[i], &error), &error);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct cairn_value value;
        if (!is_changeable(call, i))
            continue;
        check_ok(cairn_frame_value(&call->frame, call->record, i, &value, &error), &error);
        check_bytes("changed value", i, value.type, written[i].bytes, value.bytes);
    }
}

static void check_caller(const struct cairn_exit_call *call)
{
    struct cairn_frame frame = call->frame;
    struct cairn_function function;
    struct cairn_error error = {0};
    check_ok(cairn_frame_caller(&frame, &error), &error);
    ck_assert(cairn_frame_function(&frame, &function));
    ck_assert_uint_eq(function.address, run.caller_address);
}

static void return_values(struct cairn_exit_call *call)
{
    struct cairn_error error = {0};
    for (uint32_t i = 0; i < run.function->result_count; i++)
        run.results[i] = random_value(run.function->results[i]);
    check_ok(cairn_exit_return(call, run.results, run.function->result_count, &error), &error);
}

/* Integers and pointers may be declared as the i64 from which the code computes them. */
static void go_on_with_result(struct cairn_exit_call *call)
{
    struct cairn_error error = {0};
    struct cairn_type type = run.function->site_result;
    struct cairn_type declared = cairn_record_declaration(call->record)->result;
    struct cairn_value result = random_value(declared);
    check_ok(cairn_exit_continue(call, &result, &error), &error);
    run.site_result = result;
    if (!type_equal(type, declared))
        run.site_result = cairn_value_of_integer(type.bits, (int64_t)value_unsigned(&result));
}

static void act(struct cairn_exit_call *call)
{
    if (run.action == ACTION_CHANGE)
        change_values(call);
    if (run.action == ACTION_RESULT)
        go_on_with_result(call);
    if (run.action == ACTION_RETURN)
        return_values(call);
}

static void handle(struct cairn_exit_call *call, void *user)
{
    (void)user;
    run.calls++;
    ck_assert_msg(call->record.table != NULL,
                  "no record at the exit of %s; CAIRN_TEST_SEED=%" PRIu64, run.function->name,
                  run.seed);
    ck_assert_uint_eq(cairn_record_id(call->record), run.function->id);
    ck_assert_uint_eq(cairn_record_live_value_count(call->record), run.function->live_value_count);
    for (uint32_t i = 0; i < run.function->argument_count; i++)
        check_argument(call, i);
    for (uint32_t i = 0; i < run.function->live_value_count; i++)
        check_value(call, i);
    check_ways(call);
    check_caller(call);
    act(call);
}

/* ---- After the run ---- */

static void check_again(void)
{
    const struct generated_function *function = run.function;
    for (uint32_t i = 0; i < function->argument_count + function->live_value_count; i++)
        check_bytes("value after the site", i, function->values[i].type, buffers.stored[i],
                    buffers.again[i]);
}

static void check_kept(void)
{
    const struct generated_function *function = run.function;
    for (uint32_t i = 0; i < function->kept_count; i++)
        check_bytes("kept value", i, function->kept[i], buffers.kept_input[i], buffers.kept[i]);
    for (uint32_t i = 0; i < function->sign_count; i++)
        ck_assert_msg(buffers.seen_signs[i] == (buffers.signs[i] < 0 ? 1 : 2),
                      "sign %u of %s, action %d; CAIRN_TEST_SEED=%" PRIu64, i, function->caller,
                      (int)run.action, run.seed);
}

static void check_results(void)
{
    const struct generated_function *function = run.function;
    for (uint32_t i = 0; i < function->result_count; i++)
        check_bytes("result", i, function->results[i],
                    run.action == ACTION_RETURN ? run.results[i].bytes : buffers.own_results[i],
                    buffers.returned[i]);
}

static void check_run(void)
{
    ck_assert_uint_eq(run.calls, 1);
    if (run.action == ACTION_NONE || run.action == ACTION_RESULT)
        check_again();
    if (run.action == ACTION_RESULT)
        check_bytes("result of the site", 0, run.function->site_result, run.site_result.bytes,
                    buffers.site_result);
    check_results();
    check_kept();
}

/* ---- Running ---- */

static enum action choose_action(void)
{
    enum action action = (enum action)generate_below(&random_state, ACTIONS);
    bool has_result = run.function->site_result.kind != CAIRN_TYPE_VOID;
    if (run.replaces_instruction)
        return ACTION_RETURN;
    return action == ACTION_RESULT && !has_result ? ACTION_RETURN : action;
}

static void fill_buffers(void)
{
    unsigned char *bytes = (unsigned char *)&buffers;
    for (size_t i = 0; i < sizeof buffers; i++)
        bytes[i] = (unsigned char)generate_below(&random_state, 256);
}

typedef void generated_caller(void);

static void run_function(void *caller)
{
    fill_buffers();
    run.caller_address = (uintptr_t)caller;
    run.calls = 0;
    run.action = choose_action();
    actions[run.action]++;
    ((generated_caller *)(uintptr_t)caller)();
    check_run();
}

static void *find(cairn_engine *engine, const char *name)
{
    struct cairn_error error = {0};
    void *address = support_compiled_function(engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return address;
}

/* LLVM may have put instructions of the function into a stack map's shadow. On x86-64 a call often
 * cannot replace them. Elsewhere one instruction is always enough, and no other thread executes it.
 */
static bool patch(uint64_t id)
{
    struct cairn_error error = {0};
    cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    run.replaces_instruction = description.state == CAIRN_SITE_ORIGINAL;
    bool is_x86_64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    enum cairn_status status =
        cairn_site_call(site, cairn_exit_target(the_exit),
                        description.live || is_x86_64 ? CAIRN_RELAXED : CAIRN_QUIESCENT, &error);
    if (status == CAIRN_OK)
        return true;
    ck_assert_msg(run.function->is_stackmap, "%s", error.message);
    unpatched++;
    return false;
}

static void run_functions(cairn_engine *engine, const struct generated_function *functions)
{
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        run.function = &functions[i];
        void *caller = find(engine, functions[i].caller);
        if (!patch(functions[i].id))
            continue;
        for (unsigned j = 0; j < RUNS; j++)
            run_function(caller);
    }
}

static void run_module(uint64_t seed)
{
    static struct generated_function functions[FUNCTIONS];
    struct cairn_error error = {0};
    const struct cairn_engine_options options = {
        .optimisation_level = (unsigned)(seed % 4),
        .enable_fast_isel = seed / 4 % 2 != 0,
    };
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("random", context);
    cairn_engine *engine;
    run.seed = seed;
    random_state = seed * 0x9e3779b97f4a7c15u;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        generate_function(module, options.optimisation_level, &buffers, 10 * i, &random_state,
                          &functions[i]);
    support_verify(module);
    if (getenv("CAIRN_TEST_DUMP") != NULL)
        LLVMDumpModule(module);
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s; CAIRN_TEST_SEED=%" PRIu64, error.message, seed);
    run_functions(engine, functions);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
}

/* ---- The test ---- */

static void report(uint64_t modules)
{
    printf("check_llvm_values: of %" PRIu64 " functions %u could not be patched; %u runs went on, "
           "%u with a result, %u with changed values, %u returned\n",
           modules * FUNCTIONS, unpatched, actions[ACTION_NONE], actions[ACTION_RESULT],
           actions[ACTION_CHANGE], actions[ACTION_RETURN]);
    for (unsigned i = 0; i < PLACES; i++)
        printf("check_llvm_values: %u %s\n", places[i], place_names[i]);
    printf("check_llvm_values: %u of more than 16 bytes\n", wide);
}

static void check_places(uint64_t modules)
{
    for (unsigned i = 0; i < PLACES; i++)
        ck_assert_msg(places[i] > 0, "no %s", place_names[i]);
    for (unsigned i = 0; i < ACTIONS; i++)
        ck_assert_uint_gt(actions[i], 0);
    ck_assert_uint_lt(unpatched, modules * FUNCTIONS / 5);
}

START_TEST(what_is_read_is_what_the_function_stores)
{
    uint64_t seed = support_seed_or(20261121);
    uint64_t modules = support_read_number("CAIRN_TEST_MODULES", MODULES);
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_ok(cairn_exit_create(runtime, handle, NULL, &the_exit, NULL));
    for (uint64_t i = 0; i < modules; i++)
        run_module(seed + i);
    cairn_exit_destroy(the_exit);
    cairn_runtime_destroy(runtime);
    report(modules);
    if (modules >= 15)
        check_places(modules);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("values of random functions");
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, what_is_read_is_what_the_function_stores);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
