/*
 * check_lookup_memory.c - what lookups read of modules: only the runtime's pools, and the same that
 * a search of the module's tables finds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "machine.h"
#include "runtime/module.h"
#include "site_support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- An allocator whose blocks can be made inaccessible ---- */

enum { BLOCKS_MAX = 4096 };

struct guarded {
    struct {
        unsigned char *address;
        size_t size;
        size_t mapped;
        bool is_open; /* always accessible */
    } blocks[BLOCKS_MAX];
    size_t count;
};

/* Whether a size is one of chunks of pools (base/pool.c). */
static bool is_chunk(size_t size)
{
    return size >= 4096 && size <= 65536 && (size & (size - 1)) == 0;
}

static void *map_block(struct guarded *guarded, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t mapped = (size + page - 1) & ~(page - 1);
    void *address = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED || guarded->count == BLOCKS_MAX)
        abort();
    size_t number = guarded->count++;
    guarded->blocks[number].address = address;
    guarded->blocks[number].size = size;
    guarded->blocks[number].mapped = mapped;
    return address;
}

static void *guarded_reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    struct guarded *guarded = user;
    void *moved = new_size == 0 ? NULL : map_block(guarded, new_size);
    for (size_t i = 0; block != NULL && i < guarded->count; i++) {
        if (guarded->blocks[i].address != block)
            continue;
        ck_assert_uint_eq(guarded->blocks[i].size, old_size);
        if (moved != NULL)
            memcpy(moved, block, old_size < new_size ? old_size : new_size);
        munmap(block, guarded->blocks[i].mapped);
        guarded->blocks[i].address = NULL;
        return moved;
    }
    ck_assert_ptr_null(block);
    return moved;
}

/* All blocks so far stay accessible. */
static void keep_open(struct guarded *guarded)
{
    for (size_t i = 0; i < guarded->count; i++)
        guarded->blocks[i].is_open = true;
}

/* Protects the blocks that are not to be kept open, and are not chunks of pools. Returns their
 * number. */
static size_t protect(const struct guarded *guarded, int protection)
{
    size_t count = 0;
    for (size_t i = 0; i < guarded->count; i++) {
        unsigned char *address = guarded->blocks[i].address;
        if (address == NULL || guarded->blocks[i].is_open || is_chunk(guarded->blocks[i].size))
            continue;
        ck_assert_int_eq(mprotect(address, guarded->blocks[i].mapped, protection), 0);
        count++;
    }
    return count;
}

/* ---- Modules of several functions ---- */

enum { MODULES = 6, FUNCTIONS_MAX = MODULES, FUNCTION_BYTES = 64, RECORDS = 2, CODE_BYTES = 512 };

/* Loads so many functions, each with two patch points, with IDs from `id` on. */
static cairn_module *load(cairn_runtime *runtime, uint32_t functions, uint64_t id)
{
    uint8_t code[CODE_BYTES];
    struct site_function function[FUNCTIONS_MAX];
    struct site_record records[FUNCTIONS_MAX * RECORDS];
    uint8_t *address;
    const uint32_t region = (uint32_t)machine_patchpoint_bytes;
    arch_host()->fill_nops(arch_host(), code, sizeof code);
    ck_assert_uint_le(RECORDS * region, FUNCTION_BYTES);
    for (uint32_t i = 0; i < functions; i++) {
        function[i] = (struct site_function){i * FUNCTION_BYTES, RECORDS};
        for (uint32_t k = 0; k < RECORDS; k++)
            records[i * RECORDS + k] = (struct site_record){
                .id = id + i * RECORDS + k,
                .offset = k * region,
                .byte_count = region,
                .kind = CAIRN_RECORD_PATCHPOINT,
            };
    }
    const struct site_code all = {.bytes = code,
                                  .size = sizeof code,
                                  .functions = function,
                                  .function_count = functions,
                                  .records = records};
    cairn_module *module = site_load_code(runtime, &all, &address);
    ck_assert_int_eq(cairn_module_publish(module, NULL), CAIRN_OK);
    return module;
}

/* ---- The memory that lookups read ---- */

struct loaded {
    cairn_module *module;
    uint32_t records;
    uint64_t id; /* the first one */
    struct {
        cairn_site *site;
        uint64_t address;
        uint64_t function;
    } expected[FUNCTIONS_MAX * RECORDS];
};

static void note_expected(struct loaded *loaded)
{
    const cairn_table *table = cairn_module_table(loaded->module);
    for (uint32_t i = 0; i < loaded->records; i++) {
        struct cairn_record record = {table, i};
        loaded->expected[i].site = cairn_record_site(record);
        loaded->expected[i].address = cairn_record_address(record);
        loaded->expected[i].function = record_function(record).address;
    }
}

/* Looks up without a read of the records, sites, tables or module. */
static void expect_found(const cairn_runtime *runtime, const struct loaded *loaded)
{
    for (uint32_t i = 0; i < loaded->records; i++) {
        const uint64_t address = loaded->expected[i].address;
        struct cairn_record record = {0};
        struct cairn_function function;
        ck_assert_ptr_eq(cairn_runtime_find_site(runtime, loaded->id + i, NULL),
                         loaded->expected[i].site);
        ck_assert_uint_eq(cairn_runtime_find_id(runtime, loaded->id + i, &record, 1), 1);
        ck_assert_uint_eq(record.index, i);
        ck_assert_ptr_eq(cairn_runtime_find_module(runtime, address), loaded->module);
        ck_assert(cairn_runtime_find_function(runtime, address, &function));
        ck_assert_uint_eq(function.address, loaded->expected[i].function);
        ck_assert_uint_eq(function.record_count, RECORDS);
        /* A table with more records has its addresses only in itself. */
        if (loaded->records <= ADDRESS_INDEX_RECORDS) {
            ck_assert(cairn_runtime_find_address(runtime, address, &record));
            ck_assert_uint_eq(record.index, i);
        }
    }
}

