/*
 * Tests of linking objects of LLVM of which bytes are changed: none may do anything but be linked
 * or be refused with a message. CAIRN_TEST_ROUNDS is the number of objects for each target.
 *
 * SPDX-License-Identifier: MIT
 */
#include "link_support.h"
#include "object_ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct {
    const char *triple;
    enum cairn_architecture architecture;
    LLVMCodeModel models[3];
} targets[] = {
    {"x86_64-linux-gnu",
     CAIRN_ARCHITECTURE_X86_64,
     {LLVMCodeModelSmall, LLVMCodeModelMedium, LLVMCodeModelLarge}},
    {"aarch64-linux-gnu",
     CAIRN_ARCHITECTURE_AARCH64,
     {LLVMCodeModelTiny, LLVMCodeModelSmall, LLVMCodeModelLarge}},
    {"powerpc64le-linux-gnu",
     CAIRN_ARCHITECTURE_PPC64_ELFV2,
     {LLVMCodeModelSmall, LLVMCodeModelMedium, LLVMCodeModelLarge}},
    {"powerpc64-linux-gnu",
     CAIRN_ARCHITECTURE_PPC64_ELFV1,
     {LLVMCodeModelSmall, LLVMCodeModelMedium, LLVMCodeModelLarge}},
};

static uint64_t state;

/* Returns a number less than `count`. Source: Steele, Lea and Flood 2014, "Fast splittable
 * pseudorandom number generators" (SplitMix64). */
static uint32_t below(size_t count)
{
    uint64_t number = state += UINT64_C(0x9E3779B97F4A7C15);
    number = (number ^ number >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    number = (number ^ number >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((number ^ number >> 31) % count);
}

/* Changes 1 to 4 bytes: in the header, in the tables at the end, or anywhere. */
static size_t mutate(uint8_t *bytes, size_t size)
{
    static const uint8_t values[] = {0, 1, 0x7F, 0x80, 0xFE, 0xFF};
    enum { HEADER_BYTES = 64 };
    uint64_t table =
        cairn_load_u64(bytes + 40, bytes[5] == 2 ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN);
    for (uint32_t changes = 1 + below(4); changes > 0; changes--) {
        uint32_t where = below(8);
        size_t at = where == 0  ? below(HEADER_BYTES)
                    : where < 4 ? (size_t)table + below(size - (size_t)table)
                                : below(size);
        bytes[at] =
            below(2) == 0 ? values[below(sizeof values)] : (uint8_t)(bytes[at] ^ 1U << below(8));
    }
    return below(10) == 0 ? below(size) : size;
}

static void link_mutant(const uint8_t *bytes, size_t size, const struct cairn_arch *arch)
{
    struct link_host host = {.next = 0x100000, .refuses_too_much = true};
    link_host_symbol(&host, "host_add", 0x200000);
    link_host_symbol(&host, "host_byte", 0x210000);
    link_host_symbol(&host, "sqrt", 0x220000);
    enum cairn_status status = link_add_bytes(&host, arch, bytes, size);
    if (status == CAIRN_OK)
        status = link_finish(&host);
    if (status != CAIRN_OK)
        ck_assert(host.error.status == status && host.error.message[0] != '\0');
    link_end(&host);
}

START_TEST(test_mutants_are_linked_or_refused)
{
    const char *rounds = getenv("CAIRN_TEST_ROUNDS");
    int count = rounds == NULL ? 300 : 30 * (int)strtol(rounds, NULL, 10);
    const char *seed = getenv("CAIRN_TEST_SEED");
    state = seed == NULL ? (uint64_t)time(NULL) : strtoull(seed, NULL, 0);
    printf("seed %llu (CAIRN_TEST_SEED repeats it)\n", (unsigned long long)state);
    const struct object_ir_options options = {.triple = targets[_i].triple,
                                              .code_model = targets[_i].models[below(3)],
                                              .relocation_model =
                                                  below(2) == 0 ? LLVMRelocPIC : LLVMRelocStatic,
                                              .level = (LLVMCodeGenOptLevel)below(4)};
    LLVMMemoryBufferRef object = object_ir_compile(&options);
    if (object == NULL)
        return;
    size_t size = LLVMGetBufferSize(object);
    const struct cairn_arch *arch = arch_find(targets[_i].architecture);
    for (int i = 0; i < count; i++) {
        uint8_t *bytes = malloc(size);
        ck_assert_ptr_nonnull(bytes);
        memcpy(bytes, LLVMGetBufferStart(object), size);
        link_mutant(bytes, i == 0 ? size : mutate(bytes, size), arch);
        free(bytes);
    }
    LLVMDisposeMemoryBuffer(object);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("object_link_mutants");
    TCase *mutants = tcase_create("mutants");
    tcase_set_timeout(mutants, 120);
    tcase_add_loop_test(mutants, test_mutants_are_linked_or_refused, 0,
                        sizeof targets / sizeof *targets);
    suite_add_tcase(suite, mutants);
    return support_run(suite);
}
