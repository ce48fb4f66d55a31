/*
 * Tests that the code that the LLVM in use emits for patch points is recognised on every
 * architecture: with null, immediate and symbol targets, at the smallest sizes and at larger ones,
 * with the C convention and with anyregcc. Also tests that LLVM keeps no value in a register that a
 * veneer changes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"

#include "arch/arch.h"
#include "llvm/version.h"

#include <cairn/object.h>
#include <inttypes.h>
#include <llvm-c/Object.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LLVM supports targets of 48 bits, and this one uses all of them. */
#define TARGET UINT64_C(0x8765432112FF)

enum { WORD = 4, ID = 77, SIZE_MAX_TESTED = 96, IR_SIZE = 2048 };

/* ---- The machines ---- */

enum target { TARGET_NULL, TARGET_IMMEDIATE, TARGET_SYMBOL };

struct machine {
    const char *triple;
    enum cairn_architecture architecture;
    size_t bytes_min[3]; /* name that LLVM accepts, by enum target */
    size_t step;
    /* Return offset of the call of an immediate target, where it is fixed. */
    size_t return_offset;
    /* The instruction that reloads the TOC pointer. Before LLVM 22 it is not counted among the
     * patch point's bytes (llvm-project #177453). */
    uint32_t reload;
};

enum { COUNTED_RELOAD = LLVM_COUNTS_TOC_RELOAD ? WORD : 0 };

static const struct machine machines[] = {
    {"x86_64-linux-gnu", CAIRN_ARCHITECTURE_X86_64, {0, 13, 13}, 1, 13, 0},
    {"aarch64-linux-gnu", CAIRN_ARCHITECTURE_AARCH64, {0, 16, 16}, WORD, 16, 0},
    {"powerpc64le-linux-gnu",
     CAIRN_ARCHITECTURE_PPC64_ELFV2,
     {0, 28 + COUNTED_RELOAD, 8},
     WORD,
     28,
     0xE8410018},
    {"powerpc64-linux-gnu",
     CAIRN_ARCHITECTURE_PPC64_ELFV1,
     {0, 36 + COUNTED_RELOAD, 8},
     WORD,
     36,
     0xE8410028},
};
enum { MACHINE_COUNT = sizeof machines / sizeof *machines };

static bool has_toc(const struct machine *machine) { return machine->reload != 0; }

/* ---- Compiling one patch point ---- */

struct form {
    enum target target;
    const char *convention; /* "" or "anyregcc " */
    size_t size;
    unsigned optimisation_level;
};

static const char *spell_target(enum target target, char *text, size_t size)
{
    switch (target) {
    case TARGET_NULL:
        return "ptr null";
    case TARGET_IMMEDIATE:
        snprintf(text, size, "ptr inttoptr (i64 %" PRIu64 " to ptr)", TARGET);
        return text;
    case TARGET_SYMBOL:
        break;
    }
    return LLVM_HAS_OPAQUE_POINTERS ? "ptr @callee"
                                    : "ptr bitcast (i64 (i64, i64)* @callee to ptr)";
}

static void write_ir(const struct form *form, char *text)
{
    char target[64];
    snprintf(text, IR_SIZE,
             SUPPORT_INTRINSICS "declare i64 @callee(i64, i64)\n"
                                "define i64 @before(i64 %%a) {\n"
                                "  ret i64 %%a\n"
                                "}\n"
                                "define i64 @function(i64 %%a, i64 %%b) {\n"
                                "  %%r = call %si64 (i64, i32, ptr, i32, ...)"
                                " @llvm.experimental.patchpoint.i64(i64 %d, i32 %zu, %s, i32 2,"
                                " i64 %%a, i64 %%b, i64 %%b)\n"
                                "  %%s = add i64 %%r, %%b\n"
                                "  ret i64 %%s\n"
                                "}\n",
             form->convention, (int)ID, form->size,
             spell_target(form->target, target, sizeof target));
}

struct code {
    uint8_t *bytes; /* contents of .text; owned by the test */
    size_t size;
    size_t region; /* offset of the patch point */
};

/* The first section has no name. */
static bool is_text(LLVMSectionIteratorRef section)
{
    const char *name = LLVMGetSectionName(section);
    return name != NULL && strcmp(name, ".text") == 0;
}

