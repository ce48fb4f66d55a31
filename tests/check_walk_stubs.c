/*
 * Tests of walks that begin in code of Cairn's own: entries, veneers, exits, closures, the stubs of
 * linked objects, and the code to which entered functions return. A thread is stopped at every
 * instruction, and a walk must find the caller, with the stack pointer and the callee-saved
 * registers that it had at the first instruction. What is reached by indirect branches must begin
 * with a landing pad.
 *
 * On x86-64 the processor's trap flag stops the thread. On other architectures a trap replaces the
 * next instruction. When it is reached, it is removed before the walk.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "base/error.h"
#include "code/state.h"
#include "context_support.h"
#include "runtime/runtime.h"
#include "tests/landing_support.h"
#include "tests/machine.h"
#include "tests/site_support.h"

#include <cairn/cairn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INSTRUCTIONS_MAX = 32, TRAP_FLAG = 0x100 };

static bool is_of_words(void) { return arch_host()->fixed_instruction_bytes != 0; }

/* ---- The caller ---- */

struct caller {
    uint64_t pc;
    uint64_t sp;
    uint64_t registers[ARCH_UNWIND_SLOTS_MAX];
};

static struct {
    cairn_runtime *runtime;
    uint64_t code;
    uint64_t end;
    uint64_t jumping_site; /* address of the instruction that jumps to the code; 0: it is called */
    bool is_native;        /* whether the caller has unwind rules, so that the walk can go on */
    struct caller caller;  /* at the first instruction */
    unsigned count;        /* of stops */
    unsigned followed;     /* stops after that, before the return to the caller */
    bool is_back;
    struct landing landing;
    char wrong[400];
    /* What the traps replace. */
    uint32_t words[INSTRUCTIONS_MAX];
    unsigned word_count;
} stop;

static void read_registers(const struct cairn_frame *frame, struct caller *caller)
{
    const struct cairn_arch *arch = arch_host();
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS + 1; i < arch->unwind_slot_count; i++)
        if (frame->private_words[i] != NULL)
            memcpy(&caller->registers[i], frame->private_words[i], sizeof caller->registers[i]);
}

/* The ABI's rule for the first instruction of a function. */
static void set_caller(struct cairn_context *context)
{
    const struct cairn_arch *arch = arch_host();
    struct cairn_frame frame;
    memset(&stop.caller, 0, sizeof stop.caller);
    ck_assert_int_eq(cairn_frame_from_context(stop.runtime, context, false, &frame, NULL),
                     CAIRN_OK);
    read_registers(&frame, &stop.caller);
    stop.caller.sp = read_register(context, CAIRN_REGISTER_SP);
    if (stop.jumping_site != 0) {
        stop.caller.pc = stop.jumping_site;
    } else if (arch->has_link_register) {
        stop.caller.pc =
            read_register(context, arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf);
    } else {
        memcpy(&stop.caller.pc, (const void *)(uintptr_t)stop.caller.sp, sizeof stop.caller.pc);
        stop.caller.sp += sizeof stop.caller.pc;
    }
}

/* The caller of a function that is entered with arch_host_enter. An exit's context also holds the
 * TOC pointer. */
static void set_saved_caller(struct cairn_context *context)
{
    struct cairn_frame frame;
#ifdef __powerpc64__
    uint64_t toc;
    __asm__ volatile("mr %0, 2" : "=r"(toc));
    write_register(context, arch_host()->toc_register, toc);
#endif
    ck_assert_int_eq(cairn_frame_from_context(stop.runtime, context, true, &frame, NULL), CAIRN_OK);
    read_registers(&frame, &stop.caller);
    stop.caller.pc = frame.pc;
    stop.caller.sp = frame.sp;
}

static void compare(struct cairn_context *context, uint64_t pc)
{
    struct cairn_frame frame;
    struct caller found = stop.caller;
    if (cairn_frame_from_context(stop.runtime, context, false, &frame, NULL) != CAIRN_OK)
        return;
    /* The code to which entered functions return is a module's. */
    if (frame.module != NULL && frame.pc == pc && cairn_frame_caller(&frame, NULL) != CAIRN_OK)
        frame.pc = 0;
    read_registers(&frame, &found);
    found.pc = frame.pc;
    found.sp = frame.sp;
    size_t slot = 0;
    while (slot < ARCH_UNWIND_SLOTS_MAX && found.registers[slot] == stop.caller.registers[slot])
        slot++;
    if (memcmp(&found, &stop.caller, sizeof found) != 0)
        snprintf(stop.wrong, sizeof stop.wrong,
                 "at byte %llu: caller 0x%llx with stack pointer 0x%llx, not 0x%llx with 0x%llx, "
                 "and other registers from slot %zu on",
                 (unsigned long long)(pc - stop.code), (unsigned long long)found.pc,
                 (unsigned long long)found.sp, (unsigned long long)stop.caller.pc,
                 (unsigned long long)stop.caller.sp, slot);
}

