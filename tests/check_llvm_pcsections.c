/*
 * Tests of PC sections under MCJIT: metadata attached by cairn_attach_pcsections is found again as
 * entries, at the PC of its instruction, for every code model and every distribution of the
 * constants. The accesses themselves report the expected PCs: each one faults, and the signal
 * handler receives its PC.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "llvm_support.h"
#include "llvm/engine.h"

#include "arch/arch.h"
#include "record/pc_table.h"
#include "runtime_support.h"
#include "tests/allocator_support.h"
#include "tests/stackmap_support.h"
#include "llvm/version.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SECTIONS = 4,
    FUNCTIONS_MAX = 3,
    ACCESSES_MAX = 8,
    CONSTANTS_MAX = 5,
    ATTACHED_MAX = 4,
    FOUND_MAX = 16,
    IDS_MAX = FUNCTIONS_MAX * ACCESSES_MAX
};

/* ---- Loading ---- */

struct loaded {
    LLVMContextRef context;
    cairn_runtime *runtime;
    cairn_engine *engine;
    struct support_allocator allocator;
};

static void begin(struct loaded *loaded)
{
    *loaded = (struct loaded){.context = LLVMContextCreate()};
    const struct cairn_runtime_options options = {.allocator =
                                                      support_counting(&loaded->allocator)};
    ck_assert_ok(cairn_runtime_create(&options, &loaded->runtime, NULL));
}

static void end(struct loaded *loaded)
{
    cairn_engine_destroy(loaded->engine);
    cairn_runtime_quiesce(loaded->runtime);
    cairn_runtime_destroy(loaded->runtime);
    LLVMContextDispose(loaded->context);
    ck_assert_uint_eq(loaded->allocator.outstanding_bytes, 0);
}

/* ---- Without LLVM ---- */

/* A section of one instruction, loaded by the host's own loader. */
static enum cairn_status load_by_hand(const struct loaded *loaded, uint64_t offset,
                                      struct cairn_error *error)
{
    enum { CODE_BYTES = 64, ROOM = 32 };
    const struct cairn_pcsection_schema schema = {.address_bytes = 8};
    cairn_loader *loader;
    cairn_module *module = NULL;
    ck_assert_ok(cairn_loader_create(loaded->runtime, "hand", &loader, NULL));
    uint8_t *code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, CODE_BYTES, 16, NULL, NULL);
    uint8_t *section = cairn_loader_allocate(
        loader, CAIRN_SECTION_PC_SECTION, ROOM, 1,
        &(struct cairn_pc_table_section){.name = "hand", .schema = schema}, NULL);
    memset(code, 0, CODE_BYTES);
    uint64_t pc = (uint64_t)(uintptr_t)code + offset;
    uint64_t relative = pc - (uint64_t)(uintptr_t)section;
    memcpy(section, &relative, sizeof relative);
    enum cairn_status status = cairn_loader_finish(loader, &module, error);
    if (status != CAIRN_OK) {
        cairn_loader_destroy(loader);
        return status;
    }
    struct cairn_pc_table_entry entry;
    ck_assert_uint_eq(support_pc_entry_count(cairn_module_pc_table(module)), 1);
    ck_assert_uint_eq(cairn_pc_table_find(cairn_module_pc_table(module), pc, &entry, 1), 1);
    ck_assert_uint_eq(support_find_pc_entries(loaded->runtime, pc, &entry, 1), 0);
    ck_assert_ok(cairn_module_publish(module, NULL));
    ck_assert_uint_eq(support_find_pc_entries(loaded->runtime, pc, &entry, 1), 1);
    cairn_module_retire(module);
    return CAIRN_OK;
}

START_TEST(sections_of_other_code_generators_are_found_too)
{
    struct loaded loaded;
    struct cairn_error error;
    begin(&loaded);
    ck_assert_ok(load_by_hand(&loaded, 12, &error));
    ck_assert_int_eq(load_by_hand(&loaded, 1 << 30, &error), CAIRN_ERROR_CORRUPT);
    end(&loaded);
}
END_TEST

START_TEST(a_loader_refuses_an_invalid_schema)
{
    struct loaded loaded;
    cairn_loader *loader;
    cairn_module *module;
    struct cairn_error error;
    begin(&loaded);
    ck_assert_ok(cairn_loader_create(loaded.runtime, "hand", &loader, NULL));
    const struct cairn_pc_table_section refused[] = {{.name = "s", .schema = {.address_bytes = 5}},
                                                     {.name = NULL}};
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(cairn_loader_allocate(loader, CAIRN_SECTION_PC_SECTION, 8, 1,
                                                 i < 2 ? &refused[i] : NULL, &error));
        ck_assert_int_eq(error.status, CAIRN_ERROR_ARGUMENT);
    }
    ck_assert_ptr_null(cairn_loader_allocate(
        loader, (enum cairn_section_kind)(CAIRN_SECTION_MANIFEST + 1), 8, 1, NULL, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_loader_finish(loader, &module, &error), CAIRN_ERROR_STATE);
    cairn_loader_destroy(loader);
    end(&loaded);
}
END_TEST

#if LLVM_HAS_PC_SECTIONS

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

/* ---- Attached metadata ---- */

/* One section, as metadata and as a schema. */
struct plan {
    const char *name;
    bool is_compressed;
    uint8_t count;
    uint8_t bits[CONSTANTS_MAX];
};

struct attached {
    uint32_t plan;
    uint64_t constants[CONSTANTS_MAX];
};

struct access {
    struct attached attached[ATTACHED_MAX];
    uint32_t attached_count;
    uint64_t pc; /* known once it has faulted */
};

static struct {
    struct plan plans[SECTIONS];
    struct access accesses[IDS_MAX];
    uint32_t access_count;
    struct attached functions[FUNCTIONS_MAX];
} planned;

