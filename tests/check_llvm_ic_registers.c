/*
 * Tests inline caches with all registers in which LLVM can put the values that they read and write.
 * Each register that LLVM allocates holds the receiver, a stored operand and the result in turn,
 * and all other registers must be unchanged.
 *
 * Inline assembly requests the registers, and the records name those that LLVM has chosen. The test
 * fails if LLVM never chose one of them. The values that are live across the sites are random.
 *
 * Environment: CAIRN_TEST_SEED selects other functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "tests/ic_support.h"

#include "llvm/version.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ANYREG = CAIRN_CALLING_CONVENTION_ANYREG, DWARF_MAX = 256, ATTEMPTS = 40 };

/* ---- Registers ---- */

/* The registers that LLVM allocates in functions with patch points: `first` to `last` are DWARF
 * numbers. The names are `prefix` and consecutive numbers from `number`, or, on x86-64, those in
 * `names`. */
struct bank {
    const char *prefix;
    unsigned number;
    uint16_t first;
    uint16_t last;
};

enum { GENERAL, VECTOR, BANKS_MAX = 4 };

static const struct bank x86_64_general[] = {{"", 0, 0, 5}, {"r", 8, 8, 10}, {"r", 12, 12, 15}};
static const struct bank x86_64_vector[] = {{"xmm", 0, 17, 32}};
static const struct bank aarch64_general[] = {{"x", 0, 0, 15}, {"x", 18, 18, 28}};
static const struct bank aarch64_vector[] = {{"d", 0, 64, 95}};
static const struct bank ppc64_general[] = {{"r", 0, 0, 0}, {"r", 3, 3, 11}, {"r", 14, 14, 30}};
static const struct bank ppc64_vector[] = {{"f", 0, 32, 63}};

struct registers {
    char names[32][8];
    uint16_t dwarf[32];
    uint32_t count;
};
static struct registers registers[2];

static void add_bank(struct registers *all, const struct bank *bank)
{
    static const char *const x86_64_names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi"};
    for (uint16_t dwarf = bank->first; dwarf <= bank->last; dwarf++) {
        char *name = all->names[all->count];
        if (*bank->prefix == '\0')
            snprintf(name, sizeof all->names[0], "%s", x86_64_names[dwarf]);
        else
            snprintf(name, sizeof all->names[0], "%s%u", bank->prefix,
                     (bank->number + dwarf - bank->first) % 100);
        all->dwarf[all->count++] = dwarf;
    }
}

#define ADD_BANKS(kind, banks)                                                                     \
    for (size_t bank_number = 0; bank_number < sizeof(banks) / sizeof *(banks); bank_number++)     \
    add_bank(&registers[kind], &(banks)[bank_number])

static void find_registers(void)
{
    memset(registers, 0, sizeof registers);
    switch (cairn_architecture_host()) {
    case CAIRN_ARCHITECTURE_X86_64:
        ADD_BANKS(GENERAL, x86_64_general);
        ADD_BANKS(VECTOR, x86_64_vector);
        break;
    case CAIRN_ARCHITECTURE_AARCH64:
        ADD_BANKS(GENERAL, aarch64_general);
        ADD_BANKS(VECTOR, aarch64_vector);
        break;
    default:
        ADD_BANKS(GENERAL, ppc64_general);
        ADD_BANKS(VECTOR, ppc64_vector);
        break;
    }
}

/* ---- Registers that were used ---- */

enum role { RECEIVER, STORED, RESULT, STORED_NUMBER, RESULT_NUMBER, ROLES };
static const char *const role_names[ROLES] = {
    [RECEIVER] = "the receiver",
    [STORED] = "a stored operand",
    [RESULT] = "the result",
    [STORED_NUMBER] = "a stored number",
    [RESULT_NUMBER] = "a result that is a number",
};
static unsigned seen_roles[ROLES][DWARF_MAX];
static unsigned results_in_receivers;

static bool is_vector_role(enum role role)
{
    return role == STORED_NUMBER || role == RESULT_NUMBER;
}

static bool has_role(enum role role)
{
    return role != RESULT_NUMBER || LLVM_PATCHPOINT_RETURNS_ANY_TYPE;
}