static uint64_t first_foreign;

static enum cairn_walk_answer note_native(struct cairn_walk *walk, void *user)
{
    (void)user;
    if (first_foreign == 0)
        first_foreign = walk->frame.pc;
    return CAIRN_WALK_NATIVE;
}

/* The walk must reach the end of the stack. */
static void walk_on(struct cairn_context *context, uint64_t pc)
{
    struct cairn_frame frame;
    struct cairn_walk walk;
    struct cairn_error error = {0};
    enum cairn_status status =
        cairn_frame_from_context(stop.runtime, context, false, &frame, &error);
    first_foreign = 0;
    cairn_walk_begin(&walk, &frame);
    walk.foreign = note_native;
    do
        status = status == CAIRN_OK ? cairn_walk_next(&walk, &error) : status;
    while (status == CAIRN_OK && !walk.has_ended);
    if (status != CAIRN_OK || first_foreign != stop.caller.pc)
        snprintf(stop.wrong, sizeof stop.wrong, "at byte %llu: %s: %s",
                 (unsigned long long)(pc - stop.code), cairn_status_name(status), error.message);
}

static enum cairn_walk_answer find_caller(struct cairn_walk *walk, void *user)
{
    *(bool *)user |= walk->frame.pc == stop.caller.pc;
    return CAIRN_WALK_NATIVE;
}

static void expect_to_pass_caller(struct cairn_context *context, bool is_calling, uint64_t pc)
{
    struct cairn_frame frame;
    struct cairn_walk walk;
    struct cairn_error error = {0};
    bool found = false;
    enum cairn_status status =
        cairn_frame_from_context(stop.runtime, context, is_calling, &frame, &error);
    cairn_walk_begin(&walk, &frame);
    walk.foreign = find_caller;
    walk.user = &found;
    do
        status = status == CAIRN_OK ? cairn_walk_next(&walk, &error) : status;
    while (status == CAIRN_OK && !walk.has_ended);
    if (status != CAIRN_OK || !found)
        snprintf(stop.wrong, sizeof stop.wrong, "walk from 0x%llx (code at 0x%llx): %s: %s",
                 (unsigned long long)pc, (unsigned long long)stop.code, cairn_status_name(status),
                 error.message);
}

/* A walk that begins in the signal handler must pass the code and find the caller, too. */
static void walk_from_handler(uint64_t pc)
{
    struct cairn_context context;
    cairn_context_save(&context);
    expect_to_pass_caller(&context, true, pc);
}

/* ---- Stopping ---- */

static void write_code(uint64_t address, const void *bytes, size_t size)
{
    struct code_space *space = stop.runtime->space;
    struct code_slab *slab = space->slabs;
    while (address - (uintptr_t)slab->base >= slab->size)
        slab = slab->next;
    struct cairn_error error;
    if (space->map->write(slab, (size_t)(address - (uintptr_t)slab->base), bytes, size, &error) !=
        CAIRN_OK)
        snprintf(stop.wrong, sizeof stop.wrong, "%s", error.message);
}

/* Whether this is an indirect branch that is not a call. */
static bool is_jump(uint32_t word)
{
    if (arch_host()->architecture == CAIRN_ARCHITECTURE_AARCH64)
        return (word & 0xFFDFFC1F) == 0xD61F0000 || (word & 0xFFFFFC1F) == 0xD65F0000;
    return word == 0x4E800420 || word == 0x4E800020; /* bctr, blr */
}

/* Replaces instruction number `index` by a trap. After a jump in the code's middle, a no-op follows
 * that is not executed. */
static void plant_trap(unsigned index)
{
    const uint32_t trap =
        arch_host()->architecture == CAIRN_ARCHITECTURE_AARCH64 ? 0xD4200000 : 0x7FE00008;
    if (index > 0 && is_jump(stop.words[index - 1]))
        index++;
    if (index < stop.word_count)
        write_code(stop.code + index * sizeof trap, &trap, sizeof trap);
}