static void copy_text(LLVMMemoryBufferRef object, struct code *code)
{
    char *message = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, NULL, &message);
    ck_assert_msg(binary != NULL, "%s", message);
    LLVMSectionIteratorRef section = LLVMObjectFileCopySectionIterator(binary);
    while (!LLVMObjectFileIsSectionIteratorAtEnd(binary, section) && !is_text(section))
        LLVMMoveToNextSection(section);
    ck_assert(!LLVMObjectFileIsSectionIteratorAtEnd(binary, section));
    code->size = (size_t)LLVMGetSectionSize(section);
    code->bytes = malloc(code->size);
    ck_assert_ptr_nonnull(code->bytes);
    memcpy(code->bytes, LLVMGetSectionContents(section), code->size);
    LLVMDisposeSectionIterator(section);
    LLVMDisposeBinary(binary);
}

/* In a relocatable object, addresses are offsets from the start of .text. */
static uint64_t find_region(LLVMMemoryBufferRef buffer)
{
    struct cairn_error error = {0};
    cairn_object *object = NULL;
    struct cairn_object_section section = {0};
    struct cairn_stackmap map = {0};
    struct cairn_stackmap_record record = {0};
    size_t offset = 0;
    enum cairn_status status = cairn_object_open_memory(
        LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer), NULL, &object, &error);
    if (status == CAIRN_OK)
        status = cairn_object_next_section(
            object, &(struct cairn_object_filter){.name = CAIRN_OBJECT_STACKMAPS}, &section,
            &error);
    if (status == CAIRN_OK)
        status = cairn_stackmap_read(&section.contents, &offset, &map, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert(cairn_stackmap_next(&map, &record));
    ck_assert_uint_eq(record.id, ID);
    struct cairn_object_function function =
        cairn_object_function(object, &section,
                              map.section_offset + CAIRN_STACKMAP_HEADER_BYTES +
                                  record.function * (size_t)CAIRN_STACKMAP_FUNCTION_BYTES);
    uint64_t address = function.entry + record.code_offset;
    cairn_object_destroy(object);
    return address;
}

static struct code compile_text(const struct machine *machine, const char *text,
                                unsigned optimisation_level)
{
    struct code code = {0};
    const struct support_compilation compilation = {.triple = machine->triple,
                                                    .optimisation_level = optimisation_level,
                                                    .liveness = CAIRN_LIVENESS_OFF};
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = support_parse_valid(context, text);
    LLVMMemoryBufferRef object = support_compile_to_memory(module, &compilation);
    copy_text(object, &code);
    code.region = (size_t)find_region(object);
    LLVMDisposeMemoryBuffer(object);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    return code;
}

static struct code compile(const struct machine *machine, const struct form *form)
{
    char text[IR_SIZE] = "";
    write_ir(form, text);
    struct code code = compile_text(machine, text, form->optimisation_level);
    ck_assert_uint_gt(code.region, 0);
    ck_assert_uint_le(code.region + form->size, code.size);
    return code;
}

static uint32_t word_at(const struct cairn_arch *arch, const struct code *code, size_t offset)
{
    return cairn_load_u32(code->bytes + offset, arch->byte_order);
}

/* ---- Expected code ---- */

static void expect_recognised(const struct machine *machine, const struct form *form,
                              const struct code *code)
{
    const struct cairn_arch *arch = arch_find(machine->architecture);
    struct arch_patchpoint found;
    struct cairn_error error = {0};
    enum cairn_status status =
        arch->recognise(arch, code->bytes + code->region, form->size, code->region, &found, &error);
    bool is_direct = has_toc(machine) && form->target == TARGET_SYMBOL;
    ck_assert_msg(status == CAIRN_OK, "%s, %starget %d, %zu bytes, -O%u: %s", machine->triple,
                  form->convention, (int)form->target, form->size, form->optimisation_level,
                  error.message);
    ck_assert(found.has_call == (form->target != TARGET_NULL));
    if (!found.has_call)
        return;
    ck_assert(found.is_direct == is_direct);
    ck_assert_uint_eq(found.return_offset, is_direct ? WORD : machine->return_offset);
    if (form->target == TARGET_IMMEDIATE)
        ck_assert_uint_eq(found.target, TARGET);
    /* The object is not linked, so the branch's target is the branch itself. */
    if (is_direct)
        ck_assert_uint_eq(found.target, code->region);
}

