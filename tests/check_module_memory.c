/*
 * Tests of the memory that very many small modules take.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "bench/one_function.h"
#include "code_support.h"
#include "runtime_support.h"

#include <cairn/cairn.h>

static struct one_function object;

static void load(cairn_runtime *runtime, uint32_t number)
{
    cairn_loader *loader;
    cairn_module *module;
    one_function_number(&object, number, number);
    ck_assert_ok(cairn_loader_create(runtime, NULL, &loader, NULL));
    ck_assert_ok(cairn_loader_add_object(loader, object.bytes, object.size, NULL, NULL));
    ck_assert_ok(cairn_loader_finish(loader, &module, NULL));
    ck_assert_ok(cairn_module_publish(module, NULL));
}

/* Returns how many bytes are allocated, except those of tables. Without tables that were replaced.
 */
static size_t bytes_beyond_tables(cairn_runtime *runtime, const struct support_allocator *allocator)
{
    cairn_runtime_quiesce(runtime);
    struct cairn_runtime_statistics statistics = support_runtime_statistics(runtime);
    return allocator->outstanding_bytes - statistics.table_bytes - statistics.index_bytes;
}

/* The bound of 256 bytes includes what malloc adds: about 10 bytes for each of a module's five
 * allocations. */
START_TEST(a_module_of_one_function_takes_few_bytes)
{
    enum { FIRST = 1000, MODULES = 8000, BYTES_MAX = 206 };
    struct support_allocator allocator = {0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocator)};
    cairn_runtime *runtime;
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    for (uint32_t i = 0; i < FIRST; i++)
        load(runtime, i);
    size_t before = bytes_beyond_tables(runtime, &allocator);
    for (uint32_t i = FIRST; i < FIRST + MODULES; i++)
        load(runtime, i);
    size_t bytes = bytes_beyond_tables(runtime, &allocator) - before;
    ck_assert_uint_le(bytes / MODULES, BYTES_MAX);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
}
END_TEST

int main(void)
{
    if (!one_function_create(&object))
        return 77;
    Suite *suite = suite_create("module_memory");
    TCase *tests = tcase_create("module_memory");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_module_of_one_function_takes_few_bytes);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