/* Inaccessible pages, one for each access. */
static struct {
    uint8_t *pages;
    size_t page_size;
} faulting;

static uint8_t random_bits(void)
{
    static const uint8_t all[] = {1, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 40, 48, 56, 63, 64};
    return all[below(sizeof all)];
}

static const char *const plan_names[SECTIONS] = {"cairn_ids", "cairn_a", "cairn_b", "functions"};
enum { IDS_PLAN = 0, FUNCTIONS_PLAN = SECTIONS - 1 };

static void plan_sections(void)
{
    memset(&planned, 0, sizeof planned);
    mprotect(faulting.pages, IDS_MAX * faulting.page_size, PROT_NONE);
    for (uint32_t i = 0; i < SECTIONS; i++) {
        struct plan *plan = &planned.plans[i];
        plan->name = plan_names[i];
        plan->is_compressed = below(2) == 0;
        plan->count = (uint8_t)(i == IDS_PLAN ? 1 : below(CONSTANTS_MAX + 1));
        for (uint8_t k = 0; k < plan->count; k++)
            plan->bits[k] = i == IDS_PLAN ? 32 : random_bits();
    }
}

/* Returns the number of bytes in which LLVM stores a number. Without compression, LLVM also
 * allocates that many. */
static uint8_t constant_bytes(const struct plan *plan, uint8_t number)
{
    uint8_t bytes = (uint8_t)((plan->bits[number] + 7) / 8);
    if (plan->is_compressed || bytes <= 2)
        return bytes;
    return bytes <= 4 ? 4 : 8;
}

static struct cairn_pcsection_schema schema_of(uint32_t number)
{
    const struct plan *plan = &planned.plans[number];
    struct cairn_pcsection_schema schema = {.has_size = number == FUNCTIONS_PLAN,
                                            .is_compressed = plan->is_compressed,
                                            .constant_count = plan->count};
    for (uint8_t i = 0; i < plan->count; i++)
        schema.constant_bytes[i] = constant_bytes(plan, i);
    return schema;
}

static uint64_t random_number(uint8_t bits)
{
    uint64_t number = (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
    return number >> (64 - bits) >> (below(2) == 0 ? below(bits) : 0);
}

static struct attached random_attached(uint32_t plan)
{
    struct attached attached = {.plan = plan};
    for (uint8_t i = 0; i < planned.plans[plan].count; i++)
        attached.constants[i] = random_number(planned.plans[plan].bits[i]);
    return attached;
}

/* Attaches them in tuples of any size, some of them empty. */
static void attach(LLVMValueRef value, const struct attached *attached)
{
    const struct plan *plan = &planned.plans[attached->plan];
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(value));
    LLVMValueRef values[CONSTANTS_MAX];
    struct cairn_constant_tuple tuples[2 * CONSTANTS_MAX];
    uint32_t tuple_count = 0;
    for (uint8_t i = 0; i < plan->count; i++)
        values[i] =
            LLVMConstInt(LLVMIntTypeInContext(context, plan->bits[i]), attached->constants[i], 0);
    for (uint32_t at = 0; at < plan->count && tuple_count < CONSTANTS_MAX;) {
        uint32_t count = below(plan->count - at + 1);
        tuples[tuple_count++] = (struct cairn_constant_tuple){values + at, count};
        at += count;
        if (tuple_count == CONSTANTS_MAX)
            tuples[tuple_count++] = (struct cairn_constant_tuple){values + at, plan->count - at};
    }
    const struct cairn_pcsection_metadata section = {plan->name, plan->is_compressed, tuples,
                                                     tuple_count};
    ck_assert_ok(cairn_attach_pcsections(value, &section, 1, NULL));
}

/* ---- Functions of accesses ---- */

/* Records which instruction has faulted, and makes the page accessible so that it can continue. */
static void note(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal;
    size_t offset = (size_t)((uint8_t *)info->si_addr - faulting.pages);
    size_t id = offset / faulting.page_size;
    if (id >= IDS_MAX)
        _exit(2);
    planned.accesses[id].pc = arch_signal_pc(ucontext);
    mprotect(faulting.pages + id * faulting.page_size, faulting.page_size, PROT_READ | PROT_WRITE);
}

