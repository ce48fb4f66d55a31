/* SPDX-License-Identifier: MIT */
#include "tests/llvm_check_support.h"

#include <llvm-c/Object.h>
#include <stdio.h>
#include <string.h>

LLVMContextRef context;

static void set_up(void) { context = LLVMContextCreate(); }
static void tear_down(void) { LLVMContextDispose(context); }

int check_main(const char *name, void (*add_tests)(TCase *tests))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create("check");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}

LLVMModuleRef parse_for(const char *text, const char *triple)
{
    LLVMModuleRef module = support_parse(context, text);
    if (triple != NULL)
        LLVMSetTarget(module, triple);
    return module;
}

enum support_outcome compile(LLVMModuleRef module, const struct judgement *judgement)
{
    struct support_compilation compilation = {.triple = judgement->triple,
                                              .optimisation_level = judgement->optimisation_level,
                                              .uses_fast_isel = judgement->uses_fast_isel,
                                              .is_confined = judgement->fills_memory};
    return support_compile(module, &compilation);
}

enum cairn_status check(LLVMModuleRef module, const struct judgement *judgement,
                        struct cairn_error *error)
{
    struct cairn_check_options options = {.enable_fast_isel = judgement->uses_fast_isel,
                                          .optimisation_level = judgement->optimisation_level};
    return cairn_check_module(module, &options, error);
}

void assert_says_of(const char *instruction, const char *text, const struct judgement *judgement,
                    const char *why, const char *instead)
{
    LLVMModuleRef module = parse_for(text, judgement->triple);
    struct cairn_error error = {0};
    ck_assert_int_eq(check(module, judgement, &error), CAIRN_ERROR_LLVM);
    const char *const parts[] = {"'culprit'", instruction, why, "; write ", instead};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(error.message, parts[i]) != NULL, "no \"%s\" in: %s", parts[i],
                      error.message);
    LLVMDisposeModule(module);
}

void assert_says(const char *text, const struct judgement *judgement, const char *why,
                 const char *instead)
{
    assert_says_of("call", text, judgement, why, instead);
}

#ifdef __SANITIZE_ADDRESS__
enum { MAY_FILL_MEMORY = 0 };
#else
enum { MAY_FILL_MEMORY = 1 };
#endif

void assert_crashes(const char *text, const struct judgement *judgement)
{
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64)
        return;
    if (judgement->triple != NULL && !support_has_target(judgement->triple))
        return;
    if (judgement->fills_memory && !MAY_FILL_MEMORY)
        return;
    LLVMModuleRef module = parse_for(text, judgement->triple);
    enum support_outcome outcome = compile(module, judgement);
    ck_assert_msg(outcome != SUPPORT_COMPILED, "LLVM %d compiles this:\n%s", LLVM_VERSION_MAJOR,
                  text);
    LLVMDisposeModule(module);
}

void assert_refused_rightly(const char *text, const struct judgement *judgement, const char *why,
                            const char *instead)
{
    assert_says(text, judgement, why, instead);
    assert_crashes(text, judgement);
}

void assert_compiles(const char *text, const struct judgement *judgement)
{
    LLVMModuleRef module = parse_for(text, judgement->triple);
    struct cairn_error error = {0};
    enum cairn_status status = check(module, judgement, &error);
    ck_assert_msg(status == CAIRN_OK, "%s\n%s", error.message, text);
    if (judgement->triple == NULL || support_has_target(judgement->triple))
        ck_assert_msg(compile(module, judgement) == SUPPORT_COMPILED, "LLVM %d crashes on\n%s",
                      LLVM_VERSION_MAJOR, text);
    LLVMDisposeModule(module);
}

void assert_judged(bool is_accepted, const char *text, const struct judgement *judgement,
                   const char *why, const char *instead)
{
    if (is_accepted)
        assert_compiles(text, judgement);
    else
        assert_refused_rightly(text, judgement, why, instead);
}

bool has_stackmaps(const char *triple)
{
    return strncmp(triple, "riscv", 5) != 0 || LLVM_HAS_RISCV_STACKMAPS;
}

