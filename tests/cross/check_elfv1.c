/*
 * PPC64 big-endian (ELFv1): sites of functions that LLVM made (tests/cross/elfv1.ll) are armed,
 * patched, called through function descriptors, and retargeted from another thread. Each call
 * reads a canary through the callee's TOC and then one through the caller's.
 *
 * The functions are linked into this program, and copied: all that they refer to, they find
 * through r2. The stack map names them by their descriptors, as pointers to functions do; those
 * are copied as well, and the stack map is relocated to the copies.
 *
 * A plain program, because Debian has no libraries for this architecture. Prints TAP.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../runtime_support.h"
#include "base/adapter.h"

#include <cairn/cairn.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    CALLS = 1,
    CALLS_AT_SMALLEST_SIZE,
    CALLS_NOTHING,
    HAS_SHADOW,
    IDS = 4,
    CALLEES = 3,
    CALLER_CANARY = 7,
    HOME_CANARY = 5000,
    RETARGETS = 5000,
    RUNNERS = 2
};

/* What a pointer to a function points to. */
struct descriptor {
    uint64_t entry;
    uint64_t toc;
    uint64_t environment;
};

/* From the linker. */
extern const uint8_t __start_cairn_code[];
extern const uint8_t __stop_cairn_code[];
extern const uint8_t __start_llvm_stackmaps[];
extern const uint8_t __stop_llvm_stackmaps[];

extern long calls(long);
extern long calls_at_smallest_size(long);
extern long calls_nothing(long);
extern long has_shadow(long);
typedef long function(long);
static function *const originals[] = {calls, calls_at_smallest_size, calls_nothing, has_shadow};
static const uint32_t byte_counts[] = {48, SMALLEST_CALL_BYTES, 16, 4};
static const enum cairn_record_kind kinds[] = {CAIRN_RECORD_PATCHPOINT, CAIRN_RECORD_PATCHPOINT,
                                               CAIRN_RECORD_PATCHPOINT, CAIRN_RECORD_STACKMAP};

long caller_canary = CALLER_CANARY;

/* The target that is an immediate in the code: the linker is told its address. */
struct descriptor fixed_target __attribute__((section(".cairn_target"))) = {0};

/* A function of the program, whose TOC is the callers' own. */
static long home_canary = HOME_CANARY;
static long at_home(long x)
{
    (void)x;
    return *(volatile long *)&home_canary;
}

/* ---- Checks ---- */

static int checks;
static int failures;

static void check(bool condition, const char *what)
{
    checks++;
    failures += !condition;
    printf("%sok %d - %s\n", condition ? "" : "not ", checks, what);
}

static void check_ok(enum cairn_status status, const struct cairn_error *error, const char *what)
{
    check(status == CAIRN_OK, what);
    if (status != CAIRN_OK)
        printf("# %s: %s\n", cairn_status_name(status), error->message);
}

/* ---- Callees with other TOCs ---- */

/* ld r3, 0(r2); blr: one code, and descriptors with TOCs that are a canary each. */
__asm__(".pushsection .text\n"
        ".balign 4\n"
        "read_toc:\n"
        "    ld 3, 0(2)\n"
        "    blr\n"
        ".popsection\n");
extern const uint8_t read_toc[] __attribute__((visibility("hidden")));

static const uint64_t canaries[CALLEES] = {1000, 2000, 3000};
static struct descriptor callees[CALLEES];

static void make_callees(void)
{
    for (int i = 0; i < CALLEES; i++)
        callees[i] = (struct descriptor){(uintptr_t)read_toc, (uintptr_t)&canaries[i], 0};
    fixed_target = callees[0];
}

/* ---- Loading ---- */

static struct program {
    cairn_runtime *runtime;
    cairn_module *module;
    cairn_site *sites[IDS];
    struct descriptor *functions; /* IDS of them, in the module's data */
} program;

static const struct descriptor *descriptor_of(function *pointer)
{
    return (const struct descriptor *)(uintptr_t)pointer;
}