static void make_faulting(void)
{
    faulting.page_size = (size_t)sysconf(_SC_PAGESIZE);
    faulting.pages =
        mmap(NULL, IDS_MAX * faulting.page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(faulting.pages, MAP_FAILED);
    const struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
}

static void end_faulting(void)
{
    signal(SIGSEGV, SIG_DFL);
    munmap(faulting.pages, IDS_MAX * faulting.page_size);
}

struct building {
    LLVMContextRef context;
    LLVMBuilderRef builder;
    LLVMTypeRef int32;
    LLVMTypeRef pointer;
};

static LLVMValueRef build_instruction(const struct building *building, LLVMValueRef address)
{
    LLVMValueRef access = below(2) == 0
                              ? LLVMBuildLoad2(building->builder, building->int32, address, "")
                              : LLVMBuildStore(building->builder,
                                               LLVMConstInt(building->int32, below(9), 0), address);
    LLVMSetAlignment(access, 4);
    LLVMSetVolatile(access, 1);
    if (below(2) == 0)
        LLVMSetOrdering(access, LLVMAtomicOrderingMonotonic);
    return access;
}

static void build_access(const struct building *building)
{
    uint32_t id = planned.access_count++;
    struct access *access = &planned.accesses[id];
    uint64_t page = (uint64_t)(uintptr_t)(faulting.pages + id * faulting.page_size);
    LLVMTypeRef int64 = LLVMInt64TypeInContext(building->context);
    LLVMValueRef value =
        build_instruction(building, LLVMConstIntToPtr(LLVMConstInt(int64, page + 4 * below(64), 0),
                                                      building->pointer));
    access->attached[access->attached_count++] =
        (struct attached){.plan = IDS_PLAN, .constants = {id}};
    for (uint32_t more = below(ATTACHED_MAX); more > 0; more--) {
        uint32_t plan = 1 + below(SECTIONS - 2);
        /* Some are equal to the one of another access. */
        bool is_same = id > 0 && below(2) == 0 && planned.accesses[id - 1].attached_count > 1;
        access->attached[access->attached_count++] =
            is_same ? planned.accesses[id - 1].attached[1] : random_attached(plan);
    }
    for (uint32_t i = 0; i < access->attached_count; i++)
        attach(value, &access->attached[i]);
}

static void build_function(const struct building *building, LLVMModuleRef module, uint32_t number)
{
    char name[16];
    snprintf(name, sizeof name, "f%u", number);
    LLVMValueRef function =
        LLVMAddFunction(module, name, LLVMFunctionType(building->int32, NULL, 0, 0));
    cairn_prepare_function(function);
    LLVMPositionBuilderAtEnd(building->builder,
                             LLVMAppendBasicBlockInContext(building->context, function, "entry"));
    for (uint32_t accesses = 1 + below(ACCESSES_MAX); accesses > 0; accesses--)
        build_access(building);
    LLVMBuildRet(building->builder, LLVMConstInt(building->int32, number, 0));
    planned.functions[number] = random_attached(FUNCTIONS_PLAN);
    attach(function, &planned.functions[number]);
}

static LLVMModuleRef build_module(LLVMContextRef context, uint32_t first, uint32_t count)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("random", context);
    LLVMTypeRef int32 = LLVMInt32TypeInContext(context);
    struct building building = {
        .context = context,
        .builder = LLVMCreateBuilderInContext(context),
        .int32 = int32,
        .pointer = LLVMPointerType(int32, 0),
    };
    for (uint32_t i = 0; i < count; i++)
        build_function(&building, module, first + i);
    LLVMDisposeBuilder(building.builder);
    support_verify(module);
    return module;
}

/* ---- Kept sections ---- */

static struct cairn_pc_section pc_sections[3];

/* Keeps sections by name, by prefix after entries with other schemas, and with functions. */
static void fill_in_pc_sections(void)
{
    pc_sections[0] = (struct cairn_pc_section){
        .section = plan_names[IDS_PLAN], .has_schema = true, .schema = schema_of(IDS_PLAN)};
    pc_sections[1] = (struct cairn_pc_section){.section = plan_names[FUNCTIONS_PLAN],
                                               .has_schema = true,
                                               .schema = schema_of(FUNCTIONS_PLAN)};
}

static struct cairn_engine_options engine_options(const struct cairn_pc_section *list, size_t count)
{
    return (struct cairn_engine_options){
        .modules = {.pc_sections = list, .pc_section_count = count}};
}

static cairn_module *module_of(const struct loaded *loaded, const char *name)
{
    struct cairn_error error;
    void *function = support_compiled_function(loaded->engine, name, &error);
    ck_assert_msg(function != NULL, "%s", error.message);
    return cairn_runtime_find_module(loaded->runtime, (uint64_t)(uintptr_t)function);
}

/* ---- Comparing ---- */

static bool is_entry_of(const struct cairn_pc_table_entry *entry, const struct attached *attached)
{
    const struct plan *plan = &planned.plans[attached->plan];
    if (strcmp(entry->section->name, plan->name) != 0)
        return false;
    for (uint8_t i = 0; i < plan->count; i++)
        if (entry->value.constants[i] != attached->constants[i])
            return false;
    return true;
}

/* Removes one entry of it from the list. */
static void take(struct cairn_pc_table_entry *entries, size_t *count,
                 const struct attached *attached)
{
    for (size_t i = 0; i < *count; i++)
        if (is_entry_of(&entries[i], attached)) {
            entries[i] = entries[--*count];
            return;
        }
    ck_abort_msg("%s: not what was attached", planned.plans[attached->plan].name);
}

static void expect_all_of_access(const struct loaded *loaded, const struct access *access,
                                 uint64_t pc, const struct attached *function)
{
    struct cairn_pc_table_entry found[FOUND_MAX];
    size_t count = support_find_pc_entries(loaded->runtime, pc, found, FOUND_MAX);
    ck_assert_uint_eq(count, access->attached_count + 1);
    ck_assert(found[0].section->schema.has_size);
    take(found, &count, function);
    for (uint32_t i = 0; i < access->attached_count; i++)
        take(found, &count, &access->attached[i]);
    ck_assert_uint_eq(count, 0);
}

/* Returns whether the entry is at the instruction that has faulted. An access may have other
 * entries in the function: instructions before it compute the address and the value that is stored,
 * and instructions after it extend the value that was loaded. */
static bool expect_access(const struct loaded *loaded, const struct cairn_pc_table_entry *entry,
                          const struct attached *function)
{
    uint64_t id = entry->value.constants[0];
    ck_assert_uint_lt(id, planned.access_count);
    const struct access *access = &planned.accesses[id];
    expect_all_of_access(loaded, access, entry->value.address, function);
    return entry->value.address == access->pc;
}

/* Finds the only section of its name that was loaded with the module. */
static const struct cairn_pc_table_section *find_section(const cairn_pc_table *table,
                                                         const char *name)
{
    const struct cairn_pc_table_section *section;
    for (uint32_t i = 0; (section = cairn_pc_table_section(table, i)) != NULL; i++)
        if (strcmp(section->name, name) == 0)
            return section;
    ck_abort_msg("no section %s", name);
}