/* The reload is inside of the region. Before LLVM 22, four more bytes follow than were requested:
 * the reload, or an additional no-op. */
static void expect_reload(const struct machine *machine, const struct form *form,
                          const struct code *code)
{
    const struct cairn_arch *arch = arch_find(machine->architecture);
    if (!has_toc(machine) || form->target != TARGET_IMMEDIATE)
        return;
    size_t end = code->region + form->size;
    uint32_t after = word_at(arch, code, end);
    bool is_smallest = form->size == machine->return_offset;
    uint64_t nop;
    ck_assert(arch->encode_branch(arch, CAIRN_SITE_NOP, 0, 0, WORD, &nop));
    if (LLVM_COUNTS_TOC_RELOAD)
        ck_assert(after != machine->reload && after != (uint32_t)nop);
    else
        ck_assert_uint_eq(after, is_smallest ? machine->reload : (uint32_t)nop);
    ck_assert_uint_eq(word_at(arch, code, code->region + machine->return_offset), machine->reload);
}

/* Expects CORRUPT, with an error message that gives the word's offset and value. */
static void expect_word_named(const struct cairn_arch *arch, const uint8_t *region, size_t offset,
                              uint64_t address, const struct cairn_error *error)
{
    char name[64];
    snprintf(name, sizeof name, "byte %zu of the region, 0x%08x", offset,
             cairn_load_u32(region + offset, arch->byte_order));
    ck_assert_uint_eq(error->offset, address + offset);
    ck_assert_msg(strstr(error->message, name) != NULL, "'%s' does not say '%s'", error->message,
                  name);
}

/* If any bit outside of the target is changed, the error names its word. */
static void expect_changed_bits_refused(const struct machine *machine, const struct form *form,
                                        const struct code *code)
{
    const struct cairn_arch *arch = arch_find(machine->architecture);
    const uint8_t *emitted = code->bytes + code->region;
    struct arch_patchpoint before;
    uint32_t of_target = 0;
    ck_assert_int_eq(arch->recognise(arch, emitted, form->size, code->region, &before, NULL),
                     CAIRN_OK);
    for (size_t bit = 0; machine->step == WORD && bit < 8 * form->size; bit++) {
        uint8_t region[SIZE_MAX_TESTED];
        struct arch_patchpoint found;
        struct cairn_error error = {0};
        memcpy(region, emitted, form->size);
        region[bit / 8] ^= (uint8_t)(1U << bit % 8);
        enum cairn_status status =
            arch->recognise(arch, region, form->size, code->region, &found, &error);
        if (status == CAIRN_OK) {
            ck_assert_uint_ne(found.target, before.target);
            of_target++;
            continue;
        }
        ck_assert_int_eq(status, CAIRN_ERROR_CORRUPT);
        expect_word_named(arch, region, bit / 8 / WORD * WORD, code->region, &error);
    }
    static const uint32_t target_bits[] = {
        [TARGET_NULL] = 0, [TARGET_IMMEDIATE] = 48, [TARGET_SYMBOL] = 24};
    bool is_branch = has_toc(machine) && form->target == TARGET_SYMBOL;
    uint32_t expected = form->target == TARGET_SYMBOL && !is_branch ? target_bits[TARGET_IMMEDIATE]
                                                                    : target_bits[form->target];
    ck_assert_uint_eq(of_target, machine->step == WORD ? expected : 0);
}

/* If any word is changed, the error names that word. */
static void expect_changes_refused(const struct machine *machine, const struct form *form,
                                   const struct code *code)
{
    const struct cairn_arch *arch = arch_find(machine->architecture);
    for (size_t offset = 0; machine->step == WORD && offset < form->size; offset += WORD) {
        uint8_t region[SIZE_MAX_TESTED];
        struct arch_patchpoint found;
        struct cairn_error error = {0};
        memcpy(region, code->bytes + code->region, form->size);
        for (size_t i = 0; i < WORD; i++)
            region[offset + i] ^= 0xFF;
        ck_assert_int_eq(arch->recognise(arch, region, form->size, code->region, &found, &error),
                         CAIRN_ERROR_CORRUPT);
        expect_word_named(arch, region, offset, code->region, &error);
    }
}

