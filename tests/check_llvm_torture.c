/*
 * A test of a whole runtime in the manner of the kernel's rcutorture. Every thread runs compiled
 * functions, whose sites have inline caches, and whose callees are functions of C in which the
 * thread walks over its frames, calls other compiled functions, loads new ones, and retires and
 * invalidates those that all threads may be in. Cache misses change and reset caches.
 * Grace periods of all threads overlap. Freed memory is overwritten, and freed code is used again.
 *
 * Objects are compiled once, and then loaded again and again.
 *
 * Runs for two seconds in each mode, or for CAIRN_TORTURE_SECONDS.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "base/adapter.h"
#include "llvm_support.h"
#include "mode_support.h"
#include "runtime_support.h"
#include "value/representation.h"
#include "llvm/scan.h"

#include <cairn/load.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    THREADS = 4,
    PLACES = 12,  /* functions that exist at a time */
    VARIANTS = 5, /* functions that differ in a number, which they add to their result */
    PERIODS = 4,  /* that a thread has begun and not ended */
    SHAPES = 6,
    FIELDS = 6,
    DEPTH_MAX = 4
};

/* IDs of the sites of a function. */
enum { ENTRY = 1, CACHE = 2, CALL = 3, AFTER_CALL = 4 };

struct object {
    uint32_t shape;
    uint32_t reserved;
    int64_t fields[FIELDS];
};

/* ---- Compiling ---- */

static const char format[] = SUPPORT_INTRINSICS
    "define i64 @f(ptr %%object, i64 %%depth) noinline uwtable {\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 16,\n"
    "      ptr null, i32 0, ptr %%object, i64 %%depth, i64 %d)\n"
    "  %%x = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 %d, i32 48,\n"
    "      ptr null, i32 1, ptr %%object)\n"
    "  %%r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 %d, i32 48,\n"
    "      ptr inttoptr (i64 %llu to ptr), i32 2, ptr %%object, i64 %%depth, i64 %%x)\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 16,\n"
    "      ptr null, i32 0, i64 %%x, i64 %%r, i64 %d)\n"
    "  %%s = add i64 %%x, %%r\n"
    "  %%t = add i64 %%s, %d\n"
    "  ret i64 %%t\n"
    "}\n";

typedef int64_t compiled(const struct object *object, int64_t depth);

struct variant {
    LLVMMemoryBufferRef code;
    cairn_declarations *declarations;
};

static LLVMTargetMachineRef create_machine(void)
{
    LLVMTargetRef target;
    char *message = NULL;
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    ck_assert_int_eq(LLVMGetTargetFromTriple(triple, &target, &message), 0);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
        target, triple, "", "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    LLVMDisposeMessage(triple);
    return machine;
}

static int64_t call_on(const struct object *object, int64_t depth);

static void compile(struct variant *variant, int number)
{
    char text[4096];
    char *message = NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMTargetMachineRef machine = create_machine();
    snprintf(text, sizeof text, format, ENTRY, number, CACHE, CALL,
             (unsigned long long)(uintptr_t)call_on, AFTER_CALL, number, number);
    LLVMModuleRef module = support_parse_valid(context, text);
    ck_assert_ok(cairn_declarations_create(NULL, &variant->declarations, NULL));
    ck_assert_ok(scan_module(module, false, variant->declarations, NULL));
    ck_assert_int_eq(LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message,
                                                         &variant->code),
                     0);
    LLVMDisposeTargetMachine(machine);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}

static void dispose(const struct variant *variant)
{
    cairn_declarations_destroy(variant->declarations);
    LLVMDisposeMemoryBuffer(variant->code);
}

/* ---- Threads ---- */

/* A grace period has passed when all counters have changed. */
struct period {
    uint64_t token; /* 0: none */
    uint64_t counters[THREADS];
};

struct torturer {
    pthread_t thread;
    int number;
    uint64_t state;             /* of the random numbers */
    _Atomic uint64_t quiescent; /* number of quiescent points */
    struct period periods[PERIODS];
    cairn_module *modules[PLACES]; /* in the places of this thread */
    uint64_t runs, misses, walks, exits, updates, ended, freed;
};

static struct {
    cairn_runtime *runtime;
    cairn_exit *exit;
    struct variant variants[VARIANTS];
    struct object objects[SHAPES];
    /* Each place belongs to one thread, which replaces it; all threads call it. */
    _Atomic uint64_t functions[PLACES];
    struct torturer torturers[THREADS];
    _Atomic bool stop;
} torture;