static void expect_function(const struct loaded *loaded, uint32_t number)
{
    char name[16];
    snprintf(name, sizeof name, "f%u", number);
    uint64_t begin_pc = (uint64_t)(uintptr_t)support_compiled_function(loaded->engine, name, NULL);
    struct cairn_pc_table_entry found[FOUND_MAX];
    ck_assert_uint_ge(support_find_pc_entries(loaded->runtime, begin_pc, found, FOUND_MAX), 1);
    ck_assert_uint_eq(found[0].value.address, begin_pc);
    ck_assert(is_entry_of(&found[0], &planned.functions[number]));
    struct cairn_function function;
    uint64_t last = begin_pc + found[0].value.size - 1;
    ck_assert(cairn_runtime_find_function(loaded->runtime, last, &function));
    ck_assert_uint_eq(function.address, begin_pc);
    ck_assert_uint_ge(support_find_pc_entries(loaded->runtime, last, found, FOUND_MAX), 1);
    ck_assert_uint_eq(found[0].value.address, begin_pc);
}

static void expect_accesses_of(const struct loaded *loaded, uint32_t number, uint32_t *seen)
{
    char name[16];
    snprintf(name, sizeof name, "f%u", number);
    const cairn_pc_table *table = cairn_module_pc_table(module_of(loaded, name));
    uint64_t begin_pc = (uint64_t)(uintptr_t)support_compiled_function(loaded->engine, name, NULL);
    struct cairn_pc_table_entry function;
    ck_assert_uint_ge(cairn_pc_table_find(table, begin_pc, &function, 1), 1);
    const struct cairn_pc_table_section *ids = find_section(table, plan_names[IDS_PLAN]);
    struct cairn_pc_table_entry entry;
    for (uint32_t i = 0; cairn_pc_table_entry(table, i, &entry); i++) {
        if (entry.section != ids || entry.value.address - begin_pc >= function.value.size)
            continue;
        *seen += expect_access(loaded, &entry, &planned.functions[number]);
    }
}

static void run_function(const struct loaded *loaded, uint32_t number)
{
    char name[16];
    uint32_t (*function)(void);
    struct cairn_error error;
    snprintf(name, sizeof name, "f%u", number);
    *(void **)&function = support_compiled_function(loaded->engine, name, &error);
    ck_assert_msg(function != NULL, "%s", error.message);
    ck_assert_uint_eq(function(), number);
}

static const LLVMCodeModel code_models[] = {LLVMCodeModelDefault, LLVMCodeModelJITDefault,
                                            LLVMCodeModelLarge};
enum { CODE_MODELS = sizeof code_models / sizeof *code_models };

static void check_random_module(unsigned round)
{
    struct loaded loaded;
    begin(&loaded);
    plan_sections();
    fill_in_pc_sections();
    /* The sections that begin with cairn_, except the one above. Both have the schema of the first.
     */
    planned.plans[2].count = planned.plans[1].count;
    planned.plans[2].is_compressed = planned.plans[1].is_compressed;
    memcpy(planned.plans[2].bits, planned.plans[1].bits, sizeof planned.plans[2].bits);
    pc_sections[2] = (struct cairn_pc_section){
        .section = "cairn_", .is_prefix = true, .has_schema = true, .schema = schema_of(1)};
    struct cairn_engine_options options = engine_options(pc_sections, 3);
    options.code_model = code_models[round % CODE_MODELS];
    options.optimisation_level = below(4);
    uint32_t functions = 1 + below(FUNCTIONS_MAX);
    LLVMModuleRef module = build_module(loaded.context, 0, functions);
    struct cairn_error error;
    ck_assert_msg(cairn_engine_create(loaded.runtime, module, &options, &loaded.engine, &error) ==
                      CAIRN_OK,
                  "%s", error.message);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < functions; i++)
        run_function(&loaded, i);
    for (uint32_t i = 0; i < functions; i++) {
        expect_function(&loaded, i);
        expect_accesses_of(&loaded, i, &seen);
    }
    ck_assert_uint_eq(seen, planned.access_count);
    end(&loaded);
}

static unsigned round_count(void)
{
    const char *rounds = getenv("CAIRN_TEST_ROUNDS");
    return rounds == NULL ? 60 : (unsigned)strtoul(rounds, NULL, 10);
}

START_TEST(random_metadata_is_found_at_the_instructions)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < round_count(); round++)
        check_random_module(round);
}
END_TEST

/* ---- Written by hand ---- */

#define VOLATILE_LOADS                                                                             \
    "define i64 @f0(ptr %a) {\n"                                                                   \
    "  %x = load volatile i64, ptr %a, align 8METADATA\n"                                          \
    "  %y = load volatile i64, ptr %a, align 8METADATA\n"                                          \
    "  %z = load volatile i64, ptr %a, align 8METADATA\n"                                          \
    "  %s = add i64 %x, %y\n"                                                                      \
    "  %t = add i64 %s, %z\n"                                                                      \
    "  ret i64 %t\n"                                                                               \
    "}\n"

/* Loads the code with `metadata` in place of METADATA, followed by `nodes`. */
static LLVMModuleRef parse_loads(LLVMContextRef context, const char *metadata, const char *nodes)
{
    char text[1024] = "";
    char *out = text;
    for (const char *in = VOLATILE_LOADS; *in != '\0';) {
        if (strncmp(in, "METADATA", strlen("METADATA")) != 0) {
            *out++ = *in++;
            continue;
        }
        out = stpcpy(out, metadata);
        in += strlen("METADATA");
    }
    stpcpy(out, nodes);
    return support_parse_valid(context, text);
}

static struct cairn_pc_section pc_section_of(const char *section, const char *schema)
{
    struct cairn_pc_section pc_section = {.section = section, .has_schema = schema != NULL};
    if (schema != NULL)
        ck_assert_ok(cairn_pcsection_parse_schema(schema, &pc_section.schema, NULL));
    pc_section.schema.address_bytes = 0;
    return pc_section;
}