/* Patch points do not preserve PPC64's r11: LLVM uses it for operands, but not for the result. */
static bool is_wanted(enum role role, uint16_t dwarf)
{
    enum { R11 = 11 };
    enum cairn_architecture host = cairn_architecture_host();
    bool is_x86_64 = host == CAIRN_ARCHITECTURE_X86_64;
    bool is_ppc64 = !is_x86_64 && host != CAIRN_ARCHITECTURE_AARCH64;
    return seen_roles[role][dwarf] == 0 && !(is_ppc64 && role == RESULT && dwarf == R11);
}

/* Lists the names of the registers that were never used for the role, each followed by a space. */
static const char *list_unseen(enum role role)
{
    static char names[512];
    const struct registers *all = &registers[is_vector_role(role) ? VECTOR : GENERAL];
    char *end = names;
    *end = '\0';
    for (uint32_t i = 0; i < all->count; i++)
        if (is_wanted(role, all->dwarf[i]))
            end = stpcpy(stpcpy(end, all->names[i]), " ");
    return names;
}

static bool all_seen(void)
{
    for (int role = 0; role < ROLES; role++)
        if (has_role((enum role)role) && *list_unseen((enum role)role) != '\0')
            return false;
    return true;
}

static uint16_t dwarf_of(struct cairn_record record, uint32_t index)
{
    struct cairn_location location = cairn_record_location(record, index);
    ck_assert_int_eq(location.kind, CAIRN_LOCATION_REGISTER);
    ck_assert_uint_lt(location.dwarf, DWARF_MAX);
    return location.dwarf;
}

/* In the record, the result comes first if there is one. */
static void note_registers(const struct ic_function *function, cairn_site *site)
{
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    bool has_result = function->result.kind != CAIRN_TYPE_VOID;
    uint16_t receiver = dwarf_of(description.record, has_result);
    seen_roles[RECEIVER][receiver]++;
    if (!has_result) {
        bool is_number = function->operands[1].kind == CAIRN_TYPE_DOUBLE;
        seen_roles[is_number ? STORED_NUMBER : STORED][dwarf_of(description.record, 1)]++;
        return;
    }
    uint16_t result = dwarf_of(description.record, 0);
    bool is_number = function->result.kind == CAIRN_TYPE_DOUBLE;
    seen_roles[is_number ? RESULT_NUMBER : RESULT][result]++;
    results_in_receivers += result == receiver;
}

/* ---- Functions ---- */

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return ic_below(&random_state, bound); }

static struct cairn_type kept_type(void)
{
    switch (below(6)) {
    case 0:
    case 1:
        return CAIRN_DOUBLE;
    case 2:
        return cairn_type_vector(CAIRN_INTEGER(32), 4);
    default:
        return CAIRN_INTEGER(64);
    }
}

static struct ic_function random_function(void)
{
    struct ic_function function = {
        .calling_convention = ANYREG,
        .operand_count = 2,
        .operands = {CAIRN_POINTER, CAIRN_INTEGER(64)},
        .keeps_operands = below(2) == 0,
        .kept_count = below(13),
        .sign_count = below(3),
        .order = ic_random(&random_state) | 1,
    };
    for (uint32_t i = 0; i < function.kept_count; i++)
        function.kept[i] = kept_type();
    return function;
}

static const char *name_of(int kind, uint32_t number)
{
    return registers[kind].names[number % registers[kind].count];
}

static struct ic_function getter(uint32_t receiver, uint32_t operand, uint32_t result)
{
    struct ic_function function = random_function();
    function.result = CAIRN_INTEGER(64);
    function.operand_registers[0] = name_of(GENERAL, receiver);
    function.operand_registers[1] = name_of(GENERAL, operand);
    function.result_register = name_of(GENERAL, result);
    return function;
}

/* Requests register `number` for the receiver, and registers at changing distances from it for the
 * other values. */
static struct ic_function getter_from(uint32_t number, uint32_t distance)
{
    return getter(number, number + 1 + distance, number + 2 + distance);
}

