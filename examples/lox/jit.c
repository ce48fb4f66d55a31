/*
 * The policy of compiling: what is compiled when, how compiled code is entered, how it is left, and
 * what happens after that.
 *
 * Code is compiled in another thread (emit_queue.c). Meanwhile the function is interpreted. The
 * program's thread installs the code when the function is called, or its loop repeated. The modes
 * that tests use wait for it.
 *
 * Code that a guard has left is not entered again, but retired: the function is interpreted until
 * it is hot again, with what it has seen since, and then compiled anew. Retired code is freed when
 * the stack has no frame of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "jit.h"

#include "emit.h"
#include "stored.h"

#include <cairn/cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SEARCHES = 4,          /* for stored code, before a function is hot */
    SPECULATIONS_MAX = 24, /* that fail; after them, code is general */
};

static struct {
    struct vm *vm;
    enum jit_mode mode;
    bool has_cache;
    const char *cache_path; /* NULL: the user's own */
    cairn_runtime *runtime;
    const struct emitter_functions *emitter; /* NULL while it is not open */
    cairn_perf *perf;                        /* or NULL */
    cairn_debugger *debugger;                /* or NULL */
    bool has_retired;
    cairn_exit *exit;
    cairn_signature *resume_signature;
    cairn_assumption **assumptions; /* by number of the global variable; NULL: not needed yet */
    uint64_t next_id;
    uint32_t compiled_count;
    uint32_t loaded_count;
    uint32_t left_count;
} jit;

/* The function or loop that the queue compiles, one at a time: when it is installed, what is hot
 * then matters more than what was hot meanwhile. */
static struct {
    bool is_running; /* until it is installed */
    struct function *function;
    uint32_t start; /* of its new entry */
    uint32_t version;
    char name[64];
} job;

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- Into the interpreter ---- */

static bool has_space(const struct frame *frame)
{
    const struct vm *vm = jit.vm;
    return frame < vm->frames + FRAMES_MAX &&
           frame->function->stack_size <= (size_t)(vm->stack + STACK_SLOTS - frame->base);
}

/* Interprets the newest frames up to the return of the oldest of them. */
static lox_value resume(struct frame *first)
{
    if (!has_space(first)) {
        jit.vm->frame = first - 1;
        runtime_error(jit.vm, "Stack overflow.");
        return UNDEFINED;
    }
    return run(jit.vm, first) ? jit.vm->top[-1] : UNDEFINED;
}

/* The code of functions that are not compiled. */
static lox_value interpret_call(struct closure *closure, lox_value *base, struct frame *frame,
                                lox_value slot_0, lox_value slot_1, lox_value slot_2)
{
    struct function *function = function_of(closure);
    const lox_value slots[REGISTER_SLOTS] = {slot_0, slot_1, slot_2};
    for (uint32_t i = 0; i <= function->arity && i < REGISTER_SLOTS; i++)
        base[i] = slots[i];
    *frame = (struct frame){closure, function, function->code, base};
    jit.vm->frame = frame;
    jit.vm->top = base + function->arity + 1;
    if (has_space(frame) && ++function->invocation_count >= function->hot_invocations) {
        if (!jit_enter(jit.vm))
            return UNDEFINED;
        if (jit.vm->frame < frame)
            return jit.vm->top[-1];
    }
    return resume(frame);
}

/* ---- Compiling ---- */

/* Before a function is hot, stored code is searched for: after 1, 4, 16 and 64 calls or loops,
 * because what it refers to may not be defined yet. */
static void set_limits(struct function *function)
{
    uint32_t left = function->compiled->searches_left;
    uint64_t search = left > 0 ? 1u << 2 * (SEARCHES - left) : UINT64_MAX;
    uint64_t invocations =
        jit.mode == JIT_ON ? (search < HOT_INVOCATIONS ? search : HOT_INVOCATIONS) : 1;
    uint64_t loops = jit.mode == JIT_ON ? (search < HOT_LOOPS ? search : HOT_LOOPS) : 1;
    bool has_calls = jit.mode == JIT_ON || jit.mode == JIT_ALWAYS;
    function->hot_invocations = has_calls ? function->invocation_count + invocations : UINT64_MAX;
    function->hot_loops = jit.mode != JIT_OFF ? function->loop_count + loops : UINT64_MAX;
}