static _Thread_local struct torturer *self;

/* Ends the process, from any thread. */
static void expect_at(bool condition, const char *text, int line)
{
    if (condition)
        return;
    fprintf(stderr, "check_llvm_torture.c:%d: %s\n", line, text);
    abort();
}
#define expect(condition) expect_at((condition), #condition, __LINE__)

static uint32_t below(uint32_t bound)
{
    self->state ^= self->state << 13;
    self->state ^= self->state >> 7;
    self->state ^= self->state << 17;
    return (uint32_t)((self->state >> 20) % bound);
}

static uint32_t field_of(const struct object *object) { return object->shape % FIELDS; }

static int64_t property(const struct object *object) { return object->fields[field_of(object)]; }

/* ---- Caches ---- */

static void miss(struct cairn_ic_miss *missed, void *user);

static void create_cache(cairn_site *site)
{
    cairn_ic *ic;
    const struct cairn_ic_options options = {.handler = miss, .case_limit = 3};
    expect(cairn_ic_create(site, &options, &ic, NULL) == CAIRN_OK);
}

/* Another thread may have retired the module. */
static bool is_expected(enum cairn_status status)
{
    return status == CAIRN_OK || status == CAIRN_ERROR_STATE;
}

/* A cache is not destroyed, because its site would have no result then. */
static void change_cache(cairn_ic *ic, const struct object *object)
{
    const struct cairn_ic_case added = {
        .guard = {.operand = 0, .width = sizeof object->shape, .key = object->shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = (int32_t)(offsetof(struct object, fields) +
                                      field_of(object) * sizeof *object->fields),
                  .width = sizeof *object->fields}};
    const struct cairn_ic_change reset = {.ic = ic, .kind = CAIRN_IC_CHANGE_RESET};
    if (below(8) == 0)
        expect(is_expected(cairn_ics_change(&reset, 1, CAIRN_RELAXED, NULL)));
    else
        expect(is_expected(cairn_ic_add(ic, &added, CAIRN_RELAXED, NULL)));
}

static void miss(struct cairn_ic_miss *missed, void *user)
{
    const struct cairn_frame *frame = &missed->call->frame;
    (void)user;
    self->misses++;
    expect(missed->operand_count == 1);
    expect(frame->module != NULL);
    expect(cairn_record_id(missed->call->record) == CACHE);
    const struct object *object =
        (const struct object *)(uintptr_t)value_unsigned(&missed->operands[0]);
    expect(object >= torture.objects && object < torture.objects + SHAPES);
    change_cache(missed->ic, object);
    const struct cairn_value result = cairn_value_of_integer(64, property(object));
    expect(cairn_ic_return(missed, &result, NULL) == CAIRN_OK);
}

/* ---- Functions ---- */

static cairn_site *find_site(const cairn_module *module, uint64_t id)
{
    struct cairn_site_description description;
    for (uint32_t i = 0; i < support_site_count(module); i++) {
        cairn_site_describe(cairn_module_site(module, i), &description);
        if (description.id == id)
            return cairn_module_site(module, i);
    }
    return NULL;
}

static cairn_module *load(const struct variant *variant)
{
    cairn_loader *loader;
    cairn_module *module;
    expect(cairn_loader_create(torture.runtime, NULL, &loader, NULL) == CAIRN_OK);
    expect(cairn_loader_declare(loader, variant->declarations, NULL) == CAIRN_OK);
    expect(cairn_loader_add_object(loader, LLVMGetBufferStart(variant->code),
                                   LLVMGetBufferSize(variant->code), NULL, NULL) == CAIRN_OK);
    expect(cairn_loader_finish(loader, &module, NULL) == CAIRN_OK);
    create_cache(find_site(module, CACHE));
    expect(cairn_module_publish(module, NULL) == CAIRN_OK);
    return module;
}

/* Sites of one function may be invalidated by several threads, and their modules retired. */
static void invalidate(const cairn_module *module)
{
    cairn_invalidation *invalidation;
    const struct cairn_invalidation_options options = {.module = module,
                                                       .target = cairn_exit_target(torture.exit)};
    expect(cairn_invalidate(torture.runtime, &options, CAIRN_RELAXED, &invalidation, NULL) ==
           CAIRN_OK);
    if (below(2) == 0)
        expect(cairn_invalidation_undo(invalidation, CAIRN_RELAXED, NULL) == CAIRN_OK);
    cairn_invalidation_destroy(invalidation);
}

