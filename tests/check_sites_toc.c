/*
 * Tests on PPC64, ELFv2. Caller and callee have different TOCs, and another thread changes the
 * target of the site between them. Each function reads a canary through its own r2, before and
 * after the call. If a function had the wrong TOC, the sum of the canaries would be wrong.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/site_support.h"

#include "arch/arch.h"
#include "tests/code_support.h"
#include "tests/machine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The canaries are in the code, which is readable, at a fixed distance from each entry. */
enum {
    FUNCTION_BYTES = 128,
    FUNCTIONS = 4,
    LEAVE = FUNCTIONS, /* the jump target, after the functions */
    CANARY_OFFSET = FUNCTION_BYTES - 8,
    CALLER_CANARY = 7,
    RETARGETS = 4000,
    RUNNERS = 2
};

static const uint64_t canaries[FUNCTIONS] = {CALLER_CANARY, 1000, 2000, 3000};

static size_t put_word(uint8_t *code, uint32_t word)
{
    memcpy(code, &word, sizeof word);
    return sizeof word;
}

/* A function's global entry; the TOC of the function is its own last 8 bytes. */
static size_t set_toc(uint8_t *code)
{
    return put_word(code, 0x384C0000 | CANARY_OFFSET); /* addi r2, r12, CANARY_OFFSET */
}

static size_t write_callee(uint8_t *code)
{
    uint8_t *at = code + set_toc(code);
    at += put_word(at, 0xE8620000); /* ld r3, 0(r2) */
    at += machine_return(at);
    return (size_t)(at - code);
}

/* Writes the jump target, which reads the canary of the function that jumped to it, and returns
 * from that function. */
static size_t write_leave(uint8_t *code)
{
    uint8_t *at = code;
    at += put_word(at, 0xE8410018); /* ld r2, 24(r1) */
    at += put_word(at, 0xE8620000); /* ld r3, 0(r2) */
    at += machine_leave_frame(at);
    at += machine_return(at);
    return (size_t)(at - code);
}