static enum cairn_status load(struct loaded *loaded, LLVMModuleRef module,
                              const struct cairn_pc_section *list, size_t count,
                              struct cairn_error *error)
{
    const struct cairn_engine_options options = engine_options(list, count);
    enum cairn_status status =
        cairn_engine_create(loaded->runtime, module, &options, &loaded->engine, error);
    if (status != CAIRN_OK) {
        LLVMDisposeModule(module);
        return status;
    }
    return cairn_engine_compile(loaded->engine, error);
}

START_TEST(instructions_that_share_a_node_get_an_entry_each)
{
    struct loaded loaded;
    struct cairn_error error;
    begin(&loaded);
    const struct cairn_pc_section pc_section = pc_section_of("shared", "instruction 8 u32 u8");
    LLVMModuleRef module = parse_loads(loaded.context, ", !pcsections !0",
                                       "!0 = !{!\"shared\", !1}\n!1 = !{i32 -5, i8 9}\n");
    ck_assert_ok(load(&loaded, module, &pc_section, 1, &error));
    const cairn_pc_table *table = cairn_module_pc_table(module_of(&loaded, "f0"));
    ck_assert_uint_eq(support_pc_entry_count(table), 3);
    uint64_t last = 0;
    for (uint32_t i = 0; i < 3; i++) {
        struct cairn_pc_table_entry entry = support_pc_entry(table, i);
        ck_assert_uint_eq(entry.value.constants[0], (uint32_t)-5);
        ck_assert_uint_eq(entry.value.constants[1], 9);
        ck_assert_uint_gt(entry.value.address, last);
        last = entry.value.address;
    }
    end(&loaded);
}
END_TEST

/* Loads of one function, each with the same constant. */
static void attach_to_loads(LLVMModuleRef module, const char *section)
{
    LLVMValueRef function = LLVMGetNamedFunction(module, "f0");
    LLVMTypeRef int32 = LLVMInt32TypeInContext(LLVMGetModuleContext(module));
    LLVMValueRef constant = LLVMConstInt(int32, 117901063, 0);
    const struct cairn_constant_tuple tuple = {&constant, 1};
    const struct cairn_pcsection_metadata metadata = {section, false, &tuple, 1};
    for (LLVMValueRef value = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
         value != NULL; value = LLVMGetNextInstruction(value))
        if (LLVMGetInstructionOpcode(value) == LLVMLoad)
            ck_assert_ok(cairn_attach_pcsections(value, &metadata, 1, NULL));
}

START_TEST(attached_instructions_share_no_node)
{
    struct loaded loaded;
    struct cairn_error error;
    begin(&loaded);
    const struct cairn_pc_section pc_section = pc_section_of("raw", NULL);
    LLVMModuleRef module = parse_loads(loaded.context, "", "");
    attach_to_loads(module, "raw");
    ck_assert_ok(load(&loaded, module, &pc_section, 1, &error));
    cairn_module *owner = module_of(&loaded, "f0");
    const struct cairn_pc_table_section *section =
        cairn_pc_table_section(cairn_module_pc_table(owner), 0);
    bool is_far = cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
    const struct cairn_pcsection_schema schema = {
        .address_bytes = is_far ? 8 : 4, .constant_count = 1, .constant_bytes = {4}};
    struct cairn_pcsection_entry entry;
    size_t offset = 0;
    for (int i = 0; i < 3; i++) {
        ck_assert_ok(cairn_pcsection_read(&section->section, section->address, &schema, &offset,
                                          &entry, NULL));
        ck_assert_ptr_eq(cairn_runtime_find_module(loaded.runtime, entry.address), owner);
        ck_assert_uint_eq(entry.constants[0], 117901063);
    }
    end(&loaded);
}
END_TEST

START_TEST(several_sections_of_one_name_are_one_module_s)
{
    struct loaded loaded;
    struct cairn_error error;
    begin(&loaded);
    random_state = sample_seed();
    plan_sections();
    fill_in_pc_sections();
    struct cairn_engine_options options = engine_options(pc_sections, 2);
    LLVMModuleRef first = build_module(loaded.context, 0, 1);
    LLVMModuleRef second = build_module(loaded.context, 1, 1);
    ck_assert_ok(cairn_engine_create(loaded.runtime, first, &options, &loaded.engine, &error));
    ck_assert_ok(cairn_engine_add_module(loaded.engine, second, &error));
    ck_assert_ok(cairn_engine_compile(loaded.engine, &error));
    cairn_module *module = module_of(&loaded, "f0");
    ck_assert_ptr_eq(module, module_of(&loaded, "f1"));
    const cairn_pc_table *table = cairn_module_pc_table(module);
    ck_assert_uint_eq(support_pc_section_count(table), 4);
    ck_assert_uint_ge(support_pc_entry_count(table), planned.access_count + 2);
    expect_function(&loaded, 0);
    expect_function(&loaded, 1);
    end(&loaded);
}
END_TEST

START_TEST(bytes_without_a_schema_are_the_host_s)
{
    struct loaded loaded;
    struct cairn_error error;
    begin(&loaded);
    const struct cairn_pc_section pc_section = pc_section_of("raw", NULL);
    LLVMModuleRef module = parse_loads(loaded.context, ", !pcsections !0", "!0 = !{!\"raw\"}\n");
    ck_assert_ok(load(&loaded, module, &pc_section, 1, &error));
    cairn_module *owner = module_of(&loaded, "f0");
    const cairn_pc_table *table = cairn_module_pc_table(owner);
    ck_assert_uint_eq(support_pc_entry_count(table), 0);
    ck_assert_uint_eq(support_pc_section_count(table), 1);
    const struct cairn_pc_table_section *section = cairn_pc_table_section(table, 0);
    ck_assert_str_eq(section->name, "raw");
    bool is_far = cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
    const struct cairn_pcsection_schema schema = {.address_bytes = is_far ? 8 : 4};
    struct cairn_pcsection_entry entry;
    size_t offset = 0;
    for (int i = 0; i < 3; i++) {
        ck_assert_ok(cairn_pcsection_read(&section->section, section->address, &schema, &offset,
                                          &entry, NULL));
        ck_assert_ptr_eq(cairn_runtime_find_module(loaded.runtime, entry.address), owner);
    }
    end(&loaded);
}
END_TEST