/* Requests it for the result, and sometimes for the receiver, too. */
static struct ic_function getter_into(uint32_t number, uint32_t distance)
{
    uint32_t receiver = number % 3 == 0 ? number : number + 2 + distance;
    return getter(receiver, number + 1 + distance, number);
}

static struct ic_function setter(uint32_t number, uint32_t distance)
{
    struct ic_function function = random_function();
    function.operand_registers[0] = name_of(GENERAL, number + 1 + distance);
    function.operand_registers[1] = name_of(GENERAL, number);
    return function;
}

static struct ic_function number_getter(uint32_t number, uint32_t distance)
{
    struct ic_function function = random_function();
    function.result = CAIRN_DOUBLE;
    function.operand_registers[0] = name_of(GENERAL, number + distance);
    function.result_register = name_of(VECTOR, number);
    return function;
}

static struct ic_function number_setter(uint32_t number, uint32_t distance)
{
    struct ic_function function = random_function();
    function.operands[1] = CAIRN_DOUBLE;
    function.operand_registers[0] = name_of(GENERAL, number + distance);
    function.operand_registers[1] = name_of(VECTOR, number);
    return function;
}

/* ---- Objects ---- */

enum { SHAPES = 5, FIELDS = 8 };

struct object {
    uint64_t fields[FIELDS];
    uint32_t shape;
    uint64_t wide_shape;
    uint64_t *outside;
};

static uint64_t wide_shape(uint32_t shape) { return UINT64_C(0x7F0000001000) + 64 * shape; }

/* The property of shape `shape`. */
static unsigned field_of(uint32_t shape) { return (shape * 5 + 1) % FIELDS; }

static cairn_runtime *runtime;
static cairn_ic *ic;
static struct ic_program program;
static struct ic_access access_0;
static unsigned misses;
static struct cairn_value answer;

/* The operand's location, for messages. */
static const char *register_name(const struct cairn_ic_miss *miss, uint32_t operand)
{
    bool has_result = cairn_record_declaration(miss->call->record)->result.kind != CAIRN_TYPE_VOID;
    struct cairn_location location =
        cairn_record_location(miss->call->record, has_result + operand);
    const char *name = cairn_register_name(cairn_architecture_host(), location.dwarf);
    return name == NULL ? "?" : name;
}

static void missed(struct cairn_ic_miss *miss, void *user)
{
    struct cairn_error error = {0};
    const struct ic_function *function = user;
    misses++;
    for (uint32_t i = 0; i < function->operand_count; i++)
        ck_assert_msg(memcmp(miss->operands[i].bytes, access_0.operands[i], 8) == 0,
                      "operand %u, in %s, has not arrived", i, register_name(miss, i));
    if (function->result.kind != CAIRN_TYPE_VOID)
        ic_assert_done(cairn_ic_return(miss, &answer, &error), error);
}

/* Makes half of the accesses. */
static bool missed_lightly(cairn_ic *cache, const uint64_t *operands, uint64_t *result, void *user)
{
    const struct ic_function *function = user;
    (void)cache;
    for (uint32_t i = 0; i < function->operand_count; i++)
        ck_assert_msg(memcmp(&operands[i], access_0.operands[i], 8) == 0,
                      "operand %u has not arrived", i);
    if (below(2) == 0)
        return false;
    misses++;
    if (function->result.kind != CAIRN_TYPE_VOID)
        memcpy(result, answer.bytes, sizeof *result);
    return true;
}

static uint64_t called_with;
static int64_t integer_target(const void *receiver, int64_t operand)
{
    called_with = (uintptr_t)receiver;
    return operand ^ 0x5555;
}
static double number_target(const void *receiver, int64_t operand)
{
    called_with = (uintptr_t)receiver;
    return (double)(operand & 0xFFFF);
}
static void setting_target(const void *receiver, int64_t operand)
{
    called_with = (uintptr_t)receiver ^ (uintptr_t)operand;
}
static void number_setting_target(const void *receiver, double operand)
{
    int64_t bits;
    memcpy(&bits, &operand, sizeof bits);
    setting_target(receiver, bits);
}

static bool returns(const struct ic_function *function)
{
    return function->result.kind != CAIRN_TYPE_VOID;
}