/* The armed region has the same size. The placement holds a no-op, and around it there are no-ops,
 * the save and the reload. */
static void expect_armed(const struct machine *machine, const struct form *form,
                         const struct code *code)
{
    const struct cairn_arch *arch = arch_find(machine->architecture);
    struct arch_patchpoint found;
    struct arch_placement placement;
    uint8_t region[SIZE_MAX_TESTED];
    memcpy(region, code->bytes + code->region, form->size);
    ck_assert_int_eq(arch->recognise(arch, region, form->size, code->region, &found, NULL),
                     CAIRN_OK);
    enum cairn_status status =
        arch->place(arch, &found, form->size, code->region, &placement, NULL);
    if (status != CAIRN_OK) {
        ck_assert_uint_lt(form->size, has_toc(machine) ? 12 : 9);
        return;
    }
    arch->arm(arch, region, form->size, &found, &placement);
    size_t around = has_toc(machine) ? WORD : 0;
    size_t before = placement.instruction_offset - around;
    size_t after = placement.return_offset + around;
    ck_assert_uint_eq(arch->leading_nops(arch, region, before), before);
    ck_assert_uint_eq(arch->leading_nops(arch, region + after, form->size - after),
                      form->size - after);
    size_t length = placement.return_offset - placement.instruction_offset;
    ck_assert_uint_eq(arch->leading_nops(arch, region + placement.instruction_offset, length),
                      length);
    if (has_toc(machine))
        ck_assert_uint_eq(cairn_load_u32(region + placement.return_offset, arch->byte_order),
                          machine->reload);
}

/* ---- The tests ---- */

static void try_form(const struct machine *machine, const struct form *form)
{
    struct code code = compile(machine, form);
    expect_recognised(machine, form, &code);
    expect_reload(machine, form, &code);
    expect_changes_refused(machine, form, &code);
    expect_changed_bits_refused(machine, form, &code);
    expect_armed(machine, form, &code);
    free(code.bytes);
}

static void try_sizes(const struct machine *machine, enum target target, const char *convention)
{
    size_t smallest = machine->bytes_min[target];
    const size_t sizes[] = {smallest,
                            smallest + machine->step,
                            smallest + 2 * machine->step,
                            smallest + 3 * machine->step,
                            smallest + 8 * machine->step,
                            64,
                            SIZE_MAX_TESTED};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (unsigned level = 0; level <= 2; level += 2) {
            const struct form form = {target, convention, sizes[i], level};
            try_form(machine, &form);
        }
    }
}

static const struct machine *supported(int index)
{
    const struct machine *machine = &machines[index];
    if (support_has_target(machine->triple))
        return machine;
    printf("LLVM %d has no code generator for %s\n", LLVM_VERSION_MAJOR, machine->triple);
    return NULL;
}

START_TEST(null_target_is_recognised)
{
    const struct machine *machine = supported(_i);
    if (machine == NULL)
        return;
    try_sizes(machine, TARGET_NULL, "");
    try_sizes(machine, TARGET_NULL, "anyregcc ");
}
END_TEST

START_TEST(immediate_target_is_recognised)
{
    const struct machine *machine = supported(_i);
    if (machine == NULL)
        return;
    try_sizes(machine, TARGET_IMMEDIATE, "");
    try_sizes(machine, TARGET_IMMEDIATE, "anyregcc ");
}
END_TEST

START_TEST(symbol_target_is_recognised)
{
    const struct machine *machine = supported(_i);
    if (machine == NULL)
        return;
    try_sizes(machine, TARGET_SYMBOL, "");
    try_sizes(machine, TARGET_SYMBOL, "anyregcc ");
}
END_TEST

/* LLVM before 22 does not check this size if it was built without assertions, and later versions
 * check it everywhere except on PPC64. LLVM then emits the whole call, and the region ends inside
 * of it. */