/* Only on x86-64: the instructions that follow, in the library and in what it calls. */
static void follow(struct cairn_context *context, uint64_t pc)
{
    stop.is_back |= pc == stop.caller.pc;
    if (stop.caller.pc == 0 || stop.is_back || !stop.is_native || stop.wrong[0] != '\0')
        return;
    stop.followed++;
    expect_to_pass_caller(context, false, pc);
}

static void stopped(int signal, siginfo_t *info, void *ucontext)
{
    struct cairn_context context;
    (void)signal;
    (void)info;
    enum cairn_status status = cairn_context_from_signal(&context, ucontext, NULL);
    uint64_t pc = read_register(&context, CAIRN_REGISTER_PC);
    if (!is_of_words())
        landing_step(&stop.landing, stop.runtime, pc);
    if (pc < stop.code || pc >= stop.end || status != CAIRN_OK) {
        follow(&context, pc);
        return;
    }
    unsigned index = (unsigned)((pc - stop.code) / sizeof(uint32_t));
    if (is_of_words())
        write_code(pc, &stop.words[index], sizeof(uint32_t));
    if (stop.count++ == 0 && stop.caller.pc == 0)
        set_caller(&context);
    if (!code_space_holds(stop.runtime->space, pc))
        return;
    if (stop.wrong[0] == '\0')
        compare(&context, pc);
    if (stop.wrong[0] == '\0' && stop.is_native)
        walk_on(&context, pc);
    if (stop.wrong[0] == '\0' && stop.is_native && !arch_host()->has_link_register)
        walk_from_handler(pc);
    if (is_of_words())
        plant_trap(index + 1);
}