static uint64_t moved(uint64_t entry, const uint8_t *copy)
{
    return entry - (uintptr_t)__start_cairn_code + (uintptr_t)copy;
}

/* The copy of a function's descriptor; NULL: it is not a descriptor's. */
static const struct descriptor *find_copy(uint64_t address)
{
    for (int i = 0; i < IDS; i++)
        if (address == (uintptr_t)originals[i])
            return &program.functions[i];
    return NULL;
}

/* Makes the stack map name the copies of the descriptors. */
static void relocate_stackmap(uint8_t *section)
{
    enum { HEADER_BYTES = 16, FUNCTION_BYTES = 24 };
    uint32_t count;
    memcpy(&count, section + 4, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *place = section + HEADER_BYTES + (size_t)i * FUNCTION_BYTES;
        uint64_t address;
        memcpy(&address, place, sizeof address);
        address = (uintptr_t)find_copy(address);
        memcpy(place, &address, sizeof address);
    }
}

static enum cairn_status declare(cairn_loader *loader, struct cairn_error *error)
{
    cairn_declarations *declarations;
    enum cairn_status status = cairn_declarations_create(NULL, &declarations, error);
    if (status != CAIRN_OK)
        return status;
    for (uint32_t i = 0; status == CAIRN_OK && i < IDS; i++) {
        const struct cairn_declaration declaration = {
            .id = i + 1, .kind = kinds[i], .byte_count = byte_counts[i], .function = "f"};
        status = cairn_declarations_add(declarations, &declaration, error);
    }
    if (status == CAIRN_OK)
        status = cairn_loader_declare(loader, declarations, error);
    cairn_declarations_destroy(declarations);
    return status;
}

static enum cairn_status fill(cairn_loader *loader, struct cairn_error *error)
{
    size_t code_bytes = (size_t)(__stop_cairn_code - __start_cairn_code);
    size_t section_bytes = (size_t)(__stop_llvm_stackmaps - __start_llvm_stackmaps);
    uint8_t *code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, code_bytes, 64, NULL, error);
    uint8_t *section =
        cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, section_bytes, 8, NULL, error);
    if (code == NULL || section == NULL)
        return error->status;
    program.functions = cairn_loader_allocate(
        loader, CAIRN_SECTION_DATA, IDS * sizeof *program.functions, sizeof(uint64_t), NULL, error);
    if (program.functions == NULL)
        return error->status;
    memcpy(code, __start_cairn_code, code_bytes);
    memcpy(section, __start_llvm_stackmaps, section_bytes);
    relocate_stackmap(section);
    for (int i = 0; i < IDS; i++) {
        program.functions[i] = *descriptor_of(originals[i]);
        program.functions[i].entry = moved(program.functions[i].entry, code);
    }
    return declare(loader, error);
}

static bool load(void)
{
    struct cairn_error error = {0};
    cairn_loader *loader = NULL;
    enum cairn_status status = cairn_runtime_create(NULL, &program.runtime, &error);
    if (status == CAIRN_OK)
        status = cairn_loader_create(program.runtime, "elfv1", &loader, &error);
    if (status == CAIRN_OK)
        status = fill(loader, &error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, &program.module, &error);
    if (status == CAIRN_OK)
        status = cairn_module_publish(program.module, &error);
    for (uint32_t i = 0; status == CAIRN_OK && i < IDS; i++)
        program.sites[i] = cairn_runtime_find_site(program.runtime, i + 1, &error);
    check_ok(status, &error, "the copies are loaded and published");
    return status == CAIRN_OK;
}

static long run(int id, long x)
{
    function *pointer = (function *)(uintptr_t)&program.functions[id - 1];
    return pointer(x);
}

static cairn_site *site(int id) { return program.sites[id - 1]; }

static struct cairn_site_description describe(int id)
{
    struct cairn_site_description description;
    cairn_site_describe(site(id), &description);
    return description;
}

/* ---- One thread ---- */