static void add_function(struct function *function)
{
    function->compiled = heap_zeroed(sizeof *function->compiled);
    function->compiled->code = interpret_call;
    function->compiled->searches_left = stored_is_open() ? SEARCHES : 0;
    set_limits(function);
}

static cairn_assumption *assumption_of(uint32_t global)
{
    struct cairn_error error;
    if (jit.assumptions[global] == NULL)
        check(cairn_assumption_create(jit.runtime, &jit.assumptions[global], &error), &error);
    return jit.assumptions[global];
}

/* ---- What code refers to ---- */

/* Returns the options of a site's inline cache. */
static const struct cairn_ic_options *cache_of(const struct function *function, uint32_t number)
{
    struct compiled *compiled = function->compiled;
    if (compiled->caches == NULL)
        compiled->caches = heap_zeroed(function->site_count * sizeof *compiled->caches);
    compiled->caches[number] = (struct cairn_ic_options){
        .handler = missed,
        .user = &function->sites[number],
        .megamorphic_target = (const void *)(uintptr_t)find_cacheable,
        .case_limit = CAIRN_IC_CASE_LIMIT_MAX,
    };
    return &compiled->caches[number];
}

/* Returns the address of a thing; for a value, its bits. */
static const void *address_of(const struct thing *thing)
{
    struct vm *vm = jit.vm;
    switch (thing->kind) {
    case THING_NEXT:
        return &vm->heap.next;
    case THING_END:
        return &vm->heap.end;
    case THING_FRAMES:
        return vm->frames;
    case THING_STACK:
        return vm->stack;
    case THING_OPERATION:
        return (const void *)(uintptr_t)rt_operation;
    case THING_REMEMBER:
        return (const void *)(uintptr_t)rt_remember;
    case THING_EXIT:
        return cairn_exit_target(jit.exit);
    case THING_CELL:
        return &vm->globals.values[thing->number];
    case THING_ASSUMPTION:
        return assumption_of(thing->number);
    case THING_FUNCTION:
        return vm->functions[thing->number];
    case THING_COMPILED:
        return vm->functions[thing->number]->compiled;
    case THING_SITE:
        return &vm->functions[thing->number]->sites[thing->site];
    case THING_CACHE:
        return cache_of(vm->functions[thing->number], thing->site);
    case THING_OBJECT:
        return thing->object;
    case THING_VALUE:
        return (const void *)(uintptr_t)object_value(thing->object);
    }
    return NULL;
}

/* A broken assumption is never relied on again, because the variable counts as assigned. */
static void redefined(uint32_t global)
{
    struct cairn_error error;
    if (jit.assumptions[global] != NULL)
        check(cairn_assumption_break(jit.assumptions[global], CAIRN_SYNC, &error), &error);
}

static void refuse(struct function *function, struct entry *entry)
{
    entry->is_refused = true;
    if (entry->start == AT_CALL)
        function->hot_invocations = UINT64_MAX;
    else
        function->hot_loops = function->loop_count + HOT_LOOPS; /* others may be hot then */
}

/* Begins to compile. Returns false if the code is too large. */
static bool begin_job(struct function *function, uint32_t start)
{
    const struct compiled *compiled = function->compiled;
    bool is_general = compiled->left_count >= SPECULATIONS_MAX;
    const struct emit_input input = {
        .vm = jit.vm,
        .function = function,
        .start = start,
        .depth =
            start == AT_CALL ? function->arity + 1 : (uint32_t)(jit.vm->top - jit.vm->frame->base),
        .name = job.name,
        .version = jit.compiled_count + 1,
        .avoids_loop_types = compiled->avoids_loop_types || is_general,
        .is_general = is_general,
        .is_part = compiled->is_large,
        .has_names = stored_is_open(),
        .exit = jit.exit,
        .next_id = &jit.next_id,
        .address = address_of,
    };
    snprintf(job.name, sizeof job.name, "%.48s#%u",
             function->name == NULL ? "script" : function->name->bytes, jit.compiled_count);
    bool has_begun = jit.emitter->begin(&input);
    jit.compiled_count += has_begun;
    return has_begun;
}

