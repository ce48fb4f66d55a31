/*
 * Tests of the memory manager's callbacks, called in the same way as by LLVM's RuntimeDyld, with
 * sections of any name: which of them are taken for stack maps.
 *
 * The program defines LLVMCreateSimpleMCJITMemoryManager, which precedes libLLVM's definition, and
 * so receives the callbacks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"

#include "arch/arch.h"
#include "tests/machine.h"
#include "tests/section_writer.h"

#include <llvm-c/ExecutionEngine.h>
#include <stdlib.h>
#include <string.h>

#if LLVM_VERSION_MAJOR >= 15
#define ELEMENT_OF LLVMGetAggregateElement
#else
#define ELEMENT_OF LLVMGetElementAsConstant
#endif

static struct {
    void *manager;
    LLVMMemoryManagerAllocateCodeSectionCallback code;
    LLVMMemoryManagerAllocateDataSectionCallback data;
    LLVMMemoryManagerFinalizeMemoryCallback finalise;
    LLVMMemoryManagerDestroyCallback destroy;
} callbacks;

LLVMMCJITMemoryManagerRef LLVMCreateSimpleMCJITMemoryManager(
    void *opaque, LLVMMemoryManagerAllocateCodeSectionCallback code,
    LLVMMemoryManagerAllocateDataSectionCallback data,
    LLVMMemoryManagerFinalizeMemoryCallback finalise, LLVMMemoryManagerDestroyCallback destroy)
{
    callbacks.manager = opaque;
    callbacks.code = code;
    callbacks.data = data;
    callbacks.finalise = finalise;
    callbacks.destroy = destroy;
    return (LLVMMCJITMemoryManagerRef)&callbacks;
}

/* ---- One finalisation ---- */

enum { CODE_BYTES = 64, ID = 7 };

static cairn_runtime *runtime;

static void set_up(void) { ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL)); }
static void tear_down(void) { cairn_runtime_destroy(runtime); }

/* A patch point of 16 bytes of no-ops in a function that returns. */
static uint8_t *load_code(void)
{
    uint8_t *code = callbacks.code(callbacks.manager, CODE_BYTES, 16, 1, "__text");
    ck_assert_ptr_nonnull(code);
    memset(code, 0, CODE_BYTES);
    arch_host()->fill_nops(arch_host(), code, 16);
    machine_return(code + 16);
    return code;
}

static void load_section(const uint8_t *code, const char *name)
{
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, 1);
    writer_function(&writer, (uintptr_t)code, 8, 1);
    writer_record(&writer, ID, 0, NULL, 0, NULL, 0);
    uint8_t *section =
        callbacks.data(callbacks.manager, writer.size, 8, 2, name, /* is_read_only */ 1);
    ck_assert_ptr_nonnull(section);
    memcpy(section, writer.bytes, writer.size);
    writer_end(&writer);
}

/* Loads the section by which the manager identifies the module: the contents of its only variable.
 */
static void load_marker(LLVMModuleRef module, const char *name)
{
    enum { WORDS = 2 };
    uint64_t words[WORDS];
    LLVMValueRef variable = LLVMGetFirstGlobal(module);
    ck_assert_ptr_nonnull(variable);
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = LLVMConstIntGetZExtValue(ELEMENT_OF(LLVMGetInitializer(variable), i));
    uint8_t *section = callbacks.data(callbacks.manager, sizeof words, 8, 3, name, 1);
    ck_assert_ptr_nonnull(section);
    memcpy(section, words, sizeof words);
}

static void declare_site(cairn_memory_manager *manager, LLVMContextRef context, const char *marker)
{
    LLVMModuleRef module = support_parse_valid(
        context, SUPPORT_INTRINSICS
        "define void @f() {\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
        "      i64 7, i32 16, ptr null, i32 0)\n"
        "  ret void\n"
        "}\n");
    ck_assert_ok(cairn_memory_manager_declare(manager, module, NULL));
    load_marker(module, marker);
    LLVMDisposeModule(module);
}

/* Returns the number of records after a section of that name was loaded. */
static size_t count_records_of(const char *name)
{
    cairn_memory_manager *manager = NULL;
    LLVMContextRef context = LLVMContextCreate();
    char *message = NULL;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    declare_site(manager, context, name[0] == '_' ? "__cairn_declared" : ".cairn.declared");
    load_section(load_code(), name);
    ck_assert_msg(!callbacks.finalise(callbacks.manager, &message), "%s", message);
    ck_assert_ok(cairn_memory_manager_status(manager, NULL));
    size_t count = cairn_runtime_find_id(runtime, ID, NULL, 0);
    if (count == 1)
        ck_assert_ok(cairn_site_nop(cairn_runtime_find_site(runtime, ID, NULL), CAIRN_SYNC, NULL));
    callbacks.destroy(callbacks.manager);
    LLVMContextDispose(context);
    return count;
}

static const char *const stackmap_names[] = {".llvm_stackmaps", "__llvm_stackmaps"};
static const char *const other_names[] = {"llvm_stackmaps",    "_llvm_stackmaps",  ".rodata",
                                          ".llvm_stackmaps.1", "__LLVM_STACKMAPS", ""};
enum {
    STACKMAP_NAMES = sizeof stackmap_names / sizeof *stackmap_names,
    OTHER_NAMES = sizeof other_names / sizeof *other_names
};

START_TEST(elf_s_and_mach_o_s_stack_maps_are_read)
{
    ck_assert_uint_eq(count_records_of(stackmap_names[_i]), 1);
}
END_TEST

START_TEST(sections_of_other_names_are_data)
{
    ck_assert_uint_eq(count_records_of(other_names[_i]), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sections");
    TCase *tests = tcase_create("sections");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, elf_s_and_mach_o_s_stack_maps_are_read, 0, STACKMAP_NAMES);
    tcase_add_loop_test(tests, sections_of_other_names_are_data, 0, OTHER_NAMES);
    suite_add_tcase(suite, tests);
    return support_run(suite);
}