static void check_result(int id, long expected, const char *what)
{
    long result = run(id, 40);
    check(result == expected, what);
    if (result != expected)
        printf("# ID %d: %ld, not %ld\n", id, result, expected);
}

static void check_patching(int id, long at_first)
{
    struct cairn_error error = {0};
    check(describe(id).live, "the site is live");
    printf("# ID %d: %u bytes; %s\n", id, describe(id).byte_count, describe(id).reason);
    check_result(id, at_first, "as LLVM made it");
    for (int i = 0; i < CALLEES; i++) {
        enum cairn_strength strength = i % 2 == 0 ? CAIRN_SYNC : CAIRN_RELAXED;
        check_ok(cairn_site_call(site(id), &callees[i], strength, &error), &error,
                 "a callee with another TOC");
        check_result(id, (long)canaries[i] + CALLER_CANARY, "each reads its own canary");
        check(describe(id).target == (uintptr_t)&callees[i], "the target is the descriptor");
    }
    const void *home = (const void *)(uintptr_t)at_home;
    check_ok(cairn_site_call(site(id), home, CAIRN_SYNC, &error), &error, "a callee of C");
    check_result(id, HOME_CANARY + CALLER_CANARY, "it reads its own canary");
    check_ok(cairn_site_nop(site(id), CAIRN_SYNC, &error), &error, "a no-op");
    check_result(id, 40 + CALLER_CANARY, "nothing is called");
    check_ok(cairn_site_restore(site(id), CAIRN_SYNC, &error), &error, "back");
    check_result(id, at_first, "as LLVM made it");
}

static void check_shadow(void)
{
    struct cairn_error error = {0};
    check_result(HAS_SHADOW, 45 + CALLER_CANARY, "a shadow's instruction");
    check(cairn_site_nop(site(HAS_SHADOW), CAIRN_SYNC, &error) == CAIRN_ERROR_UNMANAGED,
          "an instruction that must not change while it is executed");
    check_ok(cairn_site_call(site(HAS_SHADOW), &callees[1], CAIRN_QUIESCENT, &error), &error,
             "a call in place of a shadow's instruction");
    check_result(HAS_SHADOW, 2000 + CALLER_CANARY, "each reads its own canary");
    check(describe(HAS_SHADOW).target == (uintptr_t)&callees[1], "the target is the descriptor");
    check_ok(cairn_site_nop(site(HAS_SHADOW), CAIRN_QUIESCENT, &error), &error, "a no-op");
    check_result(HAS_SHADOW, 40 + CALLER_CANARY, "the instruction is gone");
    check_ok(cairn_site_restore(site(HAS_SHADOW), CAIRN_QUIESCENT, &error), &error, "back");
    check_result(HAS_SHADOW, 45 + CALLER_CANARY, "as LLVM made it");
}

/* An exit has no TOC of its own: what its handler sees is the site's. */
static struct {
    uint64_t id;
    uint64_t toc;
    int calls;
} at_exit;

static void note_exit(struct cairn_exit_call *call, void *user)
{
    (void)user;
    at_exit.calls++;
    at_exit.id = call->record.table == NULL ? 0 : cairn_record_id(call->record);
    if (cairn_frame_read(&call->frame, 2, &at_exit.toc, sizeof at_exit.toc, NULL) != CAIRN_OK)
        at_exit.toc = 0;
}

static void check_exit(const cairn_exit *to_handler, int id)
{
    struct cairn_error error = {0};
    enum cairn_strength strength = describe(id).live ? CAIRN_SYNC : CAIRN_QUIESCENT;
    at_exit.calls = 0;
    check_ok(cairn_site_call(site(id), cairn_exit_target(to_handler), strength, &error), &error,
             "an exit");
    check_result(id, 40 + CALLER_CANARY, "the code goes on");
    check(at_exit.calls == 1, "the handler is called once");
    check(at_exit.id == (uint64_t)id, "it finds the site's record");
    check(at_exit.toc == descriptor_of(originals[id - 1])->toc, "it finds the site's TOC");
    check_ok(cairn_site_restore(site(id), strength, &error), &error, "back");
}