START_TEST(sections_that_are_not_kept_are_data)
{
    struct loaded loaded;
    struct cairn_error error;
    begin(&loaded);
    const struct cairn_pc_section pc_section = pc_section_of("other", "instruction 8");
    LLVMModuleRef module =
        parse_loads(loaded.context, ", !pcsections !0", "!0 = !{!\"section\"}\n");
    ck_assert_ok(load(&loaded, module, &pc_section, 1, &error));
    ck_assert_ptr_null(cairn_module_pc_table(module_of(&loaded, "f0")));
    end(&loaded);
}
END_TEST

START_TEST(a_section_of_another_schema_fails_the_finalisation)
{
    static const char *const wrong[] = {"instruction 8 u8", "instruction 8 u64", "function 8 u32"};
    struct loaded loaded;
    struct cairn_error error = {.status = CAIRN_OK};
    begin(&loaded);
    const struct cairn_pc_section pc_section = pc_section_of("wrong", wrong[_i]);
    LLVMModuleRef module = parse_loads(loaded.context, "", "");
    attach_to_loads(module, "wrong");
    enum cairn_status status = load(&loaded, module, &pc_section, 1, &error);
    ck_assert_msg(status == CAIRN_ERROR_CORRUPT || status == CAIRN_ERROR_TRUNCATED, "%s: %s",
                  cairn_status_name(status), error.message);
    ck_assert_ptr_nonnull(strstr(error.message, "PC section 'wrong', entry "));
    ck_assert_ptr_nonnull(strstr(error.message, " byte "));
    ck_assert_ptr_null(support_compiled_function(loaded.engine, "f0", &error));
    end(&loaded);
}
END_TEST

START_TEST(a_width_that_is_not_the_code_model_s_fails_the_finalisation)
{
    struct loaded loaded;
    struct cairn_error error = {.status = CAIRN_OK};
    begin(&loaded);
    struct cairn_pc_section pc_section = pc_section_of("wrong", "instruction 8");
    bool is_far = cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
    pc_section.schema.address_bytes = is_far ? 4 : 8;
    LLVMModuleRef module = parse_loads(loaded.context, ", !pcsections !0", "!0 = !{!\"wrong\"}\n");
    enum cairn_status status = load(&loaded, module, &pc_section, 1, &error);
    ck_assert_msg(status == CAIRN_ERROR_CORRUPT || status == CAIRN_ERROR_TRUNCATED, "%s",
                  error.message);
    end(&loaded);
}
END_TEST

/* ---- Life cycle of modules ---- */