static const void *target_for(const struct ic_function *function)
{
    if (returns(function))
        return function->result.kind == CAIRN_TYPE_DOUBLE ? (const void *)(uintptr_t)number_target
                                                          : (const void *)(uintptr_t)integer_target;
    return function->operands[1].kind == CAIRN_TYPE_DOUBLE
               ? (const void *)(uintptr_t)number_setting_target
               : (const void *)(uintptr_t)setting_target;
}

static void add(const struct ic_function *function, uint32_t shape, bool is_out_of_line)
{
    struct cairn_error error = {0};
    const struct cairn_ic_case added = {
        .guard = {.offset = offsetof(struct object, shape), .width = 4, .key = shape},
        .action = returns(function) ? CAIRN_IC_LOAD : CAIRN_IC_STORE,
        .field = {.offset = (int32_t)(field_of(shape) * sizeof(uint64_t)),
                  .width = sizeof(uint64_t),
                  .is_out_of_line = is_out_of_line,
                  .pointer_offset = offsetof(struct object, outside)},
        .operand = 1,
    };
    ic_assert_done(cairn_ic_add(ic, &added, CAIRN_RELAXED, &error), error);
}

static void add_call(const struct ic_function *function, uint32_t shape)
{
    struct cairn_error error = {0};
    const struct cairn_ic_case added = {
        .guard = {.offset = offsetof(struct object, shape), .width = 4, .key = shape},
        .action = CAIRN_IC_CALL,
        .target = target_for(function),
    };
    ic_assert_done(cairn_ic_add(ic, &added, CAIRN_RELAXED, &error), error);
}

/* ---- A run ---- */

static void run(const struct ic_function *function, uint32_t index, struct object *object)
{
    char what[64];
    ic_fill_kept(function, &access_0, &random_state);
    ic_set_pointer(&access_0, 0, object);
    struct cairn_value operand = ic_random_value(function->operands[1], &random_state);
    ic_set_operand(&access_0, 1, &operand);
    snprintf(what, sizeof what, "function %u, shape %u", index, object->shape);
    program.functions[index](&access_0);
    ic_check_kept(function, &access_0, what);
}

static struct object random_object(uint32_t shape, uint64_t *outside)
{
    struct object object = {.shape = shape, .wide_shape = wide_shape(shape), .outside = outside};
    for (int i = 0; i < FIELDS; i++) {
        struct cairn_value number = ic_random_value(CAIRN_DOUBLE, &random_state);
        memcpy(&object.fields[i], number.bytes, sizeof object.fields[i]);
        outside[i] = ~object.fields[i] & ~(1ULL << 62); /* not a NaN */
    }
    return object;
}

/* A hit, with the property in the object or outside of it. */
static void run_hit(const struct ic_function *function, uint32_t index, uint32_t shape,
                    bool is_out_of_line)
{
    uint64_t outside[FIELDS];
    uint64_t wanted_outside[FIELDS];
    struct object object = random_object(shape, outside);
    struct object wanted = object;
    memcpy(wanted_outside, outside, sizeof outside);
    unsigned before = misses;
    run(function, index, &object);
    uint64_t *wanted_field =
        is_out_of_line ? &wanted_outside[field_of(shape)] : &wanted.fields[field_of(shape)];
    ck_assert_uint_eq(misses, before);
    if (returns(function))
        ck_assert_mem_eq(access_0.result, wanted_field, 8);
    else
        memcpy(wanted_field, access_0.operands[1], 8);
    ck_assert_mem_eq(object.fields, wanted.fields, sizeof wanted.fields);
    ck_assert_mem_eq(outside, wanted_outside, sizeof outside);
}

static void run_miss(const struct ic_function *function, uint32_t index, uint32_t shape)
{
    uint64_t outside[FIELDS];
    struct object object = random_object(shape, outside);
    unsigned before = misses;
    if (returns(function))
        answer = ic_random_value(function->result, &random_state);
    run(function, index, &object);
    ck_assert_uint_eq(misses, before + 1);
    if (returns(function))
        ck_assert_mem_eq(access_0.result, answer.bytes, 8);
}