/* Loads modules of one function, two functions, and so on. */
static void load_all(cairn_runtime *runtime, struct loaded loaded[MODULES], uint64_t id)
{
    for (uint32_t i = 0; i < MODULES; i++) {
        loaded[i] = (struct loaded){
            .module = load(runtime, i + 1, id), .records = (i + 1) * RECORDS, .id = id};
        note_expected(&loaded[i]);
        id += loaded[i].records;
    }
}

START_TEST(lookups_read_only_the_memory_of_the_runtime)
{
    static struct guarded guarded;
    enum { SETS = 3, IDS = RECORDS * MODULES * (MODULES + 1) / 2 };
    static struct loaded earlier[SETS][MODULES];
    static struct loaded loaded[MODULES];
    const struct cairn_runtime_options options = {
        .code_mode = site_modes[_i],
        .allocator = {.reallocate = guarded_reallocate, .user = &guarded},
    };
    cairn_runtime *runtime;
    ck_assert_int_eq(cairn_runtime_create(&options, &runtime, NULL), CAIRN_OK);
    for (uint32_t i = 0; i < SETS; i++)
        load_all(runtime, earlier[i], i * IDS);
    for (uint32_t i = 0; i < SETS * MODULES; i++)
        cairn_module_retire(earlier[i / MODULES][i % MODULES].module);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), SETS * MODULES);
    keep_open(&guarded); /* the runtime, and its table of IDs, which now has space for more */
    load_all(runtime, loaded, SETS * IDS);
    ck_assert_uint_ge(protect(&guarded, PROT_NONE), 3 * MODULES);
    for (uint32_t i = 0; i < MODULES; i++)
        expect_found(runtime, &loaded[i]);
    protect(&guarded, PROT_READ | PROT_WRITE);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- The index of functions, and a search of the tables ---- */

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*state >> 33);
}

/* Creates symbols of functions anywhere in the code, some of unknown size, which may overlap. */
static struct module_symbols *random_symbols(const cairn_runtime *runtime, uint64_t code,
                                             uint64_t *state)
{
    enum { SYMBOLS_MAX = 8 };
    static const char *const names[SYMBOLS_MAX] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct symbol list[SYMBOLS_MAX];
    struct module_symbols *symbols;
    size_t count = next_random(state) % SYMBOLS_MAX;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = code + next_random(state) % CODE_BYTES;
        list[i] = (struct symbol){
            .name = names[i],
            .address = address,
            .code = address,
            .size = next_random(state) % 3 == 0 ? 0 : next_random(state) % 200,
        };
    }
    ck_assert_int_eq(module_symbols_create(list, count, &runtime->symbols.key, &runtime->allocator,
                                           &symbols, NULL),
                     CAIRN_OK);
    return symbols;
}

/* Loads functions with records anywhere in the code, and perhaps one with an unwind table. */
static cairn_module *load_random(cairn_runtime *runtime, uint8_t **address, uint64_t *state)
{
    static const uint8_t code[CODE_BYTES];
    struct site_function functions[FUNCTIONS_MAX];
    struct site_record records[FUNCTIONS_MAX * RECORDS] = {0};
    uint32_t count = next_random(state) % FUNCTIONS_MAX;
    uint32_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        offset += next_random(state) % (CODE_BYTES / FUNCTIONS_MAX);
        functions[i] = (struct site_function){offset, RECORDS};
        for (uint32_t k = 0; k < RECORDS; k++)
            records[i * RECORDS + k].id = i * RECORDS + k;
    }
    const struct site_code all = {.bytes = code,
                                  .size = sizeof code,
                                  .functions = functions,
                                  .function_count = count,
                                  .records = records,
                                  .unwound = next_random(state) % 2 == 0 ? 0 : 100};
    return site_load_code(runtime, &all, address);
}

static void expect_same(const cairn_runtime *runtime, const cairn_module *module, uint64_t pc)
{
    struct cairn_function found = {0};
    struct cairn_function searched = {0};
    bool is_found = cairn_runtime_find_function(runtime, pc, &found);
    ck_assert_int_eq(is_found, module_search_function(module, pc, &searched));
    if (!is_found)
        return;
    ck_assert_uint_eq(found.address, searched.address);
    ck_assert_uint_eq(found.stack_size, searched.stack_size);
    ck_assert_uint_eq(found.first_record, searched.first_record);
    ck_assert_uint_eq(found.record_count, searched.record_count);
    ck_assert_ptr_eq(found.name, searched.name);
}

START_TEST(the_index_has_the_functions_that_a_search_finds)
{
    enum { ROUNDS = 400, AROUND = 64 };
    uint64_t state = 1;
    cairn_runtime *runtime = site_runtime(CAIRN_CODE_MODE_AUTOMATIC);
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t *code;
        cairn_module *module = load_random(runtime, &code, &state);
        module->symbols = random_symbols(runtime, (uintptr_t)code, &state);
        ck_assert_int_eq(cairn_module_publish(module, NULL), CAIRN_OK);
        for (uint64_t pc = (uintptr_t)code - AROUND; pc < (uintptr_t)code + CODE_BYTES + AROUND;
             pc++)
            expect_same(runtime, module, pc);
        cairn_module_retire(module);
        cairn_runtime_quiesce(runtime);
    }
    cairn_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lookup");
    TCase *tests = tcase_create("lookup");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, lookups_read_only_the_memory_of_the_runtime, site_first_mode(),
                        SITE_MODES);
    tcase_add_test(tests, the_index_has_the_functions_that_a_search_finds);
    return site_main(suite);
}