static void check_exits(void)
{
    struct cairn_error error = {0};
    cairn_exit *to_handler = NULL;
    check_ok(cairn_exit_create(program.runtime, note_exit, NULL, &to_handler, &error), &error,
             "an exit is made");
    check_exit(to_handler, CALLS);
    check_exit(to_handler, CALLS_NOTHING);
    check_exit(to_handler, HAS_SHADOW);
    const void *freed = cairn_exit_target(to_handler);
    cairn_exit_destroy(to_handler);
    cairn_runtime_quiesce(program.runtime);
    check_ok(cairn_exit_create(program.runtime, note_exit, NULL, &to_handler, &error), &error,
             "another exit is made");
    check(cairn_exit_target(to_handler) == freed, "it has the memory of the destroyed one");
    cairn_exit_destroy(to_handler);
}

static void check_list_of_changes(void)
{
    struct cairn_error error = {0};
    struct cairn_site_change changes[CALLS_NOTHING + 1];
    size_t count = 0;
    for (int id = CALLS; id <= CALLS_NOTHING; id++)
        changes[count++] = (struct cairn_site_change){site(id), CAIRN_SITE_CALL, &callees[2]};
    check_ok(cairn_sites_change(changes, count, CAIRN_SYNC, &error), &error, "three changes");
    for (int id = CALLS; id <= CALLS_NOTHING; id++)
        check_result(id, 3000 + CALLER_CANARY, "the target of three changes");
}

/* ---- Several threads ---- */

static struct {
    atomic_bool stop;
    atomic_ulong runs;
    atomic_ulong wrong;
} race;

static void *run_on(void *argument)
{
    while (!atomic_load(&race.stop)) {
        long part = run(CALLS, 0) - CALLER_CANARY;
        if (part != 0 && part != 1000 && part != 2000 && part != 3000 && part != HOME_CANARY)
            atomic_fetch_add(&race.wrong, 1);
        atomic_fetch_add(&race.runs, 1);
    }
    return argument;
}

static enum cairn_status retarget(int step)
{
    enum cairn_strength strength = step % 16 == 0 ? CAIRN_SYNC : CAIRN_RELAXED;
    int choice = step * 7 % (CALLEES + 2);
    if (choice == CALLEES)
        return cairn_site_nop(site(CALLS), strength, NULL);
    if (choice > CALLEES)
        return cairn_site_call(site(CALLS), (const void *)(uintptr_t)at_home, strength, NULL);
    return cairn_site_call(site(CALLS), &callees[choice], strength, NULL);
}

static void check_race(void)
{
    pthread_t threads[RUNNERS];
    enum cairn_status status = CAIRN_OK;
    for (int i = 0; i < RUNNERS; i++)
        pthread_create(&threads[i], NULL, run_on, NULL);
    while (atomic_load(&race.runs) == 0)
        ;
    for (int step = 0; status == CAIRN_OK && step < RETARGETS; step++)
        status = retarget(step);
    atomic_store(&race.stop, true);
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    printf("# %lu runs\n", atomic_load(&race.runs));
    check(status == CAIRN_OK, "5000 times retargeted");
    check(atomic_load(&race.wrong) == 0, "entry and TOC never mix, and the caller's comes back");
}

/* ---- Calls by signature, and entering a function in a frame's place ---- */

enum { ARGUMENTS = 15 };

/* Integers and floating-point numbers, in registers and in places on the stack. */
static double weigh(long a, double b, int c, float d, long e, double f, short g, long h, float i,
                    long j, double k, unsigned l, double m, float n, long o)
{
    return (double)a + 2 * b + 3 * c + 5 * (double)d + 7 * (double)e + 11 * f + 13 * g +
           17 * (double)h + 19 * (double)i + 23 * (double)j + 29 * k + 31 * (double)l + 37 * m +
           41 * (double)n + 43 * (double)o;
}