/* Sites whose region has no effect at first. */
static const struct kind {
    enum cairn_record_kind record;
    uint32_t byte_count;
    uint32_t odd_offset; /* of a word that is not a no-op; past the end of the region if there is no
                            such word */
    bool live;
} kinds[] = {
    {CAIRN_RECORD_PATCHPOINT, 32, 32, true}, {CAIRN_RECORD_PATCHPOINT, 12, 12, true},
    {CAIRN_RECORD_PATCHPOINT, 12, 8, false}, {CAIRN_RECORD_PATCHPOINT, 32, 4, false},
    {CAIRN_RECORD_STACKMAP, 12, 12, true},   {CAIRN_RECORD_STACKMAP, 4, 0, false},
    {CAIRN_RECORD_STACKMAP, 12, 4, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Writes a function that adds the call's result and the caller's own canary, read after the call.
 * Returns the site's place. */
static uint32_t write_caller(uint8_t *code, const struct kind *kind)
{
    uint8_t *at = code + set_toc(code);
    at += machine_enter(at);
    uint32_t site = (uint32_t)(at - code);
    arch_host()->fill_nops(arch_host(), at, kind->byte_count);
    if (kind->odd_offset < kind->byte_count)
        put_word(at + kind->odd_offset, 0x60630000); /* ori r3, r3, 0 */
    at += kind->byte_count;
    at += put_word(at, 0xE8820000); /* ld r4, 0(r2) */
    at += put_word(at, 0x7C632214); /* add r3, r3, r4 */
    at += machine_leave_frame(at);
    at += machine_return(at);
    ck_assert_int_le(at - code, CANARY_OFFSET);
    return site;
}

struct program {
    cairn_runtime *runtime;
    cairn_module *module;
    cairn_site *site;
    uint8_t *code;
    long (*caller)(uint64_t);
};

static void load(struct program *program, enum cairn_code_mode mode, const struct kind *kind)
{
    uint8_t bytes[(LEAVE + 1) * FUNCTION_BYTES];
    struct cairn_error error;
    memset(bytes, 0, sizeof bytes);
    struct site_record record = {.id = 1, .byte_count = kind->byte_count, .kind = kind->record};
    record.offset = write_caller(bytes, kind);
    write_leave(bytes + LEAVE * FUNCTION_BYTES);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uint8_t *function = bytes + i * FUNCTION_BYTES;
        if (i > 0)
            write_callee(function);
        memcpy(function + CANARY_OFFSET, &canaries[i], sizeof canaries[i]);
    }
    const struct site_function function = {0, 1};
    const struct site_code code = {bytes, sizeof bytes, &function, 1, &record, 0};
    program->runtime = site_runtime(mode);
    program->module = site_load_code(program->runtime, &code, &program->code);
    ck_assert_done(cairn_module_publish(program->module, &error), error);
    program->site = cairn_module_site(program->module, 0);
    program->caller = (long (*)(uint64_t))(uintptr_t)program->code;
    ck_assert(site_describe(program->site).live == kind->live);
}

static void unload(struct program *program)
{
    cairn_module_retire(program->module);
    ck_assert_uint_eq(cairn_runtime_quiesce(program->runtime), 1);
    cairn_runtime_destroy(program->runtime);
}

static const void *callee(const struct program *program, uint32_t index)
{
    return program->code + index * FUNCTION_BYTES;
}

/* The caller is in the program, which has a third TOC. */
static long own_canary = 5000;
static long of_the_program(void) { return *(volatile long *)&own_canary; }
#define OF_THE_PROGRAM ((const void *)(uintptr_t)of_the_program)

START_TEST(caller_and_callee_have_their_own_toc)
{
    struct program program;
    struct cairn_error error;
    const struct kind *kind = &kinds[_i % KINDS];
    enum cairn_strength strength = kind->live ? CAIRN_SYNC : CAIRN_QUIESCENT;
    load(&program, site_modes[_i / KINDS], kind);
    ck_assert_int_eq(program.caller(0), CALLER_CANARY);
    for (uint32_t i = 1; i < FUNCTIONS; i++) {
        ck_assert_done(cairn_site_call(program.site, callee(&program, i), strength, &error), error);
        ck_assert_int_eq(program.caller(0), (long)canaries[i] + CALLER_CANARY);
    }
    ck_assert_done(cairn_site_call(program.site, OF_THE_PROGRAM, strength, &error), error);
    ck_assert_int_eq(program.caller(0), own_canary + CALLER_CANARY);
    ck_assert_done(cairn_site_jump(program.site, callee(&program, LEAVE), strength, &error), error);
    ck_assert_int_eq(program.caller(0), CALLER_CANARY);
    ck_assert_done(cairn_site_restore(program.site, strength, &error), error);
    ck_assert_int_eq(program.caller(0), CALLER_CANARY);
    unload(&program);
}
END_TEST

/* ---- LLVM's own branch ---- */

enum { REACH = 32 << 20, BRANCH_REGION = 12 };

static void load_branch(struct program *program, enum cairn_code_mode mode, int32_t displacement)
{
    uint8_t bytes[FUNCTION_BYTES];
    struct cairn_error error;
    const struct kind kind = {CAIRN_RECORD_PATCHPOINT, BRANCH_REGION, BRANCH_REGION, true};
    struct site_record record = {1, 0, BRANCH_REGION, kind.record};
    const struct site_function function = {0, 1};
    const struct site_code code = {bytes, sizeof bytes, &function, 1, &record, 0};
    const struct cairn_runtime_options options = {.code_mode = mode, .slab_size = 1 << 20};
    uint64_t canary = CALLER_CANARY;
    memset(bytes, 0, sizeof bytes);
    record.offset = write_caller(bytes, &kind);
    put_word(bytes + record.offset, 0x48000001 | ((uint32_t)displacement & 0x03FFFFFC)); /* bl */
    memcpy(bytes + CANARY_OFFSET, &canary, sizeof canary);
    ck_assert_done(cairn_runtime_create(&options, &program->runtime, &error), error);
    program->module = site_load_code(program->runtime, &code, &program->code);
    ck_assert_done(cairn_module_publish(program->module, &error), error);
    program->site = cairn_module_site(program->module, 0);
    program->caller = (long (*)(uint64_t))(uintptr_t)program->code;
}

/* LLVM's `bl` is the region's first instruction, and the armed call is the second. So the lowest
 * target that `bl` reaches is one step beyond the reach of the armed call. */
START_TEST(llvm_s_branch_is_kept_up_to_the_edge_of_the_reach_and_has_a_veneer_beyond)
{
    static const struct {
        int32_t displacement;
        bool needs_veneer;
    } cases[] = {{REACH - 4, false}, {-REACH + 4, false}, {-REACH, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program program;
        struct cairn_error error;
        uint8_t seven[ARCH_SELF_TEST_BYTES_MAX];
        size_t size = arch_host()->encode_self_test(arch_host(), 700, seven);
        load_branch(&program, site_modes[_i], cases[i].displacement);
        struct cairn_site_description description = site_describe(program.site);
        uint64_t target = description.address + (uint64_t)(int64_t)cases[i].displacement;
        ck_assert_msg(description.live, "%s", description.reason);
        ck_assert_int_eq(description.state, CAIRN_SITE_CALL);
        ck_assert_uint_eq(description.target, target);
        ck_assert(description.uses_veneer == cases[i].needs_veneer);
        ck_assert(site_place_code(target, seven, size));
        ck_assert_int_eq(program.caller(0), 700 + CALLER_CANARY);
        ck_assert_done(cairn_site_nop(program.site, CAIRN_SYNC, &error), error);
        ck_assert_int_eq(program.caller(0), CALLER_CANARY);
        ck_assert_done(cairn_site_restore(program.site, CAIRN_SYNC, &error), error);
        ck_assert(site_describe(program.site).uses_veneer == cases[i].needs_veneer);
        ck_assert_int_eq(program.caller(0), 700 + CALLER_CANARY);
        site_remove_code(target);
        unload(&program);
    }
}
END_TEST

/* ---- While another thread changes the target ---- */

static struct {
    const struct program *program;
    atomic_bool stop;
    atomic_ulong runs;
    atomic_ulong wrong;
} race;

static void *run(void *argument)
{
    while (!atomic_load(&race.stop)) {
        long callee_part = race.program->caller(0) - CALLER_CANARY;
        bool known = callee_part == 0 || callee_part == 1000 || callee_part == 2000 ||
                     callee_part == 3000 || callee_part == own_canary;
        if (!known)
            atomic_fetch_add(&race.wrong, 1);
        atomic_fetch_add(&race.runs, 1);
    }
    return argument;
}

static enum cairn_status retarget(const struct program *program, uint32_t step)
{
    enum cairn_strength strength = step % 16 == 0 ? CAIRN_SYNC : CAIRN_RELAXED;
    uint32_t choice = step * 7 % (FUNCTIONS + 1);
    if (choice == 0)
        return cairn_site_nop(program->site, strength, NULL);
    if (choice == FUNCTIONS)
        return cairn_site_call(program->site, OF_THE_PROGRAM, strength, NULL);
    return cairn_site_call(program->site, callee(program, choice), strength, NULL);
}

START_TEST(tocs_stay_apart_while_another_thread_retargets)
{
    struct program program;
    pthread_t threads[RUNNERS];
    const struct kind *kind = &kinds[_i % KINDS];
    if (!kind->live)
        return;
    load(&program, site_modes[_i / KINDS], kind);
    race.program = &program;
    atomic_store(&race.stop, false);
    for (int i = 0; i < RUNNERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run, NULL), 0);
    for (uint32_t step = 0; step < RETARGETS; step++)
        ck_assert_int_eq(retarget(&program, step), CAIRN_OK);
    atomic_store(&race.stop, true);
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(race.wrong, 0);
    ck_assert_uint_gt(race.runs, 0);
    unload(&program);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("TOC");
    TCase *tests = tcase_create("TOC");
    int first_mode = site_first_mode();
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, caller_and_callee_have_their_own_toc, KINDS * first_mode,
                        KINDS * SITE_MODES);
    tcase_add_loop_test(tests, tocs_stay_apart_while_another_thread_retargets, KINDS * first_mode,
                        KINDS * SITE_MODES);
    tcase_add_loop_test(tests,
                        llvm_s_branch_is_kept_up_to_the_edge_of_the_reach_and_has_a_veneer_beyond,
                        first_mode, SITE_MODES);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