/* ---- Objects ---- */

/* The section's bytes, valid as long as the binary; empty if there is no such section. */
static struct cairn_section find_section(LLVMBinaryRef binary, const char *name)
{
    struct cairn_section found = {0};
    LLVMSectionIteratorRef section = LLVMObjectFileCopySectionIterator(binary);
    for (; !LLVMObjectFileIsSectionIteratorAtEnd(binary, section); LLVMMoveToNextSection(section))
        if (LLVMGetSectionName(section) != NULL && strcmp(LLVMGetSectionName(section), name) == 0)
            found =
                (struct cairn_section){.bytes = (const uint8_t *)LLVMGetSectionContents(section),
                                       .size = LLVMGetSectionSize(section),
                                       .byte_order = CAIRN_LITTLE_ENDIAN};
    LLVMDisposeSectionIterator(section);
    return found;
}

/* Compiles, and returns the object. The caller disposes of both. */
static LLVMBinaryRef compile_to_object(const char *text, const struct judgement *judgement,
                                       LLVMMemoryBufferRef *object)
{
    const struct support_compilation compilation = {.triple = judgement->triple,
                                                    .optimisation_level =
                                                        judgement->optimisation_level,
                                                    .liveness = CAIRN_LIVENESS_OFF_BY_HOST};
    char *message = NULL;
    LLVMModuleRef module = parse_for(text, judgement->triple);
    *object = support_compile_to_memory(module, &compilation);
    LLVMBinaryRef binary = LLVMCreateBinary(*object, NULL, &message);
    ck_assert_ptr_nonnull(binary);
    LLVMDisposeModule(module);
    return binary;
}

size_t section_size(const char *text, const struct judgement *judgement, const char *name)
{
    LLVMMemoryBufferRef object;
    LLVMBinaryRef binary = compile_to_object(text, judgement, &object);
    size_t size = find_section(binary, name).size;
    LLVMDisposeBinary(binary);
    LLVMDisposeMemoryBuffer(object);
    return size;
}

unsigned count_records(const char *text, const struct judgement *judgement)
{
    LLVMMemoryBufferRef object;
    LLVMBinaryRef binary = compile_to_object(text, judgement, &object);
    struct cairn_section section = find_section(binary, ".llvm_stackmaps");
    struct cairn_stackmap map;
    size_t offset = 0;
    ck_assert_ok(cairn_stackmap_read(&section, &offset, &map, NULL));
    LLVMDisposeBinary(binary);
    LLVMDisposeMemoryBuffer(object);
    return map.record_count;
}

/* ---- IR ---- */

char *with_pointer_type(const char *text, const char *word, const char *type)
{
    static char result[8192];
    char *out = result;
    char pointer[64] = "ptr";
    if (!LLVM_HAS_OPAQUE_POINTERS)
        snprintf(pointer, sizeof pointer, "%s*", type);
    for (const char *in = text; *in != '\0';) {
        if (strncmp(in, word, strlen(word)) == 0) {
            out = stpcpy(out, pointer);
            in += strlen(word);
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
    return result;
}

char *with_bytes(const char *bytes, const char *target)
{
    static char text[1024];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define void @culprit() {\n"
             "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 "
             "%s, ptr %s, i32 0)\n"
             "  ret void\n}\n",
             bytes, target);
    return text;
}

char *with_values(unsigned count, bool anyreg, const char *type)
{
    static char text[16384];
    char *out = text + sprintf(text, SUPPORT_INTRINSICS "define void @culprit(");
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, "%s%s %%x%u", i == 0 ? "" : ", ", type, i);
    out += sprintf(out, ") {\n");
    if (anyreg)
        out += sprintf(out,
                       "  call anyregcc void (i64, i32, ptr, i32, ...) "
                       "@llvm.experimental.patchpoint.void(i64 1, i32 64, ptr null, i32 %u",
                       count);
    else
        out += sprintf(out, "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0");
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, ", %s %%x%u", type, i);
    sprintf(out, ")\n  ret void\n}\n");
    return text;
}