static void load_random(struct loaded *loaded)
{
    struct cairn_error error;
    plan_sections();
    fill_in_pc_sections();
    struct cairn_engine_options options = engine_options(pc_sections, 2);
    LLVMModuleRef module = build_module(loaded->context, 0, 1);
    enum cairn_status status =
        cairn_engine_create(loaded->runtime, module, &options, &loaded->engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    run_function(loaded, 0);
}

START_TEST(retired_modules_are_not_found)
{
    struct loaded loaded;
    struct cairn_pc_table_entry entry;
    random_state = sample_seed();
    begin(&loaded);
    load_random(&loaded);
    uint64_t pc = planned.accesses[0].pc;
    ck_assert_uint_eq(support_find_pc_entries(loaded.runtime, pc, &entry, 1), 2);
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(loaded.runtime, &statistics);
    ck_assert_uint_ge(statistics.table_bytes,
                      pc_table_size_bytes(cairn_module_pc_table(module_of(&loaded, "f0"))));
    cairn_engine_destroy(loaded.engine);
    loaded.engine = NULL;
    ck_assert_uint_eq(support_find_pc_entries(loaded.runtime, pc, &entry, 1), 0);
    cairn_runtime_quiesce(loaded.runtime);
    ck_assert_uint_eq(support_find_pc_entries(loaded.runtime, pc, &entry, 1), 0);
    end(&loaded);
}
END_TEST

START_TEST(a_forked_child_finds_the_same)
{
    struct loaded loaded;
    random_state = sample_seed();
    begin(&loaded);
    load_random(&loaded);
    uint64_t pc = planned.accesses[0].pc;
    pid_t child = fork();
    if (child == 0) {
        struct cairn_pc_table_entry entry;
        size_t before = support_find_pc_entries(loaded.runtime, pc, &entry, 1);
        enum cairn_status status = cairn_runtime_after_fork(loaded.runtime, NULL);
        size_t after = support_find_pc_entries(loaded.runtime, pc, &entry, 1);
        bool is_same = is_entry_of(&entry, &planned.functions[0]);
        _exit(before == 2 && after == 2 && status == CAIRN_OK && is_same ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    end(&loaded);
}
END_TEST

START_TEST(each_failed_allocation_is_reported)
{
    random_state = sample_seed();
    for (size_t fail_at = 1;; fail_at++) {
        struct loaded loaded;
        struct cairn_error error;
        begin(&loaded);
        size_t before = loaded.allocator.calls;
        LLVMModuleRef module =
            parse_loads(loaded.context, ", !pcsections !0",
                        "!0 = !{!\"s!C\", !1, !\"raw\"}\n!1 = !{i32 -5, i8 9}\n");
        const struct cairn_pc_section list[] = {pc_section_of("s", "instruction 8 u32 u8 !C"),
                                                pc_section_of("raw", NULL)};
        loaded.allocator.fail_at = before + fail_at;
        enum cairn_status status = load(&loaded, module, list, 2, &error);
        bool is_done = loaded.allocator.calls < before + fail_at;
        loaded.allocator.fail_at = 0;
        ck_assert(is_done ? status == CAIRN_OK : status == CAIRN_ERROR_MEMORY);
        end(&loaded);
        if (is_done)
            break;
    }
}
END_TEST

/* ---- In signal handlers ---- */

static struct {
    cairn_runtime *runtime;
    volatile sig_atomic_t inside;
    volatile sig_atomic_t wrong;
} sampled;

static void sample(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal;
    (void)info;
    struct cairn_pc_table_entry entry;
    uint64_t pc = arch_signal_pc(ucontext);
    if (cairn_runtime_find_module(sampled.runtime, pc) == NULL)
        return;
    sampled.inside++;
    size_t count = support_find_pc_entries(sampled.runtime, pc, &entry, 1);
    if (count != 1 || entry.value.constants[0] != 77)
        sampled.wrong++;
}

static const char loop_text[] = "define i64 @f0(i64 %n) !pcsections !0 {\n"
                                "entry:\n"
                                "  br label %loop\n"
                                "loop:\n"
                                "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
                                "  %x = phi i64 [ 1, %entry ], [ %y, %loop ]\n"
                                "  %y = mul i64 %x, 6364136223846793005\n"
                                "  %next = add i64 %i, 1\n"
                                "  %more = icmp ult i64 %next, %n\n"
                                "  br i1 %more, label %loop, label %end\n"
                                "end:\n"
                                "  ret i64 %y\n"
                                "}\n"
                                "!0 = !{!\"loop\", !1}\n!1 = !{i32 77}\n";

START_TEST(a_profiler_s_signal_asks_for_the_function)
{
    enum { SAMPLES = 20, TURNS = 1000000 };
    struct loaded loaded;
    struct cairn_error error;
    begin(&loaded);
    const struct cairn_pc_section pc_section = pc_section_of("loop", "function 8 u32");
    LLVMModuleRef module = support_parse_valid(loaded.context, loop_text);
    ck_assert_ok(load(&loaded, module, &pc_section, 1, &error));
    uint64_t (*loop)(uint64_t);
    *(void **)&loop = support_compiled_function(loaded.engine, "f0", &error);
    sampled.runtime = loaded.runtime;
    size_t allocations = loaded.allocator.calls;
    struct sigaction action = {.sa_sigaction = sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    const struct itimerval timer = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &timer, NULL);
    while (sampled.inside < SAMPLES)
        loop(TURNS);
    const struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &off, NULL);
    signal(SIGPROF, SIG_IGN);
    ck_assert_int_eq(sampled.wrong, 0);
    ck_assert_uint_eq(loaded.allocator.calls, allocations);
    end(&loaded);
}
END_TEST

/* ---- Errors of attaching ---- */

struct refusal {
    LLVMModuleRef module;
    LLVMValueRef load;
    LLVMContextRef context;
};

static struct refusal begin_refusal(struct loaded *loaded)
{
    struct refusal refusal = {.context = loaded->context};
    refusal.module = parse_loads(loaded->context, "", "");
    LLVMValueRef function = LLVMGetNamedFunction(refusal.module, "f0");
    refusal.load = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
    return refusal;
}

static void expect_refused(const struct refusal *refusal, LLVMValueRef value,
                           const struct cairn_pcsection_metadata *section,
                           enum cairn_status expected)
{
    struct cairn_error error = {.status = CAIRN_OK};
    char *before = LLVMPrintModuleToString(refusal->module);
    ck_assert_int_eq(cairn_attach_pcsections(value, section, section != NULL, &error), expected);
    ck_assert_int_ne(error.message[0], '\0');
    char *after = LLVMPrintModuleToString(refusal->module);
    ck_assert_str_eq(after, before);
    LLVMDisposeMessage(before);
    LLVMDisposeMessage(after);
}

static void expect_constant_refused(const struct refusal *refusal, LLVMValueRef constant,
                                    enum cairn_status expected)
{
    const struct cairn_constant_tuple tuple = {&constant, 1};
    const struct cairn_pcsection_metadata section = {"s", false, &tuple, 1};
    expect_refused(refusal, refusal->load, &section, expected);
}

START_TEST(what_llvm_would_crash_on_is_refused)
{
    struct loaded loaded;
    begin(&loaded);
    struct refusal refusal = begin_refusal(&loaded);
    LLVMContextRef context = loaded.context;
    LLVMValueRef function = LLVMGetNamedFunction(refusal.module, "f0");
    expect_constant_refused(&refusal, LLVMConstInt(LLVMIntTypeInContext(context, 65), 1, 0),
                            CAIRN_ERROR_UNSUPPORTED);
    expect_constant_refused(&refusal, LLVMConstReal(LLVMDoubleTypeInContext(context), 1),
                            CAIRN_ERROR_UNSUPPORTED);
    expect_constant_refused(&refusal, LLVMGetUndef(LLVMInt32TypeInContext(context)),
                            CAIRN_ERROR_UNSUPPORTED);
    expect_constant_refused(&refusal, refusal.load, CAIRN_ERROR_UNSUPPORTED);
    expect_constant_refused(&refusal, function, CAIRN_ERROR_UNSUPPORTED);
    expect_constant_refused(&refusal, NULL, CAIRN_ERROR_ARGUMENT);
    const struct cairn_pcsection_metadata nameless[] = {{.section = ""}, {.section = NULL}};
    expect_refused(&refusal, refusal.load, &nameless[0], CAIRN_ERROR_ARGUMENT);
    expect_refused(&refusal, refusal.load, &nameless[1], CAIRN_ERROR_ARGUMENT);
    const struct cairn_pcsection_metadata option = {.section = "s!C"};
    expect_refused(&refusal, refusal.load, &option, CAIRN_ERROR_ARGUMENT);
    const struct cairn_pcsection_metadata no_tuples = {.section = "s", .tuple_count = 1};
    expect_refused(&refusal, refusal.load, &no_tuples, CAIRN_ERROR_ARGUMENT);
    const struct cairn_constant_tuple no_constants = {NULL, 1};
    const struct cairn_pcsection_metadata no_array = {"s", false, &no_constants, 1};
    expect_refused(&refusal, refusal.load, &no_array, CAIRN_ERROR_ARGUMENT);
    expect_refused(&refusal, refusal.load, NULL, CAIRN_ERROR_ARGUMENT);
    LLVMDisposeModule(refusal.module);
    end(&loaded);
}
END_TEST

START_TEST(more_constants_than_can_be_read_are_refused)
{
    struct loaded loaded;
    begin(&loaded);
    struct refusal refusal = begin_refusal(&loaded);
    LLVMValueRef values[CAIRN_PCSECTION_CONSTANTS_MAX];
    for (int i = 0; i < CAIRN_PCSECTION_CONSTANTS_MAX; i++)
        values[i] = LLVMConstInt(LLVMInt8TypeInContext(loaded.context), 1, 0);
    const struct cairn_constant_tuple tuples[] = {{values, CAIRN_PCSECTION_CONSTANTS_MAX},
                                                  {values, 1}};
    struct cairn_pcsection_metadata section = {"s", false, tuples, 2};
    expect_refused(&refusal, refusal.load, &section, CAIRN_ERROR_RANGE);
    section.tuple_count = 1;
    ck_assert_ok(cairn_attach_pcsections(refusal.load, &section, 1, NULL));
    LLVMDisposeModule(refusal.module);
    end(&loaded);
}
END_TEST

START_TEST(only_code_that_is_compiled_gets_sections)
{
    struct loaded loaded;
    begin(&loaded);
    struct refusal refusal = begin_refusal(&loaded);
    const struct cairn_pcsection_metadata section = {.section = "s"};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(loaded.context), NULL, 0, 0);
    LLVMValueRef declared = LLVMAddFunction(refusal.module, "declared", type);
    expect_refused(&refusal, declared, &section, CAIRN_ERROR_ARGUMENT);
    expect_refused(&refusal, LLVMConstInt(LLVMInt8TypeInContext(loaded.context), 1, 0), &section,
                   CAIRN_ERROR_ARGUMENT);
    expect_refused(&refusal, NULL, &section, CAIRN_ERROR_ARGUMENT);
    LLVMSetTarget(refusal.module, "x86_64-apple-darwin");
    expect_refused(&refusal, refusal.load, &section, CAIRN_ERROR_UNSUPPORTED);
    LLVMDisposeModule(refusal.module);
    end(&loaded);
}
END_TEST

START_TEST(a_pc_section_without_a_name_is_refused)
{
    struct loaded loaded;
    begin(&loaded);
    const struct cairn_pc_section pc_section = {.section = NULL};
    ck_assert_int_eq(load(&loaded, parse_loads(loaded.context, "", ""), &pc_section, 1, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(load(&loaded, parse_loads(loaded.context, "", ""), NULL, 1, NULL),
                     CAIRN_ERROR_ARGUMENT);
    end(&loaded);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_checked_fixture(tests, make_faulting, end_faulting);
    tcase_add_test(tests, random_metadata_is_found_at_the_instructions);
    tcase_add_test(tests, instructions_that_share_a_node_get_an_entry_each);
    tcase_add_test(tests, attached_instructions_share_no_node);
    tcase_add_test(tests, several_sections_of_one_name_are_one_module_s);
    tcase_add_test(tests, bytes_without_a_schema_are_the_host_s);
    tcase_add_test(tests, sections_that_are_not_kept_are_data);
    tcase_add_loop_test(tests, a_section_of_another_schema_fails_the_finalisation, 0, 3);
    tcase_add_test(tests, a_width_that_is_not_the_code_model_s_fails_the_finalisation);
    tcase_add_test(tests, retired_modules_are_not_found);
    tcase_add_test(tests, a_forked_child_finds_the_same);
    tcase_add_test(tests, each_failed_allocation_is_reported);
    tcase_add_test(tests, a_profiler_s_signal_asks_for_the_function);
    tcase_add_test(tests, what_llvm_would_crash_on_is_refused);
    tcase_add_test(tests, more_constants_than_can_be_read_are_refused);
    tcase_add_test(tests, only_code_that_is_compiled_gets_sections);
    tcase_add_test(tests, a_pc_section_without_a_name_is_refused);
}

#else

START_TEST(an_llvm_without_pc_sections_attaches_none)
{
    LLVMContextRef context = LLVMContextCreate();
    struct cairn_error error;
    LLVMModuleRef module = support_parse_valid(context, "define void @f() {\n  ret void\n}\n");
    LLVMValueRef function = LLVMGetNamedFunction(module, "f");
    const struct cairn_pcsection_metadata section = {.section = "s"};
    ck_assert_int_eq(cairn_attach_pcsections(function, &section, 1, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "LLVM 16"));
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, an_llvm_without_pc_sections_attaches_none);
}

#endif

int main(void)
{
    Suite *suite = suite_create("llvm_pcsections");
    TCase *tests = tcase_create("llvm_pcsections");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, sections_of_other_code_generators_are_found_too);
    tcase_add_test(tests, a_loader_refuses_an_invalid_schema);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