static void catch_traps(void)
{
    struct sigaction action = {.sa_sigaction = stopped, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
}

/* Copies the code's instructions up to the `last`th jump. */
static void copy_words(unsigned last)
{
    while (last > 0) {
        ck_assert_uint_lt(stop.word_count, INSTRUCTIONS_MAX);
        uint32_t *word = &stop.words[stop.word_count++];
        memcpy(word, (const void *)(uintptr_t)(stop.code + stop.word_count * sizeof *word - 4),
               sizeof *word);
        last -= is_jump(*word);
    }
}

/* Prepares for stops in the code at `code`, which has this number of jumps, and begins with
 * instruction number `first`. */
static void watch(cairn_runtime *runtime, const void *code, unsigned last, unsigned first)
{
    memset(&stop, 0, sizeof stop);
    if (first == 0 && code_space_holds(runtime->space, (uintptr_t)code))
        ck_assert(landing_is_pad(code));
    stop.runtime = runtime;
    stop.code = (uintptr_t)code;
    catch_traps();
    stop.end = stop.code + 64;
    if (!is_of_words())
        return;
    copy_words(last);
    stop.end = stop.code + stop.word_count * sizeof(uint32_t);
    plant_trap(first);
}

static void begin_steps(void)
{
#ifdef __x86_64__
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq; nop" ::"i"(TRAP_FLAG) : "memory", "cc");
#endif
}

static void end_steps(void)
{
#ifdef __x86_64__
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
#endif
}

static void expect_stops(unsigned count)
{
    ck_assert_str_eq(stop.wrong, "");
    ck_assert_uint_eq(stop.landing.wrong, 0);
    ck_assert_uint_eq(stop.count, is_of_words() ? stop.word_count : count);
}

static __attribute__((noinline)) long call_watched(long (*function)(void))
{
    begin_steps();
    long result = function();
    end_steps();
    return result;
}

static long call(const void *function) { return call_watched((long (*)(void))(uintptr_t)function); }

/* Only with a single mapping are traps seen under an emulator. */
static cairn_runtime *create_runtime(bool has_landing_pads)
{
    cairn_runtime *runtime;
    struct cairn_error error;
    const struct cairn_runtime_options options = {
        .code_mode = is_of_words() ? CAIRN_CODE_MODE_SINGLE : CAIRN_CODE_MODE_DUAL,
        .has_landing_pads = has_landing_pads,
    };
    ck_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    return runtime;
}

/* Returns the address of code, of a function pointer to it. */
static const void *code_of(const void *function)
{
    uint64_t address;
    if (!arch_host()->has_descriptors)
        return function;
    memcpy(&address, function, sizeof address);
    return (const void *)(uintptr_t)address;
}

/* ---- Stubs that the host calls ---- */

START_TEST(entry_of_a_function)
{
    cairn_runtime *runtime = create_runtime(true);
    struct cairn_error error;
    cairn_entry *made;
    ck_assert_done(cairn_entry_create(runtime, "f", NULL, SITE_TWO, &made, &error), error);
    watch(runtime, code_of(cairn_entry_target(made)), 1, 0);
    stop.is_native = true;
    ck_assert_int_eq(call(cairn_entry_target(made)), 2);
    expect_stops(2);
    cairn_entry_destroy(made);
    cairn_runtime_destroy(runtime);
}
END_TEST

static unsigned exits;

static void handle(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
    exits++;
}

START_TEST(exit_of_the_host)
{
    cairn_runtime *runtime = create_runtime(true);
    struct cairn_error error;
    cairn_exit *made;
    ck_assert_done(cairn_exit_create(runtime, handle, NULL, &made, &error), error);
    watch(runtime, code_of(cairn_exit_target(made)), 1, 0);
    stop.is_native = true;
    exits = 0;
    call(cairn_exit_target(made));
    ck_assert_uint_eq(exits, 1);
    expect_stops(3);
    ck_assert_uint_eq(stop.landing.count, is_of_words() ? 0 : 2); /* the stub, the exits' entry */
    ck_assert_uint_ge(stop.followed, is_of_words() ? 0 : 100);
    cairn_exit_destroy(made);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* An exit with a light handler, as inline caches have it. */
static bool answer_lightly(struct cairn_context *context, void *user)
{
    (void)context;
    exits++;
    return user != NULL;
}

static void answer_fully(struct cairn_context *context, void *user)
{
    (void)context;
    (void)user;
    exits++;
}

static enum cairn_status encode_light_exit(struct code_stub *stub, void *user, uint8_t *code,
                                           size_t *size, struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    const uint64_t address = stub->address + arch->exit_bytes;
    struct arch_light_exit data;
    static _Atomic uint32_t level;
    level = arch_host_vector_level();
    enum cairn_status status = arch_exit_init(&data.exit, answer_fully, user, &level, error);
    arch_exit_make_light(&data, answer_lightly);
    data.exit.self = (struct arch_exit *)(uintptr_t)address;
    if (status == CAIRN_OK && !arch->encode_exit(arch, stub->address, address, code))
        return error_set(error, CAIRN_ERROR_RANGE, address, "the data is out of reach");
    memcpy(code + arch->exit_bytes, &data, sizeof data);
    *size = arch->exit_bytes + sizeof data;
    return status;
}

static void run_light_exit(void *user, unsigned handlers)
{
    cairn_runtime *runtime = create_runtime(true);
    const struct code_stub_request request = {.encode = encode_light_exit,
                                              .user = user,
                                              .label = "exit",
                                              .description_bytes = sizeof(struct code_stub)};
    struct code_stub *stub;
    ck_assert_int_eq(code_space_add_stub(runtime->space, &request, &stub, NULL), CAIRN_OK);
    watch(runtime, (const void *)(uintptr_t)stub->address, 1, 0);
    stop.is_native = true;
    exits = 0;
    call((const void *)(uintptr_t)stub->address);
    ck_assert_uint_eq(exits, handlers);
    expect_stops(3);
    ck_assert_uint_ge(stop.followed, is_of_words() ? 0 : 100);
    code_stub_free(stub);
    cairn_runtime_destroy(runtime);
}

START_TEST(exit_with_a_light_handler)
{
    run_light_exit(&exits, 1);
    run_light_exit(NULL, 2);
}
END_TEST

static void answer(const struct cairn_value *arguments, struct cairn_value *results, void *user)
{
    (void)arguments;
    (void)user;
    results[0] = cairn_value_of_integer(64, 9);
}

START_TEST(closure)
{
    cairn_runtime *runtime = create_runtime(true);
    struct cairn_error error;
    cairn_signature *signature;
    cairn_closure *made;
    const struct cairn_type integer = CAIRN_INTEGER(64);
    ck_assert_done(cairn_signature_create(NULL, &integer, 1, NULL, 0, &signature, &error), error);
    enum cairn_status status =
        cairn_closure_create(runtime, signature, answer, NULL, &made, &error);
    if (status == CAIRN_OK) {
        watch(runtime, code_of(cairn_closure_target(made)), 1, 0);
        stop.is_native = true;
        ck_assert_int_eq(call(cairn_closure_target(made)), 9);
        ck_assert_str_eq(stop.wrong, "");
        ck_assert_uint_gt(stop.count, 1);
        cairn_closure_destroy(made);
    } else {
        ck_assert_int_eq(status, CAIRN_ERROR_UNSUPPORTED);
    }
    cairn_signature_destroy(signature);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Calls with arguments from memory ---- */

static const cairn_signature *many_arguments;

static __attribute__((noinline)) long call_with_arguments(void)
{
    struct cairn_value values[10];
    struct cairn_value result;
    for (size_t i = 0; i < 10; i++)
        values[i] = cairn_value_of_integer(64, (int64_t)i);
    if (cairn_call(many_arguments, SITE_TWO, values, 10, &result, NULL) != CAIRN_OK)
        return 0;
    return (long)cairn_value_signed(&result);
}

START_TEST(call_with_arguments_from_memory)
{
    cairn_runtime *runtime = create_runtime(true);
    struct cairn_error error;
    cairn_signature *signature;
    struct cairn_type types[10];
    for (size_t i = 0; i < 10; i++)
        types[i] = cairn_value_of_integer(64, 0).type;
    ck_assert_done(cairn_signature_create(NULL, types, 1, types, 10, &signature, &error), error);
    many_arguments = signature;
    if (!is_of_words()) {
        watch(runtime, (const void *)(uintptr_t)call_with_arguments, 1, 0);
        stop.is_native = true;
    }
    ck_assert_int_eq(call_watched(call_with_arguments), 2);
    ck_assert_str_eq(stop.wrong, "");
    ck_assert_uint_ge(stop.followed, is_of_words() ? 0 : 100);
    cairn_signature_destroy(signature);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Landing pads ---- */

static long call_directly(const void *function) { return ((long (*)(void))(uintptr_t)function)(); }

/* Returns the signal that ends a child which calls the function. */
static int ending_signal(const void *function)
{
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit((int)call_directly(function));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

START_TEST(indirect_branch_past_a_landing_pad_is_refused)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_entry *made;
    const struct cairn_runtime_options options = {.code_mode = site_modes[_i],
                                                  .has_landing_pads = true};
    enum cairn_status status = cairn_runtime_create(&options, &runtime, &error);
    if (status == CAIRN_ERROR_UNSUPPORTED) /* an emulator has no dual mapping */
        return;
    ck_assert_done(status, error);
    ck_assert_done(cairn_entry_create(runtime, "f", NULL, SITE_TWO, &made, &error), error);
    ck_assert_int_eq(call_directly(cairn_entry_target(made)), 2);
    const uint8_t *past = (const uint8_t *)cairn_entry_target(made);
    past += arch_host()->landing_pad.bytes;
    if (!arch_host()->has_descriptors)
        ck_assert_int_eq(ending_signal(past), arch_host_landing_protection() != 0 ? SIGILL : 0);
    cairn_entry_destroy(made);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Veneers of sites ---- */

/* Returns the veneer that the site branches to. */
static const void *veneer_of(const struct site_fixture *fixture)
{
    const struct cairn_site_description site = site_describe(fixture->site);
    const struct cairn_arch *arch = arch_host();
    uint64_t word = 0;
    uint64_t target;
    enum cairn_site_state branch;
    ck_assert(site.uses_veneer);
    memcpy(&word, (const void *)(uintptr_t)site.instruction_address, arch->instruction_bytes);
    if (is_of_words()) {
        uint32_t narrow;
        memcpy(&narrow, (const void *)(uintptr_t)site.instruction_address, sizeof narrow);
        word = narrow;
    }
    ck_assert(arch->decode_branch(arch, word, site.instruction_address, arch->instruction_bytes,
                                  &branch, &target));
    return (const void *)(uintptr_t)target;
}

static void load_site(struct site_fixture *fixture, enum cairn_record_kind kind)
{
    static uint8_t region[SITE_REGION_MAX];
    struct site_shape shape = site_null_patchpoint(region, machine_patchpoint_bytes);
    shape.kind = kind;
    shape.publish = true;
    site_load_into(fixture, create_runtime(false), &shape);
}

/* A target out of reach of every branch. */
#define FAR_ADDRESS UINT64_C(0x200000000000)
#define FAR_TARGET ((const void *)(uintptr_t)FAR_ADDRESS)

/* Places a function that returns 4 there. If it is jumped to, it first removes the frame of the
 * site's function. */
static void place_target(bool is_jumped_to)
{
    uint8_t code[64];
    size_t size = is_jumped_to ? machine_leave_frame(code) : 0;
    size += arch_host()->encode_self_test(arch_host(), 4, code + size);
    ck_assert(site_place_code(FAR_ADDRESS, code, size));
}

static void walk_from_veneer_of_a_call(enum cairn_record_kind kind)
{
    struct site_fixture fixture;
    struct cairn_error error;
    load_site(&fixture, kind);
    place_target(false);
    ck_assert_done(cairn_site_call(fixture.site, FAR_TARGET, CAIRN_SYNC, &error), error);
    watch(fixture.runtime, veneer_of(&fixture), 1, 0);
    ck_assert_int_eq(call_watched(fixture.function), 4);
    ck_assert_uint_eq(stop.caller.pc, site_describe(fixture.site).return_address);
    expect_stops(2);
    site_unload(&fixture);
    site_remove_code(FAR_ADDRESS);
}

START_TEST(veneer_of_a_call) { walk_from_veneer_of_a_call(CAIRN_RECORD_PATCHPOINT); }
END_TEST

/* On PPC64 such a veneer has a call frame. */
START_TEST(veneer_of_a_shadow) { walk_from_veneer_of_a_call(CAIRN_RECORD_STACKMAP); }
END_TEST

/* The thread is still in the function that the site belongs to. */
START_TEST(veneer_of_a_jump)
{
    struct site_fixture fixture;
    struct cairn_error error;
    load_site(&fixture, CAIRN_RECORD_PATCHPOINT);
    place_target(true);
    ck_assert_done(cairn_site_jump(fixture.site, FAR_TARGET, CAIRN_SYNC, &error), error);
    watch(fixture.runtime, veneer_of(&fixture), 1, 0);
    stop.jumping_site = site_describe(fixture.site).instruction_address;
    ck_assert_int_eq(call_watched(fixture.function), 4);
    expect_stops(2);
    site_unload(&fixture);
    site_remove_code(FAR_ADDRESS);
}
END_TEST

/* ---- The code to which entered functions return ---- */

static struct cairn_context entering;

/* Enters a function in place of its own frame, whose upper part the arguments may overwrite. So
 * AddressSanitizer must not guard it, and nothing in it is used afterwards. */
static __attribute__((noinline, noreturn, no_sanitize_address)) void enter(
    const struct arch_entry *entry)
{
    char overwritten[4096];
    __asm__ volatile("" : "=m"(overwritten));
    arch_host_enter(&entering, entry);
    if (!is_of_words())
        write_register(&entering, CAIRN_REGISTER_FLAGS,
                       read_register(&entering, CAIRN_REGISTER_FLAGS) | TRAP_FLAG);
    cairn_context_resume(&entering);
}

START_TEST(code_after_an_entered_function)
{
    cairn_runtime *runtime = create_runtime(true);
    struct cairn_error error;
    cairn_exit *made;
    static const uint64_t stack[16];
    ck_assert_done(cairn_exit_create(runtime, handle, NULL, &made, &error), error);
    uint64_t code = atomic_load(&runtime->entry_code);
    const struct arch_entry entry = {
        .function = SITE_TWO, .code = code, .stack = stack, .stack_bytes = sizeof stack};
    watch(runtime, (const void *)(uintptr_t)code, arch_host()->calls_need_veneer ? 2 : 1,
          arch_host()->calls_need_veneer ? 0 : 1);
    int result = cairn_context_save(&entering);
    if (result == 0) {
        set_saved_caller(&entering);
        enter(&entry);
    }
    end_steps();
    ck_assert_int_eq(result, 2);
    stop.word_count--; /* unwinders only look up the no-op */
    expect_stops(2);
    cairn_exit_destroy(made);
    cairn_runtime_destroy(runtime);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("walks from stubs");
    TCase *tests = tcase_create("stubs");
    tcase_add_test(tests, entry_of_a_function);
    tcase_add_test(tests, exit_of_the_host);
    tcase_add_test(tests, exit_with_a_light_handler);
    tcase_add_test(tests, closure);
    tcase_add_test(tests, call_with_arguments_from_memory);
    tcase_add_loop_test(tests, indirect_branch_past_a_landing_pad_is_refused, 0, SITE_MODES);
    tcase_add_test(tests, veneer_of_a_call);
    tcase_add_test(tests, veneer_of_a_shadow);
    tcase_add_test(tests, veneer_of_a_jump);
    tcase_add_test(tests, code_after_an_entered_function);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void) { return site_main(make_suite()); }