/* Replaces the function in one of the thread's places. Any thread may be in the old one. */
static void update(void)
{
    uint32_t place = below(PLACES / THREADS) * THREADS + (uint32_t)self->number;
    cairn_module *old = self->modules[place];
    cairn_module *fresh = load(&torture.variants[below(VARIANTS)]);
    self->modules[place] = fresh;
    atomic_store(&torture.functions[place], (uintptr_t)cairn_module_find_symbol(fresh, "f"));
    if (old == NULL)
        return;
    uint32_t choice = below(4);
    if (choice == 0)
        invalidate(old);
    cairn_module_retire(old);
    if (choice == 1)
        invalidate(old);
    self->updates++;
}

static void run(int64_t depth)
{
    const struct object *object = &torture.objects[below(SHAPES)];
    uint64_t address = atomic_load(&torture.functions[below(PLACES)]);
    int64_t result = ((compiled *)(uintptr_t)address)(object, depth);
    int64_t number = result - property(object) - depth;
    self->runs++;
    expect(number >= 0 && number < VARIANTS);
}

/* ---- In the middle of a function ---- */

static int64_t value_at(const struct cairn_frame *frame, struct cairn_record record, uint32_t index)
{
    struct cairn_value value = {0};
    expect(cairn_frame_value(frame, record, index, &value, NULL) == CAIRN_OK);
    return cairn_value_signed(&value);
}

/* Walks over the frames that wait for their calls, the innermost of which is for this object. */
static void walk_from(struct cairn_context *context, const struct object *object)
{
    struct cairn_frame frame;
    struct cairn_walk walk;
    struct cairn_error error;
    int count = 0;
    expect(cairn_frame_from_context(torture.runtime, context, true, &frame, NULL) == CAIRN_OK);
    cairn_walk_begin(&walk, &frame);
    walk.foreign = cairn_walk_native;
    enum cairn_status status;
    while ((status = cairn_walk_next(&walk, &error)) == CAIRN_OK && !walk.has_ended) {
        struct cairn_record record;
        struct cairn_function function;
        expect(cairn_frame_function(&walk.frame, &function));
        expect(cairn_frame_record(&walk.frame, &record));
        expect(cairn_record_id(record) == CALL);
        expect(count > 0 || value_at(&walk.frame, record, 0) == property(object));
        count++;
    }
    expect(status == CAIRN_OK && count > 0);
    self->walks++;
}

static void walk_own_stack(const struct object *object)
{
    struct cairn_context context;
    expect(cairn_context_save(&context) == 0);
    walk_from(&context, object);
}

static int64_t call_on(const struct object *object, int64_t depth)
{
    __builtin_unwind_init();
    if (below(4) == 0)
        walk_own_stack(object);
    if (below(16) == 0)
        update();
    if (depth > 0)
        run(depth - 1);
    if (below(16) == 0)
        walk_own_stack(object);
    return depth;
}

/* Leaves a function that was invalidated. */
static void leave(struct cairn_exit_call *call, void *user)
{
    const struct cairn_frame *frame = &call->frame;
    struct cairn_record record = call->record;
    int64_t result = value_at(frame, record, 2);
    (void)user;
    self->exits++;
    expect(frame->module != NULL);
    if (cairn_record_id(record) == ENTRY) {
        const struct object *object = (const struct object *)(uintptr_t)value_at(frame, record, 0);
        result += property(object) + value_at(frame, record, 1);
    } else {
        expect(cairn_record_id(record) == AFTER_CALL);
        result += value_at(frame, record, 0) + value_at(frame, record, 1);
    }
    const struct cairn_value value = cairn_value_of_integer(64, result);
    expect(cairn_exit_return(call, &value, 1, NULL) == CAIRN_OK);
}

/* ---- Grace periods ---- */

static bool has_passed(const struct period *period)
{
    for (int i = 0; i < THREADS; i++)
        if (atomic_load(&torture.torturers[i].quiescent) == period->counters[i])
            return false;
    return true;
}

static void start_or_end(struct period *period)
{
    if (period->token == 0) {
        period->token = cairn_runtime_grace_start(torture.runtime);
        for (int i = 0; i < THREADS; i++)
            period->counters[i] = atomic_load(&torture.torturers[i].quiescent);
    } else if (has_passed(period)) {
        self->freed += cairn_runtime_grace_end(torture.runtime, period->token);
        self->ended++;
        period->token = 0;
    }
}