static const double weighed =
    1 + 4 - 9 + 20 + 35 + 66 - 91 + 136 + 171 + 230 + 319 + 372 + 481 + 574 + 645;

static struct cairn_value arguments[ARGUMENTS];
static cairn_signature *signature;

static struct cairn_value value_of_float(float number)
{
    struct cairn_value value = {.type = CAIRN_FLOAT, .size = sizeof number};
    memcpy(value.bytes, &number, sizeof number);
    return value;
}

static cairn_signature *make_signature(void)
{
    struct cairn_error error = {0};
    cairn_signature *made = NULL;
    struct cairn_type types[ARGUMENTS];
    const struct cairn_type result = CAIRN_DOUBLE;
    const char kinds_of_weigh[] = "ldifldslfldudfl";
    for (int i = 0; i < ARGUMENTS; i++) {
        char kind = kinds_of_weigh[i];
        int number = kind == 'i' || kind == 's' ? -i - 1 : i + 1;
        uint32_t bits = kind == 's' ? 16 : kind == 'l' ? 64 : 32;
        arguments[i] = kind == 'd'   ? cairn_value_of_double(number)
                       : kind == 'f' ? value_of_float((float)number)
                                     : cairn_value_of_integer(bits, number);
        types[i] = arguments[i].type;
        types[i].extends_sign = kind == 'i' || kind == 's';
    }
    enum cairn_status status =
        cairn_signature_create(NULL, &result, 1, types, ARGUMENTS, &made, &error);
    check_ok(status, &error, "a signature");
    return made;
}

static void check_call(void)
{
    struct cairn_error error = {0};
    struct cairn_value result = {.size = 0};
    check_ok(cairn_call(signature, (const void *)(uintptr_t)weigh, arguments, ARGUMENTS, &result,
                        &error),
             &error, "a call by signature");
    check(cairn_value_double(&result) == weighed, "arguments and result are C's");
}

/* ---- Entries ---- */

static void check_version(cairn_entry *entry, const void *code, long expected)
{
    struct cairn_error error = {0};
    const struct cairn_entry_version version = {.code = code};
    function *called = (function *)(uintptr_t)cairn_entry_target(entry);
    check_ok(cairn_entry_install(entry, &version, CAIRN_SYNC, &error), &error, "a version");
    check(called(40) == expected, "it is called with its own TOC");
    check_result(CALLS, expected + CALLER_CANARY, "through a site, too");
}

static void check_entry(void)
{
    struct cairn_error error = {0};
    cairn_entry *entry = NULL;
    check_ok(cairn_entry_create(program.runtime, "f", NULL, (const void *)(uintptr_t)at_home,
                                &entry, &error),
             &error, "an entry");
    if (entry == NULL)
        return;
    check_ok(cairn_site_call(site(CALLS), cairn_entry_target(entry), CAIRN_SYNC, &error), &error,
             "a site calls it");
    check_result(CALLS, HOME_CANARY + CALLER_CANARY, "the first version");
    for (int i = 0; i < CALLEES; i++)
        check_version(entry, &callees[i], (long)canaries[i]);
    check_ok(cairn_site_restore(site(CALLS_NOTHING), CAIRN_SYNC, &error), &error, "restored");
    check_version(entry, &program.functions[CALLS_NOTHING - 1], 40 + CALLER_CANARY);
    check_version(entry, (const void *)(uintptr_t)at_home, HOME_CANARY);
    check_ok(cairn_site_restore(site(CALLS), CAIRN_SYNC, &error), &error, "the site is restored");
    cairn_entry_destroy(entry);
}

static void enter_weigh(struct cairn_exit_call *call, void *user)
{
    struct cairn_error error = {0};
    (void)user;
    check_ok(cairn_exit_enter(call, signature, (const void *)(uintptr_t)weigh, arguments, ARGUMENTS,
                              &error),
             &error, "a function is entered in the frame's place");
}