/* Begins to compile an entry of a function, or never compiles it. What is too large is compiled in
 * parts. */
static void compile_entry(struct function *function, struct entry *entry)
{
    struct compiled *compiled = function->compiled;
    heap_collect(&jit.vm->heap, false); /* old objects can be constants */
    job.is_running = begin_job(function, entry->start);
    if (!job.is_running && !compiled->is_large) {
        compiled->is_large = true;
        job.is_running = begin_job(function, entry->start);
    }
    job.function = function;
    job.start = entry->start;
    job.version = jit.compiled_count;
    if (!job.is_running)
        refuse(function, entry);
}

/* Returns the entry of a function, as the first of its entries. */
static struct entry *entry_at(struct function *function, uint32_t start)
{
    struct compiled *compiled = function->compiled;
    uint32_t i = 0;
    while (i < compiled->entry_count && compiled->entries[i].start != start)
        i++;
    if (i == compiled->entry_count) {
        bool is_hot = jit.mode != JIT_ON || start == AT_CALL || i == 0;
        compiled->entries = array_grow(compiled->entries, i, sizeof *compiled->entries);
        compiled->entries[i] = (struct entry){.start = start, .countdown = is_hot ? 0 : HOT_LOOPS};
        compiled->entry_count++;
    }
    struct entry found = compiled->entries[i];
    compiled->entries[i] = compiled->entries[0];
    compiled->entries[0] = found;
    return &compiled->entries[0];
}

/* ---- Installing and freeing ---- */

static void retire(compiled_code *code)
{
    cairn_function_retire(jit.runtime, (const void *)(uintptr_t)code);
    jit.has_retired = true;
}

/* Frees the retired code that has no frame on the stack, and with the last of it what else waits
 * for a grace period: the interpreter is outside of all handlers of exits and caches. */
static void free_retired(void)
{
    struct cairn_runtime_statistics statistics;
    struct cairn_context context;
    struct cairn_frame frame;
    struct cairn_walk walk;
    if (!jit.has_retired || cairn_context_save(&context) != 0 ||
        cairn_frame_from_context(jit.runtime, &context, true, &frame, NULL) != CAIRN_OK)
        return;
    cairn_walk_begin(&walk, &frame);
    walk.foreign = cairn_walk_native;
    if (cairn_runtime_free_unused(jit.runtime, &walk, 1, NULL, NULL) != CAIRN_OK)
        return;
    cairn_runtime_statistics(jit.runtime, &statistics);
    jit.has_retired = statistics.retired_count > 0;
    if (!jit.has_retired)
        cairn_runtime_quiesce(jit.runtime);
}

/* What is in line now is probably not called any more. */
static void cool_inlined(uint32_t version)
{
    for (uint32_t i = 0; i < jit.vm->function_count; i++) {
        struct function *f = jit.vm->functions[i];
        if (f->compiled->inlined_into == version && f->hot_invocations > 0)
            set_limits(f);
    }
}

static void install(struct function *function, uint32_t start, const void *address)
{
    compiled_code *code = (compiled_code *)(uintptr_t)address;
    entry_at(function, start)->code = code;
    if (start == AT_CALL) {
        function->compiled->code = code;
        function->hot_invocations = 0;
    } else {
        function->hot_loops = 0;
    }
}

/* Installs what was compiled, and stores it. Code that has a large native frame is compiled again,
 * in parts. */
static void install_output(const struct emit_output *output)
{
    struct compiled *compiled = job.function->compiled;
    const struct stored_code stored = {job.name, output->object, output->object_size};
    if (output->code == NULL && compiled->is_large)
        refuse(job.function, entry_at(job.function, job.start));
    compiled->is_large |= output->code == NULL;
    if (output->code == NULL)
        return;
    install(job.function, job.start, output->code);
    cool_inlined(job.version);
    if (output->object != NULL)
        stored_add((struct stored_key){job.function->number, job.start}, &stored);
}

/* The modes that tests use wait for the emitter. */
static bool has_emitter(void)
{
    if (jit.emitter == NULL)
        jit.emitter = emitter_open(jit.runtime, stored_is_open());
    while (jit.mode != JIT_ON && emitter_is_opening())
        usleep(100);
    if (jit.emitter == NULL)
        jit.emitter = emitter_open(jit.runtime, stored_is_open());
    return jit.emitter != NULL;
}