static void run_call(const struct ic_function *function, uint32_t index, uint32_t shape)
{
    uint64_t outside[FIELDS];
    struct object object = random_object(shape, outside);
    int64_t operand;
    run(function, index, &object);
    memcpy(&operand, access_0.operands[1], sizeof operand);
    int64_t integer = operand ^ 0x5555;
    double number = (double)(operand & 0xFFFF);
    if (!returns(function)) {
        ck_assert_uint_eq(called_with, (uintptr_t)&object ^ (uint64_t)operand);
        return;
    }
    ck_assert_uint_eq(called_with, (uintptr_t)&object);
    bool is_number = function->result.kind == CAIRN_TYPE_DOUBLE;
    ck_assert_mem_eq(access_0.result, is_number ? (void *)&number : (void *)&integer, 8);
}

static void create(const struct ic_function *function, uint32_t index)
{
    struct cairn_error error = {0};
    struct ic_function *user = (struct ic_function *)(uintptr_t)function;
    const struct cairn_ic_options options = {
        .handler = missed,
        .light_handler = below(2) == 0 ? missed_lightly : NULL,
        .user = user,
        .case_limit = SHAPES + 3,
        .counts_hits = below(3) == 0,
    };
    ic_assert_done(cairn_ic_create(program.sites[index], &options, &ic, &error), error);
}

static void run_function(const struct ic_function *function, uint32_t index)
{
    create(function, index);
    run_miss(function, index, 1);
    for (uint32_t shape = 1; shape <= SHAPES; shape++) {
        add(function, shape, false);
        for (uint32_t run_shape = 1; run_shape <= shape; run_shape++)
            run_hit(function, index, run_shape, false);
        run_miss(function, index, shape + 1);
    }
    add(function, SHAPES + 1, true);
    add_call(function, SHAPES + 2);
    for (uint32_t shape = 1; shape <= SHAPES + 1; shape++)
        run_hit(function, index, shape, shape > SHAPES);
    run_call(function, index, SHAPES + 2);
    run_miss(function, index, SHAPES + 3);
}

/* Hits and misses of a megamorphic cache's table, with keys of 4 and of 8 bytes. */
static void run_table(const struct ic_function *function, uint32_t index, bool is_wide)
{
    struct cairn_error error = {0};
    struct cairn_ic_options options = {
        .handler = missed,
        .user = (struct ic_function *)(uintptr_t)function,
        .case_limit = 1,
        .has_table = true,
    };
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), error);
    ic_assert_done(cairn_ic_create(program.sites[index], &options, &ic, &error), error);
    for (uint32_t shape = 1; shape <= SHAPES; shape++) {
        struct cairn_ic_case added = {
            .guard = {.offset = offsetof(struct object, shape), .width = 4, .key = shape},
            .action = returns(function) ? CAIRN_IC_LOAD : CAIRN_IC_STORE,
            .field = {.offset = (int32_t)(field_of(shape) * sizeof(uint64_t)), .width = 8},
            .operand = 1,
        };
        if (is_wide)
            added.guard = (struct cairn_ic_guard){.offset = offsetof(struct object, wide_shape),
                                                  .width = 8,
                                                  .key = wide_shape(shape)};
        ic_assert_done(cairn_ic_add(ic, &added, CAIRN_RELAXED, &error), error);
    }
    ck_assert_int_eq(cairn_ic_state(ic), CAIRN_IC_MEGAMORPHIC);
    for (uint32_t shape = 1; shape <= SHAPES; shape++)
        run_hit(function, index, shape, false);
    run_miss(function, index, SHAPES + 1);
}

static void run_functions(const struct ic_function *functions, uint32_t count)
{
    ic_load(&program, runtime, functions, count, IC_FIRST_SITE);
    for (uint32_t i = 0; i < count; i++) {
        note_registers(&functions[i], program.sites[i]);
        run_function(&functions[i], i);
        run_table(&functions[i], i, false);
        run_table(&functions[i], i, true);
        cairn_runtime_quiesce(runtime);
    }
    ic_unload(&program);
    cairn_runtime_quiesce(runtime);
}