START_TEST(region_that_is_too_small_is_refused_where_it_ends)
{
    const struct machine *machine = supported(_i);
    if (machine == NULL || machine->step != WORD || (has_toc(machine) && LLVM_COUNTS_TOC_RELOAD))
        return;
    const struct cairn_arch *arch = arch_find(machine->architecture);
    for (size_t size = WORD; size < machine->bytes_min[TARGET_IMMEDIATE]; size += WORD) {
        const struct form form = {TARGET_IMMEDIATE, "", size, 2};
        struct arch_patchpoint found;
        struct cairn_error error = {0};
        struct code code = compile(machine, &form);
        ck_assert_int_eq(
            arch->recognise(arch, code.bytes + code.region, size, code.region, &found, &error),
            CAIRN_ERROR_CORRUPT);
        ck_assert_uint_eq(error.offset, code.region + size);
        free(code.bytes);
    }
}
END_TEST

/* ---- Registers ---- */

enum { LIVE_VALUES = 27, LIVE_IR_SIZE = 8192, KINDS = 2 };

/* ORDER RECORDS: a patch point, a stack map. */
static const char *const calls[KINDS] = {
    "call anyregcc void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void("
    "i64 77, i32 64, ptr null, i32 0",
    "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 77, i32 64",
};

/* DWARF numbers of the registers that veneers change and in which LLVM keeps no value; 0 ends the
 * list. */
static const uint16_t changed_by_veneers[MACHINE_COUNT][KINDS][3] = {
    [1] = {{16, 17}, {16, 17}}, /* x16, x17 */
    [2] = {{11, 12}, {12}},     /* r11, r12; CTR holds no value of these */
    [3] = {{11, 12}, {12}},
};

/* There are more values live across the call than registers. */
static void write_live_ir(int kind, char *text)
{
    char *at = text;
    at += sprintf(at, "%sdefine i64 @function(ptr %%a, i64 %%b) {\n", SUPPORT_INTRINSICS);
    at += sprintf(at, "  %%w0 = add i64 %%b, 1\n");
    for (int i = 1; i < LIVE_VALUES; i++)
        at += sprintf(at, "  %%w%d = mul i64 %%w%d, %%b\n", i, i - 1);
    at += sprintf(at, "  %s", calls[kind]);
    for (int i = 0; i < LIVE_VALUES; i++)
        at += sprintf(at, ", i64 %%w%d", i);
    at += sprintf(at, ")\n  %%x0 = add i64 %%b, 0\n");
    for (int i = 0; i < LIVE_VALUES; i++)
        at += sprintf(at, "  %%y%d = mul i64 %%x%d, %%b\n  %%x%d = xor i64 %%y%d, %%w%d\n", i, i,
                      i + 1, i, i);
    sprintf(at, "  ret i64 %%x%d\n}\n", (int)LIVE_VALUES);
    ck_assert_uint_lt(strlen(text), LIVE_IR_SIZE);
}

static void expect_free_of(LLVMMemoryBufferRef buffer, const uint16_t *changed, const char *name)
{
    struct cairn_error error = {0};
    cairn_object *object = NULL;
    struct cairn_object_section section = {0};
    struct cairn_stackmap map = {0};
    struct cairn_stackmap_record record = {0};
    size_t offset = 0;
    unsigned in_registers = 0;
    ck_assert_ok(cairn_object_open_memory(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer),
                                          NULL, &object, &error));
    ck_assert_ok(cairn_object_next_section(
        object, &(struct cairn_object_filter){.name = CAIRN_OBJECT_STACKMAPS}, &section, &error));
    ck_assert_ok(cairn_stackmap_read(&section.contents, &offset, &map, &error));
    ck_assert(cairn_stackmap_next(&map, &record));
    ck_assert_uint_eq(record.location_count, LIVE_VALUES);
    for (uint32_t i = 0; i < record.location_count; i++) {
        struct cairn_location location = cairn_stackmap_location(&map, &record, i);
        in_registers += location.kind == CAIRN_LOCATION_REGISTER;
        for (const uint16_t *number = changed; *number != 0; number++)
            ck_assert_msg(location.kind != CAIRN_LOCATION_REGISTER || location.dwarf != *number,
                          "%s: value %u is in register %u", name, i, location.dwarf);
    }
    /* LLVM has used nearly all registers. */
    ck_assert_uint_ge(in_registers, 12);
    cairn_object_destroy(object);
}