/* Lets the function be interpreted for a while without a call of enter. */
static void ask_later(struct function *function)
{
    if (function->invocation_count >= function->hot_invocations)
        function->hot_invocations = function->invocation_count + HOT_LOOPS;
    if (function->loop_count >= function->hot_loops)
        function->hot_loops = function->loop_count + HOT_LOOPS;
}

/* Installs what is compiled, and begins to compile the entry if it is not. */
static void compile_hot(struct function *function, uint32_t start)
{
    struct emit_output output;
    if (!has_emitter()) {
        ask_later(function);
        return;
    }
    if (!job.is_running)
        compile_entry(function, entry_at(function, start));
    if (job.is_running && jit.mode != JIT_ON)
        jit.emitter->wait();
    if (!job.is_running || !jit.emitter->take(&output))
        return;
    job.is_running = false;
    install_output(&output);
    free_retired();
}

/* ---- Stored code ---- */

static bool find_name(const struct cairn_name *name, uint64_t *value)
{
    struct thing_name copy = {.kind = 0};
    struct thing thing;
    if (name->size > sizeof copy)
        return false;
    memcpy(&copy, name->bytes, name->size);
    if (thing_name_size(&copy) != name->size || !find_thing(jit.vm, &copy, &thing))
        return false;
    *value = (uintptr_t)address_of(&thing);
    return true;
}

static size_t find_names(void *user, const struct cairn_name *names, size_t count, uint64_t *values)
{
    size_t i = 0;
    (void)user;
    while (i < count && find_name(&names[i], &values[i]))
        i++;
    return i;
}

/* Loads code. Returns NULL if it refers to something that is not there, or not yet. */
static const void *load(const struct stored_code *stored, struct cairn_error *error)
{
    const struct cairn_load_options options = {.name = stored->name, .find_names = find_names};
    cairn_loader *loader;
    cairn_module *module;
    if (cairn_loader_create(jit.runtime, stored->name, &loader, error) != CAIRN_OK)
        return NULL;
    if (cairn_loader_add_object(loader, stored->object, stored->size, &options, error) ==
            CAIRN_OK &&
        cairn_loader_finish(loader, &module, error) == CAIRN_OK &&
        cairn_module_publish(module, error) == CAIRN_OK)
        return cairn_module_find_symbol(module, stored->name);
    cairn_loader_destroy(loader);
    return NULL;
}

/* Installs stored code, if it is there and can be used. What cannot be loaded for another reason
 * than that something is not defined is forgotten. */
static void load_stored(struct function *function, uint32_t start)
{
    const struct stored_key key = {function->number, start};
    struct cairn_error error;
    struct stored_code stored = stored_find(key);
    if (stored.object == NULL)
        return;
    heap_collect(&jit.vm->heap, false); /* code refers to old objects */
    const void *code = load(&stored, &error);
    if (code == NULL && error.status != CAIRN_ERROR_NOT_FOUND)
        stored_remove(key);
    if (code == NULL)
        return;
    jit.loaded_count++;
    install(function, start, code);
}

/* Searches for stored code of a function that is not hot yet. Returns false if it is hot. */
static bool search_stored(struct function *function, uint32_t start)
{
    if (function->compiled->searches_left == 0)
        return false;
    function->compiled->searches_left--;
    set_limits(function);
    load_stored(function, start);
    return true;
}

/* ---- Out of compiled code ---- */

/* Frames that are being rebuilt. */
struct rebuilt {
    struct frame *first;
    struct frame *frame;
    uint32_t flags; /* of any of them */
};

static bool begin_frame(const struct cairn_interpreter_frame *from, uint32_t index,
                        struct cairn_frame_slots *slots, void *user)
{
    struct rebuilt *rebuilt = user;
    (void)slots;
    (void)index;
    rebuilt->flags |= from->flags;
    return true;
}

/* The local is where the first frame is, or another frame's closure. The slots follow; those that
 * memory has already are dead. */