/* A function that calls what its argument points to, and never gets back. */
static const uint32_t leaving[] = {
    0x7C0802A6, /* mflr r0 */
    0xF8010010, /* std r0, 16(r1) */
    0xF821FF81, /* stdu r1, -128(r1) */
    0xE8030000, /* ld r0, 0(r3) */
    0x7C0903A6, /* mtctr r0 */
    0x4E800421, /* bctrl */
    0x7FE00008, /* trap */
};

/* CFA: r1 + 128; LR: at 16 from it. Its description has the code's address, and the size. */
static const uint8_t rules[] = {
    0, 0, 0, 20, 0, 0, 0, 0,  1, 0, 1, 0x78, 65, 0x0C, 1, 0x80, 1, 0x11, 65, 0x7E, 0, 0, 0, 0, /**/
    0, 0, 0, 20, 0, 0, 0, 28, 0, 0, 0, 0,    0,  0,    0, 0,    0, 0,    0,  0,    0, 0, 0, 28,
    0, 0, 0, 0,
};

static cairn_module *load_leaving(struct descriptor *made)
{
    struct cairn_error error = {0};
    cairn_loader *loader = NULL;
    cairn_module *module = NULL;
    uint8_t *code = NULL;
    uint8_t *table = NULL;
    enum { ADDRESS_OFFSET = 32 };
    enum cairn_status status = cairn_loader_create(program.runtime, "leaving", &loader, &error);
    if (status == CAIRN_OK)
        code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, sizeof leaving, 16, NULL, &error);
    if (code != NULL)
        table = cairn_loader_allocate(loader, CAIRN_SECTION_UNWIND_TABLE, sizeof rules, 8, NULL,
                                      &error);
    if (table != NULL) {
        const uint64_t address = (uintptr_t)code;
        memcpy(code, leaving, sizeof leaving);
        memcpy(table, rules, sizeof rules);
        memcpy(table + ADDRESS_OFFSET, &address, sizeof address);
        status = cairn_loader_finish(loader, &module, &error);
    }
    if (module != NULL)
        status = cairn_module_publish(module, &error);
    check_ok(status, &error, "code that leaves its frame");
    *made = (struct descriptor){(uintptr_t)code, (uintptr_t)&canaries[0], 0};
    return module;
}

static void check_enter(void)
{
    struct cairn_error error = {0};
    struct descriptor leave;
    double (*leave_function)(const void *exit);
    cairn_exit *exit = NULL;
    cairn_module *module = load_leaving(&leave);
    const struct descriptor *pointer = &leave;
    memcpy(&leave_function, &pointer, sizeof leave_function);
    check_ok(cairn_exit_create(program.runtime, enter_weigh, NULL, &exit, &error), &error,
             "an exit");
    if (exit != NULL)
        check(leave_function(cairn_exit_target(exit)) == weighed,
              "it returns to the frame's caller");
    cairn_exit_destroy(exit);
    cairn_module_retire(module);
}

int main(void)
{
    make_callees();
    if (load()) {
        printf("# %s\n",
               support_runtime_statistics(program.runtime).code_mode == CAIRN_CODE_MODE_SINGLE
                   ? "Single mode"
                   : "Dual mode");
        check_patching(CALLS, 1000 + CALLER_CANARY);
        check_patching(CALLS_AT_SMALLEST_SIZE, 1000 + CALLER_CANARY);
        check_patching(CALLS_NOTHING, 40 + CALLER_CANARY);
        check_shadow();
        check_exits();
        check_list_of_changes();
        check_race();
        check_entry();
        signature = make_signature();
        check_call();
        check_enter();
        cairn_signature_destroy(signature);
        cairn_module_retire(program.module);
        check(cairn_runtime_quiesce(program.runtime) == 2, "the modules are gone");
    }
    cairn_runtime_destroy(program.runtime);
    printf("1..%d\n", checks);
    /* As Check says it, for those who count. */
    printf("%d%%: Checks: %d, Failures: %d, Errors: 0\n", (checks - failures) * 100 / checks,
           checks, failures);
    return failures == 0 ? 0 : 1;
}