START_TEST(no_value_is_where_a_veneer_changes_it)
{
    const struct machine *machine = supported(_i);
    const struct support_compilation compilation = {
        .triple = machines[_i].triple, .optimisation_level = 2, .liveness = CAIRN_LIVENESS_OFF};
    for (int kind = 0; machine != NULL && kind < KINDS; kind++) {
        char text[LIVE_IR_SIZE] = "";
        write_live_ir(kind, text);
        LLVMContextRef context = LLVMContextCreate();
        LLVMModuleRef module = support_parse_valid(context, text);
        LLVMMemoryBufferRef object = support_compile_to_memory(module, &compilation);
        expect_free_of(object, changed_by_veneers[_i][kind], machine->triple);
        LLVMDisposeMemoryBuffer(object);
        LLVMDisposeModule(module);
        LLVMContextDispose(context);
    }
}
END_TEST

/* ---- Frames ---- */

/* Leaf functions; the second one has a path around the stack map that needs no frame. */
static const char *const functions_with_stackmaps[] = {
    SUPPORT_INTRINSICS "define i64 @function(i64 %a) {\n"
                       "  call void (i64, i32, ...)"
                       " @llvm.experimental.stackmap(i64 77, i32 4, i64 %a)\n"
                       "  ret i64 %a\n"
                       "}\n",
    SUPPORT_INTRINSICS "define i64 @function(i64 %a) {\n"
                       "  %c = icmp eq i64 %a, 0\n"
                       "  br i1 %c, label %out, label %work\n"
                       "work:\n"
                       "  call void (i64, i32, ...)"
                       " @llvm.experimental.stackmap(i64 77, i32 4, i64 %a)\n"
                       "  %r = mul i64 %a, %a\n"
                       "  ret i64 %r\n"
                       "out:\n"
                       "  ret i64 9\n"
                       "}\n",
};
enum { FUNCTIONS_WITH_STACKMAPS = 2 };

static bool has_word_before(const struct machine *machine, const struct code *code, uint32_t mask,
                            uint32_t bits)
{
    for (size_t offset = 0; offset < code->region; offset += WORD)
        if ((word_at(arch_find(machine->architecture), code, offset) & mask) == bits)
            return true;
    return false;
}

/* Calls and jumps at a stack map on PPC64 need a frame: LR is saved, and the callee may store in
 * the header at r1. */
START_TEST(function_with_a_stack_map_has_a_frame_around_it)
{
    const struct machine *machine = supported(_i);
    if (machine == NULL || !has_toc(machine))
        return;
    for (int i = 0; i < FUNCTIONS_WITH_STACKMAPS; i++) {
        for (unsigned level = 0; level <= 2; level += 2) {
            struct code code = compile_text(machine, functions_with_stackmaps[i], level);
            ck_assert(has_word_before(machine, &code, 0xFFFFFFFF, 0x7C0802A6)); /* mflr r0 */
            ck_assert(has_word_before(machine, &code, 0xFFFF0003, 0xF8010000)); /* std r0, #(r1) */
            ck_assert(has_word_before(machine, &code, 0xFFFF8003, 0xF8218001)); /* stdu r1 */
            free(code.bytes);
        }
    }
}
END_TEST

static Suite *create_suite(void)
{
    Suite *suite = suite_create("sequences");
    TCase *tests = tcase_create("sequences");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, null_target_is_recognised, 0, MACHINE_COUNT);
    tcase_add_loop_test(tests, immediate_target_is_recognised, 0, MACHINE_COUNT);
    tcase_add_loop_test(tests, symbol_target_is_recognised, 0, MACHINE_COUNT);
    tcase_add_loop_test(tests, region_that_is_too_small_is_refused_where_it_ends, 0, MACHINE_COUNT);
    tcase_add_loop_test(tests, no_value_is_where_a_veneer_changes_it, 0, MACHINE_COUNT);
    tcase_add_loop_test(tests, function_with_a_stack_map_has_a_frame_around_it, 0, MACHINE_COUNT);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void) { return support_main(create_suite()); }