static bool write_slot(const struct cairn_interpreter_frame *from, uint32_t index,
                       const struct cairn_value *value, void *user)
{
    struct rebuilt *rebuilt = user;
    uint64_t bits = cairn_value_bits(value);
    if (index > 0) {
        if (value->type.kind != CAIRN_TYPE_VOID)
            rebuilt->frame->base[index - 1] = bits;
        return true;
    }
    if (rebuilt->first == NULL) {
        rebuilt->first = rebuilt->frame = (struct frame *)(uintptr_t)bits;
    } else {
        rebuilt->frame++;
        rebuilt->frame->closure = as_closure(bits);
    }
    rebuilt->frame->function = (struct function *)(uintptr_t)from->function;
    rebuilt->frame->at = rebuilt->frame->function->code + from->position;
    rebuilt->frame->base = rebuilt->first->base + (from->flags & FRAME_OFFSET);
    jit.vm->frame = rebuilt->frame;
    jit.vm->top = rebuilt->frame->base + from->stack_count;
    return true;
}

static void discard(struct function *function, uint32_t flags)
{
    struct compiled *compiled = function->compiled;
    compiled->avoids_loop_types |= (flags & FRAME_IS_LOOP_TYPE) != 0;
    compiled->left_count++;
    for (uint32_t i = 0; i < compiled->entry_count; i++) {
        if (compiled->entries[i].code == NULL)
            continue;
        retire(compiled->entries[i].code);
        stored_remove((struct stored_key){function->number, compiled->entries[i].start});
    }
    compiled->code = interpret_call;
    compiled->entry_count = 0;
    compiled->searches_left = 0;
    set_limits(function);
}

/* The handler of the exit: the interpreter replaces the frame of the compiled function. */
static void leave_compiled(struct cairn_exit_call *call, void *user)
{
    struct cairn_error error;
    struct cairn_frame_state state;
    struct rebuilt rebuilt = {.first = NULL};
    const struct cairn_frame_writer writer = {begin_frame, write_slot, &rebuilt, NIL};
    (void)user;
    check(cairn_frame_state_read(&call->frame, call->record, 0, &state, &error), &error);
    check(cairn_frame_state_write(&state, &writer, &error), &error);
    call->reason = rebuilt.flags & FRAME_IS_BLAMELESS   ? "rare case"
                   : rebuilt.flags & FRAME_IS_LOOP_TYPE ? "a loop's variable is no number"
                                                        : "another type than before";
    /* Further frames of retired code may leave, too; what was compiled since remains. */
    bool is_retired = cairn_runtime_find_module(jit.runtime, call->frame.pc) == NULL;
    if (!(rebuilt.flags & FRAME_IS_BLAMELESS) && !is_retired) {
        jit.left_count++;
        discard(rebuilt.first->function, rebuilt.flags);
    }
    struct cairn_value first = cairn_value_of_pointer(rebuilt.first);
    check(cairn_exit_enter(call, jit.resume_signature, (const void *)(uintptr_t)resume, &first, 1,
                           &error),
          &error);
}

/* ---- The runtime, and what observes it ---- */

/* Names the key of an inline cache for reports: it is a shape. */
static void describe_key(uint64_t key, char *text, size_t size, void *user)
{
    const struct shape *shape = (const struct shape *)(uintptr_t)key;
    (void)user;
    snprintf(text, size, "%s of %u fields", shape->class->name->bytes, shape->field_count);
}

/* Finds the line of an exit for reports. */
static void describe_position(uint64_t number, uint64_t position, char *text, size_t size,
                              void *user)
{
    const struct function *function = (const struct function *)(uintptr_t)number;
    (void)user;
    snprintf(text, size, "line %u of %s", (unsigned)function->lines[position],
             function->name == NULL ? "script" : function->name->bytes);
}

static void open_log(const char *path)
{
    const struct cairn_log_options options = {.describe_key = describe_key,
                                              .describe_position = describe_position};
    struct cairn_error error;
    cairn_log *log = NULL;
    check(cairn_log_create(path, &options, &log, &error), &error);
    check(cairn_log_attach(log, jit.runtime, &error), &error);
    cairn_log_destroy(log);
}