/* Builds a function for each register that was not used for the role yet. Each attempt chooses
 * other neighbours. */
static void run_bank(enum role role, struct ic_function (*make)(uint32_t number, uint32_t distance),
                     uint32_t attempt)
{
    struct ic_function functions[IC_FUNCTIONS_MAX];
    const struct registers *all = &registers[is_vector_role(role) ? VECTOR : GENERAL];
    uint32_t count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        if (is_wanted(role, all->dwarf[i]))
            functions[count++] = make(i, attempt * 3 + below(4));
    if (count > 0)
        run_functions(functions, count);
}

static void report(void)
{
    for (int role = 0; role < ROLES; role++) {
        unsigned count = 0;
        for (int dwarf = 0; dwarf < DWARF_MAX; dwarf++)
            count += seen_roles[role][dwarf] > 0;
        printf("check_llvm_ic_registers: %u registers were %s\n", count, role_names[role]);
        const char *unseen = has_role((enum role)role) ? list_unseen((enum role)role) : "";
        ck_assert_msg(*unseen == '\0', "%swas never %s", unseen, role_names[role]);
    }
    printf("check_llvm_ic_registers: %u results were in the receiver's register\n",
           results_in_receivers);
    ck_assert_uint_gt(results_in_receivers, 0);
}

START_TEST(every_register_is_receiver_operand_and_result_and_the_others_are_preserved)
{
    random_state = support_seed_or(20261122);
    find_registers();
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    for (uint32_t attempt = 0; attempt < ATTEMPTS && !all_seen(); attempt++) {
        run_bank(RESULT, getter_into, attempt);
        run_bank(RECEIVER, getter_from, attempt);
        run_bank(STORED, setter, attempt);
        run_bank(STORED_NUMBER, number_setter, attempt);
        if (has_role(RESULT_NUMBER))
            run_bank(RESULT_NUMBER, number_getter, attempt);
    }
    cairn_runtime_destroy(runtime);
    report();
}
END_TEST

/* ---- Values that code keeps in registers ---- */

/* More vectors than there are registers, of each width that the machine has. */
static struct ic_function keeping_vectors(const char *features, uint32_t bits)
{
    static const uint32_t widths[] = {8, 16, 32, 64};
    struct ic_function function = random_function();
    function.features = features;
    function.sign_count = IC_SIGNS_MAX;
    function.kept_count = IC_KEPT_MAX;
    for (uint32_t i = 0; i < function.kept_count; i++) {
        uint32_t width = widths[below(4)];
        function.kept[i] =
            i % 5 == 4 ? CAIRN_INTEGER(64) : cairn_type_vector(CAIRN_INTEGER(width), bits / width);
    }
    return function;
}

static const struct {
    const char *features;
    uint32_t bits;
} vectors[] = {{NULL, 128}, {"+avx", 256}, {"+avx512f,+avx512bw,+avx512vl", 512}};

static bool has_vectors(int number)
{
    bool is_x86_64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    return number == 0 || (is_x86_64 && (uint32_t)number < arch_host_vector_level());
}

START_TEST(vectors_comparisons_and_integers_are_preserved_by_hits_calls_and_misses)
{
    enum { FUNCTIONS = 6 };
    struct ic_function functions[FUNCTIONS];
    random_state = support_seed_or(20261122);
    if (!has_vectors(_i))
        return;
    find_registers();
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    for (int i = 0; i < FUNCTIONS; i++) {
        functions[i] = keeping_vectors(vectors[_i].features, vectors[_i].bits);
        if (i % 2 == 0)
            functions[i].result = CAIRN_INTEGER(64);
        else if (i % 4 == 1)
            functions[i].operands[1] = CAIRN_DOUBLE;
    }
    run_functions(functions, FUNCTIONS);
    cairn_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("registers of inline caches");
    TCase *tests = tcase_create("registers");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests,
                   every_register_is_receiver_operand_and_result_and_the_others_are_preserved);
    tcase_add_loop_test(tests,
                        vectors_comparisons_and_integers_are_preserved_by_hits_calls_and_misses, 0,
                        sizeof vectors / sizeof *vectors);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