static void *torment(void *argument)
{
    self = argument;
    while (!atomic_load(&torture.stop)) {
        for (uint32_t i = below(6); i > 0; i--)
            run(below(DEPTH_MAX + 1));
        if (below(4) == 0)
            update();
        atomic_fetch_add(&self->quiescent, 1);
        start_or_end(&self->periods[below(PERIODS)]);
    }
    return NULL;
}

/* ---- All of it ---- */

static uint64_t seed(void)
{
    const char *given = getenv("CAIRN_TEST_SEED");
    uint64_t state =
        given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;
    printf("CAIRN_TEST_SEED=%llu\n", (unsigned long long)state);
    fflush(stdout);
    return state;
}

static unsigned seconds(void)
{
    const char *given = getenv("CAIRN_TORTURE_SECONDS");
    return given == NULL ? 2 : (unsigned)strtoul(given, NULL, 10);
}

static void sleep_for(unsigned count)
{
    struct timespec left = {.tv_sec = count};
    while (nanosleep(&left, &left) != 0)
        continue;
}

static void prepare(enum cairn_code_mode mode)
{
    const struct cairn_runtime_options options = {.allocator = support_poisoning(),
                                                  .code_mode = mode};
    uint64_t state = seed();
    ck_assert_ok(cairn_runtime_create(&options, &torture.runtime, NULL));
    ck_assert_ok(cairn_exit_create(torture.runtime, leave, NULL, &torture.exit, NULL));
    for (int i = 0; i < VARIANTS; i++)
        compile(&torture.variants[i], i);
    for (uint32_t i = 0; i < SHAPES; i++) {
        torture.objects[i].shape = 100 + i;
        for (uint32_t j = 0; j < FIELDS; j++)
            torture.objects[i].fields[j] = 1000 * (i + 1) + 10 * j;
    }
    for (int i = 0; i < THREADS; i++) {
        torture.torturers[i].number = i;
        torture.torturers[i].state = state + (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15);
    }
    for (int i = 0; i < PLACES; i++) {
        struct torturer *owner = &torture.torturers[i % THREADS];
        owner->modules[i] = load(&torture.variants[i % VARIANTS]);
        torture.functions[i] = (uintptr_t)cairn_module_find_symbol(owner->modules[i], "f");
    }
}

START_TEST(a_runtime_survives_all_of_it)
{
    struct torturer sum = {0};
    prepare(site_modes[_i]);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&torture.torturers[i].thread, NULL, torment, &torture.torturers[i]), 0);
    sleep_for(seconds());
    atomic_store(&torture.stop, true);
    for (int i = 0; i < THREADS; i++) {
        const struct torturer *torturer = &torture.torturers[i];
        pthread_join(torturer->thread, NULL);
        sum.runs += torturer->runs;
        sum.misses += torturer->misses;
        sum.walks += torturer->walks;
        sum.exits += torturer->exits;
        sum.updates += torturer->updates;
        sum.ended += torturer->ended;
        sum.freed += torturer->freed;
    }
    printf("%llu runs, %llu misses, %llu walks, %llu exits, %llu modules retired, %llu freed in "
           "%llu grace periods\n",
           (unsigned long long)sum.runs, (unsigned long long)sum.misses,
           (unsigned long long)sum.walks, (unsigned long long)sum.exits,
           (unsigned long long)sum.updates, (unsigned long long)sum.freed,
           (unsigned long long)sum.ended);
    ck_assert_uint_gt(sum.misses, 0);
    ck_assert_uint_gt(sum.walks, 0);
    ck_assert_uint_gt(sum.exits, 0);
    ck_assert_uint_gt(sum.freed, 0);
    ck_assert_uint_eq(sum.freed + cairn_runtime_quiesce(torture.runtime), sum.updates);
    cairn_exit_destroy(torture.exit);
    cairn_runtime_destroy(torture.runtime);
    for (int i = 0; i < VARIANTS; i++)
        dispose(&torture.variants[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture");
    TCase *tests = tcase_create("torture");
    tcase_set_timeout(tests, seconds() + 60);
    tcase_add_loop_test(tests, a_runtime_survives_all_of_it, site_first_mode(), SITE_MODES);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