/* Opens what observes compiled code, before there is any. */
static void open_observers(const struct jit_options *options)
{
    const struct cairn_perf_options perf = {.format = CAIRN_PERF_BOTH};
    struct cairn_error error;
    if (options->names_code)
        check(cairn_perf_open(jit.runtime, &perf, &jit.perf, &error), &error);
    if (options->has_debugger)
        check(cairn_debugger_attach(jit.runtime, &jit.debugger, &error), &error);
    if (options->log_path != NULL)
        open_log(options->log_path);
}

/* Breakpoints of debuggers are writes into the code, which a dual mapping refuses. All functions
 * have landing pads, because the emitter prepares them. */
static void create_runtime(const struct jit_options *options)
{
    const struct cairn_runtime_options chosen = {
        .code_mode = options->has_debugger ? CAIRN_CODE_MODE_SINGLE : CAIRN_CODE_MODE_AUTOMATIC,
        .has_landing_pads = true,
    };
    struct cairn_error error;
    check(cairn_runtime_create(&chosen, &jit.runtime, &error), &error);
}

/* ---- Into compiled code ---- */

/* Runs the newest frame. Its result replaces its slots. */
static bool run_compiled(struct vm *vm, compiled_code *code)
{
    struct frame *frame = vm->frame;
    const lox_value *base = frame->base;
    lox_value result = code(frame->closure, frame->base, frame, base[0], base[1], base[2]);
    if (result == UNDEFINED)
        return false;
    vm->frame = frame - 1;
    vm->top = frame->base;
    *vm->top++ = result;
    return true;
}

/* Runs the newest frame from `at` on if there is code for that, at the latest now. */
static bool enter(struct vm *vm, uint32_t at)
{
    struct function *function = vm->frame->function;
    struct entry *entry = entry_at(function, at);
    if (entry->code == NULL && search_stored(function, at))
        ; /* it may have code now */
    else if (entry->code == NULL && entry->countdown > 0)
        entry->countdown--;
    else if (entry->code == NULL && !entry->is_refused)
        compile_hot(function, at);
    compiled_code *code = entry_at(function, at)->code;
    return code == NULL || run_compiled(vm, code);
}

static bool enter_call(struct vm *vm) { return enter(vm, AT_CALL); }

static bool enter_loop(struct vm *vm)
{
    return enter(vm, (uint32_t)(vm->frame->at - vm->frame->function->code));
}

/* ---- The beginning and the end ---- */

static void init(struct vm *vm, const struct jit_options *options)
{
    struct cairn_error error;
    const struct cairn_type result = CAIRN_INTEGER(64);
    const struct cairn_type argument = CAIRN_POINTER;
    jit.vm = vm;
    jit.mode = options->mode;
    jit.has_cache = options->has_cache;
    jit.cache_path = options->cache_path;
    compiled_vm = vm;
    create_runtime(options);
    open_observers(options);
    check(cairn_exit_create(jit.runtime, leave_compiled, NULL, &jit.exit, &error), &error);
    check(cairn_signature_create(NULL, &result, 1, &argument, 1, &jit.resume_signature, &error),
          &error);
    jit.next_id = 1;
    jit.assumptions = heap_map(GLOBALS_MAX * sizeof(cairn_assumption *));
}

static void begin_program(const char *source, size_t size)
{
    if (jit.has_cache)
        stored_open(jit.cache_path, source, size);
}

static void destroy(void)
{
    emitter_close();
    stored_close();
    for (uint32_t i = 0; i < jit.vm->globals.count; i++)
        cairn_assumption_destroy(jit.assumptions[i]);
    cairn_exit_destroy(jit.exit);
    cairn_signature_destroy(jit.resume_signature);
    cairn_debugger_destroy(jit.debugger);
    cairn_perf_destroy(jit.perf, NULL);
    cairn_runtime_destroy(jit.runtime);
}

static void print_statistics(void)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(jit.runtime, &statistics);
    fprintf(
        stderr,
        "compiled: %u versions, loaded: %u, of which are in memory: %u; guards that failed: %u\n",
        jit.compiled_count, jit.loaded_count, statistics.module_count + statistics.retired_count,
        jit.left_count);
}

const struct jit_functions lox_jit = {
    .init = init,
    .begin_program = begin_program,
    .destroy = destroy,
    .print_statistics = print_statistics,
    .add_function = add_function,
    .enter = enter_call,
    .loop = enter_loop,
    .redefined = redefined,
};
